//! Dynamic shared memory.

use core::arch::{asm, global_asm};

// A Rust static in a `.shared` section silently becomes global memory, so the array is declared in PTX.
global_asm!(".extern .shared .align 1024 .b8 dynamic_shared[];");

/// Shared-window address of dynamic shared memory.
#[inline(always)]
pub fn dynamic_base() -> u32 {
    let address;
    // SAFETY: reads an address.
    unsafe { asm!("mov.u32 {a}, dynamic_shared;", a = out(reg32) address, options(pure, nomem)) }
    address
}

/// `ld.shared.u32`.
///
/// # Safety
/// `address` is a 4-byte aligned word of the CTA's shared memory.
#[inline(always)]
pub unsafe fn load(address: u32) -> u32 {
    let value;
    // SAFETY: the caller's promise.
    unsafe { asm!("ld.shared.u32 {v}, [{a}];", v = out(reg32) value, a = in(reg32) address) }
    value
}

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

/// `st.shared.v4.b32`.
///
/// # Safety
/// `address` has 16 bytes of the CTA's shared memory and is 16-byte aligned.
#[inline(always)]
pub unsafe fn store_v4(address: u32, value: [u32; 4]) {
    // SAFETY: the caller's promise.
    unsafe {
        asm!("st.shared.v4.b32 [{a}], {{{v0}, {v1}, {v2}, {v3}}};", a = in(reg32) address,
             v0 = in(reg32) value[0], v1 = in(reg32) value[1], v2 = in(reg32) value[2], v3 = in(reg32) value[3])
    }
}

/// `st.shared.b16`.
///
/// # Safety
/// `address` is a 2-byte aligned halfword of the CTA's shared memory.
#[inline(always)]
pub unsafe fn store_u16(address: u32, value: u16) {
    // SAFETY: the caller's promise.
    unsafe { asm!("st.shared.b16 [{a}], {v};", a = in(reg32) address, v = in(reg16) value) }
}

//! Arithmetic on two 16-bit halves.

use core::arch::asm;

/// `max.u16x2`: the larger of the low halves and of the high halves.
#[inline(always)]
pub fn max_u16x2(a: u32, b: u32) -> u32 {
    let larger;
    // SAFETY: register arithmetic.
    unsafe {
        asm!("max.u16x2 {d}, {a}, {b};", d = out(reg32) larger, a = in(reg32) a, b = in(reg32) b, options(pure, nomem))
    }
    larger
}

//! Conversions.

use core::arch::asm;

/// `cvt.rn.bf16x2.f32`: two floats to packed BF16, `low` in the lower half.
#[inline(always)]
pub fn bf16x2(high: f32, low: f32) -> u32 {
    let packed;
    // SAFETY: register arithmetic.
    unsafe {
        asm!("cvt.rn.bf16x2.f32 {d}, {h}, {l};", d = out(reg32) packed, h = in(reg32) high, l = in(reg32) low,
             options(pure, nomem))
    }
    packed
}

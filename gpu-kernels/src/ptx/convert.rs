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

/// `cvt.rn.satfinite.e4m3x2.f32`: two floats to E4M3 to nearest even, `low` in the lower byte. Magnitudes past 448,
/// infinity too, become 448; NaN stays NaN.
#[inline(always)]
pub fn e4m3x2(high: f32, low: f32) -> u16 {
    let packed;
    // SAFETY: register arithmetic.
    unsafe {
        asm!("cvt.rn.satfinite.e4m3x2.f32 {d}, {h}, {l};", d = out(reg16) packed, h = in(reg32) high, l = in(reg32) low,
             options(pure, nomem))
    }
    packed
}

/// `cvt.rp.satfinite.ue8m0x2.f32`: two floats to powers of two, rounded up, `low` in the lower byte. Magnitudes past
/// 2^127, infinity too, become 2^127.
#[inline(always)]
pub fn ue8m0x2(high: f32, low: f32) -> u16 {
    let packed;
    // SAFETY: register arithmetic.
    unsafe {
        asm!("cvt.rp.satfinite.ue8m0x2.f32 {d}, {h}, {l};", d = out(reg16) packed, h = in(reg32) high,
             l = in(reg32) low, options(pure, nomem))
    }
    packed
}

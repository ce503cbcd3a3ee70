//! Floating-point formats: exact decoding to `f64`, and encoding with any rounding.
//!
//! Every format here but `f64` itself embeds in `f64`. A result that does not (the sum of two `f32`, say) is handed over
//! as an `f64` rounded to odd, see [`super::exact`]: rounding that once more gives what rounding the exact value would,
//! because `f64` has more than two bits to spare.

use crate::program::{FloatFormat, Rounding};

/// How a format lays out its bits.
struct Layout {
    exponent_bits: u32,
    fraction_bits: u32,
    /// Low bits of the register that are always zero (`tf32`).
    padding: u32,
    /// Encoding of the largest finite magnitude, without padding.
    largest: u64,
    /// Encoding of the infinite magnitude, if there is one.
    infinity: Option<u64>,
    /// The NaN that results from operations.
    nan: u64,
}

impl Layout {
    const fn ieee(exponent_bits: u32, fraction_bits: u32, padding: u32, nan: u64) -> Self {
        let infinity = ((1 << exponent_bits) - 1) << fraction_bits;
        Self { exponent_bits, fraction_bits, padding, largest: infinity - 1, infinity: Some(infinity), nan }
    }

    /// PTX ISA, "Alternate Floating-Point Data Formats"; canonical NaNs as in `cvt` and the arithmetic instructions.
    fn of(format: FloatFormat) -> &'static Self {
        static F16: Layout = Layout::ieee(5, 10, 0, 0x7fff);
        static BF16: Layout = Layout::ieee(8, 7, 0, 0x7fff);
        static TF32: Layout = Layout::ieee(8, 10, 13, 0x7fff_ffff);
        static F32: Layout = Layout::ieee(8, 23, 0, 0x7fff_ffff);
        static F64: Layout = Layout::ieee(11, 52, 0, 0x7fff_ffff_ffff_ffff);
        static E5M2: Layout = Layout::ieee(5, 2, 0, 0x7f);
        static E4M3: Layout =
            Layout { exponent_bits: 4, fraction_bits: 3, padding: 0, largest: 0x7e, infinity: None, nan: 0x7f };
        match format {
            FloatFormat::F16 => &F16,
            FloatFormat::Bf16 => &BF16,
            FloatFormat::Tf32 => &TF32,
            FloatFormat::F32 => &F32,
            FloatFormat::F64 => &F64,
            FloatFormat::E5m2 => &E5M2,
            FloatFormat::E4m3 => &E4M3,
            FloatFormat::Ue8m0 => unreachable!("ue8m0 has no fraction and is converted apart"),
        }
    }

    fn bias(&self) -> i32 {
        (1 << (self.exponent_bits - 1)) - 1
    }

    fn sign(&self) -> u64 {
        1 << (self.exponent_bits + self.fraction_bits + self.padding)
    }
}

/// Bits of one value of a format, in the low bits of a register; other bits are ignored.
pub fn decode(bits: u64, format: FloatFormat) -> f64 {
    match format {
        FloatFormat::F64 => f64::from_bits(bits),
        FloatFormat::F32 | FloatFormat::Tf32 => f64::from(f32::from_bits(bits as u32)),
        FloatFormat::Bf16 => f64::from(f32::from_bits((bits as u32) << 16)),
        FloatFormat::Ue8m0 => match bits & 0xff {
            0xff => f64::NAN,
            exponent => power_of_two(exponent as i32 - 127),
        },
        FloatFormat::F16 | FloatFormat::E4m3 | FloatFormat::E5m2 => {
            let layout = Layout::of(format);
            let magnitude = bits & (layout.sign() - 1);
            let fraction = magnitude & ((1 << layout.fraction_bits) - 1);
            let exponent = (magnitude >> layout.fraction_bits) as i32;
            let value = if magnitude > layout.infinity.unwrap_or(layout.largest) {
                f64::NAN
            } else if Some(magnitude) == layout.infinity {
                f64::INFINITY
            } else {
                let implicit = if exponent == 0 { 0 } else { 1 << layout.fraction_bits };
                let scale = exponent.max(1) - layout.bias() - layout.fraction_bits as i32;
                (fraction | implicit) as f64 * power_of_two(scale)
            };
            if bits & layout.sign() != 0 { -value } else { value }
        }
    }
}

/// 2^exponent, for exponents of normal `f64` values.
fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// The bits of a value in a format. Overflow and infinities become the largest finite value if `saturate_finite`; where
/// the format has no infinity they become NaN otherwise.
pub fn encode(value: f64, format: FloatFormat, rounding: Rounding, saturate_finite: bool) -> u64 {
    if format == FloatFormat::Ue8m0 {
        return encode_power_of_two(value, rounding, saturate_finite);
    }
    let layout = Layout::of(format);
    let bits = value.to_bits();
    let exponent = (bits >> 52 & 0x7ff) as i32;
    let fraction = bits & ((1 << 52) - 1);
    let negative = bits >> 63 != 0;
    if exponent == 0x7ff {
        if fraction != 0 {
            return layout.nan;
        }
        let magnitude = match layout.infinity {
            Some(infinity) if !saturate_finite => infinity,
            None if !saturate_finite => return layout.nan,
            _ => layout.largest,
        };
        return signed(magnitude, negative, layout);
    }
    let exact = if exponent == 0 {
        Exact { negative, significand: fraction, exponent: -1074, sticky: false }
    } else {
        Exact { negative, significand: fraction | 1 << 52, exponent: exponent - 1075, sticky: false }
    };
    exact.round(layout, rounding, saturate_finite)
}

fn signed(magnitude: u64, negative: bool, layout: &Layout) -> u64 {
    (magnitude << layout.padding) | if negative { layout.sign() } else { 0 }
}

/// `significand * 2^exponent`, plus something below its last bit if `sticky`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Exact {
    pub(super) negative: bool,
    pub(super) significand: u64,
    pub(super) exponent: i32,
    /// The significand must then have more bits than the result, whose rounding decides by them.
    pub(super) sticky: bool,
}

impl Exact {
    /// The value in a format.
    pub(super) fn encode(self, format: FloatFormat, rounding: Rounding) -> u64 {
        self.round(Layout::of(format), rounding, false)
    }

    fn round(self, layout: &Layout, rounding: Rounding, saturate_finite: bool) -> u64 {
        let negative = self.negative;
        if self.significand == 0 {
            return signed(0, negative, layout);
        }
        let spare = self.significand.leading_zeros();
        let significand = self.significand << spare;
        let exponent = self.exponent - spare as i32;
        // Exponent of the last bit that the result keeps; below the smallest normal it stays put.
        let last_of_normal = exponent + 63 - layout.fraction_bits as i32;
        let last_of_subnormal = 1 - layout.bias() - layout.fraction_bits as i32;
        let last = last_of_normal.max(last_of_subnormal);
        let (kept, half, rest) = split(significand, (last - exponent) as u32);
        let rest = rest || self.sticky;
        let up = match rounding {
            Rounding::NearestEven => half && (rest || kept & 1 != 0),
            Rounding::NearestAway => half,
            Rounding::Zero => false,
            Rounding::Down => negative && (half || rest),
            Rounding::Up => !negative && (half || rest),
        };
        // Encodings of one sign are ordered like their values, so a carry out of the fraction moves to the next exponent by
        // itself. The implicit bit of a normal value adds the last 1 to the exponent field.
        let field = (last - last_of_subnormal) as u64;
        let magnitude = (field << layout.fraction_bits) + kept + u64::from(up);
        if magnitude <= layout.largest {
            return signed(magnitude, negative, layout);
        }
        let towards_zero = match rounding {
            Rounding::NearestEven | Rounding::NearestAway => false,
            Rounding::Zero => true,
            Rounding::Down => !negative,
            Rounding::Up => negative,
        };
        match layout.infinity {
            _ if saturate_finite || towards_zero => signed(layout.largest, negative, layout),
            Some(infinity) => signed(infinity, negative, layout),
            None => layout.nan,
        }
    }
}

/// The bits from `shift` up, the bit below them, and whether any bit below that is set.
fn split(significand: u64, shift: u32) -> (u64, bool, bool) {
    match shift {
        0 => (significand, false, false),
        1..=63 => {
            let half = 1 << (shift - 1);
            (significand >> shift, significand & half != 0, significand & (half - 1) != 0)
        }
        64 => (0, significand >> 63 != 0, significand << 1 != 0),
        _ => (0, false, significand != 0),
    }
}

/// `.ue8m0`: the sign is dropped, and zero gives the smallest power of two.
fn encode_power_of_two(value: f64, rounding: Rounding, saturate_finite: bool) -> u64 {
    let magnitude = value.abs();
    if magnitude.is_nan() {
        return 0xff;
    }
    let overflow = if saturate_finite { 0xfe } else { 0xff };
    if magnitude.is_infinite() {
        return overflow;
    }
    let bits = magnitude.to_bits();
    let inexact = bits & ((1 << 52) - 1) != 0;
    let exponent = (bits >> 52) as i64 - 1023 + 127 + i64::from(inexact && rounding == Rounding::Up);
    if exponent > 0xfe { overflow } else { exponent.max(0) as u64 }
}

/// A `f32` with subnormals replaced by zero of the same sign.
#[inline(always)]
pub(super) fn flush32(bits: u64) -> f32 {
    let bits = bits as u32;
    f32::from_bits(if bits & 0x7f80_0000 == 0 { bits & 0x8000_0000 } else { bits })
}

/// Smallest normal magnitude of `f32`.
pub(super) const MIN_NORMAL32: f64 = f32::MIN_POSITIVE as f64;
/// Smallest normal magnitude of `f16`.
pub(super) const MIN_NORMAL16: f32 = 1.0 / 16384.0;

/// The bits of a `f32` result; NaN is canonical (PTX ISA, "Floating Point Instructions").
#[inline(always)]
pub(super) fn bits32(value: f32) -> u64 {
    u64::from(if value.is_nan() { 0x7fff_ffff } else { value.to_bits() })
}

/// `cvt.rn.bf16.f32`, the conversion that epilogues are made of.
#[inline(always)]
pub(super) fn bf16_of(value: f32) -> u64 {
    let bits = value.to_bits();
    let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
    u64::from(if bits & 0x7fff_ffff > 0x7f80_0000 { 0x7fff } else { rounded })
}

/// `cvt.rn.f16.f32`.
#[inline(always)]
pub(super) fn f16_of(value: f32) -> u64 {
    u64::from(if value.is_nan() { 0x7fff } else { half::f16::from_f32_const(value).to_bits() })
}

/// One half of `cvt.rn.satfinite.e4m3x2.f32`, the conversion that quantisation is made of.
#[inline(always)]
pub(super) fn e4m3_of(value: f32) -> u64 {
    let bits = value.to_bits();
    let magnitude = bits & 0x7fff_ffff;
    // Subnormals, below 2^-6, are multiples of 2^-9, which is the last bit of a `f32` near 2^14.
    let subnormal = (f32::from_bits(magnitude) + 16384.0).to_bits() & 0xff;
    // Three fraction bits stay; the bias goes from 127 to 7.
    let normal = (magnitude.wrapping_add(0x7_ffff + (magnitude >> 20 & 1)) >> 20).wrapping_sub((127 - 7) << 3);
    let finite = if magnitude < 0x3c80_0000 { subnormal } else { normal.min(0x7e) };
    u64::from(if magnitude > 0x7f80_0000 { 0x7f } else { finite | (bits >> 24 & 0x80) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_narrow_value_survives_decoding_and_encoding() {
        for (format, bits) in [
            (FloatFormat::F16, 16),
            (FloatFormat::Bf16, 16),
            (FloatFormat::E4m3, 8),
            (FloatFormat::E5m2, 8),
            (FloatFormat::Ue8m0, 8),
        ] {
            for value in 0..1u64 << bits {
                let decoded = decode(value, format);
                if !decoded.is_nan() {
                    for rounding in [Rounding::NearestEven, Rounding::Zero, Rounding::Up, Rounding::Down] {
                        assert_eq!(encode(decoded, format, rounding, false), value, "{format:?} {value:#x}");
                    }
                }
            }
        }
    }

    #[test]
    fn e4m3_limits() {
        assert_eq!(decode(0x7e, FloatFormat::E4m3), 448.0);
        assert_eq!(decode(0x01, FloatFormat::E4m3), 2f64.powi(-9));
        assert!(decode(0x7f, FloatFormat::E4m3).is_nan());
        assert_eq!(encode(1e9, FloatFormat::E4m3, Rounding::NearestEven, true), 0x7e);
        assert_eq!(encode(-1e9, FloatFormat::E4m3, Rounding::NearestEven, true), 0xfe);
        assert_eq!(encode(1e9, FloatFormat::E4m3, Rounding::NearestEven, false), 0x7f);
        assert_eq!(encode(f64::NAN, FloatFormat::E4m3, Rounding::NearestEven, true), 0x7f);
    }

    #[test]
    fn powers_of_two_round_up() {
        let up = |value| encode(value, FloatFormat::Ue8m0, Rounding::Up, true);
        assert_eq!(up(0.0), 0);
        assert_eq!(up(1.0), 127);
        assert_eq!(up(1.0000001), 128);
        assert_eq!(up(2f64.powi(-140)), 0);
        assert_eq!(up(f64::from(f32::MAX)), 0xfe);
        assert_eq!(up(f64::INFINITY), 0xfe);
        assert_eq!(encode(f64::from(f32::MAX), FloatFormat::Ue8m0, Rounding::Up, false), 0xff);
        assert_eq!(encode(1.9, FloatFormat::Ue8m0, Rounding::Zero, true), 127);
    }
}

//! The narrow floating-point formats of tensor cores and multimem.
//!
//! `half` covers f16 and bf16; this covers the 8-, 6- and 4-bit formats (OCP FP8 and Microscaling), UE8M0 scales, and
//! the rounding that PTX's conversions share.

/// A signed floating-point format of at most 8 bits, kept in the low bits of a byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NarrowFloat {
    /// 4 exponent bits, 3 mantissa bits, no infinity; 0x7f and 0xff are NaN.
    E4m3,
    /// 5 exponent bits, 2 mantissa bits, with infinity and NaN as in IEEE 754.
    E5m2,
    /// 2 exponent bits, 3 mantissa bits, finite only.
    E2m3,
    /// 3 exponent bits, 2 mantissa bits, finite only.
    E3m2,
    /// 2 exponent bits, 1 mantissa bit, finite only.
    E2m1,
}

impl NarrowFloat {
    /// Total bits, sign included.
    pub const fn bits(self) -> u32 {
        1 + self.exponent_bits() + self.mantissa_bits()
    }

    const fn exponent_bits(self) -> u32 {
        match self {
            Self::E4m3 => 4,
            Self::E5m2 => 5,
            Self::E2m3 | Self::E2m1 => 2,
            Self::E3m2 => 3,
        }
    }

    const fn mantissa_bits(self) -> u32 {
        match self {
            Self::E4m3 | Self::E2m3 => 3,
            Self::E5m2 | Self::E3m2 => 2,
            Self::E2m1 => 1,
        }
    }

    const fn bias(self) -> i32 {
        (1 << (self.exponent_bits() - 1)) - 1
    }

    /// Bit pattern of the largest finite value.
    pub const fn largest_finite(self) -> u8 {
        match self {
            Self::E4m3 => 0x7e,
            Self::E5m2 => 0x7b,
            Self::E2m3 | Self::E3m2 => 0x1f,
            Self::E2m1 => 0x07,
        }
    }

    /// The canonical NaN, if the format has one.
    pub const fn nan(self) -> Option<u8> {
        match self {
            Self::E4m3 | Self::E5m2 => Some(0x7f),
            Self::E2m3 | Self::E3m2 | Self::E2m1 => None,
        }
    }

    /// The value of a bit pattern; bits above the format's width are ignored. Exact in f32.
    #[inline]
    pub fn decode(self, pattern: u8) -> f32 {
        self.table()[pattern as usize]
    }

    /// The values of all 256 byte patterns.
    #[inline]
    pub fn table(self) -> &'static [f32; 256] {
        static TABLES: [[f32; 256]; 5] = [
            decode_table(NarrowFloat::E4m3),
            decode_table(NarrowFloat::E5m2),
            decode_table(NarrowFloat::E2m3),
            decode_table(NarrowFloat::E3m2),
            decode_table(NarrowFloat::E2m1),
        ];
        &TABLES[self as usize]
    }

    /// Rounds to nearest even and saturates to the largest finite value (`cvt.rn.satfinite`). NaN becomes the format's
    /// NaN, or the largest finite positive value in formats without one.
    pub fn encode_saturating(self, value: f32) -> u8 {
        let largest = self.largest_finite();
        match self.encode_magnitude(value) {
            None => self.nan().unwrap_or(largest),
            Some(magnitude) => magnitude.min(largest) | self.sign_of(value),
        }
    }

    /// Rounds to nearest even; what is too large becomes infinity (E5M2) or NaN (E4M3).
    pub fn encode(self, value: f32) -> u8 {
        let overflow = match self {
            Self::E5m2 => 0x7c,
            _ => self.nan().unwrap_or(self.largest_finite()),
        };
        match self.encode_magnitude(value) {
            None => self.nan().unwrap_or(self.largest_finite()),
            Some(magnitude) if magnitude > self.largest_finite() => overflow | self.sign_of(value),
            Some(magnitude) => magnitude | self.sign_of(value),
        }
    }

    fn sign_of(self, value: f32) -> u8 {
        u8::from(value.is_sign_negative()) << (self.bits() - 1)
    }

    /// Magnitude rounded to nearest even as if the exponent had no upper limit, clamped to one above the largest finite
    /// value; `None` for NaN.
    fn encode_magnitude(self, value: f32) -> Option<u8> {
        if value.is_nan() {
            return None;
        }
        let overflow = self.largest_finite() + 1;
        let magnitude = f64::from(value.abs());
        if magnitude == 0.0 {
            return Some(0);
        }
        if magnitude.is_infinite() {
            return Some(overflow);
        }
        let mantissa_bits = self.mantissa_bits() as i32;
        let smallest_exponent = 1 - self.bias();
        let exponent = binary_exponent(magnitude).max(smallest_exponent);
        // In units of the last place; the leading one of a normal number is the bit at `mantissa_bits`, so adding the
        // biased exponent minus one above it yields the pattern, and a carry moves to the next binade by itself.
        let units = (magnitude * power_of_two(mantissa_bits - exponent)).round_ties_even() as u32;
        let pattern = (((exponent - smallest_exponent) as u32) << mantissa_bits) + units;
        Some(pattern.min(overflow.into()) as u8)
    }
}

const fn decode_table(format: NarrowFloat) -> [f32; 256] {
    let mut table = [0.0; 256];
    let mut pattern = 0;
    while pattern < 256 {
        table[pattern] = decode_bits(format, pattern as u32);
        pattern += 1;
    }
    table
}

const fn decode_bits(format: NarrowFloat, pattern: u32) -> f32 {
    let mantissa_bits = format.mantissa_bits();
    let exponent_mask = (1 << format.exponent_bits()) - 1;
    let mantissa = pattern & ((1 << mantissa_bits) - 1);
    let exponent = (pattern >> mantissa_bits) & exponent_mask;
    let sign = (pattern >> (format.bits() - 1)) & 1;
    let magnitude = if matches!(format, NarrowFloat::E4m3) && pattern & 0x7f == 0x7f {
        f32::NAN
    } else if matches!(format, NarrowFloat::E5m2) && exponent == exponent_mask {
        if mantissa == 0 { f32::INFINITY } else { f32::NAN }
    } else {
        let (significand, exponent) =
            if exponent == 0 { (mantissa, 1) } else { (mantissa | 1 << mantissa_bits, exponent as i32) };
        let scale = exponent - format.bias() - mantissa_bits as i32;
        significand as f32 * f32::from_bits(((scale + 127) as u32) << 23)
    };
    if sign == 1 { -magnitude } else { magnitude }
}

/// Exponent of the leading bit of a positive, finite, normal number.
fn binary_exponent(value: f64) -> i32 {
    ((value.to_bits() >> 52) & 0x7ff) as i32 - 1023
}

/// 2^`exponent`, for exponents of normal f64.
fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// The value of a UE8M0 scale: a power of two, or NaN for 0xff. Exact in f64.
#[inline]
pub fn ue8m0_decode(pattern: u8) -> f64 {
    if pattern == 0xff { f64::NAN } else { power_of_two(i32::from(pattern) - 127) }
}

/// Rounds a magnitude up to a power of two, saturating to finite (`cvt.rp.satfinite.ue8m0x2.f32`); NaN gives 0xff.
pub fn ue8m0_encode_up(value: f32) -> u8 {
    if value.is_nan() {
        return 0xff;
    }
    let bits = value.abs().to_bits();
    let (exponent, mantissa) = (bits >> 23, bits & 0x7f_ffff);
    match exponent {
        255 => 0xfe,
        // Subnormals: up to 2^-127 is pattern 0, above it 2^-126.
        0 => u8::from(mantissa > 0x40_0000),
        _ => (exponent + u32::from(mantissa != 0)).min(0xfe) as u8,
    }
}

/// The f16 nearest to a number, ties to even. The `half` crate's own conversion drops the lower half of the double first.
pub fn f16_nearest(value: f64) -> half::f16 {
    // Rounding to odd keeps what decides the second rounding.
    half::f16::from_f32(crate::alu::narrow_to_odd(value))
}

/// The tf32 value that a tensor core takes from a 32-bit word: the low 13 bits are ignored.
#[inline]
pub fn tf32_decode(word: u32) -> f32 {
    f32::from_bits(word & !0x1fff)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [NarrowFloat; 5] =
        [NarrowFloat::E4m3, NarrowFloat::E5m2, NarrowFloat::E2m3, NarrowFloat::E3m2, NarrowFloat::E2m1];

    #[test]
    fn f16_is_rounded_once() {
        for (value, bits) in [
            (198.5625, 0x5a34),
            (198.5625 + 2f64.powi(-17), 0x5a35),
            (198.5625 - 2f64.powi(-40), 0x5a34),
            (198.6875 - 2f64.powi(-40), 0x5a35),
            (-198.5625 - 2f64.powi(-40), 0xda35),
            (65520.0, 0x7c00),
            (65520.0 - 2f64.powi(-30), 0x7bff),
            (2f64.powi(-25), 0x0000),
            (2f64.powi(-25) + 2f64.powi(-60), 0x0001),
            (-1e-300, 0x8000),
            (1e300, 0x7c00),
        ] {
            assert_eq!(f16_nearest(value).to_bits(), bits, "{value}");
        }
        assert!(f16_nearest(f64::NAN).is_nan());
    }

    #[test]
    fn known_values() {
        assert_eq!(NarrowFloat::E4m3.decode(0x7e), 448.0);
        assert_eq!(NarrowFloat::E4m3.decode(0x01), 2f32.powi(-9));
        assert_eq!(NarrowFloat::E4m3.decode(0x38), 1.0);
        assert!(NarrowFloat::E4m3.decode(0xff).is_nan());
        assert_eq!(NarrowFloat::E5m2.decode(0x7b), 57344.0);
        assert_eq!(NarrowFloat::E5m2.decode(0xfc), f32::NEG_INFINITY);
        assert_eq!(NarrowFloat::E5m2.decode(0x01), 2f32.powi(-16));
        assert_eq!(NarrowFloat::E2m3.decode(0x1f), 7.5);
        assert_eq!(NarrowFloat::E3m2.decode(0x1f), 28.0);
        assert_eq!(NarrowFloat::E3m2.decode(0x01), 0.0625);
        let e2m1: Vec<f32> = (0..8).map(|p| NarrowFloat::E2m1.decode(p)).collect();
        assert_eq!(e2m1, [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]);
        assert_eq!(NarrowFloat::E2m1.decode(0x0f), -6.0);
    }

    #[test]
    fn every_pattern_survives_a_round_trip() {
        for format in ALL {
            for pattern in 0..=((1u32 << format.bits()) - 1) as u8 {
                let value = format.decode(pattern);
                if value.is_finite() {
                    assert_eq!(format.encode(value), pattern, "{format:?} {pattern:#x}");
                    assert_eq!(format.encode_saturating(value), pattern, "{format:?} {pattern:#x}");
                }
            }
        }
    }

    /// Between two neighbours, everything below the midpoint goes down, above goes up, and the midpoint to the even one.
    #[test]
    fn rounds_to_nearest_even() {
        for format in ALL {
            for pattern in 0..format.largest_finite() {
                let (low, high) = (format.decode(pattern), format.decode(pattern + 1));
                let middle = (low + high) / 2.0;
                let even = if pattern % 2 == 0 { pattern } else { pattern + 1 };
                assert_eq!(format.encode(middle), even, "{format:?} {middle}");
                assert_eq!(format.encode(middle.next_down()), pattern, "{format:?} {middle}");
                assert_eq!(format.encode(middle.next_up()), pattern + 1, "{format:?} {middle}");
            }
        }
    }

    #[test]
    fn too_large_saturates_or_overflows() {
        assert_eq!(NarrowFloat::E4m3.encode_saturating(1e9), 0x7e);
        assert_eq!(NarrowFloat::E4m3.encode_saturating(f32::NEG_INFINITY), 0xfe);
        assert_eq!(NarrowFloat::E4m3.encode(464.1), 0x7f);
        assert_eq!(NarrowFloat::E4m3.encode(464.0), 0x7e);
        assert_eq!(NarrowFloat::E5m2.encode(1e9), 0x7c);
        assert_eq!(NarrowFloat::E5m2.encode_saturating(-1e9), 0xfb);
        assert_eq!(NarrowFloat::E2m1.encode_saturating(f32::NAN), 0x07);
        assert_eq!(NarrowFloat::E4m3.encode_saturating(f32::NAN), 0x7f);
    }

    #[test]
    fn ue8m0_rounds_up_to_a_power_of_two() {
        assert_eq!(ue8m0_encode_up(1.0), 127);
        assert_eq!(ue8m0_encode_up(1.0f32.next_up()), 128);
        assert_eq!(ue8m0_encode_up(0.0), 0);
        assert_eq!(ue8m0_encode_up(2f32.powi(-127)), 0);
        assert_eq!(ue8m0_encode_up(2f32.powi(-127).next_up()), 1);
        assert_eq!(ue8m0_encode_up(f32::MAX), 0xfe);
        assert_eq!(ue8m0_encode_up(f32::INFINITY), 0xfe);
        for pattern in 0..=0xfeu8 {
            assert_eq!(ue8m0_encode_up(ue8m0_decode(pattern) as f32), pattern);
        }
        assert!(ue8m0_decode(0xff).is_nan());
    }
}

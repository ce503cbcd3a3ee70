//! The two number formats.
//!
//! E4M3 (OCP 8-bit Floating Point Specification 1.0): sign, 4 exponent bits of bias 7, 3 fraction bits; subnormals are
//! multiples of `2^-9`; no infinity; 0x7f and 0xff are NaN, so the largest value is 448. E8M0 (OCP Microscaling
//! Formats (MX) Specification 1.0): `2^(byte - 127)`, 0xff is NaN; no zero, no sign.

/// The largest E4M3 value.
pub const E4M3_MAX: f32 = 448.0;

/// Encoding of [`E4M3_MAX`].
const LARGEST: u32 = 0x7e;
const NAN: u8 = 0x7f;
/// Bits of the fraction.
const FRACTION_BITS: u32 = 3;
const BIAS: i32 = 7;
/// Bias of E8M0, and of f32.
const E8M0_BIAS: i32 = 127;
const E8M0_NAN: u8 = 0xff;
const E8M0_LARGEST: i32 = 0xfe;

/// The E4M3 value nearest to `x`, ties to the even encoding. Magnitudes past 448, infinity too, become 448 with their
/// sign; NaN becomes 0x7f. This is what `cvt.rn.satfinite.e4m3x2.f32` does.
///
/// ```
/// use gemm_rs_ar::mxfp8::{e4m3_from_f32, e4m3_to_f32};
///
/// assert_eq!(e4m3_to_f32(e4m3_from_f32(1.1)), 1.125);
/// assert_eq!(e4m3_to_f32(e4m3_from_f32(-1e9)), -448.0);
/// assert_eq!(e4m3_to_f32(e4m3_from_f32(0.0010)), 0.001953125); // the least subnormal
/// ```
pub fn e4m3_from_f32(x: f32) -> u8 {
    if x.is_nan() {
        return NAN;
    }
    let sign = if x.is_sign_negative() { 0x80 } else { 0 };
    let magnitude = x.abs();
    // The weight of the last bit at this magnitude; the exponent field of an f32 is its logarithm rounded down.
    let exponent = (magnitude.to_bits() >> 23) as i32 - E8M0_BIAS;
    let last_bit = exponent.max(1 - BIAS) - FRACTION_BITS as i32;
    // Exact: a power of two, and never far enough from the magnitude's own exponent to lose bits that count.
    let units = (f64::from(magnitude) * power_of_two(-last_bit)).round_ties_even();
    // Eight units or more have the implicit bit, which carries into the exponent; sixteen are the next binade's eight.
    let binade = (last_bit + FRACTION_BITS as i32 - (1 - BIAS)) as u32;
    let encoding = units.min(16.0) as u32 + (binade << FRACTION_BITS);
    sign | encoding.min(LARGEST) as u8
}

/// The value of an E4M3 byte, exactly.
pub fn e4m3_to_f32(byte: u8) -> f32 {
    let magnitude = byte & 0x7f;
    if magnitude == NAN {
        return f32::NAN;
    }
    let (exponent, fraction) = (i32::from(magnitude >> FRACTION_BITS), u32::from(magnitude & 7));
    let implicit = if exponent == 0 { 0 } else { 1 << FRACTION_BITS };
    let last_bit = exponent.max(1) - BIAS - FRACTION_BITS as i32;
    let value = (fraction | implicit) as f32 * power_of_two(last_bit) as f32;
    if byte & 0x80 == 0 { value } else { -value }
}

/// The least power of two that is at least `x`, as E8M0: at least `2^-127` and at most `2^127`, so that infinity
/// becomes `2^127`; NaN becomes 0xff. This is what `cvt.rp.satfinite.ue8m0x2.f32` does for values that are not
/// negative.
pub fn e8m0_round_up(x: f64) -> u8 {
    if x.is_nan() {
        return E8M0_NAN;
    }
    let bits = x.max(0.0).to_bits();
    let floor = (bits >> 52) as i32 - 1023;
    let rounded_up = floor + i32::from(bits & ((1 << 52) - 1) != 0);
    (rounded_up + E8M0_BIAS).clamp(0, E8M0_LARGEST) as u8
}

/// The value of an E8M0 byte, exactly. Its least, `2^-127`, is subnormal in an f32.
pub fn e8m0_to_f64(byte: u8) -> f64 {
    if byte == E8M0_NAN { f64::NAN } else { power_of_two(i32::from(byte) - E8M0_BIAS) }
}

/// A power of two within the normal range of an f64.
fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_e4m3_value_survives() {
        for byte in 0..=u8::MAX {
            let value = e4m3_to_f32(byte);
            if value.is_nan() {
                assert_eq!(byte & 0x7f, 0x7f);
                assert_eq!(e4m3_from_f32(value), 0x7f);
            } else {
                assert_eq!(e4m3_from_f32(value), byte, "{byte:#x} is {value}");
            }
        }
    }

    /// Nearest and ties to even, told from the list of all values.
    #[test]
    fn e4m3_is_the_nearest_value() {
        for low in 0..LARGEST as u8 {
            let (below, above) = (e4m3_to_f32(low), e4m3_to_f32(low + 1));
            let middle = (below + above) / 2.0;
            let even = if low % 2 == 0 { low } else { low + 1 };
            for (x, wanted) in [(middle.next_down(), low), (middle, even), (middle.next_up(), low + 1)] {
                assert_eq!(e4m3_from_f32(x), wanted, "{x} between {below} and {above}");
                assert_eq!(e4m3_from_f32(-x), wanted | 0x80, "-{x}");
            }
        }
    }

    #[test]
    fn e4m3_at_its_ends() {
        assert_eq!(e4m3_to_f32(0x7e), 448.0);
        assert_eq!(e4m3_to_f32(0x08), 2f32.powi(-6));
        assert_eq!(e4m3_to_f32(0x01), 2f32.powi(-9));
        for (x, wanted) in [
            (0.0, 0x00),
            (-0.0, 0x80),
            (f32::from_bits(1), 0x00),
            (-f32::MIN_POSITIVE, 0x80),
            (2f32.powi(-10), 0x00),
            (448.0, 0x7e),
            (464.0, 0x7e),
            (480.0, 0x7e),
            (f32::MAX, 0x7e),
            (f32::INFINITY, 0x7e),
            (f32::NEG_INFINITY, 0xfe),
            (-f32::NAN, 0x7f),
        ] {
            assert_eq!(e4m3_from_f32(x), wanted, "{x}");
        }
    }

    #[test]
    fn e8m0_rounds_up() {
        for byte in 0..0xff {
            let value = e8m0_to_f64(byte);
            assert_eq!(e8m0_round_up(value), byte);
            assert_eq!(e8m0_round_up(value.next_down()), byte);
            assert_eq!(e8m0_round_up(value.next_up()), (byte + 1).min(0xfe));
        }
        assert_eq!(e8m0_to_f64(127), 1.0);
        assert!(e8m0_to_f64(0xff).is_nan());
        for (x, wanted) in [(0.0, 0), (f64::MIN_POSITIVE, 0), (f64::INFINITY, 0xfe), (f64::NAN, 0xff)] {
            assert_eq!(e8m0_round_up(x), wanted, "{x}");
        }
    }
}

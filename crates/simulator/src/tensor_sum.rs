//! How the tensor cores of `sm_90` add, as an H200 (silicon) does it.
//!
//! The products of an instruction's K and the accumulator are aligned to the largest exponent among them, each is cut off
//! towards zero below so many fraction bits of it, and what is left is added exactly. The exponent of a product is the sum of
//! its factors' exponents, without the carry of the multiplication; subnormal numbers and zeros count as the smallest normal
//! exponent of their format. The PTX ISA says only that the order and rounding of the sum are unspecified ("mma", "wgmma").

use crate::number::{NarrowFloat, f16_nearest};
use crate::tcgen05::{AccumulatorFormat, OperandFormat};

/// Columns added in one pass; every N is a multiple.
const LINE: usize = 8;
/// Below every product of numbers, and not 0, so that its product with infinity is no NaN.
const ZERO: f64 = f64::from_bits((1023 - 400) << 52);
/// Exponent field of an f64.
const EXPONENT: u64 = 0x7ff << 52;

/// The part of a number that decides its alignment: 2 to its exponent; infinity for infinities and NaNs, next to nothing for
/// zeros.
fn magnitude(value: f64, least: f64) -> f64 {
    if value == 0.0 { ZERO } else { f64::from_bits(value.to_bits() & EXPONENT).max(least) }
}

/// Smallest normal number of a format.
fn least_normal(format: OperandFormat) -> f64 {
    let exponent = match format {
        OperandFormat::F16 => -14,
        OperandFormat::Narrow(NarrowFloat::E4m3) => -6,
        OperandFormat::Narrow(NarrowFloat::E5m2) => -14,
        _ => -126,
    };
    2.0f64.powi(exponent)
}

/// Exponents of operands, as powers of two.
pub(crate) fn magnitudes(format: OperandFormat, values: &[f64], magnitudes: &mut [f64]) {
    let least = least_normal(format);
    for (power, &value) in magnitudes.iter_mut().zip(values) {
        *power = magnitude(value, least);
    }
}

/// A part of B, K rows of `stride` columns each, with their exponents.
#[derive(Clone, Copy)]
pub(crate) struct Aligned<'a> {
    pub values: &'a [f64],
    pub magnitudes: &'a [f64],
    pub stride: usize,
}

/// The sum of an instruction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AlignedSum {
    /// Fraction bits kept below the largest exponent.
    pub(crate) fraction_bits: i32,
    /// Type of the accumulators.
    pub(crate) accumulator: AccumulatorFormat,
}

impl AlignedSum {
    /// For a row of A: adds its products with the columns of B to accumulators, given and returned as numbers. The result
    /// is rounded as the accumulator's format asks.
    pub(crate) fn add(self, a: (&[f64], &[f64]), b: Aligned<'_>, accumulators: &mut [f64]) {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has AVX2, the only requirement of the function.
            unsafe { self.add_avx2(a, b, accumulators) };
            return;
        }
        self.add_lines(a, b, accumulators);
    }

    /// The same in wider registers; every step is exact or a truncation, so that the results are the same.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn add_avx2(self, a: (&[f64], &[f64]), b: Aligned<'_>, accumulators: &mut [f64]) {
        self.add_lines(a, b, accumulators);
    }

    #[inline(always)]
    fn add_lines(self, (a, a_magnitudes): (&[f64], &[f64]), b: Aligned<'_>, accumulators: &mut [f64]) {
        let width = 2.0f64.powi(self.fraction_bits);
        let least = if self.accumulator == AccumulatorFormat::F16 { 2.0f64.powi(-14) } else { 2.0f64.powi(-126) };
        for (pass, sums) in accumulators.as_chunks_mut::<LINE>().0.iter_mut().enumerate() {
            let line = |values: &'_ [f64], k: usize| -> [f64; LINE] {
                let start = k * b.stride + pass * LINE;
                values[start..start + LINE].try_into().expect("as long")
            };
            let mut largest = sums.map(|value| magnitude(value, least));
            for (k, power) in a_magnitudes.iter().enumerate() {
                let factors = line(b.magnitudes, k);
                for (largest, factor) in largest.iter_mut().zip(factors) {
                    let product = power * factor;
                    *largest = if product > *largest { product } else { *largest };
                }
            }
            let scales = largest.map(|largest| width / largest);
            let mut units: [f64; LINE] = std::array::from_fn(|n| 0.0 + (sums[n] * scales[n]).trunc());
            for (k, factor) in a.iter().enumerate() {
                let factors = line(b.values, k);
                for n in 0..LINE {
                    units[n] += (factor * factors[n] * scales[n]).trunc();
                }
            }
            for n in 0..LINE {
                if largest[n].is_finite() {
                    sums[n] = self.round(units[n] * (largest[n] / width));
                } else {
                    // Infinities and NaNs do not care how the rest is added.
                    for (k, factor) in a.iter().enumerate() {
                        sums[n] += factor * b.values[k * b.stride + pass * LINE + n];
                    }
                }
            }
        }
    }

    /// F32 is cut off towards zero, at the width of the sum where that is less than its own; F16 is rounded to nearest.
    #[inline(always)]
    fn round(self, sum: f64) -> f64 {
        match self.accumulator {
            AccumulatorFormat::F16 => sum,
            _ => {
                let bits = self.fraction_bits.min(23) as u32;
                let cut = f64::from_bits(sum.to_bits() >> (52 - bits) << (52 - bits));
                // Below the normal numbers there are fewer bits.
                let single = cut as f32;
                let nearer = if f64::from(single).abs() > cut.abs() && single.is_finite() {
                    f32::from_bits(single.to_bits() - 1)
                } else {
                    single
                };
                nearer.into()
            }
        }
    }
}

/// The number in an accumulator's bits.
pub(crate) fn number(format: AccumulatorFormat, bits: u32) -> f64 {
    match format {
        AccumulatorFormat::F16 => half::f16::from_bits(bits as u16).to_f64(),
        _ => f32::from_bits(bits).into(),
    }
}

/// An accumulator's bits; all NaNs are one.
pub(crate) fn bits(format: AccumulatorFormat, value: f64) -> u32 {
    match format {
        AccumulatorFormat::F16 if value.is_nan() => 0x7fff,
        AccumulatorFormat::F16 => f16_nearest(value).to_bits().into(),
        _ if value.is_nan() => 0x7fff_ffff,
        _ => (value as f32).to_bits(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sum in integers of 128 bits, one element at a time.
    fn naive(bits: i32, format: AccumulatorFormat, a: &[f64], b: &[f64], c: f64) -> f64 {
        let exponent = |value: f64, least: i32| match value {
            0.0 => None,
            value => Some(((value.to_bits() >> 52 & 0x7ff) as i32 - 1023).max(least)),
        };
        let products = a.iter().zip(b).map(|(&a, &b)| {
            let exponents = exponent(a, -14).zip(exponent(b, -14));
            (a * b, exponents.map(|(a, b)| a + b))
        });
        let least = if format == AccumulatorFormat::F16 { -14 } else { -126 };
        let terms: Vec<_> = products.chain([(c, exponent(c, least))]).collect();
        let Some(largest) = terms.iter().filter_map(|term| term.1).max() else { return 0.0 };
        let unit = 2.0f64.powi(largest - bits);
        let sum: i128 = terms.iter().map(|term| (term.0 / unit).trunc() as i128).sum();
        if format == AccumulatorFormat::F16 {
            return sum as f64 * unit;
        }
        // Towards zero to as many bits as the result has.
        let magnitude = sum.unsigned_abs();
        let surplus = (128 - magnitude.leading_zeros()).saturating_sub(bits.min(23) as u32 + 1);
        let kept = (magnitude >> surplus << surplus) as f64 * unit;
        if sum < 0 { -kept } else { kept }
    }

    #[test]
    fn agrees_with_integers() {
        let mut state = 1u64;
        let mut random = move || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as u32
        };
        for accumulator in [AccumulatorFormat::F32, AccumulatorFormat::F16] {
            for fraction_bits in [13, 25] {
                let sum = AlignedSum { fraction_bits, accumulator };
                for k in [4, 8, 16, 32] {
                    // f16 of every magnitude, with zeros and subnormal numbers among them.
                    let mut draw = |count: usize| -> Vec<f64> {
                        let half = |word: u32| half::f16::from_bits((word as u16) & 0xbfff).to_f64();
                        (0..count).map(|_| if random() % 5 == 0 { 0.0 } else { half(random()) }).collect()
                    };
                    let (a, b, c) = (draw(k), draw(k * 16), draw(16));
                    let (mut a_magnitudes, mut b_magnitudes) = (vec![0.0; k], vec![0.0; k * 16]);
                    magnitudes(OperandFormat::F16, &a, &mut a_magnitudes);
                    magnitudes(OperandFormat::F16, &b, &mut b_magnitudes);
                    let mut results = c.clone();
                    let columns = Aligned { values: &b, magnitudes: &b_magnitudes, stride: 16 };
                    sum.add((&a, &a_magnitudes), columns, &mut results);
                    for (n, result) in results.into_iter().enumerate() {
                        let column: Vec<f64> = (0..k).map(|k| b[k * 16 + n]).collect();
                        assert_eq!(result, naive(fraction_bits, accumulator, &a, &column, c[n]));
                    }
                }
            }
        }
    }

    #[test]
    fn bits_below_the_largest_are_dropped() {
        let add = |fraction_bits, accumulator, terms: [f64; 8], c: f64| {
            let (ones, mut magnitudes_of) = ([1.0; 8], [0.0; 8]);
            magnitudes(OperandFormat::Bf16, &terms, &mut magnitudes_of);
            let (mut b, mut b_magnitudes) = ([0.0; 64], [0.0; 64]);
            for k in 0..8 {
                (b[8 * k], b_magnitudes[8 * k]) = (terms[k], magnitudes_of[k]);
            }
            let columns = Aligned { values: &b, magnitudes: &b_magnitudes, stride: 8 };
            let mut result = [c; 8];
            AlignedSum { fraction_bits, accumulator }.add((&ones, &ones), columns, &mut result);
            result[0]
        };
        let small = 1.75 * 2f64.powi(-24);
        let terms = |first: f64, second: f64, third: f64| [first, second, third, 0.0, 0.0, 0.0, 0.0, 0.0];
        let f32 = AccumulatorFormat::F32;
        assert_eq!(add(25, f32, terms(1.0, -1.0, small), 0.0), 1.5 * 2f64.powi(-24));
        assert_eq!(add(25, f32, terms(1.0, -1.0, -small), 0.0), -1.5 * 2f64.powi(-24));
        assert_eq!(add(13, f32, terms(1.0, -1.0, small), 0.0), 0.0);
        assert_eq!(add(25, f32, terms(0.0, -1.0, small), 1.0), 1.5 * 2f64.powi(-24));
        // The result itself is cut off, too, and keeps no more than the sum.
        assert_eq!(add(25, f32, terms(1.0, 0.0, small), 0.0), 1.0);
        assert_eq!(add(13, f32, terms(1.0, 1.0, 1.0 + 2f64.powi(-13)), 1.0), 4.0);
        // What is not finite is not lost among zeros.
        assert_eq!(add(25, f32, terms(0.0, f64::INFINITY, 1.0), 0.0), f64::INFINITY);
        assert!(add(25, f32, terms(f64::INFINITY, f64::NEG_INFINITY, 0.0), 0.0).is_nan());
        assert_eq!(bits(f32, f64::NAN), 0x7fff_ffff);
        assert_eq!(bits(AccumulatorFormat::F16, f64::NAN), 0x7fff);
    }
}

//! The bound of one element; the module above derives it.

/// Largest relative error of one tensor-core addition, which may truncate.
const ACCUMULATE: f64 = 1.0 / (1u64 << 23) as f64;
/// Unit roundoff of FP32 to nearest.
const FP32: f64 = 1.0 / (1u64 << 24) as f64;
/// Unit roundoff of FP64.
const FP64: f64 = f64::EPSILON / 2.0;
/// Exponent of the smallest normal value, of FP32 and of BF16.
const SMALLEST_EXPONENT: i32 = -126;
/// Half a unit in the last place of a BF16 value is this many powers of two below its leading bit.
const BF16_HALF_ULP: i32 = -8;

/// The coefficients that depend on sizes only.
#[derive(Debug, Clone, Copy)]
pub(super) struct ErrorBound {
    accumulate: f64,
    underflow: f64,
    reduce: f64,
    reference: f64,
}

impl ErrorBound {
    /// For `terms` products on each of `ranks` ranks.
    pub fn new(terms: usize, ranks: usize) -> Self {
        Self {
            accumulate: growth(terms, ACCUMULATE),
            underflow: terms as f64 * power_of_two(SMALLEST_EXPONENT),
            reduce: growth(ranks, FP32),
            reference: growth(terms * ranks, FP64),
        }
    }

    /// The error of a rank's rounded partial sum: `b_r`.
    pub fn partial(&self, sum: f64, magnitudes: f64) -> f64 {
        let accumulated = self.accumulate * magnitudes + self.underflow;
        accumulated + half_ulp(sum.abs() + accumulated)
    }

    /// The error of the result, from the sums over ranks of `p_r`, `|p_r|`, `b_r` and `S_r`.
    pub fn result(&self, sum: f64, absolute_partials: f64, partial_errors: f64, magnitudes: f64) -> f64 {
        let reduced = self.reduce * (absolute_partials + partial_errors);
        let before_rounding = partial_errors + reduced;
        before_rounding + half_ulp(sum.abs() + before_rounding) + self.reference * magnitudes
    }
}

/// `n u / (1 - n u)`: what `n` roundings of relative size `u` can grow to.
fn growth(n: usize, u: f64) -> f64 {
    let nu = n as f64 * u;
    if nu < 1.0 { nu / (1.0 - nu) } else { f64::INFINITY }
}

/// Half a unit in the last place of BF16 at a magnitude.
fn half_ulp(magnitude: f64) -> f64 {
    // The exponent field of an FP64 value is its logarithm rounded down; zero and subnormals give a smaller number.
    let exponent = ((magnitude.to_bits() >> 52) & 0x7ff) as i32 - 1023;
    power_of_two(exponent.max(SMALLEST_EXPONENT) + BF16_HALF_ULP)
}

/// A power of two in FP64's normal range.
fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;
    use half::bf16;

    #[test]
    fn half_an_ulp_is_the_largest_rounding_error_of_its_binade() {
        for value in [1.0f32, 1.9, 3.0, 0.7, 1e-30, 65_000.0] {
            let below = bf16::from_f32(value);
            let above = bf16::from_bits(below.to_bits() + 1);
            let half_way = (above.to_f64() - below.to_f64()) / 2.0;
            assert_eq!(half_ulp(below.to_f64()), half_way, "{value}");
        }
        assert_eq!(half_ulp(0.0), bf16::MIN_POSITIVE_SUBNORMAL.to_f64() / 2.0);
    }

    #[test]
    fn growth_is_finite_only_while_it_means_something() {
        assert!(growth(1 << 10, ACCUMULATE) < 1.3e-4);
        assert_eq!(growth(1 << 23, ACCUMULATE), f64::INFINITY);
    }
}

//! The inner loop: a row of A times columns of B.

/// Steps of k taken in one pass over the sums; every K is a multiple.
const STEPS: usize = 8;

/// A part of B, K rows of `stride` columns each.
#[derive(Clone, Copy)]
pub(crate) struct Columns<'a> {
    /// Element (k, n) at `k * stride + n`.
    pub values: &'a [f64],
    /// Columns in a row of `values`.
    pub stride: usize,
    /// First column wanted; there are as many as sums.
    pub first: usize,
}

/// `sums[n]` = sum over k, upwards from 0, of `row[k] * b(k, b.first + n)`.
pub(crate) fn multiply(row: &[f64], b: Columns<'_>, sums: &mut [f64]) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
        // SAFETY: the processor has AVX2 and FMA, the only requirements of the function.
        unsafe { multiply_avx2(row, b, sums) };
        return;
    }
    multiply_steps(row, b, sums, |sum, a, b| sum + a * b);
}

/// The same in wider registers. Products of A's and B's elements are exact in f64, so fusing changes no result.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn multiply_avx2(row: &[f64], b: Columns<'_>, sums: &mut [f64]) {
    multiply_steps(row, b, sums, |sum, a, b| a.mul_add(b, sum));
}

#[inline(always)]
fn multiply_steps(row: &[f64], b: Columns<'_>, sums: &mut [f64], add_product: impl Fn(f64, f64, f64) -> f64 + Copy) {
    sums.fill(0.0);
    let count = sums.len();
    for (pass, factors) in row.as_chunks::<STEPS>().0.iter().enumerate() {
        let lines: [&[f64]; STEPS] =
            std::array::from_fn(|step| &b.values[(pass * STEPS + step) * b.stride + b.first..][..count]);
        for (n, sum) in sums.iter_mut().enumerate() {
            for step in 0..STEPS {
                *sum = add_product(*sum, factors[step], lines[step][n]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever code the processor selects, the sums are those of the plain loop, bit by bit.
    #[test]
    fn sums_do_not_depend_on_the_processor() {
        // Values of bf16 over many binades, so that the order of the sum matters.
        let value = |seed: usize| {
            let mixed = (seed as u32 + 1).wrapping_mul(0x9e37_79b9);
            f64::from(f32::from_bits((mixed & 0x807f_0000) | (0x3000_0000 + (mixed & 0x1f) * 0x0100_0000)))
        };
        for (k, n) in [(8, 8), (16, 24), (32, 256)] {
            let row: Vec<f64> = (0..k).map(value).collect();
            let values: Vec<f64> = (0..k * (n + 8)).map(|seed| value(seed + 1000)).collect();
            let mut sums = vec![f64::NAN; n];
            multiply(&row, Columns { values: &values, stride: n + 8, first: 8 }, &mut sums);
            for (column, sum) in sums.iter().enumerate() {
                let expected = (0..k).fold(0.0, |sum, k| sum + row[k] * values[k * (n + 8) + 8 + column]);
                assert_eq!(sum.to_bits(), expected.to_bits());
            }
        }
    }
}

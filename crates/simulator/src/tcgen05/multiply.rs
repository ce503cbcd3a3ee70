//! The inner loop: sums of products of rows of A with columns of B.

/// Columns computed together; every legal N is a multiple.
const WIDTH: usize = 8;
/// Rows computed together, to use each element of B that often once loaded.
pub(super) const ROWS: usize = 4;

/// A part of B, K rows of `stride` columns each.
#[derive(Clone, Copy)]
pub(super) struct Columns<'a> {
    /// Element (k, n) at `k * stride + n`.
    pub values: &'a [f64],
    /// Columns in a row of `values`.
    pub stride: usize,
    /// First column wanted.
    pub first: usize,
    /// Columns wanted, a multiple of 8.
    pub count: usize,
}

/// `sums[row * b.count + n]` = sum over k of `a[row * k_extent + k] * b(k, n)`, for [`ROWS`] rows.
pub(super) fn multiply(a: &[f64], k_extent: usize, b: Columns<'_>, sums: &mut [f64]) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2, the only requirement of the function.
        unsafe { multiply_avx2(a, k_extent, b, sums) };
        return;
    }
    multiply_portable(a, k_extent, b, sums);
}

/// The same code compiled for wider registers; the operations and their order, and so the results, are the same.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn multiply_avx2(a: &[f64], k_extent: usize, b: Columns<'_>, sums: &mut [f64]) {
    multiply_portable(a, k_extent, b, sums);
}

#[inline(always)]
fn multiply_portable(a: &[f64], k_extent: usize, b: Columns<'_>, sums: &mut [f64]) {
    let rows: [&[f64]; ROWS] = std::array::from_fn(|row| &a[row * k_extent..][..k_extent]);
    for first in (0..b.count).step_by(WIDTH) {
        let mut block = [[0.0; WIDTH]; ROWS];
        for (k, line) in b.values.chunks_exact(b.stride).take(k_extent).enumerate() {
            let line: &[f64; WIDTH] = line[b.first + first..].first_chunk().expect("N is a multiple of 8");
            for (sums, row) in block.iter_mut().zip(&rows) {
                let factor = row[k];
                for (sum, value) in sums.iter_mut().zip(line) {
                    *sum += factor * value;
                }
            }
        }
        for (row, block) in block.iter().enumerate() {
            sums[row * b.count + first..][..WIDTH].copy_from_slice(block);
        }
    }
}

//! A quantised matrix, and how one comes from BF16.

use half::bf16;
use plan::scales::{SCALE_ELEMENTS, ScaleLayout};

use super::Mxfp8Error;
use super::format::{E4M3_MAX, e4m3_from_f32, e4m3_to_f32, e8m0_round_up, e8m0_to_f64};
use super::scales::{blocks_per_row, check_length, check_shape, pack, repack_scales_in_groups};

/// Elements of a block.
const BLOCK: usize = SCALE_ELEMENTS as usize;
/// The scale of a block with an infinity or a NaN.
const SCALE_NAN: u8 = 0xff;
/// The scale of a block that is given up as zeros.
const SCALE_ZERO: u8 = 0;

/// An MXFP8 matrix `[rows, k]`: values and scales.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuantizedMatrix {
    rows: usize,
    k: usize,
    values: Vec<u8>,
    scales: Vec<u8>,
}

impl QuantizedMatrix {
    /// A matrix from its parts, as a checkpoint has them: E4M3 values `[rows, k]` and E8M0 scales `[rows, k / 32]`,
    /// both dense and row-major.
    ///
    /// # Errors
    /// `k` is not a positive multiple of 128, or a slice has not the length of its shape.
    pub fn from_parts(values: Vec<u8>, scales: Vec<u8>, rows: usize, k: usize) -> Result<Self, Mxfp8Error> {
        check_shape(rows, k)?;
        check_length("the values", values.len(), rows.saturating_mul(k), rows, k)?;
        check_length("the scales", scales.len(), rows.saturating_mul(blocks_per_row(k)), rows, k)?;
        Ok(Self { rows, k, values, scales })
    }

    /// Rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Elements of a row.
    pub fn k(&self) -> usize {
        self.k
    }

    /// E4M3 values, `[rows, k]`, dense and row-major.
    pub fn values(&self) -> &[u8] {
        &self.values
    }

    /// E8M0 scales, `[rows, k / 32]`, dense and row-major.
    pub fn scales(&self) -> &[u8] {
        &self.scales
    }

    /// The scales in the dense 128x4 layout.
    pub fn packed_scales(&self) -> Vec<u8> {
        pack(&self.scales, ScaleLayout::dense(self.rows as u32, self.k as u32))
    }

    /// The scales in the 128x4 layout for tiles of `rows_per_group` rows.
    ///
    /// # Errors
    /// `rows_per_group` is 0.
    pub fn packed_scales_in_groups(&self, rows_per_group: usize) -> Result<Vec<u8>, Mxfp8Error> {
        repack_scales_in_groups(&self.scales, self.rows, self.k, rows_per_group)
    }

    /// Element `[row, at]`, exactly: an f32 would not hold all of them, `2^-136` to `448 * 2^127`. NaN if the value or
    /// its scale is.
    ///
    /// # Panics
    /// Outside the matrix.
    pub fn element(&self, row: usize, at: usize) -> f64 {
        assert!(row < self.rows && at < self.k, "[{row}, {at}] lies outside [{}, {}]", self.rows, self.k);
        let index = row * self.k + at;
        f64::from(e4m3_to_f32(self.values[index])) * e8m0_to_f64(self.scales[index / BLOCK])
    }
}

/// Quantises `x`, `[rows, k]` with rows `row_stride` elements apart; the gaps are not looked at. The rules are those of
/// [the module](super).
///
/// ```
/// use gemm_rs_ar::mxfp8::quantize;
/// use half::bf16;
///
/// let x = [bf16::from_f32(3.0); 128];
/// let quantized = quantize(&x, 1, 128, 128)?;
/// assert_eq!(quantized.scales(), [127 - 7; 4]); // 3 / 448 is a little below 2^-7
/// assert_eq!(quantized.element(0, 5), 3.0);
/// # Ok::<(), gemm_rs_ar::mxfp8::Mxfp8Error>(())
/// ```
///
/// # Errors
/// `k` is not a positive multiple of 128, `row_stride` is less than `k`, or `x` is shorter than the rows need, or
/// longer than the rows and their gaps.
pub fn quantize(x: &[bf16], rows: usize, k: usize, row_stride: usize) -> Result<QuantizedMatrix, Mxfp8Error> {
    check_shape(rows, k)?;
    if row_stride < k {
        return Err(Mxfp8Error::RowStride { given: row_stride, k });
    }
    // The gap after the last row may be there or not.
    let with_gap = rows.saturating_mul(row_stride);
    let without_gap = with_gap.saturating_sub(row_stride - k);
    if !(without_gap..=with_gap).contains(&x.len()) {
        return Err(Mxfp8Error::Length { what: "the elements of X", given: x.len(), wanted: without_gap, rows, k });
    }
    let mut values = Vec::with_capacity(rows * k);
    let mut scales = Vec::with_capacity(rows * blocks_per_row(k));
    for row in x.chunks(row_stride) {
        for block in row[..k].as_chunks::<BLOCK>().0 {
            let scale = scale_of(block);
            scales.push(scale);
            values.extend(block.iter().map(|&element| value_of(element, scale)));
        }
    }
    Ok(QuantizedMatrix { rows, k, values, scales })
}

/// The scale of a block.
fn scale_of(block: &[bf16; BLOCK]) -> u8 {
    if block.iter().any(|element| !element.is_finite()) {
        return SCALE_NAN;
    }
    let largest = block.iter().fold(0.0, |largest: f64, element| largest.max(element.to_f64().abs()));
    // The quotient is rounded to FP64, but not onto a power of two: 448 = 7 * 64, and a multiple of 1/7 with 8
    // significant bits is either a power of two itself or at least one part in a thousand away.
    e8m0_round_up(largest / f64::from(E4M3_MAX))
}

/// The value of an element under its block's scale.
fn value_of(element: bf16, scale: u8) -> u8 {
    match scale {
        SCALE_NAN => e4m3_from_f32(f32::NAN),
        SCALE_ZERO => e4m3_from_f32(0f32.copysign(element.to_f32())),
        // Exact in FP64; as FP32 it may underflow, where E4M3 is zero anyway.
        _ => e4m3_from_f32((element.to_f64() / e8m0_to_f64(scale)) as f32),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row whose first block is `block`, repeated; the rest ones.
    fn row(block: &[bf16]) -> Vec<bf16> {
        (0..128).map(|at| if at < BLOCK { block[at % block.len()] } else { bf16::ONE }).collect()
    }

    fn first_block(block: &[bf16]) -> (u8, Vec<u8>) {
        let quantized = quantize(&row(block), 1, 128, 128).unwrap();
        assert_eq!(quantized.scales()[1..], [127 - 8; 3], "other blocks are their own");
        (quantized.scales()[0], quantized.values()[..block.len()].to_vec())
    }

    fn bf(value: f32) -> bf16 {
        bf16::from_f32(value)
    }

    #[test]
    fn zeros_keep_their_sign() {
        assert_eq!(first_block(&[bf16::ZERO, bf16::NEG_ZERO]), (0x00, vec![0x00, 0x80]));
    }

    #[test]
    fn blocks_below_the_least_scale_are_given_up() {
        // 448 * 2^-127 = 1.75 * 2^-119.
        let limit = bf16::from_bits(((127 - 119) << 7) | 0x60);
        assert_eq!(limit.to_f64(), 448.0 * 2f64.powi(-127));
        assert_eq!(first_block(&[limit, -limit]), (0x00, vec![0x00, 0x80]));
        let above = bf16::from_bits(limit.to_bits() + 1);
        // Its quotient by 2^-126 is a little more than 224.
        assert_eq!(first_block(&[above, -above]), (0x01, vec![0x76, 0xf6]));
        let subnormal = bf16::MIN_POSITIVE_SUBNORMAL;
        assert_eq!(first_block(&[subnormal, -subnormal]), (0x00, vec![0x00, 0x80]));
        // Beside a larger element a subnormal may survive.
        assert_eq!(first_block(&[above, subnormal]), (0x01, vec![0x76, 0x04]));
    }

    #[test]
    fn scales_round_up_at_448() {
        assert_eq!(first_block(&[bf(448.0)]), (127, vec![0x7e]));
        assert_eq!(first_block(&[bf(450.0)]), (128, vec![e4m3_from_f32(225.0)]));
        assert_eq!(first_block(&[bf(1.0)]), (127 - 8, vec![e4m3_from_f32(256.0)]));
        assert_eq!(first_block(&[bf16::MAX, bf16::MIN]), (127 + 120, vec![0x78, 0xf8]));
    }

    #[test]
    fn one_infinity_or_nan_makes_its_block_nan() {
        for special in [bf16::INFINITY, bf16::NEG_INFINITY, bf16::NAN, bf16::from_bits(0xff81)] {
            assert_eq!(first_block(&[bf16::ONE, special]), (0xff, vec![0x7f, 0x7f]));
            let quantized = quantize(&row(&[bf16::ONE, special]), 1, 128, 128).unwrap();
            assert!(quantized.element(0, 0).is_nan());
            assert_eq!(quantized.element(0, 32), 1.0);
        }
    }

    #[test]
    fn gaps_between_rows_do_not_count() {
        let mut x = vec![bf16::NAN; 2 * 200];
        for (at, element) in (0..).zip(x.chunks_mut(200).flat_map(|row| &mut row[..128])) {
            *element = bf(at as f32);
        }
        let dense: Vec<bf16> = x.chunks(200).flat_map(|row| &row[..128]).copied().collect();
        let wanted = quantize(&dense, 2, 128, 128).unwrap();
        assert_eq!(quantize(&x, 2, 128, 200).unwrap(), wanted);
        assert_eq!(quantize(&x[..328], 2, 128, 200).unwrap(), wanted, "the last gap need not exist");
    }

    #[test]
    fn parts_make_the_same_matrix() {
        let quantized = quantize(&row(&[bf(3.0)]), 1, 128, 128).unwrap();
        let (values, scales) = (quantized.values().to_vec(), quantized.scales().to_vec());
        assert_eq!(QuantizedMatrix::from_parts(values.clone(), scales.clone(), 1, 128).unwrap(), quantized);
        let error = QuantizedMatrix::from_parts(values, scales[..3].to_vec(), 1, 128).unwrap_err();
        assert!(matches!(error, Mxfp8Error::Length { what: "the scales", given: 3, wanted: 4, .. }));
    }

    #[test]
    fn wrong_sizes_are_refused() {
        let x = [bf16::ONE; 256];
        let error = |result: Result<QuantizedMatrix, Mxfp8Error>| result.unwrap_err().to_string();
        assert_eq!(
            error(quantize(&x, 2, 96, 128)),
            "K is 96; a positive multiple of 128 is wanted: pad both operands with zeros along K"
        );
        assert_eq!(
            error(quantize(&x, 1, 256, 128)),
            "the row stride is 128 elements; at least K = 256 is wanted: rows must not overlap"
        );
        assert_eq!(
            error(quantize(&x, 3, 128, 128)),
            "the elements of X have length 256; 384 is wanted for 3 rows and K = 128: check the shape and the slice"
        );
        assert!(quantize(&x, 1, 128, 128).is_err(), "more than the rows and their gaps");
        assert!(quantize(&x, usize::MAX, 128, 128).is_err());
        assert_eq!(quantize(&[], 0, 128, 128).unwrap().packed_scales(), []);
    }
}

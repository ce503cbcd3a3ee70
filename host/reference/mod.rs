//! What the exact result is, and how far from it a correct one may be.
//!
//! The reference is `Y = X · Wᵀ` of the operands, BF16 or MXFP8, in FP64. The bound is derived per element from the
//! roundings that the kernels make, with nothing tuned. For one element, with rank `r` of `P` holding `K_r` of the
//! products `x_k w_k`:
//!
//! ```text
//! p_r = sum of the rank's products            S_r = sum of their magnitudes
//! ```
//!
//! 1. **Accumulation on the tensor cores.** A product of two BF16 values has 16 significant bits, so it is exact in
//!    FP32. So is one of MXFP8 values: 8 bits from the two E4M3 values, times a power of two. Additions are FP32, in an
//!    order of the hardware's, and may truncate where they align their addends, so each of the `K_r` products costs at
//!    most `t = 2^-23` of a magnitude that is itself at most `S_r` plus the error so far. As for any such
//!    chain, the sum `p'_r` obeys
//!    `|p'_r - p_r| <= a_r = g S_r + K_r 2^-126`, `g = K_r t / (1 - K_r t)`.
//!    The last term covers products and sums below FP32's normal range, flushed or not.
//! 2. **Rounding of the partial sum to BF16**, to nearest: half a unit in the last place. BF16 has 8 significant bits,
//!    so at magnitude `v` that is `h(v) = 2^(max(floor(log2 v), -126) - 8)`: between `2^-9 v` and `2^-8 v`, and
//!    `2^-134` for subnormal values. `h` does not decrease, so the rounded partial `q_r` obeys
//!    `|q_r - p_r| <= b_r = a_r + h(|p_r| + a_r)`.
//! 3. **Sum over ranks** in FP32, rounded to nearest, in an order that the switch does not specify: `P - 1` additions,
//!    `c = f sum(|p_r| + b_r)`, `f = P 2^-24 / (1 - P 2^-24)`.
//! 4. **Rounding of the result to BF16**: `d = h(|y| + sum(b_r) + c)`, `y = sum(p_r)`.
//! 5. **The reference itself**: products are exact in FP64, and each of the `K` additions costs `2^-53` of
//!    `sum(S_r)`.
//!
//! The bound is `sum(b_r) + c + d + e`, with `e` of step 5. It holds for finite operands whose products and sums are
//! below `2^128` and whose result is within the range of BF16. Where the exact value is infinite or NaN, the result has
//! to be the same. Whoever sums in another order, or in a higher precision, stays within it too.
//!
//! # What it assumes of MXFP8
//! The operands are what quantisation made of them, so the error of quantisation is no part of the bound;
//! [`ErrorReport`] tells it. Beyond what holds for BF16, step 1 assumes of the block-scaled MMA:
//!
//! * the two scales are applied as exact powers of two, in whichever place. The sum of their exponents, -254 to 254,
//!   has no range of its own: only a scaled *product* that leaves FP32's normal range may lose anything, which is the
//!   term `K_r 2^-126` below it, and excluded above it;
//! * accumulation keeps as many bits as it does for BF16. SM90's 8-bit MMA does not: it is known to keep about 14 (the
//!   technical report of DeepSeek-V3, section 3.3.2), and the bound would not hold there. For SM100 this is an
//!   assumption that nobody here has checked on silicon.
//!
//! Sources: Higham, *Accuracy and Stability of Numerical Algorithms*, 2nd ed., sections 3.1 and 4.2, for steps 1, 3 and
//! 5; the PTX ISA for `multimem.ld_reduce.acc::f32` in step 3.

mod bound;
mod operand;
mod product;
mod report;

use half::bf16;
use thiserror::Error;

pub use report::ErrorReport;

use crate::mxfp8::QuantizedMatrix;
use bound::ErrorBound;
use operand::{Dense, Operand};
use product::partial_sums;

/// Sizes that do not fit together.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ReferenceError {
    /// An operand has not as many elements as its shape says.
    #[error("{operand} has {given} elements; {wanted} are wanted for [{rows}, {k}]")]
    Length {
        /// Which operand.
        operand: &'static str,
        /// Its elements.
        given: usize,
        /// Elements of the shape.
        wanted: usize,
        /// Rows.
        rows: usize,
        /// Columns.
        k: usize,
    },
    /// K cannot be cut into equal parts.
    #[error("K = {k} cannot be cut over {ranks} ranks; a multiple of the rank count is wanted")]
    Ranks {
        /// The inner dimension.
        k: usize,
        /// The ranks.
        ranks: usize,
    },
    /// The operands have different inner dimensions.
    #[error("X has K = {x} and W has K = {weight}; the same is wanted")]
    InnerDimensions {
        /// K of X.
        x: usize,
        /// K of W.
        weight: usize,
    },
    /// Two references that are to be compared have different shapes.
    #[error("the exact product is {exact:?} and the quantised one {quantized:?}; the same shape is wanted")]
    Shapes {
        /// Rows and columns of one.
        exact: [usize; 2],
        /// Rows and columns of the other.
        quantized: [usize; 2],
    },
    /// A result ends within a row.
    #[error("the result has {given} elements; whole rows of {columns} are wanted")]
    PartialRow {
        /// Elements of the result.
        given: usize,
        /// Elements of a row.
        columns: usize,
    },
}

/// The exact result, `[m, n]`, with a bound on the error of each element.
#[derive(Debug, Clone)]
pub struct Reference {
    m: usize,
    n: usize,
    values: Vec<f64>,
    bounds: Vec<f64>,
}

impl Reference {
    /// Multiplies X `[m, k]` by the transpose of W `[n, k]`, both dense and row-major, with K cut over `ranks`.
    ///
    /// ```
    /// use gemm_rs_ar::reference::Reference;
    /// use half::bf16;
    ///
    /// let x = [1.0, 2.0, 3.0, 4.0].map(bf16::from_f32);
    /// let weight = [1.0, 0.5, 0.25, 2.0].map(bf16::from_f32);
    /// let reference = Reference::row_parallel(&x, &weight, [1, 1, 4], 2)?;
    /// assert_eq!(reference.value(0, 0), 10.75);
    /// assert!(reference.bound(0, 0) < 0.1);
    /// # Ok::<(), gemm_rs_ar::reference::ReferenceError>(())
    /// ```
    pub fn row_parallel(
        x: &[bf16],
        weight: &[bf16],
        [m, n, k]: [usize; 3],
        ranks: usize,
    ) -> Result<Self, ReferenceError> {
        for (operand, given, rows) in [("X", x.len(), m), ("W", weight.len(), n)] {
            let wanted = rows.saturating_mul(k);
            if given != wanted {
                return Err(ReferenceError::Length { operand, given, wanted, rows, k });
            }
        }
        Self::multiply(&Dense { elements: x, k }, &Dense { elements: weight, k }, [m, n, k], ranks)
    }

    /// Multiplies MXFP8 operands, X `[m, k]` and W `[n, k]`, with K cut over `ranks`: the exact product of what
    /// quantisation made of them.
    ///
    /// ```
    /// use gemm_rs_ar::mxfp8::quantize;
    /// use gemm_rs_ar::reference::Reference;
    /// use half::bf16;
    ///
    /// let x = quantize(&[bf16::from_f32(0.5); 256], 1, 256, 256)?;
    /// let reference = Reference::row_parallel_mxfp8(&x, &x, 2)?;
    /// assert_eq!(reference.value(0, 0), 64.0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The operands' K differ, or cannot be cut over the ranks.
    pub fn row_parallel_mxfp8(
        x: &QuantizedMatrix,
        weight: &QuantizedMatrix,
        ranks: usize,
    ) -> Result<Self, ReferenceError> {
        if x.k() != weight.k() {
            return Err(ReferenceError::InnerDimensions { x: x.k(), weight: weight.k() });
        }
        Self::multiply(x, weight, [x.rows(), weight.rows(), x.k()], ranks)
    }

    fn multiply<T: Operand>(x: &T, weight: &T, shape: [usize; 3], ranks: usize) -> Result<Self, ReferenceError> {
        let [m, n, k] = shape;
        if ranks == 0 || !k.is_multiple_of(ranks) {
            return Err(ReferenceError::Ranks { k, ranks });
        }
        let (values, bounds) = partial_sums(x, weight, shape, ranks, ErrorBound::new(k / ranks, ranks));
        Ok(Self { m, n, values, bounds })
    }

    /// Rows.
    pub fn rows(&self) -> usize {
        self.m
    }

    /// Columns.
    pub fn columns(&self) -> usize {
        self.n
    }

    /// The exact element.
    ///
    /// # Panics
    /// Outside the matrix.
    pub fn value(&self, row: usize, column: usize) -> f64 {
        self.values[self.index(row, column)]
    }

    /// Largest difference from [`Self::value`] that a correct result can have.
    ///
    /// # Panics
    /// Outside the matrix.
    pub fn bound(&self, row: usize, column: usize) -> f64 {
        self.bounds[self.index(row, column)]
    }

    /// Compares dense rows of a result, of which the first is row `first_row`, element by element. Rows past the last
    /// have to be zero, as reduce-scatter leaves them. A last row that is not whole counts as outside the bound.
    pub fn compare(&self, first_row: usize, result: &[bf16]) -> Comparison {
        let mut comparison = Comparison::default();
        let whole_rows = result.chunks_exact(self.n.max(1));
        comparison.outside += whole_rows.remainder().len();
        for (row, elements) in (first_row..).zip(whole_rows) {
            for (column, &element) in elements.iter().enumerate() {
                let (value, bound) =
                    if row < self.m { (self.value(row, column), self.bound(row, column)) } else { (0.0, 0.0) };
                comparison.add(Element { row, column, given: element.to_f64(), value, bound });
            }
        }
        comparison
    }

    fn index(&self, row: usize, column: usize) -> usize {
        assert!(row < self.m && column < self.n, "[{row}, {column}] lies outside [{}, {}]", self.m, self.n);
        row * self.n + column
    }
}

/// An element next to what it should be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Element {
    /// Row in the whole result.
    pub row: usize,
    /// Column.
    pub column: usize,
    /// The result's value.
    pub given: f64,
    /// The exact value.
    pub value: f64,
    /// Largest difference allowed.
    pub bound: f64,
}

impl Element {
    /// The error as a fraction of the bound: at most one for a correct element. An infinite or NaN value has to be met.
    pub fn ratio(&self) -> f64 {
        if !self.value.is_finite() {
            let met = self.given == self.value || self.given.is_nan() && self.value.is_nan();
            return if met { 0.0 } else { f64::INFINITY };
        }
        let error = (self.given - self.value).abs();
        if error == 0.0 {
            0.0
        } else if error.is_nan() {
            f64::INFINITY
        } else {
            error / self.bound
        }
    }
}

/// What a comparison of many elements found.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Comparison {
    /// Elements compared.
    pub elements: usize,
    /// Elements outside their bound.
    pub outside: usize,
    /// The element with the largest error over its bound.
    pub worst: Option<Element>,
}

impl Comparison {
    /// Whether every element is within its bound. A comparison of nothing is not.
    pub fn is_within_bound(&self) -> bool {
        self.outside == 0 && self.elements > 0
    }

    /// The largest error over its bound.
    pub fn largest_ratio(&self) -> f64 {
        self.worst.map_or(0.0, |element| element.ratio())
    }

    /// This comparison and another of different elements, as one.
    pub fn merge(mut self, other: Self) -> Self {
        self.elements += other.elements;
        self.outside += other.outside;
        if other.largest_ratio() > self.largest_ratio() || self.worst.is_none() {
            self.worst = other.worst;
        }
        self
    }

    fn add(&mut self, element: Element) {
        let outside = usize::from(element.ratio() > 1.0);
        *self = self.merge(Self { elements: 1, outside, worst: Some(element) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mxfp8::quantize;

    /// A generator of operands that is the same everywhere.
    fn operand(seed: u32, len: usize) -> Vec<bf16> {
        let mut state = seed;
        (0..len)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                bf16::from_f32((state >> 8) as f32 / (1 << 23) as f32 - 1.0)
            })
            .collect()
    }

    /// The kernel's arithmetic, one rounding after the other.
    fn rounded_like_a_kernel(x: &[bf16], weight: &[bf16], [m, n, k]: [usize; 3], ranks: usize) -> Vec<bf16> {
        let part = k / ranks;
        let mut result = vec![];
        for row in 0..m {
            for column in 0..n {
                let mut sum = 0.0f32;
                for rank in 0..ranks {
                    let range = rank * part..(rank + 1) * part;
                    let products = range.map(|at| x[row * k + at].to_f32() * weight[column * k + at].to_f32());
                    sum += bf16::from_f32(products.sum::<f32>()).to_f32();
                }
                result.push(bf16::from_f32(sum));
            }
        }
        result
    }

    #[test]
    fn values_are_the_plain_sums() {
        // The last is enough for more than one thread.
        for [m, n, k] in [[1, 1, 2], [3, 5, 8], [7, 4, 6], [2, 9, 64], [65, 65, 512]] {
            let (x, weight) = (operand(1, m * k), operand(2, n * k));
            let reference = Reference::row_parallel(&x, &weight, [m, n, k], 2).unwrap();
            for row in 0..m {
                for column in 0..n {
                    let exact: f64 = (0..k).map(|at| x[row * k + at].to_f64() * weight[column * k + at].to_f64()).sum();
                    assert!((reference.value(row, column) - exact).abs() < 1e-12, "[{m}, {n}, {k}] at {row} {column}");
                }
            }
        }
    }

    #[test]
    fn a_kernel_that_rounds_as_derived_stays_within_the_bound() {
        for (ranks, k) in [(2, 128), (3, 192), (16, 1024)] {
            let shape = [9, 13, k];
            let (x, weight) = (operand(3, 9 * k), operand(4, 13 * k));
            let reference = Reference::row_parallel(&x, &weight, shape, ranks).unwrap();
            let comparison = reference.compare(0, &rounded_like_a_kernel(&x, &weight, shape, ranks));
            assert!(comparison.is_within_bound(), "{comparison:?}");
            assert!(comparison.largest_ratio() > 0.1, "the bound is not a loose one: {comparison:?}");
        }
    }

    #[test]
    fn a_lost_rank_is_outside_the_bound() {
        let shape = [9, 13, 512];
        let (mut x, weight) = (operand(5, 9 * 512), operand(6, 13 * 512));
        let reference = Reference::row_parallel(&x, &weight, shape, 8).unwrap();
        x.iter_mut().enumerate().filter(|(at, _)| at % 512 < 64).for_each(|(_, value)| *value = bf16::ZERO);
        let comparison = reference.compare(0, &rounded_like_a_kernel(&x, &weight, shape, 8));
        assert!(comparison.outside > comparison.elements / 2, "{comparison:?}");
    }

    #[test]
    fn rows_past_the_last_have_to_be_zero() {
        let one = [bf16::ONE; 2];
        let reference = Reference::row_parallel(&one, &one, [1, 1, 2], 2).unwrap();
        assert!(reference.compare(1, &[bf16::ZERO]).is_within_bound());
        assert!(!reference.compare(1, &[bf16::MIN_POSITIVE_SUBNORMAL]).is_within_bound());
        assert!(!reference.compare(0, &[bf16::NAN]).is_within_bound());
    }

    /// The kernel's arithmetic on MXFP8: like that on BF16, on the dequantised operands.
    fn rounded_like_an_mxfp8_kernel(x: &QuantizedMatrix, weight: &QuantizedMatrix, ranks: usize) -> Vec<bf16> {
        let part = x.k() / ranks;
        let mut result = vec![];
        for row in 0..x.rows() {
            for column in 0..weight.rows() {
                let mut sum = 0.0f32;
                for rank in 0..ranks {
                    let range = rank * part..(rank + 1) * part;
                    let products = range.map(|at| (x.element(row, at) * weight.element(column, at)) as f32);
                    sum += bf16::from_f32(products.sum::<f32>()).to_f32();
                }
                result.push(bf16::from_f32(sum));
            }
        }
        result
    }

    #[test]
    fn quantised_operands_have_their_own_exact_product() {
        let (m, n, k, ranks) = (9, 13, 768, 3);
        let (x, weight) = (operand(7, m * k), operand(8, n * k));
        let exact = Reference::row_parallel(&x, &weight, [m, n, k], ranks).unwrap();
        let (x, weight) = (quantize(&x, m, k, k).unwrap(), quantize(&weight, n, k, k).unwrap());
        let reference = Reference::row_parallel_mxfp8(&x, &weight, ranks).unwrap();
        for row in 0..m {
            for column in 0..n {
                let sum: f64 = (0..k).map(|at| x.element(row, at) * weight.element(column, at)).sum();
                assert!((reference.value(row, column) - sum).abs() < 1e-12, "{row} {column}");
            }
        }
        let result = rounded_like_an_mxfp8_kernel(&x, &weight, ranks);
        let comparison = reference.compare(0, &result);
        assert!(comparison.is_within_bound(), "{comparison:?}");
        assert!(comparison.largest_ratio() > 0.1, "the bound is not a loose one: {comparison:?}");
        assert!(!exact.compare(0, &result).is_within_bound(), "quantisation is no part of the bound");
        let report = ErrorReport::new(&exact, &reference, 0, &result).unwrap();
        // E4M3 rounds by up to 1 in 16, some 2.5 % in the mean square; two operands make it 3.6 %.
        assert!((0.02..0.05).contains(&report.quantization), "{report:?}");
        assert!(report.arithmetic < 0.004, "{report:?}");
        assert!((report.total / report.quantization - 1.0).abs() < 0.05, "{report:?}");
    }

    #[test]
    fn one_wrong_scale_is_outside_the_bound() {
        let (m, n, k) = (3, 5, 256);
        let (x, weight) = (operand(9, m * k), operand(10, n * k));
        let (x, weight) = (quantize(&x, m, k, k).unwrap(), quantize(&weight, n, k, k).unwrap());
        let reference = Reference::row_parallel_mxfp8(&x, &weight, 2).unwrap();
        let mut scales = x.scales().to_vec();
        scales[k / 32] += 1;
        let wrong = QuantizedMatrix::from_parts(x.values().to_vec(), scales, m, k).unwrap();
        let comparison = reference.compare(0, &rounded_like_an_mxfp8_kernel(&wrong, &weight, 2));
        assert!(comparison.outside > 0 && comparison.outside <= n, "row 1 alone: {comparison:?}");
    }

    #[test]
    fn infinities_and_nans_have_to_be_met() {
        let k = 128;
        let mut x = operand(11, 2 * k);
        let weight = vec![bf16::ONE; k];
        x[5] = bf16::INFINITY;
        let reference = Reference::row_parallel(&x, &weight, [2, 1, k], 2).unwrap();
        let finite = bf16::from_f64(reference.value(1, 0));
        assert!(reference.compare(0, &[bf16::INFINITY, finite]).is_within_bound());
        for wrong in [bf16::NEG_INFINITY, bf16::NAN, bf16::MAX] {
            assert!(!reference.compare(0, &[wrong, finite]).is_within_bound(), "{wrong}");
        }
        let x = quantize(&x, 2, k, k).unwrap();
        let weight = quantize(&weight, 1, k, k).unwrap();
        let reference = Reference::row_parallel_mxfp8(&x, &weight, 2).unwrap();
        let finite = bf16::from_f64(reference.value(1, 0));
        assert!(reference.compare(0, &[bf16::NAN, finite]).is_within_bound());
        assert!(!reference.compare(0, &[bf16::INFINITY, finite]).is_within_bound());
    }

    #[test]
    fn sizes_that_do_not_fit_are_refused() {
        let error = Reference::row_parallel(&[bf16::ONE; 3], &[bf16::ONE; 4], [1, 1, 4], 2).unwrap_err();
        assert_eq!(error.to_string(), "X has 3 elements; 4 are wanted for [1, 4]");
        let error = Reference::row_parallel(&[bf16::ONE; 4], &[bf16::ONE; 4], [1, 1, 4], 3).unwrap_err();
        assert_eq!(error.to_string(), "K = 4 cannot be cut over 3 ranks; a multiple of the rank count is wanted");
        let quantized = |k| quantize(&vec![bf16::ONE; k], 1, k, k).unwrap();
        let error = Reference::row_parallel_mxfp8(&quantized(128), &quantized(256), 2).unwrap_err();
        assert_eq!(error.to_string(), "X has K = 128 and W has K = 256; the same is wanted");
        let error = Reference::row_parallel_mxfp8(&quantized(128), &quantized(128), 3).unwrap_err();
        assert_eq!(error, ReferenceError::Ranks { k: 128, ranks: 3 });
        let [one, two] =
            [1, 2].map(|m| Reference::row_parallel(&vec![bf16::ONE; 2 * m], &[bf16::ONE; 6], [m, 3, 2], 1).unwrap());
        let error = ErrorReport::new(&one, &two, 0, &[]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the exact product is [1, 3] and the quantised one [2, 3]; the same shape is wanted"
        );
        let error = ErrorReport::new(&one, &one, 0, &[bf16::ONE; 4]).unwrap_err();
        assert_eq!(error.to_string(), "the result has 4 elements; whole rows of 3 are wanted");
    }
}

//! Where the error of an MXFP8 result comes from.

use half::bf16;

use super::{Reference, ReferenceError};

/// Errors of a result in relation to the exact product, in the Frobenius norm: `|a - b| / |b|` over the rows that were
/// compared.
///
/// A bound judges whether a kernel is right, and is derived from the *quantised* operands. How good the result is for
/// its user is its distance from the product of the operands *before* quantisation; nearly all of it is quantisation's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ErrorReport {
    /// The result against the product of the quantised operands: what the kernel's arithmetic costs.
    pub arithmetic: f64,
    /// The product of the quantised operands against the exact one: what quantisation costs.
    pub quantization: f64,
    /// The result against the exact product.
    pub total: f64,
}

impl ErrorReport {
    /// Reports on dense rows of a result, of which the first is row `first_row`. Rows past the last, which
    /// reduce-scatter leaves as zeros, do not count. `exact` is the product of the operands before quantisation,
    /// `quantized` that of what they became.
    ///
    /// ```
    /// use gemm_rs_ar::mxfp8::quantize;
    /// use gemm_rs_ar::reference::{ErrorReport, Reference};
    /// use half::bf16;
    ///
    /// let x: Vec<bf16> = (0..256).map(|at| bf16::from_f32((at as f32).sin())).collect();
    /// let exact = Reference::row_parallel(&x, &x, [1, 1, 256], 2)?;
    /// let quantized = quantize(&x, 1, 256, 256)?;
    /// let quantized = Reference::row_parallel_mxfp8(&quantized, &quantized, 2)?;
    /// let result = [bf16::from_f64(quantized.value(0, 0))];
    /// let report = ErrorReport::new(&exact, &quantized, 0, &result)?;
    /// assert!(report.arithmetic < 0.004 && report.total < 0.06);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The references have different shapes, or the result ends within a row.
    pub fn new(
        exact: &Reference,
        quantized: &Reference,
        first_row: usize,
        result: &[bf16],
    ) -> Result<Self, ReferenceError> {
        let shape = |reference: &Reference| [reference.rows(), reference.columns()];
        if shape(exact) != shape(quantized) {
            return Err(ReferenceError::Shapes { exact: shape(exact), quantized: shape(quantized) });
        }
        let columns = exact.columns();
        if columns == 0 || !result.len().is_multiple_of(columns) {
            return Err(ReferenceError::PartialRow { given: result.len(), columns });
        }
        let (mut arithmetic, mut quantization, mut total) = <(Distance, Distance, Distance)>::default();
        for (row, elements) in (first_row..exact.rows()).zip(result.chunks_exact(columns)) {
            for (column, element) in elements.iter().enumerate() {
                let (given, quantized) = (element.to_f64(), quantized.value(row, column));
                let exact = exact.value(row, column);
                arithmetic.add(given, quantized);
                quantization.add(quantized, exact);
                total.add(given, exact);
            }
        }
        Ok(Self { arithmetic: arithmetic.relative(), quantization: quantization.relative(), total: total.relative() })
    }
}

/// Sums of squares.
#[derive(Default)]
struct Distance {
    difference: f64,
    reference: f64,
}

impl Distance {
    fn add(&mut self, given: f64, reference: f64) {
        self.difference += (given - reference).powi(2);
        self.reference += reference.powi(2);
    }

    fn relative(&self) -> f64 {
        if self.difference == 0.0 { 0.0 } else { (self.difference / self.reference).sqrt() }
    }
}

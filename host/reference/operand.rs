//! What the exact product can be taken of.

use half::bf16;

use crate::mxfp8::{QuantizedMatrix, SCALE_ELEMENTS, e4m3_to_f32, e8m0_to_f64};

/// A matrix whose elements are FP64 values exactly.
pub(super) trait Operand: Sync {
    /// The elements of a row.
    fn row(&self, row: usize) -> impl Iterator<Item = f64>;
}

/// BF16, dense and row-major.
pub(super) struct Dense<'a> {
    pub elements: &'a [bf16],
    pub k: usize,
}

impl Operand for Dense<'_> {
    fn row(&self, row: usize) -> impl Iterator<Item = f64> {
        self.elements[row * self.k..][..self.k].iter().map(|element| element.to_f64())
    }
}

impl Operand for QuantizedMatrix {
    fn row(&self, row: usize) -> impl Iterator<Item = f64> {
        const BLOCK: usize = SCALE_ELEMENTS as usize;
        let blocks = self.values()[row * self.k()..][..self.k()].chunks_exact(BLOCK);
        let scales = &self.scales()[row * (self.k() / BLOCK)..];
        blocks.zip(scales).flat_map(|(block, &scale)| {
            let scale = e8m0_to_f64(scale);
            block.iter().map(move |&value| f64::from(e4m3_to_f32(value)) * scale)
        })
    }
}

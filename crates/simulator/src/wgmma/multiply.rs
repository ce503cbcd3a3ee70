//! One warp's share of a `wgmma.mma_async`: 16 of the 64 rows.
//!
//! As for tcgen05, how hardware rounds inside an instruction is not documented; the products are exact, their sum is
//! taken in f64, and adding it to the accumulator rounds once.

use crate::fragment::{ROWS, place_in_d};
use crate::program::WARP_LANES;
use crate::shared::{SharedRange, SharedReadError, SharedReader};
use crate::tcgen05::{
    AccumulatorFormat, Columns, Major, MatrixDescriptor, OperandError, OperandField, SharedOperand, multiply,
};

/// Rows of A in a warpgroup.
const GROUP_ROWS: u32 = 64;
/// The largest K.
const MOST_K: usize = 32;
/// The largest N.
const MOST_N: usize = 256;

/// A as the instruction names it.
pub(crate) enum OperandA {
    /// In shared memory.
    Shared(MatrixDescriptor, OperandField),
    /// The warp's rows, decoded from registers; negated if the instruction says so.
    Registers { values: Box<[f64; ROWS * MOST_K]>, negate: bool },
}

/// Where a warp's rows of A come from.
#[derive(Debug)]
enum SourceA {
    /// Registers, decoded when the instruction was issued.
    Values(Box<[f64; ROWS * MOST_K]>),
    /// An operand of which the warp's rows start at `first_row`.
    Shared { operand: SharedOperand, first_row: usize },
}

/// Buffers of the arithmetic.
#[derive(Debug)]
pub(crate) struct WgmmaScratch {
    a: Vec<f64>,
    b: Vec<f64>,
}

impl Default for WgmmaScratch {
    fn default() -> Self {
        Self { a: vec![0.0; GROUP_ROWS as usize * MOST_K], b: vec![0.0; MOST_N * MOST_K] }
    }
}

/// A product with its operands.
#[derive(Debug)]
pub(crate) struct WarpProduct {
    n: usize,
    k: usize,
    a: SourceA,
    negate_a: bool,
    b: SharedOperand,
    accumulator: AccumulatorFormat,
    saturate: bool,
    /// D is added to; otherwise overwritten.
    accumulate: bool,
}

impl WarpProduct {
    /// `b` is B's descriptor and what the instruction says of it.
    pub(crate) fn new(
        (n, k): (u32, u32),
        (accumulator, saturate): (AccumulatorFormat, bool),
        warp_in_group: u32,
        a: OperandA,
        b: (MatrixDescriptor, OperandField),
        accumulate: bool,
    ) -> Result<Self, OperandError> {
        let mut negate_a = false;
        let a = match a {
            OperandA::Registers { values, negate } => {
                negate_a = negate;
                SourceA::Values(values)
            }
            OperandA::Shared(mut descriptor, field) if field.major == Major::K => {
                // Rows are 8 to a stride, so that the warp's own can be addressed alone.
                descriptor.start_address += 2 * warp_in_group * descriptor.stride_byte_offset;
                SourceA::Shared { operand: SharedOperand::new(descriptor, field, ROWS as u32, k)?, first_row: 0 }
            }
            OperandA::Shared(descriptor, field) => SourceA::Shared {
                operand: SharedOperand::new(descriptor, field, GROUP_ROWS, k)?,
                first_row: warp_in_group as usize * ROWS,
            },
        };
        let b = SharedOperand::new(b.0, b.1, n, k)?;
        Ok(Self { n: n as usize, k: k as usize, a, negate_a, b, accumulator, saturate, accumulate })
    }

    /// Visits the ranges of shared memory that it reads.
    pub(crate) fn for_each_range(&self, mut visit: impl FnMut(SharedRange)) {
        if let SourceA::Shared { operand, .. } = &self.a {
            operand.for_each_range(&mut visit);
        }
        self.b.for_each_range(&mut visit);
    }

    /// Multiply-accumulates of the warp.
    pub(crate) fn macs(&self) -> u64 {
        (ROWS * self.n * self.k) as u64
    }

    /// Computes into the accumulators (register, then lane).
    pub(crate) fn execute<S: SharedReader + ?Sized>(
        &self,
        shared: &S,
        scratch: &mut WgmmaScratch,
        accumulators: &mut [[u32; WARP_LANES]],
    ) -> Result<(), SharedReadError> {
        let (n, k) = (self.n, self.k);
        self.b.fetch(shared, &mut scratch.b, 1, n)?;
        let a = match &self.a {
            SourceA::Values(values) => &values[..ROWS * k],
            SourceA::Shared { operand, first_row } => {
                operand.fetch(shared, &mut scratch.a, k, 1)?;
                &scratch.a[first_row * k..][..ROWS * k]
            }
        };
        let columns = Columns { values: &scratch.b, stride: n, first: 0 };
        let mut sums = [0.0; MOST_N];
        for row in 0..ROWS {
            let sums = &mut sums[..n];
            multiply(&a[row * k..][..k], columns, sums);
            if self.negate_a {
                sums.iter_mut().for_each(|sum| *sum = -*sum);
            }
            self.add_row(row, sums, accumulators);
        }
        Ok(())
    }

    /// Four lanes hold a row: two neighbouring columns of every eight each.
    fn add_row(&self, row: usize, sums: &[f64], accumulators: &mut [[u32; WARP_LANES]]) {
        for member in 0..4 {
            let lane = 4 * (row % 8) + member;
            for pair in 0..sums.len() / 8 {
                let element = 4 * pair + 2 * (row / 8);
                let (_, column) = place_in_d(lane, element);
                let sums = [sums[column], sums[column + 1]];
                if self.accumulator == AccumulatorFormat::F16 {
                    let cell = &mut accumulators[element / 2][lane];
                    let old = if self.accumulate { *cell } else { 0 };
                    let add = |bits, sum| AccumulatorFormat::F16.add(bits, sum, false) & 0xffff;
                    *cell = add(old, sums[0]) | add(old >> 16, sums[1]) << 16;
                } else {
                    for (index, sum) in sums.into_iter().enumerate() {
                        let cell = &mut accumulators[element + index][lane];
                        let old = if self.accumulate { *cell } else { 0 };
                        *cell = self.accumulator.add(old, sum, self.saturate);
                    }
                }
            }
        }
    }
}

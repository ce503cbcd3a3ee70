//! One warp's share of a `wgmma.mma_async`: 16 of the 64 rows.
//!
//! Floating-point products are added as `tensor_sum` has it; integers exactly, in f64.

use crate::fragment::{ROWS, place_in_d};
use crate::program::WARP_LANES;
use crate::shared::{SharedRange, SharedReadError, SharedReader};
use crate::tcgen05::{
    AccumulatorFormat, Columns, Major, MatrixDescriptor, OperandError, OperandField, OperandFormat, SharedOperand,
    multiply,
};
use crate::tensor_sum::{Aligned, AlignedSum, bits, magnitudes, number};

/// Rows of A in a warpgroup.
const GROUP_ROWS: u32 = 64;
/// The largest K.
const MOST_K: usize = 32;
/// The largest N.
const MOST_N: usize = 256;

/// Fraction bits below the largest exponent that the sum keeps, seen on silicon: of products of 8-bit floats, and of others.
const NARROW_BITS: i32 = 13;
const WIDE_BITS: i32 = 25;

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
    /// Exponents of B.
    b_magnitudes: Vec<f64>,
}

impl Default for WgmmaScratch {
    fn default() -> Self {
        Self {
            a: vec![0.0; GROUP_ROWS as usize * MOST_K],
            b: vec![0.0; MOST_N * MOST_K],
            b_magnitudes: vec![0.0; MOST_N * MOST_K],
        }
    }
}

/// A product with its operands.
#[derive(Debug)]
pub(crate) struct WarpProduct {
    n: usize,
    k: usize,
    a: SourceA,
    a_format: OperandFormat,
    b: SharedOperand,
    b_format: OperandFormat,
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
        (a, a_format): (OperandA, OperandFormat),
        b: (MatrixDescriptor, OperandField),
        accumulate: bool,
    ) -> Result<Self, OperandError> {
        let a = match a {
            OperandA::Registers { mut values, negate } => {
                if negate {
                    values.iter_mut().for_each(|value| *value = -*value);
                }
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
        let b_format = b.1.format;
        let b = SharedOperand::new(b.0, b.1, n, k)?;
        let (n, k) = (n as usize, k as usize);
        Ok(Self { n, k, a, a_format, b, b_format, accumulator, saturate, accumulate })
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
        if self.accumulator == AccumulatorFormat::S32 {
            let columns = Columns { values: &scratch.b, stride: n, first: 0 };
            let mut sums = [0.0; MOST_N];
            for row in 0..ROWS {
                multiply(&a[row * k..][..k], columns, &mut sums[..n]);
                self.for_each_cell(row, |column, cell| {
                    let old = if self.accumulate { accumulators[cell.register][cell.lane] } else { 0 };
                    accumulators[cell.register][cell.lane] = self.accumulator.add(old, sums[column], self.saturate);
                });
            }
            return Ok(());
        }
        let count = n * k;
        magnitudes(self.b_format, &scratch.b[..count], &mut scratch.b_magnitudes[..count]);
        let b = Aligned { values: &scratch.b[..count], magnitudes: &scratch.b_magnitudes[..count], stride: n };
        let narrow = matches!(self.a_format, OperandFormat::Narrow(_));
        let sum =
            AlignedSum { fraction_bits: if narrow { NARROW_BITS } else { WIDE_BITS }, accumulator: self.accumulator };
        let (mut a_magnitudes, mut values) = ([0.0; MOST_K], [0.0; MOST_N]);
        for row in 0..ROWS {
            let values = &mut values[..n];
            values.fill(0.0);
            if self.accumulate {
                self.for_each_cell(row, |column, cell| {
                    values[column] = number(self.accumulator, accumulators[cell.register][cell.lane] >> cell.shift);
                });
            }
            let a = &a[row * k..][..k];
            magnitudes(self.a_format, a, &mut a_magnitudes[..k]);
            sum.add((a, &a_magnitudes[..k]), b, values);
            self.for_each_cell(row, |column, cell| {
                let word = &mut accumulators[cell.register][cell.lane];
                let new = bits(self.accumulator, values[column]);
                *word = if self.accumulator == AccumulatorFormat::F16 {
                    *word & !(0xffff << cell.shift) | new << cell.shift
                } else {
                    new
                };
            });
        }
        Ok(())
    }

    /// Where the accumulators of a row are, by column: four lanes hold two neighbouring columns of every eight each.
    fn for_each_cell(&self, row: usize, mut visit: impl FnMut(usize, Cell)) {
        let half = self.accumulator == AccumulatorFormat::F16;
        for member in 0..4 {
            let lane = 4 * (row % 8) + member;
            for pair in 0..self.n / 8 {
                let element = 4 * pair + 2 * (row / 8);
                let (_, column) = place_in_d(lane, element);
                for index in 0..2 {
                    let (register, shift) = if half { (element / 2, 16 * index as u32) } else { (element + index, 0) };
                    visit(column + index, Cell { register, lane, shift });
                }
            }
        }
    }
}

/// Place of an accumulator.
struct Cell {
    register: usize,
    lane: usize,
    /// First bit.
    shift: u32,
}

//! `ldmatrix`, `stmatrix` and `mma.sync`.

use super::Context;
use super::access::Target;
use super::step::{Flow, Step};
use crate::fault::{ConvergenceError, access_failure};
use crate::fragment::{ROWS, decode_register, elements_per_register, place_in_a, place_in_b, place_in_d};
use crate::memory::{AccessKind, AccessProblem};
use crate::program::{
    Address, LaneMask, LoadMatrix, LoadMatrixShape, MemoryOrder, Operand, PackedBits, StateSpace, StoreMatrix,
    WARP_LANES, WarpMma,
};
use crate::tcgen05::{AccumulatorFormat, Columns, OperandFormat, multiply};
use crate::tensor_sum::{Aligned, AlignedSum, bits, magnitudes, number};

/// Bytes of a row of an 8x8 matrix of 16-bit elements.
const ROW_BYTES: u32 = 16;
/// Columns of B and D.
const COLUMNS: usize = 8;
/// The largest K.
const MOST_K: usize = 32;
/// Fraction bits below the largest exponent that a sum keeps, seen on silicon.
const FRACTION_BITS: i32 = 25;

/// An 8x8 matrix of 16-bit elements.
type Tile = [[u16; 8]; 8];

impl Context<'_> {
    /// `.sync.aligned` by a whole warp: these instructions are undefined once a lane has exited. False: suspended.
    pub(super) fn whole_warp(&mut self) -> Step<bool> {
        let live = self.warp.live;
        if live != LaneMask::MAX {
            return Err(ConvergenceError::NotAWholeWarp { live }.into());
        }
        self.align()
    }

    /// Where the row address of a lane points.
    fn matrix_row(&self, address: Address, space: StateSpace, kind: AccessKind, lane: usize) -> Step<(u64, u32, u32)> {
        let value = self.address(address, lane);
        let fail = |problem| access_failure(lane, kind, value, ROW_BYTES, problem);
        if !value.is_multiple_of(u64::from(ROW_BYTES)) {
            return Err(fail(AccessProblem::Misaligned { required: ROW_BYTES }));
        }
        let immediate = matches!(address.base, Operand::Immediate(_));
        match self.target(space, value, immediate).map_err(fail)? {
            Target::Shared { cta, offset } => Ok((value, cta, offset)),
            _ => Err(fail(AccessProblem::WrongSpace { wanted: "shared" })),
        }
    }

    pub(super) fn load_matrix(&mut self, load: &LoadMatrix) -> Step {
        if !self.whole_warp()? {
            return Ok(Flow::Suspended);
        }
        match load.shape {
            LoadMatrixShape::Halves8x8 => {}
            LoadMatrixShape::Bytes8x16(packed) => return self.load_bytes(load, packed, 8),
            LoadMatrixShape::Bytes16x16(packed) => return self.load_bytes(load, packed, 16),
        }
        for (matrix, register) in load.destinations.iter().enumerate() {
            let mut tile: Tile = [[0; 8]; 8];
            for (row, elements) in tile.iter_mut().enumerate() {
                let lane = matrix * 8 + row;
                let (value, cta, offset) = self.matrix_row(load.address, load.space, AccessKind::Load, lane)?;
                let mut words = [0; 8];
                self.shared_load(cta, offset, value, ROW_BYTES, 8, MemoryOrder::Weak, lane, &mut words)?;
                for (column, element) in elements.iter_mut().enumerate() {
                    *element = (words[column / 4] >> (16 * (column % 4))) as u16;
                }
            }
            for lane in 0..WARP_LANES {
                let element = |column: usize| {
                    let (row, column) = (lane / 4, 2 * (lane % 4) + column);
                    u64::from(if load.transpose { tile[column][row] } else { tile[row][column] })
                };
                self.set(*register, lane, element(0) | element(1) << 16);
            }
        }
        Ok(Flow::Next)
    }

    /// Matrices of 16 columns of bytes, packed in memory or not.
    fn load_bytes(&mut self, load: &LoadMatrix, packed: PackedBits, rows: usize) -> Step {
        let per_matrix = rows / 8;
        let (bits, bytes) = match packed {
            PackedBits::Four => (4, 8),
            PackedBits::Six => (6, 12),
            PackedBits::Eight => (8, 16),
        };
        for (matrix, registers) in load.destinations.chunks_exact(per_matrix).enumerate() {
            let mut tile = [[0u8; 16]; 16];
            for (row, elements) in tile.iter_mut().enumerate().take(rows) {
                let lane = matrix * rows + row;
                let (value, cta, offset) = self.matrix_row(load.address, load.space, AccessKind::Load, lane)?;
                let mut words = [0; 8];
                // What pads a row is not read.
                self.shared_load(cta, offset, value, bytes, 4, MemoryOrder::Weak, lane, &mut words)?;
                let packed = words.iter().rev().skip(4).fold(0u128, |packed, &word| packed << 32 | u128::from(word));
                for (column, element) in elements.iter_mut().enumerate() {
                    *element = (packed >> (column * bits) & ((1 << bits) - 1)) as u8;
                }
            }
            for lane in 0..WARP_LANES {
                let (row, column) = (lane / 4, 4 * (lane % 4));
                for (part, &register) in registers.iter().enumerate() {
                    let bytes = std::array::from_fn(|byte| match load.transpose {
                        true => tile[column + byte][row + 8 * part],
                        false => tile[row][column + byte],
                    });
                    self.set(register, lane, u32::from_le_bytes(bytes).into());
                }
            }
        }
        Ok(Flow::Next)
    }

    pub(super) fn store_matrix(&mut self, store: &StoreMatrix) -> Step {
        if !self.whole_warp()? {
            return Ok(Flow::Suspended);
        }
        for (matrix, &source) in store.sources.iter().enumerate() {
            // Rows as they stand in memory.
            let mut rows = [[0u8; ROW_BYTES as usize]; 8];
            for lane in 0..WARP_LANES {
                let value = (self.operand(source, lane) as u32).to_le_bytes();
                if store.bytes {
                    // Of the 16x8 matrix a lane holds columns 2c and 2c + 1, of rows r and r + 8.
                    for (index, byte) in value.into_iter().enumerate() {
                        rows[2 * (lane % 4) + index % 2][lane / 4 + 8 * (index / 2)] = byte;
                    }
                    continue;
                }
                for (half, bytes) in value.chunks_exact(2).enumerate() {
                    let (row, column) = (lane / 4, 2 * (lane % 4) + half);
                    let (row, column) = if store.transpose { (column, row) } else { (row, column) };
                    rows[row][2 * column..][..2].copy_from_slice(bytes);
                }
            }
            for (row, bytes) in rows.iter().enumerate() {
                let lane = matrix * 8 + row;
                let (value, cta, offset) = self.matrix_row(store.address, store.space, AccessKind::Store, lane)?;
                self.check_shared_access(cta, offset, value, ROW_BYTES, AccessKind::Store, false, lane)?;
                if self.machine.cta_mut(cta).shared.bytes.write(offset.into(), bytes) {
                    self.machine.wake_shared_watchers(cta, offset, ROW_BYTES);
                }
            }
        }
        self.effect();
        Ok(Flow::Next)
    }

    /// A of a warp, row by row, from its registers.
    pub(super) fn fragment_a(&self, format: OperandFormat, registers: &[Operand], k: usize, rows: &mut [f64]) {
        let elements = elements_per_register(format);
        for (register, &operand) in registers.iter().enumerate() {
            for lane in 0..WARP_LANES {
                let (row, first) = place_in_a(lane, register, elements);
                let decoded = decode_register(format, self.operand(operand, lane) as u32);
                rows[row * k + first..][..elements].copy_from_slice(&decoded[..elements]);
            }
        }
    }

    pub(super) fn warp_mma(&mut self, mma: &WarpMma) -> Step {
        if !self.whole_warp()? {
            return Ok(Flow::Suspended);
        }
        // The inner loop takes eight steps of k at a time; the rest stays zero.
        let k = (mma.k as usize).max(8);
        let mut a = [0.0; ROWS * MOST_K];
        self.fragment_a(mma.a_format, &mma.a, k, &mut a);
        let mut b = [0.0; MOST_K * COLUMNS];
        let elements = elements_per_register(mma.b_format);
        for (register, &operand) in mma.b.iter().enumerate() {
            for lane in 0..WARP_LANES {
                let (column, first) = place_in_b(lane, register, elements);
                let decoded = decode_register(mma.b_format, self.operand(operand, lane) as u32);
                for (step, &value) in decoded[..elements].iter().enumerate() {
                    b[(first + step) * COLUMNS + column] = value;
                }
            }
        }
        if mma.accumulator == AccumulatorFormat::S32 {
            let mut sums = [[0.0; COLUMNS]; ROWS];
            let columns = Columns { values: &b[..k * COLUMNS], stride: COLUMNS, first: 0 };
            for (row, sums) in sums.iter_mut().enumerate() {
                multiply(&a[row * k..][..k], columns, sums);
            }
            for lane in 0..WARP_LANES {
                for (index, (&c, &d)) in mma.c.iter().zip(&mma.destinations).enumerate() {
                    let old = self.operand(c, lane) as u32;
                    let (row, column) = place_in_d(lane, index);
                    self.set(d, lane, mma.accumulator.add(old, sums[row][column], mma.saturate).into());
                }
            }
        } else {
            self.floating_mma(mma, &a[..ROWS * k], &b[..k * COLUMNS]);
        }
        self.machine.counters[self.launch.gpu as usize].tensor_macs += (ROWS * COLUMNS) as u64 * u64::from(mma.k);
        Ok(Flow::Next)
    }
    /// The floating forms. 8-bit floats are converted to f16 and multiplied by two instructions, one with the first two of
    /// every four elements along K and one with the others; what they give is added to C by an ordinary addition.
    fn floating_mma(&mut self, mma: &WarpMma, a: &[f64], b: &[f64]) {
        let half = mma.accumulator == AccumulatorFormat::F16;
        let elements = if half { 2 } else { 1 };
        let mut c = [[0.0; COLUMNS]; ROWS];
        for lane in 0..WARP_LANES {
            for index in 0..elements * mma.c.len() {
                let (row, column) = place_in_d(lane, index);
                let word = self.operand(mma.c[index / elements], lane) as u32;
                c[row][column] = number(mma.accumulator, word >> (16 * (index % elements)));
            }
        }
        let narrow = matches!(mma.a_format, OperandFormat::Narrow(_));
        let k = mma.k as usize;
        let stride = a.len() / ROWS;
        let sum = AlignedSum { fraction_bits: FRACTION_BITS, accumulator: mma.accumulator };
        let parts: &[usize] = if narrow { &[0, 2] } else { &[0] };
        let mut d = if narrow { [[0.0; COLUMNS]; ROWS] } else { c };
        for &part in parts {
            let taken = || (0..k).filter(|k| !narrow || k % 4 / 2 * 2 == part);
            let count = taken().count();
            let formats = if narrow { [OperandFormat::F16; 2] } else { [mma.a_format, mma.b_format] };
            let (mut factors, mut factor_magnitudes) = ([0.0; MOST_K * COLUMNS], [0.0; MOST_K * COLUMNS]);
            for (line, k) in factors.chunks_exact_mut(COLUMNS).zip(taken()) {
                line.copy_from_slice(&b[k * COLUMNS..][..COLUMNS]);
            }
            magnitudes(formats[1], &factors[..count * COLUMNS], &mut factor_magnitudes[..count * COLUMNS]);
            let columns = Aligned { values: &factors, magnitudes: &factor_magnitudes, stride: COLUMNS };
            for (row, d) in d.iter_mut().enumerate() {
                let (mut values, mut value_magnitudes) = ([0.0; MOST_K], [0.0; MOST_K]);
                for (value, k) in values.iter_mut().zip(taken()) {
                    *value = a[row * stride + k];
                }
                magnitudes(formats[0], &values[..count], &mut value_magnitudes[..count]);
                sum.add((&values[..count], &value_magnitudes[..count]), columns, d);
                d.iter_mut().for_each(|d| *d = number(mma.accumulator, bits(mma.accumulator, *d)));
            }
        }
        for lane in 0..WARP_LANES {
            for (index, &destination) in mma.destinations.iter().enumerate() {
                let element = |index: usize| {
                    let (row, column) = place_in_d(lane, index);
                    let value = if narrow { c[row][column] + d[row][column] } else { d[row][column] };
                    bits(mma.accumulator, value)
                };
                let word = if half { element(2 * index) | element(2 * index + 1) << 16 } else { element(index) };
                self.set(destination, lane, word.into());
            }
        }
    }
}

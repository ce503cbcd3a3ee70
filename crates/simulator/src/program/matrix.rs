//! Warp-level matrix instructions: `ldmatrix`, `stmatrix` and `mma.sync`.

use super::{Address, Operand, Register, StateSpace};
use crate::tcgen05::{AccumulatorFormat, OperandFormat};

/// `ldmatrix`.
#[derive(Debug, Clone)]
pub struct LoadMatrix {
    /// `SharedCta` or `Generic`.
    pub space: StateSpace,
    /// What a matrix is.
    pub shape: LoadMatrixShape,
    /// `.trans`: each matrix is loaded in column-major order.
    pub transpose: bool,
    /// 1, 2 or 4: one per matrix, two per 16x16 matrix.
    pub destinations: Vec<Register>,
    /// Row addresses, one per lane: as many lanes for each matrix as it has rows.
    pub address: Address,
}

/// What an `ldmatrix` loads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadMatrixShape {
    /// `.m8n8.b16`: rows of 8 elements of 16 bits.
    Halves8x8,
    /// `.m8n16.b8x16`: rows of 16 narrow elements, which become bytes.
    Bytes8x16(PackedBits),
    /// `.m16n16.b8` and `.m16n16.b8x16`: the same, twice as many rows, transposed.
    Bytes16x16(PackedBits),
}

/// Width of an element in memory; rows have 16 and are padded to 16 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PackedBits {
    /// `.b4x16_p64`
    Four,
    /// `.b6x16_p32`
    Six,
    /// `.b8`
    Eight,
}

/// `stmatrix`: one matrix per source register.
#[derive(Debug, Clone)]
pub struct StoreMatrix {
    /// `SharedCta` or `Generic`.
    pub space: StateSpace,
    /// `.m16n8.b8`, which is always transposed, instead of `.m8n8.b16`.
    pub bytes: bool,
    /// `.trans`: each matrix is stored in column-major order.
    pub transpose: bool,
    /// 1, 2 or 4.
    pub sources: Vec<Operand>,
    /// Row addresses, one per lane: eight lanes for each matrix.
    pub address: Address,
}

/// `mma.sync` of shape m16n8kK, A row-major and B column-major.
#[derive(Debug, Clone)]
pub struct WarpMma {
    /// Elements summed.
    pub k: u32,
    /// Element type of A.
    pub a_format: OperandFormat,
    /// Element type of B.
    pub b_format: OperandFormat,
    /// Element type of C and D.
    pub accumulator: AccumulatorFormat,
    /// `.satfinite`: integer sums saturate instead of wrapping.
    pub saturate: bool,
    /// D.
    pub destinations: Vec<Register>,
    /// A, 32 bits per register.
    pub a: Vec<Operand>,
    /// B, 32 bits per register.
    pub b: Vec<Operand>,
    /// C, as many as destinations.
    pub c: Vec<Operand>,
}

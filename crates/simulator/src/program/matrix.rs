//! Warp-level matrix instructions: `ldmatrix`, `stmatrix` and `mma.sync`.

use super::{Address, Operand, Register, StateSpace};
use crate::tcgen05::{AccumulatorFormat, OperandFormat};

/// `ldmatrix.m8n8.b16`: one 8x8 matrix per destination register.
#[derive(Debug, Clone)]
pub struct LoadMatrix {
    /// `SharedCta` or `Generic`.
    pub space: StateSpace,
    /// `.trans`: each matrix is loaded in column-major order.
    pub transpose: bool,
    /// 1, 2 or 4.
    pub destinations: Vec<Register>,
    /// Row addresses, one per lane: eight lanes for each matrix.
    pub address: Address,
}

/// `stmatrix.m8n8.b16`: one 8x8 matrix per source register.
#[derive(Debug, Clone)]
pub struct StoreMatrix {
    /// `SharedCta` or `Generic`.
    pub space: StateSpace,
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

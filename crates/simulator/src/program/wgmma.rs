//! `wgmma`: the asynchronous tensor-core instructions of a warpgroup.

use super::{Operand, PredicateSource, Register};
use crate::tcgen05::{AccumulatorFormat, OperandField};

/// `wgmma.*`.
#[derive(Debug, Clone)]
pub enum Wgmma {
    /// `wgmma.fence`.
    Fence,
    /// `wgmma.commit_group`.
    CommitGroup,
    /// `wgmma.wait_group`.
    WaitGroup {
        /// At most this many of the latest groups may be pending.
        pending: u32,
        /// The accumulators of the kernel's `mma_async`. They are written until a wait, so that until then their slots
        /// are no other register's.
        accumulators: Vec<Operand>,
    },
    /// `wgmma.mma_async`.
    Mma(WgmmaMma),
}

/// `wgmma.mma_async` of shape m64nNkK.
#[derive(Debug, Clone)]
pub struct WgmmaMma {
    /// Columns of D.
    pub n: u32,
    /// Elements summed.
    pub k: u32,
    /// Element type, sign and major-ness of A.
    pub a_field: OperandField,
    /// Element type, sign and major-ness of B.
    pub b_field: OperandField,
    /// Element type of D.
    pub accumulator: AccumulatorFormat,
    /// `.satfinite`: integer sums saturate instead of wrapping.
    pub saturate: bool,
    /// D.
    pub destinations: Vec<Register>,
    /// D again: it is read unless `scale_d` is false.
    pub previous: Vec<Operand>,
    /// A.
    pub a: WgmmaOperand,
    /// B's shared-memory matrix descriptor.
    pub b: Operand,
    /// False: D = A * B; true: D = A * B + D.
    pub scale_d: PredicateSource,
}

/// Where A comes from.
#[derive(Debug, Clone)]
pub enum WgmmaOperand {
    /// A shared-memory matrix descriptor.
    Descriptor(Operand),
    /// 32-bit registers that hold the warp's 16 rows.
    Registers(Vec<Operand>),
}

//! `tcgen05.mma`.
#![allow(unused)]

use crate::program::Tcgen05Kind;
use crate::shared::{SharedRange, SharedReader};
use crate::tensor_memory::{TensorMemory, TensorMemoryOwner, TensorRange};

/// Operand values of one `tcgen05.mma`.
#[derive(Debug, Clone, Copy)]
pub struct MmaRequest {
    /// `.kind`.
    pub kind: Tcgen05Kind,
    /// 1 or 2.
    pub cta_group: u8,
    /// Accumulator's tensor-memory address.
    pub accumulator: u32,
    /// A.
    pub a: MmaOperandA,
    /// B's matrix descriptor.
    pub b: u64,
    /// Instruction descriptor.
    pub instruction_descriptor: u32,
    /// Tensor-memory addresses of A's and B's scales.
    pub scales: Option<(u32, u32)>,
    /// Elements that share a scale; 0 when the instruction does not say.
    pub scale_block: u8,
    /// Bit = lane of the accumulator that is not written; words 0..4 are the even CTA's, 4..8 the odd one's.
    pub disable_output_lane: [u32; 8],
    /// When false D = A*B.
    pub enable_input_d: bool,
}

/// Where A is.
#[derive(Debug, Clone, Copy)]
pub enum MmaOperandA {
    /// A matrix descriptor.
    Shared(u64),
    /// A tensor-memory address.
    TensorMemory(u32),
}

/// Why an MMA was refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum MmaError {}

/// A checked MMA.
#[derive(Debug, Clone)]
pub struct Mma {}

/// What an operation touches in one CTA.
#[derive(Debug, Clone, Default)]
pub struct Footprint {
    /// Shared bytes read.
    pub shared_reads: Vec<SharedRange>,
    /// Tensor memory read.
    pub tensor_reads: Vec<TensorRange>,
    /// Tensor memory written.
    pub tensor_writes: Vec<TensorRange>,
}

/// One CTA that takes part: the issuing one, or even then odd of the pair.
pub struct MmaCta<'a, S: SharedReader + ?Sized> {
    /// Its shared memory.
    pub shared: &'a S,
    /// Its SM's tensor memory.
    pub tensor_memory: &'a mut TensorMemory,
    /// Whose allocation it uses.
    pub owner: TensorMemoryOwner,
}

/// Reusable buffers, so that an MMA allocates nothing.
#[derive(Debug, Default)]
pub struct MmaScratch {}

impl Mma {
    /// Decodes and checks descriptors and addresses.
    pub fn new(request: &MmaRequest) -> Result<Self, MmaError> {
        todo!()
    }

    /// What it reads and writes in CTA `cta` (0 or 1) of the group; ranges of one list do not overlap.
    pub fn footprint(&self, cta: usize) -> Footprint {
        todo!()
    }

    /// Multiply-accumulates, for the counters.
    pub fn macs(&self) -> u64 {
        todo!()
    }

    /// Computes; `ctas` has `cta_group` members, the even CTA first.
    pub fn execute<S: SharedReader + ?Sized>(
        &self,
        ctas: &mut [MmaCta<'_, S>],
        scratch: &mut MmaScratch,
    ) -> Result<(), MmaError> {
        todo!()
    }
}

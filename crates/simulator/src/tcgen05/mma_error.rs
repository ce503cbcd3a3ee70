//! What is wrong with a `tcgen05.mma`.

use super::{InstructionDescriptorError, MatrixDescriptorError, OperandError, OperandFormat, ScaleError};
use crate::program::Tcgen05Kind;
use crate::shared::SharedReadError;
use crate::tensor_memory::TensorMemoryError;

/// A or B.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperandName {
    /// A.
    A,
    /// B.
    B,
}

/// Why an MMA was refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum MmaError {
    /// `.cta_group`.
    #[error("cta_group::{cta_group}; legal: 1, 2")]
    CtaGroup {
        /// Given.
        cta_group: u8,
    },
    /// Instruction descriptor.
    #[error(transparent)]
    InstructionDescriptor(#[from] InstructionDescriptorError),
    /// Matrix descriptor.
    #[error("{operand:?}: {source}")]
    MatrixDescriptor {
        /// Whose.
        operand: OperandName,
        /// What is wrong.
        source: MatrixDescriptorError,
    },
    /// A matrix descriptor that does not go with the instruction descriptor.
    #[error("{operand:?}: {source}")]
    Operand {
        /// Whose.
        operand: OperandName,
        /// What is wrong.
        source: OperandError,
    },
    /// A in tensor memory is K-major.
    #[error("A in tensor memory cannot be transposed (instruction descriptor bit 15)")]
    TransposedTensorA,
    /// The packing of 6- and 4-bit elements in tensor memory is not simulated.
    #[error("A in tensor memory with {format:?} elements is not simulated; 8-, 16- and 32-bit elements are")]
    PackedTensorA {
        /// Element type.
        format: OperandFormat,
    },
    /// N that goes with A in shared memory only.
    #[error("A in tensor memory, cta_group::{cta_group}, M = {m}: N = {n}; N must be a multiple of {step}")]
    TensorAShape {
        /// 1 or 2.
        cta_group: u8,
        /// M.
        m: u32,
        /// N.
        n: u32,
        /// What N must be a multiple of.
        step: u32,
    },
    /// Lane of the accumulator's address.
    #[error("the accumulator starts at lane {lane}; data-path layout {layout} allows {legal:?}")]
    AccumulatorLane {
        /// Given.
        lane: u32,
        /// The layout's letter.
        layout: char,
        /// Lanes allowed.
        legal: &'static [u32],
    },
    /// Lane of A's address.
    #[error(
        "A starts at lane {lane} of tensor memory and the accumulator at lane {accumulator}; they must be the same"
    )]
    ALane {
        /// Given.
        lane: u32,
        /// The accumulator's.
        accumulator: u32,
    },
    /// Scale addresses given or not.
    #[error("{kind:?} {} scale addresses", if *.given { "takes no" } else { "needs" })]
    Scales {
        /// The instruction's kind.
        kind: Tcgen05Kind,
        /// Whether they were given.
        given: bool,
    },
    /// `.scale_vec` or `.blockN`.
    #[error("{kind:?} with {scale_block} elements to a scale; legal: 32")]
    ScaleBlock {
        /// The instruction's kind.
        kind: Tcgen05Kind,
        /// Given.
        scale_block: u8,
    },
    /// Lane of a scale address.
    #[error(
        "the scales of {operand:?} have address {address:#010x}: the lane must be 0 (bits 30..32 may repeat the scale id, \
         which is {scale_id})"
    )]
    ScaleAddress {
        /// Whose.
        operand: OperandName,
        /// Given.
        address: u32,
        /// Of the instruction descriptor.
        scale_id: u8,
    },
    /// CTAs given to [`Mma::execute`](super::Mma::execute).
    #[error("an MMA of cta_group::{cta_group} was given {given} CTAs")]
    CtaCount {
        /// 1 or 2.
        cta_group: u8,
        /// Given.
        given: usize,
    },
    /// Shared memory refused a read.
    #[error("{operand:?} of CTA {cta} of the group: {source}")]
    Shared {
        /// Operand read.
        operand: OperandName,
        /// 0 or 1.
        cta: usize,
        /// What is wrong.
        source: SharedReadError,
    },
    /// Tensor memory refused an access.
    #[error("{what} of CTA {cta} of the group: {source}")]
    TensorMemory {
        /// Matrix accessed.
        what: &'static str,
        /// 0 or 1.
        cta: usize,
        /// What is wrong.
        source: TensorMemoryError,
    },
    /// Scales were refused.
    #[error("scales of {operand:?} of CTA {cta} of the group: {source}")]
    Scale {
        /// Whose.
        operand: OperandName,
        /// 0 or 1.
        cta: usize,
        /// What is wrong.
        source: ScaleError,
    },
}

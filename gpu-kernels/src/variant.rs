//! A kernel variant as a type, so that its table entry is a constant of the generic code.

use plan::kernels::{KernelSpec, OperandType, Orientation};

/// One entry of the kernel table.
pub trait Variant {
    /// The entry.
    const SPEC: KernelSpec;
    /// Whether two CTAs multiply together.
    const PAIR: bool = Self::SPEC.cluster == 2;
    /// Whether operands come with scales.
    const SCALED: bool = matches!(Self::SPEC.operands, OperandType::Mxfp8);
    /// Whether the activations are operand B.
    const SWAPPED: bool = matches!(Self::SPEC.orientation, Orientation::Swapped);
}

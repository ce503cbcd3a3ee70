//! A kernel variant as a type, so that its table entry is a constant of the generic code.

use plan::kernels::{GEMM_BF16_128X128, KernelSpec};

/// One entry of the kernel table.
pub trait Variant {
    /// The entry.
    const SPEC: KernelSpec;
}

/// [`GEMM_BF16_128X128`].
pub struct Bf16Tile128x128;

impl Variant for Bf16Tile128x128 {
    const SPEC: KernelSpec = GEMM_BF16_128X128;
}

//! The kernels that are embedded in the library, as PTX text.

use plan::kernels::{GEMM_BF16_128X128, KernelSpec};

/// PTX for the SM100 family, every kernel of [`plan::kernels::KERNELS`] in it.
pub const SM100_PTX: &str = include_str!(concat!(env!("GEMM_RS_AR_PTX_DIR"), "/sm_100f.ptx"));

/// The kernel for a BF16 projection.
pub(crate) const BF16_KERNEL: KernelSpec = GEMM_BF16_128X128;

/// Compute capabilities that load [`SM100_PTX`].
pub(crate) const SM100_FAMILY: [(u32, u32); 2] = [(10, 0), (10, 3)];

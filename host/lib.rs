//! Tensor-parallel GEMM fused with its collective: `Y = X · Wᵀ` of a row-parallel projection, reduced over the ranks by
//! reduce-scatter or all-reduce in the same kernel.
//!
//! * [`GemmRsAr`] is the operation: made once per rank, applied to any number of projections.
//! * [`projection`] describes operands and results by device pointers.
//! * [`symmetric`] has the ranks meet and share memory.
//! * [`driver`] is the seam to a device, with the simulator of a node behind it.
//! * [`mxfp8`] quantises operands and lays out their scales.
//! * [`mod@reference`] says what the exact result is and how far a correct one may be from it.
//!
//! The library never panics for what a caller can cause: every wrong input is a typed error that says what was given,
//! what is wanted and what to do, before anything is enqueued.

mod checks;
pub mod driver;
mod error;
mod gemm_rs_ar;
mod kernels;
pub mod mxfp8;
mod operand_maps;
mod policy;
pub mod projection;
pub mod reference;
pub mod symmetric;
mod unsupported;
mod workspace;

pub use error::{ConfigError, DeviceUnsupported, GemmRsArError};
pub use gemm_rs_ar::{GemmRsAr, GemmRsArConfig};
pub use kernels::SM100_PTX;
pub use plan::arguments::Mode;
pub use plan::choice::Choice;
pub use plan::kernels::{KERNELS, KernelSpec, OperandType};
pub use policy::{DEFAULT_MIN_ROWS, Policy};
pub use projection::{DeviceMatrix, DeviceScales, ElementType, Input, Output, Projection, WeightScales};
pub use unsupported::Unsupported;
pub use workspace::{Capacity, Workspace};

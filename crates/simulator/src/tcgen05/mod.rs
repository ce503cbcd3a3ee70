//! The fifth-generation tensor core: descriptors, operands, MMA, register and shared-memory copies.

mod copy;
mod data_path;
mod descriptor;
mod footprint;
mod instruction_descriptor;
mod load_store;
mod mma;
mod mma_error;
mod multiply;
pub mod operand;
mod scale;

pub use copy::*;
pub use data_path::*;
pub use descriptor::*;
pub use footprint::*;
pub use instruction_descriptor::*;
pub use load_store::*;
pub use mma::*;
pub use mma_error::*;
pub(crate) use multiply::{Columns, multiply};
pub use operand::{OperandError, SharedOperand};
pub use scale::ScaleError;

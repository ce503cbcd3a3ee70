//! The fifth-generation tensor core: descriptors, operands, MMA, register and shared-memory copies.

mod copy;
mod load_store;
mod mma;

pub use copy::*;
pub use load_store::*;
pub use mma::*;

//! The fourth-generation tensor core's asynchronous products: descriptors and arithmetic.

mod descriptor;
mod multiply;

pub use descriptor::WgmmaDescriptorError;
pub(crate) use descriptor::decode;
pub(crate) use multiply::{OperandA, WarpProduct, WgmmaScratch};

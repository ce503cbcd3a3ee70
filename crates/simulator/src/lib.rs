//! A functional simulator of a multi-GPU NVLink node: PTX text in, memory out.
//!
//! It knows only PTX and the ISA's rules. It shares nothing with the kernels it judges: descriptors, swizzles and
//! layouts are decoded from the bits that the program hands to the instruction.

mod decode;
pub mod multimem;
pub mod node;
pub mod number;
pub mod program;
pub mod ptx;
pub mod shared;
pub mod swizzle;
pub mod tcgen05;
pub mod tensor_map;
pub mod tensor_memory;

pub use tensor_map::encode_tensor_map;

//! A functional simulator of a multi-GPU NVLink node: PTX text in, memory out.
//!
//! It knows only PTX and the ISA's rules. It shares nothing with the kernels it judges: descriptors, swizzles and
//! layouts are decoded from the bits that the program hands to the instruction.

pub mod alu;
mod decode;
pub mod node;
pub mod program;
pub mod ptx;

//! PTX instructions, one function per form, named after the instruction.
//!
//! Shared-memory addresses are 32-bit `shared::cta` window offsets; global addresses are generic addresses that point
//! to global memory, which on this target are the same numbers.

pub mod barrier;
pub mod cluster;
pub mod convert;
pub mod fence;
pub mod global;
pub mod mbarrier;
pub mod multimem;
pub mod packed;
pub mod shared;
pub mod special;
pub mod tcgen05;
pub mod tma;
pub mod warp;

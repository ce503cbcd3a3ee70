//! A functional simulator of a multi-GPU NVLink node: PTX text in, memory out.
//!
//! It knows only PTX and the ISA's rules. It shares nothing with the kernels it judges: descriptors, swizzles and
//! layouts are decoded from the bits that the program hands to the instruction.

pub mod alu;
mod cta;
mod deadlock;
mod decode;
mod engines;
mod fault;
mod fragment;
mod host_calls;
mod launch;
mod machine;
mod mbarrier;
mod memory;
pub mod multimem;
mod named_barrier;
pub mod node;
pub mod number;
mod ordering;
pub mod program;
pub mod ptx;
mod random;
mod scheduler;
pub mod shared;
mod stream;
pub mod swizzle;
pub mod tcgen05;
pub mod tensor_map;
pub mod tensor_memory;
mod tensor_sum;
pub mod timeline;
pub mod trace;
mod warp;
mod wgmma;

pub use deadlock::{DeadlockReport, PendingLaunch, WaitReason, WaitingLanes};
pub use fault::{BulkError, ConvergenceError, Fault, FaultCause, InstructionFault, Tcgen05Error, WgmmaError};
pub use launch::LaunchError;
pub use mbarrier::MbarrierError;
pub use memory::{AccessKind, AccessProblem, AtomicError, MemoryError};
pub use named_barrier::BarrierError;
pub use node::Node;
pub use ordering::{Actor, OrderingError};
pub use tensor_map::encode_tensor_map;
pub use wgmma::WgmmaDescriptorError;

/// The examples of the documentation, run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/simulator.md")]
pub struct DocumentationExamples;

//! Tile schedule, memory maps and kernel table shared by host, kernels and tests.
//!
//! The same functions decide the schedule on the host, in the kernel and in the tests that enumerate them, so the three
//! cannot disagree. Everything is `no_std`, free of panics on the paths a kernel uses, and plain integer arithmetic.
#![cfg_attr(not(test), no_std)]

pub mod arguments;
pub mod choice;
pub mod control;
pub mod descriptors;
pub mod entries;
pub mod kernels;
pub mod quantize;
pub mod scales;
pub mod schedule;
pub mod shared_memory;
pub mod tensor_memory;
pub mod ticket;

/// Largest number of ranks: the size of an NVLink multicast team that one ready word per source is kept for.
pub const MAX_RANKS: u32 = 16;
/// Smallest number of ranks: below it there is nothing to reduce.
pub const MIN_RANKS: u32 = 2;
/// Slots of the partial buffer. Two let a launch write while peers still read the previous one's partials.
pub const SLOTS: u32 = 2;
/// Lanes of a warp.
pub const WARP_LANES: u32 = 32;

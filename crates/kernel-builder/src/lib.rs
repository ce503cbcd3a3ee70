//! Compiles the device crate from Rust to PTX: finds a device toolchain, drives it, edits the IR, writes PTX.
//!
//! Upstream rustc and LLVM do the work. Two things they do not know are put into the IR text in between: that inline
//! assembly may hold barriers (`convergent`), and which kernel parameters live in the parameter space.

pub mod ir;
mod pipeline;
mod process;
mod toolchain;

pub use pipeline::{BuildError, compile, ptx_file_name};
pub use toolchain::{Toolchain, ToolchainError};

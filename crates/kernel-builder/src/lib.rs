//! Compiles the device crate from Rust to PTX.

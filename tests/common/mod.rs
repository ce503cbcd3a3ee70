//! What the behaviour tests share: a node of ranks, operands, and a device that can be told to fail.
//!
//! Every test file compiles its own copy and uses a part of it.
#![allow(dead_code)]

pub mod device;
pub mod operands;
pub mod rank;

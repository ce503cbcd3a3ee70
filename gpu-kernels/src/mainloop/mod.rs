//! Main loops: operands in, finished accumulators out.

pub mod pipeline;
pub mod tcgen05;

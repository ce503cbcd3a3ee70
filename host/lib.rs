//! gemm-rs-ar

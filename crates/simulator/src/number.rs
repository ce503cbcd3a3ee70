//! The narrow floating-point formats of tensor cores and multimem.

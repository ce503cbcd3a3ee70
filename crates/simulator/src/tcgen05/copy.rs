//! `tcgen05.cp`.
#![allow(unused)]

use super::Footprint;
use crate::program::Tcgen05CopyShape;
use crate::shared::{SharedReadError, SharedReader};
use crate::tensor_memory::{TensorMemory, TensorMemoryError, TensorMemoryOwner};

/// Why a copy was refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CopyError {
    /// Tensor memory refused it.
    #[error(transparent)]
    TensorMemory(#[from] TensorMemoryError),
    /// Shared memory refused it.
    #[error(transparent)]
    Shared(#[from] SharedReadError),
}

/// A checked `tcgen05.cp`. With `cta_group::2` the machine executes it once per CTA of the pair, each on its own shared
/// and tensor memory.
#[derive(Debug, Clone)]
pub struct SharedCopy {}

impl SharedCopy {
    /// Decodes and checks.
    pub fn new(shape: Tcgen05CopyShape, destination: u32, source: u64) -> Result<Self, CopyError> {
        todo!()
    }

    /// What it touches, in each CTA.
    pub fn footprint(&self) -> Footprint {
        todo!()
    }

    /// Copies.
    pub fn execute<S: SharedReader + ?Sized>(
        &self,
        shared: &S,
        memory: &mut TensorMemory,
        owner: TensorMemoryOwner,
    ) -> Result<(), CopyError> {
        todo!()
    }
}

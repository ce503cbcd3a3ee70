//! `tcgen05.ld` and `tcgen05.st`.
#![allow(unused)]

use crate::program::{Tcgen05Shape, WARP_LANES};
use crate::tensor_memory::{TensorMemory, TensorMemoryError, TensorMemoryOwner, TensorRange};

/// Why a register transfer was refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RegisterTransferError {
    /// Tensor memory refused it.
    #[error(transparent)]
    TensorMemory(#[from] TensorMemoryError),
}

/// One `tcgen05.ld` or `tcgen05.st`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegisterTransfer {
    /// Shape.
    pub shape: Tcgen05Shape,
    /// `.x1` to `.x128`.
    pub repeat: u8,
    /// `.pack::16b` / `.unpack::16b`.
    pub packed: bool,
    /// Tensor-memory address.
    pub address: u32,
    /// Warp's index in the CTA, modulo 4: its lane window.
    pub warp_in_warpgroup: u32,
}

impl RegisterTransfer {
    /// 32-bit registers per lane.
    pub fn registers(&self) -> usize {
        todo!()
    }

    /// The rectangle touched.
    pub fn footprint(&self) -> Result<TensorRange, RegisterTransferError> {
        todo!()
    }

    /// `ld`: fills `registers` (register, then lane).
    pub fn load(
        &self,
        memory: &TensorMemory,
        owner: TensorMemoryOwner,
        registers: &mut [[u32; WARP_LANES]],
    ) -> Result<(), RegisterTransferError> {
        todo!()
    }

    /// `st`.
    pub fn store(
        &self,
        memory: &mut TensorMemory,
        owner: TensorMemoryOwner,
        registers: &[[u32; WARP_LANES]],
    ) -> Result<(), RegisterTransferError> {
        todo!()
    }
}

//! Tensor maps: what `cuTensorMapEncodeTiled` makes and the TMA engine reads.
#![allow(unused)]

use crate::node::{TensorMapBytes, TensorMapDescription, TensorMapElement, TensorMapSwizzle};

/// Why a tensor map cannot be encoded or used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TensorMapError {
    /// Not a tensor map.
    #[error("these 128 bytes are not a tensor map")]
    NotATensorMap,
}

/// Encodes a tensor map, or says which restriction it breaks.
pub fn encode_tensor_map(description: &TensorMapDescription) -> Result<TensorMapBytes, TensorMapError> {
    todo!()
}

/// A decoded tensor map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorMap {}

/// A contiguous piece of a box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BoxChunk {
    /// Where in shared memory, relative to the box's address, swizzle applied.
    pub shared_offset: u32,
    /// Global address; `None` where the tensor ends: loads fill, stores skip.
    pub global: Option<u64>,
    /// Length.
    pub bytes: u32,
}

impl TensorMap {
    /// Decodes what [`encode_tensor_map`] made.
    pub fn decode(bytes: &[u8; 128]) -> Result<Self, TensorMapError> {
        todo!()
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        todo!()
    }

    /// Bytes of a full box, elements out of bounds included: what a load adds to the mbarrier's transaction count.
    pub fn box_bytes(&self) -> u32 {
        todo!()
    }

    /// 16 bytes with which a load fills what is out of bounds (whole elements, so it tiles any chunk).
    pub fn fill(&self) -> [u8; 16] {
        todo!()
    }

    /// Visits the box at `coordinates`, moved between global memory and shared address `shared` (an offset in the CTA's
    /// window).
    pub fn for_each_chunk(
        &self,
        coordinates: &[i32],
        shared: u32,
        visit: impl FnMut(BoxChunk),
    ) -> Result<(), TensorMapError> {
        todo!()
    }
}

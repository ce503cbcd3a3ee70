//! Tensor memory of one SM.
#![allow(unused)]

use std::ops::Range;

/// Who allocated columns; the machine chooses the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TensorMemoryOwner(pub u32);

/// Lanes.
pub const LANES: u32 = 128;
/// 32-bit columns.
pub const COLUMNS: u32 = 512;

/// A tensor-memory address: lane in the upper half, column in the lower.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TensorAddress {
    /// Lane.
    pub lane: u32,
    /// Column.
    pub column: u32,
}

impl TensorAddress {
    /// Splits the 32-bit form; the halves may be out of range, which the access then refuses.
    pub fn decode(address: u32) -> Self {
        Self { lane: address >> 16, column: address & 0xffff }
    }
}

/// A rectangle of tensor memory of one CTA of the operation (0 = the issuing CTA's or pair's even one).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorRange {
    /// Lanes.
    pub lanes: Range<u32>,
    /// Columns.
    pub columns: Range<u32>,
}

/// Why an access to tensor memory was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TensorMemoryError {
    /// Outside.
    #[error("tensor memory lanes {lanes:?}, columns {columns:?} reach outside 128 lanes x 512 columns")]
    OutOfBounds {
        /// Lanes.
        lanes: Range<u32>,
        /// Columns.
        columns: Range<u32>,
    },
}

/// 128 lanes x 512 columns x 32 bit, with the column allocator.
#[derive(Debug, Clone)]
pub struct TensorMemory {}

impl TensorMemory {
    /// Empty: nothing allocated, nothing initialised.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        todo!()
    }

    /// Allocates columns for `owner` and returns the base column; `None` when they are not free now (the instruction
    /// then blocks). `columns` must be a power of two, 32 to 512.
    pub fn allocate(&mut self, owner: TensorMemoryOwner, columns: u32) -> Result<Option<u32>, TensorMemoryError> {
        todo!()
    }

    /// Lowest base column at which `columns` are free.
    pub fn find_free(&self, columns: u32) -> Result<Option<u32>, TensorMemoryError> {
        todo!()
    }

    /// True when that many columns from `base` on are free: the pair's two SMs need a common base.
    pub fn is_free(&self, base: u32, columns: u32) -> bool {
        todo!()
    }

    /// Allocates at a base found before.
    pub fn allocate_at(&mut self, owner: TensorMemoryOwner, base: u32, columns: u32) -> Result<(), TensorMemoryError> {
        todo!()
    }

    /// Frees an allocation; its contents become uninitialised.
    pub fn deallocate(
        &mut self,
        owner: TensorMemoryOwner,
        address: u32,
        columns: u32,
    ) -> Result<(), TensorMemoryError> {
        todo!()
    }

    /// Allocations that `owner` still holds, as column ranges.
    pub fn allocations(&self, owner: TensorMemoryOwner) -> Vec<Range<u32>> {
        todo!()
    }

    /// Refuses a rectangle that is out of bounds or not wholly allocated by `owner`.
    pub fn check(&self, owner: TensorMemoryOwner, range: &TensorRange) -> Result<(), TensorMemoryError> {
        todo!()
    }
}

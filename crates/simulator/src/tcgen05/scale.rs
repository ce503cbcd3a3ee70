//! Scale factors of block-scaled instructions (PTX ISA, "Block Scaling", "Scale Factor A ID", "Scale Factor B ID").
//!
//! The scale of row r (of A, or of B's rows, its N dimension) is one byte of the cell in lane r % 32, column r / 32; the
//! scale id of the instruction descriptor says which byte. Every warp's 32 lanes hold a copy. In data-path layout B the
//! two halves of N are on different lanes, so lanes 0..64 hold the scales of B's first half and lanes 64..128 those of
//! the second.

use std::ops::Range;

use super::DataPath;
use crate::number::ue8m0_decode;
use crate::tensor_memory::{LANES, TensorAddress, TensorMemory, TensorMemoryError, TensorRange};

/// Lanes that one warp reads, with a copy of the scales each.
const PARTITION: u32 = 32;

/// Why scale factors were refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScaleError {
    /// Tensor memory refused the read.
    #[error(transparent)]
    TensorMemory(#[from] TensorMemoryError),
    /// The copies of a scale differ.
    #[error(
        "the scale of row {row} is {first:#04x} in lane {first_lane} but {second:#04x} in lane {second_lane} (column \
         {column}, byte {byte}); scales must be duplicated to all 32-lane partitions"
    )]
    CopiesDiffer {
        /// Row of the operand.
        row: u32,
        /// A lane that should hold its scale.
        first_lane: u32,
        /// What it holds.
        first: u8,
        /// Another.
        second_lane: u32,
        /// What that holds.
        second: u8,
        /// Column of both.
        column: u32,
        /// Byte of the cell.
        byte: u8,
    },
}

/// Scales of one operand in one CTA's tensor memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct ScaleOperand {
    column: u32,
    byte: u8,
    /// Rows per group of lanes, and the lanes of a group: all 128, or 64 where N is split over the lanes.
    rows_per_group: u32,
    groups: u32,
}

impl ScaleOperand {
    /// Scales of A, of which the CTA has `data_path.rows` rows.
    pub(super) fn of_a(address: TensorAddress, byte: u8, data_path: &DataPath) -> Self {
        Self { column: address.column, byte, rows_per_group: data_path.rows, groups: 1 }
    }

    /// Scales of all N rows of B, which each CTA has.
    pub(super) fn of_b(address: TensorAddress, byte: u8, n: u32, data_path: &DataPath) -> Self {
        let groups = if data_path.layout == 'B' { 2 } else { 1 };
        Self { column: address.column, byte, rows_per_group: n / groups, groups }
    }

    /// The rectangle read, rounded up to whole partitions.
    pub(super) fn range(&self) -> TensorRange {
        TensorRange { lanes: 0..LANES, columns: self.columns() }
    }

    fn columns(&self) -> Range<u32> {
        self.column..self.column + self.rows_per_group.div_ceil(PARTITION)
    }

    /// Reads the scale of every row.
    pub(super) fn fetch(&self, memory: &TensorMemory, scales: &mut [f64]) -> Result<(), ScaleError> {
        let lanes_per_group = LANES / self.groups;
        for group in 0..self.groups {
            for row in 0..self.rows_per_group {
                let column = self.column + row / PARTITION;
                let first_lane = group * lanes_per_group + row % PARTITION;
                let first = self.read(memory, first_lane, column)?;
                for copy in 1..lanes_per_group / PARTITION {
                    let second_lane = first_lane + copy * PARTITION;
                    let second = self.read(memory, second_lane, column)?;
                    if first != second {
                        let row = group * self.rows_per_group + row;
                        let byte = self.byte;
                        return Err(ScaleError::CopiesDiffer {
                            row,
                            first_lane,
                            first,
                            second_lane,
                            second,
                            column,
                            byte,
                        });
                    }
                }
                scales[(group * self.rows_per_group + row) as usize] = ue8m0_decode(first);
            }
        }
        Ok(())
    }

    fn read(&self, memory: &TensorMemory, lane: u32, column: u32) -> Result<u8, TensorMemoryError> {
        Ok(memory.cell(lane, column)?.to_le_bytes()[self.byte as usize])
    }
}

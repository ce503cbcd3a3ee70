//! The tensor-memory map of a GEMM kernel: accumulators first, then the scales of the stage that is being multiplied.

use crate::kernels::{OperandType, SCALE_ROWS};

/// Columns of an SM's tensor memory.
pub const TENSOR_MEMORY_COLUMNS: u32 = 512;
/// Columns that the scales of 128 rows by 128 elements along K take.
pub const SCALE_GROUP_COLUMNS: u32 = 4;
/// Distance of accumulators that overlap. Two of 256 columns do not fit beside scales, but two that share 16 columns do.
const OVERLAPPED_STRIDE: u32 = 240;

/// Where things lie in tensor memory, as columns of the CTA's allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TensorMemoryMap {
    /// Accumulators, used in turn.
    pub places: u32,
    /// Columns from one to the next.
    pub stride: u32,
    /// Barrier pairs that pass them between MMA and epilogue. One, if accumulators overlap: the next one may be written
    /// as soon as the columns that it shares with this one are drained, and by then the one before is drained as well,
    /// since a warp drains tiles in order.
    pub barriers: u32,
    /// First column of A's scales.
    pub scale_a: u32,
    /// First column of B's scales.
    pub scale_b: u32,
    /// Columns of B's scales.
    scale_b_columns: u32,
    /// Columns to allocate, a power of two.
    pub columns: u32,
}

impl TensorMemoryMap {
    /// The map for accumulators of `columns` columns.
    pub const fn new(operands: OperandType, columns: u32) -> Self {
        let (scale_a_columns, scale_b_columns) = match operands {
            OperandType::Bf16 => (0, 0),
            OperandType::Mxfp8 => (SCALE_GROUP_COLUMNS, columns.div_ceil(SCALE_ROWS) * SCALE_GROUP_COLUMNS),
        };
        let scales = scale_a_columns + scale_b_columns;
        let overlapped = 2 * columns + scales > TENSOR_MEMORY_COLUMNS;
        let stride = if overlapped { OVERLAPPED_STRIDE } else { columns };
        let scale_a = stride + columns;
        Self {
            places: 2,
            stride,
            barriers: if overlapped { 1 } else { 2 },
            scale_a,
            scale_b: scale_a + scale_a_columns,
            scale_b_columns,
            columns: (scale_a + scales).next_power_of_two(),
        }
    }

    /// Whether accumulators share columns.
    pub const fn is_overlapped(self) -> bool {
        self.barriers < self.places
    }

    /// First column of an accumulator.
    #[inline(always)]
    pub const fn place(self, index: u32) -> u32 {
        index * self.stride
    }

    /// One past the last column in use.
    pub const fn end(self) -> u32 {
        self.scale_b + self.scale_b_columns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_widest_tile_with_scales_overlaps() {
        for columns in [32, 64, 128, 224, 256] {
            for operands in [OperandType::Bf16, OperandType::Mxfp8] {
                let map = TensorMemoryMap::new(operands, columns);
                assert_eq!(map.is_overlapped(), columns == 256 && operands == OperandType::Mxfp8);
            }
        }
        let map = TensorMemoryMap::new(OperandType::Mxfp8, 256);
        assert_eq!((map.place(1), map.scale_a, map.scale_b, map.end()), (240, 496, 500, 508));
    }
}

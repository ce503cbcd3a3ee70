//! Tensor maps: the description that the TMA engine reads, and how one is asked for.

use super::DevicePtr;

/// An encoded tensor map, in the form that a kernel receives as a parameter. Only a driver can make sense of the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct TensorMap(pub [u8; 128]);

/// Most dimensions of a tensor map.
pub const MAX_DIMENSIONS: usize = 5;

/// Element types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TensorMapElement {
    /// bfloat16.
    Bf16,
    /// Bytes.
    U8,
    /// 64-bit words.
    U64,
}

impl TensorMapElement {
    /// Size of an element.
    pub const fn bytes(self) -> u64 {
        match self {
            Self::Bf16 => 2,
            Self::U8 => 1,
            Self::U64 => 8,
        }
    }
}

/// How 16-byte pieces of a box are permuted in shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TensorMapSwizzle {
    /// Not at all.
    None,
    /// Within 32-byte rows.
    B32,
    /// Within 64-byte rows.
    B64,
    /// Within 128-byte rows.
    B128,
}

/// A tiled tensor map before it is encoded. Dimensions are innermost first; entries past `dimension_count` are ignored.
/// Elements outside the tensor read as zero, and element strides are one.
///
/// The arrays have a fixed size so that a description on the path of a launch allocates nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TensorMapDescription {
    /// Element type.
    pub element: TensorMapElement,
    /// Address of element 0, 16-byte aligned.
    pub base: DevicePtr,
    /// Number of dimensions, 1 to 5.
    pub dimension_count: usize,
    /// Extent in elements.
    pub dimensions: [u64; MAX_DIMENSIONS],
    /// Bytes from one index to the next, of dimension 1 and up (entry 0 is dimension 1's); multiples of 16.
    pub strides_bytes: [u64; MAX_DIMENSIONS - 1],
    /// Extent of the box that one instruction brings, in elements, 1 to 256.
    pub box_dimensions: [u32; MAX_DIMENSIONS],
    /// Swizzle.
    pub swizzle: TensorMapSwizzle,
}

impl TensorMapDescription {
    /// A matrix of `[rows, columns]` elements whose rows are contiguous, read in boxes of `[rows, columns]`.
    pub const fn row_major(
        element: TensorMapElement,
        base: DevicePtr,
        [rows, columns]: [u64; 2],
        row_stride_bytes: u64,
        [box_rows, box_columns]: [u32; 2],
        swizzle: TensorMapSwizzle,
    ) -> Self {
        Self {
            element,
            base,
            dimension_count: 2,
            dimensions: [columns, rows, 1, 1, 1],
            strides_bytes: [row_stride_bytes, 0, 0, 0],
            box_dimensions: [box_columns, box_rows, 1, 1, 1],
            swizzle,
        }
    }
}

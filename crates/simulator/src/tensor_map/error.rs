//! What is wrong with a tensor map or with its use.

use crate::node::{TensorMapElement, TensorMapSwizzle};

/// Why a tensor map cannot be encoded or used. The limits are those of `cuTensorMapEncodeTiled` (CUDA driver API,
/// "Tensor Map Object Management") and of `cp.async.bulk.tensor` (PTX ISA).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TensorMapError {
    /// Rank.
    #[error("a tensor map has 1 to 5 dimensions, not {rank}")]
    Rank {
        /// Given.
        rank: usize,
    },
    /// A value that `tensormap.replace` does not take, or that is not simulated.
    #[error("tensormap.replace: {field:?} cannot be {value}")]
    FieldValue {
        /// Which field.
        field: crate::program::TensorMapField,
        /// Given.
        value: u64,
    },
    /// The arrays of a description disagree.
    #[error("{field} has {given} entries; {rank} dimensions need {wanted}")]
    Length {
        /// Which array.
        field: &'static str,
        /// Its length.
        given: usize,
        /// What the rank asks for.
        wanted: usize,
        /// Dimensions.
        rank: usize,
    },
    /// Base address.
    #[error("the tensor's address {base:#x} is not a multiple of 16")]
    BaseAlignment {
        /// Given.
        base: u64,
    },
    /// Extent.
    #[error("dimension {dimension} has extent {extent}; 1 to 2^32 is legal")]
    Dimension {
        /// Which.
        dimension: usize,
        /// Given.
        extent: u64,
    },
    /// Stride.
    #[error("dimension {dimension} has a stride of {bytes} bytes; it must be a multiple of 16 below 2^40")]
    Stride {
        /// Which.
        dimension: usize,
        /// Given.
        bytes: u64,
    },
    /// Box extent.
    #[error("the box has extent {extent} in dimension {dimension}; 1 to 256 is legal")]
    BoxDimension {
        /// Which.
        dimension: usize,
        /// Given.
        extent: u32,
    },
    /// Element stride.
    #[error("dimension {dimension} has element stride {stride}; 1 to 8 is legal")]
    ElementStride {
        /// Which.
        dimension: usize,
        /// Given.
        stride: u32,
    },
    /// Inner box row not a multiple of 16 bytes.
    #[error("the inner row of the box has {bytes} bytes; it must be a multiple of 16")]
    InnerBoxAlignment {
        /// Bytes of the inner row.
        bytes: u32,
    },
    /// Inner box row longer than the swizzle span.
    #[error("the inner row of the box has {bytes} bytes, more than the span of swizzle {swizzle:?}, {span}")]
    InnerBoxSpan {
        /// Bytes of the inner row.
        bytes: u32,
        /// Swizzle.
        swizzle: TensorMapSwizzle,
        /// Its span in bytes.
        span: u32,
    },
    /// Inner box row shorter than the swizzle span: legal, but where its bytes go is documented nowhere.
    #[error(
        "the inner row of the box has {bytes} bytes, less than the span of swizzle {swizzle:?}, {span}; the simulator \
         knows no layout for that"
    )]
    PartialSpan {
        /// Bytes of the inner row.
        bytes: u32,
        /// Swizzle.
        swizzle: TensorMapSwizzle,
        /// Its span in bytes.
        span: u32,
    },
    /// NaN fill of integers.
    #[error("NaN fill is for floating-point elements, not {element:?}")]
    NanFill {
        /// Element type.
        element: TensorMapElement,
    },
    /// The tensor ends beyond the address space.
    #[error("the tensor's last byte is beyond the 64-bit address space")]
    AddressOverflow,
    /// Never encoded: uninitialised memory, or another object.
    #[error("these 128 bytes are not a tensor map")]
    NotATensorMap,
    /// Encoded once, changed since.
    #[error("the tensor map's 128 bytes were changed after it was encoded")]
    Corrupted,
    /// Coordinates of an instruction.
    #[error("{given} coordinates for a tensor map of {rank} dimensions")]
    Coordinates {
        /// Given.
        given: usize,
        /// Dimensions.
        rank: usize,
    },
    /// Innermost coordinate of an instruction.
    #[error(
        "the innermost coordinate, {coordinate}, is {bytes} bytes from the tensor's first element; it must be a multiple of \
         16 bytes"
    )]
    CoordinateAlignment {
        /// Given.
        coordinate: i32,
        /// Times the element's size.
        bytes: i64,
    },
    /// Coordinates of a store or reduction.
    #[error("coordinate {coordinate} in dimension {dimension}: only loads may begin before the tensor's first element")]
    StoreBefore {
        /// Which.
        dimension: usize,
        /// Given.
        coordinate: i32,
    },
    /// Shared-memory address of an instruction.
    #[error("the box's shared-memory address {shared:#x} is not a multiple of 128")]
    SharedAlignment {
        /// Given.
        shared: u32,
    },
}

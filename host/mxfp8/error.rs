//! What can be wrong with the sizes of an MXFP8 matrix.

use thiserror::Error;

use crate::projection::ElementType;

/// Sizes that make no MXFP8 matrix.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Mxfp8Error {
    /// K has a part of a scale group.
    #[error("K is {given}; a positive multiple of {wanted} is wanted: pad both operands with zeros along K")]
    InnerDimension {
        /// K.
        given: usize,
        /// The multiple.
        wanted: usize,
    },
    /// Rows overlap.
    #[error("the row stride is {given} elements; at least K = {k} is wanted: rows must not overlap")]
    RowStride {
        /// Elements from one row to the next.
        given: usize,
        /// K.
        k: usize,
    },
    /// A slice has not the length of its shape.
    #[error(
        "{what} have length {given}; {wanted} is wanted for {rows} rows and K = {k}: check the shape and the slice"
    )]
    Length {
        /// Which slice.
        what: &'static str,
        /// Its length.
        given: usize,
        /// The shape's.
        wanted: usize,
        /// Rows.
        rows: usize,
        /// K.
        k: usize,
    },
    /// Activations that are not BF16.
    #[error("the activations are {given}; BF16 is wanted: convert them before they are quantised")]
    ElementType {
        /// Their type.
        given: ElementType,
    },
    /// The room was made for another K.
    #[error("the activations have K = {given}; {wanted} is wanted, for which the room was made: make room for this K")]
    Columns {
        /// Their columns.
        given: u64,
        /// The room's.
        wanted: u32,
    },
    /// More rows than there is room for.
    #[error("the activations have {given} rows; there is room for {room}: make room for more")]
    Rows {
        /// Their rows.
        given: u64,
        /// The room's.
        room: u32,
    },
    /// No rows.
    #[error("0 rows; at least 1 is wanted: skip the call when there are no tokens")]
    NoRows,
    /// Groups without rows.
    #[error("groups of 0 rows; at least 1 is wanted: pass the rows of a tile, 128, 224 or 256")]
    NoRowsInGroup,
    /// The matrix is beyond the kernels' 32-bit sizes.
    #[error("{what} is {given}; at most {limit} is wanted: split the matrix by rows")]
    TooLarge {
        /// Which size.
        what: &'static str,
        /// The size.
        given: usize,
        /// Largest.
        limit: u32,
    },
}

//! What can be wrong with the sizes of an MXFP8 matrix.

use thiserror::Error;

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

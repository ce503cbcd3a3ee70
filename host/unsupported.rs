//! Why a call cannot run.

use thiserror::Error;

use crate::driver::DevicePtr;
use crate::projection::ElementType;

/// The reason why a call cannot run. Nothing has been enqueued when one is returned.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Unsupported {
    /// M is zero.
    #[error("the input x has 0 rows; at least 1 is wanted: skip the call when there are no tokens")]
    NoRows,
    /// M is beyond the workspace.
    #[error("the input x has {given} rows; the workspace was made for at most {wanted}: create it with a larger max_m")]
    RowsOverCapacity {
        /// M.
        given: u64,
        /// The workspace's `max_m`.
        wanted: u64,
    },
    /// N is zero or no multiple of the tile.
    #[error(
        "the weight has N = {given} rows; a positive multiple of {wanted} is wanted: pad the weight's rows, or use the \
         unfused path"
    )]
    ColumnsNotMultiple {
        /// N.
        given: u64,
        /// The multiple.
        wanted: u64,
    },
    /// N is beyond the workspace.
    #[error(
        "the weight has N = {given} rows; the workspace was made for at most {wanted}: create it with a larger max_n"
    )]
    ColumnsOverCapacity {
        /// N.
        given: u64,
        /// The workspace's `max_n`.
        wanted: u64,
    },
    /// K is zero, no multiple of a pipeline stage, or more than a tensor map can say.
    #[error(
        "the weight has K = {given} columns on this rank; a positive multiple of {multiple} up to {limit} is wanted: \
         choose a rank count that cuts K into such parts, or pad K with zeros"
    )]
    InnerNotMultiple {
        /// K on this rank.
        given: u64,
        /// The multiple.
        multiple: u64,
        /// The largest K.
        limit: u64,
    },
    /// X and W disagree on K.
    #[error("the input x has K = {given} columns; {wanted} are wanted, as the weight has: pass both cut for this rank")]
    InnerMismatch {
        /// X's columns.
        given: u64,
        /// W's columns.
        wanted: u64,
    },
    /// The output has another shape than the result.
    #[error(
        "the output is [{}, {}]; [{}, {}] is wanted for {mode}: allocate it for this M, N and mode",
        given.0, given.1, wanted.0, wanted.1
    )]
    OutputShape {
        /// The output's rows and columns.
        given: (u64, u64),
        /// The result's rows and columns.
        wanted: (u64, u64),
        /// The collective, in words.
        mode: &'static str,
    },
    /// A matrix is not BF16.
    #[error("{matrix} is {given}; {wanted} is wanted: convert it, or use the unfused path")]
    ElementType {
        /// Which matrix.
        matrix: &'static str,
        /// Its type.
        given: ElementType,
        /// The type that runs.
        wanted: ElementType,
    },
    /// An address is zero.
    #[error("{matrix} has a null address; an address of device memory is wanted: pass the allocation's address")]
    NullPointer {
        /// Which matrix.
        matrix: &'static str,
    },
    /// An address is not aligned.
    #[error(
        "{matrix} starts at {given:#x}; a multiple of {wanted} bytes is wanted: copy it to an aligned allocation, or \
         start the view at an aligned element"
    )]
    MisalignedPointer {
        /// Which matrix.
        matrix: &'static str,
        /// Its address.
        given: DevicePtr,
        /// The alignment.
        wanted: u64,
    },
    /// Rows overlap.
    #[error(
        "{matrix} has rows {given} elements apart; at least {wanted} are wanted, its number of columns: pass the \
         stride in elements"
    )]
    RowStrideTooSmall {
        /// Which matrix.
        matrix: &'static str,
        /// Its row stride in elements.
        given: u64,
        /// Its columns.
        wanted: u64,
    },
    /// Rows after the first are not aligned.
    #[error("{matrix} has rows {given} elements apart; a multiple of {wanted} elements is wanted: pad its rows")]
    RowStrideNotMultiple {
        /// Which matrix.
        matrix: &'static str,
        /// Its row stride in elements.
        given: u64,
        /// The multiple.
        wanted: u64,
    },
    /// The row stride is more than a tensor map or the kernels can say.
    #[error("{matrix} has rows {given} elements apart; fewer than {limit} are wanted: pack the rows closer")]
    RowStrideTooLarge {
        /// Which matrix.
        matrix: &'static str,
        /// Its row stride in elements.
        given: u64,
        /// The exclusive limit.
        limit: u64,
    },
    /// The last element lies further away than addresses or the kernels' index arithmetic reach.
    #[error(
        "{matrix} spans {rows} rows of {row_stride} elements; fewer than {limit} elements in all are wanted: split the \
         call by rows, or pack the rows closer"
    )]
    SizeOverflow {
        /// Which matrix.
        matrix: &'static str,
        /// Its rows.
        rows: u64,
        /// Its row stride in elements.
        row_stride: u64,
        /// The exclusive limit in elements.
        limit: u64,
    },
}

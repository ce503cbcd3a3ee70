//! Why a call cannot run.

use thiserror::Error;

use plan::kernels::OperandType;

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
    /// The weight has a type that no kernel multiplies.
    #[error("the weight is {given}; BF16 or F8_E4M3 is wanted: convert it, or use the unfused path")]
    WeightType {
        /// Its type.
        given: ElementType,
    },
    /// The cost model finds no kernel, because the extents are beyond what tensor maps or ready words can say.
    #[error("no kernel takes a call of this size: split it by rows")]
    NoKernel,
    /// The kernel that the configuration names does not take this call.
    #[error(
        "the kernel {name}, which the configuration names, {}; name another, or none to have one chosen", 
        forced_problem(*operands, *max_rows)
    )]
    ForcedKernel {
        /// The kernel.
        name: &'static str,
        /// Its operand type.
        operands: OperandType,
        /// Most rows that it takes, if the call has more.
        max_rows: Option<u32>,
    },
    /// An MXFP8 matrix comes without scales.
    #[error(
        "{matrix} is F8_E4M3 without scales; one E8M0 scale for every 32 elements along K is wanted: pass them with the \
         matrix, in the 128x4 layout"
    )]
    ScalesMissing {
        /// Which matrix.
        matrix: &'static str,
    },
    /// The forced kernel needs the weight's scales in another layout.
    #[error(
        "the kernel {name} wants the weight's scales in groups of 224 rows, and they are given in groups of 128 only: \
         repack them with mxfp8::repack_scales_in_groups, or name another kernel"
    )]
    GroupedScalesMissing {
        /// The kernel.
        name: &'static str,
    },
    /// A BF16 matrix comes with scales.
    #[error(
        "{matrix} is BF16 and has scales; none are wanted: leave them out, or pass the F8_E4M3 matrix they belong to"
    )]
    ScalesUnexpected {
        /// Which matrix.
        matrix: &'static str,
    },
    /// Scales do not fill their layout.
    #[error(
        "{scales} have {given} bytes; {wanted} are wanted for {rows} rows and K = {k}: one byte for every 32 elements, \
         with the rows padded to whole groups"
    )]
    ScaleBytes {
        /// Which scales.
        scales: &'static str,
        /// Their size.
        given: u64,
        /// The layout's size.
        wanted: u64,
        /// Rows of the matrix.
        rows: u64,
        /// Columns of the matrix.
        k: u64,
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

fn forced_problem(operands: OperandType, max_rows: Option<u32>) -> String {
    match max_rows {
        Some(rows) => format!("takes at most {rows} rows"),
        None => format!("multiplies {operands:?} operands only"),
    }
}

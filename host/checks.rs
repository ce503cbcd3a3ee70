//! The checks that come before a launch: every property that the kernels, the tensor maps or the workspace demand.

use plan::arguments::Mode;
use plan::kernels::OperandType;
use plan::schedule::shard_rows;
use plan::shared_memory::SCALE_GROUP_BYTES;

use crate::projection::{DeviceMatrix, DeviceScales, ElementType, Input, Output, Projection};
use crate::unsupported::Unsupported;
use crate::workspace::Capacity;

/// Alignment of addresses and of row strides, in bytes: what TMA and 16-byte accesses need.
pub const ALIGNMENT_BYTES: u64 = 16;
/// Bytes of a BF16 element.
pub(crate) const BF16_BYTES: u64 = 2;
/// Rows of a group of scales.
const SCALE_GROUP_ROWS: u64 = plan::kernels::SCALE_ROWS as u64;
/// Columns of the widest tile whose scales need groups of their own.
pub(crate) const GROUPED_ROWS: u64 = 224;
/// Columns of the result come in multiples of this.
pub const COLUMN_MULTIPLE: u64 = 128;
/// Strides of a tensor map are below this many bytes.
const TENSOR_MAP_STRIDE_LIMIT_BYTES: u64 = 1 << 40;

/// Sizes of a call that passed every check, in the types that the kernels use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CheckedCall {
    pub operands: OperandType,
    pub m: u32,
    pub n: u32,
    pub k: u32,
    pub output_row_stride: u32,
}

/// The collective in words.
pub(crate) fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::ReduceScatter => "reduce-scatter",
        Mode::AllReduce => "all-reduce",
    }
}

/// Checks the constant part of a layer; its operand type.
pub(crate) fn check_projection(capacity: Capacity, projection: &Projection) -> Result<OperandType, Unsupported> {
    let weight = &projection.weight;
    let operands = match weight.element_type {
        ElementType::Bf16 => OperandType::Bf16,
        ElementType::F8E4M3 => OperandType::Mxfp8,
        given => return Err(Unsupported::WeightType { given }),
    };
    if weight.rows == 0 || !weight.rows.is_multiple_of(COLUMN_MULTIPLE) {
        return Err(Unsupported::ColumnsNotMultiple { given: weight.rows, wanted: COLUMN_MULTIPLE });
    }
    if weight.rows > u64::from(capacity.max_n) {
        return Err(Unsupported::ColumnsOverCapacity { given: weight.rows, wanted: capacity.max_n.into() });
    }
    let stage = u64::from(operands.stage_k());
    // The kernels count K in 32 bits.
    let limit = u64::from(u32::MAX) / stage * stage;
    if weight.columns == 0 || !weight.columns.is_multiple_of(stage) || weight.columns > limit {
        return Err(Unsupported::InnerNotMultiple { given: weight.columns, multiple: stage, limit });
    }
    check_placement("the weight", weight)?;
    check_tensor_map("the weight", weight)?;
    match (operands, &projection.scales) {
        (OperandType::Bf16, None) => {}
        (OperandType::Bf16, Some(_)) => return Err(Unsupported::ScalesUnexpected { matrix: "the weight" }),
        (OperandType::Mxfp8, None) => return Err(Unsupported::ScalesMissing { matrix: "the weight" }),
        (OperandType::Mxfp8, Some(scales)) => {
            let groups = weight.rows.div_ceil(SCALE_GROUP_ROWS);
            check_scales("the weight's scales", &scales.groups_of_128, groups, weight)?;
            if let Some(grouped) = &scales.groups_of_224 {
                let groups = weight.rows.div_ceil(GROUPED_ROWS) * GROUPED_ROWS.div_ceil(SCALE_GROUP_ROWS);
                check_scales("the weight's scales in groups of 224", grouped, groups, weight)?;
            }
        }
    }
    Ok(operands)
}

/// Checks a whole call and gives its sizes.
pub(crate) fn check_call(
    capacity: Capacity,
    ranks: u32,
    mode: Mode,
    projection: &Projection,
    input: &Input,
    output: &Output,
) -> Result<CheckedCall, Unsupported> {
    let operands = check_projection(capacity, projection)?;
    let (weight, x, y) = (&projection.weight, &input.x, &output.y);
    check_element_type("the input x", x, weight.element_type)?;
    if x.rows == 0 {
        return Err(Unsupported::NoRows);
    }
    if x.rows > u64::from(capacity.max_m) {
        return Err(Unsupported::RowsOverCapacity { given: x.rows, wanted: capacity.max_m.into() });
    }
    if x.columns != weight.columns {
        return Err(Unsupported::InnerMismatch { given: x.columns, wanted: weight.columns });
    }
    check_placement("the input x", x)?;
    check_tensor_map("the input x", x)?;
    match (operands, &input.scales) {
        (OperandType::Bf16, None) => {}
        (OperandType::Bf16, Some(_)) => return Err(Unsupported::ScalesUnexpected { matrix: "the input x" }),
        (OperandType::Mxfp8, None) => return Err(Unsupported::ScalesMissing { matrix: "the input x" }),
        (OperandType::Mxfp8, Some(scales)) => {
            check_scales("the scales of the input x", scales, x.rows.div_ceil(SCALE_GROUP_ROWS), x)?;
        }
    }

    check_element_type("the output", y, ElementType::Bf16)?;
    // The capacity is within u32, so M and N now are too.
    let (m, n, k) = (x.rows as u32, weight.rows as u32, weight.columns as u32);
    let rows = match mode {
        Mode::ReduceScatter => shard_rows(m, ranks),
        Mode::AllReduce => m,
    };
    let wanted = (u64::from(rows), u64::from(n));
    if (y.rows, y.columns) != wanted {
        return Err(Unsupported::OutputShape { given: (y.rows, y.columns), wanted, mode: mode_name(mode) });
    }
    check_placement("the output", y)?;
    // The kernel finds an output element by a 32-bit index.
    check_span("the output", y, 1 << 32)?;
    Ok(CheckedCall { operands, m, n, k, output_row_stride: y.row_stride as u32 })
}

fn check_element_type(name: &'static str, matrix: &DeviceMatrix, wanted: ElementType) -> Result<(), Unsupported> {
    if matrix.element_type == wanted {
        Ok(())
    } else {
        Err(Unsupported::ElementType { matrix: name, given: matrix.element_type, wanted })
    }
}

/// Checks scales of `groups` groups of rows.
fn check_scales(
    name: &'static str,
    scales: &DeviceScales,
    groups: u64,
    matrix: &DeviceMatrix,
) -> Result<(), Unsupported> {
    if scales.address == 0 {
        return Err(Unsupported::NullPointer { matrix: name });
    }
    if !scales.address.is_multiple_of(ALIGNMENT_BYTES) {
        return Err(Unsupported::MisalignedPointer { matrix: name, given: scales.address, wanted: ALIGNMENT_BYTES });
    }
    // K is a multiple of a stage here, and fits 32 bits, as does the number of groups.
    let wanted = groups * (matrix.columns / u64::from(OperandType::Mxfp8.stage_k())) * u64::from(SCALE_GROUP_BYTES);
    if scales.bytes != wanted {
        let (given, rows, k) = (scales.bytes, matrix.rows, matrix.columns);
        return Err(Unsupported::ScaleBytes { scales: name, given, wanted, rows, k });
    }
    Ok(())
}

pub(crate) fn check_placement(name: &'static str, matrix: &DeviceMatrix) -> Result<(), Unsupported> {
    if matrix.address == 0 {
        return Err(Unsupported::NullPointer { matrix: name });
    }
    if !matrix.address.is_multiple_of(ALIGNMENT_BYTES) {
        return Err(Unsupported::MisalignedPointer { matrix: name, given: matrix.address, wanted: ALIGNMENT_BYTES });
    }
    if matrix.row_stride < matrix.columns {
        return Err(Unsupported::RowStrideTooSmall { matrix: name, given: matrix.row_stride, wanted: matrix.columns });
    }
    let wanted = ALIGNMENT_BYTES / matrix.element_type.bytes();
    if !matrix.row_stride.is_multiple_of(wanted) {
        return Err(Unsupported::RowStrideNotMultiple { matrix: name, given: matrix.row_stride, wanted });
    }
    Ok(())
}

fn check_tensor_map(name: &'static str, matrix: &DeviceMatrix) -> Result<(), Unsupported> {
    let element_bytes = matrix.element_type.bytes();
    let limit = TENSOR_MAP_STRIDE_LIMIT_BYTES / element_bytes;
    if matrix.row_stride >= limit {
        return Err(Unsupported::RowStrideTooLarge { matrix: name, given: matrix.row_stride, limit });
    }
    // The end of the matrix is still an address.
    check_span(name, matrix, (u64::MAX - matrix.address) / element_bytes)
}

/// Checks that all rows together span fewer than `limit` elements.
fn check_span(name: &'static str, matrix: &DeviceMatrix, limit: u64) -> Result<(), Unsupported> {
    match matrix.rows.checked_mul(matrix.row_stride) {
        Some(span) if span < limit => Ok(()),
        _ => Err(Unsupported::SizeOverflow { matrix: name, rows: matrix.rows, row_stride: matrix.row_stride, limit }),
    }
}

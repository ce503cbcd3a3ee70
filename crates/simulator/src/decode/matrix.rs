//! `ldmatrix`, `stmatrix` and `mma.sync` (PTX ISA, "Warp Level Matrix Multiply-Accumulate Instructions").

use super::form::Form;
use super::space::take_space_of;
use super::target::Needs;
use crate::number::NarrowFloat;
use crate::program::{LoadMatrix, LoadMatrixShape, Operation, PackedBits, StateSpace, StoreMatrix, WarpMma};
use crate::ptx::PtxError;
use crate::ptx::ast::{Operand, OperandKind, Type};
use crate::tcgen05::{AccumulatorFormat, OperandFormat};

const NUMBERS: [(&str, usize); 3] = [(".x1", 1), (".x2", 2), (".x4", 4)];

fn sync_aligned(form: &mut Form<'_, '_>) -> Result<(), PtxError> {
    form.require(".sync")?;
    form.require(".aligned")
}

/// The element type of matrices of bytes; where `plain` is false they must be packed in memory.
fn packed_bits(form: &mut Form<'_, '_>, plain: bool) -> Result<PackedBits, PtxError> {
    if plain && form.has(".b8") {
        return Ok(PackedBits::Eight);
    }
    form.require(".b8x16")?;
    let formats = [(".b6x16_p32", PackedBits::Six), (".b4x16_p64", PackedBits::Four)];
    form.choose_required("a source format", &formats)
}

/// Registers in braces; a single one may stand without.
fn vector<'a>(form: &Form<'_, 'a>, operand: &'a Operand<'a>, count: usize) -> Result<&'a [Operand<'a>], PtxError> {
    match operand.kind {
        OperandKind::Vector(_) => form.exact_elements(operand, count),
        OperandKind::Name(_) if count == 1 => form.exact_elements(operand, 1),
        _ => Err(form.wrong_operand(operand, &format!("a vector of {count}"))),
    }
}

pub(super) fn load(form: &mut Form<'_, '_>) -> Result<Operation, PtxError> {
    sync_aligned(form)?;
    let shapes = [(".m8n8", (8, 8)), (".m8n16", (8, 16)), (".m16n16", (16, 16))];
    let (rows, columns) = form.choose_required("a shape", &shapes)?;
    let number = form.choose_required("a number of matrices", &NUMBERS)?;
    let transpose = form.has(".trans");
    let space = take_space_of(form, &[StateSpace::SharedCta]);
    let shape = match (rows, columns) {
        (8, 8) => {
            form.require(".b16")?;
            LoadMatrixShape::Halves8x8
        }
        (8, _) => {
            form.needs(Needs::SM100A)?;
            if transpose {
                return Err(form.missing("no `.trans` with `.m8n16`"));
            }
            LoadMatrixShape::Bytes8x16(packed_bits(form, false)?)
        }
        _ => {
            form.needs(Needs::SM100A)?;
            if !transpose || number > 2 {
                return Err(form.missing("`.trans`, and one or two matrices, with `.m16n16`"));
            }
            LoadMatrixShape::Bytes16x16(packed_bits(form, true)?)
        }
    };
    let [destinations, address] = form.exactly()?;
    let destinations = vector(form, destinations, number * rows / 8)?;
    Ok(Operation::LoadMatrix(LoadMatrix {
        space,
        shape,
        transpose,
        destinations: destinations.iter().map(|e| form.register(e, Type::B32)).collect::<Result<_, _>>()?,
        address: form.address(address, space)?,
    }))
}

pub(super) fn store(form: &mut Form<'_, '_>) -> Result<Operation, PtxError> {
    form.needs(Needs::SM90)?;
    sync_aligned(form)?;
    let bytes = form.choose_required("a shape", &[(".m8n8", false), (".m16n8", true)])?;
    let number = form.choose_required("a number of matrices", &NUMBERS)?;
    let transpose = form.has(".trans");
    let space = take_space_of(form, &[StateSpace::SharedCta]);
    if bytes {
        form.needs(Needs::SM100A)?;
        if !transpose {
            return Err(form.missing("`.trans` with `.m16n8`"));
        }
    }
    form.require(if bytes { ".b8" } else { ".b16" })?;
    let [address, sources] = form.exactly()?;
    let sources = vector(form, sources, number)?;
    Ok(Operation::StoreMatrix(StoreMatrix {
        space,
        bytes,
        transpose,
        sources: sources.iter().map(|e| form.source(e, Type::B32)).collect::<Result<_, _>>()?,
        address: form.address(address, space)?,
    }))
}

/// Element types of A and B, by modifier.
pub(super) const OPERAND_FORMATS: [(&str, OperandFormat); 7] = [
    (".f16", OperandFormat::F16),
    (".bf16", OperandFormat::Bf16),
    (".tf32", OperandFormat::Tf32),
    (".e4m3", OperandFormat::Narrow(NarrowFloat::E4m3)),
    (".e5m2", OperandFormat::Narrow(NarrowFloat::E5m2)),
    (".s8", OperandFormat::S8),
    (".u8", OperandFormat::U8),
];

/// Element types of C and D, by modifier.
pub(super) const ACCUMULATOR_FORMATS: [(&str, AccumulatorFormat); 3] =
    [(".f32", AccumulatorFormat::F32), (".f16", AccumulatorFormat::F16), (".s32", AccumulatorFormat::S32)];

pub(super) fn mma(form: &mut Form<'_, '_>) -> Result<Operation, PtxError> {
    form.require(".sync")?;
    form.require(".aligned")?;
    let Some(k) = form.choose(&[(".m16n8k4", 4), (".m16n8k8", 8), (".m16n8k16", 16), (".m16n8k32", 32)]) else {
        return Err(form.unsupported(": only the shapes .m16n8k4, .m16n8k8, .m16n8k16 and .m16n8k32"));
    };
    form.require(".row")?;
    form.require(".col")?;
    let saturate = form.has(".satfinite");
    let accumulator = form.choose_required("the type of D", &ACCUMULATOR_FORMATS)?;
    let Some(a_format) = form.choose(&OPERAND_FORMATS) else {
        return Err(form.unsupported(": only f16, bf16, tf32, e4m3, e5m2, s8 and u8 operands"));
    };
    let b_format = form.choose_required("the type of B", &OPERAND_FORMATS)?;
    let c_format = form.choose_required("the type of C", &ACCUMULATOR_FORMATS)?;
    if c_format != accumulator {
        return Err(form.unsupported(": C and D of different types"));
    }
    check(form, k, a_format, b_format, accumulator)?;
    if saturate && accumulator != AccumulatorFormat::S32 {
        return Err(form.missing("integer types with `.satfinite`"));
    }
    let elements = a_format.elements_per_16_bytes() / 4;
    let b_registers = (k / (4 * elements)) as usize;
    let (d_registers, d_type) = match accumulator {
        AccumulatorFormat::F32 => (4, Type::F32),
        AccumulatorFormat::F16 => (2, Type::B32),
        AccumulatorFormat::S32 => (4, Type::S32),
    };
    let [d, a, b, c] = form.exactly()?;
    let (d, a) = (vector(form, d, d_registers)?, vector(form, a, 2 * b_registers)?);
    let (b, c) = (vector(form, b, b_registers)?, vector(form, c, d_registers)?);
    Ok(Operation::WarpMma(WarpMma {
        k,
        a_format,
        b_format,
        accumulator,
        saturate,
        destinations: d.iter().map(|e| form.register(e, d_type)).collect::<Result<_, _>>()?,
        a: a.iter().map(|e| form.source(e, Type::B32)).collect::<Result<_, _>>()?,
        b: b.iter().map(|e| form.source(e, Type::B32)).collect::<Result<_, _>>()?,
        c: c.iter().map(|e| form.source(e, d_type)).collect::<Result<_, _>>()?,
    }))
}

/// The combinations of shape and types that exist (PTX ISA, "mma").
fn check(
    form: &Form<'_, '_>,
    k: u32,
    a: OperandFormat,
    b: OperandFormat,
    accumulator: AccumulatorFormat,
) -> Result<(), PtxError> {
    use AccumulatorFormat as D;
    use OperandFormat as F;
    let exists = match (a, b) {
        (F::F16, F::F16) => matches!((k, accumulator), (8 | 16, D::F16 | D::F32)),
        (F::Bf16, F::Bf16) => matches!((k, accumulator), (8 | 16, D::F32)),
        (F::Tf32, F::Tf32) => matches!((k, accumulator), (4 | 8, D::F32)),
        (F::Narrow(_), F::Narrow(_)) => matches!((k, accumulator), (16 | 32, D::F16 | D::F32)),
        (F::S8 | F::U8, F::S8 | F::U8) => matches!((k, accumulator), (16 | 32, D::S32)),
        _ => false,
    };
    if !exists {
        return Err(form.missing("a combination of shape and types that mma has"));
    }
    form.needs(if matches!(a, F::Narrow(_)) { Needs::SM89 } else { Needs::SM80 })
}

//! `wgmma.*` (PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions").

use super::form::Form;
use super::matrix::{ACCUMULATOR_FORMATS, OPERAND_FORMATS};
use super::target::Needs;
use crate::program::{Instruction, Operation, Wgmma, WgmmaMma, WgmmaOperand};
use crate::ptx::PtxError;
use crate::ptx::ast::{Operand, OperandKind, Type};
use crate::tcgen05::{AccumulatorFormat, Major, OperandField, OperandFormat};

pub(super) fn decode(form: &mut Form<'_, '_>) -> Result<Operation, PtxError> {
    form.needs(Needs::WGMMA)?;
    let first = form.peek();
    form.has(first);
    form.require(".sync")?;
    form.require(".aligned")?;
    let wgmma = match first {
        ".fence" => {
            form.exactly::<0>()?;
            Wgmma::Fence
        }
        ".commit_group" => {
            form.exactly::<0>()?;
            Wgmma::CommitGroup
        }
        ".wait_group" => {
            let [pending] = form.exactly()?;
            let pending = form.immediate(pending, "the number of groups", 0..=7)? as u32;
            Wgmma::WaitGroup { pending, accumulators: Vec::new() }
        }
        ".mma_async" => Wgmma::Mma(mma(form)?),
        _ => return Err(form.unknown()),
    };
    Ok(Operation::Wgmma(wgmma))
}

/// `.m64nNkK`.
fn shape(form: &mut Form<'_, '_>) -> Result<(u32, u32), PtxError> {
    if form.has(".sp") {
        return Err(form.unsupported(": sparse operands"));
    }
    let text = form.peek();
    let parts = text.strip_prefix(".m64n").and_then(|rest| rest.split_once('k'));
    let numbers = parts.and_then(|(n, k)| Some((n.parse().ok()?, k.parse().ok()?)));
    let Some((n, k)) = numbers else { return Err(form.missing("a shape such as `.m64n128k16`")) };
    form.has(text);
    Ok((n, k))
}

fn mma(form: &mut Form<'_, '_>) -> Result<WgmmaMma, PtxError> {
    let (n, k) = shape(form)?;
    let saturate = form.has(".satfinite");
    let accumulator = form.choose_required("the type of D", &ACCUMULATOR_FORMATS)?;
    let Some(a_format) = form.choose(&OPERAND_FORMATS) else {
        return Err(form.unsupported(": only f16, bf16, tf32, e4m3, e5m2, s8 and u8 operands"));
    };
    let b_format = form.choose_required("the type of B", &OPERAND_FORMATS)?;
    check(form, (n, k), a_format, b_format, accumulator)?;
    if saturate && accumulator != AccumulatorFormat::S32 {
        return Err(form.missing("integer types with `.satfinite`"));
    }
    let integer = accumulator == AccumulatorFormat::S32;
    let transposable = a_format.bits() == 16;
    let operands = form.operands(4, 8)?;
    let in_registers = matches!(operands[1].kind, OperandKind::Vector(_));
    // d, a, b, scale-d; then the signs of A and B, and the major-ness of those that are in shared memory.
    let wanted = 4 + if integer { 0 } else { 2 } + if transposable { 2 - usize::from(in_registers) } else { 0 };
    form.operands(wanted, wanted)?;
    let mut field_a = OperandField { format: a_format, negate: false, major: Major::K, scale_id: 0 };
    let mut field_b = OperandField { format: b_format, ..field_a };
    if !integer {
        field_a.negate = negates(form, &operands[4], "imm-scale-a")?;
        field_b.negate = negates(form, &operands[5], "imm-scale-b")?;
    }
    if transposable {
        if !in_registers {
            field_a.major = major(form, &operands[6], "imm-trans-a")?;
        }
        field_b.major = major(form, &operands[wanted - 1], "imm-trans-b")?;
    }
    let (registers, ty) = match accumulator {
        AccumulatorFormat::F32 => (n / 2, Type::F32),
        AccumulatorFormat::F16 => (n / 4, Type::B32),
        AccumulatorFormat::S32 => (n / 2, Type::S32),
    };
    let d = form.exact_elements(&operands[0], registers as usize)?;
    let a = if in_registers {
        let registers = form.exact_elements(&operands[1], 4)?;
        WgmmaOperand::Registers(registers.iter().map(|e| form.source(e, Type::B32)).collect::<Result<_, _>>()?)
    } else {
        WgmmaOperand::Descriptor(form.source(&operands[1], Type::B64)?)
    };
    Ok(WgmmaMma {
        n,
        k,
        a_field: field_a,
        b_field: field_b,
        accumulator,
        saturate,
        destinations: d.iter().map(|e| form.register(e, ty)).collect::<Result<_, _>>()?,
        previous: d.iter().map(|e| form.source(e, ty)).collect::<Result<_, _>>()?,
        a,
        b: form.source(&operands[2], Type::B64)?,
        scale_d: form.predicate_source(&operands[3])?,
    })
}

fn negates<'a>(form: &Form<'_, 'a>, operand: &Operand<'a>, what: &str) -> Result<bool, PtxError> {
    // -1 comes back as the two's complement.
    match form.immediate(operand, what, -1..=1)? {
        1 => Ok(false),
        0 => Err(PtxError::OutOfRange { what: what.into(), allowed: "-1 or 1".into(), at: operand.span.into() }),
        _ => Ok(true),
    }
}

fn major<'a>(form: &Form<'_, 'a>, operand: &Operand<'a>, what: &str) -> Result<Major, PtxError> {
    Ok(if form.immediate(operand, what, 0..=1)? == 0 { Major::K } else { Major::Mn })
}

/// The combinations of shape and types that exist (PTX ISA, "wgmma.mma_async" and "Matrix Shape").
fn check(
    form: &Form<'_, '_>,
    (n, k): (u32, u32),
    a: OperandFormat,
    b: OperandFormat,
    accumulator: AccumulatorFormat,
) -> Result<(), PtxError> {
    use AccumulatorFormat as D;
    use OperandFormat as F;
    let types = match (a, b) {
        (F::F16, F::F16) => k == 16 && accumulator != D::S32,
        (F::Bf16, F::Bf16) => k == 16 && accumulator == D::F32,
        (F::Tf32, F::Tf32) => k == 8 && accumulator == D::F32,
        (F::Narrow(_), F::Narrow(_)) => k == 32 && accumulator != D::S32,
        (F::S8 | F::U8, F::S8 | F::U8) => k == 32 && accumulator == D::S32,
        _ => false,
    };
    // Integer products have fewer widths past 32.
    let step = if accumulator == D::S32 && n > 32 { 16 } else { 8 };
    if types && (8..=256).contains(&n) && n % step == 0 {
        Ok(())
    } else {
        Err(form.missing("a combination of shape and types that wgmma.mma_async has"))
    }
}

/// Tells each wait which registers `mma_async` may still write before it.
pub(super) fn extend_waits(instructions: &mut [Instruction]) {
    let mut written = Vec::new();
    for instruction in &*instructions {
        if let Operation::Wgmma(Wgmma::Mma(mma)) = &instruction.operation {
            written.extend(mma.destinations.iter().map(|register| register.0));
        }
    }
    written.sort_unstable();
    written.dedup();
    for instruction in instructions {
        if let Operation::Wgmma(Wgmma::WaitGroup { accumulators, .. }) = &mut instruction.operation {
            let register = |&slot| crate::program::Operand::Register(crate::program::Register(slot));
            *accumulators = written.iter().map(register).collect();
        }
    }
}

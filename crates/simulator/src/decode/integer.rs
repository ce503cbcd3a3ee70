//! Integer arithmetic.

use super::form::Form;
use super::target::Needs;
use crate::program::{
    DotProductForm, IntegerOperation, IntegerType, IntegerUnaryOperation, MultiplyAddPart, ScalarInstruction,
};
use crate::ptx::PtxError;
use crate::ptx::ast::Type;

pub(super) const ALL: [Type; 6] = [Type::U16, Type::S16, Type::U32, Type::S32, Type::U64, Type::S64];
const WITH_PAIRS: [Type; 8] =
    [Type::U16, Type::S16, Type::U32, Type::S32, Type::U64, Type::S64, Type::U16x2, Type::S16x2];
const WORDS: [Type; 2] = [Type::U32, Type::S32];
const WORDS_AND_LONGS: [Type; 4] = [Type::U32, Type::S32, Type::U64, Type::S64];

/// The arithmetic type of a PTX integer type.
pub(super) fn kind(ty: Type) -> IntegerType {
    match ty {
        Type::U16 => IntegerType::U16,
        Type::S16 => IntegerType::S16,
        Type::U32 => IntegerType::U32,
        Type::U64 => IntegerType::U64,
        Type::S64 => IntegerType::S64,
        Type::U16x2 => IntegerType::U16x2,
        Type::S16x2 => IntegerType::S16x2,
        _ => IntegerType::S32,
    }
}

fn is_pair(ty: Type) -> bool {
    matches!(ty, Type::U16x2 | Type::S16x2)
}

fn binary(
    form: &mut Form<'_, '_>,
    operation: IntegerOperation,
    ty: Type,
    result: Type,
) -> Result<ScalarInstruction, PtxError> {
    let [destination, left, right] = form.exactly()?;
    Ok(ScalarInstruction::Integer {
        operation,
        kind: kind(ty),
        destination: form.register(destination, result)?,
        left: form.source(left, ty)?,
        right: form.source(right, ty)?,
    })
}

/// `add`, `sub`, and their forms with the carry flag.
pub(super) fn add_or_subtract(form: &mut Form<'_, '_>) -> Result<ScalarInstruction, PtxError> {
    let opcode = form.instruction.opcode.text;
    let subtract = opcode.starts_with("sub");
    let carry_in = opcode.ends_with('c');
    let carry_out = form.has(".cc");
    if carry_in || carry_out {
        let ty = form.data_type(&WORDS_AND_LONGS)?;
        let [destination, left, right] = form.exactly()?;
        return Ok(ScalarInstruction::Carry {
            subtract,
            carry_in,
            carry_out,
            wide: ty.bits() == 64,
            destination: form.register(destination, ty)?,
            left: form.source(left, ty)?,
            right: form.source(right, ty)?,
        });
    }
    let saturate = form.has(".sat");
    let ty = form.data_type(match (saturate, subtract) {
        (true, _) => &[Type::S32],
        (false, false) => &WITH_PAIRS,
        (false, true) => &ALL,
    })?;
    if is_pair(ty) {
        form.needs(Needs::SM90)?;
    }
    let operation = match (subtract, saturate) {
        (false, false) => IntegerOperation::Add,
        (false, true) => IntegerOperation::AddSaturate,
        (true, false) => IntegerOperation::Subtract,
        (true, true) => IntegerOperation::SubtractSaturate,
    };
    binary(form, operation, ty, ty)
}

/// `mul.{lo,hi,wide}` and `mul24.{lo,hi}`.
pub(super) fn multiply(form: &mut Form<'_, '_>) -> Result<ScalarInstruction, PtxError> {
    use IntegerOperation as O;
    if form.instruction.opcode.text == "mul24" {
        let halves = [(".lo", O::Multiply24Low), (".hi", O::Multiply24High)];
        let operation = form.choose_required("a half", &halves)?;
        let ty = form.data_type(&WORDS)?;
        return binary(form, operation, ty, ty);
    }
    let halves = [(".lo", O::MultiplyLow), (".hi", O::MultiplyHigh), (".wide", O::MultiplyWide)];
    let operation = form.choose_required("a half", &halves)?;
    if operation == O::MultiplyWide {
        let ty = form.data_type(&[Type::U16, Type::S16, Type::U32, Type::S32])?;
        return binary(form, operation, ty, twice(ty));
    }
    let ty = form.data_type(&ALL)?;
    binary(form, operation, ty, ty)
}

fn twice(ty: Type) -> Type {
    match ty {
        Type::U16 => Type::U32,
        Type::S16 => Type::S32,
        Type::U32 => Type::U64,
        _ => Type::S64,
    }
}

/// `mad.{lo,hi,wide}`, `mad24`, `mad.cc` and `madc`.
pub(super) fn multiply_add(form: &mut Form<'_, '_>) -> Result<ScalarInstruction, PtxError> {
    use MultiplyAddPart as P;
    let opcode = form.instruction.opcode.text;
    let short = opcode == "mad24";
    let part = form.choose_required("a half", &[(".lo", P::Low), (".hi", P::High), (".wide", P::Wide)])?;
    let carry_in = opcode == "madc";
    let carry_out = form.has(".cc");
    if carry_in || carry_out {
        if part == P::Wide || short {
            return Err(form.missing("`.lo` or `.hi` with the carry flag"));
        }
        let ty = form.data_type(&WORDS_AND_LONGS)?;
        let [destination, left, right, addend] = form.exactly()?;
        return Ok(ScalarInstruction::MultiplyAddCarry {
            high: part == P::High,
            carry_in,
            carry_out,
            kind: kind(ty),
            destination: form.register(destination, ty)?,
            left: form.source(left, ty)?,
            right: form.source(right, ty)?,
            addend: form.source(addend, ty)?,
        });
    }
    let saturate = form.has(".sat");
    let (part, types): (_, &[Type]) = match (part, short, saturate) {
        (P::High, false, true) => (P::HighSaturate, &[Type::S32]),
        (_, _, true) => return Err(form.unsupported(": `.sat` without `.hi`")),
        (P::Low, true, false) => (P::Low24, &WORDS),
        (P::High, true, false) => (P::High24, &WORDS),
        (_, true, false) => return Err(form.missing("`.lo` or `.hi`")),
        (P::Wide, false, false) => (P::Wide, &[Type::U16, Type::S16, Type::U32, Type::S32]),
        (part, false, false) => (part, &ALL),
    };
    let ty = form.data_type(types)?;
    let result = if part == P::Wide { twice(ty) } else { ty };
    let [destination, left, right, addend] = form.exactly()?;
    Ok(ScalarInstruction::MultiplyAdd {
        part,
        kind: kind(ty),
        destination: form.register(destination, result)?,
        left: form.source(left, ty)?,
        right: form.source(right, ty)?,
        addend: form.source(addend, result)?,
    })
}

/// `sad`.
pub(super) fn absolute_difference(form: &mut Form<'_, '_>) -> Result<ScalarInstruction, PtxError> {
    let ty = form.data_type(&ALL)?;
    let [destination, left, right, addend] = form.exactly()?;
    Ok(ScalarInstruction::MultiplyAdd {
        part: MultiplyAddPart::AbsoluteDifference,
        kind: kind(ty),
        destination: form.register(destination, ty)?,
        left: form.source(left, ty)?,
        right: form.source(right, ty)?,
        addend: form.source(addend, ty)?,
    })
}

/// `dp4a` and `dp2a`.
pub(super) fn dot_product(form: &mut Form<'_, '_>) -> Result<ScalarInstruction, PtxError> {
    let shape = if form.instruction.opcode.text == "dp4a" {
        DotProductForm::Four
    } else {
        let halves = [(".lo", DotProductForm::TwoLow), (".hi", DotProductForm::TwoHigh)];
        form.choose_required("a half", &halves)?
    };
    let left_type = form.data_type(&WORDS)?;
    let right_type = form.data_type(&WORDS)?;
    let signed = left_type == Type::S32 || right_type == Type::S32;
    let result = if signed { Type::S32 } else { Type::U32 };
    let [destination, left, right, addend] = form.exactly()?;
    Ok(ScalarInstruction::DotProduct {
        form: shape,
        left_signed: left_type == Type::S32,
        right_signed: right_type == Type::S32,
        destination: form.register(destination, result)?,
        left: form.source(left, Type::B32)?,
        right: form.source(right, Type::B32)?,
        addend: form.source(addend, result)?,
    })
}

/// `div` and `rem`.
pub(super) fn divide(form: &mut Form<'_, '_>) -> Result<ScalarInstruction, PtxError> {
    let operation =
        if form.instruction.opcode.text == "div" { IntegerOperation::Divide } else { IntegerOperation::Remainder };
    let ty = form.data_type(&ALL)?;
    binary(form, operation, ty, ty)
}

/// `min` and `max`.
pub(super) fn min_or_max(form: &mut Form<'_, '_>) -> Result<ScalarInstruction, PtxError> {
    use IntegerOperation as O;
    let minimum = form.instruction.opcode.text == "min";
    let relu = form.has(".relu");
    let ty = form.data_type(if relu { &[Type::S16x2, Type::S32] } else { &WITH_PAIRS })?;
    if relu || is_pair(ty) {
        form.needs(Needs::SM90)?;
    }
    let operation = match (minimum, relu) {
        (true, false) => O::Minimum,
        (true, true) => O::MinimumRelu,
        (false, false) => O::Maximum,
        (false, true) => O::MaximumRelu,
    };
    binary(form, operation, ty, ty)
}

/// `neg` and `abs`.
pub(super) fn unary(form: &mut Form<'_, '_>) -> Result<ScalarInstruction, PtxError> {
    let operation = if form.instruction.opcode.text == "neg" {
        IntegerUnaryOperation::Negate
    } else {
        IntegerUnaryOperation::Absolute
    };
    let ty = form.data_type(&[Type::S16, Type::S32, Type::S64])?;
    let [destination, source] = form.exactly()?;
    Ok(ScalarInstruction::IntegerUnary {
        operation,
        kind: kind(ty),
        destination: form.register(destination, ty)?,
        source: form.source(source, ty)?,
    })
}

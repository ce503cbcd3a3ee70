//! Logic, shifts and bit fields.

use super::form::Form;
use super::integer::kind;
use crate::program::{
    BitUnaryOperation, LogicOperation, PermuteMode, PredicateSource, ScalarInstruction, ShiftDirection,
};
use crate::ptx::PtxError;
use crate::ptx::ast::Type;

const BITS: [Type; 3] = [Type::B16, Type::B32, Type::B64];
const WORDS_AND_LONGS: [Type; 4] = [Type::U32, Type::S32, Type::U64, Type::S64];

/// `and`, `or`, `xor`, on bits and on predicates.
pub(super) fn logic(form: &mut Form<'_, '_>) -> Result<ScalarInstruction, PtxError> {
    let operation = match form.instruction.opcode.text {
        "and" => LogicOperation::And,
        "or" => LogicOperation::Or,
        _ => LogicOperation::Xor,
    };
    let ty = form.data_type(&[Type::Pred, Type::B16, Type::B32, Type::B64])?;
    let [destination, left, right] = form.exactly()?;
    if ty == Type::Pred {
        return Ok(ScalarInstruction::PredicateLogic {
            operation,
            destination: form.predicate(destination)?,
            left: form.predicate_source(left)?,
            right: form.predicate_source(right)?,
        });
    }
    Ok(ScalarInstruction::Bitwise {
        operation,
        destination: form.register(destination, ty)?,
        left: form.source(left, ty)?,
        right: form.source(right, ty)?,
    })
}

/// `not`, on bits and on predicates.
pub(super) fn not(form: &mut Form<'_, '_>) -> Result<ScalarInstruction, PtxError> {
    if !form.has(".pred") {
        return unary(form);
    }
    let [destination, source] = form.exactly()?;
    let destination = form.predicate(destination)?;
    let source = match form.predicate_source(source)? {
        PredicateSource::Constant(value) => PredicateSource::Constant(!value),
        PredicateSource::Predicate(mut operand) => {
            operand.negated = !operand.negated;
            PredicateSource::Predicate(operand)
        }
    };
    Ok(ScalarInstruction::PredicateMove { destination, source })
}

/// `not`, `cnot`, `clz`, `popc`, `brev`.
pub(super) fn unary(form: &mut Form<'_, '_>) -> Result<ScalarInstruction, PtxError> {
    use BitUnaryOperation as O;
    let (operation, types) = match form.instruction.opcode.text {
        "not" => (O::Not, &BITS[..]),
        "cnot" => (O::LogicalNot, &BITS[..]),
        "clz" => (O::CountLeadingZeros, &BITS[1..]),
        "popc" => (O::PopulationCount, &BITS[1..]),
        _ => (O::Reverse, &BITS[1..]),
    };
    let ty = form.data_type(types)?;
    // The counts are 32-bit whatever is counted.
    let result = if matches!(operation, O::CountLeadingZeros | O::PopulationCount) { Type::U32 } else { ty };
    let [destination, source] = form.exactly()?;
    Ok(ScalarInstruction::BitUnary {
        operation,
        bits: ty.bits(),
        destination: form.register(destination, result)?,
        source: form.source(source, ty)?,
    })
}

/// `lop3.b32`.
pub(super) fn lop3(form: &mut Form<'_, '_>) -> Result<ScalarInstruction, PtxError> {
    if form.choose(&[(".or", ()), (".and", ())]).is_some() {
        return Err(form.unsupported(": lop3 with a predicate"));
    }
    form.require(".b32")?;
    let [destination, a, b, c, table] = form.exactly()?;
    Ok(ScalarInstruction::Lop3 {
        table: form.immediate(table, "the truth table", 0..=255)? as u8,
        destination: form.register(destination, Type::B32)?,
        sources: [form.source(a, Type::B32)?, form.source(b, Type::B32)?, form.source(c, Type::B32)?],
    })
}

/// `shl` and `shr`.
pub(super) fn shift(form: &mut Form<'_, '_>) -> Result<ScalarInstruction, PtxError> {
    let left = form.instruction.opcode.text == "shl";
    let right_types =
        [Type::B16, Type::B32, Type::B64, Type::U16, Type::U32, Type::U64, Type::S16, Type::S32, Type::S64];
    let ty = form.data_type(if left { &BITS } else { &right_types })?;
    let direction = match ty {
        _ if left => ShiftDirection::Left,
        Type::S16 | Type::S32 | Type::S64 => ShiftDirection::RightArithmetic,
        _ => ShiftDirection::RightLogical,
    };
    let [destination, source, amount] = form.exactly()?;
    Ok(ScalarInstruction::Shift {
        direction,
        bits: ty.bits(),
        destination: form.register(destination, ty)?,
        source: form.source(source, ty)?,
        amount: form.source(amount, Type::U32)?,
    })
}

/// `shf`.
pub(super) fn funnel_shift(form: &mut Form<'_, '_>) -> Result<ScalarInstruction, PtxError> {
    let left = form.choose_required("a direction", &[(".l", true), (".r", false)])?;
    let wrap = form.choose_required("a mode", &[(".wrap", true), (".clamp", false)])?;
    form.require(".b32")?;
    let [destination, low, high, amount] = form.exactly()?;
    Ok(ScalarInstruction::FunnelShift {
        left,
        wrap,
        destination: form.register(destination, Type::B32)?,
        low: form.source(low, Type::B32)?,
        high: form.source(high, Type::B32)?,
        amount: form.source(amount, Type::U32)?,
    })
}

/// `bfe`.
pub(super) fn extract_field(form: &mut Form<'_, '_>) -> Result<ScalarInstruction, PtxError> {
    let ty = form.data_type(&WORDS_AND_LONGS)?;
    let [destination, source, position, length] = form.exactly()?;
    Ok(ScalarInstruction::ExtractField {
        kind: kind(ty),
        destination: form.register(destination, ty)?,
        source: form.source(source, ty)?,
        position: form.source(position, Type::U32)?,
        length: form.source(length, Type::U32)?,
    })
}

/// `bfi`.
pub(super) fn insert_field(form: &mut Form<'_, '_>) -> Result<ScalarInstruction, PtxError> {
    let ty = form.data_type(&BITS[1..])?;
    let [destination, field, base, position, length] = form.exactly()?;
    Ok(ScalarInstruction::InsertField {
        wide: ty == Type::B64,
        destination: form.register(destination, ty)?,
        field: form.source(field, ty)?,
        base: form.source(base, ty)?,
        position: form.source(position, Type::U32)?,
        length: form.source(length, Type::U32)?,
    })
}

/// `bfind`.
pub(super) fn find_leading(form: &mut Form<'_, '_>) -> Result<ScalarInstruction, PtxError> {
    let shift_amount = form.has(".shiftamt");
    let ty = form.data_type(&WORDS_AND_LONGS)?;
    let [destination, source] = form.exactly()?;
    Ok(ScalarInstruction::FindLeading {
        kind: kind(ty),
        shift_amount,
        destination: form.register(destination, Type::U32)?,
        source: form.source(source, ty)?,
    })
}

/// `fns`.
pub(super) fn find_nth(form: &mut Form<'_, '_>) -> Result<ScalarInstruction, PtxError> {
    form.require(".b32")?;
    let [destination, mask, base, offset] = form.exactly()?;
    Ok(ScalarInstruction::FindNth {
        destination: form.register(destination, Type::B32)?,
        mask: form.source(mask, Type::B32)?,
        base: form.source(base, Type::B32)?,
        offset: form.source(offset, Type::S32)?,
    })
}

/// `bmsk`.
pub(super) fn bit_mask(form: &mut Form<'_, '_>) -> Result<ScalarInstruction, PtxError> {
    let wrap = form.choose_required("a mode", &[(".wrap", true), (".clamp", false)])?;
    form.require(".b32")?;
    let [destination, position, width] = form.exactly()?;
    Ok(ScalarInstruction::BitMask {
        wrap,
        destination: form.register(destination, Type::B32)?,
        position: form.source(position, Type::U32)?,
        width: form.source(width, Type::U32)?,
    })
}

/// `szext`.
pub(super) fn extend(form: &mut Form<'_, '_>) -> Result<ScalarInstruction, PtxError> {
    let wrap = form.choose_required("a mode", &[(".wrap", true), (".clamp", false)])?;
    let ty = form.data_type(&[Type::U32, Type::S32])?;
    let [destination, source, width] = form.exactly()?;
    Ok(ScalarInstruction::Extend {
        signed: ty == Type::S32,
        wrap,
        destination: form.register(destination, ty)?,
        source: form.source(source, ty)?,
        width: form.source(width, Type::U32)?,
    })
}

/// `prmt`.
pub(super) fn permute(form: &mut Form<'_, '_>) -> Result<ScalarInstruction, PtxError> {
    form.require(".b32")?;
    let modes = [
        (".f4e", PermuteMode::Forward4),
        (".b4e", PermuteMode::Backward4),
        (".rc8", PermuteMode::Replicate8),
        (".ecl", PermuteMode::EdgeClampLeft),
        (".ecr", PermuteMode::EdgeClampRight),
        (".rc16", PermuteMode::Replicate16),
    ];
    let mode = form.choose(&modes).unwrap_or(PermuteMode::Index);
    let [destination, low, high, selector] = form.exactly()?;
    Ok(ScalarInstruction::Permute {
        mode,
        destination: form.register(destination, Type::B32)?,
        low: form.source(low, Type::B32)?,
        high: form.source(high, Type::B32)?,
        selector: form.source(selector, Type::B32)?,
    })
}

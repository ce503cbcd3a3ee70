//! Comparison and selection.

use super::form::Form;
use super::target::Needs;
use crate::program::{Combine, ComparedType, Comparison, LogicOperation, Relation, ScalarInstruction};
use crate::ptx::PtxError;
use crate::ptx::ast::{Operand, Type};

const TYPES: [Type; 15] = [
    Type::B16,
    Type::B32,
    Type::B64,
    Type::U16,
    Type::U32,
    Type::U64,
    Type::S16,
    Type::S32,
    Type::S64,
    Type::F32,
    Type::F64,
    Type::F16,
    Type::Bf16,
    Type::F16x2,
    Type::Bf16x2,
];

const RELATIONS: [(&str, Relation); 18] = [
    (".eq", Relation::Equal),
    (".ne", Relation::NotEqual),
    (".lt", Relation::Less),
    (".le", Relation::LessEqual),
    (".gt", Relation::Greater),
    (".ge", Relation::GreaterEqual),
    (".lo", Relation::Less),
    (".ls", Relation::LessEqual),
    (".hi", Relation::Greater),
    (".hs", Relation::GreaterEqual),
    (".equ", Relation::EqualUnordered),
    (".neu", Relation::NotEqualUnordered),
    (".ltu", Relation::LessUnordered),
    (".leu", Relation::LessEqualUnordered),
    (".gtu", Relation::GreaterUnordered),
    (".geu", Relation::GreaterEqualUnordered),
    (".num", Relation::Ordered),
    (".nan", Relation::Unordered),
];

fn compared(ty: Type) -> ComparedType {
    match ty {
        Type::S16 | Type::S32 | Type::S64 => ComparedType::Signed(ty.bits()),
        Type::F32 => ComparedType::F32,
        Type::F64 => ComparedType::F64,
        Type::F16 | Type::F16x2 => ComparedType::F16,
        Type::Bf16 | Type::Bf16x2 => ComparedType::Bf16,
        _ => ComparedType::Unsigned,
    }
}

/// Takes the relation and the type, which must go together, and the boolean operation.
fn comparison(form: &mut Form<'_, '_>) -> Result<(Comparison, Type, Option<LogicOperation>), PtxError> {
    let position = form.instruction.modifiers.iter().find(|m| RELATIONS.iter().any(|(text, _)| *text == m.text));
    let relation = form.choose_required("a comparison", &RELATIONS)?;
    let spelling = position.map_or("", |modifier| modifier.text);
    let logic =
        form.choose(&[(".and", LogicOperation::And), (".or", LogicOperation::Or), (".xor", LogicOperation::Xor)]);
    let flush = form.has(".ftz");
    let ty = form.data_type(&TYPES)?;
    let kind = compared(ty);
    let float = !matches!(kind, ComparedType::Unsigned | ComparedType::Signed(_));
    let unsigned = matches!(ty, Type::U16 | Type::U32 | Type::U64);
    let untyped = matches!(ty, Type::B16 | Type::B32 | Type::B64);
    let legal = match spelling {
        ".eq" | ".ne" => true,
        ".lt" | ".le" | ".gt" | ".ge" => !untyped,
        ".lo" | ".ls" | ".hi" | ".hs" => unsigned,
        _ => float,
    };
    if !legal {
        return Err(form.missing(&format!("a type that `{spelling}` compares")));
    }
    if flush && !matches!(kind, ComparedType::F32 | ComparedType::F16) {
        return Err(form.missing("`.f32` or `.f16` with `.ftz`"));
    }
    if matches!(kind, ComparedType::Bf16) {
        form.needs(Needs::SM90)?;
    }
    Ok((Comparison { relation, kind, flush }, ty, logic))
}

fn combine<'a>(
    form: &mut Form<'_, 'a>,
    logic: Option<LogicOperation>,
    operand: Option<&Operand<'a>>,
) -> Result<Option<Combine>, PtxError> {
    match (logic, operand) {
        (Some(operation), Some(operand)) => Ok(Some(Combine { operation, predicate: form.predicate_source(operand)? })),
        _ => Ok(None),
    }
}

/// `setp`.
pub(super) fn set_predicate(form: &mut Form<'_, '_>) -> Result<ScalarInstruction, PtxError> {
    let (comparison, ty, logic) = comparison(form)?;
    let count = 3 + usize::from(logic.is_some());
    let operands = form.operands(count, count)?;
    let (first, second) = form.pair(&operands[0]);
    let first = form.predicate_or_sink(first)?;
    let second = match second {
        Some(operand) => form.predicate_or_sink(operand)?,
        None => None,
    };
    let left = form.source(&operands[1], ty)?;
    let right = form.source(&operands[2], ty)?;
    let combine = combine(form, logic, operands.get(3))?;
    if matches!(ty, Type::F16x2 | Type::Bf16x2) {
        return Ok(ScalarInstruction::SetPredicatePair { comparison, combine, low: first, high: second, left, right });
    }
    Ok(ScalarInstruction::SetPredicate { comparison, combine, destination: first, complement: second, left, right })
}

/// `set`.
pub(super) fn set(form: &mut Form<'_, '_>) -> Result<ScalarInstruction, PtxError> {
    // The destination's type stands before the source's.
    let result = form.data_type(&[Type::U32, Type::S32, Type::F32])?;
    let truth = if result == Type::F32 { u64::from(1f32.to_bits()) } else { u64::from(u32::MAX) };
    let (comparison, ty, logic) = comparison(form)?;
    if matches!(ty, Type::F16x2 | Type::Bf16x2) {
        return Err(form.unsupported(": set of packed halves"));
    }
    let count = 3 + usize::from(logic.is_some());
    let operands = form.operands(count, count)?;
    Ok(ScalarInstruction::Set {
        comparison,
        truth,
        destination: form.register(&operands[0], result)?,
        left: form.source(&operands[1], ty)?,
        right: form.source(&operands[2], ty)?,
        combine: combine(form, logic, operands.get(3))?,
    })
}

/// `selp`.
pub(super) fn select(form: &mut Form<'_, '_>) -> Result<ScalarInstruction, PtxError> {
    let ty = form.data_type(&TYPES[..11])?;
    let [destination, if_true, if_false, predicate] = form.exactly()?;
    Ok(ScalarInstruction::Select {
        destination: form.register(destination, ty)?,
        if_true: form.source(if_true, ty)?,
        if_false: form.source(if_false, ty)?,
        predicate: form.predicate_source(predicate)?,
    })
}

/// `slct`.
pub(super) fn select_by_sign(form: &mut Form<'_, '_>) -> Result<ScalarInstruction, PtxError> {
    let flush = form.has(".ftz");
    let ty = form.data_type(&TYPES[..11])?;
    let sign_type = form.data_type(&[Type::S32, Type::F32])?;
    if flush && sign_type != Type::F32 {
        return Err(form.missing("`.f32` with `.ftz`"));
    }
    let [destination, if_positive, if_negative, sign] = form.exactly()?;
    // `.ftz` turns a negative subnormal into -0, which counts as not negative; so does a comparison of it with zero,
    // unless it is kept as it is.
    if flush {
        return Err(form.unsupported(": slct.ftz"));
    }
    Ok(ScalarInstruction::SelectBySign {
        float: sign_type == Type::F32,
        destination: form.register(destination, ty)?,
        if_positive: form.source(if_positive, ty)?,
        if_negative: form.source(if_negative, ty)?,
        sign: form.source(sign, sign_type)?,
    })
}

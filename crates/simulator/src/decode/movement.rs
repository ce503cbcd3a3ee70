//! `mov`, and what amounts to one.

use super::form::Form;
use super::operand::Width;
use super::special;
use crate::program::{Operand as Value, Operation, ScalarInstruction};
use crate::ptx::PtxError;
use crate::ptx::ast::{Operand, OperandKind, Type};

const TYPES: [Type; 16] = [
    Type::Pred,
    Type::B16,
    Type::B32,
    Type::B64,
    Type::B128,
    Type::U16,
    Type::U32,
    Type::U64,
    Type::S16,
    Type::S32,
    Type::S64,
    Type::F16,
    Type::Bf16,
    Type::F16x2,
    Type::F32,
    Type::F64,
];

pub(super) fn mov(form: &mut Form<'_, '_>) -> Result<Operation, PtxError> {
    let ty = form.data_type(&TYPES)?;
    let [destination, source] = form.exactly()?;
    if ty == Type::Pred {
        let destination = form.predicate(destination)?;
        let source = form.predicate_source(source)?;
        return Ok(Operation::Scalar(ScalarInstruction::PredicateMove { destination, source }));
    }
    if ty == Type::B128 {
        return Ok(Operation::Scalar(wide(form, destination, source)?));
    }
    if let Some(operation) = read_special(form, destination, source, ty)? {
        return Ok(operation);
    }
    Ok(Operation::Scalar(match (&destination.kind, &source.kind) {
        (_, OperandKind::Vector(elements)) => {
            let element = element_type(form, source, ty, elements.len())?;
            ScalarInstruction::Pack {
                destination: form.register(destination, ty)?,
                sources: elements.iter().map(|e| form.source(e, element)).collect::<Result<_, _>>()?,
                element_bits: element.bits(),
            }
        }
        (OperandKind::Vector(elements), _) => {
            let element = element_type(form, destination, ty, elements.len())?;
            ScalarInstruction::Unpack {
                destinations: elements.iter().map(|e| form.register_or_sink(e, element)).collect::<Result<_, _>>()?,
                source: form.source(source, ty)?,
                element_bits: element.bits(),
            }
        }
        _ => ScalarInstruction::Move {
            destination: form.register(destination, ty)?,
            source: form.source_of(source, ty, Width::Exact)?,
        },
    }))
}

/// `mov.b128`: a copy, or elements of 64 or 32 bits packed or unpacked.
fn wide<'a>(
    form: &mut Form<'_, 'a>,
    destination: &'a Operand<'a>,
    source: &'a Operand<'a>,
) -> Result<ScalarInstruction, PtxError> {
    let elements = |form: &Form<'_, 'a>, vector: &'a Operand<'a>| {
        let elements = form.elements(vector);
        match elements.len() {
            2 => Ok((elements, Type::B64)),
            4 => Ok((elements, Type::B32)),
            _ => Err(form.wrong_operand(vector, "2 elements of 64 bits or 4 of 32")),
        }
    };
    let (destinations, destination_bits) = if matches!(destination.kind, OperandKind::Vector(_)) {
        let (elements, ty) = elements(form, destination)?;
        let registers = elements.iter().map(|e| form.register_or_sink(e, ty)).collect::<Result<_, _>>()?;
        (registers, ty.bits())
    } else {
        (Box::from(form.wide_register(destination)?.map(Some)), 64)
    };
    let (sources, source_bits) = if matches!(source.kind, OperandKind::Vector(_)) {
        let (elements, ty) = elements(form, source)?;
        let values = elements.iter().map(|e| form.source(e, ty)).collect::<Result<_, _>>()?;
        (values, ty.bits())
    } else {
        (Box::from(form.wide_source(source)?), 64)
    };
    Ok(ScalarInstruction::MoveWide { destinations, destination_bits, sources, source_bits })
}

fn element_type(form: &Form<'_, '_>, vector: &Operand<'_>, ty: Type, count: usize) -> Result<Type, PtxError> {
    match (ty, count) {
        (Type::B16, 2) | (Type::B32, 4) => Ok(Type::B8),
        (Type::B32, 2) | (Type::B64, 4) => Ok(Type::B16),
        (Type::B64, 2) => Ok(Type::B32),
        _ => Err(PtxError::OperandType {
            expected: format!(
                "a `{}` (only `.b16`, `.b32`, `.b64` and `.b128` are packed, of 2 or 4 elements)",
                ty.name()
            )
            .into(),
            found: format!("a vector of {count} in `{}`", form.mnemonic()).into(),
            at: vector.span.into(),
        }),
    }
}

fn read_special<'a>(
    form: &mut Form<'_, 'a>,
    destination: &Operand<'a>,
    source: &Operand<'a>,
    ty: Type,
) -> Result<Option<Operation>, PtxError> {
    let (name, component) = match source.kind {
        OperandKind::Component(name, component) => (name, component),
        OperandKind::Name(name) if form.lookup(name, source.span)?.is_none() => (name, ""),
        _ => return Ok(None),
    };
    let Some((register, bits)) = special::find(name, component) else {
        return match source.kind {
            OperandKind::Component(..) => {
                Err(PtxError::Undeclared { name: format!("{name}{component}").into(), at: source.span.into() })
            }
            _ => Ok(None),
        };
    };
    if !special::readable_as(ty, bits) {
        return Err(form.wrong_operand(source, &format!("a `{}`", ty.name())));
    }
    Ok(Some(Operation::ReadSpecial { destination: form.register(destination, ty)?, source: register }))
}

/// `createpolicy`: a cache policy is opaque and changes no result, so it is any constant.
pub(super) fn create_policy(form: &mut Form<'_, '_>) -> Result<ScalarInstruction, PtxError> {
    const PRIORITIES: [(&str, ()); 4] =
        [(".L2::evict_last", ()), (".L2::evict_normal", ()), (".L2::evict_first", ()), (".L2::evict_unchanged", ())];
    let (least, most) = if form.has(".fractional") {
        (1, 2)
    } else if form.has(".range") {
        form.has(".global");
        (4, 4)
    } else {
        return Err(form.missing("`.fractional` or `.range`"));
    };
    form.choose_required("a priority", &PRIORITIES)?;
    form.choose(&PRIORITIES);
    form.require(".b64")?;
    let operands = form.operands(least, most)?;
    Ok(ScalarInstruction::Move { destination: form.register(&operands[0], Type::B64)?, source: Value::Immediate(0) })
}

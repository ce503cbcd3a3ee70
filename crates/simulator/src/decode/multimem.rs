//! `multimem.*`.

use super::atomic::{REDUCTIONS, element};
use super::form::Form;
use super::memory::take_scope;
use super::space::take_space_of;
use super::target::Needs;
use crate::program::{AtomicOperation, MemoryOrder, Multimem, MultimemKind, Operation, Scope, StateSpace};
use crate::ptx::PtxError;
use crate::ptx::ast::Type;

const FLOATS: [Type; 6] = [Type::F32, Type::F16x2, Type::Bf16x2, Type::F16, Type::Bf16, Type::F64];

pub(super) fn decode(form: &mut Form<'_, '_>) -> Result<Operation, PtxError> {
    form.needs(Needs::SM90)?;
    let first = form.peek();
    form.has(first);
    match first {
        ".ld_reduce" => load_reduce(form),
        ".st" => store(form),
        ".red" => reduce(form),
        ".cp" => Err(form.unsupported("")),
        _ => Err(form.unknown()),
    }
}

/// Order, scope and space, in whatever sequence. Unqualified instructions are at system scope.
fn qualifiers(
    form: &mut Form<'_, '_>,
    orders: &[(&str, MemoryOrder)],
    default: MemoryOrder,
) -> Result<(MemoryOrder, Scope, StateSpace), PtxError> {
    let order = form.choose(orders);
    let scope = take_scope(form);
    if scope.is_none() && !matches!(order, None | Some(MemoryOrder::Weak)) {
        return Err(form.missing("a scope"));
    }
    let space = take_space_of(form, &[StateSpace::Global]);
    Ok((order.unwrap_or(default), scope.unwrap_or(Scope::System), space))
}

/// Vector length and type: integers are scalar, packed and narrow floats make up to 16 bytes (PTX ISA, "multimem").
fn vector(form: &mut Form<'_, '_>, integers: &[Type]) -> Result<(usize, Type), PtxError> {
    let length = form.choose(&[(".v2", 2), (".v4", 4), (".v8", 8)]).unwrap_or(1);
    let narrow = [Type::E4m3x4, Type::E5m2x4];
    let allowed: Vec<Type> = integers.iter().chain(&FLOATS).chain(&narrow).copied().collect();
    let ty = form.data_type(&allowed)?;
    if narrow.contains(&ty) {
        form.needs(Needs::SM100A)?;
    }
    let vectors: &[usize] = match ty {
        Type::F32 => &[1, 2, 4],
        Type::F16x2 | Type::Bf16x2 => &[1, 2, 4],
        Type::F16 | Type::Bf16 => &[2, 4, 8],
        Type::E4m3x4 | Type::E5m2x4 => &[1, 2, 4],
        _ => &[1],
    };
    if vectors.contains(&length) { Ok((length, ty)) } else { Err(form.unsupported(": this vector length")) }
}

fn integers(operation: AtomicOperation) -> &'static [Type] {
    match operation {
        AtomicOperation::And | AtomicOperation::Or | AtomicOperation::Xor => &[Type::B32, Type::B64],
        AtomicOperation::Add => &[Type::U32, Type::S32, Type::U64],
        _ => &[Type::U32, Type::S32, Type::U64, Type::S64],
    }
}

/// What the operation allows for the type: floats add, and half-precision types have a minimum and maximum too.
fn check_reduction(form: &Form<'_, '_>, operation: AtomicOperation, ty: Type) -> Result<(), PtxError> {
    let float = !matches!(ty, Type::B32 | Type::B64 | Type::U32 | Type::S32 | Type::U64 | Type::S64);
    let legal = match operation {
        AtomicOperation::Add => true,
        AtomicOperation::Min | AtomicOperation::Max => !matches!(ty, Type::F32 | Type::F64),
        _ => !float,
    };
    if legal { Ok(()) } else { Err(form.unsupported(": this operation on this type")) }
}

fn load_reduce(form: &mut Form<'_, '_>) -> Result<Operation, PtxError> {
    let orders = [(".weak", MemoryOrder::Weak), (".relaxed", MemoryOrder::Relaxed), (".acquire", MemoryOrder::Acquire)];
    let (order, scope, space) = qualifiers(form, &orders, MemoryOrder::Weak)?;
    let operation = form.choose_required("an operation", &REDUCTIONS[..6])?;
    let accumulate = form.choose(&[(".acc::f32", Type::F32), (".acc::f16", Type::F16)]);
    let (length, ty) = vector(form, integers(operation))?;
    check_reduction(form, operation, ty)?;
    let narrow = matches!(ty, Type::E4m3x4 | Type::E5m2x4);
    let half = matches!(ty, Type::F16 | Type::F16x2 | Type::Bf16 | Type::Bf16x2);
    match accumulate {
        Some(Type::F32) if !half || operation != AtomicOperation::Add => {
            return Err(form.missing("`.add` on a half-precision type with `.acc::f32`"));
        }
        Some(Type::F16) if !narrow => return Err(form.missing("an fp8 type with `.acc::f16`")),
        _ => {}
    }
    let [destinations, address] = form.exactly()?;
    let destinations = form.exact_elements(destinations, length)?;
    let destinations = destinations.iter().map(|e| form.register(e, ty)).collect::<Result<_, _>>()?;
    let kind = MultimemKind::LoadReduce { operation, wide_accumulate: accumulate.is_some(), destinations };
    let address = form.address(address, space)?;
    Ok(Operation::Multimem(Multimem { kind, order, scope, element: element(ty), address, space }))
}

fn store(form: &mut Form<'_, '_>) -> Result<Operation, PtxError> {
    let orders = [(".weak", MemoryOrder::Weak), (".relaxed", MemoryOrder::Relaxed), (".release", MemoryOrder::Release)];
    let (order, scope, space) = qualifiers(form, &orders, MemoryOrder::Weak)?;
    let every = [Type::B32, Type::B64, Type::U32, Type::S32, Type::U64, Type::S64];
    let (length, ty) = vector(form, &every)?;
    let [address, sources] = form.exactly()?;
    let sources = form.exact_elements(sources, length)?;
    let kind = MultimemKind::Store { sources: sources.iter().map(|e| form.source(e, ty)).collect::<Result<_, _>>()? };
    let address = form.address(address, space)?;
    Ok(Operation::Multimem(Multimem { kind, order, scope, element: element(ty), address, space }))
}

fn reduce(form: &mut Form<'_, '_>) -> Result<Operation, PtxError> {
    let orders = [(".relaxed", MemoryOrder::Relaxed), (".release", MemoryOrder::Release)];
    let (order, scope, space) = qualifiers(form, &orders, MemoryOrder::Relaxed)?;
    let operation = form.choose_required("an operation", &REDUCTIONS[..6])?;
    let (length, ty) = vector(form, integers(operation))?;
    check_reduction(form, operation, ty)?;
    let [address, sources] = form.exactly()?;
    let sources = form.exact_elements(sources, length)?;
    let sources = sources.iter().map(|e| form.source(e, ty)).collect::<Result<_, _>>()?;
    let kind = MultimemKind::Reduce { operation, sources };
    let address = form.address(address, space)?;
    Ok(Operation::Multimem(Multimem { kind, order, scope, element: element(ty), address, space }))
}

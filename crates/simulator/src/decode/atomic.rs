//! `atom` and `red`.

use super::form::Form;
use super::memory::{check_cache_policy, take_scope};
use super::space::take_space_of;
use super::target::Needs;
use crate::program::{Atomic, AtomicOperation, ElementType, MemoryOrder, Operation, Scope, StateSpace};
use crate::ptx::PtxError;
use crate::ptx::ast::Type;

/// `.op` of reductions.
pub(super) const REDUCTIONS: [(&str, AtomicOperation); 8] = [
    (".add", AtomicOperation::Add),
    (".min", AtomicOperation::Min),
    (".max", AtomicOperation::Max),
    (".and", AtomicOperation::And),
    (".or", AtomicOperation::Or),
    (".xor", AtomicOperation::Xor),
    (".inc", AtomicOperation::Increment),
    (".dec", AtomicOperation::Decrement),
];

/// The element type of an arithmetic operation in memory.
pub(super) fn element(ty: Type) -> ElementType {
    // 128 bits are swapped as two halves.
    let bytes = (ty.bits().min(64) / 8) as u8;
    match ty {
        Type::U8 | Type::U16 | Type::U32 | Type::U64 => ElementType::Unsigned(bytes),
        Type::S8 | Type::S16 | Type::S32 | Type::S64 => ElementType::Signed(bytes),
        Type::F16 => ElementType::F16,
        Type::F16x2 => ElementType::F16x2,
        Type::Bf16 => ElementType::Bf16,
        Type::Bf16x2 => ElementType::Bf16x2,
        Type::F32 => ElementType::F32,
        Type::F64 => ElementType::F64,
        Type::E4m3x4 => ElementType::E4m3x4,
        Type::E5m2x4 => ElementType::E5m2x4,
        _ => ElementType::Bits(bytes),
    }
}

pub(super) fn atom(form: &mut Form<'_, '_>) -> Result<Operation, PtxError> {
    let swaps = [(".exch", AtomicOperation::Exchange), (".cas", AtomicOperation::CompareAndSwap)];
    let operation = match form.choose(&swaps) {
        Some(operation) => operation,
        None => form.choose_required("an operation", &REDUCTIONS)?,
    };
    decode(form, operation, true)
}

pub(super) fn red(form: &mut Form<'_, '_>) -> Result<Operation, PtxError> {
    if form.has(".async") {
        return super::remote_store::reduce(form);
    }
    let operation = form.choose_required("an operation", &REDUCTIONS)?;
    decode(form, operation, false)
}

fn types(operation: AtomicOperation) -> &'static [Type] {
    use AtomicOperation as O;
    use Type as T;
    match operation {
        O::Add => &[T::U32, T::S32, T::U64, T::F32, T::F64, T::F16, T::F16x2, T::Bf16, T::Bf16x2],
        O::Min | O::Max => &[T::U32, T::S32, T::U64, T::S64, T::F16, T::F16x2, T::Bf16, T::Bf16x2],
        O::And | O::Or | O::Xor => &[T::B32, T::B64],
        O::Increment | O::Decrement => &[T::U32],
        O::Exchange => &[T::B32, T::B64, T::B128],
        O::CompareAndSwap => &[T::B16, T::B32, T::B64, T::B128],
    }
}

fn decode(form: &mut Form<'_, '_>, operation: AtomicOperation, returns: bool) -> Result<Operation, PtxError> {
    let order = form.choose(&[
        (".relaxed", MemoryOrder::Relaxed),
        (".acquire", MemoryOrder::Acquire),
        (".release", MemoryOrder::Release),
        (".acq_rel", MemoryOrder::AcquireRelease),
    ]);
    if !returns && matches!(order, Some(MemoryOrder::Acquire | MemoryOrder::AcquireRelease)) {
        return Err(form.unsupported(": `red` is `.relaxed` or `.release`"));
    }
    let scope = take_scope(form).unwrap_or(Scope::Gpu);
    let space = take_space_of(form, &[StateSpace::Global, StateSpace::SharedCta, StateSpace::SharedCluster]);
    let unflushed = form.has(".noftz");
    let policy = usize::from(form.cache_hints());
    let length = form.choose(&[(".v2", 2), (".v4", 4), (".v8", 8)]).unwrap_or(1);
    let ty = form.data_type(types(operation))?;
    let floating = matches!(ty, Type::F16 | Type::F16x2 | Type::Bf16 | Type::Bf16x2);
    if unflushed != floating {
        return Err(form.missing("`.noftz` with half-precision types, and only with them"));
    }
    let minimum = matches!(operation, AtomicOperation::Min | AtomicOperation::Max);
    if minimum && floating && length == 1 {
        // Floating-point minimum and maximum exist in vector form only, and for half-precision types only.
        return Err(form.missing("a vector length for floating-point `.min` and `.max`"));
    }
    if length > 1 {
        form.needs(Needs::SM90)?;
        let most = match ty {
            Type::F32 => 4,
            Type::F16x2 | Type::Bf16x2 => 4,
            Type::F16 | Type::Bf16 => 8,
            _ => 1,
        };
        if length > most || !matches!(space, StateSpace::Global | StateSpace::Generic) {
            return Err(form.unsupported(": this vector length or space"));
        }
    }
    let first = usize::from(returns);
    let sources = if operation == AtomicOperation::CompareAndSwap { 2 } else { 1 };
    let count = first + 1 + sources + policy;
    let operands = form.operands(count, count)?;
    check_cache_policy(form, operands.get(first + 1 + sources))?;
    let mut destinations = Vec::new();
    if ty == Type::B128 {
        form.needs(Needs::SM90)?;
        destinations.extend(form.wide_register(&operands[0])?.map(Some));
    } else if returns {
        for element in form.exact_elements(&operands[0], length)? {
            destinations.push(form.register_or_sink(element, ty)?);
        }
    }
    let mut values = Vec::with_capacity(length.max(sources));
    for operand in &operands[first + 1..first + 1 + sources] {
        if ty == Type::B128 {
            values.extend(form.wide_source(operand)?);
            continue;
        }
        for element in form.exact_elements(operand, length)? {
            values.push(form.source(element, ty)?);
        }
    }
    Ok(Operation::Atomic(Atomic {
        space,
        order: order.unwrap_or(MemoryOrder::Relaxed),
        scope,
        operation,
        element: element(ty),
        destinations,
        address: form.address(&operands[first], space)?,
        sources: values,
    }))
}

//! `ld`, `st` and prefetches.

use super::form::Form;
use super::operand::Width;
use super::space::{take_space, take_space_of};
use super::target::Needs;
use crate::program::{ElementType, Load, MemoryOrder, Operation, Scope, StateSpace, Store};
use crate::ptx::PtxError;
use crate::ptx::ast::{Operand, OperandKind, Type};

const TYPES: [Type; 15] = [
    Type::B8,
    Type::B16,
    Type::B32,
    Type::B64,
    Type::B128,
    Type::U8,
    Type::U16,
    Type::U32,
    Type::U64,
    Type::S8,
    Type::S16,
    Type::S32,
    Type::S64,
    Type::F32,
    Type::F64,
];

const SCOPES: [(&str, Scope); 4] =
    [(".cta", Scope::Cta), (".cluster", Scope::Cluster), (".gpu", Scope::Gpu), (".sys", Scope::System)];

/// Takes a `.scope`.
pub(super) fn take_scope(form: &mut Form<'_, '_>) -> Option<Scope> {
    form.choose(&SCOPES)
}

/// Takes a `.scope` that must be there.
pub(super) fn require_scope(form: &mut Form<'_, '_>) -> Result<Scope, PtxError> {
    form.choose_required("a scope", &SCOPES)
}

/// The element type of a memory operation: untyped and unsigned are the same to a load.
fn element(ty: Type) -> ElementType {
    // 128 bits are moved as two halves.
    let bytes = (ty.bits().min(64) / 8) as u8;
    match ty {
        Type::S8 | Type::S16 | Type::S32 | Type::S64 => ElementType::Signed(bytes),
        Type::F32 => ElementType::F32,
        Type::F64 => ElementType::F64,
        _ => ElementType::Bits(bytes),
    }
}

/// Order and scope of a load (`second` = acquire) or store (release).
fn ordering(form: &mut Form<'_, '_>, second: (&str, MemoryOrder)) -> Result<(MemoryOrder, Scope), PtxError> {
    if form.has(".mmio") {
        form.require(".relaxed")?;
        form.require(".sys")?;
        return Ok((MemoryOrder::Mmio, Scope::System));
    }
    let table = [
        (".weak", MemoryOrder::Weak),
        (".volatile", MemoryOrder::Volatile),
        (".relaxed", MemoryOrder::Relaxed),
        second,
    ];
    match form.choose(&table) {
        Some(order @ (MemoryOrder::Relaxed | MemoryOrder::Acquire | MemoryOrder::Release)) => {
            Ok((order, require_scope(form)?))
        }
        order => Ok((order.unwrap_or(MemoryOrder::Weak), Scope::System)),
    }
}

/// Takes `.vN`, which with the type may make 16 bytes, or 32 in global memory on SM100.
fn vector_length(form: &mut Form<'_, '_>, space: StateSpace) -> Result<(usize, Type), PtxError> {
    let length = form.choose(&[(".v2", 2), (".v4", 4), (".v8", 8)]).unwrap_or(1);
    let ty = form.data_type(&TYPES)?;
    if length as u32 * ty.bits() > 128 {
        form.needs(Needs::SM100)?;
        let allowed = matches!((length, ty.bits()), (8, 32) | (4, 64));
        if !allowed || !matches!(space, StateSpace::Global | StateSpace::Generic) {
            return Err(form.unsupported(": vectors over 16 bytes are .v8 of 32 bits or .v4 of 64, in global memory"));
        }
    } else if length == 8 {
        return Err(form.unsupported(": .v8 takes 32-bit elements"));
    }
    Ok((length, ty))
}

/// A trailing cache-policy operand has no effect, but must be a 64-bit register.
pub(super) fn check_cache_policy<'a>(form: &mut Form<'_, 'a>, operand: Option<&Operand<'a>>) -> Result<(), PtxError> {
    if let Some(operand) = operand {
        form.source(operand, Type::B64)?;
    }
    Ok(())
}

pub(super) fn load(form: &mut Form<'_, '_>) -> Result<Operation, PtxError> {
    let (order, scope) = ordering(form, (".acquire", MemoryOrder::Acquire))?;
    let space = take_space(form);
    let mut non_coherent = form.has(".nc");
    if form.instruction.opcode.text == "ldu" {
        non_coherent = true;
    }
    if non_coherent && order != MemoryOrder::Weak {
        return Err(form.missing("no other order than `.weak` with `.nc`"));
    }
    if non_coherent && !matches!(space, StateSpace::Global | StateSpace::Generic) {
        return Err(form.unsupported(": `.nc` outside global memory"));
    }
    let policy = usize::from(form.cache_hints());
    let (length, ty) = vector_length(form, space)?;
    let operands = form.operands(2 + policy, 2 + policy)?;
    check_cache_policy(form, operands.get(2))?;
    let space = form.parameter_space(&operands[1], space);
    let mut register_bytes = None;
    let mut destinations = Vec::with_capacity(length);
    if ty == Type::B128 {
        destinations.extend(form.wide_register(&operands[0])?.map(Some));
        return Ok(Operation::Load(Load {
            space,
            order,
            scope,
            non_coherent,
            element: element(ty),
            register_bytes: 8,
            destinations,
            address: form.address(&operands[1], space)?,
        }));
    }
    for element in form.exact_elements(&operands[0], length)? {
        if matches!(element.kind, OperandKind::Sink) {
            destinations.push(None);
            continue;
        }
        let (register, declared) = form.register_of(element, ty, Width::AtLeast)?;
        let bytes = (declared.bits() / 8) as u8;
        if *register_bytes.get_or_insert(bytes) != bytes {
            return Err(form.wrong_operand(&operands[0], "registers of one width"));
        }
        destinations.push(Some(register));
    }
    Ok(Operation::Load(Load {
        space,
        order,
        scope,
        non_coherent,
        element: element(ty),
        register_bytes: register_bytes.unwrap_or((ty.bits() / 8) as u8),
        destinations,
        address: form.address(&operands[1], space)?,
    }))
}

pub(super) fn store(form: &mut Form<'_, '_>) -> Result<Operation, PtxError> {
    if form.has(".async") {
        return super::remote_store::store(form);
    }
    if form.has(".bulk") {
        return Err(form.unsupported(""));
    }
    let (order, scope) = ordering(form, (".release", MemoryOrder::Release))?;
    let space = take_space(form);
    let policy = usize::from(form.cache_hints());
    let (length, ty) = vector_length(form, space)?;
    let operands = form.operands(2 + policy, 2 + policy)?;
    check_cache_policy(form, operands.get(2))?;
    let space = form.parameter_space(&operands[0], space);
    if matches!(space, StateSpace::Parameter | StateSpace::Constant) {
        return Err(form.unsupported(": stores to this state space"));
    }
    let sources = if ty == Type::B128 {
        form.wide_source(&operands[1])?.to_vec()
    } else {
        let sources = form.exact_elements(&operands[1], length)?;
        sources.iter().map(|e| form.source_of(e, ty, Width::AtLeast)).collect::<Result<_, _>>()?
    };
    Ok(Operation::Store(Store {
        space,
        order,
        scope,
        element: element(ty),
        single: length == 1,
        sources,
        address: form.address(&operands[0], space)?,
    }))
}

pub(super) fn prefetch(form: &mut Form<'_, '_>) -> Result<Operation, PtxError> {
    let tensor_map = form.has(".tensormap");
    let space = if tensor_map {
        form.needs(Needs::SM90)?;
        take_space_of(form, &[StateSpace::Parameter, StateSpace::Constant])
    } else {
        let levels = [(".L1", ()), (".L2", ()), (".L2::evict_last", ()), (".L2::evict_normal", ())];
        form.choose_required("a cache level", &levels)?;
        take_space_of(form, &[StateSpace::Global, StateSpace::Local])
    };
    let [address] = form.exactly()?;
    Ok(Operation::Prefetch { address: form.address(address, space)?, space, tensor_map })
}

/// `discard.global.L2 [a], 128` and `applypriority.global.L2::evict_normal [a], 128`.
pub(super) fn cache_control(form: &mut Form<'_, '_>) -> Result<Operation, PtxError> {
    let level = if form.instruction.opcode.text == "discard" { ".L2" } else { ".L2::evict_normal" };
    form.require(level)?;
    let space = take_space_of(form, &[StateSpace::Global]);
    let [address, size] = form.exactly()?;
    form.immediate(size, "the size", 128..=128)?;
    Ok(Operation::Prefetch { address: form.address(address, space)?, space, tensor_map: false })
}

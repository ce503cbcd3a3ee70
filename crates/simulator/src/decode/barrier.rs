//! `bar`, `barrier` and `barrier.cluster`.

use super::form::Form;
use super::target::Needs;
use crate::program::{Barrier, BarrierKind, BarrierReduction, MemoryOrder, Operation};
use crate::ptx::PtxError;
use crate::ptx::ast::{Constant, Operand, OperandKind, Type};

pub(super) fn bar(form: &mut Form<'_, '_>) -> Result<Operation, PtxError> {
    if form.has(".warp") {
        form.require(".sync")?;
        let [members] = form.exactly()?;
        return Ok(Operation::WarpSync { members: form.source(members, Type::B32)? });
    }
    cta_barrier(form, true)
}

pub(super) fn barrier(form: &mut Form<'_, '_>) -> Result<Operation, PtxError> {
    if !form.has(".cluster") {
        return cta_barrier(form, false);
    }
    form.needs(Needs::SM90)?;
    form.exactly::<0>()?;
    if form.has(".arrive") {
        let orders = [(".release", MemoryOrder::Release), (".relaxed", MemoryOrder::Relaxed)];
        let order = form.choose(&orders).unwrap_or(MemoryOrder::Release);
        return Ok(Operation::ClusterArrive { order, aligned: form.has(".aligned") });
    }
    if !form.has(".wait") {
        return Err(form.unknown());
    }
    form.has(".acquire");
    Ok(Operation::ClusterWait { aligned: form.has(".aligned") })
}

fn cta_barrier(form: &mut Form<'_, '_>, always_aligned: bool) -> Result<Operation, PtxError> {
    form.has(".cta");
    let aligned = always_aligned || form.has(".aligned");
    if form.has(".sync") {
        let operands = form.operands(1, 2)?;
        return finish(form, &operands[0], operands.get(1), BarrierKind::Synchronize, aligned);
    }
    if form.has(".arrive") {
        let [barrier, threads] = form.exactly()?;
        return finish(form, barrier, Some(threads), BarrierKind::Arrive, aligned);
    }
    if !form.has(".red") {
        return Err(form.unknown());
    }
    let operands = form.operands(3, 4)?;
    let destination = if form.has(".popc") {
        form.require(".u32")?;
        BarrierReduction::Count(form.register(&operands[0], Type::U32)?)
    } else {
        let and = form.choose_required("a reduction", &[(".and", true), (".or", false)])?;
        form.require(".pred")?;
        let predicate = form.predicate(&operands[0])?;
        if and { BarrierReduction::And(predicate) } else { BarrierReduction::Or(predicate) }
    };
    let source = form.predicate_operand(&operands[operands.len() - 1])?;
    let threads = (operands.len() == 4).then(|| &operands[2]);
    finish(form, &operands[1], threads, BarrierKind::Reduce { destination, source }, aligned)
}

fn finish<'a>(
    form: &mut Form<'_, 'a>,
    barrier: &Operand<'a>,
    threads: Option<&Operand<'a>>,
    kind: BarrierKind,
    aligned: bool,
) -> Result<Operation, PtxError> {
    if matches!(barrier.kind, OperandKind::Constant(_)) {
        form.immediate(barrier, "the barrier", 0..=15)?;
    }
    if let Some(OperandKind::Constant(Constant::Integer(count))) = threads.map(|operand| &operand.kind)
        && (count % 32 != 0 || *count == 0)
    {
        let span = threads.map_or(form.span(), |operand| operand.span);
        let (what, allowed) = ("the thread count".into(), "a multiple of 32".into());
        return Err(PtxError::OutOfRange { what, allowed, at: span.into() });
    }
    Ok(Operation::Barrier(Barrier {
        barrier: form.source(barrier, Type::U32)?,
        threads: threads.map(|operand| form.source(operand, Type::U32)).transpose()?,
        kind,
        aligned,
    }))
}

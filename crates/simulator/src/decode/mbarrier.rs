//! `mbarrier.*`.

use super::form::Form;
use super::space::take_space_of;
use super::target::Needs;
use crate::program::{Mbarrier, MbarrierKind, MbarrierPhase, MemoryOrder, Operation, Scope, StateSpace};
use crate::ptx::PtxError;
use crate::ptx::ast::{OperandKind, Type};

pub(super) fn decode(form: &mut Form<'_, '_>) -> Result<Operation, PtxError> {
    form.needs(Needs::SM80)?;
    if form.has(".init") {
        let space = cta_space(form);
        form.require(".b64")?;
        let [address, count] = form.exactly()?;
        if matches!(count.kind, OperandKind::Constant(_)) {
            // PTX ISA, "mbarrier object": expected arrivals range from 1 to 2^20 - 1.
            form.immediate(count, "the arrival count", 1..=0xf_ffff)?;
        }
        let kind = MbarrierKind::Init(form.source(count, Type::U32)?);
        return finish(form, address, space, kind);
    }
    if form.has(".inval") {
        let space = cta_space(form);
        form.require(".b64")?;
        let [address] = form.exactly()?;
        return finish(form, address, space, MbarrierKind::Invalidate);
    }
    if form.has(".pending_count") {
        form.require(".b64")?;
        let [destination, state] = form.exactly()?;
        let kind = MbarrierKind::PendingCount {
            destination: form.register(destination, Type::U32)?,
            state: form.source(state, Type::B64)?,
        };
        let address = crate::program::Address { base: crate::program::Operand::Immediate(0), offset: 0 };
        return Ok(Operation::Mbarrier(Mbarrier { address, space: StateSpace::Generic, kind }));
    }
    if let Some(drop) = form.choose(&[(".arrive", false), (".arrive_drop", true)]) {
        return arrive(form, drop);
    }
    if let Some(suspends) = form.choose(&[(".try_wait", true), (".test_wait", false)]) {
        return wait(form, suspends);
    }
    transactions(form)
}

/// `.shared` or `.shared::cta`, for the operations that reach the own CTA only.
fn cta_space(form: &mut Form<'_, '_>) -> StateSpace {
    take_space_of(form, &[StateSpace::SharedCta])
}

fn any_space(form: &mut Form<'_, '_>) -> StateSpace {
    take_space_of(form, &[StateSpace::SharedCta, StateSpace::SharedCluster])
}

/// The order, and `.cta` or `.cluster`; the order defaults to the table's first, and where it is spelt out so is the scope.
fn ordering(form: &mut Form<'_, '_>, orders: &[(&str, MemoryOrder)]) -> Result<(MemoryOrder, Scope), PtxError> {
    let order = form.choose(orders);
    let scope = form.choose(&[(".cta", Scope::Cta), (".cluster", Scope::Cluster)]);
    if order.is_some() != scope.is_some() {
        return Err(form.missing("both an order and a scope, or neither"));
    }
    Ok((order.unwrap_or(orders[0].1), scope.unwrap_or(Scope::Cta)))
}

fn finish<'a>(
    form: &mut Form<'_, 'a>,
    address: &crate::ptx::ast::Operand<'a>,
    space: StateSpace,
    kind: MbarrierKind,
) -> Result<Operation, PtxError> {
    Ok(Operation::Mbarrier(Mbarrier { address: form.address(address, space)?, space, kind }))
}

fn transactions(form: &mut Form<'_, '_>) -> Result<Operation, PtxError> {
    let expect = match form.choose(&[(".expect_tx", true), (".complete_tx", false)]) {
        Some(expect) => expect,
        None => return Err(form.unknown()),
    };
    form.needs(Needs::SM90)?;
    ordering(form, &[(".relaxed", MemoryOrder::Relaxed)])?;
    let space = any_space(form);
    form.require(".b64")?;
    let [address, bytes] = form.exactly()?;
    let bytes = form.source(bytes, Type::U32)?;
    let kind =
        if expect { MbarrierKind::ExpectTransactions { bytes } } else { MbarrierKind::CompleteTransactions { bytes } };
    finish(form, address, space, kind)
}

fn arrive(form: &mut Form<'_, '_>, drop: bool) -> Result<Operation, PtxError> {
    let expects = form.has(".expect_tx");
    if form.has(".noComplete") {
        // Only promises that the phase does not complete, which the barrier checks by itself.
        form.operands(3, 3)?;
    }
    if expects {
        form.needs(Needs::SM90)?;
    }
    let orders = [(".release", MemoryOrder::Release), (".relaxed", MemoryOrder::Relaxed)];
    let (order, scope) = ordering(form, &orders)?;
    let space = any_space(form);
    form.require(".b64")?;
    let operands = if expects { form.operands(3, 3)? } else { form.operands(2, 3)? };
    let state = form.register_or_sink(&operands[0], Type::B64)?;
    if state.is_some() && space == StateSpace::SharedCluster {
        return Err(form.wrong_operand(&operands[0], "`_` (a remote barrier returns no state)"));
    }
    let number = operands.get(2).map(|operand| form.source(operand, Type::U32)).transpose()?;
    let (count, expect_bytes) = if expects { (None, number) } else { (number, None) };
    finish(form, &operands[1], space, MbarrierKind::Arrive { state, count, expect_bytes, drop, order, scope })
}

fn wait(form: &mut Form<'_, '_>, suspends: bool) -> Result<Operation, PtxError> {
    if suspends {
        form.needs(Needs::SM90)?;
    }
    let parity = form.has(".parity");
    let orders = [(".acquire", MemoryOrder::Acquire), (".relaxed", MemoryOrder::Relaxed)];
    let (order, scope) = ordering(form, &orders)?;
    let space = cta_space(form);
    form.require(".b64")?;
    let operands = form.operands(3, 3 + usize::from(suspends))?;
    let phase = if parity {
        MbarrierPhase::Parity(form.source(&operands[2], Type::U32)?)
    } else {
        MbarrierPhase::Token(form.source(&operands[2], Type::B64)?)
    };
    let kind = MbarrierKind::Wait {
        complete: form.predicate(&operands[0])?,
        phase,
        suspends,
        hint_ns: operands.get(3).map(|hint| form.source(hint, Type::U32)).transpose()?,
        order,
        scope,
    };
    finish(form, &operands[1], space, kind)
}

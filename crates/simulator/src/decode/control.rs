//! Control flow.

use super::form::Form;
use crate::program::Operation;
use crate::ptx::PtxError;
use crate::ptx::ast::{Operand, OperandKind, Type};

fn label<'a>(form: &Form<'_, 'a>, operand: &Operand<'a>) -> Result<u32, PtxError> {
    let OperandKind::Name(name) = operand.kind else {
        return Err(form.wrong_operand(operand, "a label"));
    };
    form.context
        .scopes
        .label(form.scope, name)
        .ok_or_else(|| PtxError::UnknownLabel { name: name.into(), at: operand.span.into() })
}

pub(super) fn branch(form: &mut Form<'_, '_>) -> Result<Operation, PtxError> {
    let uniform = form.has(".uni");
    let [target] = form.exactly()?;
    Ok(Operation::Branch { target: label(form, target)?, uniform })
}

pub(super) fn branch_indexed(form: &mut Form<'_, '_>) -> Result<Operation, PtxError> {
    form.require(".idx")?;
    form.has(".uni");
    let [index, list] = form.exactly()?;
    let index = form.source(index, Type::U32)?;
    let OperandKind::Name(name) = list.kind else {
        return Err(form.wrong_operand(list, "a list of labels"));
    };
    let Some(names) = form.context.scopes.targets(form.scope, name) else {
        return Err(PtxError::UnknownLabel { name: name.into(), at: list.span.into() });
    };
    let targets = names.iter().map(|target| {
        let found = form.context.scopes.label(form.scope, target.text);
        found.ok_or_else(|| PtxError::UnknownLabel { name: target.text.into(), at: target.span.into() })
    });
    Ok(Operation::BranchIndexed { index, targets: targets.collect::<Result<_, _>>()? })
}

pub(super) fn exit(form: &mut Form<'_, '_>) -> Result<Operation, PtxError> {
    if form.instruction.opcode.text == "ret" {
        form.has(".uni");
    }
    form.exactly::<0>()?;
    Ok(Operation::Exit)
}

pub(super) fn trap(form: &mut Form<'_, '_>) -> Result<Operation, PtxError> {
    form.exactly::<0>()?;
    Ok(Operation::Trap)
}

pub(super) fn nanosleep(form: &mut Form<'_, '_>) -> Result<Operation, PtxError> {
    form.require(".u32")?;
    let [time] = form.exactly()?;
    Ok(Operation::NanoSleep(form.source(time, Type::U32)?))
}

pub(super) fn set_max_registers(form: &mut Form<'_, '_>) -> Result<Operation, PtxError> {
    form.choose_required("a direction", &[(".inc", ()), (".dec", ())])?;
    form.require(".sync")?;
    form.require(".aligned")?;
    form.require(".u32")?;
    form.needs(super::target::Needs::SM90A)?;
    let [count] = form.exactly()?;
    let count_value = form.immediate(count, "the register count", 24..=256)?;
    if count_value % 8 != 0 {
        let (what, allowed) = ("the register count".into(), "a multiple of 8".into());
        return Err(PtxError::OutOfRange { what, allowed, at: count.span.into() });
    }
    Ok(Operation::NoEffect("setmaxnreg"))
}

pub(super) fn grid_dependency(form: &mut Form<'_, '_>) -> Result<Operation, PtxError> {
    form.choose_required("an action", &[(".launch_dependents", ()), (".wait", ())])?;
    form.needs(super::target::Needs::SM90)?;
    form.exactly::<0>()?;
    Ok(Operation::NoEffect("griddepcontrol"))
}

pub(super) fn performance_event(form: &mut Form<'_, '_>) -> Result<Operation, PtxError> {
    form.has(".mask");
    let [events] = form.exactly()?;
    form.immediate(events, "the event", 0..=0xffff)?;
    Ok(Operation::NoEffect("pmevent"))
}

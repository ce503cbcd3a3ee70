//! `cp.async` (PTX ISA, "Data Movement and Conversion Instructions: Non-bulk copy").

use super::form::Form;
use super::memory::check_cache_policy;
use super::space::take_space_of;
use super::target::Needs;
use crate::program::{AsyncCopy, Operation, StateSpace};
use crate::ptx::PtxError;
use crate::ptx::ast::{OperandKind, Type};

/// Decodes what follows `cp.async`.
pub(super) fn decode(form: &mut Form<'_, '_>) -> Result<Operation, PtxError> {
    form.needs(Needs::SM80)?;
    let first = form.peek();
    form.has(first);
    let copy = match first {
        ".ca" | ".cg" => copy(form, first == ".cg")?,
        ".commit_group" => {
            form.exactly::<0>()?;
            AsyncCopy::CommitGroup
        }
        ".wait_group" => {
            let [pending] = form.exactly()?;
            let pending = form.immediate(pending, "the number of groups", 0..=i128::from(u32::MAX))? as u32;
            AsyncCopy::WaitGroup { pending }
        }
        ".wait_all" => {
            form.exactly::<0>()?;
            AsyncCopy::WaitAll
        }
        ".mbarrier" => {
            form.require(".arrive")?;
            let no_increment = form.has(".noinc");
            let space = take_space_of(form, &[StateSpace::SharedCta]);
            form.require(".b64")?;
            let [barrier] = form.exactly()?;
            AsyncCopy::MbarrierArrive { barrier: form.address(barrier, space)?, space, no_increment }
        }
        _ => return Err(form.unknown()),
    };
    Ok(Operation::AsyncCopy(copy))
}

fn copy(form: &mut Form<'_, '_>, around_l1: bool) -> Result<AsyncCopy, PtxError> {
    form.choose_required("a destination space", &[(".shared", ()), (".shared::cta", ())])?;
    form.require(".global")?;
    let policy = form.cache_hints();
    let operands = form.operands(3, if policy { 5 } else { 4 })?;
    let bytes = form.immediate(&operands[2], "the size", 4..=16)? as u32;
    let sizes: &[u32] = if around_l1 { &[16] } else { &[4, 8, 16] };
    if !sizes.contains(&bytes) {
        let (what, allowed) = ("the size".into(), if around_l1 { "16 with `.cg`" } else { "4, 8 or 16" }.into());
        return Err(PtxError::OutOfRange { what, allowed, at: operands[2].span.into() });
    }
    let mut rest = &operands[3..];
    if policy {
        let Some((last, before)) = rest.split_last() else {
            return Err(form.missing("a cache policy with `.L2::cache_hint`"));
        };
        check_cache_policy(form, Some(last))?;
        rest = before;
    }
    let (mut source_bytes, mut ignore_source) = (None, None);
    if let Some(operand) = rest.first() {
        // A size and a predicate stand in the same place.
        let is_predicate = match operand.kind {
            OperandKind::Not(_) => true,
            OperandKind::Name(name) => {
                form.lookup(name, operand.span)?.is_some_and(|(_, declared)| declared == Type::Pred)
            }
            _ => false,
        };
        if is_predicate {
            ignore_source = Some(form.predicate_operand(operand)?);
        } else {
            source_bytes = Some(form.source(operand, Type::U32)?);
        }
    }
    Ok(AsyncCopy::Copy {
        destination: form.address(&operands[0], StateSpace::SharedCta)?,
        source: form.address(&operands[1], StateSpace::Global)?,
        bytes,
        source_bytes,
        ignore_source,
    })
}

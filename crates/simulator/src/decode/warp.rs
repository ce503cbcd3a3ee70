//! Instructions by which the lanes of a warp exchange values.

use super::atomic;
use super::form::Form;
use super::target::Needs;
use crate::program::{AtomicOperation, Operation, Shuffle, ShuffleMode, Vote, VoteKind};
use crate::ptx::PtxError;
use crate::ptx::ast::Type;

pub(super) fn elect(form: &mut Form<'_, '_>) -> Result<Operation, PtxError> {
    form.require(".sync")?;
    form.needs(Needs::SM90)?;
    let [destination, members] = form.exactly()?;
    let (lane, Some(elected)) = form.pair(destination) else {
        return Err(form.wrong_operand(destination, "a `d|p` pair"));
    };
    Ok(Operation::Elect {
        lane: form.register_or_sink(lane, Type::B32)?,
        elected: form.predicate(elected)?,
        members: form.source(members, Type::B32)?,
    })
}

pub(super) fn active_mask(form: &mut Form<'_, '_>) -> Result<Operation, PtxError> {
    form.require(".b32")?;
    let [destination] = form.exactly()?;
    Ok(Operation::ActiveMask(form.register(destination, Type::B32)?))
}

pub(super) fn shuffle(form: &mut Form<'_, '_>) -> Result<Operation, PtxError> {
    form.require(".sync")?;
    let modes = [
        (".up", ShuffleMode::Up),
        (".down", ShuffleMode::Down),
        (".bfly", ShuffleMode::Butterfly),
        (".idx", ShuffleMode::Index),
    ];
    let mode = form.choose_required("a mode", &modes)?;
    form.require(".b32")?;
    let [destination, source, lane, clamp, members] = form.exactly()?;
    let (destination, in_range) = form.pair(destination);
    Ok(Operation::Shuffle(Shuffle {
        mode,
        destination: form.register(destination, Type::B32)?,
        in_range: match in_range {
            Some(operand) => form.predicate_or_sink(operand)?,
            None => None,
        },
        source: form.source(source, Type::B32)?,
        lane: form.source(lane, Type::B32)?,
        clamp: form.source(clamp, Type::B32)?,
        members: form.source(members, Type::B32)?,
    }))
}

pub(super) fn vote(form: &mut Form<'_, '_>) -> Result<Operation, PtxError> {
    form.require(".sync")?;
    let [destination, source, members] = form.exactly()?;
    let kind = if form.has(".ballot") {
        form.require(".b32")?;
        VoteKind::Ballot(form.register(destination, Type::B32)?)
    } else {
        let kinds: [(&str, fn(_) -> _); 3] =
            [(".all", VoteKind::All), (".any", VoteKind::Any), (".uni", VoteKind::Uniform)];
        let kind = form.choose_required("a mode", &kinds)?;
        form.require(".pred")?;
        kind(form.predicate(destination)?)
    };
    Ok(Operation::Vote(Vote {
        kind,
        source: form.predicate_operand(source)?,
        members: form.source(members, Type::B32)?,
    }))
}

pub(super) fn match_sync(form: &mut Form<'_, '_>) -> Result<Operation, PtxError> {
    let all = form.choose_required("a mode", &[(".all", true), (".any", false)])?;
    form.require(".sync")?;
    let ty = form.data_type(&[Type::B32, Type::B64])?;
    let [destination, source, members] = form.exactly()?;
    let (destination, predicate) = form.pair(destination);
    let all = match (all, predicate) {
        (true, Some(operand)) => Some(form.predicate_or_sink(operand)?),
        (true, None) => Some(None),
        (false, None) => None,
        (false, Some(operand)) => return Err(form.wrong_operand(operand, "no predicate")),
    };
    Ok(Operation::Match {
        destination: form.register(destination, Type::B32)?,
        all,
        source: form.source(source, ty)?,
        members: form.source(members, Type::B32)?,
    })
}

pub(super) fn redux(form: &mut Form<'_, '_>) -> Result<Operation, PtxError> {
    use AtomicOperation as O;
    form.require(".sync")?;
    form.needs(Needs::SM80)?;
    let reduction = form.choose_required("an operation", &atomic::REDUCTIONS[..6])?;
    let ty = match reduction {
        O::Add => form.data_type(&[Type::U32, Type::S32])?,
        O::Min | O::Max => form.data_type(&[Type::U32, Type::S32, Type::F32])?,
        _ => form.data_type(&[Type::B32])?,
    };
    if ty == Type::F32 {
        form.needs(Needs::SM100A)?;
    }
    let [destination, source, members] = form.exactly()?;
    Ok(Operation::Redux {
        destination: form.register(destination, ty)?,
        reduction,
        element: atomic::element(ty),
        source: form.source(source, ty)?,
        members: form.source(members, Type::B32)?,
    })
}

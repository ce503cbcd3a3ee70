//! State spaces: as modifiers, and the instructions that convert between them.

use super::form::Form;
use super::target::Needs;
use crate::program::{Operation, StateSpace};
use crate::ptx::PtxError;
use crate::ptx::ast::Type;

const SPACES: [(&str, StateSpace); 10] = [
    (".global", StateSpace::Global),
    (".shared", StateSpace::SharedCta),
    (".shared::cta", StateSpace::SharedCta),
    (".shared::cluster", StateSpace::SharedCluster),
    (".param", StateSpace::Parameter),
    (".param::entry", StateSpace::Parameter),
    (".param::func", StateSpace::Parameter),
    (".local", StateSpace::Local),
    (".const", StateSpace::Constant),
    (".generic", StateSpace::Generic),
];

/// Takes a state space; generic if there is none.
pub(super) fn take_space(form: &mut Form<'_, '_>) -> StateSpace {
    form.choose(&SPACES[..9]).unwrap_or(StateSpace::Generic)
}

/// Takes a state space out of those given; generic if there is none.
pub(super) fn take_space_of(form: &mut Form<'_, '_>, allowed: &[StateSpace]) -> StateSpace {
    let table: Vec<_> = SPACES[..9].iter().copied().filter(|(_, space)| allowed.contains(space)).collect();
    form.choose(&table).unwrap_or(StateSpace::Generic)
}

pub(super) fn convert_address(form: &mut Form<'_, '_>) -> Result<Operation, PtxError> {
    let to_space = form.has(".to");
    let space = form.choose_required("a state space", &SPACES[..9])?;
    let ty = form.data_type(&[Type::U64, Type::U32])?;
    if ty == Type::U32 {
        return Err(form.unsupported(": 32-bit generic addresses"));
    }
    let [destination, source] = form.exactly()?;
    Ok(Operation::ConvertAddress {
        destination: form.register(destination, ty)?,
        source: form.source(source, ty)?,
        space,
        to_space,
    })
}

pub(super) fn is_space(form: &mut Form<'_, '_>) -> Result<Operation, PtxError> {
    let space = form.choose_required("a state space", &SPACES[..9])?;
    let [destination, source] = form.exactly()?;
    Ok(Operation::IsSpace { destination: form.predicate(destination)?, source: form.source(source, Type::B64)?, space })
}

pub(super) fn map_shared(form: &mut Form<'_, '_>) -> Result<Operation, PtxError> {
    form.needs(Needs::SM90)?;
    let shared = form.has(".shared::cluster");
    let ty = form.data_type(&[Type::U32, Type::U64])?;
    if ty == Type::U32 && !shared {
        return Err(form.missing("`.shared::cluster` for 32-bit addresses"));
    }
    let [destination, address, cta] = form.exactly()?;
    Ok(Operation::MapShared {
        destination: form.register(destination, ty)?,
        address: form.source(address, ty)?,
        cta: form.source(cta, Type::U32)?,
        shared,
    })
}

pub(super) fn get_cta_rank(form: &mut Form<'_, '_>) -> Result<Operation, PtxError> {
    form.needs(Needs::SM90)?;
    let shared = form.has(".shared::cluster");
    let ty = form.data_type(&[Type::U32, Type::U64])?;
    if ty == Type::U32 && !shared {
        return Err(form.missing("`.shared::cluster` for 32-bit addresses"));
    }
    let [destination, address] = form.exactly()?;
    Ok(Operation::GetCtaRank {
        destination: form.register(destination, Type::U32)?,
        address: form.source(address, ty)?,
        shared,
    })
}

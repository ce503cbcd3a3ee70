//! `clusterlaunchcontrol.*`.

use super::form::Form;
use super::space::take_space_of;
use super::target::Needs;
use crate::program::{LaunchControl, Operation, StateSpace};
use crate::ptx::PtxError;
use crate::ptx::ast::Type;

pub(super) fn decode(form: &mut Form<'_, '_>) -> Result<Operation, PtxError> {
    form.needs(Needs::SM100)?;
    if form.has(".try_cancel") {
        return try_cancel(form);
    }
    if !form.has(".query_cancel") {
        return Err(form.unknown());
    }
    query(form).map(Operation::LaunchControl)
}

fn try_cancel(form: &mut Form<'_, '_>) -> Result<Operation, PtxError> {
    form.require(".async")?;
    // `.shared` alone is refused here, as the ISA names `.shared::cta` only.
    let space =
        if form.peek() == ".shared" { StateSpace::Generic } else { take_space_of(form, &[StateSpace::SharedCta]) };
    form.require(".mbarrier::complete_tx::bytes")?;
    let multicast = form.has(".multicast::cluster::all");
    if multicast {
        form.needs(Needs::SM100A)?;
    }
    form.require(".b128")?;
    let [response, barrier] = form.exactly()?;
    Ok(Operation::LaunchControl(LaunchControl::TryCancel {
        response: form.address(response, space)?,
        barrier: form.address(barrier, space)?,
        space,
        multicast,
    }))
}

fn query(form: &mut Form<'_, '_>) -> Result<LaunchControl, PtxError> {
    if form.has(".is_canceled") {
        form.require(".pred")?;
        form.require(".b128")?;
        let [destination, response] = form.exactly()?;
        let destination = form.predicate(destination)?;
        return Ok(LaunchControl::IsCanceled { destination, response: form.wide_source(response)? });
    }
    let axes = [(".get_first_ctaid::x", 0), (".get_first_ctaid::y", 1), (".get_first_ctaid::z", 2)];
    let mut destinations = [None; 4];
    let axis = form.choose(&axes);
    if axis.is_none() {
        form.require(".get_first_ctaid")?;
        form.require(".v4")?;
    }
    form.require(".b32")?;
    form.require(".b128")?;
    let [destination, response] = form.exactly()?;
    match axis {
        Some(axis) => destinations[axis] = Some(form.register(destination, Type::B32)?),
        None => {
            let elements = form.exact_elements(destination, 4)?;
            for (register, element) in destinations.iter_mut().zip(elements) {
                *register = form.register_or_sink(element, Type::B32)?;
            }
        }
    }
    Ok(LaunchControl::FirstCta { destinations, response: form.wide_source(response)? })
}

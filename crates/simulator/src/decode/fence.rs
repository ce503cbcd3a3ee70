//! `fence` and `membar`.

use super::form::Form;
use super::memory::require_scope;
use super::target::Needs;
use crate::program::{Fence, MemoryOrder, Operation, Scope, StateSpace};
use crate::ptx::PtxError;

pub(super) fn fence(form: &mut Form<'_, '_>) -> Result<Operation, PtxError> {
    if form.has(".proxy") {
        return proxy(form);
    }
    let fence = if form.has(".mbarrier_init") {
        form.needs(Needs::SM90)?;
        form.require(".release")?;
        form.require(".cluster")?;
        Fence::MbarrierInit
    } else {
        memory(form)?
    };
    form.exactly::<0>()?;
    Ok(Operation::Fence(fence))
}

fn memory(form: &mut Form<'_, '_>) -> Result<Fence, PtxError> {
    let order = form.choose(&[
        (".sc", MemoryOrder::SequentiallyConsistent),
        (".acq_rel", MemoryOrder::AcquireRelease),
        (".acquire", MemoryOrder::Acquire),
        (".release", MemoryOrder::Release),
    ]);
    if matches!(order, Some(MemoryOrder::Acquire | MemoryOrder::Release)) {
        form.needs(Needs::SM90)?;
    }
    let scope = require_scope(form)?;
    Ok(Fence::Memory { order: order.unwrap_or(MemoryOrder::AcquireRelease), scope })
}

/// `membar.level` is `fence.sc.scope`.
pub(super) fn membar(form: &mut Form<'_, '_>) -> Result<Operation, PtxError> {
    if form.has(".proxy") {
        return proxy(form);
    }
    let levels = [(".cta", Scope::Cta), (".gl", Scope::Gpu), (".sys", Scope::System)];
    let scope = form.choose_required("a level", &levels)?;
    form.exactly::<0>()?;
    Ok(Operation::Fence(Fence::Memory { order: MemoryOrder::SequentiallyConsistent, scope }))
}

fn proxy(form: &mut Form<'_, '_>) -> Result<Operation, PtxError> {
    let fence = if form.has(".alias") {
        Fence::ProxyAlias
    } else if form.has(".async") {
        form.needs(Needs::SM90)?;
        Fence::ProxyAsync(form.choose(&[
            (".global", StateSpace::Global),
            (".shared::cta", StateSpace::SharedCta),
            (".shared::cluster", StateSpace::SharedCluster),
        ]))
    } else if form.has(".tensormap::generic") {
        form.needs(Needs::SM90)?;
        let orders = [(".acquire", MemoryOrder::Acquire), (".release", MemoryOrder::Release)];
        let order = form.choose_required("an order", &orders)?;
        let scope = require_scope(form)?;
        let mut address = None;
        if order == MemoryOrder::Acquire {
            let [map, size] = form.exactly()?;
            form.immediate(size, "the size of a tensor map", 128..=128)?;
            address = Some(form.address(map, StateSpace::Generic)?);
        } else {
            form.exactly::<0>()?;
        }
        return Ok(Operation::Fence(Fence::ProxyTensorMap { order, scope, address }));
    } else {
        return Err(form.unknown());
    };
    form.exactly::<0>()?;
    Ok(Operation::Fence(fence))
}

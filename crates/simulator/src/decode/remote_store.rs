//! `st.async` and `red.async`, the forms that complete on an mbarrier.

use super::atomic::{REDUCTIONS, element};
use super::form::Form;
use super::space::take_space_of;
use super::target::Needs;
use crate::program::{AtomicOperation, Operation, RemoteStore, StateSpace};
use crate::ptx::PtxError;
use crate::ptx::ast::Type;

/// The forms that release in device memory are other instructions in all but name.
fn refuse_device_memory(form: &mut Form<'_, '_>) -> Result<(), PtxError> {
    if form.choose(&[(".mmio", ()), (".release", ()), (".global", ())]).is_some() {
        return Err(form.unsupported(": only stores to shared memory that complete on an mbarrier"));
    }
    Ok(())
}

pub(super) fn store(form: &mut Form<'_, '_>) -> Result<Operation, PtxError> {
    const TYPES: [Type; 8] = [Type::B32, Type::B64, Type::U32, Type::U64, Type::S32, Type::S64, Type::F32, Type::F64];
    form.needs(Needs::SM90)?;
    refuse_device_memory(form)?;
    form.has(".weak");
    let length = form.choose(&[(".v2", 2), (".v4", 4)]).unwrap_or(1);
    let ty = form.data_type(&TYPES)?;
    if length as u32 * ty.bits() > 128 {
        return Err(form.unsupported(": vectors over 16 bytes"));
    }
    finish(form, ty, length, None)
}

pub(super) fn reduce(form: &mut Form<'_, '_>) -> Result<Operation, PtxError> {
    use AtomicOperation as O;
    form.needs(Needs::SM90)?;
    refuse_device_memory(form)?;
    form.require(".relaxed")?;
    form.require(".cluster")?;
    let operation = form.choose_required("an operation", &REDUCTIONS)?;
    let types: &[Type] = match operation {
        O::Add => &[Type::U32, Type::S32, Type::U64],
        O::Min | O::Max => &[Type::U32, Type::S32],
        O::Increment | O::Decrement => &[Type::U32],
        _ => &[Type::B32],
    };
    let ty = form.data_type(types)?;
    finish(form, ty, 1, Some(operation))
}

fn finish(
    form: &mut Form<'_, '_>,
    ty: Type,
    length: usize,
    reduction: Option<AtomicOperation>,
) -> Result<Operation, PtxError> {
    let space = take_space_of(form, &[StateSpace::SharedCluster]);
    form.require(".mbarrier::complete_tx::bytes")?;
    let [address, value, barrier] = form.exactly()?;
    let values = form.exact_elements(value, length)?;
    Ok(Operation::RemoteStore(RemoteStore {
        space,
        element: element(ty),
        sources: values.iter().map(|e| form.source(e, ty)).collect::<Result<_, _>>()?,
        reduction,
        address: form.address(address, space)?,
        barrier: form.address(barrier, space)?,
    }))
}

//! `tensormap.*` (PTX ISA, "tensormap.replace" and "tensormap.cp_fenceproxy").

use super::form::Form;
use super::memory::require_scope;
use super::space::take_space_of;
use super::target::Needs;
use crate::program::{Operation, StateSpace, TensorMapField, TensorMapUpdate};
use crate::ptx::PtxError;
use crate::ptx::ast::Type;

pub(super) fn decode(form: &mut Form<'_, '_>) -> Result<Operation, PtxError> {
    let first = form.peek();
    form.has(first);
    let update = match first {
        ".replace" => replace(form)?,
        ".cp_fenceproxy" => copy(form)?,
        _ => return Err(form.unknown()),
    };
    Ok(Operation::TensorMap(update))
}

fn replace(form: &mut Form<'_, '_>) -> Result<TensorMapUpdate, PtxError> {
    use TensorMapField as F;
    form.needs(Needs::SM90A)?;
    form.require(".tile")?;
    // The ordinals are put in below.
    let fields = [
        (".global_address", F::GlobalAddress),
        (".rank", F::Rank),
        (".box_dim", F::BoxDimension(0)),
        (".global_dim", F::GlobalDimension(0)),
        (".global_stride", F::GlobalStride(0)),
        (".element_stride", F::ElementStride(0)),
        (".elemtype", F::ElementType),
        (".interleave_layout", F::InterleaveLayout),
        (".swizzle_mode", F::SwizzleMode),
        (".swizzle_atomicity", F::SwizzleAtomicity),
        (".fill_mode", F::FillMode),
    ];
    let field = form.choose_required("a field", &fields)?;
    let space = take_space_of(form, &[StateSpace::Global, StateSpace::SharedCta]);
    form.require(".b1024")?;
    let wide = matches!(field, F::GlobalAddress | F::GlobalStride(_));
    let ty = if wide { Type::B64 } else { Type::B32 };
    form.require(ty.name())?;
    let with_ordinal =
        matches!(field, F::BoxDimension(_) | F::GlobalDimension(_) | F::GlobalStride(_) | F::ElementStride(_));
    let count = 2 + usize::from(with_ordinal);
    let operands = form.operands(count, count)?;
    let last = if matches!(field, F::GlobalStride(_)) { 3 } else { 4 };
    let ordinal = if with_ordinal { form.immediate(&operands[1], "the ordinal", 0..=last)? as u8 } else { 0 };
    let field = match field {
        F::BoxDimension(_) => F::BoxDimension(ordinal),
        F::GlobalDimension(_) => F::GlobalDimension(ordinal),
        F::GlobalStride(_) => F::GlobalStride(ordinal),
        F::ElementStride(_) => F::ElementStride(ordinal),
        field => field,
    };
    let value = &operands[count - 1];
    // Enumerated fields take constants.
    if matches!(field, F::ElementType | F::InterleaveLayout | F::SwizzleMode | F::SwizzleAtomicity | F::FillMode) {
        form.immediate(value, "the new value", 0..=15)?;
    }
    Ok(TensorMapUpdate::Replace {
        address: form.address(&operands[0], space)?,
        space,
        field,
        value: form.source(value, ty)?,
    })
}

fn copy(form: &mut Form<'_, '_>) -> Result<TensorMapUpdate, PtxError> {
    form.needs(Needs::SM90)?;
    form.require(".global")?;
    form.require(".shared::cta")?;
    form.require(".tensormap::generic")?;
    form.require(".release")?;
    require_scope(form)?;
    form.require(".sync")?;
    form.require(".aligned")?;
    let [destination, source, size] = form.exactly()?;
    form.immediate(size, "the size", 128..=128)?;
    Ok(TensorMapUpdate::CopyFence {
        destination: form.address(destination, StateSpace::Global)?,
        source: form.address(source, StateSpace::SharedCta)?,
    })
}

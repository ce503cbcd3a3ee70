//! `cp.async.bulk*` and `cp.reduce.async.bulk*`; `cp.async` without `.bulk` is next door.

use super::atomic::{REDUCTIONS, element};
use super::form::Form;
use super::memory::check_cache_policy;
use super::target::Needs;
use crate::program::{AtomicOperation, Bulk, ElementType, Operation, StateSpace};
use crate::ptx::PtxError;
use crate::ptx::ast::{Operand, Type};

const DIMENSIONS: [(&str, usize); 5] = [(".1d", 1), (".2d", 2), (".3d", 3), (".4d", 4), (".5d", 5)];

const SPACES: [(&str, StateSpace); 4] = [
    (".shared::cluster", StateSpace::SharedCluster),
    (".shared::cta", StateSpace::SharedCta),
    (".shared", StateSpace::SharedCta),
    (".global", StateSpace::Global),
];

pub(super) fn decode(form: &mut Form<'_, '_>) -> Result<Operation, PtxError> {
    let reduces = form.has(".reduce");
    if !form.has(".async") {
        return Err(form.unknown());
    }
    if !form.has(".bulk") {
        return if reduces { Err(form.unknown()) } else { super::async_copy::decode(form) };
    }
    form.needs(Needs::SM90)?;
    if form.has(".commit_group") {
        form.exactly::<0>()?;
        return Ok(Operation::Bulk(Bulk::CommitGroup));
    }
    if form.has(".wait_group") {
        let read = form.has(".read");
        let [pending] = form.exactly()?;
        let pending = form.immediate(pending, "the number of groups", 0..=i128::from(u32::MAX))? as u32;
        return Ok(Operation::Bulk(Bulk::WaitGroup { pending, read }));
    }
    if form.has(".prefetch") {
        return prefetch(form);
    }
    let tensor = form.has(".tensor");
    let dimensions = if tensor { Some(form.choose_required("a dimension", &DIMENSIONS)?) } else { None };
    let destination = form.choose_required("a destination space", &SPACES)?;
    let source = form.choose_required("a source space", &SPACES)?;
    let reduction = if reduces { Some(form.choose_required("an operation", &REDUCTIONS)?) } else { None };
    let bulk = match (destination, source, dimensions) {
        (StateSpace::SharedCta | StateSpace::SharedCluster, StateSpace::Global, dimensions) if !reduces => {
            match dimensions {
                Some(dimensions) => tensor_load(form, destination, dimensions)?,
                None => load(form, destination)?,
            }
        }
        (StateSpace::Global, StateSpace::SharedCta, Some(dimensions)) => tensor_store(form, dimensions, reduction)?,
        (StateSpace::Global, StateSpace::SharedCta, None) => store(form, reduction)?,
        (StateSpace::SharedCluster, StateSpace::SharedCta, None) => cluster_copy(form, reduction)?,
        _ => return Err(form.unsupported("")),
    };
    Ok(Operation::Bulk(bulk))
}

/// Only tile mode is executed.
fn tile_mode(form: &mut Form<'_, '_>) -> Result<(), PtxError> {
    let others = [
        (".im2col", ()),
        (".im2col_no_offs", ()),
        (".im2col::w", ()),
        (".im2col::w::128", ()),
        (".tile::gather4", ()),
        (".tile::scatter4", ()),
    ];
    if form.choose(&others).is_some() {
        return Err(form.unsupported(": only tile mode"));
    }
    form.has(".tile");
    Ok(())
}

/// The operands after the first `fixed`: a multicast mask if `multicast`, then a cache policy if `policy`.
fn trailing<'a>(
    form: &mut Form<'_, 'a>,
    fixed: usize,
    multicast: bool,
    policy: bool,
) -> Result<(&'a [Operand<'a>], Option<crate::program::Operand>), PtxError> {
    let count = fixed + usize::from(multicast) + usize::from(policy);
    let operands = form.operands(count, count)?;
    let mask = if multicast { Some(form.source(&operands[fixed], Type::B16)?) } else { None };
    if policy {
        check_cache_policy(form, operands.last())?;
    }
    Ok((operands, mask))
}

/// `.multicast::cluster`, which needs a destination in the cluster's window.
fn multicast(form: &mut Form<'_, '_>, destination_space: StateSpace) -> Result<bool, PtxError> {
    let multicast = form.has(".multicast::cluster");
    if multicast && destination_space != StateSpace::SharedCluster {
        return Err(form.missing("`.shared::cluster` with `.multicast::cluster`"));
    }
    Ok(multicast)
}

fn tensor_load(form: &mut Form<'_, '_>, destination_space: StateSpace, dimensions: usize) -> Result<Bulk, PtxError> {
    tile_mode(form)?;
    form.require(".mbarrier::complete_tx::bytes")?;
    let multicast = multicast(form, destination_space)?;
    let cta_group = form.choose(&[(".cta_group::1", 1), (".cta_group::2", 2)]).unwrap_or(0);
    if cta_group != 0 {
        form.needs(Needs::SM100A)?;
    }
    let policy = form.has(".L2::cache_hint");
    let (operands, multicast) = trailing(form, 3, multicast, policy)?;
    let (tensor_map, coordinates) = form.tensor(&operands[1], dimensions)?;
    Ok(Bulk::TensorLoad {
        destination: form.address(&operands[0], destination_space)?,
        destination_space,
        tensor_map,
        coordinates,
        barrier: form.address(&operands[2], destination_space)?,
        multicast,
        cta_group,
    })
}

fn tensor_store(
    form: &mut Form<'_, '_>,
    dimensions: usize,
    reduction: Option<AtomicOperation>,
) -> Result<Bulk, PtxError> {
    tile_mode(form)?;
    form.require(".bulk_group")?;
    let policy = form.has(".L2::cache_hint");
    let (operands, _) = trailing(form, 2, false, policy)?;
    let (tensor_map, coordinates) = form.tensor(&operands[0], dimensions)?;
    let source = form.address(&operands[1], StateSpace::SharedCta)?;
    Ok(Bulk::TensorStore { tensor_map, coordinates, source, reduction })
}

fn load(form: &mut Form<'_, '_>, destination_space: StateSpace) -> Result<Bulk, PtxError> {
    form.require(".mbarrier::complete_tx::bytes")?;
    let multicast = multicast(form, destination_space)?;
    let policy = form.has(".L2::cache_hint");
    let (operands, multicast) = trailing(form, 4, multicast, policy)?;
    Ok(Bulk::Load {
        destination: form.address(&operands[0], destination_space)?,
        destination_space,
        source: form.address(&operands[1], StateSpace::Global)?,
        bytes: size(form, &operands[2])?,
        barrier: form.address(&operands[3], destination_space)?,
        multicast,
    })
}

/// The element type of a reduction (PTX ISA, "cp.reduce.async.bulk"); fewer exist in shared memory.
fn reduction_element(
    form: &mut Form<'_, '_>,
    operation: AtomicOperation,
    shared: bool,
) -> Result<ElementType, PtxError> {
    use AtomicOperation as O;
    use Type as T;
    let unflushed = form.has(".noftz");
    let types: &[Type] = match (operation, shared) {
        (O::Add, true) => &[T::U32, T::S32, T::U64],
        (O::Add, false) => &[T::U32, T::S32, T::U64, T::F32, T::F64, T::F16, T::Bf16],
        (O::Min | O::Max, true) => &[T::U32, T::S32],
        (O::Min | O::Max, false) => &[T::U32, T::S32, T::U64, T::S64, T::F16, T::Bf16],
        (O::Increment | O::Decrement, _) => &[T::U32],
        (_, true) => &[T::B32],
        (_, false) => &[T::B32, T::B64],
    };
    let ty = form.data_type(types)?;
    if unflushed != (operation == O::Add && matches!(ty, T::F16 | T::Bf16)) {
        return Err(form.missing("`.noftz` with `.add` of half-precision types, and only with it"));
    }
    Ok(element(ty))
}

fn reduction_of(
    form: &mut Form<'_, '_>,
    operation: Option<AtomicOperation>,
    shared: bool,
) -> Result<Option<(AtomicOperation, ElementType)>, PtxError> {
    operation.map(|operation| Ok((operation, reduction_element(form, operation, shared)?))).transpose()
}

fn cluster_copy(form: &mut Form<'_, '_>, operation: Option<AtomicOperation>) -> Result<Bulk, PtxError> {
    form.require(".mbarrier::complete_tx::bytes")?;
    let reduction = reduction_of(form, operation, true)?;
    let [destination, source, bytes, barrier] = form.exactly()?;
    Ok(Bulk::ClusterCopy {
        destination: form.address(destination, StateSpace::SharedCluster)?,
        source: form.address(source, StateSpace::SharedCta)?,
        bytes: size(form, bytes)?,
        barrier: form.address(barrier, StateSpace::SharedCluster)?,
        reduction,
    })
}

fn store(form: &mut Form<'_, '_>, operation: Option<AtomicOperation>) -> Result<Bulk, PtxError> {
    form.require(".bulk_group")?;
    if form.has(".cp_mask") {
        return Err(form.unsupported(": byte masks"));
    }
    let reduction = reduction_of(form, operation, false)?;
    let policy = form.has(".L2::cache_hint");
    let (operands, _) = trailing(form, 3, false, policy)?;
    Ok(Bulk::Store {
        destination: form.address(&operands[0], StateSpace::Global)?,
        source: form.address(&operands[1], StateSpace::SharedCta)?,
        bytes: size(form, &operands[2])?,
        reduction,
    })
}

fn size<'a>(form: &mut Form<'_, 'a>, operand: &Operand<'a>) -> Result<crate::program::Operand, PtxError> {
    let size = form.source(operand, Type::U32)?;
    match size {
        crate::program::Operand::Immediate(bytes) if bytes % 16 != 0 => Err(PtxError::OutOfRange {
            what: "the size of a bulk copy".into(),
            allowed: "a multiple of 16".into(),
            at: operand.span.into(),
        }),
        _ => Ok(size),
    }
}

fn prefetch(form: &mut Form<'_, '_>) -> Result<Operation, PtxError> {
    let tensor = form.has(".tensor");
    let dimensions = if tensor { Some(form.choose_required("a dimension", &DIMENSIONS)?) } else { None };
    form.require(".L2")?;
    form.require(".global")?;
    let space = StateSpace::Global;
    let address = if let Some(dimensions) = dimensions {
        tile_mode(form)?;
        let policy = form.has(".L2::cache_hint");
        let (operands, _) = trailing(form, 1, false, policy)?;
        form.tensor(&operands[0], dimensions)?.0
    } else {
        let policy = form.has(".L2::cache_hint");
        let (operands, _) = trailing(form, 2, false, policy)?;
        size(form, &operands[1])?;
        form.address(&operands[0], space)?
    };
    let space = if tensor { StateSpace::Generic } else { space };
    Ok(Operation::Prefetch { address, space, tensor_map: tensor })
}

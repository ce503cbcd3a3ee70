//! `cp.async.bulk*` as the issuing thread sees it; the copying itself is `engines::bulk`.

use super::step::{Flow, Step};
use super::{Context, Wait};
use crate::engines::{
    BulkDestination, BulkSource, BulkThread, BulkTransfer, ClusterCopy, Event, Reduction, Site, StoreGroup,
};
use crate::fault::{BulkError, Fail, FaultCause, access_failure, at_lane};
use crate::memory::{AccessKind, AccessProblem, GenericTarget, decode_generic};
use crate::ordering::{AsyncReader, OrderingError, WarpOrder};
use crate::program::{Address, Bulk, LaneMask, Operand, StateSpace};
use crate::shared::SharedRange;
use crate::tensor_map::{TensorMap, TensorMapError};
use crate::trace::Stage;

/// Alignment of shared memory for tensor copies (PTX ISA, cp.async.bulk.tensor).
const TENSOR_ALIGNMENT: u32 = 128;
/// Alignment and size granule of bulk copies.
const BULK_ALIGNMENT: u32 = 16;

impl Context<'_> {
    pub(super) fn bulk(&mut self, bulk: &Bulk) -> Step {
        match bulk {
            Bulk::TensorLoad {
                destination,
                destination_space,
                tensor_map,
                coordinates,
                barrier,
                multicast,
                cta_group,
            } => {
                self.try_each_lane(|context, lane| {
                    let (map, coordinates) = context.tensor_operands(*tensor_map, coordinates, false, lane)?;
                    let bytes = map.box_bytes();
                    let source = BulkSource::Tensor { map: Box::new(map), coordinates };
                    let spaces = (*destination_space, *cta_group == 2);
                    context.issue_load(*destination, spaces, *barrier, *multicast, source, bytes, lane)
                })?;
            }
            Bulk::Load { destination, destination_space, source, bytes, barrier, multicast } => {
                self.try_each_lane(|context, lane| {
                    let address = context.address(*source, lane);
                    let bytes = context.bulk_size(*bytes, address, lane)?;
                    let source = BulkSource::Linear { address };
                    let spaces = (*destination_space, false);
                    context.issue_load(*destination, spaces, *barrier, *multicast, source, bytes, lane)
                })?;
            }
            Bulk::TensorStore { tensor_map, coordinates, source, reduction } => {
                self.try_each_lane(|context, lane| {
                    let (map, coordinates) = context.tensor_operands(*tensor_map, coordinates, true, lane)?;
                    let bytes = map.box_bytes();
                    let destination =
                        BulkDestination::Tensor { map: Box::new(map), coordinates, reduction: *reduction };
                    context.issue_store(*source, destination, bytes, TENSOR_ALIGNMENT, lane)
                })?;
            }
            Bulk::Store { destination, source, bytes, reduction } => {
                self.try_each_lane(|context, lane| {
                    let address = context.address(*destination, lane);
                    let bytes = context.bulk_size(*bytes, address, lane)?;
                    let destination = BulkDestination::Linear { address, reduction: *reduction };
                    context.issue_store(*source, destination, bytes, BULK_ALIGNMENT, lane)
                })?;
            }
            Bulk::ClusterCopy { destination, source, bytes, barrier, reduction } => {
                self.try_each_lane(|context, lane| {
                    let bytes = context.bulk_size(*bytes, 0, lane)?;
                    context.issue_cluster_copy((*destination, *source), bytes, *barrier, *reduction, lane)
                })?;
            }
            Bulk::CommitGroup => {
                self.each_lane(|context, lane| {
                    let thread = context.bulk_thread(lane);
                    context.machine.cta_mut(context.warp.cta).bulk[thread].groups.push_back(StoreGroup::default());
                });
                return Ok(Flow::Next);
            }
            Bulk::WaitGroup { pending, read } => return self.wait_group(*pending, *read),
        }
        self.effect();
        Ok(Flow::Next)
    }

    fn bulk_size(&self, bytes: Operand, global: u64, lane: usize) -> Step<u32> {
        let bytes = self.operand(bytes, lane) as u32;
        if bytes == 0 || !bytes.is_multiple_of(BULK_ALIGNMENT) {
            return Err(at_lane(lane, BulkError::Size { bytes }));
        }
        if !global.is_multiple_of(BULK_ALIGNMENT.into()) {
            return Err(at_lane(lane, BulkError::GlobalAlignment { address: global }));
        }
        Ok(bytes)
    }

    /// Reads and decodes a tensor map operand.
    pub(super) fn read_tensor_map(&self, address: u64, space: StateSpace, lane: usize) -> Step<TensorMap> {
        let fail = |problem| access_failure(lane, AccessKind::TensorMapRead, address, 128, problem);
        let mut bytes = [0; 128];
        let target = match (space, decode_generic(address)) {
            (StateSpace::Parameter, GenericTarget::Global(offset)) => GenericTarget::Parameter(offset as u32),
            (_, target) => target,
        };
        match target {
            GenericTarget::Parameter(offset) => {
                if offset % 64 != 0 {
                    return Err(fail(AccessProblem::Misaligned { required: 64 }));
                }
                let limit = self.launch.parameters.len() as u32;
                let source = self
                    .launch
                    .parameters
                    .get(offset as usize..offset as usize + 128)
                    .ok_or_else(|| fail(AccessProblem::ParameterOutside { offset: offset.into(), limit }))?;
                bytes.copy_from_slice(source);
            }
            GenericTarget::Global(address) => {
                if address % 64 != 0 {
                    return Err(fail(AccessProblem::Misaligned { required: 64 }));
                }
                let place = self.machine.memory.locate(self.launch.gpu, address, 128).map_err(fail)?;
                let physical = self.machine.memory.physical(place.memory);
                physical
                    .bytes
                    .read(place.offset, &mut bytes)
                    .map_err(|hole| fail(AccessProblem::Uninitialised { first: address + (hole - place.offset) }))?;
            }
            _ => return Err(fail(AccessProblem::WrongSpace { wanted: "global, constant or parameter" })),
        }
        TensorMap::decode(&bytes).map_err(|error| at_lane(lane, error))
    }

    fn tensor_operands(
        &self,
        tensor_map: Address,
        coordinates: &[Operand],
        store: bool,
        lane: usize,
    ) -> Step<(TensorMap, Vec<i32>)> {
        let map = self.read_tensor_map(self.address(tensor_map, lane), StateSpace::Generic, lane)?;
        if coordinates.len() != map.rank() {
            return Err(at_lane(lane, TensorMapError::Coordinates { given: coordinates.len(), rank: map.rank() }));
        }
        let coordinates: Vec<i32> = coordinates.iter().map(|&value| self.operand(value, lane) as i32).collect();
        map.check_coordinates(&coordinates, store).map_err(|error| at_lane(lane, error))?;
        Ok((map, coordinates))
    }

    /// Where an asynchronous operation begins, with a number for it.
    pub(super) fn site(&mut self, lane: usize) -> Site {
        let number = self.machine.next_operation;
        self.machine.next_operation += 1;
        let cta = self.machine.cta(self.warp.cta);
        Site {
            launch: self.launch.clone(),
            slot: self.warp.cta,
            uid: cta.uid,
            cta: cta.index,
            warp: self.warp.index,
            lanes: 1 << lane,
            pc: self.pc,
            number,
        }
    }

    /// Runs `check` on the shadow of any CTA with this warp's ordering state.
    pub(super) fn with_shadow<T>(
        &mut self,
        cta: u32,
        check: impl FnOnce(&mut crate::cta::SharedMemory, &WarpOrder) -> Result<T, OrderingError>,
    ) -> Result<T, OrderingError> {
        let orders = std::mem::take(&mut self.machine.cta_mut(self.warp.cta).orders);
        let result = check(&mut self.machine.cta_mut(cta).shared, &orders[self.warp.index as usize]);
        self.machine.cta_mut(self.warp.cta).orders = orders;
        result
    }

    #[allow(clippy::too_many_arguments)]
    fn issue_load(
        &mut self,
        destination: Address,
        (space, pair): (StateSpace, bool),
        barrier: Address,
        multicast: Option<Operand>,
        source: BulkSource,
        bytes: u32,
        lane: usize,
    ) -> Step<()> {
        let tensor = matches!(source, BulkSource::Tensor { .. });
        let fail = |value, problem| access_failure(lane, AccessKind::BulkWrite, value, bytes, problem);
        let (value, cta, offset) =
            self.shared(destination, space, lane).map_err(|(value, problem)| fail(value, problem))?;
        let required = if tensor { TENSOR_ALIGNMENT } else { BULK_ALIGNMENT };
        if offset % required != 0 {
            return Err(at_lane(lane, BulkError::SharedAlignment { address: offset, required }));
        }
        // The mbarrier is named in the same space as the destination.
        let (barrier_cta, barrier_offset) = self.mbarrier_location(barrier, space, lane)?;
        let rank_of = |cta: u32| self.machine.cta(cta).rank;
        let (rank, barrier_rank) = (rank_of(cta), rank_of(barrier_cta));
        // With .cta_group::2 the mbarrier may be the other CTA's of the pair.
        let same = if pair { rank / 2 == barrier_rank / 2 } else { rank == barrier_rank };
        if !same && multicast.is_none() {
            let (destination, barrier) = (rank, barrier_rank);
            return Err(at_lane(lane, BulkError::BarrierElsewhere { destination, barrier }));
        }
        let cluster = self.machine.clusters.get(self.machine.cta(self.warp.cta).cluster);
        let mut targets = Vec::with_capacity(1);
        match multicast {
            None => targets.push((cta, barrier_cta)),
            Some(mask) => {
                let mask = self.operand(mask, lane) & 0xffff;
                let ctas = cluster.ctas.len() as u32;
                if mask == 0 || mask >> ctas != 0 {
                    return Err(at_lane(lane, BulkError::Mask { mask, ctas }));
                }
                for rank in (0..ctas).filter(|rank| mask >> rank & 1 != 0) {
                    // In a pair, the signals go to the CTAs of the parity of the mbarrier's CTA.
                    let signal = if pair { rank & !1 | barrier_rank & 1 } else { rank };
                    targets.push((cluster.ctas[rank as usize], cluster.ctas[signal as usize]));
                }
            }
        }
        for &(cta, barrier_cta) in &targets {
            for target in [cta, barrier_cta] {
                let target = self.machine.cta(target);
                if target.exited {
                    return Err(fail(value, AccessProblem::CtaExited { rank: target.rank }));
                }
            }
            self.machine.check_shared(cta, offset, bytes).map_err(|problem| fail(value, problem))?;
            self.machine.cta(cta).shared.check_plain(offset, bytes).map_err(|problem| fail(value, problem))?;
            self.check_async_mbarrier(barrier_cta, barrier_offset, lane)?;
        }
        let range = SharedRange { start: offset, end: offset + bytes };
        let last = targets.len() - 1;
        let mut source = Some(source);
        for (index, (cta, barrier_cta)) in targets.into_iter().enumerate() {
            self.with_shadow(cta, |shared, order| shared.shadow.begin_bulk_write(&range, false, order))
                .map_err(|error| at_lane(lane, error))?;
            self.machine.cta_mut(cta).operations += 1;
            if barrier_cta != cta {
                self.machine.cta_mut(barrier_cta).operations += 1;
            }
            let transfer = BulkTransfer::Load {
                source: if index == last {
                    source.take().expect("one per target")
                } else {
                    source.clone().expect("kept until the last")
                },
                cta,
                range: range.clone(),
                barrier_cta,
                barrier_offset,
            };
            self.push_bulk(transfer, lane);
        }
        Ok(())
    }

    fn issue_cluster_copy(
        &mut self,
        (destination, source): (Address, Address),
        bytes: u32,
        barrier: Address,
        reduction: Option<Reduction>,
        lane: usize,
    ) -> Step<()> {
        let place = |context: &Self, address, space, kind| {
            let fail = |value, problem| access_failure(lane, kind, value, bytes, problem);
            let (value, cta, offset) =
                context.shared(address, space, lane).map_err(|(value, problem)| fail(value, problem))?;
            if offset % BULK_ALIGNMENT != 0 {
                return Err(at_lane(lane, BulkError::SharedAlignment { address: offset, required: BULK_ALIGNMENT }));
            }
            context.machine.check_shared(cta, offset, bytes).map_err(|problem| fail(value, problem))?;
            context.machine.cta(cta).shared.check_plain(offset, bytes).map_err(|problem| fail(value, problem))?;
            Ok((cta, offset))
        };
        let (source_cta, from) = place(self, source, StateSpace::SharedCta, AccessKind::BulkRead)?;
        let (cta, start) = place(self, destination, StateSpace::SharedCluster, AccessKind::BulkWrite)?;
        let (barrier_cta, barrier_offset) = self.mbarrier_location(barrier, StateSpace::SharedCluster, lane)?;
        if barrier_cta != cta {
            let rank_of = |cta: u32| self.machine.cta(cta).rank;
            let (destination, barrier) = (rank_of(cta), rank_of(barrier_cta));
            return Err(at_lane(lane, BulkError::BarrierElsewhere { destination, barrier }));
        }
        self.check_async_mbarrier(cta, barrier_offset, lane)?;
        let range = SharedRange { start: from, end: from + bytes };
        self.with_shadow(source_cta, |shared, order| shared.shadow.async_read(&range, AsyncReader::ClusterCopy, order))
            .map_err(|error| at_lane(lane, error))?;
        let target = SharedRange { start, end: start + bytes };
        let reduces = reduction.is_some();
        self.with_shadow(cta, |shared, order| shared.shadow.begin_bulk_write(&target, reduces, order))
            .map_err(|error| at_lane(lane, error))?;
        self.machine.cta_mut(source_cta).operations += 1;
        self.machine.cta_mut(cta).operations += 1;
        let copy = ClusterCopy { source_cta, source: range, cta, start, barrier_offset, reduction };
        self.push_bulk(BulkTransfer::ClusterCopy(copy), lane);
        Ok(())
    }

    pub(super) fn push_bulk(&mut self, transfer: BulkTransfer, lane: usize) {
        let site = self.site(lane);
        self.machine.operation_at(&site, Stage::Issued, || transfer.describe());
        let due = self.machine.now + self.machine.random.latency();
        self.machine.events.push(due, Event::Bulk(Box::new((site, transfer))));
    }

    /// Index of the bulk-group state of a thread of this warp.
    fn bulk_thread(&mut self, lane: usize) -> usize {
        let warp = self.warp.index;
        let threads = &mut self.machine.cta_mut(self.warp.cta).bulk;
        match threads.iter().position(|thread| (thread.warp, thread.lane) == (warp, lane as u32)) {
            Some(index) => index,
            None => {
                threads.push(BulkThread::new(warp, lane as u32));
                threads.len() - 1
            }
        }
    }

    fn issue_store(
        &mut self,
        source: Address,
        destination: BulkDestination,
        bytes: u32,
        required: u32,
        lane: usize,
    ) -> Step<()> {
        let fail = |value, problem| access_failure(lane, AccessKind::BulkRead, value, bytes, problem);
        let (value, cta, offset) =
            self.shared(source, StateSpace::SharedCta, lane).map_err(|(value, problem)| fail(value, problem))?;
        if offset % required != 0 {
            return Err(at_lane(lane, BulkError::SharedAlignment { address: offset, required }));
        }
        self.machine.check_shared(cta, offset, bytes).map_err(|problem| fail(value, problem))?;
        self.machine.cta(cta).shared.check_plain(offset, bytes).map_err(|problem| fail(value, problem))?;
        let range = SharedRange { start: offset, end: offset + bytes };
        let thread = self.bulk_thread(lane);
        let group = self.machine.cta(cta).bulk[thread].open_group();
        let reader = AsyncReader::BulkStore { lane: lane as u32, group };
        self.with_shadow(cta, |shared, order| shared.shadow.async_read(&range, reader, order))
            .map_err(|error| at_lane(lane, error))?;
        let state = &mut self.machine.cta_mut(cta).bulk[thread];
        let open = state.groups.back_mut().expect("there is always an open group");
        open.reads_left += 1;
        open.writes_left += 1;
        open.ranges.push(range.clone());
        let access = self.global_access();
        let cta = self.machine.ctas.get_mut(self.warp.cta);
        let stamp = self.machine.tracker.bulk_stamp(&access, &cta.orders[self.warp.index as usize]);
        cta.bulk[thread].groups.back_mut().expect("there is always an open group").stamps.push(stamp);
        let orders = std::mem::take(&mut self.machine.cta_mut(self.warp.cta).orders);
        let order = &orders[self.warp.index as usize];
        let begun = self.machine.begin_store(self.launch.gpu, &destination, &range, stamp, (&access, order));
        self.machine.cta_mut(self.warp.cta).orders = orders;
        begun.map_err(|cause| at_lane(lane, cause))?;
        let (cta, uid) = (self.warp.cta, access.cta);
        let transfer = BulkTransfer::StoreRead { destination, cta, uid, range, thread, group, stamp };
        self.push_bulk(transfer, lane);
        Ok(())
    }

    fn wait_group(&mut self, pending: u32, read: bool) -> Step {
        let mut all_done = true;
        self.each_lane(|context, lane| {
            let thread = context.bulk_thread(lane);
            all_done &= context.machine.cta(context.warp.cta).bulk[thread].is_done(pending, read);
        });
        if !all_done {
            let token = self.warp.suspend(self.fragment, Wait::BulkGroup { pending }, self.machine);
            self.machine.cta_mut(self.warp.cta).bulk_waiters.push(token);
            self.count_wait();
            return Ok(Flow::Suspended);
        }
        self.each_lane(|context, lane| {
            let thread = context.bulk_thread(lane);
            let cta = context.machine.ctas.get_mut(context.warp.cta);
            let order = &cta.orders[context.warp.index as usize];
            let state = &mut cta.bulk[thread];
            let waited = state.waited(pending);
            for (number, group) in state.numbered_groups().take(waited).filter(|(_, group)| !group.observed) {
                group.observed = true;
                for range in group.ranges.drain(..) {
                    cta.shared.shadow.bulk_read_observed(&range, lane as u32, number, order);
                }
            }
            if !read {
                state.writes_waited(waited, |stamp| context.machine.tracker.bulk_waited(stamp, order.epoch()));
            }
            state.drop_finished();
        });
        self.machine.effects += 1;
        Ok(Flow::Next)
    }

    /// A thread must not exit while its bulk stores may still read shared memory.
    pub(super) fn check_bulk_at_exit(&self, lanes: LaneMask) -> Result<(), Fail> {
        let cta = self.machine.cta(self.warp.cta);
        let left = cta.bulk.iter().find(|thread| {
            thread.warp == self.warp.index
                && lanes >> thread.lane & 1 != 0
                && thread.groups.iter().any(|group| !group.ranges.is_empty())
        });
        match left {
            Some(thread) => Err(at_lane(thread.lane as usize, FaultCause::ExitWithBulkReads)),
            None => Ok(()),
        }
    }
}

//! The bulk-copy engine: TMA and linear copies between global and shared memory, through the async proxy.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use super::{ClusterCopy, Event, Reduction, Response, Site, StoredValue};
use crate::fault::{BulkError, FaultCause};
use crate::machine::Machine;
use crate::memory::{AccessKind, AccessProblem, Place, StampKind, device_update};
use crate::node::TensorMapElement;
use crate::ordering::{GlobalAccess, OrderingError, WarpOrder};
use crate::program::{AtomicOperation, ElementType};
use crate::shared::{SharedRange, SharedReader};
use crate::tensor_map::{BoxChunk, TensorMap};
use crate::trace::{AsyncOperation, Stage};
use crate::warp::Resume;

/// Where a load comes from.
#[derive(Debug, Clone)]
pub(crate) enum BulkSource {
    /// A box of a tensor.
    Tensor { map: Box<TensorMap>, coordinates: Vec<i32> },
    /// Consecutive bytes.
    Linear { address: u64 },
    /// No memory: the answer to `clusterlaunchcontrol.try_cancel`.
    Response(Response),
}

/// Where a store goes.
#[derive(Debug)]
pub(crate) enum BulkDestination {
    /// A box of a tensor.
    Tensor { map: Box<TensorMap>, coordinates: Vec<i32>, reduction: Option<AtomicOperation> },
    /// Consecutive bytes.
    Linear { address: u64, reduction: Option<Reduction> },
}

/// A copy under way.
#[derive(Debug)]
pub(crate) enum BulkTransfer {
    /// Global to shared memory, then `complete_tx`.
    Load { source: BulkSource, cta: u32, range: SharedRange, barrier_cta: u32, barrier_offset: u32 },
    /// Shared to shared memory of a cluster, then `complete_tx`.
    ClusterCopy(ClusterCopy),
    /// `st.async` or `red.async`.
    RemoteStore { cta: u32, offset: u32, value: StoredValue, barrier_offset: u32 },
    /// `clusterlaunchcontrol.try_cancel`: decided when it happens, then a `Load` of the response to each CTA.
    Cancel { targets: Vec<u32>, range: SharedRange, barrier_offset: u32 },
    /// The reading half of a store.
    StoreRead {
        destination: BulkDestination,
        cta: u32,
        /// The CTA's unique number.
        uid: u32,
        range: SharedRange,
        thread: usize,
        group: u64,
        /// Of its writes to device memory.
        stamp: u32,
    },
    /// The writing half: it no longer needs the CTA.
    StoreWrite {
        destination: BulkDestination,
        bytes: Vec<u8>,
        range: SharedRange,
        cta: u32,
        uid: u32,
        thread: usize,
        group: u64,
        stamp: u32,
    },
}

impl BulkTransfer {
    /// What an observer is told of it.
    pub(crate) fn describe(&self) -> AsyncOperation {
        match self {
            Self::Load { range, .. } => AsyncOperation::BulkLoad { bytes: range.end - range.start },
            Self::ClusterCopy(copy) => AsyncOperation::BulkLoad { bytes: copy.source.end - copy.source.start },
            Self::RemoteStore { value, .. } => AsyncOperation::RemoteStore { bytes: value.length },
            Self::Cancel { .. } => AsyncOperation::LaunchCancel,
            Self::StoreRead { range, .. } | Self::StoreWrite { range, .. } => {
                AsyncOperation::BulkStore { bytes: range.end - range.start }
            }
        }
    }
}

/// Bulk groups of one thread.
#[derive(Debug)]
pub(crate) struct BulkThread {
    pub(crate) warp: u32,
    pub(crate) lane: u32,
    /// Number of the first group in `groups`.
    first: u64,
    /// Oldest first; the last one is open.
    pub(crate) groups: VecDeque<StoreGroup>,
    /// Writes of groups that are forgotten, of which the thread has waited for the reading half only.
    unwaited: Vec<u32>,
}

/// Stores between two `commit_group`.
#[derive(Debug, Default)]
pub(crate) struct StoreGroup {
    pub(crate) reads_left: u32,
    pub(crate) writes_left: u32,
    /// Shared memory that it reads, until the thread has waited for that.
    pub(crate) ranges: Vec<SharedRange>,
    pub(crate) observed: bool,
    /// Its writes to device memory, until the thread has waited for them.
    pub(crate) stamps: Vec<u32>,
}

impl BulkThread {
    pub(crate) fn new(warp: u32, lane: u32) -> Self {
        Self { warp, lane, first: 0, groups: VecDeque::from([StoreGroup::default()]), unwaited: Vec::new() }
    }

    /// The groups with their numbers, oldest first.
    pub(crate) fn numbered_groups(&mut self) -> impl Iterator<Item = (u64, &mut StoreGroup)> {
        (self.first..).zip(&mut self.groups)
    }

    /// Number of the open group.
    pub(crate) fn open_group(&self) -> u64 {
        self.first + self.groups.len() as u64 - 1
    }

    /// How many of the oldest groups a wait for all but `pending` concerns.
    pub(crate) fn waited(&self, pending: u32) -> usize {
        (self.groups.len() - 1).saturating_sub(pending as usize)
    }

    pub(crate) fn is_done(&self, pending: u32, read: bool) -> bool {
        let waited = self.waited(pending);
        self.groups.iter().take(waited).all(|group| group.reads_left == 0 && (read || group.writes_left == 0))
    }

    /// Forgets groups that are complete and waited for.
    pub(crate) fn drop_finished(&mut self) {
        while self.groups.len() > 1 && self.groups[0].observed && self.groups[0].writes_left == 0 {
            let group = self.groups.pop_front().expect("just seen");
            self.unwaited.extend(group.stamps);
            self.first += 1;
        }
    }

    /// The thread has waited for the writes of its `waited` oldest groups.
    pub(crate) fn writes_waited(&mut self, waited: usize, mut note: impl FnMut(u32)) {
        self.unwaited.drain(..).for_each(&mut note);
        self.groups.iter_mut().take(waited).flat_map(|group| group.stamps.drain(..)).for_each(note);
    }

    fn group(&mut self, number: u64) -> Option<&mut StoreGroup> {
        self.groups.get_mut(number.checked_sub(self.first)? as usize)
    }
}

fn access(kind: AccessKind, address: u64, bytes: u32, problem: AccessProblem) -> FaultCause {
    FaultCause::Access { kind, address, bytes, problem }
}

/// Element type for a reduction into a tensor.
fn reduction_element(element: TensorMapElement) -> Result<ElementType, FaultCause> {
    Ok(match element {
        TensorMapElement::U32 => ElementType::Unsigned(4),
        TensorMapElement::U64 => ElementType::Unsigned(8),
        TensorMapElement::Bf16 => ElementType::Bf16,
        TensorMapElement::F16 => ElementType::F16,
        TensorMapElement::F32 => ElementType::F32,
        TensorMapElement::U8 | TensorMapElement::U16 => {
            return Err(BulkError::Reduction("on 8- and 16-bit integers").into());
        }
    })
}

impl Machine {
    pub(super) fn step_bulk(&mut self, site: &Site, transfer: BulkTransfer) -> Result<(), FaultCause> {
        match transfer {
            BulkTransfer::Load { source, cta, range, barrier_cta, barrier_offset } => {
                let bytes = range.end - range.start;
                self.land_load(site, &source, cta, &range)?;
                self.operation_at(site, Stage::Completed, || AsyncOperation::BulkLoad { bytes });
                let (mbarrier, phase) = self.complete_transactions(barrier_cta, barrier_offset, bytes)?;
                let target = self.cta_mut(cta);
                target.shared.shadow.end_bulk_write(&range, false, mbarrier, phase);
                target.operations -= 1;
                if let BulkSource::Response(response) = source {
                    if response.0.is_none() {
                        target.failed_cancels.push((mbarrier, phase));
                    }
                } else {
                    self.counters[site.launch.gpu as usize].tma_bytes += u64::from(bytes);
                }
                if barrier_cta != cta {
                    self.cta_mut(barrier_cta).operations -= 1;
                }
            }
            BulkTransfer::ClusterCopy(copy) => self.land_cluster_copy(site, &copy)?,
            BulkTransfer::RemoteStore { cta, offset, value, barrier_offset } => {
                self.land_remote_store(site, cta, offset, &value, barrier_offset)?;
            }
            BulkTransfer::Cancel { targets, range, barrier_offset } => {
                self.operation_at(site, Stage::Completed, || AsyncOperation::LaunchCancel);
                self.cancel(site, targets, &range, barrier_offset);
            }
            BulkTransfer::StoreRead { destination, cta, uid, range, thread, group, stamp } => {
                let mut bytes = vec![0; (range.end - range.start) as usize];
                let state = self.cta_mut(cta);
                state.shared.read(range.start, &mut bytes)?;
                if let Some(group) = state.bulk[thread].group(group) {
                    group.reads_left -= 1;
                }
                self.wake_bulk_waiters(cta);
                self.operation_at(site, Stage::SourceRead, || AsyncOperation::BulkStore {
                    bytes: range.end - range.start,
                });
                site.launch.operations.fetch_add(1, Ordering::Relaxed);
                let write = BulkTransfer::StoreWrite { destination, bytes, range, cta, uid, thread, group, stamp };
                let due = self.now + self.random.latency();
                self.events.push(due, Event::Bulk(Box::new((site.clone(), write))));
            }
            BulkTransfer::StoreWrite { destination, bytes, range, cta, uid, thread, group, stamp } => {
                self.land_store(site, &destination, &bytes, &range, stamp)?;
                self.operation_at(site, Stage::Completed, || AsyncOperation::BulkStore {
                    bytes: range.end - range.start,
                });
                site.launch.operations.fetch_sub(1, Ordering::Relaxed);
                // The CTA may have exited, and its slot be another's, by now.
                if let Some(state) = self.ctas.try_get_mut(cta)
                    && state.uid == uid
                {
                    if let Some(group) = state.bulk[thread].group(group) {
                        group.writes_left -= 1;
                    }
                    state.bulk[thread].drop_finished();
                    self.wake_bulk_waiters(cta);
                }
            }
        }
        Ok(())
    }

    fn wake_bulk_waiters(&mut self, cta: u32) {
        let waiters = std::mem::take(&mut self.cta_mut(cta).bulk_waiters);
        for token in waiters {
            self.wake(token, Resume::Retry);
        }
    }

    fn land_load(&mut self, site: &Site, source: &BulkSource, cta: u32, range: &SharedRange) -> Result<(), FaultCause> {
        match source {
            BulkSource::Response(response) => {
                if self.cta_mut(cta).shared.bytes.write(range.start.into(), &response.encode()) {
                    self.wake_shared_watchers(cta, range.start, range.end - range.start);
                }
                Ok(())
            }
            BulkSource::Linear { address } => {
                let bytes = range.end - range.start;
                let chunk = BoxChunk { shared_offset: 0, global: Some(*address), bytes };
                self.land_chunk(site, chunk, cta, range.start, &[0; 16])
            }
            BulkSource::Tensor { map, coordinates } => {
                let fill = map.fill();
                let mut result = Ok(());
                map.for_each_chunk(coordinates, range.start, |chunk| {
                    if result.is_ok() {
                        result = self.land_chunk(site, chunk, cta, range.start, &fill);
                    }
                })?;
                result
            }
        }
    }

    /// What a bulk copy reads from device memory must be visible to the warp that issued it, through the async proxy.
    fn check_bulk_read(&self, site: &Site, place: Place, bytes: u32, address: u64) -> Result<(), FaultCause> {
        self.memory.physical(place.memory).bytes.each_stamp(
            StampKind::Write,
            place.offset,
            bytes.into(),
            |stamp, offset| {
                // An issuer that has exited can no longer be asked what it knew.
                let Some(cta) = self.ctas.try_get(site.slot).filter(|cta| cta.uid == site.uid) else { return Ok(()) };
                let access = GlobalAccess {
                    cta: cta.uid,
                    cluster: self.clusters.get(cta.cluster).uid,
                    gpu: cta.gpu,
                    index: cta.index,
                    launched: site.launch.started,
                    now: self.now,
                };
                let Some(order) = cta.orders.get(site.warp as usize) else { return Ok(()) };
                let at = address + (offset - place.offset);
                self.tracker.check_read(stamp, at, false, &access, order)?;
                Ok(self.tracker.check_proxy(stamp, at, &access, order)?)
            },
        )
    }

    fn land_chunk(
        &mut self,
        site: &Site,
        chunk: BoxChunk,
        cta: u32,
        start: u32,
        fill: &[u8; 16],
    ) -> Result<(), FaultCause> {
        let mut buffer = [0; 256];
        let gpu = site.launch.gpu;
        let mut done = 0;
        while done < chunk.bytes {
            let length = (chunk.bytes - done).min(buffer.len() as u32);
            let piece = &mut buffer[..length as usize];
            match chunk.global {
                Some(address) => {
                    let address = address + u64::from(done);
                    let fail = |problem| access(AccessKind::BulkRead, address, length, problem);
                    let place = self.memory.locate(gpu, address, length.into()).map_err(fail)?;
                    let physical = self.memory.physical(place.memory);
                    physical.bytes.read(place.offset, piece).map_err(|hole| {
                        fail(AccessProblem::Uninitialised { first: address + (hole - place.offset) })
                    })?;
                    let owner = physical.gpu;
                    self.check_bulk_read(site, place, length, address)?;
                    self.count_read(gpu, owner, length.into());
                }
                None => piece.iter_mut().zip(fill.iter().cycle()).for_each(|(byte, fill)| *byte = *fill),
            }
            let at = start + chunk.shared_offset + done;
            let piece = &buffer[..length as usize];
            if self.cta_mut(cta).shared.bytes.write(at.into(), piece) {
                self.wake_shared_watchers(cta, at, length);
            }
            done += length;
        }
        Ok(())
    }

    /// Checks a store of data against the accesses before it, and marks what it will write, so that a read before the bytes
    /// have landed is noticed too. Bad addresses are left for the store itself to report.
    pub(crate) fn begin_store(
        &mut self,
        gpu: u32,
        destination: &BulkDestination,
        range: &SharedRange,
        stamp: u32,
        (access, order): (&GlobalAccess, &WarpOrder),
    ) -> Result<(), FaultCause> {
        match destination {
            BulkDestination::Linear { address, reduction } => {
                let bytes = range.end - range.start;
                if reduction.is_none() {
                    self.check_store(gpu, *address, bytes, access, order)?;
                }
                self.stamp_store(gpu, *address, bytes, stamp);
            }
            BulkDestination::Tensor { map, coordinates, reduction } => {
                let mut result = Ok(());
                // Reductions into the same bytes do not race with each other.
                if reduction.is_none() {
                    map.for_each_stored_chunk(coordinates, range.start, |chunk| {
                        if let (Ok(()), Some(address)) = (&result, chunk.global) {
                            result = self.check_store(gpu, address, chunk.bytes, access, order);
                        }
                    })?;
                }
                result?;
                // Only now: a store does not race with itself.
                map.for_each_stored_chunk(coordinates, range.start, |chunk| {
                    if let Some(address) = chunk.global {
                        self.stamp_store(gpu, address, chunk.bytes, stamp);
                    }
                })?;
            }
        }
        Ok(())
    }

    fn check_store(
        &self,
        gpu: u32,
        address: u64,
        bytes: u32,
        access: &GlobalAccess,
        order: &WarpOrder,
    ) -> Result<(), OrderingError> {
        let Ok(place) = self.memory.locate(gpu, address, bytes.into()) else { return Ok(()) };
        let store = &self.memory.physical(place.memory).bytes;
        for kind in [StampKind::Write, StampKind::Read] {
            store.each_stamp(kind, place.offset, bytes.into(), |stamp, offset| {
                self.tracker.check_write(stamp, address + (offset - place.offset), access, order)
            })?;
        }
        Ok(())
    }

    fn stamp_store(&mut self, gpu: u32, address: u64, bytes: u32, stamp: u32) {
        if let Ok(place) = self.memory.locate(gpu, address, bytes.into()) {
            self.memory.physical_mut(place.memory).bytes.stamp_write(place.offset, bytes.into(), stamp);
        }
    }

    fn land_store(
        &mut self,
        site: &Site,
        destination: &BulkDestination,
        bytes: &[u8],
        range: &SharedRange,
        stamp: u32,
    ) -> Result<(), FaultCause> {
        let gpu = site.launch.gpu;
        self.tracker.bulk_landed(stamp, self.now);
        let mut last_sector = None;
        let mut put = |address: u64, piece: &[u8], reduce: Option<Reduction>| {
            let length = piece.len() as u32;
            let fail = |problem| access(AccessKind::BulkWrite, address, length, problem);
            let place = self.memory.locate(gpu, address, length.into()).map_err(fail)?;
            let physical = self.memory.physical_mut(place.memory);
            let watched = match reduce {
                None => physical.bytes.write(place.offset, piece),
                Some((operation, element)) => {
                    let width = element.bytes();
                    let mut watched = false;
                    for (index, value) in piece.chunks_exact(width as usize).enumerate() {
                        let offset = place.offset + index as u64 * u64::from(width);
                        let first = address + index as u64 * u64::from(width);
                        let old = physical
                            .bytes
                            .load(offset, width)
                            .ok_or_else(|| fail(AccessProblem::Uninitialised { first }))?;
                        let mut word = [0; 8];
                        word[..value.len()].copy_from_slice(value);
                        let new = device_update(operation, element, old, 0, u64::from_le_bytes(word))?;
                        watched |= physical.bytes.store(offset, width, new);
                    }
                    watched
                }
            };
            physical.bytes.stamp_write(place.offset, length.into(), stamp);
            let owner = physical.gpu;
            self.count_write(gpu, owner, length.into());
            if owner == gpu {
                // Swizzled pieces are 16 bytes, and neighbours share a sector.
                let (first, last) = (address >> 5, (address + u64::from(length) - 1) >> 5);
                let shared = u64::from(last_sector == Some(first));
                self.counters[gpu as usize].global_sectors_written += last - first + 1 - shared;
                last_sector = Some(last);
            }
            if watched {
                self.wake_global_watchers(place, length.into());
            }
            Ok::<(), FaultCause>(())
        };
        match destination {
            BulkDestination::Linear { address, reduction } => put(*address, bytes, *reduction),
            BulkDestination::Tensor { map, coordinates, reduction } => {
                let reduce = match reduction {
                    Some(operation) => Some((*operation, reduction_element(map.element())?)),
                    None => None,
                };
                let mut result = Ok(());
                map.for_each_stored_chunk(coordinates, range.start, |chunk| {
                    if let (Ok(()), Some(address)) = (&result, chunk.global) {
                        let start = chunk.shared_offset as usize;
                        result = put(address, &bytes[start..start + chunk.bytes as usize], reduce);
                    }
                })?;
                result
            }
        }
    }
}

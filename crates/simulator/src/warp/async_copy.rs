//! `cp.async`: copies that are complete when their thread has waited for them.
//!
//! The bytes land when the copy is issued, which is one of the orders that the ISA allows. What makes them asynchronous
//! is the shadow: until the thread's wait, or its arrival on an mbarrier, nobody may touch the destination; after it the
//! bytes count as written by the thread at that moment (PTX ISA, "Completion Mechanisms for Asynchronous Copy
//! Operations"). These copies go through the generic proxy, so that tensor cores need a proxy fence to see them.

use super::Context;
use super::device_memory::Passed;
use super::step::{Flow, Step};
use crate::engines::Site;
use crate::fault::{FaultCause, access_failure, at_lane};
use crate::mbarrier::MbarrierError;
use crate::memory::{AccessKind, AccessProblem};
use crate::program::{Address, AsyncCopy, MemoryOrder, Operand, PredicateOperand, StateSpace, WARP_LANES};
use crate::trace::{AsyncOperation, MbarrierChange, Stage};

/// The largest copy.
const MOST_BYTES: usize = 16;

/// A copy that nobody has waited for.
#[derive(Debug)]
struct PendingCopy {
    lane: u32,
    /// Number of the group that it belongs, or will belong, to.
    group: u32,
    offset: u32,
    bytes: u32,
    /// Number of the operation that an observer was told of.
    operation: Option<u64>,
}

/// The copies of a warp's threads.
#[derive(Debug, Default)]
pub(crate) struct PendingCopies {
    copies: Vec<PendingCopy>,
    /// Groups that each lane has committed.
    committed: [u32; WARP_LANES],
    /// Operations that an observer was told of and that are not complete, with their bytes.
    told: Vec<(Site, u32)>,
}

/// The operands of a copy.
struct Copy {
    destination: Address,
    source: Address,
    bytes: u32,
    source_bytes: Option<Operand>,
    ignore_source: Option<PredicateOperand>,
    operation: Option<u64>,
}

impl Context<'_> {
    pub(super) fn async_copy(&mut self, operation: &AsyncCopy) -> Step {
        match *operation {
            AsyncCopy::Copy { destination, source, bytes, source_bytes, ignore_source } => {
                let operation = self.tell_of_copies(bytes);
                let copy = Copy { destination, source, bytes, source_bytes, ignore_source, operation };
                let mut passed = Passed::default();
                self.try_each_lane(|context, lane| context.copy(&copy, &mut passed, lane))?;
                self.effect();
            }
            AsyncCopy::CommitGroup => self.each_lane(|context, lane| context.warp.copies.committed[lane] += 1),
            AsyncCopy::WaitGroup { pending } => self.settle(|committed| committed.saturating_sub(pending)),
            AsyncCopy::WaitAll => self.settle(|_| u32::MAX),
            AsyncCopy::MbarrierArrive { barrier, space, no_increment } => {
                self.settle(|_| u32::MAX);
                self.try_each_lane(|context, lane| context.arrive_for_copies(barrier, space, no_increment, lane))?;
                self.effect();
            }
        }
        Ok(Flow::Next)
    }

    /// Tells an observer of the copies that the executing lanes issue, and gives their number.
    fn tell_of_copies(&mut self, bytes: u32) -> Option<u64> {
        self.machine.observer.as_ref()?;
        let site = Site { lanes: self.lanes, ..self.site(self.lanes.trailing_zeros() as usize) };
        let (number, bytes) = (site.number, bytes * self.lanes.count_ones());
        self.machine.operation_at(&site, Stage::Issued, || AsyncOperation::AsyncCopy { bytes });
        self.warp.copies.told.push((site, bytes));
        Some(number)
    }

    fn copy(&mut self, copy: &Copy, passed: &mut Passed, lane: usize) -> Step<()> {
        let bytes = copy.bytes;
        let mut wanted = copy.source_bytes.map_or(bytes, |operand| self.operand(operand, lane) as u32);
        if wanted > bytes {
            return Err(at_lane(lane, FaultCause::CopySourceSize { source_bytes: wanted, bytes }));
        }
        if let Some(ignore) = copy.ignore_source
            && self.warp.registers.lanes_where(ignore) >> lane & 1 != 0
        {
            wanted = 0;
        }
        let mut buffer = [0; MOST_BYTES];
        if wanted > 0 {
            self.read_for_copy(self.address(copy.source, lane), bytes, &mut buffer[..wanted as usize], passed, lane)?;
        }
        let fail = |value, problem| access_failure(lane, AccessKind::Store, value, bytes, problem);
        let (value, cta, offset) = self
            .shared(copy.destination, StateSpace::SharedCta, lane)
            .map_err(|(value, problem)| fail(value, problem))?;
        if offset % bytes != 0 {
            return Err(fail(value, AccessProblem::Misaligned { required: bytes }));
        }
        self.machine.check_shared(cta, offset, bytes).map_err(|problem| fail(value, problem))?;
        let group = self.warp.copies.committed[lane];
        let cta = self.machine.ctas.get_mut(cta);
        cta.shared.check_plain(offset, bytes).map_err(|problem| fail(value, problem))?;
        let order = &cta.orders[self.warp.index as usize];
        cta.shared.shadow.begin_copy(offset, bytes, order).map_err(|error| at_lane(lane, error))?;
        let watched = cta.shared.bytes.write(offset.into(), &buffer[..bytes as usize]);
        if watched {
            self.machine.wake_shared_watchers(self.warp.cta, offset, bytes);
        }
        self.warp.copies.copies.push(PendingCopy {
            lane: lane as u32,
            group,
            offset,
            bytes,
            operation: copy.operation,
        });
        Ok(())
    }

    /// Reads the source, which is aligned like the whole copy.
    fn read_for_copy(
        &mut self,
        address: u64,
        alignment: u32,
        buffer: &mut [u8],
        passed: &mut Passed,
        lane: usize,
    ) -> Step<()> {
        let length = buffer.len() as u32;
        let fail = |problem| access_failure(lane, AccessKind::Load, address, length, problem);
        if !address.is_multiple_of(alignment.into()) {
            return Err(fail(AccessProblem::Misaligned { required: alignment }));
        }
        let place = self.locate_global(address, length, AccessKind::Load, lane)?;
        let physical = self.machine.memory.physical(place.memory);
        physical
            .bytes
            .read(place.offset, buffer)
            .map_err(|hole| fail(AccessProblem::Uninitialised { first: address + (hole - place.offset) }))?;
        let owner = physical.gpu;
        self.machine.count_read(self.launch.gpu, owner, length.into());
        self.check_global_read(place, length, false, address, lane, passed)?;
        self.stamp_global_read(place, length, passed);
        Ok(())
    }

    /// The executing lanes' copies of the groups below `groups(committed)` are complete.
    fn settle(&mut self, groups: impl Fn(u32) -> u32) {
        let lanes = self.lanes;
        let copies = &mut self.warp.copies;
        let cta = self.machine.ctas.get_mut(self.warp.cta);
        let order = &cta.orders[self.warp.index as usize];
        let shadow = &mut cta.shared.shadow;
        let committed = &copies.committed;
        copies.copies.retain(|copy| {
            let done = lanes >> copy.lane & 1 != 0 && copy.group < groups(committed[copy.lane as usize]);
            if done {
                shadow.end_copy(copy.offset, copy.bytes, order);
            }
            !done
        });
        let PendingCopies { copies, told, .. } = copies;
        let machine = &mut self.machine;
        told.retain(|&(ref site, bytes)| {
            let pending = copies.iter().any(|copy| copy.operation == Some(site.number));
            if !pending {
                machine.operation_at(site, Stage::Completed, || AsyncOperation::AsyncCopy { bytes });
            }
            pending
        });
    }

    fn arrive_for_copies(&mut self, barrier: Address, space: StateSpace, no_increment: bool, lane: usize) -> Step<()> {
        let (cta, index) = self.known_mbarrier(barrier, space, lane)?;
        if cta != self.warp.cta {
            let rank = self.machine.cta(cta).rank;
            return Err(at_lane(lane, MbarrierError::RemoteNotAllowed { operation: "cp.async.mbarrier.arrive", rank }));
        }
        let cta = self.machine.ctas.get_mut(cta);
        let object = &mut cta.shared.mbarriers[index];
        // Without .noinc the arrival is expected on top of the others, so that it leaves the count as it was.
        if no_increment {
            object.arrive(1).map_err(|error| at_lane(lane, error))?;
        }
        cta.orders[self.warp.index as usize].publish(MemoryOrder::Release, &mut object.arriving);
        let arrived = MbarrierChange::Arrived { arrivals: 1, expect_bytes: 0 };
        let change = if no_increment { arrived } else { MbarrierChange::ArrivedOnTop };
        self.machine.mbarrier_changed(self.warp.cta, index, change);
        self.machine.complete_mbarrier(self.warp.cta, index);
        Ok(())
    }
}

//! What an access to device memory means to others: order, aliases, release and acquire.

use super::Context;
use super::step::Step;
use crate::fault::{Fail, access_failure, at_lane};
use crate::memory::{AccessKind, Place, StampKind};
use crate::ordering::{AccessSort, WordAccess, is_acquire, is_release};
use crate::program::{MemoryOrder, Scope};

/// What one instruction has found out in the lanes so far; most lanes meet the same stamps.
#[derive(Debug, Default)]
pub(super) struct Passed {
    /// Stamps of a write and of a read that this warp is known to be ordered after.
    write: u32,
    read: u32,
    /// The stamp of its own accesses.
    own: u32,
}

impl Context<'_> {
    /// Finds ordinary device memory for a lane.
    pub(super) fn locate_global(&self, address: u64, bytes: u32, kind: AccessKind, lane: usize) -> Step<Place> {
        self.machine
            .memory
            .locate(self.launch.gpu, address, bytes.into())
            .map_err(|problem| access_failure(lane, kind, address, bytes, problem))
    }

    /// A weak read of device memory must be ordered after the writes that it sees.
    #[inline]
    pub(super) fn check_global_read(
        &self,
        place: Place,
        bytes: u32,
        multicast: bool,
        address: u64,
        lane: usize,
        passed: &mut Passed,
    ) -> Step<()> {
        self.machine.memory.physical(place.memory).bytes.each_stamp(
            StampKind::Write,
            place.offset,
            bytes.into(),
            |stamp, offset| {
                if stamp == passed.write {
                    return Ok(());
                }
                let access = self.global_access();
                let order = &self.machine.cta(self.warp.cta).orders[self.warp.index as usize];
                let at = address + (offset - place.offset);
                self.machine
                    .tracker
                    .check_read(stamp, at, multicast, &access, order)
                    .map_err(|error| at_lane(lane, error))?;
                passed.write = stamp;
                Ok(())
            },
        )
    }

    /// A write of data must be ordered after the accesses before it.
    #[inline]
    pub(super) fn check_global_write(
        &self,
        place: Place,
        bytes: u32,
        address: u64,
        lane: usize,
        passed: &mut Passed,
    ) -> Step<()> {
        let store = &self.machine.memory.physical(place.memory).bytes;
        for (kind, known) in [(StampKind::Write, &mut passed.write), (StampKind::Read, &mut passed.read)] {
            store.each_stamp(kind, place.offset, bytes.into(), |stamp, offset| {
                if stamp == *known {
                    return Ok(());
                }
                let access = self.global_access();
                let order = &self.machine.cta(self.warp.cta).orders[self.warp.index as usize];
                let at = address + (offset - place.offset);
                self.machine.tracker.check_write(stamp, at, &access, order).map_err(|error| at_lane(lane, error))?;
                *known = stamp;
                Ok::<(), Fail>(())
            })?;
        }
        Ok(())
    }

    /// Notes a write of this warp to device memory.
    #[inline]
    pub(super) fn stamp_global_write(&mut self, place: Place, bytes: u32, sort: AccessSort, passed: &mut Passed) {
        // Every lane that releases a flag begins a new epoch.
        let flag = matches!(sort, AccessSort::Flag | AccessSort::MulticastFlag);
        if flag || passed.own == 0 {
            passed.own = self.global_stamp(sort);
        }
        let stamp = passed.own;
        self.machine.memory.physical_mut(place.memory).bytes.stamp_write(place.offset, bytes.into(), stamp);
    }

    /// Notes a weak read.
    #[inline]
    pub(super) fn stamp_global_read(&mut self, place: Place, bytes: u32, passed: &mut Passed) {
        if passed.own == 0 {
            passed.own = self.global_stamp(AccessSort::Read);
        }
        let stamp = passed.own;
        self.machine.memory.physical_mut(place.memory).bytes.stamp_read(place.offset, bytes.into(), stamp);
    }

    fn global_stamp(&mut self, sort: AccessSort) -> u32 {
        let access = self.global_access();
        let order = &mut self.machine.ctas.get_mut(self.warp.cta).orders[self.warp.index as usize];
        self.machine.tracker.stamp(&access, order, sort)
    }

    fn word_access(&self, order: MemoryOrder, scope: Scope) -> WordAccess {
        let cta = self.machine.cta(self.warp.cta);
        WordAccess {
            cluster: self.machine.clusters.get(cta.cluster).uid,
            gpu: cta.gpu,
            order,
            scope,
            horizon: self.machine.recent.horizon(),
        }
    }

    /// A strong read takes in what strong writes left at a word of device memory.
    pub(super) fn read_word(&mut self, place: Place, order: MemoryOrder, scope: Scope) {
        let access = self.word_access(order, scope);
        let machine = &mut *self.machine;
        let own = &mut machine.ctas.get_mut(self.warp.cta).orders[self.warp.index as usize];
        match machine.memory.physical(place.memory).words.get(&place.offset) {
            Some(word) => word.read(&access, own, machine.now),
            None if is_acquire(order) => own.note_acquire(machine.now),
            None => {}
        }
    }

    /// A strong write leaves what this warp knows at a word of device memory.
    pub(super) fn write_word(&mut self, place: Place, order: MemoryOrder, scope: Scope, modifies: bool) {
        let access = self.word_access(order, scope);
        let own = &mut self.machine.ctas.get_mut(self.warp.cta).orders[self.warp.index as usize];
        let words = &mut self.machine.memory.physical_mut(place.memory).words;
        // A relaxed write without a release fence before it tells nothing; it only ends what was said before.
        if is_release(order) || own.has_release_fence() {
            words.entry(place.offset).or_default().write(&access, modifies, own);
        } else if let Some(word) = words.get_mut(&place.offset) {
            word.write(&access, modifies, own);
        }
    }
}

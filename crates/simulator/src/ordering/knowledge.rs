//! What a warp has learnt about the other warps and the asynchronous engines of its cluster.

use super::foreign::Foreign;
use super::global::SORTS;
use crate::node::OrderingRules;
use crate::program::{MemoryOrder, Scope};

/// One counter per actor; an absent entry is zero.
#[derive(Debug, Clone, Default)]
pub(crate) struct Clock(Vec<u32>);

impl Clock {
    #[inline]
    pub(crate) fn get(&self, actor: u32) -> u32 {
        self.0.get(actor as usize).copied().unwrap_or(0)
    }

    #[inline]
    pub(crate) fn raise(&mut self, actor: u32, value: u32) {
        let index = actor as usize;
        if self.0.len() <= index {
            self.0.resize(index + 1, 0);
        }
        let entry = &mut self.0[index];
        *entry = (*entry).max(value);
    }

    #[inline]
    pub(crate) fn join(&mut self, other: &Clock) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine = (*mine).max(*theirs);
        }
    }

    /// True when it is at or past the other everywhere.
    pub(crate) fn includes(&self, other: &Clock) -> bool {
        other.0.iter().enumerate().all(|(actor, &value)| self.get(actor as u32) >= value)
    }

    pub(crate) fn copy_from(&mut self, other: &Clock) {
        self.0.clear();
        self.0.extend_from_slice(&other.0);
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Actors with a value, for read sets.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, u32)> {
        self.0.iter().enumerate().filter(|(_, value)| **value > 0).map(|(actor, value)| (actor as u32, *value))
    }
}

/// Knowledge that an arrival hands to whoever waits.
#[derive(Debug, Clone, Default)]
pub(crate) struct Knowledge {
    /// Per warp: its generic accesses up to this epoch are visible.
    pub(crate) generic: Clock,
    /// Per warp: its generic writes up to this epoch are visible to the async proxy too.
    pub(crate) proxied: Clock,
    /// The same as `generic`, of other clusters.
    pub(crate) foreign: Foreign,
    /// Per mbarrier of the cluster: phases known to be complete.
    pub(crate) phases: Clock,
    /// The same, of those that were known when a `fence.proxy.async` was executed: what `st.async` and `red.async` wrote in
    /// them is visible to the async proxy too.
    pub(crate) proxied_phases: Clock,
    /// Per warp: its asynchronous tcgen05 operations up to this one are known complete.
    pub(crate) commits: Clock,
    /// Per warp: its `tcgen05.ld` up to this one were waited for and fenced.
    pub(crate) loads: Clock,
    /// Per warp: its `tcgen05.st` up to this one were waited for and fenced.
    pub(crate) stores: Clock,
}

impl Knowledge {
    /// Takes over everything.
    pub(crate) fn join(&mut self, other: &Knowledge) {
        self.join_memory(other);
        self.join_execution(other);
    }

    /// Takes over what needs release and acquire.
    pub(crate) fn join_memory(&mut self, other: &Knowledge) {
        self.generic.join(&other.generic);
        self.proxied.join(&other.proxied);
        self.proxied_phases.join(&other.proxied_phases);
        self.foreign.join(&other.foreign);
    }

    /// Takes over what needs execution order only: `tcgen05` orders its operations by its own fences around *relaxed*
    /// arrivals and waits (PTX ISA, tcgen05 memory consistency, canonical synchronization patterns).
    pub(crate) fn join_execution(&mut self, other: &Knowledge) {
        self.phases.join(&other.phases);
        self.commits.join(&other.commits);
        self.loads.join(&other.loads);
        self.stores.join(&other.stores);
    }

    pub(crate) fn clear(&mut self) {
        self.generic.clear();
        self.proxied.clear();
        self.proxied_phases.clear();
        self.foreign.clear();
        self.phases.clear();
        self.commits.clear();
        self.loads.clear();
        self.stores.clear();
    }

    pub(crate) fn copy_from(&mut self, other: &Knowledge) {
        self.generic.copy_from(&other.generic);
        self.proxied.copy_from(&other.proxied);
        self.proxied_phases.copy_from(&other.proxied_phases);
        self.foreign = other.foreign.clone();
        self.phases.copy_from(&other.phases);
        self.commits.copy_from(&other.commits);
        self.loads.copy_from(&other.loads);
        self.stores.copy_from(&other.stores);
    }
}

/// True when the order includes release.
pub(crate) fn is_release(order: MemoryOrder) -> bool {
    matches!(order, MemoryOrder::Release | MemoryOrder::AcquireRelease | MemoryOrder::SequentiallyConsistent)
}

/// True when the order includes acquire.
pub(crate) fn is_acquire(order: MemoryOrder) -> bool {
    matches!(order, MemoryOrder::Acquire | MemoryOrder::AcquireRelease | MemoryOrder::SequentiallyConsistent)
}

/// The ordering state of one warp.
#[derive(Debug, Clone)]
pub(crate) struct WarpOrder {
    /// Its number in the cluster.
    pub(crate) actor: u32,
    pub(crate) rules: OrderingRules,
    /// What it knows. Its own entry of `generic` is its current epoch.
    pub(crate) known: Knowledge,
    /// What its last release fence covered; a relaxed arrival after it publishes that much.
    fenced: Knowledge,
    fence_scope: Scope,
    /// What relaxed reads and waits saw; an acquire fence turns it into knowledge.
    pub(super) pending: Knowledge,
    /// Epoch and stamp of its last access to device memory, of each sort.
    pub(super) last_stamp: [(u32, u32); SORTS],
    /// `known.{commits, loads, stores}` as of the last `tcgen05.fence::after_thread_sync`.
    pub(crate) after_commits: Clock,
    pub(crate) after_loads: Clock,
    pub(crate) after_stores: Clock,
    /// `tcgen05.ld` issued, and how many `wait::ld` covers.
    pub(crate) loads_issued: u32,
    pub(crate) loads_waited: u32,
    /// `tcgen05.st` issued, and how many `wait::st` covers.
    pub(crate) stores_issued: u32,
    pub(crate) stores_waited: u32,
    /// Asynchronous tcgen05 operations (`mma`, `cp`) issued.
    pub(crate) operations_issued: u32,
    /// Time of the last acquire, and of the last acquire that a `fence.proxy.alias` followed.
    last_acquire: u64,
    pub(crate) alias_covered: u64,
}

impl WarpOrder {
    pub(crate) fn new(actor: u32, now: u64, rules: OrderingRules) -> Self {
        let mut known = Knowledge::default();
        known.generic.raise(actor, 1);
        Self {
            actor,
            rules,
            known,
            fenced: Knowledge::default(),
            fence_scope: Scope::Cta,
            last_stamp: [(0, 0); SORTS],
            pending: Knowledge::default(),
            after_commits: Clock::default(),
            after_loads: Clock::default(),
            after_stores: Clock::default(),
            loads_issued: 0,
            loads_waited: 0,
            stores_issued: 0,
            stores_waited: 0,
            operations_issued: 0,
            last_acquire: now,
            // What was there before the kernel began is visible through every alias.
            alias_covered: now,
        }
    }

    /// The epoch that stamps its accesses now.
    #[inline]
    pub(crate) fn epoch(&self) -> u32 {
        self.known.generic.get(self.actor)
    }

    fn next_epoch(&mut self) {
        let next = self.epoch() + 1;
        self.known.generic.raise(self.actor, next);
    }

    /// An arrival, or a release write, hands its knowledge on.
    pub(crate) fn publish(&mut self, order: MemoryOrder, into: &mut Knowledge) {
        if is_release(order) {
            self.tensor_release();
            into.join(&self.known);
            self.next_epoch();
        } else {
            into.join_execution(&self.known);
            into.join_memory(&self.fenced);
        }
    }

    /// A wait that succeeded, or an acquire read, takes knowledge in.
    pub(crate) fn observe(&mut self, order: MemoryOrder, from: &Knowledge, now: u64) {
        self.known.join_execution(from);
        if is_acquire(order) {
            self.known.join_memory(from);
            self.last_acquire = now;
            self.tensor_acquire();
        } else {
            self.pending.join_memory(from);
        }
    }

    /// An acquire of something that carries no knowledge of this cluster (a flag of another GPU).
    pub(crate) fn note_acquire(&mut self, now: u64) {
        self.last_acquire = now;
    }

    /// It has executed a release fence.
    pub(crate) fn has_release_fence(&self) -> bool {
        self.fenced.generic.get(self.actor) > 0
    }

    /// How far its last release fence reaches.
    pub(super) fn fence_scope(&self) -> Scope {
        self.fence_scope
    }

    /// `fence`: both halves as its order says.
    pub(crate) fn fence(&mut self, order: MemoryOrder, scope: Scope, now: u64) {
        if is_release(order) {
            self.fence_scope = scope;
            self.tensor_release();
            self.fenced.copy_from(&self.known);
            self.next_epoch();
        }
        if is_acquire(order) {
            let pending = std::mem::take(&mut self.pending);
            self.known.join_memory(&pending);
            self.pending = pending;
            self.last_acquire = now;
            self.tensor_acquire();
        }
    }

    /// `fence.proxy.async`: every generic write that this warp knows of is now visible to the async proxy.
    pub(crate) fn proxy_fence(&mut self) {
        let Knowledge { generic, proxied, phases, proxied_phases, .. } = &mut self.known;
        proxied.join(generic);
        proxied_phases.join(phases);
        // What the warp writes from here on is not covered.
        self.next_epoch();
    }

    /// `fence.proxy.alias` on the reading side: covers what was acquired before it.
    pub(crate) fn alias_fence(&mut self) {
        self.alias_covered = self.last_acquire;
        self.next_epoch();
    }

    /// What a release means to tcgen05 operations.
    fn tensor_release(&mut self) {
        if self.rules == OrderingRules::Practised {
            self.before_thread_sync();
        }
    }

    /// What an acquire means to tcgen05 operations.
    fn tensor_acquire(&mut self) {
        if self.rules == OrderingRules::Practised {
            self.after_thread_sync();
        }
    }

    /// `tcgen05.fence::before_thread_sync`.
    pub(crate) fn before_thread_sync(&mut self) {
        self.known.loads.raise(self.actor, self.loads_waited);
        self.known.stores.raise(self.actor, self.stores_waited);
    }

    /// `tcgen05.fence::after_thread_sync`.
    pub(crate) fn after_thread_sync(&mut self) {
        self.after_commits.join(&self.known.commits);
        self.after_loads.join(&self.known.loads);
        self.after_stores.join(&self.known.stores);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn release_hands_on_what_relaxed_keeps() {
        let mut writer = WarpOrder::new(0, 0, OrderingRules::Strict);
        let mut reader = WarpOrder::new(1, 0, OrderingRules::Strict);
        let stamp = writer.epoch();
        let mut barrier = Knowledge::default();
        writer.publish(MemoryOrder::Relaxed, &mut barrier);
        reader.observe(MemoryOrder::Acquire, &barrier, 1);
        assert!(reader.known.generic.get(0) < stamp);
        writer.publish(MemoryOrder::Release, &mut barrier);
        reader.observe(MemoryOrder::Relaxed, &barrier, 2);
        assert!(reader.known.generic.get(0) < stamp);
        reader.fence(MemoryOrder::Acquire, Scope::Cta, 3);
        assert!(reader.known.generic.get(0) >= stamp);
        assert!(writer.epoch() > stamp);
    }

    #[test]
    fn a_proxy_fence_covers_what_is_known_then() {
        let mut writer = WarpOrder::new(0, 0, OrderingRules::Strict);
        let before = writer.epoch();
        writer.proxy_fence();
        assert!(writer.known.proxied.get(0) >= before);
        assert!(writer.known.proxied.get(0) < writer.epoch());
    }
}

//! Recognising lane groups that poll memory, so that waiting costs no instructions.
//!
//! A group that executes the same strong load again, gets the same values, and has changed nothing in between, would go
//! round for ever unless somebody writes or time passes. The log remembers the loads of the loop; when each of them has
//! repeated itself the group is suspended until one of the addresses is written.

use super::{Context, Wait};
use crate::machine::WatchKey;
use crate::program::LaneMask;

/// More distinct polling instructions than this in one loop are not a polling loop.
const MAX_ENTRIES: usize = 16;
/// Most turns that a group may take before it is suspended again, after time has passed.
const MAX_GRANT: u32 = 4096;

/// Loads since the last side effect.
#[derive(Debug, Default)]
pub(crate) struct PollLog {
    entries: Vec<Entry>,
    used: usize,
    visits: u32,
    /// Turns to take before the next suspension.
    pub(super) grant: u32,
    /// Reads of a clock in a row without any other effect.
    pub(super) clock_reads: u32,
}

#[derive(Debug, Default)]
struct Entry {
    pc: u32,
    lanes: LaneMask,
    hash: u64,
    last_visit: u32,
    /// The last visit saw what the one before saw.
    stable: bool,
    keys: Vec<WatchKey>,
}

impl PollLog {
    /// A side effect: the loop, if any, makes progress.
    #[inline]
    pub(super) fn clear(&mut self) {
        self.used = 0;
        self.clock_reads = 0;
        self.grant = 0;
    }

    /// Time has passed without anything else: let the group look around, longer each time.
    pub(super) fn extend_grant(&mut self, rounds: u32) {
        self.grant = (1u32 << rounds.min(12)).min(MAX_GRANT);
    }

    /// Notes a load; true when the group has been going in circles.
    pub(super) fn visit(&mut self, pc: u32, lanes: LaneMask, hash: u64, keys: impl Iterator<Item = WatchKey>) -> bool {
        self.visits += 1;
        let found = self.entries[..self.used].iter().position(|entry| entry.pc == pc && entry.lanes == lanes);
        let index = found.unwrap_or_else(|| {
            if self.used == MAX_ENTRIES {
                self.used = 0;
            }
            self.used += 1;
            if self.entries.len() < self.used {
                self.entries.push(Entry::default());
            }
            self.used - 1
        });
        let visits = self.visits;
        let entry = &mut self.entries[index];
        let previous = entry.last_visit;
        entry.stable = found.is_some() && entry.hash == hash;
        (entry.pc, entry.lanes, entry.hash, entry.last_visit) = (pc, lanes, hash, visits);
        entry.keys.clear();
        entry.keys.extend(keys);
        if found.is_none() || !entry.stable {
            return false;
        }
        if self.entries[..self.used].iter().any(|entry| entry.last_visit > previous && !entry.stable) {
            return false;
        }
        if self.grant > 0 {
            self.grant -= 1;
            return false;
        }
        true
    }

    /// Keys of the loop that `pc` closes.
    fn keys(&self) -> impl Iterator<Item = WatchKey> {
        self.entries[..self.used].iter().filter(|entry| entry.stable).flat_map(|entry| entry.keys.iter().copied())
    }
}

impl Context<'_> {
    /// Notes a load that the group may be polling with; true when it has been going in circles and should wait.
    pub(super) fn polls_in_vain(&mut self, hash: u64, keys: impl Iterator<Item = WatchKey>) -> bool {
        // A group that was just woken goes round once: what changed may be at another address of its loop.
        let woken = self.resumed().is_some();
        let (pc, lanes) = (self.pc, self.lanes);
        self.warp.fragments[self.fragment].polls.visit(pc, lanes, hash, keys) && !woken
    }

    /// Suspends the group until one of the polled addresses is written.
    pub(super) fn suspend_polling(&mut self, address: u64, value: u64) {
        let group = &mut self.warp.fragments[self.fragment];
        let mut watched = std::mem::take(&mut group.watched);
        watched.clear();
        watched.extend(group.polls.keys());
        watched.sort_unstable_by_key(|key| match *key {
            WatchKey::Global { memory, granule } => (0, memory, granule),
            WatchKey::Shared { cta, granule } => (1, cta, granule.into()),
        });
        watched.dedup();
        let wait = Wait::Poll { address, value, addresses: watched.len() };
        let token = self.warp.suspend(self.fragment, wait, self.machine);
        for &key in &watched {
            self.machine.watch(key, token);
        }
        self.warp.fragments[self.fragment].watched = watched;
        self.count_wait();
    }
}

impl super::Fragment {
    /// Time has passed without anything else.
    pub(crate) fn extend_grant(&mut self, rounds: u32) {
        self.polls.extend_grant(rounds);
    }
}

//! Independent thread scheduling: a warp as lane groups ("fragments") that split at divergent branches and come together
//! at the branch's post-dominator.
//!
//! Where a branch diverges, a convergence point is noted with the lanes expected there. A lane group that reaches it
//! parks; when all expected lanes have come, or exited, they go on as one. Nothing in PTX promises this, but compilers
//! rely on it for `.aligned` instructions. What PTX does promise is forward progress of each lane, so parked lanes are
//! released early when nothing else in the node can go on.

use super::poll::PollLog;
use super::{Resume, WaitToken, Warp};
use crate::machine::{Machine, WatchKey};
use crate::program::LaneMask;

/// No convergence point ahead.
pub(super) const NEVER: u32 = u32::MAX;

/// Where a lane group stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FragmentState {
    /// The slot is unused.
    Free,
    /// Can execute.
    Runnable,
    /// Suspended.
    Waiting(Wait),
}

/// What a suspended lane group waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wait {
    /// A phase of an mbarrier.
    Mbarrier { cta: u32, offset: u32 },
    /// A barrier of the CTA.
    NamedBarrier { barrier: u32 },
    /// The cluster barrier.
    ClusterBarrier,
    /// Other lanes of the warp; `aligned` when all live ones are wanted.
    Members { members: LaneMask, aligned: bool },
    /// A write to what it polls.
    Poll { address: u64, value: u64, addresses: usize },
    /// Tensor memory.
    TensorAllocation { columns: u32 },
    /// Bulk stores.
    BulkGroup { pending: u32 },
    /// Warpgroup products.
    WgmmaGroup { pending: u32 },
    /// Simulated time.
    Time,
}

/// A group of lanes that execute together.
#[derive(Debug)]
pub(crate) struct Fragment {
    pub(crate) pc: u32,
    pub(crate) lanes: LaneMask,
    pub(crate) state: FragmentState,
    /// Number of the current suspension.
    pub(crate) wait: u64,
    /// How the last suspension ended, for the instruction that is executed again.
    pub(crate) resumed: Option<Resume>,
    /// Innermost convergence point, and where it is.
    top: Option<u32>,
    pub(super) converge_at: u32,
    pub(super) polls: PollLog,
    /// Keys under which the current suspension is registered.
    pub(super) watched: Vec<WatchKey>,
    /// Lanes that will execute the collective instruction at which the group waits.
    pub(super) gathering: LaneMask,
}

/// A place where lanes come together.
#[derive(Debug, Clone, Copy)]
pub(super) struct Convergence {
    pc: u32,
    /// Lanes that will come; 0 when the slot is free.
    members: LaneMask,
    arrived: LaneMask,
    parent: Option<u32>,
}

impl Fragment {
    pub(super) fn new(pc: u32, lanes: LaneMask, top: Option<(u32, u32)>) -> Self {
        Self {
            pc,
            lanes,
            state: FragmentState::Runnable,
            wait: 0,
            resumed: None,
            top: top.map(|(index, _)| index),
            converge_at: top.map_or(NEVER, |(_, pc)| pc),
            polls: PollLog::default(),
            watched: Vec::new(),
            gathering: 0,
        }
    }
}

impl Warp {
    fn new_fragment(&mut self, pc: u32, lanes: LaneMask, top: Option<u32>) -> u32 {
        let top = top.map(|index| (index, self.convergence[index as usize].pc));
        let fragment = Fragment::new(pc, lanes, top);
        match self.fragments.iter().position(|fragment| fragment.state == FragmentState::Free) {
            Some(slot) => {
                let old = std::mem::replace(&mut self.fragments[slot], fragment);
                // Keep the buffers.
                self.fragments[slot].watched = old.watched;
                self.fragments[slot].polls = old.polls;
                self.fragments[slot].polls.clear();
                slot as u32
            }
            None => {
                self.fragments.push(fragment);
                self.fragments.len() as u32 - 1
            }
        }
    }

    /// Splits a lane group: `lanes` go to `target`, the rest goes on at `next`; both meet at `reconvergence`. Returns
    /// the new group's slot (that of the lanes that go to `target`).
    pub(super) fn diverge(
        &mut self,
        fragment: usize,
        lanes: LaneMask,
        target: u32,
        next: u32,
        reconvergence: u32,
        end: u32,
    ) -> u32 {
        let group = &self.fragments[fragment];
        let (all, mut top) = (group.lanes, group.top);
        // Where only the exit post-dominates there is nothing to come together at. A loop that diverges again and
        // again has one convergence point, not one per turn.
        if reconvergence < end && group.converge_at != reconvergence {
            let entry = Convergence { pc: reconvergence, members: all, arrived: 0, parent: top };
            top = Some(match self.convergence.iter().position(|entry| entry.members == 0) {
                Some(slot) => {
                    self.convergence[slot] = entry;
                    slot as u32
                }
                None => {
                    self.convergence.push(entry);
                    self.convergence.len() as u32 - 1
                }
            });
        }
        let converge_at = top.map_or(NEVER, |index| self.convergence[index as usize].pc);
        let group = &mut self.fragments[fragment];
        (group.lanes, group.pc, group.top, group.converge_at) = (all & !lanes, next, top, converge_at);
        self.new_fragment(target, lanes, top)
    }

    /// Parks a lane group at its convergence point. When it is the last to come, it goes on with all that were parked,
    /// and this returns true.
    pub(super) fn park(&mut self, fragment: usize) -> bool {
        let group = &self.fragments[fragment];
        let (lanes, index) = (group.lanes, group.top.expect("a convergence point") as usize);
        let entry = &mut self.convergence[index];
        entry.arrived |= lanes;
        if entry.arrived != entry.members {
            self.fragments[fragment].state = FragmentState::Free;
            return false;
        }
        let entry = *entry;
        self.convergence[index].members = 0;
        let converge_at = entry.parent.map_or(NEVER, |parent| self.convergence[parent as usize].pc);
        let group = &mut self.fragments[fragment];
        (group.lanes, group.top, group.converge_at) = (entry.members, entry.parent, converge_at);
        true
    }

    /// Lanes exit: nobody waits for them any more. Returns groups that go on because of it.
    pub(super) fn exit_lanes(&mut self, lanes: LaneMask, released: &mut Vec<u32>) {
        self.live &= !lanes;
        for index in 0..self.convergence.len() {
            let entry = &mut self.convergence[index];
            if entry.members & lanes == 0 {
                continue;
            }
            entry.members &= !lanes;
            if entry.members != 0 && entry.arrived == entry.members {
                let entry = *entry;
                self.convergence[index].members = 0;
                released.push(self.new_fragment(entry.pc, entry.members, entry.parent));
            }
        }
    }

    /// Lets all parked lanes go on without their siblings.
    pub(crate) fn release_parked(&mut self, released: &mut Vec<u32>) {
        for index in 0..self.convergence.len() {
            let entry = self.convergence[index];
            if entry.members == 0 || entry.arrived == 0 {
                continue;
            }
            self.loose = true;
            self.convergence[index].members &= !entry.arrived;
            self.convergence[index].arrived = 0;
            released.push(self.new_fragment(entry.pc, entry.arrived, entry.parent));
        }
    }

    /// Lanes parked at each convergence point, with its pc and the lanes still missing.
    pub(crate) fn parked(&self) -> impl Iterator<Item = (u32, LaneMask, LaneMask)> {
        self.convergence
            .iter()
            .filter(|entry| entry.members != 0 && entry.arrived != 0)
            .map(|entry| (entry.pc, entry.arrived, entry.members & !entry.arrived))
    }

    /// All live lanes are here: make them one group with nothing to converge at.
    pub(super) fn merge_all(&mut self, fragment: usize) {
        for (index, other) in self.fragments.iter_mut().enumerate() {
            if index != fragment {
                other.state = FragmentState::Free;
            }
        }
        self.convergence.iter_mut().for_each(|entry| entry.members = 0);
        self.loose = false;
        let live = self.live;
        let group = &mut self.fragments[fragment];
        (group.lanes, group.top, group.converge_at) = (live, None, NEVER);
    }

    /// Suspends a lane group.
    pub(super) fn suspend(&mut self, fragment: usize, wait: Wait, machine: &mut Machine) -> WaitToken {
        let number = machine.next_wait;
        machine.next_wait += 1;
        let group = &mut self.fragments[fragment];
        group.wait = number;
        group.resumed = None;
        group.state = FragmentState::Waiting(wait);
        WaitToken { warp: self.slot, fragment: fragment as u32, wait: number }
    }

    /// Resumes a lane group if it is still in that suspension; true when it is runnable now.
    pub(crate) fn resume(&mut self, token: WaitToken, resume: Resume, machine: &mut Machine) -> bool {
        let Some(group) = self.fragments.get_mut(token.fragment as usize) else { return false };
        if group.wait != token.wait || !matches!(group.state, FragmentState::Waiting(_)) {
            return false;
        }
        group.state = FragmentState::Runnable;
        group.resumed = Some(resume);
        if resume == Resume::Next {
            group.pc += 1;
            group.resumed = None;
        }
        for key in group.watched.drain(..) {
            machine.unwatch(key, token.wait);
        }
        true
    }
}

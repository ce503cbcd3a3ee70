//! The node and its run loop: seeded choices among everything that can go on, and what happens when nothing can.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::deadlock::{DeadlockReport, PendingLaunch, WaitReason, WaitingLanes};
use crate::fault::{Fault, FaultCause, source_line};
use crate::machine::{Machine, Slab, Wake};
use crate::named_barrier::WHOLE_CTA;
use crate::node::{GpuId, NodeConfig, Progress};
use crate::program::{LaneMask, Module};
use crate::stream::Stream;
use crate::warp::{Burst, Context, FragmentState, Resume, Wait, WaitToken, Warp};

/// First step of simulated time when everything waits; each further step is twice as long.
const FIRST_STEP_NS: u64 = 1000;
/// Simulated time after which waits that nothing changes are a deadlock: an hour.
const PATIENCE_NS: u64 = 3_600_000_000_000;
/// Warp instructions without any change of state after which the node is running in circles.
const SPIN_LIMIT: u64 = 1 << 27;

/// A node of GPUs.
pub struct Node {
    pub(crate) machine: Machine,
    pub(crate) warps: Slab<Box<Warp>>,
    /// Lane groups that can execute: warp and fragment.
    pub(crate) runnable: Vec<(u32, u32)>,
    pub(crate) modules: Vec<LoadedModule>,
    pub(crate) streams: BTreeMap<(u32, u32), Stream>,
    pub(crate) launches: u64,
    /// Time passed at quiescence since `effects_seen`.
    waited_ns: u64,
    rounds: u32,
    effects_seen: u64,
    /// Step count at the last effect, for the spin limit.
    steps_at_effect: u64,
    effects_at_step: u64,
    pub(crate) spin_limit: u64,
    pub(crate) instruction_limit: u64,
    released: Vec<u32>,
}

/// A module and where its variables are on each GPU.
pub(crate) struct LoadedModule {
    pub(crate) module: Module,
    pub(crate) variables: Vec<Arc<[u64]>>,
}

impl Node {
    /// A node without modules, memory or work.
    pub fn new(config: NodeConfig) -> Node {
        Node {
            machine: Machine::new(config),
            warps: Slab::new(),
            runnable: Vec::new(),
            modules: Vec::new(),
            streams: BTreeMap::new(),
            launches: 0,
            waited_ns: 0,
            rounds: 0,
            effects_seen: 0,
            steps_at_effect: 0,
            effects_at_step: 0,
            spin_limit: SPIN_LIMIT,
            instruction_limit: u64::MAX,
            released: Vec::new(),
        }
    }

    /// Runs until every stream is idle. Bounded waits expire in simulated time; waits that nobody can end are a
    /// [`Fault::Deadlock`].
    pub fn run(&mut self) -> Result<(), Fault> {
        match self.advance(true)? {
            Progress::Idle => Ok(()),
            Progress::Blocked => Err(Fault::Deadlock(Box::new(self.blocked_report()))),
        }
    }

    /// Runs until every stream is idle, or until nothing can go on without more work being enqueued. Simulated time
    /// does not advance over such a standstill, so that bounded waits do not expire: the missing work may still come.
    pub fn run_until_blocked(&mut self) -> Result<Progress, Fault> {
        self.advance(false)
    }

    fn advance(&mut self, may_wait: bool) -> Result<Progress, Fault> {
        self.dispatch()?;
        loop {
            self.apply_wakes();
            while self.machine.events.next_due().is_some_and(|due| due <= self.machine.now) {
                self.machine.next_event()?;
                self.apply_wakes();
            }
            if !self.runnable.is_empty() {
                self.run_one()?;
                continue;
            }
            if self.dispatch()? {
                continue;
            }
            if let Some(due) = self.machine.events.next_due() {
                self.machine.now = self.machine.now.max(due);
                continue;
            }
            if self.streams.values().all(|stream| stream.running.is_none() && stream.commands.is_empty()) {
                return Ok(Progress::Idle);
            }
            if self.release_parked() {
                continue;
            }
            if !may_wait || !self.pass_time() {
                return Ok(Progress::Blocked);
            }
        }
    }

    fn apply_wakes(&mut self) {
        let mut index = 0;
        while let Some(&Wake { token, resume }) = self.machine.wakes.get(index) {
            index += 1;
            if let Some(warp) = self.warps.try_get_mut(token.warp)
                && warp.resume(token, resume, &mut self.machine)
            {
                if self.machine.observer.is_some() {
                    self.machine.tell_wait_ends(warp, token.fragment, resume);
                }
                self.runnable.push((token.warp, token.fragment));
            }
        }
        self.machine.wakes.clear();
    }

    /// Lets one lane group run for a while.
    fn run_one(&mut self) -> Result<(), Fault> {
        let chosen = self.machine.random.below(self.runnable.len());
        let budget = self.machine.random.burst();
        let (slot, fragment) = self.runnable[chosen];
        let mut warp = self.warps.take(slot).expect("a runnable group has a warp");
        self.released.clear();
        let result = Context::burst(&mut warp, &mut self.machine, fragment as usize, budget, &mut self.released);
        if !matches!(result, Ok(Burst::Runnable)) {
            self.runnable.swap_remove(chosen);
        }
        self.runnable.extend(self.released.iter().map(|&fragment| (slot, fragment)));
        let exited = warp.live == 0;
        if exited {
            self.warps.release(slot);
        } else {
            self.warps.put(slot, warp);
        }
        result?;
        if !self.machine.retired.is_empty() {
            self.retire_ctas();
            self.dispatch()?;
        }
        if exited {
            return Ok(());
        }
        if self.machine.effects != self.effects_at_step {
            self.effects_at_step = self.machine.effects;
            self.steps_at_effect = self.machine.steps;
        } else if self.machine.steps - self.steps_at_effect > self.spin_limit {
            let cause = FaultCause::Spinning { limit: self.spin_limit };
            return Err(self.endless(slot, fragment, cause));
        }
        if self.machine.steps > self.instruction_limit {
            let cause = FaultCause::InstructionLimit { limit: self.instruction_limit };
            return Err(self.endless(slot, fragment, cause));
        }
        Ok(())
    }

    #[cold]
    fn endless(&self, slot: u32, fragment: u32, cause: FaultCause) -> Fault {
        let warp = self.warps.get(slot);
        let group = &warp.fragments[fragment as usize];
        let cta = self.machine.cta(warp.cta);
        warp.launch.fault(group.pc, cta.index, warp.index, group.lanes, cause)
    }

    /// Forward progress: parked lanes go on without their siblings. True when there were any.
    fn release_parked(&mut self) -> bool {
        let before = self.runnable.len();
        for (slot, warp) in self.warps.iter_mut() {
            self.released.clear();
            warp.release_parked(&mut self.released);
            self.runnable.extend(self.released.iter().map(|&fragment| (slot, fragment)));
        }
        self.runnable.len() > before
    }

    /// Lets simulated time pass while everybody waits, so that bounded waits expire; false when that is hopeless.
    fn pass_time(&mut self) -> bool {
        if self.machine.effects != self.effects_seen {
            self.effects_seen = self.machine.effects;
            (self.waited_ns, self.rounds) = (0, 0);
        }
        if self.waited_ns >= PATIENCE_NS {
            return false;
        }
        let step = FIRST_STEP_NS << self.rounds;
        self.machine.now += step;
        self.waited_ns += step;
        self.rounds += 1;
        let mut tokens = Vec::new();
        for (slot, warp) in self.warps.iter_mut() {
            for (index, group) in warp.fragments.iter_mut().enumerate() {
                let token = WaitToken { warp: slot, fragment: index as u32, wait: group.wait };
                match group.state {
                    FragmentState::Waiting(Wait::Poll { .. }) => group.extend_grant(self.rounds),
                    FragmentState::Waiting(Wait::Mbarrier { cta, offset }) => {
                        let shared = &mut self.machine.cta_mut(cta).shared;
                        if let Some(object) = shared.mbarrier_index(offset) {
                            shared.mbarriers[object].waiters.retain(|waiter| *waiter != token);
                        }
                    }
                    _ => continue,
                }
                tokens.push(token);
            }
        }
        for &token in &tokens {
            self.machine.wake(token, Resume::TimedOut);
        }
        !tokens.is_empty()
    }

    /// Who waits for what, now.
    pub fn blocked_report(&self) -> DeadlockReport {
        let mut waiting = Vec::new();
        for (_, warp) in self.warps.iter() {
            let cta = self.machine.cta(warp.cta);
            let mut add = |pc: u32, lanes: LaneMask, reason: WaitReason| {
                let kernel = &warp.launch.kernel;
                let line = kernel.instructions.get(pc as usize).map_or(0, |instruction| instruction.line);
                waiting.push(WaitingLanes {
                    kernel: kernel.name.clone(),
                    gpu: GpuId(cta.gpu),
                    cta: cta.index,
                    warp: warp.index,
                    lanes,
                    line,
                    source: source_line(kernel, line),
                    reason,
                });
            };
            for group in &warp.fragments {
                if let FragmentState::Waiting(wait) = &group.state {
                    add(group.pc, group.lanes, self.machine.wait_reason(warp.cta, wait));
                }
            }
            for (pc, lanes, missing) in warp.parked() {
                add(pc, lanes, WaitReason::Reconvergence { missing });
            }
        }
        waiting.sort_by_key(|wait| (wait.gpu, wait.cta, wait.warp, wait.lanes));
        let pending = self
            .streams
            .iter()
            .filter_map(|(&(gpu, stream), state)| {
                let running = state.running.as_ref()?;
                let (started, ctas) = running.ctas();
                (started < ctas).then(|| PendingLaunch {
                    kernel: running.launch.kernel.name.clone(),
                    gpu: GpuId(gpu),
                    stream,
                    started,
                    ctas,
                })
            })
            .collect();
        DeadlockReport { waiting, pending, time_ns: self.machine.now }
    }
}

impl Machine {
    /// What a lane group of a CTA waits for, now.
    pub(crate) fn wait_reason(&self, own: u32, wait: &Wait) -> WaitReason {
        match *wait {
            Wait::Mbarrier { cta, offset } => {
                let cta = self.cta(cta);
                let object = cta.shared.mbarrier_index(offset).map(|index| &cta.shared.mbarriers[index]);
                WaitReason::Mbarrier {
                    cta_rank: cta.rank,
                    offset,
                    phase: object.map_or(0, |object| object.phase_since_init()),
                    pending: object.map_or(0, |object| object.pending),
                    expected: object.map_or(0, |object| object.expected),
                    transaction_bytes: object.map_or(0, |object| object.transactions),
                }
            }
            Wait::NamedBarrier { barrier } => {
                let cta = self.cta(own);
                let object = &cta.barriers[barrier as usize];
                let expected =
                    if object.expected == WHOLE_CTA { cta.live_warps.count_ones() * 32 } else { object.expected };
                WaitReason::NamedBarrier { barrier, arrived: object.arrived_threads(), expected }
            }
            Wait::ClusterBarrier => {
                let cluster = self.clusters.get(self.cta(own).cluster);
                let (mut arrived, mut expected) = (0, 0);
                for &cta in &cluster.ctas {
                    let cta = self.cta(cta);
                    expected += cta.warp_live.iter().map(|lanes| lanes.count_ones()).sum::<u32>();
                    arrived += cta.cluster_lanes.iter().map(|state| state.arrived.count_ones()).sum::<u32>();
                }
                WaitReason::ClusterBarrier { arrived, expected }
            }
            Wait::Members { members, .. } => WaitReason::Members { members },
            Wait::Poll { address, value, addresses } => WaitReason::Poll { address, value, addresses },
            Wait::TensorAllocation { columns } => WaitReason::TensorAllocation { columns },
            Wait::BulkGroup { pending } => WaitReason::BulkGroup { pending },
            Wait::WgmmaGroup { pending } => WaitReason::WgmmaGroup { pending },
            Wait::Time => WaitReason::Time,
        }
    }
}

//! Who waits in a synchronisation, and when the node may run.

use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::time::Instant;

use simulator::node::GpuId;

use super::{PATIENCE, Shared, State};
use crate::driver::DriverError;

/// The live ranks and those of them that wait.
#[derive(Default)]
pub(super) struct Gate {
    /// Number of devices of each live rank.
    live: BTreeMap<u32, u32>,
    waiters: BTreeMap<u64, Waiter>,
    next_waiter: u64,
}

struct Waiter {
    rank: u32,
    stream: u32,
    /// Set when the wait is over.
    verdict: Option<Result<(), DriverError>>,
}

impl Gate {
    pub fn enter(&mut self, rank: u32) {
        *self.live.entry(rank).or_default() += 1;
    }

    pub fn leave(&mut self, rank: u32) {
        if let Some(devices) = self.live.get_mut(&rank) {
            *devices -= 1;
            if *devices == 0 {
                self.live.remove(&rank);
            }
        }
    }

    fn wait(&mut self, rank: u32, stream: u32) -> u64 {
        let id = self.next_waiter;
        self.next_waiter += 1;
        self.waiters.insert(id, Waiter { rank, stream, verdict: None });
        id
    }

    /// The verdict of a waiter, which is then forgotten.
    fn take_verdict(&mut self, id: u64) -> Option<Result<(), DriverError>> {
        self.waiters.get(&id)?.verdict.as_ref()?;
        self.waiters.remove(&id)?.verdict
    }

    fn undecided(&mut self) -> impl Iterator<Item = &mut Waiter> {
        self.waiters.values_mut().filter(|waiter| waiter.verdict.is_none())
    }

    fn everyone_waits(&mut self) -> bool {
        let mut idle = self.live.clone();
        for waiter in self.undecided() {
            idle.remove(&waiter.rank);
        }
        idle.is_empty()
    }
}

/// Waits until a stream is done; the rule is [`SimulatedNode`](super::SimulatedNode)'s.
pub(super) fn synchronize(shared: &Shared, rank: u32, stream: u32) -> Result<(), DriverError> {
    let mut state = shared.lock();
    state.check_fault(rank)?;
    if state.node.is_idle(GpuId(rank), stream) {
        return Ok(());
    }
    let id = state.gate.wait(rank, stream);
    loop {
        if let Some(verdict) = state.gate.take_verdict(id) {
            return verdict;
        }
        if shared.state.is_poisoned() {
            return Err(DriverError::Fault { device: rank, fault: "the simulator panicked".to_owned() });
        }
        let everyone = state.gate.everyone_waits();
        let quiet = state.last_call.elapsed();
        if everyone || (quiet >= PATIENCE && state.queued) {
            state.run(everyone);
            shared.changed.notify_all();
            continue;
        }
        // With nothing new in the queues, only another rank can change anything, and it says so.
        let patience = if state.queued { PATIENCE - quiet } else { PATIENCE };
        state = shared.changed.wait_timeout(state, patience).unwrap_or_else(PoisonError::into_inner).0;
    }
}

impl State {
    /// Notes that a rank did something.
    pub(super) fn touch(&mut self) {
        self.last_call = Instant::now();
    }

    pub(super) fn check_fault(&self, device: u32) -> Result<(), DriverError> {
        match &self.fault {
            Some(fault) => Err(DriverError::Fault { device, fault: fault.clone() }),
            None => Ok(()),
        }
    }

    /// Runs the node as far as it goes and decides the waiters. If `everyone` waits and none of them is served, none
    /// ever will be.
    fn run(&mut self, everyone: bool) {
        self.queued = false;
        if let Err(fault) = self.node.run_until_blocked() {
            let fault = fault.to_string();
            for waiter in self.gate.undecided() {
                waiter.verdict = Some(Err(DriverError::Fault { device: waiter.rank, fault: fault.clone() }));
            }
            self.fault = Some(fault);
            return;
        }
        let mut served = false;
        for waiter in self.gate.undecided() {
            if self.node.is_idle(GpuId(waiter.rank), waiter.stream) {
                waiter.verdict = Some(Ok(()));
                served = true;
            }
        }
        if everyone && !served {
            let report = self.node.blocked_report().to_string();
            for waiter in self.gate.undecided() {
                waiter.verdict = Some(Err(DriverError::Deadlock { device: waiter.rank, report: report.clone() }));
            }
        }
        // The simulation itself may have taken longer than anyone's patience.
        self.touch();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everyone_waits_when_each_live_rank_has_an_undecided_waiter() {
        let mut gate = Gate::default();
        gate.enter(0);
        gate.enter(1);
        gate.enter(1);
        let first = gate.wait(0, 0);
        assert!(!gate.everyone_waits());
        gate.wait(1, 0);
        assert!(gate.everyone_waits());
        gate.undecided().for_each(|waiter| waiter.verdict = Some(Ok(())));
        assert!(!gate.everyone_waits(), "a served rank is on its way back to its own work");
        assert_eq!(gate.take_verdict(first), Some(Ok(())));
        assert_eq!(gate.take_verdict(first), None);
        gate.wait(0, 0);
        gate.leave(1);
        assert!(!gate.everyone_waits(), "rank 1 has a second device");
        gate.leave(1);
        assert!(gate.everyone_waits(), "a rank without devices does not count");
    }
}

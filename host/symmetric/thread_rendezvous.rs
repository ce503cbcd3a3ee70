//! Rendezvous of threads of one process.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::{Rendezvous, RendezvousError};
use crate::driver::ShareableHandle;

/// Time that a rank waits for the others unless told otherwise.
pub const DEFAULT_DEADLINE: Duration = Duration::from_secs(30);

/// One rank's end of a group of threads. Dropping it takes the rank out of the group: the others' calls that still need
/// it fail at once instead of waiting for their deadline.
pub struct ThreadRendezvous {
    rank: u32,
    deadline: Duration,
    group: Arc<Group>,
}

struct Group {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// Whether each rank's end still exists.
    present: Vec<bool>,
    /// Number of the round that each rank enters next.
    next_round: Vec<u64>,
    /// Number of the oldest round in `rounds`.
    first_round: u64,
    /// Rounds that some rank has not left yet.
    rounds: VecDeque<Round>,
    /// The first failure; the ranks may disagree about rounds from then on.
    broken: Option<String>,
}

/// One collective call.
struct Round {
    contributions: Vec<Option<(&'static str, Payload)>>,
    left: u32,
}

#[derive(Debug, Clone)]
enum Payload {
    Nothing,
    Bytes(Vec<u8>),
    Handle(Option<ShareableHandle>),
}

impl ThreadRendezvous {
    /// The ends of a group of `world_size` ranks, by rank, with [`DEFAULT_DEADLINE`].
    pub fn group(world_size: u32) -> Vec<Self> {
        Self::group_with_deadline(world_size, DEFAULT_DEADLINE)
    }

    /// As [`Self::group`], with the time that a call waits for the other ranks.
    pub fn group_with_deadline(world_size: u32, deadline: Duration) -> Vec<Self> {
        let ranks = world_size as usize;
        let group = Arc::new(Group {
            state: Mutex::new(State {
                present: vec![true; ranks],
                next_round: vec![0; ranks],
                first_round: 0,
                rounds: VecDeque::new(),
                broken: None,
            }),
            changed: Condvar::new(),
        });
        (0..world_size).map(|rank| Self { rank, deadline, group: Arc::clone(&group) }).collect()
    }

    fn meet(&self, call: &'static str, payload: Payload) -> Result<Vec<Payload>, RendezvousError> {
        let start = Instant::now();
        let mut state = self.group.lock();
        if let Some(reason) = &state.broken {
            return Err(RendezvousError::Broken { rank: self.rank, call, reason: reason.clone() });
        }
        let number = state.enter(self.rank, call, payload);
        if state.round(number).arrived() == state.present.len() {
            self.group.changed.notify_all();
        }
        loop {
            if let Some(error) = self.mismatch(&state, number, call) {
                return Err(self.fail(&mut state, error));
            }
            if state.round(number).arrived() == state.present.len() {
                return Ok(state.leave(number));
            }
            let missing = state.missing(number);
            let lost: Vec<u32> = missing.iter().copied().filter(|&rank| !state.present[rank as usize]).collect();
            if !lost.is_empty() {
                return Err(self.fail(&mut state, RendezvousError::PeerLost { rank: self.rank, call, lost }));
            }
            if let Some(reason) = &state.broken {
                return Err(RendezvousError::Broken { rank: self.rank, call, reason: reason.clone() });
            }
            let waited = start.elapsed();
            let Some(remaining) = self.deadline.checked_sub(waited).filter(|remaining| !remaining.is_zero()) else {
                let error = RendezvousError::TimedOut { rank: self.rank, call, missing, waited: self.deadline };
                return Err(self.fail(&mut state, error));
            };
            state = self.group.changed.wait_timeout(state, remaining).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn mismatch(&self, state: &State, number: u64, call: &'static str) -> Option<RendezvousError> {
        let contributions = &state.round(number).contributions;
        contributions.iter().zip(0..).find_map(|(contribution, other)| match contribution {
            Some((wanted, _)) if *wanted != call => {
                Some(RendezvousError::CallMismatch { rank: self.rank, given: call, other, wanted })
            }
            _ => None,
        })
    }

    fn fail(&self, state: &mut State, error: RendezvousError) -> RendezvousError {
        state.broken.get_or_insert_with(|| error.to_string());
        self.group.changed.notify_all();
        error
    }
}

impl Group {
    /// The state is consistent between any two statements that can panic, so a poisoned lock is usable.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Adds a rank's contribution to its next round and gives the round's number.
    fn enter(&mut self, rank: u32, call: &'static str, payload: Payload) -> u64 {
        let ranks = self.present.len();
        let number = self.next_round[rank as usize];
        self.next_round[rank as usize] += 1;
        let index = (number - self.first_round) as usize;
        while self.rounds.len() <= index {
            self.rounds.push_back(Round { contributions: vec![None; ranks], left: 0 });
        }
        self.rounds[index].contributions[rank as usize] = Some((call, payload));
        number
    }

    /// Takes everyone's contributions of a complete round, which goes away with the last rank.
    fn leave(&mut self, number: u64) -> Vec<Payload> {
        let ranks = self.present.len();
        let index = (number - self.first_round) as usize;
        let round = &mut self.rounds[index];
        round.left += 1;
        let payloads = round.contributions.iter().flatten().map(|(_, payload)| payload.clone()).collect();
        while self.rounds.front().is_some_and(|round| round.left as usize == ranks) {
            self.rounds.pop_front();
            self.first_round += 1;
        }
        payloads
    }

    fn round(&self, number: u64) -> &Round {
        &self.rounds[(number - self.first_round) as usize]
    }

    fn missing(&self, number: u64) -> Vec<u32> {
        let contributions = &self.round(number).contributions;
        contributions.iter().zip(0..).filter(|(contribution, _)| contribution.is_none()).map(|(_, rank)| rank).collect()
    }
}

impl Round {
    fn arrived(&self) -> usize {
        self.contributions.iter().flatten().count()
    }
}

impl Rendezvous for ThreadRendezvous {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn world_size(&self) -> u32 {
        self.group.lock().present.len() as u32
    }

    fn all_gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, RendezvousError> {
        let payloads = self.meet("all-gather", Payload::Bytes(bytes.to_vec()))?;
        // Every contribution has this call's kind, or `meet` had failed.
        Ok(payloads
            .into_iter()
            .map(|payload| if let Payload::Bytes(bytes) = payload { bytes } else { vec![] })
            .collect())
    }

    fn barrier(&self) -> Result<(), RendezvousError> {
        self.meet("barrier", Payload::Nothing).map(drop)
    }

    fn exchange_handles(
        &self,
        handle: Option<ShareableHandle>,
    ) -> Result<Vec<Option<ShareableHandle>>, RendezvousError> {
        let payloads = self.meet("handle exchange", Payload::Handle(handle))?;
        Ok(payloads
            .into_iter()
            .map(|payload| if let Payload::Handle(handle) = payload { handle } else { None })
            .collect())
    }
}

impl Drop for ThreadRendezvous {
    fn drop(&mut self) {
        self.group.lock().present[self.rank as usize] = false;
        self.group.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    fn on_each<T: Send>(ends: Vec<ThreadRendezvous>, body: impl Fn(&ThreadRendezvous) -> T + Sync) -> Vec<T> {
        thread::scope(|scope| {
            let threads: Vec<_> = ends
                .into_iter()
                .map(|end| {
                    scope.spawn(|| {
                        let end = end;
                        body(&end)
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        })
    }

    #[test]
    fn every_rank_gets_every_contribution_in_rank_order() {
        let results = on_each(ThreadRendezvous::group(5), |end| {
            (0..20u8).map(|round| end.all_gather(&vec![round; end.rank() as usize]).unwrap()).collect::<Vec<_>>()
        });
        for rounds in results {
            for (round, gathered) in rounds.into_iter().enumerate() {
                let wanted: Vec<Vec<u8>> = (0..5).map(|rank| vec![round as u8; rank]).collect();
                assert_eq!(gathered, wanted);
            }
        }
    }

    #[test]
    fn a_rank_that_does_not_come_is_named() {
        let mut ends = ThreadRendezvous::group_with_deadline(3, Duration::from_millis(30));
        let _absent = ends.remove(1);
        let results = on_each(ends, |end| end.barrier().unwrap_err().to_string());
        let timed_out =
            "waited 30ms in barrier and ranks [1] did not arrive; check that they run and make the same calls";
        assert!(results.iter().any(|text| text.ends_with(timed_out)), "{results:?}");
        assert!(results.iter().all(|text| text.contains("ranks [1] did not arrive")), "{results:?}");
    }

    #[test]
    fn a_dropped_rank_fails_the_others_at_once() {
        let mut ends = ThreadRendezvous::group(3);
        let leaver = ends.remove(2);
        let waiter = thread::spawn(move || ends.remove(0).barrier().unwrap_err());
        drop(leaver);
        let error = waiter.join().unwrap();
        assert_eq!(error, RendezvousError::PeerLost { rank: 0, call: "barrier", lost: vec![2] });
    }

    #[test]
    fn a_rank_that_leaves_after_its_last_call_is_not_missed() {
        let results = on_each(ThreadRendezvous::group(4), |end| end.barrier());
        assert!(results.iter().all(Result::is_ok), "{results:?}");
    }

    #[test]
    fn different_calls_are_told_apart() {
        let results = on_each(ThreadRendezvous::group(2), |end| match end.rank() {
            0 => end.barrier().unwrap_err(),
            _ => end.all_gather(&[]).unwrap_err(),
        });
        assert!(results.iter().any(|error| matches!(error, RendezvousError::CallMismatch { .. })), "{results:?}");
    }

    #[test]
    fn a_broken_group_stays_broken() {
        let mut ends = ThreadRendezvous::group_with_deadline(2, Duration::from_millis(10));
        let late = ends.remove(1);
        ends[0].barrier().unwrap_err();
        let error = late.barrier().unwrap_err();
        assert!(matches!(&error, RendezvousError::Broken { rank: 1, .. }), "{error}");
    }
}

//! The CTA's sixteen barriers (PTX ISA, "bar, barrier").

use crate::ordering::Knowledge;
use crate::warp::WaitToken;

/// Barriers of a CTA.
pub const BARRIERS: usize = 16;

/// Why a barrier instruction was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BarrierError {
    /// No such barrier.
    #[error("barrier {barrier} does not exist: a CTA has barriers 0 to 15")]
    NoSuchBarrier {
        /// Given.
        barrier: u64,
    },
    /// Thread count.
    #[error("barrier {barrier}: the thread count {threads} must be a multiple of 32, from 32 to the CTA's {limit}")]
    ThreadCount {
        /// Barrier.
        barrier: u32,
        /// Given.
        threads: u64,
        /// Threads of the CTA, rounded up to whole warps.
        limit: u32,
    },
    /// `arrive` without a count.
    #[error("barrier {barrier}: arrive needs a thread count")]
    ArriveWithoutCount {
        /// Barrier.
        barrier: u32,
    },
    /// Warps that disagree.
    #[error("barrier {barrier}: this warp expects {given} threads, but those that wait for it expect {earlier}")]
    CountsDisagree {
        /// Barrier.
        barrier: u32,
        /// This warp's.
        given: u32,
        /// The others'.
        earlier: u32,
    },
    /// A warp arrives twice before the barrier completes.
    #[error("barrier {barrier}: warp {warp} arrives a second time before the barrier has completed")]
    ArrivedTwice {
        /// Barrier.
        barrier: u32,
        /// The warp.
        warp: u32,
    },
    /// Cluster barrier used out of turn.
    #[error("barrier.cluster.{operation} out of turn: a thread must alternate arrive and wait")]
    ClusterOutOfTurn {
        /// `arrive` or `wait`.
        operation: &'static str,
    },
}

/// A lane group that waits for a barrier.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BarrierWaiter {
    pub(crate) token: WaitToken,
    pub(crate) warp: u32,
}

/// One barrier.
#[derive(Debug, Default)]
pub(crate) struct NamedBarrier {
    /// Threads expected in the phase under way; 0 when nobody has arrived, `u32::MAX` for all of the CTA.
    pub(crate) expected: u32,
    /// Warps that have arrived, a bit each.
    pub(crate) arrived: u64,
    pub(crate) waiters: Vec<BarrierWaiter>,
    pub(crate) knowledge: Knowledge,
    /// Reduction so far.
    pub(crate) result: BarrierResult,
}

/// What `bar.red` gives.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct BarrierResult {
    pub(crate) count: u32,
    pub(crate) all: bool,
    pub(crate) any: bool,
}

/// `expected` of a barrier for the whole CTA.
pub(crate) const WHOLE_CTA: u32 = u32::MAX;

impl NamedBarrier {
    /// Notes a warp's arrival.
    pub(crate) fn arrive(&mut self, barrier: u32, warp: u32, expected: u32) -> Result<(), BarrierError> {
        if self.expected == 0 {
            self.expected = expected;
            self.result = BarrierResult { count: 0, all: true, any: false };
        } else if self.expected != expected {
            return Err(BarrierError::CountsDisagree { barrier, given: expected, earlier: self.expected });
        }
        if self.arrived >> warp & 1 != 0 {
            return Err(BarrierError::ArrivedTwice { barrier, warp });
        }
        self.arrived |= 1 << warp;
        Ok(())
    }

    /// True when everybody expected has arrived; `live` has a bit for each warp that has not exited.
    pub(crate) fn is_complete(&self, live: u64) -> bool {
        match self.expected {
            0 => false,
            // Threads that have exited are not waited for (PTX ISA, barrier).
            WHOLE_CTA => live & !self.arrived == 0,
            threads => self.arrived.count_ones() * 32 >= threads,
        }
    }

    /// Threads that have arrived.
    pub(crate) fn arrived_threads(&self) -> u32 {
        self.arrived.count_ones() * 32
    }

    /// Makes it ready for its next use.
    pub(crate) fn reset(&mut self) {
        self.expected = 0;
        self.arrived = 0;
        self.waiters.clear();
        self.knowledge.clear();
    }
}

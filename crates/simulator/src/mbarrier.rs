//! mbarrier objects: phases, pending arrivals and transaction counts (PTX ISA, "mbarrier").

use crate::ordering::Knowledge;

/// Largest arrival count (PTX ISA, mbarrier.init).
pub const MAX_COUNT: u32 = (1 << 20) - 1;
/// Largest magnitude of the transaction count (PTX ISA, "Valid range of mbarrier contents").
pub const MAX_TRANSACTIONS: i64 = (1 << 20) - 1;

/// Why an mbarrier operation was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MbarrierError {
    /// Not an mbarrier.
    #[error("there is no initialised mbarrier at {offset:#x}: mbarrier.init it first")]
    NotInitialised {
        /// Offset in the CTA's shared memory.
        offset: u32,
    },
    /// Initialised twice.
    #[error("the mbarrier at {offset:#x} is initialised again while it is in use; mbarrier.inval it first")]
    InitialisedAgain {
        /// Offset in the CTA's shared memory.
        offset: u32,
    },
    /// Overlaps another mbarrier.
    #[error("an mbarrier at {offset:#x} overlaps the one at {other:#x}")]
    Overlaps {
        /// Offset in the CTA's shared memory.
        offset: u32,
        /// The other one.
        other: u32,
    },
    /// Invalidated while somebody waits.
    #[error("the mbarrier at {offset:#x} is invalidated while {waiters} lane groups wait on it")]
    InvalidatedInUse {
        /// Offset in the CTA's shared memory.
        offset: u32,
        /// Lane groups.
        waiters: usize,
    },
    /// Count out of range.
    #[error("the arrival count {count} is outside 1..={MAX_COUNT}")]
    Count {
        /// Given.
        count: u32,
    },
    /// More arrivals than expected.
    #[error(
        "{arrivals} arrivals on the mbarrier at {offset:#x}, whose phase {phase} expects only {pending} more of {expected}"
    )]
    TooManyArrivals {
        /// Offset in the CTA's shared memory.
        offset: u32,
        /// Given.
        arrivals: u32,
        /// Left in this phase.
        pending: u32,
        /// In all.
        expected: u32,
        /// Completed phases before this one.
        phase: u32,
    },
    /// Transaction count out of range.
    #[error(
        "the transaction count of the mbarrier at {offset:#x} becomes {transactions}, outside +-{MAX_TRANSACTIONS}"
    )]
    TransactionOverflow {
        /// Offset in the CTA's shared memory.
        offset: u32,
        /// Would be.
        transactions: i64,
    },
    /// A token of a phase long past.
    #[error(
        "the state token is of phase {token}, but the mbarrier at {offset:#x} is in phase {phase}: a token is good for the current and the preceding phase only"
    )]
    StaleToken {
        /// Offset in the CTA's shared memory.
        offset: u32,
        /// Phase in the token.
        token: u32,
        /// Phase of the mbarrier.
        phase: u32,
    },
    /// `.shared::cluster` form that does not exist.
    #[error("mbarrier.{operation} works on the executing CTA's own shared memory only, not on that of CTA {rank}")]
    RemoteNotAllowed {
        /// Operation.
        operation: &'static str,
        /// Rank addressed.
        rank: u32,
    },
}

/// One mbarrier.
#[derive(Debug)]
pub(crate) struct Mbarrier {
    /// Offset in the CTA's shared memory.
    pub(crate) offset: u32,
    /// Its number among the mbarriers of the cluster.
    pub(crate) actor: u32,
    /// False after `inval`, until it is initialised again.
    pub(crate) valid: bool,
    pub(crate) expected: u32,
    pub(crate) pending: u32,
    pub(crate) transactions: i64,
    /// Completed phases, over all initialisations: the low bit relative to `first_phase` is the parity.
    pub(crate) phase: u32,
    /// `phase` at the last `init`.
    pub(crate) first_phase: u32,
    /// Who initialised it, and at which epoch.
    pub(crate) initialiser: u32,
    pub(crate) init_epoch: u32,
    /// The initialiser fenced it towards asynchronous arrivals.
    pub(crate) init_fenced: bool,
    /// Knowledge of the arrivals so far, and what waiters of the last completed phase learn.
    pub(crate) arriving: Knowledge,
    pub(crate) completed: Knowledge,
    /// Lane groups suspended until the phase changes.
    pub(crate) waiters: Vec<crate::warp::WaitToken>,
}

impl Mbarrier {
    /// Phase as the program counts it.
    pub(crate) fn phase_since_init(&self) -> u32 {
        self.phase - self.first_phase
    }

    /// True when the phase of this parity has completed.
    pub(crate) fn parity_complete(&self, parity: u64) -> bool {
        u64::from(self.phase_since_init() & 1) != parity & 1
    }

    /// The opaque state: phase and pending count.
    pub(crate) fn token(&self) -> u64 {
        u64::from(self.phase_since_init()) << 32 | u64::from(self.pending)
    }

    /// `mbarrier.pending_count`.
    pub(crate) fn token_pending(token: u64) -> u32 {
        token as u32 & MAX_COUNT
    }

    /// True when the token's phase has completed.
    pub(crate) fn token_complete(&self, token: u64) -> Result<bool, MbarrierError> {
        let (token, phase) = ((token >> 32) as u32, self.phase_since_init());
        match phase.checked_sub(token) {
            Some(0) => Ok(false),
            Some(1) => Ok(true),
            _ => Err(MbarrierError::StaleToken { offset: self.offset, token, phase }),
        }
    }

    /// Adds to the transaction count; positive for `expect_tx`.
    pub(crate) fn add_transactions(&mut self, bytes: i64) -> Result<(), MbarrierError> {
        let transactions = self.transactions + bytes;
        if transactions.abs() > MAX_TRANSACTIONS {
            return Err(MbarrierError::TransactionOverflow { offset: self.offset, transactions });
        }
        self.transactions = transactions;
        Ok(())
    }

    /// Takes arrivals off the pending count.
    pub(crate) fn arrive(&mut self, arrivals: u32) -> Result<(), MbarrierError> {
        if arrivals > self.pending {
            return Err(MbarrierError::TooManyArrivals {
                offset: self.offset,
                arrivals,
                pending: self.pending,
                expected: self.expected,
                phase: self.phase_since_init(),
            });
        }
        self.pending -= arrivals;
        Ok(())
    }

    /// Completes the phase when nothing is pending; true when it did. The waiters are then the caller's to wake.
    pub(crate) fn try_complete(&mut self) -> bool {
        if self.pending != 0 || self.transactions != 0 {
            return false;
        }
        self.phase += 1;
        self.pending = self.expected;
        self.arriving.phases.raise(self.actor, self.phase);
        self.completed.copy_from(&self.arriving);
        true
    }
}

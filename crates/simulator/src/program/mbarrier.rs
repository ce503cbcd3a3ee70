//! `mbarrier.*`.

use super::{Address, MemoryOrder, Operand, Predicate, Register, Scope, StateSpace};

/// `mbarrier.*`. Addresses are shared-memory addresses or generic ones, by `space`.
#[derive(Debug, Clone)]
pub struct Mbarrier {
    /// The barrier object.
    pub address: Address,
    /// Its space.
    pub space: StateSpace,
    /// What is done.
    pub kind: MbarrierKind,
}

/// What an mbarrier instruction does.
#[derive(Debug, Clone)]
pub enum MbarrierKind {
    /// `init`, with the expected arrival count.
    Init(Operand),
    /// `inval`.
    Invalidate,
    /// `expect_tx` without arrival.
    ExpectTransactions {
        /// Bytes.
        bytes: Operand,
    },
    /// `complete_tx`.
    CompleteTransactions {
        /// Bytes.
        bytes: Operand,
    },
    /// `arrive`, `arrive_drop`, `arrive.expect_tx`.
    Arrive {
        /// State token, if wanted.
        state: Option<Register>,
        /// Arrivals; one when absent.
        count: Option<Operand>,
        /// `expect_tx` bytes, applied before the arrival.
        expect_bytes: Option<Operand>,
        /// `arrive_drop`.
        drop: bool,
        /// `.release` by default.
        order: MemoryOrder,
        /// `.cta` by default.
        scope: Scope,
    },
    /// `test_wait` and `try_wait`.
    Wait {
        /// True when the phase has completed.
        complete: Predicate,
        /// A state token, or a phase parity.
        phase: MbarrierPhase,
        /// `try_wait`: may suspend the thread.
        suspends: bool,
        /// Suspend-time hint in nanoseconds.
        hint_ns: Option<Operand>,
        /// `.acquire` by default.
        order: MemoryOrder,
        /// `.cta` by default.
        scope: Scope,
    },
    /// `pending_count` of a state token (the address is unused).
    PendingCount {
        /// Destination.
        destination: Register,
        /// Token.
        state: Operand,
    },
}

/// Which phase a wait asks about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MbarrierPhase {
    /// The phase of a state token.
    Token(Operand),
    /// `.parity`.
    Parity(Operand),
}

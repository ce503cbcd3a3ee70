//! Instructions of several lanes together: barriers of a CTA, shuffles and votes.

use super::{Operand, Predicate, PredicateOperand, Register};

/// `bar.*` and `barrier.*` within a CTA.
#[derive(Debug, Clone)]
pub struct Barrier {
    /// Which of the 16.
    pub barrier: Operand,
    /// Threads expected, a multiple of 32; all of the CTA when absent.
    pub threads: Option<Operand>,
    /// What is done.
    pub kind: BarrierKind,
    /// `.aligned` (always so for `bar`).
    pub aligned: bool,
}

/// What a CTA barrier instruction does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BarrierKind {
    /// Arrive and wait.
    Synchronize,
    /// Arrive only.
    Arrive,
    /// Arrive, wait and reduce a predicate.
    Reduce {
        /// `popc` writes a register; `and`/`or` write a predicate.
        destination: BarrierReduction,
        /// The predicate reduced.
        source: PredicateOperand,
    },
}

/// Destination of `bar.red`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BarrierReduction {
    /// Population count.
    Count(Register),
    /// Conjunction.
    And(Predicate),
    /// Disjunction.
    Or(Predicate),
}

/// `shfl.sync`.
#[derive(Debug, Clone)]
pub struct Shuffle {
    /// Mode.
    pub mode: ShuffleMode,
    /// Destination.
    pub destination: Register,
    /// True where the source lane was in range.
    pub in_range: Option<Predicate>,
    /// Value.
    pub source: Operand,
    /// Lane or delta.
    pub lane: Operand,
    /// Clamp and segment mask.
    pub clamp: Operand,
    /// Members.
    pub members: Operand,
}

/// Mode of a shuffle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShuffleMode {
    /// `.up`
    Up,
    /// `.down`
    Down,
    /// `.bfly`
    Butterfly,
    /// `.idx`
    Index,
}

/// `vote.sync`.
#[derive(Debug, Clone)]
pub struct Vote {
    /// What is computed.
    pub kind: VoteKind,
    /// The predicate voted on.
    pub source: PredicateOperand,
    /// Members.
    pub members: Operand,
}

/// What a vote computes, and where it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VoteKind {
    /// All lanes true.
    All(Predicate),
    /// Some lane true.
    Any(Predicate),
    /// All lanes equal.
    Uniform(Predicate),
    /// Mask of lanes that are true.
    Ballot(Register),
}

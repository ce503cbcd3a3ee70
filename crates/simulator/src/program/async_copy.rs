//! `cp.async`: asynchronous copies that threads make through the generic proxy.

use super::{Address, Operand, PredicateOperand, StateSpace};

/// `cp.async.*`, the forms that are not bulk copies.
#[derive(Debug, Clone)]
pub enum AsyncCopy {
    /// `cp.async.{ca,cg}.shared.global`.
    Copy {
        /// Where to, in the executing CTA's shared memory.
        destination: Address,
        /// Where from (global).
        source: Address,
        /// 4, 8 or 16 bytes written.
        bytes: u32,
        /// How many of them are read; the rest is zero. All when absent.
        source_bytes: Option<Operand>,
        /// Where true, nothing is read and all bytes are zero.
        ignore_source: Option<PredicateOperand>,
    },
    /// `cp.async.commit_group`.
    CommitGroup,
    /// `cp.async.wait_group`.
    WaitGroup {
        /// At most this many of the latest groups may be pending.
        pending: u32,
    },
    /// `cp.async.wait_all`.
    WaitAll,
    /// `cp.async.mbarrier.arrive`: arrives when the thread's earlier copies are complete.
    MbarrierArrive {
        /// The mbarrier.
        barrier: Address,
        /// `SharedCta` or `Generic`.
        space: StateSpace,
        /// `.noinc`: the arrival is one of those that the mbarrier expects; otherwise it expects one more.
        no_increment: bool,
    },
}

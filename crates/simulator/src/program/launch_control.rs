//! `clusterlaunchcontrol.*`: taking over the work of clusters that have not begun.

use super::{Address, Operand, Predicate, Register, StateSpace};

/// `clusterlaunchcontrol.*`.
#[derive(Debug, Clone)]
pub enum LaunchControl {
    /// `try_cancel.async`: a pending cluster of the grid is taken off the launch; the response says which, if any.
    TryCancel {
        /// Where the 16 bytes of the response go, in the executing CTA's shared memory.
        response: Address,
        /// The mbarrier that gets `complete_tx`.
        barrier: Address,
        /// `SharedCta` or `Generic`, of both.
        space: StateSpace,
        /// `.multicast::cluster::all`: the response goes to the same place in every CTA of the cluster.
        multicast: bool,
    },
    /// `query_cancel.is_canceled`.
    IsCanceled {
        /// True where a cluster was cancelled.
        destination: Predicate,
        /// The response's halves.
        response: [Operand; 2],
    },
    /// `query_cancel.get_first_ctaid`: the first CTA of the cancelled cluster.
    FirstCta {
        /// x, y and z, and an element of `.v4` that has no defined value; `None` for `_` and for those not asked for.
        destinations: [Option<Register>; 4],
        /// The response's halves.
        response: [Operand; 2],
    },
}

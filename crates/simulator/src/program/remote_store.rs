//! `st.async` and `red.async`: stores that an mbarrier reports.

use super::{Address, AtomicOperation, ElementType, Operand, StateSpace};

/// `st.async.weak` and `red.async.relaxed.cluster`, to shared memory of the cluster.
#[derive(Debug, Clone)]
pub struct RemoteStore {
    /// `SharedCluster` or `Generic`, of both addresses.
    pub space: StateSpace,
    /// Element type.
    pub element: ElementType,
    /// One per vector element.
    pub sources: Vec<Operand>,
    /// `red.async`: the operation.
    pub reduction: Option<AtomicOperation>,
    /// Where to.
    pub address: Address,
    /// The mbarrier that gets `complete_tx`, in the same CTA.
    pub barrier: Address,
}

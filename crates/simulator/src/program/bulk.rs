//! `cp.async.bulk*`.

use super::{Address, AtomicOperation, ElementType, Operand, StateSpace};

/// `cp.async.bulk*`.
#[derive(Debug, Clone)]
pub enum Bulk {
    /// `cp.async.bulk.tensor…shared::{cta,cluster}.global` in tile mode.
    TensorLoad {
        /// Where to, a shared-memory address.
        destination: Address,
        /// `SharedCta` or `SharedCluster`.
        destination_space: StateSpace,
        /// The tensor map (generic address).
        tensor_map: Address,
        /// One per dimension, innermost first.
        coordinates: Vec<Operand>,
        /// The mbarrier that gets `complete_tx`.
        barrier: Address,
        /// `.multicast::cluster` mask.
        multicast: Option<Operand>,
        /// `.cta_group::1` or `::2`; 0 when absent.
        cta_group: u8,
    },
    /// `cp.async.bulk.tensor…global.shared::cta` and `cp.reduce.async.bulk.tensor`.
    TensorStore {
        /// The tensor map (generic address).
        tensor_map: Address,
        /// One per dimension, innermost first.
        coordinates: Vec<Operand>,
        /// Where from.
        source: Address,
        /// `cp.reduce`: the operation.
        reduction: Option<AtomicOperation>,
    },
    /// `cp.async.bulk.shared::{cta,cluster}.global` with an mbarrier.
    Load {
        /// Where to.
        destination: Address,
        /// `SharedCta` or `SharedCluster`.
        destination_space: StateSpace,
        /// Where from (global).
        source: Address,
        /// Bytes, a multiple of 16.
        bytes: Operand,
        /// The mbarrier that gets `complete_tx`.
        barrier: Address,
        /// `.multicast::cluster` mask.
        multicast: Option<Operand>,
    },
    /// `cp.async.bulk.shared::cluster.shared::cta` and `cp.reduce.async.bulk` of the same.
    ClusterCopy {
        /// Where to (shared::cluster).
        destination: Address,
        /// Where from, in the executing CTA's shared memory.
        source: Address,
        /// Bytes, a multiple of 16.
        bytes: Operand,
        /// The mbarrier that gets `complete_tx`.
        barrier: Address,
        /// `cp.reduce`: the operation and the type of the elements.
        reduction: Option<(AtomicOperation, ElementType)>,
    },
    /// `cp.async.bulk.global.shared::cta` and `cp.reduce.async.bulk` of the same.
    Store {
        /// Where to (global).
        destination: Address,
        /// Where from.
        source: Address,
        /// Bytes, a multiple of 16.
        bytes: Operand,
        /// `cp.reduce`: the operation and the type of the elements.
        reduction: Option<(AtomicOperation, ElementType)>,
    },
    /// `cp.async.bulk.commit_group`.
    CommitGroup,
    /// `cp.async.bulk.wait_group{.read}`.
    WaitGroup {
        /// At most this many of the latest groups may be pending.
        pending: u32,
        /// `.read`: only the source reads need be done.
        read: bool,
    },
}

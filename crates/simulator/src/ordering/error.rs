//! What a missing fence or wait is reported as.

use std::fmt;

/// A warp of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Actor {
    /// Rank of its CTA in the cluster.
    pub cta_rank: u32,
    /// Index in its CTA.
    pub warp: u32,
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "warp {} of cluster CTA {}", self.warp, self.cta_rank)
    }
}

/// An access that nothing orders after an earlier one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OrderingError {
    /// Generic write, then a generic access by another warp.
    #[error(
        "data race in shared memory at {offset:#x}: {writer} wrote it and this warp has not synchronised with it since"
    )]
    UnsynchronisedWrite {
        /// Offset in the CTA's shared memory.
        offset: u32,
        /// Who wrote.
        writer: Actor,
    },
    /// Generic read, then a write by another warp.
    #[error(
        "data race in shared memory at {offset:#x}: {reader} read it and this warp, which overwrites it, has not synchronised with it since"
    )]
    UnsynchronisedRead {
        /// Offset in the CTA's shared memory.
        offset: u32,
        /// Who read.
        reader: Actor,
    },
    /// Generic write, then an access through the async proxy.
    #[error(
        "fence.proxy.async is missing: {writer} wrote shared memory at {offset:#x} through the generic proxy, and the async proxy now accesses it (PTX ISA, proxies)"
    )]
    MissingProxyFence {
        /// Offset in the CTA's shared memory.
        offset: u32,
        /// Who wrote.
        writer: Actor,
    },
    /// An asynchronous write is still on its way.
    #[error(
        "shared memory at {offset:#x} is the destination of a bulk copy that is still in flight: wait for its mbarrier first"
    )]
    BulkWriteInFlight {
        /// Offset in the CTA's shared memory.
        offset: u32,
    },
    /// An asynchronous write landed, but this warp has not waited for it.
    #[error(
        "shared memory at {offset:#x} is the destination of a bulk copy whose mbarrier phase this warp has not observed: the bytes may not have arrived"
    )]
    BulkWriteNotObserved {
        /// Offset in the CTA's shared memory.
        offset: u32,
    },
    /// A `cp.async` that its thread has not waited for.
    #[error(
        "shared memory at {offset:#x} is the destination of a cp.async of {issuer} that is still in flight: wait for it with cp.async.wait_group, cp.async.wait_all or an mbarrier first"
    )]
    CopyInFlight {
        /// Offset in the CTA's shared memory.
        offset: u32,
        /// Who issued the copy.
        issuer: Actor,
    },
    /// A tensor-core operation may still read what is overwritten.
    #[error(
        "shared memory at {offset:#x} is overwritten while a tcgen05 operation of {issuer} may still read it: wait for a tcgen05.commit that covers the operation"
    )]
    TensorReadPending {
        /// Offset in the CTA's shared memory.
        offset: u32,
        /// Who issued the operation.
        issuer: Actor,
    },
    /// A warpgroup product may still read what is overwritten.
    #[error(
        "shared memory at {offset:#x} is overwritten while a wgmma.mma_async of the warpgroup of {first_warp} may still read it: wgmma.wait_group (and a barrier towards the other warps) is missing"
    )]
    WgmmaReadPending {
        /// Offset in the CTA's shared memory.
        offset: u32,
        /// First warp of the warpgroup.
        first_warp: Actor,
    },
    /// A bulk store may still read what is overwritten.
    #[error(
        "shared memory at {offset:#x} is overwritten while a bulk store of {issuer} may still read it: cp.async.bulk.wait_group.read (and a barrier towards the other warps) is missing"
    )]
    BulkReadPending {
        /// Offset in the CTA's shared memory.
        offset: u32,
        /// Who issued the store.
        issuer: Actor,
    },
    /// A bulk copy to another CTA may still read what is overwritten.
    #[error(
        "shared memory at {offset:#x} is overwritten while a bulk copy to the shared memory of a cluster may still read it: wait for the copy's mbarrier first, or for a warp that has"
    )]
    CopyReadPending {
        /// Offset in the CTA's shared memory.
        offset: u32,
    },
    /// An `st.async` or `red.async` is still on its way.
    #[error(
        "shared memory at {offset:#x} is the destination of an st.async or red.async that is still in flight: wait for its mbarrier first"
    )]
    RemoteStoreInFlight {
        /// Offset in the CTA's shared memory.
        offset: u32,
    },
    /// It landed, but this warp has not waited for it.
    #[error(
        "shared memory at {offset:#x} is the destination of an st.async or red.async whose mbarrier phase this warp has not observed: the value may not have arrived"
    )]
    RemoteStoreNotObserved {
        /// Offset in the CTA's shared memory.
        offset: u32,
    },
    /// It is generic (PTX ISA, "st.async", "red.async"), and the async proxy has not been told.
    #[error(
        "fence.proxy.async is missing: an st.async or red.async wrote shared memory at {offset:#x} through the generic proxy, and the async proxy now accesses it (PTX ISA, proxies)"
    )]
    RemoteStoreNotFenced {
        /// Offset in the CTA's shared memory.
        offset: u32,
    },
    /// An mbarrier initialised by a warp that this one has not synchronised with.
    #[error(
        "the mbarrier at {offset:#x} was initialised by {writer}, and this warp has not synchronised with it since"
    )]
    MbarrierInitNotOrdered {
        /// Offset in the CTA's shared memory.
        offset: u32,
        /// Who initialised it.
        writer: Actor,
    },
    /// An mbarrier initialised without a fence towards the async proxy.
    #[error(
        "the mbarrier at {offset:#x} is used by an asynchronous operation, but {writer} executed no fence.mbarrier_init or fence.proxy.async after mbarrier.init"
    )]
    MbarrierInitNotFenced {
        /// Offset in the CTA's shared memory.
        offset: u32,
        /// Who initialised it.
        writer: Actor,
    },
    /// Tensor memory written by an operation whose completion was not observed.
    #[error(
        "tensor memory column {column} was written by a tcgen05 operation of {issuer} whose completion this warp has not observed: wait on an mbarrier that a later tcgen05.commit arrives on"
    )]
    CommitNotObserved {
        /// Column.
        column: u32,
        /// Who issued the operation.
        issuer: Actor,
    },
    /// Observed, but not fenced.
    #[error(
        "tcgen05.fence::after_thread_sync is missing: this warp learnt that the tcgen05 operations of {issuer} on tensor memory column {column} are done, but has executed no fence since"
    )]
    MissingAfterThreadSync {
        /// Column.
        column: u32,
        /// The other warp.
        issuer: Actor,
    },
    /// An operation overwrites what a `tcgen05.ld` may still read.
    #[error(
        "tensor memory column {column} is overwritten, but {reader} has executed no tcgen05.wait::ld after its tcgen05.ld of it"
    )]
    MissingWaitLoad {
        /// Column.
        column: u32,
        /// Who loads.
        reader: Actor,
    },
    /// A `tcgen05.st` may not have landed.
    #[error(
        "tensor memory column {column} is accessed, but {writer} has executed no tcgen05.wait::st after its tcgen05.st to it"
    )]
    MissingWaitStore {
        /// Column.
        column: u32,
        /// Who stores.
        writer: Actor,
    },
    /// Freed while a `tcgen05.ld` may still read.
    #[error(
        "tensor memory column {column} is freed, but {reader} has executed no tcgen05.wait::ld after its tcgen05.ld of it: it may read what the next owner writes"
    )]
    FreedBeforeWaitLoad {
        /// Column.
        column: u32,
        /// Who loads.
        reader: Actor,
    },
    /// Freed while a `tcgen05.st` may not have landed.
    #[error(
        "tensor memory column {column} is freed, but {writer} has executed no tcgen05.wait::st after its tcgen05.st to it: it may overwrite what is the next owner's"
    )]
    FreedBeforeWaitStore {
        /// Column.
        column: u32,
        /// Who stores.
        writer: Actor,
    },
    /// Waited, but not fenced.
    #[error(
        "tcgen05.fence::before_thread_sync is missing: {other} accessed tensor memory column {column} and executed no fence between its tcgen05.wait and its arrival"
    )]
    MissingBeforeThreadSync {
        /// Column.
        column: u32,
        /// The other warp.
        other: Actor,
    },
    /// Nothing told this warp.
    #[error(
        "tensor memory column {column} was accessed by {other}, and this warp has observed no arrival of it since: a barrier is missing"
    )]
    TensorAccessNotOrdered {
        /// Column.
        column: u32,
        /// The other warp.
        other: Actor,
    },
    /// A read of device memory that nothing orders after the write.
    #[error(
        "data race in device memory at {address:#x}: CTA {writer_cta:?} of GPU {writer_gpu} wrote it, and no release and acquire of sufficient scope lead from there to this read"
    )]
    GlobalRace {
        /// The address read.
        address: u64,
        /// Writing GPU.
        writer_gpu: u32,
        /// Writing CTA.
        writer_cta: [u32; 3],
    },
    /// A write of data that nothing orders after the access before it.
    #[error(
        "data race in device memory at {address:#x}: CTA {cta:?} of GPU {gpu} {done} it, and no release and acquire of sufficient scope lead from there to this write"
    )]
    GlobalOverwrite {
        /// The address written.
        address: u64,
        /// `read` or `wrote`.
        done: &'static str,
        /// GPU of the earlier access.
        gpu: u32,
        /// CTA of the earlier access.
        cta: [u32; 3],
    },
    /// Generic write to device memory, then a bulk copy that reads it.
    #[error(
        "fence.proxy.async is missing: CTA {writer_cta:?} wrote device memory at {address:#x} through the generic proxy, and a bulk copy now reads it (PTX ISA, proxies)"
    )]
    MissingGlobalProxyFence {
        /// The address read.
        address: u64,
        /// Writing CTA.
        writer_cta: [u32; 3],
    },
    /// A read of what a bulk store wrote without its thread waiting.
    #[error(
        "device memory at {address:#x} is written by a bulk store of CTA {writer_cta:?} of GPU {writer_gpu} whose thread has executed no cp.async.bulk.wait_group (without .read) since: the bytes may not have arrived"
    )]
    BulkStoreNotWaited {
        /// The address read.
        address: u64,
        /// Writing GPU.
        writer_gpu: u32,
        /// Writing CTA.
        writer_cta: [u32; 3],
    },
    /// Unicast and multicast accesses without an alias fence.
    #[error(
        "fence.proxy.alias is missing: the bytes at {address:#x} were written through {written} address by CTA {writer_cta:?} of GPU {writer_gpu}, and are read through {read} address (PTX ISA, proxies)"
    )]
    MissingAliasFence {
        /// The address read.
        address: u64,
        /// How they were written.
        written: &'static str,
        /// How they are read.
        read: &'static str,
        /// Writing GPU.
        writer_gpu: u32,
        /// Writing CTA.
        writer_cta: [u32; 3],
    },
}

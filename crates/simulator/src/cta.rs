//! A resident CTA and its cluster.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use crate::engines::{BulkThread, TensorPipe, WgmmaPipe};
use crate::launch::Launch;
use crate::mbarrier::Mbarrier;
use crate::memory::{AccessProblem, PagedBytes};
use crate::named_barrier::{BARRIERS, BarrierResult, NamedBarrier};
use crate::node::OrderingRules;
use crate::ordering::{Knowledge, SharedShadow, WarpOrder};
use crate::program::LaneMask;
use crate::shared::{SharedReadError, SharedReader};
use crate::tensor_memory::TensorMemoryOwner;
use crate::warp::WaitToken;

/// Shared memory pages are allocated on first write.
const SHARED_PAGE_SHIFT: u32 = 12;

/// Shared memory of one CTA.
#[derive(Debug)]
pub(crate) struct SharedMemory {
    pub(crate) bytes: PagedBytes,
    pub(crate) limit: u32,
    pub(crate) mbarriers: Vec<Mbarrier>,
    /// Offsets within which all valid mbarriers lie, so that most accesses are cleared by one comparison.
    mbarrier_bounds: (u32, u32),
    pub(crate) shadow: SharedShadow,
}

impl SharedMemory {
    fn new(limit: u32, warps: u32) -> Self {
        Self {
            bytes: PagedBytes::new(limit.into(), SHARED_PAGE_SHIFT),
            limit,
            mbarriers: Vec::new(),
            mbarrier_bounds: (u32::MAX, 0),
            shadow: SharedShadow::new(limit, warps),
        }
    }

    /// The mbarrier at an offset, valid or not.
    #[inline]
    pub(crate) fn mbarrier_index(&self, offset: u32) -> Option<usize> {
        self.mbarriers.iter().position(|mbarrier| mbarrier.offset == offset)
    }

    pub(crate) fn add_mbarrier(&mut self, mbarrier: Mbarrier) -> usize {
        let offset = mbarrier.offset;
        let (low, high) = self.mbarrier_bounds;
        self.mbarrier_bounds = (low.min(offset), high.max(offset + 8));
        self.mbarriers.push(mbarrier);
        self.mbarriers.len() - 1
    }

    /// Refuses plain accesses to mbarrier objects.
    #[inline]
    pub(crate) fn check_plain(&self, offset: u32, bytes: u32) -> Result<(), AccessProblem> {
        let (low, high) = self.mbarrier_bounds;
        if offset >= high || offset + bytes <= low {
            return Ok(());
        }
        match self.mbarriers.iter().find(|m| m.valid && offset < m.offset + 8 && m.offset < offset + bytes) {
            Some(mbarrier) => Err(AccessProblem::MbarrierObject { offset: mbarrier.offset }),
            None => Ok(()),
        }
    }
}

impl SharedReader for SharedMemory {
    fn read(&self, address: u32, bytes: &mut [u8]) -> Result<(), SharedReadError> {
        let length = bytes.len() as u32;
        if u64::from(address) + u64::from(length) > u64::from(self.limit) {
            return Err(SharedReadError::OutOfBounds { address, bytes: length, limit: self.limit });
        }
        self.bytes.read(address.into(), bytes).map_err(|first| SharedReadError::Uninitialised { address: first as u32 })
    }
}

/// A resident CTA.
#[derive(Debug)]
pub(crate) struct Cta {
    pub(crate) launch: Arc<Launch>,
    /// Unique in the node's life.
    pub(crate) uid: u32,
    pub(crate) gpu: u32,
    pub(crate) sm: u32,
    pub(crate) index: [u32; 3],
    pub(crate) cluster: u32,
    pub(crate) rank: u32,
    pub(crate) shared: SharedMemory,
    pub(crate) orders: Vec<WarpOrder>,
    /// Live lanes per warp.
    pub(crate) warp_live: Vec<LaneMask>,
    /// A bit per warp that has live lanes.
    pub(crate) live_warps: u64,
    pub(crate) warp_slots: Vec<u32>,
    pub(crate) barriers: [NamedBarrier; BARRIERS],
    /// Result of the barrier that each warp waited for last.
    pub(crate) barrier_results: Vec<BarrierResult>,
    pub(crate) cluster_lanes: Vec<ClusterLanes>,
    pub(crate) bulk: Vec<BulkThread>,
    /// Lane groups in `cp.async.bulk.wait_group`.
    pub(crate) bulk_waiters: Vec<WaitToken>,
    pub(crate) pipes: Vec<TensorPipe>,
    /// Warpgroup products, by warp.
    pub(crate) wgmma: Vec<WgmmaPipe>,
    /// The `cta_group` of its tcgen05 instructions; 0 before the first.
    pub(crate) cta_group: u8,
    pub(crate) permit_relinquished: bool,
    /// Columns wanted by a `tcgen05.alloc.cta_group::2` that waits for the other CTA's, and the base it was given.
    pub(crate) pair_request: Option<u32>,
    pub(crate) pair_grant: Option<u32>,
    /// Asynchronous operations that will still touch its shared memory or mbarriers.
    pub(crate) operations: u32,
    /// Mbarrier and phase of each `clusterlaunchcontrol.try_cancel` that found nothing to cancel.
    pub(crate) failed_cancels: Vec<(u32, u32)>,
    pub(crate) exited: bool,
}

/// Lanes of a warp in the cluster barrier's phase.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ClusterLanes {
    /// Arrived in the phase under way.
    pub(crate) arrived: LaneMask,
    /// Arrived, in this phase or the last, and not waited yet.
    pub(crate) owed: LaneMask,
}

impl Cta {
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn new(
        launch: Arc<Launch>,
        uid: u32,
        gpu: u32,
        sm: u32,
        index: [u32; 3],
        cluster: u32,
        rank: u32,
        now: u64,
        rules: OrderingRules,
    ) -> Self {
        let threads = launch.threads();
        let warps = threads.div_ceil(32);
        let orders = (0..warps).map(|warp| WarpOrder::new(rank * warps + warp, now, rules)).collect();
        let lanes_of = |warp: u32| match threads - warp * 32 {
            lanes @ 0..32 => (1 << lanes) - 1,
            _ => u32::MAX,
        };
        Self {
            uid,
            gpu,
            sm,
            index,
            cluster,
            rank,
            shared: SharedMemory::new(launch.shared_bytes, warps),
            orders,
            warp_live: (0..warps).map(lanes_of).collect(),
            live_warps: if warps == 64 { u64::MAX } else { (1 << warps) - 1 },
            warp_slots: Vec::new(),
            barriers: std::array::from_fn(|_| NamedBarrier::default()),
            barrier_results: vec![BarrierResult::default(); warps as usize],
            cluster_lanes: vec![ClusterLanes::default(); warps as usize],
            bulk: Vec::new(),
            bulk_waiters: Vec::new(),
            pipes: Vec::new(),
            wgmma: std::iter::repeat_with(WgmmaPipe::default).take(warps as usize).collect(),
            cta_group: 0,
            permit_relinquished: false,
            pair_request: None,
            pair_grant: None,
            operations: 0,
            failed_cancels: Vec::new(),
            exited: false,
            launch,
        }
    }

    pub(crate) fn owner(&self) -> TensorMemoryOwner {
        TensorMemoryOwner(self.uid)
    }

    pub(crate) fn warps(&self) -> u32 {
        self.warp_live.len() as u32
    }
}

/// CTAs that are launched together and may address each other's shared memory.
#[derive(Debug)]
pub(crate) struct Cluster {
    /// CTA slots by rank.
    pub(crate) ctas: Vec<u32>,
    pub(crate) live: u32,
    /// Unique in the node's life.
    pub(crate) uid: u32,
    pub(crate) index: [u32; 3],
    /// mbarriers initialised so far: the next one's number.
    pub(crate) mbarriers: u32,
    pub(crate) barrier: ClusterBarrier,
    /// Knowledge left at shared-memory words by release writes, by CTA rank and offset.
    pub(crate) released: HashMap<(u32, u32), Knowledge>,
}

/// The cluster's barrier.
#[derive(Debug, Default)]
pub(crate) struct ClusterBarrier {
    pub(crate) arriving: Knowledge,
    pub(crate) completed: Knowledge,
    pub(crate) waiters: Vec<WaitToken>,
}

/// CTAs that wait for tensor memory of an SM, first come first served.
pub(crate) type AllocationQueue = VecDeque<WaitToken>;

/// Clusters that some running kernel may still have to synchronise with.
#[derive(Debug, Default)]
pub(crate) struct RecentClusters {
    /// Unique number and, once its last CTA has exited, when that was; by number.
    clusters: VecDeque<(u32, Option<u64>)>,
    /// Number of the next cluster, were there one.
    next: u32,
}

impl RecentClusters {
    pub(crate) fn started(&mut self, uid: u32) {
        self.clusters.push_back((uid, None));
        self.next = uid + 1;
    }

    pub(crate) fn retired(&mut self, uid: u32, now: u64) {
        if let Ok(index) = self.clusters.binary_search_by_key(&uid, |cluster| cluster.0) {
            self.clusters[index].1 = Some(now);
        }
    }

    /// `oldest` is when the oldest running launch began.
    pub(crate) fn forget_before(&mut self, oldest: u64) {
        while self.clusters.front().is_some_and(|cluster| cluster.1.is_some_and(|retired| retired <= oldest)) {
            self.clusters.pop_front();
        }
    }

    /// Clusters with a lower number had retired when the oldest running launch began.
    pub(crate) fn horizon(&self) -> u32 {
        self.clusters.front().map_or(self.next, |cluster| cluster.0)
    }
}

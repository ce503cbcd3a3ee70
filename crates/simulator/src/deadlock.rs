//! Who waits for what, when nothing can go on.

use std::fmt;

use crate::fault::Lanes;
use crate::node::GpuId;
use crate::program::LaneMask;

/// All lane groups that wait.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeadlockReport {
    /// The waiting lane groups, by GPU, CTA and warp.
    pub waiting: Vec<WaitingLanes>,
    /// Launches that have not been able to start all their CTAs.
    pub pending: Vec<PendingLaunch>,
    /// Simulated nanoseconds when the run gave up.
    pub time_ns: u64,
}

/// A lane group that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingLanes {
    /// Kernel name.
    pub kernel: String,
    /// GPU.
    pub gpu: GpuId,
    /// CTA in its grid.
    pub cta: [u32; 3],
    /// Warp in its CTA.
    pub warp: u32,
    /// Lanes.
    pub lanes: LaneMask,
    /// 1-based PTX line.
    pub line: u32,
    /// That line.
    pub source: String,
    /// What for.
    pub reason: WaitReason,
}

/// A launch that is not fully resident.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingLaunch {
    /// Kernel name.
    pub kernel: String,
    /// GPU.
    pub gpu: GpuId,
    /// Stream.
    pub stream: u32,
    /// CTAs started.
    pub started: u64,
    /// CTAs of the grid.
    pub ctas: u64,
}

/// What a lane group waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WaitReason {
    /// A phase of an mbarrier.
    Mbarrier {
        /// Rank of its CTA in the cluster.
        cta_rank: u32,
        /// Offset in that CTA's shared memory.
        offset: u32,
        /// The phase under way, counted from `mbarrier.init`.
        phase: u32,
        /// Arrivals pending in it.
        pending: u32,
        /// Arrivals expected per phase.
        expected: u32,
        /// Bytes pending in it.
        transaction_bytes: i64,
    },
    /// A barrier of the CTA.
    NamedBarrier {
        /// Which.
        barrier: u32,
        /// Threads that have arrived.
        arrived: u32,
        /// Threads expected.
        expected: u32,
    },
    /// The cluster barrier.
    ClusterBarrier {
        /// Threads that have arrived.
        arrived: u32,
        /// Threads of the cluster that have not exited.
        expected: u32,
    },
    /// Other lanes of the warp at a `.sync` instruction.
    Members {
        /// Lanes named.
        members: LaneMask,
    },
    /// Another value at addresses it polls.
    Poll {
        /// One of the addresses.
        address: u64,
        /// The value seen there.
        value: u64,
        /// How many addresses are watched in all.
        addresses: usize,
    },
    /// Tensor memory columns.
    TensorAllocation {
        /// Columns wanted.
        columns: u32,
    },
    /// Bulk stores.
    BulkGroup {
        /// Groups that may stay pending.
        pending: u32,
    },
    /// Warpgroup products, of which one may not have been issued by all four warps.
    WgmmaGroup {
        /// Groups that may stay pending.
        pending: u32,
    },
    /// Lanes parked until their siblings arrive.
    Reconvergence {
        /// Lanes that have not come.
        missing: LaneMask,
    },
    /// Simulated time.
    Time,
}

impl fmt::Display for WaitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mbarrier { cta_rank, offset, phase, pending, expected, transaction_bytes } => write!(
                f,
                "waits for the mbarrier at {offset:#x} of cluster CTA {cta_rank}: phase {phase} has {pending} of {expected} arrivals and {transaction_bytes} bytes pending"
            ),
            Self::NamedBarrier { barrier, arrived, expected } => {
                write!(f, "waits at barrier {barrier}: {arrived} of {expected} threads have arrived")
            }
            Self::ClusterBarrier { arrived, expected } => {
                write!(f, "waits at the cluster barrier: {arrived} of {expected} threads have arrived")
            }
            Self::Members { members } => write!(f, "waits for the other lanes of {members:#010x}"),
            Self::Poll { address, value, addresses: 1 } => {
                write!(f, "polls {address:#x} and sees {value:#x}")
            }
            Self::Poll { address, value, addresses } => {
                write!(f, "polls {addresses} addresses; at {address:#x} it sees {value:#x}")
            }
            Self::TensorAllocation { columns } => write!(f, "waits for {columns} columns of tensor memory"),
            Self::BulkGroup { pending } => {
                write!(f, "waits until at most {pending} of its bulk groups are pending")
            }
            Self::WgmmaGroup { pending } => write!(
                f,
                "waits until at most {pending} of its wgmma groups are pending: all four warps of the warpgroup must issue the same wgmma.mma_async"
            ),
            Self::Reconvergence { missing } => write!(f, "waits for lanes {missing:#010x} to come here"),
            Self::Time => f.write_str("waits for time to pass"),
        }
    }
}

/// Longest list that Display prints in full.
const SHOWN: usize = 64;

impl fmt::Display for DeadlockReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "deadlock: {} lane groups wait and nothing can go on", self.waiting.len())?;
        for wait in self.waiting.iter().take(SHOWN) {
            let [x, y, z] = wait.cta;
            write!(
                f,
                "\n  GPU {}, CTA ({x},{y},{z}), warp {}, {}: {}\n    kernel `{}`, PTX line {}: `{}`",
                wait.gpu.0,
                wait.warp,
                Lanes(wait.lanes),
                wait.reason,
                wait.kernel,
                wait.line,
                wait.source
            )?;
        }
        if self.waiting.len() > SHOWN {
            write!(f, "\n  and {} more", self.waiting.len() - SHOWN)?;
        }
        for launch in &self.pending {
            write!(
                f,
                "\n  GPU {}, stream {}: kernel `{}` has started {} of {} CTAs",
                launch.gpu.0, launch.stream, launch.kernel, launch.started, launch.ctas
            )?;
        }
        Ok(())
    }
}

//! Launching a kernel: what is checked before anything runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::node::{GpuId, LaunchConfig, ModuleId};
use crate::program::Kernel;

/// Most threads of a CTA.
pub const MAX_THREADS: u32 = 1024;
/// Most CTAs of a cluster, non-portable sizes included.
pub const MAX_CLUSTER: u32 = 16;
/// Most shared memory of a CTA, static and dynamic together.
pub const MAX_SHARED_BYTES: u32 = 227 << 10;
/// Shared memory of an SM.
pub const SM_SHARED_BYTES: u32 = 228 << 10;
/// Shared memory that each resident CTA costs besides its own.
pub const RESERVED_SHARED_BYTES: u32 = 1 << 10;
/// Most resident threads of an SM.
pub const SM_THREADS: u32 = 2048;
/// Most resident CTAs of an SM.
pub const SM_CTAS: u32 = 32;

/// Why a launch was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LaunchError {
    /// No such GPU.
    #[error("there is no GPU {} in a node of {gpus}", .gpu.0)]
    NoSuchGpu {
        /// Given.
        gpu: GpuId,
        /// GPUs of the node.
        gpus: u32,
    },
    /// No such module.
    #[error("module {} is not loaded", .0.0)]
    NoSuchModule(ModuleId),
    /// No such kernel.
    #[error("the module has no kernel `{kernel}`; it has: {}", available.join(", "))]
    NoSuchKernel {
        /// Given.
        kernel: String,
        /// What there is.
        available: Vec<String>,
    },
    /// Number of parameters.
    #[error("kernel `{kernel}` takes {wanted} parameters, given {given}")]
    ParameterCount {
        /// Kernel.
        kernel: String,
        /// Given.
        given: usize,
        /// Wanted.
        wanted: usize,
    },
    /// Size of a parameter.
    #[error("parameter {index} (`{name}`) of kernel `{kernel}` has {wanted} bytes, given {given}")]
    ParameterBytes {
        /// Kernel.
        kernel: String,
        /// Which, from 0.
        index: usize,
        /// Its name.
        name: String,
        /// Given.
        given: usize,
        /// Wanted.
        wanted: u32,
    },
    /// A dimension of zero.
    #[error("the {what} {given:?} has a dimension of 0")]
    ZeroDimension {
        /// Grid, block or cluster.
        what: &'static str,
        /// Given.
        given: [u32; 3],
    },
    /// Too many threads.
    #[error("a block of {given:?} threads exceeds the limit of {limit} threads")]
    TooManyThreads {
        /// Given.
        given: [u32; 3],
        /// Most.
        limit: u32,
    },
    /// `.reqntid`.
    #[error("kernel `{kernel}` requires blocks of {wanted:?} threads (.reqntid), given {given:?}")]
    RequiredThreads {
        /// Kernel.
        kernel: String,
        /// Given.
        given: [u32; 3],
        /// Wanted.
        wanted: [u32; 3],
    },
    /// `.maxntid`.
    #[error("kernel `{kernel}` allows blocks of at most {} threads (.maxntid {limit:?}), given {given:?}", limit.iter().product::<u32>())]
    MaxThreads {
        /// Kernel.
        kernel: String,
        /// Given.
        given: [u32; 3],
        /// Most.
        limit: [u32; 3],
    },
    /// `.reqnctapercluster`.
    #[error("kernel `{kernel}` requires clusters of {wanted:?} CTAs (.reqnctapercluster), given {given:?}")]
    RequiredCluster {
        /// Kernel.
        kernel: String,
        /// Given.
        given: [u32; 3],
        /// Wanted.
        wanted: [u32; 3],
    },
    /// Cluster size.
    #[error("a cluster of {given:?} CTAs exceeds the limit of {limit}")]
    ClusterTooLarge {
        /// Given.
        given: [u32; 3],
        /// Most: the ISA's, or the GPU's SMs.
        limit: u32,
    },
    /// Grid not made of clusters.
    #[error("the grid {grid:?} is not divisible by the cluster {cluster:?}")]
    GridNotDivisible {
        /// Given.
        grid: [u32; 3],
        /// Given.
        cluster: [u32; 3],
    },
    /// Shared memory.
    #[error(
        "{static_bytes} bytes of static and {dynamic_bytes} of dynamic shared memory exceed the limit of {limit} per CTA"
    )]
    SharedMemory {
        /// Static, padded to the start of the dynamic part.
        static_bytes: u32,
        /// Given.
        dynamic_bytes: u32,
        /// Most.
        limit: u32,
    },
}

/// A launch that has reached the head of its stream.
#[derive(Debug)]
pub(crate) struct Launch {
    pub(crate) id: u64,
    pub(crate) gpu: u32,
    pub(crate) stream: u32,
    pub(crate) kernel: Arc<Kernel>,
    /// Addresses of the module's variables on this GPU.
    pub(crate) variables: Arc<[u64]>,
    pub(crate) parameters: Vec<u8>,
    pub(crate) config: LaunchConfig,
    /// Shared memory per CTA.
    pub(crate) shared_bytes: u32,
    /// When its first CTA could start.
    pub(crate) started: u64,
    /// Bulk writes that outlive their CTA.
    pub(crate) operations: AtomicU32,
    /// Clusters of the grid.
    pub(crate) clusters: u64,
    /// Clusters that have begun or were cancelled: the number of the next one.
    pub(crate) taken: AtomicU64,
}

impl Launch {
    pub(crate) fn threads(&self) -> u32 {
        self.config.block.iter().product()
    }

    /// How many clusters have begun or were cancelled.
    pub(crate) fn clusters_taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Takes the next cluster, to begin or to cancel it, if there is one left: its number.
    pub(crate) fn take_cluster(&self) -> Option<u64> {
        let number = self.clusters_taken();
        (number < self.clusters).then(|| self.taken.fetch_add(1, Ordering::Relaxed))
    }

    /// `%clusterid` of a cluster.
    pub(crate) fn cluster_index(&self, number: u64) -> [u32; 3] {
        let LaunchConfig { grid, cluster, .. } = self.config;
        let [width, height, _] = std::array::from_fn(|axis| u64::from(grid[axis] / cluster[axis]));
        [number % width, number / width % height, number / width / height].map(|n| n as u32)
    }
}

/// Checks geometry, shared memory and parameters; gives the parameter space's bytes and the shared bytes per CTA.
pub(crate) fn check(
    kernel: &Kernel,
    config: &LaunchConfig,
    parameters: &[&[u8]],
    sms: u32,
) -> Result<(Vec<u8>, u32), LaunchError> {
    let name = || kernel.name.clone();
    let LaunchConfig { grid, cluster, block, dynamic_shared_bytes } = *config;
    for (what, given) in [("grid", grid), ("cluster", cluster), ("block", block)] {
        if given.contains(&0) {
            return Err(LaunchError::ZeroDimension { what, given });
        }
    }
    let count = |dimensions: [u32; 3]| dimensions.iter().map(|&n| u64::from(n)).product::<u64>();
    if count(block) > MAX_THREADS.into() {
        return Err(LaunchError::TooManyThreads { given: block, limit: MAX_THREADS });
    }
    if let Some(wanted) = kernel.required_threads
        && wanted != block
    {
        return Err(LaunchError::RequiredThreads { kernel: name(), given: block, wanted });
    }
    if let Some(limit) = kernel.max_threads
        && count(block) > count(limit)
    {
        return Err(LaunchError::MaxThreads { kernel: name(), given: block, limit });
    }
    if let Some(wanted) = kernel.required_cluster
        && wanted != cluster
    {
        return Err(LaunchError::RequiredCluster { kernel: name(), given: cluster, wanted });
    }
    let limit = MAX_CLUSTER.min(sms);
    if count(cluster) > limit.into() {
        return Err(LaunchError::ClusterTooLarge { given: cluster, limit });
    }
    if (0..3).any(|axis| grid[axis] % cluster[axis] != 0) {
        return Err(LaunchError::GridNotDivisible { grid, cluster });
    }
    let static_bytes = if dynamic_shared_bytes > 0 { kernel.dynamic_shared_offset } else { kernel.static_shared_bytes };
    let shared = static_bytes.checked_add(dynamic_shared_bytes).filter(|&bytes| bytes <= MAX_SHARED_BYTES);
    let Some(shared) = shared else {
        return Err(LaunchError::SharedMemory {
            static_bytes,
            dynamic_bytes: dynamic_shared_bytes,
            limit: MAX_SHARED_BYTES,
        });
    };
    if parameters.len() != kernel.parameters.len() {
        let (given, wanted) = (parameters.len(), kernel.parameters.len());
        return Err(LaunchError::ParameterCount { kernel: name(), given, wanted });
    }
    let mut space = vec![0; kernel.parameter_bytes as usize];
    for (index, (bytes, parameter)) in parameters.iter().zip(&kernel.parameters).enumerate() {
        if bytes.len() != parameter.bytes as usize {
            return Err(LaunchError::ParameterBytes {
                kernel: name(),
                index,
                name: parameter.name.clone(),
                given: bytes.len(),
                wanted: parameter.bytes,
            });
        }
        space[parameter.offset as usize..][..bytes.len()].copy_from_slice(bytes);
    }
    Ok((space, shared))
}

//! The values that a driver hands out: addresses, handles, streams, and what a launch is described by.

#[cfg(unix)]
use std::os::fd::OwnedFd;
#[cfg(unix)]
use std::sync::Arc;

/// An address in the address space of one device.
pub type DevicePtr = u64;

/// Physical memory, as one device's driver refers to it. Importing gives a handle of the importer's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MemoryHandle(pub u64);

/// A multicast object, as one device's driver refers to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MulticastHandle(pub u64);

/// A loaded module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Module(pub u64);

/// A kernel of a loaded module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Kernel(pub u64);

/// An in-order queue of work on one device. On a CUDA driver the value is the `CUstream`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stream(pub u64);

impl Stream {
    /// The stream that exists without being created.
    pub const DEFAULT: Self = Self(0);
}

/// A memory or multicast handle in the form that can be given to another rank.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ShareableHandle {
    /// A number that means the same to every device of this process.
    InProcess(u64),
    /// A POSIX file descriptor, valid in this process; a rendezvous between processes has to pass it on.
    #[cfg(unix)]
    FileDescriptor(Arc<OwnedFd>),
    /// A fabric handle, plain bytes that another host can import too.
    Fabric([u8; 64]),
}

/// What the library has to know about a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceProperties {
    /// Number of the device, used in messages.
    pub ordinal: u32,
    /// Name for people.
    pub name: String,
    /// Compute capability, major and minor.
    pub compute_capability: (u32, u32),
    /// Streaming multiprocessors.
    pub sm_count: u32,
    /// Most dynamic shared memory that a block may opt in to, in bytes.
    pub shared_memory_per_block_optin: u32,
    /// Whether multicast objects can be created.
    pub multicast_supported: bool,
    /// Sizes of memory and multicast objects are multiples of this many bytes.
    pub memory_granularity_bytes: u64,
}

/// Geometry of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaunchConfig {
    /// Blocks.
    pub grid: [u32; 3],
    /// Blocks per cluster.
    pub cluster: [u32; 3],
    /// Threads per block.
    pub block: [u32; 3],
    /// Dynamic shared memory per block, in bytes.
    pub dynamic_shared_bytes: u32,
}

/// A copy of equally long rows within one device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowCopy {
    /// First byte written.
    pub destination: DevicePtr,
    /// Bytes from one destination row to the next.
    pub destination_stride_bytes: u64,
    /// First byte read.
    pub source: DevicePtr,
    /// Bytes from one source row to the next.
    pub source_stride_bytes: u64,
    /// Bytes of a row.
    pub row_bytes: u64,
    /// Rows.
    pub rows: u64,
}

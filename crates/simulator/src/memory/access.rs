//! Why a memory access of a kernel, or a memory call of the host, was refused.

use std::fmt;

use crate::node::{GpuId, MemoryHandle, MulticastHandle};

/// The kind of an access, for diagnostics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessKind {
    /// `ld`
    Load,
    /// `st`
    Store,
    /// `atom` and `red`
    Atomic,
    /// `multimem.ld_reduce`
    MultimemLoadReduce,
    /// `multimem.st`
    MultimemStore,
    /// `multimem.red`
    MultimemReduce,
    /// A bulk copy or TMA reading.
    BulkRead,
    /// A bulk copy or TMA writing.
    BulkWrite,
    /// Reading a tensor map.
    TensorMapRead,
    /// A tensor-core operation reading shared memory.
    TensorCoreRead,
    /// An operation on an mbarrier.
    Mbarrier,
    /// `tcgen05.alloc` writing its result.
    AllocationResult,
    /// `prefetch`
    Prefetch,
    /// A copy or fill enqueued by the host.
    HostCopy,
}

impl fmt::Display for AccessKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Load => "load",
            Self::Store => "store",
            Self::Atomic => "atomic",
            Self::MultimemLoadReduce => "multimem.ld_reduce",
            Self::MultimemStore => "multimem.st",
            Self::MultimemReduce => "multimem.red",
            Self::BulkRead => "bulk read",
            Self::BulkWrite => "bulk write",
            Self::TensorMapRead => "tensor map read",
            Self::TensorCoreRead => "tensor core read",
            Self::Mbarrier => "mbarrier operation",
            Self::AllocationResult => "tcgen05.alloc result",
            Self::Prefetch => "prefetch",
            Self::HostCopy => "copy",
        })
    }
}

/// What is wrong with an address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AccessProblem {
    /// Nothing there.
    #[error("no memory is mapped there")]
    Unmapped,
    /// Behind a mapping.
    #[error("no memory is mapped there: {distance} bytes past the end of the {mapped_bytes} bytes mapped at {base:#x}")]
    PastEnd {
        /// Where the nearest mapping below starts.
        base: u64,
        /// Its size.
        mapped_bytes: u64,
        /// From its end to the last byte accessed.
        distance: u64,
    },
    /// Was mapped once.
    #[error("the memory that was mapped there at {base:#x} has been unmapped or freed")]
    Freed {
        /// Where it started.
        base: u64,
    },
    /// Mapped for another GPU only.
    #[error("that address was mapped for GPU {gpu} only; map the memory for this GPU too and use that address")]
    OtherGpu {
        /// Whose address it is.
        gpu: u32,
    },
    /// Alignment.
    #[error("the address must be a multiple of {required}")]
    Misaligned {
        /// Wanted alignment.
        required: u32,
    },
    /// Never written.
    #[error("the byte at {first:#x} was never written")]
    Uninitialised {
        /// First such byte, as an address of the same kind.
        first: u64,
    },
    /// Plain access to a multicast address.
    #[error("that is a multicast address: only multimem instructions may touch it (PTX ISA, multimem)")]
    PlainAccessToMulticast,
    /// multimem on ordinary memory.
    #[error("that is not a multicast address: multimem needs one (PTX ISA, multimem)")]
    NotMulticast,
    /// A GPU of the multicast object has no memory there.
    #[error("GPU {gpu} has bound no memory to the multicast object there")]
    Unbound {
        /// The GPU without memory.
        gpu: u32,
    },
    /// Outside shared memory.
    #[error("offset {offset:#x} is outside the CTA's {limit} bytes of shared memory")]
    SharedOutside {
        /// Offset in the window.
        offset: u32,
        /// The CTA's shared memory.
        limit: u32,
    },
    /// `.shared::cta` on another CTA.
    #[error("the address names CTA {rank} of the cluster, but .shared::cta reaches the executing CTA {own} only")]
    SharedOfOtherCta {
        /// Rank in the address.
        rank: u32,
        /// Rank of the executing CTA.
        own: u32,
    },
    /// No such CTA.
    #[error("the address names CTA {rank} of a cluster of {ctas}")]
    NoSuchCta {
        /// Rank in the address.
        rank: u32,
        /// CTAs in the cluster.
        ctas: u32,
    },
    /// The CTA is gone.
    #[error("CTA {rank} of the cluster has exited: its shared memory is gone. Keep it alive with a cluster barrier")]
    CtaExited {
        /// Rank of the CTA that exited.
        rank: u32,
    },
    /// Plain access to an mbarrier.
    #[error(
        "an mbarrier object lives at offset {offset:#x}: only mbarrier instructions may touch it before mbarrier.inval"
    )]
    MbarrierObject {
        /// Offset of the mbarrier.
        offset: u32,
    },
    /// Outside local memory.
    #[error("offset {offset:#x} is outside the thread's {limit} bytes of local memory")]
    LocalOutside {
        /// Offset.
        offset: u64,
        /// Bytes of local memory.
        limit: u32,
    },
    /// Outside the parameters.
    #[error("offset {offset:#x} is outside the kernel's {limit} bytes of parameters")]
    ParameterOutside {
        /// Offset.
        offset: u64,
        /// Bytes of parameters.
        limit: u32,
    },
    /// A generic address in the wrong window.
    #[error("a {wanted} address is needed here")]
    WrongSpace {
        /// The state space needed.
        wanted: &'static str,
    },
    /// Writing what is read-only.
    #[error("the memory is read-only")]
    ReadOnly,
}

/// Why a memory call of the host was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MemoryError {
    /// No such GPU.
    #[error("there is no GPU {} in a node of {gpus}", .gpu.0)]
    NoSuchGpu {
        /// Given.
        gpu: GpuId,
        /// GPUs of the node.
        gpus: u32,
    },
    /// No such memory.
    #[error("memory handle {} is unknown or was released", .0.0)]
    NoSuchMemory(MemoryHandle),
    /// No such multicast object.
    #[error("multicast handle {} is unknown or was released", .0.0)]
    NoSuchMulticast(MulticastHandle),
    /// Zero bytes.
    #[error("0 bytes were asked for; ask for at least 1")]
    ZeroBytes,
    /// Over the limit.
    #[error("{wanted} bytes do not fit: GPU {} has {free} of its {limit} bytes left. Free memory or raise NodeConfig::memory_bytes_per_gpu", .gpu.0)]
    OutOfMemory {
        /// Where.
        gpu: GpuId,
        /// Asked for.
        wanted: u64,
        /// Left.
        free: u64,
        /// Configured.
        limit: u64,
    },
    /// Not the start of a mapping of that GPU.
    #[error("{address:#x} is not the start of a mapping of GPU {}", .gpu.0)]
    NotAMapping {
        /// Given GPU.
        gpu: GpuId,
        /// Given address.
        address: u64,
    },
    /// `free` of what `allocate` did not return.
    #[error("{address:#x} was mapped, not allocated: use unmap and release_memory")]
    NotAllocated {
        /// Given address.
        address: u64,
    },
    /// The GPU list of a multicast object.
    #[error("a multicast object needs distinct GPUs of the node, at least one; given {gpus:?}")]
    MulticastGpus {
        /// Given.
        gpus: Vec<u32>,
    },
    /// Binding memory of a GPU that is not in the object.
    #[error("the memory is on GPU {}, which is not one of the multicast object's GPUs", .gpu.0)]
    NotInMulticast {
        /// Whose memory.
        gpu: GpuId,
    },
    /// Binding out of range.
    #[error("{bytes} bytes at offset {offset} reach past the end of the {what}, which has {limit} bytes")]
    BindOutside {
        /// Memory or multicast object.
        what: &'static str,
        /// Given offset.
        offset: u64,
        /// Given length.
        bytes: u64,
        /// Its size.
        limit: u64,
    },
    /// Binding twice.
    #[error("GPU {} has already bound memory to part of that range of the multicast object", .gpu.0)]
    AlreadyBound {
        /// Whose memory.
        gpu: GpuId,
    },
    /// A host access was refused.
    #[error("host access to {bytes} bytes at {address:#x} on GPU {}: {problem}", .gpu.0)]
    Access {
        /// In whose address space.
        gpu: GpuId,
        /// Given address.
        address: u64,
        /// Given length.
        bytes: u64,
        /// What is wrong.
        problem: AccessProblem,
    },
}

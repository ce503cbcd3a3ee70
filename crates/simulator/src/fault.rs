//! What ends a run: an instruction that hardware leaves undefined, or a wait that nobody can satisfy.

use std::fmt;

use crate::deadlock::DeadlockReport;
use crate::mbarrier::MbarrierError;
use crate::memory::{AccessKind, AccessProblem, AtomicError};
use crate::multimem::MultimemError;
use crate::named_barrier::BarrierError;
use crate::node::GpuId;
use crate::ordering::OrderingError;
use crate::program::{Kernel, LaneMask};
use crate::shared::SharedReadError;
use crate::tcgen05::{CopyError, MmaError, OperandError, RegisterTransferError};
use crate::tensor_map::TensorMapError;
use crate::tensor_memory::TensorMemoryError;
use crate::wgmma::WgmmaDescriptorError;

/// Why a run ended.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Fault {
    /// An instruction did what the ISA leaves undefined.
    #[error("{0}")]
    Instruction(Box<InstructionFault>),
    /// Nothing can go on.
    #[error("{0}")]
    Deadlock(Box<DeadlockReport>),
    /// A copy or fill that the host enqueued was refused.
    #[error("copy of {bytes} bytes enqueued on GPU {}, stream {stream}, at {address:#x}: {problem}", .gpu.0)]
    Copy {
        /// GPU.
        gpu: GpuId,
        /// Stream.
        stream: u32,
        /// Offending address.
        address: u64,
        /// Length.
        bytes: u64,
        /// What is wrong.
        problem: AccessProblem,
    },
}

/// An undefined instruction and where it is.
#[derive(Debug, Clone, PartialEq)]
pub struct InstructionFault {
    /// Kernel name.
    pub kernel: String,
    /// 1-based line in the PTX text.
    pub line: u32,
    /// That line.
    pub source: String,
    /// Executing GPU.
    pub gpu: GpuId,
    /// CTA in its grid.
    pub cta: [u32; 3],
    /// Warp in its CTA.
    pub warp: u32,
    /// Lanes concerned.
    pub lanes: LaneMask,
    /// What is wrong.
    pub cause: FaultCause,
}

impl fmt::Display for InstructionFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.cta;
        write!(
            f,
            "kernel `{}`, PTX line {}: `{}`\n  GPU {}, CTA ({x},{y},{z}), warp {}, {}: {}",
            self.kernel,
            self.line,
            self.source,
            self.gpu.0,
            self.warp,
            Lanes(self.lanes),
            self.cause
        )
    }
}

/// Writes lanes as `lane 3` or `lanes 0x0000ffff`.
pub(crate) struct Lanes(pub(crate) LaneMask);

impl fmt::Display for Lanes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.count_ones() {
            1 => write!(f, "lane {}", self.0.trailing_zeros()),
            _ => write!(f, "lanes {:#010x}", self.0),
        }
    }
}

/// What is wrong with an instruction.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum FaultCause {
    /// A memory access.
    #[error("{kind} of {bytes} bytes at {address:#x}: {problem}")]
    Access {
        /// What kind.
        kind: AccessKind,
        /// Where.
        address: u64,
        /// How many bytes.
        bytes: u32,
        /// What is wrong.
        problem: AccessProblem,
    },
    /// Ordering.
    #[error(transparent)]
    Ordering(#[from] OrderingError),
    /// An mbarrier.
    #[error(transparent)]
    Mbarrier(#[from] MbarrierError),
    /// A barrier.
    #[error(transparent)]
    Barrier(#[from] BarrierError),
    /// Lanes that are not together.
    #[error(transparent)]
    Convergence(#[from] ConvergenceError),
    /// An atomic that PTX does not have.
    #[error(transparent)]
    Atomic(#[from] AtomicError),
    /// A multimem operation that PTX does not have.
    #[error(transparent)]
    Multimem(#[from] MultimemError),
    /// A tensor map.
    #[error(transparent)]
    TensorMap(#[from] TensorMapError),
    /// A bulk copy.
    #[error(transparent)]
    Bulk(#[from] BulkError),
    /// `st.async` or `red.async`.
    #[error(transparent)]
    RemoteStore(#[from] RemoteStoreError),
    /// `clusterlaunchcontrol`.
    #[error(transparent)]
    LaunchControl(#[from] LaunchControlError),
    /// Tensor memory.
    #[error(transparent)]
    TensorMemory(#[from] TensorMemoryError),
    /// `tcgen05.mma`.
    #[error(transparent)]
    Mma(#[from] MmaError),
    /// `tcgen05.cp`.
    #[error(transparent)]
    Copy(#[from] CopyError),
    /// `tcgen05.ld` or `tcgen05.st`.
    #[error(transparent)]
    RegisterTransfer(#[from] RegisterTransferError),
    /// Shared memory as a tensor-core operand.
    #[error(transparent)]
    SharedRead(#[from] SharedReadError),
    /// tcgen05 rules that concern the CTA.
    #[error(transparent)]
    Tcgen05(#[from] Tcgen05Error),
    /// wgmma rules.
    #[error(transparent)]
    Wgmma(#[from] WgmmaError),
    /// `cp.async` whose source is longer than the copy.
    #[error("cp.async: the source size {source_bytes} exceeds the size {bytes} of the copy")]
    CopySourceSize {
        /// Given.
        source_bytes: u32,
        /// Bytes of the copy.
        bytes: u32,
    },
    /// `trap`.
    #[error("trap")]
    Trap,
    /// `brx.idx` out of range.
    #[error("brx.idx: index {index} of {targets} targets")]
    BranchIndex {
        /// Given.
        index: u64,
        /// Targets.
        targets: usize,
    },
    /// `bra.uni` by lanes that disagree.
    #[error("bra.uni: lanes disagree (they jump: {taken:#010x} of {lanes:#010x})")]
    NotUniform {
        /// Lanes that jump.
        taken: LaneMask,
        /// Lanes that execute.
        lanes: LaneMask,
    },
    /// Endless loop.
    #[error(
        "this warp runs in circles: more than {limit} instructions of the node without any change of memory or barriers (Node::set_spin_limit sets how many are allowed)"
    )]
    Spinning {
        /// Instructions allowed between changes.
        limit: u64,
    },
    /// The limit that [`crate::Node::set_instruction_limit`] set.
    #[error("the node has executed more than {limit} instructions, the limit that Node::set_instruction_limit gave it")]
    InstructionLimit {
        /// Instructions allowed.
        limit: u64,
    },
    /// `cp.async.bulk` left behind.
    #[error(
        "the thread exits while a bulk store still reads the CTA's shared memory: cp.async.bulk.wait_group.read is missing"
    )]
    ExitWithBulkReads,
    /// Something asynchronous still targets an exited CTA.
    #[error(
        "the CTA exits while {operations} asynchronous operations on its shared memory are still under way: wait for their mbarriers first"
    )]
    ExitWithPendingOperations {
        /// How many.
        operations: u32,
    },
    /// Tensor memory left behind.
    #[error("the CTA exits without tcgen05.dealloc of tensor memory columns {columns:?}")]
    TensorMemoryNotFreed {
        /// Columns.
        columns: Vec<std::ops::Range<u32>>,
    },
}

/// Lanes that should be together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConvergenceError {
    /// `.aligned` by part of a warp.
    #[error(
        ".aligned instruction reached by lanes {lanes:#010x} of a warp whose live lanes are {live:#010x}: all must execute it together"
    )]
    NotAligned {
        /// Executing lanes.
        lanes: LaneMask,
        /// Lanes that have not exited.
        live: LaneMask,
    },
    /// An instruction of a whole warp after some lanes have exited, or in a CTA whose last warp is not full.
    #[error("this instruction needs all 32 lanes of the warp, but only lanes {live:#010x} are live")]
    NotAWholeWarp {
        /// Lanes that have not exited.
        live: LaneMask,
    },
    /// Lanes with different member masks.
    #[error("lanes give different member masks ({first:#010x} and {other:#010x})")]
    MembersDisagree {
        /// One.
        first: LaneMask,
        /// Another.
        other: LaneMask,
    },
    /// A lane outside its own mask.
    #[error("lanes {lanes:#010x} execute with a member mask {members:#010x} that does not hold them all")]
    NotAMember {
        /// Executing lanes.
        lanes: LaneMask,
        /// Mask.
        members: LaneMask,
    },
    /// Operand that must be the same in all lanes.
    #[error("operand `{operand}` must be the same in all lanes, but is {first:#x} in one and {other:#x} in another")]
    OperandDiffers {
        /// Which.
        operand: &'static str,
        /// One value.
        first: u64,
        /// Another.
        other: u64,
    },
}

/// Rules of `cp.async.bulk`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BulkError {
    /// Shared address alignment.
    #[error("the shared address {address:#x} must be a multiple of {required}")]
    SharedAlignment {
        /// Given.
        address: u32,
        /// Wanted.
        required: u32,
    },
    /// Global address alignment.
    #[error("the global address {address:#x} must be a multiple of 16")]
    GlobalAlignment {
        /// Given.
        address: u64,
    },
    /// Size.
    #[error("the size {bytes} must be a positive multiple of 16")]
    Size {
        /// Given.
        bytes: u32,
    },
    /// Destination and mbarrier in different CTAs.
    #[error(
        "destination in CTA {destination} but mbarrier in CTA {barrier}: without .cta_group::2 both must be in the same CTA"
    )]
    BarrierElsewhere {
        /// Rank of the destination.
        destination: u32,
        /// Rank of the mbarrier.
        barrier: u32,
    },
    /// Mask names absent CTAs.
    #[error("the multicast mask {mask:#x} names CTAs outside a cluster of {ctas}, or none")]
    Mask {
        /// Given.
        mask: u64,
        /// CTAs of the cluster.
        ctas: u32,
    },
    /// A reduction on the fly that is not supported.
    #[error("cp.reduce.async.bulk {0} is not executed by the simulator")]
    Reduction(&'static str),
}

/// Rules of `st.async` and `red.async`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RemoteStoreError {
    /// Destination and mbarrier in different CTAs.
    #[error(
        "destination in CTA {destination} but mbarrier in CTA {barrier}: st.async and red.async want both in the same CTA"
    )]
    BarrierElsewhere {
        /// Rank of the destination.
        destination: u32,
        /// Rank of the mbarrier.
        barrier: u32,
    },
    /// Undefined where there is no other CTA (PTX ISA, "st.async").
    #[error("st.async and red.async need a cluster of more than one CTA")]
    NoCluster,
}

/// Rules of `clusterlaunchcontrol`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LaunchControlError {
    /// There is nothing left to ask for.
    #[error(
        "clusterlaunchcontrol.try_cancel after this CTA has observed that an earlier one failed: the behaviour is undefined"
    )]
    AfterFailure,
    /// The index of a cluster that was not cancelled.
    #[error(
        "clusterlaunchcontrol.query_cancel.get_first_ctaid of a response that says that nothing was cancelled: ask is_canceled first"
    )]
    NothingCancelled,
    /// Bytes of another origin.
    #[error(
        "clusterlaunchcontrol.query_cancel of {high:#018x}:{low:016x}, which is no response of clusterlaunchcontrol.try_cancel"
    )]
    NotAResponse {
        /// Lower half.
        low: u64,
        /// Upper half.
        high: u64,
    },
}

/// Rules of `tcgen05` that concern the CTA and its pair.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Tcgen05Error {
    /// No pair.
    #[error("cta_group::2 needs a cluster with an even number of CTAs; this one has {ctas}")]
    NoPair {
        /// CTAs of the cluster.
        ctas: u32,
    },
    /// The peer is gone.
    #[error("cta_group::2: the other CTA of the pair (rank {peer}) has exited. Keep it alive with a cluster barrier")]
    PeerExited {
        /// Its rank.
        peer: u32,
    },
    /// Allocation after giving up the right.
    #[error("tcgen05.alloc after tcgen05.relinquish_alloc_permit of the same CTA: allocate everything before it")]
    PermitRelinquished,
    /// Freed while in use.
    #[error(
        "tcgen05.dealloc of columns {columns:?} while a tcgen05 operation on them has not completed: wait on an mbarrier that a later tcgen05.commit arrives on"
    )]
    DeallocateInUse {
        /// Columns.
        columns: std::ops::Range<u32>,
    },
    /// Mixed groups.
    #[error(
        "the CTA used cta_group::{earlier} before and uses cta_group::{given} now: all tcgen05 instructions of a kernel must use the same"
    )]
    GroupsMixed {
        /// First use.
        earlier: u8,
        /// This use.
        given: u8,
    },
}

/// Rules of `wgmma`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WgmmaError {
    /// The last warps of the CTA are no warpgroup.
    #[error("wgmma needs a warpgroup of four warps, the first a multiple of four; warp {warp} of {warps} is in none")]
    NoWarpgroup {
        /// The executing warp.
        warp: u32,
        /// Warps of the CTA.
        warps: u32,
    },
    /// A matrix descriptor.
    #[error(transparent)]
    Descriptor(#[from] WgmmaDescriptorError),
    /// A matrix that the tensor core cannot read.
    #[error(transparent)]
    Operand(#[from] OperandError),
    /// `scale-d` not uniform.
    #[error("wgmma.mma_async: scale-d must be the same in all lanes")]
    ScaleDiffers,
    /// No fence.
    #[error(
        "wgmma.fence is missing: it must stand before the first wgmma.mma_async, and between any access to the registers of A or D and the wgmma.mma_async that uses them"
    )]
    MissingFence,
    /// Registers of an earlier operation.
    #[error(
        "wgmma.mma_async uses registers of {operand} that are accumulators of another one in flight: wgmma.wait_group is missing"
    )]
    RegistersInFlight {
        /// Which operand.
        operand: &'static str,
    },
}

/// A failure inside an instruction, before its place is known.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) cause: FaultCause,
    /// Lanes concerned, where fewer than all that execute.
    pub(crate) lanes: Option<LaneMask>,
}

/// Boxed, since it ends the run and should not widen every result.
pub(crate) type Fail = Box<Failure>;

impl<E: Into<FaultCause>> From<E> for Box<Failure> {
    fn from(error: E) -> Self {
        Box::new(Failure { cause: error.into(), lanes: None })
    }
}

/// Names one lane in a failure.
pub(crate) fn at_lane(lane: usize, cause: impl Into<FaultCause>) -> Box<Failure> {
    Box::new(Failure { cause: cause.into(), lanes: Some(1 << lane) })
}

/// An access failure in one lane.
pub(crate) fn access_failure(
    lane: usize,
    kind: AccessKind,
    address: u64,
    bytes: u32,
    problem: AccessProblem,
) -> Box<Failure> {
    at_lane(lane, FaultCause::Access { kind, address, bytes, problem })
}

/// The PTX line of an instruction, trimmed.
pub(crate) fn source_line(kernel: &Kernel, line: u32) -> String {
    kernel.source.lines().nth(line.saturating_sub(1) as usize).unwrap_or("").trim().to_string()
}

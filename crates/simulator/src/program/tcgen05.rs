//! `tcgen05.*`.

use super::{Address, Operand, PredicateOperand, Register, StateSpace};

/// `tcgen05.*`.
#[derive(Debug, Clone)]
pub enum Tcgen05 {
    /// `alloc`: writes the tensor-memory address to shared memory.
    Allocate {
        /// 1 or 2.
        cta_group: u8,
        /// Shared address that receives the tensor-memory address.
        destination: Address,
        /// Space of `destination`: `SharedCta` or `Generic`.
        destination_space: StateSpace,
        /// Columns.
        columns: Operand,
    },
    /// `dealloc`.
    Deallocate {
        /// 1 or 2.
        cta_group: u8,
        /// Tensor-memory address.
        address: Operand,
        /// Columns.
        columns: Operand,
    },
    /// `relinquish_alloc_permit`.
    RelinquishPermit {
        /// 1 or 2.
        cta_group: u8,
    },
    /// `mma`.
    Mma(Tcgen05Mma),
    /// `commit`: all earlier asynchronous tcgen05 operations of the thread arrive on an mbarrier when done.
    Commit {
        /// 1 or 2.
        cta_group: u8,
        /// The mbarrier.
        barrier: Address,
        /// `SharedCluster` or `Generic`.
        barrier_space: StateSpace,
        /// `.multicast::cluster` CTA mask.
        multicast: Option<Operand>,
    },
    /// `ld`.
    Load {
        /// Data shape.
        shape: Tcgen05Shape,
        /// `.x1` to `.x128`.
        repeat: u8,
        /// `.16x32bx2`: how many columns behind the first access the second is.
        half_offset: Option<u32>,
        /// `.pack::16b`.
        pack: bool,
        /// Destination registers.
        destinations: Vec<Register>,
        /// Tensor-memory address.
        address: Address,
    },
    /// `st`.
    Store {
        /// Data shape.
        shape: Tcgen05Shape,
        /// `.x1` to `.x128`.
        repeat: u8,
        /// `.16x32bx2`: how many columns behind the first access the second is.
        half_offset: Option<u32>,
        /// `.unpack::16b`.
        unpack: bool,
        /// Sources.
        sources: Vec<Operand>,
        /// Tensor-memory address.
        address: Address,
    },
    /// `wait::ld`.
    WaitLoad,
    /// `wait::st`.
    WaitStore,
    /// `fence::before_thread_sync`.
    FenceBeforeThreadSync,
    /// `fence::after_thread_sync`.
    FenceAfterThreadSync,
    /// `cp`: shared memory to tensor memory.
    Copy {
        /// 1 or 2.
        cta_group: u8,
        /// Shape and multicast.
        shape: Tcgen05CopyShape,
        /// Tensor-memory address.
        destination: Address,
        /// Shared-memory matrix descriptor.
        source: Operand,
    },
}

/// `tcgen05.mma`.
#[derive(Debug, Clone)]
pub struct Tcgen05Mma {
    /// 1 or 2.
    pub cta_group: u8,
    /// `.kind`.
    pub kind: Tcgen05Kind,
    /// Accumulator, a tensor-memory address.
    pub accumulator: Address,
    /// A operand.
    pub a: Tcgen05Operand,
    /// B's shared-memory matrix descriptor.
    pub b: Operand,
    /// Instruction descriptor.
    pub instruction_descriptor: Operand,
    /// Scale factors' tensor-memory addresses (A, B), for block-scaled kinds.
    pub scales: Option<(Address, Address)>,
    /// `.scale_vec::NX` or `.blockN`, as the number of elements that share a scale; 0 when absent.
    pub scale_block: u8,
    /// `disable-output-lane` words (4 or 8), if given.
    pub disable_output_lane: Vec<Operand>,
    /// `enable-input-d`: when false the accumulator is overwritten.
    pub enable_input_d: PredicateOperand,
}

/// `.kind` of an MMA.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tcgen05Kind {
    /// `kind::f16`: f16 and bf16.
    F16,
    /// `kind::tf32`.
    Tf32,
    /// `kind::f8f6f4`.
    F8f6f4,
    /// `kind::i8`.
    I8,
    /// `kind::mxf8f6f4.block_scale`.
    Mxf8f6f4,
}

/// Where an MMA's A comes from.
#[derive(Debug, Clone, Copy)]
pub enum Tcgen05Operand {
    /// A shared-memory matrix descriptor.
    Descriptor(Operand),
    /// Tensor memory.
    TensorMemory(Address),
}

/// Shapes of `tcgen05.ld` and `tcgen05.st`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tcgen05Shape {
    /// `.32x32b`
    Lanes32x32b,
    /// `.16x64b`
    Lanes16x64b,
    /// `.16x128b`
    Lanes16x128b,
    /// `.16x256b`
    Lanes16x256b,
    /// One of the two accesses of `.16x32bx2`: the first by the lower half of the warp's lanes, the second by the upper.
    Lanes16x32b {
        /// The second.
        upper: bool,
    },
}

/// Shapes of `tcgen05.cp`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tcgen05CopyShape {
    /// `.128x256b`
    Lanes128x256b,
    /// `.128x128b`
    Lanes128x128b,
    /// `.4x256b`
    Lanes4x256b,
    /// `.64x128b.warpx2::02_13`
    Lanes64x128bWarpx2At0213,
    /// `.64x128b.warpx2::01_23`
    Lanes64x128bWarpx2At0123,
    /// `.32x128b.warpx4`
    Lanes32x128bWarpx4,
}

//! Decoded instructions, one enum per family.

use super::{
    Address, AsyncCopy, LoadMatrix, Operand, Predicate, PredicateOperand, Register, ScalarInstruction, StoreMatrix,
    TensorMapUpdate, WarpMma, Wgmma,
};

/// An instruction with its guard and its place in the PTX text.
#[derive(Debug, Clone)]
pub struct Instruction {
    /// `@p` or `@!p`.
    pub guard: Option<PredicateOperand>,
    /// What it does.
    pub operation: Operation,
    /// 1-based line in the PTX text.
    pub line: u32,
}

/// What an instruction does.
#[derive(Debug, Clone)]
pub enum Operation {
    /// Per-lane arithmetic.
    Scalar(ScalarInstruction),
    /// `mov` from a special register.
    ReadSpecial {
        /// Destination.
        destination: Register,
        /// Which one.
        source: SpecialRegister,
    },
    /// `cvta` and `cvta.to`: between generic addresses and a state space's own.
    ConvertAddress {
        /// Destination (64-bit).
        destination: Register,
        /// Source.
        source: Operand,
        /// The state space that is not generic.
        space: StateSpace,
        /// True for `cvta.to.space`.
        to_space: bool,
    },
    /// `isspacep`.
    IsSpace {
        /// Destination.
        destination: Predicate,
        /// A generic address.
        source: Operand,
        /// The space asked about.
        space: StateSpace,
    },
    /// `mapa`: the address of the same shared-memory location in another CTA of the cluster.
    MapShared {
        /// Destination.
        destination: Register,
        /// A shared or generic address.
        address: Operand,
        /// Cluster rank of the CTA.
        cta: Operand,
        /// True for `mapa.shared::cluster` (32-bit or 64-bit shared window addresses), false for generic ones.
        shared: bool,
    },
    /// `getctarank`.
    GetCtaRank {
        /// Destination.
        destination: Register,
        /// A shared::cluster or generic address.
        address: Operand,
        /// True for `.shared::cluster`.
        shared: bool,
    },
    /// `bra`; the guard selects the lanes that jump.
    Branch {
        /// Index of the instruction jumped to.
        target: u32,
        /// `.uni`: all active lanes agree.
        uniform: bool,
    },
    /// `brx.idx`.
    BranchIndexed {
        /// Which target.
        index: Operand,
        /// Instruction indices.
        targets: Vec<u32>,
    },
    /// `exit`, and `ret` in an entry function.
    Exit,
    /// `trap`.
    Trap,
    /// `nanosleep.u32`.
    NanoSleep(Operand),
    /// Load into one register per vector element.
    Load(Load),
    /// Store from one operand per vector element.
    Store(Store),
    /// `atom` (with destination) and `red` (without).
    Atomic(Atomic),
    /// `prefetch*`, `discard`, `applypriority`, `cp.async.bulk.prefetch*`: no architectural effect beyond address checks.
    Prefetch {
        /// What is fetched.
        address: Address,
        /// Its space.
        space: StateSpace,
        /// True for `prefetch.tensormap`.
        tensor_map: bool,
    },
    /// Memory and proxy fences.
    Fence(Fence),
    /// `bar`/`barrier` within a CTA.
    Barrier(Barrier),
    /// `barrier.cluster.arrive`.
    ClusterArrive {
        /// `.release` (default) or `.relaxed`.
        order: MemoryOrder,
        /// `.aligned`.
        aligned: bool,
    },
    /// `barrier.cluster.wait`.
    ClusterWait {
        /// `.aligned`.
        aligned: bool,
    },
    /// `bar.warp.sync`.
    WarpSync {
        /// Members.
        members: Operand,
    },
    /// `elect.sync`.
    Elect {
        /// Destination lane number; `_` gives `None`.
        lane: Option<Register>,
        /// True in the elected lane.
        elected: Predicate,
        /// Members.
        members: Operand,
    },
    /// `activemask.b32`.
    ActiveMask(Register),
    /// `shfl.sync`.
    Shuffle(Shuffle),
    /// `vote.sync`.
    Vote(Vote),
    /// `match.sync`.
    Match {
        /// Destination mask.
        destination: Register,
        /// `match.all` also writes a predicate; `match.any` has none.
        all: Option<Option<Predicate>>,
        /// The compared value.
        source: Operand,
        /// Members.
        members: Operand,
    },
    /// `redux.sync`.
    Redux {
        /// Destination.
        destination: Register,
        /// Reduction.
        reduction: AtomicOperation,
        /// Element type.
        element: ElementType,
        /// Source.
        source: Operand,
        /// Members.
        members: Operand,
    },
    /// `ldmatrix`.
    LoadMatrix(LoadMatrix),
    /// `stmatrix`.
    StoreMatrix(StoreMatrix),
    /// `mma.sync`.
    WarpMma(WarpMma),
    /// `mbarrier.*` on shared memory.
    Mbarrier(Mbarrier),
    /// `cp.async`.
    AsyncCopy(AsyncCopy),
    /// `cp.async.bulk*`.
    Bulk(Bulk),
    /// `tensormap.*`.
    TensorMap(TensorMapUpdate),
    /// `wgmma.*`.
    Wgmma(Wgmma),
    /// `tcgen05.*`.
    Tcgen05(Tcgen05),
    /// `multimem.*`.
    Multimem(Multimem),
    /// `setmaxnreg`, `griddepcontrol.*`: accepted, without effect on results.
    NoEffect(&'static str),
}

/// Special registers that `mov` reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpecialRegister {
    /// `%tid.{x,y,z}`
    ThreadIndex(u8),
    /// `%ntid.{x,y,z}`
    ThreadCount(u8),
    /// `%ctaid.{x,y,z}`
    CtaIndex(u8),
    /// `%nctaid.{x,y,z}`
    CtaCount(u8),
    /// `%clusterid.{x,y,z}`
    ClusterIndex(u8),
    /// `%nclusterid.{x,y,z}`
    ClusterCount(u8),
    /// `%cluster_ctaid.{x,y,z}`
    ClusterCtaIndex(u8),
    /// `%cluster_nctaid.{x,y,z}`
    ClusterCtaCount(u8),
    /// `%cluster_ctarank`
    ClusterCtaRank,
    /// `%cluster_nctarank`
    ClusterCtaRankCount,
    /// `%laneid`
    LaneIndex,
    /// `%warpid`
    WarpIndex,
    /// `%nwarpid`
    WarpCount,
    /// `%smid`
    SmIndex,
    /// `%nsmid`
    SmCount,
    /// `%gridid`
    GridIndex,
    /// `%lanemask_{eq,le,lt,ge,gt}`
    LaneMask(LaneRelation),
    /// `%clock64`
    Clock,
    /// `%clock`: the lower half
    ClockLow,
    /// `%clock_hi`
    ClockHigh,
    /// `%globaltimer`, nanoseconds of simulated time
    GlobalTimer,
    /// `%globaltimer_lo`
    GlobalTimerLow,
    /// `%globaltimer_hi`
    GlobalTimerHigh,
    /// `%dynamic_smem_size`
    DynamicSharedBytes,
    /// `%total_smem_size`
    TotalSharedBytes,
}

/// Which lanes a `%lanemask_*` holds, relative to the reading lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaneRelation {
    /// Equal.
    Equal,
    /// Less or equal.
    LessEqual,
    /// Less.
    Less,
    /// Greater or equal.
    GreaterEqual,
    /// Greater.
    Greater,
}

/// PTX state spaces that instructions address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateSpace {
    /// Generic addressing.
    Generic,
    /// `.global`.
    Global,
    /// `.shared` and `.shared::cta`: the executing CTA's window.
    SharedCta,
    /// `.shared::cluster`.
    SharedCluster,
    /// `.param` of the kernel.
    Parameter,
    /// `.local`.
    Local,
    /// `.const`.
    Constant,
}

/// `.sem` of a memory operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryOrder {
    /// `.weak` and unqualified.
    Weak,
    /// `.volatile`.
    Volatile,
    /// `.relaxed`.
    Relaxed,
    /// `.acquire`.
    Acquire,
    /// `.release`.
    Release,
    /// `.acq_rel`.
    AcquireRelease,
    /// `.sc`.
    SequentiallyConsistent,
    /// `.mmio`.
    Mmio,
}

/// `.scope`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// `.cta`.
    Cta,
    /// `.cluster`.
    Cluster,
    /// `.gpu`.
    Gpu,
    /// `.sys`.
    System,
}

/// Element types of memory, atomic and reduction operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ElementType {
    /// Untyped or unsigned, by width in bytes.
    Bits(u8),
    /// Signed integer of this many bytes (loads sign-extend to the register's width).
    Signed(u8),
    /// Unsigned integer of this many bytes, in arithmetic.
    Unsigned(u8),
    /// `.f16`
    F16,
    /// `.f16x2`
    F16x2,
    /// `.bf16`
    Bf16,
    /// `.bf16x2`
    Bf16x2,
    /// `.f32`
    F32,
    /// `.f64`
    F64,
    /// `.e4m3x4` (multimem)
    E4m3x4,
    /// `.e5m2x4` (multimem)
    E5m2x4,
}

impl ElementType {
    /// Size in bytes.
    pub fn bytes(self) -> u32 {
        match self {
            Self::Bits(n) | Self::Signed(n) | Self::Unsigned(n) => n.into(),
            Self::F16 | Self::Bf16 => 2,
            Self::F16x2 | Self::Bf16x2 | Self::F32 | Self::E4m3x4 | Self::E5m2x4 => 4,
            Self::F64 => 8,
        }
    }
}

/// `ld`.
#[derive(Debug, Clone)]
pub struct Load {
    /// Space.
    pub space: StateSpace,
    /// Order.
    pub order: MemoryOrder,
    /// Scope; `System` when the instruction names none.
    pub scope: Scope,
    /// `.nc`.
    pub non_coherent: bool,
    /// Element type.
    pub element: ElementType,
    /// Width in bytes of the destination registers (a `ld.u8` may fill a 32-bit register); signed loads extend to it.
    pub register_bytes: u8,
    /// One per vector element; `None` for `_`.
    pub destinations: Vec<Option<Register>>,
    /// Where from.
    pub address: Address,
}

/// `st`.
#[derive(Debug, Clone)]
pub struct Store {
    /// Space.
    pub space: StateSpace,
    /// Order.
    pub order: MemoryOrder,
    /// Scope; `System` when the instruction names none.
    pub scope: Scope,
    /// Element type.
    pub element: ElementType,
    /// One per vector element.
    pub sources: Vec<Operand>,
    /// Where to.
    pub address: Address,
}

/// `atom` and `red`.
#[derive(Debug, Clone)]
pub struct Atomic {
    /// Space.
    pub space: StateSpace,
    /// Order (`Relaxed` when the instruction names none).
    pub order: MemoryOrder,
    /// Scope (`Gpu` when the instruction names none).
    pub scope: Scope,
    /// Operation.
    pub operation: AtomicOperation,
    /// Element type.
    pub element: ElementType,
    /// Old value, per vector element; empty for `red`.
    pub destinations: Vec<Option<Register>>,
    /// Where.
    pub address: Address,
    /// Operand(s): one per vector element; `cas` has [compare, new].
    pub sources: Vec<Operand>,
}

/// Read-modify-write operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtomicOperation {
    /// Add.
    Add,
    /// Minimum.
    Min,
    /// Maximum.
    Max,
    /// And.
    And,
    /// Or.
    Or,
    /// Exclusive or.
    Xor,
    /// Exchange.
    Exchange,
    /// Compare and swap.
    CompareAndSwap,
    /// `inc`: wraps to 0 past the operand.
    Increment,
    /// `dec`: wraps to the operand past 0.
    Decrement,
}

/// Memory and proxy fences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fence {
    /// `fence{.sc,.acq_rel,.acquire,.release}.scope`, and `membar`.
    Memory {
        /// Order.
        order: MemoryOrder,
        /// Scope.
        scope: Scope,
    },
    /// `fence.proxy.alias`.
    ProxyAlias,
    /// `fence.proxy.async{.space}`; `None` for all spaces.
    ProxyAsync(Option<StateSpace>),
    /// `fence.proxy.tensormap::generic.{acquire,release}.scope`.
    ProxyTensorMap {
        /// Acquire or release.
        order: MemoryOrder,
        /// Scope.
        scope: Scope,
        /// For acquire: the tensor map's address and size.
        address: Option<Address>,
    },
    /// `fence.mbarrier_init.release.cluster`.
    MbarrierInit,
}

/// `bar.*` and `barrier.*` within a CTA.
#[derive(Debug, Clone)]
pub struct Barrier {
    /// Which of the 16.
    pub barrier: Operand,
    /// Threads expected, a multiple of 32; all of the CTA when absent.
    pub threads: Option<Operand>,
    /// What is done.
    pub kind: BarrierKind,
    /// `.aligned` (always so for `bar`).
    pub aligned: bool,
}

/// What a CTA barrier instruction does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BarrierKind {
    /// Arrive and wait.
    Synchronize,
    /// Arrive only.
    Arrive,
    /// Arrive, wait and reduce a predicate.
    Reduce {
        /// `popc` writes a register; `and`/`or` write a predicate.
        destination: BarrierReduction,
        /// The predicate reduced.
        source: PredicateOperand,
    },
}

/// Destination of `bar.red`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BarrierReduction {
    /// Population count.
    Count(Register),
    /// Conjunction.
    And(Predicate),
    /// Disjunction.
    Or(Predicate),
}

/// `shfl.sync`.
#[derive(Debug, Clone)]
pub struct Shuffle {
    /// Mode.
    pub mode: ShuffleMode,
    /// Destination.
    pub destination: Register,
    /// True where the source lane was in range.
    pub in_range: Option<Predicate>,
    /// Value.
    pub source: Operand,
    /// Lane or delta.
    pub lane: Operand,
    /// Clamp and segment mask.
    pub clamp: Operand,
    /// Members.
    pub members: Operand,
}

/// Mode of a shuffle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShuffleMode {
    /// `.up`
    Up,
    /// `.down`
    Down,
    /// `.bfly`
    Butterfly,
    /// `.idx`
    Index,
}

/// `vote.sync`.
#[derive(Debug, Clone)]
pub struct Vote {
    /// What is computed.
    pub kind: VoteKind,
    /// The predicate voted on.
    pub source: PredicateOperand,
    /// Members.
    pub members: Operand,
}

/// What a vote computes, and where it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VoteKind {
    /// All lanes true.
    All(Predicate),
    /// Some lane true.
    Any(Predicate),
    /// All lanes equal.
    Uniform(Predicate),
    /// Mask of lanes that are true.
    Ballot(Register),
}

/// `mbarrier.*`. Addresses are shared-memory addresses or generic ones, by `space`.
#[derive(Debug, Clone)]
pub struct Mbarrier {
    /// The barrier object.
    pub address: Address,
    /// Its space.
    pub space: StateSpace,
    /// What is done.
    pub kind: MbarrierKind,
}

/// What an mbarrier instruction does.
#[derive(Debug, Clone)]
pub enum MbarrierKind {
    /// `init`, with the expected arrival count.
    Init(Operand),
    /// `inval`.
    Invalidate,
    /// `expect_tx` without arrival.
    ExpectTransactions {
        /// Bytes.
        bytes: Operand,
    },
    /// `complete_tx`.
    CompleteTransactions {
        /// Bytes.
        bytes: Operand,
    },
    /// `arrive`, `arrive_drop`, `arrive.expect_tx`.
    Arrive {
        /// State token, if wanted.
        state: Option<Register>,
        /// Arrivals; one when absent.
        count: Option<Operand>,
        /// `expect_tx` bytes, applied before the arrival.
        expect_bytes: Option<Operand>,
        /// `arrive_drop`.
        drop: bool,
        /// `.release` by default.
        order: MemoryOrder,
        /// `.cta` by default.
        scope: Scope,
    },
    /// `test_wait` and `try_wait`.
    Wait {
        /// True when the phase has completed.
        complete: Predicate,
        /// A state token, or a phase parity.
        phase: MbarrierPhase,
        /// `try_wait`: may suspend the thread.
        suspends: bool,
        /// Suspend-time hint in nanoseconds.
        hint_ns: Option<Operand>,
        /// `.acquire` by default.
        order: MemoryOrder,
        /// `.cta` by default.
        scope: Scope,
    },
    /// `pending_count` of a state token (the address is unused).
    PendingCount {
        /// Destination.
        destination: Register,
        /// Token.
        state: Operand,
    },
}

/// Which phase a wait asks about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MbarrierPhase {
    /// The phase of a state token.
    Token(Operand),
    /// `.parity`.
    Parity(Operand),
}

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
    /// `cp.async.bulk.global.shared::cta`.
    Store {
        /// Where to (global).
        destination: Address,
        /// Where from.
        source: Address,
        /// Bytes, a multiple of 16.
        bytes: Operand,
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

/// `multimem.*`.
#[derive(Debug, Clone)]
pub struct Multimem {
    /// What is done.
    pub kind: MultimemKind,
    /// Order (`Weak` when the instruction names none).
    pub order: MemoryOrder,
    /// Scope.
    pub scope: Scope,
    /// Element type of one vector element.
    pub element: ElementType,
    /// A multicast address.
    pub address: Address,
    /// The instruction's space: `Global` or `Generic`.
    pub space: StateSpace,
}

/// What a multimem instruction does.
#[derive(Debug, Clone)]
pub enum MultimemKind {
    /// Loads from every GPU and reduces.
    LoadReduce {
        /// Operation.
        operation: AtomicOperation,
        /// `.acc::f32` (or `.acc::f16` for fp8): accumulate wider than the element.
        wide_accumulate: bool,
        /// One per vector element.
        destinations: Vec<Register>,
    },
    /// Stores to every GPU.
    Store {
        /// One per vector element.
        sources: Vec<Operand>,
    },
    /// Reduces into every GPU's memory.
    Reduce {
        /// Operation.
        operation: AtomicOperation,
        /// One per vector element.
        sources: Vec<Operand>,
    },
}

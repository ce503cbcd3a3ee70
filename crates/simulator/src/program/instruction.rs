//! An instruction and its operation: one variant per family.

use super::{
    Address, AsyncCopy, Atomic, AtomicOperation, Barrier, Bulk, ElementType, Fence, LaunchControl, Load, LoadMatrix,
    Mbarrier, MemoryOrder, Multimem, Operand, Predicate, PredicateOperand, Register, RemoteStore, ScalarInstruction,
    Shuffle, SpecialRegister, StateSpace, Store, StoreMatrix, Tcgen05, TensorMapUpdate, Vote, WarpMma, Wgmma,
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
    /// `st.async` and `red.async`.
    RemoteStore(RemoteStore),
    /// `clusterlaunchcontrol.*`.
    LaunchControl(LaunchControl),
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

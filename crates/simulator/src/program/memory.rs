//! State spaces, and what loads, stores, atomics and fences say of memory.

use super::{Address, Operand, Register};

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
    /// One per vector element, `None` for `_`; the halves of a `.b128`.
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
    /// One element, not a vector: also of `.b128`, which has two sources.
    pub single: bool,
    /// One per vector element; the halves of a `.b128`.
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
    /// Old value, per vector element or half; empty for `red`.
    pub destinations: Vec<Option<Register>>,
    /// Where.
    pub address: Address,
    /// Operand(s): one per vector element, or the halves of a `.b128`; `cas` has those to compare with, then the new ones.
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

//! `multimem.*`.

use super::{Address, AtomicOperation, ElementType, MemoryOrder, Operand, Register, Scope, StateSpace};

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

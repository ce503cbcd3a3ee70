//! The decoded program: what a PTX kernel becomes, once, before any warp runs it.
//!
//! Decoding resolves labels to instruction indices, symbols to offsets, and modifiers to enums, so that execution
//! matches on small values only. Every instruction keeps the PTX line it came from.

mod async_copy;
mod bulk;
mod collective;
mod instruction;
mod launch_control;
mod matrix;
mod mbarrier;
mod memory;
mod multimem;
mod remote_store;
mod scalar;
mod scalar_operations;
mod special;
mod tcgen05;
mod tensor_map;
mod wgmma;

pub use async_copy::*;
pub use bulk::*;
pub use collective::*;
pub use instruction::*;
pub use launch_control::*;
pub use matrix::*;
pub use mbarrier::*;
pub use memory::*;
pub use multimem::*;
pub use remote_store::*;
pub use scalar::*;
pub use scalar_operations::*;
pub use special::*;
pub use tcgen05::*;
pub use tensor_map::*;
pub use wgmma::*;

use std::sync::Arc;

/// A decoded PTX module.
#[derive(Debug, Clone)]
pub struct Module {
    /// `.version`, as (major, minor).
    pub version: (u32, u32),
    /// `.target`, the architecture only (`sm_100f`).
    pub target: String,
    /// The `.entry` functions.
    pub kernels: Vec<Arc<Kernel>>,
    /// Module-scope `.global` and `.const` variables; the node places them on each GPU at load.
    pub variables: Vec<ModuleVariable>,
}

/// A module-scope variable with its initial bytes.
#[derive(Debug, Clone)]
pub struct ModuleVariable {
    /// Name in the PTX text.
    pub name: String,
    /// Required alignment in bytes.
    pub align: u32,
    /// Initial contents; the length is the size.
    pub bytes: Vec<u8>,
}

/// One `.entry`.
#[derive(Debug, Clone)]
pub struct Kernel {
    /// Name in the PTX text.
    pub name: String,
    /// Parameters in order; the offsets are those of the parameter space.
    pub parameters: Vec<Parameter>,
    /// Bytes of the parameter space.
    pub parameter_bytes: u32,
    /// `.reqntid`.
    pub required_threads: Option<[u32; 3]>,
    /// `.maxntid`.
    pub max_threads: Option<[u32; 3]>,
    /// `.reqnctapercluster`.
    pub required_cluster: Option<[u32; 3]>,
    /// Bytes of statically declared `.shared` variables. Dynamic shared memory starts behind them, at
    /// `dynamic_shared_offset`.
    pub static_shared_bytes: u32,
    /// Offset of the `.extern .shared` array: `static_shared_bytes` rounded up to the array's alignment.
    pub dynamic_shared_offset: u32,
    /// Bytes of per-thread local memory (`.local` variables).
    pub local_bytes: u32,
    /// How many value registers (64-bit slots) a thread has.
    pub register_count: u32,
    /// How many predicate registers a thread has.
    pub predicate_count: u32,
    /// The code. Falling off the end is `exit`.
    pub instructions: Vec<Instruction>,
    /// For each instruction, the index of the instruction at which lanes that diverge there come together again: the
    /// immediate post-dominator's first instruction, or `instructions.len()` where only the exit post-dominates.
    /// Meaningful for branches; other entries hold the next index.
    pub reconvergence: Vec<u32>,
    /// The PTX text, for diagnostics that quote the line.
    pub source: Arc<str>,
}

/// One kernel parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// Name in the PTX text.
    pub name: String,
    /// Offset in the parameter space.
    pub offset: u32,
    /// Size in bytes.
    pub bytes: u32,
    /// Alignment in bytes.
    pub align: u32,
}

/// A value register: an index into [`Registers`]' 64-bit slots. A 32-bit value keeps the upper half of its slot zero,
/// a 16-bit value the upper 48 bits; f32 and f64 are kept as their bit patterns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Register(pub u32);

/// A predicate register.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Predicate(pub u32);

/// A source operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operand {
    /// A register.
    Register(Register),
    /// A constant, already in the register representation of the instruction's type (a negative 32-bit constant has a
    /// zero upper half). Addresses of shared variables, parameters and local variables are constants too: offsets in
    /// their state space.
    Immediate(u64),
    /// The address, on the executing GPU, of [`Module::variables`]`[index]` plus an offset.
    VariableAddress {
        /// Index of the variable.
        index: u32,
        /// Added to its address.
        offset: i64,
    },
    /// A shared address of the executing CTA, which has the CTA's cluster rank in its upper bits.
    SharedAddress {
        /// Offset in the CTA's shared memory.
        offset: i64,
    },
}

/// `[base + offset]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address {
    /// A register or a constant.
    pub base: Operand,
    /// Constant byte offset.
    pub offset: i64,
}

/// A source predicate, possibly negated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PredicateOperand {
    /// The register.
    pub predicate: Predicate,
    /// `!p`.
    pub negated: bool,
}

/// One set bit per lane.
pub type LaneMask = u32;

/// Lanes of a warp.
pub const WARP_LANES: usize = 32;

/// The registers of one warp, lane-minor so that an instruction walks 32 adjacent words.
#[derive(Debug, Clone)]
pub struct Registers {
    /// Indexed by [`Register`], then lane.
    pub values: Vec<[u64; WARP_LANES]>,
    /// Indexed by [`Predicate`]; bit = lane.
    pub predicates: Vec<LaneMask>,
    /// The carry flag `CC.CF` of each lane.
    pub carry: LaneMask,
}

impl Registers {
    /// All zero.
    pub fn new(registers: u32, predicates: u32) -> Self {
        Self { values: vec![[0; WARP_LANES]; registers as usize], predicates: vec![0; predicates as usize], carry: 0 }
    }

    /// The lanes for which a predicate operand holds.
    #[inline]
    pub fn lanes_where(&self, operand: PredicateOperand) -> LaneMask {
        let mask = self.predicates[operand.predicate.0 as usize];
        if operand.negated { !mask } else { mask }
    }

    /// Writes a predicate for the given lanes only.
    #[inline]
    pub fn set_predicate(&mut self, predicate: Predicate, lanes: LaneMask, value: LaneMask) {
        let word = &mut self.predicates[predicate.0 as usize];
        *word = (*word & !lanes) | (value & lanes);
    }
}

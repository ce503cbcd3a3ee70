//! Reduction arithmetic of `multimem.ld_reduce`, `multimem.red` and `multimem.st`.
#![allow(unused)]

use crate::program::{AtomicOperation, ElementType};

/// A combination of modifiers that PTX does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MultimemError {
    /// No such operation on this element type.
    #[error("multimem has no {operation:?} on {element:?}")]
    Unsupported {
        /// Operation.
        operation: AtomicOperation,
        /// Element type.
        element: ElementType,
    },
}

/// Reduces one vector element's values, one per GPU, in the order given. Values are the element's bits, zero-extended.
pub fn load_reduce(
    operation: AtomicOperation,
    element: ElementType,
    wide_accumulate: bool,
    values: &[u64],
) -> Result<u64, MultimemError> {
    todo!()
}

/// What one GPU's memory holds after `multimem.red` of `value` into `memory`.
pub fn reduce(operation: AtomicOperation, element: ElementType, memory: u64, value: u64) -> Result<u64, MultimemError> {
    todo!()
}

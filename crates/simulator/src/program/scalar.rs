//! Per-thread arithmetic: everything that reads and writes registers of its own lane only.

/// One arithmetic, logic, conversion, comparison, move or select instruction, decoded.
#[derive(Debug, Clone, PartialEq)]
pub enum ScalarInstruction {}

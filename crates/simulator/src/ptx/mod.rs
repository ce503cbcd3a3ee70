//! PTX text to decoded program: lexer, parser and the public entry.
//!
//! The grammar is that of the PTX ISA, "Syntax" and "Directives", as LLVM's back-end, Triton and hand-written inline
//! assembly use it.

pub(crate) mod ast;
mod error;
mod expression;
mod lexer;
mod limits;
mod operand;
mod parser;
mod variable;

pub use error::{Location, PtxError};
pub(crate) use lexer::Span;
pub(crate) use limits::Limits;

use crate::{decode, program};

/// Parses and decodes a PTX module.
///
/// # Errors
/// The first thing that is wrong with the text, with its place: see [`PtxError`].
pub fn load(ptx: &str) -> Result<program::Module, PtxError> {
    let result = parser::parse(ptx).and_then(|module| decode::module(&module, ptx));
    result.map_err(|error| error.quoting(ptx))
}

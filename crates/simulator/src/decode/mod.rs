//! Syntax tree to decoded program: one file per instruction family.
//!
//! Names are resolved, types are checked, and every modifier must be one that the instruction has (PTX ISA,
//! "Instruction Set"): a text that a real assembler refuses should not run here either.

mod address;
mod allocation;
mod form;
mod kernel;
mod layout;
mod operand;
mod reconvergence;
mod registers;
mod scope;
mod target;

mod async_copy;
mod atomic;
mod barrier;
mod bits;
mod bulk;
mod call;
mod compare;
mod control;
mod convert;
mod fence;
mod float;
mod half;
mod integer;
mod launch_control;
mod matrix;
mod mbarrier;
mod memory;
mod movement;
mod multimem;
mod remote_store;
mod space;
mod special;
mod table;
mod tcgen05;
mod tensor_map;
mod warp;
mod wgmma;

use crate::program;
use crate::ptx::{PtxError, ast};
use std::sync::Arc;
use target::Target;

/// Decodes a module.
pub(crate) fn module(module: &ast::Module<'_>, source: &str) -> Result<program::Module, PtxError> {
    let target = Target::parse(module.target)?;
    let globals = layout::Globals::new(&module.variables)?;
    let source: Arc<str> = source.into();
    let mut kernels: Vec<Arc<program::Kernel>> = Vec::new();
    for function in module.functions.iter().filter(|function| function.entry) {
        let Some(body) = &function.body else { continue };
        if kernels.iter().any(|kernel| kernel.name == function.name.text) {
            return Err(PtxError::Redeclared { name: function.name.text.into(), at: function.name.span.into() });
        }
        kernels.push(Arc::new(kernel::decode(function, body, (&target, &globals, &module.functions), source.clone())?));
    }
    Ok(program::Module {
        version: module.version,
        target: module.target.text.to_owned(),
        kernels,
        variables: globals.into_variables(),
    })
}

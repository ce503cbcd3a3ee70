//! Where variables live: offsets in their state spaces.

use crate::program::{ModuleVariable, Parameter};
use crate::ptx::ast::{Constant, Initial, Name, Type, Variable, VariableSpace};
use crate::ptx::{Limits, PtxError, Span};
use std::collections::HashMap;

/// What a variable's name stands for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Symbol {
    /// An offset in a state space of the kernel.
    Offset(u64),
    /// An offset in the CTA's shared memory.
    Shared(u64),
    /// A `.param` variable of a function, by its offset in local memory: an argument or a result of a call.
    Argument { offset: u64, bytes: u64 },
    /// A module variable, by its index.
    Variable(u32),
    /// A module variable whose initial value contains addresses.
    Relocated,
}

/// Module-scope variables.
pub(super) struct Globals<'a> {
    variables: Vec<ModuleVariable>,
    pub(super) symbols: HashMap<&'a str, Symbol>,
    /// `.shared` variables, which every kernel that names them lays out for itself.
    pub(super) shared: Vec<&'a Variable<'a>>,
}

impl<'a> Globals<'a> {
    pub(super) fn new(declared: &'a [Variable<'a>]) -> Result<Self, PtxError> {
        let mut globals = Self { variables: Vec::new(), symbols: HashMap::new(), shared: Vec::new() };
        let mut total = 0;
        for variable in declared {
            let name = variable.name;
            if variable.space == VariableSpace::Shared {
                if globals.shared.iter().any(|other| other.name.text == name.text && !other.external) {
                    return Err(PtxError::Redeclared { name: name.text.into(), at: name.span.into() });
                }
                globals.shared.push(variable);
                continue;
            }
            if variable.external {
                // Declared again by whoever defines it; nothing to lay out.
                continue;
            }
            total += variable.bytes();
            if total > Limits::MODULE_VARIABLE_BYTES {
                let limit = Limits::MODULE_VARIABLE_BYTES;
                return Err(PtxError::TooLarge { what: "bytes of module variables", limit, at: name.span.into() });
            }
            let symbol = if variable.initializer.iter().any(|value| matches!(value, Initial::Address)) {
                Symbol::Relocated
            } else {
                globals.variables.push(ModuleVariable {
                    name: name.text.to_owned(),
                    align: variable.align,
                    bytes: initial_bytes(variable)?,
                });
                Symbol::Variable(globals.variables.len() as u32 - 1)
            };
            if globals.symbols.insert(name.text, symbol).is_some() {
                return Err(PtxError::Redeclared { name: name.text.into(), at: name.span.into() });
            }
        }
        Ok(globals)
    }

    pub(super) fn into_variables(self) -> Vec<ModuleVariable> {
        self.variables
    }
}

fn initial_bytes(variable: &Variable<'_>) -> Result<Vec<u8>, PtxError> {
    let size = variable.bytes() as usize;
    let width = variable.element.bits().div_ceil(8) as usize;
    let mut bytes = Vec::with_capacity(size);
    for value in &variable.initializer {
        if let Initial::Constant(value, span) = *value {
            if bytes.len() + width > size {
                return Err(PtxError::OutOfRange {
                    what: "the number of initial values".into(),
                    allowed: format!("at most {}", size / width.max(1)).into(),
                    at: span.into(),
                });
            }
            let bits = element_bits(value, variable.element, span)?;
            bytes.extend_from_slice(&bits.to_le_bytes()[..width.min(8)]);
        }
    }
    bytes.resize(size, 0);
    Ok(bytes)
}

fn element_bits(value: Constant, element: Type, span: Span) -> Result<u64, PtxError> {
    super::operand::constant_bits(value, element, span)
}

/// Gives out offsets in one state space.
#[derive(Debug)]
pub(super) struct Space {
    pub(super) bytes: u64,
    limit: u64,
    what: &'static str,
}

impl Space {
    pub(super) fn new(what: &'static str, limit: u64) -> Self {
        Self { bytes: 0, limit, what }
    }

    /// Rounds up to an alignment.
    pub(super) fn align(&mut self, align: u32) -> u64 {
        self.bytes = self.bytes.next_multiple_of(u64::from(align.max(1)));
        self.bytes
    }

    /// Places a variable.
    pub(super) fn place(&mut self, bytes: u64, align: u32, name: Name<'_>) -> Result<u64, PtxError> {
        let offset = self.align(align);
        self.bytes += bytes;
        if self.bytes > self.limit {
            return Err(PtxError::TooLarge { what: self.what, limit: self.limit, at: name.span.into() });
        }
        Ok(offset)
    }
}

/// Lays out a kernel's parameters in order, each at its alignment. Returns them with the size of the space.
pub(super) fn parameters(declared: &[Variable<'_>]) -> Result<(Vec<Parameter>, u32), PtxError> {
    let mut space = Space::new("bytes of kernel parameters", Limits::PARAMETER_BYTES);
    let mut parameters: Vec<Parameter> = Vec::with_capacity(declared.len());
    for variable in declared {
        let name = variable.name;
        if parameters.iter().any(|parameter| parameter.name == name.text) {
            return Err(PtxError::Redeclared { name: name.text.into(), at: name.span.into() });
        }
        let offset = space.place(variable.bytes(), variable.align, name)?;
        parameters.push(Parameter {
            name: name.text.to_owned(),
            offset: offset as u32,
            bytes: variable.bytes() as u32,
            align: variable.align,
        });
    }
    Ok((parameters, space.bytes as u32))
}

//! One entry function: declarations, then instructions.

use super::form::Form;
use super::layout::{self, Globals, Space, Symbol};
use super::scope::Scopes;
use super::target::Target;
use super::{allocation, reconvergence, table, wgmma};
use crate::program::{self, Kernel};
use crate::ptx::ast::{Function, Instruction, Operand, OperandKind, Statement, Variable, VariableSpace};
use crate::ptx::{Limits, PtxError};
use std::collections::HashSet;
use std::sync::Arc;

/// What decoding an instruction may look at.
pub(super) struct Context<'a> {
    pub(super) scopes: Scopes<'a>,
    pub(super) globals: &'a Globals<'a>,
    pub(super) target: &'a Target,
}

/// Decodes an entry function.
pub(super) fn decode<'a>(
    function: &'a Function<'a>,
    body: &'a [Statement<'a>],
    target: &'a Target,
    globals: &'a Globals<'a>,
    source: Arc<str>,
) -> Result<Kernel, PtxError> {
    let (parameters, parameter_bytes) = layout::parameters(&function.parameters)?;
    let mut context = Context { scopes: Scopes::new(), globals, target };
    // Parameters are visible in the body, but a body variable may not repeat one.
    for (variable, parameter) in function.parameters.iter().zip(&parameters) {
        context.scopes.declare_variable(0, variable.name, Symbol::Offset(parameter.offset.into()))?;
    }
    let mut collected = Collected {
        code: Vec::new(),
        shared: Space::new("bytes of shared variables", Limits::SHARED_BYTES),
        local: Space::new("bytes of local variables", Limits::LOCAL_BYTES),
        dynamic: Vec::new(),
    };
    let body_scope = context.scopes.open(0);
    collected.module_shared(body, &mut context)?;
    collected.walk(body, body_scope, &mut context)?;

    let static_shared_bytes = collected.shared.bytes as u32;
    let dynamic_align = collected.dynamic.iter().map(|(_, variable)| variable.align).max().unwrap_or(1);
    let dynamic_shared_offset = collected.shared.align(dynamic_align);
    for (scope, variable) in &collected.dynamic {
        context.scopes.declare_variable(*scope, variable.name, Symbol::Shared(dynamic_shared_offset))?;
    }

    let mut instructions = Vec::with_capacity(collected.code.len());
    for (scope, instruction) in collected.code {
        instructions.push(decode_instruction(instruction, scope, &mut context)?);
    }
    wgmma::extend_waits(&mut instructions);
    let graph = reconvergence::Graph::new(&instructions);
    let reconvergence = reconvergence::immediate_post_dominators(&instructions, &graph);
    let register_count = allocation::share_slots(&mut instructions, &graph, context.scopes.registers);
    Ok(Kernel {
        name: function.name.text.to_owned(),
        parameters,
        parameter_bytes,
        required_threads: function.required_threads,
        max_threads: function.max_threads,
        required_cluster: function.required_cluster,
        static_shared_bytes,
        dynamic_shared_offset: dynamic_shared_offset as u32,
        local_bytes: collected.local.bytes as u32,
        register_count,
        predicate_count: context.scopes.predicates,
        instructions,
        reconvergence,
        source,
    })
}

fn decode_instruction<'a>(
    instruction: &'a Instruction<'a>,
    scope: usize,
    context: &mut Context<'a>,
) -> Result<program::Instruction, PtxError> {
    let mut form = Form::new(instruction, scope, context);
    let guard = form.guard()?;
    let operation = table::decode(&mut form)?;
    form.finish()?;
    Ok(program::Instruction { guard, operation, line: instruction.opcode.span.line })
}

/// What the first walk over the body collects.
struct Collected<'a> {
    /// Instructions with their scopes.
    code: Vec<(usize, &'a Instruction<'a>)>,
    shared: Space,
    local: Space,
    /// Unsized shared arrays: they start where the sized ones end, which is known after the walk only.
    dynamic: Vec<(usize, &'a Variable<'a>)>,
}

impl<'a> Collected<'a> {
    /// Lays out the module's `.shared` variables that the body names.
    fn module_shared(&mut self, body: &'a [Statement<'a>], context: &mut Context<'a>) -> Result<(), PtxError> {
        if context.globals.shared.is_empty() {
            return Ok(());
        }
        let mut used = HashSet::new();
        statement_names(body, &mut used);
        for variable in context.globals.shared.iter().filter(|variable| used.contains(variable.name.text)) {
            self.place_shared(variable, 0, context)?;
        }
        Ok(())
    }

    fn place_shared(
        &mut self,
        variable: &'a Variable<'a>,
        scope: usize,
        context: &mut Context<'a>,
    ) -> Result<(), PtxError> {
        if !variable.initializer.is_empty() {
            let what = "initial values of shared variables".into();
            return Err(PtxError::Unsupported { what, at: variable.name.span.into() });
        }
        if variable.elements.is_none() {
            self.dynamic.push((scope, variable));
            return Ok(());
        }
        let offset = self.shared.place(variable.bytes(), variable.align, variable.name)?;
        context.scopes.declare_variable(scope, variable.name, Symbol::Shared(offset))
    }

    fn walk(&mut self, body: &'a [Statement<'a>], scope: usize, context: &mut Context<'a>) -> Result<(), PtxError> {
        for statement in body {
            match statement {
                Statement::Registers { element, names } => {
                    for &names in names {
                        context.scopes.declare_register(scope, names, *element)?;
                    }
                }
                Statement::Variable(variable) => self.variable(variable, scope, context)?,
                Statement::Label(name) => {
                    context.scopes.declare_label(scope, *name, self.code.len() as u32)?;
                }
                Statement::Instruction(instruction) => self.code.push((scope, instruction)),
                Statement::Scope(inner) => {
                    let inner_scope = context.scopes.open(scope);
                    self.walk(inner, inner_scope, context)?;
                }
                Statement::BranchTargets { label, targets } => {
                    context.scopes.declare_targets(scope, *label, targets)?;
                }
            }
        }
        Ok(())
    }

    fn variable(
        &mut self,
        variable: &'a Variable<'a>,
        scope: usize,
        context: &mut Context<'a>,
    ) -> Result<(), PtxError> {
        let unsupported = |what: &str| PtxError::Unsupported { what: what.into(), at: variable.name.span.into() };
        match variable.space {
            VariableSpace::Shared => self.place_shared(variable, scope, context),
            VariableSpace::Local => {
                let offset = self.local.place(variable.bytes(), variable.align, variable.name)?;
                context.scopes.declare_variable(scope, variable.name, Symbol::Offset(offset))
            }
            VariableSpace::Parameter => Err(unsupported("`.param` variables in a body, which calls use")),
            VariableSpace::Global | VariableSpace::Constant => {
                Err(unsupported("`.global` and `.const` variables in a body"))
            }
        }
    }
}

fn statement_names<'a>(body: &'a [Statement<'a>], names: &mut HashSet<&'a str>) {
    for statement in body {
        match statement {
            Statement::Instruction(instruction) => {
                instruction.operands.iter().for_each(|operand| operand_names(operand, names));
            }
            Statement::Scope(inner) => statement_names(inner, names),
            _ => {}
        }
    }
}

fn operand_names<'a>(operand: &'a Operand<'a>, names: &mut HashSet<&'a str>) {
    match &operand.kind {
        OperandKind::Name(name) | OperandKind::NameOffset(name, _) => {
            names.insert(name);
        }
        OperandKind::Vector(elements) => elements.iter().for_each(|element| operand_names(element, names)),
        OperandKind::Address(address) => operand_names(&address.base, names),
        _ => {}
    }
}

//! One entry function: declarations, then instructions.

use super::form::Form;
use super::layout::{self, Globals, Space, Symbol};
use super::scope::Scopes;
use super::target::Target;
use super::{allocation, reconvergence, table, wgmma};
use crate::program::{self, Kernel, Operation};
use crate::ptx::ast::{Function, Instruction, Operand, OperandKind, Statement, Variable, VariableSpace};
use crate::ptx::{Limits, PtxError};
use std::collections::HashSet;
use std::sync::Arc;

/// What decoding an instruction may look at.
pub(super) struct Context<'a> {
    pub(super) scopes: Scopes<'a>,
    pub(super) globals: &'a Globals<'a>,
    pub(super) target: &'a Target,
    pub(super) functions: &'a [Function<'a>],
}

/// Decodes an entry function.
pub(super) fn decode<'a>(
    function: &'a Function<'a>,
    body: &'a [Statement<'a>],
    (target, globals, functions): (&'a Target, &'a Globals<'a>, &'a [Function<'a>]),
    source: Arc<str>,
) -> Result<Kernel, PtxError> {
    let (parameters, parameter_bytes) = layout::parameters(&function.parameters)?;
    let mut context = Context { scopes: Scopes::new(), globals, target, functions };
    // The outermost scope is the module's, which called functions see too.
    let parameter_scope = context.scopes.open(0);
    for (variable, parameter) in function.parameters.iter().zip(&parameters) {
        context.scopes.declare_variable(parameter_scope, variable.name, Symbol::Offset(parameter.offset.into()))?;
    }
    let mut collected = Collected {
        code: Vec::new(),
        shared: Space::new("bytes of shared variables", Limits::SHARED_BYTES),
        local: Space::new("bytes of local variables", Limits::LOCAL_BYTES),
        dynamic: Vec::new(),
        calls: Vec::new(),
        returns: Vec::new(),
    };
    let body_scope = context.scopes.open(parameter_scope);
    collected.module_shared(body, &mut context)?;
    collected.walk(body, body_scope, &mut context)?;

    let static_shared_bytes = collected.shared.bytes as u32;
    let dynamic_align = collected.dynamic.iter().map(|(_, variable)| variable.align).max().unwrap_or(1);
    let dynamic_shared_offset = collected.shared.align(dynamic_align);
    for (scope, variable) in &collected.dynamic {
        context.scopes.declare_variable(*scope, variable.name, Symbol::Shared(dynamic_shared_offset))?;
    }

    let mut instructions = Vec::with_capacity(collected.code.len());
    for (scope, code) in collected.code {
        instructions.push(decode_instruction(code, scope, &mut context)?);
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
    code: Code<'a>,
    scope: usize,
    context: &mut Context<'a>,
) -> Result<program::Instruction, PtxError> {
    let (Code::Written(instruction) | Code::Return { instruction, .. } | Code::Skip { call: instruction, .. }) = code;
    let mut form = Form::new(instruction, scope, context);
    let mut guard = form.guard()?;
    let operation = match code {
        Code::Written(_) => {
            let operation = table::decode(&mut form)?;
            form.finish()?;
            operation
        }
        Code::Return { target, .. } => {
            form.has(".uni");
            form.exactly::<0>()?;
            form.finish()?;
            Operation::Branch { target, uniform: false }
        }
        Code::Skip { target, .. } => {
            guard = guard.map(|guard| program::PredicateOperand { negated: !guard.negated, ..guard });
            Operation::Branch { target, uniform: false }
        }
    };
    Ok(program::Instruction { guard, operation, line: instruction.opcode.span.line })
}

/// What becomes an instruction.
#[derive(Clone, Copy)]
pub(super) enum Code<'a> {
    /// One as it stands in the text.
    Written(&'a Instruction<'a>),
    /// `ret` in a called function: a jump behind the call.
    Return { instruction: &'a Instruction<'a>, target: u32 },
    /// The jump of those lanes for which a call's guard is false.
    Skip { call: &'a Instruction<'a>, target: u32 },
}

/// What the first walk over the body collects.
pub(super) struct Collected<'a> {
    /// Instructions with their scopes.
    pub(super) code: Vec<(usize, Code<'a>)>,
    shared: Space,
    local: Space,
    /// Unsized shared arrays: they start where the sized ones end, which is known after the walk only.
    dynamic: Vec<(usize, &'a Variable<'a>)>,
    /// The functions that are being taken in, outermost first.
    pub(super) calls: Vec<&'a str>,
    /// Where the innermost of them returns.
    pub(super) returns: Vec<usize>,
}

impl<'a> Collected<'a> {
    /// Lays out the module's `.shared` variables that the body names.
    fn module_shared(&mut self, body: &'a [Statement<'a>], context: &mut Context<'a>) -> Result<(), PtxError> {
        if context.globals.shared.is_empty() {
            return Ok(());
        }
        let mut used = HashSet::new();
        statement_names(body, &mut used);
        // Those that called functions name belong to the kernel too.
        let mut left: Vec<_> = context.functions.iter().filter(|function| !function.entry).collect();
        while let Some(index) = left.iter().position(|function| used.contains(function.name.text)) {
            statement_names(left.swap_remove(index).body.as_deref().unwrap_or_default(), &mut used);
        }
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

    pub(super) fn walk(
        &mut self,
        body: &'a [Statement<'a>],
        scope: usize,
        context: &mut Context<'a>,
    ) -> Result<(), PtxError> {
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
                Statement::Instruction(instruction) => match instruction.opcode.text {
                    "call" => self.call(instruction, scope, context)?,
                    "ret" if !self.calls.is_empty() => {
                        self.returns.push(self.code.len());
                        self.code.push((scope, Code::Return { instruction, target: 0 }));
                    }
                    _ => self.code.push((scope, Code::Written(instruction))),
                },
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
            VariableSpace::Parameter => {
                let bytes = variable.bytes();
                let offset = self.local.place(bytes, variable.align, variable.name)?;
                context.scopes.declare_variable(scope, variable.name, Symbol::Argument { offset, bytes })
            }
            VariableSpace::Global | VariableSpace::Constant | VariableSpace::Register => {
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

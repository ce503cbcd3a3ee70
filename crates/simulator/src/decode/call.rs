//! Calls of `.func`: the callee's body takes the place of the call.
//!
//! Parameters and results are variables in `.param` space that caller and callee share, which is what the ISA's calling
//! convention amounts to (PTX ISA, "Function Declarations and Definitions"); they live in the thread's local memory.
//! Because nothing is left of the call, divergence, reconvergence and register slots need no notion of a stack. What it
//! costs is recursion and calls through pointers, which are refused.

use super::kernel::{Code, Collected, Context};
use super::layout::Symbol;
use crate::ptx::ast::{Function, Instruction, Operand, OperandKind, Variable, VariableSpace};
use crate::ptx::{Limits, PtxError};

impl<'a> Collected<'a> {
    /// Takes in the body of the function that an instruction calls.
    pub(super) fn call(
        &mut self,
        instruction: &'a Instruction<'a>,
        scope: usize,
        context: &mut Context<'a>,
    ) -> Result<(), PtxError> {
        if let Some(modifier) = instruction.modifiers.iter().find(|modifier| modifier.text != ".uni") {
            return Err(PtxError::UnexpectedModifier {
                instruction: instruction.mnemonic().into(),
                modifier: modifier.text.into(),
                at: modifier.span.into(),
            });
        }
        let (results, name, arguments) = parts(instruction)?;
        let function = callee(name, context)?;
        let unsupported = |what: String| PtxError::Unsupported { what: what.into(), at: name.span.into() };
        if self.calls.contains(&function.name.text) {
            return Err(unsupported(format!("`{}`: recursive calls", function.name.text)));
        }
        let Some(body) = &function.body else {
            return Err(unsupported(format!("`{}`: functions without a body", function.name.text)));
        };
        let inner = context.scopes.open(0);
        let lists = [(&function.results, results), (&function.parameters, arguments)];
        for (formals, actuals) in lists {
            if formals.len() != actuals.len() {
                return Err(PtxError::OperandCount {
                    instruction: format!("{} {}", instruction.mnemonic(), function.name.text).into(),
                    expected: format!("{}", function.results.len() + function.parameters.len()).into(),
                    found: (results.len() + arguments.len()) as u32,
                    at: name.span.into(),
                });
            }
            for (formal, actual) in formals.iter().zip(actuals) {
                bind(formal, actual, (scope, inner), context)?;
            }
        }
        let skip = instruction.guard.map(|_| {
            self.code.push((scope, Code::Skip { call: instruction, target: 0 }));
            self.code.len() - 1
        });
        self.calls.push(function.name.text);
        let returns = std::mem::take(&mut self.returns);
        let body_scope = context.scopes.open(inner);
        self.walk(body, body_scope, context)?;
        self.calls.pop();
        let end = self.code.len() as u32;
        for index in std::mem::replace(&mut self.returns, returns).into_iter().chain(skip) {
            if let Code::Return { target, .. } | Code::Skip { target, .. } = &mut self.code[index].1 {
                *target = end;
            }
        }
        if self.code.len() > Limits::KERNEL_INSTRUCTIONS {
            let limit = Limits::KERNEL_INSTRUCTIONS as u64;
            let what = "instructions of a kernel and the functions that it calls";
            return Err(PtxError::TooLarge { what, limit, at: name.span.into() });
        }
        Ok(())
    }
}

/// `call (results), name, (arguments)`, of which both lists may be absent.
#[allow(clippy::type_complexity)]
fn parts<'a>(
    instruction: &'a Instruction<'a>,
) -> Result<(&'a [Operand<'a>], &'a Operand<'a>, &'a [Operand<'a>]), PtxError> {
    fn list<'a>(operand: Option<&'a Operand<'a>>) -> Option<&'a [Operand<'a>]> {
        match operand.map(|operand| &operand.kind) {
            Some(OperandKind::Vector(elements)) => Some(elements),
            _ => None,
        }
    }
    let operands = &instruction.operands[..];
    let (results, rest) = match list(operands.first()) {
        Some(results) => (results, &operands[1..]),
        None => (&[][..], operands),
    };
    let (name, arguments) = match rest {
        [name] => (name, &[][..]),
        [name, arguments] if list(Some(arguments)).is_some() => (name, list(Some(arguments)).unwrap_or_default()),
        _ => {
            let what = "calls through a pointer (a prototype or a list of targets)".into();
            return Err(PtxError::Unsupported { what, at: instruction.span().into() });
        }
    };
    Ok((results, name, arguments))
}

fn callee<'a>(name: &'a Operand<'a>, context: &Context<'a>) -> Result<&'a Function<'a>, PtxError> {
    let OperandKind::Name(text) = name.kind else {
        return Err(PtxError::OperandType {
            expected: "a function".into(),
            found: "another operand".into(),
            at: name.span.into(),
        });
    };
    let named = || context.functions.iter().filter(|function| !function.entry && function.name.text == text);
    // A declaration may stand before the definition.
    let found = named().find(|function| function.body.is_some()).or_else(|| named().next());
    found.ok_or_else(|| PtxError::Undeclared { name: text.into(), at: name.span.into() })
}

/// Makes a formal parameter another name of the actual one.
fn bind<'a>(
    formal: &'a Variable<'a>,
    actual: &'a Operand<'a>,
    (outer, inner): (usize, usize),
    context: &mut Context<'a>,
) -> Result<(), PtxError> {
    if formal.space == VariableSpace::Register {
        let what = format!("`{}`: parameters in registers", formal.name.text).into();
        return Err(PtxError::Unsupported { what, at: formal.name.span.into() });
    }
    let symbol = match actual.kind {
        OperandKind::Name(name) => context.scopes.variable(outer, name),
        _ => None,
    };
    let Some(symbol @ Symbol::Argument { bytes, .. }) = symbol else {
        return Err(PtxError::Unsupported {
            what: "arguments that are not `.param` variables of the caller".into(),
            at: actual.span.into(),
        });
    };
    if bytes != formal.bytes() {
        return Err(PtxError::OperandType {
            expected: format!("a parameter of {} bytes", formal.bytes()).into(),
            found: format!("one of {bytes}").into(),
            at: actual.span.into(),
        });
    }
    context.scopes.declare_variable(inner, formal.name, symbol)
}

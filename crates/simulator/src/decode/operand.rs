//! Operands of arithmetic: registers, constants, predicates, vectors.

use super::form::Form;
use super::layout::Symbol;
use super::scope::Slot;
use crate::program::{self, Predicate, PredicateOperand, PredicateSource, Register};
use crate::ptx::ast::{Constant, Name, Operand, OperandKind, Type};
use crate::ptx::{PtxError, Span};

/// How a register's declared type must relate to the instruction's type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Width {
    /// The same number of bits.
    Exact,
    /// `ld`, `st` and `cvt` take wider registers for integers and untyped values (PTX ISA, "Operand Size Exceeding
    /// Instruction-Type Size").
    AtLeast,
}

#[derive(PartialEq, Eq)]
enum Class {
    Predicate,
    Bits,
    Integer,
    Float,
}

fn class(ty: Type) -> Class {
    use Type as T;
    match ty {
        T::Pred => Class::Predicate,
        T::U8 | T::U16 | T::U32 | T::U64 | T::S8 | T::S16 | T::S32 | T::S64 => Class::Integer,
        T::F16 | T::F16x2 | T::Bf16 | T::Bf16x2 | T::F32 | T::F64 => Class::Float,
        // Packed and narrow formats live in untyped registers.
        _ => Class::Bits,
    }
}

/// Whether an operand of the instruction's type may be a register declared with another (PTX ISA, "Operand Type
/// Information").
fn accepts(instruction: Type, register: Type, width: Width) -> bool {
    if instruction == Type::B128 || register == Type::B128 {
        // Two slots: nothing narrower reads or writes half of it.
        return instruction == register;
    }
    let same_width = instruction.bits() == register.bits();
    let wider = width == Width::AtLeast && register.bits() > instruction.bits();
    match (class(instruction), class(register)) {
        (Class::Predicate, Class::Predicate) => true,
        (Class::Predicate, _) | (_, Class::Predicate) => false,
        (Class::Float, Class::Bits) => same_width,
        (Class::Float, _) => instruction == register,
        (Class::Bits, Class::Float) => same_width,
        (Class::Bits, _) | (_, Class::Bits) => same_width || wider,
        (Class::Integer, Class::Integer) => same_width || wider,
        (Class::Integer, Class::Float) => false,
    }
}

/// A constant in the register representation of a type.
pub(super) fn constant_bits(value: Constant, ty: Type, span: Span) -> Result<u64, PtxError> {
    let wrong = |found: &str| {
        Err(PtxError::OperandType { expected: format!("`{}`", ty.name()).into(), found: found.into(), at: span.into() })
    };
    let bits = ty.bits();
    match (value, class(ty)) {
        (Constant::Integer(value), Class::Bits | Class::Integer) => {
            let least = -(1i128 << (bits.min(64) - 1));
            let most = (1i128 << bits.min(64)) - 1;
            if !(least..=most).contains(&value) {
                return wrong(&format!("{value}, which has more than {bits} bits"));
            }
            Ok(value as u64 & (most as u64))
        }
        (Constant::Float32(value), Class::Bits | Class::Float) if bits == 32 => Ok(value.into()),
        (Constant::Float64(value), Class::Bits) if ty == Type::B64 => Ok(value),
        (Constant::Float64(value), Class::Float) if ty == Type::F64 => Ok(value),
        (Constant::Float64(value), Class::Float) if ty == Type::F32 => {
            Ok((f64::from_bits(value) as f32).to_bits().into())
        }
        (Constant::Float32(value), Class::Float) if ty == Type::F64 => Ok(f64::from(f32::from_bits(value)).to_bits()),
        (Constant::Integer(_), _) => wrong("an integer constant"),
        (Constant::Float32(_) | Constant::Float64(_), _) => wrong("a floating-point constant"),
    }
}

impl<'a> Form<'_, 'a> {
    pub(super) fn wrong_operand(&self, operand: &Operand<'a>, expected: &str) -> PtxError {
        let found = match &operand.kind {
            OperandKind::Name(name) => format!("`{name}`"),
            OperandKind::Component(name, component) => format!("`{name}{component}`"),
            OperandKind::NameOffset(name, offset) => format!("`{name}+{offset}`"),
            OperandKind::Constant(_) => "a constant".into(),
            OperandKind::Vector(elements) => format!("a vector of {}", elements.len()),
            OperandKind::Address(_) => "an address".into(),
            OperandKind::Pair(_) => "a pair".into(),
            OperandKind::Not(name) => format!("`!{name}`"),
            OperandKind::Sink => "`_`".into(),
        };
        PtxError::OperandType { expected: expected.into(), found: found.into(), at: operand.span.into() }
    }

    /// A declared register with its type, or `None` if the operand is something else.
    pub(super) fn lookup(&mut self, name: &'a str, span: Span) -> Result<Option<(Slot, Type)>, PtxError> {
        self.context.scopes.register(self.scope, Name { text: name, span })
    }

    /// A destination or source register, with its declared type.
    pub(super) fn register_of(
        &mut self,
        operand: &Operand<'a>,
        ty: Type,
        width: Width,
    ) -> Result<(Register, Type), PtxError> {
        let OperandKind::Name(name) = operand.kind else {
            return Err(self.wrong_operand(operand, &format!("a `{}` register", ty.name())));
        };
        match self.lookup(name, operand.span)? {
            Some((Slot::Value(register), declared)) if accepts(ty, declared, width) => Ok((register, declared)),
            Some((_, declared)) => Err(PtxError::OperandType {
                expected: format!("`{}`", ty.name()).into(),
                found: format!("`{}` register `{name}`", declared.name()).into(),
                at: operand.span.into(),
            }),
            None => Err(PtxError::Undeclared { name: name.into(), at: operand.span.into() }),
        }
    }

    /// A register of exactly the type's width.
    pub(super) fn register(&mut self, operand: &Operand<'a>, ty: Type) -> Result<Register, PtxError> {
        Ok(self.register_of(operand, ty, Width::Exact)?.0)
    }

    /// The halves of a 128-bit register, the lower first.
    pub(super) fn wide_register(&mut self, operand: &Operand<'a>) -> Result<[Register; 2], PtxError> {
        let low = self.register(operand, Type::B128)?;
        Ok([low, Register(low.0 + 1)])
    }

    /// The same, to be read.
    pub(super) fn wide_source(&mut self, operand: &Operand<'a>) -> Result<[program::Operand; 2], PtxError> {
        Ok(self.wide_register(operand)?.map(program::Operand::Register))
    }

    /// A register, or `_`.
    pub(super) fn register_or_sink(&mut self, operand: &Operand<'a>, ty: Type) -> Result<Option<Register>, PtxError> {
        if matches!(operand.kind, OperandKind::Sink) { Ok(None) } else { self.register(operand, ty).map(Some) }
    }

    /// A register or constant.
    pub(super) fn source(&mut self, operand: &Operand<'a>, ty: Type) -> Result<program::Operand, PtxError> {
        self.source_of(operand, ty, Width::Exact)
    }

    /// A register, constant or address of a variable.
    pub(super) fn source_of(
        &mut self,
        operand: &Operand<'a>,
        ty: Type,
        width: Width,
    ) -> Result<program::Operand, PtxError> {
        match operand.kind {
            OperandKind::Constant(value) => constant_bits(value, ty, operand.span).map(program::Operand::Immediate),
            OperandKind::Name(name) => {
                if self.lookup(name, operand.span)?.is_some() {
                    return Ok(program::Operand::Register(self.register_of(operand, ty, width)?.0));
                }
                self.symbol(operand, name, 0, ty)
            }
            OperandKind::NameOffset(name, offset) => self.symbol(operand, name, offset, ty),
            _ => Err(self.wrong_operand(operand, &format!("a `{}`", ty.name()))),
        }
    }

    /// A symbol's meaning.
    pub(super) fn lookup_symbol(&self, name: &str, span: Span) -> Result<Symbol, PtxError> {
        let context = &self.context;
        let symbol = context.scopes.variable(self.scope, name).or_else(|| context.globals.symbols.get(name).copied());
        match symbol {
            Some(Symbol::Relocated) => Err(PtxError::Unsupported {
                what: format!("`{name}`: initial values that are addresses").into(),
                at: span.into(),
            }),
            Some(symbol) => Ok(symbol),
            None => Err(PtxError::Undeclared { name: name.into(), at: span.into() }),
        }
    }

    fn symbol(&self, operand: &Operand<'a>, name: &str, offset: i64, ty: Type) -> Result<program::Operand, PtxError> {
        if super::special::is_special(name) {
            return Err(self.wrong_operand(operand, "a register or constant (special registers are read by `mov`)"));
        }
        let symbol = self.lookup_symbol(name, operand.span)?;
        let address = matches!(class(ty), Class::Bits | Class::Integer) && ty.bits() >= 32;
        match symbol {
            Symbol::Offset(base) if address => Ok(program::Operand::Immediate(base.wrapping_add_signed(offset))),
            Symbol::Shared(base) if address => {
                Ok(program::Operand::SharedAddress { offset: (base as i64).wrapping_add(offset) })
            }
            Symbol::Variable(index) if address && ty.bits() == 64 => {
                Ok(program::Operand::VariableAddress { index, offset })
            }
            _ => Err(self.wrong_operand(operand, &format!("a `{}`", ty.name()))),
        }
    }

    /// The elements of a vector, or the operand itself as the only one.
    pub(super) fn elements(&self, operand: &'a Operand<'a>) -> &'a [Operand<'a>] {
        match &operand.kind {
            OperandKind::Vector(elements) => elements,
            _ => std::slice::from_ref(operand),
        }
    }

    /// The elements of an operand that must have this many.
    pub(super) fn exact_elements(&self, operand: &'a Operand<'a>, count: usize) -> Result<&'a [Operand<'a>], PtxError> {
        let elements = self.elements(operand);
        if elements.len() == count {
            Ok(elements)
        } else {
            Err(self.wrong_operand(operand, &format!("a vector of {count}")))
        }
    }

    /// A destination predicate.
    pub(super) fn predicate(&mut self, operand: &Operand<'a>) -> Result<Predicate, PtxError> {
        let OperandKind::Name(name) = operand.kind else {
            return Err(self.wrong_operand(operand, "a predicate"));
        };
        self.named_predicate(name, operand.span)
    }

    /// A destination predicate, or `_`.
    pub(super) fn predicate_or_sink(&mut self, operand: &Operand<'a>) -> Result<Option<Predicate>, PtxError> {
        if matches!(operand.kind, OperandKind::Sink) { Ok(None) } else { self.predicate(operand).map(Some) }
    }

    fn named_predicate(&mut self, name: &'a str, span: Span) -> Result<Predicate, PtxError> {
        match self.lookup(name, span)? {
            Some((Slot::Predicate(predicate), _)) => Ok(predicate),
            Some((_, declared)) => Err(PtxError::OperandType {
                expected: "a predicate".into(),
                found: format!("`{}` register `{name}`", declared.name()).into(),
                at: span.into(),
            }),
            None => Err(PtxError::Undeclared { name: name.into(), at: span.into() }),
        }
    }

    /// A source predicate, possibly negated.
    pub(super) fn predicate_operand(&mut self, operand: &Operand<'a>) -> Result<PredicateOperand, PtxError> {
        let (name, negated) = match operand.kind {
            OperandKind::Name(name) => (name, false),
            OperandKind::Not(name) => (name, true),
            _ => return Err(self.wrong_operand(operand, "a predicate")),
        };
        Ok(PredicateOperand { predicate: self.named_predicate(name, operand.span)?, negated })
    }

    /// A source predicate or an integer constant.
    pub(super) fn predicate_source(&mut self, operand: &Operand<'a>) -> Result<PredicateSource, PtxError> {
        match operand.kind {
            OperandKind::Constant(Constant::Integer(value)) => Ok(PredicateSource::Constant(value != 0)),
            _ => self.predicate_operand(operand).map(PredicateSource::Predicate),
        }
    }

    /// An integer constant in a range.
    pub(super) fn immediate(
        &self,
        operand: &Operand<'a>,
        what: &str,
        range: std::ops::RangeInclusive<i128>,
    ) -> Result<u64, PtxError> {
        match operand.kind {
            OperandKind::Constant(Constant::Integer(value)) if range.contains(&value) => Ok(value as u64),
            OperandKind::Constant(Constant::Integer(_)) => Err(PtxError::OutOfRange {
                what: what.into(),
                allowed: format!("from {} to {}", range.start(), range.end()).into(),
                at: operand.span.into(),
            }),
            _ => Err(self.wrong_operand(operand, "an integer constant")),
        }
    }

    /// `d|p` or `d`: the parts.
    pub(super) fn pair<'o>(&self, operand: &'o Operand<'a>) -> (&'o Operand<'a>, Option<&'o Operand<'a>>) {
        match &operand.kind {
            OperandKind::Pair(pair) => (&pair.0, Some(&pair.1)),
            _ => (operand, None),
        }
    }

    /// The instruction's guard.
    pub(super) fn guard(&mut self) -> Result<Option<PredicateOperand>, PtxError> {
        let Some(guard) = self.instruction.guard else { return Ok(None) };
        let predicate = self.named_predicate(guard.predicate.text, guard.predicate.span)?;
        Ok(Some(PredicateOperand { predicate, negated: guard.negated }))
    }
}

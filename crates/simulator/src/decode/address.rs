//! Operands in brackets.

use super::form::Form;
use super::layout::Symbol;
use super::operand::Width;
use crate::program::{Address, Operand as Value, StateSpace};
use crate::ptx::PtxError;
use crate::ptx::ast::{AddressOperand, Constant, Operand, OperandKind, Type};

impl<'a> Form<'_, 'a> {
    fn bracketed<'o>(&self, operand: &'o Operand<'a>) -> Result<&'o AddressOperand<'a>, PtxError> {
        match &operand.kind {
            OperandKind::Address(address) => Ok(address),
            _ => Err(self.wrong_operand(operand, "an address in brackets")),
        }
    }

    /// The space of an address in `.param` space: arguments and results of calls are kept in local memory.
    pub(super) fn parameter_space(&self, operand: &Operand<'a>, space: StateSpace) -> StateSpace {
        let OperandKind::Address(address) = &operand.kind else { return space };
        match address.base.kind {
            OperandKind::Name(name)
                if space == StateSpace::Parameter
                    && matches!(self.context.scopes.variable(self.scope, name), Some(Symbol::Argument { .. })) =>
            {
                StateSpace::Local
            }
            _ => space,
        }
    }

    /// `[a]` in a state space.
    pub(super) fn address(&mut self, operand: &Operand<'a>, space: StateSpace) -> Result<Address, PtxError> {
        let address = self.bracketed(operand)?;
        if address.coordinates.is_some() {
            return Err(self.wrong_operand(operand, "an address without coordinates"));
        }
        // The windows of shared memory and tensor memory fit 32 bits; everything else needs 64.
        let narrow = matches!(space, StateSpace::SharedCta | StateSpace::SharedCluster | StateSpace::Local);
        if matches!(address.base.kind, OperandKind::Constant(_)) && space != StateSpace::Local {
            return Err(self.wrong_operand(&address.base, "a register or variable"));
        }
        self.base_and_offset(address, narrow, true)
    }

    /// `[taddr]`: an address in tensor memory.
    pub(super) fn tensor_memory_address(&mut self, operand: &Operand<'a>) -> Result<Address, PtxError> {
        let address = self.bracketed(operand)?;
        if address.coordinates.is_some() {
            return Err(self.wrong_operand(operand, "an address without coordinates"));
        }
        self.base_and_offset(address, true, false)
    }

    /// `[map, {c0, c1}]`: a tensor map and as many coordinates as it has dimensions.
    pub(super) fn tensor(
        &mut self,
        operand: &'a Operand<'a>,
        dimensions: usize,
    ) -> Result<(Address, Vec<Value>), PtxError> {
        let OperandKind::Address(address) = &operand.kind else {
            return Err(self.wrong_operand(operand, "a tensor map and coordinates in brackets"));
        };
        match &address.coordinates {
            Some(coordinates) if coordinates.len() == dimensions => {
                let map = self.base_and_offset(address, false, true)?;
                let values = coordinates.iter().map(|c| self.source(c, Type::S32)).collect::<Result<_, _>>()?;
                Ok((map, values))
            }
            _ => Err(self.wrong_operand(operand, &format!("a tensor map and {dimensions} coordinates"))),
        }
    }

    fn base_and_offset(&mut self, address: &AddressOperand<'a>, narrow: bool, wide: bool) -> Result<Address, PtxError> {
        let mut offset = address.offset;
        let base = match address.base.kind {
            OperandKind::Name(name) => match self.lookup(name, address.base.span)? {
                Some((_, declared)) => {
                    let ty = if narrow && (!wide || declared.bits() == 32) { Type::B32 } else { Type::B64 };
                    Value::Register(self.register_of(&address.base, ty, Width::Exact)?.0)
                }
                None => match self.lookup_symbol(name, address.base.span)? {
                    Symbol::Variable(index) => {
                        // The offset belongs to the variable, so that bounds can be told from the operand alone.
                        Value::VariableAddress { index, offset: std::mem::take(&mut offset) }
                    }
                    Symbol::Offset(base) | Symbol::Shared(base) | Symbol::Argument { offset: base, .. } => {
                        Value::Immediate(base)
                    }
                    Symbol::Relocated => return Err(self.wrong_operand(&address.base, "an address")),
                },
            },
            OperandKind::Constant(Constant::Integer(value)) => Value::Immediate(value as u64),
            _ => return Err(self.wrong_operand(&address.base, "a register or variable")),
        };
        Ok(Address { base, offset })
    }
}

//! Tokens to syntax tree: instruction operands.

use super::ast::{AddressOperand, Operand, OperandKind};
use super::lexer::TokenKind;
use super::parser::Parser;
use super::{Limits, PtxError};

impl<'a> Parser<'a> {
    /// One operand; `call` if it is one of a call.
    pub(super) fn operand(&mut self, call: bool) -> Result<Operand<'a>, PtxError> {
        match self.peek().kind {
            TokenKind::Punctuation('{') => self.vector(),
            // The results and arguments of a call.
            TokenKind::Punctuation('(') if call => self.list('(', ')'),
            TokenKind::Punctuation('[') => self.address(),
            _ => {
                let first = self.simple()?;
                if matches!(first.kind, OperandKind::Name(_) | OperandKind::Sink) && self.skip('|') {
                    let second = self.simple()?;
                    let span = first.span.to(second.span);
                    return Ok(Operand { kind: OperandKind::Pair(Box::new((first, second))), span });
                }
                Ok(first)
            }
        }
    }

    /// An operand without brackets or braces.
    fn simple(&mut self) -> Result<Operand<'a>, PtxError> {
        let token = self.peek();
        let (kind, end) = match token.kind {
            TokenKind::Word if token.text == "WARP_SZ" => (OperandKind::Constant(self.constant(0)?), token.span),
            TokenKind::Word => {
                self.next();
                let next = self.peek();
                if token.text == "_" {
                    (OperandKind::Sink, token.span)
                } else if next.kind == TokenKind::Dotted {
                    self.next();
                    (OperandKind::Component(token.text, next.text), next.span)
                } else if self.at('+') {
                    let offset = self.offset()?;
                    (OperandKind::NameOffset(token.text, offset), next.span)
                } else {
                    (OperandKind::Name(token.text), token.span)
                }
            }
            TokenKind::Punctuation('!') if self.peek_at(1).kind == TokenKind::Word => {
                self.next();
                let name = self.next();
                (OperandKind::Not(name.text), name.span)
            }
            TokenKind::Number | TokenKind::Punctuation('-' | '+' | '~' | '!' | '(') => {
                (OperandKind::Constant(self.constant(0)?), token.span)
            }
            _ => return Err(self.unexpected("an operand", token)),
        };
        Ok(Operand { kind, span: token.span.to(end) })
    }

    /// `+imm` or `+-imm`; the ISA has no `-imm`.
    fn offset(&mut self) -> Result<i64, PtxError> {
        self.next();
        let token = self.peek();
        let value = self.integer()?;
        i64::try_from(value).map_err(|_| self.unexpected("an offset of 64 bits", token))
    }

    fn vector(&mut self) -> Result<Operand<'a>, PtxError> {
        self.list('{', '}')
    }

    /// Operands between brackets of a kind; those of calls may hold none.
    fn list(&mut self, open: char, close: char) -> Result<Operand<'a>, PtxError> {
        let start = self.punctuation(open)?;
        let mut elements = Vec::new();
        while !(open == '(' && elements.is_empty() && self.at(close)) {
            if elements.len() == Limits::VECTOR_ELEMENTS {
                let limit = Limits::VECTOR_ELEMENTS as u64;
                return Err(PtxError::TooLarge { what: "elements of one vector", limit, at: start.into() });
            }
            elements.push(self.simple()?);
            if !self.skip(',') {
                break;
            }
        }
        let end = self.punctuation(close)?;
        Ok(Operand { kind: OperandKind::Vector(elements), span: start.to(end) })
    }

    fn address(&mut self) -> Result<Operand<'a>, PtxError> {
        let start = self.punctuation('[')?;
        let mut base = self.simple()?;
        let mut offset = 0;
        if let OperandKind::NameOffset(name, value) = base.kind {
            base.kind = OperandKind::Name(name);
            offset = value;
        }
        let coordinates = if self.skip(',') {
            let vector = self.vector()?;
            match vector.kind {
                OperandKind::Vector(elements) => Some(elements),
                _ => None,
            }
        } else {
            None
        };
        let end = self.punctuation(']')?;
        let address = AddressOperand { base, offset, coordinates };
        Ok(Operand { kind: OperandKind::Address(Box::new(address)), span: start.to(end) })
    }
}

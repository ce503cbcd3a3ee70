//! Tokens to syntax tree: variables and parameters.

use super::ast::{Initial, Type, Variable, VariableSpace};
use super::lexer::TokenKind;
use super::parser::Parser;
use super::{Limits, PtxError};

impl<'a> Parser<'a> {
    /// `( .param …, .param … )`.
    pub(super) fn parameters(&mut self) -> Result<Vec<Variable<'a>>, PtxError> {
        self.punctuation('(')?;
        let mut parameters = Vec::new();
        while !self.skip(')') {
            if !parameters.is_empty() {
                self.punctuation(',')?;
            }
            let token = self.next();
            if token.text != ".param" && token.text != ".reg" {
                return Err(self.unexpected("`.param`", token));
            }
            let space = if token.text == ".reg" { VariableSpace::Register } else { VariableSpace::Parameter };
            parameters.push(self.variable(space, false)?);
        }
        Ok(parameters)
    }

    /// The rest of a variable declaration after its state space, up to the semicolon.
    pub(super) fn variables(
        &mut self,
        space: VariableSpace,
        external: bool,
        variables: &mut Vec<Variable<'a>>,
    ) -> Result<(), PtxError> {
        let variable = self.variable(space, external)?;
        let (align, element) = (variable.align, variable.element);
        variables.push(variable);
        while self.skip(',') {
            variables.push(self.declarator(space, external, align, element)?);
        }
        self.punctuation(';')?;
        Ok(())
    }

    fn variable(&mut self, space: VariableSpace, external: bool) -> Result<Variable<'a>, PtxError> {
        let mut align = None;
        let mut vector = 1;
        let mut element = None;
        while self.peek().kind == TokenKind::Dotted {
            let token = self.next();
            match token.text {
                ".align" => align = Some(self.alignment()?),
                ".v2" => vector = 2,
                ".v4" => vector = 4,
                // `.ptr` attributes: where the pointer points and how it is aligned there, not the parameter itself.
                ".ptr" => {
                    while matches!(self.peek().text, ".global" | ".const" | ".local" | ".shared" | ".generic") {
                        self.next();
                    }
                    if self.skip_dotted(".align") {
                        self.alignment()?;
                    }
                }
                text => match Type::parse(text) {
                    Some(found) if found != Type::Pred && element.is_none() => element = Some(found),
                    _ => return Err(self.unexpected("a type or `.align`", token)),
                },
            }
        }
        let Some(element) = element else {
            let token = self.peek();
            return Err(self.unexpected("a type", token));
        };
        let align = align.unwrap_or_else(|| element.bits().div_ceil(8) * vector);
        let mut variable = self.declarator(space, external, align, element)?;
        variable.elements = variable.elements.map(|elements| elements * u64::from(vector));
        Ok(variable)
    }

    fn alignment(&mut self) -> Result<u32, PtxError> {
        let token = self.peek();
        let align = self.bounded("an alignment", Limits::ALIGNMENT)? as u32;
        if !align.is_power_of_two() {
            return Err(self.unexpected("a power of two", token));
        }
        Ok(align)
    }

    fn declarator(
        &mut self,
        space: VariableSpace,
        external: bool,
        align: u32,
        element: Type,
    ) -> Result<Variable<'a>, PtxError> {
        let name = self.name("a variable name")?;
        let mut elements = Some(1u64);
        while self.skip('[') {
            if self.skip(']') {
                elements = None;
                continue;
            }
            let extent = self.bounded("elements of a variable", Limits::VARIABLE_BYTES)?;
            self.punctuation(']')?;
            elements = elements.map(|elements| elements.saturating_mul(extent));
        }
        let element_bytes = u64::from(element.bits().div_ceil(8));
        // Vector types multiply by at most 4 after this; the bound leaves room for that.
        if elements.unwrap_or(0).saturating_mul(element_bytes) > Limits::VARIABLE_BYTES {
            let limit = Limits::VARIABLE_BYTES;
            return Err(PtxError::TooLarge { what: "bytes of a variable", limit, at: name.span.into() });
        }
        let mut initializer = Vec::new();
        if self.skip('=') {
            self.initializer(&mut initializer, Limits::VARIABLE_BYTES, 0)?;
            // `name[] = { … }` takes its size from the initialiser.
            elements = elements.or(Some(initializer.len() as u64));
        }
        Ok(Variable { space, external, name, align, element, elements, initializer })
    }

    fn initializer(&mut self, values: &mut Vec<Initial>, limit: u64, depth: usize) -> Result<(), PtxError> {
        let token = self.peek();
        if values.len() as u64 >= limit || depth > Limits::NESTING {
            return Err(PtxError::TooLarge { what: "elements of an initialiser", limit, at: token.span.into() });
        }
        if self.skip('{') {
            while !self.skip('}') {
                self.initializer(values, limit, depth + 1)?;
                if !self.at('}') {
                    self.punctuation(',')?;
                }
            }
            return Ok(());
        }
        // Addresses: `name`, `name+8`, `generic(name)+8`, and `0xFF(name)` masks of one byte.
        let mask = token.kind == TokenKind::Number && self.peek_at(1).kind == TokenKind::Punctuation('(');
        if token.kind == TokenKind::Word || mask {
            let mut open = 0usize;
            while !(open == 0 && (self.at(',') || self.at('}') || self.at(';'))) {
                let token = self.next();
                match token.kind {
                    TokenKind::Punctuation('(') => open += 1,
                    TokenKind::Punctuation(')') if open > 0 => open -= 1,
                    TokenKind::Word | TokenKind::Number | TokenKind::Punctuation('+' | '-') => {}
                    _ => return Err(self.unexpected("an address or constant", token)),
                }
            }
            values.push(Initial::Address);
            return Ok(());
        }
        values.push(Initial::Constant(self.constant(0)?, token.span));
        Ok(())
    }
}

//! Tokens to syntax tree: modules, functions and statements.

use super::ast::{Function, Guard, Instruction, Module, Name, RegisterNames, Statement, Type, VariableSpace};
use super::lexer::{Token, TokenKind, tokenize};
use super::{Limits, PtxError, Span};

/// Parses a module.
pub(crate) fn parse(source: &str) -> Result<Module<'_>, PtxError> {
    Parser { tokens: tokenize(source)?, position: 0 }.module()
}

pub(super) struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    position: usize,
}

impl<'a> Parser<'a> {
    pub(super) fn peek(&self) -> Token<'a> {
        self.peek_at(0)
    }

    pub(super) fn peek_at(&self, ahead: usize) -> Token<'a> {
        // The last token is `End`, and stays there.
        self.tokens[(self.position + ahead).min(self.tokens.len() - 1)]
    }

    pub(super) fn next(&mut self) -> Token<'a> {
        let token = self.peek();
        self.position = (self.position + 1).min(self.tokens.len() - 1);
        token
    }

    pub(super) fn unexpected(&self, expected: &str, token: Token<'a>) -> PtxError {
        let found = match token.kind {
            TokenKind::End => "the end of the text".into(),
            _ => format!("`{}`", token.text.chars().take(80).collect::<String>()).into(),
        };
        PtxError::Unexpected { expected: expected.into(), found, at: token.span.into() }
    }

    pub(super) fn at(&self, c: char) -> bool {
        self.peek().kind == TokenKind::Punctuation(c)
    }

    pub(super) fn skip(&mut self, c: char) -> bool {
        let found = self.at(c);
        if found {
            self.next();
        }
        found
    }

    pub(super) fn punctuation(&mut self, c: char) -> Result<Span, PtxError> {
        let token = self.next();
        if token.kind == TokenKind::Punctuation(c) {
            return Ok(token.span);
        }
        Err(self.unexpected(&format!("`{c}`"), token))
    }

    pub(super) fn at_dotted(&self, text: &str) -> bool {
        let token = self.peek();
        token.kind == TokenKind::Dotted && token.text == text
    }

    pub(super) fn skip_dotted(&mut self, text: &str) -> bool {
        let found = self.at_dotted(text);
        if found {
            self.next();
        }
        found
    }

    pub(super) fn name(&mut self, expected: &str) -> Result<Name<'a>, PtxError> {
        let token = self.next();
        match token.kind {
            TokenKind::Word => Ok(Name { text: token.text, span: token.span }),
            _ => Err(self.unexpected(expected, token)),
        }
    }

    /// A non-negative integer constant of at most `limit`.
    pub(super) fn bounded(&mut self, what: &'static str, limit: u64) -> Result<u64, PtxError> {
        let token = self.peek();
        let value = self.integer()?;
        match u64::try_from(value) {
            Ok(value) if value <= limit => Ok(value),
            Ok(_) => Err(PtxError::TooLarge { what, limit, at: token.span.into() }),
            Err(_) => Err(self.unexpected("a non-negative integer", token)),
        }
    }

    fn module(mut self) -> Result<Module<'a>, PtxError> {
        let version = self.version()?;
        let token = self.next();
        if token.text != ".target" {
            return Err(self.unexpected("`.target`", token));
        }
        let target = self.name("a target architecture")?;
        while self.skip(',') {
            self.name("a target option")?;
        }
        if self.skip_dotted(".address_size") {
            let token = self.next();
            if token.text != "64" {
                return Err(self.unexpected("`64`", token));
            }
        }
        let mut module = Module { version, target, variables: Vec::new(), functions: Vec::new() };
        while self.peek().kind != TokenKind::End {
            self.module_item(&mut module)?;
        }
        Ok(module)
    }

    fn version(&mut self) -> Result<(u32, u32), PtxError> {
        let token = self.next();
        if token.text != ".version" {
            return Err(self.unexpected("`.version`", token));
        }
        let token = self.next();
        let parts = token.text.split_once('.').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
        parts.ok_or_else(|| self.unexpected("a version such as `8.8`", token))
    }

    fn module_item(&mut self, module: &mut Module<'a>) -> Result<(), PtxError> {
        if self.skip(';') || self.skip_debug()? {
            return Ok(());
        }
        let mut external = false;
        loop {
            let token = self.peek();
            match token.text {
                ".extern" => external = true,
                ".visible" | ".weak" | ".common" => {}
                ".entry" | ".func" => {
                    self.next();
                    let function = self.function(token.text == ".entry")?;
                    module.functions.push(function);
                    return Ok(());
                }
                ".alias" | ".pragma" => {
                    self.skip_to_semicolon()?;
                    return Ok(());
                }
                text => {
                    let Some(space) = variable_space(text) else {
                        return Err(self.unexpected("a declaration or function", token));
                    };
                    if space == VariableSpace::Local || space == VariableSpace::Parameter {
                        return Err(self.unexpected("a variable in `.global`, `.const` or `.shared`", token));
                    }
                    self.next();
                    self.variables(space, external, &mut module.variables)?;
                    return Ok(());
                }
            }
            self.next();
        }
    }

    /// Skips `.file`, `.loc` and `.section`, which carry debug information only.
    fn skip_debug(&mut self) -> Result<bool, PtxError> {
        let start = self.peek();
        if start.kind != TokenKind::Dotted {
            return Ok(false);
        }
        match start.text {
            ".file" | ".loc" => {
                // These end with their line, not with a semicolon.
                while self.peek().kind != TokenKind::End && self.peek().span.line == start.span.line {
                    self.next();
                }
                Ok(true)
            }
            ".section" => {
                while !self.at('{') {
                    let token = self.next();
                    if token.kind == TokenKind::End {
                        return Err(self.unexpected("`{`", token));
                    }
                }
                self.next();
                while !self.skip('}') {
                    let token = self.next();
                    if token.kind == TokenKind::End {
                        return Err(self.unexpected("`}`", token));
                    }
                }
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    fn skip_to_semicolon(&mut self) -> Result<(), PtxError> {
        loop {
            let token = self.next();
            match token.kind {
                TokenKind::Punctuation(';') => return Ok(()),
                TokenKind::End => return Err(self.unexpected("`;`", token)),
                _ => {}
            }
        }
    }

    fn function(&mut self, entry: bool) -> Result<Function<'a>, PtxError> {
        let results = if !entry && self.at('(') { self.parameters()? } else { Vec::new() };
        let name = self.name("a function name")?;
        let parameters = if self.at('(') { self.parameters()? } else { Vec::new() };
        let mut function = Function {
            entry,
            name,
            results,
            parameters,
            required_threads: None,
            max_threads: None,
            required_cluster: None,
            body: None,
        };
        loop {
            let token = self.next();
            match token.text {
                ".reqntid" => function.required_threads = Some(self.extent()?),
                ".maxntid" => function.max_threads = Some(self.extent()?),
                ".reqnctapercluster" => function.required_cluster = Some(self.extent()?),
                ".minnctapersm" | ".maxnctapersm" | ".maxnreg" | ".maxclusterrank" => {
                    self.bounded("a performance directive's value", u32::MAX.into())?;
                }
                ".explicitcluster" | ".blocksareclusters" | ".noreturn" => {}
                ".pragma" => self.skip_to_semicolon()?,
                ";" => return Ok(function),
                "{" => {
                    function.body = Some(self.statements(0)?);
                    return Ok(function);
                }
                _ => return Err(self.unexpected("a directive, `;` or `{`", token)),
            }
        }
    }

    /// One to three extents; those left out are 1.
    fn extent(&mut self) -> Result<[u32; 3], PtxError> {
        let mut extent = [1; 3];
        for (i, slot) in extent.iter_mut().enumerate() {
            if i > 0 && !self.skip(',') {
                break;
            }
            *slot = self.bounded("an extent", u32::MAX.into())? as u32;
        }
        Ok(extent)
    }

    /// Statements up to and including the closing brace.
    fn statements(&mut self, depth: usize) -> Result<Vec<Statement<'a>>, PtxError> {
        let mut statements = Vec::new();
        loop {
            if self.skip_debug()? || self.skip(';') {
                continue;
            }
            let token = self.peek();
            match token.kind {
                TokenKind::Punctuation('}') => {
                    self.next();
                    return Ok(statements);
                }
                TokenKind::Punctuation('{') => {
                    if depth == Limits::NESTING {
                        let limit = Limits::NESTING as u64;
                        return Err(PtxError::TooLarge { what: "nesting of scopes", limit, at: token.span.into() });
                    }
                    self.next();
                    statements.push(Statement::Scope(self.statements(depth + 1)?));
                }
                TokenKind::Punctuation('@') => statements.push(Statement::Instruction(self.instruction()?)),
                TokenKind::Word if self.peek_at(1).kind == TokenKind::Punctuation(':') => {
                    self.next();
                    self.next();
                    let label = Name { text: token.text, span: token.span };
                    match self.peek().text {
                        ".branchtargets" => statements.push(self.branch_targets(label)?),
                        ".callprototype" | ".calltargets" => self.skip_to_semicolon()?,
                        _ => statements.push(Statement::Label(label)),
                    }
                }
                TokenKind::Word => statements.push(Statement::Instruction(self.instruction()?)),
                TokenKind::Dotted => self.declaration(&mut statements)?,
                _ => return Err(self.unexpected("a statement or `}`", token)),
            }
        }
    }

    fn branch_targets(&mut self, label: Name<'a>) -> Result<Statement<'a>, PtxError> {
        self.next();
        let mut targets = vec![self.name("a label")?];
        while self.skip(',') {
            targets.push(self.name("a label")?);
        }
        self.punctuation(';')?;
        Ok(Statement::BranchTargets { label, targets })
    }

    fn declaration(&mut self, statements: &mut Vec<Statement<'a>>) -> Result<(), PtxError> {
        let token = self.next();
        match token.text {
            ".reg" => statements.push(self.registers()?),
            ".pragma" => self.skip_to_semicolon()?,
            text => {
                let Some(space) = variable_space(text) else {
                    return Err(self.unexpected("a declaration", token));
                };
                let mut variables = Vec::new();
                self.variables(space, false, &mut variables)?;
                statements.extend(variables.into_iter().map(Statement::Variable));
            }
        }
        Ok(())
    }

    fn registers(&mut self) -> Result<Statement<'a>, PtxError> {
        let token = self.next();
        let Some(element) = Type::parse(token.text) else {
            return Err(self.unexpected("a register type", token));
        };
        let mut names = Vec::new();
        loop {
            let name = self.name("a register name")?;
            let count = if self.skip('<') {
                let count = self.bounded("registers of one declaration", Limits::REGISTER_RANGE)? as u32;
                self.punctuation('>')?;
                Some(count)
            } else {
                None
            };
            names.push(RegisterNames { name, count });
            if !self.skip(',') {
                break;
            }
        }
        self.punctuation(';')?;
        Ok(Statement::Registers { element, names })
    }

    fn instruction(&mut self) -> Result<Instruction<'a>, PtxError> {
        let guard = if self.skip('@') {
            let negated = self.skip('!');
            Some(Guard { predicate: self.name("a predicate")?, negated })
        } else {
            None
        };
        let opcode = self.name("an instruction")?;
        let mut modifiers = Vec::new();
        while self.peek().kind == TokenKind::Dotted {
            let token = self.next();
            if modifiers.len() == Limits::MODIFIERS {
                let limit = Limits::MODIFIERS as u64;
                return Err(PtxError::TooLarge { what: "modifiers of one instruction", limit, at: token.span.into() });
            }
            modifiers.push(Name { text: token.text, span: token.span });
        }
        let mut instruction = Instruction { guard, opcode, modifiers, operands: Vec::new() };
        if self.skip(';') {
            return Ok(instruction);
        }
        loop {
            if instruction.operands.len() == Limits::OPERANDS {
                let at = self.peek().span.into();
                let limit = Limits::OPERANDS as u64;
                return Err(PtxError::TooLarge { what: "operands of one instruction", limit, at });
            }
            instruction.operands.push(self.operand(opcode.text == "call")?);
            let token = self.next();
            match token.kind {
                TokenKind::Punctuation(',') => {}
                TokenKind::Punctuation(';') => return Ok(instruction),
                _ => return Err(self.unexpected("`,` or `;`", token)),
            }
        }
    }
}

fn variable_space(text: &str) -> Option<VariableSpace> {
    Some(match text {
        ".global" => VariableSpace::Global,
        ".const" => VariableSpace::Constant,
        ".shared" | ".shared::cta" => VariableSpace::Shared,
        ".local" => VariableSpace::Local,
        ".param" => VariableSpace::Parameter,
        _ => return None,
    })
}

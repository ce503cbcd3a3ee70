//! An instruction being decoded: its modifiers are taken one by one, and none may be left over.

use super::kernel::Context;
use super::target::Needs;
use crate::ptx::ast::{Instruction, Name, Operand, Type};
use crate::ptx::{PtxError, Span};

/// See the module's documentation. Modifiers are looked up by text wherever they stand: assemblers accept, for instance,
/// `atom.global.acquire` as well as `atom.acquire.global`.
pub(super) struct Form<'f, 'a> {
    pub(super) instruction: &'a Instruction<'a>,
    pub(super) scope: usize,
    pub(super) context: &'f mut Context<'a>,
    /// Bit i: modifier i has been taken.
    taken: u32,
}

impl<'f, 'a> Form<'f, 'a> {
    pub(super) fn new(instruction: &'a Instruction<'a>, scope: usize, context: &'f mut Context<'a>) -> Self {
        Self { instruction, scope, context, taken: 0 }
    }

    pub(super) fn span(&self) -> Span {
        self.instruction.span()
    }

    pub(super) fn mnemonic(&self) -> Box<str> {
        self.instruction.mnemonic().into()
    }

    fn left(&self) -> impl Iterator<Item = (usize, Name<'a>)> + use<'a> {
        let taken = self.taken;
        self.instruction.modifiers.iter().copied().enumerate().filter(move |(i, _)| taken & (1 << i) == 0)
    }

    /// The first modifier not taken yet.
    pub(super) fn peek(&self) -> &'a str {
        self.left().next().map_or("", |(_, modifier)| modifier.text)
    }

    /// Takes a modifier if it is there.
    pub(super) fn has(&mut self, text: &str) -> bool {
        let found = self.left().find(|(_, modifier)| modifier.text == text);
        if let Some((i, _)) = found {
            self.taken |= 1 << i;
        }
        found.is_some()
    }

    /// Takes a modifier that must be there.
    pub(super) fn require(&mut self, text: &str) -> Result<(), PtxError> {
        if self.has(text) { Ok(()) } else { Err(self.missing(&format!("`{text}`"))) }
    }

    /// Takes the first modifier that stands in the table.
    pub(super) fn choose<T: Copy>(&mut self, table: &[(&str, T)]) -> Option<T> {
        for (i, modifier) in self.left() {
            if let Some((_, value)) = table.iter().find(|(text, _)| *text == modifier.text) {
                self.taken |= 1 << i;
                return Some(*value);
            }
        }
        None
    }

    /// Takes the first modifier that stands in the table; one must.
    pub(super) fn choose_required<T: Copy>(&mut self, what: &str, table: &[(&str, T)]) -> Result<T, PtxError> {
        match self.choose(table) {
            Some(value) => Ok(value),
            None => {
                let texts: Vec<_> = table.iter().map(|(text, _)| format!("`{text}`")).collect();
                Err(self.missing(&format!("{what} ({})", texts.join(", "))))
            }
        }
    }

    /// Takes the first modifier that is a type, which must be one of those allowed.
    pub(super) fn data_type(&mut self, allowed: &[Type]) -> Result<Type, PtxError> {
        let Some((i, modifier, ty)) = self.left().find_map(|(i, m)| Some((i, m, Type::parse(m.text)?))) else {
            let texts: Vec<_> = allowed.iter().map(|ty| format!("`{}`", ty.name())).collect();
            return Err(self.missing(&format!("a type ({})", texts.join(", "))));
        };
        if !allowed.contains(&ty) {
            return Err(self.unexpected_modifier(modifier));
        }
        self.taken |= 1 << i;
        Ok(ty)
    }

    /// The type that [`Self::data_type`] would take.
    pub(super) fn peek_type(&self) -> Option<Type> {
        self.left().find_map(|(_, modifier)| Type::parse(modifier.text))
    }

    /// Takes and drops cache hints, which have no architectural effect. Returns whether `.L2::cache_hint` is among them,
    /// in which case a cache-policy operand follows.
    pub(super) fn cache_hints(&mut self) -> bool {
        const HINTS: [&str; 19] = [
            ".L1::evict_normal",
            ".L1::evict_unchanged",
            ".L1::evict_first",
            ".L1::evict_last",
            ".L1::no_allocate",
            ".L2::evict_normal",
            ".L2::evict_first",
            ".L2::evict_last",
            ".L2::64B",
            ".L2::128B",
            ".L2::256B",
            ".ca",
            ".cg",
            ".cs",
            ".lu",
            ".cv",
            ".wb",
            ".wt",
            ".unified",
        ];
        for (i, modifier) in self.left() {
            if HINTS.contains(&modifier.text) {
                self.taken |= 1 << i;
            }
        }
        self.has(".L2::cache_hint")
    }

    /// Every modifier must have been taken.
    pub(super) fn finish(&self) -> Result<(), PtxError> {
        match self.left().next() {
            None => Ok(()),
            Some((_, modifier)) => Err(self.unexpected_modifier(modifier)),
        }
    }

    /// The instruction needs a target.
    pub(super) fn needs(&self, needs: Needs) -> Result<(), PtxError> {
        if self.context.target.has(needs) {
            return Ok(());
        }
        Err(PtxError::Target {
            instruction: self.mnemonic(),
            needs: needs.text(),
            target: self.context.target.name.clone(),
            at: self.span().into(),
        })
    }

    /// The operands, whose number must be in the range.
    pub(super) fn operands(&self, at_least: usize, at_most: usize) -> Result<&'a [Operand<'a>], PtxError> {
        let operands = &self.instruction.operands;
        if (at_least..=at_most).contains(&operands.len()) {
            return Ok(operands);
        }
        let expected =
            if at_least == at_most { at_least.to_string() } else { format!("{at_least} to {at_most}") }.into();
        Err(PtxError::OperandCount {
            instruction: self.mnemonic(),
            expected,
            found: operands.len() as u32,
            at: self.span().into(),
        })
    }

    /// Exactly `N` operands.
    pub(super) fn exactly<const N: usize>(&self) -> Result<&'a [Operand<'a>; N], PtxError> {
        let operands = self.operands(N, N)?;
        Ok(operands.try_into().expect("the length was checked"))
    }

    pub(super) fn unexpected_modifier(&self, modifier: Name<'a>) -> PtxError {
        PtxError::UnexpectedModifier {
            instruction: self.mnemonic(),
            modifier: modifier.text.into(),
            at: modifier.span.into(),
        }
    }

    pub(super) fn missing(&self, expected: &str) -> PtxError {
        PtxError::MissingModifier { instruction: self.mnemonic(), expected: expected.into(), at: self.span().into() }
    }

    pub(super) fn unknown(&self) -> PtxError {
        PtxError::UnknownInstruction { instruction: self.mnemonic(), at: self.span().into() }
    }

    pub(super) fn unsupported(&self, what: &str) -> PtxError {
        PtxError::Unsupported { what: format!("`{}`{what}", self.mnemonic()).into(), at: self.span().into() }
    }
}

//! What can be wrong with a PTX text, and how it is shown.

use super::Span;
use std::fmt;

/// Where in the text an error is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// 1-based line.
    pub line: u32,
    /// 1-based column, in characters.
    pub column: u32,
    /// Characters that the error covers.
    pub length: u32,
    /// The line's text.
    pub source_line: Box<str>,
}

impl From<Span> for Location {
    fn from(span: Span) -> Self {
        Self { line: span.line, column: span.column, length: span.length, source_line: "".into() }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// Why a PTX text was refused. `Display` gives one line; [`PtxError::diagnostic`] quotes the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PtxError {
    /// A character that starts no token.
    #[error("unexpected character `{character}`")]
    UnexpectedCharacter {
        /// The character.
        character: char,
        /// Where.
        at: Location,
    },
    /// A comment or string without an end.
    #[error("unterminated {what}")]
    Unterminated {
        /// `comment` or `string`.
        what: &'static str,
        /// Where it starts.
        at: Location,
    },
    /// A literal that does not denote a value of its type.
    #[error("invalid literal `{text}`: {reason}")]
    InvalidLiteral {
        /// The literal.
        text: Box<str>,
        /// What is wrong with it.
        reason: &'static str,
        /// Where.
        at: Location,
    },
    /// A token that does not fit the grammar.
    #[error("expected {expected}, found {found}")]
    Unexpected {
        /// What the grammar allows here.
        expected: Box<str>,
        /// What stands here.
        found: Box<str>,
        /// Where.
        at: Location,
    },
    /// More of something than the simulator accepts.
    #[error("too large: {what}, at most {limit}")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// The most that is accepted.
        limit: u64,
        /// Where.
        at: Location,
    },
    /// A name declared twice in one scope.
    #[error("`{name}` is already declared in this scope")]
    Redeclared {
        /// The name.
        name: Box<str>,
        /// The second declaration.
        at: Location,
    },
    /// A name that is not declared.
    #[error("`{name}` is not declared")]
    Undeclared {
        /// The name.
        name: Box<str>,
        /// The use.
        at: Location,
    },
    /// A branch to a label that does not exist in the function.
    #[error("no label `{name}` in this function")]
    UnknownLabel {
        /// The label.
        name: Box<str>,
        /// The use.
        at: Location,
    },
    /// An instruction that the ISA does not have.
    #[error("unknown instruction `{instruction}`")]
    UnknownInstruction {
        /// The instruction with its modifiers.
        instruction: Box<str>,
        /// Where.
        at: Location,
    },
    /// A modifier that the instruction does not have, or not together with its other modifiers.
    #[error("`{instruction}` does not take `{modifier}` here")]
    UnexpectedModifier {
        /// The instruction with its modifiers.
        instruction: Box<str>,
        /// The modifier.
        modifier: Box<str>,
        /// Where.
        at: Location,
    },
    /// A modifier that the instruction needs.
    #[error("`{instruction}` needs {expected}")]
    MissingModifier {
        /// The instruction with its modifiers.
        instruction: Box<str>,
        /// What is missing.
        expected: Box<str>,
        /// Where.
        at: Location,
    },
    /// Legal PTX that the simulator does not execute.
    #[error("unsupported: {what}")]
    Unsupported {
        /// What is not supported.
        what: Box<str>,
        /// Where.
        at: Location,
    },
    /// Too few or too many operands.
    #[error("`{instruction}` takes {expected} operands, found {found}")]
    OperandCount {
        /// The instruction with its modifiers.
        instruction: Box<str>,
        /// How many it takes.
        expected: Box<str>,
        /// How many there are.
        found: u32,
        /// Where.
        at: Location,
    },
    /// An operand of the wrong kind or type.
    #[error("expected {expected}, found {found}")]
    OperandType {
        /// What the instruction takes here.
        expected: Box<str>,
        /// What stands here.
        found: Box<str>,
        /// Where.
        at: Location,
    },
    /// A constant outside the range that the instruction allows.
    #[error("{what} must be {allowed}")]
    OutOfRange {
        /// What the constant is.
        what: Box<str>,
        /// The allowed values.
        allowed: Box<str>,
        /// Where.
        at: Location,
    },
    /// The module's `.target` lacks the instruction.
    #[error("`{instruction}` needs {needs}, but the module's target is {target}")]
    Target {
        /// The instruction.
        instruction: Box<str>,
        /// Targets that have it.
        needs: &'static str,
        /// The module's target.
        target: Box<str>,
        /// Where.
        at: Location,
    },
}

impl PtxError {
    /// Where the error is.
    pub fn location(&self) -> &Location {
        match self {
            Self::UnexpectedCharacter { at, .. }
            | Self::Unterminated { at, .. }
            | Self::InvalidLiteral { at, .. }
            | Self::Unexpected { at, .. }
            | Self::TooLarge { at, .. }
            | Self::Redeclared { at, .. }
            | Self::Undeclared { at, .. }
            | Self::UnknownLabel { at, .. }
            | Self::UnknownInstruction { at, .. }
            | Self::UnexpectedModifier { at, .. }
            | Self::MissingModifier { at, .. }
            | Self::Unsupported { at, .. }
            | Self::OperandCount { at, .. }
            | Self::OperandType { at, .. }
            | Self::OutOfRange { at, .. }
            | Self::Target { at, .. } => at,
        }
    }

    fn location_mut(&mut self) -> &mut Location {
        match self {
            Self::UnexpectedCharacter { at, .. }
            | Self::Unterminated { at, .. }
            | Self::InvalidLiteral { at, .. }
            | Self::Unexpected { at, .. }
            | Self::TooLarge { at, .. }
            | Self::Redeclared { at, .. }
            | Self::Undeclared { at, .. }
            | Self::UnknownLabel { at, .. }
            | Self::UnknownInstruction { at, .. }
            | Self::UnexpectedModifier { at, .. }
            | Self::MissingModifier { at, .. }
            | Self::Unsupported { at, .. }
            | Self::OperandCount { at, .. }
            | Self::OperandType { at, .. }
            | Self::OutOfRange { at, .. }
            | Self::Target { at, .. } => at,
        }
    }

    /// Fills in the text of the line, which the parts that find errors do not carry around.
    pub(crate) fn quoting(mut self, ptx: &str) -> Self {
        let at = self.location_mut();
        if let Some(line) = ptx.lines().nth(at.line.saturating_sub(1) as usize) {
            at.source_line = line.into();
        }
        self
    }

    /// The error with the line it is on and a caret under the place:
    ///
    /// ```text
    /// error: unknown instruction `frobnicate.u32`
    ///  --> 12:5
    ///    |
    /// 12 |     frobnicate.u32 %r1, %r2;
    ///    |     ^^^^^^^^^^^^^^
    /// ```
    pub fn diagnostic(&self) -> String {
        let at = self.location();
        let number = at.line.to_string();
        let margin = " ".repeat(number.len());
        // A line of machine-written PTX can be long; what matters is near the column.
        let line: String = at.source_line.chars().take(at.column as usize + 160).collect();
        // Tabs stay tabs, so that the caret lines up whatever their width.
        let lead: String = line
            .chars()
            .take(at.column.saturating_sub(1) as usize)
            .map(|c| if c == '\t' { '\t' } else { ' ' })
            .collect();
        let room = (line.chars().count() as u32 + 1).saturating_sub(at.column).max(1);
        let carets = "^".repeat(at.length.clamp(1, room) as usize);
        format!(
            "error: {self}\n{margin}--> {at}\n{margin} |\n{number} | {line}\n{margin} | {lead}{carets}\n",
            margin = margin,
        )
    }
}

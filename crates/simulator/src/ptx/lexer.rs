//! Text to tokens.

use super::{Limits, PtxError};

/// A place in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    /// 1-based line.
    pub(crate) line: u32,
    /// 1-based column, in characters.
    pub(crate) column: u32,
    /// Characters.
    pub(crate) length: u32,
}

impl Span {
    /// From the start of `self` to the end of `last`, where both are on one line.
    pub(crate) fn to(self, last: Self) -> Self {
        if last.line == self.line && last.column >= self.column {
            Self { length: last.column - self.column + last.length, ..self }
        } else {
            self
        }
    }
}

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// An identifier, `%` included; also opcodes.
    Word,
    /// A directive, a type or a modifier: `.reg`, `.b32`, `.shared::cta`. The dot is part of the text.
    Dotted,
    /// An integer or floating literal.
    Number,
    /// A string, quotes included.
    Text,
    /// One character of punctuation.
    Punctuation(char),
    /// End of the text.
    End,
}

/// A token with its text and place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) kind: TokenKind,
    pub(crate) text: &'a str,
    pub(crate) span: Span,
}

/// Splits a text into tokens; the last one is [`TokenKind::End`].
pub(crate) fn tokenize(source: &str) -> Result<Vec<Token<'_>>, PtxError> {
    let mut lexer = Lexer { source, position: 0, line: 1, column: 1 };
    if source.len() > Limits::TEXT_BYTES {
        let at = lexer.span(0).into();
        return Err(PtxError::TooLarge { what: "bytes of PTX text", limit: Limits::TEXT_BYTES as u64, at });
    }
    let mut tokens = Vec::with_capacity(source.len() / 4);
    loop {
        lexer.skip_blank()?;
        let token = lexer.token()?;
        tokens.push(token);
        if token.kind == TokenKind::End {
            return Ok(tokens);
        }
    }
}

struct Lexer<'a> {
    source: &'a str,
    position: usize,
    line: u32,
    column: u32,
}

fn continues_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '$'
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.source[self.position..]
    }

    fn span(&self, length: u32) -> Span {
        Span { line: self.line, column: self.column, length }
    }

    fn advance(&mut self, bytes: usize) {
        let taken = &self.source[self.position..self.position + bytes];
        for c in taken.chars() {
            if c == '\n' {
                self.line += 1;
                self.column = 1;
            } else {
                self.column += 1;
            }
        }
        self.position += bytes;
    }

    fn skip_blank(&mut self) -> Result<(), PtxError> {
        loop {
            let rest = self.rest();
            let blank = rest.len() - rest.trim_start().len();
            self.advance(blank);
            let rest = self.rest();
            if rest.starts_with("//") {
                self.advance(rest.find('\n').unwrap_or(rest.len()));
            } else if let Some(comment) = rest.strip_prefix("/*") {
                let Some(end) = comment.find("*/") else {
                    return Err(PtxError::Unterminated { what: "comment", at: self.span(2).into() });
                };
                self.advance(end + 4);
            } else {
                return Ok(());
            }
        }
    }

    fn token(&mut self) -> Result<Token<'a>, PtxError> {
        let rest = self.rest();
        let mut characters = rest.chars();
        let Some(first) = characters.next() else {
            return Ok(Token { kind: TokenKind::End, text: "", span: self.span(1) });
        };
        let second = characters.next().unwrap_or(' ');
        let (kind, bytes) = if first.is_ascii_digit() {
            (TokenKind::Number, number_length(rest))
        } else if first.is_ascii_alphabetic()
            || first == '_'
            || first == '$'
            || (first == '%' && continues_word(second))
        {
            (TokenKind::Word, 1 + word_length(&rest[1..]))
        } else if first == '.' && continues_word(second) {
            (TokenKind::Dotted, 1 + qualified_length(&rest[1..]))
        } else if first == '"' {
            let Some(end) = rest[1..].find('"') else {
                return Err(PtxError::Unterminated { what: "string", at: self.span(1).into() });
            };
            (TokenKind::Text, end + 2)
        } else if "{}()[]<>,;:@!|&^~+-*/%=?".contains(first) {
            (TokenKind::Punctuation(first), 1)
        } else {
            return Err(PtxError::UnexpectedCharacter { character: first, at: self.span(1).into() });
        };
        let text = &rest[..bytes];
        let token = Token { kind, text, span: self.span(text.chars().count() as u32) };
        self.advance(bytes);
        Ok(token)
    }
}

fn word_length(text: &str) -> usize {
    text.find(|c| !continues_word(c)).unwrap_or(text.len())
}

/// Length of `a::b::c`, the name of a qualified modifier without its dot.
fn qualified_length(text: &str) -> usize {
    let mut length = word_length(text);
    while text[length..].starts_with("::") {
        let part = word_length(&text[length + 2..]);
        if part == 0 {
            break;
        }
        length += 2 + part;
    }
    length
}

/// Length of a literal: a word (`0x1F`, `0f3F800000`, `12U`), or a decimal fraction with an exponent (`8.8`, `1.5e-3`).
fn number_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let digits = |from: usize| bytes[from..].iter().take_while(|b| b.is_ascii_digit()).count();
    let whole = digits(0);
    let mut length = whole;
    let fraction = bytes.get(whole) == Some(&b'.') && bytes.get(whole + 1).is_some_and(u8::is_ascii_digit);
    if fraction {
        length += 1 + digits(whole + 1);
    }
    let exponent = matches!(bytes.get(length), Some(b'e' | b'E'));
    if exponent {
        let sign = usize::from(matches!(bytes.get(length + 1), Some(b'+' | b'-')));
        let power = digits(length + 1 + sign);
        if power > 0 {
            return length + 1 + sign + power;
        }
    }
    if fraction { length } else { word_length(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(source: &str) -> Vec<&str> {
        tokenize(source).unwrap().iter().map(|token| token.text).collect()
    }

    #[test]
    fn modifiers_numbers_and_comments() {
        assert_eq!(
            texts("ld.shared::cta.v2.b32 {%r1, _}, [%rd1+-4]; // end\n.version 8.8 /* x\ny */ 0f3F800000 1.5e-3 12U"),
            [
                "ld",
                ".shared::cta",
                ".v2",
                ".b32",
                "{",
                "%r1",
                ",",
                "_",
                "}",
                ",",
                "[",
                "%rd1",
                "+",
                "-",
                "4",
                "]",
                ";",
                ".version",
                "8.8",
                "0f3F800000",
                "1.5e-3",
                "12U",
                ""
            ]
        );
    }

    #[test]
    fn places_are_one_based() {
        let tokens = tokenize("a\n  .b32").unwrap();
        assert_eq!(tokens[1].span, Span { line: 2, column: 3, length: 4 });
    }
}

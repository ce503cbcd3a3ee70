//! Literals and constant expressions (PTX ISA, "Constants" and "Constant Expressions").

use super::ast::Constant;
use super::lexer::TokenKind;
use super::parser::Parser;
use super::{Limits, PtxError, Span};

/// The value of a literal.
pub(super) fn literal(text: &str, span: Span) -> Result<Constant, PtxError> {
    let invalid = |reason| PtxError::InvalidLiteral { text: text.into(), reason, at: span.into() };
    let lower = text.to_ascii_lowercase();
    if let Some(digits) = lower.strip_prefix("0f") {
        let value = (digits.len() == 8).then(|| u32::from_str_radix(digits, 16).ok()).flatten();
        return value.map(Constant::Float32).ok_or_else(|| invalid("`0f` takes 8 hexadecimal digits"));
    }
    if let Some(digits) = lower.strip_prefix("0d") {
        let value = (digits.len() == 16).then(|| u64::from_str_radix(digits, 16).ok()).flatten();
        return value.map(Constant::Float64).ok_or_else(|| invalid("`0d` takes 16 hexadecimal digits"));
    }
    let hexadecimal = lower.starts_with("0x");
    if !hexadecimal && (lower.contains('.') || (lower.contains('e') && !lower.contains('x'))) {
        return match lower.parse::<f64>() {
            Ok(value) => Ok(Constant::Float64(value.to_bits())),
            Err(_) => Err(invalid("not a number")),
        };
    }
    let digits = lower.strip_suffix('u').unwrap_or(&lower);
    let (digits, radix) = match digits.as_bytes() {
        [b'0', b'x', ..] => (&digits[2..], 16),
        [b'0', b'b', ..] => (&digits[2..], 2),
        [b'0', _, ..] => (&digits[1..], 8),
        _ => (digits, 10),
    };
    match u64::from_str_radix(digits, radix) {
        Ok(value) => Ok(Constant::Integer(value.into())),
        Err(error) if *error.kind() == std::num::IntErrorKind::PosOverflow => Err(invalid("more than 64 bits")),
        Err(_) => Err(invalid("not a number")),
    }
}

impl<'a> Parser<'a> {
    /// A constant expression; integers are kept to 64 bits, as the ISA evaluates them.
    pub(super) fn constant(&mut self, depth: usize) -> Result<Constant, PtxError> {
        self.binary(0, depth)
    }

    /// A constant expression that must be an integer.
    pub(super) fn integer(&mut self) -> Result<i128, PtxError> {
        let span = self.peek().span;
        match self.constant(0)? {
            Constant::Integer(value) => Ok(value),
            Constant::Float32(_) | Constant::Float64(_) => Err(PtxError::Unexpected {
                expected: "an integer".into(),
                found: "a floating-point constant".into(),
                at: span.into(),
            }),
        }
    }

    fn binary(&mut self, level: usize, depth: usize) -> Result<Constant, PtxError> {
        // Lowest precedence first.
        const LEVELS: [&[&str]; 6] = [&["|"], &["^"], &["&"], &["<<", ">>"], &["+", "-"], &["*", "/", "%"]];
        if level == LEVELS.len() {
            return self.unary(depth);
        }
        let mut left = self.binary(level + 1, depth)?;
        while let Some(&operator) = LEVELS[level].iter().find(|operator| self.at_operator(operator)) {
            let span = self.peek().span;
            for _ in 0..operator.len() {
                self.next();
            }
            let right = self.binary(level + 1, depth)?;
            let (Constant::Integer(a), Constant::Integer(b)) = (left, right) else {
                return Err(PtxError::Unexpected {
                    expected: "integers around the operator".into(),
                    found: "a floating-point constant".into(),
                    at: span.into(),
                });
            };
            left = Constant::Integer(apply(operator, a, b).ok_or(PtxError::InvalidLiteral {
                text: operator.into(),
                reason: "division by zero",
                at: span.into(),
            })?);
        }
        Ok(left)
    }

    fn at_operator(&self, operator: &str) -> bool {
        operator.chars().enumerate().all(|(i, c)| self.peek_at(i).kind == TokenKind::Punctuation(c))
    }

    fn unary(&mut self, depth: usize) -> Result<Constant, PtxError> {
        let token = self.next();
        if depth > Limits::NESTING {
            let limit = Limits::NESTING as u64;
            return Err(PtxError::TooLarge { what: "nesting of constant expressions", limit, at: token.span.into() });
        }
        match token.kind {
            TokenKind::Number => literal(token.text, token.span),
            TokenKind::Punctuation('(') => {
                let value = self.constant(depth + 1)?;
                self.punctuation(')')?;
                Ok(value)
            }
            TokenKind::Punctuation(sign @ ('-' | '+' | '~' | '!')) => {
                let value = self.unary(depth + 1)?;
                Ok(match (sign, value) {
                    ('+', value) => value,
                    ('-', Constant::Integer(value)) => Constant::Integer(wrap(-value)),
                    ('-', Constant::Float32(bits)) => Constant::Float32(bits ^ (1 << 31)),
                    ('-', Constant::Float64(bits)) => Constant::Float64(bits ^ (1 << 63)),
                    ('~', Constant::Integer(value)) => Constant::Integer(wrap(!value)),
                    ('!', Constant::Integer(value)) => Constant::Integer(i128::from(value == 0)),
                    _ => return Err(self.unexpected("an integer", token)),
                })
            }
            TokenKind::Word if token.text == "WARP_SZ" => Ok(Constant::Integer(32)),
            _ => Err(self.unexpected("a constant", token)),
        }
    }
}

/// Into the range of `.s64` if it fits there, else of `.u64`, else its low 64 bits.
fn wrap(value: i128) -> i128 {
    if (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&value) { value } else { i128::from(value as i64) }
}

fn apply(operator: &str, a: i128, b: i128) -> Option<i128> {
    let shift = (b & 63) as u32;
    Some(wrap(match operator {
        "|" => a | b,
        "^" => a ^ b,
        "&" => a & b,
        "<<" => i128::from((a as u64) << shift),
        ">>" => a >> shift,
        "+" => a + b,
        "-" => a - b,
        "*" => a.wrapping_mul(b),
        "/" => a.checked_div(b)?,
        _ => a.checked_rem(b)?,
    }))
}

//! Element types: their names, and values to bytes and back.

use std::str::FromStr;

use half::{bf16, f16};
use simulator::node::TensorMapElement;

use crate::error::CliError;

/// A type of scalars and of buffers' elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Element {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    U64,
    I64,
    F16,
    Bf16,
    F32,
    F64,
}

const ALL: [Element; 12] = [
    Element::U8,
    Element::I8,
    Element::U16,
    Element::I16,
    Element::U32,
    Element::I32,
    Element::U64,
    Element::I64,
    Element::F16,
    Element::Bf16,
    Element::F32,
    Element::F64,
];

impl FromStr for Element {
    type Err = CliError;

    fn from_str(text: &str) -> Result<Self, CliError> {
        ALL.into_iter().find(|element| element.name() == text).ok_or_else(|| CliError::Type {
            given: text.to_owned(),
            wanted: "u8, i8, u16, i16, u32, i32, u64, i64, f16, bf16, f32, f64",
        })
    }
}

impl Element {
    pub fn name(self) -> &'static str {
        match self {
            Self::U8 => "u8",
            Self::I8 => "i8",
            Self::U16 => "u16",
            Self::I16 => "i16",
            Self::U32 => "u32",
            Self::I32 => "i32",
            Self::U64 => "u64",
            Self::I64 => "i64",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::F32 => "f32",
            Self::F64 => "f64",
        }
    }

    pub fn bytes(self) -> u32 {
        match self {
            Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 | Self::F16 | Self::Bf16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }

    pub fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::Bf16 | Self::F32 | Self::F64)
    }

    /// The type in a tensor map, which knows no signs and no 64-bit floats.
    pub fn tensor_map(self) -> TensorMapElement {
        match self {
            Self::U8 | Self::I8 => TensorMapElement::U8,
            Self::U16 | Self::I16 => TensorMapElement::U16,
            Self::U32 | Self::I32 => TensorMapElement::U32,
            Self::U64 | Self::I64 | Self::F64 => TensorMapElement::U64,
            Self::F16 => TensorMapElement::F16,
            Self::Bf16 => TensorMapElement::Bf16,
            Self::F32 => TensorMapElement::F32,
        }
    }

    /// The little-endian bytes of a value written as text; integers may be hexadecimal.
    pub fn parse(self, text: &str) -> Result<Vec<u8>, CliError> {
        let wrong = || CliError::Value { given: text.to_owned(), wanted: self.name() };
        if self.is_float() {
            return Ok(self.round(text.parse().map_err(|_| wrong())?));
        }
        let (negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
        let magnitude = match digits.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => digits.parse(),
        };
        let magnitude = i128::from(magnitude.map_err(|_| wrong())?);
        let value = if negative { -magnitude } else { magnitude };
        let bits = 8 * self.bytes();
        let (low, high) = match self {
            Self::I8 | Self::I16 | Self::I32 | Self::I64 => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
            _ => (0, (1_i128 << bits) - 1),
        };
        if !(low..=high).contains(&value) {
            return Err(wrong());
        }
        Ok(value.to_le_bytes()[..self.bytes() as usize].to_vec())
    }

    /// The bytes of a float rounded to the type, or of an integer wrapped to it.
    pub fn round(self, value: f64) -> Vec<u8> {
        match self {
            Self::F16 => f16::from_f64(value).to_le_bytes().to_vec(),
            Self::Bf16 => bf16::from_f64(value).to_le_bytes().to_vec(),
            Self::F32 => (value as f32).to_le_bytes().to_vec(),
            Self::F64 => value.to_le_bytes().to_vec(),
            _ => (value as i128).to_le_bytes()[..self.bytes() as usize].to_vec(),
        }
    }

    /// A value as a person writes it.
    pub fn show(self, bytes: &[u8]) -> String {
        let mut wide = [0; 8];
        wide[..bytes.len()].copy_from_slice(bytes);
        let bits = u64::from_le_bytes(wide);
        match self {
            Self::I8 => (bits as i8).to_string(),
            Self::I16 => (bits as i16).to_string(),
            Self::I32 => (bits as i32).to_string(),
            Self::I64 => (bits as i64).to_string(),
            Self::F16 => f16::from_bits(bits as u16).to_string(),
            Self::Bf16 => bf16::from_bits(bits as u16).to_string(),
            Self::F32 => f32::from_bits(bits as u32).to_string(),
            Self::F64 => f64::from_bits(bits).to_string(),
            _ => bits.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_have_the_range_of_their_type() {
        assert_eq!(Element::I32.parse("-3").unwrap(), (-3_i32).to_le_bytes());
        assert_eq!(Element::U64.parse("0xffffffffffffffff").unwrap(), [0xff; 8]);
        let error = Element::U8.parse("256").unwrap_err();
        assert_eq!(error.to_string(), "given `256`, wanted a value of type u8");
        assert!(Element::U32.parse("-1").is_err());
    }

    #[test]
    fn values_come_back_as_they_were_written() {
        for (element, text) in [
            (Element::F32, "1.5"),
            (Element::Bf16, "-2"),
            (Element::F16, "0.5"),
            (Element::I8, "-128"),
            (Element::F64, "NaN"),
        ] {
            assert_eq!(element.show(&element.parse(text).unwrap()), text);
        }
    }
}

//! Elements as numbers, and the numbers that operands are filled with.

use crate::fixture::Element;
use half::bf16;

impl Element {
    pub fn bytes(self) -> usize {
        match self {
            Self::F8e4m3 | Self::E8m0 => 1,
            Self::Bf16 => 2,
            Self::F32 | Self::I32 => 4,
        }
    }

    /// The numbers that an array of elements holds; all of these types are exact in f64.
    pub fn decode(self, bytes: &[u8]) -> Vec<f64> {
        bytes.chunks_exact(self.bytes()).map(|bytes| self.decode_one(bytes)).collect()
    }

    fn decode_one(self, bytes: &[u8]) -> f64 {
        match self {
            Self::F8e4m3 => f8e4m3(bytes[0]),
            Self::E8m0 => f64::from(bytes[0] as i16 - 127).exp2(),
            Self::Bf16 => bf16::from_le_bytes([bytes[0], bytes[1]]).to_f64(),
            Self::F32 => f32::from_le_bytes(bytes.try_into().expect("four bytes")).into(),
            Self::I32 => i32::from_le_bytes(bytes.try_into().expect("four bytes")).into(),
        }
    }
}

/// OCP E4M3: one sign bit, four exponent bits with bias 7, three mantissa bits, no infinity.
fn f8e4m3(byte: u8) -> f64 {
    let (exponent, mantissa) = (i32::from(byte >> 3 & 15), f64::from(byte & 7) / 8.0);
    let magnitude = match (exponent, byte & 7) {
        (15, 7) => f64::NAN,
        (0, _) => mantissa * 2f64.powi(-6),
        _ => (1.0 + mantissa) * 2f64.powi(exponent - 7),
    };
    if byte >> 7 == 1 { -magnitude } else { magnitude }
}

/// What operands are filled with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operands {
    /// Integers up to 8 and scales from 1 to 8: every sum of the fixtures' sizes is exact in f32, so the result must
    /// be the reference, rounded once.
    Integers,
    /// Fractions between -1 and 1, every finite E4M3, scales from 1/8 to 8.
    Fractions,
}

impl Operands {
    pub fn fill(self, element: Element, count: usize, random: &mut Random) -> Vec<u8> {
        (0..count).flat_map(|_| self.one(element, random)).collect()
    }

    fn one(self, element: Element, random: &mut Random) -> Vec<u8> {
        let integer = random.below(17) as i32 - 8;
        let fraction = random.below(1 << 24) as f32 / (1 << 23) as f32 - 1.0;
        let value = if self == Self::Integers { integer as f32 } else { fraction };
        match element {
            Element::F32 => value.to_le_bytes().to_vec(),
            Element::Bf16 => bf16::from_f32(value).to_le_bytes().to_vec(),
            Element::I32 => integer.to_le_bytes().to_vec(),
            Element::E8m0 if self == Self::Integers => vec![127 + random.below(4) as u8],
            Element::E8m0 => vec![124 + random.below(7) as u8],
            Element::F8e4m3 => vec![self.f8e4m3(value, random)],
        }
    }

    /// The only two of the 256 codes that are not numbers are 0x7f and 0xff.
    fn f8e4m3(self, value: f32, random: &mut Random) -> u8 {
        match self {
            Self::Integers => (0..=u8::MAX).find(|&byte| f8e4m3(byte) == f64::from(value)).expect("it is exact"),
            Self::Fractions => (random.below(2) << 7 | random.below(127)) as u8,
        }
    }
}

/// SplitMix64.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number from 0 to `bound - 1`.
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        let product = u128::from(word ^ word >> 31) * u128::from(bound);
        (product >> 64) as u64
    }
}

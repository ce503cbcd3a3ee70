//! Element types of matrices and values for them.

use half::{bf16, f16};
use simulator::number::{NarrowFloat, tf32_decode};

use crate::inputs::Random;

/// An element type of A or B.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Element {
    F16,
    Bf16,
    Tf32,
    /// tf32 of which the 13 bits that do not count are set.
    DirtyTf32,
    E4m3,
    E5m2,
    S8,
    U8,
}

use Element::{Bf16, DirtyTf32, E4m3, E5m2, F16, S8, Tf32, U8};

impl Element {
    pub fn name(self) -> &'static str {
        match self {
            F16 => "f16",
            Bf16 => "bf16",
            Tf32 | DirtyTf32 => "tf32",
            E4m3 => "e4m3",
            E5m2 => "e5m2",
            S8 => "s8",
            U8 => "u8",
        }
    }

    pub fn bytes(self) -> usize {
        match self {
            F16 | Bf16 => 2,
            Tf32 | DirtyTf32 => 4,
            E4m3 | E5m2 | S8 | U8 => 1,
        }
    }

    pub fn is_integer(self) -> bool {
        matches!(self, S8 | U8)
    }

    pub fn encode(self, value: f64) -> u32 {
        match self {
            F16 => f16::from_f64(value).to_bits().into(),
            Bf16 => bf16::from_f64(value).to_bits().into(),
            Tf32 => tf32_decode((value as f32).to_bits()).to_bits(),
            DirtyTf32 => (value as f32).to_bits() | 0x1fff,
            E4m3 => NarrowFloat::E4m3.encode(value as f32).into(),
            E5m2 => NarrowFloat::E5m2.encode(value as f32).into(),
            S8 => u32::from(value as i8 as u8),
            U8 => u32::from(value as u8),
        }
    }

    pub fn decode(self, bits: u32) -> f64 {
        match self {
            F16 => f16::from_bits(bits as u16).to_f64(),
            Bf16 => bf16::from_bits(bits as u16).to_f64(),
            Tf32 | DirtyTf32 => tf32_decode(bits).into(),
            E4m3 => NarrowFloat::E4m3.decode(bits as u8).into(),
            E5m2 => NarrowFloat::E5m2.decode(bits as u8).into(),
            S8 => (bits as u8 as i8).into(),
            U8 => (bits as u8).into(),
        }
    }

    /// Exponents of the powers of two that it has, subnormal ones included.
    pub fn exponents(self) -> (i32, i32) {
        match self {
            F16 => (-24, 15),
            Bf16 | Tf32 | DirtyTf32 => (-60, 60),
            E4m3 => (-9, 8),
            E5m2 => (-16, 15),
            S8 | U8 => (0, 6),
        }
    }
}

/// What the elements of a matrix are drawn from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Values {
    /// Integers so small that no sum is rounded.
    Small,
    /// Everything that an integer type has.
    Full,
    /// Floats of about one magnitude.
    Narrow,
    /// Floats of many magnitudes.
    Wide,
    /// Infinities, NaNs, zeros of either sign and subnormals among small integers.
    Special,
    /// Floats of every magnitude that products are aligned over, zeros and subnormal numbers of 8 and 16 bits among them.
    Deep,
    /// Floats so small that they, or the results, are subnormal.
    Tiny,
    /// Floats so large that sums overflow.
    Huge,
}

impl Values {
    pub fn draw(self, element: Element, random: &mut Random) -> u32 {
        if element.is_integer() {
            return match self {
                Self::Full => random.next() as u32 & 0xff,
                _ if element == U8 => random.below(7) as u32,
                _ => element.encode(random.below(7) as f64 - 3.0),
            };
        }
        let random_zero = self == Self::Deep && random.below(5) == 0;
        let mut float = |low: i32, high: i32| {
            let exponent = low + random.below((high - low + 1) as u64) as i32;
            let fraction = 1.0 + random.below(1 << 20) as f64 / f64::from(1 << 20);
            let sign = if random.below(2) == 0 { 1.0 } else { -1.0 };
            element.encode(sign * fraction * f64::from(exponent).exp2())
        };
        match self {
            Self::Small | Self::Full => element.encode(random.below(7) as f64 - 3.0),
            Self::Narrow => float(-2, 0),
            Self::Wide => {
                // So that few sums overflow an f16.
                let (low, high) = match element {
                    F16 => (-10, 5),
                    E4m3 | E5m2 => (-6, 6),
                    _ => (-10, 10),
                };
                float(low, high)
            }
            Self::Deep if random_zero => 0,
            Self::Deep => match element {
                F16 => float(-25, 7),
                E4m3 | E5m2 => float(-10, 7),
                _ => float(-16, 16),
            },
            Self::Tiny => float(-134, 3),
            Self::Huge => float(60, 64),
            Self::Special => match random.below(40) {
                0 => element.encode(f64::INFINITY),
                1 => element.encode(f64::NAN),
                2..=11 => element.encode(-0.0),
                12..=21 => element.encode(0.0),
                22..=29 => element.encode(f64::from(element.exponents().0).exp2()),
                _ => element.encode(random.below(7) as f64 - 3.0),
            },
        }
    }
}

/// A matrix of encoded elements, `k` to a row.
pub struct Matrix {
    pub element: Element,
    pub k: usize,
    pub bits: Vec<u32>,
}

impl Matrix {
    pub fn draw(element: Element, values: Values, rows: usize, k: usize, random: &mut Random) -> Self {
        Self { element, k, bits: (0..rows * k).map(|_| values.draw(element, random)).collect() }
    }

    pub fn zero(element: Element, rows: usize, k: usize) -> Self {
        Self { element, k, bits: vec![0; rows * k] }
    }

    pub fn set(&mut self, row: usize, k: usize, value: f64) {
        let bits = self.element.encode(value);
        assert!(self.element.decode(bits) == value, "{value} is not a {:?}", self.element);
        self.bits[row * self.k + k] = bits;
    }

    pub fn bits(&self, row: usize, k: usize) -> u32 {
        self.bits[row * self.k + k]
    }

    pub fn value(&self, row: usize, k: usize) -> f64 {
        self.element.decode(self.bits(row, k))
    }

    /// Neighbours along K in one register.
    pub fn register(&self, row: usize, first: usize) -> u32 {
        let bytes = self.element.bytes();
        (0..4 / bytes).fold(0, |word, i| word | self.bits(row, first + i) << (8 * bytes * i))
    }
}

/// Type of C and D.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Accumulator {
    F32,
    F16,
    S32,
}

impl Accumulator {
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::S32 => "s32",
        }
    }

    /// Type of its registers in PTX.
    pub fn register(self) -> &'static str {
        if self == Self::F32 { "f32" } else { "b32" }
    }

    /// Elements of a register.
    pub fn elements(self) -> usize {
        if self == Self::F16 { 2 } else { 1 }
    }

    /// Format of the results in the manifest.
    pub fn format(self) -> &'static str {
        if self == Self::S32 { "bits" } else { self.name() }
    }

    pub fn encode(self, value: f64) -> u32 {
        match self {
            Self::F32 => (value as f32).to_bits(),
            Self::F16 => f16::from_f64(value).to_bits().into(),
            Self::S32 => value as i32 as u32,
        }
    }

    pub fn decode(self, bits: u32) -> f64 {
        match self {
            Self::F32 => f32::from_bits(bits).into(),
            Self::F16 => f16::from_bits(bits as u16).to_f64(),
            Self::S32 => (bits as i32).into(),
        }
    }

    /// An element of C.
    pub fn draw(self, values: Values, random: &mut Random) -> u32 {
        match (self, values) {
            (Self::S32, Values::Full) => random.next() as u32,
            (_, Values::Tiny | Values::Huge) => self.encode(0.0),
            (_, Values::Narrow | Values::Wide | Values::Deep) => {
                self.encode((random.below(1 << 20) as f64 / f64::from(1 << 19)) - 1.0)
            }
            (_, Values::Special) if random.below(4) == 0 => self.encode(-0.0),
            _ => self.encode(random.below(15) as f64 - 7.0),
        }
    }
}

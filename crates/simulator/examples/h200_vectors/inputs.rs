//! Operands: boundary values in every combination, then random ones that are likely to meet ties, cancellation and overflow.

use std::f32::consts::{FRAC_PI_2, FRAC_PI_4, PI};

/// What an operand holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// 16-bit integer.
    I16,
    /// 32-bit integer.
    I32,
    /// 64-bit integer.
    I64,
    /// Shift amount, position or length in a 32-bit register.
    Amount,
    /// `f32`.
    F32,
    /// `f32` from -π to π, where `sin.approx` and `cos.approx` state an absolute error.
    Angle,
    /// `f32` that `div.approx` divides by with a stated error: from 2^-126 to 2^126.
    Divisor,
    /// `f64`.
    F64,
    /// `f16`.
    F16,
    /// `bf16`.
    Bf16,
    /// Two `f16`.
    F16x2,
    /// Two `bf16`.
    Bf16x2,
}

impl Kind {
    /// Width of its register.
    pub fn bits(self) -> u32 {
        match self {
            Kind::I16 | Kind::F16 | Kind::Bf16 => 16,
            Kind::I64 | Kind::F64 => 64,
            _ => 32,
        }
    }

    /// Exponent and fraction bits of a floating-point kind.
    fn layout(self) -> Option<(u32, u32)> {
        match self {
            Kind::F32 | Kind::Divisor => Some((8, 23)),
            Kind::F64 => Some((11, 52)),
            Kind::F16 => Some((5, 10)),
            Kind::Bf16 => Some((8, 7)),
            _ => None,
        }
    }
}

/// SplitMix64.
pub struct Random(u64);

impl Random {
    /// Starts a sequence.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// 64 random bits.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// Below a bound.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

fn ones(bits: u32) -> u64 {
    u64::MAX >> (64 - bits)
}

/// The operands of `cases` runs of an instruction, one list per operand.
pub fn operands(kinds: &[Kind], cases: usize, random: &mut Random) -> Vec<Vec<u64>> {
    // As many boundary values as leave at least a quarter of the cases to chance.
    let per_operand = match kinds.len() {
        1 => usize::MAX,
        2 => ((cases * 3 / 4) as f64).sqrt() as usize,
        _ => ((cases * 3 / 4) as f64).cbrt() as usize,
    };
    let lists: Vec<Vec<u64>> =
        kinds.iter().map(|&kind| boundaries(kind).into_iter().take(per_operand).collect()).collect();
    let products: usize = lists.iter().map(Vec::len).product();
    let mut columns = vec![Vec::with_capacity(cases); kinds.len()];
    for case in 0..cases {
        let mut rest = case;
        for (i, &kind) in kinds.iter().enumerate() {
            let value = if case < products {
                let value = lists[i][rest % lists[i].len()];
                rest /= lists[i].len();
                value
            } else {
                let earlier: Vec<u64> = columns[..i].iter().map(|column: &Vec<u64>| column[case]).collect();
                related(kind, &kinds[..i], &earlier, random)
            };
            columns[i].push(value);
        }
    }
    columns
}

/// The most telling values first.
fn boundaries(kind: Kind) -> Vec<u64> {
    if let Some((exponent_bits, fraction_bits)) = kind.layout() {
        let sign = 1 << (exponent_bits + fraction_bits);
        let infinity = ones(exponent_bits) << fraction_bits;
        let one = (ones(exponent_bits) >> 1) << fraction_bits;
        let last = 1 << fraction_bits;
        let magnitudes = [
            0,
            one,
            infinity,
            // A subnormal, the quiet NaN, the largest number, the smallest normal number.
            1,
            infinity | last >> 1,
            infinity - 1,
            last,
            one + 1,
            // A signalling NaN, one with all bits set, the largest subnormal.
            infinity | 1,
            infinity | (last - 1),
            last - 1,
            one + (last >> 1),
            one - 1,
            one + last,
            infinity - last,
            last + 1,
            last << 1,
            one - last,
            one + 2 * last,
            one + 2 * last + (last >> 2),
        ];
        let values: Vec<u64> = magnitudes.iter().flat_map(|&magnitude| [magnitude, magnitude | sign]).collect();
        if kind == Kind::Divisor {
            let exponent = |bits: u64| bits >> 23 & 0xff;
            return values.into_iter().filter(|&bits| (1..253).contains(&exponent(bits))).collect();
        }
        return values;
    }
    match kind {
        Kind::Amount => vec![0, 1, 31, 32, 33, 63, 64, 15, 16, 17, 7, 8, 65, 127, 128, 255, 256, 257, 0xffff_ffff],
        Kind::Angle => [0.0, -0.0, 1.0, -1.0, 3.0, -3.0, FRAC_PI_2, FRAC_PI_4, 1e-30, 1e-3]
            .iter()
            .map(|value| value.to_bits().into())
            .collect(),
        Kind::F16x2 | Kind::Bf16x2 => {
            let half = boundaries(if kind == Kind::F16x2 { Kind::F16 } else { Kind::Bf16 });
            let count = half.len();
            (0..count).map(|i| half[i] | half[(i * 7 + 3) % count] << 16).collect()
        }
        _ => {
            let bits = kind.bits();
            let top = 1u64 << (bits - 1);
            let alternating = 0x5555_5555_5555_5555 & ones(bits);
            vec![
                0,
                1,
                ones(bits),
                top,
                top - 1,
                2,
                ones(bits) - 1,
                top + 1,
                alternating,
                alternating << 1 & ones(bits),
                0x7f,
                0x80,
                0xff,
                0x100,
                ones(bits) & !0x7f,
                ones(bits) & !0xff,
                ones(bits / 2),
                1 << (bits / 2),
                ones(bits / 2) >> 1,
                (ones(bits / 2) >> 1) + 1,
                ones(bits) << (bits / 2) & ones(bits),
                3,
                10,
                0x1234_5678_9abc_def0 & ones(bits),
            ]
        }
    }
}

fn random_value(kind: Kind, random: &mut Random) -> u64 {
    let bits = kind.bits();
    match kind {
        Kind::Amount => match random.below(4) {
            0 => random.next() & 0xffff_ffff,
            _ => random.below(72),
        },
        Kind::Angle => {
            let unit = (random.next() >> 40) as f32 / (1 << 24) as f32;
            u64::from(((unit * 2.0 - 1.0) * PI).to_bits())
        }
        Kind::Divisor => random.next() & 0x807f_ffff | (1 + random.below(252)) << 23,
        Kind::F16x2 => random_value(Kind::F16, random) | random_value(Kind::F16, random) << 16,
        Kind::Bf16x2 => random_value(Kind::Bf16, random) | random_value(Kind::Bf16, random) << 16,
        Kind::I16 | Kind::I32 | Kind::I64 => match random.below(4) {
            0 => random.next() & ones(bits),
            // Of any length, of either sign.
            1 => (random.next() & ones(bits)) >> random.below(bits.into()),
            2 => !(random.next() >> random.below(64)) & ones(bits),
            _ => (1u64 << random.below(bits.into())).wrapping_add(random.below(5)).wrapping_sub(2) & ones(bits),
        },
        _ => random_float(kind, random),
    }
}

fn random_float(kind: Kind, random: &mut Random) -> u64 {
    let (exponent_bits, fraction_bits) = kind.layout().expect("a floating-point kind");
    let bits = kind.bits();
    let sign = (random.next() & 1) << (bits - 1);
    let fraction = random.next() & ones(fraction_bits);
    let bias = ones(exponent_bits) >> 1;
    let near = |random: &mut Random, reach: u64| {
        let reach = reach.min(bias - 1);
        (bias - reach + random.below(2 * reach)) << fraction_bits
    };
    match random.below(8) {
        0 => random.next() & ones(bits),
        1 => sign | near(random, 40) | fraction,
        // Subnormal.
        2 => sign | fraction >> random.below(fraction_bits.into()),
        3 => boundaries(kind)[random.below(20) as usize],
        // An integer or half an integer, or next to one: what conversions round.
        4 => {
            let length = random.below(u64::from(fraction_bits.min(exponent_bits * 2)) + 1) as u32;
            let kept = fraction >> (fraction_bits - length) << (fraction_bits - length);
            let power = (bias + random.below(u64::from(length) + 1)).min(2 * bias);
            (sign | power << fraction_bits | kept).wrapping_add(random.below(3)).wrapping_sub(1) & ones(bits)
        }
        // Few significant bits, so that narrower formats see ties, and the neighbours of such values.
        5 | 6 => {
            let kept = fraction & (ones(5) << fraction_bits >> 5);
            (sign | near(random, 24) | kept).wrapping_add(random.below(3)).wrapping_sub(1) & ones(bits)
        }
        // About as large as integers get.
        _ => sign | (bias + random.below(66)).min(2 * bias) << fraction_bits | fraction,
    }
}

/// A random operand that often has something to do with those before it: equal, opposite or near, or cancelling the product.
fn related(kind: Kind, kinds: &[Kind], earlier: &[u64], random: &mut Random) -> u64 {
    let value = random_value(kind, random);
    let Some((_, &last)) = kinds.iter().zip(earlier).rfind(|(other, _)| **other == kind) else { return value };
    if matches!(kind, Kind::Amount | Kind::Angle | Kind::Divisor) {
        return value;
    }
    let mask = ones(kind.bits());
    let signs = match kind {
        Kind::F16x2 | Kind::Bf16x2 => 0x8000_8000,
        _ => 1 << (kind.bits() - 1),
    };
    match random.below(8) {
        0 => last,
        1 => last ^ signs,
        2 => (last ^ signs).wrapping_add(random.below(5)).wrapping_sub(2) & mask,
        3 | 4 if earlier.len() == 2 => cancelling(kind, earlier[0], earlier[1], random).unwrap_or(value),
        _ => value,
    }
}

fn cancelling(kind: Kind, a: u64, b: u64, random: &mut Random) -> Option<u64> {
    let bits = match kind {
        Kind::F32 => (-(f32::from_bits(a as u32) * f32::from_bits(b as u32))).to_bits().into(),
        Kind::F64 => (-(f64::from_bits(a) * f64::from_bits(b))).to_bits(),
        Kind::Bf16 => {
            let widen = |bits: u64| f32::from_bits((bits as u32) << 16);
            u64::from((-(widen(a) * widen(b))).to_bits() >> 16)
        }
        _ => return None,
    };
    Some(bits.wrapping_add(random.below(3)).wrapping_sub(1) & ones(kind.bits()))
}

//! Logic, shifts and bit fields.

use super::lanes::Warp;
use crate::program::{BitUnaryOperation, IntegerType, LogicOperation, PermuteMode, ScalarInstruction, ShiftDirection};

pub(super) fn execute(warp: &mut Warp<'_>, instruction: &ScalarInstruction) {
    use ScalarInstruction as I;
    match *instruction {
        I::Bitwise { operation, destination, left, right } => match operation {
            LogicOperation::And => warp.binary(destination, left, right, |a, b| a & b),
            LogicOperation::Or => warp.binary(destination, left, right, |a, b| a | b),
            LogicOperation::Xor => warp.binary(destination, left, right, |a, b| a ^ b),
        },
        I::BitUnary { operation, bits, destination, source } => {
            let mask = ones(bits);
            let spare = 64 - bits;
            match operation {
                BitUnaryOperation::Not => warp.unary(destination, source, |a| !a & mask),
                BitUnaryOperation::LogicalNot => warp.unary(destination, source, |a| u64::from(a == 0)),
                BitUnaryOperation::CountLeadingZeros => {
                    warp.unary(destination, source, |a| u64::from(a.leading_zeros() - spare));
                }
                BitUnaryOperation::PopulationCount => {
                    warp.unary(destination, source, |a| u64::from(a.count_ones()));
                }
                BitUnaryOperation::Reverse => warp.unary(destination, source, |a| a.reverse_bits() >> spare),
            }
        }
        I::Lop3 { table, destination, sources } => lop3(warp, table, destination, sources),
        I::Shift { direction, bits, destination, source, amount } => {
            let mask = ones(bits);
            let last = u64::from(bits - 1);
            match direction {
                ShiftDirection::Left => warp.binary(destination, source, amount, |a, n| {
                    let n = n & 0xffff_ffff;
                    if n > last { 0 } else { a << n & mask }
                }),
                ShiftDirection::RightLogical => warp.binary(destination, source, amount, |a, n| {
                    let n = n & 0xffff_ffff;
                    if n > last { 0 } else { a >> n }
                }),
                ShiftDirection::RightArithmetic => warp.binary(destination, source, amount, |a, n| {
                    let extended = sign_extended(a, bits);
                    (extended >> (n & 0xffff_ffff).min(last)) as u64 & mask
                }),
            }
        }
        I::FunnelShift { left, wrap, destination, low, high, amount } => {
            warp.ternary(destination, [low, high, amount], |low, high, amount| {
                let amount = if wrap { amount as u32 & 31 } else { (amount as u32).min(32) };
                let pair = high << 32 | low;
                // Left keeps the upper word of the shifted pair, right the lower.
                if left { (u128::from(pair) << amount >> 32) as u64 & ones(32) } else { pair >> amount & ones(32) }
            });
        }
        I::ExtractField { kind, destination, source, position, length } => {
            warp.ternary(destination, [source, position, length], |a, position, length| {
                extract(a, position as u32 & 0xff, length as u32 & 0xff, kind)
            });
        }
        I::InsertField { wide, destination, field, base, position, length } => {
            let bits = if wide { 64 } else { 32 };
            let lengths = warp.fetch(length);
            let (fields, bases, positions) = (warp.fetch(field), warp.fetch(base), warp.fetch(position));
            warp.write(destination, |lane| {
                insert(fields[lane], bases[lane], positions[lane] as u32 & 0xff, lengths[lane] as u32 & 0xff, bits)
            });
        }
        I::FindLeading { kind, shift_amount, destination, source } => {
            warp.unary(destination, source, |a| find_leading(a, kind, shift_amount));
        }
        I::FindNth { destination, mask, base, offset } => {
            warp.ternary(destination, [mask, base, offset], |mask, base, offset| {
                find_nth(mask as u32, base as u32, offset as i32)
            });
        }
        I::BitMask { wrap, destination, position, width } => {
            warp.binary(destination, position, width, |position, width| {
                let position = bounded(position, wrap);
                let width = bounded(width, wrap);
                ((1u64 << width) - 1) << position & ones(32)
            });
        }
        I::Extend { signed, wrap, destination, source, width } => {
            warp.binary(destination, source, width, |a, width| {
                let width = bounded(width, wrap);
                if width == 0 {
                    return 0;
                }
                let kept = a & ones(width);
                if signed { sign_extended(kept, width) as u64 & ones(32) } else { kept }
            });
        }
        I::Permute { mode, destination, low, high, selector } => {
            warp.ternary(destination, [low, high, selector], |low, high, selector| {
                permute(mode, high << 32 | low, selector as u32)
            });
        }
        _ => unreachable!("only bit instructions come here"),
    }
}

/// The lowest `bits` bits; 1 to 64.
fn ones(bits: u32) -> u64 {
    u64::MAX >> (64 - bits)
}

fn sign_extended(value: u64, bits: u32) -> i64 {
    (value << (64 - bits)) as i64 >> (64 - bits)
}

/// `.wrap` takes a position or width modulo 32, `.clamp` limits it to 32.
fn bounded(value: u64, wrap: bool) -> u32 {
    if wrap { value as u32 & 31 } else { (value as u32).min(32) }
}

fn lop3(warp: &mut Warp<'_>, table: u8, destination: crate::program::Register, sources: [crate::program::Operand; 3]) {
    // One minterm per set bit of the table; index = 4a + 2b + c.
    let pick = |i: u32| if table >> i & 1 != 0 { u64::MAX } else { 0 };
    let terms: [u64; 8] = std::array::from_fn(|i| pick(i as u32));
    warp.ternary(destination, sources, |a, b, c| {
        let (na, nb, nc) = (!a, !b, !c);
        let value = terms[0] & na & nb & nc
            | terms[1] & na & nb & c
            | terms[2] & na & b & nc
            | terms[3] & na & b & c
            | terms[4] & a & nb & nc
            | terms[5] & a & nb & c
            | terms[6] & a & b & nc
            | terms[7] & a & b & c;
        value & ones(32)
    });
}

fn width_of(kind: IntegerType) -> (u32, bool) {
    match kind {
        IntegerType::U32 => (32, false),
        IntegerType::S32 => (32, true),
        IntegerType::U64 => (64, false),
        _ => (64, true),
    }
}

/// `bfe`: past the top the sign bit of the field is repeated, or zero.
fn extract(a: u64, position: u32, length: u32, kind: IntegerType) -> u64 {
    let (bits, signed) = width_of(kind);
    if length == 0 {
        return 0;
    }
    let source = if signed { sign_extended(a, bits) } else { a as i64 };
    let shifted = match (signed, position >= bits) {
        (true, _) => source >> position.min(63),
        (false, true) => 0,
        (false, false) => (a >> position) as i64,
    };
    let value = if length >= bits {
        shifted as u64
    } else if signed {
        sign_extended(shifted as u64, length) as u64
    } else {
        shifted as u64 & ones(length)
    };
    value & ones(bits)
}

/// `bfi`.
fn insert(field: u64, base: u64, position: u32, length: u32, bits: u32) -> u64 {
    if length == 0 || position >= bits {
        return base;
    }
    let mask = ones(length.min(64)) << position & ones(bits);
    base & !mask | field << position & mask
}

/// `bfind`: the most significant bit that differs from the sign.
fn find_leading(a: u64, kind: IntegerType, shift_amount: bool) -> u64 {
    let (bits, signed) = width_of(kind);
    let negative = signed && a >> (bits - 1) & 1 != 0;
    let significant = if negative { !a & ones(bits) } else { a };
    if significant == 0 {
        return u64::from(u32::MAX);
    }
    let position = 63 - significant.leading_zeros();
    u64::from(if shift_amount { bits - 1 - position } else { position })
}

/// `fns`.
fn find_nth(mask: u32, base: u32, offset: i32) -> u64 {
    let none = u64::from(u32::MAX);
    if base > 31 {
        return none;
    }
    if offset == 0 {
        return if mask >> base & 1 != 0 { u64::from(base) } else { none };
    }
    let step = offset.signum();
    let mut left = offset.unsigned_abs();
    let mut position = base as i32;
    while (0..32).contains(&position) {
        if mask >> position & 1 != 0 {
            left -= 1;
            if left == 0 {
                return position as u64;
            }
        }
        position += step;
    }
    none
}

/// `prmt`: four bytes out of eight.
fn permute(mode: PermuteMode, bytes: u64, selector: u32) -> u64 {
    let n = selector & 3;
    let index = |i: u32| match mode {
        PermuteMode::Index => selector >> (4 * i) & 7,
        PermuteMode::Forward4 => n + i,
        PermuteMode::Backward4 => (n + 8 - i) & 7,
        PermuteMode::Replicate8 => n,
        PermuteMode::EdgeClampLeft => i.max(n),
        PermuteMode::EdgeClampRight => i.min(n),
        PermuteMode::Replicate16 => (n & 1) * 2 + (i & 1),
    };
    (0..4).fold(0, |word, i| {
        let byte = bytes >> (8 * index(i)) & 0xff;
        let sign = mode == PermuteMode::Index && selector >> (4 * i + 3) & 1 != 0;
        let byte = if !sign {
            byte
        } else if byte & 0x80 != 0 {
            0xff
        } else {
            0
        };
        word | byte << (8 * i)
    })
}

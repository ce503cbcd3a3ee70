//! `cvt`.

use super::format::{Exact, bf16_of, bits32, decode, e4m3_of, encode, f16_of, flush32};
use super::lanes::Warp;
use crate::program::{Convert, ConvertModes, FloatFormat, NumberFormat, Operand, Register, Rounding};

/// One value.
pub(super) fn one(warp: &mut Warp<'_>, convert: &Convert) {
    use NumberFormat as N;
    let Convert { from, to, modes, register_bits, destination, source } = *convert;
    match (from, to) {
        (N::Float(from), N::Float(to)) => float_to_float(warp, from, to, modes, destination, source),
        (N::Float(from), to) => {
            let (bits, signed) = integer(to);
            warp.unary(destination, source, |a| {
                let value = if modes.flush && from == FloatFormat::F32 { flush32(a).into() } else { decode(a, from) };
                let bits_of_result = float_to_integer(value, bits, signed, modes.rounding, from == FloatFormat::F64);
                extend(bits_of_result, bits, signed, register_bits)
            });
        }
        (from, N::Float(to)) => {
            let (bits, signed) = integer(from);
            warp.unary(destination, source, |a| {
                let value = widen(a, bits, signed);
                let exact =
                    Exact { negative: value < 0, significand: value.unsigned_abs() as u64, exponent: 0, sticky: false };
                let result = exact.encode(to, modes.rounding);
                if modes.saturate { saturated(result, to) } else { result }
            });
        }
        (from, to) => {
            let ((from_bits, from_signed), (bits, signed)) = (integer(from), integer(to));
            warp.unary(destination, source, |a| {
                let mut value = widen(a, from_bits, from_signed);
                if modes.saturate {
                    let (least, most) = range(bits, signed);
                    value = value.clamp(least, most);
                }
                extend(value as u64, bits, signed, register_bits)
            });
        }
    }
}

#[inline(always)]
fn single(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

fn integer(format: NumberFormat) -> (u32, bool) {
    match format {
        NumberFormat::Signed(bits) => (bits, true),
        NumberFormat::Unsigned(bits) => (bits, false),
        NumberFormat::Float(_) => unreachable!("floats are told apart before"),
    }
}

fn ones(bits: u32) -> u64 {
    u64::MAX >> (64 - bits)
}

/// The value of an integer of this type in a register that may be wider.
#[inline(always)]
fn widen(register: u64, bits: u32, signed: bool) -> i128 {
    let spare = 64 - bits;
    if signed { i128::from((register << spare) as i64 >> spare) } else { i128::from(register & ones(bits)) }
}

/// An integer result in its register: sign or zero extended to the register's width.
#[inline(always)]
fn extend(value: u64, bits: u32, signed: bool, register_bits: u32) -> u64 {
    widen(value, bits, signed) as u64 & ones(register_bits)
}

fn range(bits: u32, signed: bool) -> (i128, i128) {
    if signed { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) }
}

/// Rounds to an integral value.
fn integral(value: f64, rounding: Rounding) -> f64 {
    match rounding {
        Rounding::NearestEven => value.round_ties_even(),
        Rounding::NearestAway => value.round(),
        Rounding::Zero => value.trunc(),
        Rounding::Down => value.floor(),
        Rounding::Up => value.ceil(),
    }
}

/// Results are always clamped to the integer's range. NaN gives zero, except that conversions that involve 64 bits give
/// the top bit (PTX ISA, "cvt", integer notes).
fn float_to_integer(value: f64, bits: u32, signed: bool, rounding: Rounding, from_double: bool) -> u64 {
    if value.is_nan() {
        return if from_double || bits == 64 { 1 << (bits - 1) } else { 0 };
    }
    let value = integral(value, rounding);
    let (least, most) = range(bits, signed);
    // `as` saturates, and 128 bits hold both ranges.
    (value as i128).clamp(least, most) as u64
}

fn float_to_float(
    warp: &mut Warp<'_>,
    from: FloatFormat,
    to: FloatFormat,
    modes: ConvertModes,
    destination: Register,
    source: Operand,
) {
    use FloatFormat as F;
    let plain = !(modes.to_integral || modes.flush || modes.saturate || modes.saturate_finite || modes.relu);
    let nearest = modes.rounding == Rounding::NearestEven;
    match (from, to) {
        (F::F32, F::Bf16) if plain && nearest => warp.unary(destination, source, |a| bf16_of(single(a))),
        (F::F32, F::F16) if plain && nearest => warp.unary(destination, source, |a| f16_of(single(a))),
        // Hardware adds half a unit and truncates. A NaN is truncated too: one with a small payload becomes infinite
        // (seen on an H200).
        (F::F32, F::Tf32) if plain && modes.rounding == Rounding::NearestAway => {
            warp.unary(destination, source, |a| {
                let half = if a & 0x7f80_0000 == 0x7f80_0000 { 0 } else { 0x1000 };
                a.wrapping_add(half) & 0xffff_e000
            });
        }
        (F::Bf16, F::F32) if plain => {
            warp.unary(destination, source, |a| bits32(f32::from_bits((a as u32) << 16)));
        }
        (F::F32, F::F64) if plain => {
            warp.unary(destination, source, |a| f64::from(f32::from_bits(a as u32)).to_bits());
        }
        (F::F64, F::F32) if plain && nearest => {
            warp.unary(destination, source, |a| bits32(f64::from_bits(a) as f32));
        }
        _ => warp.unary(destination, source, |a| {
            // Towards `f16` the operand keeps its subnormals whatever `.ftz` says (seen on an H200).
            let flush = modes.flush && from == F::F32 && to != F::F16;
            let value = if flush { flush32(a).into() } else { decode(a, from) };
            let value = if modes.to_integral { integral(value, modes.rounding) } else { value };
            finish(value, to, modes)
        }),
    }
}

/// Encodes a result, with the modes that apply to it.
fn finish(value: f64, to: FloatFormat, modes: ConvertModes) -> u64 {
    let value = if modes.relu && value <= 0.0 { 0.0 } else { value };
    let bits = encode(value, to, modes.rounding, modes.saturate_finite);
    let bits = if modes.flush && to == FloatFormat::F32 { flush32(bits).to_bits().into() } else { bits };
    if modes.saturate { saturated(bits, to) } else { bits }
}

/// `.sat`: clamped to [0, 1], NaN to zero.
fn saturated(bits: u64, format: FloatFormat) -> u64 {
    let value = decode(bits, format);
    let clamped = if value > 0.0 { value.min(1.0) } else { 0.0 };
    encode(clamped, format, Rounding::NearestEven, false)
}

fn packed_bits(format: FloatFormat) -> u32 {
    match format {
        FloatFormat::F16 | FloatFormat::Bf16 => 16,
        _ => 8,
    }
}

/// Two `f32` values into one register.
pub(super) fn pack(
    warp: &mut Warp<'_>,
    to: FloatFormat,
    modes: ConvertModes,
    destination: Register,
    high: Operand,
    low: Operand,
) {
    let nearest = modes.rounding == Rounding::NearestEven && !modes.relu;
    match to {
        FloatFormat::Bf16 if nearest && !modes.saturate_finite => {
            warp.binary(destination, high, low, |high, low| bf16_of(single(high)) << 16 | bf16_of(single(low)));
        }
        FloatFormat::F16 if nearest && !modes.saturate_finite => {
            warp.binary(destination, high, low, |high, low| f16_of(single(high)) << 16 | f16_of(single(low)));
        }
        FloatFormat::E4m3 if nearest && modes.saturate_finite => {
            warp.binary(destination, high, low, |high, low| e4m3_of(single(high)) << 8 | e4m3_of(single(low)));
        }
        _ => {
            let shift = packed_bits(to);
            let one = |a: u64| finish(decode(a, FloatFormat::F32), to, modes);
            warp.binary(destination, high, low, |high, low| one(high) << shift | one(low));
        }
    }
}

/// Two packed values into two others.
pub(super) fn packed(
    warp: &mut Warp<'_>,
    from: FloatFormat,
    to: FloatFormat,
    modes: ConvertModes,
    destination: Register,
    source: Operand,
) {
    let (from_bits, to_bits) = (packed_bits(from), packed_bits(to));
    let one = |a: u64| finish(decode(a & ones(from_bits), from), to, modes);
    warp.unary(destination, source, |a| one(a >> from_bits) << to_bits | one(a));
}

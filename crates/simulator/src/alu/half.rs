//! `f16`, `bf16` and their pairs.

use super::exact;
use super::format::{MIN_NORMAL16, bf16_of, f16_of};
use super::lanes::Warp;
use crate::program::{FloatFormat, FloatModes, FloatOperation, FloatUnaryOperation, HalfFormat, Operand, Register};

pub(super) fn format_of(format: HalfFormat) -> FloatFormat {
    match format {
        HalfFormat::F16 => FloatFormat::F16,
        HalfFormat::Bf16 => FloatFormat::Bf16,
    }
}

const NAN: u64 = 0x7fff;
const SIGN: u64 = 0x8000;

/// Subnormal `f16` values become zero of the same sign (only `f16` has `.ftz`).
#[inline(always)]
fn flushed(bits: u64, flush: bool) -> u64 {
    if flush && bits & 0x7c00 == 0 { bits & SIGN } else { bits }
}

/// The value of the low 16 bits.
#[inline(always)]
fn read<const BF16: bool>(bits: u64) -> f32 {
    if BF16 { f32::from_bits((bits as u32) << 16) } else { half::f16::from_bits(bits as u16).to_f32_const() }
}

/// The nearest value of the format.
#[inline(always)]
fn round<const BF16: bool>(value: f32) -> u64 {
    if BF16 { bf16_of(value) } else { f16_of(value) }
}

#[inline(always)]
fn finish<const BF16: bool>(bits: u64, modes: FloatModes) -> u64 {
    let bits = flushed(bits, modes.flush);
    if modes.saturate {
        let value = read::<BF16>(bits);
        return round::<BF16>(if value > 0.0 { value.min(1.0) } else { 0.0 });
    }
    if modes.relu && bits & SIGN != 0 && !read::<BF16>(bits).is_nan() { 0 } else { bits }
}

/// Sums in `f32` have bits enough to be rounded again, and products are exact in `f64` and narrowed to odd, so that each
/// result is as good as rounded once.
#[inline(always)]
fn two<const BF16: bool>(operation: FloatOperation, modes: FloatModes, a: u64, b: u64) -> u64 {
    use FloatOperation as O;
    let (left, right) = (flushed(a & 0xffff, modes.flush), flushed(b & 0xffff, modes.flush));
    let (a, b) = (read::<BF16>(left), read::<BF16>(right));
    let value = match operation {
        O::Add => a + b,
        O::Subtract => a - b,
        O::Multiply => exact::narrow(f64::from(a) * f64::from(b)),
        O::Divide => exact::narrow(exact::divide(a.into(), b.into())),
        O::Minimum | O::Maximum => return min_or_max::<BF16>(operation, modes, left, right),
    };
    finish::<BF16>(round::<BF16>(flush_tiny(value, modes)), modes)
}

/// `.ftz` flushes what is subnormal after rounding with an unbounded exponent, as for `f32`. Only `f16` has it, and only
/// to nearest.
fn flush_tiny(value: f32, modes: FloatModes) -> f32 {
    const UP: f32 = 1024.0;
    let tiny = |value: f32| read::<false>(f16_of(value * UP)).abs() < MIN_NORMAL16 * UP;
    if modes.flush && value.abs() < MIN_NORMAL16 && tiny(value) { 0f32.copysign(value) } else { value }
}

/// As for `f32`: NaN loses against a number unless `.NaN`, and -0 is less than +0.
fn min_or_max<const BF16: bool>(operation: FloatOperation, modes: FloatModes, a: u64, b: u64) -> u64 {
    let sign = (a ^ b) & SIGN;
    let (a, b) = if modes.absolute { (a & !SIGN, b & !SIGN) } else { (a, b) };
    let (left, right) = (read::<BF16>(a), read::<BF16>(b));
    let bits = match (left.is_nan(), right.is_nan()) {
        (true, true) => return NAN,
        (true, false) | (false, true) if modes.propagate_nan => return NAN,
        (true, false) => b,
        (false, true) => a,
        (false, false) if left == right => {
            if operation == FloatOperation::Minimum {
                a | b
            } else {
                a & b
            }
        }
        (false, false) if (left < right) == (operation == FloatOperation::Minimum) => a,
        (false, false) => b,
    };
    if modes.xor_sign { bits & !SIGN | sign } else { bits }
}

#[inline(always)]
fn three<const BF16: bool>(modes: FloatModes, a: u64, b: u64, c: u64) -> u64 {
    let read = |bits: u64| f64::from(read::<BF16>(flushed(bits & 0xffff, modes.flush)));
    let value = exact::multiply_add(read(a), read(b), read(c));
    finish::<BF16>(round::<BF16>(flush_tiny(exact::narrow(value), modes)), modes)
}

pub(super) fn binary(
    warp: &mut Warp<'_>,
    operation: FloatOperation,
    (format, packed): (HalfFormat, bool),
    modes: FloatModes,
    destination: Register,
    left: Operand,
    right: Operand,
) {
    match format {
        HalfFormat::F16 => binary_in::<false>(warp, operation, packed, modes, destination, left, right),
        HalfFormat::Bf16 => binary_in::<true>(warp, operation, packed, modes, destination, left, right),
    }
}

fn binary_in<const BF16: bool>(
    warp: &mut Warp<'_>,
    operation: FloatOperation,
    packed: bool,
    modes: FloatModes,
    destination: Register,
    left: Operand,
    right: Operand,
) {
    if packed {
        warp.binary(destination, left, right, |a, b| {
            two::<BF16>(operation, modes, a, b) | two::<BF16>(operation, modes, a >> 16, b >> 16) << 16
        });
    } else {
        warp.binary(destination, left, right, |a, b| two::<BF16>(operation, modes, a, b));
    }
}

pub(super) fn fused_multiply_add(
    warp: &mut Warp<'_>,
    (format, packed): (HalfFormat, bool),
    modes: FloatModes,
    destination: Register,
    sources: [Operand; 3],
) {
    match format {
        HalfFormat::F16 => fused_in::<false>(warp, packed, modes, destination, sources),
        HalfFormat::Bf16 => fused_in::<true>(warp, packed, modes, destination, sources),
    }
}

fn fused_in<const BF16: bool>(
    warp: &mut Warp<'_>,
    packed: bool,
    modes: FloatModes,
    destination: Register,
    sources: [Operand; 3],
) {
    if packed {
        warp.ternary(destination, sources, |a, b, c| {
            three::<BF16>(modes, a, b, c) | three::<BF16>(modes, a >> 16, b >> 16, c >> 16) << 16
        });
    } else {
        warp.ternary(destination, sources, |a, b, c| three::<BF16>(modes, a, b, c));
    }
}

pub(super) fn unary(
    warp: &mut Warp<'_>,
    operation: FloatUnaryOperation,
    (_, packed): (HalfFormat, bool),
    flush: bool,
    destination: Register,
    source: Operand,
) {
    let negate = operation == FloatUnaryOperation::Negate;
    let one = |bits: u64| {
        let bits = flushed(bits & 0xffff, flush);
        if negate { bits ^ SIGN } else { bits & !SIGN }
    };
    if packed {
        warp.unary(destination, source, |a| one(a) | one(a >> 16) << 16);
    } else {
        warp.unary(destination, source, one);
    }
}

//! `f16`, `bf16` and their pairs.

use super::exact;
use super::format::{decode, encode};
use super::lanes::Warp;
use crate::program::{
    FloatFormat, FloatModes, FloatOperation, FloatUnaryOperation, HalfFormat, Operand, Register, Rounding,
};

pub(super) fn format_of(format: HalfFormat) -> FloatFormat {
    match format {
        HalfFormat::F16 => FloatFormat::F16,
        HalfFormat::Bf16 => FloatFormat::Bf16,
    }
}

const NAN: u64 = 0x7fff;
const SIGN: u64 = 0x8000;

/// Subnormal `f16` values become zero of the same sign (only `f16` has `.ftz`).
fn flushed(bits: u64, flush: bool) -> u64 {
    if flush && bits & 0x7c00 == 0 { bits & SIGN } else { bits }
}

fn finish(bits: u64, format: FloatFormat, modes: FloatModes) -> u64 {
    let bits = flushed(bits, modes.flush);
    if modes.saturate {
        let value = decode(bits, format);
        let clamped = if value > 0.0 { value.min(1.0) } else { 0.0 };
        return encode(clamped, format, Rounding::NearestEven, false);
    }
    if modes.relu && bits & SIGN != 0 && !decode(bits, format).is_nan() { 0 } else { bits }
}

/// Sums in `f64` are rounded to odd, and products of two halves are exact, so each result is rounded once.
fn two(operation: FloatOperation, format: FloatFormat, modes: FloatModes, a: u64, b: u64) -> u64 {
    use FloatOperation as O;
    let (left, right) = (flushed(a & 0xffff, modes.flush), flushed(b & 0xffff, modes.flush));
    let (a, b) = (decode(left, format), decode(right, format));
    let bits = match operation {
        O::Add => encode(exact::add(a, b), format, Rounding::NearestEven, false),
        O::Subtract => encode(exact::add(a, -b), format, Rounding::NearestEven, false),
        O::Multiply => encode(a * b, format, Rounding::NearestEven, false),
        O::Divide => encode(exact::divide(a, b), format, Rounding::NearestEven, false),
        O::Minimum | O::Maximum => return min_or_max(operation, format, modes, left, right),
    };
    finish(bits, format, modes)
}

/// As for `f32`: NaN loses against a number unless `.NaN`, and -0 is less than +0.
fn min_or_max(operation: FloatOperation, format: FloatFormat, modes: FloatModes, a: u64, b: u64) -> u64 {
    let sign = (a ^ b) & SIGN;
    let (a, b) = if modes.absolute { (a & !SIGN, b & !SIGN) } else { (a, b) };
    let (left, right) = (decode(a, format), decode(b, format));
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

fn three(format: FloatFormat, modes: FloatModes, a: u64, b: u64, c: u64) -> u64 {
    let read = |bits: u64| decode(flushed(bits & 0xffff, modes.flush), format);
    let value = exact::multiply_add(read(a), read(b), read(c));
    finish(encode(value, format, Rounding::NearestEven, false), format, modes)
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
    let format = format_of(format);
    if packed {
        warp.binary(destination, left, right, |a, b| {
            two(operation, format, modes, a, b) | two(operation, format, modes, a >> 16, b >> 16) << 16
        });
    } else {
        warp.binary(destination, left, right, |a, b| two(operation, format, modes, a, b));
    }
}

pub(super) fn fused_multiply_add(
    warp: &mut Warp<'_>,
    (format, packed): (HalfFormat, bool),
    modes: FloatModes,
    destination: Register,
    sources: [Operand; 3],
) {
    let format = format_of(format);
    if packed {
        warp.ternary(destination, sources, |a, b, c| {
            three(format, modes, a, b, c) | three(format, modes, a >> 16, b >> 16, c >> 16) << 16
        });
    } else {
        warp.ternary(destination, sources, |a, b, c| three(format, modes, a, b, c));
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

//! `f32`, `f64` and `f32x2` arithmetic.

use super::exact;
use super::format::{Exact, MIN_NORMAL32, bits32, encode, flush32};
use super::lanes::Warp;
use crate::program::{FloatFormat, FloatModes, FloatOperation, FloatUnaryOperation, Operand, Register, Rounding};

#[inline(always)]
fn f32_of(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

/// Flushing and saturation of a `f32` result.
#[inline(always)]
fn finish32(bits: u64, modes: FloatModes) -> u64 {
    let value = if modes.flush { flush32(bits) } else { f32_of(bits) };
    if modes.saturate {
        // NaN compares false and becomes zero.
        return if value > 0.0 { u64::from(value.min(1.0).to_bits()) } else { 0 };
    }
    bits32(value)
}

fn read32(bits: u64, modes: FloatModes) -> f32 {
    if modes.flush { flush32(bits) } else { f32_of(bits) }
}

/// A `f32` operation with any modes.
fn binary32(operation: FloatOperation, modes: FloatModes, a: u64, b: u64) -> u64 {
    use FloatOperation as O;
    let (a, b) = (read32(a, modes), read32(b, modes));
    let bits = if matches!(operation, O::Minimum | O::Maximum) {
        u64::from(min_or_max32(operation, modes, a, b).to_bits())
    } else if modes.rounding == Rounding::NearestEven && !modes.flush {
        bits32(match operation {
            O::Add => a + b,
            O::Subtract => a - b,
            O::Multiply => a * b,
            _ => a / b,
        })
    } else {
        let (a, b) = (f64::from(a), f64::from(b));
        let value = match operation {
            O::Add => exact::add(a, b),
            O::Subtract => exact::add(a, -b),
            O::Multiply => a * b,
            _ => exact::divide(a, b),
        };
        let value = match operation {
            O::Add => signed_zero(value, a, b, modes.rounding),
            O::Subtract => signed_zero(value, a, -b, modes.rounding),
            _ => value,
        };
        encode(flush_tiny(value, modes), FloatFormat::F32, modes.rounding, false)
    };
    finish32(bits, modes)
}

/// `.ftz` flushes what is subnormal after rounding to the significand's width with an unbounded exponent: a product just
/// under the smallest normal number becomes zero even where rounding to the format would make it normal. Seen on an
/// H200; the ISA does not say.
fn flush_tiny(value: f64, modes: FloatModes) -> f64 {
    const UP: f64 = (1u64 << 40) as f64;
    let tiny = |value: f64| {
        let rounded = encode(value * UP, FloatFormat::F32, modes.rounding, false);
        f64::from(f32_of(rounded)).abs() < MIN_NORMAL32 * UP
    };
    if modes.flush && value.abs() < MIN_NORMAL32 && tiny(value) { 0f64.copysign(value) } else { value }
}

/// A sum that cancels to zero is -0 when rounding down (IEEE 754, 6.3), unless both terms are +0.
fn signed_zero(sum: f64, a: f64, b: f64, rounding: Rounding) -> f64 {
    let both_positive_zeros = a == 0.0 && b == 0.0 && a.is_sign_positive() && b.is_sign_positive();
    if sum == 0.0 && rounding == Rounding::Down && !both_positive_zeros { -0.0 } else { sum }
}

/// `min` and `max`: NaN loses against a number unless `.NaN`, and -0 is less than +0.
fn min_or_max32(operation: FloatOperation, modes: FloatModes, a: f32, b: f32) -> f32 {
    let sign = (a.to_bits() ^ b.to_bits()) & 0x8000_0000;
    let (a, b) = if modes.absolute { (a.abs(), b.abs()) } else { (a, b) };
    let value = if a.is_nan() || b.is_nan() {
        if modes.propagate_nan || (a.is_nan() && b.is_nan()) {
            return f32::from_bits(0x7fff_ffff);
        }
        if a.is_nan() { b } else { a }
    } else if a == b {
        let (a, b) = (a.to_bits(), b.to_bits());
        f32::from_bits(if operation == FloatOperation::Minimum { a | b } else { a & b })
    } else if (a < b) == (operation == FloatOperation::Minimum) {
        a
    } else {
        b
    };
    if modes.xor_sign { f32::from_bits(value.to_bits() & 0x7fff_ffff | sign) } else { value }
}

/// A `f64` operation with any rounding.
fn binary64(operation: FloatOperation, rounding: Rounding, a: f64, b: f64) -> f64 {
    use FloatOperation as O;
    let nearest = match operation {
        O::Add => a + b,
        O::Subtract => a - b,
        O::Multiply => a * b,
        O::Divide => a / b,
        O::Minimum | O::Maximum => return min_or_max64(operation, a, b),
    };
    let special = !a.is_finite() || !b.is_finite() || (operation == O::Divide && (a == 0.0 || b == 0.0));
    if rounding == Rounding::NearestEven || special {
        return nearest;
    }
    match operation {
        O::Add => rounded(exact::multiply_add64(a, 1.0, b), rounding, signed_zero(nearest, a, b, rounding)),
        O::Subtract => rounded(exact::multiply_add64(a, 1.0, -b), rounding, signed_zero(nearest, a, -b, rounding)),
        O::Multiply => rounded(exact::multiply_add64(a, b, 0.0), rounding, nearest),
        _ => rounded(Some(exact::divide64(a, b)), rounding, nearest),
    }
}

fn rounded(value: Option<Exact>, rounding: Rounding, zero: f64) -> f64 {
    value.map_or(zero, |value| f64::from_bits(value.encode(FloatFormat::F64, rounding)))
}

fn min_or_max64(operation: FloatOperation, a: f64, b: f64) -> f64 {
    if a.is_nan() {
        b
    } else if b.is_nan() {
        a
    } else if a == b {
        let (a, b) = (a.to_bits(), b.to_bits());
        f64::from_bits(if operation == FloatOperation::Minimum { a | b } else { a & b })
    } else if (a < b) == (operation == FloatOperation::Minimum) {
        a
    } else {
        b
    }
}

pub(super) fn binary(
    warp: &mut Warp<'_>,
    operation: FloatOperation,
    double: bool,
    modes: FloatModes,
    destination: Register,
    left: Operand,
    right: Operand,
) {
    use FloatOperation as O;
    if double {
        warp.binary(destination, left, right, |a, b| {
            binary64(operation, modes.rounding, f64::from_bits(a), f64::from_bits(b)).to_bits()
        });
    } else if modes == FloatModes::NEAREST {
        match operation {
            O::Add => warp.binary(destination, left, right, |a, b| bits32(f32_of(a) + f32_of(b))),
            O::Subtract => warp.binary(destination, left, right, |a, b| bits32(f32_of(a) - f32_of(b))),
            O::Multiply => warp.binary(destination, left, right, |a, b| bits32(f32_of(a) * f32_of(b))),
            O::Divide => warp.binary(destination, left, right, |a, b| bits32(f32_of(a) / f32_of(b))),
            O::Minimum => warp.binary(destination, left, right, |a, b| binary32(O::Minimum, FloatModes::NEAREST, a, b)),
            O::Maximum => warp.binary(destination, left, right, |a, b| binary32(O::Maximum, FloatModes::NEAREST, a, b)),
        }
    } else {
        warp.binary(destination, left, right, |a, b| binary32(operation, modes, a, b));
    }
}

/// a * b + c in `f32` to nearest: the `f64` sum, rounded to odd, rounds once more to the right result.
#[inline(always)]
fn fused32(a: f32, b: f32, c: f32) -> f32 {
    exact::multiply_add(a.into(), b.into(), c.into()) as f32
}

fn fused_multiply_add32(modes: FloatModes, a: u64, b: u64, c: u64) -> u64 {
    let (a, b, c) = (read32(a, modes), read32(b, modes), read32(c, modes));
    if modes.rounding == Rounding::NearestEven && !modes.flush {
        return finish32(bits32(fused32(a, b, c)), modes);
    }
    let (a, b, c) = (f64::from(a), f64::from(b), f64::from(c));
    let value = signed_zero(exact::multiply_add(a, b, c), a * b, c, modes.rounding);
    finish32(encode(flush_tiny(value, modes), FloatFormat::F32, modes.rounding, false), modes)
}

fn fused_multiply_add64(rounding: Rounding, a: f64, b: f64, c: f64) -> f64 {
    let nearest = a.mul_add(b, c);
    if rounding == Rounding::NearestEven || !a.is_finite() || !b.is_finite() || !c.is_finite() {
        return nearest;
    }
    rounded(exact::multiply_add64(a, b, c), rounding, signed_zero(nearest, a * b, c, rounding))
}

pub(super) fn fused_multiply_add(
    warp: &mut Warp<'_>,
    double: bool,
    modes: FloatModes,
    destination: Register,
    sources: [Operand; 3],
) {
    if double {
        warp.ternary(destination, sources, |a, b, c| {
            let (a, b, c) = (f64::from_bits(a), f64::from_bits(b), f64::from_bits(c));
            fused_multiply_add64(modes.rounding, a, b, c).to_bits()
        });
    } else if modes == FloatModes::NEAREST {
        warp.ternary(destination, sources, |a, b, c| bits32(fused32(f32_of(a), f32_of(b), f32_of(c))));
    } else {
        warp.ternary(destination, sources, |a, b, c| fused_multiply_add32(modes, a, b, c));
    }
}

pub(super) fn unary(
    warp: &mut Warp<'_>,
    operation: FloatUnaryOperation,
    double: bool,
    modes: FloatModes,
    destination: Register,
    source: Operand,
) {
    use FloatUnaryOperation as O;
    let sign = if double { 1 << 63 } else { 1 << 31 };
    match operation {
        O::Negate | O::Absolute => {
            let negate = operation == O::Negate;
            warp.unary(destination, source, |a| {
                let a = if modes.flush { u64::from(flush32(a).to_bits()) } else { a };
                if negate { a ^ sign } else { a & !sign }
            });
        }
        O::Reciprocal if double => warp.unary(destination, source, |a| {
            binary64(FloatOperation::Divide, modes.rounding, 1.0, f64::from_bits(a)).to_bits()
        }),
        O::Reciprocal => {
            warp.unary(destination, source, |a| binary32(FloatOperation::Divide, modes, u64::from(1f32.to_bits()), a))
        }
        O::SquareRoot if double => warp.unary(destination, source, |a| {
            let a = f64::from_bits(a);
            if modes.rounding == Rounding::NearestEven || !a.is_finite() || a <= 0.0 {
                return a.sqrt().to_bits();
            }
            exact::square_root64(a).encode(FloatFormat::F64, modes.rounding)
        }),
        O::SquareRoot => warp.unary(destination, source, |a| {
            let a = read32(a, modes);
            let bits = if modes.rounding == Rounding::NearestEven {
                bits32(a.sqrt())
            } else {
                encode(exact::square_root(a.into()), FloatFormat::F32, modes.rounding, false)
            };
            finish32(bits, modes)
        }),
    }
}

pub(super) fn min_or_max_of_three(
    warp: &mut Warp<'_>,
    operation: FloatOperation,
    modes: FloatModes,
    destination: Register,
    sources: [Operand; 3],
) {
    warp.ternary(destination, sources, |a, b, c| binary32(operation, modes, binary32(operation, modes, a, b), c));
}

/// Both halves of a 64-bit register.
#[inline(always)]
fn both(f: impl Fn(u32) -> u64) -> u64 {
    f(0) | f(32) << 32
}

pub(super) fn pair(
    warp: &mut Warp<'_>,
    operation: FloatOperation,
    modes: FloatModes,
    destination: Register,
    left: Operand,
    right: Operand,
) {
    let half = |value: u64, shift: u32| value >> shift & 0xffff_ffff;
    if modes == FloatModes::NEAREST {
        let f = f32_of;
        match operation {
            FloatOperation::Add => warp
                .binary(destination, left, right, |a, b| both(|shift| bits32(f(half(a, shift)) + f(half(b, shift))))),
            FloatOperation::Subtract => warp
                .binary(destination, left, right, |a, b| both(|shift| bits32(f(half(a, shift)) - f(half(b, shift))))),
            _ => warp
                .binary(destination, left, right, |a, b| both(|shift| bits32(f(half(a, shift)) * f(half(b, shift))))),
        }
        return;
    }
    warp.binary(destination, left, right, |a, b| {
        both(|shift| binary32(operation, modes, half(a, shift), half(b, shift)))
    });
}

pub(super) fn pair_fused_multiply_add(
    warp: &mut Warp<'_>,
    modes: FloatModes,
    destination: Register,
    sources: [Operand; 3],
) {
    let half = |value: u64, shift: u32| value >> shift & 0xffff_ffff;
    if modes == FloatModes::NEAREST {
        warp.ternary(destination, sources, |a, b, c| {
            both(|shift| bits32(fused32(f32_of(half(a, shift)), f32_of(half(b, shift)), f32_of(half(c, shift)))))
        });
        return;
    }
    warp.ternary(destination, sources, |a, b, c| {
        both(|shift| fused_multiply_add32(modes, half(a, shift), half(b, shift), half(c, shift)))
    });
}

pub(super) fn copy_sign(warp: &mut Warp<'_>, double: bool, destination: Register, sign: Operand, magnitude: Operand) {
    let mask = if double { 1u64 << 63 } else { 1 << 31 };
    warp.binary(destination, sign, magnitude, |sign, magnitude| magnitude & !mask | sign & mask);
}

//! Results before rounding.
//!
//! For `f32` and narrower operands: `f64` values rounded to odd (Boldo and Melquiond, "Emulation of a FMA and
//! Correctly Rounded Sums: Proved Algorithms Using Rounding to Odd"): inexact results get an odd last bit, so that
//! rounding them to a format with at least two bits less is as good as rounding the exact value, in any direction. For
//! `f64` operands: a 64-bit significand and a sticky bit.

use super::format::Exact;

/// Makes the last bit odd where `error`, the exact value minus `rounded`, is not zero.
#[inline(always)]
fn odd(rounded: f64, error: f64) -> f64 {
    let bits = rounded.to_bits();
    // Even and inexact: the odd neighbour lies on the side of the error. Magnitudes grow with their encodings.
    let away = (error > 0.0) == (rounded > 0.0);
    let step = if away { 1 } else { u64::MAX };
    let adjust = error != 0.0 && bits & 1 == 0 && rounded.is_finite() && rounded != 0.0;
    f64::from_bits(if adjust { bits.wrapping_add(step) } else { bits })
}

/// a + b.
#[inline(always)]
pub(super) fn add(a: f64, b: f64) -> f64 {
    // Knuth's two-sum: the error of a sum is itself a floating-point number.
    let sum = a + b;
    let part = sum - a;
    let error = (a - (sum - part)) + (b - part);
    odd(sum, error)
}

/// a * b + c, where the product must be exact: factors of at most 26 bits.
#[inline(always)]
pub(super) fn multiply_add(a: f64, b: f64, c: f64) -> f64 {
    add(a * b, c)
}

/// a / b, for operands of at most 26 bits.
#[inline(always)]
pub(super) fn divide(a: f64, b: f64) -> f64 {
    let quotient = a / b;
    if !quotient.is_finite() || quotient == 0.0 || !b.is_finite() {
        return quotient;
    }
    let remainder = (-quotient).mul_add(b, a);
    odd(quotient, if b < 0.0 { -remainder } else { remainder })
}

/// The square root, for operands of at most 26 bits.
#[inline(always)]
pub(super) fn square_root(a: f64) -> f64 {
    let root = a.sqrt();
    if !root.is_finite() || root == 0.0 {
        return root;
    }
    odd(root, (-root).mul_add(root, a))
}

/// The `f32` rounded to odd of a value that may itself have been rounded to odd.
#[inline(always)]
pub(crate) fn narrow(value: f64) -> f32 {
    let rounded = value as f32;
    let bits = rounded.to_bits();
    let away = value.abs() > f64::from(rounded.abs());
    let step = if away { 1 } else { u32::MAX };
    let inexact = f64::from(rounded) != value;
    let adjust = inexact && bits & 1 == 0 && rounded.is_finite() && rounded != 0.0;
    f32::from_bits(if adjust { bits.wrapping_add(step) } else { bits })
}

/// A finite, non-zero `f64`'s sign, significand and exponent.
fn parts(value: f64) -> (bool, u64, i32) {
    let bits = value.to_bits();
    let exponent = (bits >> 52 & 0x7ff) as i32;
    let fraction = bits & ((1 << 52) - 1);
    let significand = if exponent == 0 { fraction } else { fraction | 1 << 52 };
    (bits >> 63 != 0, significand, exponent.max(1) - 1075)
}

/// Shortens a significand to 62 bits and a sticky bit.
fn shorten(negative: bool, significand: u128, exponent: i32, sticky: bool) -> Exact {
    let shift = 66u32.saturating_sub(significand.leading_zeros());
    let lost = significand & ((1 << shift) - 1) != 0;
    Exact {
        negative,
        significand: (significand >> shift) as u64,
        exponent: exponent + shift as i32,
        sticky: sticky || lost,
    }
}

/// a * b + c of finite `f64` values with a non-zero result; `None` if the result is zero.
pub(super) fn multiply_add64(a: f64, b: f64, c: f64) -> Option<Exact> {
    let product = if a == 0.0 || b == 0.0 {
        None
    } else {
        let ((negative_a, a, exponent_a), (negative_b, b, exponent_b)) = (parts(a), parts(b));
        Some(normal(negative_a != negative_b, u128::from(a) * u128::from(b), exponent_a + exponent_b))
    };
    let addend = if c == 0.0 {
        None
    } else {
        let (negative, significand, exponent) = parts(c);
        Some(normal(negative, significand.into(), exponent))
    };
    let (x, y) = match (product, addend) {
        (None, None) => return None,
        (Some(term), None) | (None, Some(term)) => return Some(shorten(term.0, term.1, term.2, false)),
        // Normalised, the larger exponent belongs to the larger magnitude; equal exponents compare by significand.
        (Some(x), Some(y)) if (x.2, x.1) >= (y.2, y.1) => (x, y),
        (Some(x), Some(y)) => (y, x),
    };
    let distance = (x.2 - y.2) as u32;
    let (aligned, lost) = if distance > 127 { (0, true) } else { (y.1 >> distance, y.1 & ((1 << distance) - 1) != 0) };
    let sum = if x.0 == y.0 {
        x.1 + aligned
    } else {
        // What was lost makes the difference smaller: take one more off, and leave it to the sticky bit.
        x.1 - aligned - u128::from(lost)
    };
    (sum != 0).then(|| shorten(x.0, sum, x.2, lost))
}

/// Moves the leading bit to position 125, which leaves room for a carry.
fn normal(negative: bool, significand: u128, exponent: i32) -> (bool, u128, i32) {
    let shift = significand.leading_zeros() as i32 - 2;
    let significand = if shift >= 0 { significand << shift } else { significand >> -shift };
    (negative, significand, exponent - shift)
}

/// a / b of finite, non-zero `f64` values.
pub(super) fn divide64(a: f64, b: f64) -> Exact {
    let ((negative_a, a, exponent_a), (negative_b, b, exponent_b)) = (parts(a), parts(b));
    // A dividend of 125 bits over a divisor of at most 53 leaves at least 72 bits of quotient.
    let (_, dividend, exponent) = normal(false, a.into(), exponent_a);
    let (quotient, remainder) = (dividend / u128::from(b), dividend % u128::from(b));
    shorten(negative_a != negative_b, quotient, exponent - exponent_b, remainder != 0)
}

/// The square root of a finite, positive `f64`.
pub(super) fn square_root64(a: f64) -> Exact {
    let (_, significand, exponent) = parts(a);
    let (_, mut significand, mut exponent) = normal(false, significand.into(), exponent);
    if exponent % 2 != 0 {
        significand <<= 1;
        exponent -= 1;
    }
    let root = significand.isqrt();
    shorten(false, root, exponent / 2, root * root != significand)
}

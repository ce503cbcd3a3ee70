//! Integer arithmetic.

// One expression serves all types, so for some of them a cast changes nothing.
#![allow(clippy::unnecessary_cast)]

use super::lanes::Warp;
use crate::program::{
    DotProductForm, IntegerOperation, IntegerType, IntegerUnaryOperation, MultiplyAddPart, Operand, Register,
};

/// Evaluates the body with `$t` the integer's own type, `$u` its unsigned twin and `$w` a type twice as wide.
macro_rules! by_type {
    ($kind:expr, $t:ident, $u:ident, $w:ident, $body:expr, $pair:expr) => {
        match $kind {
            IntegerType::U16 => by_type!(@one u16, u16, u32, $t, $u, $w, $body),
            IntegerType::S16 => by_type!(@one i16, u16, i32, $t, $u, $w, $body),
            IntegerType::U32 => by_type!(@one u32, u32, u64, $t, $u, $w, $body),
            IntegerType::S32 => by_type!(@one i32, u32, i64, $t, $u, $w, $body),
            IntegerType::U64 => by_type!(@one u64, u64, u128, $t, $u, $w, $body),
            IntegerType::S64 => by_type!(@one i64, u64, i128, $t, $u, $w, $body),
            IntegerType::U16x2 | IntegerType::S16x2 => $pair,
        }
    };
    (@one $own:ty, $unsigned:ty, $wide:ty, $t:ident, $u:ident, $w:ident, $body:expr) => {{
        #[allow(dead_code)]
        type $t = $own;
        #[allow(dead_code)]
        type $u = $unsigned;
        #[allow(dead_code)]
        type $w = $wide;
        $body
    }};
}

pub(super) fn binary(
    warp: &mut Warp<'_>,
    operation: IntegerOperation,
    kind: IntegerType,
    destination: Register,
    left: Operand,
    right: Operand,
) {
    use IntegerOperation as O;
    // One loop per operation and type: the macro argument is the lane's expression.
    macro_rules! lanes {
        (|$a:ident, $b:ident| $value:expr) => {
            by_type!(
                kind,
                T,
                U,
                W,
                warp.binary(destination, left, right, |$a, $b| {
                    let ($a, $b) = ($a as T, $b as T);
                    ($value) as U as u64
                }),
                pairs(warp, operation, kind, destination, left, right)
            )
        };
    }
    match operation {
        O::Add => lanes!(|a, b| a.wrapping_add(b)),
        O::Subtract => lanes!(|a, b| a.wrapping_sub(b)),
        O::AddSaturate => lanes!(|a, b| a.saturating_add(b)),
        O::SubtractSaturate => lanes!(|a, b| a.saturating_sub(b)),
        O::MultiplyLow => lanes!(|a, b| a.wrapping_mul(b)),
        O::MultiplyHigh => by_type!(
            kind,
            T,
            U,
            W,
            warp.binary(destination, left, right, |a, b| {
                ((W::from(a as T) * W::from(b as T)) >> T::BITS) as U as u64
            }),
            unreachable!("the decoder has no packed mul.hi")
        ),
        O::MultiplyWide => match kind {
            // The result's slot is zero above its width, which is twice the operands'.
            IntegerType::U16 => warp.binary(destination, left, right, |a, b| a * b),
            IntegerType::S16 => {
                warp.binary(destination, left, right, |a, b| u64::from((a as i16 as i32 * b as i16 as i32) as u32));
            }
            IntegerType::U32 => warp.binary(destination, left, right, |a, b| a * b),
            _ => warp.binary(destination, left, right, |a, b| (a as i32 as i64 * b as i32 as i64) as u64),
        },
        O::Multiply24Low | O::Multiply24High => {
            let shift = if operation == O::Multiply24Low { 0 } else { 16 };
            let signed = kind == IntegerType::S32;
            warp.binary(destination, left, right, |a, b| multiply24(a, b, signed, shift));
        }
        // Division by zero is unspecified by the ISA; hardware's own routines give all ones, and the dividend as remainder.
        O::Divide => lanes!(|a, b| if b == 0 { !0 } else { a.wrapping_div(b) }),
        O::Remainder => lanes!(|a, b| if b == 0 { !0 } else { a.wrapping_rem(b) }),
        O::Minimum => lanes!(|a, b| a.min(b)),
        O::Maximum => lanes!(|a, b| a.max(b)),
        // `.relu` exists for signed types only.
        O::MinimumRelu | O::MaximumRelu if kind != IntegerType::S32 => {
            pairs(warp, operation, kind, destination, left, right);
        }
        O::MinimumRelu => {
            warp.binary(destination, left, right, |a, b| (a as i32).min(b as i32).max(0) as u64);
        }
        O::MaximumRelu => {
            warp.binary(destination, left, right, |a, b| (a as i32).max(b as i32).max(0) as u64);
        }
    }
}

/// Bits 0..32 or 16..48 of the 48-bit product of the low 24 bits.
fn multiply24(a: u64, b: u64, signed: bool, shift: u32) -> u64 {
    let low24 = |x: u64| if signed { i64::from((x as i32) << 8 >> 8) } else { (x & 0xff_ffff) as i64 };
    u64::from(((low24(a) * low24(b)) >> shift) as u32)
}

/// `.u16x2` and `.s16x2`: the operation on each half.
fn pairs(
    warp: &mut Warp<'_>,
    operation: IntegerOperation,
    kind: IntegerType,
    destination: Register,
    left: Operand,
    right: Operand,
) {
    use IntegerOperation as O;
    let signed = kind == IntegerType::S16x2;
    let widen = |half: u64| if signed { i32::from(half as i16) } else { i32::from(half as u16) };
    let apply = |a: u64, b: u64| {
        let (a, b) = (widen(a), widen(b));
        let value = match operation {
            O::Add => a.wrapping_add(b),
            O::Subtract => a.wrapping_sub(b),
            O::Minimum => a.min(b),
            O::Maximum => a.max(b),
            O::MinimumRelu => a.min(b).max(0),
            O::MaximumRelu => a.max(b).max(0),
            _ => unreachable!("the decoder has no other packed integer operation"),
        };
        u64::from(value as u16)
    };
    warp.binary(destination, left, right, |a, b| apply(a, b) | apply(a >> 16, b >> 16) << 16);
}

pub(super) fn unary(
    warp: &mut Warp<'_>,
    operation: IntegerUnaryOperation,
    kind: IntegerType,
    destination: Register,
    source: Operand,
) {
    let bits = match kind {
        IntegerType::S16 => 16,
        IntegerType::S32 => 32,
        _ => 64,
    };
    let mask = u64::MAX >> (64 - bits);
    match operation {
        IntegerUnaryOperation::Negate => warp.unary(destination, source, |a| a.wrapping_neg() & mask),
        IntegerUnaryOperation::Absolute => warp.unary(destination, source, |a| {
            let negative = a >> (bits - 1) & 1 != 0;
            if negative { a.wrapping_neg() & mask } else { a }
        }),
    }
}

pub(super) fn multiply_add(
    warp: &mut Warp<'_>,
    part: MultiplyAddPart,
    kind: IntegerType,
    destination: Register,
    sources: [Operand; 3],
) {
    use MultiplyAddPart as P;
    macro_rules! lanes {
        (|$a:ident, $b:ident, $c:ident, $w:ident| $value:expr) => {
            by_type!(
                kind,
                T,
                U,
                $w,
                warp.ternary(destination, sources, |$a, $b, $c| {
                    let ($a, $b, $c) = ($a as T, $b as T, $c as T);
                    ($value) as U as u64
                }),
                unreachable!("the decoder has no packed mad")
            )
        };
    }
    match part {
        P::Low => lanes!(|a, b, c, W| a.wrapping_mul(b).wrapping_add(c)),
        P::High => lanes!(|a, b, c, W| (((W::from(a) * W::from(b)) >> T::BITS) as T).wrapping_add(c)),
        P::HighSaturate => lanes!(|a, b, c, W| (((W::from(a) * W::from(b)) >> T::BITS) as T).saturating_add(c)),
        P::AbsoluteDifference => lanes!(|a, b, c, W| (a.abs_diff(b) as T).wrapping_add(c)),
        P::Wide => match kind {
            IntegerType::U16 => {
                warp.ternary(destination, sources, |a, b, c| u64::from((a * b) as u32).wrapping_add(c) & 0xffff_ffff);
            }
            IntegerType::S16 => warp.ternary(destination, sources, |a, b, c| {
                u64::from((a as i16 as i32 * b as i16 as i32).wrapping_add(c as i32) as u32)
            }),
            IntegerType::U32 => warp.ternary(destination, sources, |a, b, c| (a * b).wrapping_add(c)),
            _ => warp.ternary(destination, sources, |a, b, c| {
                (a as i32 as i64 * b as i32 as i64).wrapping_add(c as i64) as u64
            }),
        },
        P::Low24 | P::High24 => {
            let shift = if part == P::Low24 { 0 } else { 16 };
            let signed = kind == IntegerType::S32;
            warp.ternary(destination, sources, |a, b, c| {
                u64::from((multiply24(a, b, signed, shift) as u32).wrapping_add(c as u32))
            });
        }
    }
}

pub(super) fn dot_product(
    warp: &mut Warp<'_>,
    form: DotProductForm,
    (left_signed, right_signed): (bool, bool),
    destination: Register,
    sources: [Operand; 3],
) {
    let byte = |word: u64, i: u32, signed: bool| {
        let byte = (word >> (8 * i)) as u8;
        if signed { i32::from(byte as i8) } else { i32::from(byte) }
    };
    let halfword = |word: u64, i: u32, signed: bool| {
        let halfword = (word >> (16 * i)) as u16;
        if signed { i32::from(halfword as i16) } else { i32::from(halfword) }
    };
    warp.ternary(destination, sources, |a, b, c| {
        let mut sum = c as i32;
        match form {
            DotProductForm::Four => {
                for i in 0..4 {
                    sum = sum.wrapping_add(byte(a, i, left_signed) * byte(b, i, right_signed));
                }
            }
            DotProductForm::TwoLow | DotProductForm::TwoHigh => {
                let first = if form == DotProductForm::TwoLow { 0 } else { 2 };
                for i in 0..2 {
                    let product = halfword(a, i, left_signed) * byte(b, first + i, right_signed);
                    sum = sum.wrapping_add(product);
                }
            }
        }
        u64::from(sum as u32)
    });
}

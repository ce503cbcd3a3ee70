//! Comparisons.

use super::format::{decode, flush32};
use super::lanes::{Lanes, Warp, mask_of};
use super::movement::combine;
use crate::program::{
    Combine, ComparedType, Comparison, FloatFormat, FloatProperty, LaneMask, Relation, ScalarInstruction,
};

pub(super) fn execute(warp: &mut Warp<'_>, instruction: &ScalarInstruction) {
    use ScalarInstruction as I;
    match instruction {
        I::SetPredicate { comparison, combine, destination, complement, left, right } => {
            let (a, b) = (warp.fetch(*left), warp.fetch(*right));
            let holds = compare(*comparison, &a, &b);
            let (first, second) = (combined(warp, *combine, holds), combined(warp, *combine, !holds));
            if let Some(destination) = destination {
                warp.set_predicate(*destination, first);
            }
            if let Some(complement) = complement {
                warp.set_predicate(*complement, second);
            }
        }
        I::SetPredicatePair { comparison, combine, low, high, left, right } => {
            let (a, b) = (warp.fetch(*left), warp.fetch(*right));
            let upper = |lanes: &Lanes| lanes.map(|value| value >> 16);
            let lower = |lanes: &Lanes| lanes.map(|value| value & 0xffff);
            let first = combined(warp, *combine, compare(*comparison, &lower(&a), &lower(&b)));
            let second = combined(warp, *combine, compare(*comparison, &upper(&a), &upper(&b)));
            if let Some(low) = low {
                warp.set_predicate(*low, first);
            }
            if let Some(high) = high {
                warp.set_predicate(*high, second);
            }
        }
        I::Set { comparison, combine, truth, destination, left, right } => {
            let (a, b) = (warp.fetch(*left), warp.fetch(*right));
            let holds = combined(warp, *combine, compare(*comparison, &a, &b));
            warp.write(*destination, |lane| if holds >> lane & 1 != 0 { *truth } else { 0 });
        }
        I::TestProperty { property, double, destination, source } => {
            let a = warp.fetch(*source);
            let format = if *double { FloatFormat::F64 } else { FloatFormat::F32 };
            let (smallest_normal, property) =
                (if *double { f64::MIN_POSITIVE } else { f32::MIN_POSITIVE.into() }, *property);
            let holds = mask_of(|lane| {
                let value = decode(a[lane], format);
                let normal = value.is_finite() && value.abs() >= smallest_normal;
                match property {
                    FloatProperty::Finite => value.is_finite(),
                    FloatProperty::Infinite => value.is_infinite(),
                    FloatProperty::Number => !value.is_nan(),
                    FloatProperty::NotANumber => value.is_nan(),
                    // Zero counts as normal (PTX ISA, "testp").
                    FloatProperty::Normal => normal || value == 0.0,
                    FloatProperty::Subnormal => value.is_finite() && value != 0.0 && !normal,
                }
            });
            warp.set_predicate(*destination, holds);
        }
        _ => unreachable!("only comparisons come here"),
    }
}

fn combined(warp: &Warp<'_>, with: Option<Combine>, holds: LaneMask) -> LaneMask {
    match with {
        None => holds,
        Some(with) => combine(with.operation, holds, warp.predicate_source(with.predicate)),
    }
}

/// The lanes in which a comparison holds.
fn compare(comparison: Comparison, a: &Lanes, b: &Lanes) -> LaneMask {
    let relation = comparison.relation;
    match comparison.kind {
        ComparedType::Unsigned => ordered(relation, a, b, |x| x),
        ComparedType::Signed(16) => ordered(relation, a, b, |x| x as i16),
        ComparedType::Signed(32) => ordered(relation, a, b, |x| x as i32),
        ComparedType::Signed(_) => ordered(relation, a, b, |x| x as i64),
        ComparedType::F32 if comparison.flush => partially_ordered(relation, a, b, |x| f64::from(flush32(x))),
        ComparedType::F32 => partially_ordered(relation, a, b, |x| f64::from(f32::from_bits(x as u32))),
        ComparedType::F64 => partially_ordered(relation, a, b, f64::from_bits),
        ComparedType::F16 if comparison.flush => partially_ordered(relation, a, b, |x| {
            // A zero exponent means zero or subnormal.
            let x = if x & 0x7c00 == 0 { x & 0x8000 } else { x };
            decode(x, FloatFormat::F16)
        }),
        ComparedType::F16 => partially_ordered(relation, a, b, |x| decode(x, FloatFormat::F16)),
        ComparedType::Bf16 => partially_ordered(relation, a, b, |x| decode(x, FloatFormat::Bf16)),
    }
}

#[inline(always)]
fn ordered<T: Ord>(relation: Relation, a: &Lanes, b: &Lanes, read: impl Fn(u64) -> T) -> LaneMask {
    match relation {
        Relation::Equal => mask_of(|lane| read(a[lane]) == read(b[lane])),
        Relation::NotEqual => mask_of(|lane| read(a[lane]) != read(b[lane])),
        Relation::Less => mask_of(|lane| read(a[lane]) < read(b[lane])),
        Relation::LessEqual => mask_of(|lane| read(a[lane]) <= read(b[lane])),
        Relation::Greater => mask_of(|lane| read(a[lane]) > read(b[lane])),
        Relation::GreaterEqual => mask_of(|lane| read(a[lane]) >= read(b[lane])),
        _ => unreachable!("the decoder has no unordered comparison of integers"),
    }
}

#[inline(always)]
fn partially_ordered(relation: Relation, a: &Lanes, b: &Lanes, read: impl Fn(u64) -> f64) -> LaneMask {
    let unordered = |lane: usize| read(a[lane]).is_nan() || read(b[lane]).is_nan();
    match relation {
        Relation::Equal => mask_of(|lane| read(a[lane]) == read(b[lane])),
        // `.ne` is false for NaN, unlike `!=`.
        Relation::NotEqual => mask_of(|lane| !unordered(lane) && read(a[lane]) != read(b[lane])),
        Relation::Less => mask_of(|lane| read(a[lane]) < read(b[lane])),
        Relation::LessEqual => mask_of(|lane| read(a[lane]) <= read(b[lane])),
        Relation::Greater => mask_of(|lane| read(a[lane]) > read(b[lane])),
        Relation::GreaterEqual => mask_of(|lane| read(a[lane]) >= read(b[lane])),
        Relation::EqualUnordered => mask_of(|lane| unordered(lane) || read(a[lane]) == read(b[lane])),
        Relation::NotEqualUnordered => mask_of(|lane| read(a[lane]) != read(b[lane])),
        Relation::LessUnordered => mask_of(|lane| unordered(lane) || read(a[lane]) < read(b[lane])),
        Relation::LessEqualUnordered => mask_of(|lane| unordered(lane) || read(a[lane]) <= read(b[lane])),
        Relation::GreaterUnordered => mask_of(|lane| unordered(lane) || read(a[lane]) > read(b[lane])),
        Relation::GreaterEqualUnordered => mask_of(|lane| unordered(lane) || read(a[lane]) >= read(b[lane])),
        Relation::Ordered => mask_of(|lane| !unordered(lane)),
        Relation::Unordered => mask_of(unordered),
    }
}

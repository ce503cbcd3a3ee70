//! Moves, packing, selection, and logic on predicates.

use super::lanes::Warp;
use crate::program::{LaneMask, LogicOperation, Operand, Predicate, PredicateSource, Register, WARP_LANES};

pub(super) fn copy(warp: &mut Warp<'_>, destination: Register, source: Operand) {
    warp.unary(destination, source, |a| a);
}

pub(super) fn pack(warp: &mut Warp<'_>, destination: Register, sources: &[Operand], element_bits: u32) {
    if let [low, high] = sources {
        warp.binary(destination, *low, *high, |low, high| low | high << element_bits);
        return;
    }
    let mut packed = [0; WARP_LANES];
    for (i, source) in sources.iter().enumerate() {
        let element = warp.fetch(*source);
        for (slot, value) in packed.iter_mut().zip(element) {
            *slot |= value << (i as u32 * element_bits);
        }
    }
    warp.write(destination, |lane| packed[lane]);
}

pub(super) fn unpack(warp: &mut Warp<'_>, destinations: &[Option<Register>], source: Operand, element_bits: u32) {
    let packed = warp.fetch(source);
    let mask = (1u64 << element_bits) - 1;
    for (i, destination) in destinations.iter().enumerate() {
        if let Some(destination) = *destination {
            warp.write(destination, |lane| packed[lane] >> (i as u32 * element_bits) & mask);
        }
    }
}

/// 128 bits from some elements to others.
pub(super) fn copy_wide(
    warp: &mut Warp<'_>,
    (destinations, destination_bits): (&[Option<Register>], u32),
    (sources, source_bits): (&[Operand], u32),
) {
    let mut wide = [0u128; WARP_LANES];
    for (i, source) in sources.iter().enumerate() {
        for (slot, value) in wide.iter_mut().zip(warp.fetch(*source)) {
            *slot |= u128::from(value) << (i as u32 * source_bits);
        }
    }
    let mask = u64::MAX >> (64 - destination_bits);
    for (i, destination) in destinations.iter().enumerate() {
        if let Some(destination) = *destination {
            warp.write(destination, |lane| (wide[lane] >> (i as u32 * destination_bits)) as u64 & mask);
        }
    }
}

pub(super) fn select(
    warp: &mut Warp<'_>,
    destination: Register,
    if_true: Operand,
    if_false: Operand,
    predicate: PredicateSource,
) {
    let mask = warp.predicate_source(predicate);
    let (a, b) = (warp.fetch(if_true), warp.fetch(if_false));
    warp.write(destination, |lane| if mask >> lane & 1 != 0 { a[lane] } else { b[lane] });
}

pub(super) fn select_by_sign(warp: &mut Warp<'_>, float: bool, destination: Register, sources: [Operand; 3]) {
    if float {
        // NaN selects the second value; -0 counts as not negative (PTX ISA, "slct").
        warp.ternary(destination, sources, |a, b, c| if f32::from_bits(c as u32) >= 0.0 { a } else { b });
    } else {
        warp.ternary(destination, sources, |a, b, c| if c as i32 >= 0 { a } else { b });
    }
}

/// Logic on 32 lanes at once.
pub(super) fn combine(operation: LogicOperation, left: LaneMask, right: LaneMask) -> LaneMask {
    match operation {
        LogicOperation::And => left & right,
        LogicOperation::Or => left | right,
        LogicOperation::Xor => left ^ right,
    }
}

pub(super) fn predicate_logic(
    warp: &mut Warp<'_>,
    operation: LogicOperation,
    destination: Predicate,
    left: PredicateSource,
    right: PredicateSource,
) {
    let value = combine(operation, warp.predicate_source(left), warp.predicate_source(right));
    warp.set_predicate(destination, value);
}

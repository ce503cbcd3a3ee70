//! Reduction arithmetic of `multimem.ld_reduce` and `multimem.red` (PTX ISA, "multimem.ld_reduce, multimem.st,
//! multimem.red").
//!
//! The ISA does not say in which order the GPUs' values are combined, so the caller gives the order and a test can try
//! several. Accumulation is in the element's own precision, rounded at every step, unless `.acc::f32` or `.acc::f16`
//! widens it; the widened sum is rounded to the element once, to nearest even. Subnormals are kept: the ISA says nothing
//! of flushing them.

use half::{bf16, f16};

use crate::number::NarrowFloat;
use crate::program::{AtomicOperation, ElementType};

/// A combination of modifiers that PTX does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MultimemError {
    /// `multimem.ld_reduce` has no such operation on this element type.
    #[error("multimem.ld_reduce has no {operation:?} on {element:?}")]
    LoadReduce {
        /// Operation.
        operation: AtomicOperation,
        /// Element type.
        element: ElementType,
    },
    /// `multimem.red` has no such operation on this element type.
    #[error("multimem.red has no {operation:?} on {element:?}")]
    Reduce {
        /// Operation.
        operation: AtomicOperation,
        /// Element type.
        element: ElementType,
    },
    /// `.acc::f32` is for f16 and bf16 elements, `.acc::f16` for 8-bit floats, and both only for `.add`.
    #[error("multimem.ld_reduce: {operation:?} on {element:?} cannot be accumulated wider (.acc::f32, .acc::f16)")]
    WideAccumulate {
        /// Operation.
        operation: AtomicOperation,
        /// Element type.
        element: ElementType,
    },
    /// Nothing to reduce.
    #[error("multimem.ld_reduce over no GPU")]
    Empty,
}

/// Says whether `multimem.ld_reduce` exists with these modifiers.
pub fn check_load_reduce(
    operation: AtomicOperation,
    element: ElementType,
    wide_accumulate: bool,
) -> Result<(), MultimemError> {
    use AtomicOperation::{Add, And, Max, Min, Or, Xor};
    use ElementType as E;
    let exists = match operation {
        Add => matches!(element, E::Unsigned(4 | 8) | E::Signed(4) | E::F32 | E::F64) || is_narrow(element),
        Min | Max => matches!(element, E::Unsigned(4 | 8) | E::Signed(4 | 8)) || is_narrow(element),
        And | Or | Xor => matches!(element, E::Bits(4 | 8)),
        _ => false,
    };
    if !exists {
        return Err(MultimemError::LoadReduce { operation, element });
    }
    if wide_accumulate && !(operation == Add && is_narrow(element)) {
        return Err(MultimemError::WideAccumulate { operation, element });
    }
    Ok(())
}

/// Says whether `multimem.red` exists with these modifiers: as `ld_reduce`, but floats only add and there are no 8-bit
/// ones.
pub fn check_reduce(operation: AtomicOperation, element: ElementType) -> Result<(), MultimemError> {
    let refused = MultimemError::Reduce { operation, element };
    check_load_reduce(operation, element, false).map_err(|_| refused)?;
    let only_adds = is_narrow(element);
    let is_fp8 = matches!(element, ElementType::E4m3x4 | ElementType::E5m2x4);
    if is_fp8 || only_adds && operation != AtomicOperation::Add { Err(refused) } else { Ok(()) }
}

/// Reduces one vector element's values, one per GPU, in the order given. Values are the element's bits, zero-extended.
pub fn load_reduce(
    operation: AtomicOperation,
    element: ElementType,
    wide_accumulate: bool,
    values: &[u64],
) -> Result<u64, MultimemError> {
    check_load_reduce(operation, element, wide_accumulate)?;
    let (&first, rest) = values.split_first().ok_or(MultimemError::Empty)?;
    if wide_accumulate {
        return Ok(sum_wide(element, first, rest));
    }
    Ok(rest.iter().fold(first, |accumulator, &value| combine(operation, element, accumulator, value)))
}

/// What one GPU's memory holds after `multimem.red` of `value` into `memory`.
pub fn reduce(operation: AtomicOperation, element: ElementType, memory: u64, value: u64) -> Result<u64, MultimemError> {
    check_reduce(operation, element)?;
    Ok(combine(operation, element, memory, value))
}

fn is_narrow(element: ElementType) -> bool {
    use ElementType as E;
    matches!(element, E::F16 | E::F16x2 | E::Bf16 | E::Bf16x2 | E::E4m3x4 | E::E5m2x4)
}

/// Sums in the wider type and rounds once.
fn sum_wide(element: ElementType, first: u64, rest: &[u64]) -> u64 {
    use ElementType as E;
    match element {
        E::F16 | E::F16x2 => sum_lanes::<16>(first, rest, f32_of_f16, f32_sum, f16_of_f32),
        E::Bf16 | E::Bf16x2 => sum_lanes::<16>(first, rest, f32_of_bf16, f32_sum, bf16_of_f32),
        E::E4m3x4 => sum_lanes::<8>(
            first,
            rest,
            |bits| NarrowFloat::E4m3.decode(bits as u8),
            f16_sum,
            |sum| NarrowFloat::E4m3.encode(sum).into(),
        ),
        E::E5m2x4 => sum_lanes::<8>(
            first,
            rest,
            |bits| NarrowFloat::E5m2.decode(bits as u8),
            f16_sum,
            |sum| NarrowFloat::E5m2.encode(sum).into(),
        ),
        _ => unreachable!("check_load_reduce admits only narrow floats"),
    }
}

/// Applies a sum to each `WIDTH`-bit lane of a packed element of at most 32 bits. (An element with fewer lanes has zeros
/// above, whose sum is zero.)
fn sum_lanes<const WIDTH: u32>(
    first: u64,
    rest: &[u64],
    decode: impl Fn(u64) -> f32,
    add: impl Fn(f32, f32) -> f32,
    encode: impl Fn(f32) -> u64,
) -> u64 {
    let lane = |value: u64, shift: u32| decode(value >> shift & ((1 << WIDTH) - 1));
    (0..32).step_by(WIDTH as usize).fold(0, |packed, shift| {
        let sum = rest.iter().fold(lane(first, shift), |sum, &value| add(sum, lane(value, shift)));
        packed | encode(sum) << shift
    })
}

/// One step in the element's own precision.
fn combine(operation: AtomicOperation, element: ElementType, a: u64, b: u64) -> u64 {
    use ElementType as E;
    let float = |a: f32, b: f32| combine_f32(operation, a, b);
    match element {
        E::Bits(_) => combine_bits(operation, a, b),
        E::Unsigned(4) => combine_integer(operation, a as u32, b as u32, u32::wrapping_add).into(),
        E::Unsigned(_) => combine_integer(operation, a, b, u64::wrapping_add),
        E::Signed(4) => combine_integer(operation, a as i32, b as i32, i32::wrapping_add) as u32 as u64,
        E::Signed(_) => combine_integer(operation, a as i64, b as i64, i64::wrapping_add) as u64,
        E::F16 | E::F16x2 => sum_lanes::<16>(a, &[b], f32_of_f16, float, f16_of_f32),
        E::Bf16 | E::Bf16x2 => sum_lanes::<16>(a, &[b], f32_of_bf16, float, bf16_of_f32),
        E::F32 => float(f32::from_bits(a as u32), f32::from_bits(b as u32)).to_bits().into(),
        E::F64 => (f64::from_bits(a) + f64::from_bits(b)).to_bits(),
        E::E4m3x4 => combine_fp8(NarrowFloat::E4m3, a, b, float),
        E::E5m2x4 => combine_fp8(NarrowFloat::E5m2, a, b, float),
    }
}

fn combine_fp8(format: NarrowFloat, a: u64, b: u64, float: impl Fn(f32, f32) -> f32) -> u64 {
    sum_lanes::<8>(a, &[b], |bits| format.decode(bits as u8), float, |value| format.encode(value).into())
}

fn combine_bits(operation: AtomicOperation, a: u64, b: u64) -> u64 {
    match operation {
        AtomicOperation::And => a & b,
        AtomicOperation::Or => a | b,
        _ => a ^ b,
    }
}

fn combine_integer<T: Ord>(operation: AtomicOperation, a: T, b: T, add: impl Fn(T, T) -> T) -> T {
    match operation {
        AtomicOperation::Min => a.min(b),
        AtomicOperation::Max => a.max(b),
        _ => add(a, b),
    }
}

/// The sum of two f16, bf16 or fp8 numbers in f32 rounds like their sum in infinite precision when it is narrowed next,
/// as f32 has more than twice their significand plus two bits. Minimum and maximum prefer the number to a NaN.
fn combine_f32(operation: AtomicOperation, a: f32, b: f32) -> f32 {
    match operation {
        AtomicOperation::Min => a.min(b),
        AtomicOperation::Max => a.max(b),
        _ => a + b,
    }
}

fn f32_sum(a: f32, b: f32) -> f32 {
    a + b
}

fn f16_sum(a: f32, b: f32) -> f32 {
    f16::from_f32(a + b).to_f32()
}

fn f32_of_f16(bits: u64) -> f32 {
    f16::from_bits(bits as u16).to_f32()
}

fn f16_of_f32(value: f32) -> u64 {
    f16::from_f32(value).to_bits().into()
}

fn f32_of_bf16(bits: u64) -> f32 {
    bf16::from_bits(bits as u16).to_f32()
}

fn bf16_of_f32(value: f32) -> u64 {
    bf16::from_f32(value).to_bits().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use AtomicOperation::{Add, And, Max, Min, Or, Xor};
    use ElementType as E;

    fn bf16x2(low: f32, high: f32) -> u64 {
        bf16_of_f32(low) | bf16_of_f32(high) << 16
    }

    fn f16x2(low: f32, high: f32) -> u64 {
        f16_of_f32(low) | f16_of_f32(high) << 16
    }

    fn sum(element: ElementType, wide: bool, values: &[u64]) -> u64 {
        load_reduce(Add, element, wide, values).unwrap()
    }

    /// 256 + 1 + 1: bf16 has 8 significant bits, so each 1 alone is half a unit and ties to even, while both together
    /// are a unit.
    #[test]
    fn wide_accumulation_rounds_once_and_narrow_at_each_step() {
        let values = [bf16x2(256.0, -256.0), bf16x2(1.0, -1.0), bf16x2(1.0, -1.0)];
        assert_eq!(sum(E::Bf16x2, true, &values), bf16x2(258.0, -258.0));
        assert_eq!(sum(E::Bf16x2, false, &values), bf16x2(256.0, -256.0));
        let values = [f16x2(2048.0, 0.0), f16x2(1.0, 0.0), f16x2(1.0, 0.0)];
        assert_eq!(sum(E::F16x2, true, &values), f16x2(2050.0, 0.0));
        assert_eq!(sum(E::F16x2, false, &values), f16x2(2048.0, 0.0));
    }

    #[test]
    fn the_order_is_the_callers() {
        let values = [bf16x2(256.0, 0.0), bf16x2(1.0, 0.0), bf16x2(1.0, 0.0)];
        let reversed: Vec<u64> = values.iter().rev().copied().collect();
        assert_eq!(sum(E::Bf16x2, false, &values), bf16x2(256.0, 0.0));
        assert_eq!(sum(E::Bf16x2, false, &reversed), bf16x2(258.0, 0.0));
        let values = [1e30f32, -1e30, 1.0].map(|value| u64::from(value.to_bits()));
        assert_eq!(sum(E::F32, false, &values), 1f32.to_bits().into());
        let reversed: Vec<u64> = values.iter().rev().copied().collect();
        assert_eq!(sum(E::F32, false, &reversed), 0);
    }

    #[test]
    fn eight_bit_floats_accumulate_in_f16_when_asked() {
        let packed = |values: [f32; 4]| {
            values.iter().rev().fold(0, |packed, &v| packed << 8 | u64::from(NarrowFloat::E4m3.encode(v)))
        };
        let values = [packed([16.0, 1.0, 0.5, 448.0]), packed([1.0; 4]), packed([1.0; 4])];
        assert_eq!(sum(E::E4m3x4, true, &values), packed([18.0, 3.0, 2.5, 448.0]));
        assert_eq!(sum(E::E4m3x4, false, &values), packed([16.0, 3.0, 2.5, 448.0]));
    }

    #[test]
    fn integers_wrap_and_compare_by_sign() {
        let minus_one = u64::from(u32::MAX);
        assert_eq!(sum(E::Unsigned(4), false, &[minus_one, 2]), 1);
        assert_eq!(sum(E::Signed(4), false, &[minus_one, minus_one]), u64::from(u32::MAX - 1));
        assert_eq!(sum(E::Unsigned(8), false, &[u64::MAX, 3]), 2);
        assert_eq!(load_reduce(Min, E::Signed(4), false, &[minus_one, 1]), Ok(minus_one));
        assert_eq!(load_reduce(Min, E::Unsigned(4), false, &[minus_one, 1]), Ok(1));
        assert_eq!(load_reduce(Max, E::Signed(8), false, &[u64::MAX, 1]), Ok(1));
        assert_eq!(load_reduce(And, E::Bits(4), false, &[0b1100, 0b1010]), Ok(0b1000));
        assert_eq!(load_reduce(Or, E::Bits(8), false, &[0b1100, 0b1010]), Ok(0b1110));
        assert_eq!(load_reduce(Xor, E::Bits(8), false, &[0b1100, 0b1010]), Ok(0b0110));
    }

    #[test]
    fn minimum_and_maximum_of_halves() {
        let values = [bf16x2(1.0, f32::NAN), bf16x2(-3.0, 2.0)];
        assert_eq!(load_reduce(Max, E::Bf16x2, false, &values), Ok(bf16x2(1.0, 2.0)));
        assert_eq!(load_reduce(Min, E::Bf16x2, false, &values), Ok(bf16x2(-3.0, 2.0)));
    }

    #[test]
    fn red_adds_one_value_to_memory() {
        assert_eq!(reduce(Add, E::Signed(4), 5, u64::from(u32::MAX)), Ok(4));
        assert_eq!(reduce(Add, E::F32, 1f32.to_bits().into(), 2f32.to_bits().into()), Ok(3f32.to_bits().into()));
        assert_eq!(reduce(Add, E::F64, 1f64.to_bits(), 2f64.to_bits()), Ok(3f64.to_bits()));
        assert_eq!(reduce(Add, E::Bf16x2, bf16x2(1.0, 2.0), bf16x2(3.0, 4.0)), Ok(bf16x2(4.0, 6.0)));
    }

    #[test]
    fn combinations_that_ptx_lacks_are_refused() {
        for (operation, element) in
            [(Max, E::F32), (Min, E::F64), (Add, E::Signed(8)), (And, E::Unsigned(4)), (Add, E::Bits(4))]
        {
            let refused = Err(MultimemError::LoadReduce { operation, element });
            assert_eq!(load_reduce(operation, element, false, &[0, 0]), refused);
        }
        for (operation, element) in [(Add, E::F32), (Max, E::Bf16x2), (Add, E::Unsigned(4))] {
            let refused = Err(MultimemError::WideAccumulate { operation, element });
            assert_eq!(load_reduce(operation, element, true, &[0, 0]), refused);
        }
        for (operation, element) in [(Max, E::Bf16x2), (Add, E::E4m3x4), (Max, E::F32)] {
            assert_eq!(reduce(operation, element, 0, 0), Err(MultimemError::Reduce { operation, element }));
        }
        assert_eq!(load_reduce(Add, E::F32, false, &[]), Err(MultimemError::Empty));
    }
}

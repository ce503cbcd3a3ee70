//! Arithmetic of `atom` and `red`.

use half::{bf16, f16};

use crate::program::{AtomicOperation, ElementType};

/// A combination of modifiers that PTX does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("there is no atomic {operation:?} on {element:?}")]
pub struct AtomicError {
    /// Operation.
    pub operation: AtomicOperation,
    /// Element type.
    pub element: ElementType,
}

fn truncate(value: u64, bytes: u32) -> u64 {
    if bytes == 8 { value } else { value & ((1 << (8 * bytes)) - 1) }
}

fn signed(value: u64, bytes: u32) -> i64 {
    let shift = 64 - 8 * bytes;
    ((value << shift) as i64) >> shift
}

/// The value that replaces `old`; `operand` is the second one for compare-and-swap.
pub(crate) fn atomic_update(
    operation: AtomicOperation,
    element: ElementType,
    old: u64,
    compare: u64,
    operand: u64,
) -> Result<u64, AtomicError> {
    use AtomicOperation as Op;
    let bytes = element.bytes();
    let unsupported = AtomicError { operation, element };
    let (a, b) = (truncate(old, bytes), truncate(operand, bytes));
    let value = match (operation, element) {
        (Op::Exchange, _) => b,
        (Op::CompareAndSwap, _) => {
            if a == truncate(compare, bytes) {
                b
            } else {
                a
            }
        }
        (Op::And, ElementType::Bits(_) | ElementType::Unsigned(_) | ElementType::Signed(_)) => a & b,
        (Op::Or, ElementType::Bits(_) | ElementType::Unsigned(_) | ElementType::Signed(_)) => a | b,
        (Op::Xor, ElementType::Bits(_) | ElementType::Unsigned(_) | ElementType::Signed(_)) => a ^ b,
        (_, ElementType::Bits(_) | ElementType::Unsigned(_)) => match operation {
            Op::Add => a.wrapping_add(b),
            Op::Min => a.min(b),
            Op::Max => a.max(b),
            Op::Increment => {
                if a >= b {
                    0
                } else {
                    a + 1
                }
            }
            Op::Decrement => {
                if a == 0 || a > b {
                    b
                } else {
                    a - 1
                }
            }
            _ => return Err(unsupported),
        },
        (_, ElementType::Signed(_)) => match operation {
            Op::Add => a.wrapping_add(b),
            Op::Min => signed(a, bytes).min(signed(b, bytes)) as u64,
            Op::Max => signed(a, bytes).max(signed(b, bytes)) as u64,
            _ => return Err(unsupported),
        },
        (Op::Add, ElementType::F32) => (f32::from_bits(a as u32) + f32::from_bits(b as u32)).to_bits().into(),
        (Op::Add, ElementType::F64) => (f64::from_bits(a) + f64::from_bits(b)).to_bits(),
        (_, ElementType::F16 | ElementType::F16x2) => halves(element, a, b, |x, y| {
            half_update(operation, f16::from_bits(x).to_f32(), f16::from_bits(y).to_f32())
                .map(|value| f16::from_f32(value).to_bits())
        })
        .ok_or(unsupported)?,
        (_, ElementType::Bf16 | ElementType::Bf16x2) => halves(element, a, b, |x, y| {
            half_update(operation, bf16::from_bits(x).to_f32(), bf16::from_bits(y).to_f32())
                .map(|value| bf16::from_f32(value).to_bits())
        })
        .ok_or(unsupported)?,
        _ => return Err(unsupported),
    };
    Ok(truncate(value, bytes))
}

/// The same in device memory, where `.add.f32` flushes subnormal inputs and results to zero of their sign (PTX ISA, "atom",
/// "red" and "cp.reduce.async.bulk"); in shared memory it does not.
pub(crate) fn device_update(
    operation: AtomicOperation,
    element: ElementType,
    old: u64,
    compare: u64,
    operand: u64,
) -> Result<u64, AtomicError> {
    if (operation, element) != (AtomicOperation::Add, ElementType::F32) {
        return atomic_update(operation, element, old, compare, operand);
    }
    let flush = |bits: u64| {
        let value = f32::from_bits(bits as u32);
        if value.is_subnormal() { u64::from(0f32.copysign(value).to_bits()) } else { bits }
    };
    Ok(flush(atomic_update(operation, element, flush(old), compare, flush(operand))?))
}

fn half_update(operation: AtomicOperation, a: f32, b: f32) -> Option<f32> {
    match operation {
        AtomicOperation::Add => Some(a + b),
        AtomicOperation::Min => Some(a.min(b)),
        AtomicOperation::Max => Some(a.max(b)),
        _ => None,
    }
}

fn halves(element: ElementType, a: u64, b: u64, f: impl Fn(u16, u16) -> Option<u16>) -> Option<u64> {
    let low = u64::from(f(a as u16, b as u16)?);
    if element.bytes() == 2 { Some(low) } else { Some(low | u64::from(f((a >> 16) as u16, (b >> 16) as u16)?) << 16) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use AtomicOperation as Op;
    use ElementType as Ty;

    fn update(operation: Op, element: Ty, old: u64, operand: u64) -> u64 {
        atomic_update(operation, element, old, 0, operand).unwrap()
    }

    #[test]
    fn integers() {
        assert_eq!(update(Op::Add, Ty::Unsigned(4), 0xffff_ffff, 2), 1);
        assert_eq!(update(Op::Min, Ty::Signed(4), 0xffff_ffff, 2), 0xffff_ffff);
        assert_eq!(update(Op::Min, Ty::Unsigned(4), 0xffff_ffff, 2), 2);
        assert_eq!(update(Op::Increment, Ty::Unsigned(4), 7, 7), 0);
        assert_eq!(update(Op::Decrement, Ty::Unsigned(4), 0, 7), 7);
        assert_eq!(atomic_update(Op::CompareAndSwap, Ty::Bits(8), 5, 5, 9), Ok(9));
        assert_eq!(atomic_update(Op::CompareAndSwap, Ty::Bits(8), 5, 4, 9), Ok(5));
    }

    #[test]
    fn floats() {
        assert_eq!(update(Op::Add, Ty::F32, 1.5f32.to_bits().into(), 2.0f32.to_bits().into()), 3.5f32.to_bits().into());
        let two_ones = 0x3f80_3f80;
        assert_eq!(update(Op::Add, Ty::Bf16x2, two_ones, two_ones), 0x4000_4000);
        assert!(atomic_update(Op::Min, Ty::F32, 0, 0, 0).is_err());
    }
}

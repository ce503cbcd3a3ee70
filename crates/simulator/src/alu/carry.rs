//! Extended-precision arithmetic (PTX ISA, "Extended-Precision Integer Arithmetic Instructions").

use super::lanes::{Lanes, Warp, mask_of};
use crate::program::{IntegerType, LaneMask, Register, ScalarInstruction, WARP_LANES};

pub(super) fn execute(warp: &mut Warp<'_>, instruction: &ScalarInstruction) {
    match *instruction {
        ScalarInstruction::Carry { subtract, carry_in, carry_out, wide, destination, left, right } => {
            let (a, b) = (warp.fetch(left), warp.fetch(right));
            finish(warp, destination, &a, &b, subtract, carry_in, carry_out, if wide { 64 } else { 32 });
        }
        ScalarInstruction::MultiplyAddCarry { high, carry_in, carry_out, kind, destination, left, right, addend } => {
            let (a, b, c) = (warp.fetch(left), warp.fetch(right), warp.fetch(addend));
            let product: Lanes = std::array::from_fn(|lane| multiply(a[lane], b[lane], kind, high));
            let bits = if matches!(kind, IntegerType::U64 | IntegerType::S64) { 64 } else { 32 };
            finish(warp, destination, &product, &c, false, carry_in, carry_out, bits);
        }
        _ => unreachable!("only instructions with a carry come here"),
    }
}

fn multiply(a: u64, b: u64, kind: IntegerType, high: bool) -> u64 {
    match kind {
        IntegerType::U64 => ((u128::from(a) * u128::from(b)) >> if high { 64 } else { 0 }) as u64,
        IntegerType::S64 => ((i128::from(a as i64) * i128::from(b as i64)) >> if high { 64 } else { 0 }) as u64,
        IntegerType::S32 => {
            let product = i64::from(a as i32) * i64::from(b as i32);
            u64::from((product >> if high { 32 } else { 0 }) as u32)
        }
        _ => u64::from(((a * b) >> if high { 32 } else { 0 }) as u32),
    }
}

#[allow(clippy::too_many_arguments)]
fn finish(
    warp: &mut Warp<'_>,
    destination: Register,
    a: &Lanes,
    b: &Lanes,
    subtract: bool,
    carry_in: bool,
    carry_out: bool,
    bits: u32,
) {
    let carry = if carry_in { warp.registers.carry } else { 0 };
    let mut results = [0u128; WARP_LANES];
    for lane in 0..WARP_LANES {
        let flag = u128::from(carry >> lane & 1);
        let (a, b) = (u128::from(a[lane]), u128::from(b[lane]));
        // A borrow shows as the bits above the width being ones.
        results[lane] = if subtract { a.wrapping_sub(b).wrapping_sub(flag) } else { a + b + flag };
    }
    let mask = u64::MAX >> (64 - bits);
    warp.write(destination, |lane| results[lane] as u64 & mask);
    if carry_out {
        let flags: LaneMask = mask_of(|lane| results[lane] >> bits & 1 != 0);
        let lanes = warp.lanes;
        warp.registers.carry = warp.registers.carry & !lanes | flags & lanes;
    }
}

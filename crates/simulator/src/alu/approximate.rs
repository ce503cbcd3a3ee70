//! `.approx` instructions: the host's functions in `f64`, rounded to the format. Hardware's results differ from these in
//! the last bits, within the error bounds that the ISA gives for each instruction.

use super::format::{bits32, decode, encode, flush32};
use super::half::format_of;
use super::lanes::Warp;
use crate::program::{ApproximateFormat, ApproximateOperation, FloatFormat, Operand, Register, Rounding};

fn evaluate(operation: ApproximateOperation, x: f64) -> f64 {
    use ApproximateOperation as O;
    match operation {
        O::Reciprocal => 1.0 / x,
        O::SquareRoot => x.sqrt(),
        // The reciprocal root of -0 is -infinity (PTX ISA, "rsqrt").
        O::ReciprocalSquareRoot => 1.0 / x.sqrt(),
        O::Sine => x.sin(),
        O::Cosine => x.cos(),
        O::Log2 => x.log2(),
        O::Exp2 => x.exp2(),
        O::Tanh => x.tanh(),
    }
}

pub(super) fn execute(
    warp: &mut Warp<'_>,
    operation: ApproximateOperation,
    format: ApproximateFormat,
    flush: bool,
    destination: Register,
    source: Operand,
) {
    match format {
        ApproximateFormat::F32 => warp.unary(destination, source, |a| {
            let a = if flush { flush32(a) } else { f32::from_bits(a as u32) };
            let result = evaluate(operation, a.into()) as f32;
            bits32(if flush { flush32(result.to_bits().into()) } else { result })
        }),
        // With `.ftz` only the upper word of operand and result counts (PTX ISA, "rcp.approx.ftz.f64", "rsqrt.approx.ftz.f64").
        ApproximateFormat::F64 => warp.unary(destination, source, |a| {
            if !flush {
                return evaluate(operation, f64::from_bits(a)).to_bits();
            }
            let upper = |bits: u64| bits & 0xffff_ffff_0000_0000;
            let flushed = |bits: u64| if bits & 0x7ff0_0000_0000_0000 == 0 { bits & 1 << 63 } else { bits };
            flushed(upper(evaluate(operation, f64::from_bits(flushed(upper(a)))).to_bits()))
        }),
        ApproximateFormat::Half { format, packed } => {
            let format = format_of(format);
            let one = |a: u64| {
                let bits = encode(evaluate(operation, decode(a, format)), format, Rounding::NearestEven, false);
                let subnormal = format == FloatFormat::Bf16 && bits & 0x7f80 == 0;
                if flush && subnormal { bits & 0x8000 } else { bits }
            };
            if packed {
                warp.unary(destination, source, |a| one(a & 0xffff) | one(a >> 16) << 16);
            } else {
                warp.unary(destination, source, one);
            }
        }
    }
}

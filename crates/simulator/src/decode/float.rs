//! `f32`, `f64` and `f32x2` arithmetic.

use super::form::Form;
use super::target::Needs;
use crate::program::{
    ApproximateFormat, ApproximateOperation, FloatModes, FloatOperation, FloatProperty, FloatUnaryOperation,
    HalfFormat, Rounding, ScalarInstruction,
};
use crate::ptx::PtxError;
use crate::ptx::ast::Type;

const BOTH: [Type; 2] = [Type::F32, Type::F64];

const ROUNDINGS: [(&str, Rounding); 4] =
    [(".rn", Rounding::NearestEven), (".rz", Rounding::Zero), (".rm", Rounding::Down), (".rp", Rounding::Up)];

/// `.rnd`, `.ftz` and `.sat` of an arithmetic instruction, and its type.
fn modes(form: &mut Form<'_, '_>, saturates: bool, types: &[Type]) -> Result<(FloatModes, Type), PtxError> {
    let rounding = form.choose(&ROUNDINGS).unwrap_or(Rounding::NearestEven);
    let flush = form.has(".ftz");
    let saturate = saturates && form.has(".sat");
    let ty = form.data_type(types)?;
    if ty == Type::F64 && (flush || saturate) {
        return Err(form.missing("`.f32` with `.ftz` or `.sat`"));
    }
    Ok((FloatModes { rounding, flush, saturate, ..FloatModes::NEAREST }, ty))
}

fn operation(form: &Form<'_, '_>) -> FloatOperation {
    match form.instruction.opcode.text {
        "add" => FloatOperation::Add,
        "sub" => FloatOperation::Subtract,
        "mul" => FloatOperation::Multiply,
        "div" => FloatOperation::Divide,
        "min" => FloatOperation::Minimum,
        _ => FloatOperation::Maximum,
    }
}

fn two_operands(form: &mut Form<'_, '_>, modes: FloatModes, ty: Type) -> Result<ScalarInstruction, PtxError> {
    let [destination, left, right] = form.exactly()?;
    Ok(ScalarInstruction::Float {
        operation: operation(form),
        double: ty == Type::F64,
        modes,
        destination: form.register(destination, ty)?,
        left: form.source(left, ty)?,
        right: form.source(right, ty)?,
    })
}

/// `add`, `sub`, `mul`.
pub(super) fn binary(form: &mut Form<'_, '_>) -> Result<ScalarInstruction, PtxError> {
    let (modes, ty) = modes(form, true, &BOTH)?;
    two_operands(form, modes, ty)
}

/// `div`. `.approx` and `.full` allow an error of 2 ulp; the simulator divides exactly.
pub(super) fn divide(form: &mut Form<'_, '_>) -> Result<ScalarInstruction, PtxError> {
    if form.choose(&[(".approx", ()), (".full", ())]).is_some() {
        let flush = form.has(".ftz");
        let ty = form.data_type(&[Type::F32])?;
        return two_operands(form, FloatModes { flush, ..FloatModes::NEAREST }, ty);
    }
    require_rounding(form)?;
    let (modes, ty) = modes(form, false, &BOTH)?;
    two_operands(form, modes, ty)
}

/// Rounding is not optional on these instructions.
fn require_rounding(form: &Form<'_, '_>) -> Result<(), PtxError> {
    let rounded = form.instruction.modifiers.iter().any(|m| ROUNDINGS.iter().any(|(text, _)| *text == m.text));
    if rounded { Ok(()) } else { Err(form.missing("a rounding (`.rn`, `.rz`, `.rm`, `.rp`)")) }
}

/// `min` and `max` of two or three operands.
pub(super) fn min_or_max(form: &mut Form<'_, '_>) -> Result<ScalarInstruction, PtxError> {
    let flush = form.has(".ftz");
    let propagate_nan = form.has(".NaN");
    let xor_sign = form.has(".xorsign");
    let absolute = form.has(".abs");
    if xor_sign && !absolute {
        return Err(form.missing("`.abs` after `.xorsign`"));
    }
    let ty = form.data_type(&BOTH)?;
    if ty == Type::F64 && (flush || propagate_nan || absolute) {
        return Err(form.missing("`.f32` with these modifiers"));
    }
    if propagate_nan || xor_sign {
        form.needs(Needs::SM80)?;
    }
    let modes = FloatModes { flush, propagate_nan, xor_sign, absolute, ..FloatModes::NEAREST };
    if form.instruction.operands.len() == 4 {
        form.needs(Needs::SM100)?;
        if ty == Type::F64 || xor_sign {
            return Err(form.unsupported(": three operands with these modifiers"));
        }
        let [destination, a, b, c] = form.exactly()?;
        return Ok(ScalarInstruction::FloatMinMax3 {
            operation: operation(form),
            modes,
            destination: form.register(destination, ty)?,
            sources: [form.source(a, ty)?, form.source(b, ty)?, form.source(c, ty)?],
        });
    }
    if absolute && !xor_sign {
        return Err(form.missing("`.xorsign` before `.abs`, or three operands"));
    }
    two_operands(form, modes, ty)
}

/// `neg` and `abs`.
pub(super) fn unary(form: &mut Form<'_, '_>) -> Result<ScalarInstruction, PtxError> {
    let operation =
        if form.instruction.opcode.text == "neg" { FloatUnaryOperation::Negate } else { FloatUnaryOperation::Absolute };
    let flush = form.has(".ftz");
    let ty = form.data_type(&BOTH)?;
    if flush && ty == Type::F64 {
        return Err(form.missing("`.f32` with `.ftz`"));
    }
    one_operand(form, operation, FloatModes { flush, ..FloatModes::NEAREST }, ty)
}

fn one_operand(
    form: &mut Form<'_, '_>,
    operation: FloatUnaryOperation,
    modes: FloatModes,
    ty: Type,
) -> Result<ScalarInstruction, PtxError> {
    let [destination, source] = form.exactly()?;
    Ok(ScalarInstruction::FloatUnary {
        operation,
        double: ty == Type::F64,
        modes,
        destination: form.register(destination, ty)?,
        source: form.source(source, ty)?,
    })
}

/// `fma`, and `mad` on floating types, which is the same.
pub(super) fn fused_multiply_add(form: &mut Form<'_, '_>) -> Result<ScalarInstruction, PtxError> {
    require_rounding(form)?;
    let (modes, ty) = modes(form, true, &BOTH)?;
    let [destination, left, right, addend] = form.exactly()?;
    Ok(ScalarInstruction::FusedMultiplyAdd {
        double: ty == Type::F64,
        modes,
        destination: form.register(destination, ty)?,
        left: form.source(left, ty)?,
        right: form.source(right, ty)?,
        addend: form.source(addend, ty)?,
    })
}

/// `rcp` and `sqrt`.
pub(super) fn root_or_reciprocal(form: &mut Form<'_, '_>) -> Result<ScalarInstruction, PtxError> {
    if form.instruction.modifiers.iter().any(|modifier| modifier.text == ".approx") {
        return approximate(form);
    }
    require_rounding(form)?;
    let operation = if form.instruction.opcode.text == "rcp" {
        FloatUnaryOperation::Reciprocal
    } else {
        FloatUnaryOperation::SquareRoot
    };
    let (modes, ty) = modes(form, false, &BOTH)?;
    one_operand(form, operation, modes, ty)
}

/// `.approx` instructions.
pub(super) fn approximate(form: &mut Form<'_, '_>) -> Result<ScalarInstruction, PtxError> {
    use ApproximateOperation as O;
    form.require(".approx")?;
    let flush = form.has(".ftz");
    let halves = [Type::F32, Type::F16, Type::F16x2, Type::Bf16, Type::Bf16x2];
    let (operation, types): (_, &[Type]) = match form.instruction.opcode.text {
        "rcp" => (O::Reciprocal, &BOTH),
        "rsqrt" => (O::ReciprocalSquareRoot, &BOTH),
        "sqrt" => (O::SquareRoot, &BOTH[..1]),
        "sin" => (O::Sine, &BOTH[..1]),
        "cos" => (O::Cosine, &BOTH[..1]),
        "lg2" => (O::Log2, &BOTH[..1]),
        "ex2" => (O::Exp2, &halves),
        _ => (O::Tanh, &halves),
    };
    let ty = form.data_type(types)?;
    let format = match ty {
        Type::F32 => ApproximateFormat::F32,
        Type::F64 => ApproximateFormat::F64,
        Type::F16 => ApproximateFormat::Half { format: HalfFormat::F16, packed: false },
        Type::F16x2 => ApproximateFormat::Half { format: HalfFormat::F16, packed: true },
        Type::Bf16 => ApproximateFormat::Half { format: HalfFormat::Bf16, packed: false },
        _ => ApproximateFormat::Half { format: HalfFormat::Bf16, packed: true },
    };
    let bfloat = matches!(ty, Type::Bf16 | Type::Bf16x2);
    match operation {
        O::Exp2 if bfloat != flush && ty != Type::F32 => {
            return Err(form.missing("`.ftz` with `.bf16`, and no `.ftz` with `.f16`"));
        }
        O::Reciprocal if ty == Type::F64 && !flush => return Err(form.missing("`.ftz` with `.f64`")),
        O::Tanh if flush => return Err(form.missing("no `.ftz`")),
        _ => {}
    }
    if bfloat {
        form.needs(Needs::SM90)?;
    }
    let [destination, source] = form.exactly()?;
    Ok(ScalarInstruction::Approximate {
        operation,
        format,
        flush,
        destination: form.register(destination, ty)?,
        source: form.source(source, ty)?,
    })
}

/// `add`, `sub`, `mul` on `.f32x2`.
pub(super) fn pair(form: &mut Form<'_, '_>) -> Result<ScalarInstruction, PtxError> {
    form.needs(Needs::SM100)?;
    let (modes, ty) = modes(form, false, &[Type::F32x2])?;
    let [destination, left, right] = form.exactly()?;
    Ok(ScalarInstruction::FloatPair {
        operation: operation(form),
        modes,
        destination: form.register(destination, ty)?,
        left: form.source(left, ty)?,
        right: form.source(right, ty)?,
    })
}

/// `fma` on `.f32x2`.
pub(super) fn pair_fused_multiply_add(form: &mut Form<'_, '_>) -> Result<ScalarInstruction, PtxError> {
    form.needs(Needs::SM100)?;
    require_rounding(form)?;
    let (modes, ty) = modes(form, false, &[Type::F32x2])?;
    let [destination, left, right, addend] = form.exactly()?;
    Ok(ScalarInstruction::FloatPairFusedMultiplyAdd {
        modes,
        destination: form.register(destination, ty)?,
        left: form.source(left, ty)?,
        right: form.source(right, ty)?,
        addend: form.source(addend, ty)?,
    })
}

/// `copysign`.
pub(super) fn copy_sign(form: &mut Form<'_, '_>) -> Result<ScalarInstruction, PtxError> {
    let ty = form.data_type(&BOTH)?;
    let [destination, sign, magnitude] = form.exactly()?;
    Ok(ScalarInstruction::CopySign {
        double: ty == Type::F64,
        destination: form.register(destination, ty)?,
        sign: form.source(sign, ty)?,
        magnitude: form.source(magnitude, ty)?,
    })
}

/// `testp`.
pub(super) fn test_property(form: &mut Form<'_, '_>) -> Result<ScalarInstruction, PtxError> {
    let properties = [
        (".finite", FloatProperty::Finite),
        (".infinite", FloatProperty::Infinite),
        (".number", FloatProperty::Number),
        (".notanumber", FloatProperty::NotANumber),
        (".normal", FloatProperty::Normal),
        (".subnormal", FloatProperty::Subnormal),
    ];
    let property = form.choose_required("a property", &properties)?;
    let ty = form.data_type(&BOTH)?;
    let [destination, source] = form.exactly()?;
    Ok(ScalarInstruction::TestProperty {
        property,
        double: ty == Type::F64,
        destination: form.predicate(destination)?,
        source: form.source(source, ty)?,
    })
}

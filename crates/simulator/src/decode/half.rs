//! `f16`, `bf16` and their pairs.

use super::form::Form;
use super::target::Needs;
use crate::program::{FloatModes, FloatOperation, FloatUnaryOperation, HalfFormat, ScalarInstruction};
use crate::ptx::PtxError;
use crate::ptx::ast::Type;

const TYPES: [Type; 4] = [Type::F16, Type::F16x2, Type::Bf16, Type::Bf16x2];

fn format(ty: Type) -> (HalfFormat, bool) {
    let format = if matches!(ty, Type::F16 | Type::F16x2) { HalfFormat::F16 } else { HalfFormat::Bf16 };
    (format, matches!(ty, Type::F16x2 | Type::Bf16x2))
}

fn operation(form: &Form<'_, '_>) -> FloatOperation {
    match form.instruction.opcode.text {
        "add" => FloatOperation::Add,
        "sub" => FloatOperation::Subtract,
        "mul" => FloatOperation::Multiply,
        "min" => FloatOperation::Minimum,
        _ => FloatOperation::Maximum,
    }
}

/// The type; flushing and saturation exist for `f16` only.
fn data_type(form: &mut Form<'_, '_>, modes: FloatModes) -> Result<Type, PtxError> {
    let ty = form.data_type(&TYPES)?;
    if format(ty).0 == HalfFormat::Bf16 && (modes.flush || modes.saturate) {
        return Err(form.missing("`.f16` or `.f16x2` with `.ftz` or `.sat`"));
    }
    Ok(ty)
}

fn two_operands(form: &mut Form<'_, '_>, modes: FloatModes, ty: Type) -> Result<ScalarInstruction, PtxError> {
    let [destination, left, right] = form.exactly()?;
    let (format, packed) = format(ty);
    Ok(ScalarInstruction::Half {
        operation: operation(form),
        format,
        packed,
        modes,
        destination: form.register(destination, ty)?,
        left: form.source(left, ty)?,
        right: form.source(right, ty)?,
    })
}

/// `add`, `sub`, `mul`.
pub(super) fn binary(form: &mut Form<'_, '_>) -> Result<ScalarInstruction, PtxError> {
    form.has(".rn");
    let modes = FloatModes { flush: form.has(".ftz"), saturate: form.has(".sat"), ..FloatModes::NEAREST };
    let ty = data_type(form, modes)?;
    if format(ty).0 == HalfFormat::Bf16 {
        form.needs(Needs::SM90)?;
    }
    two_operands(form, modes, ty)
}

/// `min` and `max`.
pub(super) fn min_or_max(form: &mut Form<'_, '_>) -> Result<ScalarInstruction, PtxError> {
    let mut modes = FloatModes { flush: form.has(".ftz"), propagate_nan: form.has(".NaN"), ..FloatModes::NEAREST };
    modes.xor_sign = form.has(".xorsign");
    if modes.xor_sign {
        form.require(".abs")?;
        modes.absolute = true;
    }
    let ty = data_type(form, modes)?;
    form.needs(Needs::SM80)?;
    two_operands(form, modes, ty)
}

/// `neg` and `abs`.
pub(super) fn unary(form: &mut Form<'_, '_>) -> Result<ScalarInstruction, PtxError> {
    let operation =
        if form.instruction.opcode.text == "neg" { FloatUnaryOperation::Negate } else { FloatUnaryOperation::Absolute };
    let flush = form.has(".ftz");
    let ty = data_type(form, FloatModes { flush, ..FloatModes::NEAREST })?;
    let [destination, source] = form.exactly()?;
    let (format, packed) = format(ty);
    Ok(ScalarInstruction::HalfUnary {
        operation,
        format,
        packed,
        flush,
        destination: form.register(destination, ty)?,
        source: form.source(source, ty)?,
    })
}

/// `fma`.
pub(super) fn fused_multiply_add(form: &mut Form<'_, '_>) -> Result<ScalarInstruction, PtxError> {
    if form.instruction.opcode.text != "fma" {
        return Err(form.unknown());
    }
    form.require(".rn")?;
    let modes = FloatModes {
        flush: form.has(".ftz"),
        saturate: form.has(".sat"),
        relu: form.has(".relu"),
        ..FloatModes::NEAREST
    };
    if modes.saturate && modes.relu {
        return Err(form.missing("only one of `.sat` and `.relu`"));
    }
    let ty = data_type(form, modes)?;
    let [destination, left, right, addend] = form.exactly()?;
    let (format, packed) = format(ty);
    Ok(ScalarInstruction::HalfFusedMultiplyAdd {
        format,
        packed,
        modes,
        destination: form.register(destination, ty)?,
        left: form.source(left, ty)?,
        right: form.source(right, ty)?,
        addend: form.source(addend, ty)?,
    })
}

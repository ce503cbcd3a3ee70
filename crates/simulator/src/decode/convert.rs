//! `cvt` (PTX ISA, "Data Movement and Conversion Instructions: cvt").

use super::form::Form;
use super::operand::Width;
use super::target::Needs;
use crate::program::{Convert, ConvertModes, FloatFormat, NumberFormat, Rounding, ScalarInstruction};
use crate::ptx::PtxError;
use crate::ptx::ast::Type;

const TYPES: [Type; 18] = [
    Type::U8,
    Type::U16,
    Type::U32,
    Type::U64,
    Type::S8,
    Type::S16,
    Type::S32,
    Type::S64,
    Type::F16,
    Type::Bf16,
    Type::F32,
    Type::F64,
    Type::Tf32,
    Type::F16x2,
    Type::Bf16x2,
    Type::E4m3x2,
    Type::E5m2x2,
    Type::Ue8m0x2,
];

pub(super) fn convert(form: &mut Form<'_, '_>) -> Result<ScalarInstruction, PtxError> {
    if form.choose(&[(".pack", ()), (".rs", ())]).is_some() {
        return Err(form.unsupported(""));
    }
    let unsupported = [Type::E2m1x2, Type::E2m3x2, Type::E3m2x2];
    if form.instruction.modifiers.iter().any(|m| Type::parse(m.text).is_some_and(|ty| unsupported.contains(&ty))) {
        return Err(form.unsupported(": 4-bit and 6-bit formats"));
    }
    let to_integral = form.choose(&[
        (".rni", Rounding::NearestEven),
        (".rzi", Rounding::Zero),
        (".rmi", Rounding::Down),
        (".rpi", Rounding::Up),
    ]);
    let to_format = form.choose(&[
        (".rn", Rounding::NearestEven),
        (".rna", Rounding::NearestAway),
        (".rz", Rounding::Zero),
        (".rm", Rounding::Down),
        (".rp", Rounding::Up),
    ]);
    let modes = ConvertModes {
        rounding: to_integral.or(to_format).unwrap_or(Rounding::NearestEven),
        to_integral: to_integral.is_some(),
        flush: form.has(".ftz"),
        saturate: form.has(".sat"),
        saturate_finite: form.has(".satfinite"),
        relu: form.has(".relu"),
    };
    if to_integral.is_some() && to_format.is_some() {
        return Err(form.missing("only one rounding"));
    }
    let to = form.data_type(&TYPES)?;
    let from = form.data_type(&TYPES)?;
    match (packed_format(to), packed_format(from)) {
        (None, None) => scalar(form, modes, to, from, to_format.is_some()),
        (Some(format), None) if from == Type::F32 => pack(form, modes, to, format, to_format),
        (Some(to_format_), Some(from_format)) => packed(form, modes, (to, to_format_), (from, from_format), to_format),
        _ => Err(form.missing("types that convert into each other")),
    }
}

fn packed_format(ty: Type) -> Option<FloatFormat> {
    match ty {
        Type::F16x2 => Some(FloatFormat::F16),
        Type::Bf16x2 => Some(FloatFormat::Bf16),
        Type::E4m3x2 => Some(FloatFormat::E4m3),
        Type::E5m2x2 => Some(FloatFormat::E5m2),
        Type::Ue8m0x2 => Some(FloatFormat::Ue8m0),
        _ => None,
    }
}

fn number_format(ty: Type) -> NumberFormat {
    match ty {
        Type::U8 | Type::U16 | Type::U32 | Type::U64 => NumberFormat::Unsigned(ty.bits()),
        Type::S8 | Type::S16 | Type::S32 | Type::S64 => NumberFormat::Signed(ty.bits()),
        Type::F16 => NumberFormat::Float(FloatFormat::F16),
        Type::Bf16 => NumberFormat::Float(FloatFormat::Bf16),
        Type::Tf32 => NumberFormat::Float(FloatFormat::Tf32),
        Type::F64 => NumberFormat::Float(FloatFormat::F64),
        _ => NumberFormat::Float(FloatFormat::F32),
    }
}

fn scalar(
    form: &mut Form<'_, '_>,
    modes: ConvertModes,
    to: Type,
    from: Type,
    rounds: bool,
) -> Result<ScalarInstruction, PtxError> {
    let float = |ty: Type| matches!(number_format(ty), NumberFormat::Float(_));
    let away = modes.rounding == Rounding::NearestAway;
    match (float(to), float(from)) {
        (false, false) if rounds || modes.to_integral => {
            return Err(form.missing("no rounding between integers"));
        }
        (false, true) if !modes.to_integral => {
            return Err(form.missing("`.rni`, `.rzi`, `.rmi` or `.rpi` to an integer"));
        }
        (true, false) if !rounds || away => {
            return Err(form.missing("`.rn`, `.rz`, `.rm` or `.rp` from an integer"));
        }
        (true, true) => float_to_float(form, modes, to, from, rounds)?,
        _ => {}
    }
    if modes.saturate && (to == Type::Bf16 || from == Type::Bf16) {
        return Err(form.missing("no `.sat` with `.bf16`"));
    }
    if modes.saturate && !float(to) && !float(from) && holds_every(to, from) {
        return Err(form.missing("no `.sat` where the destination's type holds every value of the source's"));
    }
    if (to == Type::Bf16 && from.bits() == 8) || (from == Type::Bf16 && to.bits() == 8) {
        return Err(form.missing("an integer of at least 16 bits with `.bf16`"));
    }
    let single = to == Type::F32 || from == Type::F32;
    if modes.flush && !(single && (float(to) && float(from) || from == Type::F32)) {
        return Err(form.missing("`.f32` with `.ftz`"));
    }
    if (modes.relu || modes.saturate_finite)
        && !(from == Type::F32 && matches!(to, Type::F16 | Type::Bf16 | Type::Tf32))
    {
        return Err(form.missing("a conversion from `.f32` to a narrower type with `.relu` or `.satfinite`"));
    }
    let [destination, source] = form.exactly()?;
    let (destination, declared) = form.register_of(destination, to, Width::AtLeast)?;
    Ok(ScalarInstruction::Convert(Convert {
        from: number_format(from),
        to: number_format(to),
        modes,
        register_bits: declared.bits(),
        destination,
        source: form.source_of(source, from, Width::AtLeast)?,
    }))
}

/// Whether an integer type holds every value of another.
fn holds_every(to: Type, from: Type) -> bool {
    match (number_format(to), number_format(from)) {
        (NumberFormat::Signed(to), NumberFormat::Signed(from)) => to >= from,
        (NumberFormat::Unsigned(to), NumberFormat::Unsigned(from)) => to >= from,
        (NumberFormat::Signed(to), NumberFormat::Unsigned(from)) => to > from,
        _ => false,
    }
}

fn float_to_float(
    form: &Form<'_, '_>,
    modes: ConvertModes,
    to: Type,
    from: Type,
    rounds: bool,
) -> Result<(), PtxError> {
    if from == Type::Tf32 {
        return Err(form.missing("a source other than `.tf32`"));
    }
    if to == Type::Tf32 {
        form.needs(Needs::SM80)?;
        let legal = from == Type::F32
            && rounds
            && matches!(modes.rounding, Rounding::NearestAway | Rounding::NearestEven | Rounding::Zero);
        return if legal { Ok(()) } else { Err(form.missing("`.rna`, `.rn` or `.rz` and `.f32`")) };
    }
    if modes.rounding == Rounding::NearestAway {
        return Err(form.missing("another rounding than `.rna`"));
    }
    // f16 and bf16 are each wider than the other in one respect, so conversion between them rounds. Assemblers take it
    // without a modifier too, and round to nearest even.
    let between_halves = to.bits() == from.bits() && to != from;
    let narrows = to.bits() < from.bits() || between_halves;
    if narrows && !rounds && !between_halves {
        return Err(form.missing("a rounding"));
    }
    if !narrows && rounds {
        return Err(form.missing("no rounding when the result is exact"));
    }
    if modes.to_integral && to != from {
        return Err(form.missing("one type for rounding to an integral value"));
    }
    Ok(())
}

/// Two `f32` operands: the first goes to the upper half.
fn pack(
    form: &mut Form<'_, '_>,
    modes: ConvertModes,
    ty: Type,
    to: FloatFormat,
    rounding: Option<Rounding>,
) -> Result<ScalarInstruction, PtxError> {
    let legal = match to {
        FloatFormat::F16 | FloatFormat::Bf16 => {
            form.needs(Needs::SM80)?;
            matches!(rounding, Some(Rounding::NearestEven | Rounding::Zero))
        }
        FloatFormat::Ue8m0 => {
            form.needs(Needs::SM100A)?;
            matches!(rounding, Some(Rounding::Up | Rounding::Zero)) && !modes.relu
        }
        _ => {
            form.needs(Needs::SM89)?;
            rounding == Some(Rounding::NearestEven) && modes.saturate_finite
        }
    };
    if !legal || modes.saturate || modes.flush || modes.to_integral {
        return Err(form.missing("the rounding and saturation of its destination type"));
    }
    let [destination, high, low] = form.exactly()?;
    Ok(ScalarInstruction::ConvertPack {
        to,
        modes,
        destination: form.register(destination, ty)?,
        high: form.source(high, Type::F32)?,
        low: form.source(low, Type::F32)?,
    })
}

/// Both values of a packed register.
fn packed(
    form: &mut Form<'_, '_>,
    modes: ConvertModes,
    (to_type, to): (Type, FloatFormat),
    (from_type, from): (Type, FloatFormat),
    rounding: Option<Rounding>,
) -> Result<ScalarInstruction, PtxError> {
    use FloatFormat as F;
    let nearest = rounding == Some(Rounding::NearestEven);
    let legal = match (to, from) {
        (F::F16, F::E4m3 | F::E5m2) => {
            form.needs(Needs::SM89)?;
            nearest && !modes.saturate_finite
        }
        (F::E4m3 | F::E5m2, F::F16) => {
            form.needs(Needs::SM89)?;
            nearest && modes.saturate_finite
        }
        (F::Bf16, F::Ue8m0) => {
            form.needs(Needs::SM100A)?;
            nearest && !modes.saturate_finite && !modes.relu
        }
        (F::Ue8m0, F::Bf16) => {
            form.needs(Needs::SM100A)?;
            matches!(rounding, Some(Rounding::Up | Rounding::Zero)) && !modes.relu
        }
        _ => false,
    };
    if !legal || modes.saturate || modes.flush || modes.to_integral {
        return Err(form.missing("types that convert into each other, with their rounding and saturation"));
    }
    let [destination, source] = form.exactly()?;
    Ok(ScalarInstruction::ConvertPacked {
        from,
        to,
        modes,
        destination: form.register(destination, to_type)?,
        source: form.source(source, from_type)?,
    })
}

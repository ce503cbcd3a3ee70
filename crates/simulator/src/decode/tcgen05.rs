//! `tcgen05.*`.

use super::form::Form;
use super::target::Needs;
use crate::program::{
    Operation, StateSpace, Tcgen05, Tcgen05CopyShape, Tcgen05Kind, Tcgen05Mma, Tcgen05Operand, Tcgen05Shape,
};
use crate::ptx::PtxError;
use crate::ptx::ast::{Constant, Operand, OperandKind, Type};

const CTA_GROUPS: [(&str, u8); 2] = [(".cta_group::1", 1), (".cta_group::2", 2)];

pub(super) fn decode(form: &mut Form<'_, '_>) -> Result<Operation, PtxError> {
    form.needs(Needs::TensorMemory)?;
    // The first modifier names the operation; the rest are looked up by each.
    let first = form.peek();
    form.has(first);
    let operation = match first {
        ".alloc" => allocate(form)?,
        ".dealloc" => deallocate(form)?,
        ".relinquish_alloc_permit" => {
            let cta_group = cta_group(form)?;
            sync_aligned(form)?;
            form.exactly::<0>()?;
            Tcgen05::RelinquishPermit { cta_group }
        }
        ".mma" => mma(form)?,
        ".commit" => commit(form)?,
        ".ld" => load(form)?,
        ".st" => store(form)?,
        ".cp" => copy(form)?,
        ".wait::ld" | ".wait::st" => {
            sync_aligned(form)?;
            form.exactly::<0>()?;
            if first == ".wait::ld" { Tcgen05::WaitLoad } else { Tcgen05::WaitStore }
        }
        ".fence::before_thread_sync" => {
            form.exactly::<0>()?;
            Tcgen05::FenceBeforeThreadSync
        }
        ".fence::after_thread_sync" => {
            form.exactly::<0>()?;
            Tcgen05::FenceAfterThreadSync
        }
        ".shift" => return Err(form.unsupported("")),
        _ => return Err(form.unknown()),
    };
    Ok(Operation::Tcgen05(operation))
}

fn cta_group(form: &mut Form<'_, '_>) -> Result<u8, PtxError> {
    form.choose_required("a CTA group", &CTA_GROUPS)
}

fn sync_aligned(form: &mut Form<'_, '_>) -> Result<(), PtxError> {
    form.require(".sync")?;
    form.require(".aligned")
}

fn allocate(form: &mut Form<'_, '_>) -> Result<Tcgen05, PtxError> {
    let cta_group = cta_group(form)?;
    sync_aligned(form)?;
    let destination_space = super::space::take_space_of(form, &[StateSpace::SharedCta]);
    form.require(".b32")?;
    let [destination, columns] = form.exactly()?;
    Ok(Tcgen05::Allocate {
        cta_group,
        destination: form.address(destination, destination_space)?,
        destination_space,
        columns: column_count(form, columns)?,
    })
}

fn deallocate(form: &mut Form<'_, '_>) -> Result<Tcgen05, PtxError> {
    let cta_group = cta_group(form)?;
    sync_aligned(form)?;
    form.require(".b32")?;
    let [address, columns] = form.exactly()?;
    Ok(Tcgen05::Deallocate {
        cta_group,
        address: form.source(address, Type::B32)?,
        columns: column_count(form, columns)?,
    })
}

/// A constant column count is checked here; a register's when it is executed.
fn column_count<'a>(form: &mut Form<'_, 'a>, operand: &Operand<'a>) -> Result<crate::program::Operand, PtxError> {
    if let OperandKind::Constant(Constant::Integer(columns)) = operand.kind
        && ![32, 64, 128, 256, 512].contains(&columns)
    {
        let (what, allowed) = ("the column count".into(), "a power of two from 32 to 512".into());
        return Err(PtxError::OutOfRange { what, allowed, at: operand.span.into() });
    }
    form.source(operand, Type::U32)
}

fn commit(form: &mut Form<'_, '_>) -> Result<Tcgen05, PtxError> {
    let cta_group = cta_group(form)?;
    form.require(".mbarrier::arrive::one")?;
    let barrier_space = super::space::take_space_of(form, &[StateSpace::SharedCluster]);
    let multicast = form.has(".multicast::cluster");
    form.require(".b64")?;
    let operands = form.operands(1 + usize::from(multicast), 1 + usize::from(multicast))?;
    Ok(Tcgen05::Commit {
        cta_group,
        barrier: form.address(&operands[0], barrier_space)?,
        barrier_space,
        multicast: operands.get(1).map(|mask| form.source(mask, Type::B16)).transpose()?,
    })
}

/// Shape and repeat of `ld` and `st`, with the number of 32-bit registers per lane (PTX ISA, "tcgen05.ld").
fn shape(form: &mut Form<'_, '_>) -> Result<(Tcgen05Shape, u8, usize), PtxError> {
    let shapes = [
        (".32x32b", (Tcgen05Shape::Lanes32x32b, 1)),
        (".16x64b", (Tcgen05Shape::Lanes16x64b, 1)),
        (".16x128b", (Tcgen05Shape::Lanes16x128b, 2)),
        (".16x256b", (Tcgen05Shape::Lanes16x256b, 4)),
        (".16x32bx2", (Tcgen05Shape::Lanes16x32b { upper: false }, 1)),
    ];
    let (shape, registers) = form.choose_required("a shape", &shapes)?;
    let repeats =
        [(".x1", 1u8), (".x2", 2), (".x4", 4), (".x8", 8), (".x16", 16), (".x32", 32), (".x64", 64), (".x128", 128)];
    let repeat = form.choose_required("a repeat", &repeats)?;
    let count = registers * usize::from(repeat);
    if count > 128 {
        return Err(form.missing("a repeat of at most 128 registers"));
    }
    Ok((shape, repeat, count))
}

/// Registers in braces, even one.
fn vector<'a>(form: &Form<'_, 'a>, operand: &'a Operand<'a>, count: usize) -> Result<&'a [Operand<'a>], PtxError> {
    match operand.kind {
        OperandKind::Vector(_) => form.exact_elements(operand, count),
        _ => Err(form.wrong_operand(operand, &format!("a vector of {count}"))),
    }
}

/// `immHalfSplitoff` of `.16x32bx2`, in columns.
fn half_offset<'a>(form: &Form<'_, 'a>, operand: &Operand<'a>) -> Result<u32, PtxError> {
    Ok(form.immediate(operand, "the offset of the second half", 0..=511)? as u32)
}

fn load(form: &mut Form<'_, '_>) -> Result<Tcgen05, PtxError> {
    sync_aligned(form)?;
    if form.has(".red") {
        return Err(form.unsupported(": loads that reduce"));
    }
    let (shape, repeat, count) = shape(form)?;
    let pack = form.has(".pack::16b");
    form.require(".b32")?;
    let split = usize::from(matches!(shape, Tcgen05Shape::Lanes16x32b { .. }));
    let operands = form.operands(2 + split, 2 + split)?;
    let (destinations, address) = (&operands[0], &operands[1]);
    let destinations = vector(form, destinations, count)?;
    Ok(Tcgen05::Load {
        shape,
        repeat,
        half_offset: operands.get(2).map(|operand| half_offset(form, operand)).transpose()?,
        pack,
        destinations: destinations.iter().map(|e| form.register(e, Type::B32)).collect::<Result<_, _>>()?,
        address: form.tensor_memory_address(address)?,
    })
}

fn store(form: &mut Form<'_, '_>) -> Result<Tcgen05, PtxError> {
    sync_aligned(form)?;
    let (shape, repeat, count) = shape(form)?;
    let unpack = form.has(".unpack::16b");
    form.require(".b32")?;
    let split = usize::from(matches!(shape, Tcgen05Shape::Lanes16x32b { .. }));
    let operands = form.operands(2 + split, 2 + split)?;
    let (address, sources) = (&operands[0], &operands[1 + split]);
    let sources = vector(form, sources, count)?;
    Ok(Tcgen05::Store {
        shape,
        repeat,
        half_offset: if split == 1 { Some(half_offset(form, &operands[1])?) } else { None },
        unpack,
        sources: sources.iter().map(|e| form.source(e, Type::B32)).collect::<Result<_, _>>()?,
        address: form.tensor_memory_address(address)?,
    })
}

fn copy(form: &mut Form<'_, '_>) -> Result<Tcgen05, PtxError> {
    let cta_group = cta_group(form)?;
    let shapes = [
        (".128x256b", Some(Tcgen05CopyShape::Lanes128x256b)),
        (".128x128b", Some(Tcgen05CopyShape::Lanes128x128b)),
        (".4x256b", Some(Tcgen05CopyShape::Lanes4x256b)),
        (".32x128b", Some(Tcgen05CopyShape::Lanes32x128bWarpx4)),
        (".64x128b", None),
    ];
    let shape = match form.choose_required("a shape", &shapes)? {
        Some(Tcgen05CopyShape::Lanes32x128bWarpx4) => {
            form.require(".warpx4")?;
            Tcgen05CopyShape::Lanes32x128bWarpx4
        }
        Some(shape) => shape,
        None => form.choose_required(
            "a multicast",
            &[
                (".warpx2::02_13", Tcgen05CopyShape::Lanes64x128bWarpx2At0213),
                (".warpx2::01_23", Tcgen05CopyShape::Lanes64x128bWarpx2At0123),
            ],
        )?,
    };
    if form.peek().starts_with(".b8x16") {
        return Err(form.unsupported(": decompression of 4-bit and 6-bit elements"));
    }
    let [destination, source] = form.exactly()?;
    Ok(Tcgen05::Copy {
        cta_group,
        shape,
        destination: form.tensor_memory_address(destination)?,
        source: form.source(source, Type::B64)?,
    })
}

fn mma(form: &mut Form<'_, '_>) -> Result<Tcgen05, PtxError> {
    if let Some(what) =
        form.choose(&[(".sp", ": sparse operands"), (".ws", ": weight-stationary forms"), (".ashift", ": .ashift")])
    {
        return Err(form.unsupported(what));
    }
    let cta_group = cta_group(form)?;
    let kinds = [
        (".kind::f16", Tcgen05Kind::F16),
        (".kind::tf32", Tcgen05Kind::Tf32),
        (".kind::f8f6f4", Tcgen05Kind::F8f6f4),
        (".kind::i8", Tcgen05Kind::I8),
        (".kind::mxf8f6f4", Tcgen05Kind::Mxf8f6f4),
    ];
    if matches!(form.choose(&[(".kind::mxf4", ()), (".kind::mxf4nvf4", ())]), Some(())) {
        return Err(form.unsupported(": 4-bit kinds"));
    }
    let kind = form.choose_required("a kind", &kinds)?;
    let scaled = kind == Tcgen05Kind::Mxf8f6f4;
    let mut scale_block = 0;
    if scaled {
        form.require(".block_scale")?;
        // One scale per 32 elements of K, however it is spelt (PTX ISA, "tcgen05.mma", .scale_vectorsize).
        scale_block = form.choose(&[(".scale_vec::1X", 32), (".block32", 32)]).unwrap_or(0);
    }
    collector(form);
    let operands = form.operands(5, if scaled { 7 } else { 6 })?;
    let accumulator = form.tensor_memory_address(&operands[0])?;
    let a = match operands[1].kind {
        OperandKind::Address(_) => Tcgen05Operand::TensorMemory(form.tensor_memory_address(&operands[1])?),
        _ => Tcgen05Operand::Descriptor(form.source(&operands[1], Type::B64)?),
    };
    let b = form.source(&operands[2], Type::B64)?;
    let instruction_descriptor = form.source(&operands[3], Type::B32)?;
    let mut rest = &operands[4..];
    let mut scales = None;
    if scaled {
        let [scale_a, scale_b, _] = rest else {
            return Err(PtxError::OperandCount {
                instruction: form.mnemonic(),
                expected: "7".into(),
                found: operands.len() as u32,
                at: form.span().into(),
            });
        };
        scales = Some((form.tensor_memory_address(scale_a)?, form.tensor_memory_address(scale_b)?));
        rest = &rest[2..];
    }
    let mut disable_output_lane = Vec::new();
    if let [Operand { kind: OperandKind::Vector(elements), .. }, _] = rest {
        // One bit per lane of the accumulator: 128 with one CTA, 256 with two.
        let words = if cta_group == 1 { 4 } else { 8 };
        if elements.len() != words {
            return Err(form.wrong_operand(&rest[0], &format!("a vector of {words}")));
        }
        disable_output_lane = elements.iter().map(|e| form.source(e, Type::B32)).collect::<Result<_, _>>()?;
        rest = &rest[1..];
    }
    let [enable] = rest else {
        return Err(form.unsupported(": scale-input-d"));
    };
    Ok(Tcgen05::Mma(Tcgen05Mma {
        cta_group,
        kind,
        accumulator,
        a,
        b,
        instruction_descriptor,
        scales,
        scale_block,
        disable_output_lane,
        enable_input_d: form.predicate_operand(enable)?,
    }))
}

/// `.collector::a::*` is a hint about operand reuse and has no effect on results.
fn collector(form: &mut Form<'_, '_>) {
    form.choose(&[
        (".collector::a::fill", ()),
        (".collector::a::use", ()),
        (".collector::a::lastuse", ()),
        (".collector::a::discard", ()),
    ]);
}

//! Instruction descriptors of `tcgen05.mma` (PTX ISA, "Instruction descriptor" and "Matrix Shape").

use crate::number::{NarrowFloat, f16_nearest};
use crate::program::Tcgen05Kind;

/// Element type of A or B.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OperandFormat {
    /// `.f16`
    F16,
    /// `.bf16`
    Bf16,
    /// `.tf32`: a 32-bit word of which the tensor core ignores the low 13 bits.
    Tf32,
    /// 8-, 6- and 4-bit floats, each in a byte of its own; see [`super::operand`] for the packing of the last two.
    Narrow(NarrowFloat),
    /// `.u8`
    U8,
    /// `.s8`
    S8,
}

impl OperandFormat {
    /// Elements in 16 bytes of shared memory. (6- and 4-bit elements are padded to 16 per 16 bytes.)
    pub const fn elements_per_16_bytes(self) -> u32 {
        match self {
            Self::F16 | Self::Bf16 => 8,
            Self::Tf32 => 4,
            Self::Narrow(_) | Self::U8 | Self::S8 => 16,
        }
    }

    /// Significant bits of an element.
    pub const fn bits(self) -> u32 {
        match self {
            Self::F16 | Self::Bf16 => 16,
            Self::Tf32 => 32,
            Self::Narrow(format) => format.bits(),
            Self::U8 | Self::S8 => 8,
        }
    }
}

/// Element type of D.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AccumulatorFormat {
    /// `.f16`, in the low half of a 32-bit cell.
    F16,
    /// `.f32`
    F32,
    /// `.s32`
    S32,
}

impl AccumulatorFormat {
    /// Adds a sum of products to an accumulator's bits and rounds once. The result of `F16` is in the low half.
    #[inline(always)]
    pub(crate) fn add(self, bits: u32, sum: f64, saturate: bool) -> u32 {
        match self {
            Self::F32 => ((f64::from(f32::from_bits(bits)) + sum) as f32).to_bits(),
            Self::F16 => f16_nearest(half::f16::from_bits(bits as u16).to_f64() + sum).to_bits().into(),
            Self::S32 => {
                let exact = i64::from(bits as i32) + sum as i64;
                let clamped = exact.clamp(i32::MIN.into(), i32::MAX.into());
                (if saturate { clamped } else { exact }) as u32
            }
        }
    }
}

/// Which dimension of an operand is contiguous in shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Major {
    /// K (not transposed).
    K,
    /// M for A, N for B (transposed).
    Mn,
}

/// What a descriptor says of A or B.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OperandField {
    /// Element type.
    pub format: OperandFormat,
    /// Negated before multiplication.
    pub negate: bool,
    /// Contiguous dimension.
    pub major: Major,
    /// For block-scaled kinds, which byte of a scale word is the operand's.
    pub scale_id: u8,
}

/// A decoded and checked instruction descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct InstructionDescriptor {
    /// Rows of D, over all CTAs of the group.
    pub m: u32,
    /// Columns of D.
    pub n: u32,
    /// Elements summed.
    pub k: u32,
    /// Element type of D.
    pub accumulator: AccumulatorFormat,
    /// Integer accumulation saturates instead of wrapping.
    pub saturate: bool,
    /// A.
    pub a: OperandField,
    /// B.
    pub b: OperandField,
}

/// What is illegal in an instruction descriptor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InstructionDescriptorError {
    /// A field with a value that the kind does not have.
    #[error("instruction descriptor {descriptor:#010x} for {kind:?}: {field} is {value}; legal: {legal}")]
    Field {
        /// The descriptor.
        descriptor: u32,
        /// The instruction's kind.
        kind: Tcgen05Kind,
        /// Which field.
        field: &'static str,
        /// Its value.
        value: u32,
        /// What would be legal.
        legal: &'static str,
    },
    /// A legal feature that the simulator lacks.
    #[error("instruction descriptor {descriptor:#010x} for {kind:?}: {feature} is not simulated")]
    Unsupported {
        /// The descriptor.
        descriptor: u32,
        /// The instruction's kind.
        kind: Tcgen05Kind,
        /// What.
        feature: &'static str,
    },
    /// M and N that the kind and the CTA group do not have together.
    #[error(
        "instruction descriptor {descriptor:#010x} for {kind:?}, cta_group::{cta_group}: the shape {m} x {n} is \
         illegal; legal: {legal}"
    )]
    Shape {
        /// The descriptor.
        descriptor: u32,
        /// The instruction's kind.
        kind: Tcgen05Kind,
        /// 1 or 2.
        cta_group: u8,
        /// M.
        m: u32,
        /// N.
        n: u32,
        /// What would be legal.
        legal: &'static str,
    },
}

/// Reads bit fields of one descriptor and words the refusals.
#[derive(Clone, Copy)]
struct Reader {
    descriptor: u32,
    kind: Tcgen05Kind,
}

impl Reader {
    fn field(self, first: u32, bits: u32) -> u32 {
        self.descriptor >> first & ((1 << bits) - 1)
    }

    fn flag(self, bit: u32) -> bool {
        self.field(bit, 1) == 1
    }

    fn refuse(self, field: &'static str, value: u32, legal: &'static str) -> InstructionDescriptorError {
        InstructionDescriptorError::Field { descriptor: self.descriptor, kind: self.kind, field, value, legal }
    }

    fn must_be_zero(self, field: &'static str, first: u32, bits: u32) -> Result<(), InstructionDescriptorError> {
        match self.field(first, bits) {
            0 => Ok(()),
            value => Err(self.refuse(field, value, "0")),
        }
    }

    fn unsupported(self, feature: &'static str) -> InstructionDescriptorError {
        InstructionDescriptorError::Unsupported { descriptor: self.descriptor, kind: self.kind, feature }
    }

    fn operand(self, names: &OperandNames, scale_id: u8) -> Result<OperandField, InstructionDescriptorError> {
        let negate = self.flag(names.negate_bit);
        if negate && self.kind == Tcgen05Kind::I8 {
            return Err(self.refuse(names.negate, 1, "0"));
        }
        let format = self.operand_format(names.format, self.field(names.format_bit, 3))?;
        let transposed = self.flag(names.transpose_bit);
        // "Valid Combinations of Type-Size, Major-ness and Swizzling" has no transposed 4- or 6-bit matrices.
        if transposed && format.bits() < 8 {
            return Err(self.refuse(names.transpose, 1, "0 for 4- and 6-bit elements"));
        }
        let major = if transposed { Major::Mn } else { Major::K };
        Ok(OperandField { format, negate, major, scale_id })
    }

    fn operand_format(self, name: &'static str, code: u32) -> Result<OperandFormat, InstructionDescriptorError> {
        use OperandFormat as F;
        Ok(match (self.kind, code) {
            (Tcgen05Kind::F16, 0) => F::F16,
            (Tcgen05Kind::F16, 1) => F::Bf16,
            (Tcgen05Kind::F16, _) => return Err(self.refuse(name, code, "0 (f16), 1 (bf16)")),
            (Tcgen05Kind::Tf32, 2) => F::Tf32,
            (Tcgen05Kind::Tf32, _) => return Err(self.refuse(name, code, "2 (tf32)")),
            (Tcgen05Kind::I8, 0) => F::U8,
            (Tcgen05Kind::I8, 1) => F::S8,
            (Tcgen05Kind::I8, _) => return Err(self.refuse(name, code, "0 (u8), 1 (s8)")),
            (Tcgen05Kind::F8f6f4 | Tcgen05Kind::Mxf8f6f4, 0) => F::Narrow(NarrowFloat::E4m3),
            (Tcgen05Kind::F8f6f4 | Tcgen05Kind::Mxf8f6f4, 1) => F::Narrow(NarrowFloat::E5m2),
            (Tcgen05Kind::F8f6f4 | Tcgen05Kind::Mxf8f6f4, 3) => F::Narrow(NarrowFloat::E2m3),
            (Tcgen05Kind::F8f6f4 | Tcgen05Kind::Mxf8f6f4, 4) => F::Narrow(NarrowFloat::E3m2),
            (Tcgen05Kind::F8f6f4 | Tcgen05Kind::Mxf8f6f4, 5) => F::Narrow(NarrowFloat::E2m1),
            (Tcgen05Kind::F8f6f4 | Tcgen05Kind::Mxf8f6f4, _) => {
                return Err(self.refuse(name, code, "0 (e4m3), 1 (e5m2), 3 (e2m3), 4 (e3m2), 5 (e2m1)"));
            }
        })
    }

    fn accumulator(self) -> Result<AccumulatorFormat, InstructionDescriptorError> {
        let code = self.field(4, 2);
        match (self.kind, code) {
            (Tcgen05Kind::F16 | Tcgen05Kind::F8f6f4, 0) => Ok(AccumulatorFormat::F16),
            (Tcgen05Kind::F16 | Tcgen05Kind::F8f6f4 | Tcgen05Kind::Tf32, 1) => Ok(AccumulatorFormat::F32),
            (Tcgen05Kind::I8, 2) => Ok(AccumulatorFormat::S32),
            (Tcgen05Kind::I8, _) => Err(self.refuse("D format (bits 4..6)", code, "2 (s32)")),
            (Tcgen05Kind::Tf32, _) => Err(self.refuse("D format (bits 4..6)", code, "1 (f32)")),
            (_, _) => Err(self.refuse("D format (bits 4..6)", code, "0 (f16), 1 (f32)")),
        }
    }
}

/// Where an operand's fields are, and how messages call them.
struct OperandNames {
    format: &'static str,
    format_bit: u32,
    negate: &'static str,
    negate_bit: u32,
    transpose: &'static str,
    transpose_bit: u32,
}

const A: OperandNames = OperandNames {
    format: "A format (bits 7..10)",
    format_bit: 7,
    negate: "negate A (bit 13)",
    negate_bit: 13,
    transpose: "transpose A (bit 15)",
    transpose_bit: 15,
};

const B: OperandNames = OperandNames {
    format: "B format (bits 10..13)",
    format_bit: 10,
    negate: "negate B (bit 14)",
    negate_bit: 14,
    transpose: "transpose B (bit 16)",
    transpose_bit: 16,
};

impl InstructionDescriptor {
    /// Decodes and checks every field for a dense `tcgen05.mma` (not `.ws`, not `.sp`).
    pub fn decode(descriptor: u32, kind: Tcgen05Kind, cta_group: u8) -> Result<Self, InstructionDescriptorError> {
        let reader = Reader { descriptor, kind };
        if reader.flag(2) {
            return Err(reader.unsupported("sparsity (bit 2)"));
        }
        let decoded = match kind {
            Tcgen05Kind::Mxf8f6f4 => decode_block_scaled(reader)?,
            Tcgen05Kind::F16 | Tcgen05Kind::Tf32 | Tcgen05Kind::F8f6f4 | Tcgen05Kind::I8 => decode_plain(reader)?,
        };
        decoded.check_combination(reader)?;
        decoded.check_shape(reader, cta_group)?;
        Ok(decoded)
    }

    /// Formats that do not go together although each is legal alone.
    fn check_combination(&self, reader: Reader) -> Result<(), InstructionDescriptorError> {
        let bf16 = self.a.format == OperandFormat::Bf16 || self.b.format == OperandFormat::Bf16;
        if bf16 && self.accumulator == AccumulatorFormat::F16 {
            return Err(reader.refuse("D format (bits 4..6)", 0, "1 (f32) with bf16 operands"));
        }
        Ok(())
    }

    /// "Various combinations of .kind and shapes", and "Various combinations of N shape with .cta_group qualifier for
    /// 8bit transpose B".
    fn check_shape(&self, reader: Reader, cta_group: u8) -> Result<(), InstructionDescriptorError> {
        let Reader { descriptor, kind } = reader;
        let (m, n) = (self.m, self.n);
        let single = cta_group == 1;
        let eight_bit_transposed_b = self.b.major == Major::Mn && self.b.format.elements_per_16_bytes() == 16;
        let (legal_m, m_rule): (&[u32], _) = match (single, kind) {
            (true, Tcgen05Kind::Mxf8f6f4) => (&[128], "M 128"),
            (true, _) => (&[64, 128], "M 64 or 128"),
            (false, _) => (&[128, 256], "M 128 or 256"),
        };
        let (legal_n, n_rule) = match (single, kind) {
            (true, Tcgen05Kind::I8) => {
                let step = if n > 32 || eight_bit_transposed_b { 16 } else { 8 };
                (n >= 8 && n % step == 0, "N 8, 16, 24, 32, then steps of 16 to 256 (steps of 16 with B transposed)")
            }
            (true, _) if eight_bit_transposed_b => (n >= 16 && n % 16 == 0, "N 16 to 256 in steps of 16"),
            (true, _) => (n >= 8 && n % 8 == 0, "N 8 to 256 in steps of 8"),
            (false, _) if eight_bit_transposed_b || kind == Tcgen05Kind::I8 => {
                (n >= 32 && n % 32 == 0, "N 32 to 256 in steps of 32")
            }
            (false, _) => (n >= 16 && n % 16 == 0, "N 16 to 256 in steps of 16"),
        };
        let legal = if !legal_m.contains(&m) { m_rule } else { n_rule };
        if legal_m.contains(&m) && legal_n && n <= 256 {
            Ok(())
        } else {
            Err(InstructionDescriptorError::Shape { descriptor, kind, cta_group, m, n, legal })
        }
    }
}

/// The table for `.kind::tf32`, `.kind::f16`, `.kind::f8f6f4` and `.kind::i8`.
fn decode_plain(reader: Reader) -> Result<InstructionDescriptor, InstructionDescriptorError> {
    reader.must_be_zero("sparsity selector (bits 0..2)", 0, 2)?;
    let saturate = reader.flag(3);
    if saturate && reader.kind != Tcgen05Kind::I8 {
        return Err(reader.refuse("saturate (bit 3)", 1, "0 (only integers saturate)"));
    }
    reader.must_be_zero("reserved bit 6", 6, 1)?;
    reader.must_be_zero("reserved bit 23", 23, 1)?;
    reader.must_be_zero("reserved bit 29", 29, 1)?;
    reader.must_be_zero("maximum shift (bits 30..32), which is for .ws", 30, 2)?;
    Ok(InstructionDescriptor {
        m: reader.field(24, 5) << 4,
        n: reader.field(17, 6) << 3,
        k: elements_along_k(reader.kind),
        accumulator: reader.accumulator()?,
        saturate,
        a: reader.operand(&A, 0)?,
        b: reader.operand(&B, 0)?,
    })
}

/// The table for `.kind::mxf8f6f4`.
fn decode_block_scaled(reader: Reader) -> Result<InstructionDescriptor, InstructionDescriptorError> {
    reader.must_be_zero("reserved bits 0..2", 0, 2)?;
    reader.must_be_zero("reserved bit 3", 3, 1)?;
    reader.must_be_zero("reserved bit 6", 6, 1)?;
    if !reader.flag(23) {
        return Err(reader.refuse("scale format (bit 23)", 0, "1 (ue8m0)"));
    }
    reader.must_be_zero("reserved bits 24..27", 24, 3)?;
    reader.must_be_zero("reserved bit 31", 31, 1)?;
    Ok(InstructionDescriptor {
        m: reader.field(27, 2) << 7,
        n: reader.field(17, 6) << 3,
        k: elements_along_k(reader.kind),
        accumulator: AccumulatorFormat::F32,
        saturate: false,
        a: reader.operand(&A, reader.field(29, 2) as u8)?,
        b: reader.operand(&B, reader.field(4, 2) as u8)?,
    })
}

/// K of a dense instruction: 32 bytes of shared memory per row.
fn elements_along_k(kind: Tcgen05Kind) -> u32 {
    match kind {
        Tcgen05Kind::Tf32 => 8,
        Tcgen05Kind::F16 => 16,
        Tcgen05Kind::F8f6f4 | Tcgen05Kind::I8 | Tcgen05Kind::Mxf8f6f4 => 32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bf16(m: u32, n: u32) -> InstructionDescriptor {
        let operand = OperandField { format: OperandFormat::Bf16, negate: false, major: Major::K, scale_id: 0 };
        InstructionDescriptor {
            m,
            n,
            k: 16,
            accumulator: AccumulatorFormat::F32,
            saturate: false,
            a: operand,
            b: operand,
        }
    }

    fn decode(descriptor: u32, kind: Tcgen05Kind, cta_group: u8) -> InstructionDescriptor {
        InstructionDescriptor::decode(descriptor, kind, cta_group).unwrap()
    }

    #[test]
    fn decodes_the_bf16_constants() {
        assert_eq!(decode(0x0820_0490, Tcgen05Kind::F16, 1), bf16(128, 128));
        assert_eq!(decode(0x1020_0490, Tcgen05Kind::F16, 2), bf16(256, 128));
        assert_eq!(decode(0x1038_0490, Tcgen05Kind::F16, 2), bf16(256, 224));
        assert_eq!(decode(0x1040_0490, Tcgen05Kind::F16, 2), bf16(256, 256));
    }

    #[test]
    fn decodes_the_block_scaled_constants() {
        for (descriptor, cta_group, m, n) in
            [(0x08A0_0000, 1, 128, 128), (0x10A0_0000, 2, 256, 128), (0x10B8_0000, 2, 256, 224)]
        {
            for k in 0..4 {
                let decoded = decode(descriptor | k << 4 | k << 29, Tcgen05Kind::Mxf8f6f4, cta_group);
                assert_eq!((decoded.m, decoded.n, decoded.k), (m, n, 32));
                assert_eq!(decoded.a.format, OperandFormat::Narrow(NarrowFloat::E4m3));
                assert_eq!((decoded.a.scale_id, decoded.b.scale_id), (k as u8, k as u8));
            }
        }
        let decoded = decode(0x08A0_0000 | 2 << 29 | 1 << 4, Tcgen05Kind::Mxf8f6f4, 1);
        assert_eq!((decoded.a.scale_id, decoded.b.scale_id), (2, 1));
    }

    #[test]
    fn decodes_every_operand_field() {
        let descriptor = 0x0820_0490 | 1 << 13 | 1 << 16;
        let decoded = decode(descriptor, Tcgen05Kind::F16, 1);
        assert!(decoded.a.negate && !decoded.b.negate);
        assert_eq!((decoded.a.major, decoded.b.major), (Major::K, Major::Mn));
        let mixed = 0x0820_0010 | 1 << 7 | 5 << 10;
        let decoded = decode(mixed, Tcgen05Kind::F8f6f4, 1);
        assert_eq!(decoded.a.format, OperandFormat::Narrow(NarrowFloat::E5m2));
        assert_eq!(decoded.b.format, OperandFormat::Narrow(NarrowFloat::E2m1));
        let tf32 = decode(0x0820_0010 | 2 << 7 | 2 << 10, Tcgen05Kind::Tf32, 1);
        assert_eq!((tf32.k, tf32.a.format), (8, OperandFormat::Tf32));
        let i8 = decode(0x0820_0020 | 1 << 3 | 1 << 10, Tcgen05Kind::I8, 1);
        assert_eq!((i8.a.format, i8.b.format, i8.saturate), (OperandFormat::U8, OperandFormat::S8, true));
        let f16 = decode(0x0820_0000, Tcgen05Kind::F16, 1);
        assert_eq!((f16.accumulator, f16.a.format), (AccumulatorFormat::F16, OperandFormat::F16));
    }

    #[test]
    fn refuses_illegal_fields() {
        let refused = |descriptor, kind| {
            let error = InstructionDescriptor::decode(descriptor, kind, 1);
            assert!(error.is_err(), "{descriptor:#x} {kind:?}");
        };
        for bit in [0, 1, 2, 3, 6, 23, 29, 30, 31] {
            refused(0x0820_0490 ^ 1 << bit, Tcgen05Kind::F16);
        }
        for bit in [0, 1, 2, 3, 6, 23, 24, 25, 26, 31] {
            refused(0x08A0_0000 ^ 1 << bit, Tcgen05Kind::Mxf8f6f4);
        }
        for format in 2..8 {
            refused(0x0820_0010 | format << 7, Tcgen05Kind::F16);
            refused(0x0820_0010 | format << 10, Tcgen05Kind::F16);
        }
        for format in [2, 6, 7] {
            refused(0x0820_0010 | format << 7, Tcgen05Kind::F8f6f4);
            refused(0x08A0_0000 | format << 10, Tcgen05Kind::Mxf8f6f4);
        }
        refused(0x0820_0480, Tcgen05Kind::F16); // f16 accumulation of bf16
        refused(0x0820_04b0, Tcgen05Kind::F16); // D format 3
        refused(0x0820_0000 | 2 << 7 | 2 << 10, Tcgen05Kind::Tf32); // f16 accumulation of tf32
        refused(0x0820_0020 | 1 << 13, Tcgen05Kind::I8); // negate
        refused(0x0820_0010 | 5 << 7 | 1 << 15, Tcgen05Kind::F8f6f4); // e2m1 transposed
    }

    #[test]
    fn shapes_are_those_of_the_table() {
        let legal = |kind, base: u32, transpose_b: bool, cta_group| {
            let mut shapes = Vec::new();
            for m in (16..=496).step_by(16) {
                for n in (0..=504).step_by(8) {
                    let descriptor = base | u32::from(transpose_b) << 16 | n >> 3 << 17 | m >> 4 << 24;
                    if InstructionDescriptor::decode(descriptor, kind, cta_group).is_ok() {
                        shapes.push((m, n));
                    }
                }
            }
            shapes
        };
        let grid = |m: [u32; 2], first: usize, step: usize| -> Vec<(u32, u32)> {
            m.iter().flat_map(|&m| (first..=256).step_by(step).map(move |n| (m, n as u32))).collect()
        };
        assert_eq!(legal(Tcgen05Kind::F16, 0x490, false, 1), grid([64, 128], 8, 8));
        assert_eq!(legal(Tcgen05Kind::F16, 0x490, true, 1), grid([64, 128], 8, 8));
        assert_eq!(legal(Tcgen05Kind::F16, 0x490, false, 2), grid([128, 256], 16, 16));
        assert_eq!(legal(Tcgen05Kind::F8f6f4, 0x10, false, 1), grid([64, 128], 8, 8));
        assert_eq!(legal(Tcgen05Kind::F8f6f4, 0x10, true, 1), grid([64, 128], 16, 16));
        assert_eq!(legal(Tcgen05Kind::F8f6f4, 0x10, true, 2), grid([128, 256], 32, 32));
        assert_eq!(legal(Tcgen05Kind::I8, 0x20, false, 2), grid([128, 256], 32, 32));
        assert_eq!(legal(Tcgen05Kind::Mxf8f6f4, 1 << 23, false, 2), grid([128, 256], 16, 16));
        let single: Vec<_> = grid([128, 0], 8, 8).into_iter().filter(|shape| shape.0 == 128).collect();
        assert_eq!(legal(Tcgen05Kind::Mxf8f6f4, 1 << 23, false, 1), single);
    }
}

//! Tensor-core descriptors, built from named fields.

/// Swizzle of an operand tile in shared memory, as the SM100 matrix descriptor numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatrixSwizzle {
    /// No swizzle.
    None = 0,
    /// 128 bytes.
    Bytes128 = 2,
}

/// A `tcgen05` shared-memory matrix descriptor without its address (PTX ISA, "Shared memory descriptor").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MatrixDescriptor {
    /// Bytes from one core matrix to the next along the leading dimension; unused by swizzled K-major tiles.
    pub leading_byte_offset: u32,
    /// Bytes from one group of eight rows to the next.
    pub stride_byte_offset: u32,
    /// Swizzle.
    pub swizzle: MatrixSwizzle,
}

impl MatrixDescriptor {
    /// A K-major tile of 128-byte rows, 128-byte swizzled: groups of eight rows are 1024 bytes apart.
    pub const K_MAJOR_128B: Self =
        Self { leading_byte_offset: 0, stride_byte_offset: 1024, swizzle: MatrixSwizzle::Bytes128 };

    /// Scales as `tcgen05.cp.32x128b` reads them: 32 rows of 16 bytes, eight rows 128 bytes apart.
    pub const SCALES: Self = Self { leading_byte_offset: 0, stride_byte_offset: 128, swizzle: MatrixSwizzle::None };

    /// The bits that do not depend on the address. Bits 46..49 are the descriptor's fixed version field.
    pub const fn template(self) -> u64 {
        ((self.leading_byte_offset as u64 >> 4) << 16)
            | ((self.stride_byte_offset as u64 >> 4) << 32)
            | (1 << 46)
            | ((self.swizzle as u64) << 61)
    }

    /// The descriptor of a tile at a shared-memory address.
    #[inline(always)]
    pub const fn at(self, shared_address: u32) -> u64 {
        self.template() | matrix_descriptor_step(shared_address)
    }
}

/// What moving a tile by `bytes` adds to its matrix descriptor.
#[inline(always)]
pub const fn matrix_descriptor_step(bytes: u32) -> u64 {
    (bytes >> 4) as u64
}

/// Instruction descriptor of `kind::f16` for BF16 operands, both K-major, and an F32 accumulator.
pub const fn bf16_instruction_descriptor(m: u32, n: u32) -> u32 {
    const F32_ACCUMULATOR: u32 = 1 << 4;
    const BF16_A: u32 = 1 << 7;
    const BF16_B: u32 = 1 << 10;
    F32_ACCUMULATOR | BF16_A | BF16_B | ((n >> 3) << 17) | ((m >> 4) << 24)
}

/// Instruction descriptor of `kind::mxf8f6f4.block_scale` for E4M3 operands, both K-major, with E8M0 scales.
pub const fn mxfp8_instruction_descriptor(m: u32, n: u32) -> u32 {
    const E8M0_SCALES: u32 = 1 << 23;
    E8M0_SCALES | ((n >> 3) << 17) | ((m >> 4) << 24)
}

/// What the `step`-th MMA of a stage adds to [`mxfp8_instruction_descriptor`]: which of the four scales of a row it uses,
/// for either operand.
#[inline(always)]
pub const fn scale_id(step: u32) -> u32 {
    step << 4 | step << 29
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_give_the_known_constants() {
        assert_eq!(MatrixDescriptor::K_MAJOR_128B.at(0), 0x4000_4040_0000_0000);
        assert_eq!(MatrixDescriptor::K_MAJOR_128B.at(0x400), 0x4000_4040_0000_0040);
        assert_eq!(MatrixDescriptor::SCALES.at(0), 0x0000_4008_0000_0000);
        assert_eq!(matrix_descriptor_step(32), 2);
        assert_eq!(bf16_instruction_descriptor(128, 128), 0x0820_0490);
        assert_eq!(bf16_instruction_descriptor(256, 224), 0x1038_0490);
        assert_eq!(mxfp8_instruction_descriptor(128, 128), 0x08a0_0000);
        assert_eq!(mxfp8_instruction_descriptor(256, 224), 0x10b8_0000);
        assert_eq!(scale_id(3), 0x6000_0030);
    }
}

//! Shared-memory matrix descriptors (PTX ISA, "Shared memory descriptor").

use crate::swizzle::Swizzle;

/// A decoded matrix descriptor. Offsets are in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MatrixDescriptor {
    /// Where the matrix starts, in the CTA's window.
    pub start_address: u32,
    /// LBO; what it steps over depends on the major-ness and the swizzle.
    pub leading_byte_offset: u32,
    /// SBO.
    pub stride_byte_offset: u32,
    /// Swizzle that the matrix was stored with.
    pub swizzle: Swizzle,
}

/// What is illegal in a matrix descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MatrixDescriptorError {
    /// Bits that must be zero.
    #[error(
        "matrix descriptor {descriptor:#018x}: bits {first}..{end} are reserved and must be 0, they are {value:#x}"
    )]
    Reserved {
        /// The descriptor.
        descriptor: u64,
        /// First bit of the field.
        first: u32,
        /// One past its last.
        end: u32,
        /// Its value.
        value: u64,
    },
    /// Bits 46..49.
    #[error("matrix descriptor {descriptor:#018x}: bits 46..49 must be 0b001, they are {value:#05b}")]
    FixedConstant {
        /// The descriptor.
        descriptor: u64,
        /// Value of the field.
        value: u64,
    },
    /// Bits 61..64.
    #[error(
        "matrix descriptor {descriptor:#018x}: layout type {value}; legal are 0 (none), 1 (128 bytes in 32-byte units), \
         2 (128 bytes), 4 (64 bytes) and 6 (32 bytes)"
    )]
    LayoutType {
        /// The descriptor.
        descriptor: u64,
        /// Value of the field.
        value: u64,
    },
    /// Base offsets place a swizzle pattern that does not start at its natural boundary. TMA never stores such a one.
    #[error(
        "matrix descriptor {descriptor:#018x}: base offset {value}; the simulator supports patterns that start at their \
         natural boundary, base offset 0"
    )]
    BaseOffset {
        /// The descriptor.
        descriptor: u64,
        /// Value of the field.
        value: u64,
    },
    /// The absolute-address mode exists for K extents of 48 bytes, which no supported instruction has.
    #[error(
        "matrix descriptor {descriptor:#018x}: the leading dimension is an absolute address (bit 52); supported is a relative offset"
    )]
    AbsoluteLeadingAddress {
        /// The descriptor.
        descriptor: u64,
    },
}

impl MatrixDescriptor {
    /// Decodes and checks every field.
    pub fn decode(descriptor: u64) -> Result<Self, MatrixDescriptorError> {
        let field = |first: u32, end: u32| descriptor >> first & ((1 << (end - first)) - 1);
        for (first, end) in [(14, 16), (30, 32), (53, 61)] {
            let value = field(first, end);
            if value != 0 {
                return Err(MatrixDescriptorError::Reserved { descriptor, first, end, value });
            }
        }
        let value = field(46, 49);
        if value != 0b001 {
            return Err(MatrixDescriptorError::FixedConstant { descriptor, value });
        }
        if field(52, 53) != 0 {
            return Err(MatrixDescriptorError::AbsoluteLeadingAddress { descriptor });
        }
        let swizzle = match field(61, 64) {
            0 => Swizzle::None,
            1 => Swizzle::Span128Unit32,
            2 => Swizzle::Span128,
            4 => Swizzle::Span64,
            6 => Swizzle::Span32,
            value => return Err(MatrixDescriptorError::LayoutType { descriptor, value }),
        };
        // The field means nothing where no pattern repeats (PTX ISA, matrix base offset).
        let value = field(49, 52);
        if value != 0 && swizzle != Swizzle::None {
            return Err(MatrixDescriptorError::BaseOffset { descriptor, value });
        }
        Ok(Self {
            start_address: (field(0, 14) as u32) << 4,
            leading_byte_offset: (field(16, 30) as u32) << 4,
            stride_byte_offset: (field(32, 46) as u32) << 4,
            swizzle,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_the_k_major_128_byte_swizzle() {
        let expected = MatrixDescriptor {
            start_address: 0x8400,
            leading_byte_offset: 0,
            stride_byte_offset: 1024,
            swizzle: Swizzle::Span128,
        };
        assert_eq!(MatrixDescriptor::decode(0x4000_4040_0000_0000 | 0x8400 >> 4), Ok(expected));
        // One K step of 32 bytes is +2.
        let next = MatrixDescriptor { start_address: 0x8420, ..expected };
        assert_eq!(MatrixDescriptor::decode((0x4000_4040_0000_0000 | 0x8400 >> 4) + 2), Ok(next));
    }

    #[test]
    fn decodes_the_scale_factor_descriptor() {
        let expected = MatrixDescriptor {
            start_address: 0x1_2000,
            leading_byte_offset: 0,
            stride_byte_offset: 128,
            swizzle: Swizzle::None,
        };
        assert_eq!(MatrixDescriptor::decode(0x0000_4008_0000_0000 | 0x1_2000 >> 4), Ok(expected));
        // Without swizzle the base offset means nothing.
        assert_eq!(MatrixDescriptor::decode(0x000e_4008_0000_0000 | 0x1_2000 >> 4), Ok(expected));
    }

    #[test]
    fn decodes_offsets_and_layout_types() {
        for (code, swizzle) in [
            (0, Swizzle::None),
            (1, Swizzle::Span128Unit32),
            (2, Swizzle::Span128),
            (4, Swizzle::Span64),
            (6, Swizzle::Span32),
        ] {
            let descriptor = code << 61 | 1 << 46 | 0x3fff << 32 | 0x0123 << 16 | 0x2abc;
            let expected = MatrixDescriptor {
                start_address: 0x2_abc0,
                leading_byte_offset: 0x1230,
                stride_byte_offset: 0x3_fff0,
                swizzle,
            };
            assert_eq!(MatrixDescriptor::decode(descriptor), Ok(expected));
        }
    }

    #[test]
    fn refuses_what_is_reserved_or_unsupported() {
        let legal = 0x4000_4040_0000_0040;
        let decode = |flipped: u64| MatrixDescriptor::decode(legal ^ flipped).unwrap_err();
        for bit in [14, 15, 30, 31].into_iter().chain(53..61) {
            assert!(matches!(decode(1 << bit), MatrixDescriptorError::Reserved { .. }), "bit {bit}");
        }
        for bit in 46..49 {
            assert!(matches!(decode(1 << bit), MatrixDescriptorError::FixedConstant { .. }), "bit {bit}");
        }
        for bit in 49..52 {
            assert!(matches!(decode(1 << bit), MatrixDescriptorError::BaseOffset { .. }), "bit {bit}");
        }
        assert!(matches!(decode(1 << 52), MatrixDescriptorError::AbsoluteLeadingAddress { .. }));
        for code in [3, 5, 7] {
            let refused = decode((2 ^ code) << 61);
            assert!(matches!(refused, MatrixDescriptorError::LayoutType { value, .. } if value == code));
        }
    }
}

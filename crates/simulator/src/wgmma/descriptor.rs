//! Shared-memory matrix descriptors of `wgmma` (PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions", "Matrix
//! Descriptor Format"). Addresses and offsets are where tcgen05 has them; the swizzle is another field, and there is no
//! constant.

use crate::swizzle::Swizzle;
use crate::tcgen05::MatrixDescriptor;

/// What is illegal in a matrix descriptor of `wgmma`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WgmmaDescriptorError {
    /// Bits that must be zero.
    #[error("wgmma matrix descriptor {descriptor:#018x}: bits {first}..{end} must be 0, they are {value:#x}")]
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
    /// A swizzle pattern that does not start at its natural boundary.
    #[error(
        "wgmma matrix descriptor {descriptor:#018x}: base offset {value}; the simulator supports patterns that start at \
         their natural boundary, base offset 0"
    )]
    BaseOffset {
        /// The descriptor.
        descriptor: u64,
        /// Value of the field.
        value: u64,
    },
}

/// Decodes and checks every field.
pub(crate) fn decode(descriptor: u64) -> Result<MatrixDescriptor, WgmmaDescriptorError> {
    let field = |first: u32, end: u32| descriptor >> first & ((1 << (end - first)) - 1);
    for (first, end) in [(14, 16), (30, 32), (46, 49), (52, 62)] {
        let value = field(first, end);
        if value != 0 {
            return Err(WgmmaDescriptorError::Reserved { descriptor, first, end, value });
        }
    }
    let swizzle = match field(62, 64) {
        0 => Swizzle::None,
        1 => Swizzle::Span128,
        2 => Swizzle::Span64,
        _ => Swizzle::Span32,
    };
    // The field means nothing where no pattern repeats (PTX ISA, wgmma matrix descriptor).
    let value = field(49, 52);
    if value != 0 && swizzle != Swizzle::None {
        return Err(WgmmaDescriptorError::BaseOffset { descriptor, value });
    }
    Ok(MatrixDescriptor {
        start_address: (field(0, 14) as u32) << 4,
        leading_byte_offset: (field(16, 30) as u32) << 4,
        stride_byte_offset: (field(32, 46) as u32) << 4,
        swizzle,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_every_field() {
        for (code, swizzle) in
            [Swizzle::None, Swizzle::Span128, Swizzle::Span64, Swizzle::Span32].into_iter().enumerate()
        {
            let descriptor = (code as u64) << 62 | 0x3fff << 32 | 0x0123 << 16 | 0x2abc;
            let expected = MatrixDescriptor {
                start_address: 0x2_abc0,
                leading_byte_offset: 0x1230,
                stride_byte_offset: 0x3_fff0,
                swizzle,
            };
            assert_eq!(decode(descriptor), Ok(expected));
        }
    }

    #[test]
    fn refuses_what_is_reserved_or_unsupported() {
        for bit in [14, 15, 30, 31, 46, 48, 52, 61] {
            assert!(matches!(decode(1 << bit), Err(WgmmaDescriptorError::Reserved { .. })), "bit {bit}");
        }
        for bit in 49..52 {
            assert!(matches!(decode(1 << 62 | 1 << bit), Err(WgmmaDescriptorError::BaseOffset { .. })), "bit {bit}");
            assert!(decode(1 << bit).is_ok(), "bit {bit}");
        }
    }
}

//! The shared-memory swizzles that TMA writes and matrix descriptors read (PTX ISA, "Swizzling Modes" and "Shared Memory
//! Layout and Swizzling").
//!
//! A swizzle exchanges 16-byte (or 32-byte) units inside a row of its span, by the row's place in the repeating pattern.
//! The pattern is anchored at absolute shared-memory addresses, so it is an exclusive-or of address bits.

/// How shared-memory addresses are permuted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Swizzle {
    /// Not at all.
    None,
    /// Within 32 bytes; the pattern repeats every 256 bytes.
    Span32,
    /// Within 64 bytes; the pattern repeats every 512 bytes.
    Span64,
    /// Within 128 bytes; the pattern repeats every 1024 bytes.
    Span128,
    /// Within 128 bytes in units of 32 bytes; the pattern repeats every 512 bytes.
    Span128Unit32,
}

impl Swizzle {
    /// The permuted address.
    #[inline]
    pub const fn apply(self, address: u32) -> u32 {
        match self {
            Self::None => address,
            Self::Span32 => address ^ (address >> 3 & 0x10),
            Self::Span64 => address ^ (address >> 3 & 0x30),
            Self::Span128 => address ^ (address >> 3 & 0x70),
            Self::Span128Unit32 => address ^ (address >> 2 & 0x60),
        }
    }

    /// Bytes within which units are exchanged; `None` without a swizzle.
    pub const fn span_bytes(self) -> Option<u32> {
        match self {
            Self::None => None,
            Self::Span32 => Some(32),
            Self::Span64 => Some(64),
            Self::Span128 | Self::Span128Unit32 => Some(128),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Swizzle; 4] = [Swizzle::Span32, Swizzle::Span64, Swizzle::Span128, Swizzle::Span128Unit32];

    /// The rows of the ISA's figures, as the order of the 16-byte units in memory.
    #[test]
    fn matches_the_published_patterns() {
        let unit_at = |swizzle: Swizzle, row: u32, unit: u32| {
            let span = swizzle.span_bytes().unwrap();
            (swizzle.apply(row * span + unit * 16) % span) / 16
        };
        for row in 0..8 {
            for unit in 0..8 {
                assert_eq!(unit_at(Swizzle::Span128, row, unit), unit ^ row);
            }
            for unit in 0..4 {
                assert_eq!(unit_at(Swizzle::Span64, row, unit), unit ^ (row / 2));
            }
            for unit in 0..2 {
                assert_eq!(unit_at(Swizzle::Span32, row, unit), unit ^ (row / 4));
            }
            for unit in 0..8 {
                assert_eq!(unit_at(Swizzle::Span128Unit32, row, unit), unit ^ (row % 4 * 2));
            }
        }
    }

    #[test]
    fn is_its_own_inverse_and_stays_in_the_span() {
        for swizzle in ALL {
            let span = swizzle.span_bytes().unwrap();
            for address in (0..4096).step_by(16) {
                let moved = swizzle.apply(address);
                assert_eq!(swizzle.apply(moved), address);
                assert_eq!(moved / span, address / span);
            }
        }
    }
}

//! Shared memory as the tensor engines see it.

use std::ops::Range;

/// Why a read of shared memory was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SharedReadError {
    /// Outside the CTA's shared memory.
    #[error("shared memory read of {bytes} bytes at {address:#x} is outside the CTA's {limit} bytes")]
    OutOfBounds {
        /// First byte, as an offset in the CTA's window.
        address: u32,
        /// Length.
        bytes: u32,
        /// Size of the CTA's shared memory.
        limit: u32,
    },
    /// Never written.
    #[error("shared memory at {address:#x} is read before it was written")]
    Uninitialised {
        /// The first such byte.
        address: u32,
    },
}

/// One CTA's shared memory, read by an asynchronous engine. Addresses are offsets in the CTA's own window.
pub trait SharedReader {
    /// Fills `bytes` from `address` on.
    fn read(&self, address: u32, bytes: &mut [u8]) -> Result<(), SharedReadError>;
}

/// A byte range of one CTA's shared memory.
pub type SharedRange = Range<u32>;

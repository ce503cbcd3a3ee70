//! Address windows: where generic addresses of the other state spaces lie, and how a shared address names a CTA.
//!
//! Generic addresses outside these windows are global ones (PTX ISA, "Generic Addressing"). A shared-memory address has
//! the CTA's rank in its cluster in bits 24 and up, as on hardware, so that `mapa` and address arithmetic between the
//! CTAs of a cluster work.

/// First generic address of shared memory; 32 bits of shared address follow.
pub(crate) const SHARED_WINDOW: u64 = 0x0100_0000_0000;
/// First generic address of a thread's local memory.
pub(crate) const LOCAL_WINDOW: u64 = 0x0200_0000_0000;
/// First generic address of the kernel's parameters.
pub(crate) const PARAMETER_WINDOW: u64 = 0x0300_0000_0000;
/// Bytes of each window.
const WINDOW_BYTES: u64 = 1 << 32;

/// Bit of a shared address at which the CTA's cluster rank starts.
pub(crate) const CLUSTER_RANK_SHIFT: u32 = 24;

/// What a generic address points to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GenericTarget {
    /// A shared address (rank and offset).
    Shared(u32),
    /// An offset in the thread's local memory.
    Local(u32),
    /// An offset in the parameter space.
    Parameter(u32),
    /// A global address.
    Global(u64),
}

/// Splits a generic address.
#[inline]
pub(crate) fn decode_generic(address: u64) -> GenericTarget {
    if address.wrapping_sub(SHARED_WINDOW) < WINDOW_BYTES {
        GenericTarget::Shared((address - SHARED_WINDOW) as u32)
    } else if address.wrapping_sub(LOCAL_WINDOW) < WINDOW_BYTES {
        GenericTarget::Local((address - LOCAL_WINDOW) as u32)
    } else if address.wrapping_sub(PARAMETER_WINDOW) < WINDOW_BYTES {
        GenericTarget::Parameter((address - PARAMETER_WINDOW) as u32)
    } else {
        GenericTarget::Global(address)
    }
}

/// The offset part of a shared address.
#[inline]
pub(crate) fn shared_offset(address: u32) -> u32 {
    address & ((1 << CLUSTER_RANK_SHIFT) - 1)
}

/// The cluster rank in a shared address.
#[inline]
pub(crate) fn shared_rank(address: u32) -> u32 {
    address >> CLUSTER_RANK_SHIFT
}

/// The shared address of `offset` in the CTA of that rank.
#[inline]
pub(crate) fn shared_address(rank: u32, offset: u32) -> u32 {
    rank << CLUSTER_RANK_SHIFT | shared_offset(offset)
}

//! Instructions that change tensor maps.

use super::{Address, Operand, StateSpace};

/// `tensormap.*`.
#[derive(Debug, Clone)]
pub enum TensorMapUpdate {
    /// `tensormap.replace.tile`.
    Replace {
        /// The tensor map.
        address: Address,
        /// `Global`, `SharedCta` or `Generic`.
        space: StateSpace,
        /// What is replaced.
        field: TensorMapField,
        /// The new value.
        value: Operand,
    },
    /// `tensormap.cp_fenceproxy.global.shared::cta`: copies a tensor map and makes it visible to the tensor-map proxy.
    CopyFence {
        /// Where to (global).
        destination: Address,
        /// Where from.
        source: Address,
    },
}

/// A field of a tensor map; those that each dimension has, with the dimension's ordinal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TensorMapField {
    /// `.global_address`
    GlobalAddress,
    /// `.rank`: the number of dimensions less one.
    Rank,
    /// `.box_dim`, in elements.
    BoxDimension(u8),
    /// `.global_dim`, in elements.
    GlobalDimension(u8),
    /// `.global_stride`, in bytes; ordinal 0 is the stride between neighbours in the second dimension.
    GlobalStride(u8),
    /// `.element_stride`
    ElementStride(u8),
    /// `.elemtype`
    ElementType,
    /// `.interleave_layout`
    InterleaveLayout,
    /// `.swizzle_mode`
    SwizzleMode,
    /// `.swizzle_atomicity`
    SwizzleAtomicity,
    /// `.fill_mode`
    FillMode,
}

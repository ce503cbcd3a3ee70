//! The argument structure of a kernel, by value in its parameter space.

use crate::MAX_RANKS;

/// Which collective a launch performs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Mode {
    /// Rank `r` ends up with rows `[r * L, (r + 1) * L)`, `L = ceil(M / ranks)`; rows past M are zero.
    ReduceScatter = 0,
    /// Every rank ends up with all M rows, in the launch's slot of the partial buffer.
    AllReduce = 1,
}

/// Arguments of the fused GEMM kernels, after the tensor maps of X and W.
///
/// Addresses are generic addresses of the launching GPU. The partial buffer's rows are `n` elements apart.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct GemmArguments {
    /// This rank's slot of the partial buffer, `[m, n]` BF16, through its unicast address.
    pub partial: u64,
    /// The same slot through the multicast address.
    pub partial_multicast: u64,
    /// Reduce-scatter's result, `[ceil(m / ranks), n]` BF16 with rows `output_row_stride` elements apart; unused by
    /// all-reduce.
    pub output: u64,
    /// Each rank's control block as mapped on this GPU; `control[rank]` is the rank's own.
    pub control: [u64; MAX_RANKS as usize],
    /// Elements between rows of `output`.
    pub output_row_stride: u32,
    /// Rows of X and of the result.
    pub m: u32,
    /// Columns of the result, a multiple of 128.
    pub n: u32,
    /// This rank's part of the inner dimension, a multiple of 64.
    pub k: u32,
    /// This rank.
    pub rank: u32,
    /// Number of ranks.
    pub ranks: u32,
    /// [`Mode`] as its number.
    pub mode: u32,
    /// Slot of the partial buffer that this launch uses, the same on every rank.
    pub slot: u32,
}

impl GemmArguments {
    /// The bytes that the launch passes.
    pub fn as_bytes(&self) -> &[u8] {
        // SAFETY: `repr(C)` of u64 followed by an even number of u32 has no padding, and the borrow covers the value.
        unsafe { core::slice::from_raw_parts((self as *const Self).cast(), size_of::<Self>()) }
    }
}

const _: () = assert!(size_of::<GemmArguments>() == (3 + MAX_RANKS as usize) * 8 + 8 * 4);

//! The quantiser: its arguments, its entry, and how its work is cut.
//!
//! One warp's unit of work is [`UNIT_ROWS`] rows by 128 elements along K. Its rows are the two rows `2 u` and `2 u + 1`
//! of each of the four blocks of 32 that the scale layout interleaves, so that their scales are 32 consecutive bytes: a
//! whole sector, written once.

use crate::WARP_LANES;
use crate::entries::Entry;
use crate::kernels::{Architecture, ByValue, SCALE_ROWS};
use crate::scales::SCALE_GROUP_K;
use crate::schedule::{ceil_div, div_rem};

/// Arguments of the quantiser.
///
/// Addresses are generic addresses of the launching GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct QuantizeArguments {
    /// X, `[m, k]` BF16 with rows `x_row_stride` elements apart, 16-byte aligned.
    pub x: u64,
    /// The result's values, `[m, k]` E4M3 with rows `values_row_stride` elements apart, 16-byte aligned.
    pub values: u64,
    /// The result's scales in the dense 128x4 layout ([`crate::scales`]), 32-byte aligned. Scales of rows past `m` are
    /// written too.
    pub scales: u64,
    /// Elements between rows of X, a multiple of 8 so that rows stay aligned.
    pub x_row_stride: u32,
    /// Elements, which are bytes, between rows of the values, a multiple of 16.
    pub values_row_stride: u32,
    /// Rows, at least 1.
    pub m: u32,
    /// Elements of a row, a positive multiple of 128.
    pub k: u32,
}

impl QuantizeArguments {
    /// The bytes that the launch passes.
    pub fn as_bytes(&self) -> &[u8] {
        // SAFETY: `repr(C)` of u64 followed by an even number of u32 has no padding, and the borrow covers the value.
        unsafe { core::slice::from_raw_parts((self as *const Self).cast(), size_of::<Self>()) }
    }
}

const _: () = assert!(size_of::<QuantizeArguments>() == 3 * 8 + 4 * 4);

/// Threads per CTA.
pub const THREADS: u32 = 256;
/// Warps per CTA.
pub const WARPS: u32 = THREADS / WARP_LANES;
/// Rows of a warp's unit of work.
pub const UNIT_ROWS: u32 = 8;
/// Rows of each interleaved block that a unit takes.
pub const UNIT_ROWS_PER_BLOCK: u32 = UNIT_ROWS / 4;
/// Units that cover 128 rows.
pub const UNITS_PER_SCALE_ROWS: u32 = SCALE_ROWS / UNIT_ROWS;
/// CTAs per SM that a launch asks for at most: as many as are resident with 40 registers a thread. More would only wait
/// for those to end.
const CTAS_PER_SM: u32 = 6;

/// The quantiser for the SM100 family.
pub const QUANTIZE_MXFP8: Entry = Entry {
    name: "quantize_mxfp8",
    architecture: Architecture::Sm100,
    threads: THREADS,
    cluster: 1,
    parameters: &[ByValue {
        bytes: size_of::<QuantizeArguments>() as u32,
        align: align_of::<QuantizeArguments>() as u32,
    }],
};

/// A warp's unit of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unit {
    /// First row: row `2 u` of its 128. The unit's rows are this one and the next, and those 32, 64 and 96 further on.
    pub first_row: u32,
    /// Which 128 elements along K.
    pub k_block: u32,
}

/// Number of units for an operand `[m, k]`: at most 2^32 - 1, which holds for every operand of less than 4 TiB.
#[inline(always)]
pub const fn unit_count(m: u32, k: u32) -> u32 {
    ceil_div(m, SCALE_ROWS) * UNITS_PER_SCALE_ROWS * (k / SCALE_GROUP_K)
}

/// A unit by its index: along K first, so that the warps of a CTA read neighbouring parts of the same rows.
#[inline(always)]
pub const fn unit(index: u32, k: u32) -> Unit {
    let (rows, k_block) = div_rem(index, k / SCALE_GROUP_K);
    let first_row = rows / UNITS_PER_SCALE_ROWS * SCALE_ROWS + rows % UNITS_PER_SCALE_ROWS * UNIT_ROWS_PER_BLOCK;
    Unit { first_row, k_block }
}

/// CTAs to launch for an operand `[m, k]` on a GPU of `sm_count` SMs.
pub const fn grid(m: u32, k: u32, sm_count: u32) -> u32 {
    let wanted = ceil_div(unit_count(m, k), WARPS);
    let most = if sm_count == 0 { CTAS_PER_SM } else { sm_count.saturating_mul(CTAS_PER_SM) };
    if wanted < most { wanted } else { most }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_cover_every_row_and_its_padding_once() {
        for (m, k) in [(1u32, 128u32), (127, 384), (128, 256), (129, 128), (300, 384)] {
            let (padded, blocks) = (m.div_ceil(128) * 128, k / 128);
            let mut times = vec![0; (padded * blocks) as usize];
            for index in 0..unit_count(m, k) {
                let unit = unit(index, k);
                for block in 0..4 {
                    for row in 0..UNIT_ROWS_PER_BLOCK {
                        let row = unit.first_row + block * 32 + row;
                        times[(row * blocks + unit.k_block) as usize] += 1;
                    }
                }
            }
            assert!(times.iter().all(|&times| times == 1), "[{m}, {k}]");
        }
    }

    #[test]
    fn the_scales_of_a_unit_are_one_sector() {
        for index in 0..unit_count(256, 384) {
            let unit = unit(index, 384);
            let first = crate::scales::scale_offset(unit.first_row, unit.k_block * 4, 384);
            assert_eq!(first % 32, 0);
            for row in 0..UNIT_ROWS {
                let (block, pair) = (row % 4, row / 4);
                let at = crate::scales::scale_offset(unit.first_row + block * 32 + pair, unit.k_block * 4, 384);
                assert_eq!(at - first, u64::from(row * 4));
            }
        }
    }

    #[test]
    fn a_launch_has_work_for_every_cta_and_no_more_than_fit() {
        assert_eq!(grid(1, 128, 148), 2);
        assert_eq!(grid(128, 7168, 148), 112);
        assert_eq!(grid(32_768, 7168, 148), 148 * 6);
        assert_eq!(grid(32_768, 7168, 0), 6, "a GPU has at least one SM");
    }
}

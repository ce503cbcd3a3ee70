//! BF16 to MXFP8: E4M3 values, and one E8M0 scale for every 32 elements along K in the 128x4 layout.
//!
//! Memory-bound, one pass. A lane takes 16 elements, two 16-byte loads and one 16-byte store; two lanes share a scale,
//! eight a row. A warp covers four rows, one from each of the blocks of 32 that the scale layout interleaves, and then
//! their neighbours, so that its scales make up a whole sector. A lane has both its rows in flight, 64 bytes, because
//! their largest magnitudes go through one shuffle.

use plan::WARP_LANES;
use plan::quantize::{QuantizeArguments, UNIT_ROWS_PER_BLOCK, Unit, WARPS, unit, unit_count};
use plan::scales::{SCALE_GROUP_COLUMNS, SCALE_GROUP_K, scale_offset};

use crate::ptx::{convert, global, packed, special, warp};

/// Elements that a lane takes.
const LANE_ELEMENTS: u32 = 16;
/// Lanes that take a row.
const ROW_LANES: u32 = SCALE_GROUP_K / LANE_ELEMENTS;
/// Rows between the blocks of 128 rows that the scale layout interleaves.
const BLOCK_ROWS: u32 = 32;
/// Largest E4M3 value.
const E4M3_MAX: f32 = 448.0;
/// BF16 infinity. As integers, magnitudes are in order, and those of NaNs are above it.
const INFINITY: u32 = 0x7f80;
/// Magnitudes of a pair of BF16 values.
const MAGNITUDES: u32 = 0x7fff_7fff;
/// E8M0 NaN.
const SCALE_NAN: u32 = 0xff;
/// Fraction bits of an f32.
const FRACTION_BITS: u32 = 23;
/// E8M0 and f32 have the same bias, and `1 / 2^(c - bias) = 2^((2 bias - c) - bias)`.
const TWICE_BIAS: u32 = 254;

/// Sixteen BF16 values, in pairs.
#[derive(Clone, Copy)]
struct Elements([u32; 8]);

/// Quantises an operand.
///
/// # Safety
/// All threads of every CTA run it, and the arguments describe mapped memory as [`QuantizeArguments`] says.
#[inline(always)]
pub unsafe fn run(arguments: &QuantizeArguments) {
    let units = unit_count(arguments.m, arguments.k);
    let stride = special::cta_count() * WARPS;
    // The same in all lanes of a warp, as the shuffles want: CTAs are whole warps.
    let mut index = special::cta_index() * WARPS + special::thread_index() / WARP_LANES;
    while index < units {
        // SAFETY: the unit is one of the operand's, and the warp is converged.
        unsafe { quantize_unit(arguments, unit(index, arguments.k)) };
        // No wrap: a stride past the end ends the loop.
        index = index.saturating_add(stride);
    }
}

/// One warp's unit of work.
///
/// # Safety
/// As for [`run`]; all lanes of a warp call it with the same unit.
#[inline(always)]
unsafe fn quantize_unit(arguments: &QuantizeArguments, unit: Unit) {
    let lane = special::lane_index();
    let (block, lane_in_row) = (lane / ROW_LANES, lane % ROW_LANES);
    let first_row = unit.first_row + block * BLOCK_ROWS;
    let column = unit.k_block * SCALE_GROUP_K + lane_in_row * LANE_ELEMENTS;
    const { assert!(UNIT_ROWS_PER_BLOCK == 2, "the two rows are written out below") };
    // SAFETY: the rows are guarded, and the column is one of the operand's.
    unsafe {
        let first = load(arguments, first_row, column);
        let second = load(arguments, first_row + 1, column);
        let scales = scales(first, second);
        store(arguments, first_row, column, values(first, scales[0]));
        store(arguments, first_row + 1, column, values(second, scales[1]));
        let words = rows_of_scales(scales, lane_in_row);
        if lane_in_row < UNIT_ROWS_PER_BLOCK {
            let word = if lane_in_row == 0 { words[0] } else { words[1] };
            let offset = scale_offset(first_row + lane_in_row, unit.k_block * SCALE_GROUP_COLUMNS, arguments.k);
            global::store(arguments.scales + offset, word);
        }
    }
}

/// A lane's elements of a row. Rows that do not exist are zeros, which give the scale that padding has to have.
///
/// # Safety
/// `column` and the 15 after it lie in the row.
#[inline(always)]
unsafe fn load(arguments: &QuantizeArguments, row: u32, column: u32) -> Elements {
    if row >= arguments.m {
        return Elements([0; 8]);
    }
    let address = arguments.x + (u64::from(row) * u64::from(arguments.x_row_stride) + u64::from(column)) * 2;
    // SAFETY: the elements exist; base, stride and column keep them 16-byte aligned.
    let [[a, b, c, d], [e, f, g, h]] = unsafe { [global::load_v4(address), global::load_v4(address + 16)] };
    Elements([a, b, c, d, e, f, g, h])
}

/// Stores a lane's values, if their row exists.
///
/// # Safety
/// As for [`load`].
#[inline(always)]
unsafe fn store(arguments: &QuantizeArguments, row: u32, column: u32, values: [u32; 4]) {
    if row < arguments.m {
        let offset = u64::from(row) * u64::from(arguments.values_row_stride) + u64::from(column);
        // SAFETY: as for the elements.
        unsafe { global::store_v4(arguments.values + offset, values) };
    }
}

/// The scales of a lane's elements in two rows. All lanes of a warp call it: two lanes share a scale.
#[inline(always)]
fn scales(first: Elements, second: Elements) -> [u32; 2] {
    let (first, second) = (largest(first), largest(second));
    // One row in each half from here on.
    let both = packed::max_u16x2(low_halves(first, second), high_halves(first, second));
    let both = packed::max_u16x2(both, warp::shuffle_xor::<1>(both));
    let magnitudes = [both & 0xffff, both >> 16];
    let rounded = u32::from(convert::ue8m0x2(quotient(magnitudes[1]), quotient(magnitudes[0])));
    [scale(magnitudes[0], rounded & 0xff), scale(magnitudes[1], rounded >> 8)]
}

/// The largest magnitudes of the elements with even indices and of those with odd ones, as BF16.
#[inline(always)]
fn largest(elements: Elements) -> u32 {
    let Elements([a, b, c, d, e, f, g, h]) = elements;
    let two = |a: u32, b: u32| packed::max_u16x2(a & MAGNITUDES, b & MAGNITUDES);
    packed::max_u16x2(packed::max_u16x2(two(a, b), two(c, d)), packed::max_u16x2(two(e, f), two(g, h)))
}

/// What is rounded up to a power of two for a scale. Multiplying by the rounded reciprocal is as good as dividing: the
/// quotient by 448 is a power of two only for `1.75 * 2^e`, where the product is exact too, and otherwise it is far
/// enough from one.
#[inline(always)]
fn quotient(magnitude: u32) -> f32 {
    f32::from_bits(magnitude << 16) * (1.0 / E4M3_MAX)
}

/// The E8M0 scale for a largest magnitude, given as BF16: the power of two that was rounded to, and NaN for infinities
/// and NaNs.
#[inline(always)]
fn scale(magnitude: u32, rounded: u32) -> u32 {
    if magnitude >= INFINITY { SCALE_NAN } else { rounded }
}

/// A lane's values under their scale.
#[inline(always)]
fn values(elements: Elements, scale: u32) -> [u32; 4] {
    let Elements([a, b, c, d, e, f, g, h]) = elements;
    let factor = factor(scale);
    let four = |a: u32, b: u32| pair_of_values(a, factor) | pair_of_values(b, factor) << 16;
    [four(a, b), four(c, d), four(e, f), four(g, h)]
}

/// What elements are multiplied by. The lowest scale gives zero: elements below it are given up, as zeros. The NaN
/// scale makes every element NaN.
#[inline(always)]
fn factor(scale: u32) -> f32 {
    // Bits instead of cases, which would become branches that a warp diverges in. For the NaN scale the reciprocal comes
    // out as minus infinity, to which a fraction bit is added.
    let reciprocal = TWICE_BIAS.wrapping_sub(scale) << FRACTION_BITS;
    let nan = u32::from(scale == SCALE_NAN) << (FRACTION_BITS - 1);
    let all_if_not_zero = u32::from(scale == 0).wrapping_sub(1);
    f32::from_bits((reciprocal | nan) & all_if_not_zero)
}

/// Two packed BF16 values, multiplied and converted.
#[inline(always)]
fn pair_of_values(pair: u32, factor: f32) -> u32 {
    let (high, low) = (f32::from_bits(pair & 0xffff_0000), f32::from_bits(pair << 16));
    u32::from(convert::e4m3x2(high * factor, low * factor))
}

/// The four scales of each of two rows, in the first two lanes of the rows. All lanes of a warp call it.
#[inline(always)]
fn rows_of_scales(scales: [u32; 2], lane_in_row: u32) -> [u32; 2] {
    // A row in each half; lanes in twos have the same scale, and even and odd blocks go to different bytes.
    let block = lane_in_row / 2;
    let halves = (scales[0] | scales[1] << 16) << (block % 2 * 8);
    let halves = halves | warp::shuffle_xor::<2>(halves);
    // In lanes below 4, which are those that store, these are the first two blocks and the last two.
    let last = warp::shuffle_xor::<4>(halves);
    [low_halves(halves, last), high_halves(halves, last)]
}

/// The low half of `low`, below that of `high`.
#[inline(always)]
fn low_halves(low: u32, high: u32) -> u32 {
    low & 0xffff | high << 16
}

/// The high half of `low`, below that of `high`.
#[inline(always)]
fn high_halves(low: u32, high: u32) -> u32 {
    low >> 16 | high & 0xffff_0000
}

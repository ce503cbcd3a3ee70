//! BF16 to MXFP8: E4M3 values, and one E8M0 scale for every 32 elements along K in the 128x4 layout.
//!
//! Memory-bound, one pass. A lane takes 16 elements, two 16-byte loads and one 16-byte store; two lanes share a scale,
//! eight a row. A warp has four rows at a time, one from each of the blocks of 32 that the scale layout interleaves, and
//! does that twice before it stores anything, so that every lane has 64 bytes in flight and the scales make up a whole
//! sector.

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

/// Sixteen E4M3 values and the scale that they share with another lane's.
#[derive(Clone, Copy)]
struct Quantized {
    values: [u32; 4],
    scale: u32,
}

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
        let (first, second) = (quantize(first), quantize(second));
        store(arguments, first_row, column, first.values);
        store(arguments, first_row + 1, column, second.values);
        // Eight lanes have a row's four scales twice over; each of the first two takes the word of one of the two rows.
        let (first, second) = (row_of_scales(first.scale, lane_in_row), row_of_scales(second.scale, lane_in_row));
        if lane_in_row < UNIT_ROWS_PER_BLOCK {
            let word = if lane_in_row == 0 { first } else { second };
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

/// Scale and values of a lane's elements. All lanes of a warp call it: two lanes share a scale.
#[inline(always)]
fn quantize(elements: Elements) -> Quantized {
    let Elements([a, b, c, d, e, f, g, h]) = elements;
    let largest = |a: u32, b: u32| packed::max_u16x2(a & MAGNITUDES, b & MAGNITUDES);
    let pair = packed::max_u16x2(
        packed::max_u16x2(largest(a, b), largest(c, d)),
        packed::max_u16x2(largest(e, f), largest(g, h)),
    );
    let pair = packed::max_u16x2(pair, warp::shuffle_xor::<1>(pair));
    let scale = scale((pair >> 16).max(pair & 0xffff));
    let factor = factor(scale);
    let four = |a: u32, b: u32| pair_of_values(a, factor) | pair_of_values(b, factor) << 16;
    Quantized { values: [four(a, b), four(c, d), four(e, f), four(g, h)], scale }
}

/// The E8M0 scale for a largest magnitude, given as BF16: the least power of two that is at least `magnitude / 448`, and
/// NaN for infinities and NaNs.
#[inline(always)]
fn scale(magnitude: u32) -> u32 {
    // Multiplying by the rounded reciprocal is as good as dividing: the quotient is a power of two only for 1.75 * 2^e,
    // where the product is exact too, and otherwise it is far enough from one.
    let scale = f32::from_bits(magnitude << 16) * (1.0 / E4M3_MAX);
    let rounded = u32::from(convert::ue8m0x2(0.0, scale)) & 0xff;
    if magnitude >= INFINITY { SCALE_NAN } else { rounded }
}

/// What elements are multiplied by. The lowest scale gives zero: elements below it are given up, as zeros. The NaN scale
/// makes every element NaN.
#[inline(always)]
fn factor(scale: u32) -> f32 {
    let reciprocal = f32::from_bits(TWICE_BIAS.wrapping_sub(scale) << FRACTION_BITS);
    // Two selections: a `match` becomes a branch that a warp could diverge in.
    let factor = if scale == SCALE_NAN { f32::NAN } else { reciprocal };
    if scale == 0 { 0.0 } else { factor }
}

/// Two packed BF16 values, multiplied and converted.
#[inline(always)]
fn pair_of_values(pair: u32, factor: f32) -> u32 {
    let (high, low) = (f32::from_bits(pair & 0xffff_0000), f32::from_bits(pair << 16));
    u32::from(convert::e4m3x2(high * factor, low * factor))
}

/// A row's four scales, in every lane of the row.
#[inline(always)]
fn row_of_scales(scale: u32, lane_in_row: u32) -> u32 {
    let word = scale << (lane_in_row / 2 * 8);
    let word = word | warp::shuffle_xor::<2>(word);
    word | warp::shuffle_xor::<4>(word)
}

//! The communication warps: wait for a slice's tile on every rank, reduce it, and put the result where the mode wants
//! it.

pub mod multimem;

use plan::arguments::Mode;
use plan::kernels::roles;
use plan::schedule::{Slice, SliceGrid, div_rem, owned_rows, shard_rows};

use crate::gemm::{Launch, NamedBarrier};
use crate::ptx::{barrier, global, special};
use crate::variant::Variant;

/// Threads of the communication warps.
const THREADS: u32 = roles::COMMUNICATION_WARPS * plan::WARP_LANES;
/// BF16 elements in 16 bytes.
const CHUNK: u32 = 8;

/// How a slice's partials come together.
pub trait Transport {
    /// The sum over the ranks of the eight BF16 values at byte `offset` of the slot.
    ///
    /// # Safety
    /// `offset` is a multiple of 16 within the slot, and every rank's partial there is published.
    unsafe fn reduce(launch: &Launch, offset: u64) -> [u32; 4];

    /// Stores eight BF16 values at byte `offset` of every rank's slot.
    ///
    /// # Safety
    /// As for [`Self::reduce`], and no rank will read a partial there any more.
    unsafe fn broadcast(launch: &Launch, offset: u64, value: [u32; 4]);
}

/// Where a mode wants the sums.
trait Sink {
    /// Stores eight BF16 sums of the rank's own row `row`.
    ///
    /// # Safety
    /// The rank owns the row, and has reduced the elements.
    unsafe fn put<T: Transport>(launch: &Launch, row: u32, column: u32, value: [u32; 4]);
}

/// All-reduce: back into the slot, on every rank.
struct Everywhere;

impl Sink for Everywhere {
    #[inline(always)]
    unsafe fn put<T: Transport>(launch: &Launch, row: u32, column: u32, value: [u32; 4]) {
        // SAFETY: the caller's promise.
        unsafe { T::broadcast(launch, slot_offset(launch, row, column), value) }
    }
}

/// Reduce-scatter: the rank's own output.
struct Output;

impl Sink for Output {
    #[inline(always)]
    unsafe fn put<T: Transport>(launch: &Launch, row: u32, column: u32, value: [u32; 4]) {
        // SAFETY: the caller's promise.
        unsafe { global::store_v4(output_address(launch, row - launch.first_owned_row(), column), value) }
    }
}

/// One communication warp's life: its slices, the padding rows, and the end of the launch.
///
/// # Safety
/// All lanes of communication warp `warp_index` (counted from 0) run it.
#[inline(always)]
pub unsafe fn communicate<V: Variant, T: Transport>(launch: &Launch, warp_index: u32) {
    let arguments = launch.arguments;
    let slices = SliceGrid::new(launch.tiles, arguments.ranks, arguments.rank);
    let warps = special::cta_count() * roles::COMMUNICATION_WARPS;
    // Slices go round the CTAs before they go round a CTA's warps, so that few slices still use every SM.
    let first = special::cta_index() + warp_index * special::cta_count();
    // SAFETY: the warp is converged, and the mode is the launch's.
    unsafe {
        if arguments.mode == Mode::AllReduce as u32 {
            reduce_slices::<V, T, Everywhere>(launch, slices, first, warps);
        } else {
            reduce_slices::<V, T, Output>(launch, slices, first, warps);
            zero_padding(launch, first, warps);
        }
    }
    barrier::sync::<{ NamedBarrier::COMMUNICATION }, THREADS>();
    if warp_index == 0 {
        // SAFETY: the barrier gathered the CTA's communication.
        unsafe {
            if launch.finish_cta() {
                launch.finish_rank();
                if arguments.mode == Mode::AllReduce as u32 {
                    launch.wait_for_all_done();
                }
            }
        }
    }
}

/// Reduces the slices `first`, `first + stride`, ... as their tiles become ready.
#[inline(always)]
unsafe fn reduce_slices<V: Variant, T: Transport, S: Sink>(
    launch: &Launch,
    slices: SliceGrid,
    first: u32,
    stride: u32,
) {
    let mut index = first;
    while index < slices.len() {
        let slice = slices.slice(index);
        // SAFETY: the warp is converged; what it reads is published once the wait returns.
        unsafe {
            launch.wait_for_tile(launch.tiles.index(slice.tile));
            reduce_slice::<V, T, S>(launch, slice);
        }
        index += stride;
    }
}

/// Reduces one slice: all loads of a round are issued before the first store, to cover their latency.
#[inline(always)]
unsafe fn reduce_slice<V: Variant, T: Transport, S: Sink>(launch: &Launch, slice: Slice) {
    let chunks_per_row = launch.tiles.tile_columns(slice.tile) / CHUNK;
    let chunks = slice.rows.len() * chunks_per_row;
    let column = slice.tile.column * V::SPEC.tile.n;
    let place = |chunk: u32| {
        let (row, chunk_in_row) = div_rem(chunk, chunks_per_row);
        (slice.rows.start + row, column + chunk_in_row * CHUNK)
    };
    let reduce = |chunk: u32| {
        let (row, column) = place(chunk);
        // SAFETY: the chunk lies in the slice.
        unsafe { T::reduce(launch, slot_offset(launch, row, column)) }
    };
    let put = |chunk: u32, value: [u32; 4]| {
        let (row, column) = place(chunk);
        // SAFETY: as above.
        unsafe { S::put::<T>(launch, row, column, value) }
    };
    let lane = special::lane_index();
    let mut start = 0;
    // Written out: an array that a loop variable indexes would go to local memory.
    macro_rules! round {
        ($($i:literal),*) => {{
            let values = [$(reduce(start + lane + $i * plan::WARP_LANES)),*];
            $(put(start + lane + $i * plan::WARP_LANES, values[$i]);)*
            start += [$($i),*].len() as u32 * plan::WARP_LANES;
        }};
    }
    while chunks - start >= 8 * plan::WARP_LANES {
        round!(0, 1, 2, 3, 4, 5, 6, 7);
    }
    if chunks - start >= 4 * plan::WARP_LANES {
        round!(0, 1, 2, 3);
    }
    if chunks - start >= 2 * plan::WARP_LANES {
        round!(0, 1);
    }
    while start < chunks {
        if start + lane < chunks {
            put(start + lane, reduce(start + lane));
        }
        start += plan::WARP_LANES;
    }
}

/// Byte offset of an element in the slot.
#[inline(always)]
fn slot_offset(launch: &Launch, row: u32, column: u32) -> u64 {
    (u64::from(row) * u64::from(launch.arguments.n) + u64::from(column)) * 2
}

/// Address of an element of reduce-scatter's output, by its row within the rank's shard.
#[inline(always)]
fn output_address(launch: &Launch, row: u32, column: u32) -> u64 {
    launch.arguments.output + (u64::from(row) * u64::from(launch.arguments.output_row_stride) + u64::from(column)) * 2
}

/// Zeroes the rows of reduce-scatter's output that lie past M.
///
/// # Safety
/// The output has `ceil(M / ranks)` rows.
#[inline(always)]
unsafe fn zero_padding(launch: &Launch, first_warp: u32, warps: u32) {
    let arguments = launch.arguments;
    let valid = owned_rows(arguments.m, arguments.ranks, arguments.rank).len();
    let padding = shard_rows(arguments.m, arguments.ranks) - valid;
    let chunks_per_row = arguments.n / CHUNK;
    let mut chunk = first_warp * plan::WARP_LANES + special::lane_index();
    while chunk < padding * chunks_per_row {
        let (row, chunk_in_row) = div_rem(chunk, chunks_per_row);
        let address = output_address(launch, valid + row, chunk_in_row * CHUNK);
        // SAFETY: the row lies in the output.
        unsafe { global::store_v4(address, [0; 4]) };
        chunk += warps * plan::WARP_LANES;
    }
}

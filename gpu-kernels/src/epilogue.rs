//! The epilogue: accumulators out of tensor memory, as BF16 into this rank's partial buffer, and the word about it out
//! to the ranks that own the rows.
//!
//! Each warp stages boxes of 32 columns in shared memory and has the bulk copy engine store them, in whole sectors and
//! without the rows that lie past M.

use plan::kernels::{STORE_COLUMNS, SWAPPED_STORE_ROWS, roles};
use plan::schedule::Tile;

use crate::gemm::{Launch, NamedBarrier, Operands};
use crate::mainloop::pipeline::Ring;
use crate::mainloop::tcgen05::mma_columns;
use crate::ptx::{barrier, convert, fence, mbarrier, shared, special, tcgen05, tma, warp};
use crate::variant::Variant;

/// Threads of the epilogue.
pub const THREADS: u32 = roles::EPILOGUE_WARPS * plan::WARP_LANES;
/// Bytes of a row of a staging buffer.
const STAGING_ROW_BYTES: u32 = STORE_COLUMNS * 2;

/// One epilogue warp's life: for every tile of the CTA, drain, store, publish.
///
/// # Safety
/// All lanes of epilogue warp `warp_index` run it; `tensor_memory` is the CTA's allocation.
#[inline(always)]
pub unsafe fn drain<V: Variant>(launch: &Launch, operands: &Operands, tensor_memory: u32, warp_index: u32) {
    let (map, tensor) = (V::SPEC.shared, V::SPEC.tensor);
    // A warp reaches the 32 tensor-memory lanes of its own quarter only.
    let lanes = tensor_memory + ((warp_index * plan::WARP_LANES) << 16);
    let mut staging =
        Staging { map: operands.partial, base: launch.shared_base + map.staging(warp_index, 0), buffer: 0 };
    let accumulators = Ring::new(launch.shared_base + map.accumulator_full(0), map.accumulators);
    let mut position = accumulators.start();
    let mut place = 0;
    // SAFETY: the whole warp is here, before its first store.
    unsafe { launch.wait_for_slot() };
    // What the wait ordered behind it are generic accesses; the stores to come are not.
    fence::proxy_async_global();
    for index in launch.tile_indices() {
        let tile = launch.tiles.tile(index);
        let accumulator = Accumulator {
            address: lanes + tensor.place(place),
            empty: accumulators.empty(position) + (launch.leader_base - launch.shared_base),
            is_second: place != 0,
        };
        // SAFETY: the barrier is initialised.
        unsafe { mbarrier::wait_parity(position.full, position.full_parity()) };
        tcgen05::fence_after_thread_sync();
        // SAFETY: the accumulator is finished and the warp is converged.
        unsafe {
            if V::SWAPPED {
                drain_swapped::<V>(launch, tile, warp_index, accumulator, &mut staging);
            } else {
                drain_rows::<V>(launch, tile, warp_index, accumulator, &mut staging);
            }
        }
        accumulators.advance(&mut position);
        place ^= 1;
        if special::lane_index() == 0 {
            tma::wait_stores();
        }
        barrier::sync::<{ NamedBarrier::EPILOGUE }, THREADS>();
        if warp_index == 0 {
            // SAFETY: the barrier above gathered the tile's stores.
            unsafe { launch.publish_tile(index) };
        }
    }
}

/// A finished accumulator, as one warp sees it.
struct Accumulator {
    /// Its first column in the warp's lanes.
    address: u32,
    /// The barrier on which the warp reports that it may be overwritten.
    empty: u32,
    /// Whether it is the second of the two places.
    is_second: bool,
}

impl Accumulator {
    /// Lets the MMA thread have the accumulator, as far as this warp is concerned.
    ///
    /// # Safety
    /// All lanes of the warp call it, once per tile, behind their loads of what will be overwritten.
    #[inline(always)]
    unsafe fn release<V: Variant>(&self) {
        tcgen05::fence_before_thread_sync();
        warp::sync();
        if special::lane_index() == 0 {
            // SAFETY: one arrival per epilogue warp of the cluster, as initialised.
            unsafe {
                if V::PAIR {
                    mbarrier::arrive_cluster(self.empty);
                } else {
                    mbarrier::arrive(self.empty);
                }
            }
        }
    }
}

/// A lane holds a row of Y: 32 columns at a time.
#[inline(always)]
unsafe fn drain_rows<V: Variant>(
    launch: &Launch,
    tile: Tile,
    warp_index: u32,
    accumulator: Accumulator,
    staging: &mut Staging,
) {
    let shape = V::SPEC.tile;
    let first_row = tile.row * shape.m + warp_index * plan::WARP_LANES;
    if first_row >= launch.arguments.m {
        // SAFETY: the warp reads nothing of it.
        unsafe { accumulator.release::<V>() };
        return;
    }
    let chunks = mma_columns::<V>(launch, tile) / STORE_COLUMNS;
    let first_column = tile.column * shape.n;
    // Accumulators that overlap share the last columns of the first and the first columns of the second: those go first,
    // and the other accumulator may have them.
    let last_first = V::SPEC.tensor.is_overlapped() && !accumulator.is_second;
    let mut chunk = if last_first { chunks - 1 } else { 0 };
    let mut drained = 0;
    while drained < chunks {
        let column = chunk * STORE_COLUMNS;
        // SAFETY: the warp is converged, and the address is in its quarter of the finished accumulator.
        let values = unsafe { tcgen05::load_32x32b_x32(accumulator.address + column) };
        drained += 1;
        if V::SPEC.tensor.is_overlapped() && drained == 1 || !V::SPEC.tensor.is_overlapped() && drained == chunks {
            // SAFETY: the loads are complete.
            unsafe { accumulator.release::<V>() };
        }
        // SAFETY: the whole warp is here.
        unsafe {
            let buffer = staging.next_free();
            stage_row(buffer, values);
            staging.store(buffer, first_column + column, first_row);
        }
        chunk += 1;
        if chunk == chunks {
            chunk = 0;
        }
    }
}

/// A lane holds a column of Y: 16 rows at a time.
#[inline(always)]
unsafe fn drain_swapped<V: Variant>(
    launch: &Launch,
    tile: Tile,
    warp_index: u32,
    accumulator: Accumulator,
    staging: &mut Staging,
) {
    let shape = V::SPEC.tile;
    let rows = mma_columns::<V>(launch, tile);
    let first_column = tile.column * shape.n + warp_index * plan::WARP_LANES;
    let mut row = 0;
    while row < rows {
        // SAFETY: the warp is converged, and the address is in its quarter of the finished accumulator.
        let values = unsafe { tcgen05::load_32x32b_x16(accumulator.address + row) };
        if row + SWAPPED_STORE_ROWS >= rows {
            // SAFETY: the loads are complete.
            unsafe { accumulator.release::<V>() };
        }
        // SAFETY: the whole warp is here.
        unsafe {
            let buffer = staging.next_free();
            stage_column(buffer, values);
            staging.store(buffer, first_column, tile.row * shape.m + row);
        }
        row += SWAPPED_STORE_ROWS;
    }
}

/// A warp's staging buffers.
struct Staging {
    map: *const tma::TensorMap,
    base: u32,
    buffer: u32,
}

impl Staging {
    /// The next buffer, once the store before the last has read it.
    ///
    /// # Safety
    /// All lanes of the warp call it.
    #[inline(always)]
    unsafe fn next_free(&mut self) -> u32 {
        if special::lane_index() == 0 {
            tma::wait_stores_read::<{ plan::shared_memory::STAGING_BUFFERS - 1 }>();
        }
        warp::sync();
        let address = self.base + self.buffer * plan::shared_memory::STAGING_BYTES;
        self.buffer ^= 1;
        address
    }

    /// Has a filled buffer stored as the box at `[row, column]` of the slot.
    ///
    /// # Safety
    /// All lanes of the warp call it, behind their stores to the buffer.
    #[inline(always)]
    unsafe fn store(&self, buffer: u32, column: u32, row: u32) {
        fence::proxy_async_shared();
        warp::sync();
        // Always the same lane, because it is the one that waits for its own stores.
        if special::lane_index() == 0 {
            // SAFETY: the box lies in the buffer, as the map's swizzle wants it.
            unsafe { tma::store_2d(self.map, column, row, buffer) };
        }
    }
}

/// Where 16 bytes of a 64-byte row lie under the 64-byte swizzle, which permutes them by the row's number.
#[inline(always)]
fn swizzled(row: u32, chunk: u32) -> u32 {
    row * STAGING_ROW_BYTES + ((chunk ^ (row >> 1 & 3)) << 4)
}

/// Stages the lane's row of 32 columns.
#[inline(always)]
unsafe fn stage_row(buffer: u32, values: [f32; 32]) {
    let row = special::lane_index();
    macro_rules! stage {
        ($($chunk:literal),*) => {$(
            let packed = [
                convert::bf16x2(values[$chunk * 8 + 1], values[$chunk * 8]),
                convert::bf16x2(values[$chunk * 8 + 3], values[$chunk * 8 + 2]),
                convert::bf16x2(values[$chunk * 8 + 5], values[$chunk * 8 + 4]),
                convert::bf16x2(values[$chunk * 8 + 7], values[$chunk * 8 + 6]),
            ];
            // SAFETY: the caller's promise.
            unsafe { shared::store_v4(buffer + swizzled(row, $chunk), packed) };
        )*};
    }
    stage!(0, 1, 2, 3);
}

/// Stages the lane's column of 16 rows.
#[inline(always)]
unsafe fn stage_column(buffer: u32, values: [f32; 16]) {
    let lane = special::lane_index();
    let (chunk, offset) = (lane / 8, lane % 8 * 2);
    macro_rules! stage {
        ($($row:literal),*) => {$(
            let packed = convert::bf16x2(values[$row + 1], values[$row]);
            // SAFETY: the caller's promise.
            unsafe {
                shared::store_u16(buffer + swizzled($row, chunk) + offset, packed as u16);
                shared::store_u16(buffer + swizzled($row + 1, chunk) + offset, (packed >> 16) as u16);
            }
        )*};
    }
    stage!(0, 2, 4, 6, 8, 10, 12, 14);
}

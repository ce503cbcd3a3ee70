//! The epilogue: accumulators out of tensor memory, as BF16 into this rank's partial buffer, and the word about it out
//! to the ranks that own the rows.

use plan::kernels::roles;

use crate::gemm::{Launch, NamedBarrier};
use crate::mainloop::pipeline::Position;
use crate::ptx::{barrier, convert, global, mbarrier, special, tcgen05, warp};
use crate::variant::Variant;

/// Threads of the epilogue.
pub const THREADS: u32 = roles::EPILOGUE_WARPS * plan::WARP_LANES;
/// Columns drained at a time: 32 registers per thread.
const COLUMNS: u32 = 32;

/// One epilogue warp's life: for every tile of the CTA, drain, store, publish.
///
/// # Safety
/// All lanes of epilogue warp `warp_index` run it; `tensor_memory` is the CTA's allocation.
#[inline(always)]
pub unsafe fn drain<V: Variant>(launch: &Launch, tensor_memory: u32, warp_index: u32) {
    let (map, shape) = (V::SPEC.shared, V::SPEC.tile);
    let base = launch.shared_base;
    let lane = special::lane_index();
    // A warp reaches the 32 tensor-memory lanes of its own quarter only; lane i holds row i of the tile.
    let row_in_tile = warp_index * plan::WARP_LANES + lane;
    let lane_address = (warp_index * plan::WARP_LANES) << 16;
    let mut accumulators = Position::start();
    // SAFETY: the whole warp is here, before its first store.
    unsafe { launch.wait_for_slot() };
    for index in launch.tile_indices() {
        let tile = launch.tiles.tile(index);
        let row = tile.row * shape.m + row_in_tile;
        let offset = u64::from(row) * u64::from(launch.arguments.n) + u64::from(tile.column * shape.n);
        let destination = launch.arguments.partial + offset * 2;
        // SAFETY: the barrier is initialised.
        unsafe { mbarrier::wait_parity(base + map.accumulator_full(accumulators.stage), accumulators.full_parity()) };
        tcgen05::fence_after_thread_sync();
        let mut column = 0;
        while column < shape.n {
            // SAFETY: the warp is converged, and the address is in its quarter of the finished accumulator.
            let values = unsafe {
                tcgen05::load_32x32b_x32(tensor_memory + lane_address + accumulators.stage * shape.n + column)
            };
            if row < launch.arguments.m {
                // SAFETY: the row is within the slot, whose rows are 16-byte aligned because N is a multiple of 128.
                unsafe { store_row(destination + u64::from(column) * 2, values) };
            }
            column += COLUMNS;
        }
        // The MMA thread may overwrite the accumulator once every warp has drained its quarter.
        tcgen05::fence_before_thread_sync();
        warp::sync();
        if lane == 0 {
            // SAFETY: one arrival per epilogue warp, as initialised.
            unsafe { mbarrier::arrive(base + map.accumulator_empty(accumulators.stage)) };
        }
        accumulators.advance(map.accumulators);
        barrier::sync::<{ NamedBarrier::EPILOGUE }, THREADS>();
        if warp_index == 0 {
            // SAFETY: the barrier above gathered the tile's stores.
            unsafe { launch.publish_tile(index) };
        }
    }
}

/// Converts 32 columns of a row and stores their 64 bytes.
#[inline(always)]
unsafe fn store_row(address: u64, values: [f32; 32]) {
    macro_rules! store {
        ($($chunk:literal),*) => {$(
            let packed = [
                convert::bf16x2(values[$chunk * 8 + 1], values[$chunk * 8]),
                convert::bf16x2(values[$chunk * 8 + 3], values[$chunk * 8 + 2]),
                convert::bf16x2(values[$chunk * 8 + 5], values[$chunk * 8 + 4]),
                convert::bf16x2(values[$chunk * 8 + 7], values[$chunk * 8 + 6]),
            ];
            // SAFETY: the caller's promise.
            unsafe { global::store_v4(address + $chunk * 16, packed) };
        )*};
    }
    store!(0, 1, 2, 3);
}

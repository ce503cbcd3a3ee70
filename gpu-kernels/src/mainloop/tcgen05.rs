//! The SM100 main loop: a TMA thread fills stages of shared memory, an MMA thread multiplies them into tensor memory.
//!
//! In a pair both CTAs load, each its rows of A and half of the tile's rows of B, and the even CTA multiplies for both.
//! Its barrier of a stage counts the bytes of both, so that it sees everything that the MMA reads; the commits arrive in
//! both.

use plan::descriptors::{MatrixDescriptor, scale_id};
use plan::kernels::{MMA_ROW_BYTES, MMA_ROWS, STAGE_ROW_BYTES};
use plan::schedule::Tile;
use plan::shared_memory::{SCALE_GROUP_BYTES, SharedMap};
use plan::tensor_memory::SCALE_GROUP_COLUMNS;

use super::pipeline::{Position, Ring, Strided};
use crate::gemm::{Launch, Operands};
use crate::ptx::tma::TensorMap;
use crate::ptx::{mbarrier, tcgen05, tma};
use crate::variant::Variant;

/// MMAs of one stage.
const MMAS: u32 = STAGE_ROW_BYTES / MMA_ROW_BYTES;
/// The MMA's number of columns is a multiple of this.
const COLUMN_UNIT: u32 = 16;

/// Columns of the MMA for a tile: as wide as the tile's valid part, rounded to what the instruction takes.
#[inline(always)]
pub fn mma_columns<V: Variant>(launch: &Launch, tile: Tile) -> u32 {
    if V::SWAPPED {
        launch.tiles.tile_rows(tile).len().next_multiple_of(COLUMN_UNIT)
    } else {
        launch.tiles.tile_columns(tile)
    }
}

/// Initialises the pipeline's barriers.
///
/// # Safety
/// One thread calls it, once, before any use.
#[inline(always)]
pub unsafe fn init_barriers(map: SharedMap, base: u32, epilogue_arrivals: u32) {
    let mut stage = 0;
    while stage < map.stages {
        // SAFETY: the plan keeps the barriers apart and 8-byte aligned.
        unsafe {
            mbarrier::init(base + map.full(stage), 1);
            mbarrier::init(base + map.empty(stage), 1);
        }
        stage += 1;
    }
    let mut accumulator = 0;
    while accumulator < map.accumulators {
        // SAFETY: as above.
        unsafe {
            mbarrier::init(base + map.accumulator_full(accumulator), 1);
            mbarrier::init(base + map.accumulator_empty(accumulator), epilogue_arrivals);
        }
        accumulator += 1;
    }
    // SAFETY: as above.
    unsafe { mbarrier::init(base + map.peer_done(), 1) };
}

/// Where a tile's operands begin.
struct Origin {
    a_row: u32,
    b_row: u32,
    scale_a_group: u32,
    scale_b_group: u32,
}

impl Origin {
    #[inline(always)]
    fn of<V: Variant>(launch: &Launch, tile: Tile) -> Self {
        let shape = V::SPEC.tile;
        if V::SWAPPED {
            Self {
                a_row: tile.column * shape.n,
                b_row: tile.row * shape.m,
                scale_a_group: tile.column,
                scale_b_group: tile.row * V::SPEC.scale_b_groups(),
            }
        } else {
            // A narrow tile is halved as well: the pair's MMA takes its first columns from one CTA, the rest from the
            // other.
            let half = launch.tiles.tile_columns(tile) / V::SPEC.cluster;
            Self {
                a_row: tile.row * MMA_ROWS,
                b_row: tile.column * shape.n + launch.cluster_rank * half,
                scale_a_group: tile.row,
                scale_b_group: tile.column * V::SPEC.scale_b_groups(),
            }
        }
    }
}

#[inline(always)]
unsafe fn load<V: Variant>(destination: u32, map: *const TensorMap, x: u32, y: u32, barrier: u32) {
    // SAFETY: the caller's promise.
    unsafe {
        if V::PAIR {
            tma::load_2d_pair(destination, map, x, y, barrier);
        } else {
            tma::load_2d(destination, map, x, y, barrier);
        }
    }
}

/// The TMA thread: loads the operand boxes of every tile of this CTA, stage after stage.
///
/// # Safety
/// One thread runs it; the tensor maps are the launch's.
#[inline(always)]
pub unsafe fn produce<V: Variant>(launch: &Launch, operands: &Operands) {
    /// 64-bit elements of a group of scales: what keeps its box within 256 elements.
    const SCALE_GROUP_ELEMENTS: u32 = SCALE_GROUP_BYTES / 8;
    let map = V::SPEC.shared;
    let base = launch.shared_base;
    let k_blocks = launch.arguments.k / V::SPEC.tile.k;
    let ring = Ring::new(base + map.full(0), map.stages);
    let a = ring.strided(base, map.a(1));
    let scale_a = ring.strided(base + map.scale_a(0), map.scale_a_bytes + map.scale_b_bytes);
    let mut position = ring.start();
    for index in launch.tile_indices() {
        let origin = Origin::of::<V>(launch, launch.tiles.tile(index));
        let mut block = 0;
        while block < k_blocks {
            let full = position.full + (launch.leader_base - base);
            let x = block * V::SPEC.tile.k;
            // SAFETY: the barriers are initialised, the stage is free once its MMAs have arrived on `empty`, and the
            // boxes are as large as the stage's parts.
            unsafe {
                mbarrier::wait_parity(ring.empty(position), position.empty_parity());
                if launch.cluster_rank == 0 {
                    mbarrier::arrive_expect_tx(position.full, V::SPEC.cluster * map.stage_bytes());
                }
                load::<V>(a.at(position), operands.a, x, origin.a_row, full);
                load::<V>(a.at(position) + map.b(0), operands.b, x, origin.b_row, full);
                if V::SCALED {
                    let x = block * SCALE_GROUP_ELEMENTS;
                    let scale_a = scale_a.at(position);
                    load::<V>(scale_a, operands.scale_a, x, origin.scale_a_group, full);
                    load::<V>(scale_a + map.scale_a_bytes, operands.scale_b, x, origin.scale_b_group, full);
                }
            }
            ring.advance(&mut position);
            block += 1;
        }
    }
    if V::PAIR {
        // The even CTA's commits must have arrived before this CTA may end.
        let mut stage = 0;
        while stage < map.stages {
            // SAFETY: the barrier is initialised.
            unsafe { mbarrier::wait_parity(ring.empty(position), position.empty_parity()) };
            ring.advance(&mut position);
            stage += 1;
        }
    }
}

/// The MMA thread: multiplies each stage as it fills, and hands every finished accumulator to the epilogue.
///
/// # Safety
/// One thread of the cluster's first CTA runs it; `tensor_memory` is the CTA's allocation, at the same address in the
/// whole cluster.
#[inline(always)]
pub unsafe fn multiply<V: Variant>(launch: &Launch, tensor_memory: u32) {
    let (map, tensor) = (V::SPEC.shared, V::SPEC.tensor);
    let base = launch.shared_base;
    let k_blocks = launch.arguments.k / V::SPEC.tile.k;
    let ring = Ring::new(base + map.full(0), map.stages);
    // Descriptors count in units of 16 bytes.
    let stage = Stage {
        a: ring.strided(base >> 4, map.a(1) >> 4),
        scale_a: ring.strided((base + map.scale_a(0)) >> 4, (map.scale_a_bytes + map.scale_b_bytes) >> 4),
    };
    let mut position = ring.start();
    let accumulators = Ring::new(base + map.accumulator_full(0), map.accumulators);
    let mut accumulator = accumulators.start();
    let mut place = 0;
    for index in launch.tile_indices() {
        let instruction = V::SPEC.instruction_descriptor(mma_columns::<V>(launch, launch.tiles.tile(index)));
        let destination = tensor_memory + tensor.place(place);
        // SAFETY: the barrier is initialised.
        unsafe { wait_for_accumulator::<V>(accumulators.empty(accumulator), accumulator.empty_parity()) };
        // Orders the MMAs behind the epilogue's loads of the accumulator. What TMA brings needs no such fence.
        tcgen05::fence_after_thread_sync();
        let mut block = |accumulate: bool| {
            // SAFETY: as above; the phase completes when TMA has written the whole stage.
            unsafe { mbarrier::wait_parity(position.full, position.full_parity()) };
            // SAFETY: the stage just filled, and one arrival per stage and pass was initialised.
            unsafe {
                stage.multiply::<V>(position, tensor_memory, destination, instruction, accumulate);
                commit::<V>(ring.empty(position));
            }
            ring.advance(&mut position);
        };
        // Apart from the rest, so that in the loop no predicate says whether to accumulate: its instructions count.
        block(false);
        let mut left = k_blocks;
        while left > 1 {
            block(true);
            left -= 1;
        }
        // SAFETY: one arrival per tile, as initialised.
        unsafe { commit::<V>(accumulator.full) };
        accumulators.advance(&mut accumulator);
        place ^= 1;
    }
    if V::PAIR {
        // The odd CTA's arrivals must have come before this CTA may end.
        let mut left = map.accumulators;
        while left != 0 {
            // SAFETY: the barrier is initialised.
            unsafe { wait_for_accumulator::<V>(accumulators.empty(accumulator), accumulator.empty_parity()) };
            accumulators.advance(&mut accumulator);
            left -= 1;
        }
    }
}

#[inline(always)]
unsafe fn wait_for_accumulator<V: Variant>(barrier: u32, parity: u32) {
    // SAFETY: the caller's promise.
    unsafe {
        if V::PAIR {
            mbarrier::wait_parity_cluster(barrier, parity);
        } else {
            mbarrier::wait_parity(barrier, parity);
        }
    }
}

#[inline(always)]
unsafe fn commit<V: Variant>(barrier: u32) {
    // SAFETY: the caller's promise.
    unsafe {
        if V::PAIR {
            tcgen05::commit_pair(barrier);
        } else {
            tcgen05::commit(barrier);
        }
    }
}

/// Low words of the descriptors of a stage's parts. The high words are constants, and sums of 32 bits are cheaper.
struct Stage {
    a: Strided,
    scale_a: Strided,
}

impl Stage {
    /// The MMAs of one stage, behind the copies of its scales to tensor memory.
    #[inline(always)]
    unsafe fn multiply<V: Variant>(
        &self,
        position: Position,
        tensor_memory: u32,
        destination: u32,
        instruction: u32,
        accumulate: bool,
    ) {
        let (map, tensor) = (V::SPEC.shared, V::SPEC.tensor);
        let scales = [tensor_memory + tensor.scale_a, tensor_memory + tensor.scale_b];
        if V::SCALED {
            // One buffer of scales is enough: copies and MMAs of one thread execute in the order of their issue.
            // SAFETY: the stage holds the scales, and the columns are set apart for them.
            unsafe {
                let source = self.scale_a.at(position);
                copy_scales::<V>(scales[0], source);
                let mut group = 0;
                while group < V::SPEC.scale_b_groups() {
                    let offset = (map.scale_a_bytes + group * SCALE_GROUP_BYTES) >> 4;
                    copy_scales::<V>(scales[1] + group * SCALE_GROUP_COLUMNS, source + offset);
                    group += 1;
                }
            }
        }
        let a = self.a.at(position);
        let b = a + (map.b(0) >> 4);
        let mut step = 0;
        while step < MMAS {
            let offset = (step * MMA_ROW_BYTES) >> 4;
            let operands = [a, b].map(|word| MatrixDescriptor::K_MAJOR_128B.template() | u64::from(word + offset));
            let accumulate = accumulate | (step != 0);
            let scaled_instruction = instruction + scale_id(step);
            // SAFETY: the descriptors are of the stage that just filled; the first MMA of a tile overwrites.
            unsafe {
                match (V::SCALED, V::PAIR) {
                    (false, false) => tcgen05::mma_f16::<1>(destination, operands, instruction, accumulate),
                    (false, true) => tcgen05::mma_f16::<2>(destination, operands, instruction, accumulate),
                    (true, false) => {
                        tcgen05::mma_mxf8::<1>(destination, operands, scales, scaled_instruction, accumulate);
                    }
                    (true, true) => {
                        tcgen05::mma_mxf8::<2>(destination, operands, scales, scaled_instruction, accumulate);
                    }
                }
            }
            step += 1;
        }
    }
}

/// Copies a group of scales; `source` is the low word of their descriptor.
#[inline(always)]
unsafe fn copy_scales<V: Variant>(address: u32, source: u32) {
    let source = MatrixDescriptor::SCALES.template() | u64::from(source);
    // SAFETY: the caller's promise.
    unsafe {
        if V::PAIR {
            tcgen05::copy_32x128b_warpx4::<2>(address, source);
        } else {
            tcgen05::copy_32x128b_warpx4::<1>(address, source);
        }
    }
}

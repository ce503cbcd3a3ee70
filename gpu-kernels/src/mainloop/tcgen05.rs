//! The SM100 main loop: a TMA thread fills stages of shared memory, an MMA thread multiplies them into tensor memory.
//!
//! In a pair both CTAs load, each its rows of A and half of the tile's rows of B, and the even CTA multiplies for both.
//! Its barrier of a stage counts the bytes of both, so that it sees everything that the MMA reads; the commits arrive in
//! both.

use plan::descriptors::{MatrixDescriptor, matrix_descriptor_step, scale_id};
use plan::kernels::{MMA_ROW_BYTES, MMA_ROWS, STAGE_ROW_BYTES};
use plan::schedule::Tile;
use plan::shared_memory::{SCALE_GROUP_BYTES, SharedMap};
use plan::tensor_memory::SCALE_GROUP_COLUMNS;

use super::pipeline::Position;
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
    let mut position = Position::start();
    for index in launch.tile_indices() {
        let origin = Origin::of::<V>(launch, launch.tiles.tile(index));
        for block in 0..k_blocks {
            let full = launch.leader_base + map.full(position.stage);
            let x = block * V::SPEC.tile.k;
            // SAFETY: the barriers are initialised, the stage is free once its MMAs have arrived on `empty`, and the
            // boxes are as large as the stage's parts.
            unsafe {
                mbarrier::wait_parity(base + map.empty(position.stage), position.empty_parity());
                if launch.cluster_rank == 0 {
                    mbarrier::arrive_expect_tx(base + map.full(position.stage), V::SPEC.cluster * map.stage_bytes());
                }
                load::<V>(base + map.a(position.stage), operands.a, x, origin.a_row, full);
                load::<V>(base + map.b(position.stage), operands.b, x, origin.b_row, full);
                if V::SCALED {
                    let x = block * SCALE_GROUP_ELEMENTS;
                    load::<V>(base + map.scale_a(position.stage), operands.scale_a, x, origin.scale_a_group, full);
                    load::<V>(base + map.scale_b(position.stage), operands.scale_b, x, origin.scale_b_group, full);
                }
            }
            position.advance(map.stages);
        }
    }
    if V::PAIR {
        // The even CTA's commits must have arrived before this CTA may end.
        for _ in 0..map.stages {
            // SAFETY: the barrier is initialised.
            unsafe { mbarrier::wait_parity(base + map.empty(position.stage), position.empty_parity()) };
            position.advance(map.stages);
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
    let mut stages = Position::start();
    let mut accumulators = Position::start();
    let mut place = 0;
    for index in launch.tile_indices() {
        let instruction = V::SPEC.instruction_descriptor(mma_columns::<V>(launch, launch.tiles.tile(index)));
        let accumulator = tensor_memory + tensor.place(place);
        // SAFETY: the barrier is initialised.
        unsafe { wait_for_accumulator::<V>(base + map.accumulator_empty(accumulators.stage), accumulators) };
        for block in 0..k_blocks {
            // SAFETY: as above; the phase completes when TMA has written the whole stage.
            unsafe { mbarrier::wait_parity(base + map.full(stages.stage), stages.full_parity()) };
            // Orders the MMAs behind both waits: the stage's, and for the first stage the accumulator's, whose epilogue
            // read it with tcgen05.ld.
            tcgen05::fence_after_thread_sync();
            // SAFETY: the stage just filled.
            unsafe { multiply_stage::<V>(launch, tensor_memory, accumulator, stages.stage, instruction, block != 0) };
            // SAFETY: one arrival per stage and pass, as initialised.
            unsafe { commit::<V>(base + map.empty(stages.stage)) };
            stages.advance(map.stages);
        }
        // SAFETY: one arrival per tile, as initialised.
        unsafe { commit::<V>(base + map.accumulator_full(accumulators.stage)) };
        accumulators.advance(map.accumulators);
        place ^= 1;
    }
    if V::PAIR {
        // The odd CTA's arrivals must have come before this CTA may end.
        for _ in 0..map.accumulators {
            // SAFETY: the barrier is initialised.
            unsafe { wait_for_accumulator::<V>(base + map.accumulator_empty(accumulators.stage), accumulators) };
            accumulators.advance(map.accumulators);
        }
    }
}

#[inline(always)]
unsafe fn wait_for_accumulator<V: Variant>(barrier: u32, position: Position) {
    // SAFETY: the caller's promise.
    unsafe {
        if V::PAIR {
            mbarrier::wait_parity_cluster(barrier, position.empty_parity());
        } else {
            mbarrier::wait_parity(barrier, position.empty_parity());
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

/// The MMAs of one stage, behind the copies of its scales to tensor memory.
#[inline(always)]
unsafe fn multiply_stage<V: Variant>(
    launch: &Launch,
    tensor_memory: u32,
    accumulator: u32,
    stage: u32,
    instruction: u32,
    accumulate: bool,
) {
    let (map, tensor) = (V::SPEC.shared, V::SPEC.tensor);
    let a = MatrixDescriptor::K_MAJOR_128B.at(launch.shared_base + map.a(stage));
    let b = MatrixDescriptor::K_MAJOR_128B.at(launch.shared_base + map.b(stage));
    let scales = [tensor_memory + tensor.scale_a, tensor_memory + tensor.scale_b];
    if V::SCALED {
        // One buffer of scales is enough: copies and MMAs of one thread execute in the order of their issue.
        // SAFETY: the stage holds the scales, and the columns are set apart for them.
        unsafe {
            let source = MatrixDescriptor::SCALES.at(launch.shared_base + map.scale_a(stage));
            copy_scales::<V>(scales[0], source);
            let source = MatrixDescriptor::SCALES.at(launch.shared_base + map.scale_b(stage));
            let mut group = 0;
            while group < V::SPEC.scale_b_groups() {
                let offset = matrix_descriptor_step(group * SCALE_GROUP_BYTES);
                copy_scales::<V>(scales[1] + group * SCALE_GROUP_COLUMNS, source + offset);
                group += 1;
            }
        }
    }
    let mut step = 0;
    while step < MMAS {
        let offset = matrix_descriptor_step(step * MMA_ROW_BYTES);
        let operands = [a + offset, b + offset];
        let accumulate = accumulate | (step != 0);
        // SAFETY: the descriptors are of the stage that just filled; the first MMA of a tile overwrites.
        unsafe {
            match (V::SCALED, V::PAIR) {
                (false, false) => tcgen05::mma_f16::<1>(accumulator, operands[0], operands[1], instruction, accumulate),
                (false, true) => tcgen05::mma_f16::<2>(accumulator, operands[0], operands[1], instruction, accumulate),
                (true, false) => {
                    tcgen05::mma_mxf8::<1>(accumulator, operands, scales, instruction + scale_id(step), accumulate);
                }
                (true, true) => {
                    tcgen05::mma_mxf8::<2>(accumulator, operands, scales, instruction + scale_id(step), accumulate);
                }
            }
        }
        step += 1;
    }
}

#[inline(always)]
unsafe fn copy_scales<V: Variant>(address: u32, source: u64) {
    // SAFETY: the caller's promise.
    unsafe {
        if V::PAIR {
            tcgen05::copy_32x128b_warpx4::<2>(address, source);
        } else {
            tcgen05::copy_32x128b_warpx4::<1>(address, source);
        }
    }
}

//! The SM100 main loop: a TMA thread fills stages of shared memory, an MMA thread multiplies them into tensor memory.

use plan::descriptors::{MatrixDescriptor, bf16_instruction_descriptor, matrix_descriptor_step};
use plan::shared_memory::SharedMap;

use super::pipeline::Position;
use crate::gemm::Launch;
use crate::ptx::tma::TensorMap;
use crate::ptx::{mbarrier, tcgen05, tma};
use crate::variant::Variant;

/// Elements along K of one BF16 MMA.
const MMA_K: u32 = 16;
/// Bytes of a BF16 element.
const ELEMENT_BYTES: u32 = 2;

/// Columns of tensor memory that a variant's accumulators take. Allocations are powers of two.
pub const fn tensor_memory_columns<V: Variant>() -> u32 {
    (V::SPEC.tile.n * V::SPEC.shared.accumulators).next_power_of_two()
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
}

/// The TMA thread: loads the operand boxes of every tile of this CTA, stage after stage.
///
/// # Safety
/// One thread runs it; the tensor maps are the launch's.
#[inline(always)]
pub unsafe fn produce<V: Variant>(launch: &Launch, x: *const TensorMap, w: *const TensorMap) {
    let (map, shape) = (V::SPEC.shared, V::SPEC.tile);
    let base = launch.shared_base;
    let k_blocks = launch.arguments.k / shape.k;
    let mut position = Position::start();
    for index in launch.tile_indices() {
        let tile = launch.tiles.tile(index);
        for block in 0..k_blocks {
            let full = base + map.full(position.stage);
            // SAFETY: the barriers are initialised, the stage is free once its MMAs have arrived on `empty`, and the
            // boxes are as large as the stage's halves.
            unsafe {
                mbarrier::wait_parity(base + map.empty(position.stage), position.empty_parity());
                mbarrier::arrive_expect_tx(full, map.stage_bytes());
                tma::load_2d(base + map.a(position.stage), x, block * shape.k, tile.row * shape.m, full);
                tma::load_2d(base + map.b(position.stage), w, block * shape.k, tile.column * shape.n, full);
            }
            position.advance(map.stages);
        }
    }
}

/// The MMA thread: multiplies each stage as it fills, and hands every finished accumulator to the epilogue.
///
/// # Safety
/// One thread runs it; `tensor_memory` is the CTA's allocation.
#[inline(always)]
pub unsafe fn multiply<V: Variant>(launch: &Launch, tensor_memory: u32) {
    let (map, shape) = (V::SPEC.shared, V::SPEC.tile);
    let instruction = bf16_instruction_descriptor(shape.m, shape.n);
    let base = launch.shared_base;
    let k_blocks = launch.arguments.k / shape.k;
    let mut stages = Position::start();
    let mut accumulators = Position::start();
    for _ in launch.tile_indices() {
        let accumulator = tensor_memory + accumulators.stage * shape.n;
        // SAFETY: the barrier is initialised.
        unsafe { mbarrier::wait_parity(base + map.accumulator_empty(accumulators.stage), accumulators.empty_parity()) };
        for block in 0..k_blocks {
            // SAFETY: as above; the phase completes when TMA has written the whole stage.
            unsafe { mbarrier::wait_parity(base + map.full(stages.stage), stages.full_parity()) };
            // Orders the MMAs behind both waits: the stage's, and for the first stage the accumulator's, whose epilogue
            // read it with tcgen05.ld.
            tcgen05::fence_after_thread_sync();
            let a = MatrixDescriptor::K_MAJOR_128B.at(base + map.a(stages.stage));
            let b = MatrixDescriptor::K_MAJOR_128B.at(base + map.b(stages.stage));
            let mut step = 0;
            while step < shape.k / MMA_K {
                let offset = matrix_descriptor_step(step * MMA_K * ELEMENT_BYTES);
                // SAFETY: the descriptors are of the stage that just filled; the first MMA of a tile overwrites.
                unsafe {
                    tcgen05::mma_f16(accumulator, a + offset, b + offset, instruction, (block | step) != 0);
                }
                step += 1;
            }
            // SAFETY: one arrival per stage and pass, as initialised.
            unsafe { tcgen05::commit(base + map.empty(stages.stage)) };
            stages.advance(map.stages);
        }
        // SAFETY: one arrival per tile, as initialised.
        unsafe { tcgen05::commit(base + map.accumulator_full(accumulators.stage)) };
        accumulators.advance(map.accumulators);
    }
}

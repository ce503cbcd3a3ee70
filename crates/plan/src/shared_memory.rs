//! The shared-memory map of a GEMM kernel: operand stages first, because the swizzle wants them 1024-byte aligned, then
//! the mbarriers.

use crate::schedule::TileShape;

/// Most shared memory a CTA may have on SM90 and SM100.
pub const MAX_SHARED_BYTES: u32 = 232_448;
/// Stages are aligned to the 128-byte swizzle's period.
pub const STAGE_ALIGN: u32 = 1024;
/// Bytes of an mbarrier.
pub const BARRIER_BYTES: u32 = 8;
/// Bytes kept for the barriers and the tensor-memory address word.
pub const BARRIER_REGION_BYTES: u32 = 1024;

/// Where things lie in dynamic shared memory, as offsets from its 1024-byte aligned start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedMap {
    /// Bytes of one stage of A.
    pub a_bytes: u32,
    /// Bytes of one stage of B.
    pub b_bytes: u32,
    /// Number of stages.
    pub stages: u32,
    /// Number of accumulators in tensor memory.
    pub accumulators: u32,
}

impl SharedMap {
    /// The map for a BF16 tile: as many stages as fit.
    pub const fn bf16(tile: TileShape, accumulators: u32) -> Self {
        let a_bytes = tile.m * tile.k * 2;
        let b_bytes = tile.n * tile.k * 2;
        // Dynamic shared memory is only sure to be 16-byte aligned on the driver's side, hence one alignment unit.
        let room = MAX_SHARED_BYTES - BARRIER_REGION_BYTES - STAGE_ALIGN;
        Self { a_bytes, b_bytes, stages: room / (a_bytes + b_bytes), accumulators }
    }

    /// Bytes that TMA brings per stage.
    pub const fn stage_bytes(self) -> u32 {
        self.a_bytes + self.b_bytes
    }

    /// A's tile in a stage.
    pub const fn a(self, stage: u32) -> u32 {
        stage * self.stage_bytes()
    }

    /// B's tile in a stage.
    pub const fn b(self, stage: u32) -> u32 {
        stage * self.stage_bytes() + self.a_bytes
    }

    const fn barriers(self) -> u32 {
        self.stages * self.stage_bytes()
    }

    /// Barrier: TMA has filled the stage.
    pub const fn full(self, stage: u32) -> u32 {
        self.barriers() + stage * BARRIER_BYTES
    }

    /// Barrier: the MMAs that read the stage are done.
    pub const fn empty(self, stage: u32) -> u32 {
        self.full(self.stages + stage)
    }

    /// Barrier: the accumulator holds a finished tile.
    pub const fn accumulator_full(self, accumulator: u32) -> u32 {
        self.full(2 * self.stages + accumulator)
    }

    /// Barrier: the epilogue has drained the accumulator.
    pub const fn accumulator_empty(self, accumulator: u32) -> u32 {
        self.accumulator_full(self.accumulators + accumulator)
    }

    /// The word that `tcgen05.alloc` writes.
    pub const fn tensor_memory_address(self) -> u32 {
        self.accumulator_full(2 * self.accumulators)
    }

    /// Bytes to ask for at launch, alignment included.
    pub const fn dynamic_bytes(self) -> u32 {
        self.barriers() + BARRIER_REGION_BYTES + STAGE_ALIGN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_128_tile_has_six_or_more_stages_and_fits() {
        let map = SharedMap::bf16(TileShape { m: 128, n: 128, k: 64 }, 2);
        assert!(map.stages >= 6, "{map:?}");
        assert!(map.dynamic_bytes() <= MAX_SHARED_BYTES);
        assert!(map.tensor_memory_address() + 4 <= map.full(0) + BARRIER_REGION_BYTES);
        assert_eq!(map.b(1) % STAGE_ALIGN, 0);
    }
}

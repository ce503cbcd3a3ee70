//! The shared-memory map of a GEMM kernel: operand stages first, because the swizzle wants them 1024-byte aligned, then
//! the epilogue's staging buffers, the scales of every stage, and the mbarriers.

use crate::kernels::{MMA_ROWS, OperandType, SCALE_ROWS, STAGE_ROW_BYTES, STORE_COLUMNS, roles};

/// Most shared memory a CTA may have on SM90 and SM100.
pub const MAX_SHARED_BYTES: u32 = 232_448;
/// Stages are aligned to the 128-byte swizzle's period.
pub const STAGE_ALIGN: u32 = 1024;
/// Bytes of an mbarrier.
pub const BARRIER_BYTES: u32 = 8;
/// Bytes kept for the barriers and the tensor-memory address word.
pub const BARRIER_REGION_BYTES: u32 = 1024;
/// Bytes of the scales of 128 rows by 128 elements along K: one scale for every 32 elements.
pub const SCALE_GROUP_BYTES: u32 = SCALE_ROWS * 4;
/// Bytes of a staging buffer: 32 rows of [`STORE_COLUMNS`] BF16 elements.
pub const STAGING_BYTES: u32 = crate::WARP_LANES * STORE_COLUMNS * 2;
/// Staging buffers of an epilogue warp: one is filled while the other is being stored.
pub const STAGING_BUFFERS: u32 = 2;

/// Where things lie in dynamic shared memory, as offsets from its 1024-byte aligned start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedMap {
    /// Bytes of one stage of A.
    pub a_bytes: u32,
    /// Bytes of one stage of B.
    pub b_bytes: u32,
    /// Bytes of one stage of A's scales.
    pub scale_a_bytes: u32,
    /// Bytes of one stage of B's scales.
    pub scale_b_bytes: u32,
    /// Number of stages.
    pub stages: u32,
    /// Number of barrier pairs that pass accumulators between MMA and epilogue.
    pub accumulators: u32,
}

impl SharedMap {
    /// The map of a kernel whose MMA has `columns` columns over `cluster` CTAs: as many stages as fit.
    pub const fn new(operands: OperandType, columns: u32, cluster: u32) -> Self {
        let a_bytes = MMA_ROWS * STAGE_ROW_BYTES;
        let b_bytes = columns / cluster * STAGE_ROW_BYTES;
        let (scale_a_bytes, scale_b_bytes) = match operands {
            OperandType::Bf16 => (0, 0),
            OperandType::Mxfp8 => (SCALE_GROUP_BYTES, columns.div_ceil(SCALE_ROWS) * SCALE_GROUP_BYTES),
        };
        // Dynamic shared memory is only sure to be 16-byte aligned on the driver's side, hence one alignment unit.
        let room = MAX_SHARED_BYTES - BARRIER_REGION_BYTES - STAGE_ALIGN - Self::STAGING_REGION_BYTES;
        Self {
            a_bytes,
            b_bytes,
            scale_a_bytes,
            scale_b_bytes,
            stages: room / (a_bytes + b_bytes + scale_a_bytes + scale_b_bytes),
            accumulators: crate::tensor_memory::TensorMemoryMap::new(operands, columns).barriers,
        }
    }

    const STAGING_REGION_BYTES: u32 = roles::EPILOGUE_WARPS * STAGING_BUFFERS * STAGING_BYTES;

    const fn operand_bytes(self) -> u32 {
        self.a_bytes + self.b_bytes
    }

    /// Bytes that TMA brings per stage to one CTA.
    pub const fn stage_bytes(self) -> u32 {
        self.operand_bytes() + self.scale_a_bytes + self.scale_b_bytes
    }

    /// A's tile in a stage.
    #[inline(always)]
    pub const fn a(self, stage: u32) -> u32 {
        stage * self.operand_bytes()
    }

    /// B's tile in a stage.
    #[inline(always)]
    pub const fn b(self, stage: u32) -> u32 {
        stage * self.operand_bytes() + self.a_bytes
    }

    /// A staging buffer of an epilogue warp.
    #[inline(always)]
    pub const fn staging(self, warp: u32, buffer: u32) -> u32 {
        self.stages * self.operand_bytes() + (warp * STAGING_BUFFERS + buffer) * STAGING_BYTES
    }

    /// A's scales in a stage.
    #[inline(always)]
    pub const fn scale_a(self, stage: u32) -> u32 {
        self.staging(roles::EPILOGUE_WARPS, 0) + stage * (self.scale_a_bytes + self.scale_b_bytes)
    }

    /// B's scales in a stage.
    #[inline(always)]
    pub const fn scale_b(self, stage: u32) -> u32 {
        self.scale_a(stage) + self.scale_a_bytes
    }

    const fn barriers(self) -> u32 {
        self.scale_a(self.stages)
    }

    /// Barrier: TMA has filled the stage, in every CTA of the cluster.
    #[inline(always)]
    pub const fn full(self, stage: u32) -> u32 {
        self.barriers() + stage * BARRIER_BYTES
    }

    /// Barrier: the MMAs that read the stage are done.
    #[inline(always)]
    pub const fn empty(self, stage: u32) -> u32 {
        self.full(self.stages + stage)
    }

    /// Barrier: the accumulator holds a finished tile.
    #[inline(always)]
    pub const fn accumulator_full(self, accumulator: u32) -> u32 {
        self.full(2 * self.stages + accumulator)
    }

    /// Barrier: the epilogue has drained the accumulator, or what the next one needs of it.
    #[inline(always)]
    pub const fn accumulator_empty(self, accumulator: u32) -> u32 {
        self.accumulator_full(self.accumulators + accumulator)
    }

    /// Barrier: the peer of a pair touches this CTA's memories no more.
    #[inline(always)]
    pub const fn peer_done(self) -> u32 {
        self.accumulator_full(2 * self.accumulators)
    }

    /// The word that `tcgen05.alloc` writes.
    #[inline(always)]
    pub const fn tensor_memory_address(self) -> u32 {
        self.peer_done() + BARRIER_BYTES
    }

    /// Bytes to ask for at launch, alignment included.
    pub const fn dynamic_bytes(self) -> u32 {
        self.barriers() + BARRIER_REGION_BYTES + STAGE_ALIGN
    }
}

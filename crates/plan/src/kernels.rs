//! The kernel table: every kernel as a value. The builder reads it to annotate the IR, the host to choose and launch,
//! the tests to stamp one suite on each entry.

use crate::arguments::GemmArguments;
use crate::schedule::TileShape;
use crate::shared_memory::SharedMap;

/// GPU architecture that a kernel is compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Architecture {
    /// The SM100 family: B200 (compute capability 10.0) and B300 (10.3) load the same PTX.
    Sm100,
}

impl Architecture {
    /// All of them.
    pub const ALL: [Self; 1] = [Self::Sm100];

    /// The `.target` of the PTX.
    pub const fn target(self) -> &'static str {
        match self {
            Self::Sm100 => "sm_100f",
        }
    }

    /// PTX ISA version of the text: the lowest that has the instructions, so that older drivers load it.
    pub const fn ptx_version(self) -> (u32, u32) {
        match self {
            Self::Sm100 => (8, 8),
        }
    }
}

/// A kernel parameter that Rust sees as a pointer and PTX passes by value in the parameter space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByValue {
    /// Size in bytes.
    pub bytes: u32,
    /// Alignment in bytes.
    pub align: u32,
}

/// A TMA tensor map.
pub const TENSOR_MAP: ByValue = ByValue { bytes: 128, align: 64 };

/// Operand types of a GEMM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OperandType {
    /// bfloat16.
    Bf16,
}

/// One GEMM kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelSpec {
    /// Entry name.
    pub name: &'static str,
    /// Architecture.
    pub architecture: Architecture,
    /// Operand type.
    pub operands: OperandType,
    /// Tile of one CTA.
    pub tile: TileShape,
    /// CTAs per cluster, along x.
    pub cluster: u32,
    /// Threads per CTA.
    pub threads: u32,
    /// Shared-memory map.
    pub shared: SharedMap,
    /// Parameters in order.
    pub parameters: &'static [ByValue],
}

/// Warps of a GEMM CTA by role. Epilogue warps come first because `tcgen05.ld` gives warp `w` the tensor-memory lanes
/// `32 * (w % 4)` and up.
pub mod roles {
    /// Epilogue warps: 0..4.
    pub const EPILOGUE_WARPS: u32 = 4;
    /// First communication warp.
    pub const FIRST_COMMUNICATION_WARP: u32 = 4;
    /// Communication warps.
    pub const COMMUNICATION_WARPS: u32 = 4;
    /// The MMA warp, which also owns the tensor-memory allocation.
    pub const MMA_WARP: u32 = 8;
    /// The TMA warp.
    pub const TMA_WARP: u32 = 9;
    /// Warps of a CTA.
    pub const WARPS: u32 = 10;
}

/// Accumulators of the 128-column BF16 kernel: the next tile is multiplied while the last one is drained.
pub const BF16_ACCUMULATORS: u32 = 2;

/// Tile of the single-CTA BF16 kernel. 64 BF16 elements along K are one 128-byte swizzle row.
pub const BF16_128X128: TileShape = TileShape { m: 128, n: 128, k: 64 };

/// The single-CTA 128x128 BF16 kernel.
pub const GEMM_BF16_128X128: KernelSpec = KernelSpec {
    name: "gemm_bf16_128x128",
    architecture: Architecture::Sm100,
    operands: OperandType::Bf16,
    tile: BF16_128X128,
    cluster: 1,
    threads: roles::WARPS * crate::WARP_LANES,
    shared: SharedMap::bf16(BF16_128X128, BF16_ACCUMULATORS),
    parameters: &[
        TENSOR_MAP,
        TENSOR_MAP,
        ByValue { bytes: size_of::<GemmArguments>() as u32, align: align_of::<GemmArguments>() as u32 },
    ],
};

/// Every kernel there is.
pub const KERNELS: &[KernelSpec] = &[GEMM_BF16_128X128];

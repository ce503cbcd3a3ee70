//! The kernel table: every kernel as a value. The builder reads it to annotate the IR, the host to choose and launch,
//! the tests to stamp one suite on each entry.

use crate::arguments::GemmArguments;
use crate::descriptors::{bf16_instruction_descriptor, mxfp8_instruction_descriptor};
use crate::schedule::{TileGrid, TileShape};
use crate::shared_memory::SharedMap;
use crate::tensor_memory::TensorMemoryMap;

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
/// [`GemmArguments`].
pub const ARGUMENTS: ByValue =
    ByValue { bytes: size_of::<GemmArguments>() as u32, align: align_of::<GemmArguments>() as u32 };

/// Operand types of a GEMM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OperandType {
    /// bfloat16.
    Bf16,
    /// 8-bit floats (E4M3) with a power-of-two scale (E8M0) for every 32 elements along K.
    Mxfp8,
}

impl OperandType {
    /// Bytes of an element.
    pub const fn element_bytes(self) -> u32 {
        match self {
            Self::Bf16 => 2,
            Self::Mxfp8 => 1,
        }
    }

    /// Elements along K of one pipeline stage: a 128-byte swizzle row.
    pub const fn stage_k(self) -> u32 {
        STAGE_ROW_BYTES / self.element_bytes()
    }

    /// Elements along K of one MMA: 32 bytes.
    pub const fn mma_k(self) -> u32 {
        MMA_ROW_BYTES / self.element_bytes()
    }
}

/// Bytes along K of one pipeline stage.
pub const STAGE_ROW_BYTES: u32 = 128;
/// Bytes along K of one MMA.
pub const MMA_ROW_BYTES: u32 = 32;
/// Rows of A that one CTA multiplies: the lanes of tensor memory.
pub const MMA_ROWS: u32 = 128;

/// Which operand of the tensor core the activations are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Orientation {
    /// `Y = X · Wᵀ`: a tile's rows lie along tensor-memory lanes. X is A, W is B.
    Normal,
    /// `Yᵀ = W · Xᵀ`, for few rows: the 128 lanes are columns of Y, and the MMA is as narrow as the rows are few. W is A,
    /// X is B.
    Swapped,
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
    /// Tile of one CTA: rows and columns of Y.
    pub tile: TileShape,
    /// Which operand is which.
    pub orientation: Orientation,
    /// CTAs per cluster, along x: 1, or 2 that multiply 256 rows together (`cta_group::2`).
    pub cluster: u32,
    /// Threads per CTA.
    pub threads: u32,
    /// Shared-memory map.
    pub shared: SharedMap,
    /// Tensor-memory map.
    pub tensor: TensorMemoryMap,
    /// Parameters in order.
    pub parameters: &'static [ByValue],
}

impl KernelSpec {
    /// A kernel for the SM100 family whose tile has `columns` columns of Y.
    const fn sm100(name: &'static str, operands: OperandType, columns: u32, cluster: u32) -> Self {
        let tile = TileShape { m: MMA_ROWS, n: columns, k: operands.stage_k() };
        Self::new(name, operands, tile, Orientation::Normal, cluster)
    }

    /// A kernel for the SM100 family with swapped operands, for at most `rows` rows of Y.
    const fn sm100_swapped(name: &'static str, operands: OperandType, rows: u32) -> Self {
        let tile = TileShape { m: rows, n: MMA_ROWS, k: operands.stage_k() };
        Self::new(name, operands, tile, Orientation::Swapped, 1)
    }

    const fn new(
        name: &'static str,
        operands: OperandType,
        tile: TileShape,
        orientation: Orientation,
        cluster: u32,
    ) -> Self {
        let mma_columns = match orientation {
            Orientation::Normal => tile.n,
            Orientation::Swapped => tile.m,
        };
        Self {
            name,
            architecture: Architecture::Sm100,
            operands,
            tile,
            orientation,
            cluster,
            threads: roles::WARPS * crate::WARP_LANES,
            shared: SharedMap::new(operands, mma_columns, cluster),
            tensor: TensorMemoryMap::new(operands, mma_columns),
            parameters: match operands {
                OperandType::Bf16 => &[TENSOR_MAP, TENSOR_MAP, TENSOR_MAP, ARGUMENTS],
                OperandType::Mxfp8 => &[TENSOR_MAP, TENSOR_MAP, TENSOR_MAP, TENSOR_MAP, TENSOR_MAP, ARGUMENTS],
            },
        }
    }

    /// Columns of the MMA for a whole tile: its extent along the operand that is B, over the whole cluster.
    pub const fn mma_columns(&self) -> u32 {
        match self.orientation {
            Orientation::Normal => self.tile.n,
            Orientation::Swapped => self.tile.m,
        }
    }

    /// Rows of B that each CTA of the cluster loads.
    pub const fn b_rows(&self) -> u32 {
        self.mma_columns() / self.cluster
    }

    /// Groups of 128 rows that the scales of a tile's B come in.
    pub const fn scale_b_groups(&self) -> u32 {
        self.mma_columns().div_ceil(SCALE_ROWS)
    }

    /// Most rows that the kernel takes, if there is a limit: swapped kernels are for one row of tiles. With scales, more
    /// rows would have to begin where a group of 128 scale rows does; without, the others are better at them.
    pub const fn max_rows(&self) -> Option<u32> {
        match self.orientation {
            Orientation::Swapped => Some(self.tile.m),
            Orientation::Normal => None,
        }
    }

    /// The tiles of an `[m, n]` result.
    #[inline(always)]
    pub const fn tiles(&self, m: u32, n: u32) -> TileGrid {
        TileGrid::new(m, n, self.tile, self.cluster)
    }

    /// Rows of the boxes in which the epilogue stores the partial buffer; they are [`STORE_COLUMNS`] wide.
    pub const fn store_rows(&self) -> u32 {
        match self.orientation {
            Orientation::Normal => crate::WARP_LANES,
            Orientation::Swapped => SWAPPED_STORE_ROWS,
        }
    }

    /// Instruction descriptor of an MMA with `columns` columns.
    #[inline(always)]
    pub const fn instruction_descriptor(&self, columns: u32) -> u32 {
        let rows = MMA_ROWS * self.cluster;
        match self.operands {
            OperandType::Bf16 => bf16_instruction_descriptor(rows, columns),
            OperandType::Mxfp8 => mxfp8_instruction_descriptor(rows, columns),
        }
    }
}

/// Rows of a group of scales in the 128x4 layout.
pub const SCALE_ROWS: u32 = 128;
/// Columns of Y that one of the epilogue's stores covers: a 64-byte row.
pub const STORE_COLUMNS: u32 = 32;
/// Rows that one of the epilogue's stores covers in a swapped kernel.
pub const SWAPPED_STORE_ROWS: u32 = 16;

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

macro_rules! kernels {
    ($($(#[$doc:meta])* $name:ident = $value:expr;)*) => {
        $($(#[$doc])* pub const $name: KernelSpec = $value;)*

        /// Every kernel there is.
        pub const KERNELS: &[KernelSpec] = &[$($name),*];
    };
}

kernels! {
    /// BF16, 128 x 128.
    GEMM_BF16_128X128 = KernelSpec::sm100("gemm_bf16_128x128", OperandType::Bf16, 128, 1);
    /// BF16, 128 x 224.
    GEMM_BF16_128X224 = KernelSpec::sm100("gemm_bf16_128x224", OperandType::Bf16, 224, 1);
    /// BF16, 128 x 256.
    GEMM_BF16_128X256 = KernelSpec::sm100("gemm_bf16_128x256", OperandType::Bf16, 256, 1);
    /// BF16, a pair with 128 x 128 per CTA.
    GEMM_BF16_PAIR_128X128 = KernelSpec::sm100("gemm_bf16_pair_128x128", OperandType::Bf16, 128, 2);
    /// BF16, a pair with 128 x 224 per CTA.
    GEMM_BF16_PAIR_128X224 = KernelSpec::sm100("gemm_bf16_pair_128x224", OperandType::Bf16, 224, 2);
    /// BF16, a pair with 128 x 256 per CTA.
    GEMM_BF16_PAIR_128X256 = KernelSpec::sm100("gemm_bf16_pair_128x256", OperandType::Bf16, 256, 2);
    /// BF16, swapped, 32 x 128.
    GEMM_BF16_SWAPPED_32X128 = KernelSpec::sm100_swapped("gemm_bf16_swapped_32x128", OperandType::Bf16, 32);
    /// BF16, swapped, 64 x 128.
    GEMM_BF16_SWAPPED_64X128 = KernelSpec::sm100_swapped("gemm_bf16_swapped_64x128", OperandType::Bf16, 64);
    /// MXFP8, 128 x 128.
    GEMM_MXFP8_128X128 = KernelSpec::sm100("gemm_mxfp8_128x128", OperandType::Mxfp8, 128, 1);
    /// MXFP8, 128 x 224.
    GEMM_MXFP8_128X224 = KernelSpec::sm100("gemm_mxfp8_128x224", OperandType::Mxfp8, 224, 1);
    /// MXFP8, 128 x 256.
    GEMM_MXFP8_128X256 = KernelSpec::sm100("gemm_mxfp8_128x256", OperandType::Mxfp8, 256, 1);
    /// MXFP8, a pair with 128 x 128 per CTA.
    GEMM_MXFP8_PAIR_128X128 = KernelSpec::sm100("gemm_mxfp8_pair_128x128", OperandType::Mxfp8, 128, 2);
    /// MXFP8, a pair with 128 x 224 per CTA.
    GEMM_MXFP8_PAIR_128X224 = KernelSpec::sm100("gemm_mxfp8_pair_128x224", OperandType::Mxfp8, 224, 2);
    /// MXFP8, a pair with 128 x 256 per CTA.
    GEMM_MXFP8_PAIR_128X256 = KernelSpec::sm100("gemm_mxfp8_pair_128x256", OperandType::Mxfp8, 256, 2);
    /// MXFP8, swapped, 32 x 128.
    GEMM_MXFP8_SWAPPED_32X128 = KernelSpec::sm100_swapped("gemm_mxfp8_swapped_32x128", OperandType::Mxfp8, 32);
    /// MXFP8, swapped, 64 x 128.
    GEMM_MXFP8_SWAPPED_64X128 = KernelSpec::sm100_swapped("gemm_mxfp8_swapped_64x128", OperandType::Mxfp8, 64);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared_memory::{BARRIER_REGION_BYTES, MAX_SHARED_BYTES, STAGE_ALIGN};
    use crate::tensor_memory::TENSOR_MEMORY_COLUMNS;

    #[test]
    fn every_kernel_fits_its_memories() {
        for kernel in KERNELS {
            let (shared, tensor) = (kernel.shared, kernel.tensor);
            assert!(shared.stages >= 4, "{kernel:?}");
            assert!(shared.dynamic_bytes() <= MAX_SHARED_BYTES, "{kernel:?}");
            assert_eq!(shared.a(1) % STAGE_ALIGN, 0, "{kernel:?}");
            assert_eq!(shared.b(1) % STAGE_ALIGN, 0, "{kernel:?}");
            let end = shared.tensor_memory_address() + 4;
            assert!(end <= shared.full(0) + BARRIER_REGION_BYTES, "{kernel:?}");
            let last = tensor.place(tensor.places - 1) + kernel.mma_columns();
            assert!(last <= tensor.scale_a && tensor.end() <= tensor.columns, "{kernel:?}");
            assert!(tensor.columns.is_power_of_two() && tensor.columns <= TENSOR_MEMORY_COLUMNS, "{kernel:?}");
        }
    }

    #[test]
    fn names_say_what_a_kernel_is_and_differ() {
        for (index, kernel) in KERNELS.iter().enumerate() {
            let operands = match kernel.operands {
                OperandType::Bf16 => "bf16",
                OperandType::Mxfp8 => "mxfp8",
            };
            let kind = match (kernel.orientation, kernel.cluster) {
                (Orientation::Swapped, _) => "swapped_",
                (Orientation::Normal, 2) => "pair_",
                (Orientation::Normal, _) => "",
            };
            assert_eq!(kernel.name, format!("gemm_{operands}_{kind}{}x{}", kernel.tile.m, kernel.tile.n));
            assert!(KERNELS[..index].iter().all(|other| other.name != kernel.name));
        }
    }
}

//! What a row-parallel projection consists of, by raw device pointers.
//!
//! The layer computes `Y = X · Wᵀ`. Its inner dimension K is cut over the ranks, so a rank holds `K_local = K / ranks`
//! columns of X and of W and produces a partial sum of the whole of Y.
//!
//! All three matrices are row-major with contiguous rows: element `[row, column]` lies at
//! `address + (row * row_stride + column) * E` bytes, E being the size of an element. Nothing here is checked; [`GemmRsAr`](crate::GemmRsAr) does.

use crate::driver::DevicePtr;

/// Types that a caller's matrix may have. Only some are accepted; see [`Unsupported::ElementType`](crate::Unsupported).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ElementType {
    /// bfloat16.
    Bf16,
    /// IEEE half.
    F16,
    /// IEEE single.
    F32,
    /// 8-bit float, 4 exponent bits.
    F8E4M3,
}

impl ElementType {
    /// Bytes of an element.
    pub const fn bytes(self) -> u64 {
        match self {
            Self::Bf16 | Self::F16 => 2,
            Self::F32 => 4,
            Self::F8E4M3 => 1,
        }
    }
}

impl std::fmt::Display for ElementType {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Bf16 => "BF16",
            Self::F16 => "F16",
            Self::F32 => "F32",
            Self::F8E4M3 => "F8_E4M3",
        })
    }
}

/// A row-major matrix in device memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceMatrix {
    /// Address of element `[0, 0]`.
    pub address: DevicePtr,
    /// Rows.
    pub rows: u64,
    /// Columns.
    pub columns: u64,
    /// Elements from one row to the next.
    pub row_stride: u64,
    /// Element type.
    pub element_type: ElementType,
}

impl DeviceMatrix {
    /// A BF16 matrix without gaps between its rows.
    pub const fn bf16(address: DevicePtr, rows: u64, columns: u64) -> Self {
        Self { address, rows, columns, row_stride: columns, element_type: ElementType::Bf16 }
    }

    /// An E4M3 matrix without gaps between its rows.
    pub const fn e4m3(address: DevicePtr, rows: u64, columns: u64) -> Self {
        Self { address, rows, columns, row_stride: columns, element_type: ElementType::F8E4M3 }
    }

    /// The same matrix with rows `row_stride` elements apart.
    pub const fn with_row_stride(self, row_stride: u64) -> Self {
        Self { row_stride, ..self }
    }

    /// The same matrix with another element type.
    pub const fn with_element_type(self, element_type: ElementType) -> Self {
        Self { element_type, ..self }
    }
}

/// The scales of an MXFP8 matrix `[R, K]` in device memory: one E8M0 byte for every 32 elements along K, in the 128x4
/// layout `[R / 128, K / 128, 32, 4, 4]`, with R padded to a multiple of 128 (see [`plan::scales`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceScales {
    /// Address of the first byte, 16-byte aligned.
    pub address: DevicePtr,
    /// Bytes.
    pub bytes: u64,
}

/// The scales of an MXFP8 weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WeightScales {
    /// In the 128x4 layout.
    pub groups_of_128: DeviceScales,
    /// The same, with every 224 rows padded to 256. The kernels whose tiles are 224 columns wide need it, because their
    /// tiles do not begin where groups of 128 rows do; without it they are not chosen.
    pub groups_of_224: Option<DeviceScales>,
}

/// The constant part of the layer on one rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Projection {
    /// W, `[N, K_local]`: this rank's columns of the weight as linear layers store it. BF16, or E4M3 with scales.
    pub weight: DeviceMatrix,
    /// The scales of an E4M3 weight.
    pub scales: Option<WeightScales>,
}

impl Projection {
    /// A BF16 projection.
    pub const fn new(weight: DeviceMatrix) -> Self {
        Self { weight, scales: None }
    }

    /// The same projection with scales.
    pub const fn with_scales(self, scales: WeightScales) -> Self {
        Self { scales: Some(scales), ..self }
    }
}

/// The activations of one call on one rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Input {
    /// X, `[M, K_local]`: this rank's columns, of the weight's element type.
    pub x: DeviceMatrix,
    /// The scales of an E4M3 X.
    pub scales: Option<DeviceScales>,
}

impl Input {
    /// BF16 activations.
    pub const fn new(x: DeviceMatrix) -> Self {
        Self { x, scales: None }
    }

    /// The same activations with scales.
    pub const fn with_scales(self, scales: DeviceScales) -> Self {
        Self { scales: Some(scales), ..self }
    }
}

/// Where one call puts its result on one rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Output {
    /// Y: `[ceil(M / ranks), N]` for reduce-scatter, `[M, N]` for all-reduce.
    pub y: DeviceMatrix,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dense_matrix_has_its_columns_as_stride() {
        let matrix = DeviceMatrix::bf16(4096, 3, 64);
        assert_eq!(matrix.row_stride, 64);
        assert_eq!(matrix.with_row_stride(72).row_stride, 72);
        assert_eq!(matrix.with_element_type(ElementType::F16).element_type.to_string(), "F16");
    }
}

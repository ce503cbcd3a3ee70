//! What a row-parallel projection consists of, by raw device pointers.
//!
//! The layer computes `Y = X · Wᵀ`. Its inner dimension K is cut over the ranks, so a rank holds `K_local = K / ranks`
//! columns of X and of W and produces a partial sum of the whole of Y.
//!
//! All three matrices are row-major with contiguous rows: element `[row, column]` lies at
//! `address + (row * row_stride + column) * 2` bytes. Nothing here is checked; [`GemmRsAr`](crate::GemmRsAr) does.

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

    /// The same matrix with rows `row_stride` elements apart.
    pub const fn with_row_stride(self, row_stride: u64) -> Self {
        Self { row_stride, ..self }
    }

    /// The same matrix with another element type.
    pub const fn with_element_type(self, element_type: ElementType) -> Self {
        Self { element_type, ..self }
    }
}

/// The constant part of the layer on one rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Projection {
    /// W, `[N, K_local]`: this rank's columns of the weight as linear layers store it.
    pub weight: DeviceMatrix,
}

/// The activations of one call on one rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Input {
    /// X, `[M, K_local]`: this rank's columns.
    pub x: DeviceMatrix,
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

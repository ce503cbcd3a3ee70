//! Tensor maps: what `cuTensorMapEncodeTiled` makes and the TMA engine reads.

mod encode;
mod error;
mod replace;
mod traverse;

pub use encode::encode_tensor_map;
pub use error::TensorMapError;
pub(crate) use replace::replace;
pub use traverse::BoxChunk;

use crate::node::{TensorMapDescription, TensorMapElement, TensorMapSwizzle};
use crate::swizzle::Swizzle;
use encode::MAX_RANK;

impl TensorMapElement {
    /// Size in bytes.
    pub fn bytes(self) -> u32 {
        match self {
            Self::U8 => 1,
            Self::U16 | Self::Bf16 | Self::F16 => 2,
            Self::U32 | Self::F32 => 4,
            Self::U64 => 8,
        }
    }

    /// What is filled in where NaN is asked for: 0x7ff7 in every 16 bits, whatever the type, as an H200 does it (silicon). It
    /// is a NaN of each of them. `None` for integers.
    fn nan_pattern(self) -> Option<[u8; 16]> {
        match self {
            Self::Bf16 | Self::F16 | Self::F32 => Some(std::array::from_fn(|at| [0xf7, 0x7f][at % 2])),
            Self::U8 | Self::U16 | Self::U32 | Self::U64 => None,
        }
    }
}

impl TensorMapSwizzle {
    fn swizzle(self) -> Swizzle {
        match self {
            Self::None => Swizzle::None,
            Self::B32 => Swizzle::Span32,
            Self::B64 => Swizzle::Span64,
            Self::B128 => Swizzle::Span128,
        }
    }
}

/// A decoded tensor map. Entries of the arrays beyond the rank are neutral: extent, box and element stride 1, stride 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorMap {
    element: TensorMapElement,
    base: u64,
    rank: usize,
    /// In elements, innermost first.
    dimensions: [u64; MAX_RANK],
    /// Between neighbours in each dimension; the first is the element's size.
    strides_bytes: [u64; MAX_RANK],
    /// In elements of the tensor, before element strides thin them out.
    box_dimensions: [u32; MAX_RANK],
    element_strides: [u32; MAX_RANK],
    swizzle: TensorMapSwizzle,
    nan_fill: bool,
}

impl TensorMap {
    /// Decodes what [`encode_tensor_map`] made.
    pub fn decode(bytes: &[u8; 128]) -> Result<Self, TensorMapError> {
        let mut map = encode::decode_fields(bytes)?;
        // A map that `tensormap.replace` put together has not been checked, and may have leftovers.
        map.strides_bytes[0] = map.element.bytes().into();
        if !(1..=MAX_RANK).contains(&map.rank) {
            return Err(TensorMapError::Rank { rank: map.rank });
        }
        for dimension in map.rank..MAX_RANK {
            (map.dimensions[dimension], map.strides_bytes[dimension]) = (1, 0);
            (map.box_dimensions[dimension], map.element_strides[dimension]) = (1, 1);
        }
        map.check()?;
        Ok(map)
    }

    /// A map of which no field is set.
    fn unset() -> Self {
        Self {
            element: TensorMapElement::U8,
            base: 0,
            rank: 0,
            dimensions: [0; MAX_RANK],
            strides_bytes: [0; MAX_RANK],
            box_dimensions: [0; MAX_RANK],
            element_strides: [0; MAX_RANK],
            swizzle: TensorMapSwizzle::None,
            nan_fill: false,
        }
    }

    /// Element type.
    pub fn element(&self) -> TensorMapElement {
        self.element
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Bytes of a full box, elements out of bounds included: what a load adds to the mbarrier's transaction count.
    pub fn box_bytes(&self) -> u32 {
        (0..self.rank).map(|dimension| self.box_elements(dimension)).product::<u32>() * self.element.bytes()
    }

    /// 16 bytes with which a load fills what is out of bounds (whole elements, so it tiles any chunk).
    pub fn fill(&self) -> [u8; 16] {
        if self.nan_fill { self.element.nan_pattern().unwrap_or_default() } else { [0; 16] }
    }

    /// Elements that a box brings in one dimension. The innermost element stride is ignored, as by
    /// `cuTensorMapEncodeTiled` without interleave.
    fn box_elements(&self, dimension: usize) -> u32 {
        let extent = self.box_dimensions[dimension];
        if dimension == 0 { extent } else { extent.div_ceil(self.element_strides[dimension]) }
    }

    fn inner_box_bytes(&self) -> u32 {
        self.box_dimensions[0] * self.element.bytes()
    }

    fn from_description(description: &TensorMapDescription) -> Result<Self, TensorMapError> {
        let rank = description.dimensions.len();
        if !(1..=MAX_RANK).contains(&rank) {
            return Err(TensorMapError::Rank { rank });
        }
        check_length("strides_bytes", description.strides_bytes.len(), rank - 1, rank)?;
        check_length("box_dimensions", description.box_dimensions.len(), rank, rank)?;
        check_length("element_strides", description.element_strides.len(), rank, rank)?;
        let mut map = Self {
            element: description.element,
            base: description.base,
            rank,
            dimensions: [1; MAX_RANK],
            strides_bytes: [0; MAX_RANK],
            box_dimensions: [1; MAX_RANK],
            element_strides: [1; MAX_RANK],
            swizzle: description.swizzle,
            nan_fill: description.nan_fill,
        };
        map.dimensions[..rank].copy_from_slice(&description.dimensions);
        map.strides_bytes[0] = map.element.bytes().into();
        map.strides_bytes[1..rank].copy_from_slice(&description.strides_bytes);
        map.box_dimensions[..rank].copy_from_slice(&description.box_dimensions);
        map.element_strides[..rank].copy_from_slice(&description.element_strides);
        map.check()?;
        Ok(map)
    }

    fn check(&self) -> Result<(), TensorMapError> {
        if !self.base.is_multiple_of(16) {
            return Err(TensorMapError::BaseAlignment { base: self.base });
        }
        for dimension in 0..self.rank {
            self.check_dimension(dimension)?;
        }
        let bytes = self.inner_box_bytes();
        if !bytes.is_multiple_of(16) {
            return Err(TensorMapError::InnerBoxAlignment { bytes });
        }
        let swizzle = self.swizzle;
        if let Some(span) = swizzle.swizzle().span_bytes() {
            if bytes > span {
                return Err(TensorMapError::InnerBoxSpan { bytes, swizzle, span });
            }
            if bytes < span {
                return Err(TensorMapError::PartialSpan { bytes, swizzle, span });
            }
        }
        if self.nan_fill && self.element.nan_pattern().is_none() {
            return Err(TensorMapError::NanFill { element: self.element });
        }
        self.end_address().map(|_| ())
    }

    fn check_dimension(&self, dimension: usize) -> Result<(), TensorMapError> {
        let extent = self.dimensions[dimension];
        if !(1..=1 << 32).contains(&extent) {
            return Err(TensorMapError::Dimension { dimension, extent });
        }
        let bytes = self.strides_bytes[dimension];
        if dimension > 0 && (!bytes.is_multiple_of(16) || bytes >= 1 << 40) {
            return Err(TensorMapError::Stride { dimension, bytes });
        }
        let extent = self.box_dimensions[dimension];
        if !(1..=256).contains(&extent) {
            return Err(TensorMapError::BoxDimension { dimension, extent });
        }
        let stride = self.element_strides[dimension];
        if !(1..=8).contains(&stride) {
            return Err(TensorMapError::ElementStride { dimension, stride });
        }
        Ok(())
    }

    /// One past the last byte.
    fn end_address(&self) -> Result<u64, TensorMapError> {
        let last: u128 = (0..self.rank)
            .map(|dimension| u128::from(self.dimensions[dimension] - 1) * u128::from(self.strides_bytes[dimension]))
            .sum();
        u64::try_from(u128::from(self.base) + last + u128::from(self.element.bytes()))
            .map_err(|_| TensorMapError::AddressOverflow)
    }
}

fn check_length(field: &'static str, given: usize, wanted: usize, rank: usize) -> Result<(), TensorMapError> {
    if given == wanted { Ok(()) } else { Err(TensorMapError::Length { field, given, wanted, rank }) }
}

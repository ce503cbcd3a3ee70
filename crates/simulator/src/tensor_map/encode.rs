//! The 128-byte form of a tensor map.
//!
//! On hardware the bytes are opaque. Here they are a private format with a magic and a checksum, so that a map that was
//! never encoded, or was overwritten, is told apart from a legal one.

use super::{TensorMap, TensorMapError};
use crate::node::{TensorMapBytes, TensorMapDescription, TensorMapElement, TensorMapSwizzle};

/// Dimensions a tensor map can have.
pub(super) const MAX_RANK: usize = 5;

const MAGIC: [u8; 8] = *b"simtmap1";
const CHECKSUM_AT: usize = 8;
const PAYLOAD_AT: usize = 16;

const ELEMENTS: [TensorMapElement; 7] = [
    TensorMapElement::U8,
    TensorMapElement::U16,
    TensorMapElement::U32,
    TensorMapElement::U64,
    TensorMapElement::Bf16,
    TensorMapElement::F16,
    TensorMapElement::F32,
];

pub(super) const SWIZZLES: [TensorMapSwizzle; 4] =
    [TensorMapSwizzle::None, TensorMapSwizzle::B32, TensorMapSwizzle::B64, TensorMapSwizzle::B128];

/// Encodes a tensor map, or says which restriction of `cuTensorMapEncodeTiled` it breaks.
pub fn encode_tensor_map(description: &TensorMapDescription) -> Result<TensorMapBytes, TensorMapError> {
    Ok(TensorMapBytes(encode_fields(&TensorMap::from_description(description)?)))
}

/// The bytes of a map, whether its fields go together or not.
pub(super) fn encode_fields(map: &TensorMap) -> [u8; 128] {
    let mut bytes = [0; 128];
    let mut cursor = PAYLOAD_AT;
    let mut put = |field: &[u8]| {
        bytes[cursor..cursor + field.len()].copy_from_slice(field);
        cursor += field.len();
    };
    put(&map.base.to_le_bytes());
    put(&[
        position(&ELEMENTS, &map.element),
        map.rank as u8,
        position(&SWIZZLES, &map.swizzle),
        u8::from(map.nan_fill),
    ]);
    for dimension in 0..MAX_RANK {
        put(&map.dimensions[dimension].to_le_bytes());
        put(&map.strides_bytes[dimension].to_le_bytes());
        put(&(map.box_dimensions[dimension] as u16).to_le_bytes());
        put(&[map.element_strides[dimension] as u8]);
    }
    bytes[..CHECKSUM_AT].copy_from_slice(&MAGIC);
    let checksum = checksum(&bytes[PAYLOAD_AT..]);
    bytes[CHECKSUM_AT..PAYLOAD_AT].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// Decodes what [`encode_fields`] made.
pub(super) fn decode_fields(bytes: &[u8; 128]) -> Result<TensorMap, TensorMapError> {
    if bytes[..CHECKSUM_AT] != MAGIC {
        return Err(TensorMapError::NotATensorMap);
    }
    if bytes[CHECKSUM_AT..PAYLOAD_AT] != checksum(&bytes[PAYLOAD_AT..]).to_le_bytes() {
        return Err(TensorMapError::Corrupted);
    }
    let mut rest = &bytes[PAYLOAD_AT..];
    let base = u64::from_le_bytes(take(&mut rest));
    let [element, rank, swizzle, nan_fill] = take(&mut rest);
    let mut map = TensorMap {
        element: ELEMENTS[element as usize],
        base,
        rank: rank as usize,
        swizzle: SWIZZLES[swizzle as usize],
        nan_fill: nan_fill == 1,
        dimensions: [0; MAX_RANK],
        strides_bytes: [0; MAX_RANK],
        box_dimensions: [0; MAX_RANK],
        element_strides: [0; MAX_RANK],
    };
    for dimension in 0..MAX_RANK {
        map.dimensions[dimension] = u64::from_le_bytes(take(&mut rest));
        map.strides_bytes[dimension] = u64::from_le_bytes(take(&mut rest));
        map.box_dimensions[dimension] = u16::from_le_bytes(take(&mut rest)).into();
        map.element_strides[dimension] = take::<1>(&mut rest)[0].into();
    }
    Ok(map)
}

fn position<T: PartialEq>(all: &[T], wanted: &T) -> u8 {
    all.iter().position(|item| item == wanted).expect("the table lists every variant") as u8
}

fn take<const N: usize>(rest: &mut &[u8]) -> [u8; N] {
    let (field, tail) = rest.split_first_chunk().expect("the payload fits in 128 bytes");
    *rest = tail;
    *field
}

/// 64-bit FNV-1a.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

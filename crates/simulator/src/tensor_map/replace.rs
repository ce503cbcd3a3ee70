//! `tensormap.replace`: one field of the 128-byte form.

use super::encode::{SWIZZLES, decode_fields, encode_fields};
use super::{TensorMap, TensorMapError};
use crate::node::TensorMapElement;
use crate::program::TensorMapField;

/// Replaces a field. 128 zero bytes are a map with nothing set, which programs build up field by field; whether the
/// fields go together is seen when the map is used.
pub(crate) fn replace(bytes: &mut [u8; 128], field: TensorMapField, value: u64) -> Result<(), TensorMapError> {
    use TensorMapField as F;
    let mut map = if *bytes == [0; 128] { TensorMap::unset() } else { decode_fields(bytes)? };
    let refuse = || TensorMapError::FieldValue { field, value };
    let narrow = u32::try_from(value).map_err(|_| refuse());
    match field {
        F::GlobalAddress => map.base = value,
        F::Rank => map.rank = value.checked_add(1).filter(|rank| *rank <= 5).ok_or_else(refuse)? as usize,
        F::BoxDimension(ordinal) => {
            map.box_dimensions[usize::from(ordinal)] =
                narrow?.try_into().map(|n: u16| n.into()).map_err(|_| refuse())?;
        }
        F::GlobalDimension(ordinal) => map.dimensions[usize::from(ordinal)] = value,
        F::GlobalStride(ordinal) => map.strides_bytes[usize::from(ordinal) + 1] = value,
        F::ElementStride(ordinal) => {
            map.element_strides[usize::from(ordinal)] =
                narrow?.try_into().map(|n: u8| n.into()).map_err(|_| refuse())?;
        }
        F::ElementType => map.element = element(value).ok_or_else(refuse)?,
        F::InterleaveLayout | F::SwizzleAtomicity if value == 0 => {}
        F::InterleaveLayout | F::SwizzleAtomicity => return Err(refuse()),
        // Modes are numbered alike.
        F::SwizzleMode => map.swizzle = *SWIZZLES.get(value as usize).ok_or_else(refuse)?,
        F::FillMode if value <= 1 => map.nan_fill = value == 1,
        F::FillMode => return Err(refuse()),
    }
    *bytes = encode_fields(&map);
    Ok(())
}

/// Element types as `.elemtype` numbers them (PTX ISA, "tensormap.replace"); signs make no difference to copies.
fn element(value: u64) -> Option<TensorMapElement> {
    let element = match value {
        0 => TensorMapElement::U8,
        1 => TensorMapElement::U16,
        2 | 3 => TensorMapElement::U32,
        4 | 5 => TensorMapElement::U64,
        6 => TensorMapElement::F16,
        7 => TensorMapElement::F32,
        10 => TensorMapElement::Bf16,
        _ => return None,
    };
    Some(element)
}

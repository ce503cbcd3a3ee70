//! Tensor maps: every restriction of the encoder, and the walk over a box against a naive one.

use simulator::encode_tensor_map;
use simulator::node::{TensorMapBytes, TensorMapDescription, TensorMapElement as Element, TensorMapSwizzle as Swizzle};
use simulator::tensor_map::{TensorMap, TensorMapError};

fn matrix() -> TensorMapDescription {
    TensorMapDescription {
        element: Element::Bf16,
        base: 0x1000,
        dimensions: vec![200, 100],
        strides_bytes: vec![512],
        box_dimensions: vec![64, 16],
        element_strides: vec![1, 1],
        swizzle: Swizzle::B128,
        nan_fill: false,
    }
}

fn refusal(change: impl Fn(&mut TensorMapDescription)) -> TensorMapError {
    let mut description = matrix();
    change(&mut description);
    encode_tensor_map(&description).expect_err("the encoder must refuse this")
}

fn decode(description: &TensorMapDescription) -> TensorMap {
    TensorMap::decode(&encode_tensor_map(description).unwrap().0).unwrap()
}

#[test]
fn every_restriction_is_a_typed_error() {
    use TensorMapError as E;
    assert_eq!(refusal(|d| d.dimensions = vec![]), E::Rank { rank: 0 });
    assert_eq!(refusal(|d| d.dimensions = vec![1; 6]), E::Rank { rank: 6 });
    assert!(matches!(refusal(|d| d.strides_bytes = vec![]), E::Length { field: "strides_bytes", wanted: 1, .. }));
    assert!(matches!(refusal(|d| d.box_dimensions.push(1)), E::Length { field: "box_dimensions", .. }));
    assert!(matches!(refusal(|d| d.element_strides.push(1)), E::Length { field: "element_strides", .. }));
    assert_eq!(refusal(|d| d.base += 8), E::BaseAlignment { base: 0x1008 });
    assert_eq!(refusal(|d| d.dimensions[1] = 0), E::Dimension { dimension: 1, extent: 0 });
    let extent = (1 << 32) + 1;
    assert_eq!(refusal(|d| d.dimensions[1] = extent), E::Dimension { dimension: 1, extent });
    assert_eq!(refusal(|d| d.strides_bytes[0] = 520), E::Stride { dimension: 1, bytes: 520 });
    assert_eq!(refusal(|d| d.strides_bytes[0] = 1 << 40), E::Stride { dimension: 1, bytes: 1 << 40 });
    assert_eq!(refusal(|d| d.box_dimensions[1] = 0), E::BoxDimension { dimension: 1, extent: 0 });
    assert_eq!(refusal(|d| d.box_dimensions[1] = 257), E::BoxDimension { dimension: 1, extent: 257 });
    assert_eq!(refusal(|d| d.element_strides[1] = 0), E::ElementStride { dimension: 1, stride: 0 });
    assert_eq!(refusal(|d| d.element_strides[1] = 9), E::ElementStride { dimension: 1, stride: 9 });
    assert_eq!(refusal(|d| d.box_dimensions[0] = 60), E::InnerBoxAlignment { bytes: 120 });
    assert!(matches!(refusal(|d| d.box_dimensions[0] = 72), E::InnerBoxSpan { bytes: 144, span: 128, .. }));
    assert!(matches!(refusal(|d| d.swizzle = Swizzle::B64), E::InnerBoxSpan { bytes: 128, span: 64, .. }));
    assert!(matches!(refusal(|d| d.box_dimensions[0] = 32), E::PartialSpan { bytes: 64, span: 128, .. }));
    let integer = |d: &mut TensorMapDescription| (d.element, d.nan_fill) = (Element::U16, true);
    assert_eq!(refusal(integer), E::NanFill { element: Element::U16 });
    assert_eq!(refusal(|d| d.base = !15), E::AddressOverflow);
}

#[test]
fn what_was_not_encoded_or_was_overwritten_is_refused() {
    let TensorMapBytes(bytes) = encode_tensor_map(&matrix()).unwrap();
    assert!(TensorMap::decode(&bytes).is_ok());
    assert_eq!(TensorMap::decode(&[0; 128]), Err(TensorMapError::NotATensorMap));
    for at in 0..128 {
        let mut changed = bytes;
        changed[at] ^= 1;
        assert!(TensorMap::decode(&changed).is_err(), "byte {at}");
    }
}

#[test]
fn box_bytes_count_the_whole_box() {
    let mut description = matrix();
    assert_eq!(decode(&description).box_bytes(), 64 * 16 * 2);
    description.element_strides[1] = 3;
    assert_eq!(decode(&description).box_bytes(), 64 * 6 * 2);
    description.dimensions = vec![1, 1];
    assert_eq!(decode(&description).box_bytes(), 64 * 6 * 2);
}

#[test]
fn instructions_are_checked() {
    let map = decode(&matrix());
    let walk = |coordinates: &[i32], shared| map.for_each_chunk(coordinates, shared, |_| ());
    assert_eq!(walk(&[0], 0), Err(TensorMapError::Coordinates { given: 1, rank: 2 }));
    assert_eq!(walk(&[0, 0], 64), Err(TensorMapError::SharedAlignment { shared: 64 }));
    // Elements of 2 bytes: eight to the unit.
    for (coordinates, load, store) in [
        ([0, 0], true, true),
        ([8, 7], true, true),
        ([1 << 30, 1 << 30], true, true),
        ([4, 0], false, false),
        ([-3, 0], false, false),
        ([-8, 0], true, false),
        ([0, -1], true, false),
        ([i32::MIN, 0], true, false),
        ([i32::MAX, 0], false, false),
    ] {
        assert_eq!(map.check_coordinates(&coordinates, false).is_ok(), load, "{coordinates:?}");
        assert_eq!(map.check_coordinates(&coordinates, true).is_ok(), store, "{coordinates:?}");
    }
}

/// Stores end rows of the tensor after the 16 bytes that have the last element; loads after the last element.
#[test]
fn stores_are_clipped_at_sixteen_bytes() {
    for (element, extent) in [(Element::U8, 100), (Element::Bf16, 50), (Element::F32, 25), (Element::Bf16, 56)] {
        let size = u64::from(element.bytes());
        let mut description = matrix();
        description.element = element;
        description.dimensions = vec![extent, 5];
        description.box_dimensions = vec![(128 / size) as u32, 8];
        let map = decode(&description);
        let mut longer = description.clone();
        longer.dimensions[0] = (extent * size).next_multiple_of(16) / size;
        for first in [0, 64 / size as i32, 96 / size as i32, 112 / size as i32] {
            let mut stored = vec![None; map.box_bytes() as usize];
            map.for_each_stored_chunk(&[first, 0], 0, |chunk| {
                for byte in 0..chunk.bytes {
                    stored[(chunk.shared_offset + byte) as usize] = chunk.global.map(|at| at + u64::from(byte));
                }
            })
            .unwrap();
            assert_eq!(stored, naive(&longer, &[first, 0], 0), "{element:?} {first}");
        }
    }
}

/// For each byte of the box in shared memory, the global byte it comes from, element by element.
fn naive(description: &TensorMapDescription, coordinates: &[i32], shared: u32) -> Vec<Option<u64>> {
    let rank = description.dimensions.len();
    let size = u64::from(description.element.bytes());
    let counts: Vec<u32> = (0..rank)
        .map(|d| match d {
            0 => description.box_dimensions[0],
            _ => description.box_dimensions[d].div_ceil(description.element_strides[d]),
        })
        .collect();
    let elements: u32 = counts.iter().product();
    let mut bytes = vec![None; (u64::from(elements) * size) as usize];
    for element in 0..elements {
        let mut rest = element;
        let mut address = Some(description.base);
        for d in 0..rank {
            let index = rest % counts[d];
            rest /= counts[d];
            let step = if d == 0 { 1 } else { description.element_strides[d] };
            let position = i64::from(coordinates[d]) + i64::from(index * step);
            let stride = if d == 0 { size } else { description.strides_bytes[d - 1] };
            let inside = (0..description.dimensions[d] as i64).contains(&position);
            address = address.filter(|_| inside).map(|address| address + position as u64 * stride);
        }
        for byte in 0..size {
            let linear = u64::from(shared) + u64::from(element) * size + byte;
            let swizzled = match description.swizzle {
                Swizzle::None => linear,
                Swizzle::B32 => linear ^ ((linear >> 7 & 1) << 4),
                Swizzle::B64 => linear ^ ((linear >> 7 & 3) << 4),
                Swizzle::B128 => linear ^ ((linear >> 7 & 7) << 4),
            };
            bytes[(swizzled - u64::from(shared)) as usize] = address.map(|address| address + byte);
        }
    }
    bytes
}

fn walked(map: &TensorMap, coordinates: &[i32], shared: u32) -> Vec<Option<u64>> {
    let mut bytes = vec![None; map.box_bytes() as usize];
    let mut covered = vec![0; bytes.len()];
    map.for_each_chunk(coordinates, shared, |chunk| {
        for byte in 0..chunk.bytes {
            let at = (chunk.shared_offset + byte) as usize;
            covered[at] += 1;
            bytes[at] = chunk.global.map(|address| address + u64::from(byte));
        }
    })
    .unwrap();
    assert!(covered.iter().all(|&times| times == 1), "the chunks must cover the box once");
    bytes
}

#[test]
fn walks_boxes_inside_across_and_outside_every_edge() {
    let spans = [(Swizzle::None, 24u32), (Swizzle::B32, 16), (Swizzle::B64, 32), (Swizzle::B128, 64)];
    for (swizzle, inner) in spans {
        for element_stride in [1, 3] {
            let mut description = matrix();
            description.swizzle = swizzle;
            description.box_dimensions = vec![inner, 10];
            description.element_strides = vec![2, element_stride];
            let map = decode(&description);
            for first in [-1000, -64, -30, -3, 0, 5, 64, 180, 199, 200, 1 << 30, i32::MIN, i32::MAX] {
                for second in [-20, -9, -1, 0, 50, 95, 99, 100, i32::MIN, i32::MAX] {
                    for shared in [0, 128, 1024 + 384] {
                        let expected = naive(&description, &[first, second], shared);
                        assert_eq!(walked(&map, &[first, second], shared), expected, "{swizzle:?} {first} {second}");
                    }
                }
            }
        }
    }
}

#[test]
fn walks_one_to_five_dimensions() {
    let all_dimensions = [40u64, 7, 5, 4, 3];
    let all_strides = [160u64, 1120, 5600, 22400];
    let all_boxes = [16u32, 4, 3, 2, 2];
    for rank in 1..=5 {
        for element in [Element::U8, Element::F16, Element::F32, Element::U64] {
            let description = TensorMapDescription {
                element,
                base: 1 << 40,
                dimensions: all_dimensions[..rank].to_vec(),
                strides_bytes: all_strides[..rank - 1].iter().map(|s| s * u64::from(element.bytes())).collect(),
                box_dimensions: all_boxes[..rank].to_vec(),
                element_strides: vec![1; rank],
                swizzle: Swizzle::None,
                nan_fill: false,
            };
            let map = decode(&description);
            for coordinate in [-2, 0, 2] {
                let coordinates = vec![coordinate; rank];
                assert_eq!(walked(&map, &coordinates, 256), naive(&description, &coordinates, 256));
            }
        }
    }
}

#[test]
fn fills_with_zero_or_nan() {
    let mut description = matrix();
    assert_eq!(decode(&description).fill(), [0; 16]);
    description.nan_fill = true;
    let fill = decode(&description).fill();
    assert!(fill.chunks_exact(2).all(|b| half::bf16::from_le_bytes([b[0], b[1]]).is_nan()));
    description.element = Element::F32;
    description.box_dimensions[0] = 32;
    let fill = decode(&description).fill();
    assert!(fill.chunks_exact(4).all(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]).is_nan()));
}

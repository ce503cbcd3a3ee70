//! The walk over a box: which global bytes meet which shared bytes.

use super::{TensorMap, TensorMapError};

/// Alignment of a box in shared memory (PTX ISA, `cp.async.bulk.tensor`).
const SHARED_ALIGNMENT: u32 = 128;
/// Unit in which a swizzle moves bytes.
const UNIT_BYTES: u32 = 16;

/// A piece of a box that is contiguous in shared memory, and in global memory where the tensor has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BoxChunk {
    /// Where in shared memory, relative to the box's address, swizzle applied.
    pub shared_offset: u32,
    /// Global address; `None` where the tensor ends: loads fill, stores skip.
    pub global: Option<u64>,
    /// Length.
    pub bytes: u32,
}

/// A part of an inner row.
#[derive(Clone, Copy)]
struct Segment {
    /// First byte in the row.
    start: u32,
    /// One past the last.
    end: u32,
    /// Global address of byte `start`.
    global: Option<u64>,
}

impl TensorMap {
    /// Visits the box at `coordinates` (innermost first, in elements) for the shared address `shared`, an offset in the
    /// CTA's window. The chunks cover the box once: whole inner rows without a swizzle, 16-byte units with one, either
    /// split where the tensor begins or ends.
    pub fn for_each_chunk(
        &self,
        coordinates: &[i32],
        shared: u32,
        visit: impl FnMut(BoxChunk),
    ) -> Result<(), TensorMapError> {
        self.walk(coordinates, shared, self.inner_bytes(), visit)
    }

    /// The same for a store or reduction. It does not end a row at the tensor's last element, but after the 16 bytes that
    /// have it (seen on an H200, silicon; the PTX ISA says of stores only that what is out of bounds is not written).
    pub fn for_each_stored_chunk(
        &self,
        coordinates: &[i32],
        shared: u32,
        visit: impl FnMut(BoxChunk),
    ) -> Result<(), TensorMapError> {
        self.walk(coordinates, shared, self.inner_bytes().next_multiple_of(UNIT_BYTES.into()), visit)
    }

    /// Refuses coordinates that stop the kernel with an illegal instruction, as an H200 (silicon) does. Neither rule was found
    /// in the PTX ISA ("Tensors", "cp.async.bulk.tensor") or with `cuTensorMapEncodeTiled`; Triton's Gluon tutorial on TMA
    /// states the first. The second was seen of the innermost dimension of stores and of an outer one of reductions.
    pub fn check_coordinates(&self, coordinates: &[i32], store: bool) -> Result<(), TensorMapError> {
        let bytes = i64::from(coordinates[0]) * i64::from(self.element.bytes());
        if bytes % i64::from(UNIT_BYTES) != 0 {
            return Err(TensorMapError::CoordinateAlignment { coordinate: coordinates[0], bytes });
        }
        let before = coordinates.iter().position(|&coordinate| store && coordinate < 0);
        match before {
            Some(dimension) => Err(TensorMapError::StoreBefore { dimension, coordinate: coordinates[dimension] }),
            None => Ok(()),
        }
    }

    /// Bytes of a row of the tensor.
    fn inner_bytes(&self) -> u64 {
        self.dimensions[0] * u64::from(self.element.bytes())
    }

    /// `row_bytes` is where rows of the tensor end.
    fn walk(
        &self,
        coordinates: &[i32],
        shared: u32,
        row_bytes: u64,
        mut visit: impl FnMut(BoxChunk),
    ) -> Result<(), TensorMapError> {
        if coordinates.len() != self.rank {
            return Err(TensorMapError::Coordinates { given: coordinates.len(), rank: self.rank });
        }
        if !shared.is_multiple_of(SHARED_ALIGNMENT) {
            return Err(TensorMapError::SharedAlignment { shared });
        }
        let outer: [u32; 4] = std::array::from_fn(|index| self.box_elements(index + 1));
        for row in 0..outer.iter().product() {
            let mut rest = row;
            let index = outer.map(|extent| {
                let position = rest % extent;
                rest /= extent;
                position
            });
            let row_address = self.row_address(coordinates, index);
            for segment in self.segments(coordinates[0], row_address, row_bytes) {
                self.visit_segment(shared, row * self.inner_box_bytes(), segment, &mut visit);
            }
        }
        Ok(())
    }

    /// Global address of element 0 of the tensor's row that the box's row `index` comes from, or `None` outside.
    fn row_address(&self, coordinates: &[i32], index: [u32; 4]) -> Option<u64> {
        let mut address = self.base;
        for dimension in 1..self.rank {
            let step = i64::from(index[dimension - 1]) * i64::from(self.element_strides[dimension]);
            let position = u64::try_from(i64::from(coordinates[dimension]) + step).ok()?;
            if position >= self.dimensions[dimension] {
                return None;
            }
            address += position * self.strides_bytes[dimension];
        }
        Some(address)
    }

    /// Splits an inner row into what lies before, in and behind the tensor; empty parts are left out.
    fn segments(&self, first: i32, row_address: Option<u64>, row_bytes: u64) -> impl Iterator<Item = Segment> + use<> {
        let size = self.element.bytes();
        let bytes = i64::from(self.inner_box_bytes());
        let first = i64::from(first) * i64::from(size);
        let (begin, end) = match row_address {
            Some(_) => {
                let begin = (-first).clamp(0, bytes);
                (begin, (row_bytes as i64 - first).clamp(begin, bytes))
            }
            None => (0, 0),
        };
        let inside = row_address.filter(|_| begin < end).map(|address| address + (first + begin) as u64);
        [
            Segment { start: 0, end: begin as u32, global: None },
            Segment { start: begin as u32, end: end as u32, global: inside },
            Segment { start: end as u32, end: bytes as u32, global: None },
        ]
        .into_iter()
        .filter(|segment| segment.start < segment.end)
    }

    fn visit_segment(&self, shared: u32, row_offset: u32, segment: Segment, visit: &mut impl FnMut(BoxChunk)) {
        let swizzle = self.swizzle.swizzle();
        let limit = if swizzle.span_bytes().is_some() { UNIT_BYTES } else { u32::MAX };
        let mut start = segment.start;
        while start < segment.end {
            let end = segment.end.min((start / limit).saturating_add(1).saturating_mul(limit));
            visit(BoxChunk {
                shared_offset: swizzle.apply(shared + row_offset + start) - shared,
                global: segment.global.map(|address| address + u64::from(start - segment.start)),
                bytes: end - start,
            });
            start = end;
        }
    }
}

//! A and B in shared memory: the canonical layouts (PTX ISA, "Matrix and Data Movement Shape", "Canonical Layouts" and
//! "Packing formats of elements in Tensor and Shared memory").
//!
//! A matrix is a grid of 16-byte units along its contiguous dimension. A descriptor places unit by unit: inside an atom
//! by the layout type, between atoms by the leading (LBO) and stride (SBO) byte offsets, and the swizzle then permutes
//! the address. With units of 16 bytes, `w` = units in a swizzle span and rows meaning M or N:
//!
//! | major | swizzle | offset of a unit |
//! |---|---|---|
//! | K | none | `(row % 8) * 16 + (row / 8) * SBO + k_unit * LBO` |
//! | K | 32, 64, 128 bytes | `(row % 8) * span + (row / 8) * SBO + k_unit * 16` |
//! | M or N | none | `row_unit * SBO + (k % 8) * 16 + (k / 8) * LBO` |
//! | M or N | 32, 64, 128 bytes | `(row_unit % w) * 16 + (row_unit / w) * LBO + (k % 8) * span + (k / 8) * SBO` |
//! | M or N | 128 bytes, units of 32 | the same with 4 in place of 8 |

use std::ops::Range;

use super::{Major, MatrixDescriptor, OperandField, OperandFormat};
use crate::number::{NarrowFloat, tf32_decode};
use crate::shared::{SharedReadError, SharedReader};
use crate::swizzle::Swizzle;

/// Bytes of a unit.
const UNIT: u32 = 16;
/// The most that is read at once: a swizzle span.
const MAX_BLOCK: usize = 128;

/// Why a descriptor does not describe an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OperandError {
    /// "Valid Combinations of Type-Size, Major-ness and Swizzling".
    #[error("{format:?} elements, {major:?}-major, cannot have swizzle {swizzle:?}; legal: {legal}")]
    Swizzle {
        /// Element type.
        format: OperandFormat,
        /// Contiguous dimension.
        major: Major,
        /// Swizzle of the descriptor.
        swizzle: Swizzle,
        /// What would be legal.
        legal: &'static str,
    },
}

/// An operand in the shared memory of one CTA.
#[derive(Debug, Clone, Copy)]
pub struct SharedOperand {
    descriptor: MatrixDescriptor,
    field: OperandField,
    /// M or N extent in this CTA.
    rows: u32,
    k: u32,
    /// Units read at once, a power of two: so many neighbours along the contiguous dimension fill an aligned block, which
    /// a swizzle maps to an aligned block.
    block_units: u32,
}

/// Neighbouring units that are read at once.
struct Block {
    /// Address of the first unit before the swizzle.
    linear: u32,
    /// Where the block is after it.
    bytes: Range<u32>,
    /// Row and k of the first element.
    row: u32,
    k: u32,
}

impl SharedOperand {
    /// Combines a descriptor with what the instruction says of the operand. `rows` is its M or N extent in the CTA.
    pub fn new(descriptor: MatrixDescriptor, field: OperandField, rows: u32, k: u32) -> Result<Self, OperandError> {
        check_swizzle(field, descriptor.swizzle)?;
        let mut operand = Self { descriptor, field, rows, k, block_units: 1 };
        operand.block_units = operand.choose_block();
        Ok(operand)
    }

    /// Visits the byte ranges that a fetch reads; they overlap only where the descriptor's offsets make rows overlap.
    pub fn for_each_range(&self, mut visit: impl FnMut(Range<u32>)) {
        self.for_each_block(|block| {
            visit(block.bytes);
            Ok::<_, std::convert::Infallible>(())
        })
        .unwrap_or_else(|never| match never {});
    }

    /// Reads the operand, negated if the instruction says so. Element (row, k) goes to
    /// `values[row * row_stride + k * k_stride]`.
    pub fn fetch<S: SharedReader + ?Sized>(
        &self,
        shared: &S,
        values: &mut [f64],
        row_stride: usize,
        k_stride: usize,
    ) -> Result<(), SharedReadError> {
        let along = if self.field.major == Major::K { k_stride } else { row_stride };
        let count = self.field.format.elements_per_16_bytes() as usize;
        let mut elements = [0.0; 16];
        self.for_each_unit(shared, |row, k, unit| {
            decode_unit(self.field.format, self.field.negate, unit, &mut elements);
            let first = row as usize * row_stride + k as usize * k_stride;
            for (index, element) in elements[..count].iter().enumerate() {
                values[first + index * along] = *element;
            }
        })
    }

    /// Reads every 16-byte unit and visits it with the row and the k of its first element.
    pub(super) fn for_each_unit<S: SharedReader + ?Sized>(
        &self,
        shared: &S,
        mut visit: impl FnMut(u32, u32, &[u8; 16]),
    ) -> Result<(), SharedReadError> {
        let elements = self.field.format.elements_per_16_bytes();
        let mut buffer = [0; MAX_BLOCK];
        self.for_each_block(|block| {
            let bytes = &mut buffer[..block.bytes.len()];
            shared.read(block.bytes.start, bytes)?;
            for index in 0..self.block_units {
                let from = self.descriptor.swizzle.apply(block.linear + index * UNIT) - block.bytes.start;
                let unit = bytes[from as usize..].first_chunk().expect("a unit lies inside its block");
                match self.field.major {
                    Major::K => visit(block.row, block.k + index * elements, unit),
                    Major::Mn => visit(block.row + index * elements, block.k, unit),
                }
            }
            Ok(())
        })
    }

    fn for_each_block<E>(&self, mut visit: impl FnMut(Block) -> Result<(), E>) -> Result<(), E> {
        let elements = self.field.format.elements_per_16_bytes();
        let (outer, inner) = match self.field.major {
            Major::K => (self.rows, self.k / elements),
            Major::Mn => (self.k, self.rows / elements),
        };
        let block_bytes = self.block_units * UNIT;
        for line in 0..outer {
            for unit in (0..inner).step_by(self.block_units as usize) {
                let (linear, row, k) = match self.field.major {
                    Major::K => (self.k_major_address(line, unit), line, unit * elements),
                    Major::Mn => (self.mn_major_address(unit, line), unit * elements, line),
                };
                let start = self.descriptor.swizzle.apply(linear) & !(block_bytes - 1);
                visit(Block { linear, bytes: start..start + block_bytes, row, k })?;
            }
        }
        Ok(())
    }

    /// Address of a unit of a K-major matrix, before the swizzle.
    fn k_major_address(&self, row: u32, k_unit: u32) -> u32 {
        let MatrixDescriptor { start_address, leading_byte_offset: lbo, stride_byte_offset: sbo, swizzle } =
            self.descriptor;
        let (row_stride, unit_stride) = match swizzle.span_bytes() {
            None => (UNIT, lbo),
            Some(span) => (span, UNIT),
        };
        start_address + row % 8 * row_stride + row / 8 * sbo + k_unit * unit_stride
    }

    /// Address of a unit of an M- or N-major matrix, before the swizzle.
    fn mn_major_address(&self, row_unit: u32, k: u32) -> u32 {
        let MatrixDescriptor { start_address, leading_byte_offset: lbo, stride_byte_offset: sbo, swizzle } =
            self.descriptor;
        let Some(span) = swizzle.span_bytes() else {
            return start_address + row_unit * sbo + k % 8 * UNIT + k / 8 * lbo;
        };
        let width = span / UNIT;
        let lines = if swizzle == Swizzle::Span128Unit32 { 4 } else { 8 };
        start_address + row_unit % width * UNIT + row_unit / width * lbo + k % lines * span + k / lines * sbo
    }

    fn choose_block(&self) -> u32 {
        let MatrixDescriptor { start_address, leading_byte_offset: lbo, stride_byte_offset: sbo, swizzle } =
            self.descriptor;
        let Some(span) = swizzle.span_bytes() else { return 1 };
        let elements = self.field.format.elements_per_16_bytes();
        let (units, strides) = match self.field.major {
            Major::K => (self.k / elements, start_address | sbo),
            Major::Mn => (self.rows / elements, start_address | sbo | lbo),
        };
        let mut block = 1;
        while block * 2 <= span / UNIT && units % (block * 2) == 0 && strides % (block * 2 * UNIT) == 0 {
            block *= 2;
        }
        block
    }
}

fn check_swizzle(field: OperandField, swizzle: Swizzle) -> Result<(), OperandError> {
    let OperandField { format, major, .. } = field;
    // 32-byte units exist to transpose 32-bit elements, for which 16-byte units do not work.
    let (is_legal, legal) = if (major, format) == (Major::Mn, OperandFormat::Tf32) {
        (swizzle == Swizzle::Span128Unit32, "128 bytes in units of 32")
    } else {
        (swizzle != Swizzle::Span128Unit32, "none, 32, 64 and 128 bytes (in units of 16)")
    };
    if is_legal { Ok(()) } else { Err(OperandError::Swizzle { format, major, swizzle, legal }) }
}

/// Decodes 16 bytes of shared memory. 6- and 4-bit elements lie densely in the first 12 or 8 bytes of the unit, the rest
/// of which is padding.
#[inline]
fn decode_unit(format: OperandFormat, negate: bool, unit: &[u8; 16], elements: &mut [f64; 16]) {
    let bits = u128::from_le_bytes(*unit);
    match format {
        OperandFormat::F16 => {
            for (element, bytes) in elements.iter_mut().zip(unit.chunks_exact(2)) {
                *element = half::f16::from_le_bytes([bytes[0], bytes[1]]).to_f64();
            }
        }
        OperandFormat::Bf16 => {
            for (element, bytes) in elements.iter_mut().zip(unit.chunks_exact(2)) {
                *element = f32::from_bits(u32::from(u16::from_le_bytes([bytes[0], bytes[1]])) << 16).into();
            }
        }
        OperandFormat::Tf32 => {
            for (element, bytes) in elements.iter_mut().zip(unit.chunks_exact(4)) {
                *element = tf32_decode(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])).into();
            }
        }
        OperandFormat::Narrow(format @ (NarrowFloat::E4m3 | NarrowFloat::E5m2)) => {
            let table = format.table();
            for (element, &byte) in elements.iter_mut().zip(unit) {
                *element = table[byte as usize].into();
            }
        }
        OperandFormat::Narrow(format) => {
            let width = format.bits();
            for (index, element) in elements.iter_mut().enumerate() {
                *element = format.decode((bits >> (index as u32 * width)) as u8 & ((1 << width) - 1) as u8).into();
            }
        }
        OperandFormat::U8 => {
            for (element, &byte) in elements.iter_mut().zip(unit) {
                *element = byte.into();
            }
        }
        OperandFormat::S8 => {
            for (element, &byte) in elements.iter_mut().zip(unit) {
                *element = (byte as i8).into();
            }
        }
    }
    if negate {
        elements.iter_mut().for_each(|element| *element = -*element);
    }
}

/// Decodes elements of A in tensor memory, densely packed in 32-bit cells.
pub(super) fn decode_cells(field: OperandField, cells: &[u32], values: &mut [f64]) {
    let elements = field.format.elements_per_16_bytes() as usize;
    let mut unit = [0; 16];
    let mut decoded = [0.0; 16];
    for (cells, values) in cells.chunks_exact(4).zip(values.chunks_exact_mut(elements)) {
        for (bytes, cell) in unit.chunks_exact_mut(4).zip(cells) {
            bytes.copy_from_slice(&cell.to_le_bytes());
        }
        decode_unit(field.format, field.negate, &unit, &mut decoded);
        values.copy_from_slice(&decoded[..elements]);
    }
}

//! A CTA's memories for tests of the tensor engines, and matrices placed in them by rules written independently of the
//! simulator's: atom by atom and unit by unit, as the ISA's figures show them, instead of by address bits.
#![allow(dead_code)]

use std::cell::RefCell;
use std::ops::Range;

use simulator::number::NarrowFloat;
use simulator::shared::{SharedReadError, SharedReader};
use simulator::tcgen05::{Major, OperandFormat};
use simulator::tensor_memory::{TensorMemory, TensorMemoryOwner};

pub const OWNER: TensorMemoryOwner = TensorMemoryOwner(7);
pub const SHARED_BYTES: usize = 232_448;

/// Shared memory that knows what was written and what was read.
pub struct SharedImage {
    pub bytes: Vec<u8>,
    pub written: Vec<bool>,
    pub read: RefCell<Vec<Range<u32>>>,
}

impl SharedImage {
    pub fn new() -> Self {
        Self { bytes: vec![0; SHARED_BYTES], written: vec![false; SHARED_BYTES], read: RefCell::default() }
    }

    pub fn write(&mut self, address: u32, bytes: &[u8]) {
        let range = address as usize..address as usize + bytes.len();
        self.bytes[range.clone()].copy_from_slice(bytes);
        self.written[range].fill(true);
    }
}

impl SharedReader for SharedImage {
    fn read(&self, address: u32, bytes: &mut [u8]) -> Result<(), SharedReadError> {
        let length = bytes.len() as u32;
        let range = address as usize..address as usize + bytes.len();
        if range.end > SHARED_BYTES {
            return Err(SharedReadError::OutOfBounds { address, bytes: length, limit: SHARED_BYTES as u32 });
        }
        if let Some(missing) = self.written[range.clone()].iter().position(|&written| !written) {
            return Err(SharedReadError::Uninitialised { address: address + missing as u32 });
        }
        bytes.copy_from_slice(&self.bytes[range]);
        self.read.borrow_mut().push(address..address + length);
        Ok(())
    }
}

/// Tensor memory, all 512 columns allocated to [`OWNER`].
pub fn tensor_memory() -> TensorMemory {
    let mut memory = TensorMemory::new();
    memory.allocate(OWNER, 512).unwrap();
    memory
}

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

/// The finite value nearest to what a test wants, and its bits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Element {
    pub bits: u32,
    pub value: f64,
}

/// A random finite element with a moderate exponent.
pub fn random_element(format: OperandFormat, random: &mut Random) -> Element {
    let wanted = (random.below(4001) as f32 / 1000.0 - 2.0) * 2f32.powi(random.below(7) as i32 - 3);
    match format {
        OperandFormat::Bf16 => {
            let number = half::bf16::from_f32(wanted);
            Element { bits: number.to_bits().into(), value: number.to_f64() }
        }
        OperandFormat::F16 => {
            let number = half::f16::from_f32(wanted);
            Element { bits: number.to_bits().into(), value: number.to_f64() }
        }
        // The low 13 bits are noise that the tensor core must ignore.
        OperandFormat::Tf32 => {
            let bits = wanted.to_bits();
            Element { bits, value: f32::from_bits(bits >> 13 << 13).into() }
        }
        OperandFormat::Narrow(format) => {
            let bits = format.encode_saturating(wanted);
            Element { bits: bits.into(), value: format.decode(bits).into() }
        }
        OperandFormat::U8 => {
            let byte = random.next() as u8;
            Element { bits: byte.into(), value: byte.into() }
        }
        OperandFormat::S8 => {
            let byte = random.next() as u8;
            Element { bits: byte.into(), value: (byte as i8).into() }
        }
    }
}

/// A matrix of M or N rows and K columns.
#[derive(Debug, Clone)]
pub struct Matrix {
    pub format: OperandFormat,
    pub rows: usize,
    pub k: usize,
    pub elements: Vec<Element>,
}

impl Matrix {
    pub fn random(format: OperandFormat, rows: usize, k: usize, random: &mut Random) -> Self {
        let elements = (0..rows * k).map(|_| random_element(format, random)).collect();
        Self { format, rows, k, elements }
    }

    pub fn at(&self, row: usize, k: usize) -> Element {
        self.elements[row * self.k + k]
    }

    pub fn rows(&self, rows: Range<usize>) -> Self {
        let elements = self.elements[rows.start * self.k..rows.end * self.k].to_vec();
        Self { rows: rows.len(), elements, ..*self }
    }

    /// 16 bytes along the contiguous dimension, starting at an element.
    fn unit(&self, major: Major, row: usize, k: usize) -> [u8; 16] {
        let mut packed = 0u128;
        let count = elements_per_unit(self.format);
        // 6- and 4-bit elements are packed densely from the unit's start and padded behind.
        let width = match self.format {
            OperandFormat::Narrow(format) => format.bits() as usize,
            _ => 128 / count,
        };
        for index in 0..count {
            let element = match major {
                Major::K => self.at(row, k + index),
                Major::Mn => self.at(row + index, k),
            };
            packed |= u128::from(element.bits) << (index * width);
        }
        packed.to_le_bytes()
    }
}

pub fn elements_per_unit(format: OperandFormat) -> usize {
    match format {
        OperandFormat::Tf32 => 4,
        OperandFormat::F16 | OperandFormat::Bf16 => 8,
        _ => 16,
    }
}

pub fn all_formats() -> [OperandFormat; 10] {
    use OperandFormat::{Bf16, F16, Narrow, S8, Tf32, U8};
    [
        F16,
        Bf16,
        Tf32,
        Narrow(NarrowFloat::E4m3),
        Narrow(NarrowFloat::E5m2),
        Narrow(NarrowFloat::E2m3),
        Narrow(NarrowFloat::E3m2),
        Narrow(NarrowFloat::E2m1),
        U8,
        S8,
    ]
}

/// A swizzle as a test states it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    pub major: Major,
    /// Span in units of 16 bytes; 1 is no swizzle.
    pub units: usize,
    /// Atoms of 32 bytes instead of 16.
    pub wide: bool,
}

impl Layout {
    pub const K128: Self = Self { major: Major::K, units: 8, wide: false };

    pub fn all(format: OperandFormat) -> Vec<Self> {
        let of = |major, wide| [1, 2, 4, 8].map(|units| Self { major, units, wide });
        let mut layouts = of(Major::K, false).to_vec();
        match format {
            OperandFormat::Tf32 => layouts.push(Self { major: Major::Mn, units: 8, wide: true }),
            OperandFormat::Narrow(format) if format.bits() < 8 => {}
            _ => layouts.extend(of(Major::Mn, false)),
        }
        layouts
    }

    fn code(self) -> u64 {
        match (self.units, self.wide) {
            (1, _) => 0,
            (2, _) => 6,
            (4, _) => 4,
            (_, false) => 2,
            (_, true) => 1,
        }
    }

    /// Lines of an atom, and the exclusive-or that line `line` applies to the index of a unit.
    fn lines(self) -> usize {
        if self.wide { 4 } else { 8 }
    }

    fn exchange(self, line: usize) -> usize {
        match (self.units, self.wide) {
            (1, _) => 0,
            (2, _) => line / 4,
            (4, _) => line / 2,
            (_, false) => line,
            (_, true) => line * 2,
        }
    }
}

/// The matrix descriptor of the ISA, field by field.
pub fn matrix_descriptor(address: u32, lbo: u32, sbo: u32, layout: Layout) -> u64 {
    u64::from(address >> 4) | u64::from(lbo >> 4) << 16 | u64::from(sbo >> 4) << 32 | 1 << 46 | layout.code() << 61
}

/// Stores a matrix at `address` (aligned to 1024) and returns its descriptor. Atoms follow each other in an order that
/// makes LBO and SBO different, with a gap so that neither is what a dense layout would have.
pub fn place(shared: &mut SharedImage, address: u32, matrix: &Matrix, layout: Layout) -> u64 {
    let per_unit = elements_per_unit(matrix.format);
    let lines = layout.lines();
    // Along the contiguous dimension, and across it.
    let (units_along, lines_across) = match layout.major {
        Major::K => (matrix.k / per_unit, matrix.rows),
        Major::Mn => (matrix.rows / per_unit, matrix.k),
    };
    let atom_bytes = (layout.units * lines * 16) as u32;
    let atoms_across = lines_across.div_ceil(lines) as u32;
    let across_step = atom_bytes;
    let along_step = atoms_across * atom_bytes + 2 * atom_bytes.max(1024);
    for line in 0..lines_across {
        for unit in 0..units_along {
            let atom = (unit / layout.units) as u32 * along_step + (line / lines) as u32 * across_step;
            let inside = (line % lines) * layout.units + ((unit % layout.units) ^ layout.exchange(line % lines));
            let bytes = match layout.major {
                Major::K => matrix.unit(layout.major, line, unit * per_unit),
                Major::Mn => matrix.unit(layout.major, unit * per_unit, line),
            };
            shared.write(address + atom + inside as u32 * 16, &bytes);
        }
    }
    let (lbo, sbo) = match (layout.major, layout.units) {
        (Major::K, 1) => (along_step, across_step),
        (Major::K, _) => (0, across_step),
        (Major::Mn, 1) => (across_step, along_step),
        (Major::Mn, _) => (along_step, across_step),
    };
    matrix_descriptor(address, lbo, sbo, layout)
}

/// D = A * Bᵀ + D as one exact sum and one rounding, in f64.
pub fn product(a: &Matrix, b: &Matrix, row: usize, column: usize) -> f64 {
    (0..a.k).map(|k| a.at(row, k).value * b.at(column, k).value).sum()
}

/// Lane and column of D's element (row of the CTA, column), by the figures of the data-path layouts A, B, D and F.
pub fn accumulator_place(cta_group: u8, m: usize, n: usize, row: usize, column: usize) -> (u32, u32) {
    let (lane, column) = match (cta_group, m) {
        (1, 64) => (row / 16 * 32 + row % 16, column),
        (2, 128) if column >= n / 2 => (row + 64, column - n / 2),
        _ => (row, column),
    };
    (lane as u32, column as u32)
}

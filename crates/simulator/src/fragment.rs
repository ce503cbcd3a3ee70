//! How the lanes of a warp hold the matrices of a 16x8 tile product in registers (PTX ISA, "Matrix Fragments for mma.m16n8k8"
//! to "mma.m16n8k64", and "Register Fragments" of wgmma, which repeats the same tile).
//!
//! All shapes are one pattern. A 32-bit register holds `e` neighbours along K. Lane t belongs to group g = t / 4 and is
//! number c = t % 4 in it:
//!
//! | matrix | register | row (A), column (B) | first k |
//! |---|---|---|---|
//! | A | r | g + 8 * (r % 2) | (4 * (r / 2) + c) * e |
//! | B | r | g | (4 * r + c) * e |
//!
//! | matrix | element | row | column |
//! |---|---|---|---|
//! | C, D | i | g + 8 * (i / 2 % 2) | 8 * (i / 4) + 2 * c + i % 2 |

use crate::number::tf32_decode;
use crate::tcgen05::OperandFormat;

/// Rows of A and D that a warp holds.
pub(crate) const ROWS: usize = 16;

/// Elements of a 32-bit register; 6- and 4-bit formats take a byte each.
pub(crate) fn elements_per_register(format: OperandFormat) -> usize {
    format.elements_per_16_bytes() as usize / 4
}

/// Row and first k of a register of A.
#[inline]
pub(crate) fn place_in_a(lane: usize, register: usize, elements: usize) -> (usize, usize) {
    (lane / 4 + 8 * (register % 2), (4 * (register / 2) + lane % 4) * elements)
}

/// Column and first k of a register of B.
#[inline]
pub(crate) fn place_in_b(lane: usize, register: usize, elements: usize) -> (usize, usize) {
    (lane / 4, (4 * register + lane % 4) * elements)
}

/// Row and column of an element of C or D.
#[inline]
pub(crate) fn place_in_d(lane: usize, element: usize) -> (usize, usize) {
    (lane / 4 + 8 * (element / 2 % 2), 8 * (element / 4) + 2 * (lane % 4) + element % 2)
}

/// The elements of a register, lowest first.
#[inline]
pub(crate) fn decode_register(format: OperandFormat, word: u32) -> [f64; 4] {
    let [b0, b1, b2, b3] = word.to_le_bytes();
    match format {
        OperandFormat::F16 => {
            let half = |bits: u32| half::f16::from_bits(bits as u16).to_f64();
            [half(word), half(word >> 16), 0.0, 0.0]
        }
        OperandFormat::Bf16 => [f32::from_bits(word << 16).into(), f32::from_bits(word & 0xffff_0000).into(), 0.0, 0.0],
        OperandFormat::Tf32 => [tf32_decode(word).into(), 0.0, 0.0, 0.0],
        OperandFormat::Narrow(format) => [b0, b1, b2, b3].map(|byte| format.decode(byte).into()),
        OperandFormat::U8 => [b0, b1, b2, b3].map(f64::from),
        OperandFormat::S8 => [b0, b1, b2, b3].map(|byte| f64::from(byte as i8)),
    }
}

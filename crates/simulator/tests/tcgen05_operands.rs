//! Matrix descriptors against matrices placed in shared memory as the ISA's figures show them.

mod tensor_core;

use simulator::swizzle::Swizzle;
use simulator::tcgen05::{Major, MatrixDescriptor, OperandError, OperandField, OperandFormat, SharedOperand};
use tensor_core::*;

const ADDRESS: u32 = 0x4000;

fn field(format: OperandFormat, major: Major) -> OperandField {
    OperandField { format, negate: false, major, scale_id: 0 }
}

fn operand(descriptor: u64, matrix: &Matrix, major: Major) -> SharedOperand {
    let descriptor = MatrixDescriptor::decode(descriptor).unwrap();
    SharedOperand::new(descriptor, field(matrix.format, major), matrix.rows as u32, matrix.k as u32).unwrap()
}

fn fetched(operand: &SharedOperand, shared: &SharedImage, matrix: &Matrix) -> Vec<f64> {
    let mut values = vec![f64::NAN; matrix.rows * matrix.k];
    operand.fetch(shared, &mut values, matrix.k, 1).unwrap();
    values
}

fn values(matrix: &Matrix) -> Vec<f64> {
    matrix.elements.iter().map(|element| element.value).collect()
}

#[test]
fn reads_every_format_in_every_layout() {
    let mut random = Random(1);
    for format in all_formats() {
        for layout in Layout::all(format) {
            for rows in [16, 48, 64, 128, 256] {
                let k = 2 * elements_per_unit(format);
                let matrix = Matrix::random(format, rows, k, &mut random);
                let mut shared = SharedImage::new();
                let descriptor = place(&mut shared, ADDRESS, &matrix, layout);
                let operand = operand(descriptor, &matrix, layout.major);
                assert_eq!(fetched(&operand, &shared, &matrix), values(&matrix), "{format:?} {layout:?} {rows}");
            }
        }
    }
}

#[test]
fn says_exactly_which_bytes_it_reads() {
    let mut random = Random(2);
    for format in all_formats() {
        for layout in Layout::all(format) {
            let matrix = Matrix::random(format, 48, 2 * elements_per_unit(format), &mut random);
            let mut shared = SharedImage::new();
            let descriptor = place(&mut shared, ADDRESS, &matrix, layout);
            let operand = operand(descriptor, &matrix, layout.major);
            fetched(&operand, &shared, &matrix);
            let mut ranges = Vec::new();
            operand.for_each_range(|range| ranges.push(range));
            assert_eq!(ranges, *shared.read.borrow(), "{format:?} {layout:?}");
            let mut touched = vec![false; SHARED_BYTES];
            for range in ranges {
                touched[range.start as usize..range.end as usize].fill(true);
            }
            assert_eq!(touched, shared.written, "{format:?} {layout:?}");
        }
    }
}

/// A kernel walks K by adding to the start address inside the swizzle span.
#[test]
fn k_steps_move_inside_the_span() {
    let mut random = Random(3);
    let wide = Matrix::random(OperandFormat::Bf16, 128, 64, &mut random);
    let mut shared = SharedImage::new();
    let descriptor = place(&mut shared, ADDRESS, &wide, Layout::K128);
    for step in 0..4 {
        let elements = (0..128).flat_map(|row| (0..16).map(move |k| (row, step * 16 + k)));
        let elements = elements.map(|(row, k)| wide.at(row, k)).collect();
        let slice = Matrix { k: 16, elements, ..wide.clone() };
        let operand = operand(descriptor + 2 * step as u64, &slice, Major::K);
        assert_eq!(fetched(&operand, &shared, &slice), values(&slice));
    }
}

#[test]
fn negates() {
    let mut random = Random(4);
    let matrix = Matrix::random(OperandFormat::Bf16, 64, 16, &mut random);
    let mut shared = SharedImage::new();
    let descriptor = MatrixDescriptor::decode(place(&mut shared, ADDRESS, &matrix, Layout::K128)).unwrap();
    let negated = OperandField { negate: true, ..field(OperandFormat::Bf16, Major::K) };
    let operand = SharedOperand::new(descriptor, negated, 64, 16).unwrap();
    let expected: Vec<f64> = values(&matrix).into_iter().map(|value| -value).collect();
    assert_eq!(fetched(&operand, &shared, &matrix), expected);
}

#[test]
fn refuses_swizzles_that_a_format_lacks() {
    let descriptor = |code: u64| MatrixDescriptor::decode(code << 61 | 1 << 46).unwrap();
    let refused = |code, format, major| {
        let refused = SharedOperand::new(descriptor(code), field(format, major), 64, 8);
        matches!(refused, Err(OperandError::Swizzle { .. }))
    };
    assert_eq!(descriptor(1).swizzle, Swizzle::Span128Unit32);
    for code in [0, 2, 4, 6] {
        assert!(refused(code, OperandFormat::Tf32, Major::Mn), "{code}");
        assert!(!refused(code, OperandFormat::Tf32, Major::K), "{code}");
        assert!(!refused(code, OperandFormat::Bf16, Major::Mn), "{code}");
    }
    assert!(!refused(1, OperandFormat::Tf32, Major::Mn));
    assert!(refused(1, OperandFormat::Tf32, Major::K));
    assert!(refused(1, OperandFormat::Bf16, Major::Mn));
    assert!(refused(1, OperandFormat::Bf16, Major::K));
}

//! `tcgen05.cp`: which lanes get which bytes of shared memory, for every shape.

mod tensor_core;

use simulator::program::Tcgen05CopyShape::{self, *};
use simulator::shared::SharedReadError;
use simulator::tcgen05::{CopyError, Major, MatrixDescriptorError, OperandFormat, SharedCopy};
use simulator::tensor_memory::TensorMemoryError;
use tensor_core::*;

const ADDRESS: u32 = 0x2000;
const COLUMN: u32 = 64;

/// Rows, bytes of a row, and the lanes that row `row` reaches.
fn shape_of(shape: Tcgen05CopyShape, row: u32) -> (u32, u32, Vec<u32>) {
    match shape {
        Lanes128x256b => (128, 32, vec![row]),
        Lanes128x128b => (128, 16, vec![row]),
        Lanes4x256b => (4, 32, vec![row * 32]),
        Lanes64x128bWarpx2At0213 => (64, 16, vec![row, row + 64]),
        Lanes64x128bWarpx2At0123 if row < 32 => (64, 16, vec![row, row + 32]),
        Lanes64x128bWarpx2At0123 => (64, 16, vec![row + 32, row + 64]),
        Lanes32x128bWarpx4 => (32, 16, vec![row, row + 32, row + 64, row + 96]),
    }
}

const SHAPES: [Tcgen05CopyShape; 6] =
    [Lanes128x256b, Lanes128x128b, Lanes4x256b, Lanes64x128bWarpx2At0213, Lanes64x128bWarpx2At0123, Lanes32x128bWarpx4];

#[test]
fn copies_every_shape_from_every_layout() {
    let mut random = Random(1);
    for shape in SHAPES {
        for layout in Layout::all(OperandFormat::U8).into_iter().filter(|layout| layout.major == Major::K) {
            let (rows, row_bytes, _) = shape_of(shape, 0);
            let source = Matrix::random(OperandFormat::U8, rows as usize, row_bytes as usize, &mut random);
            let mut shared = SharedImage::new();
            let descriptor = place(&mut shared, ADDRESS, &source, layout);
            let copy = SharedCopy::new(shape, COLUMN, descriptor).unwrap();
            let mut memory = tensor_memory();
            copy.execute(&shared, &mut memory, OWNER).unwrap();
            let mut written = 0;
            for row in 0..rows {
                for lane in shape_of(shape, row).2 {
                    for cell in 0..row_bytes / 4 {
                        let byte = |index: u32| source.at(row as usize, (cell * 4 + index) as usize).bits as u8;
                        let expected = u32::from_le_bytes([byte(0), byte(1), byte(2), byte(3)]);
                        assert_eq!(memory.cell(lane, COLUMN + cell), Ok(expected), "{shape:?} {layout:?} {lane}");
                        written += 1;
                    }
                }
            }
            let footprint = copy.footprint();
            let cells = footprint.tensor_writes.iter().map(|range| range.lanes.len() * range.columns.len());
            assert_eq!(cells.sum::<usize>(), written);
            let read: u32 = footprint.shared_reads.iter().map(|range| range.len() as u32).sum();
            assert_eq!(read, rows * row_bytes);
        }
    }
}

#[test]
fn refuses_illegal_lanes_descriptors_and_memory() {
    let legal = matrix_descriptor(ADDRESS, 0, 128, Layout { major: Major::K, units: 1, wide: false });
    for shape in SHAPES {
        let refused = SharedCopy::new(shape, 32 << 16 | COLUMN, legal).unwrap_err();
        assert!(matches!(refused, CopyError::Lane { lane: 32, .. }), "{shape:?}");
    }
    assert!(SharedCopy::new(Lanes4x256b, 28 << 16, legal).is_ok());
    let refused = SharedCopy::new(Lanes128x128b, 0, legal ^ 1 << 46).unwrap_err();
    assert!(matches!(refused, CopyError::MatrixDescriptor(MatrixDescriptorError::FixedConstant { .. })));

    let mut memory = tensor_memory();
    let copy = SharedCopy::new(Lanes32x128bWarpx4, COLUMN, legal).unwrap();
    let unwritten = CopyError::Shared(SharedReadError::Uninitialised { address: ADDRESS });
    assert_eq!(copy.execute(&SharedImage::new(), &mut memory, OWNER), Err(unwritten));
    let copy = SharedCopy::new(Lanes32x128bWarpx4, 510, legal).unwrap();
    let outside = copy.execute(&SharedImage::new(), &mut memory, OWNER);
    assert!(matches!(outside, Err(CopyError::TensorMemory(TensorMemoryError::OutOfBounds { .. }))));
}

//! `tcgen05.ld` and `tcgen05.st`: which lane and register hold which cell, for every shape and repeat.

mod tensor_core;

use simulator::program::Tcgen05Shape::{self, Lanes16x64b, Lanes16x128b, Lanes16x256b, Lanes32x32b};
use simulator::tcgen05::{RegisterTransfer, RegisterTransferError};
use simulator::tensor_memory::{TensorMemoryError, TensorRange};
use tensor_core::*;

const SHAPES: [(Tcgen05Shape, u8, usize); 4] =
    [(Lanes32x32b, 128, 1), (Lanes16x64b, 128, 1), (Lanes16x128b, 64, 2), (Lanes16x256b, 32, 4)];

/// Where the rectangles start: the widest, 16x256b.x32 of 16-bit cells, then just fits.
const FIRST_COLUMN: u32 = 0;

fn transfers() -> impl Iterator<Item = RegisterTransfer> {
    SHAPES.into_iter().flat_map(|(shape, most, _)| {
        (0..8).map(|power| 1 << power).filter(move |&repeat| repeat <= most).flat_map(move |repeat| {
            [false, true].into_iter().flat_map(move |packed| {
                (0..4).map(move |warp_in_warpgroup| RegisterTransfer {
                    shape,
                    repeat,
                    packed,
                    address: FIRST_COLUMN,
                    warp_in_warpgroup,
                })
            })
        })
    })
}

/// Row of the rectangle and 32-bit column (or pair of 16-bit ones) of a thread's register, by the ISA's figures.
fn place_of(shape: Tcgen05Shape, thread: usize, register: usize) -> (usize, usize) {
    match shape {
        Tcgen05Shape::Lanes16x32b { .. } => unreachable!("the two halves have a test of their own"),
        Lanes32x32b => (thread, register),
        // Threads 0, 4, 8, .. hold rows 0..8, threads 1, 5, 9, .. rows 8..16; threads 2 and 3 the next column.
        Lanes16x64b => (thread / 4 + if thread % 2 == 1 { 8 } else { 0 }, register * 2 + thread % 4 / 2),
        // Four threads hold a row of 128 bits; odd registers are 8 rows below even ones.
        Lanes16x128b => (thread / 4 + register % 2 * 8, register / 2 * 4 + thread % 4),
        // Four threads hold a row of 256 bits, two neighbours each; the second pair of registers is 8 rows below.
        Lanes16x256b => (thread / 4 + register % 4 / 2 * 8, register / 4 * 8 + thread % 4 * 2 + register % 2),
    }
}

#[test]
fn registers_and_cells_correspond_as_in_the_figures() {
    for transfer in transfers() {
        let mut memory = tensor_memory();
        let window = transfer.warp_in_warpgroup * 32;
        let (height, scale) = (if transfer.shape == Lanes32x32b { 32 } else { 16 }, 1 + usize::from(transfer.packed));
        let cell_at = |lane: u32, column: u32| lane << 20 | column << 4 | 5;
        for lane in window..window + height {
            for (column, cell) in (0..512).zip(memory.row_mut(lane, 0..512)) {
                *cell = cell_at(lane, column);
            }
        }
        let mut registers = vec![[0; 32]; transfer.registers()];
        transfer.load(&memory, OWNER, &mut registers).unwrap();
        for (register, values) in registers.iter().enumerate() {
            for (thread, &value) in values.iter().enumerate() {
                let (row, column) = place_of(transfer.shape, thread, register);
                let (lane, column) = (window + row as u32, FIRST_COLUMN + (column * scale) as u32);
                let expected = if transfer.packed {
                    cell_at(lane, column) & 0xffff | cell_at(lane, column + 1) << 16
                } else {
                    cell_at(lane, column)
                };
                assert_eq!(value, expected, "{transfer:?}: thread {thread}, register {register}");
            }
        }
    }
}

#[test]
fn a_store_and_a_load_are_inverse_and_touch_the_footprint_only() {
    let mut random = Random(1);
    for transfer in transfers() {
        let mut memory = tensor_memory();
        let mut registers = vec![[0; 32]; transfer.registers()];
        registers.iter_mut().flatten().for_each(|value| *value = random.next() as u32);
        transfer.store(&mut memory, OWNER, &registers).unwrap();
        let mut loaded = vec![[0; 32]; transfer.registers()];
        transfer.load(&memory, OWNER, &mut loaded).unwrap();
        assert_eq!(loaded, registers, "{transfer:?}");
        let TensorRange { lanes, columns } = transfer.footprint().unwrap();
        for lane in 0..128 {
            for column in 0..512 {
                let inside = lanes.contains(&lane) && columns.contains(&column);
                assert_eq!(memory.cell(lane, column).is_ok(), inside, "{transfer:?} {lane} {column}");
            }
        }
    }
}

#[test]
fn sizes_follow_from_shape_and_repeat() {
    for (shape, most, per_repeat) in SHAPES {
        for repeat in 0..=255 {
            let transfer = RegisterTransfer { shape, repeat, packed: false, address: 0, warp_in_warpgroup: 0 };
            let legal = repeat.is_power_of_two() && repeat <= most;
            assert_eq!(transfer.footprint().is_ok(), legal, "{shape:?} {repeat}");
            assert_eq!(transfer.registers(), per_repeat * usize::from(repeat));
        }
    }
    let mut memory = tensor_memory();
    let transfer = RegisterTransfer { shape: Lanes16x256b, repeat: 2, packed: false, address: 0, warp_in_warpgroup: 0 };
    let refused = transfer.store(&mut memory, OWNER, &[[0; 32]; 7]);
    assert!(matches!(refused, Err(RegisterTransferError::RegisterCount { wanted: 8, given: 7, .. })));
}

#[test]
fn a_warp_has_its_quarter_of_the_lanes() {
    let lanes = |shape, address: u32, warp_in_warpgroup| {
        RegisterTransfer { shape, repeat: 1, packed: false, address, warp_in_warpgroup }
            .footprint()
            .map(|range| range.lanes)
            .map_err(|error| matches!(error, RegisterTransferError::Lane { .. }))
    };
    for warp in 0..4 {
        let window = 32 * warp..32 * warp + 32;
        assert_eq!(lanes(Lanes32x32b, 0, warp), Ok(window.clone()));
        assert_eq!(lanes(Lanes32x32b, window.start << 16, warp), Ok(window.clone()));
        assert_eq!(lanes(Lanes16x64b, 16 << 16, warp), Ok(window.start + 16..window.end));
        assert_eq!(lanes(Lanes16x64b, (window.start + 16) << 16, warp), Ok(window.start + 16..window.end));
        assert_eq!(lanes(Lanes32x32b, 16 << 16, warp), Err(true));
        assert_eq!(lanes(Lanes16x64b, 8 << 16, warp), Err(true));
        for other in (1..4).filter(|&other| other != warp) {
            assert_eq!(lanes(Lanes32x32b, (32 * other) << 16, warp), Err(true));
        }
        assert_eq!(lanes(Lanes32x32b, 128 << 16, warp), Err(true));
    }
}

#[test]
fn refuses_what_is_unwritten_unowned_or_outside() {
    let mut memory = tensor_memory();
    let at = |address| RegisterTransfer { shape: Lanes32x32b, repeat: 4, packed: false, address, warp_in_warpgroup: 1 };
    let mut registers = [[0; 32]; 4];
    let unwritten = TensorMemoryError::Uninitialised { lane: 32, column: 8 };
    assert_eq!(at(8).load(&memory, OWNER, &mut registers), Err(unwritten.into()));
    let outside = at(510).store(&mut memory, OWNER, &registers);
    assert!(matches!(outside, Err(RegisterTransferError::TensorMemory(TensorMemoryError::OutOfBounds { .. }))));
    memory.deallocate(OWNER, 0, 512).unwrap();
    let unowned = TensorMemoryError::NotAllocated { column: 8, held_by: None };
    assert_eq!(at(8).store(&mut memory, OWNER, &registers), Err(unowned.into()));
}

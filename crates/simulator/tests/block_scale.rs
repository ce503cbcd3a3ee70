//! Block-scaled products on the path of a kernel: TMA brings the operands and the scale atoms to shared memory,
//! `tcgen05.cp` the scales to tensor memory, and four MMAs of K = 32 use one byte each of the scale cells.

mod tensor_core;

use simulator::encode_tensor_map;
use simulator::node::{TensorMapDescription, TensorMapElement, TensorMapSwizzle};
use simulator::number::{NarrowFloat, ue8m0_decode};
use simulator::program::{Tcgen05CopyShape, Tcgen05Kind};
use simulator::tcgen05::{
    Mma, MmaCta, MmaError, MmaOperandA, MmaRequest, MmaScratch, OperandFormat, OperandName, ScaleError, SharedCopy,
};
use simulator::tensor_map::TensorMap;
use simulator::tensor_memory::TensorMemory;
use tensor_core::*;

/// Bytes of K in one stage, and of one scale atom (128 rows of 4 scales).
const STAGE: usize = 128;
const ATOM: usize = 512;
const GLOBAL_BASE: u64 = 0x4000_0000;

const A_ADDRESS: u32 = 0;
const B_ADDRESS: u32 = 0x8000;
const A_SCALES: u32 = 0x18000;
const B_SCALES: u32 = 0x19000;
const A_SCALE_COLUMN: u32 = 480;
const B_SCALE_COLUMN: u32 = 484;

/// Loads a box as the TMA engine does.
fn load(shared: &mut SharedImage, address: u32, global: &[u8], description: &TensorMapDescription, at: &[i32]) {
    let map = TensorMap::decode(&encode_tensor_map(description).unwrap().0).unwrap();
    map.for_each_chunk(at, address, |chunk| {
        let bytes: Vec<u8> = match chunk.global {
            Some(from) => global[(from - GLOBAL_BASE) as usize..][..chunk.bytes as usize].to_vec(),
            None => map.fill()[..chunk.bytes as usize].to_vec(),
        };
        shared.write(address + chunk.shared_offset, &bytes);
    })
    .unwrap();
}

fn operand_map(rows: usize, k: usize, box_rows: usize) -> TensorMapDescription {
    TensorMapDescription {
        element: TensorMapElement::U8,
        base: GLOBAL_BASE,
        dimensions: vec![k as u64, rows as u64],
        strides_bytes: vec![k as u64],
        box_dimensions: vec![STAGE as u32, box_rows as u32],
        element_strides: vec![1, 1],
        swizzle: TensorMapSwizzle::B128,
        nan_fill: false,
    }
}

/// Scale atoms as rows of 64 elements of 64 bits, so that the box stays within 256 elements.
fn scale_map(row_atoms: usize, k_atoms: usize, box_row_atoms: usize) -> TensorMapDescription {
    TensorMapDescription {
        element: TensorMapElement::U64,
        base: GLOBAL_BASE,
        dimensions: vec![(k_atoms * ATOM / 8) as u64, row_atoms as u64],
        strides_bytes: vec![(k_atoms * ATOM) as u64],
        box_dimensions: vec![(ATOM / 8) as u32, box_row_atoms as u32],
        element_strides: vec![1, 1],
        swizzle: TensorMapSwizzle::None,
        nan_fill: false,
    }
}

/// [R/128, K/128, 32, 4, 4]: byte of the scale of a row and a block of 32 along K.
fn scale_at(scales: &[u8], k_blocks: usize, row: usize, block: usize) -> u8 {
    let atom = row / 128 * (k_blocks / 4) + block / 4;
    scales[atom * ATOM + row % 32 * 16 + row / 32 % 4 * 4 + block % 4]
}

fn random_scales(bytes: usize, random: &mut Random) -> Vec<u8> {
    (0..bytes).map(|_| 124 + random.below(7) as u8).collect()
}

fn global_bytes(matrix: &Matrix) -> Vec<u8> {
    matrix.elements.iter().map(|element| element.bits as u8).collect()
}

struct Problem {
    cta_group: u8,
    m: usize,
    n: usize,
    k: usize,
    a: Matrix,
    b: Matrix,
    a_scales: Vec<u8>,
    b_scales: Vec<u8>,
}

impl Problem {
    fn new(cta_group: u8, m: usize, n: usize, k: usize) -> Self {
        let random = &mut Random(n as u64);
        let format = OperandFormat::Narrow(NarrowFloat::E4m3);
        Self {
            cta_group,
            m,
            n,
            k,
            a: Matrix::random(format, m, k, random),
            b: Matrix::random(format, n, k, random),
            a_scales: random_scales(m.next_multiple_of(128) * k / 32, random),
            b_scales: random_scales(n.next_multiple_of(128) * k / 32, random),
        }
    }

    fn ctas(&self) -> usize {
        usize::from(self.cta_group)
    }

    /// Byte offset of a scale block of B's shared copy, by 128-row atom.
    fn b_atoms(&self) -> usize {
        self.n.div_ceil(128)
    }

    fn load_stage(&self, cta: usize, stage: usize) -> SharedImage {
        let mut shared = SharedImage::new();
        let k_at = (stage * STAGE) as i32;
        let (rows, columns) = (self.m / self.ctas(), self.n / self.ctas());
        let map = operand_map(self.m, self.k, rows);
        load(&mut shared, A_ADDRESS, &global_bytes(&self.a), &map, &[k_at, (cta * rows) as i32]);
        let map = operand_map(self.n, self.k, columns);
        load(&mut shared, B_ADDRESS, &global_bytes(&self.b), &map, &[k_at, (cta * columns) as i32]);
        let scale_k = (stage * ATOM / 8) as i32;
        let map = scale_map(self.a_scales.len() / (self.k / STAGE * ATOM), self.k / STAGE, 1);
        load(&mut shared, A_SCALES, &self.a_scales, &map, &[scale_k, (cta * rows / 128) as i32]);
        let map = scale_map(self.b_atoms(), self.k / STAGE, self.b_atoms());
        load(&mut shared, B_SCALES, &self.b_scales, &map, &[scale_k, 0]);
        shared
    }

    fn copy_scales(&self, shared: &SharedImage, memory: &mut TensorMemory) {
        let descriptor = |address: u32| 0x0000_4008_0000_0000 | u64::from(address >> 4);
        let mut copy = |column: u32, descriptor: u64| {
            SharedCopy::new(Tcgen05CopyShape::Lanes32x128bWarpx4, column, descriptor)
                .unwrap()
                .execute(shared, memory, OWNER)
                .unwrap();
        };
        copy(A_SCALE_COLUMN, descriptor(A_SCALES));
        for atom in 0..self.b_atoms() as u32 {
            copy(B_SCALE_COLUMN + 4 * atom, descriptor(B_SCALES) + 32 * u64::from(atom));
        }
    }

    fn request(&self, k_step: u64, first: bool) -> MmaRequest {
        let descriptor = |address: u32| (0x4000_4040_0000_0000 | u64::from(address >> 4)) + 2 * k_step;
        let base = 1 << 23 | (self.n as u32 >> 3) << 17 | (self.m as u32 >> 4) << 24;
        MmaRequest {
            kind: Tcgen05Kind::Mxf8f6f4,
            cta_group: self.cta_group,
            accumulator: 0,
            a: MmaOperandA::Shared(descriptor(A_ADDRESS)),
            b: descriptor(B_ADDRESS),
            instruction_descriptor: base | (k_step as u32) << 4 | (k_step as u32) << 29,
            scales: Some((A_SCALE_COLUMN, B_SCALE_COLUMN)),
            scale_block: 32,
            disable_output_lane: [0; 8],
            enable_input_d: !first,
        }
    }

    fn run(&self) -> Vec<TensorMemory> {
        let mut memory = vec![tensor_memory(); self.ctas()];
        for stage in 0..self.k / STAGE {
            let shared: Vec<_> = (0..self.ctas()).map(|cta| self.load_stage(cta, stage)).collect();
            for (shared, memory) in shared.iter().zip(&mut memory) {
                self.copy_scales(shared, memory);
            }
            for k_step in 0..4 {
                execute(&self.request(k_step, stage == 0 && k_step == 0), &shared, &mut memory).unwrap();
            }
        }
        memory
    }

    /// Sum of scaled blocks, each added to an f32 accumulator.
    fn expected(&self, row: usize, column: usize) -> f32 {
        let k_blocks = self.k / 32;
        (0..k_blocks).fold(0.0, |sum: f32, block| {
            let range = block * 32..block * 32 + 32;
            let products: f64 = range.map(|k| self.a.at(row, k).value * self.b.at(column, k).value).sum();
            let scale = ue8m0_decode(scale_at(&self.a_scales, k_blocks, row, block))
                * ue8m0_decode(scale_at(&self.b_scales, k_blocks, column, block));
            (f64::from(sum) + products * scale) as f32
        })
    }
}

fn execute(request: &MmaRequest, shared: &[SharedImage], memory: &mut [TensorMemory]) -> Result<(), MmaError> {
    let mut ctas: Vec<_> = shared
        .iter()
        .zip(memory)
        .map(|(shared, tensor_memory)| MmaCta { shared, tensor_memory, owner: OWNER })
        .collect();
    Mma::new(request)?.execute(&mut ctas, &mut MmaScratch::default())
}

#[test]
fn tma_cp_and_mma_multiply_scaled_blocks() {
    for (cta_group, m, n) in [(1, 128, 128), (1, 128, 224), (1, 128, 40), (2, 256, 128), (2, 256, 224), (2, 256, 256)] {
        let problem = Problem::new(cta_group, m, n, 384);
        let memory = problem.run();
        let rows = m / problem.ctas();
        for row in 0..m {
            for column in 0..n {
                let cell = memory[row / rows].cell((row % rows) as u32, column as u32).unwrap();
                let expected = problem.expected(row, column);
                assert_eq!(f32::from_bits(cell), expected, "cta_group::{cta_group}, N = {n}: D[{row}][{column}]");
            }
        }
    }
}

/// M = 128 over a pair: B's second half has its scales in the upper 64 lanes, so a copy to all warps does not do.
#[test]
fn layout_b_has_the_scales_of_bs_halves_on_different_lanes() {
    let problem = Problem { a_scales: vec![127; 128 * 4], ..Problem::new(2, 128, 128, STAGE) };
    let shared: Vec<_> = (0..2)
        .map(|cta| {
            let mut shared = SharedImage::new();
            load(&mut shared, A_ADDRESS, &global_bytes(&problem.a), &operand_map(128, STAGE, 64), &[0, cta * 64]);
            load(&mut shared, B_ADDRESS, &global_bytes(&problem.b), &operand_map(128, STAGE, 64), &[0, cta * 64]);
            shared
        })
        .collect();
    let mut memory = vec![tensor_memory(); 2];
    for memory in &mut memory {
        for lane in 0..128 {
            for column in 0..2 {
                memory.row_mut(lane, A_SCALE_COLUMN + column..A_SCALE_COLUMN + column + 1)[0] = 0x7f7f_7f7f;
                let row = lane / 64 * 64 + column * 32 + lane % 32;
                let scales = std::array::from_fn(|block| scale_at(&problem.b_scales, 4, row as usize, block));
                memory.row_mut(lane, B_SCALE_COLUMN + column..B_SCALE_COLUMN + column + 1)[0] =
                    u32::from_le_bytes(scales);
            }
        }
    }
    for k_step in 0..4 {
        execute(&problem.request(k_step, k_step == 0), &shared, &mut memory).unwrap();
    }
    for row in 0..128 {
        for column in 0..128 {
            let (lane, cell) = accumulator_place(2, 128, 128, row % 64, column);
            let got = f32::from_bits(memory[row / 64].cell(lane, cell).unwrap());
            assert_eq!(got, problem.expected(row, column), "D[{row}][{column}]");
        }
    }
}

#[test]
fn each_scale_is_used_and_a_nan_scale_gives_nan() {
    let mut problem = Problem::new(1, 128, 128, STAGE);
    problem.a_scales[5 * 16 + 2 * 4 + 1] = 0xff; // Row 69, block 1.
    let memory = problem.run();
    for row in 0..128 {
        assert_eq!(f32::from_bits(memory[0].cell(row, 0).unwrap()).is_nan(), row == 69);
    }
}

#[test]
fn copies_of_a_scale_must_agree() {
    let problem = Problem::new(1, 128, 128, STAGE);
    let shared = [problem.load_stage(0, 0)];
    let mut memory = vec![tensor_memory()];
    problem.copy_scales(&shared[0], &mut memory[0]);
    memory[0].row_mut(64 + 3, B_SCALE_COLUMN + 2..B_SCALE_COLUMN + 3)[0] ^= 0xff00;
    assert_eq!(execute(&problem.request(0, true), &shared, &mut memory), Ok(()));
    let refused = execute(&problem.request(1, true), &shared, &mut memory).unwrap_err();
    assert!(matches!(
        refused,
        MmaError::Scale {
            operand: OperandName::B,
            source: ScaleError::CopiesDiffer { row: 67, first_lane: 3, second_lane: 67, column: 486, byte: 1, .. },
            ..
        }
    ));
}

/// Some compilers put the scale id into the address too.
#[test]
fn the_top_bits_of_a_scale_address_may_repeat_the_scale_id() {
    let problem = Problem::new(1, 128, 128, STAGE);
    let mut request = problem.request(2, true);
    request.scales = Some((2 << 30 | A_SCALE_COLUMN, 2 << 30 | B_SCALE_COLUMN));
    assert!(Mma::new(&request).is_ok());
    request.scales = Some((1 << 30 | A_SCALE_COLUMN, B_SCALE_COLUMN));
    assert!(matches!(Mma::new(&request), Err(MmaError::ScaleAddress { operand: OperandName::A, scale_id: 2, .. })));
}

/// Rows and K beyond the tensor arrive as zeros and do not change the product.
#[test]
fn out_of_bounds_rows_multiply_as_zeros() {
    let format = OperandFormat::Narrow(NarrowFloat::E4m3);
    let random = &mut Random(9);
    let (a, b) = (Matrix::random(format, 100, 80, random), Matrix::random(format, 50, 80, random));
    let problem = Problem::new(1, 128, 64, STAGE);
    let mut shared = SharedImage::new();
    load(&mut shared, A_ADDRESS, &global_bytes(&a), &operand_map(100, 80, 128), &[0, 0]);
    load(&mut shared, B_ADDRESS, &global_bytes(&b), &operand_map(50, 80, 64), &[0, 0]);
    let mut memory = vec![tensor_memory()];
    for lane in 0..128 {
        memory[0].row_mut(lane, A_SCALE_COLUMN..B_SCALE_COLUMN + 2).fill(0x7f7f_7f7f);
    }
    let shared = [shared];
    for k_step in 0..4 {
        execute(&problem.request(k_step, k_step == 0), &shared, &mut memory).unwrap();
    }
    for row in 0..128 {
        for column in 0..64 {
            let got = f32::from_bits(memory[0].cell(row as u32, column as u32).unwrap());
            let expected = if row < 100 && column < 50 {
                (0..80).collect::<Vec<_>>().chunks(32).fold(0.0, |sum: f32, block| {
                    let products: f64 = block.iter().map(|&k| a.at(row, k).value * b.at(column, k).value).sum();
                    (f64::from(sum) + products) as f32
                })
            } else {
                0.0
            };
            assert_eq!(got, expected, "D[{row}][{column}]");
        }
    }
}

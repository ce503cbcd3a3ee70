//! `tcgen05.mma` against a naive product, for every kind, layout and CTA group.

mod tensor_core;

use simulator::number::NarrowFloat;
use simulator::program::Tcgen05Kind as Kind;
use simulator::shared::SharedReadError;
use simulator::tcgen05::{
    InstructionDescriptorError, Major, MatrixDescriptorError, Mma, MmaCta, MmaError, MmaOperandA, MmaRequest,
    MmaScratch, OperandFormat as Format, OperandName,
};
use simulator::tensor_memory::{TensorMemory, TensorMemoryError, TensorMemoryOwner};
use tensor_core::*;

const A_ADDRESS: u32 = 0x0000;
const B_ADDRESS: u32 = 0x10000;
const COLUMN: u32 = 40;

#[derive(Debug, Clone, Copy)]
struct Case {
    kind: Kind,
    a: Format,
    b: Format,
    /// Bits 4..6 of the instruction descriptor.
    d: u32,
    cta_group: u8,
    m: usize,
    n: usize,
    a_layout: Layout,
    b_layout: Layout,
    negate_a: bool,
    negate_b: bool,
}

const BF16: Case = Case {
    kind: Kind::F16,
    a: Format::Bf16,
    b: Format::Bf16,
    d: 1,
    cta_group: 1,
    m: 128,
    n: 64,
    a_layout: Layout::K128,
    b_layout: Layout::K128,
    negate_a: false,
    negate_b: false,
};

fn format_code(format: Format) -> u32 {
    match format {
        Format::F16 | Format::U8 | Format::Narrow(NarrowFloat::E4m3) => 0,
        Format::Bf16 | Format::S8 | Format::Narrow(NarrowFloat::E5m2) => 1,
        Format::Tf32 => 2,
        Format::Narrow(NarrowFloat::E2m3) => 3,
        Format::Narrow(NarrowFloat::E3m2) => 4,
        Format::Narrow(NarrowFloat::E2m1) => 5,
    }
}

impl Case {
    fn k(&self) -> usize {
        match self.kind {
            Kind::Tf32 => 8,
            Kind::F16 => 16,
            _ => 32,
        }
    }

    fn rows(&self) -> usize {
        self.m / usize::from(self.cta_group)
    }

    fn instruction_descriptor(&self) -> u32 {
        let transposed = |layout: Layout| u32::from(layout.major == Major::Mn);
        self.d << 4
            | format_code(self.a) << 7
            | format_code(self.b) << 10
            | u32::from(self.negate_a) << 13
            | u32::from(self.negate_b) << 14
            | transposed(self.a_layout) << 15
            | transposed(self.b_layout) << 16
            | (self.n as u32 >> 3) << 17
            | (self.m as u32 >> 4) << 24
    }
}

/// A CTA group's memories with A and B in place, and an accumulator that was written before.
struct Setup {
    case: Case,
    a: Matrix,
    b: Matrix,
    shared: Vec<SharedImage>,
    memory: Vec<TensorMemory>,
    /// Old value of D's element (row of D, column).
    old: Vec<u32>,
    request: MmaRequest,
}

impl Setup {
    fn new(case: Case, seed: u64) -> Self {
        let random = &mut Random(seed);
        let ctas = usize::from(case.cta_group);
        let a = Matrix::random(case.a, case.m, case.k(), random);
        let b = Matrix::random(case.b, case.n, case.k(), random);
        let mut shared = Vec::new();
        let mut descriptors = (0, 0);
        for cta in 0..ctas {
            let mut image = SharedImage::new();
            let (rows, columns) = (case.m / ctas, case.n / ctas);
            descriptors.0 = place(&mut image, A_ADDRESS, &a.rows(cta * rows..(cta + 1) * rows), case.a_layout);
            descriptors.1 = place(&mut image, B_ADDRESS, &b.rows(cta * columns..(cta + 1) * columns), case.b_layout);
            shared.push(image);
        }
        let old = (0..case.m * case.n).map(|_| old_value(case.d, random)).collect();
        let mut setup = Self {
            case,
            a,
            b,
            shared,
            memory: vec![tensor_memory(); ctas],
            old,
            request: MmaRequest {
                kind: case.kind,
                cta_group: case.cta_group,
                accumulator: COLUMN,
                a: MmaOperandA::Shared(descriptors.0),
                b: descriptors.1,
                instruction_descriptor: case.instruction_descriptor(),
                scales: None,
                scale_block: 0,
                disable_output_lane: [0; 8],
                enable_input_d: true,
            },
        };
        for row in 0..case.m {
            for column in 0..case.n {
                let value = setup.old[row * case.n + column];
                let (cta, lane, cell) = setup.place_of(row, column);
                setup.memory[cta].row_mut(lane, cell..cell + 1)[0] = value;
            }
        }
        setup
    }

    fn place_of(&self, row: usize, column: usize) -> (usize, u32, u32) {
        let rows = self.case.rows();
        let (lane, cell) = accumulator_place(self.case.cta_group, self.case.m, self.case.n, row % rows, column);
        (row / rows, lane, cell + COLUMN)
    }

    fn run(&mut self) -> Result<(), MmaError> {
        let mma = Mma::new(&self.request)?;
        let mut ctas: Vec<_> = self
            .shared
            .iter()
            .zip(&mut self.memory)
            .map(|(shared, tensor_memory)| MmaCta { shared, tensor_memory, owner: OWNER })
            .collect();
        mma.execute(&mut ctas, &mut MmaScratch::default())
    }

    fn cell(&self, row: usize, column: usize) -> u32 {
        let (cta, lane, cell) = self.place_of(row, column);
        self.memory[cta].cell(lane, cell).unwrap()
    }

    /// D's new cell, from an exact sum and one rounding.
    fn expected(&self, row: usize, column: usize) -> u32 {
        let sign = if self.case.negate_a != self.case.negate_b { -1.0 } else { 1.0 };
        let sum = sign * product(&self.a, &self.b, row, column);
        let old = if self.request.enable_input_d { self.old[row * self.case.n + column] } else { 0 };
        match self.case.d {
            0 => simulator::number::f16_nearest(half::f16::from_bits(old as u16).to_f64() + sum).to_bits().into(),
            1 => ((f64::from(f32::from_bits(old)) + sum) as f32).to_bits(),
            _ => (old as i32).wrapping_add(sum as i32) as u32,
        }
    }

    fn check(&mut self) {
        self.run().unwrap_or_else(|error| panic!("{:?}: {error}", self.case));
        for row in 0..self.case.m {
            for column in 0..self.case.n {
                let (got, expected) = (self.cell(row, column), self.expected(row, column));
                assert_eq!(got, expected, "{:?}: D[{row}][{column}]", self.case);
            }
        }
    }
}

fn old_value(d: u32, random: &mut Random) -> u32 {
    match d {
        0 => half::f16::from_f32(random.below(1000) as f32 / 64.0 - 8.0).to_bits().into(),
        1 => (random.below(100_000) as f32 / 777.0 - 60.0).to_bits(),
        _ => random.next() as u32,
    }
}

const SHAPES: [(u8, usize, usize); 11] = [
    (1, 64, 8),
    (1, 64, 72),
    (1, 128, 24),
    (1, 128, 128),
    (1, 128, 256),
    (2, 128, 16),
    (2, 128, 112),
    (2, 128, 256),
    (2, 256, 16),
    (2, 256, 224),
    (2, 256, 256),
];

#[test]
fn multiplies_in_every_shape() {
    for (cta_group, m, n) in SHAPES {
        Setup::new(Case { cta_group, m, n, ..BF16 }, n as u64).check();
    }
}

#[test]
fn multiplies_every_format() {
    let narrow = |a, b| (Kind::F8f6f4, Format::Narrow(a), Format::Narrow(b));
    use NarrowFloat::{E2m1, E2m3, E3m2, E4m3, E5m2};
    let formats = [
        (Kind::F16, Format::F16, Format::F16),
        (Kind::F16, Format::Bf16, Format::F16),
        (Kind::Tf32, Format::Tf32, Format::Tf32),
        narrow(E4m3, E4m3),
        narrow(E5m2, E4m3),
        narrow(E2m3, E3m2),
        narrow(E3m2, E2m1),
        narrow(E2m1, E5m2),
    ];
    for (kind, a, b) in formats {
        Setup::new(Case { kind, a, b, ..BF16 }, 5).check();
        if kind == Kind::F8f6f4 || a == b && a == Format::F16 {
            Setup::new(Case { kind, a, b, d: 0, ..BF16 }, 6).check();
        }
    }
    for (a, b) in [(Format::S8, Format::S8), (Format::U8, Format::S8), (Format::U8, Format::U8)] {
        Setup::new(Case { kind: Kind::I8, a, b, d: 2, ..BF16 }, 7).check();
    }
}

#[test]
fn multiplies_in_every_memory_layout() {
    for (kind, format) in
        [(Kind::F16, Format::Bf16), (Kind::Tf32, Format::Tf32), (Kind::F8f6f4, Format::Narrow(NarrowFloat::E4m3))]
    {
        for a_layout in Layout::all(format) {
            for b_layout in Layout::all(format) {
                for (cta_group, m) in [(1, 64), (2, 256)] {
                    let case = Case { kind, a: format, b: format, cta_group, m, n: 32, a_layout, b_layout, ..BF16 };
                    Setup::new(case, 8).check();
                }
            }
        }
    }
}

#[test]
fn negates_operands() {
    for (negate_a, negate_b) in [(true, false), (false, true), (true, true)] {
        Setup::new(Case { negate_a, negate_b, ..BF16 }, 9).check();
    }
}

#[test]
fn overwrites_d_when_its_input_is_disabled() {
    for (d, a) in [(1, Format::Bf16), (0, Format::F16)] {
        let mut setup = Setup::new(Case { d, a, b: a, ..BF16 }, 10);
        setup.request.enable_input_d = false;
        // What D held does not matter then, not even that it was never written.
        setup.memory = vec![tensor_memory()];
        setup.check();
    }
}

#[test]
fn saturates_integers_when_told() {
    let case = Case { kind: Kind::I8, a: Format::U8, b: Format::U8, d: 2, ..BF16 };
    let mut setup = Setup::new(case, 11);
    setup.request.instruction_descriptor |= 1 << 3;
    setup.run().unwrap();
    for row in 0..case.m {
        for column in 0..case.n {
            let old = setup.old[row * case.n + column] as i32;
            let sum = product(&setup.a, &setup.b, row, column) as i32;
            assert_eq!(setup.cell(row, column) as i32, old.saturating_add(sum));
        }
    }
}

#[test]
fn leaves_disabled_lanes_alone() {
    for (cta_group, m) in [(1, 64), (1, 128), (2, 128), (2, 256)] {
        let case = Case { cta_group, m, n: 32, ..BF16 };
        let mut setup = Setup::new(case, 12);
        let random = &mut Random(13);
        setup.request.disable_output_lane = std::array::from_fn(|_| random.next() as u32);
        setup.run().unwrap();
        for row in 0..m {
            for column in 0..case.n {
                let (cta, lane, _) = setup.place_of(row, column);
                let word = setup.request.disable_output_lane[cta * 4 + lane as usize / 32];
                let kept = word >> (lane % 32) & 1 == 1;
                let expected = if kept { setup.old[row * case.n + column] } else { setup.expected(row, column) };
                assert_eq!(setup.cell(row, column), expected, "{cta_group} {m}: {row} {column}");
            }
        }
    }
}

/// In layout B both halves of the lanes hold a copy of A; in layout F its rows are spread like D's.
#[test]
fn takes_a_from_tensor_memory() {
    const A_COLUMN: u32 = 400;
    let formats =
        [(Kind::F16, Format::Bf16), (Kind::Tf32, Format::Tf32), (Kind::F8f6f4, Format::Narrow(NarrowFloat::E5m2))];
    for (kind, format) in formats {
        for (cta_group, m) in [(1, 64), (1, 128), (2, 128), (2, 256)] {
            let case = Case { kind, a: format, b: format, cta_group, m, n: 96, ..BF16 };
            let mut setup = Setup::new(case, 14);
            let per_cell = elements_per_unit(format) / 4;
            for row in 0..m {
                let (cta, lane, _) = setup.place_of(row, 0);
                let (_, last_lane, _) = setup.place_of(row, case.n - 1);
                for lane in [lane, last_lane] {
                    for cell in 0..8 {
                        let word = (0..per_cell).fold(0, |word, index| {
                            word | setup.a.at(row, cell * per_cell + index).bits << (32 / per_cell * index)
                        });
                        let column = A_COLUMN + cell as u32;
                        setup.memory[cta].row_mut(lane, column..column + 1)[0] = word;
                    }
                }
            }
            setup.request.a = MmaOperandA::TensorMemory(A_COLUMN);
            // The copy in shared memory must not be needed.
            setup.shared.iter_mut().for_each(|image| image.written[..B_ADDRESS as usize].fill(false));
            setup.check();
        }
    }
}

/// M = 64 may use the upper half of each warp's lanes.
#[test]
fn layout_f_starts_at_lane_0_or_16() {
    let case = Case { m: 64, ..BF16 };
    let mut setup = Setup::new(case, 15);
    setup.request.accumulator = 16 << 16 | COLUMN;
    setup.request.enable_input_d = false;
    setup.run().unwrap();
    for row in 0..64 {
        for column in 0..case.n {
            let (_, lane, cell) = setup.place_of(row, column);
            assert_eq!(setup.memory[0].cell(lane + 16, cell).unwrap(), setup.expected(row, column));
        }
    }
    setup.request.accumulator = 8 << 16 | COLUMN;
    assert!(matches!(setup.run(), Err(MmaError::AccumulatorLane { lane: 8, layout: 'F', .. })));
}

#[test]
fn infinities_and_nans_propagate() {
    let mut setup = Setup::new(BF16, 16);
    let infinity = half::bf16::INFINITY;
    setup.a.elements[3 * 16 + 5] = Element { bits: infinity.to_bits().into(), value: f64::INFINITY };
    place(&mut setup.shared[0], A_ADDRESS, &setup.a, Layout::K128);
    setup.run().unwrap();
    for column in 0..BF16.n {
        let factor = setup.b.at(column, 5).value;
        let got = f32::from_bits(setup.cell(3, column));
        assert_eq!(got.is_nan(), factor == 0.0);
        assert!(got.is_nan() || got.is_infinite() && got.is_sign_negative() == (factor < 0.0));
        assert_eq!(setup.cell(2, column), setup.expected(2, column));
    }
}

#[test]
fn the_footprint_is_what_is_touched() {
    for (cta_group, m, n) in SHAPES {
        let mut setup = Setup::new(Case { cta_group, m, n, ..BF16 }, 17);
        let footprint = Mma::new(&setup.request).unwrap().footprint();
        setup.run().unwrap();
        for image in &setup.shared {
            let mut declared = vec![false; SHARED_BYTES];
            for range in &footprint.shared_reads {
                declared[range.start as usize..range.end as usize].fill(true);
            }
            let mut read = vec![false; SHARED_BYTES];
            for range in image.read.borrow().iter() {
                read[range.start as usize..range.end as usize].fill(true);
            }
            assert_eq!(declared, read);
        }
        let mut cells = std::collections::HashSet::new();
        for range in &footprint.tensor_writes {
            for lane in range.lanes.clone() {
                for column in range.columns.clone() {
                    assert!(cells.insert((lane, column)), "written twice");
                }
            }
        }
        let used = (0..m / usize::from(cta_group)).flat_map(|row| (0..n).map(move |column| (row, column)));
        let used: std::collections::HashSet<_> =
            used.map(|(row, column)| setup.place_of(row, column)).map(|(_, lane, cell)| (lane, cell)).collect();
        assert_eq!(cells, used);
        assert_eq!(footprint.tensor_reads, footprint.tensor_writes);
    }
}

#[test]
fn refuses_what_was_never_written() {
    let mut setup = Setup::new(BF16, 18);
    setup.shared[0].written[A_ADDRESS as usize + 5] = false;
    let uninitialised = SharedReadError::Uninitialised { address: A_ADDRESS + 5 };
    assert_eq!(setup.run(), Err(MmaError::Shared { operand: OperandName::A, cta: 0, source: uninitialised }));

    let mut setup = Setup::new(Case { cta_group: 2, m: 256, ..BF16 }, 19);
    setup.shared[1].written[B_ADDRESS as usize] = false;
    let uninitialised = SharedReadError::Uninitialised { address: B_ADDRESS };
    assert_eq!(setup.run(), Err(MmaError::Shared { operand: OperandName::B, cta: 1, source: uninitialised }));

    let mut setup = Setup::new(BF16, 20);
    setup.memory = vec![tensor_memory()];
    let uninitialised = TensorMemoryError::Uninitialised { lane: 0, column: COLUMN };
    assert_eq!(setup.run(), Err(MmaError::TensorMemory { what: "D", cta: 0, source: uninitialised }));
}

#[test]
fn refuses_what_is_not_its_own() {
    let mut setup = Setup::new(BF16, 21);
    setup.memory[0] = TensorMemory::new();
    setup.memory[0].allocate(OWNER, 64).unwrap();
    setup.memory[0].allocate(TensorMemoryOwner(8), 64).unwrap();
    let source = TensorMemoryError::NotAllocated { column: 64, held_by: Some(TensorMemoryOwner(8)) };
    assert_eq!(setup.run(), Err(MmaError::TensorMemory { what: "D", cta: 0, source }));

    let mut setup = Setup::new(BF16, 22);
    setup.request.accumulator = 480;
    let refused = setup.run();
    assert!(matches!(
        refused,
        Err(MmaError::TensorMemory { what: "D", source: TensorMemoryError::OutOfBounds { .. }, .. })
    ));

    let mut setup = Setup::new(BF16, 23);
    setup.request.b |= 0x3fff;
    let refused = setup.run();
    assert!(matches!(
        refused,
        Err(MmaError::Shared { operand: OperandName::B, source: SharedReadError::OutOfBounds { .. }, .. })
    ));
}

#[test]
fn refuses_requests_that_no_instruction_makes() {
    let refusal = |change: &dyn Fn(&mut MmaRequest)| {
        let mut setup = Setup::new(BF16, 24);
        change(&mut setup.request);
        setup.run().unwrap_err()
    };
    assert_eq!(refusal(&|r| r.cta_group = 3), MmaError::CtaGroup { cta_group: 3 });
    assert!(matches!(refusal(&|r| r.scales = Some((0, 8))), MmaError::Scales { given: true, .. }));
    let scaled = |r: &mut MmaRequest| (r.kind, r.instruction_descriptor) = (Kind::Mxf8f6f4, 0x08A0_0000);
    assert!(matches!(refusal(&scaled), MmaError::Scales { given: false, .. }));
    let with_block = |r: &mut MmaRequest| {
        scaled(r);
        (r.scales, r.scale_block) = (Some((480, 488)), 16);
    };
    assert!(matches!(refusal(&with_block), MmaError::ScaleBlock { scale_block: 16, .. }));
    let with_lane = |r: &mut MmaRequest| {
        scaled(r);
        r.scales = Some((480, 32 << 16 | 488));
    };
    assert!(matches!(refusal(&with_lane), MmaError::ScaleAddress { operand: OperandName::B, .. }));
    assert!(matches!(refusal(&|r| r.accumulator |= 16 << 16), MmaError::AccumulatorLane { lane: 16, layout: 'D', .. }));
    let in_tensor_memory = |r: &mut MmaRequest| r.a = MmaOperandA::TensorMemory(32 << 16);
    assert_eq!(refusal(&in_tensor_memory), MmaError::ALane { lane: 32, accumulator: 0 });
    let transposed = |r: &mut MmaRequest| {
        r.a = MmaOperandA::TensorMemory(0);
        r.instruction_descriptor |= 1 << 15;
    };
    assert_eq!(refusal(&transposed), MmaError::TransposedTensorA);
    let no_b = |r: &mut MmaRequest| r.b = 0;
    assert!(matches!(
        refusal(&no_b),
        MmaError::MatrixDescriptor { operand: OperandName::B, source: MatrixDescriptorError::FixedConstant { .. } }
    ));
    let wrong_kind = |r: &mut MmaRequest| r.kind = Kind::Tf32;
    assert!(matches!(
        refusal(&wrong_kind),
        MmaError::InstructionDescriptor(InstructionDescriptorError::Field { field: "A format (bits 7..10)", .. })
    ));

    let mut setup = Setup::new(BF16, 25);
    setup.request.cta_group = 2;
    let pair = setup.run();
    assert_eq!(pair, Err(MmaError::CtaCount { cta_group: 2, given: 1 }));
}

/// Whatever single bit of a descriptor is wrong, the MMA is refused or its result is another: no field is ignored, except
/// the leading byte offset, which a swizzled K-major matrix does not use.
#[test]
fn no_descriptor_bit_is_ignored() {
    let reference = {
        let mut setup = Setup::new(BF16, 26);
        setup.run().unwrap();
        setup.memory
    };
    let result_of = |change: &dyn Fn(&mut MmaRequest)| {
        let mut setup = Setup::new(BF16, 26);
        // All of shared and tensor memory is initialised, so that only the meaning of the descriptor can tell.
        let random = &mut Random(27);
        let image = &mut setup.shared[0];
        for at in 0..SHARED_BYTES {
            if !image.written[at] {
                image.write(at as u32, &[random.next() as u8 & 0x3f]);
            }
        }
        for lane in 0..128 {
            for column in 0..512 {
                if setup.memory[0].cell(lane, column).is_err() {
                    setup.memory[0].row_mut(lane, column..column + 1)[0] = 0;
                }
            }
        }
        change(&mut setup.request);
        setup.run().map(|()| setup.memory)
    };
    let is_same = |memory: &TensorMemory| {
        (0..128).all(|lane| {
            let wanted: Vec<_> = (0..512).map(|column| reference[0].cell(lane, column).unwrap_or(0)).collect();
            memory.row(lane, 0..512).unwrap() == wanted
        })
    };
    assert!(is_same(&result_of(&|_| ()).unwrap()[0]));
    for bit in 0..64 {
        let is_leading = (16..30).contains(&bit);
        for change in [&(|r: &mut MmaRequest| r.b ^= 1 << bit) as &dyn Fn(&mut MmaRequest), &|r: &mut MmaRequest| {
            let MmaOperandA::Shared(a) = &mut r.a else { unreachable!() };
            *a ^= 1 << bit;
        }] {
            let same = result_of(change).is_ok_and(|memory| is_same(&memory[0]));
            assert_eq!(same, is_leading, "matrix descriptor bit {bit}");
        }
    }
    for bit in 0..32 {
        let change = |r: &mut MmaRequest| r.instruction_descriptor ^= 1 << bit;
        assert!(!result_of(&change).is_ok_and(|memory| is_same(&memory[0])), "instruction descriptor bit {bit}");
    }
}

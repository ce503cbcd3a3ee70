//! `tcgen05.mma`: D = A*B + D or A*B (PTX ISA, "TensorCore 5th Generation Matrix Multiply and Accumulate Operations").
//!
//! How hardware rounds inside an instruction is not documented. Here the products are exact, their sum over the
//! instruction's K is taken in f64 from k = 0 upwards, block scales multiply the sum exactly, and adding it to the
//! accumulator rounds once, to nearest even, to f32 or f16. A test that compares with hardware, or asks for more accuracy
//! than a tensor core has, must allow for that.

use super::multiply::{Columns, multiply};
use super::operand::decode_cells;
use super::scale::ScaleOperand;
use super::{
    AccumulatorFormat, DataPath, Footprint, InstructionDescriptor, Major, MatrixDescriptor, MmaError, OperandName,
    SharedOperand, Strip,
};
use crate::program::Tcgen05Kind;
use crate::shared::SharedReader;
use crate::tensor_memory::{TensorAddress, TensorMemory, TensorMemoryOwner, TensorRange};

/// Columns of tensor memory that A's K extent takes: 32 bytes per row.
const A_COLUMNS: u32 = 8;

/// Operand values of one `tcgen05.mma`.
#[derive(Debug, Clone, Copy)]
pub struct MmaRequest {
    /// `.kind`.
    pub kind: Tcgen05Kind,
    /// 1 or 2.
    pub cta_group: u8,
    /// Accumulator's tensor-memory address.
    pub accumulator: u32,
    /// A.
    pub a: MmaOperandA,
    /// B's matrix descriptor.
    pub b: u64,
    /// Instruction descriptor.
    pub instruction_descriptor: u32,
    /// Tensor-memory addresses of A's and B's scales.
    pub scales: Option<(u32, u32)>,
    /// Elements that share a scale; 0 when the instruction does not say.
    pub scale_block: u8,
    /// Bit = lane of the accumulator that is not written; words 0..4 are the even CTA's, 4..8 the odd one's.
    pub disable_output_lane: [u32; 8],
    /// When false D = A*B.
    pub enable_input_d: bool,
}

/// Where A is.
#[derive(Debug, Clone, Copy)]
pub enum MmaOperandA {
    /// A matrix descriptor.
    Shared(u64),
    /// A tensor-memory address.
    TensorMemory(u32),
}

/// One CTA that takes part: the issuing one, or even then odd of the pair.
pub struct MmaCta<'a, S: SharedReader + ?Sized> {
    /// Its shared memory.
    pub shared: &'a S,
    /// Its SM's tensor memory.
    pub tensor_memory: &'a mut TensorMemory,
    /// Whose allocation it uses.
    pub owner: TensorMemoryOwner,
}

/// Reusable buffers, so that an MMA allocates nothing.
#[derive(Debug, Default)]
pub struct MmaScratch {
    /// Rows of A, K each.
    a: Vec<f64>,
    /// K rows of B, N each.
    b: Vec<f64>,
    /// Sums of one row.
    sums: Vec<f64>,
    a_scales: Vec<f64>,
    b_scales: Vec<f64>,
}

impl MmaScratch {
    fn resize(&mut self, instruction: &InstructionDescriptor, rows: u32) {
        let (rows, n, k) = (rows as usize, instruction.n as usize, instruction.k as usize);
        self.a.resize(rows * k, 0.0);
        self.b.resize(k * n, 0.0);
        self.sums.resize(n, 0.0);
        self.a_scales.resize(rows, 0.0);
        self.b_scales.resize(n, 0.0);
    }
}

#[derive(Debug, Clone, Copy)]
enum SourceA {
    Shared(SharedOperand),
    TensorMemory(TensorAddress),
}

/// A checked MMA.
#[derive(Debug, Clone)]
pub struct Mma {
    cta_group: u8,
    instruction: InstructionDescriptor,
    data_path: DataPath,
    accumulator: TensorAddress,
    a: SourceA,
    /// This CTA's rows of B: all N, or N/2 of a pair.
    b: SharedOperand,
    scales: Option<(ScaleOperand, ScaleOperand)>,
    disable_output_lane: [u32; 8],
    enable_input_d: bool,
}

impl Mma {
    /// Decodes and checks descriptors and addresses.
    pub fn new(request: &MmaRequest) -> Result<Self, MmaError> {
        let cta_group = request.cta_group;
        if !matches!(cta_group, 1 | 2) {
            return Err(MmaError::CtaGroup { cta_group });
        }
        let instruction = InstructionDescriptor::decode(request.instruction_descriptor, request.kind, cta_group)?;
        let data_path = DataPath::of(&instruction, cta_group);
        let accumulator = TensorAddress::decode(request.accumulator);
        let TensorAddress { lane, .. } = accumulator;
        if !data_path.start_lanes.contains(&lane) {
            let DataPath { layout, start_lanes: legal, .. } = data_path;
            return Err(MmaError::AccumulatorLane { lane, layout, legal });
        }
        let shared = |operand, descriptor, rows| shared_operand(operand, descriptor, &instruction, rows);
        let a = match request.a {
            MmaOperandA::Shared(descriptor) => SourceA::Shared(shared(OperandName::A, descriptor, data_path.rows)?),
            MmaOperandA::TensorMemory(address) => {
                let address = TensorAddress::decode(address);
                check_tensor_a(&instruction, cta_group, address, lane)?;
                SourceA::TensorMemory(address)
            }
        };
        let b = shared(OperandName::B, request.b, instruction.n / u32::from(cta_group))?;
        let scales = check_scales(request, &instruction, &data_path)?;
        let MmaRequest { disable_output_lane, enable_input_d, .. } = *request;
        Ok(Self { cta_group, instruction, data_path, accumulator, a, b, scales, disable_output_lane, enable_input_d })
    }

    /// The decoded instruction descriptor.
    pub fn instruction(&self) -> &InstructionDescriptor {
        &self.instruction
    }

    /// What it reads and writes in each CTA of the group.
    pub fn footprint(&self) -> Footprint {
        let mut footprint = Footprint::default();
        self.footprint_into(&mut footprint);
        footprint
    }

    /// As [`Self::footprint`], into a footprint that is reused.
    pub fn footprint_into(&self, footprint: &mut Footprint) {
        footprint.clear();
        match &self.a {
            SourceA::Shared(a) => a.for_each_range(|range| footprint.add_shared_read(range)),
            SourceA::TensorMemory(_) => {
                footprint.tensor_reads.extend(self.data_path.strips().iter().filter_map(|strip| self.a_range(strip)));
            }
        }
        self.b.for_each_range(|range| footprint.add_shared_read(range));
        if let Some((a, b)) = &self.scales {
            footprint.tensor_reads.extend([a.range(), b.range()]);
        }
        let accumulator = self.data_path.strips().iter().map(|strip| self.accumulator_range(strip));
        if self.enable_input_d {
            footprint.tensor_reads.extend(accumulator.clone());
        }
        footprint.tensor_writes.extend(accumulator);
    }

    /// Multiply-accumulates, for the counters.
    pub fn macs(&self) -> u64 {
        let InstructionDescriptor { m, n, k, .. } = self.instruction;
        u64::from(m) * u64::from(n) * u64::from(k)
    }

    /// Computes; `ctas` has `cta_group` members, the even CTA first. After a refusal D may be partly written.
    pub fn execute<S: SharedReader + ?Sized>(
        &self,
        ctas: &mut [MmaCta<'_, S>],
        scratch: &mut MmaScratch,
    ) -> Result<(), MmaError> {
        if ctas.len() != usize::from(self.cta_group) {
            return Err(MmaError::CtaCount { cta_group: self.cta_group, given: ctas.len() });
        }
        for (cta, member) in ctas.iter().enumerate() {
            self.check_tensor_memory(cta, member)?;
        }
        scratch.resize(&self.instruction, self.data_path.rows);
        self.fetch_b(ctas, scratch)?;
        for (cta, member) in ctas.iter_mut().enumerate() {
            self.fetch_a_and_scales(cta, member, scratch)?;
            for strip in self.data_path.strips() {
                self.fetch_tensor_a(cta, member, strip, scratch)?;
                self.compute_strip(cta, member.tensor_memory, strip, scratch)?;
            }
        }
        Ok(())
    }

    fn check_tensor_memory<S: SharedReader + ?Sized>(
        &self,
        cta: usize,
        member: &MmaCta<'_, S>,
    ) -> Result<(), MmaError> {
        let check = |what, range: &TensorRange| {
            member.tensor_memory.check(member.owner, range).map_err(|source| MmaError::TensorMemory {
                what,
                cta,
                source,
            })
        };
        for strip in self.data_path.strips() {
            check("D", &self.accumulator_range(strip))?;
            if let Some(range) = self.a_range(strip) {
                check("A", &range)?;
            }
        }
        if let Some((a, b)) = &self.scales {
            check("scales of A", &a.range())?;
            check("scales of B", &b.range())?;
        }
        Ok(())
    }

    /// Each CTA of a pair brings half of N.
    fn fetch_b<S: SharedReader + ?Sized>(
        &self,
        ctas: &[MmaCta<'_, S>],
        scratch: &mut MmaScratch,
    ) -> Result<(), MmaError> {
        let n = self.instruction.n as usize;
        let share = n / ctas.len();
        for (cta, member) in ctas.iter().enumerate() {
            self.b.fetch(member.shared, &mut scratch.b[cta * share..], 1, n).map_err(|source| MmaError::Shared {
                operand: OperandName::B,
                cta,
                source,
            })?;
        }
        Ok(())
    }

    fn fetch_a_and_scales<S: SharedReader + ?Sized>(
        &self,
        cta: usize,
        member: &MmaCta<'_, S>,
        scratch: &mut MmaScratch,
    ) -> Result<(), MmaError> {
        if let SourceA::Shared(a) = &self.a {
            a.fetch(member.shared, &mut scratch.a, self.instruction.k as usize, 1)
                .map_err(|source| MmaError::Shared { operand: OperandName::A, cta, source })?;
        }
        if let Some((a, b)) = &self.scales {
            a.fetch(member.tensor_memory, &mut scratch.a_scales).map_err(|source| MmaError::Scale {
                operand: OperandName::A,
                cta,
                source,
            })?;
            b.fetch(member.tensor_memory, &mut scratch.b_scales).map_err(|source| MmaError::Scale {
                operand: OperandName::B,
                cta,
                source,
            })?;
        }
        Ok(())
    }

    /// A in tensor memory is read lane by lane of D: in layout B both halves of the lanes have their own copy.
    fn fetch_tensor_a<S: SharedReader + ?Sized>(
        &self,
        cta: usize,
        member: &MmaCta<'_, S>,
        strip: &Strip,
        scratch: &mut MmaScratch,
    ) -> Result<(), MmaError> {
        let Some(TensorRange { lanes, columns }) = self.a_range(strip) else { return Ok(()) };
        let k = self.instruction.k as usize;
        for (lane, row) in lanes.zip(strip.rows.clone()) {
            let cells = member.tensor_memory.row(lane, columns.clone()).map_err(|source| MmaError::TensorMemory {
                what: "A",
                cta,
                source,
            })?;
            decode_cells(self.instruction.a, cells, &mut scratch.a[row as usize * k..][..k]);
        }
        Ok(())
    }

    fn compute_strip(
        &self,
        cta: usize,
        memory: &mut TensorMemory,
        strip: &Strip,
        scratch: &mut MmaScratch,
    ) -> Result<(), MmaError> {
        let TensorRange { lanes, columns } = self.accumulator_range(strip);
        let (n, k) = (self.instruction.n as usize, self.instruction.k as usize);
        let disabled = &self.disable_output_lane[cta * 4..][..4];
        let b = Columns { values: &scratch.b, stride: n, first: strip.columns.start as usize };
        let sums = &mut scratch.sums[..strip.columns.len()];
        for (lane, row) in lanes.zip(strip.rows.start as usize..) {
            if disabled[lane as usize / 32] >> (lane % 32) & 1 == 1 {
                continue;
            }
            multiply(&scratch.a[row * k..][..k], b, sums);
            if self.scales.is_some() {
                let a_scale = scratch.a_scales[row];
                for (sum, b_scale) in sums.iter_mut().zip(&scratch.b_scales[b.first..]) {
                    *sum *= a_scale * b_scale;
                }
            }
            if self.enable_input_d {
                memory.row(lane, columns.clone()).map_err(|source| MmaError::TensorMemory {
                    what: "D",
                    cta,
                    source,
                })?;
            }
            self.accumulate(memory.row_mut(lane, columns.clone()), sums);
        }
        Ok(())
    }

    fn accumulate(&self, cells: &mut [u32], sums: &[f64]) {
        let keep = self.enable_input_d;
        let saturate = self.instruction.saturate;
        match self.instruction.accumulator {
            // One loop per format, so that each is free of decisions.
            AccumulatorFormat::F32 => {
                update(cells, sums, |cell, sum| AccumulatorFormat::F32.add(if keep { cell } else { 0 }, sum, saturate))
            }
            AccumulatorFormat::F16 => {
                update(cells, sums, |cell, sum| AccumulatorFormat::F16.add(if keep { cell } else { 0 }, sum, saturate))
            }
            AccumulatorFormat::S32 => {
                update(cells, sums, |cell, sum| AccumulatorFormat::S32.add(if keep { cell } else { 0 }, sum, saturate))
            }
        }
    }

    fn accumulator_range(&self, strip: &Strip) -> TensorRange {
        let first_lane = self.accumulator.lane + strip.first_lane;
        let column = self.accumulator.column;
        TensorRange {
            lanes: first_lane..first_lane + strip.rows.len() as u32,
            columns: column..column + strip.columns.len() as u32,
        }
    }

    /// Where A's rows of the strip are, if A is in tensor memory.
    fn a_range(&self, strip: &Strip) -> Option<TensorRange> {
        let SourceA::TensorMemory(address) = self.a else { return None };
        let columns = address.column..address.column + A_COLUMNS;
        Some(TensorRange { lanes: self.accumulator_range(strip).lanes, columns })
    }
}

#[inline]
fn update(cells: &mut [u32], sums: &[f64], new: impl Fn(u32, f64) -> u32) {
    for (cell, &sum) in cells.iter_mut().zip(sums) {
        *cell = new(*cell, sum);
    }
}

fn shared_operand(
    operand: OperandName,
    descriptor: u64,
    instruction: &InstructionDescriptor,
    rows: u32,
) -> Result<SharedOperand, MmaError> {
    let descriptor =
        MatrixDescriptor::decode(descriptor).map_err(|source| MmaError::MatrixDescriptor { operand, source })?;
    let field = match operand {
        OperandName::A => instruction.a,
        OperandName::B => instruction.b,
    };
    SharedOperand::new(descriptor, field, rows, instruction.k).map_err(|source| MmaError::Operand { operand, source })
}

fn check_tensor_a(
    instruction: &InstructionDescriptor,
    cta_group: u8,
    address: TensorAddress,
    accumulator: u32,
) -> Result<(), MmaError> {
    let InstructionDescriptor { m, n, a, .. } = *instruction;
    if a.major != Major::K {
        return Err(MmaError::TransposedTensorA);
    }
    if a.format.bits() < 8 {
        return Err(MmaError::PackedTensorA { format: a.format });
    }
    let step = match (cta_group, m) {
        (1, 64) => 8,
        (1, _) => 16,
        _ => 32,
    };
    if n % step != 0 {
        return Err(MmaError::TensorAShape { cta_group, m, n, step });
    }
    if address.lane != accumulator {
        return Err(MmaError::ALane { lane: address.lane, accumulator });
    }
    Ok(())
}

fn check_scales(
    request: &MmaRequest,
    instruction: &InstructionDescriptor,
    data_path: &DataPath,
) -> Result<Option<(ScaleOperand, ScaleOperand)>, MmaError> {
    let MmaRequest { kind, scale_block, .. } = *request;
    let scaled = kind == Tcgen05Kind::Mxf8f6f4;
    if scaled != request.scales.is_some() {
        return Err(MmaError::Scales { kind, given: request.scales.is_some() });
    }
    let Some((a, b)) = request.scales else { return Ok(None) };
    if !matches!(scale_block, 0 | 32) {
        return Err(MmaError::ScaleBlock { kind, scale_block });
    }
    let a_address = scale_address(OperandName::A, a, instruction.a.scale_id)?;
    let b_address = scale_address(OperandName::B, b, instruction.b.scale_id)?;
    Ok(Some((
        ScaleOperand::of_a(a_address, instruction.a.scale_id, data_path),
        ScaleOperand::of_b(b_address, instruction.b.scale_id, instruction.n, data_path),
    )))
}

/// Some compilers keep the byte within a cell in the top bits of a scale's address, where it repeats the scale id.
fn scale_address(operand: OperandName, address: u32, scale_id: u8) -> Result<TensorAddress, MmaError> {
    let byte = address >> 30;
    let decoded = TensorAddress::decode(address & 0x3fff_ffff);
    if decoded.lane == 0 && (byte == 0 || byte == u32::from(scale_id)) {
        Ok(decoded)
    } else {
        Err(MmaError::ScaleAddress { operand, address, scale_id })
    }
}

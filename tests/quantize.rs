//! MXFP8 quantisation: the rules on the host, and the kernel that gives the same bytes on the simulated device.

mod common;

use std::sync::Arc;

use common::operands::Random;
use gemm_rs_ar::SM100_PTX;
use gemm_rs_ar::driver::simulated::{Counters, NodeConfig, SimulatedNode};
use gemm_rs_ar::driver::{Device, DeviceBuffer, DriverError, Kernel, LaunchConfig, Stream};
use gemm_rs_ar::mxfp8::{
    E4M3_MAX, QuantizedMatrix, e4m3_to_f32, e8m0_to_f64, quantize, repack_scales, repack_scales_in_groups,
    unpack_scales,
};
use half::bf16;
use plan::quantize::{QUANTIZE_MXFP8, QuantizeArguments, THREADS, grid};
use plan::scales::scale_layout_bytes;
use proptest::prelude::*;

/// What result buffers hold before the launch: no scale of these operands, and a value that a gap must keep.
const UNWRITTEN: u8 = 0xa5;
/// Few SMs, so that warps take several units each.
const SMS: u32 = 3;
const BLOCK: usize = 32;

/// A simulated device with the kernel loaded.
struct Quantizer {
    node: SimulatedNode,
    device: Arc<dyn Device>,
    kernel: Kernel,
}

/// Elements between rows.
#[derive(Debug, Clone, Copy)]
struct Strides {
    x: usize,
    values: usize,
}

/// What a launch left in memory: values with their gaps, and packed scales.
struct Written {
    values: Vec<u8>,
    scales: Vec<u8>,
    counters: Counters,
}

impl Quantizer {
    fn new(seed: u64) -> Self {
        Self::with_ptx(seed, SM100_PTX)
    }

    fn with_ptx(seed: u64, ptx: &str) -> Self {
        let node = SimulatedNode::new(NodeConfig { gpus: 1, sms_per_gpu: SMS, seed, ..NodeConfig::default() });
        let device: Arc<dyn Device> = Arc::new(node.device(0).unwrap());
        let module = device.load_module(ptx).unwrap();
        let kernel = device.kernel(module, QUANTIZE_MXFP8.name).unwrap();
        Self { node, device, kernel }
    }

    /// Runs the kernel on buffers of exactly the bytes that it may touch: without the gap after the last row.
    fn run(&self, x: &[bf16], [m, k]: [usize; 2], strides: Strides) -> Result<Written, DriverError> {
        let buffer = |bytes: usize| {
            let buffer = DeviceBuffer::new(Arc::clone(&self.device), bytes as u64).unwrap();
            // SAFETY: nothing knows the buffer yet.
            unsafe { buffer.fill(UNWRITTEN).unwrap() };
            buffer
        };
        let input = DeviceBuffer::from_bytes(Arc::clone(&self.device), bytemuck::cast_slice(x)).unwrap();
        let values = buffer((m - 1) * strides.values + k);
        let scales = buffer(scale_layout_bytes(m as u32, k as u32) as usize);
        let arguments = QuantizeArguments {
            x: input.address(),
            values: values.address(),
            scales: scales.address(),
            x_row_stride: strides.x as u32,
            values_row_stride: strides.values as u32,
            m: m as u32,
            k: k as u32,
        };
        let config = LaunchConfig {
            grid: [grid(m as u32, k as u32, SMS), 1, 1],
            cluster: [1, 1, 1],
            block: [THREADS, 1, 1],
            dynamic_shared_bytes: 0,
        };
        self.node.reset_counters();
        // SAFETY: the arguments describe the buffers, which live until the launch is done.
        unsafe { self.device.launch(self.kernel, config, Stream::DEFAULT, &[arguments.as_bytes()]).unwrap() };
        self.device.synchronize(Stream::DEFAULT)?;
        let counters = self.node.counters(0);
        // SAFETY: the launch is done.
        let (values, scales) = unsafe { (values.to_bytes().unwrap(), scales.to_bytes().unwrap()) };
        Ok(Written { values, scales, counters })
    }

    /// Runs the kernel and compares every byte that it left with the host's. `Err` says what was noticed.
    fn compare(&self, x: &[bf16], [m, k]: [usize; 2], strides: Strides) -> Result<(), String> {
        let wanted = quantize(x, m, k, strides.x).unwrap();
        let written = self.run(x, [m, k], strides).map_err(|error| error.to_string())?;
        let rows = written.values.chunks(strides.values).zip(wanted.values().chunks_exact(k));
        for (row, (given, wanted)) in rows.enumerate() {
            same(&format!("the values of row {row}"), &given[..k], wanted)?;
            same(&format!("the gap after row {row}"), &given[k..], &vec![UNWRITTEN; given.len() - k])?;
        }
        same("the packed scales", &written.scales, &wanted.packed_scales())?;
        // Every element is read once and nothing else is.
        let Counters { global_bytes_read, global_bytes_written, global_sectors_written, .. } = written.counters;
        let results = (m * k + written.scales.len()) as u64;
        if [global_bytes_read, global_bytes_written] != [2 * (m * k) as u64, results] {
            return Err(format!("{global_bytes_read} bytes read, {global_bytes_written} written"));
        }
        // Rows that begin in the middle of a sector of 32 bytes end in the middle of one.
        if strides.values.is_multiple_of(32) && global_sectors_written != results / 32 {
            return Err(format!("{results} bytes written to {global_sectors_written} sectors"));
        }
        Ok(())
    }

    fn check(&self, x: &[bf16], shape: [usize; 2], strides: Strides) {
        assert_eq!(self.compare(x, shape, strides), Ok(()), "{shape:?}, {strides:?}");
    }
}

fn same(what: &str, given: &[u8], wanted: &[u8]) -> Result<(), String> {
    match (0..wanted.len()).find(|&at| given[at] != wanted[at]) {
        Some(at) => Err(format!("byte {at} of {what} is {:#04x}, wanted {:#04x}", given[at], wanted[at])),
        None => Ok(()),
    }
}

/// X `[m, k]` in blocks of every kind, with NaN in the gaps.
fn operand(random: &mut Random, [m, k]: [usize; 2], row_stride: usize) -> Vec<bf16> {
    let mut x = vec![bf16::NAN; (m - 1) * row_stride + k];
    for row in x.chunks_mut(row_stride) {
        for block in row[..k].chunks_exact_mut(BLOCK) {
            let kind = random.below(8);
            let exponent = random.below(254) as i32 - 126;
            for element in block.iter_mut() {
                let bits = random.next() as u16;
                *element = match kind {
                    0 => bf16::from_bits(bits & 0x8000),          // zeros
                    1 => bf16::from_bits(bits & 0x807f),          // subnormals
                    2 => bf16::from_bits(bits & 0x80ff | 0x7e00), // the largest
                    3 => bf16::from_bits(bits),                   // anything, NaN among it
                    _ => bf16::from_f32(random.unit() * 2f32.powi(exponent)),
                };
            }
            if kind == 4 {
                let special = [bf16::INFINITY, bf16::NEG_INFINITY, bf16::NAN, bf16::from_bits(0xff81)];
                block[random.below(BLOCK as u64) as usize] = special[random.below(4) as usize];
            }
        }
    }
    x
}

#[test]
fn the_kernel_gives_the_bytes_of_the_host() {
    let quantizer = Quantizer::new(1);
    let mut random = Random::new(1);
    for m in [1, 7, 127, 128, 129, 300] {
        for k in [128, 384, 1536] {
            for strides in [Strides { x: k, values: k }, Strides { x: k + 8, values: k + 48 }] {
                quantizer.check(&operand(&mut random, [m, k], strides.x), [m, k], strides);
            }
        }
    }
}

#[test]
fn the_schedule_makes_no_difference() {
    let mut random = Random::new(2);
    let (shape, strides) = ([130, 256], Strides { x: 256, values: 256 });
    let x = operand(&mut random, shape, 256);
    for seed in 0..4 {
        Quantizer::new(seed).check(&x, shape, strides);
    }
}

/// Every BF16 value as the largest of its block, beside smaller ones of any size.
#[test]
fn every_largest_magnitude_has_the_scale_and_values_of_the_host() {
    let mut random = Random::new(3);
    let mut x = Vec::with_capacity(BLOCK << 16);
    for bits in 0..=u16::MAX {
        let largest = bits & 0x7fff;
        let place = random.below(BLOCK as u64) as usize;
        x.extend((0..BLOCK).map(|at| {
            let smaller = (random.below(u64::from(largest) + 1) as u16) | (random.next() as u16 & 0x8000);
            bf16::from_bits(if at == place { bits } else { smaller })
        }));
    }
    let shape = [x.len() / 512, 512];
    Quantizer::new(3).check(&x, shape, Strides { x: 512, values: 512 });
}

/// The PTX of the quantiser alone.
fn quantizer_ptx() -> String {
    let (head, _) = SM100_PTX.split_once(".address_size 64").unwrap();
    let entry = format!(".visible .entry {}(", QUANTIZE_MXFP8.name);
    let (_, rest) = SM100_PTX.split_once(&entry).unwrap();
    let (body, _) = rest.split_once("\n}").unwrap();
    format!("{head}.address_size 64\n{entry}{body}\n}}\n")
}

/// A shuffle that is duplicated into a branch, or lost, leaves lanes waiting.
#[test]
fn shuffles_occur_as_often_as_in_the_source() {
    assert_eq!(quantizer_ptx().matches("shfl.sync.bfly").count(), 3);
    assert_eq!(quantizer_ptx().matches(".sync").count(), 3);
}

/// A judge that lets everything pass is none: the kernel is broken in one place after another, and each time the
/// comparison must notice.
#[test]
fn a_broken_kernel_is_noticed() {
    let (shape, strides) = ([130, 256], Strides { x: 264, values: 288 });
    let x = operand(&mut Random::new(4), shape, strides.x);
    let ptx = quantizer_ptx();
    assert_eq!(Quantizer::with_ptx(0, &ptx).compare(&x, shape, strides), Ok(()));
    for (name, text, broken) in [
        ("scales rounded down", "cvt.rp.satfinite.ue8m0x2", "cvt.rz.satfinite.ue8m0x2"),
        ("scales for a largest value of 512", "0f3B124925", "0f3B000000"),
        ("the smallest magnitude", "max.u16x2", "min.u16x2"),
        ("signed magnitudes", "2147450879;", "-1;"),
        ("the largest magnitude of another block", ", 1, 0x1f,", ", 2, 0x1f,"),
        ("scales of two blocks in one byte", ", 2, 0x1f,", ", 1, 0x1f,"),
        ("half a row's scales twice", ", 4, 0x1f,", ", 2, 0x1f,"),
        ("infinity as a number", ", 32639;", ", 32640;"),
        ("values of NaN blocks", "4194304", "0"),
        ("no values", "st.global.v4.b32", "//"),
        ("no scales", "st.global.b32", "//"),
    ] {
        assert!(ptx.contains(text), "{name}: there is no `{text}` to break");
        let result = Quantizer::with_ptx(0, &ptx.replace(text, broken)).compare(&x, shape, strides);
        assert!(result.is_err(), "{name}: nobody noticed");
    }
}

/// A block of any bits, or of one magnitude's neighbourhood, so that few blocks are NaN.
fn any_block() -> impl Strategy<Value = Vec<bf16>> {
    let raw = prop::collection::vec(any::<u16>(), BLOCK);
    let near =
        (0u16..0x7c00, prop::collection::vec((0u16..0x400, any::<bool>()), BLOCK)).prop_map(|(base, offsets)| {
            offsets.into_iter().map(|(offset, negative)| (base + offset) | if negative { 0x8000 } else { 0 }).collect()
        });
    prop_oneof![1 => raw, 4 => near].prop_map(|bits: Vec<u16>| bits.into_iter().map(bf16::from_bits).collect())
}

/// A row of four blocks.
fn any_row() -> impl Strategy<Value = Vec<bf16>> {
    prop::collection::vec(any_block(), 4).prop_map(|blocks| blocks.concat())
}

fn quantized_row(row: &[bf16]) -> QuantizedMatrix {
    quantize(row, 1, row.len(), row.len()).unwrap()
}

/// Checks a block against the rules, told from the values of the formats only.
fn check_block(block: &[bf16], scale: u8, values: &[u8]) -> Result<(), TestCaseError> {
    if block.iter().any(|element| !element.is_finite()) {
        prop_assert_eq!(scale, 0xff);
        prop_assert!(values.iter().all(|&value| value == 0x7f));
        return Ok(());
    }
    let largest = block.iter().map(|element| element.to_f64().abs()).fold(0.0, f64::max);
    let limit = f64::from(E4M3_MAX) * e8m0_to_f64(scale);
    prop_assert!(largest <= limit, "{largest} saturates under {scale}");
    prop_assert!(scale == 0 || largest > limit / 2.0, "{largest} would fit under {}", scale - 1);
    for (element, &value) in block.iter().zip(values) {
        prop_assert_eq!(value & 0x80 != 0, element.is_sign_negative());
        let quotient = element.to_f64() / e8m0_to_f64(scale);
        let distance = |byte: u8| (f64::from(e4m3_to_f32(byte)) - quotient).abs();
        if scale == 0 {
            prop_assert_eq!(value & 0x7f, 0);
            continue;
        }
        for other in (0..0x7f).map(|magnitude| magnitude | value & 0x80) {
            let (nearer, tie) = (distance(value) < distance(other), distance(value) == distance(other));
            prop_assert!(other == value || nearer || tie && value.is_multiple_of(2), "{element} is {value:#x}");
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn scales_are_the_least_and_values_the_nearest(row in any_row()) {
        let quantized = quantized_row(&row);
        for (block, (values, &scale)) in
            row.chunks(BLOCK).zip(quantized.values().chunks(BLOCK).zip(quantized.scales()))
        {
            check_block(block, scale, values)?;
        }
    }

    #[test]
    fn quantising_twice_changes_nothing(row in any_row()) {
        let once = quantized_row(&row);
        // E4M3 values times a scale that came from BF16 are BF16 values, unless they are smaller than BF16's least, or
        // were rounded up to 2^128.
        prop_assume!((0..row.len()).all(|at| once.element(0, at).abs() != 2f64.powi(128)));
        let again: Vec<bf16> = (0..row.len()).map(|at| bf16::from_f64(once.element(0, at))).collect();
        let twice = quantized_row(&again);
        for at in 0..row.len() {
            let (once, twice) = (once.element(0, at), twice.element(0, at));
            let given_up = once.abs() <= f64::from(E4M3_MAX) * 2f64.powi(-127);
            prop_assert!(once == twice || once.is_nan() && twice.is_nan() || given_up, "{once} became {twice}");
        }
    }

    #[test]
    fn negated_elements_have_negated_values(row in any_row()) {
        let negated: Vec<bf16> = row.iter().map(|&element| -element).collect();
        let (quantized, negated) = (quantized_row(&row), quantized_row(&negated));
        prop_assert_eq!(quantized.scales(), negated.scales());
        for (&value, &negated) in quantized.values().iter().zip(negated.values()) {
            prop_assert_eq!(negated, if value == 0x7f { value } else { value ^ 0x80 });
        }
    }

    #[test]
    fn a_power_of_two_goes_into_the_scale(row in prop::collection::vec(-1.0f32..1.0, 128), exponent in -90i32..90) {
        let row: Vec<bf16> = row.into_iter().map(bf16::from_f32).collect();
        let scaled: Vec<bf16> = row.iter().map(|x| bf16::from_f32(x.to_f32() * 2f32.powi(exponent))).collect();
        // Magnitudes from 2^-20 on stay normal, so that the product is exact.
        prop_assume!(row.iter().all(|x| x.to_f32().abs() > 2f32.powi(-20)));
        let (quantized, scaled) = (quantized_row(&row), quantized_row(&scaled));
        prop_assert_eq!(quantized.values(), scaled.values());
        for (&scale, &scaled) in quantized.scales().iter().zip(scaled.scales()) {
            prop_assert_eq!(i32::from(scaled), i32::from(scale) + exponent);
        }
    }

    #[test]
    fn repacked_scales_come_back(rows in 0usize..500, blocks in 1usize..4, rows_per_group in 1usize..400, seed: u64) {
        let (k, mut random) = (128 * blocks, Random::new(seed));
        let scales: Vec<u8> = (0..rows * k / BLOCK).map(|_| random.next() as u8).collect();
        let packed = repack_scales_in_groups(&scales, rows, k, rows_per_group).unwrap();
        prop_assert_eq!(&unpack_scales(&packed, rows, k, rows_per_group).unwrap(), &scales);
        if rows_per_group.is_multiple_of(128) {
            prop_assert_eq!(packed, repack_scales(&scales, rows, k).unwrap());
        }
    }
}

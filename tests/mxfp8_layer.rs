//! MXFP8 from BF16 activations on the device to the result, as an application runs it.

mod common;

use std::sync::Arc;

use common::operands::{Problem, Random, shard};
use common::rank::{MODES, node, on_each_rank};
use gemm_rs_ar::driver::{Device, DeviceBuffer, Stream};
use gemm_rs_ar::mxfp8::{DeviceActivations, DeviceWeight, DeviceWeightScales, quantize, repack_scales};
use gemm_rs_ar::reference::Reference;
use gemm_rs_ar::{DeviceMatrix, DeviceScales, Mode, Output};
use half::bf16;

const RANKS: usize = 2;

/// The bytes of scales in device memory.
fn bytes_of(device: &Arc<dyn Device>, scales: DeviceScales) -> Vec<u8> {
    let mut bytes = vec![0; scales.bytes as usize];
    // SAFETY: the scales are mapped, and no work is enqueued.
    unsafe { device.copy_to_host(&mut bytes, scales.address).unwrap() };
    bytes
}

#[test]
fn activations_are_quantised_on_the_device_and_multiplied_call_after_call() {
    const MAX_M: usize = 150;
    let (n, k) = (384, 256);
    let problems = [150, 1, 33, 129].map(|m| Problem::random([m, n, k], RANKS, m as u64));
    let references = problems.each_ref().map(|problem| {
        let whole = |matrix: &[bf16], rows| quantize(matrix, rows, problem.k(), problem.k()).unwrap();
        Reference::row_parallel_mxfp8(&whole(&problem.x, problem.m), &whole(&problem.weight, n), RANKS).unwrap()
    });
    on_each_rank(&node(RANKS as u32, 2), [MAX_M as u64, n as u64], |rank| {
        // One room for every call, reused in stream order.
        let room = DeviceActivations::new(&rank.device, MAX_M, k).unwrap();
        let mut pending = vec![];
        for (index, problem) in problems.iter().enumerate() {
            let mode = MODES[index % 2];
            // A gap after each row of x.
            let stride = k + 8;
            let x = shard(&problem.x, problem.k(), k, rank.rank, stride);
            let x = DeviceBuffer::from_bytes(Arc::clone(&rank.device), bytemuck::cast_slice(&x)).unwrap();
            let part = shard(&problem.weight, problem.k(), k, rank.rank, k);
            let weight = DeviceWeight::new(&rank.device, &quantize(&part, n, k, k).unwrap()).unwrap();
            let rows = match mode {
                Mode::ReduceScatter => problem.m.div_ceil(RANKS),
                Mode::AllReduce => problem.m,
            };
            let y = DeviceBuffer::new(Arc::clone(&rank.device), (rows * n * 2) as u64).unwrap();
            let matrix = DeviceMatrix::bf16(x.address(), problem.m as u64, k as u64).with_row_stride(stride as u64);
            let output = Output { y: DeviceMatrix::bf16(y.address(), rows as u64, n as u64) };
            // SAFETY: the buffers are as described and kept until the stream is synchronised; calls on the room follow
            // each other on one stream; every rank makes the same calls.
            unsafe {
                let input = rank.gemm.quantize(&matrix, &room, Stream::DEFAULT).unwrap();
                rank.gemm.apply(mode, &weight.projection(), &input, &output, Stream::DEFAULT).unwrap();
            }
            pending.push((x, weight, y, mode));
        }
        rank.synchronize();
        for (((.., y, mode), problem), reference) in pending.iter().zip(&problems).zip(&references) {
            // SAFETY: the stream is synchronised.
            let bytes = unsafe { y.to_bytes().unwrap() };
            let rows: Vec<bf16> = bytes.as_chunks::<2>().0.iter().map(|&bytes| bf16::from_le_bytes(bytes)).collect();
            let comparison = reference.compare(rank.first_row(problem, *mode), &rows);
            assert!(comparison.is_within_bound(), "M {}, {mode:?}, rank {}: {comparison:?}", problem.m, rank.rank);
        }
    });
}

#[test]
fn weight_scales_are_the_same_from_either_layout() {
    let (n, k) = (384, 256);
    let mut random = Random::new(7);
    let scales: Vec<u8> = (0..n * k / 32).map(|_| random.below(255) as u8).collect();
    on_each_rank(&node(RANKS as u32, 0), [1, 128], |rank| {
        let packed = repack_scales(&scales, n, k).unwrap();
        let from_rows = DeviceWeightScales::from_row_major(&rank.device, &scales, n, k).unwrap();
        let from_packed = DeviceWeightScales::from_packed(&rank.device, &packed, n, k).unwrap();
        let (a, b) = (from_rows.scales(), from_packed.scales());
        assert_eq!(bytes_of(&rank.device, a.groups_of_128), packed);
        assert_eq!(bytes_of(&rank.device, b.groups_of_128), packed);
        let [a, b] = [a, b].map(|scales| bytes_of(&rank.device, scales.groups_of_224.unwrap()));
        assert_eq!(a, b);
        // Row 224 begins the second group, at the third group of 128 scale rows.
        assert_eq!(a[2 * (k / 128) * 512..][..4], scales[224 * (k / 32)..][..4]);
    });
}

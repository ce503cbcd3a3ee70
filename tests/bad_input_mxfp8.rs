//! Wrong MXFP8 operands, forced kernels and rooms: typed errors, and nothing is launched.

mod common;

use common::rank::{Rank, node, on_each_rank, on_each_rank_with};
use gemm_rs_ar::driver::Stream;
use gemm_rs_ar::driver::simulated::Counters;
use gemm_rs_ar::mxfp8::{DeviceActivations, DeviceWeightScales};
use gemm_rs_ar::{
    DeviceMatrix, DeviceScales, GemmRsAr, GemmRsArConfig, GemmRsArError, Input, Mode, Output, Projection, WeightScales,
};

const RANKS: u32 = 2;
const CAPACITY: [u64; 2] = [256, 384];

/// A call that runs: M = 100, N = 256, K = 256 per rank. The addresses need not exist, because nothing gets that far.
#[derive(Clone, Copy)]
struct Call {
    projection: Projection,
    input: Input,
}

const OF_128: DeviceScales = DeviceScales { address: 0x40000, bytes: 2 * 2 * 512 };
const OF_224: DeviceScales = DeviceScales { address: 0x50000, bytes: 4 * 2 * 512 };
const SCALES: WeightScales = WeightScales { groups_of_128: OF_128, groups_of_224: Some(OF_224) };
const X_SCALES: DeviceScales = DeviceScales { address: 0x60000, bytes: 2 * 512 };
const WEIGHT: DeviceMatrix = DeviceMatrix::e4m3(0x10000, 256, 256);
const X: DeviceMatrix = DeviceMatrix::e4m3(0x20000, 100, 256);
const VALID: Call =
    Call { projection: Projection::new(WEIGHT).with_scales(SCALES), input: Input::new(X).with_scales(X_SCALES) };
const OUTPUT: Output = Output { y: DeviceMatrix::bf16(0x30000, 50, 256) };

fn refuse(rank: &Rank, call: &Call) -> String {
    let (projection, input) = (&call.projection, &call.input);
    let reason = rank.gemm.can_run(Mode::ReduceScatter, projection, input, &OUTPUT).unwrap_err();
    // SAFETY: the call is refused before any address is used, which is what is tested.
    let error = unsafe { rank.gemm.apply(Mode::ReduceScatter, projection, input, &OUTPUT, Stream::DEFAULT) };
    assert_eq!(error, Err(GemmRsArError::Unsupported(reason.clone())));
    reason.to_string()
}

fn refusals(kernel: Option<&'static str>, calls: &[Call]) -> Vec<String> {
    let node = node(RANKS, 0);
    let results = on_each_rank_with(&node, CAPACITY, kernel, |rank| {
        let texts: Vec<String> = calls.iter().map(|call| refuse(rank, call)).collect();
        rank.synchronize();
        texts
    });
    for rank in 0..RANKS {
        assert_eq!(node.counters(rank), Counters::default(), "something was launched");
    }
    assert_eq!(results[0], results[1]);
    results.into_iter().next().unwrap()
}

#[test]
fn the_call_that_the_others_vary_is_accepted_with_and_without_groups_of_224() {
    on_each_rank(&node(RANKS, 0), CAPACITY, |rank| {
        for scales in [SCALES, WeightScales { groups_of_224: None, ..SCALES }] {
            let projection = Projection::new(WEIGHT).with_scales(scales);
            assert_eq!(rank.gemm.can_run(Mode::ReduceScatter, &projection, &VALID.input, &OUTPUT), Ok(()));
            let choice = rank.gemm.choice(Mode::ReduceScatter, &projection, &VALID.input, &OUTPUT).unwrap();
            assert!(scales.groups_of_224.is_some() || choice.kernel.tile.n != 224, "{choice}");
        }
    });
}

#[test]
fn scales_that_are_missing_or_should_not_be_there() {
    let bf16 = Projection::new(DeviceMatrix::bf16(0x10000, 256, 256));
    assert_eq!(
        refusals(
            None,
            &[
                Call { projection: Projection::new(WEIGHT), ..VALID },
                Call { input: Input::new(X), ..VALID },
                Call { projection: bf16.with_scales(SCALES), ..VALID },
                Call {
                    projection: bf16,
                    input: Input::new(DeviceMatrix::bf16(0x20000, 100, 256)).with_scales(X_SCALES),
                },
                Call { projection: bf16, ..VALID },
            ]
        ),
        [
            "the weight is F8_E4M3 without scales; one E8M0 scale for every 32 elements along K is wanted: pass them with \
             the matrix, in the 128x4 layout",
            "the input x is F8_E4M3 without scales; one E8M0 scale for every 32 elements along K is wanted: pass them with \
             the matrix, in the 128x4 layout",
            "the weight is BF16 and has scales; none are wanted: leave them out, or pass the F8_E4M3 matrix they belong to",
            "the input x is BF16 and has scales; none are wanted: leave them out, or pass the F8_E4M3 matrix they belong \
             to",
            "the input x is F8_E4M3; BF16 is wanted: convert it, or use the unfused path",
        ]
    );
}

#[test]
fn scales_of_another_size_or_in_the_wrong_place() {
    let with = |scales| Call { projection: Projection::new(WEIGHT).with_scales(scales), ..VALID };
    let of_128 = |change: DeviceScales| with(WeightScales { groups_of_128: change, ..SCALES });
    assert_eq!(
        refusals(
            None,
            &[
                of_128(DeviceScales { bytes: 2047, ..OF_128 }),
                with(WeightScales { groups_of_224: Some(DeviceScales { bytes: 2048, ..OF_224 }), ..SCALES }),
                Call { input: Input::new(X).with_scales(DeviceScales { bytes: 100 * 8, ..X_SCALES }), ..VALID },
                of_128(DeviceScales { address: 0, ..OF_128 }),
                of_128(DeviceScales { address: 0x40008, ..OF_128 }),
            ]
        ),
        [
            "the weight's scales have 2047 bytes; 2048 are wanted for 256 rows and K = 256: one byte for every 32 \
             elements, with the rows padded to whole groups",
            "the weight's scales in groups of 224 have 2048 bytes; 4096 are wanted for 256 rows and K = 256: one byte for \
             every 32 elements, with the rows padded to whole groups",
            "the scales of the input x have 800 bytes; 1024 are wanted for 100 rows and K = 256: one byte for every 32 \
             elements, with the rows padded to whole groups",
            "the weight's scales has a null address; an address of device memory is wanted: pass the allocation's address",
            "the weight's scales starts at 0x40008; a multiple of 16 bytes is wanted: copy it to an aligned allocation, or \
             start the view at an aligned element",
        ]
    );
}

#[test]
fn an_inner_dimension_of_half_a_stage_and_rows_that_are_not_aligned() {
    let weight = DeviceMatrix::e4m3(0x10000, 256, 64);
    let texts = refusals(
        None,
        &[
            Call { projection: Projection::new(weight).with_scales(SCALES), ..VALID },
            Call { input: Input::new(X.with_row_stride(264)).with_scales(X_SCALES), ..VALID },
            Call { input: Input::new(DeviceMatrix { rows: 0, ..X }).with_scales(X_SCALES), ..VALID },
        ],
    );
    assert_eq!(
        texts,
        [
            "the weight has K = 64 columns on this rank; a positive multiple of 128 up to 4294967168 is wanted: choose a \
             rank count that cuts K into such parts, or pad K with zeros",
            "the input x has rows 264 elements apart; a multiple of 16 elements is wanted: pad its rows",
            "the input x has 0 rows; at least 1 is wanted: skip the call when there are no tokens",
        ]
    );
}

#[test]
fn a_forced_kernel_that_does_not_take_the_call() {
    assert_eq!(
        refusals(Some("gemm_mxfp8_swapped_64x128"), &[VALID]),
        [
            "the kernel gemm_mxfp8_swapped_64x128, which the configuration names, takes at most 64 rows; name another, or none \
          to have one chosen"
        ]
    );
    assert_eq!(
        refusals(Some("gemm_bf16_128x256"), &[VALID]),
        [
            "the kernel gemm_bf16_128x256, which the configuration names, multiplies Bf16 operands only; name another, or \
          none to have one chosen"
        ]
    );
    let projection = Projection::new(WEIGHT).with_scales(WeightScales { groups_of_224: None, ..SCALES });
    assert_eq!(
        refusals(Some("gemm_mxfp8_pair_128x224"), &[Call { projection, ..VALID }]),
        [
            "the kernel gemm_mxfp8_pair_128x224 wants the weight's scales in groups of 224 rows, and they are given in groups \
          of 128 only: repack them with mxfp8::repack_scales_in_groups, or name another kernel"
        ]
    );
    node(RANKS, 0).run_ranks(|device, rendezvous| {
        let config = GemmRsArConfig { kernel: Some("gemm_fp4"), ..GemmRsArConfig::new(256, 384) };
        let error = GemmRsAr::new(device, &rendezvous, config).err().unwrap().to_string();
        assert!(error.starts_with("there is no kernel gemm_fp4; one of gemm_bf16_128x128, "), "{error}");
        assert!(error.ends_with("is wanted, or none to have one chosen for each call"), "{error}");
    });
}

#[test]
fn rooms_and_weight_scales_of_the_wrong_size() {
    on_each_rank(&node(RANKS, 0), CAPACITY, |rank| {
        let room = DeviceActivations::new(&rank.device, 100, 256).unwrap();
        let quantize = |x: DeviceMatrix| {
            // SAFETY: the call is refused before any address is used, which is what is tested.
            unsafe { rank.gemm.quantize(&x, &room, Stream::DEFAULT) }.unwrap_err().to_string()
        };
        let x = DeviceMatrix::bf16(0x20000, 100, 256);
        assert_eq!(
            [
                quantize(X),
                quantize(DeviceMatrix::bf16(0x20000, 100, 128)),
                quantize(DeviceMatrix { rows: 101, ..x }),
                quantize(DeviceMatrix { rows: 0, ..x }),
                quantize(DeviceMatrix { address: 0x20002, ..x }),
            ],
            [
                "the activations are F8_E4M3; BF16 is wanted: convert them before they are quantised",
                "the activations have K = 128; 256 is wanted, for which the room was made: make room for this K",
                "the activations have 101 rows; there is room for 100: make room for more",
                "0 rows; at least 1 is wanted: skip the call when there are no tokens",
                "the input x starts at 0x20002; a multiple of 16 bytes is wanted: copy it to an aligned allocation, or \
                 start the view at an aligned element",
            ]
        );
        let short = DeviceWeightScales::from_row_major(&rank.device, &[127; 2047], 256, 256).err().unwrap();
        assert_eq!(
            short.to_string(),
            "the scales have length 2047; 2048 is wanted for 256 rows and K = 256: check the shape and the slice"
        );
        let inner = DeviceActivations::new(&rank.device, 1, 64).err().unwrap();
        assert_eq!(
            inner.to_string(),
            "K is 64; a positive multiple of 128 is wanted: pad both operands with zeros along K"
        );
    });
}

//! Every wrong input is a typed error that says what was given, what is wanted and what to do; nothing is launched.

mod common;

use std::sync::Arc;

use common::device::ScriptedDevice;
use common::rank::{node, on_each_rank};
use gemm_rs_ar::driver::simulated::Counters;
use gemm_rs_ar::driver::{Device, DeviceProperties, ShareableHandle, Stream};
use gemm_rs_ar::symmetric::{Rendezvous, RendezvousError};
use gemm_rs_ar::{
    DeviceMatrix, ElementType, GemmRsAr, GemmRsArConfig, GemmRsArError, Input, Mode, Output, Policy, Projection,
};

const RANKS: u32 = 2;
const CAPACITY: [u64; 2] = [256, 384];

/// A call that runs: M = 100, N = 256, K = 128 per rank. The addresses need not exist, because nothing gets that far.
#[derive(Clone, Copy)]
struct Call {
    mode: Mode,
    weight: DeviceMatrix,
    x: DeviceMatrix,
    y: DeviceMatrix,
}

const VALID: Call = Call {
    mode: Mode::ReduceScatter,
    weight: DeviceMatrix::bf16(0x10000, 256, 128),
    x: DeviceMatrix::bf16(0x20000, 100, 128),
    y: DeviceMatrix::bf16(0x30000, 50, 256),
};

/// The message that each call is refused with, checked to be the same from `can_run` and `apply`, on every rank, and to
/// leave no trace.
fn refusals(calls: &[Call]) -> Vec<String> {
    let node = node(RANKS, 0);
    let results = on_each_rank(&node, CAPACITY, |rank| {
        let refuse = |call: &Call| {
            let projection = Projection::new(call.weight);
            let (input, output) = (Input::new(call.x), Output { y: call.y });
            let reason = rank.gemm.can_run(call.mode, &projection, &input, &output).unwrap_err();
            // SAFETY: the call is refused before any address is used, which is what is tested.
            let error = unsafe { rank.gemm.apply(call.mode, &projection, &input, &output, Stream::DEFAULT) };
            assert_eq!(error, Err(GemmRsArError::Unsupported(reason.clone())));
            reason.to_string()
        };
        let texts: Vec<String> = calls.iter().map(refuse).collect();
        rank.synchronize();
        texts
    });
    for rank in 0..RANKS {
        assert_eq!(node.counters(rank), Counters::default(), "something was launched");
    }
    assert_eq!(results[0], results[1]);
    results.into_iter().next().unwrap()
}

fn refusal(call: Call) -> String {
    refusals(&[call]).remove(0)
}

#[test]
fn the_call_that_the_others_vary_is_accepted() {
    let node = node(RANKS, 0);
    on_each_rank(&node, CAPACITY, |rank| {
        let projection = Projection::new(VALID.weight);
        let accepted = rank.gemm.can_run(VALID.mode, &projection, &Input::new(VALID.x), &Output { y: VALID.y });
        assert_eq!(accepted, Ok(()));
        let y = DeviceMatrix::bf16(0x30000, 100, 256);
        assert_eq!(rank.gemm.can_run(Mode::AllReduce, &projection, &Input::new(VALID.x), &Output { y }), Ok(()));
    });
}

#[test]
fn no_rows() {
    assert_eq!(
        refusal(Call { x: DeviceMatrix { rows: 0, ..VALID.x }, ..VALID }),
        "the input x has 0 rows; at least 1 is wanted: skip the call when there are no tokens"
    );
}

#[test]
fn more_rows_than_the_workspace_has() {
    assert_eq!(
        refusal(Call { x: DeviceMatrix { rows: 257, ..VALID.x }, ..VALID }),
        "the input x has 257 rows; the workspace was made for at most 256: create it with a larger max_m"
    );
    let texts = refusals(&[
        Call { x: DeviceMatrix { rows: 1 << 32, ..VALID.x }, ..VALID },
        Call { x: DeviceMatrix { rows: u64::MAX, ..VALID.x }, ..VALID },
    ]);
    assert!(texts.iter().all(|text| text.ends_with("create it with a larger max_m")), "{texts:?}");
}

#[test]
fn columns_that_are_no_multiple_of_a_tile() {
    let refused = refusals(&[0, 64, 129].map(|rows| Call { weight: DeviceMatrix { rows, ..VALID.weight }, ..VALID }));
    for (text, given) in refused.iter().zip([0, 64, 129]) {
        assert_eq!(
            *text,
            format!(
                "the weight has N = {given} rows; a positive multiple of 128 is wanted: pad the weight's rows, or use \
                 the unfused path"
            )
        );
    }
}

#[test]
fn more_columns_than_the_workspace_has() {
    assert_eq!(
        refusal(Call { weight: DeviceMatrix { rows: 512, ..VALID.weight }, ..VALID }),
        "the weight has N = 512 rows; the workspace was made for at most 384: create it with a larger max_n"
    );
}

#[test]
fn an_inner_dimension_that_is_no_multiple_of_a_stage() {
    let given = [0, 32, 96, (1 << 32) - 32, 1 << 32];
    let refused = refusals(&given.map(|columns| Call { weight: DeviceMatrix { columns, ..VALID.weight }, ..VALID }));
    for (text, given) in refused.iter().zip(given) {
        assert_eq!(
            *text,
            format!(
                "the weight has K = {given} columns on this rank; a positive multiple of 64 up to 4294967232 is \
                 wanted: choose a rank count that cuts K into such parts, or pad K with zeros"
            )
        );
    }
}

#[test]
fn operands_that_disagree_about_the_inner_dimension() {
    assert_eq!(
        refusal(Call { x: DeviceMatrix::bf16(0x20000, 100, 192), ..VALID }),
        "the input x has K = 192 columns; 128 are wanted, as the weight has: pass both cut for this rank"
    );
}

#[test]
fn an_output_of_another_shape() {
    assert_eq!(
        refusal(Call { mode: Mode::AllReduce, ..VALID }),
        "the output is [50, 256]; [100, 256] is wanted for all-reduce: allocate it for this M, N and mode"
    );
    assert_eq!(
        refusal(Call { y: DeviceMatrix::bf16(0x30000, 100, 256), ..VALID }),
        "the output is [100, 256]; [50, 256] is wanted for reduce-scatter: allocate it for this M, N and mode"
    );
}

#[test]
fn element_types_other_than_bf16() {
    assert_eq!(
        refusals(&[
            Call { weight: VALID.weight.with_element_type(ElementType::F16), ..VALID },
            Call { x: VALID.x.with_element_type(ElementType::F16), ..VALID },
            Call { y: VALID.y.with_element_type(ElementType::F32), ..VALID },
        ]),
        [
            "the weight is F16; BF16 or F8_E4M3 is wanted: convert it, or use the unfused path",
            "the input x is F16; BF16 is wanted: convert it, or use the unfused path",
            "the output is F32; BF16 is wanted: convert it, or use the unfused path",
        ]
    );
}

#[test]
fn null_pointers() {
    assert_eq!(
        refusals(&[
            Call { weight: DeviceMatrix { address: 0, ..VALID.weight }, ..VALID },
            Call { x: DeviceMatrix { address: 0, ..VALID.x }, ..VALID },
            Call { y: DeviceMatrix { address: 0, ..VALID.y }, ..VALID },
        ]),
        ["the weight", "the input x", "the output"].map(|matrix| format!(
            "{matrix} has a null address; an address of device memory is wanted: pass the allocation's address"
        ))
    );
}

#[test]
fn misaligned_pointers() {
    assert_eq!(
        refusals(&[
            Call { weight: DeviceMatrix { address: 0x10002, ..VALID.weight }, ..VALID },
            Call { x: DeviceMatrix { address: 0x20008, ..VALID.x }, ..VALID },
            Call { y: DeviceMatrix { address: 0x30001, ..VALID.y }, ..VALID },
        ]),
        [("the weight", "0x10002"), ("the input x", "0x20008"), ("the output", "0x30001")].map(
            |(matrix, address)| format!(
                "{matrix} starts at {address}; a multiple of 16 bytes is wanted: copy it to an aligned allocation, or \
                 start the view at an aligned element"
            )
        )
    );
}

#[test]
fn rows_that_overlap() {
    assert_eq!(
        refusals(&[
            Call { weight: VALID.weight.with_row_stride(120), ..VALID },
            Call { x: VALID.x.with_row_stride(0), ..VALID },
            Call { y: VALID.y.with_row_stride(128), ..VALID },
        ]),
        [("the weight", 120, 128), ("the input x", 0, 128), ("the output", 128, 256)].map(
            |(matrix, given, wanted)| format!(
                "{matrix} has rows {given} elements apart; at least {wanted} are wanted, its number of columns: pass \
                 the stride in elements"
            )
        )
    );
}

#[test]
fn row_strides_that_misalign_rows() {
    assert_eq!(
        refusals(&[
            Call { weight: VALID.weight.with_row_stride(132), ..VALID },
            Call { x: VALID.x.with_row_stride(129), ..VALID },
            Call { y: VALID.y.with_row_stride(260), ..VALID },
        ]),
        [("the weight", 132), ("the input x", 129), ("the output", 260)].map(|(matrix, given)| format!(
            "{matrix} has rows {given} elements apart; a multiple of 8 elements is wanted: pad its rows"
        ))
    );
}

#[test]
fn row_strides_and_sizes_that_overflow() {
    let texts = refusals(&[
        Call { weight: VALID.weight.with_row_stride(1 << 39), ..VALID },
        Call { x: VALID.x.with_row_stride(u64::MAX - 7), ..VALID },
        Call { y: VALID.y.with_row_stride(1 << 32), ..VALID },
        Call { x: DeviceMatrix { address: u64::MAX - 15, ..VALID.x }, ..VALID },
    ]);
    let stride = |matrix, given: u64| {
        format!("{matrix} has rows {given} elements apart; fewer than 549755813888 are wanted: pack the rows closer")
    };
    assert_eq!(texts[0], stride("the weight", 1 << 39));
    assert_eq!(texts[1], stride("the input x", u64::MAX - 7));
    assert_eq!(
        texts[2],
        "the output spans 50 rows of 4294967296 elements; fewer than 4294967296 elements in all are wanted: split the \
         call by rows, or pack the rows closer"
    );
    assert_eq!(
        texts[3],
        "the input x spans 100 rows of 128 elements; fewer than 7 elements in all are wanted: split the call by rows, \
         or pack the rows closer"
    );
}

#[test]
fn a_refused_call_does_not_take_a_turn() {
    use common::operands::Problem;
    use common::rank::Gaps;
    let problem = Problem::small_integers([20, 128, 64], 2, 1);
    let reference = problem.reference();
    on_each_rank(&node(RANKS, 0), CAPACITY, |rank| {
        // Only rank 0 is refused here. If that cost it a turn, the ranks would now use different slots.
        if rank.rank == 0 {
            let wrong = Problem::small_integers([300, 128, 64], 2, 1);
            let refused = rank.enqueue(&wrong, Mode::AllReduce, Gaps::default()).map(drop);
            assert!(matches!(refused, Err(GemmRsArError::Unsupported(_))), "{refused:?}");
        }
        for _ in 0..3 {
            rank.check(&problem, &reference, Mode::AllReduce);
        }
    });
}

/// A rendezvous that says what it is told to and can do nothing.
struct Claim {
    rank: u32,
    world_size: u32,
}

impl Rendezvous for Claim {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn world_size(&self) -> u32 {
        self.world_size
    }

    fn all_gather(&self, _: &[u8]) -> Result<Vec<Vec<u8>>, RendezvousError> {
        unreachable!("the ranks have no reason to meet")
    }

    fn barrier(&self) -> Result<(), RendezvousError> {
        unreachable!("the ranks have no reason to meet")
    }

    fn exchange_handles(&self, _: Option<ShareableHandle>) -> Result<Vec<Option<ShareableHandle>>, RendezvousError> {
        unreachable!("the ranks have no reason to meet")
    }
}

/// The message that a configuration is refused with before the ranks meet.
fn configuration_refusal(rank: u32, world_size: u32, [max_m, max_n]: [u64; 2]) -> String {
    let device: Arc<dyn Device> = Arc::new(node(1, 0).device(0).unwrap());
    let config = GemmRsArConfig::new(max_m, max_n);
    let error = GemmRsAr::new(device, &Claim { rank, world_size }, config).map(drop).unwrap_err();
    assert!(matches!(error, GemmRsArError::Config(_)));
    error.to_string()
}

#[test]
fn group_sizes() {
    assert_eq!(
        configuration_refusal(0, 1, CAPACITY),
        "the group has 1 rank(s); 2 to 16 are wanted: with 1 rank a plain GEMM does the work"
    );
    assert_eq!(
        configuration_refusal(0, 0, CAPACITY),
        "the group has 0 rank(s); 2 to 16 are wanted: with 1 rank a plain GEMM does the work"
    );
    assert_eq!(
        configuration_refusal(0, 17, CAPACITY),
        "the group has 17 ranks; 2 to 16 are wanted: use smaller tensor-parallel groups"
    );
}

#[test]
fn a_rank_outside_its_group() {
    assert_eq!(
        configuration_refusal(2, 2, CAPACITY),
        "the rank is 2; 0 to 1 are wanted in a group of 2: check the rendezvous"
    );
}

#[test]
fn capacities() {
    assert_eq!(
        configuration_refusal(0, 2, [0, 128]),
        "max_m is 0; at least 1 is wanted: set it to the largest number of tokens in a call"
    );
    assert_eq!(
        configuration_refusal(0, 2, [1, 100]),
        "max_n is 100; a positive multiple of 128 is wanted: set it to the largest N, rounded up"
    );
    assert_eq!(
        configuration_refusal(0, 2, [1 << 32, 1 << 40]),
        "max_m * max_n is 4294967296 * 1099511627776; at most 4294967295 elements are wanted: make max_m smaller and \
         split larger calls by rows"
    );
}

/// The messages of both ranks when rank 1's device claims other properties.
fn device_refusals(change: impl Fn(&mut DeviceProperties) + Sync) -> [String; 2] {
    let results = node(RANKS, 0).run_ranks(|device, rendezvous| {
        let device = match rendezvous.rank() {
            1 => Arc::new(ScriptedDevice::with_properties(device, &change)),
            _ => device,
        };
        GemmRsAr::new(device, &rendezvous, GemmRsArConfig::new(CAPACITY[0], CAPACITY[1])).map(drop).unwrap_err()
    });
    assert!(matches!(results[1], GemmRsArError::Device(_)));
    [results[0].to_string(), results[1].to_string()]
}

#[test]
fn a_margin_that_leaves_no_sm() {
    node(RANKS, 0).run_ranks(|device, rendezvous| {
        let sms = device.properties().sm_count;
        let config = GemmRsArConfig { sm_margin: sms, ..GemmRsArConfig::new(256, 384) };
        let error = GemmRsAr::new(device, &rendezvous, config).err().unwrap().to_string();
        let wanted = format!(
            "sm_margin is {sms} on device {}, which has {sms} SMs; fewer are wanted: leave at least 1 to the kernels",
            rendezvous.rank()
        );
        assert_eq!(error, wanted);
    });
}

#[test]
fn a_device_without_multicast() {
    let [other, own] = device_refusals(|properties| properties.multicast_supported = false);
    let reason = "device 1 (simulated SM100) does not support multicast; a device with NVLink multicast is wanted: use \
                  the unfused path, or check that the fabric manager runs";
    assert_eq!(own, reason);
    assert_eq!(
        other,
        format!(
            "rank 1 failed in comparing the configuration: {reason}; this rank released what it had, fix that rank and \
             start again"
        )
    );
}

#[test]
fn a_device_of_another_architecture() {
    let [_, own] = device_refusals(|properties| properties.compute_capability = (9, 0));
    assert_eq!(
        own,
        "device 1 (simulated SM100) has compute capability 9.0; 10.0 or 10.3 is wanted: use the unfused path on this \
         device"
    );
}

#[test]
fn a_device_with_too_little_shared_memory() {
    let [_, own] = device_refusals(|properties| properties.shared_memory_per_block_optin = 101_376);
    assert!(own.starts_with("device 1 allows 101376 bytes of shared memory per block; "), "{own}");
    let [_, own] = device_refusals(|properties| properties.sm_count = 0);
    assert_eq!(own, "device 1 reports 0 SMs; at least 1 is wanted: check the driver");
}

#[test]
fn an_incompatible_projection_is_recognised_without_a_call() {
    on_each_rank(&node(RANKS, 0), CAPACITY, |rank| {
        let warn = |weight| rank.gemm.warn_incompatible_projection("layers.0.o_proj", &Projection::new(weight));
        assert!(!warn(VALID.weight));
        assert!(warn(DeviceMatrix { rows: 100, ..VALID.weight }));
    });
}

#[test]
fn the_policy_is_a_threshold_on_rows() {
    on_each_rank(&node(RANKS, 0), CAPACITY, |rank| {
        assert!(!rank.gemm.should_run(127));
        assert!(rank.gemm.should_run(128));
    });
    let results = node(RANKS, 0).run_ranks(|device, rendezvous| {
        let config = GemmRsArConfig { policy: Policy { min_rows: 1 }, ..GemmRsArConfig::new(256, 384) };
        GemmRsAr::new(device, &rendezvous, config).unwrap().should_run(1)
    });
    assert_eq!(results, [true, true]);
}

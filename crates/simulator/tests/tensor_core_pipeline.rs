//! A warp-specialised GEMM on the tensor core, and what each of its fences and waits is for: every one taken away is
//! noticed under every seed.

mod fixture;

use fixture::{GPU, Machine, launch};
use simulator::node::{OrderingRules, TensorMapBytes, TensorMapDescription, TensorMapElement, TensorMapSwizzle};
use simulator::{Fault, encode_tensor_map};

const M: u32 = 128;
const N: u32 = 128;
const STAGE: u32 = 2 * 128 * 128;

/// The kernel's places that a test may change.
#[derive(Clone)]
struct Gemm {
    after_setup: &'static str,
    mma_after_full: &'static str,
    wait_full: &'static str,
    wait_empty: &'static str,
    wait_accumulator_free: &'static str,
    mma_after_free: &'static str,
    epilogue_wait: &'static str,
    epilogue_after: &'static str,
    wait_load: &'static str,
    epilogue_before: &'static str,
    arrive_free: &'static str,
    deallocate: &'static str,
}

const GEMM: Gemm = Gemm {
    after_setup: "tcgen05.fence::after_thread_sync;",
    wait_full: "FULL: mbarrier.try_wait.parity.shared.b64 %p6, [%r10], %r7; @!%p6 bra FULL;",
    mma_after_full: "tcgen05.fence::after_thread_sync;",
    wait_empty: "EMPTY: mbarrier.try_wait.parity.shared.b64 %p6, [%r11], %r9; @!%p6 bra EMPTY;",
    wait_accumulator_free: "FREE: mbarrier.try_wait.parity.shared.b64 %p6, [%r13], %r14; @!%p6 bra FREE;",
    mma_after_free: "tcgen05.fence::after_thread_sync;",
    epilogue_wait: "DONE: mbarrier.try_wait.parity.shared.b64 %p6, [%r12], %r14; @!%p6 bra DONE;",
    epilogue_after: "tcgen05.fence::after_thread_sync;",
    wait_load: "tcgen05.wait::ld.sync.aligned;",
    epilogue_before: "tcgen05.fence::before_thread_sync;",
    arrive_free: "mbarrier.arrive.shared.b64 _, [%r13];",
    deallocate: "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r40, 256;",
};

impl Gemm {
    /// Warps 0 to 3 are the epilogue, warp 4 the TMA producer, warp 5 the MMA issuer. Two stages, two accumulators.
    fn ptx(&self) -> String {
        let Gemm {
            after_setup,
            mma_after_full,
            wait_full,
            wait_empty,
            wait_accumulator_free,
            mma_after_free,
            epilogue_wait,
            epilogue_after,
            wait_load,
            epilogue_before,
            arrive_free,
            deallocate,
        } = self;
        let registers: Vec<String> = (0..32).map(|index| format!("%v{index}")).collect();
        let list = registers.join(", ");
        let stores: String = (0..8)
            .map(|quad| {
                let four = registers[4 * quad..4 * quad + 4].join(", ");
                format!("st.global.v4.b32 [%rd6+{}], {{{four}}};\n", 16 * quad)
            })
            .collect();
        format!(
            ".version 8.8\n.target sm_100a\n.address_size 64
.extern .shared .align 1024 .b8 tiles[];
.visible .entry k(.param .align 64 .b8 map_a[128], .param .align 64 .b8 map_b[128], .param .u64 out, .param .u32 blocks, .param .u32 rows)
{{
.reg .pred %p<16>; .reg .b32 %r<64>; .reg .b64 %rd<32>; .reg .b32 %v<32>;
.shared .align 8 .b64 full[2]; .shared .align 8 .b64 empty[2]; .shared .align 8 .b64 done[2]; .shared .align 8 .b64 free[2];
.shared .align 4 .u32 tensor;
mov.u64 %rd1, map_a; cvta.param.u64 %rd1, %rd1; mov.u64 %rd2, map_b; cvta.param.u64 %rd2, %rd2;
ld.param.u64 %rd3, [out]; ld.param.u32 %r1, [blocks]; ld.param.u32 %r2, [rows];
mov.u32 %r3, %tid.x; shr.u32 %r4, %r3, 5; and.b32 %r5, %r3, 31;
setp.ne.u32 %p1, %r3, 0; @%p1 bra INITIALISED;
mbarrier.init.shared.b64 [full], 1; mbarrier.init.shared.b64 [full+8], 1;
mbarrier.init.shared.b64 [empty], 1; mbarrier.init.shared.b64 [empty+8], 1;
mbarrier.init.shared.b64 [done], 1; mbarrier.init.shared.b64 [done+8], 1;
mbarrier.init.shared.b64 [free], 128; mbarrier.init.shared.b64 [free+8], 128;
fence.mbarrier_init.release.cluster;
INITIALISED:
setp.ne.u32 %p2, %r4, 0; @%p2 bra ALLOCATED;
mov.u32 %r41, tensor;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r41], 256;
tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
ALLOCATED:
tcgen05.fence::before_thread_sync; bar.sync 0; {after_setup}
ld.shared.u32 %r40, [tensor];
// %r6 stage, %r7 its parity, %r20 tile, %r21 accumulator, %r14 its parity, %r22 k block
mov.u32 %r6, 0; mov.u32 %r7, 0; mov.u32 %r20, 0; mov.u32 %r21, 0; mov.u32 %r14, 0;
mov.u32 %r30, tiles; mov.u32 %r31, full; mov.u32 %r32, empty; mov.u32 %r33, done; mov.u32 %r34, free;
setp.lt.u32 %p3, %r4, 4; @%p3 bra EPILOGUE;
elect.sync %r42|%p4, 0xffffffff; @!%p4 bra END;
setp.eq.u32 %p5, %r4, 5; @%p5 bra MMA;

PRODUCE_TILE: mov.u32 %r22, 0;
PRODUCE:
mad.lo.u32 %r10, %r6, 8, %r31; mad.lo.u32 %r11, %r6, 8, %r32; xor.b32 %r9, %r7, 1;
{wait_empty}
mbarrier.arrive.expect_tx.shared.b64 _, [%r10], {STAGE};
mad.lo.u32 %r23, %r6, {STAGE}, %r30; add.u32 %r24, %r23, 16384; shl.b32 %r25, %r22, 6; shl.b32 %r26, %r20, 7;
cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%r23], [%rd1, {{%r25, %r26}}], [%r10];
mov.u32 %r27, 0;
cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%r24], [%rd2, {{%r25, %r27}}], [%r10];
xor.b32 %r6, %r6, 1; setp.eq.u32 %p7, %r6, 0; @%p7 xor.b32 %r7, %r7, 1;
add.u32 %r22, %r22, 1; setp.lt.u32 %p7, %r22, %r1; @%p7 bra PRODUCE;
add.u32 %r20, %r20, 1; setp.lt.u32 %p7, %r20, %r2; @%p7 bra PRODUCE_TILE;
bra END;

MMA: mov.u32 %r14, 1;
MMA_TILE: mov.u32 %r22, 0;
mad.lo.u32 %r12, %r21, 8, %r33; mad.lo.u32 %r13, %r21, 8, %r34;
{wait_accumulator_free}
{mma_after_free}
mad.lo.u32 %r43, %r21, 128, %r40;
MMA_BLOCK:
mad.lo.u32 %r10, %r6, 8, %r31; mad.lo.u32 %r11, %r6, 8, %r32;
{wait_full}
{mma_after_full}
mad.lo.u32 %r23, %r6, {STAGE}, %r30; and.b32 %r23, %r23, 0x3ffff; shr.u32 %r23, %r23, 4; cvt.u64.u32 %rd10, %r23;
or.b64 %rd10, %rd10, 0x4000404000000000; add.s64 %rd11, %rd10, 1024;
mov.u32 %r44, 0x08200490;
setp.ne.u32 %p8, %r22, 0;
tcgen05.mma.cta_group::1.kind::f16 [%r43], %rd10, %rd11, %r44, %p8;
setp.eq.u32 %p9, %r44, %r44;
add.s64 %rd10, %rd10, 2; add.s64 %rd11, %rd11, 2; tcgen05.mma.cta_group::1.kind::f16 [%r43], %rd10, %rd11, %r44, %p9;
add.s64 %rd10, %rd10, 2; add.s64 %rd11, %rd11, 2; tcgen05.mma.cta_group::1.kind::f16 [%r43], %rd10, %rd11, %r44, %p9;
add.s64 %rd10, %rd10, 2; add.s64 %rd11, %rd11, 2; tcgen05.mma.cta_group::1.kind::f16 [%r43], %rd10, %rd11, %r44, %p9;
tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r11];
xor.b32 %r6, %r6, 1; setp.eq.u32 %p7, %r6, 0; @%p7 xor.b32 %r7, %r7, 1;
add.u32 %r22, %r22, 1; setp.lt.u32 %p7, %r22, %r1; @%p7 bra MMA_BLOCK;
tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r12];
xor.b32 %r21, %r21, 1; setp.eq.u32 %p7, %r21, 0; @%p7 xor.b32 %r14, %r14, 1;
add.u32 %r20, %r20, 1; setp.lt.u32 %p7, %r20, %r2; @%p7 bra MMA_TILE;
bra END;

EPILOGUE:
mad.lo.u32 %r12, %r21, 8, %r33; mad.lo.u32 %r13, %r21, 8, %r34;
{epilogue_wait}
{epilogue_after}
mad.lo.u32 %r43, %r21, 128, %r40; shl.b32 %r45, %r4, 21; add.u32 %r43, %r43, %r45;
mad.lo.u32 %r46, %r20, 128, %r3; mul.wide.u32 %rd6, %r46, 512; add.s64 %rd6, %rd3, %rd6;
mov.u32 %r47, 0;
DRAIN:
tcgen05.ld.sync.aligned.32x32b.x32.b32 {{{list}}}, [%r43];
{wait_load}
{stores}
add.u32 %r43, %r43, 32; add.s64 %rd6, %rd6, 128; add.u32 %r47, %r47, 1; setp.lt.u32 %p7, %r47, 4; @%p7 bra DRAIN;
{epilogue_before}
{arrive_free}
xor.b32 %r21, %r21, 1; setp.eq.u32 %p7, %r21, 0; @%p7 xor.b32 %r14, %r14, 1;
add.u32 %r20, %r20, 1; setp.lt.u32 %p7, %r20, %r2; @%p7 bra EPILOGUE;

END: bar.sync 0;
@%p2 bra LEAVE;
{deallocate}
LEAVE: ret;
}}"
        )
    }
}

fn bf16_map(base: u64, rows: u64, k: u64) -> TensorMapBytes {
    encode_tensor_map(&TensorMapDescription {
        element: TensorMapElement::Bf16,
        base,
        dimensions: vec![k, rows],
        strides_bytes: vec![2 * k],
        box_dimensions: vec![64, 128],
        element_strides: vec![1, 1],
        swizzle: TensorMapSwizzle::B128,
        nan_fill: false,
    })
    .unwrap()
}

/// Small integers, exact in bf16 and in every sum.
fn value(row: u32, k: u32, salt: u32) -> i32 {
    ((row * 7 + k * 3 + salt * 5) % 9) as i32 - 4
}

fn bf16_matrix(rows: u32, k: u32, salt: u32) -> Vec<u32> {
    let bits = |row, k| (value(row, k, salt) as f32).to_bits() >> 16;
    (0..rows).flat_map(|row| (0..k / 2).map(move |pair| bits(row, 2 * pair) | bits(row, 2 * pair + 1) << 16)).collect()
}

fn run(gemm: &Gemm, seed: u64, tiles: u32, blocks: u32) -> Result<Machine, Fault> {
    run_under(OrderingRules::Strict, gemm, seed, tiles, blocks)
}

fn run_under(rules: OrderingRules, gemm: &Gemm, seed: u64, tiles: u32, blocks: u32) -> Result<Machine, Fault> {
    let mut machine = Machine::with_rules(1, seed, rules, &gemm.ptx());
    let (rows, k) = (tiles * M, blocks * 64);
    let a = machine.buffer(GPU, &bf16_matrix(rows, k, 1));
    let b = machine.buffer(GPU, &bf16_matrix(N, k, 2));
    let out = machine.node.allocate(GPU, u64::from(rows * N * 4)).unwrap();
    let (map_a, map_b) = (bf16_map(a, rows.into(), k.into()), bf16_map(b, N.into(), k.into()));
    let mut config = launch(1, 1, 192);
    config.dynamic_shared_bytes = 2 * STAGE;
    let (out_bytes, blocks_bytes, tiles_bytes) = (out.to_le_bytes(), blocks.to_le_bytes(), tiles.to_le_bytes());
    let parameters: [&[u8]; 5] = [&map_a.0, &map_b.0, &out_bytes, &blocks_bytes, &tiles_bytes];
    machine.node.launch(GPU, 0, machine.module, "k", config, &parameters).unwrap();
    machine.node.run()?;
    let result = machine.words(GPU, out, (rows * N) as usize);
    for row in 0..rows {
        for column in 0..N {
            let expected: i32 = (0..k).map(|k| value(row, k, 1) * value(column, k, 2)).sum();
            let given = f32::from_bits(result[(row * N + column) as usize]);
            assert_eq!(given, expected as f32, "seed {seed}, row {row}, column {column}");
        }
    }
    Ok(machine)
}

#[test]
fn a_warp_specialised_gemm_computes_the_product() {
    for seed in 0..4 {
        let machine = run(&GEMM, seed, 5, 3).unwrap();
        let counters = machine.node.counters(GPU);
        assert_eq!(counters.tensor_macs, 5 * 3 * u64::from(M * N * 64));
        assert_eq!(counters.tma_bytes, 15 * u64::from(STAGE));
        assert_eq!(
            counters.global_sectors_written,
            u64::from(5 * M * N * 4) / 16,
            "16 bytes a lane touch half a sector"
        );
    }
}

/// Runs a broken kernel under several seeds; each must fault, with one of these texts.
#[track_caller]
fn expect(gemm: Gemm, texts: &[&str]) {
    for seed in 0..8 {
        let Err(fault) = run(&gemm, seed, 5, 3) else { panic!("seed {seed}: the break is not noticed") };
        let message = fault.to_string();
        assert!(texts.iter().any(|text| message.contains(text)), "seed {seed}: {message}");
    }
}

#[test]
fn reading_an_accumulator_needs_the_commit_to_be_observed() {
    expect(
        Gemm { epilogue_wait: "", ..GEMM },
        &[
            "was written by a tcgen05 operation of warp 5 of cluster CTA 0 whose completion this warp has not observed: wait on an mbarrier that a later tcgen05.commit arrives on",
            // Where no MMA has been issued yet.
            "tensor memory",
        ],
    );
}

#[test]
fn reading_an_accumulator_needs_an_after_fence() {
    expect(
        Gemm { epilogue_after: "", ..GEMM },
        &[
            "tcgen05.fence::after_thread_sync is missing: this warp learnt that the tcgen05 operations of warp 5 of cluster CTA 0 on tensor memory column 0 are done, but has executed no fence since",
        ],
    );
}

#[test]
fn reusing_an_accumulator_needs_the_loads_to_be_waited_for() {
    expect(
        Gemm { wait_load: "", ..GEMM },
        &["is overwritten, but warp", "has executed no tcgen05.wait::ld after its tcgen05.ld of it"],
    );
}

#[test]
fn registers_depend_on_their_load_without_a_wait() {
    // Two tiles, two accumulators: nothing is reused. Strict rules want the wait when the columns are freed, not before.
    let gemm = Gemm { wait_load: "", ..GEMM };
    for seed in 0..8 {
        run_under(OrderingRules::Practised, &gemm, seed, 2, 3).unwrap_or_else(|fault| panic!("seed {seed}: {fault}"));
        let message = run(&gemm, seed, 2, 3).err().expect("the columns are freed").to_string();
        assert!(message.contains("`tcgen05.dealloc.") && message.contains("is freed, but warp"), "{message}");
    }
}

#[test]
fn practised_rules_take_release_and_acquire_for_tcgen05_fences() {
    let unfenced = Gemm {
        after_setup: "",
        mma_after_full: "",
        mma_after_free: "",
        epilogue_after: "",
        epilogue_before: "",
        ..GEMM
    };
    let refused = |gemm: &Gemm, seed| {
        run_under(OrderingRules::Practised, gemm, seed, 5, 3).err().expect("the break is noticed").to_string()
    };
    for seed in 0..8 {
        run_under(OrderingRules::Practised, &unfenced, seed, 5, 3)
            .unwrap_or_else(|fault| panic!("seed {seed}: {fault}"));
        assert!(run(&unfenced, seed, 5, 3).is_err(), "seed {seed}: strict rules want the fences");
        // Waits stay necessary, and relaxed operations order nothing without the fences.
        let message = refused(&Gemm { wait_load: "", ..unfenced.clone() }, seed);
        assert!(message.contains("has executed no tcgen05.wait::ld after its tcgen05.ld of it"), "{message}");
        let relaxed = "mbarrier.arrive.relaxed.cluster.shared::cta.b64 _, [%r13];";
        let message = refused(&Gemm { arrive_free: relaxed, ..unfenced.clone() }, seed);
        assert!(message.contains("tcgen05.fence::before_thread_sync is missing: warp"), "{message}");
    }
}

#[test]
fn reusing_an_accumulator_needs_a_before_fence() {
    expect(Gemm { epilogue_before: "", ..GEMM }, &["tcgen05.fence::before_thread_sync is missing: warp"]);
}

#[test]
fn reusing_an_accumulator_needs_an_arrival() {
    // The issuer waits for nothing.
    expect(
        Gemm { wait_accumulator_free: "", ..GEMM },
        &[
            "and this warp has observed no arrival of it since: a barrier is missing",
            "has executed no tcgen05.wait::ld after its tcgen05.ld of it",
            "tcgen05.fence::before_thread_sync is missing",
            // It may even finish the tile before the epilogue has seen the first phase.
            "arrivals on the mbarrier",
            "whose completion this warp has not observed",
        ],
    );
}

#[test]
fn reusing_an_accumulator_needs_an_after_fence() {
    expect(
        Gemm { mma_after_free: "", mma_after_full: "", ..GEMM },
        &["tcgen05.fence::after_thread_sync is missing: this warp learnt that the tcgen05 operations of warp"],
    );
}

#[test]
fn operands_must_have_arrived() {
    expect(
        Gemm { wait_full: "", ..GEMM },
        &["wait for its mbarrier first", "the bytes may not have arrived", "before it was written", "never written"],
    );
}

#[test]
fn a_stage_must_not_be_overwritten_under_an_mma() {
    expect(
        Gemm { wait_empty: "", ..GEMM },
        &[
            "is overwritten while a tcgen05 operation of warp 5 of cluster CTA 0 may still read it: wait for a tcgen05.commit that covers the operation",
            "the destination of a bulk copy",
            "arrivals on the mbarrier",
        ],
    );
}

#[test]
fn tensor_memory_must_be_freed() {
    expect(
        Gemm { deallocate: "", ..GEMM },
        &["the CTA exits without tcgen05.dealloc of tensor memory columns [0..256]"],
    );
}

#[test]
fn a_missing_arrival_is_a_deadlock_with_the_counts() {
    expect(
        Gemm { arrive_free: "", ..GEMM },
        &[
            "warp 5, lane 0: waits for the mbarrier at 0x30 of cluster CTA 0: phase 0 has 128 of 128 arrivals and 0 bytes pending",
        ],
    );
}

#[test]
fn the_same_seed_replays_engines_too() {
    let trace = |seed| {
        let machine = run(&GEMM, seed, 3, 3).unwrap();
        (machine.node.time_ns(), machine.node.counters(GPU))
    };
    assert_eq!(trace(1), trace(1));
    assert_ne!(trace(1), trace(2));
}

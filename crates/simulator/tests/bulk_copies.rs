//! Bulk copies and the mbarriers that report them: what is right, and what each missing wait or fence gives.

mod fixture;

use fixture::{GPU, Machine, assert_fault, assert_passes, kernel, launch};
use simulator::node::{GpuId, TensorMapDescription, TensorMapElement, TensorMapSwizzle};
use simulator::{Fault, encode_tensor_map};

/// A producer warp streams tiles of 256 bytes through a ring of `STAGES` stages to a consumer warp, which writes the sum
/// of each tile's words.
fn pipeline(wait_full: &str, wait_empty: &str, init_fence: &str) -> String {
    kernel(
        ".param .u64 source, .param .u64 out, .param .u64 tiles",
        &format!(
            ".shared .align 128 .b8 stages[768]; .shared .align 8 .b64 full[3]; .shared .align 8 .b64 empty[3];
         ld.param.u64 %rd1, [source]; ld.param.u64 %rd2, [out]; ld.param.u32 %r1, [tiles];
         mov.u32 %r2, %tid.x; mov.u32 %r30, stages; mov.u32 %r31, full; mov.u32 %r32, empty;
         setp.ne.u32 %p1, %r2, 0; @%p1 bra READY;
         mbarrier.init.shared.b64 [full], 1; mbarrier.init.shared.b64 [full+8], 1; mbarrier.init.shared.b64 [full+16], 1;
         mbarrier.init.shared.b64 [empty], 1; mbarrier.init.shared.b64 [empty+8], 1; mbarrier.init.shared.b64 [empty+16], 1;
         {init_fence}
         READY: bar.sync 0;
         mov.u32 %r3, 0; mov.u32 %r4, 0; mov.u32 %r5, 0;
         setp.ge.u32 %p2, %r2, 32; @%p2 bra CONSUME;
         @%p1 bra END;
         // %r3 tile, %r4 stage, %r5 phase parity
         PRODUCE: setp.ge.u32 %p3, %r3, %r1; @%p3 bra END;
         mad.lo.u32 %r6, %r4, 8, %r31; mad.lo.u32 %r7, %r4, 8, %r32; mad.lo.u32 %r8, %r4, 256, %r30;
         xor.b32 %r9, %r5, 1;
         {wait_empty}
         mbarrier.arrive.expect_tx.shared.b64 _, [%r6], 256;
         mul.wide.u32 %rd3, %r3, 256; add.s64 %rd3, %rd1, %rd3;
         cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r8], [%rd3], 256, [%r6];
         add.u32 %r3, %r3, 1; add.u32 %r4, %r4, 1; setp.eq.u32 %p5, %r4, 3; @!%p5 bra PRODUCE;
         mov.u32 %r4, 0; xor.b32 %r5, %r5, 1; bra PRODUCE;
         CONSUME: setp.ge.u32 %p3, %r3, %r1; @%p3 bra END;
         mad.lo.u32 %r6, %r4, 8, %r31; mad.lo.u32 %r7, %r4, 8, %r32; mad.lo.u32 %r8, %r4, 256, %r30;
         {wait_full}
         and.b32 %r10, %r2, 31; mad.lo.u32 %r11, %r10, 8, %r8; ld.shared.v2.u32 {{%r12, %r13}}, [%r11];
         add.u32 %r12, %r12, %r13; redux.sync.add.u32 %r14, %r12, 0xffffffff;
         setp.ne.u32 %p4, %r10, 0; mul.wide.u32 %rd4, %r3, 4; add.s64 %rd4, %rd2, %rd4;
         @!%p4 st.global.u32 [%rd4], %r14;
         @!%p4 mbarrier.arrive.shared.b64 _, [%r7];
         add.u32 %r3, %r3, 1; add.u32 %r4, %r4, 1; setp.eq.u32 %p5, %r4, 3; @!%p5 bra CONSUME;
         mov.u32 %r4, 0; xor.b32 %r5, %r5, 1; bra CONSUME;
         END: ret;"
        ),
    )
}

const WAIT_FULL: &str = "FULL: mbarrier.try_wait.parity.shared.b64 %p6, [%r6], %r5; @!%p6 bra FULL;";
const WAIT_EMPTY: &str = "EMPTY: mbarrier.try_wait.parity.shared.b64 %p6, [%r7], %r9; @!%p6 bra EMPTY;";
const INIT_FENCE: &str = "fence.mbarrier_init.release.cluster;";

fn run_pipeline(seed: u64, ptx: &str, tiles: u32) -> Result<(), Fault> {
    let mut machine = Machine::new(1, seed, ptx);
    let words: Vec<u32> = (0..tiles * 64).collect();
    let source = machine.buffer(GPU, &words);
    let out = machine.buffer(GPU, &vec![0; tiles as usize]);
    machine.run(launch(1, 1, 64), &[source, out, tiles.into()])?;
    let sums: Vec<u32> = words.chunks(64).map(|tile| tile.iter().sum()).collect();
    assert_eq!(machine.words(GPU, out, tiles as usize), sums);
    assert_eq!(machine.node.counters(GPU).tma_bytes, u64::from(tiles) * 256);
    Ok(())
}

#[test]
fn a_ring_of_stages_streams_tiles() {
    for seed in 0..16 {
        run_pipeline(seed, &pipeline(WAIT_FULL, WAIT_EMPTY, INIT_FENCE), 20).unwrap();
        run_pipeline(seed, &pipeline(WAIT_FULL, WAIT_EMPTY, "fence.proxy.async;"), 20).unwrap();
    }
}

/// The fault of a broken pipeline; it must come under every seed.
fn broken(wait_full: &str, wait_empty: &str, init_fence: &str) -> Vec<String> {
    (0..16)
        .map(|seed| {
            run_pipeline(seed, &pipeline(wait_full, wait_empty, init_fence), 20)
                .expect_err("the missing wait must be noticed")
                .to_string()
        })
        .collect()
}

#[test]
fn reading_a_stage_without_waiting_for_it_is_noticed() {
    for message in broken("", WAIT_EMPTY, INIT_FENCE) {
        let known = ["wait for its mbarrier first", "the bytes may not have arrived", "was never written"];
        assert!(known.iter().any(|known| message.contains(known)), "{message}");
    }
}

#[test]
fn overwriting_a_stage_that_is_being_read_is_noticed() {
    for message in broken(WAIT_FULL, "", INIT_FENCE) {
        assert!(
            message.contains("the destination of a bulk copy that is still in flight")
                || message.contains("whose mbarrier phase this warp has not observed")
                || message.contains("data race in shared memory")
                || message.contains("arrivals on the mbarrier"),
            "{message}"
        );
    }
}

#[test]
fn an_unfenced_mbarrier_is_noticed() {
    for message in broken(WAIT_FULL, WAIT_EMPTY, "") {
        assert!(
            message.ends_with("is used by an asynchronous operation, but warp 0 of cluster CTA 0 executed no fence.mbarrier_init or fence.proxy.async after mbarrier.init"),
            "{message}"
        );
    }
}

/// Thread 0 writes 16 bytes of shared memory and stores them to `out` with a bulk copy.
fn store(fence: &str, wait: &str, after: &str) -> String {
    format!(
        ".shared .align 128 .b8 buffer[128]; ld.param.u64 %rd1, [out];
         st.shared.v4.u32 [buffer], {{1, 2, 3, 4}};
         {fence}
         cp.async.bulk.global.shared::cta.bulk_group [%rd1], [buffer], 16; cp.async.bulk.commit_group;
         {wait}
         {after} ret;"
    )
}

#[test]
fn generic_writes_need_a_proxy_fence_before_a_bulk_store() {
    assert_fault(
        1,
        &store("", "cp.async.bulk.wait_group 0;", ""),
        "fence.proxy.async is missing: warp 0 of cluster CTA 0 wrote shared memory at 0x0 through the generic proxy, and the async proxy now accesses it (PTX ISA, proxies)",
    );
    assert_passes(1, &store("fence.proxy.async.shared::cta;", "cp.async.bulk.wait_group 0;", ""));
}

#[test]
fn overwriting_the_source_of_a_bulk_store_needs_a_wait() {
    let fence = "fence.proxy.async;";
    let overwrite = "st.shared.u32 [buffer+4], 9;";
    assert_fault(
        1,
        &store(fence, "", overwrite),
        "shared memory at 0x4 is overwritten while a bulk store of warp 0 of cluster CTA 0 may still read it: cp.async.bulk.wait_group.read (and a barrier towards the other warps) is missing",
    );
    assert_passes(1, &store(fence, "cp.async.bulk.wait_group.read 0;", overwrite));
}

#[test]
fn exiting_before_a_bulk_store_has_read_is_noticed() {
    assert_fault(
        1,
        &store("fence.proxy.async;", "", ""),
        "the thread exits while a bulk store still reads the CTA's shared memory: cp.async.bulk.wait_group.read is missing",
    );
}

#[test]
fn the_source_may_be_overwritten_by_another_warp_behind_a_barrier_only() {
    let program = |barrier: &str| {
        format!(
            ".shared .align 128 .b8 buffer[128]; ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x;
             setp.ne.u32 %p1, %r1, 0; setp.ne.u32 %p2, %r1, 32;
             @!%p1 st.shared.v4.u32 [buffer], {{1, 2, 3, 4}};
             fence.proxy.async;
             bar.sync 1;
             @!%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd1], [buffer], 16;
             @!%p1 cp.async.bulk.commit_group;
             @!%p1 cp.async.bulk.wait_group.read 0;
             bar.sync 2;
             {barrier}
             @!%p2 st.shared.u32 [buffer], 9; ret;"
        )
    };
    assert_passes(64, &program(""));
    let racing = program("").replace("bar.sync 2;", "");
    for seed in 0..8 {
        let fault = fixture::run_one_cta(seed, 64, 64, &racing).unwrap_err().to_string();
        assert!(
            fault.contains("a bulk store of warp 0") || fault.contains("data race") || fault.contains("tcgen05"),
            "{fault}"
        );
    }
}

#[test]
fn a_tensor_map_moves_a_swizzled_box_there_and_back() {
    // 64 rows x 64 bf16 (128 bytes a row), box of 8 rows, loaded and stored with the same 128-byte swizzle.
    let ptx = ".version 8.8\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .align 64 .b8 from[128], .param .align 64 .b8 to[128])\n{
         .reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<8>;
         .shared .align 1024 .b8 tile[1024]; .shared .align 8 .b64 bar;
         mov.u64 %rd1, from; cvta.param.u64 %rd1, %rd1; mov.u64 %rd2, to; cvta.param.u64 %rd2, %rd2;
         mov.u32 %r1, %ctaid.x; shl.b32 %r1, %r1, 3;
         mbarrier.init.shared.b64 [bar], 1; fence.mbarrier_init.release.cluster;
         prefetch.tensormap [%rd1];
         mbarrier.arrive.expect_tx.shared.b64 _, [bar], 1024;
         cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [tile], [%rd1, {0, %r1}], [bar];
         WAIT: mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0; @!%p1 bra WAIT;
         cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd2, {0, %r1}], [tile];
         cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0; ret; }";
    let mut machine = Machine::new(1, 3, ptx);
    let words: Vec<u32> = (0..61 * 32).collect();
    let from = machine.buffer(GPU, &words);
    let to = machine.buffer(GPU, &vec![0; words.len()]);
    let map = |base| {
        encode_tensor_map(&TensorMapDescription {
            element: TensorMapElement::Bf16,
            base,
            dimensions: vec![64, 61],
            strides_bytes: vec![128],
            box_dimensions: vec![64, 8],
            element_strides: vec![1, 1],
            swizzle: TensorMapSwizzle::B128,
            nan_fill: false,
        })
        .unwrap()
    };
    let (source, destination) = (map(from), map(to));
    machine.node.launch(GpuId(0), 0, machine.module, "k", launch(8, 1, 1), &[&source.0, &destination.0]).unwrap();
    machine.node.run().unwrap();
    assert_eq!(machine.words(GPU, to, words.len()), words);
    // The last box hangs over the end: its missing rows count as moved but are not read.
    let counters = machine.node.counters(GPU);
    assert_eq!((counters.tma_bytes, counters.global_bytes_read), (8192, 61 * 128));
}

#[test]
fn a_store_ends_rows_of_the_tensor_after_sixteen_bytes() {
    let ptx = ".version 8.8\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .align 64 .b8 to[128])\n{
         .reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %rd<8>; .shared .align 1024 .b8 tile[256];
         mov.u64 %rd1, to; cvta.param.u64 %rd1, %rd1; mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 3; mov.u32 %r3, tile; add.u32 %r2, %r2, %r3;
         st.shared.v2.b32 [%r2], {0x00010001, 0x00010001}; fence.proxy.async.shared::cta; bar.warp.sync 0xffffffff;
         mov.s32 %r4, 0; setp.ne.u32 %p1, %r1, 0; @%p1 bra DONE;
         cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd1, {%r4, 1}], [tile];
         cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; DONE: ret; }";
    let mut machine = Machine::new(1, 3, ptx);
    let tensor = machine.buffer(GPU, &[0; 4 * 8]);
    let map = encode_tensor_map(&TensorMapDescription {
        element: TensorMapElement::U16,
        base: tensor,
        dimensions: vec![5, 4],
        strides_bytes: vec![32],
        box_dimensions: vec![16, 8],
        element_strides: vec![1, 1],
        swizzle: TensorMapSwizzle::B32,
        nan_fill: false,
    })
    .unwrap();
    machine.node.launch(GpuId(0), 0, machine.module, "k", launch(1, 1, 32), &[&map.0]).unwrap();
    machine.node.run().unwrap();
    // Rows 1 to 3, and beyond the five columns that the tensor has.
    let row = [0x0001_0001, 0x0001_0001, 0x0001_0001, 0x0001_0001, 0, 0, 0, 0];
    assert_eq!(machine.words(GPU, tensor, 32), [[0; 8], row, row, row].concat());
}

#[test]
fn a_box_must_be_aligned() {
    assert_fault(
        1,
        ".shared .align 128 .b8 buffer[256]; .shared .align 8 .b64 bar; ld.param.u64 %rd1, [out];
         mbarrier.init.shared.b64 [bar], 1; fence.mbarrier_init.release.cluster;
         mbarrier.arrive.expect_tx.shared.b64 _, [bar], 16;
         cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buffer+8], [%rd1], 16, [bar]; ret;",
        "the shared address 0x8 must be a multiple of 16",
    );
}

#[test]
fn a_byte_count_that_does_not_match_is_a_deadlock_with_the_bytes_missing() {
    let body = ".shared .align 128 .b8 buffer[256]; .shared .align 8 .b64 bar; ld.param.u64 %rd1, [out];
         mbarrier.init.shared.b64 [bar], 1; fence.mbarrier_init.release.cluster;
         mbarrier.arrive.expect_tx.shared.b64 _, [bar], 48;
         cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buffer], [%rd1], 16, [bar];
         WAIT: mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0; @!%p1 bra WAIT; ret;";
    let fault = fixture::fault_of(1, body);
    assert!(
        fault.contains(
            "waits for the mbarrier at 0x100 of cluster CTA 0: phase 0 has 0 of 1 arrivals and 32 bytes pending"
        ),
        "{fault}"
    );
}

#[test]
fn multicast_fills_every_cta_of_the_mask() {
    let program = |mask: u32| {
        kernel(
            ".param .u64 source, .param .u64 out",
            &format!(
                ".shared .align 128 .b8 tile[128]; .shared .align 8 .b64 bar; ld.param.u64 %rd1, [source]; ld.param.u64 %rd2, [out];
                 mov.u32 %r1, %cluster_ctarank; mov.u32 %r2, bar; mov.u32 %r3, tile;
                 mbarrier.init.shared.b64 [%r2], 1; fence.mbarrier_init.release.cluster;
                 mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 128;
                 barrier.cluster.arrive; barrier.cluster.wait;
                 setp.ne.u32 %p1, %r1, 0; @%p1 bra WAIT; mov.u16 %h1, {mask};
                 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r3], [%rd1], 128, [%r2], %h1;
                 WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0; @!%p2 bra WAIT;
                 ld.shared.u32 %r4, [tile+124]; mul.wide.u32 %rd3, %r1, 4; add.s64 %rd2, %rd2, %rd3; st.global.u32 [%rd2], %r4;
                 barrier.cluster.arrive; barrier.cluster.wait; ret;"
            ),
        )
    };
    for seed in 0..8 {
        let mut machine = Machine::new(1, seed, &program(0b1111));
        let source = machine.buffer(GPU, &(0..32).collect::<Vec<_>>());
        let out = machine.buffer(GPU, &[0; 4]);
        machine.run(launch(4, 4, 1), &[source, out]).unwrap();
        assert_eq!(machine.words(GPU, out, 4), [31; 4]);
        assert_eq!(machine.node.counters(GPU).tma_bytes, 512);
    }
    let mut machine = Machine::new(1, 0, &program(0b10001));
    let source = machine.buffer(GPU, &[0; 32]);
    let fault = machine.run(launch(4, 4, 1), &[source, source]).unwrap_err().to_string();
    assert!(fault.ends_with("the multicast mask 0x11 names CTAs outside a cluster of 4, or none"), "{fault}");
}

#[test]
fn what_a_bulk_store_wrote_is_read_only_after_its_thread_has_waited() {
    let read = "ld.global.u32 %r1, [%rd1];";
    assert_passes(1, &store("fence.proxy.async;", "cp.async.bulk.wait_group 0;", read));
    let fault = fixture::fault_of(1, &store("fence.proxy.async;", "cp.async.bulk.wait_group.read 0;", read));
    assert!(fault.contains("whose thread has executed no cp.async.bulk.wait_group (without .read) since"), "{fault}");
}

#[test]
fn generic_writes_to_device_memory_need_a_proxy_fence_before_a_bulk_load() {
    let program = |fence: &str| {
        format!(
            ".shared .align 128 .b8 buffer[128]; .shared .align 8 .b64 bar; ld.param.u64 %rd1, [out];
             mbarrier.init.shared.b64 [bar], 1; fence.mbarrier_init.release.cluster;
             st.global.u32 [%rd1], 5; {fence}
             mbarrier.arrive.expect_tx.shared.b64 _, [bar], 16;
             cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buffer], [%rd1], 16, [bar];
             WAIT: mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0; @!%p1 bra WAIT; ret;"
        )
    };
    assert_passes(1, &program("fence.proxy.async.global;"));
    let fault = fixture::fault_of(1, &program(""));
    assert!(fault.contains("fence.proxy.async is missing: CTA [0, 0, 0] wrote device memory at"), "{fault}");
}

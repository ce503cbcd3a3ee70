//! What the two sets of ordering rules differ in. `tensor_core_pipeline.rs` has the fences of tcgen05.

mod fixture;

use fixture::{GPU, Machine, kernel, launch};
use simulator::node::OrderingRules::{self, Practised, Strict};

/// Runs one CTA of two warps, or each of two in a cluster, under several seeds; gives the message of the fault, if any.
fn run(rules: OrderingRules, cluster: u32, body: &str) -> Result<(), String> {
    for seed in 0..8 {
        let mut machine = Machine::with_rules(1, seed, rules, &kernel(".param .u64 out", body));
        let out = machine.buffer(GPU, &[0; 64]);
        machine.run(launch(cluster, cluster, 64), &[out]).map_err(|fault| fault.to_string())?;
    }
    Ok(())
}

#[track_caller]
fn assert_refused(rules: OrderingRules, cluster: u32, body: &str, text: &str) {
    let message = run(rules, cluster, body).expect_err("it must be refused");
    assert!(message.contains(text), "{message}");
}

/// Thread 0 of rank 0 brings 16 bytes to its shared memory.
fn copy(init_fence: &str, target_rank: u32, barrier: &str) -> String {
    format!(
        ".shared .align 16 .b8 buffer[16]; .shared .align 8 .b64 full;
         ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r9, %cluster_ctarank;
         setp.ne.u32 %p1, %r1, 0; @%p1 bra READY;
         mbarrier.init.shared.b64 [full], 1; mbarrier.arrive.expect_tx.shared.b64 _, [full], 16;
         {init_fence}
         READY: {barrier}
         setp.ne.u32 %p2, %r9, 0; @%p2 bra WAIT; @%p1 bra WAIT;
         mov.u32 %r2, buffer; mov.u32 %r3, full;
         mapa.shared::cluster.u32 %r4, %r2, {target_rank}; mapa.shared::cluster.u32 %r5, %r3, {target_rank};
         cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r4], [%rd1], 16, [%r5];
         WAIT: setp.ne.u32 %p2, %r9, {target_rank}; @%p2 bra END;
         FULL: mbarrier.try_wait.parity.shared.b64 %p6, [full], 0; @!%p6 bra FULL;
         END: {barrier} ret;"
    )
}

#[test]
fn an_mbarrier_of_the_own_cta_needs_no_fence_in_practice() {
    let text = "executed no fence.mbarrier_init or fence.proxy.async after mbarrier.init";
    let alone = copy("", 0, "bar.sync 0;");
    assert_refused(Strict, 1, &alone, text);
    assert_eq!(run(Practised, 1, &alone), Ok(()));
    let cluster_barrier = "barrier.cluster.arrive; barrier.cluster.wait;";
    let remote = |fence| copy(fence, 1, cluster_barrier);
    assert_refused(Practised, 2, &remote(""), text);
    for rules in [Strict, Practised] {
        assert_eq!(run(rules, 2, &remote("fence.mbarrier_init.release.cluster;")), Ok(()));
    }
}

/// Both warps store to one word; `after` follows.
fn both_store(value: &str, after: &str) -> String {
    format!(
        ".shared .align 4 .b32 word; mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 5;
         st.shared.u32 [word], {value};
         {after}
         bar.sync 0; ld.shared.u32 %r3, [word]; ret;"
    )
}

#[test]
fn storing_what_is_there_may_race_in_practice() {
    let race = "data race in shared memory at 0x0";
    assert_refused(Strict, 1, &both_store("7", ""), race);
    assert_eq!(run(Practised, 1, &both_store("7", "")), Ok(()));
    assert_refused(Practised, 1, &both_store("%r2", ""), race);
    // One warp may be late with its store of 7.
    let overwrite = "setp.ne.u32 %p1, %r2, 0; @!%p1 st.shared.u32 [word], 8;";
    assert_refused(Practised, 1, &both_store("7", overwrite), race);
}

/// The word that `tcgen05.alloc` wrote becomes the destination of a bulk copy.
fn reuse(order: &str) -> String {
    format!(
        ".shared .align 16 .b8 word[16]; .shared .align 8 .b64 full;
         ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, word;
         setp.ge.u32 %p1, %r1, 32; @%p1 bra SECOND;
         tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r2], 32;
         ld.shared.u32 %r3, [word];
         {order}
         bar.sync 1, 64;
         tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 32;
         ret;
         SECOND: setp.ne.u32 %p2, %r1, 32; @%p2 bra WAIT_FOR_FIRST;
         mbarrier.init.shared.b64 [full], 1; fence.mbarrier_init.release.cluster;
         mbarrier.arrive.expect_tx.shared.b64 _, [full], 16;
         WAIT_FOR_FIRST: {order}
         @%p2 bra DONE;
         cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [word], [%rd1], 16, [full];
         FULL: mbarrier.try_wait.parity.shared.b64 %p6, [full], 0; @!%p6 bra FULL;
         DONE: bar.sync 1, 64; ret;"
    )
}

#[test]
fn the_word_of_an_allocation_needs_no_proxy_fence_but_order() {
    for rules in [Strict, Practised] {
        assert_eq!(run(rules, 1, &reuse("bar.sync 0;")), Ok(()));
    }
    let message = run(Strict, 1, &reuse("")).expect_err("nothing orders the two");
    assert!(message.contains("shared memory at 0x0"), "{message}");
}

#[test]
fn used_registers_show_in_practice_that_a_load_is_complete() {
    let body = |wait_store: &str, wait_load: &str| {
        format!(
            ".shared .b32 at; mov.u32 %r1, %tid.x; setp.ge.u32 %p1, %r1, 32; @%p1 bra END; mov.u32 %r2, 7;
             tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [at], 32; ld.shared.u32 %r3, [at];
             tcgen05.st.sync.aligned.32x32b.x1.b32 [%r3], {{%r2}}; {wait_store}
             tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%r4}}, [%r3];
             add.u32 %r4, %r4, 1; {wait_load}
             tcgen05.st.sync.aligned.32x32b.x1.b32 [%r3+1], {{%r4}}; {wait_store}
             tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 32;
             END: ret;"
        )
    };
    let (wait_store, wait_load) = ("tcgen05.wait::st.sync.aligned;", "tcgen05.wait::ld.sync.aligned;");
    assert_refused(Strict, 1, &body(wait_store, ""), "has executed no tcgen05.wait::ld after its tcgen05.ld of it");
    assert_eq!(run(Practised, 1, &body(wait_store, "")), Ok(()));
    let last_wait =
        body(wait_store, wait_load).replace("[%r3+1], {%r4}; tcgen05.wait::st.sync.aligned;", "[%r3+1], {%r4};");
    for rules in [Strict, Practised] {
        assert_eq!(run(rules, 1, &body(wait_store, wait_load)), Ok(()));
        assert_refused(rules, 1, &last_wait, "has executed no tcgen05.wait::st after its tcgen05.st to it");
    }
}

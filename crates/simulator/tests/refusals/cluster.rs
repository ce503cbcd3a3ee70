//! Asynchronous operations within a cluster, and requests to cancel clusters.

use crate::support::{PAUSE, cluster, refuses, threads};

/// CTA 0 sends itself a word by `st.async`, and `then` follows; CTA 1 only keeps it company.
fn remote_store(then: &str) -> String {
    format!(
        ".shared .align 16 .b8 word[16]; .shared .align 8 .b64 bar; mov.u32 %r1, %cluster_ctarank; setp.ne.u32 %p1, %r1, 0;
         mov.u32 %r2, word; mov.u32 %r3, bar; mapa.shared::cluster.u32 %r4, %r2, 1; mbarrier.init.shared.b64 [bar], 1;
         barrier.cluster.arrive; barrier.cluster.wait; @%p1 bra END; mbarrier.arrive.expect_tx.shared.b64 _, [bar], 4;
         st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r2], 7, [%r3];
         {then}
         WAIT: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [bar], 0; @!%p2 bra WAIT;
         END: barrier.cluster.arrive; barrier.cluster.wait;"
    )
}

const FIRST: &str = "FIRST: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [bar], 0; @!%p2 bra FIRST;";

#[test]
fn a_remote_store_read_before_its_mbarrier_was_waited_for() {
    refuses(
        cluster(2, 1),
        &remote_store("// wait\nld.shared.u32 %r5, [word];"),
        "kernel `k`, PTX line 13: `ld.shared.u32 %r5, [word];`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: shared memory at 0x0 is the destination of an st.async or red.async that is still in flight: wait for its mbarrier first",
        ("// wait", FIRST),
    );
    refuses(
        cluster(2, 1),
        &remote_store(&format!("{PAUSE} // wait\nst.shared.u32 [word], 1;")),
        "kernel `k`, PTX line 13: `st.shared.u32 [word], 1;`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: shared memory at 0x0 is the destination of an st.async or red.async whose mbarrier phase this warp has not observed: the value may not have arrived",
        ("// wait", FIRST),
    );
}

#[test]
fn a_byte_of_a_word_that_a_remote_store_writes() {
    let body =
        remote_store("st.shared.u8 [word+3], 1;").replace("mov.u32 %r2", "st.shared.u8 [word+4], 1; mov.u32 %r2");
    refuses(
        cluster(2, 1),
        &body,
        "kernel `k`, PTX line 12: `st.shared.u8 [word+3], 1;`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: shared memory at 0x3 is the destination of an st.async or red.async that is still in flight: wait for its mbarrier first",
        ("[word+3]", "[word+4]"),
    );
}

#[test]
fn a_remote_store_is_generic() {
    refuses(
        cluster(2, 1),
        &remote_store(&format!(
            "{FIRST} // fence\n\
             cp.async.bulk.global.shared::cta.bulk_group [%rd1], [word], 16; cp.async.bulk.commit_group;\n\
             cp.async.bulk.wait_group 0;"
        ))
        .replace("mbarrier.init", "st.shared.v4.u32 [word], {0, 0, 0, 0}; fence.proxy.async; mbarrier.init"),
        "kernel `k`, PTX line 13: `cp.async.bulk.global.shared::cta.bulk_group [%rd1], [word], 16; cp.async.bulk.commit_group;`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: fence.proxy.async is missing: an st.async or red.async wrote shared memory at 0x0 through the generic proxy, and the async proxy now accesses it (PTX ISA, proxies)",
        ("// fence", "fence.proxy.async;"),
    );
}

#[test]
fn remote_stores_have_one_destination_in_a_cluster() {
    refuses(
        cluster(2, 1),
        &remote_store("").replace("[%r2], 7", "[%r4], 7"),
        "kernel `k`, PTX line 11: `st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r4], 7, [%r3];`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: destination in CTA 1 but mbarrier in CTA 0: st.async and red.async want both in the same CTA",
        ("[%r4], 7", "[%r2], 7"),
    );
    refuses(
        threads(1),
        ".shared .align 16 .b8 word[16]; .shared .align 8 .b64 bar; mov.u32 %r2, word; mov.u32 %r3, bar;
         mbarrier.init.shared.b64 [bar], 1; mbarrier.arrive.expect_tx.shared.b64 _, [bar], 4;
         st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r2], 7, [%r3];
         WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra WAIT;",
        "kernel `k`, PTX line 10: `st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r2], 7, [%r3];`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: st.async and red.async need a cluster of more than one CTA",
        (
            "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r2], 7, [%r3];",
            "st.shared.u32 [word], 7; mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], 4;",
        ),
    );
}

#[test]
fn the_source_of_a_cluster_copy_overwritten_too_early() {
    refuses(
        cluster(2, 1),
        ".shared .align 16 .b8 mine[16]; .shared .align 16 .b8 theirs[16]; .shared .align 8 .b64 bar;
         mov.u32 %r1, %cluster_ctarank; setp.ne.u32 %p1, %r1, 0; st.shared.v4.u32 [mine], {1, 2, 3, 4};
         mbarrier.init.shared.b64 [bar], 1; fence.mbarrier_init.release.cluster; fence.proxy.async;
         mbarrier.arrive.expect_tx.shared.b64 _, [bar], 16;
         mov.u32 %r2, theirs; mov.u32 %r3, bar; mapa.shared::cluster.u32 %r4, %r2, 1; mapa.shared::cluster.u32 %r5, %r3, 1;
         barrier.cluster.arrive; barrier.cluster.wait; @%p1 bra WAIT;
         cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r4], [mine], 16, [%r5];
         // wait
         st.shared.u32 [mine], 9; bra END;
         WAIT: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [bar], 0; @!%p2 bra WAIT;
         barrier.cluster.arrive; barrier.cluster.wait;
         END: barrier.cluster.arrive; barrier.cluster.wait;",
        "kernel `k`, PTX line 16: `st.shared.u32 [mine], 9; bra END;`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: shared memory at 0x0 is overwritten while a bulk copy to the shared memory of a cluster may still read it: wait for the copy's mbarrier first, or for a warp that has",
        ("// wait", "barrier.cluster.arrive; barrier.cluster.wait;"),
    );
}

/// A copy within a CTA, and `then`; `bars` are two mbarriers that want 16 bytes each.
fn read_twice(then: &str) -> String {
    let copy = "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [to], [from], 16, [bars];";
    format!(
        ".shared .align 16 .b8 from[16]; .shared .align 16 .b8 to[32]; .shared .align 8 .b64 bars[2];
         st.shared.v4.u32 [from], {{1, 2, 3, 4}}; mbarrier.init.shared.b64 [bars], 1; mbarrier.init.shared.b64 [bars+8], 1;
         fence.mbarrier_init.release.cluster; fence.proxy.async;
         mbarrier.arrive.expect_tx.shared.b64 _, [bars], 16; mbarrier.arrive.expect_tx.shared.b64 _, [bars+8], 16;
         {copy}
         {then}
         // wait
         st.shared.u8 [from+5], 9;
         WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [bars], 0; @!%p2 bra WAIT;"
    )
}

#[test]
fn every_copy_that_reads_the_same_bytes_has_to_be_waited_for() {
    let overwritten = "kernel `k`, PTX line 16: `st.shared.u8 [from+5], 9;`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: shared memory at 0x5 is overwritten while a bulk copy to the shared memory of a cluster may still read it: wait for the copy's mbarrier first, or for a warp that has";
    let wait = ("// wait", "FIRST: mbarrier.try_wait.parity.shared.b64 %p2, [bars], 0; @!%p2 bra FIRST;");
    refuses(
        threads(1),
        &read_twice(
            "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [to+16], [from], 16, [bars+8];
             LAST: mbarrier.try_wait.parity.shared.b64 %p2, [bars+8], 0; @!%p2 bra LAST;",
        ),
        overwritten,
        wait,
    );
    refuses(
        threads(1),
        &read_twice(
            "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [from], 16; cp.async.bulk.commit_group;
             cp.async.bulk.wait_group 0;",
        ),
        overwritten,
        wait,
    );
}

/// A launch of one CTA has nothing to cancel, so this request fails.
fn failed_cancel(then: &str) -> String {
    format!(
        ".reg .b128 %q<2>; .shared .align 16 .b8 response[32]; .shared .align 8 .b64 bar;
         mbarrier.init.shared.b64 [bar], 1; fence.mbarrier_init.release.cluster; mov.u64 %rd2, 1;
         mbarrier.arrive.expect_tx.shared.b64 _, [bar], 16;
         clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [response], [bar];
         WAIT: mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0; @!%p1 bra WAIT;
         ld.shared.b128 %q0, [response]; clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p2, %q0;
         {then}
         END:"
    )
}

#[test]
fn another_request_after_one_that_failed() {
    let body = failed_cancel(
        "// leave\nmbarrier.arrive.expect_tx.shared.b64 _, [bar], 16;
         clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [response+16], [bar];",
    );
    refuses(
        threads(1),
        &body,
        "kernel `k`, PTX line 16: `clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [response+16], [bar];`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: clusterlaunchcontrol.try_cancel after this CTA has observed that an earlier one failed: the behaviour is undefined",
        ("// leave", "bra END;"),
    );
}

#[test]
fn responses_without_an_index() {
    let body = failed_cancel("clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r1, %q0;");
    refuses(
        threads(1),
        &body,
        "kernel `k`, PTX line 14: `clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r1, %q0;`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: clusterlaunchcontrol.query_cancel.get_first_ctaid of a response that says that nothing was cancelled: ask is_canceled first",
        ("clusterlaunchcontrol.query_cancel.get", "@%p2 clusterlaunchcontrol.query_cancel.get"),
    );
    let body =
        failed_cancel("mov.b128 %q1, {%rd2, %rd2};\nclusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p2, %q1;");
    refuses(
        threads(1),
        &body,
        "kernel `k`, PTX line 15: `clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p2, %q1;`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: clusterlaunchcontrol.query_cancel of 0x0000000000000001:0000000000000001, which is no response of clusterlaunchcontrol.try_cancel",
        ("mov.b128 %q1, {%rd2, %rd2};", "mov.b128 %q1, %q0;"),
    );
}

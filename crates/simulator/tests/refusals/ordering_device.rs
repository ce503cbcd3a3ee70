//! Device memory handed from one CTA, GPU, proxy or kind of address to another.

use crate::fixture::launch;
use crate::support::{PAUSE, refuses, refuses_between_gpus, threads};

/// GPU 1 does the first, raises a flag, and GPU 0, which has waited for the flag, does the second.
fn then(first: &str, second: &str) -> String {
    format!(
        "@%p1 bra FIRST;
        WAIT: ld.acquire.sys.global.u32 %r1, [%rd1+32]; setp.eq.u32 %p2, %r1, 0; @%p2 bra WAIT;
        {second}
        bra END;
        FIRST: {first}
        st.relaxed.sys.global.u32 [%rd1+32], 1;
        END:"
    )
}

#[test]
fn data_behind_a_flag() {
    let (store, load) = ("st.global.u32 [%rd1], 5;", "ld.global.u32 %r2, [%rd1];");
    refuses_between_gpus(
        &then(store, load),
        "kernel `k`, PTX line 10: `ld.global.u32 %r2, [%rd1];`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: data race in device memory at 0x700000200000: CTA [0, 0, 0] of GPU 1 wrote it, and no release and acquire of sufficient scope lead from there to this read",
        ("st.relaxed", "st.release"),
    );
    refuses_between_gpus(
        &then(store, store),
        "kernel `k`, PTX line 10: `st.global.u32 [%rd1], 5;`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: data race in device memory at 0x700000200000: CTA [0, 0, 0] of GPU 1 wrote it, and no release and acquire of sufficient scope lead from there to this write",
        ("st.relaxed", "st.release"),
    );
}

#[test]
fn bytes_of_one_word() {
    // CTA 0 goes first. Each is right with the other half of the word, though nothing orders the two.
    let then = |first: &str, second: &str| {
        format!(
            "mov.u32 %r1, %ctaid.x; setp.ne.u32 %p1, %r1, 0; @%p1 bra SECOND; st.global.u32 [%rd1+8], 1;
            {first} bra END;
            SECOND: {PAUSE}
            {second}
            END:"
        )
    };
    let two_ctas = launch(2, 1, 1);
    let second = "st.global.u8 [%rd1+1], 2;";
    refuses(
        two_ctas,
        &then("st.global.u16 [%rd1], 1;", second),
        "kernel `k`, PTX line 11: `st.global.u8 [%rd1+1], 2;`\n  GPU 0, CTA (1,0,0), warp 0, lane 0: data race in device memory at 0x700000200001: CTA [0, 0, 0] of GPU 0 wrote it, and no release and acquire of sufficient scope lead from there to this write",
        ("+1]", "+2]"),
    );
    refuses(
        two_ctas,
        &then("ld.global.u16 %r2, [%rd1];", second),
        "kernel `k`, PTX line 11: `st.global.u8 [%rd1+1], 2;`\n  GPU 0, CTA (1,0,0), warp 0, lane 0: data race in device memory at 0x700000200001: CTA [0, 0, 0] of GPU 0 read it, and no release and acquire of sufficient scope lead from there to this write",
        ("+1]", "+2]"),
    );
    refuses(
        two_ctas,
        &then("st.global.u16 [%rd1+2], 1;", "ld.global.v2.u32 {%r2, %r3}, [%rd1];"),
        "kernel `k`, PTX line 11: `ld.global.v2.u32 {%r2, %r3}, [%rd1];`\n  GPU 0, CTA (1,0,0), warp 0, lane 0: data race in device memory at 0x700000200002: CTA [0, 0, 0] of GPU 0 wrote it, and no release and acquire of sufficient scope lead from there to this read",
        ("ld.global.v2.u32 {%r2, %r3}, [%rd1]", "ld.global.u16 %r2, [%rd1]"),
    );
}

#[test]
fn unicast_and_multicast_addresses_of_the_same_bytes() {
    let reduce = "multimem.ld_reduce.relaxed.sys.global.add.u32 %r2, [%rd3];";
    let body = then("st.global.u32 [%rd2], 5; // fence", reduce).replace("st.relaxed", "st.release");
    refuses_between_gpus(
        &body,
        "kernel `k`, PTX line 10: `multimem.ld_reduce.relaxed.sys.global.add.u32 %r2, [%rd3];`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: fence.proxy.alias is missing: the bytes at 0x700000a00000 were written through its own (unicast) address by CTA [0, 0, 0] of GPU 1, and are read through a multicast address (PTX ISA, proxies)",
        ("// fence", "fence.proxy.alias;"),
    );
}

#[test]
fn generic_writes_before_a_bulk_copy() {
    let body = ".shared .align 16 .b8 buffer[16]; .shared .align 8 .b64 bar;
        mbarrier.init.shared.b64 [bar], 1; fence.mbarrier_init.release.cluster;
        mbarrier.arrive.expect_tx.shared.b64 _, [bar], 16; st.global.u32 [%rd1], 5; // fence
        cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buffer], [%rd1], 16, [bar];
        WAIT: mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0; @!%p1 bra WAIT;";
    refuses(
        threads(1),
        body,
        "kernel `k`, PTX line 11: `cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buffer], [%rd1], 16, [bar];`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: fence.proxy.async is missing: CTA [0, 0, 0] wrote device memory at 0x700000200000 through the generic proxy, and a bulk copy now reads it (PTX ISA, proxies)",
        ("// fence", "fence.proxy.async;"),
    );
}

#[test]
fn what_a_bulk_store_wrote() {
    let body = format!(
        ".shared .align 16 .b8 buffer[16]; st.shared.v4.u32 [buffer], {{1, 2, 3, 4}}; fence.proxy.async;
        cp.async.bulk.global.shared::cta.bulk_group [%rd1], [buffer], 16; cp.async.bulk.commit_group;
        cp.async.bulk.wait_group.read 0; {PAUSE}
        ld.global.u32 %r1, [%rd1];"
    );
    refuses(
        threads(1),
        &body,
        "kernel `k`, PTX line 11: `ld.global.u32 %r1, [%rd1];`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: device memory at 0x700000200000 is written by a bulk store of CTA [0, 0, 0] of GPU 0 whose thread has executed no cp.async.bulk.wait_group (without .read) since: the bytes may not have arrived",
        ("wait_group.read", "wait_group"),
    );
}

//! Shared memory handed from one warp, proxy or engine to another.

use crate::support::{PAUSE, refuses, refuses_tensor, threads};

/// Warp 0 goes on to the first statement, warp 1 to the second one some time later; both meet at `// barrier`.
fn then(first: &str, second: &str) -> String {
    format!(
        ".shared .align 16 .b8 word[16]; mov.u32 %r1, %tid.x; setp.ge.u32 %p1, %r1, 32;
        st.volatile.shared.u32 [word], 1; bar.sync 0; @%p1 bra SECOND;
        {first}
        // barrier
        bra END;
        SECOND: // barrier
        {PAUSE}
        {second}
        END:"
    )
}

#[test]
fn between_warps() {
    let (store, load) = ("st.shared.u32 [word], 1;", "ld.shared.u32 %r2, [word];");
    refuses(
        threads(64),
        &then(store, load),
        "kernel `k`, PTX line 15: `ld.shared.u32 %r2, [word];`\n  GPU 0, CTA (0,0,0), warp 1, lane 0: data race in shared memory at 0x0: warp 0 of cluster CTA 0 wrote it and this warp has not synchronised with it since",
        ("// barrier", "bar.sync 0;"),
    );
    refuses(
        threads(64),
        &then(load, store),
        "kernel `k`, PTX line 15: `st.shared.u32 [word], 1;`\n  GPU 0, CTA (0,0,0), warp 1, lane 0: data race in shared memory at 0x0: warp 0 of cluster CTA 0 read it and this warp, which overwrites it, has not synchronised with it since",
        ("// barrier", "bar.sync 0;"),
    );
}

#[test]
fn bytes_of_one_word() {
    // Each is right with the other half of the word, though nothing orders the two.
    let (store, load) = ("st.shared.u16 [word], 1;", "ld.shared.u16 %r2, [word];");
    refuses(
        threads(64),
        &then(store, "st.shared.u8 [word+1], 2;"),
        "kernel `k`, PTX line 15: `st.shared.u8 [word+1], 2;`\n  GPU 0, CTA (0,0,0), warp 1, lane 0: data race in shared memory at 0x1: warp 0 of cluster CTA 0 wrote it and this warp has not synchronised with it since",
        ("[word+1]", "[word+2]"),
    );
    refuses(
        threads(64),
        &then(load, "st.shared.u8 [word+1], 2;"),
        "kernel `k`, PTX line 15: `st.shared.u8 [word+1], 2;`\n  GPU 0, CTA (0,0,0), warp 1, lane 0: data race in shared memory at 0x1: warp 0 of cluster CTA 0 read it and this warp, which overwrites it, has not synchronised with it since",
        ("[word+1]", "[word+2]"),
    );
    refuses(
        threads(64),
        &then("st.shared.u16 [word+2], 1;", "ld.shared.v2.u32 {%r2, %r3}, [word];"),
        "kernel `k`, PTX line 15: `ld.shared.v2.u32 {%r2, %r3}, [word];`\n  GPU 0, CTA (0,0,0), warp 1, lane 0: data race in shared memory at 0x2: warp 0 of cluster CTA 0 wrote it and this warp has not synchronised with it since",
        ("ld.shared.v2.u32 {%r2, %r3}, [word]", "ld.shared.u16 %r2, [word]"),
    );
    // Whole again, the word has one writer.
    refuses(
        threads(64),
        &then("st.shared.u16 [word], 1; st.shared.u16 [word+2], 1;", "ld.shared.u8 %r2, [word+3];"),
        "kernel `k`, PTX line 15: `ld.shared.u8 %r2, [word+3];`\n  GPU 0, CTA (0,0,0), warp 1, lane 0: data race in shared memory at 0x3: warp 0 of cluster CTA 0 wrote it and this warp has not synchronised with it since",
        ("// barrier", "bar.sync 0;"),
    );
}

#[test]
fn generic_writes_before_the_async_proxy() {
    let body = ".shared .align 16 .b8 buffer[16]; st.shared.v4.u32 [buffer], {1, 2, 3, 4}; // fence
        cp.async.bulk.global.shared::cta.bulk_group [%rd1], [buffer], 16;
        cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;";
    refuses(
        threads(1),
        body,
        "kernel `k`, PTX line 9: `cp.async.bulk.global.shared::cta.bulk_group [%rd1], [buffer], 16;`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: fence.proxy.async is missing: warp 0 of cluster CTA 0 wrote shared memory at 0x0 through the generic proxy, and the async proxy now accesses it (PTX ISA, proxies)",
        ("// fence", "fence.proxy.async;"),
    );
}

/// Copies 16 bytes into written memory, and reads them there.
fn load(between: &str) -> String {
    format!(
        ".shared .align 16 .b8 buffer[16]; .shared .align 8 .b64 bar; mbarrier.init.shared.b64 [bar], 1;
        st.shared.v4.u32 [buffer], {{1, 2, 3, 4}}; fence.proxy.async;
        mbarrier.arrive.expect_tx.shared.b64 _, [bar], 16;
        cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buffer], [%rd1], 16, [bar]; {between}
        ld.shared.u32 %r1, [buffer]; // after
        WAIT: mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0; @!%p1 bra WAIT;"
    )
}

#[test]
fn the_destination_of_a_bulk_copy() {
    let edit = ("ld.shared.u32 %r1, [buffer]; // after\n        WAIT", "WAIT");
    refuses(
        threads(1),
        &load(""),
        "kernel `k`, PTX line 12: `ld.shared.u32 %r1, [buffer]; // after`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: shared memory at 0x0 is the destination of a bulk copy that is still in flight: wait for its mbarrier first",
        edit,
    );
    refuses(
        threads(1),
        &load(PAUSE),
        "kernel `k`, PTX line 12: `ld.shared.u32 %r1, [buffer]; // after`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: shared memory at 0x0 is the destination of a bulk copy whose mbarrier phase this warp has not observed: the bytes may not have arrived",
        edit,
    );
}

#[test]
fn the_source_of_a_bulk_store() {
    let body = ".shared .align 16 .b8 buffer[16]; st.shared.v4.u32 [buffer], {1, 2, 3, 4}; fence.proxy.async;
        cp.async.bulk.global.shared::cta.bulk_group [%rd1], [buffer], 16; cp.async.bulk.commit_group; // wait
        st.shared.u32 [buffer], 5;
        cp.async.bulk.wait_group.read 0;";
    refuses(
        threads(1),
        body,
        "kernel `k`, PTX line 10: `st.shared.u32 [buffer], 5;`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: shared memory at 0x0 is overwritten while a bulk store of warp 0 of cluster CTA 0 may still read it: cp.async.bulk.wait_group.read (and a barrier towards the other warps) is missing",
        ("// wait", "cp.async.bulk.wait_group.read 0;"),
    );
}

#[test]
fn several_bulk_stores_of_one_source() {
    // Both warps store the buffer, warp 1 later, and warp 1 overwrites it.
    let body =
        ".shared .align 16 .b8 buffer[16]; mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; setp.eq.u32 %p2, %r1, 32;
        @%p1 st.shared.v4.u32 [buffer], {1, 2, 3, 4}; @%p1 fence.proxy.async;
        @%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd1], [buffer], 16; @%p1 cp.async.bulk.commit_group; // wait
        bar.sync 0;
        @%p2 cp.async.bulk.global.shared::cta.bulk_group [%rd1+16], [buffer], 16; @%p2 cp.async.bulk.commit_group;
        @%p2 cp.async.bulk.wait_group.read 0;
        @%p2 st.shared.u32 [buffer], 5;
        cp.async.bulk.wait_group.read 0;";
    refuses(
        threads(64),
        body,
        "kernel `k`, PTX line 14: `@%p2 st.shared.u32 [buffer], 5;`\n  GPU 0, CTA (0,0,0), warp 1, lane 0: shared memory at 0x0 is overwritten while a bulk store of warp 0 of cluster CTA 0 may still read it: cp.async.bulk.wait_group.read (and a barrier towards the other warps) is missing",
        ("// wait", "cp.async.bulk.wait_group.read 0;"),
    );
    // Of one thread, with a wait for all groups but the last.
    let body = ".shared .align 16 .b8 buffer[16]; st.shared.v4.u32 [buffer], {1, 2, 3, 4}; fence.proxy.async;
        cp.async.bulk.global.shared::cta.bulk_group [%rd1], [buffer], 16; cp.async.bulk.commit_group;
        cp.async.bulk.global.shared::cta.bulk_group [%rd1+16], [buffer], 16; cp.async.bulk.commit_group;
        cp.async.bulk.wait_group.read 1;
        st.shared.u32 [buffer], 5;
        cp.async.bulk.wait_group.read 0;";
    refuses(
        threads(1),
        body,
        "kernel `k`, PTX line 12: `st.shared.u32 [buffer], 5;`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: shared memory at 0x0 is overwritten while a bulk store of warp 0 of cluster CTA 0 may still read it: cp.async.bulk.wait_group.read (and a barrier towards the other warps) is missing",
        ("wait_group.read 1", "wait_group.read 0"),
    );
}

#[test]
fn the_operands_of_an_mma() {
    let body = "MMA COMMIT // wait
        @%p0 st.shared.u32 [operand], 0;
        // wait again";
    let body = body.replace("// wait again", "WAIT");
    refuses_tensor(
        32,
        &body,
        "kernel `k`, PTX line 10: `@%p0 st.shared.u32 [operand], 0;`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: shared memory at 0x0 is overwritten while a tcgen05 operation of warp 0 of cluster CTA 0 may still read it: wait for a tcgen05.commit that covers the operation",
        ("// wait\n        @%p0 st.shared.u32 [operand], 0;\n        WAIT", "WAIT\n@%p0 st.shared.u32 [operand], 0;"),
    );
}

#[test]
fn an_mbarrier_of_another_warp() {
    let body = ".shared .align 8 .b64 bar; mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; setp.ge.u32 %p2, %r1, 32;
        @%p1 mbarrier.init.shared.b64 [bar], 1; // barrier
        @!%p2 bra END; PAUSE
        mbarrier.test_wait.parity.shared.b64 %p3, [bar], 1;
        END:";
    refuses(
        threads(64),
        &body.replace("PAUSE", PAUSE),
        "kernel `k`, PTX line 11: `mbarrier.test_wait.parity.shared.b64 %p3, [bar], 1;`\n  GPU 0, CTA (0,0,0), warp 1, lane 0: the mbarrier at 0x0 was initialised by warp 0 of cluster CTA 0, and this warp has not synchronised with it since",
        ("// barrier", "bar.sync 0;"),
    );
}

#[test]
fn an_mbarrier_of_the_async_proxy() {
    let body =
        ".shared .align 16 .b8 buffer[16]; .shared .align 8 .b64 bar; mbarrier.init.shared.b64 [bar], 1; // fence
        mbarrier.arrive.expect_tx.shared.b64 _, [bar], 16;
        cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buffer], [%rd1], 16, [bar];
        WAIT: mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0; @!%p1 bra WAIT;";
    refuses(
        threads(1),
        body,
        "kernel `k`, PTX line 10: `cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buffer], [%rd1], 16, [bar];`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: the mbarrier at 0x10 is used by an asynchronous operation, but warp 0 of cluster CTA 0 executed no fence.mbarrier_init or fence.proxy.async after mbarrier.init",
        ("// fence", "fence.mbarrier_init.release.cluster;"),
    );
}

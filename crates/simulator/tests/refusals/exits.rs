//! What must be over before a thread or a CTA exits, and runs that have no end.

use crate::support::{refuses, threads};

#[test]
fn a_bulk_store_that_still_reads() {
    let body = ".shared .align 16 .b8 buffer[16]; st.shared.v4.u32 [buffer], {1, 2, 3, 4}; fence.proxy.async;
        cp.async.bulk.global.shared::cta.bulk_group [%rd1], [buffer], 16; cp.async.bulk.commit_group; // wait";
    refuses(
        threads(1),
        body,
        "kernel `k`, PTX line 10: `ret;`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: the thread exits while a bulk store still reads the CTA's shared memory: cp.async.bulk.wait_group.read is missing",
        ("// wait", "cp.async.bulk.wait_group.read 0;"),
    );
}

#[test]
fn a_bulk_copy_that_still_writes() {
    let body = ".shared .align 16 .b8 buffer[16]; .shared .align 8 .b64 bar;
        mbarrier.init.shared.b64 [bar], 1; fence.mbarrier_init.release.cluster;
        mbarrier.arrive.expect_tx.shared.b64 _, [bar], 16;
        cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buffer], [%rd1], 16, [bar];
        // wait";
    let wait = "WAIT: mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0; @!%p1 bra WAIT;";
    refuses(
        threads(1),
        body,
        "kernel `k`, PTX line 13: `ret;`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: the CTA exits while 1 asynchronous operations on its shared memory are still under way: wait for their mbarriers first",
        ("// wait", wait),
    );
}

#[test]
fn a_wait_that_nobody_ends() {
    let body = ".shared .align 8 .b64 bar; mbarrier.init.shared.b64 [bar], 2; mbarrier.arrive.shared.b64 _, [bar];
        WAIT: mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0; @!%p1 bra WAIT;";
    refuses(
        threads(1),
        body,
        "deadlock: 1 lane groups wait and nothing can go on\n  GPU 0, CTA (0,0,0), warp 0, lane 0: waits for the mbarrier at 0x0 of cluster CTA 0: phase 0 has 1 of 2 arrivals and 0 bytes pending\n    kernel `k`, PTX line 9: `WAIT: mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0; @!%p1 bra WAIT;`",
        ("_, [bar];", "_, [bar], 2;"),
    );
}

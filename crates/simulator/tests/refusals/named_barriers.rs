//! `barrier` and `barrier.cluster`.

use crate::support::{cluster, refuses, threads};

const WARP: &str = "mov.u32 %r1, %tid.x; setp.ge.u32 %p1, %r1, 32;";

#[test]
fn numbers_and_counts() {
    refuses(
        threads(32),
        "mov.u32 %r1, 16;\nbar.sync %r1;",
        "kernel `k`, PTX line 9: `bar.sync %r1;`\n  GPU 0, CTA (0,0,0), warp 0, lanes 0xffffffff: barrier 16 does not exist: a CTA has barriers 0 to 15",
        ("16", "15"),
    );
    refuses(
        threads(32),
        "mov.u32 %r1, 48;\nbar.sync 0, %r1;",
        "kernel `k`, PTX line 9: `bar.sync 0, %r1;`\n  GPU 0, CTA (0,0,0), warp 0, lanes 0xffffffff: barrier 0: the thread count 48 must be a multiple of 32, from 32 to the CTA's 32",
        ("48", "32"),
    );
}

#[test]
fn warps_that_expect_different_counts() {
    let body = format!(
        "{WARP} @%p1 bra SECOND; bar.arrive 1, 64; bar.sync 0; bra END;
        SECOND: bar.sync 0;
        bar.sync 1, 32;
        END:"
    );
    refuses(
        threads(64),
        &body,
        "kernel `k`, PTX line 10: `bar.sync 1, 32;`\n  GPU 0, CTA (0,0,0), warp 1, lanes 0xffffffff: barrier 1: this warp expects 32 threads, but those that wait for it expect 64",
        ("1, 32", "1, 64"),
    );
    // Without a count all of the CTA is meant, whatever the others call it.
    refuses(
        threads(64),
        &body,
        "kernel `k`, PTX line 10: `bar.sync 1, 32;`\n  GPU 0, CTA (0,0,0), warp 1, lanes 0xffffffff: barrier 1: this warp expects 32 threads, but those that wait for it expect 64",
        ("bar.sync 1, 32;", "bar.sync 1;"),
    );
}

#[test]
fn a_warp_that_arrives_twice() {
    let body = format!(
        "{WARP} @%p1 bra SECOND;
        bar.arrive 1, 64;
        bar.arrive 1, 64;
        bar.sync 0; bra END;
        SECOND: bar.sync 0; bar.sync 1, 64; bar.sync 2, 64;
        END:"
    );
    let twice = "bar.arrive 1, 64;\n        bar.arrive 1, 64;";
    refuses(
        threads(64),
        &body,
        "kernel `k`, PTX line 10: `bar.arrive 1, 64;`\n  GPU 0, CTA (0,0,0), warp 0, lanes 0xffffffff: barrier 1: warp 0 arrives a second time before the barrier has completed",
        (twice, "bar.arrive 1, 64; bar.arrive 2, 64;"),
    );
}

#[test]
fn cluster_barriers_alternate() {
    refuses(
        cluster(1, 1),
        "// first\nbarrier.cluster.wait;",
        "kernel `k`, PTX line 9: `barrier.cluster.wait;`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: barrier.cluster.wait out of turn: a thread must alternate arrive and wait",
        ("// first", "barrier.cluster.arrive;"),
    );
    refuses(
        cluster(1, 1),
        "barrier.cluster.arrive;\nbarrier.cluster.arrive;",
        "kernel `k`, PTX line 9: `barrier.cluster.arrive;`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: barrier.cluster.arrive out of turn: a thread must alternate arrive and wait",
        (";\nbarrier.cluster.arrive;", ";\nbarrier.cluster.wait;"),
    );
}

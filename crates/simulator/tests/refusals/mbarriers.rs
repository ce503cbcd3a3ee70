//! mbarrier objects: their initialisation, counts, tokens, and who may use them.

use crate::support::{PAUSE, cluster, refuses, threads};

const INIT: &str = ".shared .align 8 .b64 bar; mbarrier.init.shared.b64 [bar], 1;";

#[test]
fn initialisation() {
    refuses(
        threads(1),
        ".shared .align 8 .b64 bar; // init\nmbarrier.arrive.shared.b64 _, [bar];",
        "kernel `k`, PTX line 9: `mbarrier.arrive.shared.b64 _, [bar];`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: there is no initialised mbarrier at 0x0: mbarrier.init it first",
        ("// init", "mbarrier.init.shared.b64 [bar], 1;"),
    );
    refuses(
        threads(1),
        &format!("{INIT} // inval\nmbarrier.init.shared.b64 [bar], 1;"),
        "kernel `k`, PTX line 9: `mbarrier.init.shared.b64 [bar], 1;`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: the mbarrier at 0x0 is initialised again while it is in use; mbarrier.inval it first",
        ("// inval", "mbarrier.inval.shared.b64 [bar];"),
    );
    refuses(
        threads(1),
        ".shared .align 8 .b64 bar; mov.u32 %r1, 0;\nmbarrier.init.shared.b64 [bar], %r1;",
        "kernel `k`, PTX line 9: `mbarrier.init.shared.b64 [bar], %r1;`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: the arrival count 0 is outside 1..=1048575",
        ("%r1, 0;", "%r1, 1;"),
    );
    refuses(
        threads(1),
        ".shared .align 8 .b8 bars[16];\nmbarrier.init.shared.b64 [bars+4], 1;",
        "kernel `k`, PTX line 9: `mbarrier.init.shared.b64 [bars+4], 1;`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: mbarrier operation of 8 bytes at 0x4: the address must be a multiple of 8",
        ("+4", "+8"),
    );
}

#[test]
fn invalidation_under_a_waiter() {
    let body = format!(
        ".shared .align 8 .b64 bar; mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 32; setp.eq.u32 %p2, %r1, 0;
        @%p2 mbarrier.init.shared.b64 [bar], 1;
        bar.sync 0; @%p1 bra OWNER;
        WAIT: mbarrier.try_wait.parity.shared.b64 %p3, [bar], 0; @!%p3 bra WAIT; bra END;
        OWNER: {PAUSE}
        @%p2 mbarrier.inval.shared.b64 [bar];
        END:"
    );
    let end = "mbarrier.inval.shared.b64 [bar];\n        END:";
    let right = "mbarrier.arrive.shared.b64 _, [bar];\nEND: bar.sync 0; @%p2 mbarrier.inval.shared.b64 [bar];";
    refuses(
        threads(64),
        &body,
        "kernel `k`, PTX line 13: `@%p2 mbarrier.inval.shared.b64 [bar];`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: the mbarrier at 0x0 is invalidated while 1 lane groups wait on it",
        (end, right),
    );
}

#[test]
fn counts() {
    refuses(
        threads(1),
        ".shared .align 8 .b64 bar; mbarrier.init.shared.b64 [bar], 2; mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 16;
        mbarrier.arrive.shared.b64 _, [bar], 2;
        mbarrier.arrive.shared.b64 _, [bar];",
        "kernel `k`, PTX line 10: `mbarrier.arrive.shared.b64 _, [bar];`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: 1 arrivals on the mbarrier at 0x0, whose phase 0 expects only 0 more of 2",
        ("[bar], 2;\n", "[bar];\n"),
    );
    refuses(
        threads(1),
        &format!(
            "{INIT} mov.u32 %r1, 1048575; mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], %r1;
            mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 1;"
        ),
        "kernel `k`, PTX line 9: `mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 1;`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: the transaction count of the mbarrier at 0x0 becomes 1048576, outside +-1048575",
        ("1048575", "1048574"),
    );
}

#[test]
fn tokens() {
    let body = format!(
        "{INIT} mbarrier.arrive.shared.b64 %rd2, [bar]; mbarrier.arrive.shared.b64 %rd3, [bar];
        mbarrier.test_wait.shared.b64 %p1, [bar], %rd2;"
    );
    refuses(
        threads(1),
        &body,
        "kernel `k`, PTX line 9: `mbarrier.test_wait.shared.b64 %p1, [bar], %rd2;`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: the state token is of phase 0, but the mbarrier at 0x0 is in phase 2: a token is good for the current and the preceding phase only",
        ("[bar], %rd2;", "[bar], %rd3;"),
    );
}

#[test]
fn mbarriers_of_another_cta() {
    let prelude = ".shared .align 8 .b64 bar; mov.u64 %rd2, bar; cvta.shared.u64 %rd2, %rd2; mapa.u64 %rd3, %rd2, 1;
        mov.u32 %r1, %cluster_ctarank; setp.eq.u32 %p1, %r1, 0;";
    let meet = "barrier.cluster.arrive; barrier.cluster.wait;";
    refuses(
        cluster(2, 1),
        &format!("{prelude}\n@%p1 mbarrier.init.b64 [%rd3], 1; {meet}"),
        "kernel `k`, PTX line 10: `@%p1 mbarrier.init.b64 [%rd3], 1; barrier.cluster.arrive; barrier.cluster.wait;`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: mbarrier.init works on the executing CTA's own shared memory only, not on that of CTA 1",
        ("[%rd3]", "[%rd2]"),
    );
    let initialised = format!("{prelude} mbarrier.init.b64 [%rd2], 1; fence.mbarrier_init.release.cluster; {meet}");
    let wait = |operation| format!("{initialised}\n@%p1 mbarrier.{operation}.parity.b64 %p2, [%rd3], 1;\n{meet}");
    refuses(
        cluster(2, 1),
        &wait("test_wait"),
        "kernel `k`, PTX line 10: `@%p1 mbarrier.test_wait.parity.b64 %p2, [%rd3], 1;`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: mbarrier.test_wait works on the executing CTA's own shared memory only, not on that of CTA 1",
        ("[%rd3], 1;", "[%rd2], 1;"),
    );
    refuses(
        cluster(2, 1),
        &wait("try_wait"),
        "kernel `k`, PTX line 10: `@%p1 mbarrier.try_wait.parity.b64 %p2, [%rd3], 1;`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: mbarrier.try_wait works on the executing CTA's own shared memory only, not on that of CTA 1",
        ("[%rd3], 1;", "[%rd2], 1;"),
    );
    refuses(
        cluster(2, 1),
        &format!("{initialised}\n@%p1 mbarrier.inval.b64 [%rd3];\n{meet}"),
        "kernel `k`, PTX line 10: `@%p1 mbarrier.inval.b64 [%rd3];`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: mbarrier.inval works on the executing CTA's own shared memory only, not on that of CTA 1",
        ("[%rd3]", "[%rd2]"),
    );
}

#[test]
fn initialisation_by_another_warp() {
    let body = format!(
        ".shared .align 8 .b64 bar; mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; setp.lt.u32 %p2, %r1, 32;
        @%p1 mbarrier.init.shared.b64 [bar], 1; // barrier
        @%p2 bra END; {PAUSE}
        mbarrier.test_wait.parity.shared.b64 %p3, [bar], 1;
        END:"
    );
    refuses(
        threads(64),
        &body,
        "kernel `k`, PTX line 11: `mbarrier.test_wait.parity.shared.b64 %p3, [bar], 1;`\n  GPU 0, CTA (0,0,0), warp 1, lane 0: the mbarrier at 0x0 was initialised by warp 0 of cluster CTA 0, and this warp has not synchronised with it since",
        ("// barrier", "bar.sync 0;"),
    );
}

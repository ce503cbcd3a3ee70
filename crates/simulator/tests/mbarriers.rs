//! mbarrier objects: phases, tokens, remote arrivals, misuse.

mod fixture;

use fixture::{GPU, Machine, assert_fault, assert_passes, kernel, launch, run_one_cta};

const BAR: &str = ".shared .align 8 .b64 bar;";

#[test]
fn misuse_is_refused() {
    let cases = [
        ("mbarrier.arrive.shared.b64 _, [bar];", "there is no initialised mbarrier at 0x0: mbarrier.init it first"),
        ("mov.u32 %r1, 0; mbarrier.init.shared.b64 [bar], %r1;", "the arrival count 0 is outside 1..=1048575"),
        (
            "mbarrier.init.shared.b64 [bar], 1; mbarrier.init.shared.b64 [bar], 1;",
            "the mbarrier at 0x0 is initialised again while it is in use; mbarrier.inval it first",
        ),
        (
            "mbarrier.init.shared.b64 [bar], 2; mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 16; mbarrier.arrive.shared.b64 _, [bar], 2; mbarrier.arrive.shared.b64 _, [bar];",
            "1 arrivals on the mbarrier at 0x0, whose phase 0 expects only 0 more of 2",
        ),
        (
            "mbarrier.init.shared.b64 [bar], 1; mov.u32 %r1, 1048575; mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], %r1; mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 1;",
            "the transaction count of the mbarrier at 0x0 becomes 1048576, outside +-1048575",
        ),
        (
            "mbarrier.init.shared.b64 [bar], 1; mbarrier.arrive.shared.b64 %rd1, [bar]; mbarrier.arrive.shared.b64 %rd2, [bar]; mbarrier.test_wait.shared.b64 %p1, [bar], %rd1;",
            "the state token is of phase 0, but the mbarrier at 0x0 is in phase 2: a token is good for the current and the preceding phase only",
        ),
    ];
    for (body, ending) in cases {
        assert_fault(1, &format!("{BAR} {body} ret;"), ending);
    }
}

#[test]
fn tokens_and_parities_tell_phases_apart() {
    let body = format!(
        "{BAR} ld.param.u64 %rd9, [out];
         mbarrier.init.shared.b64 [bar], 2;
         mbarrier.test_wait.parity.shared.b64 %p1, [bar], 1; selp.u32 %r1, 1, 0, %p1;
         mbarrier.test_wait.parity.shared.b64 %p1, [bar], 0; selp.u32 %r2, 1, 0, %p1;
         mbarrier.arrive.shared.b64 %rd1, [bar]; mbarrier.pending_count.b64 %r3, %rd1;
         mbarrier.test_wait.shared.b64 %p1, [bar], %rd1; selp.u32 %r4, 1, 0, %p1;
         mbarrier.arrive_drop.shared.b64 %rd2, [bar]; mbarrier.pending_count.b64 %r5, %rd2;
         mbarrier.test_wait.shared.b64 %p1, [bar], %rd1; selp.u32 %r6, 1, 0, %p1;
         mbarrier.arrive.shared.b64 %rd3, [bar];
         mbarrier.test_wait.parity.shared.b64 %p1, [bar], 1; selp.u32 %r7, 1, 0, %p1;
         st.global.v4.u32 [%rd9], {{%r1, %r2, %r3, %r4}}; st.global.v2.u32 [%rd9+16], {{%r5, %r6}}; st.global.u32 [%rd9+24], %r7;
         ret;"
    );
    // After arrive_drop one arrival makes a phase.
    assert_eq!(run_one_cta(0, 1, 7, &body).unwrap(), [1, 0, 2, 0, 1, 1, 1]);
}

#[test]
fn an_mbarrier_orders_shared_memory_between_warps() {
    let program = |order: &str, between: &str| {
        format!(
            "{BAR} .shared .u32 word; mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; setp.lt.u32 %p2, %r1, 32;
             @%p1 mbarrier.init.shared.b64 [bar], 1; {between}
             @!%p2 bra WAIT;
             @%p1 st.shared.u32 [word], 5; @%p1 mbarrier.arrive{order}.shared::cta.b64 _, [bar]; ret;
             WAIT: mbarrier.try_wait.parity.shared.b64 %p3, [bar], 0; @!%p3 bra WAIT; ld.shared.u32 %r2, [word]; ret;"
        )
    };
    assert_passes(64, &program("", "bar.sync 0;"));
    assert_fault(
        64,
        &program(".relaxed.cta", "bar.sync 0;"),
        "data race in shared memory at 0x8: warp 0 of cluster CTA 0 wrote it and this warp has not synchronised with it since",
    );
    for seed in 0..8 {
        let fault = run_one_cta(seed, 64, 1, &program("", "")).unwrap_err().to_string();
        assert!(
            fault.ends_with("there is no initialised mbarrier at 0x0: mbarrier.init it first")
                || fault.ends_with("the mbarrier at 0x0 was initialised by warp 0 of cluster CTA 0, and this warp has not synchronised with it since"),
            "{fault}"
        );
    }
}

#[test]
fn a_cluster_shares_mbarriers_and_memory() {
    // Every CTA writes its rank into its right neighbour's shared memory and arrives on the neighbour's mbarrier.
    let ptx = kernel(
        ".param .u64 out",
        ".shared .align 8 .b64 bar; .shared .u32 word; ld.param.u64 %rd1, [out];
         mov.u32 %r1, %cluster_ctarank; mov.u32 %r2, %cluster_nctarank; mov.u32 %r3, %ctaid.x;
         mbarrier.init.shared.b64 [bar], 1; fence.mbarrier_init.release.cluster;
         barrier.cluster.arrive.release; barrier.cluster.wait.acquire;
         add.u32 %r4, %r1, 1; rem.u32 %r4, %r4, %r2;
         mov.u32 %r5, word; mapa.shared::cluster.u32 %r6, %r5, %r4; st.shared::cluster.u32 [%r6], %r1;
         mov.u32 %r7, bar; mapa.shared::cluster.u32 %r8, %r7, %r4;
         getctarank.shared::cluster.u32 %r9, %r8; setp.ne.u32 %p1, %r9, %r4; @%p1 trap;
         mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r8];
         WAIT: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r7], 0; @!%p2 bra WAIT;
         ld.shared.u32 %r10, [word];
         mul.wide.u32 %rd2, %r3, 4; add.s64 %rd1, %rd1, %rd2; st.global.u32 [%rd1], %r10;
         barrier.cluster.arrive.relaxed; barrier.cluster.wait; ret;",
    );
    for seed in 0..8 {
        let mut machine = Machine::new(1, seed, &ptx);
        let out = machine.buffer(GPU, &[9; 8]);
        machine.run(launch(8, 4, 1), &[out]).unwrap();
        assert_eq!(machine.words(GPU, out, 8), [3, 0, 1, 2, 3, 0, 1, 2]);
    }
    // Leaving while the neighbour still writes is noticed, or harmless, by schedule; the barrier at the end is needed.
    let early = ptx.replace("barrier.cluster.arrive.relaxed; barrier.cluster.wait; ret;", "ret;");
    let faults = (0..32).filter(|&seed| {
        let mut machine = Machine::new(1, seed, &early);
        let out = machine.buffer(GPU, &[9; 8]);
        machine.run(launch(8, 4, 1), &[out]).is_err()
    });
    assert_eq!(faults.count(), 0, "each CTA waits for its own neighbour before it leaves");
}

#[test]
fn cluster_addresses_are_checked() {
    let ptx = kernel(
        "",
        ".shared .u32 word; mov.u32 %r1, word; add.u32 %r1, %r1, 0x5000000; st.shared::cluster.u32 [%r1], 1; ret;",
    );
    let fault = Machine::new(1, 0, &ptx).run(launch(2, 2, 1), &[]).unwrap_err().to_string();
    assert!(fault.contains("of a cluster of 2"), "{fault}");
    let ptx = kernel(
        "",
        ".shared .u32 word; mov.u32 %r1, word; mov.u32 %r2, %cluster_ctarank; xor.b32 %r2, %r2, 1;
         mapa.shared::cluster.u32 %r1, %r1, %r2; st.shared.u32 [%r1], 1; ret;",
    );
    let mut machine = Machine::new(1, 0, &ptx);
    let fault = machine.run(launch(2, 2, 1), &[]);
    // From CTA 0 the address names CTA 1. (From CTA 1 it has no rank bits and cannot be told from a plain offset.)
    assert!(fault.unwrap_err().to_string().contains(".shared::cta reaches the executing CTA 0 only"));
}

#[test]
fn cluster_barriers_alternate() {
    let fault = Machine::new(1, 0, &kernel("", "barrier.cluster.wait; ret;")).run(launch(2, 2, 1), &[]).unwrap_err();
    assert!(fault.to_string().ends_with("barrier.cluster.wait out of turn: a thread must alternate arrive and wait"));
}

/// Both CTAs of a cluster, one thread each: `remote` acts on the other's mbarrier (`%r8`, generic in `%rd8`), on which two
/// arrivals are expected; then each waits for its own and reads `word`, which the other wrote before.
fn remote(remote: &str) -> String {
    kernel(
        ".param .u64 out",
        &format!(
            ".shared .align 8 .b64 bar; .shared .u32 word; ld.param.u64 %rd1, [out];
             mov.u32 %r1, %cluster_ctarank; xor.b32 %r4, %r1, 1; mov.u32 %r7, bar; mov.u32 %r5, word;
             mapa.shared::cluster.u32 %r8, %r7, %r4; mapa.shared::cluster.u32 %r6, %r5, %r4;
             cvt.u64.u32 %rd7, %r7; cvta.shared.u64 %rd7, %rd7; mapa.u64 %rd8, %rd7, %r4;
             getctarank.u64 %r9, %rd8; setp.ne.u32 %p1, %r9, %r4; @%p1 trap;
             mbarrier.init.shared.b64 [bar], 2;
             barrier.cluster.arrive.release; barrier.cluster.wait.acquire;
             add.u32 %r2, %r1, 5; st.shared::cluster.u32 [%r6], %r2;
             {remote}
             WAIT: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [bar], 0; @!%p2 bra WAIT;
             ld.shared.u32 %r10, [word]; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2; st.global.u32 [%rd1], %r10;
             barrier.cluster.arrive.relaxed; barrier.cluster.wait; ret;"
        ),
    )
}

fn run_remote(seed: u64, statements: &str) -> Result<Vec<u32>, simulator::Fault> {
    let mut machine = Machine::new(1, seed, &remote(statements));
    let out = machine.buffer(GPU, &[0; 2]);
    machine.run(launch(2, 2, 1), &[out])?;
    Ok(machine.words(GPU, out, 2))
}

#[test]
fn remote_mbarriers() {
    let arrive = "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r8];";
    let cases = [
        "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r8], 2;".to_owned(),
        format!("{arrive} {arrive}"),
        format!("{arrive} mbarrier.arrive.release.cluster.b64 _, [%rd8];"),
        format!("mbarrier.arrive_drop.release.cluster.shared::cluster.b64 _, [%r8]; {arrive}"),
        format!(
            "mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%r8], 24; {arrive}
                 mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%r8], 24;"
        ),
        format!(
            "mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64 [%r8], 24; {arrive} {arrive}
                 mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%r8], 16;
                 mbarrier.complete_tx.relaxed.cluster.b64 [%rd8], 8;"
        ),
    ];
    for case in &cases {
        for seed in 0..8 {
            assert_eq!(run_remote(seed, case).unwrap_or_else(|fault| panic!("{case}: {fault}")), [6, 5], "{case}");
        }
    }
    // A relaxed arrival hands on no memory.
    for seed in 0..8 {
        let relaxed = "mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%r8], 2;";
        let fault = run_remote(seed, relaxed).unwrap_err().to_string();
        assert!(fault.contains("data race in shared memory at 0x8: warp 0 of cluster CTA"), "{fault}");
    }
    // Bytes that never come keep the phase open.
    let short = "mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%r8], 24; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r8];";
    assert!(run_remote(0, short).unwrap_err().to_string().contains("phase 0 has 0 of 2 arrivals and 24 bytes pending"));
    let wait = "mbarrier.test_wait.parity.b64 %p3, [%rd8], 0;";
    let fault = run_remote(0, wait).unwrap_err().to_string();
    assert!(fault.contains("mbarrier.test_wait works on the executing CTA's own shared memory only"), "{fault}");
}

#[test]
fn remote_mbarriers_return_no_state_and_cannot_be_waited_for() {
    let registers = ".reg .pred %p1; .reg .b32 %r<8>; .reg .b64 %rd<8>;";
    for (text, part) in [
        ("mbarrier.arrive.release.cluster.shared::cluster.b64 %rd1, [%r1];", "`_` (a remote barrier returns no state)"),
        ("mbarrier.try_wait.parity.shared::cluster.b64 %p1, [%rd1], 0;", "does not take `.shared::cluster` here"),
        ("mbarrier.init.shared::cluster.b64 [%rd1], 1;", "does not take `.shared::cluster` here"),
        ("mbarrier.complete_tx.relaxed.shared::cluster.b64 [%r1], 1;", "both an order and a scope, or neither"),
        ("mbarrier.complete_tx.release.cluster.shared::cluster.b64 [%r1], 1;", "both an order and a scope, or neither"),
    ] {
        let ptx = format!(
            ".version 8.8\n.target sm_100a\n.address_size 64\n.visible .entry k() {{ {registers} {text} ret; }}"
        );
        let error = simulator::ptx::load(&ptx).unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
}

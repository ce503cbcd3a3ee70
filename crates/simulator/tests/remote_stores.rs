//! `st.async` and `red.async`: values that arrive in another CTA's shared memory together with their bytes on its mbarrier.

mod common;
mod fixture;

use common::module;
use fixture::{GPU, Machine, kernel, launch};

/// Both CTAs of a cluster, a warp each, send something to the other's `theirs` (`%r10`; its mbarrier is at `%r11`), and
/// write the first 32 words of their own to `out` when `bytes` have come. `%r1` is the lane, `%r6` the lane + 100 * rank,
/// `%r12` the other's `theirs` + 4 * lane.
fn exchange(send: &str, bytes: u32) -> String {
    kernel(
        ".param .u64 out",
        &format!(
            ".shared .align 16 .b8 theirs[512]; .shared .align 8 .b64 bar;
             ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, %cluster_ctarank; xor.b32 %r3, %r2, 1;
             setp.ne.u32 %p1, %r1, 0; mov.u32 %r4, theirs; mad.lo.u32 %r5, %r1, 4, %r4; mad.lo.u32 %r6, %r2, 100, %r1;
             st.shared.u32 [%r5], 1000; st.shared.u32 [%r5+128], 0;
             mov.u32 %r9, bar; mapa.shared::cluster.u32 %r10, %r4, %r3; mapa.shared::cluster.u32 %r11, %r9, %r3;
             mapa.shared::cluster.u32 %r12, %r5, %r3; @!%p1 mbarrier.init.shared.b64 [bar], 1;
             barrier.cluster.arrive; barrier.cluster.wait;
             @!%p1 mbarrier.arrive.expect_tx.relaxed.cluster.shared::cta.b64 _, [bar], {bytes};
             {send}
             WAIT: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p3, [bar], 0; @!%p3 bra WAIT;
             ld.shared.u32 %r13, [%r5]; mov.u32 %r14, %ctaid.x; mad.lo.u32 %r14, %r14, 32, %r1;
             mul.wide.u32 %rd2, %r14, 4; add.u64 %rd1, %rd1, %rd2; st.global.u32 [%rd1], %r13;
             barrier.cluster.arrive; barrier.cluster.wait; ret;"
        ),
    )
}

/// The first words of both CTAs, which must not depend on the seed.
fn run(send: &str, bytes: u32) -> [Vec<u32>; 2] {
    let ptx = exchange(send, bytes);
    let results: Vec<_> = (0..8)
        .map(|seed| {
            let mut machine = Machine::new(1, seed, &ptx);
            let out = machine.buffer(GPU, &[0; 64]);
            machine.run(launch(2, 2, 32), &[out]).unwrap_or_else(|fault| panic!("{fault}"));
            let words = machine.words(GPU, out, 64);
            [words[..32].to_vec(), words[32..].to_vec()]
        })
        .collect();
    assert!(results.iter().all(|result| result == &results[0]));
    results[0].clone()
}

#[test]
fn stores_of_every_width() {
    let store = "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes";
    let [first, second] = run(&format!("{store}.b32 [%r12], %r6, [%r11];"), 128);
    assert_eq!(first, (100..132).collect::<Vec<_>>());
    assert_eq!(second, (0..32).collect::<Vec<_>>());
    // Without a state space both addresses are generic.
    let generic =
        "cvt.u64.u32 %rd3, %r12; cvta.shared.u64 %rd3, %rd3; cvt.u64.u32 %rd4, %r11; cvta.shared.u64 %rd4, %rd4;
                   st.async.mbarrier::complete_tx::bytes.u32 [%rd3], %r6, [%rd4];";
    assert_eq!(run(generic, 128)[1], (0..32).collect::<Vec<_>>());
    let lane = |statement: &str| format!("@!%p1 {statement}");
    assert_eq!(
        run(&lane(&format!("{store}.v2.f32 [%r10+8], {{%f1, %f1}}, [%r11];")), 8)[0][..6],
        [1000, 1000, 0, 0, 1000, 1000]
    );
    assert_eq!(
        run(&lane(&format!("{store}.v4.s32 [%r10+16], {{1, 2, 3, 4}}, [%r11];")), 16)[0][3..9],
        [1000, 1, 2, 3, 4, 1000]
    );
    let pair = format!("mov.u64 %rd3, 0x0000000200000001; @!%p1 {store}.v2.b64 [%r10], {{%rd3, 7}}, [%r11];");
    assert_eq!(run(&pair, 16)[0][..5], [1, 2, 7, 0, 1000]);
}

#[test]
fn reductions_add_up_in_any_order() {
    let reduce = "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes";
    type Case = (&'static str, u32);
    let cases: [Case; 8] = [
        ("add.u32", 1000 + 496),
        ("add.s32", 1000 + 496),
        ("min.u32", 0),
        ("max.s32", 1000),
        ("and.b32", 0),
        ("or.b32", 1000 | 31),
        ("xor.b32", 1000),
        ("dec.u32", 0),
    ];
    for (operation, expected) in cases {
        let operand = if operation.starts_with("dec") { "0" } else { "%r1" };
        let [first, second] = run(&format!("{reduce}.{operation} [%r10], {operand}, [%r11];"), 128);
        assert_eq!((first[0], second[0]), (expected, expected), "{operation}");
        assert_eq!(first[1], 1000);
    }
    assert_eq!(run(&format!("{reduce}.inc.u32 [%r10], 2000, [%r11];"), 128)[0][0], 1032);
    let wide = format!("mov.u64 %rd3, 0x100000000; {reduce}.add.u64 [%r10], %rd3, [%r11];");
    assert_eq!(run(&wide, 256)[0][..2], [1000, 1032]);
}

#[test]
fn other_spellings_are_refused() {
    let registers = ".reg .b16 %h<2>; .reg .b32 %r<4>; .reg .b64 %rd<4>;";
    let cases = [
        (
            "st.async.release.gpu.global.b32 [%rd1], %r1;",
            "`st.async.release.gpu.global.b32`: only stores to shared memory that complete on an mbarrier",
        ),
        (
            "st.async.mmio.release.sys.global.b32 [%rd1], %r1;",
            "only stores to shared memory that complete on an mbarrier",
        ),
        (
            "red.async.release.gpu.global.add.u32 [%rd1], %r1;",
            "only stores to shared memory that complete on an mbarrier",
        ),
        ("st.async.shared::cluster.b32 [%r1], %r2, [%r3];", "needs `.mbarrier::complete_tx::bytes`"),
        (
            "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b16 [%r1], %h1, [%r2];",
            "does not take `.b16` here",
        ),
        (
            "st.async.mbarrier::complete_tx::bytes.v4.b64 [%rd1], {%rd1, %rd1, %rd1, %rd1}, [%rd2];",
            "vectors over 16 bytes",
        ),
        ("red.async.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r1], %r1, [%r2];", "needs `.relaxed`"),
        (
            "red.async.relaxed.cta.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r1], %r1, [%r2];",
            "needs `.cluster`",
        ),
        (
            "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.min.u64 [%r1], %rd1, [%r2];",
            "does not take `.u64` here",
        ),
    ];
    for (text, part) in cases {
        let error = simulator::ptx::load(&module(&format!("{registers}\n{text}"))).unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
}

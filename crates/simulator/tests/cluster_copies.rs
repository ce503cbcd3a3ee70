//! Bulk copies and reductions between the shared memories of a cluster, and linear reductions into device memory.

mod common;
mod fixture;

use common::module;
use fixture::{GPU, Machine, kernel, launch};
use half::{bf16, f16};

/// Every CTA of one warp holds 16 words, lane + 100 * rank, and sends them to its right neighbour.
fn ring(copy: &str) -> String {
    kernel(
        ".param .u64 out",
        &format!(
            ".shared .align 128 .b8 mine[64]; .shared .align 128 .b8 theirs[64]; .shared .align 8 .b64 bar;
             ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, %cluster_ctarank; mov.u32 %r3, %cluster_nctarank;
             setp.ne.u32 %p1, %r1, 0; setp.lt.u32 %p2, %r1, 16; mov.u32 %r4, mine; mad.lo.u32 %r5, %r1, 4, %r4;
             mad.lo.u32 %r6, %r2, 100, %r1; @%p2 st.shared.u32 [%r5], %r6; @%p2 st.shared.u32 [%r5+128], 1000;
             @!%p1 mbarrier.init.shared.b64 [bar], 1; fence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta;
             barrier.cluster.arrive; barrier.cluster.wait;
             add.u32 %r7, %r2, 1; rem.u32 %r7, %r7, %r3; mov.u32 %r8, theirs; mov.u32 %r9, bar;
             mapa.shared::cluster.u32 %r10, %r8, %r7; mapa.shared::cluster.u32 %r11, %r9, %r7;
             @!%p1 mbarrier.arrive.expect_tx.relaxed.cluster.shared::cta.b64 _, [bar], 64;
             @!%p1 {copy}
             WAIT: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p3, [bar], 0; @!%p3 bra WAIT;
             @%p2 ld.shared.u32 %r12, [%r5+128]; mov.u32 %r13, %ctaid.x; mad.lo.u32 %r13, %r13, 16, %r1;
             mul.wide.u32 %rd2, %r13, 4; add.u64 %rd1, %rd1, %rd2; @%p2 st.global.u32 [%rd1], %r12;
             barrier.cluster.arrive; barrier.cluster.wait; ret;"
        ),
    )
}

fn run_ring(copy: &str, ctas: u32, expected: impl Fn(u32) -> u32) {
    let ptx = ring(copy);
    for seed in 0..8 {
        let mut machine = Machine::new(1, seed, &ptx);
        let out = machine.buffer(GPU, &vec![0; 16 * ctas as usize]);
        machine.run(launch(ctas, ctas, 32), &[out]).unwrap();
        let sent = |cta: u32, word: u32| (cta + ctas - 1) % ctas * 100 + word;
        let wanted: Vec<u32> = (0..ctas)
            .flat_map(|cta| (0..16).map(move |word| (cta, word)))
            .map(|(cta, word)| expected(sent(cta, word)))
            .collect();
        assert_eq!(machine.words(GPU, out, wanted.len()), wanted, "seed {seed}");
    }
}

#[test]
fn copies_go_round_a_cluster() {
    for ctas in [2, 4] {
        run_ring(
            "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r10], [mine], 64, [%r11];",
            ctas,
            |word| word,
        );
    }
}

#[test]
fn reductions_into_a_neighbours_shared_memory() {
    type Case = (&'static str, fn(u32) -> u32);
    let cases: [Case; 9] = [
        ("add.u32", |word| 1000 + word),
        ("add.s32", |word| 1000 + word),
        ("min.u32", |word| word),
        ("max.s32", |_| 1000),
        ("and.b32", |word| 1000 & word),
        ("or.b32", |word| 1000 | word),
        ("xor.b32", |word| 1000 ^ word),
        ("inc.u32", |_| 0),
        ("dec.u32", |word| word),
    ];
    for (operation, expected) in cases {
        let copy = format!(
            "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.{operation} [%r10], [mine], 64, [%r11];"
        );
        run_ring(&copy, 2, expected);
    }
}

/// Three CTAs add into the fourth's shared memory at once.
#[test]
fn reductions_into_one_place_do_not_race() {
    let ptx = kernel(
        ".param .u64 out",
        ".shared .align 16 .b8 mine[16]; .shared .align 16 .b8 sum[16]; .shared .align 8 .b64 bar;
         ld.param.u64 %rd1, [out]; mov.u32 %r2, %cluster_ctarank; setp.ne.u32 %p1, %r2, 0;
         st.shared.v4.u32 [mine], {%r2, 1, 2, 3}; st.shared.v4.u32 [sum], {0, 0, 0, 0};
         mbarrier.init.shared.b64 [bar], 1; fence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta;
         barrier.cluster.arrive; barrier.cluster.wait;
         mov.u32 %r8, sum; mov.u32 %r9, bar; mapa.shared::cluster.u32 %r10, %r8, 0; mapa.shared::cluster.u32 %r11, %r9, 0;
         @%p1 cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32 [%r10], [mine], 16, [%r11];
         @%p1 bra END;
         mbarrier.arrive.expect_tx.shared.b64 _, [bar], 48;
         WAIT: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p3, [bar], 0; @!%p3 bra WAIT;
         ld.shared.v4.u32 {%r3, %r4, %r5, %r6}, [sum]; st.global.v4.u32 [%rd1], {%r3, %r4, %r5, %r6};
         END: barrier.cluster.arrive; barrier.cluster.wait; ret;",
    );
    for seed in 0..8 {
        let mut machine = Machine::new(1, seed, &ptx);
        let out = machine.buffer(GPU, &[0; 4]);
        machine.run(launch(4, 4, 1), &[out]).unwrap();
        assert_eq!(machine.words(GPU, out, 4), [6, 3, 6, 9]);
    }
}

/// `operation` of 16 bytes of shared memory into 16 bytes of device memory.
fn reduce(operation: &str, memory: [u8; 16], operand: [u8; 16]) -> [u8; 16] {
    let ptx = kernel(
        ".param .u64 out, .param .u64 operand",
        &format!(
            ".shared .align 16 .b8 buffer[16]; ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [operand];
             ld.global.v2.u64 {{%rd3, %rd4}}, [%rd2]; st.shared.v2.u64 [buffer], {{%rd3, %rd4}}; fence.proxy.async.shared::cta;
             cp.reduce.async.bulk.global.shared::cta.bulk_group.{operation} [%rd1], [buffer], 16;
             cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; ret;"
        ),
    );
    let mut machine = Machine::new(1, 0, &ptx);
    let [out, operand] = [memory, operand].map(|bytes| {
        let address = machine.node.allocate(GPU, 16).unwrap();
        machine.node.write(GPU, address, &bytes).unwrap();
        address
    });
    machine.run(launch(1, 1, 1), &[out, operand]).unwrap();
    let mut bytes = [0; 16];
    machine.node.read(GPU, out, &mut bytes).unwrap();
    bytes
}

fn fill<const N: usize>(element: [u8; N]) -> [u8; 16] {
    std::array::from_fn(|i| element[i % N])
}

#[test]
fn reductions_into_device_memory() {
    let word = |operation: &str, a: u32, b: u32| {
        u32::from_le_bytes(reduce(operation, fill(a.to_le_bytes()), fill(b.to_le_bytes()))[12..].try_into().unwrap())
    };
    let double = |operation: &str, a: u64, b: u64| {
        u64::from_le_bytes(reduce(operation, fill(a.to_le_bytes()), fill(b.to_le_bytes()))[8..].try_into().unwrap())
    };
    let half = |operation: &str, a: u16, b: u16| {
        u16::from_le_bytes(reduce(operation, fill(a.to_le_bytes()), fill(b.to_le_bytes()))[14..].try_into().unwrap())
    };
    let minus = -5i32 as u32;
    assert_eq!(word("add.u32", u32::MAX, 2), 1);
    assert_eq!(word("add.s32", minus, 2), -3i32 as u32);
    assert_eq!(word("min.s32", minus, 2), minus);
    assert_eq!(word("max.u32", minus, 2), minus);
    assert_eq!(word("inc.u32", 6, 6), 0);
    assert_eq!(word("dec.u32", 0, 6), 6);
    assert_eq!(word("xor.b32", 0b1100, 0b1010), 0b0110);
    assert_eq!(double("and.b64", u64::MAX, 1 << 60), 1 << 60);
    assert_eq!(double("or.b64", 1, 1 << 60), 1 << 60 | 1);
    assert_eq!(double("add.u64", u64::MAX, 2), 1);
    assert_eq!(double("max.s64", u64::MAX, 2), 2);
    assert_eq!(double("min.u64", u64::MAX, 2), 2);
    assert_eq!(double("add.f64", 1.5f64.to_bits(), 1e-300f64.to_bits()), 1.5f64.to_bits());
    assert_eq!(half("add.noftz.f16", f16::from_f32(1.5).to_bits(), 1), f16::from_f32(1.5).to_bits());
    assert_eq!(half("add.noftz.f16", 1, 1), 2);
    assert_eq!(
        half("add.noftz.bf16", bf16::from_f32(3.0).to_bits(), bf16::from_f32(4.5).to_bits()),
        bf16::from_f32(7.5).to_bits()
    );
    assert_eq!(
        half("min.bf16", bf16::from_f32(3.0).to_bits(), bf16::from_f32(-4.5).to_bits()),
        bf16::from_f32(-4.5).to_bits()
    );
    assert_eq!(
        half("max.f16", f16::from_f32(3.0).to_bits(), f16::from_f32(-4.5).to_bits()),
        f16::from_f32(3.0).to_bits()
    );
    let single = |a: f32, b: f32| word("add.f32", a.to_bits(), b.to_bits());
    assert_eq!(single(1.5, 2.25), 3.75f32.to_bits());
    // "flushes subnormal inputs and results to sign-preserving zero" (PTX ISA, cp.reduce.async.bulk).
    let smallest = f32::MIN_POSITIVE;
    assert_eq!(single(smallest, smallest / 2.0), smallest.to_bits());
    assert_eq!(single(-1.5 * smallest, smallest), (-0f32).to_bits());
}

#[test]
fn spellings_that_the_isa_lacks_are_refused() {
    let registers = ".reg .b16 %h<2>; .reg .b32 %r<4>; .reg .b64 %rd<4>; .shared .align 16 .b8 buffer[16];";
    let global = "cp.reduce.async.bulk.global.shared::cta.bulk_group";
    let shared = "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes";
    let cases = [
        (format!("{global}.add.f16 [%rd1], [buffer], 16;"), "needs `.noftz` with `.add` of half-precision types, and only with it"),
        (format!("{global}.min.noftz.f16 [%rd1], [buffer], 16;"), "needs `.noftz` with `.add` of half-precision types, and only with it"),
        (format!("{global}.add.s64 [%rd1], [buffer], 16;"), "does not take `.s64` here"),
        (format!("{global}.min.f32 [%rd1], [buffer], 16;"), "does not take `.f32` here"),
        (format!("{global}.inc.s32 [%rd1], [buffer], 16;"), "does not take `.s32` here"),
        (format!("{shared}.and.b64 [%r1], [buffer], 16, [%r2];"), "does not take `.b64` here"),
        (format!("{shared}.add.f32 [%r1], [buffer], 16, [%r2];"), "does not take `.f32` here"),
        (
            "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster [%r1], [buffer], 16, [%r2], %h1;".into(),
            "operands",
        ),
        (
            "cp.async.bulk.shared::cta.shared::cta.mbarrier::complete_tx::bytes [%r1], [buffer], 16, [%r2];".into(),
            "unsupported: `cp.async.bulk.shared::cta.shared::cta.mbarrier::complete_tx::bytes`",
        ),
        (
            "cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%rd1], [buffer], 16, %h1;".into(),
            "unsupported: `cp.async.bulk.global.shared::cta.bulk_group.cp_mask`: byte masks",
        ),
    ];
    for (text, part) in cases {
        let error = simulator::ptx::load(&module(&format!("{registers}\n{text}"))).unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
    for text in [
        "cp.async.bulk.prefetch.L2.global [%rd1], 16;",
        "cp.async.bulk.prefetch.L2.global.L2::cache_hint [%rd1], 16, %rd2;",
    ] {
        simulator::ptx::load(&module(&format!("{registers}\n{text}"))).unwrap();
    }
}

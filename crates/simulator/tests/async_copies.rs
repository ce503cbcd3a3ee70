//! `cp.async`: groups, zero fill, mbarriers, and what a missing wait is reported as.

mod fixture;

use fixture::{GPU, Machine, kernel, launch};
use simulator::Fault;
use simulator::program::{AsyncCopy, Operand, Operation, StateSpace};
use simulator::trace::EventKind;
use std::sync::{Arc, Mutex};

/// Runs one CTA that takes a source of words 0x01010101 * i (wrapping) and an output of as many words.
fn run(seed: u64, block: u32, body: &str) -> Result<Vec<u32>, Fault> {
    const HEAD: &str = ".shared .align 128 .b8 tile[1024]; .shared .align 8 .b64 bar;
        ld.param.u64 %rd1, [source]; ld.param.u64 %rd2, [out];
        mov.u32 %r1, %tid.x; mov.u32 %r2, tile; shl.b32 %r3, %r1, 4; add.u32 %r4, %r2, %r3; mov.u32 %r40, bar;
        cvt.u64.u32 %rd3, %r3; add.s64 %rd1, %rd1, %rd3; add.s64 %rd2, %rd2, %rd3;";
    const TAIL: &str = "STORE: ld.shared.v4.b32 {%r10, %r11, %r12, %r13}, [%r4];
        st.global.v4.b32 [%rd2], {%r10, %r11, %r12, %r13}; ret;";
    let words = 4 * block as usize;
    let ptx = kernel(".param .u64 source, .param .u64 out", &format!("{HEAD}\n{body}\n{TAIL}"));
    let mut machine = Machine::new(1, seed, &ptx);
    let source = machine.buffer(GPU, &source(words));
    let out = machine.buffer(GPU, &vec![0; words]);
    machine.run(launch(1, 1, block), &[source, out])?;
    Ok(machine.words(GPU, out, words))
}

fn source(words: usize) -> Vec<u32> {
    (1..=words as u32).map(|i| i.wrapping_mul(0x0101_0101)).collect()
}

#[track_caller]
fn assert_fault(block: u32, body: &str, ending: &str) {
    for seed in 0..8 {
        let message = run(seed, block, body).expect_err("no fault").to_string();
        assert!(message.ends_with(ending), "seed {seed}: expected\n  {ending}\nbut it is\n  {message}");
    }
}

#[test]
fn copies_of_every_size_arrive() {
    let body = "cp.async.cg.shared.global [%r4], [%rd1], 16; cp.async.commit_group; cp.async.wait_group 0;";
    assert_eq!(run(1, 32, body).unwrap(), source(128));
    let body =
        "cp.async.ca.shared.global [%r4], [%rd1], 4; cp.async.ca.shared::cta.global.L2::128B [%r4+4], [%rd1+4], 4;
        cp.async.ca.shared.global [%r4+8], [%rd1+8], 8; cp.async.wait_all;";
    assert_eq!(run(1, 32, body).unwrap(), source(128));
}

#[test]
fn what_is_not_read_is_zero() {
    let all = source(4);
    let mixed = "mov.u32 %r5, 6; cp.async.cg.shared.global [%r4], [%rd1], 16, %r5; cp.async.wait_all;";
    assert_eq!(run(1, 1, mixed).unwrap(), [all[0], all[1] & 0xffff, 0, 0]);
    // Nothing is read where the size is zero, so that the address may be anything.
    let none = "mov.u64 %rd1, 5; cp.async.cg.shared.global [%r4], [%rd1], 16, 0; cp.async.wait_all;";
    assert_eq!(run(1, 1, none).unwrap(), [0; 4]);
    let ignored = "setp.eq.u32 %p1, %r1, 1; cp.async.cg.shared.global [%r4], [%rd1], 16, %p1; cp.async.wait_all;";
    assert_eq!(run(1, 2, ignored).unwrap(), [&source(4)[..], &[0; 4]].concat());
}

#[test]
fn groups_complete_in_order() {
    // The older of two groups is waited for; reading its bytes is legal, reading the newer one's is not.
    let pipeline = |read: &str| {
        format!(
            "cp.async.ca.shared.global [%r4], [%rd1], 8; cp.async.commit_group;
             cp.async.ca.shared.global [%r4+8], [%rd1+8], 8; cp.async.commit_group;
             cp.async.wait_group 1; ld.shared.b32 %r20, [%r4+{read}]; cp.async.wait_group 0;"
        )
    };
    assert_eq!(run(1, 32, &pipeline("4")).unwrap(), source(128));
    assert_fault(
        32,
        &pipeline("8"),
        "lane 0: shared memory at 0x8 is the destination of a cp.async of warp 0 of cluster CTA 0 that is still in flight: wait for it with cp.async.wait_group, cp.async.wait_all or an mbarrier first",
    );
}

#[test]
fn a_copy_that_was_not_committed_is_not_waited_for() {
    assert_fault(
        32,
        "cp.async.cg.shared.global [%r4], [%rd1], 16; cp.async.wait_group 0;",
        "shared memory at 0x0 is the destination of a cp.async of warp 0 of cluster CTA 0 that is still in flight: wait for it with cp.async.wait_group, cp.async.wait_all or an mbarrier first",
    );
}

#[test]
fn other_warps_need_a_barrier_after_the_wait() {
    let swap = "xor.b32 %r4, %r4, 512;";
    let body = format!(
        "cp.async.cg.shared.global [%r4], [%rd1], 16; cp.async.commit_group; cp.async.wait_group 0; bar.sync 0; {swap}"
    );
    let all = source(256);
    let swapped = [&all[128..], &all[..128]].concat();
    for seed in 0..8 {
        assert_eq!(run(seed, 64, &body).unwrap(), swapped);
    }
    // A barrier before the wait does not help.
    let body = format!(
        "cp.async.cg.shared.global [%r4], [%rd1], 16; cp.async.commit_group; bar.sync 0; cp.async.wait_group 0; {swap}"
    );
    for seed in 0..8 {
        let message = run(seed, 64, &body).expect_err("no fault").to_string();
        let race = message.contains("data race in shared memory");
        assert!(race || message.contains("still in flight"), "{message}");
    }
}

#[test]
fn an_mbarrier_tells_of_copies() {
    let body = |init: u32, form: &str, arrive: &str| {
        format!(
            "setp.ne.u32 %p1, %r1, 0; @%p1 bra READY; mbarrier.init.shared.b64 [%r40], {init}; READY: bar.sync 0;
             cp.async.cg.shared.global [%r4], [%rd1], 16; cp.async.mbarrier.arrive{form}.shared::cta.b64 [%r40]; {arrive}
             WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [%r40], 0; @!%p2 bra WAIT; xor.b32 %r4, %r4, 512;"
        )
    };
    let all = source(256);
    let swapped = [&all[128..], &all[..128]].concat();
    for seed in 0..8 {
        assert_eq!(run(seed, 64, &body(64, ".noinc", "")).unwrap(), swapped);
        // The arrival comes on top of those expected.
        assert_eq!(run(seed, 64, &body(64, "", "mbarrier.arrive.shared.b64 _, [%r40];")).unwrap(), swapped);
    }
}

#[test]
fn wrong_copies_are_refused() {
    assert_fault(
        1,
        "cp.async.cg.shared.global [%r4+8], [%rd1], 16; cp.async.wait_all;",
        "lane 0: store of 16 bytes at 0x8: the address must be a multiple of 16",
    );
    assert_fault(
        1,
        "mov.u32 %r5, 17; cp.async.cg.shared.global [%r4], [%rd1], 16, %r5; cp.async.wait_all;",
        "lane 0: cp.async: the source size 17 exceeds the size 16 of the copy",
    );
    assert_fault(
        1,
        "mov.u64 %rd1, 0; cp.async.cg.shared.global [%r4], [%rd1], 16; cp.async.wait_all;",
        "lane 0: load of 16 bytes at 0x0: no memory is mapped there",
    );
}

fn decode(text: &str) -> Result<Operation, String> {
    let module = simulator::ptx::load(&kernel("", text)).map_err(|error| error.to_string())?;
    Ok(module.kernels[0].instructions[0].operation.clone())
}

#[test]
fn every_form_decodes() {
    macro_rules! decodes {
        ($text:expr, $pattern:pat $(if $guard:expr)?) => {{
            let operation = decode($text).unwrap();
            assert!(matches!(operation, Operation::AsyncCopy($pattern) $(if $guard)?), "{}\n{operation:?}", $text);
        }};
    }
    use AsyncCopy as C;
    decodes!(
        "cp.async.ca.shared.global [%r1], [%rd1], 4;",
        C::Copy { bytes: 4, source_bytes: None, ignore_source: None, .. }
    );
    decodes!(
        "cp.async.cg.shared.global.L2::cache_hint.L2::256B [%r1], [%rd1], 16, 0, %rd2;",
        C::Copy { bytes: 16, source_bytes: Some(Operand::Immediate(0)), .. }
    );
    decodes!("cp.async.ca.shared.global [%r1], [%rd1], 8, !%p1;", C::Copy { ignore_source: Some(p), .. } if p.negated);
    decodes!("cp.async.ca.shared.global.L2::cache_hint [%r1], [%rd1], 8, %rd2;", C::Copy { source_bytes: None, .. });
    decodes!("cp.async.commit_group;", C::CommitGroup);
    decodes!("cp.async.wait_group 3;", C::WaitGroup { pending: 3 });
    decodes!("cp.async.wait_all;", C::WaitAll);
    decodes!(
        "cp.async.mbarrier.arrive.b64 [%rd1];",
        C::MbarrierArrive { space: StateSpace::Generic, no_increment: false, .. }
    );
    let refusal = decode("cp.async.cg.shared.global [%r1], [%rd1], 8;").unwrap_err();
    assert_eq!(refusal, "the size must be 16 with `.cg`");
}

/// Stages of operations and changes of mbarriers, in order.
fn observed(block: u32, body: &str) -> Vec<String> {
    let ptx = kernel(".param .u64 source", &format!("ld.param.u64 %rd1, [source]; mov.u32 %r1, %tid.x; {body} ret;"));
    let mut machine = Machine::new(1, 1, &ptx);
    let source = machine.buffer(GPU, &source(128));
    let events = Arc::new(Mutex::new(Vec::new()));
    let seen = events.clone();
    machine.node.observe(move |event| {
        seen.lock().unwrap().extend(match event.kind {
            EventKind::Operation { number, operation, stage, .. } => Some(format!("{number} {operation:?} {stage:?}")),
            EventKind::Mbarrier { change, state, .. } => Some(format!("{change:?}, {} pending", state.pending)),
            _ => None,
        });
    });
    machine.run(launch(1, 1, block), &[source]).unwrap();
    events.lock().unwrap().clone()
}

#[test]
fn an_observer_is_told_when_copies_are_waited_for() {
    let body = ".shared .align 16 .b8 tile[64];
        cp.async.cg.shared.global [tile], [%rd1], 16; cp.async.commit_group;
        cp.async.ca.shared.global [tile+16], [%rd1+16], 8; cp.async.commit_group;
        cp.async.wait_group 1; cp.async.wait_group 0;";
    let expected = [
        "0 AsyncCopy { bytes: 16 } Issued",
        "1 AsyncCopy { bytes: 8 } Issued",
        "0 AsyncCopy { bytes: 16 } Completed",
        "1 AsyncCopy { bytes: 8 } Completed",
    ];
    assert_eq!(observed(1, body), expected);
    // The bytes are those of all lanes, and the copies are complete when the last lane has waited.
    let body = ".shared .align 16 .b8 tile[64]; mov.u32 %r2, tile; shl.b32 %r3, %r1, 4; add.u32 %r2, %r2, %r3;
        cp.async.cg.shared.global [%r2], [%rd1], 16; setp.eq.u32 %p1, %r1, 0; @%p1 cp.async.wait_all;
        @!%p1 cp.async.wait_all;";
    assert_eq!(observed(4, body), ["0 AsyncCopy { bytes: 64 } Issued", "0 AsyncCopy { bytes: 64 } Completed"]);
}

#[test]
fn an_observer_is_told_of_arrivals_for_copies() {
    let body = |form: &str| {
        format!(
            ".shared .align 16 .b8 tile[64]; .shared .align 8 .b64 bar; mbarrier.init.shared.b64 [bar], 1;
             cp.async.cg.shared.global [tile], [%rd1], 16; cp.async.mbarrier.arrive{form}.shared::cta.b64 [bar];"
        )
    };
    let copy = ["Initialised, 1 pending", "0 AsyncCopy { bytes: 16 } Issued", "0 AsyncCopy { bytes: 16 } Completed"];
    let arrived = "Arrived { arrivals: 1, expect_bytes: 0 }, 0 pending";
    assert_eq!(observed(1, &body(".noinc")), [&copy[..], &[arrived, "PhaseCompleted, 1 pending"]].concat());
    assert_eq!(observed(1, &body("")), [&copy[..], &["ArrivedOnTop, 1 pending"]].concat());
}

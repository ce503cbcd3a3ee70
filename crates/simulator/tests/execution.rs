//! Plain kernels: grids, divergence, shared memory, atomics, determinism.

mod fixture;

use fixture::{GPU, Machine, assert_fault, assert_passes, kernel, launch, run_one_cta};

/// `%rd1` = address of this thread's word of the output, `%r1` = thread index.
const OWN_WORD: &str = "
    ld.param.u64 %rd1, [out]; cvta.to.global.u64 %rd1, %rd1;
    mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2;";

#[test]
fn a_grid_adds_vectors() {
    let ptx = kernel(
        ".param .u64 a, .param .u64 b, .param .u64 n",
        "ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u32 %r4, [n];
         mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.s32 %r1, %r1, %r2, %r3;
         setp.ge.u32 %p1, %r1, %r4; @%p1 bra DONE;
         mul.wide.u32 %rd3, %r1, 4; add.s64 %rd1, %rd1, %rd3; add.s64 %rd2, %rd2, %rd3;
         ld.global.u32 %r5, [%rd1]; ld.global.u32 %r6, [%rd2]; add.u32 %r5, %r5, %r6; st.global.u32 [%rd2], %r5;
         DONE: ret;",
    );
    let mut machine = Machine::new(1, 3, &ptx);
    let n = 10_000;
    let a = machine.buffer(GPU, &(0..n).collect::<Vec<_>>());
    let b = machine.buffer(GPU, &vec![7; n as usize]);
    machine.run(launch(n.div_ceil(96), 1, 96), &[a, b, n.into()]).unwrap();
    assert_eq!(machine.words(GPU, b, n as usize), (7..n + 7).collect::<Vec<_>>());
    let counters = machine.node.counters(GPU);
    assert_eq!(counters.ctas_retired, u64::from(n.div_ceil(96)));
    assert_eq!(counters.global_bytes_read, 8 * u64::from(n));
    assert_eq!(counters.global_bytes_written, 4 * u64::from(n));
    assert_eq!(counters.global_sectors_written, u64::from(n) / 8);
}

#[test]
fn lanes_that_diverge_come_together() {
    // Lanes loop a different number of times; the aligned barrier behind the loop must see them all.
    let body = format!(
        "{OWN_WORD}
         mov.u32 %r2, 0; mov.u32 %r3, 0;
         LOOP: setp.gt.u32 %p1, %r2, %r1; @%p1 bra END;
         and.b32 %r4, %r2, 1; setp.eq.u32 %p2, %r4, 0; @%p2 bra EVEN;
         add.u32 %r3, %r3, 1; bra NEXT;
         EVEN: add.u32 %r3, %r3, 10;
         NEXT: add.u32 %r2, %r2, 1; bra LOOP;
         END: bar.sync 0;
         st.global.u32 [%rd1], %r3; ret;"
    );
    for seed in 0..8 {
        let out = run_one_cta(seed, 64, 64, &body).unwrap();
        let expected: Vec<u32> = (0..64u32).map(|t| t.div_ceil(2) + 10 * (t / 2 + 1)).collect();
        assert_eq!(out, expected);
    }
}

#[test]
fn an_aligned_barrier_in_a_divergent_branch_is_refused() {
    assert_fault(
        32,
        "mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 16; @%p1 bra A; bra B;
         A: bar.sync 0;
         B: ret;",
        "GPU 0, CTA (0,0,0), warp 0, lanes 0x0000ffff: .aligned instruction reached by lanes 0x0000ffff of a warp whose live lanes are 0xffffffff: all must execute it together",
    );
}

#[test]
fn lanes_waiting_for_parked_siblings_make_progress() {
    // Lane 0 waits for a word that lane 1 writes behind the point where the compiler would let them converge.
    let body = format!(
        "{OWN_WORD} .shared .u32 flag;
         setp.ne.u32 %p1, %r1, 0; 
         @!%p1 st.shared.u32 [flag], 0;
         bar.sync 0;
         @%p1 bra OTHERS;
         WAIT: ld.volatile.shared.u32 %r2, [flag]; setp.eq.u32 %p2, %r2, 0; @%p2 bra WAIT;
         OTHERS: setp.eq.u32 %p3, %r1, 1; @%p3 st.volatile.shared.u32 [flag], 1;
         bar.sync 0;
         st.global.u32 [%rd1], 5; ret;"
    );
    for seed in 0..8 {
        assert_eq!(run_one_cta(seed, 32, 32, &body).unwrap(), vec![5; 32]);
    }
}

#[test]
fn shuffles_votes_and_elections_gather_their_members() {
    let body = format!(
        "{OWN_WORD}
         setp.lt.u32 %p1, %r1, 8; @%p1 bra LOW;
         shfl.sync.down.b32 %r2, %r1, 1, 31, 0xffffff00; bra JOIN;
         LOW: shfl.sync.bfly.b32 %r2, %r1, 1, 31, 0xff;
         JOIN: elect.sync %r3|%p2, 0xffffffff;
         selp.u32 %r4, 100, 0, %p2; add.u32 %r2, %r2, %r4;
         setp.gt.u32 %p3, %r1, 15; vote.sync.ballot.b32 %r5, %p3, 0xffffffff; popc.b32 %r5, %r5;
         mad.lo.u32 %r2, %r5, 1000, %r2;
         redux.sync.add.u32 %r6, %r1, 0xffffffff; mad.lo.u32 %r2, %r6, 100000, %r2;
         st.global.u32 [%rd1], %r2; ret;"
    );
    let expected: Vec<u32> = (0..32u32)
        .map(|lane| {
            let shuffled = if lane < 8 { lane ^ 1 } else { (lane + 1).min(31) };
            shuffled + if lane == 0 { 100 } else { 0 } + 16 * 1000 + 496 * 100_000
        })
        .collect();
    for seed in 0..8 {
        assert_eq!(run_one_cta(seed, 32, 32, &body).unwrap(), expected);
    }
}

#[test]
fn named_barriers_pass_values_between_warps() {
    // Warp 1 produces, warps 0 and 2 consume: arrive on one side, sync on the other.
    let body = format!(
        "{OWN_WORD} .shared .u32 value[4];
         shr.u32 %r2, %r1, 5;
         setp.eq.u32 %p1, %r2, 1; @%p1 bra PRODUCE;
         bar.sync 3, 96; ld.shared.u32 %r3, [value+4]; st.global.u32 [%rd1], %r3; ret;
         PRODUCE: st.shared.u32 [value+4], 42; bar.arrive 3, 96; st.global.u32 [%rd1], 1; ret;"
    );
    // Every lane of the producing warp stores the same word, which is no race.
    for seed in 0..8 {
        let out = run_one_cta(seed, 96, 96, &body).unwrap();
        assert!(out.iter().enumerate().all(|(t, &v)| v == if t / 32 == 1 { 1 } else { 42 }));
    }
}

#[test]
fn barrier_reductions_reach_every_warp() {
    let body = format!(
        "{OWN_WORD}
         setp.lt.u32 %p1, %r1, 40;
         bar.red.popc.u32 %r2, 0, %p1; bar.red.and.pred %p2, 0, %p1; bar.red.or.pred %p3, 0, %p1;
         selp.u32 %r3, 1000, 0, %p2; selp.u32 %r4, 100, 0, %p3; add.u32 %r2, %r2, %r3; add.u32 %r2, %r2, %r4;
         st.global.u32 [%rd1], %r2; ret;"
    );
    for seed in 0..8 {
        assert_eq!(run_one_cta(seed, 64, 64, &body).unwrap(), vec![140; 64]);
    }
}

#[test]
fn atomics_from_all_warps_add_up() {
    let body = "ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x;
         atom.global.add.u32 %r2, [%rd1], 1; red.global.max.u32 [%rd1+4], %r1; red.release.gpu.global.add.u32 [%rd1+8], %r1;
         ret;";
    let out = run_one_cta(1, 256, 3, body).unwrap();
    assert_eq!(out, [256, 255, 255 * 128]);
}

#[test]
fn the_same_seed_gives_the_same_run() {
    // The order in which CTAs take tickets depends on the schedule, and only on it.
    let ptx = kernel(
        ".param .u64 counter, .param .u64 order",
        "ld.param.u64 %rd1, [counter]; ld.param.u64 %rd2, [order]; mov.u32 %r1, %ctaid.x;
         mov.u32 %r3, %tid.x; setp.ne.u32 %p1, %r3, 0; @%p1 bra END;
         atom.global.add.u32 %r2, [%rd1], 1; mul.wide.u32 %rd3, %r2, 4; add.s64 %rd2, %rd2, %rd3;
         st.global.u32 [%rd2], %r1;
         END: ret;",
    );
    let order = |seed| {
        let mut machine = Machine::new(1, seed, &ptx);
        let counter = machine.buffer(GPU, &[0]);
        let out = machine.buffer(GPU, &[0; 64]);
        machine.run(launch(64, 1, 64), &[counter, out]).unwrap();
        (machine.words(GPU, out, 64), machine.node.counters(GPU), machine.node.time_ns())
    };
    let first = order(11);
    assert_eq!(first, order(11));
    assert!((0..8).any(|seed| order(seed).0 != first.0), "no seed changes the order");
}

#[test]
fn local_memory_and_generic_addresses_work() {
    let body = format!(
        "{OWN_WORD} .local .align 8 .b8 depot[64]; .shared .align 8 .u32 word[32];
         mov.u64 %rd3, depot; cvta.local.u64 %rd3, %rd3;
         mul.wide.u32 %rd4, %r1, 4; add.s64 %rd5, %rd3, 8; st.u32 [%rd5], %r1; ld.u32 %r2, [%rd5];
         mov.u64 %rd6, word; cvta.shared.u64 %rd6, %rd6; add.s64 %rd6, %rd6, %rd4; st.u32 [%rd6], %r2;
         ld.u32 %r3, [%rd6]; add.u32 %r3, %r3, 1; st.u32 [%rd1], %r3; ret;"
    );
    assert_eq!(run_one_cta(0, 32, 32, &body).unwrap(), (1..33).collect::<Vec<_>>());
    assert_passes(32, &body);
}

#[test]
fn time_passes_for_those_who_wait_for_it() {
    // Ten simulated seconds.
    assert_passes(
        32,
        "mov.u64 %rd1, %globaltimer; add.s64 %rd1, %rd1, 10000000000;
         WAIT: mov.u64 %rd2, %globaltimer; setp.lt.u64 %p1, %rd2, %rd1; @%p1 bra WAIT; nanosleep.u32 100; ret;",
    );
}

#[test]
fn an_endless_loop_ends_the_run() {
    let mut machine = Machine::new(1, 0, &kernel("", "LOOP: add.u32 %r1, %r1, 1; bra LOOP;"));
    machine.node.set_spin_limit(10_000);
    let fault = machine.run(launch(1, 1, 32), &[]).unwrap_err().to_string();
    assert!(fault.contains("this warp runs in circles"), "{fault}");
}

#[test]
fn a_limit_ends_even_a_loop_that_writes() {
    let body = "ld.param.u64 %rd1, [out]; LOOP: add.u32 %r1, %r1, 1; st.global.u32 [%rd1], %r1; bra LOOP;";
    let mut machine = Machine::new(1, 0, &kernel(".param .u64 out", body));
    let out = machine.buffer(GPU, &[0]);
    machine.node.set_instruction_limit(10_000);
    let fault = machine.run(launch(1, 1, 1), &[out]).unwrap_err().to_string();
    let text = "the node has executed more than 10000 instructions, the limit that Node::set_instruction_limit gave it";
    assert!(fault.ends_with(text), "{fault}");
}

//! Several GPUs: flags in peer memory, multicast, deadlock reports, aliases.

mod fixture;

use fixture::{GPU, Machine, kernel, launch};
use simulator::Fault;
use simulator::node::{GpuId, Progress};

/// Memory on every GPU, bound to one multicast object; gives (unicast, multicast) addresses per GPU.
fn symmetric(machine: &mut Machine, gpus: u32, words: &[u32]) -> Vec<(u64, u64)> {
    let bytes = 4 * words.len() as u64;
    let ids: Vec<GpuId> = (0..gpus).map(GpuId).collect();
    let object = machine.node.create_multicast(&ids, bytes).unwrap();
    let data: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    ids.iter()
        .map(|&gpu| {
            let memory = machine.node.create_memory(gpu, bytes).unwrap();
            machine.node.bind_multicast(object, memory, 0, 0, bytes).unwrap();
            let unicast = machine.node.map(gpu, memory).unwrap();
            machine.node.write(gpu, unicast, &data).unwrap();
            let multicast = machine.node.map_multicast(gpu, object).unwrap();
            (unicast, multicast)
        })
        .collect()
}

/// Each GPU raises a flag in its peer's memory and waits for its own.
const HANDSHAKE: &str = "
    ld.param.u64 %rd1, [mine]; ld.param.u64 %rd2, [peers];
    st.release.sys.global.u32 [%rd2], 1;
    WAIT: ld.acquire.sys.global.u32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 0; @%p1 bra WAIT;
    st.global.u32 [%rd1+4], 7; ret;";

fn handshake(seed: u64) -> (Machine, [u64; 2], [u64; 2]) {
    let mut machine = Machine::new(2, seed, &kernel(".param .u64 mine, .param .u64 peers", HANDSHAKE));
    let mut own = [0; 2];
    let mut peer = [0; 2];
    for gpu in 0..2 {
        let memory = machine.node.create_memory(GpuId(gpu), 8).unwrap();
        own[gpu as usize] = machine.node.map(GpuId(gpu), memory).unwrap();
        peer[1 - gpu as usize] = machine.node.map(GpuId(1 - gpu), memory).unwrap();
        machine.node.write(GpuId(gpu), own[gpu as usize], &[0; 8]).unwrap();
    }
    (machine, own, peer)
}

#[test]
fn flags_travel_between_gpus() {
    for seed in 0..8 {
        let (mut machine, own, peer) = handshake(seed);
        machine.start(GpuId(0), launch(1, 1, 1), &[own[0], peer[0]]);
        assert_eq!(machine.node.run_until_blocked(), Ok(Progress::Blocked));
        assert!(!machine.node.is_idle(GpuId(0), 0));
        machine.start(GpuId(1), launch(1, 1, 1), &[own[1], peer[1]]);
        assert_eq!(machine.node.run_until_blocked(), Ok(Progress::Idle));
        assert_eq!(machine.words(GpuId(0), own[0], 2), [1, 7]);
        assert!(machine.node.counters(GpuId(0)).warp_instructions < 40, "waiting must cost no instructions");
    }
}

#[test]
fn a_missing_peer_is_a_deadlock_that_says_who_polls_what() {
    let (mut machine, own, peer) = handshake(5);
    machine.start(GpuId(0), launch(1, 1, 1), &[own[0], peer[0]]);
    let Err(Fault::Deadlock(report)) = machine.node.run() else { panic!("no deadlock") };
    assert_eq!(
        report.to_string(),
        format!(
            "deadlock: 1 lane groups wait and nothing can go on\n  GPU 0, CTA (0,0,0), warp 0, lane 0: polls {:#x} and sees 0x0\n    kernel `k`, PTX line 10: `WAIT: ld.acquire.sys.global.u32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 0; @%p1 bra WAIT;`",
            own[0]
        )
    );
    assert!(report.time_ns >= 3_600_000_000_000);
}

#[test]
fn a_bounded_wait_expires() {
    let ptx = kernel(
        ".param .u64 flag",
        "ld.param.u64 %rd1, [flag]; mov.u64 %rd2, %globaltimer; add.s64 %rd2, %rd2, 10000000000;
         WAIT: ld.acquire.sys.global.u32 %r1, [%rd1]; setp.ne.u32 %p1, %r1, 0; @%p1 bra DONE;
         ld.relaxed.sys.global.u32 %r2, [%rd1+8]; setp.ne.u32 %p3, %r2, 0; @%p3 bra DONE;
         mov.u64 %rd3, %globaltimer; setp.lt.u64 %p2, %rd3, %rd2; @%p2 bra WAIT;
         st.global.u32 [%rd1+4], 1;
         DONE: ret;",
    );
    let mut machine = Machine::new(1, 0, &ptx);
    let flag = machine.buffer(GPU, &[0, 0, 0]);
    machine.start(GPU, launch(1, 1, 1), &[flag]);
    // As long as work may still come, time stands still.
    assert_eq!(machine.node.run_until_blocked(), Ok(Progress::Blocked));
    machine.node.run().unwrap();
    assert_eq!(machine.words(GPU, flag, 2), [0, 1]);
}

#[test]
fn a_loop_that_polls_two_words_wakes_for_either() {
    let ptx = kernel(
        ".param .u64 words",
        "ld.param.u64 %rd1, [words];
         WAIT: ld.acquire.sys.global.u32 %r1, [%rd1]; setp.ne.u32 %p1, %r1, 0; @%p1 bra DONE;
         ld.acquire.sys.global.u32 %r2, [%rd1+64]; setp.eq.u32 %p2, %r2, 0; @%p2 bra WAIT;
         DONE: ret;",
    );
    for word in [0, 16] {
        let mut machine = Machine::new(1, 0, &ptx);
        let words = machine.buffer(GPU, &[0; 17]);
        machine.start(GPU, launch(1, 1, 1), &[words]);
        assert_eq!(machine.node.run_until_blocked(), Ok(Progress::Blocked));
        machine.node.write(GPU, words + 4 * word, &[1]).unwrap();
        assert_eq!(machine.node.run_until_blocked(), Ok(Progress::Idle));
    }
}

#[test]
fn multimem_reaches_every_gpu() {
    let ptx = kernel(
        ".param .u64 multicast, .param .u64 out",
        "ld.param.u64 %rd1, [multicast]; ld.param.u64 %rd2, [out];
         multimem.ld_reduce.relaxed.sys.global.add.u32 %r1, [%rd1];
         st.global.u32 [%rd2], %r1;
         multimem.red.release.sys.global.add.u32 [%rd1+4], 5;
         mov.f32 %f1, 0f3F800000;
         multimem.st.relaxed.sys.global.v4.f32 [%rd1+16], {%f1, %f1, %f1, %f1};
         ret;",
    );
    let mut machine = Machine::new(3, 0, &ptx);
    let addresses = symmetric(&mut machine, 3, &[11, 1, 0, 0, 0, 0, 0, 0]);
    let out = machine.buffer(GPU, &[0]);
    machine.run(launch(1, 1, 1), &[addresses[0].1, out]).unwrap();
    assert_eq!(machine.words(GPU, out, 1), [33]);
    for gpu in 0..3 {
        let words = machine.words(GpuId(gpu), addresses[gpu as usize].0, 8);
        assert_eq!(words, [11, 6, 0, 0, 0x3f80_0000, 0x3f80_0000, 0x3f80_0000, 0x3f80_0000]);
    }
    let counters = machine.node.counters(GpuId(1));
    assert_eq!((counters.nvlink_bytes_in, counters.nvlink_bytes_out), (20, 4));
}

#[test]
fn multicast_and_unicast_addresses_are_not_interchangeable() {
    let refused = |body: &str, multicast: bool| {
        let mut machine = Machine::new(2, 0, &kernel(".param .u64 a", &format!("ld.param.u64 %rd1, [a]; {body} ret;")));
        let addresses = symmetric(&mut machine, 2, &[1; 4]);
        let address = if multicast { addresses[0].1 } else { addresses[0].0 };
        machine.run(launch(1, 1, 1), &[address]).unwrap_err().to_string()
    };
    let ending = "that is a multicast address: only multimem instructions may touch it (PTX ISA, multimem)";
    assert!(refused("ld.global.u32 %r1, [%rd1];", true).ends_with(ending));
    assert!(refused("st.global.u32 [%rd1], 1;", true).ends_with(ending));
    assert!(refused("red.global.add.u32 [%rd1], 1;", true).ends_with(ending));
    let ending = "that is not a multicast address: multimem needs one (PTX ISA, multimem)";
    assert!(refused("multimem.ld_reduce.relaxed.sys.global.add.u32 %r1, [%rd1];", false).ends_with(ending));
}

/// GPU 1 writes its part and raises a flag on GPU 0, which then reduces over both.
fn alias_program(writer_fence: &str, reader_fence: &str) -> Vec<Result<(), Fault>> {
    let ptx = kernel(
        ".param .u64 rank, .param .u64 unicast, .param .u64 multicast, .param .u64 flag",
        &format!(
            "ld.param.u64 %rd1, [rank]; ld.param.u64 %rd2, [unicast]; ld.param.u64 %rd3, [multicast];
             ld.param.u64 %rd4, [flag]; setp.eq.u64 %p1, %rd1, 0; @%p1 bra READ;
             st.global.u32 [%rd2], 5; {writer_fence} st.release.sys.global.u32 [%rd4], 1; ret;
             READ: ld.acquire.sys.global.u32 %r1, [%rd4]; setp.eq.u32 %p2, %r1, 0; @%p2 bra READ;
             {reader_fence}
             multimem.ld_reduce.relaxed.sys.global.add.u32 %r2, [%rd3]; ret;"
        ),
    );
    (0..8)
        .map(|seed| {
            let mut machine = Machine::new(2, seed, &ptx);
            let addresses = symmetric(&mut machine, 2, &[1; 4]);
            let flag = machine.node.create_memory(GPU, 4).unwrap();
            let flags = [machine.node.map(GPU, flag).unwrap(), machine.node.map(GpuId(1), flag).unwrap()];
            machine.node.write(GPU, flags[0], &[0; 4]).unwrap();
            for gpu in 0..2 {
                let (unicast, multicast) = addresses[gpu];
                machine.start(GpuId(gpu as u32), launch(1, 1, 1), &[gpu as u64, unicast, multicast, flags[gpu]]);
            }
            machine.node.run()
        })
        .collect()
}

#[test]
fn unicast_writes_need_an_alias_fence_before_multimem_reads() {
    for result in alias_program("", "") {
        let fault = result.unwrap_err().to_string();
        assert!(fault.contains("multimem.ld_reduce"), "{fault}");
        assert!(
            fault.contains("fence.proxy.alias is missing: the bytes at")
                && fault.ends_with("were written through its own (unicast) address by CTA [0, 0, 0] of GPU 1, and are read through a multicast address (PTX ISA, proxies)"),
            "{fault}"
        );
    }
    for result in alias_program("fence.proxy.alias;", "").into_iter().chain(alias_program("", "fence.proxy.alias;")) {
        result.unwrap();
    }
}

#[test]
fn multicast_writes_need_an_alias_fence_before_plain_reads() {
    let program = |fence: &str| {
        kernel(
            ".param .u64 unicast, .param .u64 multicast",
            &format!(
                "ld.param.u64 %rd1, [unicast]; ld.param.u64 %rd2, [multicast];
                 mov.f32 %f1, 0f3F800000; multimem.st.relaxed.sys.global.f32 [%rd2], %f1; {fence}
                 ld.global.u32 %r1, [%rd1]; ret;"
            ),
        )
    };
    let run = |fence: &str| {
        let mut machine = Machine::new(2, 0, &program(fence));
        let addresses = symmetric(&mut machine, 2, &[1; 4]);
        machine.run(launch(1, 1, 1), &[addresses[0].0, addresses[0].1])
    };
    let fault = run("").unwrap_err().to_string();
    assert!(fault.contains("were written through a multicast address by CTA [0, 0, 0] of GPU 0, and are read through its own (unicast) address"), "{fault}");
    run("fence.proxy.alias;").unwrap();
}

#[test]
fn streams_run_in_order() {
    let ptx = kernel(
        ".param .u64 a",
        "ld.param.u64 %rd1, [a]; ld.global.u32 %r1, [%rd1]; add.u32 %r1, %r1, 1; st.global.u32 [%rd1], %r1; ret;",
    );
    let mut machine = Machine::new(2, 0, &ptx);
    let a = machine.node.allocate(GPU, 64).unwrap();
    let b = machine.node.allocate(GPU, 64).unwrap();
    machine.node.enqueue_fill(GPU, 0, a, 0, 64);
    machine.start(GPU, launch(1, 1, 1), &[a]);
    machine.node.enqueue_copy(GPU, 0, b, a, 64);
    machine.start(GPU, launch(1, 1, 1), &[b]);
    machine.node.run().unwrap();
    assert_eq!((machine.words(GPU, a, 1), machine.words(GPU, b, 1)), (vec![1], vec![2]));
    machine.node.enqueue_copy(GPU, 3, b, 0x10, 64);
    assert_eq!(
        machine.node.run().unwrap_err().to_string(),
        "copy of 64 bytes enqueued on GPU 0, stream 3, at 0x10: no memory is mapped there"
    );
}

/// GPU 1 writes a word in GPU 0's memory and raises a flag there; GPU 0 waits for the flag and reads the word.
fn message(write: &str, read: &str) -> Vec<Result<(), Fault>> {
    let ptx = kernel(
        ".param .u64 rank, .param .u64 words",
        &format!(
            "ld.param.u64 %rd1, [rank]; ld.param.u64 %rd2, [words]; setp.eq.u64 %p1, %rd1, 0; @%p1 bra READ;
             st.global.u32 [%rd2], 5; {write} ret;
             READ: {read} setp.eq.u32 %p2, %r1, 0; @%p2 bra READ;
             ld.global.u32 %r2, [%rd2]; ret;"
        ),
    );
    (0..8)
        .map(|seed| {
            let mut machine = Machine::new(2, seed, &ptx);
            let memory = machine.node.create_memory(GPU, 64).unwrap();
            let words = [machine.node.map(GPU, memory).unwrap(), machine.node.map(GpuId(1), memory).unwrap()];
            machine.node.write(GPU, words[0], &[0; 64]).unwrap();
            for gpu in 0..2 {
                machine.start(GpuId(gpu), launch(1, 1, 1), &[gpu.into(), words[gpu as usize]]);
            }
            machine.node.run()
        })
        .collect()
}

#[test]
fn data_behind_a_flag_needs_release_and_acquire_of_system_scope() {
    let release = "st.release.sys.global.u32 [%rd2+32], 1;";
    let acquire = "ld.acquire.sys.global.u32 %r1, [%rd2+32];";
    let right = [
        (release, acquire),
        ("fence.acq_rel.sys; st.relaxed.sys.global.u32 [%rd2+32], 1;", acquire),
        (release, "ld.relaxed.sys.global.u32 %r1, [%rd2+32]; fence.acq_rel.sys;"),
        ("red.release.sys.global.add.u32 [%rd2+32], 1;", acquire),
        ("membar.sys; st.volatile.global.u32 [%rd2+32], 1;", "ld.volatile.global.u32 %r1, [%rd2+32]; membar.sys;"),
    ];
    for (write, read) in right {
        for result in message(write, read) {
            result.unwrap_or_else(|fault| panic!("{write} / {read}: {fault}"));
        }
    }
    let wrong = [
        ("st.relaxed.sys.global.u32 [%rd2+32], 1;", acquire),
        ("st.release.gpu.global.u32 [%rd2+32], 1;", acquire),
        ("fence.acq_rel.gpu; st.relaxed.sys.global.u32 [%rd2+32], 1;", acquire),
        (release, "ld.relaxed.sys.global.u32 %r1, [%rd2+32];"),
        (release, "ld.acquire.gpu.global.u32 %r1, [%rd2+32];"),
    ];
    for (write, read) in wrong {
        for result in message(write, read) {
            let fault = result.expect_err(&format!("{write} / {read} is not noticed")).to_string();
            assert!(
                fault.ends_with("CTA [0, 0, 0] of GPU 1 wrote it, and no release and acquire of sufficient scope lead from there to this read"),
                "{fault}"
            );
        }
    }
}

#[test]
fn news_travels_through_a_third_cta() {
    // CTA 0 writes and counts itself; CTA 1 counts too; whoever comes last tells CTA 2.
    let program = |counter: &str| {
        kernel(
            ".param .u64 words",
            &format!(
                "ld.param.u64 %rd1, [words]; mov.u32 %r1, %ctaid.x; setp.eq.u32 %p1, %r1, 2; @%p1 bra READ;
                 mul.wide.u32 %rd2, %r1, 4; add.s64 %rd2, %rd1, %rd2; st.global.u32 [%rd2], 7;
                 {counter} setp.ne.u32 %p2, %r2, 1; @%p2 bra END;
                 st.release.gpu.global.u32 [%rd1+36], 1; bra END;
                 READ: ld.acquire.gpu.global.u32 %r3, [%rd1+36]; setp.eq.u32 %p3, %r3, 0; @%p3 bra READ;
                 ld.global.v2.u32 {{%r4, %r5}}, [%rd1];
                 END: ret;"
            ),
        )
    };
    let run = |seed, counter: &str| {
        let mut machine = Machine::new(1, seed, &program(counter));
        let words = machine.buffer(GPU, &[0; 16]);
        machine.run(launch(3, 1, 1), &[words])
    };
    for seed in 0..8 {
        run(seed, "atom.acq_rel.gpu.global.add.u32 %r2, [%rd1+32], 1;").unwrap();
        let fault = run(seed, "atom.relaxed.gpu.global.add.u32 %r2, [%rd1+32], 1;").unwrap_err().to_string();
        assert!(fault.contains("data race in device memory"), "{fault}");
    }
}

#[test]
fn overwriting_what_others_use_needs_release_and_acquire_too() {
    // GPU 0 uses a word and raises a flag; GPU 1 waits for the flag and overwrites the word.
    let run = |use_it: &str, release: &str, acquire: &str| -> Vec<Result<(), Fault>> {
        let ptx = kernel(
            ".param .u64 rank, .param .u64 words",
            &format!(
                "ld.param.u64 %rd1, [rank]; ld.param.u64 %rd2, [words]; setp.eq.u64 %p1, %rd1, 1; @%p1 bra WRITE;
                 {use_it} {release} ret;
                 WRITE: {acquire} setp.eq.u32 %p2, %r1, 0; @%p2 bra WRITE;
                 st.global.u32 [%rd2], 9; ret;"
            ),
        );
        (0..8)
            .map(|seed| {
                let mut machine = Machine::new(2, seed, &ptx);
                let memory = machine.node.create_memory(GPU, 64).unwrap();
                let words = [machine.node.map(GPU, memory).unwrap(), machine.node.map(GpuId(1), memory).unwrap()];
                machine.node.write(GPU, words[0], &[0; 64]).unwrap();
                for gpu in 0..2 {
                    machine.start(GpuId(gpu), launch(1, 1, 1), &[gpu.into(), words[gpu as usize]]);
                }
                machine.node.run()
            })
            .collect()
    };
    let (release, acquire) = ("st.release.sys.global.u32 [%rd2+32], 1;", "ld.acquire.sys.global.u32 %r1, [%rd2+32];");
    let relaxed = "st.relaxed.sys.global.u32 [%rd2+32], 1;";
    let uses = [
        ("st.global.u32 [%rd2], 1;", "wrote"),
        // Reads are noted where kernels have written.
        ("st.global.u32 [%rd2+4], 1; ld.global.u32 %r2, [%rd2];", "read"),
    ];
    for (use_it, done) in uses {
        for result in run(use_it, release, acquire) {
            result.unwrap();
        }
        for result in run(use_it, relaxed, acquire) {
            let fault = result.unwrap_err().to_string();
            assert!(
                fault.ends_with(&format!("CTA [0, 0, 0] of GPU 0 {done} it, and no release and acquire of sufficient scope lead from there to this write")),
                "{fault}"
            );
        }
    }
}

#[test]
fn what_a_kernel_has_acquired_its_successors_may_rely_on() {
    // GPU 1 writes and raises a flag, then stays until GPU 0's second kernel lets it go. GPU 0's first kernel waits for
    // the flag; its second one reads.
    let run = |acquire: &str| -> Vec<Result<(), Fault>> {
        let ptx = kernel(
            ".param .u64 role, .param .u64 words",
            &format!(
                "ld.param.u64 %rd1, [role]; ld.param.u64 %rd2, [words];
                 setp.eq.u64 %p1, %rd1, 0; @%p1 bra WAIT; setp.eq.u64 %p1, %rd1, 1; @%p1 bra READ;
                 st.global.u32 [%rd2], 5; st.release.sys.global.u32 [%rd2+32], 1;
                 STAY: ld.acquire.sys.global.u32 %r1, [%rd2+36]; setp.eq.u32 %p2, %r1, 0; @%p2 bra STAY; ret;
                 WAIT: {acquire} setp.eq.u32 %p2, %r1, 0; @%p2 bra WAIT; ret;
                 READ: ld.global.u32 %r2, [%rd2]; st.release.sys.global.u32 [%rd2+36], 1; ret;"
            ),
        );
        (0..8)
            .map(|seed| {
                let mut machine = Machine::new(2, seed, &ptx);
                let memory = machine.node.create_memory(GPU, 64).unwrap();
                let words = [machine.node.map(GPU, memory).unwrap(), machine.node.map(GpuId(1), memory).unwrap()];
                machine.node.write(GPU, words[0], &[0; 64]).unwrap();
                for role in 0..2 {
                    machine.start(GPU, launch(1, 1, 1), &[role, words[0]]);
                }
                machine.start(GpuId(1), launch(1, 1, 1), &[2, words[1]]);
                machine.node.run()
            })
            .collect()
    };
    for result in run("ld.acquire.sys.global.u32 %r1, [%rd2+32];") {
        result.unwrap();
    }
    for result in run("ld.relaxed.sys.global.u32 %r1, [%rd2+32];") {
        assert!(result.unwrap_err().to_string().contains("data race in device memory"));
    }
}

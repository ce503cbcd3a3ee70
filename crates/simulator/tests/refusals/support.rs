//! A refused program in a few lines: the body of its kernel, the whole diagnostic, and the edit that makes it right.

use simulator::Fault;
use simulator::node::{GpuId, LaunchConfig};

use crate::fixture::{GPU, Machine, kernel, launch};

/// Seeds that every program runs under; all must agree.
const SEEDS: std::ops::Range<u64> = 0..8;

/// Lets a warp wait until the others can do no more: a million nanoseconds of simulated time.
pub const PAUSE: &str = "mov.u64 %rd60, %globaltimer; add.s64 %rd60, %rd60, 1000000; \
                         PAUSE: mov.u64 %rd61, %globaltimer; setp.lt.u64 %p15, %rd61, %rd60; @%p15 bra PAUSE;";

/// One CTA.
pub fn threads(count: u32) -> LaunchConfig {
    launch(1, 1, count)
}

/// One cluster of some CTAs of some threads.
pub fn cluster(ctas: u32, threads: u32) -> LaunchConfig {
    launch(ctas, ctas, threads)
}

/// CTAs of one warp, each a cluster of its own.
pub fn grid(ctas: u32) -> LaunchConfig {
    launch(ctas, 1, 32)
}

/// Asserts that a kernel is refused with this text under every seed, and passes after the edit (from, to).
///
/// `%rd1` holds the address of 64 words of zeros. The body starts on line 8 of the PTX text and falls through to `ret`.
#[track_caller]
pub fn refuses(config: LaunchConfig, body: &str, diagnostic: &str, edit: (&str, &str)) {
    let run = |seed, body: &str| {
        let ptx = kernel(".param .u64 out", &format!("ld.param.u64 %rd1, [out];\n{body}\nret;"));
        let mut machine = Machine::new(1, seed, &ptx);
        let out = machine.buffer(GPU, &[0; 64]);
        machine.run(config, &[out])
    };
    refuses_when(run, body, diagnostic, edit);
}

/// The same for a kernel of one thread on each of two GPUs. `%rd1` holds the address of 16 words on GPU 0, `%rd2` that of
/// 16 words on the own GPU that are also behind the multicast address in `%rd3`; `%p1` is true on GPU 1.
#[track_caller]
pub fn refuses_between_gpus(body: &str, diagnostic: &str, edit: (&str, &str)) {
    let run = |seed, body: &str| {
        let parameters = ".param .u64 rank, .param .u64 words, .param .u64 unicast, .param .u64 multicast";
        let load = "ld.param.u64 %rd4, [rank]; setp.eq.u64 %p1, %rd4, 1; ld.param.u64 %rd1, [words]; \
                    ld.param.u64 %rd2, [unicast]; ld.param.u64 %rd3, [multicast];";
        let mut machine = Machine::new(2, seed, &kernel(parameters, &format!("{load}\n{body}\nret;")));
        let node = &mut machine.node;
        let gpus = [GpuId(0), GpuId(1)];
        let words = node.create_memory(GPU, 64).unwrap();
        let object = node.create_multicast(&gpus, 64).unwrap();
        let addresses = gpus.map(|gpu| {
            let words = node.map(gpu, words).unwrap();
            let own = node.create_memory(gpu, 64).unwrap();
            node.bind_multicast(object, own, 0, 0, 64).unwrap();
            let unicast = node.map(gpu, own).unwrap();
            node.write(gpu, words, &[0; 64]).unwrap();
            node.write(gpu, unicast, &[0; 64]).unwrap();
            [words, unicast, node.map_multicast(gpu, object).unwrap()]
        });
        for (rank, [words, unicast, multicast]) in addresses.into_iter().enumerate() {
            machine.start(gpus[rank], threads(1), &[rank as u64, words, unicast, multicast]);
        }
        machine.node.run()
    };
    refuses_when(run, body, diagnostic, edit);
}

/// The same, run in a way of the test's own: by seed and body.
#[track_caller]
pub fn refuses_when(
    run: impl Fn(u64, &str) -> Result<(), Fault>,
    body: &str,
    diagnostic: &str,
    (from, to): (&str, &str),
) {
    for seed in SEEDS {
        match run(seed, body) {
            Ok(()) => panic!("seed {seed}: not refused:\n{body}"),
            Err(fault) => assert_eq!(fault.to_string(), diagnostic, "seed {seed}"),
        }
    }
    assert!(body.contains(from), "nothing to correct: {from}");
    let correct = body.replace(from, to);
    for seed in SEEDS {
        if let Err(fault) = run(seed, &correct) {
            panic!("seed {seed}: the correct program is refused: {fault}");
        }
    }
}

/// Asserts that a call of the host is refused with this text.
#[track_caller]
pub fn refused<T>(result: Result<T, impl std::fmt::Display>, text: &str) {
    match result {
        Ok(_) => panic!("not refused, expected: {text}"),
        Err(error) => assert_eq!(error.to_string(), text),
    }
}

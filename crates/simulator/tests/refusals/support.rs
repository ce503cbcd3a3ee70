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

/// The same for one CTA with 64 columns of tensor memory at `%r10`, which warp 0 frees at the end.
///
/// `%rd10` describes 128 rows of 32 zero bytes at `operand`, without swizzle. `%p0` is true in thread 0, `%p1` in thread
/// 32, `%p2` in all but warp 0, `%r21` is 0. `MMA` stands for one of 128 x 32 over these operands, `COMMIT` for a commit
/// (without a guard both are thread 0's), and `WAIT` for waiting for it. The body starts on line 9.
#[track_caller]
pub fn refuses_tensor(threads: u32, body: &str, diagnostic: &str, edit: (&str, &str)) {
    let run = |seed, body: &str| {
        let ptx = kernel("", &tensor_program(body));
        Machine::new(1, seed, &ptx).run(launch(1, 1, threads), &[])
    };
    refuses_when(run, body, diagnostic, edit);
}

fn tensor_program(body: &str) -> String {
    let zero: String = (0..8).map(|i| format!("@!%p2 st.shared.v4.u32 [%r9+{}], {{0, 0, 0, 0}}; ", 512 * i)).collect();
    let body = body
        .replace("MMA", "@%p0 tcgen05.mma.cta_group::1.kind::f16 [%r10], %rd10, %rd10, %r11, %p3;")
        .replace("COMMIT", "@%p0 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [done];")
        .replace("@%p1 @%p0", "@%p1")
        .replace("WAIT", "DONE: mbarrier.try_wait.parity.shared.b64 %p4, [done], 0; @!%p4 bra DONE;");
    format!(
        ".shared .align 128 .b8 operand[8192]; .shared .align 8 .b64 done; .shared .u32 tensor; mov.u32 %r1, %tid.x; \
         setp.eq.u32 %p0, %r1, 0; setp.eq.u32 %p1, %r1, 32; setp.ge.u32 %p2, %r1, 32; setp.ne.u32 %p3, %r1, %r1; \
         @%p0 mbarrier.init.shared.b64 [done], 1; mov.u32 %r8, operand; mad.lo.u32 %r9, %r1, 16, %r8; {zero} \
         mov.u32 %r11, 0x08080490; mov.u64 %rd10, 0x0000400800800000; mov.u32 %r21, 0; @%p2 bra READY; \
         tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [tensor], 64;\n\
         READY: fence.proxy.async; tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync; \
         ld.shared.u32 %r10, [tensor];\n\
         {body}\n\
         tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync; @%p2 bra LEAVE; \
         tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r10, 64;\n\
         LEAVE: ret;"
    )
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

//! How fast the simulator executes, in lane-instructions per second, by kind of code.

#![allow(missing_docs)]

use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use simulator::Node;
use simulator::node::{GpuId, LaunchConfig, NodeConfig};

/// Name, threads per CTA, CTAs, and the loop body: `%r1` is the thread index, `%r2` a shared and `%rd1` a global address
/// of the thread's own, `%r4` the loop counter; `%r5` to `%r8` are free.
const BODIES: [(&str, u32, u32, &str); 7] = [
    (
        "scalar, full warps",
        128,
        4,
        "add.u32 %r5, %r4, %r1; xor.b32 %r6, %r5, %r1; shl.b32 %r7, %r6, 3; mad.lo.u32 %r5, %r7, %r6, %r5;
         fma.rn.f32 %f3, %f1, %f2, %f1; mul.wide.u32 %rd3, %r5, 4; add.s64 %rd4, %rd3, %rd1;
         selp.u32 %r8, %r5, %r6, %p1;",
    ),
    ("scalar, one lane", 1, 4, "add.u32 %r5, %r4, %r1; xor.b32 %r6, %r5, %r1; mad.lo.u32 %r5, %r6, %r6, %r5;"),
    ("shared memory", 128, 4, "st.shared.u32 [%r2], %r4; ld.shared.u32 %r5, [%r2]; ld.shared.u32 %r6, [%r2];"),
    // The other half of each word is nobody's, so that the races of each byte are judged.
    ("shared memory, halves", 128, 4, "st.shared.u16 [%r2], %r4; ld.shared.u16 %r5, [%r2]; ld.shared.u16 %r6, [%r2];"),
    ("global memory", 128, 4, "st.global.u32 [%rd1], %r4; ld.global.u32 %r5, [%rd1]; ld.global.u32 %r6, [%rd1];"),
    ("barriers", 128, 1, "bar.sync 0;"),
    (
        "divergent branches",
        128,
        4,
        "and.b32 %r6, %r1, 1; setp.eq.u32 %p2, %r6, 0; @%p2 bra EVEN; add.u32 %r5, %r4, 1; bra JOIN;
         EVEN: add.u32 %r5, %r4, 2; JOIN:",
    ),
];

const TURNS: u32 = 2000;

/// A node with the kernel's launch enqueued.
fn prepared(block: u32, grid: u32, body: &str) -> Node {
    let ptx = format!(
        ".version 8.8\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 out)\n{{\n\
         .reg .pred %p<8>; .reg .b32 %r<32>; .reg .b64 %rd<16>; .reg .f32 %f<16>;\n\
         .shared .align 16 .b8 words[8192];\n\
         ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r3, %ctaid.x; shl.b32 %r3, %r3, 7;\n\
         add.u32 %r3, %r3, %r1; mul.wide.u32 %rd2, %r3, 4; add.s64 %rd1, %rd1, %rd2;\n\
         mov.u32 %r2, words; shl.b32 %r3, %r1, 2; add.u32 %r2, %r2, %r3;\n\
         mov.u32 %r4, 0; mov.f32 %f1, 0f3F800000; mov.f32 %f2, 0f3F000000;\n\
         LOOP:\n{body}\n\
         add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, {TURNS}; @%p1 bra LOOP;\n\
         exit;\n}}\n"
    );
    let gpu = GpuId(0);
    let mut node = Node::new(NodeConfig { sms_per_gpu: 4, ..NodeConfig::default() });
    let module = node.load_module(&ptx).expect("the kernel decodes");
    let out = node.allocate(gpu, 1 << 16).expect("memory");
    let config = LaunchConfig { grid: [grid, 1, 1], cluster: [1; 3], block: [block, 1, 1], dynamic_shared_bytes: 0 };
    node.launch(gpu, 0, module, "k", config, &[&out.to_le_bytes()]).expect("fits");
    node
}

fn throughput(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("lane-instructions");
    group.sample_size(10).measurement_time(Duration::from_secs(2)).warm_up_time(Duration::from_millis(300));
    for (name, block, grid, body) in BODIES {
        let mut once = prepared(block, grid, body);
        once.run().expect("runs");
        group.throughput(Throughput::Elements(once.counters(GpuId(0)).lane_instructions));
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|iterations| {
                let mut total = Duration::ZERO;
                for _ in 0..iterations {
                    let mut node = prepared(block, grid, body);
                    let start = Instant::now();
                    node.run().expect("runs");
                    total += start.elapsed();
                }
                total
            });
        });
    }
    group.finish();
}

criterion_group!(benches, throughput);
criterion_main!(benches);

//! How fast the simulator executes: lane-instructions per second for a few kinds of code.
//!
//! `cargo run --release -p gemm-rs-ar-simulator --example throughput`

use std::time::Instant;

use simulator::Node;
use simulator::node::{GpuId, LaunchConfig, NodeConfig};

fn measure(name: &str, block: u32, grid: u32, body: &str) {
    let ptx = format!(
        ".version 8.8\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 out)\n{{\n\
         .reg .pred %p<8>; .reg .b32 %r<32>; .reg .b64 %rd<16>; .reg .f32 %f<16>;\n\
         .shared .align 16 .b8 words[8192];\n\
         ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2;\n\
         mov.u32 %r2, words; shl.b32 %r3, %r1, 2; add.u32 %r2, %r2, %r3; st.shared.u32 [%r2], %r1;\n\
         mov.u32 %r4, 0; mov.f32 %f1, 0f3F800000; mov.f32 %f2, 0f3F000000;\n\
         LOOP:\n{body}\n\
         add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, 20000; @%p1 bra LOOP;\n\
         st.global.u32 [%rd1], %r5;\n ret;\n}}\n"
    );
    let mut node = Node::new(NodeConfig { sms_per_gpu: 4, ..NodeConfig::default() });
    let module = node.load_module(&ptx).expect("the kernel decodes");
    let gpu = GpuId(0);
    let out = node.allocate(gpu, 1 << 16).expect("memory");
    node.write(gpu, out, &[0; 1 << 16]).expect("mapped");
    let config = LaunchConfig { grid: [grid, 1, 1], cluster: [1; 3], block: [block, 1, 1], dynamic_shared_bytes: 0 };
    node.launch(gpu, 0, module, "k", config, &[&out.to_le_bytes()]).expect("fits");
    let start = Instant::now();
    node.run().expect("runs");
    let seconds = start.elapsed().as_secs_f64();
    let counters = node.counters(gpu);
    println!(
        "{name:<32} {:>8.1} M lane-instructions/s, {:>6.1} M warp-instructions/s",
        counters.lane_instructions as f64 / seconds / 1e6,
        counters.warp_instructions as f64 / seconds / 1e6
    );
}

fn main() {
    let scalar = "add.u32 %r5, %r4, %r1; xor.b32 %r6, %r5, %r1; shl.b32 %r7, %r6, 3; mad.lo.u32 %r5, %r7, %r6, %r5;
        fma.rn.f32 %f3, %f1, %f2, %f1; mul.wide.u32 %rd3, %r5, 4; add.s64 %rd4, %rd3, %rd1; selp.u32 %r8, %r5, %r6, %p1;";
    measure("scalar, full warps", 128, 4, scalar);
    measure("scalar, one lane", 1, 4, scalar);
    measure(
        "shared memory, 4 bytes a lane",
        128,
        4,
        "st.shared.u32 [%r2], %r4; ld.shared.u32 %r5, [%r2]; add.u32 %r5, %r5, 1; ld.shared.u32 %r6, [%r2];",
    );
    measure(
        "global memory, 4 bytes a lane",
        128,
        4,
        "st.global.u32 [%rd1], %r4; ld.global.u32 %r5, [%rd1]; add.u32 %r5, %r5, 1; ld.global.u32 %r6, [%rd1];",
    );
    measure("barriers", 128, 1, "bar.sync 0;");
    measure(
        "divergent branches",
        128,
        4,
        "and.b32 %r6, %r1, 1; setp.eq.u32 %p2, %r6, 0; @%p2 bra EVEN; add.u32 %r5, %r4, 1; bra JOIN;
         EVEN: add.u32 %r5, %r4, 2; JOIN:",
    );
}

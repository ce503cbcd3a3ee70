//! Warpgroup products of sm_90a.

use simulator::Fault;

use crate::fixture::{Machine, kernel};
use crate::support::{refuses_when, threads};

/// One product over zeros, with `%rd10` for A and `%rd11` for B.
const PRODUCT: &str =
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, %rd10, %rd11, 1, 1, 1, 0, 0;";

/// Runs a body over 2048 zero bytes in the four warps of a warpgroup, or where it says so in a single one.
fn run(seed: u64, body: &str) -> Result<(), Fault> {
    let block = if body.contains("// one warp") { 32 } else { 128 };
    let zero: String = (0..2048 / 16 / block)
        .map(|i| format!("st.shared.v4.u32 [%r9+{}], {{0, 0, 0, 0}}; ", 16 * block * i))
        .collect();
    let body = format!(
        ".shared .align 128 .b8 operand[2048]; mov.u32 %r1, %tid.x; mov.u32 %r8, operand; mad.lo.u32 %r9, %r1, 16, %r8; {zero}
        mov.u64 %rd10, 0x0000000800400000; mov.u64 %rd11, %rd10; mov.f32 %f0, 0f00000000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0; mov.f32 %f4, %f0;
        fence.proxy.async; bar.sync 0; wgmma.fence.sync.aligned;
        {body}
        wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; ret;"
    );
    let ptx = kernel("", &body).replace("sm_100a", "sm_90a");
    Machine::new(1, seed, &ptx).run(threads(block), &[]).map_err(|fault| match fault {
        // Which of the four warps comes first is the seed's choice.
        Fault::Instruction(mut fault) => {
            fault.warp = 0;
            Fault::Instruction(fault)
        }
        other => other,
    })
}

#[test]
fn a_warpgroup() {
    refuses_when(
        run,
        &format!("// one warp\n{PRODUCT}"),
        "kernel `k`, PTX line 11: `wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, %rd10, %rd11, 1, 1, 1, 0, 0;`\n  GPU 0, CTA (0,0,0), warp 0, lanes 0xffffffff: wgmma needs a warpgroup of four warps, the first a multiple of four; warp 0 of 1 is in none",
        ("// one warp", ""),
    );
}

#[test]
fn accumulators_in_flight() {
    let other = PRODUCT.replace("%f0, %f1, %f2, %f3", "%f1, %f2, %f3, %f4");
    let wait = "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; wgmma.fence.sync.aligned;";
    refuses_when(
        run,
        &format!("{PRODUCT} // wait\n{other}"),
        "kernel `k`, PTX line 11: `wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f1, %f2, %f3, %f4}, %rd10, %rd11, 1, 1, 1, 0, 0;`\n  GPU 0, CTA (0,0,0), warp 0, lanes 0xffffffff: wgmma.mma_async uses registers of D that are accumulators of another one in flight: wgmma.wait_group is missing",
        ("// wait", wait),
    );
}

#[test]
fn the_base_offset_of_a_pattern() {
    let body = format!("or.b64 %rd10, %rd10, 0xc002000000000000;\n{PRODUCT}");
    refuses_when(
        run,
        &body,
        "kernel `k`, PTX line 11: `wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, %rd10, %rd11, 1, 1, 1, 0, 0;`\n  GPU 0, CTA (0,0,0), warp 0, lanes 0xffffffff: wgmma matrix descriptor 0xc002000800400000: base offset 1; the simulator supports patterns that start at their natural boundary, base offset 0",
        ("0xc002", "0x0000"),
    );
}

//! `cta_group::2`: two CTAs, one MMA.

mod fixture;

use fixture::{GPU, Machine, launch};
use simulator::node::{TensorMapBytes, TensorMapDescription, TensorMapElement, TensorMapSwizzle};
use simulator::{Fault, encode_tensor_map};

/// M = 256, N = 128, K = 64: each CTA loads 128 rows of A and 64 of B; the even CTA's mbarrier counts the bytes of both,
/// its thread issues the MMA, and the commit arrives in both.
fn ptx(alloc_in_odd: bool, final_sync: &str) -> String {
    let registers: Vec<String> = (0..32).map(|index| format!("%v{index}")).collect();
    let list = registers.join(", ");
    let stores: String = (0..8)
        .map(|quad| {
            format!("st.global.v4.b32 [%rd6+{}], {{{}}};\n", 16 * quad, registers[4 * quad..4 * quad + 4].join(", "))
        })
        .collect();
    let skip_alloc = if alloc_in_odd { "" } else { "setp.eq.u32 %p10, %r10, 1; @%p10 bra ALLOCATED;" };
    format!(
        ".version 8.8\n.target sm_100a\n.address_size 64
.extern .shared .align 1024 .b8 tiles[];
.visible .entry k(.param .align 64 .b8 map_a[128], .param .align 64 .b8 map_b[128], .param .u64 out)
{{
.reg .pred %p<16>; .reg .b32 %r<64>; .reg .b64 %rd<32>; .reg .b32 %v<32>; .reg .b16 %h<4>;
.shared .align 8 .b64 full; .shared .align 8 .b64 done; .shared .align 4 .u32 tensor;
mov.u64 %rd1, map_a; cvta.param.u64 %rd1, %rd1; mov.u64 %rd2, map_b; cvta.param.u64 %rd2, %rd2;
ld.param.u64 %rd3, [out]; mov.u32 %r3, %tid.x; shr.u32 %r4, %r3, 5; mov.u32 %r10, %cluster_ctarank; mov.u32 %r11, %clusterid.x;
setp.ne.u32 %p1, %r3, 0; @%p1 bra INITIALISED;
mbarrier.init.shared.b64 [full], 2; mbarrier.init.shared.b64 [done], 1; fence.mbarrier_init.release.cluster;
INITIALISED:
setp.ne.u32 %p2, %r4, 0; @%p2 bra ALLOCATED;
{skip_alloc}
mov.u32 %r41, tensor; tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%r41], 128;
tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;
ALLOCATED:
tcgen05.fence::before_thread_sync; barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
tcgen05.fence::after_thread_sync;
ld.shared.u32 %r40, [tensor];
mov.u32 %r30, tiles; add.u32 %r31, %r30, 16384; mov.u32 %r32, full; mov.u32 %r33, done;
@%p1 bra EPILOGUE;
// The even CTA's mbarrier, by clearing the lowest bit of the rank in the address.
and.b32 %r34, %r32, 0xFEFFFFFF;
mbarrier.arrive.expect_tx.relaxed.cluster.shared::cluster.b64 _, [%r34], 24576;
shl.b32 %r12, %r10, 7; shl.b32 %r13, %r10, 6; shl.b32 %r14, %r11, 8; add.u32 %r12, %r12, %r14; mov.u32 %r15, 0;
cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.cta_group::2 [%r30], [%rd1, {{%r15, %r12}}], [%r34];
cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.cta_group::2 [%r31], [%rd2, {{%r15, %r13}}], [%r34];
setp.ne.u32 %p3, %r10, 0; @%p3 bra EPILOGUE;
FULL: mbarrier.try_wait.parity.shared.b64 %p6, [%r32], 0; @!%p6 bra FULL;
tcgen05.fence::after_thread_sync;
and.b32 %r23, %r30, 0x3ffff; shr.u32 %r23, %r23, 4; cvt.u64.u32 %rd10, %r23; or.b64 %rd10, %rd10, 0x4000404000000000;
add.s64 %rd11, %rd10, 1024; mov.u32 %r44, 0x10200490; setp.ne.u32 %p8, %r44, %r44; setp.eq.u32 %p9, %r44, %r44;
tcgen05.mma.cta_group::2.kind::f16 [%r40], %rd10, %rd11, %r44, %p8;
add.s64 %rd10, %rd10, 2; add.s64 %rd11, %rd11, 2; tcgen05.mma.cta_group::2.kind::f16 [%r40], %rd10, %rd11, %r44, %p9;
add.s64 %rd10, %rd10, 2; add.s64 %rd11, %rd11, 2; tcgen05.mma.cta_group::2.kind::f16 [%r40], %rd10, %rd11, %r44, %p9;
add.s64 %rd10, %rd10, 2; add.s64 %rd11, %rd11, 2; tcgen05.mma.cta_group::2.kind::f16 [%r40], %rd10, %rd11, %r44, %p9;
mov.u16 %h1, 3;
tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r33], %h1;
EPILOGUE:
DONE: mbarrier.try_wait.parity.shared.b64 %p6, [%r33], 0; @!%p6 bra DONE;
tcgen05.fence::after_thread_sync;
shl.b32 %r45, %r4, 21; add.u32 %r43, %r40, %r45;
mov.u32 %r16, %ctaid.x; mad.lo.u32 %r46, %r16, 128, %r3; mul.wide.u32 %rd6, %r46, 512; add.s64 %rd6, %rd3, %rd6; mov.u32 %r47, 0;
DRAIN: tcgen05.ld.sync.aligned.32x32b.x32.b32 {{{list}}}, [%r43];
tcgen05.wait::ld.sync.aligned;
{stores}
add.u32 %r43, %r43, 32; add.s64 %rd6, %rd6, 128; add.u32 %r47, %r47, 1; setp.lt.u32 %p7, %r47, 4; @%p7 bra DRAIN;
tcgen05.fence::before_thread_sync;
{final_sync}
@%p2 bra LEAVE;
tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r40, 128;
LEAVE: ret;
}}"
    )
}

const FINAL_SYNC: &str = "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;";

fn map(base: u64, rows: u64, box_rows: u32) -> TensorMapBytes {
    encode_tensor_map(&TensorMapDescription {
        element: TensorMapElement::Bf16,
        base,
        dimensions: vec![64, rows],
        strides_bytes: vec![128],
        box_dimensions: vec![64, box_rows],
        element_strides: vec![1, 1],
        swizzle: TensorMapSwizzle::B128,
        nan_fill: false,
    })
    .unwrap()
}

fn value(row: u32, k: u32, salt: u32) -> i32 {
    ((row * 7 + k * 3 + salt * 5) % 9) as i32 - 4
}

fn matrix(rows: u32, salt: u32) -> Vec<u32> {
    let bits = |row, k| (value(row, k, salt) as f32).to_bits() >> 16;
    (0..rows).flat_map(|row| (0..32).map(move |pair| bits(row, 2 * pair) | bits(row, 2 * pair + 1) << 16)).collect()
}

fn run(ptx: &str, seed: u64) -> Result<(), Fault> {
    let (rows, columns) = (768, 128);
    let mut machine = Machine::new(1, seed, ptx);
    let a = machine.buffer(GPU, &matrix(rows, 1));
    let b = machine.buffer(GPU, &matrix(columns, 2));
    let out = machine.node.allocate(GPU, u64::from(rows * columns * 4)).unwrap();
    let (map_a, map_b) = (map(a, rows.into(), 128), map(b, columns.into(), 64));
    let mut config = launch(rows / 128, 2, 128);
    config.dynamic_shared_bytes = 24576;
    machine.node.launch(GPU, 0, machine.module, "k", config, &[&map_a.0, &map_b.0, &out.to_le_bytes()]).unwrap();
    machine.node.run()?;
    let result = machine.words(GPU, out, (rows * columns) as usize);
    for row in 0..rows {
        for column in 0..columns {
            let expected: i32 = (0..64).map(|k| value(row, k, 1) * value(column, k, 2)).sum();
            assert_eq!(f32::from_bits(result[(row * columns + column) as usize]), expected as f32, "{row} {column}");
        }
    }
    Ok(())
}

#[test]
fn a_pair_multiplies_one_tile_of_256_rows() {
    for seed in 0..4 {
        run(&ptx(true, FINAL_SYNC), seed).unwrap();
    }
}

#[test]
fn both_ctas_of_a_pair_must_allocate() {
    let fault = run(&ptx(false, FINAL_SYNC), 0).unwrap_err().to_string();
    assert!(fault.contains("waits for 128 columns of tensor memory"), "{fault}");
}

#[test]
fn tensor_memory_is_waited_for() {
    // Two CTAs on one SM, each with all columns: the second gets them when the first frees them.
    let ptx = fixture::kernel(
        "",
        ".shared .align 4 .u32 tensor; mov.u32 %r1, tensor;
         tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 512;
         ld.shared.u32 %r2, [tensor];
         tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r2, 512; ret;",
    );
    for seed in 0..4 {
        let mut machine = Machine::new(1, seed, &ptx);
        machine.run(launch(64, 1, 32), &[]).unwrap();
    }
    let keeps = ptx.replace("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r2, 512; ret;", "ret;");
    let fault = Machine::new(1, 0, &keeps).run(launch(1, 1, 32), &[]).unwrap_err().to_string();
    assert!(fault.ends_with("the CTA exits without tcgen05.dealloc of tensor memory columns [0..512]"), "{fault}");
}

//! Allocation of tensor memory, and what is allocated, written and freed.

use simulator::tensor_memory::{TensorMemory, TensorMemoryOwner};

use crate::support::{PAUSE, cluster, refused, refuses, refuses_tensor, threads};

const ALLOCATE: &str = ".shared .u32 at; mov.u32 %r2, 32;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [at], %r2;
    ld.shared.u32 %r10, [at];";
const FREE: &str = "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r10, 32;";

#[test]
fn allocation() {
    refuses(
        threads(32),
        &format!("{ALLOCATE}\n{FREE}").replace("%r2, 32;", "%r2, 48;"),
        "kernel `k`, PTX line 9: `tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [at], %r2;`\n  GPU 0, CTA (0,0,0), warp 0, lanes 0xffffffff: 48 columns: tensor memory is allocated in powers of two from 32 to 512",
        ("48", "32"),
    );
    let relinquish = "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;";
    refuses(
        threads(32),
        &format!("{relinquish}\n{ALLOCATE}\n{FREE}"),
        "kernel `k`, PTX line 10: `tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [at], %r2;`\n  GPU 0, CTA (0,0,0), warp 0, lanes 0xffffffff: tcgen05.alloc after tcgen05.relinquish_alloc_permit of the same CTA: allocate everything before it",
        (&format!("{relinquish}\n{ALLOCATE}"), &format!("{ALLOCATE}\n{relinquish}")),
    );
    let misaligned = ALLOCATE.replace(".u32 at;", ".align 4 .b8 at[8];").replace("b32 [at]", "b32 [at+2]");
    refuses(
        threads(32),
        &format!("{misaligned}\n{FREE}"),
        "kernel `k`, PTX line 9: `tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [at+2], %r2;`\n  GPU 0, CTA (0,0,0), warp 0, lane 0: tcgen05.alloc result of 4 bytes at 0x2: the address must be a multiple of 4",
        ("[at+2]", "[at]"),
    );
}

#[test]
fn deallocation() {
    refuses(
        threads(32),
        &format!("{ALLOCATE}\n{}", FREE.replace("32;", "64;")),
        "kernel `k`, PTX line 11: `tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r10, 64;`\n  GPU 0, CTA (0,0,0), warp 0, lanes 0xffffffff: deallocation of 64 columns at lane 0, column 0, which is no allocation of this CTA (it holds [0..32])",
        ("%r10, 64", "%r10, 32"),
    );
    refuses(
        threads(32),
        &format!("{ALLOCATE}\n// free"),
        "kernel `k`, PTX line 12: `ret;`\n  GPU 0, CTA (0,0,0), warp 0, lanes 0xffffffff: the CTA exits without tcgen05.dealloc of tensor memory columns [0..32]",
        ("// free", FREE),
    );
    refuses_tensor(
        32,
        "@%p0 tcgen05.cp.cta_group::1.32x128b.warpx4 [%r10], %rd10; COMMIT
        tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r10, 64;
        tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [tensor], 64;",
        "kernel `k`, PTX line 10: `tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r10, 64;`\n  GPU 0, CTA (0,0,0), warp 0, lanes 0xffffffff: tcgen05.dealloc of columns 0..64 while a tcgen05 operation on them has not completed: wait on an mbarrier that a later tcgen05.commit arrives on",
        ("COMMIT\n", "COMMIT WAIT\n"),
    );
}

#[test]
fn columns_chosen_by_the_caller() {
    let mut memory = TensorMemory::new();
    let owner = TensorMemoryOwner(0);
    memory.allocate_at(owner, 64, 64).unwrap();
    refused(memory.allocate_at(owner, 96, 32), "columns 96..128 are not free");
    memory.allocate_at(owner, 32, 32).unwrap();
}

#[test]
fn groups() {
    let pair = "tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [at], 32; ld.shared.u32 %r10, [at];";
    let both = FREE.replace("::1", "::2");
    let meet = "barrier.cluster.arrive; barrier.cluster.wait;";
    let body = format!(".shared .u32 at;\n{pair}\n{both}");
    refuses(
        threads(32),
        &body,
        "kernel `k`, PTX line 9: `tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [at], 32; ld.shared.u32 %r10, [at];`\n  GPU 0, CTA (0,0,0), warp 0, lanes 0xffffffff: cta_group::2 needs a cluster with an even number of CTAs; this one has 1",
        ("cta_group::2", "cta_group::1"),
    );
    refuses(
        threads(32),
        &format!("{ALLOCATE}\n{FREE}").replace("dealloc.cta_group::1", "dealloc.cta_group::2"),
        "kernel `k`, PTX line 11: `tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r10, 32;`\n  GPU 0, CTA (0,0,0), warp 0, lanes 0xffffffff: the CTA used cta_group::1 before and uses cta_group::2 now: all tcgen05 instructions of a kernel must use the same",
        ("::2", "::1"),
    );
    let body = format!(
        ".shared .u32 at; mov.u32 %r1, %cluster_ctarank; setp.eq.u32 %p1, %r1, 1; @%p1 bra END; {PAUSE}
        {pair}
        {both}
        END:"
    );
    refuses(
        cluster(2, 32),
        &body,
        "kernel `k`, PTX line 9: `tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [at], 32; ld.shared.u32 %r10, [at];`\n  GPU 0, CTA (0,0,0), warp 0, lanes 0xffffffff: cta_group::2: the other CTA of the pair (rank 1) has exited. Keep it alive with a cluster barrier",
        ("@%p1 bra END;", meet),
    );
}

#[test]
fn access() {
    let load = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r20}, [%r10];\ntcgen05.wait::ld.sync.aligned;";
    refuses_tensor(
        32,
        &format!("// store\n{load}"),
        "kernel `k`, PTX line 10: `tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r20}, [%r10];`\n  GPU 0, CTA (0,0,0), warp 0, lanes 0xffffffff: tensor memory lane 0, column 0 is read before it was written",
        ("// store", "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r10], {%r21}; tcgen05.wait::st.sync.aligned;"),
    );
    let store = "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r12], {%r21};\ntcgen05.wait::st.sync.aligned;";
    refuses_tensor(
        32,
        &format!("add.u32 %r12, %r10, 64;\n{store}"),
        "kernel `k`, PTX line 10: `tcgen05.st.sync.aligned.32x32b.x1.b32 [%r12], {%r21};`\n  GPU 0, CTA (0,0,0), warp 0, lanes 0xffffffff: tensor memory column 64 is used without being allocated by this CTA (it is free)",
        ("64", "63"),
    );
    refuses_tensor(
        32,
        &format!("add.u32 %r12, %r10, 512;\n{store}"),
        "kernel `k`, PTX line 10: `tcgen05.st.sync.aligned.32x32b.x1.b32 [%r12], {%r21};`\n  GPU 0, CTA (0,0,0), warp 0, lanes 0xffffffff: tensor memory lanes 0..32, columns 512..513 reach outside 128 lanes x 512 columns",
        ("512", "63"),
    );
}

//! Tensor memory handed from one instruction or warp to another.

use crate::support::{PAUSE, refuses_tensor};

const LOAD: &str = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r20}, [%r10];";
const STORE: &str = "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r10], {%r21};";
const WAIT_LOAD: &str = "tcgen05.wait::ld.sync.aligned;";
const WAIT_STORE: &str = "tcgen05.wait::st.sync.aligned;";
const AFTER: &str = "tcgen05.fence::after_thread_sync;";

#[test]
fn an_accumulator_before_its_commit() {
    let body = format!("MMA COMMIT // wait\n{LOAD}\n{WAIT_LOAD} WAIT");
    refuses_tensor(
        32,
        &body,
        "kernel `k`, PTX line 10: `tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r20}, [%r10];`\n  GPU 0, CTA (0,0,0), warp 0, lanes 0xffffffff: tensor memory column 0 was written by a tcgen05 operation of warp 0 of cluster CTA 0 whose completion this warp has not observed: wait on an mbarrier that a later tcgen05.commit arrives on",
        (&format!("// wait\n{LOAD}\n{WAIT_LOAD} WAIT"), &format!("WAIT {AFTER}\n{LOAD} {WAIT_LOAD}")),
    );
}

#[test]
fn an_accumulator_without_a_fence_after_the_wait() {
    refuses_tensor(
        32,
        &format!("MMA COMMIT WAIT // fence\n{LOAD}\n{WAIT_LOAD}"),
        "kernel `k`, PTX line 10: `tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r20}, [%r10];`\n  GPU 0, CTA (0,0,0), warp 0, lanes 0xffffffff: tcgen05.fence::after_thread_sync is missing: this warp learnt that the tcgen05 operations of warp 0 of cluster CTA 0 on tensor memory column 0 are done, but has executed no fence since",
        ("// fence", AFTER),
    );
}

#[test]
fn loads_and_stores_without_their_waits() {
    let body = format!("{STORE} // wait\n{LOAD}\n{WAIT_LOAD}");
    refuses_tensor(
        32,
        &body,
        "kernel `k`, PTX line 10: `tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r20}, [%r10];`\n  GPU 0, CTA (0,0,0), warp 0, lanes 0xffffffff: tensor memory column 0 is accessed, but warp 0 of cluster CTA 0 has executed no tcgen05.wait::st after its tcgen05.st to it",
        ("// wait", WAIT_STORE),
    );
    let body = format!("{STORE} {WAIT_STORE}\n{LOAD} // wait\n{STORE}\n{WAIT_STORE}");
    refuses_tensor(
        32,
        &body,
        "kernel `k`, PTX line 11: `tcgen05.st.sync.aligned.32x32b.x1.b32 [%r10], {%r21};`\n  GPU 0, CTA (0,0,0), warp 0, lanes 0xffffffff: tensor memory column 0 is overwritten, but warp 0 of cluster CTA 0 has executed no tcgen05.wait::ld after its tcgen05.ld of it",
        ("// wait", WAIT_LOAD),
    );
}

#[test]
fn columns_freed_before_the_waits() {
    let body = format!("{STORE} {WAIT_STORE}\n{LOAD} // wait\n");
    refuses_tensor(
        32,
        &body,
        "kernel `k`, PTX line 12: `tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync; @%p2 bra LEAVE; tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r10, 64;`\n  GPU 0, CTA (0,0,0), warp 0, lanes 0xffffffff: tensor memory column 0 is freed, but warp 0 of cluster CTA 0 has executed no tcgen05.wait::ld after its tcgen05.ld of it: it may read what the next owner writes",
        ("// wait", WAIT_LOAD),
    );
    let body = "@!%p2 bra MET; tcgen05.st.sync.aligned.32x32b.x1.b32 [%r10+2097160], {%r21}; // wait\nMET:";
    refuses_tensor(
        64,
        body,
        "kernel `k`, PTX line 11: `tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync; @%p2 bra LEAVE; tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r10, 64;`\n  GPU 0, CTA (0,0,0), warp 0, lanes 0xffffffff: tensor memory column 8 is freed, but warp 1 of cluster CTA 0 has executed no tcgen05.wait::st after its tcgen05.st to it: it may overwrite what is the next owner's",
        ("// wait", WAIT_STORE),
    );
}

/// Warp 0 stores to tensor memory, then warp 1 issues an MMA over it.
fn handed_over(first: &str, barrier: &str) -> String {
    format!(
        "@%p2 bra SECOND;
        {STORE} {WAIT_STORE} {first}
        {barrier}
        bra MET;
        SECOND: {barrier} {PAUSE} {AFTER}
        @%p1 MMA
        @%p1 COMMIT
        MET: WAIT"
    )
}

#[test]
fn a_hand_over_without_a_fence_before_the_arrival() {
    refuses_tensor(
        64,
        &handed_over("// before", "bar.sync 1;"),
        "kernel `k`, PTX line 14: `@%p1 tcgen05.mma.cta_group::1.kind::f16 [%r10], %rd10, %rd10, %r11, %p3;`\n  GPU 0, CTA (0,0,0), warp 1, lane 0: tcgen05.fence::before_thread_sync is missing: warp 0 of cluster CTA 0 accessed tensor memory column 0 and executed no fence between its tcgen05.wait and its arrival",
        ("// before", "tcgen05.fence::before_thread_sync;"),
    );
}

#[test]
fn a_hand_over_without_a_barrier() {
    let before = "tcgen05.fence::before_thread_sync;";
    refuses_tensor(
        64,
        &handed_over(before, "// barrier\n"),
        "kernel `k`, PTX line 16: `@%p1 tcgen05.mma.cta_group::1.kind::f16 [%r10], %rd10, %rd10, %r11, %p3;`\n  GPU 0, CTA (0,0,0), warp 1, lane 0: tensor memory column 0 was accessed by warp 0 of cluster CTA 0, and this warp has observed no arrival of it since: a barrier is missing",
        ("// barrier\n", "bar.sync 1;"),
    );
}

//! Fifth-generation tensor cores and tensor memory. `GROUP` is the number of CTAs that work together: 1, or 2 for a pair.

use core::arch::asm;

/// `tcgen05.alloc`: `COLUMNS` columns in each CTA of the group; the address goes to shared memory.
///
/// # Safety
/// All lanes of one warp call it, in each CTA of the group; `shared_address` is a word of shared memory.
#[inline(always)]
pub unsafe fn alloc<const GROUP: u32, const COLUMNS: u32>(shared_address: u32) {
    // SAFETY: the caller's promise.
    unsafe {
        asm!("tcgen05.alloc.cta_group::{g}.sync.aligned.shared::cta.b32 [{a}], {n};",
             g = const GROUP, a = in(reg32) shared_address, n = const COLUMNS)
    }
}

/// `tcgen05.relinquish_alloc_permit`.
///
/// # Safety
/// All lanes of the allocating warp call it.
#[inline(always)]
pub unsafe fn relinquish_alloc_permit<const GROUP: u32>() {
    // SAFETY: the caller's promise.
    unsafe { asm!("tcgen05.relinquish_alloc_permit.cta_group::{g}.sync.aligned;", g = const GROUP) }
}

/// `tcgen05.dealloc`.
///
/// # Safety
/// All lanes of one warp call it, with an address that [`alloc`] gave, after every access.
#[inline(always)]
pub unsafe fn dealloc<const GROUP: u32, const COLUMNS: u32>(address: u32) {
    // SAFETY: the caller's promise.
    unsafe {
        asm!("tcgen05.dealloc.cta_group::{g}.sync.aligned.b32 {a}, {n};",
             g = const GROUP, a = in(reg32) address, n = const COLUMNS)
    }
}

/// `tcgen05.mma.kind::f16`: accumulates into tensor memory, or overwrites it when `accumulate` is false.
///
/// # Safety
/// Descriptors and address are of live tiles of the shapes that `instruction` names; one thread of the group issues.
#[inline(always)]
pub unsafe fn mma_f16<const GROUP: u32>(accumulator: u32, [a, b]: [u64; 2], instruction: u32, accumulate: bool) {
    // SAFETY: the caller's promise.
    unsafe {
        asm!("{{ .reg .pred p; setp.ne.b32 p, {e}, 0; tcgen05.mma.cta_group::{g}.kind::f16 [{d}], {a}, {b}, {i}, p; }}",
             g = const GROUP, d = in(reg32) accumulator, a = in(reg64) a, b = in(reg64) b, i = in(reg32) instruction,
             e = in(reg32) accumulate as u32)
    }
}

/// `tcgen05.mma.kind::mxf8f6f4.block_scale`: [`mma_f16`] with scaled 8-bit operands.
///
/// # Safety
/// As for [`mma_f16`]; the scales are at these addresses of tensor memory.
#[inline(always)]
pub unsafe fn mma_mxf8<const GROUP: u32>(
    accumulator: u32,
    [a, b]: [u64; 2],
    [scale_a, scale_b]: [u32; 2],
    instruction: u32,
    accumulate: bool,
) {
    // SAFETY: the caller's promise.
    unsafe {
        asm!("{{ .reg .pred p; setp.ne.b32 p, {e}, 0; \
              tcgen05.mma.cta_group::{g}.kind::mxf8f6f4.block_scale [{d}], {a}, {b}, {i}, [{sa}], [{sb}], p; }}",
             g = const GROUP, d = in(reg32) accumulator, a = in(reg64) a, b = in(reg64) b, i = in(reg32) instruction,
             sa = in(reg32) scale_a, sb = in(reg32) scale_b, e = in(reg32) accumulate as u32)
    }
}

/// `tcgen05.cp.32x128b.warpx4`: 32 rows of 16 bytes from shared memory to four columns of tensor memory, repeated for the
/// lanes of each warp, in each CTA of the group.
///
/// # Safety
/// As for [`mma_f16`]; `source` describes the rows.
#[inline(always)]
pub unsafe fn copy_32x128b_warpx4<const GROUP: u32>(address: u32, source: u64) {
    // SAFETY: the caller's promise.
    unsafe {
        asm!("tcgen05.cp.cta_group::{g}.32x128b.warpx4 [{a}], {s};",
             g = const GROUP, a = in(reg32) address, s = in(reg64) source)
    }
}

/// `tcgen05.commit`: one arrival on an mbarrier when all earlier asynchronous tcgen05 work of this thread is done.
///
/// # Safety
/// `barrier` holds an initialised mbarrier that expects the arrival.
#[inline(always)]
pub unsafe fn commit(barrier: u32) {
    // SAFETY: the caller's promise.
    unsafe {
        asm!("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [{b}];", b = in(reg32) barrier)
    }
}

/// [`commit`] for a pair: an arrival on the barrier of that address in both CTAs.
///
/// # Safety
/// As for [`commit`].
#[inline(always)]
pub unsafe fn commit_pair(barrier: u32) {
    // SAFETY: the caller's promise.
    unsafe {
        asm!("tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [{b}], {m};",
             b = in(reg32) barrier, m = in(reg16) 0b11u16)
    }
}

/// `tcgen05.fence::before_thread_sync`.
#[inline(always)]
pub fn fence_before_thread_sync() {
    // SAFETY: a fence.
    unsafe { asm!("tcgen05.fence::before_thread_sync;") }
}

/// `tcgen05.fence::after_thread_sync`.
#[inline(always)]
pub fn fence_after_thread_sync() {
    // SAFETY: a fence.
    unsafe { asm!("tcgen05.fence::after_thread_sync;") }
}

/// `tcgen05.ld.32x32b.x32` and the wait for it: 32 columns of the calling lane's row.
///
/// The wait is part of the same asm block: until it, the registers hold nothing, and a separate statement would let
/// the compiler move a use of them in between.
///
/// # Safety
/// All lanes of a warp call it, with an address whose lane is the warp's own quarter.
#[inline(always)]
pub unsafe fn load_32x32b_x32(address: u32) -> [f32; 32] {
    let (r0, r1, r2, r3, r4, r5, r6, r7): (f32, f32, f32, f32, f32, f32, f32, f32);
    let (r8, r9, r10, r11, r12, r13, r14, r15): (f32, f32, f32, f32, f32, f32, f32, f32);
    let (r16, r17, r18, r19, r20, r21, r22, r23): (f32, f32, f32, f32, f32, f32, f32, f32);
    let (r24, r25, r26, r27, r28, r29, r30, r31): (f32, f32, f32, f32, f32, f32, f32, f32);
    // SAFETY: the caller's promise.
    unsafe {
        asm!("tcgen05.ld.sync.aligned.32x32b.x32.b32 \
              {{{r0}, {r1}, {r2}, {r3}, {r4}, {r5}, {r6}, {r7}, {r8}, {r9}, {r10}, {r11}, {r12}, {r13}, {r14}, {r15}, \
              {r16}, {r17}, {r18}, {r19}, {r20}, {r21}, {r22}, {r23}, {r24}, {r25}, {r26}, {r27}, {r28}, {r29}, {r30}, \
              {r31}}}, [{a}];",
             "tcgen05.wait::ld.sync.aligned;",
             a = in(reg32) address,
             r0 = out(reg32) r0, r1 = out(reg32) r1, r2 = out(reg32) r2, r3 = out(reg32) r3,
             r4 = out(reg32) r4, r5 = out(reg32) r5, r6 = out(reg32) r6, r7 = out(reg32) r7,
             r8 = out(reg32) r8, r9 = out(reg32) r9, r10 = out(reg32) r10, r11 = out(reg32) r11,
             r12 = out(reg32) r12, r13 = out(reg32) r13, r14 = out(reg32) r14, r15 = out(reg32) r15,
             r16 = out(reg32) r16, r17 = out(reg32) r17, r18 = out(reg32) r18, r19 = out(reg32) r19,
             r20 = out(reg32) r20, r21 = out(reg32) r21, r22 = out(reg32) r22, r23 = out(reg32) r23,
             r24 = out(reg32) r24, r25 = out(reg32) r25, r26 = out(reg32) r26, r27 = out(reg32) r27,
             r28 = out(reg32) r28, r29 = out(reg32) r29, r30 = out(reg32) r30, r31 = out(reg32) r31)
    }
    [
        r0, r1, r2, r3, r4, r5, r6, r7, r8, r9, r10, r11, r12, r13, r14, r15, r16, r17, r18, r19, r20, r21, r22, r23,
        r24, r25, r26, r27, r28, r29, r30, r31,
    ]
}

/// `tcgen05.ld.32x32b.x16` and the wait for it, as [`load_32x32b_x32`] does it.
///
/// # Safety
/// As for [`load_32x32b_x32`].
#[inline(always)]
pub unsafe fn load_32x32b_x16(address: u32) -> [f32; 16] {
    let (r0, r1, r2, r3, r4, r5, r6, r7): (f32, f32, f32, f32, f32, f32, f32, f32);
    let (r8, r9, r10, r11, r12, r13, r14, r15): (f32, f32, f32, f32, f32, f32, f32, f32);
    // SAFETY: the caller's promise.
    unsafe {
        asm!("tcgen05.ld.sync.aligned.32x32b.x16.b32 \
              {{{r0}, {r1}, {r2}, {r3}, {r4}, {r5}, {r6}, {r7}, {r8}, {r9}, {r10}, {r11}, {r12}, {r13}, {r14}, {r15}}}, \
              [{a}];",
             "tcgen05.wait::ld.sync.aligned;",
             a = in(reg32) address,
             r0 = out(reg32) r0, r1 = out(reg32) r1, r2 = out(reg32) r2, r3 = out(reg32) r3,
             r4 = out(reg32) r4, r5 = out(reg32) r5, r6 = out(reg32) r6, r7 = out(reg32) r7,
             r8 = out(reg32) r8, r9 = out(reg32) r9, r10 = out(reg32) r10, r11 = out(reg32) r11,
             r12 = out(reg32) r12, r13 = out(reg32) r13, r14 = out(reg32) r14, r15 = out(reg32) r15)
    }
    [r0, r1, r2, r3, r4, r5, r6, r7, r8, r9, r10, r11, r12, r13, r14, r15]
}

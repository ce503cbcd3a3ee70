//! `mbarrier` objects in shared memory.

use core::arch::asm;

/// `mbarrier.init`.
///
/// # Safety
/// `address` is 8-byte aligned shared memory that holds no live mbarrier.
#[inline(always)]
pub unsafe fn init(address: u32, arrivals: u32) {
    // SAFETY: the caller's promise.
    unsafe { asm!("mbarrier.init.shared::cta.b64 [{a}], {n};", a = in(reg32) address, n = in(reg32) arrivals) }
}

/// `mbarrier.arrive`, with release at CTA scope.
///
/// # Safety
/// `address` holds an initialised mbarrier that expects this arrival.
#[inline(always)]
pub unsafe fn arrive(address: u32) {
    // SAFETY: the caller's promise.
    unsafe { asm!("mbarrier.arrive.shared::cta.b64 _, [{a}];", a = in(reg32) address) }
}

/// `mbarrier.arrive.expect_tx`.
///
/// # Safety
/// As for [`arrive`]; asynchronous copies of `bytes` bytes will complete on the barrier.
#[inline(always)]
pub unsafe fn arrive_expect_tx(address: u32, bytes: u32) {
    // SAFETY: the caller's promise.
    unsafe {
        asm!("mbarrier.arrive.expect_tx.shared::cta.b64 _, [{a}], {n};", a = in(reg32) address, n = in(reg32) bytes)
    }
}

/// `mbarrier.arrive` on a barrier of any CTA of the cluster, with release at cluster scope.
///
/// # Safety
/// `address` is a shared-cluster address that holds an initialised mbarrier that expects this arrival.
#[inline(always)]
pub unsafe fn arrive_cluster(address: u32) {
    // SAFETY: the caller's promise.
    unsafe { asm!("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [{a}];", a = in(reg32) address) }
}

/// Waits until the phase with this parity has completed: `mbarrier.try_wait.parity` with acquire at CTA scope, in a
/// loop, because one try may return early.
///
/// # Safety
/// `address` holds an initialised mbarrier.
#[inline(always)]
pub unsafe fn wait_parity(address: u32, parity: u32) {
    loop {
        let complete: u32;
        // SAFETY: the caller's promise.
        unsafe {
            asm!("{{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [{a}], {w}; selp.u32 {c}, 1, 0, p; }}",
                 a = in(reg32) address, w = in(reg32) parity, c = out(reg32) complete)
        }
        if complete != 0 {
            return;
        }
    }
}

/// [`wait_parity`] with acquire at cluster scope, for barriers that another CTA arrives on.
///
/// # Safety
/// As for [`wait_parity`].
#[inline(always)]
pub unsafe fn wait_parity_cluster(address: u32, parity: u32) {
    loop {
        let complete: u32;
        // SAFETY: the caller's promise.
        unsafe {
            asm!("{{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [{a}], {w}; selp.u32 {c}, 1, 0, p; }}",
                 a = in(reg32) address, w = in(reg32) parity, c = out(reg32) complete)
        }
        if complete != 0 {
            return;
        }
    }
}

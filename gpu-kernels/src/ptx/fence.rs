//! Fences that are instructions of their own.

use core::arch::asm;

/// `fence.mbarrier_init.release.cluster`: makes `mbarrier.init` visible to asynchronous arrivals.
#[inline(always)]
pub fn mbarrier_init() {
    // SAFETY: a fence.
    unsafe { asm!("fence.mbarrier_init.release.cluster;") }
}

/// `fence.proxy.alias`: orders accesses to the same memory through its unicast and its multicast address.
#[inline(always)]
pub fn proxy_alias() {
    // SAFETY: a fence.
    unsafe { asm!("fence.proxy.alias;") }
}

/// `fence.proxy.async.shared::cta`: makes earlier generic stores to shared memory visible to bulk copies.
#[inline(always)]
pub fn proxy_async_shared() {
    // SAFETY: a fence.
    unsafe { asm!("fence.proxy.async.shared::cta;") }
}

/// `fence.proxy.async.global`: orders bulk copies to global memory behind what the generic proxy has observed.
#[inline(always)]
pub fn proxy_async_global() {
    // SAFETY: a fence.
    unsafe { asm!("fence.proxy.async.global;") }
}

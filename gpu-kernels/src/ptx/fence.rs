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

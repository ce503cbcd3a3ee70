//! Thread-block clusters.

use core::arch::asm;

/// `barrier.cluster`, arrival with release and wait with acquire: all threads of all CTAs of the cluster.
#[inline(always)]
pub fn sync() {
    // SAFETY: every thread of the cluster reaches it, by the structure of the kernel.
    unsafe { asm!("barrier.cluster.arrive.release.aligned;", "barrier.cluster.wait.acquire.aligned;") }
}

/// `mapa.shared::cluster`: the address, in the shared memory of the cluster's CTA `rank`, of what `address` is here.
#[inline(always)]
pub fn map_shared(address: u32, rank: u32) -> u32 {
    let mapped;
    // SAFETY: address arithmetic.
    unsafe {
        asm!("mapa.shared::cluster.u32 {m}, {a}, {r};", m = out(reg32) mapped, a = in(reg32) address,
             r = in(reg32) rank, options(pure, nomem))
    }
    mapped
}

//! CTA-wide barriers.

use core::arch::asm;

/// `bar.sync ID, THREADS`.
#[inline(always)]
pub fn sync<const ID: u32, const THREADS: u32>() {
    // SAFETY: every thread counted in THREADS reaches it, by the structure of the roles.
    unsafe { asm!("bar.sync {id}, {threads};", id = const ID, threads = const THREADS) }
}

//! The bulk tensor copy engine.

use core::arch::asm;

/// A tensor map as the driver encodes it.
#[repr(C, align(64))]
pub struct TensorMap([u8; 128]);

/// `prefetch.tensormap`.
///
/// # Safety
/// `map` points to a kernel parameter that is a tensor map.
#[inline(always)]
pub unsafe fn prefetch(map: *const TensorMap) {
    // SAFETY: the caller's promise.
    unsafe { asm!("prefetch.tensormap [{m}];", m = in(reg64) map) }
}

/// `cp.async.bulk.tensor.2d`, global to shared: the box at (`x`, `y`), innermost coordinate first. Elements out of
/// bounds are written as zero and count towards the transaction bytes.
///
/// # Safety
/// `destination` has room for the box and is aligned for the map's swizzle; `barrier` expects the box's bytes.
#[inline(always)]
pub unsafe fn load_2d(destination: u32, map: *const TensorMap, x: u32, y: u32, barrier: u32) {
    // SAFETY: the caller's promise.
    unsafe {
        asm!("cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [{d}], [{m}, {{{x}, {y}}}], [{b}];",
             d = in(reg32) destination, m = in(reg64) map, x = in(reg32) x, y = in(reg32) y, b = in(reg32) barrier)
    }
}

/// [`load_2d`] by a CTA of a pair, which may have its bytes counted on a barrier of the other CTA.
///
/// # Safety
/// As for [`load_2d`]; `barrier` is a shared-cluster address.
#[inline(always)]
pub unsafe fn load_2d_pair(destination: u32, map: *const TensorMap, x: u32, y: u32, barrier: u32) {
    // SAFETY: the caller's promise.
    unsafe {
        asm!("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.cta_group::2 [{d}], [{m}, {{{x}, {y}}}], [{b}];",
             d = in(reg32) destination, m = in(reg64) map, x = in(reg32) x, y = in(reg32) y, b = in(reg32) barrier)
    }
}

/// `cp.async.bulk.tensor.2d`, shared to global: the box at (`x`, `y`), without what lies out of the tensor's bounds.
///
/// # Safety
/// `source` holds the box in the map's swizzle, visible to the asynchronous proxy, and stays until
/// [`wait_stores_read`] says that it was read.
#[inline(always)]
pub unsafe fn store_2d(map: *const TensorMap, x: u32, y: u32, source: u32) {
    // SAFETY: the caller's promise.
    unsafe {
        asm!("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [{m}, {{{x}, {y}}}], [{s}];",
             "cp.async.bulk.commit_group;",
             s = in(reg32) source, m = in(reg64) map, x = in(reg32) x, y = in(reg32) y)
    }
}

/// Waits until all but the latest `PENDING` of this thread's [`store_2d`]s have read their source.
#[inline(always)]
pub fn wait_stores_read<const PENDING: u32>() {
    // SAFETY: waits.
    unsafe { asm!("cp.async.bulk.wait_group.read {n};", n = const PENDING) }
}

/// Waits until this thread's [`store_2d`]s are complete, so that their writes are visible to this thread.
#[inline(always)]
pub fn wait_stores() {
    // SAFETY: waits.
    unsafe { asm!("cp.async.bulk.wait_group 0;") }
}

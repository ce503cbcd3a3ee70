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

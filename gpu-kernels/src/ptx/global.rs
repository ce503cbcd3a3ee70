//! Global memory: flag words with their order and scope, and data.

use core::arch::asm;

/// `ld.acquire.sys.global.u32`.
///
/// # Safety
/// `address` is a mapped, 4-byte aligned word.
#[inline(always)]
pub unsafe fn load_acquire_sys(address: u64) -> u32 {
    let value;
    // SAFETY: the caller's promise.
    unsafe { asm!("ld.acquire.sys.global.u32 {v}, [{a}];", v = out(reg32) value, a = in(reg64) address) }
    value
}

/// `ld.relaxed.gpu.global.u32`.
///
/// # Safety
/// As for [`load_acquire_sys`].
#[inline(always)]
pub unsafe fn load_relaxed_gpu(address: u64) -> u32 {
    let value;
    // SAFETY: the caller's promise.
    unsafe { asm!("ld.relaxed.gpu.global.u32 {v}, [{a}];", v = out(reg32) value, a = in(reg64) address) }
    value
}

/// `st.release.sys.global.u32`.
///
/// # Safety
/// As for [`load_acquire_sys`].
#[inline(always)]
pub unsafe fn store_release_sys(address: u64, value: u32) {
    // SAFETY: the caller's promise.
    unsafe { asm!("st.release.sys.global.u32 [{a}], {v};", v = in(reg32) value, a = in(reg64) address) }
}

/// `st.relaxed.gpu.global.u32`.
///
/// # Safety
/// As for [`load_acquire_sys`].
#[inline(always)]
pub unsafe fn store_relaxed_gpu(address: u64, value: u32) {
    // SAFETY: the caller's promise.
    unsafe { asm!("st.relaxed.gpu.global.u32 [{a}], {v};", v = in(reg32) value, a = in(reg64) address) }
}

/// `atom.add.acq_rel.gpu.global.u32`; the old value.
///
/// # Safety
/// As for [`load_acquire_sys`].
#[inline(always)]
pub unsafe fn add_acquire_release_gpu(address: u64, value: u32) -> u32 {
    let old;
    // SAFETY: the caller's promise.
    unsafe {
        asm!("atom.add.acq_rel.gpu.global.u32 {o}, [{a}], {v};",
             o = out(reg32) old, a = in(reg64) address, v = in(reg32) value)
    }
    old
}

/// `st.global.v4.b32`.
///
/// # Safety
/// `address` has 16 mapped bytes and is 16-byte aligned.
#[inline(always)]
pub unsafe fn store_v4(address: u64, value: [u32; 4]) {
    // SAFETY: the caller's promise.
    unsafe {
        asm!("st.global.v4.b32 [{a}], {{{v0}, {v1}, {v2}, {v3}}};", a = in(reg64) address,
             v0 = in(reg32) value[0], v1 = in(reg32) value[1], v2 = in(reg32) value[2], v3 = in(reg32) value[3])
    }
}

/// `ld.global.v4.b32`.
///
/// # Safety
/// As for [`store_v4`].
#[inline(always)]
pub unsafe fn load_v4(address: u64) -> [u32; 4] {
    let (v0, v1, v2, v3);
    // SAFETY: the caller's promise.
    unsafe {
        asm!("ld.global.v4.b32 {{{v0}, {v1}, {v2}, {v3}}}, [{a}];", a = in(reg64) address,
             v0 = out(reg32) v0, v1 = out(reg32) v1, v2 = out(reg32) v2, v3 = out(reg32) v3)
    }
    [v0, v1, v2, v3]
}

/// `st.global.b32`.
///
/// # Safety
/// `address` is a mapped, 4-byte aligned word.
#[inline(always)]
pub unsafe fn store(address: u64, value: u32) {
    // SAFETY: the caller's promise.
    unsafe { asm!("st.global.b32 [{a}], {v};", a = in(reg64) address, v = in(reg32) value) }
}

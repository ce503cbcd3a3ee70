//! Multicast memory: one address, every rank's copy.

use core::arch::asm;

/// `multimem.ld_reduce.relaxed.sys.global.add.acc::f32.v4.bf16x2`: the sum over the ranks of eight BF16 values,
/// accumulated in F32 and rounded once.
///
/// # Safety
/// `address` is a 16-byte aligned multicast address, bound on every rank.
#[inline(always)]
pub unsafe fn load_reduce_add_bf16x8(address: u64) -> [u32; 4] {
    let (v0, v1, v2, v3);
    // SAFETY: the caller's promise.
    unsafe {
        asm!("multimem.ld_reduce.relaxed.sys.global.add.acc::f32.v4.bf16x2 {{{v0}, {v1}, {v2}, {v3}}}, [{a}];",
             a = in(reg64) address, v0 = out(reg32) v0, v1 = out(reg32) v1, v2 = out(reg32) v2, v3 = out(reg32) v3)
    }
    [v0, v1, v2, v3]
}

/// `multimem.st.relaxed.sys.global.v4.bf16x2`: eight BF16 values to every rank.
///
/// # Safety
/// As for [`load_reduce_add_bf16x8`].
#[inline(always)]
pub unsafe fn store_bf16x8(address: u64, value: [u32; 4]) {
    // SAFETY: the caller's promise.
    unsafe {
        asm!("multimem.st.relaxed.sys.global.v4.bf16x2 [{a}], {{{v0}, {v1}, {v2}, {v3}}};", a = in(reg64) address,
             v0 = in(reg32) value[0], v1 = in(reg32) value[1], v2 = in(reg32) value[2], v3 = in(reg32) value[3])
    }
}

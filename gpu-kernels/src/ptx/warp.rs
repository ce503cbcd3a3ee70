//! Warp-wide instructions. All of them are called by all 32 lanes.

use core::arch::asm;

/// `elect.sync`: true in exactly one lane.
#[inline(always)]
pub fn elect() -> bool {
    let elected: u32;
    // SAFETY: all lanes are members.
    unsafe { asm!("{{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 {e}, 1, 0, p; }}", e = out(reg32) elected) }
    elected != 0
}

/// `bar.warp.sync` of the whole warp.
#[inline(always)]
pub fn sync() {
    // SAFETY: all lanes are members.
    unsafe { asm!("bar.warp.sync 0xffffffff;") }
}

/// `shfl.sync.idx`: lane 0's value.
#[inline(always)]
pub fn broadcast_first(value: u32) -> u32 {
    let result;
    // SAFETY: all lanes are members.
    unsafe { asm!("shfl.sync.idx.b32 {r}, {v}, 0, 0x1f, 0xffffffff;", r = out(reg32) result, v = in(reg32) value) }
    result
}

/// `shfl.sync.bfly`: the value of the lane whose index differs by `MASK`.
#[inline(always)]
pub fn shuffle_xor<const MASK: u32>(value: u32) -> u32 {
    let result;
    // SAFETY: all lanes are members.
    unsafe {
        asm!("shfl.sync.bfly.b32 {r}, {v}, {m}, 0x1f, 0xffffffff;",
             r = out(reg32) result, v = in(reg32) value, m = const MASK)
    }
    result
}

//! Special registers.

use core::arch::asm;

macro_rules! special_register {
    ($($name:ident = $register:literal),* $(,)?) => {$(
        #[doc = concat!("`", $register, "`.")]
        #[inline(always)]
        pub fn $name() -> u32 {
            let value;
            // SAFETY: reads a register that does not change while the thread runs.
            unsafe { asm!(concat!("mov.u32 {v}, ", $register, ";"), v = out(reg32) value, options(pure, nomem)) }
            value
        }
    )*};
}

special_register! {
    thread_index = "%tid.x",
    cta_index = "%ctaid.x",
    cta_count = "%nctaid.x",
    lane_index = "%laneid",
    cluster_cta_rank = "%cluster_ctarank",
}

//! `tcgen05.{ld,st}.16x32bx2`: the lower lanes of the warp at one place, the upper lanes some columns further.

mod fixture;

use fixture::{assert_fault, kernel, run_one_cta};

/// Zeroes 16 columns of all lanes, runs `body`, stores `%r20` to `%r35` of each lane.
fn text(body: &str) -> String {
    let zeros = vec!["%r10"; 16].join(", ");
    let list: Vec<_> = (20..36).map(|r| format!("%r{r}")).collect();
    let stores: String = (0..16).map(|i| format!("st.global.b32 [%rd1+{}], %r{};\n", 4 * i, 20 + i)).collect();
    format!(
        ".shared .align 4 .b32 place; mov.u32 %r2, place; mov.u32 %r1, %tid.x; mov.u32 %r10, 0;
         tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r2], 32; ld.shared.b32 %r3, [%r2];
         tcgen05.st.sync.aligned.32x32b.x16.b32 [%r3], {{{zeros}}}; tcgen05.wait::st.sync.aligned;
         {body}
         tcgen05.ld.sync.aligned.32x32b.x16.b32 {{{}}}, [%r3]; tcgen05.wait::ld.sync.aligned;
         ld.param.u64 %rd1, [out]; mul.wide.u32 %rd2, %r1, 64; add.s64 %rd1, %rd1, %rd2;
         {stores}
         tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 32; ret;",
        list.join(", ")
    )
}

#[test]
fn the_halves_of_a_warp_write_different_columns() {
    let body = "add.u32 %r11, %r1, 100; add.u32 %r12, %r1, 200;
        tcgen05.st.sync.aligned.16x32bx2.x2.b32 [%r3+1], 8, {%r11, %r12}; tcgen05.wait::st.sync.aligned;";
    let out = run_one_cta(1, 32, 512, &text(body)).unwrap();
    for lane in 0..32 {
        for column in 0..16 {
            let thread = if column < 8 { lane } else { lane + 16 };
            let expected = match column % 8 {
                1 if lane < 16 => 100 + thread,
                2 if lane < 16 => 200 + thread,
                _ => 0,
            };
            assert_eq!(out[(16 * lane + column) as usize], expected, "lane {lane}, column {column}");
        }
    }
}

#[test]
fn a_load_brings_back_what_a_store_took() {
    let body = "add.u32 %r11, %r1, 100; add.u32 %r12, %r1, 200;
        tcgen05.st.sync.aligned.16x32bx2.x2.b32 [%r3], 4, {%r11, %r12}; tcgen05.wait::st.sync.aligned;
        tcgen05.ld.sync.aligned.16x32bx2.x2.b32 {%r13, %r14}, [%r3], 4; tcgen05.wait::ld.sync.aligned;
        tcgen05.st.sync.aligned.32x32b.x2.b32 [%r3+14], {%r13, %r14}; tcgen05.wait::st.sync.aligned;";
    let out = run_one_cta(1, 32, 512, &text(body)).unwrap();
    for lane in 0..32u32 {
        assert_eq!(out[16 * lane as usize + 14..][..2], [100 + lane, 200 + lane]);
    }
}

#[test]
fn a_half_outside_the_allocation_is_refused() {
    assert_fault(
        32,
        &text("tcgen05.st.sync.aligned.16x32bx2.x2.b32 [%r3], 31, {%r1, %r1};"),
        "tensor memory column 32 is used without being allocated by this CTA (it is free)",
    );
    let text = kernel("", "tcgen05.st.sync.aligned.16x32bx2.x2.b32 [%r3], 512, {%r1, %r1};");
    let error = simulator::ptx::load(&text).expect_err("accepted").to_string();
    assert_eq!(error, "the offset of the second half must be from 0 to 511");
}

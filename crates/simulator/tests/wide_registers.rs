//! 128-bit registers: moved, loaded, stored and swapped as one value.

mod common;
mod fixture;

use common::module_for;
use fixture::{GPU, Machine, assert_fault, kernel, launch, run_one_cta};

const WIDE: &str = ".reg .b128 %q<4>; ld.param.u64 %rd1, [out];";

fn output(words: usize, body: &str) -> Vec<u32> {
    run_one_cta(0, 1, words, &format!("{WIDE} {body} ret;")).unwrap()
}

#[test]
fn elements_are_packed_and_unpacked_from_the_lowest_on() {
    let body = "mov.u64 %rd2, 0x0000000200000001; mov.b128 %q0, {%rd2, 0x0000000400000003};
         mov.b128 {%r1, %r2, %r3, %r4}, %q0; mov.b128 %q1, {%r4, %r3, %r2, %r1}; mov.b128 %q2, %q1;
         mov.b128 {_, %rd3}, %q2; mov.b64 {%r5, %r6}, %rd3;
         mov.b128 {%rd4, %rd5}, %q2; mov.b128 {%rd5, %rd4}, %q2;
         st.global.v4.u32 [%rd1], {%r1, %r2, %r3, %r4}; st.global.v2.u32 [%rd1+16], {%r5, %r6};
         st.global.v2.u64 [%rd1+32], {%rd4, %rd5};";
    assert_eq!(output(12, body), [1, 2, 3, 4, 2, 1, 0, 0, 2, 1, 4, 3]);
}

#[test]
fn loads_and_stores_move_sixteen_aligned_bytes() {
    let body = ".shared .align 16 .b8 buffer[32]; .local .align 16 .b8 local[16];
         st.shared.v4.u32 [buffer], {5, 6, 7, 8}; ld.shared.b128 %q0, [buffer]; st.shared.b128 [buffer+16], %q0;
         ld.shared.v4.u32 {%r1, %r2, %r3, %r4}, [buffer+16]; add.u32 %r1, %r1, %r4; st.shared.u32 [buffer+16], %r1;
         ld.shared.b128 %q1, [buffer+16]; mov.u32 %r5, local; st.local.b128 [%r5], %q1; ld.local.b128 %q2, [%r5];
         st.global.b128 [%rd1], %q2; st.global.relaxed.gpu.b128 [%rd1+16], %q0; ld.global.acquire.gpu.b128 %q3, [%rd1+16];
         st.global.b128 [%rd1+32], %q3;";
    assert_eq!(output(12, body), [13, 6, 7, 8, 5, 6, 7, 8, 5, 6, 7, 8]);
    assert_fault(
        1,
        &format!("{WIDE} ld.global.b128 %q0, [%rd1+8]; ret;"),
        "load of 16 bytes at 0x700000200008: the address must be a multiple of 16",
    );
}

#[test]
fn swaps_compare_both_halves() {
    let body =
        "st.global.v4.u32 [%rd1], {1, 2, 3, 4}; mov.u64 %rd2, 0x0000000200000001; mov.u64 %rd3, 0x0000000400000003;
         mov.u64 %rd4, 9; mov.b128 %q0, {%rd2, %rd4}; mov.b128 %q1, {%rd4, %rd4}; mov.b128 %q2, {%rd2, %rd3};
         atom.global.cas.b128 %q3, [%rd1], %q0, %q1; st.global.b128 [%rd1+16], %q3; ld.global.b128 %q3, [%rd1];
         st.global.b128 [%rd1+32], %q3;
         atom.global.cas.b128 %q3, [%rd1], %q2, %q1; ld.global.b128 %q3, [%rd1]; st.global.b128 [%rd1+48], %q3;
         atom.global.exch.b128 %q3, [%rd1], %q2; st.global.b128 [%rd1+64], %q3;";
    let same = [1, 2, 3, 4];
    let new = [9, 0, 9, 0];
    assert_eq!(output(20, body), [same, same, same, new, new].concat());
}

/// A flag of 128 bits, written and read as one element, carries release and acquire like a narrower one.
#[test]
fn a_wide_flag_orders_data() {
    let program = |order: &str| {
        kernel(
            ".param .u64 out",
            &format!(
                ".reg .b128 %q<2>; ld.param.u64 %rd1, [out]; mov.u32 %r1, %ctaid.x; setp.ne.u32 %p1, %r1, 0; @%p1 bra READ;
                 st.global.u32 [%rd1+32], 7; mov.u64 %rd2, 1; mov.b128 %q0, {{%rd2, %rd2}}; st.global.{order}.gpu.b128 [%rd1], %q0; ret;
                 READ: ld.global.acquire.gpu.b128 %q1, [%rd1]; mov.b128 {{%rd2, %rd3}}, %q1; setp.eq.u64 %p2, %rd3, 0; @%p2 bra READ;
                 ld.global.u32 %r2, [%rd1+32]; st.global.u32 [%rd1+36], %r2; ret;"
            ),
        )
    };
    for seed in 0..8 {
        let run = |order| {
            let mut machine = Machine::new(1, seed, &program(order));
            let out = machine.buffer(GPU, &[0; 16]);
            machine.run(launch(2, 1, 1), &[out]).map(|()| machine.words(GPU, out + 36, 1)[0])
        };
        assert_eq!(run("release").unwrap(), 7);
        assert!(run("relaxed").unwrap_err().to_string().contains("data race in device memory"));
    }
}

#[test]
fn narrower_operands_and_vectors_are_refused() {
    let cases = [
        ("mov.b128 %q0, %rd1;", "expected `.b128`, found `.b64` register `%rd1`"),
        ("mov.b64 %rd1, %q0;", "expected `.b64`, found `.b128` register `%q0`"),
        ("ld.global.b32 %q0, [%rd1];", "expected `.b32`, found `.b128` register `%q0`"),
        ("mov.b128 %q0, {%r0, %r1, %rd1};", "expected 2 elements of 64 bits or 4 of 32, found a vector of 3"),
        (
            "ld.global.v2.b128 {%q0, %q1}, [%rd1];",
            "unsupported: `ld.global.v2.b128`: vectors over 16 bytes are .v8 of 32 bits or .v4 of 64, in global memory",
        ),
        ("atom.global.add.b128 %q0, [%rd1], %q1;", "`atom.global.add.b128` does not take `.b128` here"),
    ];
    let registers = ".reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .b128 %q<4>;";
    for (text, message) in cases {
        let error = simulator::ptx::load(&module_for("sm_100a", &format!("{registers}\n{text}"))).unwrap_err();
        assert_eq!(error.to_string(), message, "{text}");
    }
}

//! Calls of `.func`: parameters, results, divergence, local memory, and what is refused.

mod fixture;

use fixture::{GPU, Machine, launch};
use simulator::Fault;
use simulator::ptx::load;

/// A module with functions and a kernel `k` whose `%r1` is the thread index and whose `%rd1` its word of `out`.
fn module(functions: &str, body: &str) -> String {
    format!(
        ".version 8.8\n.target sm_100a\n.address_size 64\n{functions}
         .visible .entry k(.param .u64 out)\n{{\n.reg .pred %p<8>; .reg .b32 %r<32>; .reg .b64 %rd<8>;
         ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2;
         {body}\n st.global.b32 [%rd1], %r2; ret;\n}}\n"
    )
}

fn run(seed: u64, functions: &str, body: &str) -> Result<Vec<u32>, Fault> {
    let mut machine = Machine::new(1, seed, &module(functions, body));
    let out = machine.buffer(GPU, &[0; 32]);
    machine.run(launch(1, 1, 32), &[out])?;
    Ok(machine.words(GPU, out, 32))
}

const TRIPLE: &str = "
    .func (.param .b32 result) triple(.param .b32 value) {
        .reg .b32 %r<4>; .reg .pred %p<2>;
        ld.param.u32 %r1, [value]; setp.gt.u32 %p1, %r1, 100; @%p1 bra LARGE;
        mul.lo.u32 %r2, %r1, 3; st.param.b32 [result+0], %r2; ret;
        LARGE: mov.u32 %r3, 7; st.param.b32 [result+0], %r3; ret;
    }";

/// Calls `f` with `%rN` and puts the result in `%rM`.
fn call(function: &str, argument: &str, result: &str) -> String {
    format!(
        "{{ .param .b32 a; st.param.b32 [a+0], {argument}; .param .b32 r;
            call.uni (r), {function}, (a); ld.param.b32 {result}, [r+0]; }}"
    )
}

#[test]
fn a_function_takes_and_gives_values() {
    let body = format!("{} add.u32 %r2, %r2, 90; {}", call("triple", "%r1", "%r2"), call("triple", "%r2", "%r2"));
    let expected: Vec<u32> = (0..32).map(|t| 3 * t + 90).map(|v| if v > 100 { 7 } else { 3 * v }).collect();
    for seed in 0..8 {
        assert_eq!(run(seed, TRIPLE, &body).unwrap(), expected);
    }
}

#[test]
fn functions_call_functions() {
    let functions = format!(
        "{TRIPLE}
         .func (.param .b32 result) nine_times(.param .b32 value) {{
             .reg .b32 %r<4>; ld.param.u32 %r1, [value];
             {} {}
             st.param.b32 [result], %r2; ret;
         }}",
        call("triple", "%r1", "%r2"),
        call("triple", "%r2", "%r2")
    );
    let out = run(1, &functions, &call("nine_times", "%r1", "%r2")).unwrap();
    assert_eq!(out, (0..32).map(|t| 9 * t).collect::<Vec<u32>>());
}

#[test]
fn a_guard_selects_the_lanes_that_call() {
    let body = "mov.u32 %r2, 5; setp.lt.u32 %p1, %r1, 4; { .param .b32 a; st.param.b32 [a], %r1; .param .b32 r;
        st.param.b32 [r], %r2; @%p1 call (r), triple, (a); ld.param.b32 %r2, [r]; }";
    let expected: Vec<u32> = (0..32).map(|t| if t < 4 { 3 * t } else { 5 }).collect();
    for seed in 0..8 {
        assert_eq!(run(seed, TRIPLE, body).unwrap(), expected);
    }
}

#[test]
fn structures_and_local_variables_keep_to_their_thread() {
    let functions = "
        .func (.param .align 8 .b8 result[16]) pair(.param .align 8 .b8 value[16]) {
            .reg .b64 %rd<8>; .reg .b32 %r<4>; .local .align 8 .b8 stack[16];
            ld.param.v2.b64 {%rd1, %rd2}, [value]; st.local.b64 [stack], %rd2; st.local.b64 [stack+8], %rd1;
            mov.u64 %rd3, stack; cvta.local.u64 %rd3, %rd3; ld.b64 %rd4, [%rd3+8]; ld.b64 %rd5, [%rd3];
            st.param.b64 [result], %rd5; st.param.b64 [result+8], %rd4; ret;
        }";
    let body = "cvt.u64.u32 %rd3, %r1; add.s64 %rd4, %rd3, 1000;
        { .param .align 8 .b8 a[16]; st.param.v2.b64 [a], {%rd3, %rd4}; .param .align 8 .b8 r[16];
          call.uni (r), pair, (a); ld.param.b64 %rd5, [r]; ld.param.b64 %rd6, [r+8]; }
        shl.b64 %rd5, %rd5, 8; add.s64 %rd5, %rd5, %rd6; cvt.u32.u64 %r2, %rd5;";
    let out = run(1, functions, body).unwrap();
    assert_eq!(out, (0..32).map(|t| (1000 + t) * 256 + t).collect::<Vec<u32>>());
}

#[test]
fn a_function_may_end_the_thread_or_trap() {
    let functions = ".func stop() { exit; } .func fail() .noreturn { trap; }";
    let out = run(1, functions, "mov.u32 %r2, 1; setp.gt.u32 %p1, %r1, 3; @%p1 call stop, ();").unwrap();
    assert_eq!(out.iter().sum::<u32>(), 4);
    let message =
        run(1, functions, "mov.u32 %r2, 1; setp.eq.u32 %p1, %r1, 3; @%p1 call.uni fail;").expect_err("no fault");
    assert!(message.to_string().ends_with("lane 3: trap"), "{message}");
}

#[test]
fn functions_share_the_modules_shared_memory() {
    let functions =
        ".shared .align 4 .b32 word; .func put() { .reg .b32 %r<2>; mov.u32 %r1, 9; st.shared.b32 [word], %r1; ret; }";
    let out = run(1, functions, "call put; bar.sync 0; ld.shared.b32 %r2, [word];").unwrap();
    assert_eq!(out, [9; 32]);
}

#[test]
fn indexed_branches_go_to_their_targets() {
    let body = "and.b32 %r3, %r1, 3; setp.eq.u32 %p1, %r1, 31; mov.u32 %r2, 0; @%p1 bra END;
        brx.idx %r3, TARGETS; TARGETS: .branchtargets A, B, A, C;
        A: mov.u32 %r2, 10; bra END; B: mov.u32 %r2, 20; bra END; C: mov.u32 %r2, 30; END: bar.warp.sync 0xffffffff;";
    let expected: Vec<u32> = (0..32).map(|t| if t == 31 { 0 } else { [10, 20, 10, 30][t % 4] }).collect();
    for seed in 0..8 {
        assert_eq!(run(seed, "", body).unwrap(), expected);
    }
    let message = run(1, "", &body.replace("%r1, 3;", "%r1, 7;")).expect_err("no fault").to_string();
    assert!(message.ends_with("brx.idx: index 4 of 4 targets"), "{message}");
}

#[track_caller]
fn refuses(functions: &str, body: &str, expected: &str) {
    assert_eq!(load(&module(functions, body)).expect_err("accepted").to_string(), expected);
}

#[test]
fn what_cannot_be_taken_in_is_refused() {
    refuses(".func f() { call f; ret; }", "call f;", "unsupported: `f`: recursive calls");
    refuses(
        ".func g(); .func f() { call g; ret; } .func g() { call f; ret; }",
        "call f;",
        "unsupported: `f`: recursive calls",
    );
    refuses(".extern .func f();", "call f;", "unsupported: `f`: functions without a body");
    refuses("", "call f;", "`f` is not declared");
    refuses(TRIPLE, "call triple, ();", "`call triple` takes 2 operands, found 0");
    refuses(
        TRIPLE,
        "call (%r2), triple, (%r1);",
        "unsupported: arguments that are not `.param` variables of the caller",
    );
    refuses(
        TRIPLE,
        ".param .b64 a; .param .b32 r; call (r), triple, (a);",
        "expected a parameter of 4 bytes, found one of 8",
    );
    refuses(
        "",
        "P: .callprototype _ (); call %rd1, (), P;",
        "unsupported: calls through a pointer (a prototype or a list of targets)",
    );
    refuses(".func f() { ret; }", "call.sync f;", "`call.sync` does not take `.sync` here");
}

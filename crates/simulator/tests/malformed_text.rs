//! Malformed PTX: each kind of error with its literal diagnostic, and no text that panics, hangs or eats memory.

#![allow(missing_docs)]

mod common;

use common::module;
use proptest::prelude::*;
use simulator::ptx::load;
use std::time::{Duration, Instant};

fn diagnostic(text: &str) -> String {
    match load(text) {
        Ok(_) => panic!("accepted:\n{text}"),
        Err(error) => error.diagnostic(),
    }
}

/// The diagnostic of an instruction on line 6, column 5.
fn of(instruction: &str) -> String {
    let head = ".reg .pred %p; .reg .b32 %r<4>; .reg .f32 %f<4>; .reg .b64 %rd<4>; .shared .b8 s[4];";
    diagnostic(&format!(
        ".version 8.8\n.target sm_90\n.address_size 64\n.entry k() {{\n{head}\n    {instruction}\n}}\n"
    ))
}

#[test]
fn unknown_instruction() {
    assert_eq!(
        of("frobnicate.u32 %r1, %r2;"),
        "error: unknown instruction `frobnicate.u32`
 --> 6:5
  |
6 |     frobnicate.u32 %r1, %r2;
  |     ^^^^^^^^^^^^^^
"
    );
}

#[test]
fn every_kind_of_error() {
    let cases = [
        ("add.u32 %r1, #;", "unexpected character `#`", "#"),
        ("add.u32 %r1, /* %r2;", "unterminated comment", "/*"),
        (".pragma \"x;", "unterminated string", "\""),
        ("mov.b32 %r1, 0x1G;", "invalid literal `0x1G`: not a number", "0x1G"),
        ("mov.b32 %r1, 09;", "invalid literal `09`: not a number", "09"),
        ("mov.b32 %r1, 0f3F80;", "invalid literal `0f3F80`: `0f` takes 8 hexadecimal digits", "0f3F80"),
        (
            "mov.b64 %rd1, 99999999999999999999;",
            "invalid literal `99999999999999999999`: more than 64 bits",
            "99999999999999999999",
        ),
        ("mov.b64 %rd1, 1 / 0;", "invalid literal `/`: division by zero", "/"),
        ("add.u32 %r1 %r2;", "expected `,` or `;`, found `%r2`", "%r2"),
        (".reg .b31 %x;", "expected a register type, found `.b31`", ".b31"),
        (".shared .align 3 .b8 x[4];", "expected a power of two, found `3`", "3"),
        (".shared .b8 x[4000000000];", "too large: elements of a variable, at most 16777216", "4000000000"),
        (".reg .b32 %x<4000000000>;", "too large: registers of one declaration, at most 16777216", "4000000000"),
        (".local .b64 x[100000];", "too large: bytes of local variables, at most 524288", "x"),
        (".reg .b64 %r<2>;", "`%r` is already declared in this scope", "%r"),
        ("L: L: exit;", "`L` is already declared in this scope", "L"),
        ("add.u32 %r1, %r2, %r4;", "`%r4` is not declared", "%r4"),
        ("ld.shared.b32 %r1, [t];", "`t` is not declared", "t"),
        ("bra NOWHERE;", "no label `NOWHERE` in this function", "NOWHERE"),
        ("tcgen06.mma %r1;", "unknown instruction `tcgen06.mma`", "tcgen06.mma"),
        ("mbarrier.frob.b64 [%r1];", "unknown instruction `mbarrier.frob.b64`", "mbarrier.frob.b64"),
        ("add.u32.wide %r1, %r2, %r3;", "`add.u32.wide` does not take `.wide` here", ".wide"),
        ("mul.lo.f16x4 %r1, %r2, %r3;", "`mul.lo.f16x4` needs a type", "mul.lo.f16x4"),
        ("mul.lo.b32 %r1, %r2, %r3;", "`mul.lo.b32` does not take `.b32` here", ".b32"),
        ("bar.sync.b32 0;", "`bar.sync.b32` does not take `.b32` here", ".b32"),
        ("mul.u32 %r1, %r2, %r3;", "`mul.u32` needs a half (`.lo`, `.hi`, `.wide`)", "mul.u32"),
        ("call f;", "`f` is not declared", "f"),
        (
            "movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r2;",
            "unsupported: `movmatrix.sync.aligned.m8n8.trans.b16`",
            "movmatrix.sync.aligned.m8n8.trans.b16",
        ),
        ("mov.b128 %rd1, %rd2;", "expected `.b128`, found `.b64` register `%rd1`", "%rd1"),
        ("add.u32 %r1, %r2;", "`add.u32` takes 3 operands, found 2", "add.u32"),
        ("bar.sync 0, 32, 1;", "`bar.sync` takes 1 to 2 operands, found 3", "bar.sync"),
        ("add.u32 %r1, %r2, %f1;", "expected `.u32`, found `.f32` register `%f1`", "%f1"),
        ("add.u64 %rd1, %rd2, %r1;", "expected `.u64`, found `.b32` register `%r1`", "%r1"),
        ("add.u32 %r1, %r2, 1.5;", "expected `.u32`, found a floating-point constant", "1.5"),
        ("mov.b32 %r1, 0x123456789;", "expected `.b32`, found 4886718345, which has more than 32 bits", "0x123456789"),
        ("selp.b32 %r1, 1, 2, %r2;", "expected a predicate, found `.b32` register `%r2`", "%r2"),
        ("ld.global.b32 %r1, %rd1;", "expected an address in brackets, found `%rd1`", "%rd1"),
        ("@%r1 exit;", "expected a predicate, found `.b32` register `%r1`", "%r1"),
        ("bar.sync 17;", "the barrier must be from 0 to 15", "17"),
        (
            "tcgen05.wait::ld.sync.aligned;",
            "`tcgen05.wait::ld.sync.aligned` needs a target with tensor memory, such as sm_100a or sm_100f, but the module's target is sm_90",
            "tcgen05.wait::ld.sync.aligned",
        ),
    ];
    for (instruction, message, place) in cases {
        let column = instruction.rfind(place).unwrap();
        // The first of two equal places, unless the case is about the second.
        let column = if message.contains("already") { column } else { instruction.find(place).unwrap() };
        let carets = "^".repeat(place.len());
        let expected = format!(
            "error: {message}\n --> 6:{}\n  |\n6 |     {instruction}\n  |     {}{carets}\n",
            column + 5,
            " ".repeat(column),
        );
        assert_eq!(of(instruction), expected, "{instruction}");
    }
}

#[test]
fn module_level_errors() {
    for (text, first_line) in [
        ("", "error: expected `.version`, found the end of the text"),
        (".version 8", "error: expected a version such as `8.8`, found `8`"),
        (".version 8.8\n.target volta", "error: expected a target such as `sm_100a`, found `volta`"),
        (".version 8.8\n.target sm_90\n.address_size 32", "error: expected `64`, found `32`"),
        (
            ".version 8.8\n.target sm_90\n.entry k() { exit;",
            "error: expected a statement or `}`, found the end of the text",
        ),
        (
            ".version 8.8\n.target sm_90\n.entry k(.param .b64 p, .param .b64 p) { }",
            "error: `p` is already declared in this scope",
        ),
        (".version 8.8\n.target sm_90\n.entry k() { } .entry k() { }", "error: `k` is already declared in this scope"),
        (
            ".version 8.8\n.target sm_90\n.global .b8 a[2] = {1, 2, 3};",
            "error: the number of initial values must be at most 2",
        ),
        (
            ".version 8.8\n.target sm_90\n.global .b8 a[2] = {256};",
            "error: expected `.b8`, found 256, which has more than 8 bits",
        ),
        (".version 8.8\n.target sm_90\n.section x {", "error: expected `}`, found the end of the text"),
    ] {
        assert_eq!(diagnostic(text).lines().next().unwrap(), first_line, "{text}");
    }
}

#[test]
fn text_that_asks_for_too_much_is_refused_quickly() {
    let start = Instant::now();
    assert!(load(&module(&"{".repeat(100_000))).is_err());
    assert!(load(&module(&format!(".reg .b32 %r; mov.b32 %r, {}1;", "(".repeat(100_000)))).is_err());
    assert!(load(&module(&format!(".reg .b32 %r; mov.b32 %r, {}1;", "-".repeat(100_000)))).is_err());
    assert!(load(&module(&format!(".reg .b32 %r; mov.b32 %r, {}1}};", "{%r, ".repeat(100_000)))).is_err());
    let wide = vec!["%r"; 100_000].join(", ");
    assert!(load(&module(&format!(".reg .b32 %r; add.u32 {wide};"))).is_err());
    assert!(load(&module(&format!("exit{};", ".x".repeat(100_000)))).is_err());
    let nested = format!(".version 8.8\n.target sm_90\n.global .b8 a[4] = {}", "{".repeat(100_000));
    assert!(load(&nested).is_err());
    let arrays = format!(".version 8.8\n.target sm_90\n{}", ".global .b8 a[16777216];".repeat(100));
    assert!(load(&arrays).is_err());
    // Very many blocks are no error, and no recursion either.
    let blocks: String = (0..50_000).map(|i| format!("L{i}: @%p bra L{};\n", (i * 7919) % 50_000)).collect();
    assert!(load(&module(&format!(".reg .pred %p;\n{blocks}"))).is_ok());
    let loops: String = (0..50_000).map(|i| format!("L{i}: @%p bra L{i}; bra L{i};\n")).collect();
    assert!(load(&module(&format!(".reg .pred %p;\n{loops}"))).is_ok());
    assert!(start.elapsed() < Duration::from_secs(20));
}

const SYNTAX: &str = include_str!("data/syntax.ptx");

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(4000) })]

    /// Random edits of a good text: it loads or is refused with a place inside it.
    #[test]
    fn mutated_text_never_panics(edits in prop::collection::vec((any::<prop::sample::Index>(), 0u8..6, any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
        let mut text: Vec<char> = SYNTAX.chars().collect();
        for (place, kind, other, byte) in edits {
            if text.is_empty() {
                break;
            }
            let at = place.index(text.len());
            let character = char::from(byte);
            match kind {
                0 => text[at] = character,
                1 => text.insert(at, character),
                2 => { text.remove(at); }
                3 => text.truncate(at),
                4 => { let to = other.index(text.len()); text.swap(at, to); }
                _ => {
                    // Repeat a piece somewhere else.
                    let end = (at + usize::from(byte)).min(text.len());
                    let piece: Vec<char> = text[at..end].to_vec();
                    let to = other.index(text.len());
                    text.splice(to..to, piece);
                }
            }
        }
        let text: String = text.into_iter().collect();
        if let Err(error) = load(&text) {
            let location = error.location();
            prop_assert!(location.line as usize <= text.lines().count() + 1);
            prop_assert!(!error.diagnostic().is_empty());
        }
    }

    /// Tokens of PTX in random order.
    #[test]
    fn random_tokens_never_panic(picks in prop::collection::vec(any::<prop::sample::Index>(), 0..80)) {
        let words: Vec<&str> = SYNTAX.split_whitespace().collect();
        let body: Vec<&str> = picks.iter().map(|pick| words[pick.index(words.len())]).collect();
        let _ = load(&body.join(" "));
        let _ = load(&module(&format!(".reg .pred %p<8>; .reg .b32 %r<34>; .reg .b64 %rd<12>; {}", body.join(" "))));
    }
}

//! Which spellings of `cvt` between scalar types exist: what ptxas 13.0 assembles, by rules.

mod common;

use common::module;

const INTEGERS: [&str; 8] = ["u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"];
const FLOATS: [&str; 4] = ["f16", "bf16", "f32", "f64"];
const TO_FLOAT: [&str; 4] = [".rn", ".rz", ".rm", ".rp"];
const TO_INTEGER: [&str; 4] = [".rni", ".rzi", ".rmi", ".rpi"];

fn bits(ty: &str) -> u32 {
    ty.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().unwrap()
}

/// Whether every value of an integer type is one of another.
fn holds(to: &str, from: &str) -> bool {
    let range = |ty: &str| match ty.starts_with('s') {
        true => (-(1i128 << (bits(ty) - 1)), (1i128 << (bits(ty) - 1)) - 1),
        false => (0, (1i128 << bits(ty)) - 1),
    };
    range(to).0 <= range(from).0 && range(from).1 <= range(to).1
}

fn assembles(to: &str, from: &str, rounding: &str, flush: bool, saturate: bool) -> bool {
    let single = to == "f32" || from == "f32";
    let bfloat = to == "bf16" || from == "bf16";
    match (FLOATS.contains(&to), FLOATS.contains(&from)) {
        (false, false) => rounding.is_empty() && !flush && !(saturate && holds(to, from)),
        _ if bfloat && (bits(to) == 8 || bits(from) == 8 || saturate) => false,
        (false, true) => TO_INTEGER.contains(&rounding) && (single || !flush),
        (true, false) => TO_FLOAT.contains(&rounding) && (single || !flush),
        (true, true) if to == from => (rounding.is_empty() || TO_INTEGER.contains(&rounding)) && (single || !flush),
        (true, true) => {
            let narrows = bits(to) < bits(from);
            let exact = bits(to) > bits(from) && from != "bf16";
            let rounded = TO_FLOAT.contains(&rounding) && !exact;
            (rounded || rounding.is_empty() && !narrows) && (single || !flush)
        }
    }
}

/// What ptxas takes and the front end does not: modifiers without an effect.
fn has_idle_modifier(to: &str, from: &str, rounding: &str, flush: bool) -> bool {
    let widens_bfloat = from == "bf16" && bits(to) > 16 && !rounding.is_empty() && TO_FLOAT.contains(&rounding);
    widens_bfloat || flush && INTEGERS.contains(&from)
}

#[test]
fn conversions_exist_as_the_assembler_says() {
    let mut counts = (0, 0);
    let types = || INTEGERS.into_iter().chain(FLOATS);
    for (to, from) in types().flat_map(|to| types().map(move |from| (to, from))) {
        for rounding in ["", ".rna"].into_iter().chain(TO_FLOAT).chain(TO_INTEGER) {
            for (flush, saturate) in [(false, false), (false, true), (true, false), (true, true)] {
                let modes = [if flush { ".ftz" } else { "" }, if saturate { ".sat" } else { "" }].concat();
                let register = |ty: &str| bits(ty).max(16);
                let name = format!("cvt{rounding}{modes}.{to}.{from}");
                let text = format!(".reg .b{} %to; .reg .b{} %from; {name} %to, %from;", register(to), register(from));
                let loaded = simulator::ptx::load(&module(&text)).is_ok();
                let expected = assembles(to, from, rounding, flush, saturate);
                counts.0 += u32::from(expected);
                if expected && has_idle_modifier(to, from, rounding, flush) {
                    counts.1 += u32::from(loaded);
                    continue;
                }
                assert_eq!(loaded, expected, "{name}");
            }
        }
    }
    assert_eq!(counts, (794, 0));
}

#[test]
fn refusals_name_the_reason() {
    let registers = ".reg .b16 %h<2>; .reg .b32 %r<2>;";
    for (text, message) in [
        (
            "cvt.sat.u32.u16 %r0, %h0;",
            "`cvt.sat.u32.u16` needs no `.sat` where the destination's type holds every value of the source's",
        ),
        ("cvt.rn.bf16.u8 %h0, %h1;", "`cvt.rn.bf16.u8` needs an integer of at least 16 bits with `.bf16`"),
        ("cvt.rzi.s8.bf16 %h0, %h1;", "`cvt.rzi.s8.bf16` needs an integer of at least 16 bits with `.bf16`"),
        ("cvt.rn.sat.bf16.f32 %h0, %r0;", "`cvt.rn.sat.bf16.f32` needs no `.sat` with `.bf16`"),
    ] {
        let error = simulator::ptx::load(&module(&format!("{registers}\n{text}"))).unwrap_err();
        assert_eq!(error.to_string(), message);
    }
}

//! What the lanes of a warp, and the warps of a CTA, exchange.

use super::{Case, output, words};
use crate::inputs::Random;

const GRID: u32 = 4;
const BLOCK: u32 = 128;

/// `text` makes `%value` and `%flag` of `%in0` (bits of which few differ in a warp), `%in1` and `%in2` (random).
fn case(name: &str, text: &str) -> Case {
    let threads = GRID * BLOCK;
    let mut random = Random::new(11);
    let alike = (0..threads).map(|thread| match thread / 32 % 4 {
        0 => random.next() as u32,
        1 => 0x1234_5679,
        2 => 0x8000_0000,
        _ => random.below(3) as u32,
    });
    let alike = words(alike.collect::<Vec<_>>());
    let mut list = |_| words((0..threads).map(|_| random.next() as u32).collect::<Vec<_>>());
    let parameters = vec![alike, list(1), list(2), output(8 * threads as usize)];
    let body = format!(
        ".reg .b32 %in<3>, %value; .reg .pred %flag; .reg .b64 %wide;
mad.lo.u32 %r1, %cta, {BLOCK}, %thread; mul.wide.u32 %rd9, %r1, 4;
ld.param.u64 %rd1, [p0]; add.u64 %rd1, %rd1, %rd9; ld.global.b32 %in0, [%rd1];
ld.param.u64 %rd1, [p1]; add.u64 %rd1, %rd1, %rd9; ld.global.b32 %in1, [%rd1];
ld.param.u64 %rd1, [p2]; add.u64 %rd1, %rd1, %rd9; ld.global.b32 %in2, [%rd1];
mov.u32 %value, 0x5a5a5a5a; setp.ne.u32 %flag, %r1, %r1;
{text}
selp.b32 %r2, 1, 0, %flag; ld.param.u64 %rd1, [p3]; mul.wide.u32 %rd9, %r1, 8; add.u64 %rd1, %rd1, %rd9;
st.global.v2.b32 [%rd1], {{%value, %r2}};"
    );
    Case { grid: GRID, ..Case::exact(name, body, BLOCK, parameters) }
}

/// The mask in `%r5` of the lanes that execute, those where `%p4`.
const HALVES: [(&str, &str); 3] = [
    ("all lanes", "setp.eq.u32 %p4, %r1, %r1; mov.b32 %r5, 0xffffffff;"),
    ("low half", "setp.lt.u32 %p4, %lane, 16; mov.b32 %r5, 0xffff;"),
    ("odd lanes", "and.b32 %r6, %lane, 1; setp.eq.u32 %p4, %r6, 1; mov.b32 %r5, 0xaaaaaaaa;"),
];

pub fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    for mode in ["up", "down", "bfly", "idx"] {
        for width in [32, 16, 8, 1] {
            let clamp = (32 - width) << 8 | if mode == "up" { 0 } else { 0x1f };
            cases.push(case(
                &format!("shfl.sync.{mode}.b32 width {width}"),
                &format!("shfl.sync.{mode}.b32 %value|%flag, %in1, %in2, {clamp:#x}, 0xffffffff;"),
            ));
        }
        cases.push(case(
            &format!("shfl.sync.{mode}.b32 clamp and segments of each lane"),
            &format!("shl.b32 %r3, %in0, 3; xor.b32 %r3, %r3, %in1; shfl.sync.{mode}.b32 %value|%flag, %in1, %in2, %r3, 0xffffffff;"),
        ));
    }
    cases.push(case(
        "shfl.sync.bfly.b32 in the low half",
        "setp.lt.u32 %p4, %lane, 16; and.b32 %r3, %lane, 15; @%p4 shfl.sync.bfly.b32 %value|%flag, %in1, 5, 0x1f, 0xffff;",
    ));
    for (lanes, mask) in HALVES {
        let guarded = |name: &str, text: String| case(&format!("{name}, {lanes}"), &format!("{mask} {text}"));
        for mode in ["all", "any", "uni"] {
            cases.push(guarded(
                &format!("vote.sync.{mode}.pred"),
                format!("and.b32 %r7, %in0, 1; setp.eq.u32 %p5, %r7, 1; @%p4 vote.sync.{mode}.pred %flag, %p5, %r5;"),
            ));
        }
        cases.push(guarded(
            "vote.sync.ballot.b32",
            "and.b32 %r7, %in0, 1; setp.eq.u32 %p5, %r7, 1; @%p4 vote.sync.ballot.b32 %value, !%p5, %r5;".into(),
        ));
        for bits in [32, 64] {
            let source = if bits == 32 { "%in0" } else { "%wide" };
            let wide = "mov.b64 %wide, {%lane, %in0}; and.b64 %wide, %wide, 0xffffffff00000001;";
            cases.push(guarded(
                &format!("match.any.sync.b{bits}"),
                format!("{wide} @%p4 match.any.sync.b{bits} %value, {source}, %r5;"),
            ));
            cases.push(guarded(
                &format!("match.all.sync.b{bits}"),
                format!("{wide} @%p4 match.all.sync.b{bits} %value|%flag, {source}, %r5;"),
            ));
        }
        for name in ["add.u32", "add.s32", "min.u32", "min.s32", "max.u32", "max.s32", "and.b32", "or.b32", "xor.b32"] {
            cases.push(guarded(&format!("redux.sync.{name}"), format!("@%p4 redux.sync.{name} %value, %in1, %r5;")));
        }
        cases.push(guarded("elect.sync", "@%p4 elect.sync %value|%flag, %r5;".into()));
    }
    for (name, text) in [
        ("popc.u32", "barrier.cta.red.popc.aligned.u32 %value, 1, %p5;"),
        ("and.pred", "barrier.cta.red.and.aligned.pred %flag, 1, %p5;"),
        ("or.pred", "barrier.cta.red.or.aligned.pred %flag, 1, !%p5;"),
    ] {
        cases.push(case(
            &format!("barrier.cta.red.{name}"),
            &format!("and.b32 %r7, %in2, 1; or.b32 %r7, %r7, %cta; setp.ne.u32 %p5, %r7, 0; {text}"),
        ));
    }
    cases
}

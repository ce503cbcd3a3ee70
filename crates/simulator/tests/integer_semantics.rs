//! Integer, logic, bit-field, comparison and predicate instructions against plain Rust.

#![allow(missing_docs)]

mod common;

use common::Scalar;
use proptest::prelude::*;

fn integer() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        0u64..70,
        Just(u64::MAX),
        Just(1 << 63),
        Just(0x7fff_ffff_ffff_ffff),
        Just(0x8000_0000),
        Just(0x7fff_ffff),
        Just(0xffff_ffff),
        Just(0x8000),
        Just(0x7fff),
    ]
}

macro_rules! check {
    ($text:expr, $bits:expr, $output:expr, $inputs:expr, $expected:expr) => {{
        let text: &str = &$text;
        let inputs: Vec<u64> =
            $inputs.iter().zip($bits.iter()).map(|(&v, &b): (&u64, &u32)| v & (u64::MAX >> (64 - b))).collect();
        prop_assert_eq!(Scalar::new(text, &$bits, $output).run(&inputs), $expected as u64, "{} {:x?}", text, inputs);
    }};
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

    #[test]
    fn arithmetic_of_32_bits(a in integer(), b in integer(), c in integer()) {
        let (ua, ub, uc) = (a as u32, b as u32, c as u32);
        let (sa, sb, sc) = (a as i32, b as i32, c as i32);
        let two = |text: &str, expected: u32| -> Result<(), TestCaseError> {
            check!(text, [32u32, 32], 32, [a, b], expected);
            Ok(())
        };
        let three = |text: &str, expected: u32| -> Result<(), TestCaseError> {
            check!(text, [32u32, 32, 32], 32, [a, b, c], expected);
            Ok(())
        };
        two("add.u32 %out, %in0, %in1;", ua.wrapping_add(ub))?;
        two("sub.s32 %out, %in0, %in1;", ua.wrapping_sub(ub))?;
        two("add.sat.s32 %out, %in0, %in1;", sa.saturating_add(sb) as u32)?;
        two("sub.sat.s32 %out, %in0, %in1;", sa.saturating_sub(sb) as u32)?;
        two("mul.lo.s32 %out, %in0, %in1;", ua.wrapping_mul(ub))?;
        two("mul.hi.u32 %out, %in0, %in1;", ((u64::from(ua) * u64::from(ub)) >> 32) as u32)?;
        two("mul.hi.s32 %out, %in0, %in1;", ((i64::from(sa) * i64::from(sb)) >> 32) as u32)?;
        two("min.s32 %out, %in0, %in1;", sa.min(sb) as u32)?;
        two("max.u32 %out, %in0, %in1;", ua.max(ub))?;
        two("min.relu.s32 %out, %in0, %in1;", sa.min(sb).max(0) as u32)?;
        two("div.u32 %out, %in0, %in1;", ua.checked_div(ub).unwrap_or(u32::MAX))?;
        two("rem.u32 %out, %in0, %in1;", ua.checked_rem(ub).unwrap_or(u32::MAX))?;
        if sb != 0 {
            two("div.s32 %out, %in0, %in1;", sa.wrapping_div(sb) as u32)?;
            two("rem.s32 %out, %in0, %in1;", sa.wrapping_rem(sb) as u32)?;
        }
        three("mad.lo.u32 %out, %in0, %in1, %in2;", ua.wrapping_mul(ub).wrapping_add(uc))?;
        three("mad.hi.s32 %out, %in0, %in1, %in2;", (((i64::from(sa) * i64::from(sb)) >> 32) as i32).wrapping_add(sc) as u32)?;
        three("sad.s32 %out, %in0, %in1, %in2;", sa.abs_diff(sb).wrapping_add(uc))?;
        check!("neg.s32 %out, %in0;", [32u32], 32, [a], sa.wrapping_neg() as u32);
        check!("abs.s32 %out, %in0;", [32u32], 32, [a], sa.wrapping_abs() as u32);
        check!("mul.wide.s32 %out, %in0, %in1;", [32u32, 32], 64, [a, b], i64::from(sa) * i64::from(sb));
        check!("mul.wide.u32 %out, %in0, %in1;", [32u32, 32], 64, [a, b], u64::from(ua) * u64::from(ub));
        check!("mad.wide.s32 %out, %in0, %in1, %in2;", [32u32, 32, 64], 64, [a, b, c], (i64::from(sa) * i64::from(sb)).wrapping_add(c as i64));
    }

    #[test]
    fn arithmetic_of_other_widths(a in integer(), b in integer(), c in integer()) {
        let (sa, sb) = (a as i64, b as i64);
        check!("add.s64 %out, %in0, %in1;", [64u32, 64], 64, [a, b], a.wrapping_add(b));
        check!("mul.lo.s64 %out, %in0, %in1;", [64u32, 64], 64, [a, b], a.wrapping_mul(b));
        check!("mul.hi.u64 %out, %in0, %in1;", [64u32, 64], 64, [a, b], (u128::from(a) * u128::from(b)) >> 64);
        check!("mul.hi.s64 %out, %in0, %in1;", [64u32, 64], 64, [a, b], ((i128::from(sa) * i128::from(sb)) >> 64) as i64);
        check!("min.s64 %out, %in0, %in1;", [64u32, 64], 64, [a, b], sa.min(sb));
        check!("mad.lo.s64 %out, %in0, %in1, %in2;", [64u32, 64, 64], 64, [a, b, c], a.wrapping_mul(b).wrapping_add(c));
        if b != 0 {
            check!("div.s64 %out, %in0, %in1;", [64u32, 64], 64, [a, b], sa.wrapping_div(sb));
            check!("rem.u64 %out, %in0, %in1;", [64u32, 64], 64, [a, b], a % b);
        }
        check!("add.u16 %out, %in0, %in1;", [16u32, 16], 16, [a, b], (a as u16).wrapping_add(b as u16));
        check!("mul.hi.s16 %out, %in0, %in1;", [16u32, 16], 16, [a, b], ((i32::from(a as i16) * i32::from(b as i16)) >> 16) as u16);
        check!("mul.wide.s16 %out, %in0, %in1;", [16u32, 16], 32, [a, b], (i32::from(a as i16) * i32::from(b as i16)) as u32);
        check!("max.s16 %out, %in0, %in1;", [16u32, 16], 16, [a, b], (a as i16).max(b as i16) as u16);
        check!("neg.s16 %out, %in0;", [16u32], 16, [a], (a as i16).wrapping_neg() as u16);
        let pair = |f: fn(u16, u16) -> u16| u64::from(f(a as u16, b as u16)) | u64::from(f((a >> 16) as u16, (b >> 16) as u16)) << 16;
        check!("add.u16x2 %out, %in0, %in1;", [32u32, 32], 32, [a, b], pair(u16::wrapping_add));
        check!("max.s16x2 %out, %in0, %in1;", [32u32, 32], 32, [a, b], pair(|x, y| (x as i16).max(y as i16) as u16));
    }

    #[test]
    fn wide_sums_by_carry(a in any::<u128>(), b in any::<u128>(), c in any::<u64>(), d in any::<u64>()) {
        let parts = |x: u128| [x as u64, (x >> 64) as u64];
        let inputs = [parts(a), parts(b)].concat();
        let low = |op: &str| format!("{op}.cc.u64 %out, %in0, %in2;\n");
        let sum = low("add") + "addc.u64 %out, %in1, %in3;";
        check!(sum, [64u32, 64, 64, 64], 64, inputs, (a.wrapping_add(b) >> 64) as u64);
        let difference = low("sub") + "subc.u64 %out, %in1, %in3;";
        check!(difference, [64u32, 64, 64, 64], 64, inputs, (a.wrapping_sub(b) >> 64) as u64);
        let product = "mad.lo.cc.u64 %out, %in0, %in1, %in2;\nmadc.hi.u64 %out, %in0, %in1, %in3;";
        let expected = (u128::from(c) * u128::from(d)).wrapping_add(b);
        check!(product, [64u32, 64, 64, 64], 64, [c, d, b as u64, (b >> 64) as u64], (expected >> 64) as u64);
        let words = "add.cc.u32 %out, %in0, %in1;\naddc.u32 %out, %in2, 0;";
        let expected = (c as u32).wrapping_add(u32::from((a as u32).checked_add(b as u32).is_none()));
        check!(words, [32u32, 32, 32], 32, [a as u64, b as u64, c], expected);
    }

    #[test]
    fn bits_and_shifts(a in integer(), b in integer(), c in integer(), table in any::<u8>()) {
        let (x, y, z) = (a as u32, b as u32, c as u32);
        check!("and.b32 %out, %in0, %in1;", [32u32, 32], 32, [a, b], x & y);
        check!("xor.b64 %out, %in0, %in1;", [64u32, 64], 64, [a, b], a ^ b);
        check!("not.b16 %out, %in0;", [16u32], 16, [a], !(a as u16));
        check!("cnot.b32 %out, %in0;", [32u32], 32, [a], u32::from(x == 0));
        check!("clz.b32 %out, %in0;", [32u32], 32, [a], x.leading_zeros());
        check!("clz.b64 %out, %in0;", [64u32], 32, [a], a.leading_zeros());
        check!("popc.b64 %out, %in0;", [64u32], 32, [a], a.count_ones());
        check!("brev.b32 %out, %in0;", [32u32], 32, [a], x.reverse_bits());
        let expected = (0..32).fold(0u32, |word, i| {
            let index = (x >> i & 1) << 2 | (y >> i & 1) << 1 | (z >> i & 1);
            word | u32::from(table >> index & 1) << i
        });
        check!(format!("lop3.b32 %out, %in0, %in1, %in2, {table};"), [32u32, 32, 32], 32, [a, b, c], expected);
        check!("shl.b32 %out, %in0, %in1;", [32u32, 32], 32, [a, b], x.checked_shl(y).unwrap_or(0));
        check!("shr.u64 %out, %in0, %in1;", [64u32, 32], 64, [a, b], a.checked_shr(y).unwrap_or(0));
        check!("shr.s32 %out, %in0, %in1;", [32u32, 32], 32, [a, b], ((x as i32) >> y.min(31)) as u32);
        check!("shr.s16 %out, %in0, %in1;", [16u32, 32], 16, [a, b], ((a as i16) >> y.min(15)) as u16);
        let pair = u64::from(y) << 32 | u64::from(x);
        check!("shf.l.wrap.b32 %out, %in0, %in1, %in2;", [32u32, 32, 32], 32, [a, b, c], ((pair << (z & 31)) >> 32) as u32);
        check!("shf.r.wrap.b32 %out, %in0, %in1, %in2;", [32u32, 32, 32], 32, [a, b, c], (pair >> (z & 31)) as u32);
        check!("shf.r.clamp.b32 %out, %in0, %in1, %in2;", [32u32, 32, 32], 32, [a, b, c], (pair >> z.min(32)) as u32);
        check!("shf.l.clamp.b32 %out, %in0, %in1, %in2;", [32u32, 32, 32], 32, [a, b, c], if z >= 32 { x } else { ((pair << z) >> 32) as u32 });
        let expected = (0..4).fold(0u32, |word, i| {
            let nibble = z >> (4 * i) & 15;
            let byte = (pair >> (8 * (nibble & 7))) as u8;
            let byte = if nibble & 8 != 0 { ((byte as i8) >> 7) as u8 } else { byte };
            word | u32::from(byte) << (8 * i)
        });
        check!("prmt.b32 %out, %in0, %in1, %in2;", [32u32, 32, 32], 32, [a, b, c], expected);
    }

    #[test]
    fn bit_fields(a in integer(), b in integer(), position in 0u64..300, length in 0u64..300) {
        // As the ISA's pseudocode has it, bit by bit.
        let extract = |bits: u32, signed: bool| {
            let (position, length) = ((position & 0xff) as u32, (length & 0xff) as u32);
            let top = bits - 1;
            let sign = if !signed || length == 0 { 0 } else { a >> (position + length - 1).min(top) & 1 };
            (0..bits).fold(0u64, |word, i| {
                let bit = if i < length && position + i <= top { a >> (position + i) & 1 } else { sign };
                word | bit << i
            })
        };
        for (ty, bits, signed) in [("u32", 32u32, false), ("s32", 32, true), ("u64", 64, false), ("s64", 64, true)] {
            let text = format!("bfe.{ty} %out, %in0, %in1, %in2;");
            check!(text, [bits, 32, 32], bits, [a, position, length], extract(bits, signed));
            let significant = if signed && a >> (bits - 1) & 1 != 0 { !a } else { a } & (u64::MAX >> (64 - bits));
            let found = significant.checked_ilog2().unwrap_or(u32::MAX);
            check!(format!("bfind.{ty} %out, %in0;"), [bits], 32, [a], found);
            let shift = if found == u32::MAX { found } else { bits - 1 - found };
            check!(format!("bfind.shiftamt.{ty} %out, %in0;"), [bits], 32, [a], shift);
        }
        for bits in [32u32, 64] {
            let (from, count) = ((position & 0xff) as u32, (length & 0xff) as u32);
            let expected = (0..count).filter(|i| from + i < bits).fold(b & (u64::MAX >> (64 - bits)), |word, i| {
                word & !(1 << (from + i)) | (a >> i & 1) << (from + i)
            });
            let text = format!("bfi.b{bits} %out, %in0, %in1, %in2, %in3;");
            check!(text, [bits, bits, 32, 32], bits, [a, b, position, length], expected);
        }
        let (from, count) = (position.min(32), length.min(32));
        check!("bmsk.clamp.b32 %out, %in0, %in1;", [32u32, 32], 32, [position, length], (((1u64 << count) - 1) << from) as u32);
        let kept = if count == 0 { 0 } else { ((a as u32) << (32 - count)) as i32 >> (32 - count) };
        check!("szext.clamp.s32 %out, %in0, %in1;", [32u32, 32], 32, [a, length], kept as u32);
    }

    #[test]
    fn dot_products(a in any::<u32>(), b in any::<u32>(), c in any::<u32>()) {
        let inputs = [u64::from(a), b.into(), c.into()];
        let signed = (0..4).fold(c as i32, |sum, i| sum.wrapping_add(i32::from(a.to_le_bytes()[i] as i8) * i32::from(b.to_le_bytes()[i] as i8)));
        check!("dp4a.s32.s32 %out, %in0, %in1, %in2;", [32u32, 32, 32], 32, inputs, signed as u32);
        let mixed = (0..4).fold(c as i32, |sum, i| sum.wrapping_add(i32::from(a.to_le_bytes()[i]) * i32::from(b.to_le_bytes()[i] as i8)));
        check!("dp4a.u32.s32 %out, %in0, %in1, %in2;", [32u32, 32, 32], 32, inputs, mixed as u32);
        let high = (0..2).fold(c, |sum, i| sum.wrapping_add((a >> (16 * i) & 0xffff) * (b >> (8 * (2 + i)) & 0xff)));
        check!("dp2a.hi.u32.u32 %out, %in0, %in1, %in2;", [32u32, 32, 32], 32, inputs, high);
    }

    #[test]
    fn comparisons(a in integer(), b in integer(), equal in any::<bool>()) {
        let b = if equal { a } else { b };
        let run = |text: &str, bits: u32| {
            let mask = u64::MAX >> (64 - bits);
            Scalar::new(&format!("{text}\nselp.b32 %out, 1, 0, %p;"), &[bits, bits], 32).run(&[a & mask, b & mask]) != 0
        };
        for (name, ordering) in [("eq", a as i32 == b as i32), ("ne", a as i32 != b as i32), ("lt", (a as i32) < b as i32), ("le", a as i32 <= b as i32), ("gt", a as i32 > b as i32), ("ge", a as i32 >= b as i32)] {
            prop_assert_eq!(run(&format!("setp.{name}.s32 %p, %in0, %in1;"), 32), ordering);
        }
        prop_assert_eq!(run("setp.lo.u32 %p, %in0, %in1;", 32), (a as u32) < b as u32);
        prop_assert_eq!(run("setp.hs.u64 %p, %in0, %in1;", 64), a >= b);
        prop_assert_eq!(run("setp.lt.s16 %p, %in0, %in1;", 16), (a as i16) < b as i16);
        prop_assert_eq!(run("setp.lt.u32 %q|%p, %in0, %in1;", 32), (a as u32) >= b as u32);
        let combined = "setp.lt.u32 %q, %in0, %in1;\nsetp.gt.xor.s32 %p, %in0, %in1, !%q;";
        prop_assert_eq!(run(combined, 32), (a as i32 > b as i32) ^ ((a as u32) >= b as u32));
        let (x, y) = (f32::from_bits(a as u32), f32::from_bits(b as u32));
        let unordered = x.is_nan() || y.is_nan();
        for (name, holds) in [("eq", x == y), ("ne", !unordered && x != y), ("lt", x < y), ("ge", x >= y), ("equ", unordered || x == y), ("neu", x != y), ("ltu", unordered || x < y), ("geu", unordered || x >= y), ("num", !unordered), ("nan", unordered)] {
            prop_assert_eq!(run(&format!("setp.{name}.f32 %p, %in0, %in1;"), 32), holds, "{}", name);
        }
        let set = |text: &str| Scalar::new(text, &[32, 32], 32).run(&[a & 0xffff_ffff, b & 0xffff_ffff]);
        prop_assert_eq!(set("set.le.u32.s32 %out, %in0, %in1;"), if a as i32 <= b as i32 { 0xffff_ffff } else { 0 });
        prop_assert_eq!(set("set.lt.f32.u32 %out, %in0, %in1;"), if (a as u32) < b as u32 { 0x3f80_0000 } else { 0 });
        prop_assert_eq!(set("slct.b32.s32 %out, 7, 9, %in0;"), if a as i32 >= 0 { 7 } else { 9 });
    }

    #[test]
    fn packing_and_integer_conversion(a in integer(), b in integer()) {
        check!("mov.b32 %out, {%in0, %in1};", [16u32, 16], 32, [a, b], (a & 0xffff) | (b & 0xffff) << 16);
        check!("mov.b64 %out, {%in0, %in1};", [32u32, 32], 64, [a, b], (a & 0xffff_ffff) | b << 32);
        check!("mov.b64 {_, %out}, %in0;", [64u32], 32, [a], a >> 32);
        check!("mov.b32 {%out, _}, %in0;", [32u32], 16, [a], a & 0xffff);
        check!("mov.b64 {_, _, %out, _}, %in0;", [64u32], 16, [a], a >> 32 & 0xffff);
        check!("cvt.s64.s32 %out, %in0;", [32u32], 64, [a], i64::from(a as i32));
        check!("cvt.u64.u32 %out, %in0;", [32u32], 64, [a], a as u32);
        check!("cvt.u16.u32 %out, %in0;", [32u32], 16, [a], a as u16);
        check!("cvt.s8.s32 %out, %in0;", [32u32], 32, [a], i32::from(a as i8) as u32);
        check!("cvt.u8.u32 %out, %in0;", [32u32], 16, [a], a as u8);
        check!("cvt.sat.u8.s32 %out, %in0;", [32u32], 32, [a], (a as i32).clamp(0, 255));
        check!("cvt.sat.s16.u32 %out, %in0;", [32u32], 16, [a], (a as u32).min(0x7fff));
        check!("cvt.s32.s8 %out, %in0;", [32u32], 32, [a], i32::from(a as i8) as u32);
    }
}

#[test]
fn byte_permutation_modes() {
    let run = |mode: &str, n: u64| {
        let scalar = Scalar::new(&format!("prmt.b32.{mode} %out, %in0, %in1, %in2;"), &[32, 32, 32], 32);
        scalar.run(&[0x3322_1100, 0x7766_5544, n])
    };
    assert_eq!([0, 1, 2, 3].map(|n| run("f4e", n)), [0x3322_1100, 0x4433_2211, 0x5544_3322, 0x6655_4433]);
    assert_eq!([0, 1, 2, 3].map(|n| run("b4e", n)), [0x5566_7700, 0x6677_0011, 0x7700_1122, 0x0011_2233]);
    assert_eq!([0, 1, 2, 3].map(|n| run("rc8", n)), [0, 0x1111_1111, 0x2222_2222, 0x3333_3333]);
    assert_eq!([0, 1, 2, 3].map(|n| run("ecl", n)), [0x3322_1100, 0x3322_1111, 0x3322_2222, 0x3333_3333]);
    assert_eq!([0, 1, 2, 3].map(|n| run("ecr", n)), [0, 0x1111_1100, 0x2222_1100, 0x3322_1100]);
    assert_eq!([0, 1, 2, 3].map(|n| run("rc16", n)), [0x1100_1100, 0x3322_3322, 0x1100_1100, 0x3322_3322]);
}

#[test]
fn nth_set_bit() {
    let scalar = Scalar::new("fns.b32 %out, %in0, %in1, %in2;", &[32, 32, 32], 32);
    let run = |mask, base, offset: i32| scalar.run(&[mask, base, u64::from(offset as u32)]);
    assert_eq!(run(0b1011_0100, 0, 1), 2);
    assert_eq!(run(0b1011_0100, 0, 3), 5);
    assert_eq!(run(0b1011_0100, 5, -2), 4);
    assert_eq!(run(0b1011_0100, 4, 0), 4);
    assert_eq!(run(0b1011_0100, 0, 5), 0xffff_ffff);
}

#[test]
fn predicate_logic() {
    let run = |text: &str, a: u64, b: u64| {
        let body = format!("setp.ne.u32 %p, %in0, 0;\nsetp.ne.u32 %q, %in1, 0;\n{text}\nselp.u32 %out, 1, 0, %p;");
        Scalar::new(&body, &[32, 32], 32).run(&[a, b])
    };
    for (a, b) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        assert_eq!(run("and.pred %p, %p, %q;", a, b), a & b);
        assert_eq!(run("or.pred %p, %p, %q;", a, b), a | b);
        assert_eq!(run("xor.pred %p, %p, %q;", a, b), a ^ b);
        assert_eq!(run("not.pred %p, %q;", a, b), 1 - b);
        assert_eq!(run("mov.pred %p, %q;", a, b), b);
        assert_eq!(run("mov.pred %p, -1;", a, b), 1);
    }
}

//! Floating-point instructions against references: native arithmetic to nearest, and the definition of each rounding.

#![allow(missing_docs)]

mod common;

use common::Scalar;
use proptest::prelude::*;

/// Values where rounding, overflow, cancellation and special cases live.
fn float32() -> impl Strategy<Value = u32> {
    prop_oneof![
        any::<u32>(),
        Just(0),
        Just(0x8000_0000),
        Just(0x7f80_0000),
        Just(0xff80_0000),
        Just(0x7fc0_0000),
        Just(1),
        Just(0x807f_ffff),
        Just(0x0080_0000),
        Just(0x7f7f_ffff),
        (-40i32..40, any::<u32>()).prop_map(|(e, f)| (((127 + e) as u32) << 23) | (f & 0x807f_ffff)),
    ]
}

fn float64() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        Just(0),
        Just(1 << 63),
        Just(0x7ff0_0000_0000_0000),
        Just(1),
        Just(0x7fef_ffff_ffff_ffff),
        Just(0x0010_0000_0000_0000),
        (-80i64..80, any::<u64>()).prop_map(|(e, f)| (((1023 + e) as u64) << 52) | (f & 0x800f_ffff_ffff_ffff)),
        // Few significant bits, so that exact results and ties are common.
        (-30i64..30, 0u64..64, any::<bool>())
            .prop_map(|(e, f, s)| { (((1023 + e) as u64) << 52) | (f << 46) | (u64::from(s) << 63) }),
    ]
}

fn canonical32(value: f32) -> u64 {
    u64::from(if value.is_nan() { 0x7fff_ffff } else { value.to_bits() })
}

fn next_up32(x: f32) -> f32 {
    x.next_up()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(4000) })]

    #[test]
    fn to_nearest_is_native(a in float32(), b in float32(), c in float32()) {
        let (x, y, z) = (f32::from_bits(a), f32::from_bits(b), f32::from_bits(c));
        let two = [u64::from(a), u64::from(b)];
        for (name, expected) in [("add", x + y), ("sub", x - y), ("mul", x * y), ("div", x / y)] {
            let text = format!("{name}.rn.f32 %out, %in0, %in1;");
            prop_assert_eq!(Scalar::new(&text, &[32, 32], 32).run(&two), canonical32(expected), "{}", text);
        }
        let fma = Scalar::new("fma.rn.f32 %out, %in0, %in1, %in2;", &[32, 32, 32], 32);
        prop_assert_eq!(fma.run(&[a.into(), b.into(), c.into()]), canonical32(x.mul_add(y, z)));
        let root = Scalar::new("sqrt.rn.f32 %out, %in0;", &[32], 32);
        prop_assert_eq!(root.run(&[a.into()]), canonical32(x.sqrt()));
    }

    /// Directed results bracket the nearest one and are neighbours unless the result is exact.
    #[test]
    fn directed_roundings_bracket_the_exact_result(a in float32(), b in float32(), c in float32()) {
        let inputs = [u64::from(a), u64::from(b), u64::from(c)];
        for (name, count) in [("add", 2), ("sub", 2), ("mul", 2), ("div", 2), ("fma", 3), ("sqrt", 1)] {
            let sources = ["%in0", "%in0, %in1", "%in0, %in1, %in2"][count - 1];
            let bits = vec![32; count];
            let run = |rounding: &str| {
                let text = format!("{name}.{rounding}.f32 %out, {sources};");
                f32::from_bits(Scalar::new(&text, &bits, 32).run(&inputs[..count]) as u32)
            };
            let (nearest, zero, down, up) = (run("rn"), run("rz"), run("rm"), run("rp"));
            if nearest.is_nan() {
                prop_assert!(zero.is_nan() && down.is_nan() && up.is_nan());
                continue;
            }
            prop_assert!(down <= nearest && nearest <= up, "{} {} {} {}", name, down, nearest, up);
            prop_assert!(nearest == down || nearest == up);
            prop_assert!(up == down || next_up32(down) == up, "{} {:e} {:e}", name, down, up);
            let towards_zero = if up <= 0.0 && down < 0.0 { up } else { down };
            prop_assert_eq!(zero, towards_zero);
        }
    }

    #[test]
    fn doubles_to_nearest_are_native_and_directed_ones_bracket_them(a in float64(), b in float64(), c in float64()) {
        let (x, y, z) = (f64::from_bits(a), f64::from_bits(b), f64::from_bits(c));
        let cases = [
            ("add", 2, x + y), ("sub", 2, x - y), ("mul", 2, x * y), ("div", 2, x / y),
            ("fma", 3, x.mul_add(y, z)), ("sqrt", 1, x.sqrt()),
        ];
        for (name, count, expected) in cases {
            let sources = ["%in0", "%in0, %in1", "%in0, %in1, %in2"][count - 1];
            let bits = vec![64; count];
            let run = |rounding: &str| {
                let text = format!("{name}.{rounding}.f64 %out, {sources};");
                f64::from_bits(Scalar::new(&text, &bits, 64).run(&[a, b, c][..count]))
            };
            let (nearest, zero, down, up) = (run("rn"), run("rz"), run("rm"), run("rp"));
            if expected.is_nan() {
                prop_assert!(nearest.is_nan() && zero.is_nan() && down.is_nan() && up.is_nan());
                continue;
            }
            prop_assert_eq!(nearest.to_bits(), expected.to_bits());
            prop_assert!(down <= nearest && nearest <= up, "{} {:e} {:e} {:e}", name, down, nearest, up);
            prop_assert!(nearest == down || nearest == up);
            prop_assert!(up == down || down.next_up() == up, "{} {:e} {:e}", name, down, up);
            prop_assert_eq!(zero, if up <= 0.0 && down < 0.0 { up } else { down });
        }
    }

    #[test]
    fn flushing_and_saturation(a in float32(), b in float32()) {
        let flush = |x: f32| if x.is_subnormal() { 0f32.copysign(x) } else { x };
        let (x, y) = (flush(f32::from_bits(a)), flush(f32::from_bits(b)));
        let run = |text: &str| Scalar::new(text, &[32, 32], 32).run(&[a.into(), b.into()]);
        prop_assert_eq!(run("mul.ftz.f32 %out, %in0, %in1;"), canonical32(flush(x * y)));
        let product = f32::from_bits(a) * f32::from_bits(b);
        let clamped = if product > 0.0 { product.min(1.0) } else { 0.0 };
        prop_assert_eq!(run("mul.sat.f32 %out, %in0, %in1;"), canonical32(clamped));
    }

    #[test]
    fn minimum_and_maximum(a in float32(), b in float32()) {
        let (x, y) = (f32::from_bits(a), f32::from_bits(b));
        let run = |text: &str| Scalar::new(text, &[32, 32], 32).run(&[a.into(), b.into()]);
        // `f32::min` ignores NaN too, but leaves the sign of equal zeros open.
        if x != 0.0 || y != 0.0 {
            prop_assert_eq!(run("min.f32 %out, %in0, %in1;"), canonical32(x.min(y)));
            prop_assert_eq!(run("max.f32 %out, %in0, %in1;"), canonical32(x.max(y)));
        }
        let either = x.is_nan() || y.is_nan();
        let propagating = if either { 0x7fff_ffff } else { run("max.f32 %out, %in0, %in1;") };
        prop_assert_eq!(run("max.NaN.f32 %out, %in0, %in1;"), propagating);
    }

    #[test]
    fn conversions_between_floats(a in float32(), d in float64()) {
        let x = f32::from_bits(a);
        let run = |text: &str, output| Scalar::new(text, &[32], output).run(&[a.into()]);
        let half = half::f16::from_f32(x);
        let bfloat = half::bf16::from_f32(x);
        prop_assert_eq!(run("cvt.rn.f16.f32 %out, %in0;", 16), if x.is_nan() { 0x7fff } else { half.to_bits().into() });
        prop_assert_eq!(run("cvt.rn.bf16.f32 %out, %in0;", 16), if x.is_nan() { 0x7fff } else { bfloat.to_bits().into() });
        prop_assert_eq!(run("cvt.f64.f32 %out, %in0;", 64), f64::from(x).to_bits());
        let narrowed = Scalar::new("cvt.rn.f32.f64 %out, %in0;", &[64], 32).run(&[d]);
        prop_assert_eq!(narrowed, canonical32(f64::from_bits(d) as f32));
        let both = Scalar::new("cvt.rn.bf16x2.f32 %out, %in0, %in1;", &[32, 32], 32).run(&[a.into(), 0x3f80_0000]);
        prop_assert_eq!(both, (run("cvt.rn.bf16.f32 %out, %in0;", 16) << 16) | 0x3f80);
        // Rounding towards zero drops bits, unless that makes the NaN or infinity something else.
        let truncated = run("cvt.rz.bf16.f32 %out, %in0;", 16);
        prop_assert_eq!(truncated, if x.is_nan() { 0x7fff } else { u64::from(a >> 16) });
    }

    #[test]
    fn conversions_to_integers(a in float32(), d in float64()) {
        let (x, y) = (f32::from_bits(a), f64::from_bits(d));
        let single = |text: &str, output| Scalar::new(text, &[32], output).run(&[a.into()]);
        let double = |text: &str, output| Scalar::new(text, &[64], output).run(&[d]);
        // Rust's `as` truncates and saturates, and gives zero for NaN.
        prop_assert_eq!(single("cvt.rzi.s32.f32 %out, %in0;", 32), u64::from((x as i32) as u32));
        prop_assert_eq!(single("cvt.rzi.u32.f32 %out, %in0;", 32), u64::from(x as u32));
        prop_assert_eq!(single("cvt.rni.s32.f32 %out, %in0;", 32), u64::from((x.round_ties_even() as i32) as u32));
        prop_assert_eq!(single("cvt.rmi.s32.f32 %out, %in0;", 32), u64::from((x.floor() as i32) as u32));
        prop_assert_eq!(single("cvt.rpi.s32.f32 %out, %in0;", 32), u64::from((x.ceil() as i32) as u32));
        prop_assert_eq!(single("cvt.rzi.u16.f32 %out, %in0;", 16), u64::from(x as u16));
        prop_assert_eq!(single("cvt.rzi.s16.f32 %out, %in0;", 32), u64::from(i32::from(x as i16) as u32));
        if y.is_nan() {
            prop_assert_eq!(double("cvt.rzi.s64.f64 %out, %in0;", 64), 1 << 63);
            prop_assert_eq!(double("cvt.rzi.u32.f64 %out, %in0;", 32), 1 << 31);
        } else {
            prop_assert_eq!(double("cvt.rzi.s64.f64 %out, %in0;", 64), (y as i64) as u64);
            prop_assert_eq!(double("cvt.rzi.u64.f64 %out, %in0;", 64), y as u64);
        }
        let rounded = single("cvt.rni.f32.f32 %out, %in0;", 32);
        prop_assert_eq!(rounded, canonical32(x.round_ties_even()));
    }

    #[test]
    fn conversions_from_integers(a in any::<u64>()) {
        let run = |text: &str, bits, output| Scalar::new(text, &[bits], output).run(&[a & (u64::MAX >> (64 - bits))]);
        prop_assert_eq!(run("cvt.rn.f32.u32 %out, %in0;", 32, 32), canonical32(a as u32 as f32));
        prop_assert_eq!(run("cvt.rn.f32.s32 %out, %in0;", 32, 32), canonical32(a as i32 as f32));
        prop_assert_eq!(run("cvt.rn.f32.s64 %out, %in0;", 64, 32), canonical32(a as i64 as f32));
        prop_assert_eq!(run("cvt.rn.f64.u64 %out, %in0;", 64, 64), (a as f64).to_bits());
        prop_assert_eq!(run("cvt.rn.f32.s8 %out, %in0;", 32, 32), canonical32(a as i8 as f32));
        prop_assert_eq!(run("cvt.rn.f16.u16 %out, %in0;", 16, 16), u64::from(half::f16::from_f32(f32::from(a as u16)).to_bits()));
    }

    #[test]
    fn halves_round_once(a in any::<u16>(), b in any::<u16>(), c in any::<u16>()) {
        let inputs = [u64::from(a), u64::from(b), u64::from(c)];
        let (x, y, z) = (half::f16::from_bits(a), half::f16::from_bits(b), half::f16::from_bits(c));
        let (dx, dy, dz) = (x.to_f64(), y.to_f64(), z.to_f64());
        let bits = |value: f64| nearest16(value, half::f16::from_f64(value).to_bits(), |bits| half::f16::from_bits(bits).to_f64());
        let two = |text: &str| Scalar::new(text, &[16, 16], 16).run(&inputs[..2]);
        prop_assert_eq!(two("add.f16 %out, %in0, %in1;"), bits(dx + dy));
        prop_assert_eq!(two("mul.rn.f16 %out, %in0, %in1;"), bits(dx * dy));
        let fma = Scalar::new("fma.rn.f16 %out, %in0, %in1, %in2;", &[16; 3], 16).run(&inputs);
        // The exact sum of a product and an addend of half precision fits a double wherever it decides the rounding.
        prop_assert_eq!(fma, bits(dx.mul_add(dy, dz)));

        let (x, y) = (half::bf16::from_bits(a).to_f64(), half::bf16::from_bits(b).to_f64());
        let bits = |value: f64| nearest16(value, half::bf16::from_f64(value).to_bits(), |bits| half::bf16::from_bits(bits).to_f64());
        prop_assert_eq!(two("add.bf16 %out, %in0, %in1;"), bits(x + y));
        let packed = Scalar::new("mul.bf16x2 %out, %in0, %in1;", &[32, 32], 32);
        let pair = |low: u16, high: u16| u64::from(low) | u64::from(high) << 16;
        let expected = bits(x * y) | two("mul.bf16 %out, %in1, %in0;") << 16;
        prop_assert_eq!(packed.run(&[pair(a, b), pair(b, a)]), expected);
    }

    #[test]
    fn packed_singles(a in float32(), b in float32(), c in float32(), d in float32()) {
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let x = |bits| f32::from_bits(bits);
        let product = Scalar::new("mul.rn.f32x2 %out, %in0, %in1;", &[64, 64], 64).run(&[pair(a, b), pair(c, d)]);
        prop_assert_eq!(product, canonical32(x(a) * x(c)) | canonical32(x(b) * x(d)) << 32);
        let fused = Scalar::new("fma.rn.f32x2 %out, %in0, %in1, %in2;", &[64; 3], 64)
            .run(&[pair(a, b), pair(c, d), pair(d, c)]);
        let expected = canonical32(x(a).mul_add(x(c), x(d))) | canonical32(x(b).mul_add(x(d), x(c))) << 32;
        prop_assert_eq!(fused, expected);
    }

    #[test]
    fn quantisation_to_eight_bits(a in float32()) {
        let x = f32::from_bits(a);
        let pack = Scalar::new("cvt.rn.satfinite.e4m3x2.f32 %out, %in0, %in1;", &[32, 32], 16);
        let got = pack.run(&[a.into(), 0x3f80_0000]);
        prop_assert_eq!(got & 0xff, 0x38);
        prop_assert_eq!(got >> 8, nearest_e4m3(x));
        let back = Scalar::new("cvt.rn.f16x2.e4m3x2 %out, %in0;", &[16], 32).run(&[got]);
        if !x.is_nan() {
            prop_assert_eq!(half::f16::from_bits((back >> 16) as u16).to_f64(), value_of_e4m3(got >> 8));
        }
        let scale = Scalar::new("cvt.rp.satfinite.ue8m0x2.f32 %out, %in0, %in1;", &[32, 32], 16);
        let scaled = scale.run(&[a.into(), 0x3f80_0000]);
        prop_assert_eq!(scaled & 0xff, 127);
        let power = (scaled >> 8) as i32 - 127;
        if x.is_nan() {
            prop_assert_eq!(scaled >> 8, 0xff);
        } else if x.abs() <= 2f32.powi(127) {
            let magnitude = f64::from(x.abs());
            prop_assert!(magnitude <= 2f64.powi(power));
            prop_assert!(power == -127 || magnitude > 2f64.powi(power - 1));
        } else {
            prop_assert_eq!(scaled >> 8, 0xfe);
        }
    }
}

/// The nearest value, even one of two, in the neighbourhood of a guess (`half` drops bits of doubles before it rounds).
fn nearest16(value: f64, guess: u16, decode: impl Fn(u16) -> f64) -> u64 {
    if value.is_nan() {
        return 0x7fff;
    }
    let near = [guess, guess.wrapping_sub(1), guess.wrapping_add(1)];
    let distance = |bits: u16| (decode(bits) - value).abs();
    let usable =
        near.into_iter().filter(|&bits| bits == guess || (bits ^ guess) & 0x8000 == 0 && decode(bits).is_finite());
    if decode(guess).is_infinite() {
        return guess.into();
    }
    let best = usable.min_by(|&a, &b| distance(a).total_cmp(&distance(b)).then((a & 1).cmp(&(b & 1))));
    best.unwrap_or(guess).into()
}

fn value_of_e4m3(bits: u64) -> f64 {
    let (exponent, fraction) = ((bits >> 3 & 15) as i32, (bits & 7) as f64);
    let magnitude =
        if exponent == 0 { fraction * 2f64.powi(-9) } else { (1.0 + fraction / 8.0) * 2f64.powi(exponent - 7) };
    if bits & 0x80 != 0 { -magnitude } else { magnitude }
}

/// By search over all finite values: the nearest, the even one of two.
fn nearest_e4m3(x: f32) -> u64 {
    if x.is_nan() {
        return 0x7f;
    }
    let magnitude = f64::from(x.abs()).min(448.0);
    let best = (0..=0x7eu64)
        .min_by(|&a, &b| {
            let distance = |bits| (value_of_e4m3(bits) - magnitude).abs();
            distance(a).total_cmp(&distance(b)).then((a & 1).cmp(&(b & 1)))
        })
        .unwrap();
    best | if x.is_sign_negative() { 0x80 } else { 0 }
}

#[test]
fn approximations_are_close() {
    let run = |name: &str, x: f32| {
        let scalar = Scalar::new(&format!("{name}.approx.f32 %out, %in0;"), &[32], 32);
        f32::from_bits(scalar.run(&[x.to_bits().into()]) as u32)
    };
    assert_eq!(run("ex2", 3.0), 8.0);
    assert_eq!(run("lg2", 8.0), 3.0);
    assert_eq!(run("rcp", 4.0), 0.25);
    assert_eq!(run("rsqrt", 4.0), 0.5);
    assert_eq!(run("sqrt", 9.0), 3.0);
    assert!((run("sin", 1.0) - 1f32.sin()).abs() < 1e-6);
    assert!((run("cos", 1.0) - 1f32.cos()).abs() < 1e-6);
    assert!((run("tanh", 0.5) - 0.5f32.tanh()).abs() < 1e-6);
    assert!(run("lg2", -1.0).is_nan());
}

#[test]
fn signs_and_properties() {
    let negate = Scalar::new("neg.f32 %out, %in0;", &[32], 32);
    assert_eq!(negate.run(&[0]), 0x8000_0000);
    let absolute = Scalar::new("abs.f64 %out, %in0;", &[64], 64);
    assert_eq!(absolute.run(&[(-2.5f64).to_bits()]), 2.5f64.to_bits());
    let copied = Scalar::new("copysign.f32 %out, %in0, %in1;", &[32, 32], 32);
    assert_eq!(copied.run(&[(-1f32).to_bits().into(), 3f32.to_bits().into()]), u64::from((-3f32).to_bits()));
    for (property, value, holds) in [
        ("finite", 1f32, true),
        ("finite", f32::INFINITY, false),
        ("infinite", f32::NEG_INFINITY, true),
        ("number", f32::NAN, false),
        ("notanumber", f32::NAN, true),
        ("normal", 0.0, true),
        ("normal", 1e-40, false),
        ("subnormal", 1e-40, true),
        ("subnormal", 0.0, false),
    ] {
        let text = format!("testp.{property}.f32 %p, %in0;\nselp.b32 %out, 1, 0, %p;");
        assert_eq!(
            Scalar::new(&text, &[32], 32).run(&[value.to_bits().into()]),
            u64::from(holds),
            "{property} {value}"
        );
    }
}

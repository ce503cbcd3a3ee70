//! The instruction forms: text, operands and what counts as equal.

use super::inputs::Kind;
use Kind::{Amount, Angle, Bf16, Bf16x2, Divisor, F16, F16x2, F32, F64, I16, I32, I64};

/// What the output holds, which decides how it is shown and how far it may be off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Output {
    /// Name in the manifest: `bits`, or a floating-point format.
    pub format: &'static str,
    /// Width of its register.
    pub bits: u32,
}

const B16: Output = Output { format: "bits", bits: 16 };
const B32: Output = Output { format: "bits", bits: 32 };
const B64: Output = Output { format: "bits", bits: 64 };
const OUT_F32: Output = Output { format: "f32", bits: 32 };
const OUT_F64: Output = Output { format: "f64", bits: 64 };
const OUT_F16: Output = Output { format: "f16", bits: 16 };
const OUT_BF16: Output = Output { format: "bf16", bits: 16 };
const OUT_F16X2: Output = Output { format: "f16x2", bits: 32 };
const OUT_BF16X2: Output = Output { format: "bf16x2", bits: 32 };

/// How far silicon may be from the simulator; an output passes when it is within either bound.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tolerance {
    /// Units in the last place.
    pub ulps: u64,
    /// Difference of the values.
    pub absolute: f64,
}

const EXACT: Tolerance = Tolerance { ulps: 0, absolute: 0.0 };

const fn ulps(ulps: u64) -> Tolerance {
    Tolerance { ulps, absolute: 0.0 }
}

/// One instruction form.
pub struct Form {
    /// The instruction's name with its modifiers.
    pub name: String,
    /// Statements that compute `%out` from `%in0`, `%in1`, `%in2`; `%p`, `%q` and `%t0` to `%t3` are free for use.
    pub text: String,
    /// The operands.
    pub inputs: Vec<Kind>,
    /// The result.
    pub output: Output,
    /// Equality.
    pub tolerance: Tolerance,
}

/// All forms.
pub fn all() -> Vec<Form> {
    let mut forms = Forms(Vec::new());
    forms.movement();
    forms.integers();
    forms.carries();
    forms.bits();
    forms.comparisons();
    forms.selections();
    forms.singles_and_doubles();
    forms.halves();
    forms.integer_conversions();
    forms.float_conversions();
    forms.packed_conversions();
    forms.approximations();
    forms.0
}

struct Forms(Vec<Form>);

const INTEGERS: [(&str, Kind, Output); 6] =
    [("u16", I16, B16), ("s16", I16, B16), ("u32", I32, B32), ("s32", I32, B32), ("u64", I64, B64), ("s64", I64, B64)];
const BITS: [(&str, Kind, Output); 3] = [("b16", I16, B16), ("b32", I32, B32), ("b64", I64, B64)];
const FLOATS: [(&str, Kind, Output); 2] = [("f32", F32, OUT_F32), ("f64", F64, OUT_F64)];
const HALVES: [(&str, Kind, Output); 4] =
    [("f16", F16, OUT_F16), ("f16x2", F16x2, OUT_F16X2), ("bf16", Bf16, OUT_BF16), ("bf16x2", Bf16x2, OUT_BF16X2)];
const ROUNDINGS: [&str; 4] = [".rn", ".rz", ".rm", ".rp"];

/// Whether an integer type holds every value of another; `.sat` between them does not assemble then.
fn holds_every(to: &str, from: &str) -> bool {
    let parts = |ty: &str| (ty.starts_with('s'), ty[1..].parse::<u32>().unwrap_or(0));
    let ((to_signed, to_bits), (from_signed, from_bits)) = (parts(to), parts(from));
    match to_signed == from_signed {
        true => to_bits >= from_bits,
        false => to_signed && to_bits > from_bits,
    }
}

impl Forms {
    fn add(&mut self, name: impl Into<String>, text: impl Into<String>, inputs: &[Kind], output: Output) {
        let form = Form { name: name.into(), text: text.into(), inputs: inputs.to_vec(), output, tolerance: EXACT };
        self.0.push(form);
    }

    /// `name %out, %in0, …;`
    fn plain(&mut self, name: impl Into<String>, inputs: &[Kind], output: Output) {
        let name = name.into();
        let sources: Vec<String> = (0..inputs.len()).map(|i| format!("%in{i}")).collect();
        let text = format!("{name} %out, {};", sources.join(", "));
        self.add(name, text, inputs, output);
    }

    /// `name %p, %in0, …;` with the predicate as output.
    fn predicate(&mut self, name: impl Into<String>, inputs: &[Kind]) {
        let name = name.into();
        let sources: Vec<String> = (0..inputs.len()).map(|i| format!("%in{i}")).collect();
        let text = format!("{name} %p, {}; selp.b16 %out, 1, 0, %p;", sources.join(", "));
        self.add(name, text, inputs, B16);
    }

    fn approximate(&mut self, name: impl Into<String>, inputs: &[Kind], output: Output, tolerance: Tolerance) {
        self.plain(name, inputs, output);
        self.0.last_mut().expect("a form was added").tolerance = tolerance;
    }

    fn movement(&mut self) {
        for (ty, kind, output) in BITS {
            self.plain(format!("mov.{ty}"), &[kind], output);
        }
        self.add("mov.b32 {lo, hi}", "mov.b32 %out, {%in0, %in1};", &[I16, I16], B32);
        self.add("mov.b64 {lo, hi}", "mov.b64 %out, {%in0, %in1};", &[I32, I32], B64);
        self.add("mov.b64 {a, b, c, a}", "mov.b64 %out, {%in0, %in1, %in2, %in0};", &[I16, I16, I16], B64);
        self.add("mov.b32 unpack", "mov.b32 {%h0, %out}, %in0;", &[I32], B16);
        self.add("mov.b64 unpack", "mov.b64 {%h0, %h1, %out, %h3}, %in0;", &[I64], B16);
    }

    fn integers(&mut self) {
        for (ty, kind, output) in INTEGERS {
            for name in ["add", "sub", "mul.lo", "mul.hi", "div", "rem", "min", "max"] {
                self.plain(format!("{name}.{ty}"), &[kind, kind], output);
            }
            for name in ["mad.lo", "mad.hi", "sad"] {
                self.plain(format!("{name}.{ty}"), &[kind, kind, kind], output);
            }
            if ty.starts_with('s') {
                self.plain(format!("neg.{ty}"), &[kind], output);
                self.plain(format!("abs.{ty}"), &[kind], output);
            }
        }
        for (ty, kind, wide, output) in
            [("u16", I16, I32, B32), ("s16", I16, I32, B32), ("u32", I32, I64, B64), ("s32", I32, I64, B64)]
        {
            self.plain(format!("mul.wide.{ty}"), &[kind, kind], output);
            self.plain(format!("mad.wide.{ty}"), &[kind, kind, wide], output);
        }
        for name in ["add.sat.s32", "sub.sat.s32", "min.relu.s32", "max.relu.s32"] {
            self.plain(name, &[I32, I32], B32);
        }
        self.plain("mad.hi.sat.s32", &[I32, I32, I32], B32);
        for half in ["lo", "hi"] {
            for ty in ["u32", "s32"] {
                self.plain(format!("mul24.{half}.{ty}"), &[I32, I32], B32);
                self.plain(format!("mad24.{half}.{ty}"), &[I32, I32, I32], B32);
            }
        }
        for ty in ["u16x2", "s16x2"] {
            for name in ["add", "min", "max"] {
                self.plain(format!("{name}.{ty}"), &[I32, I32], B32);
            }
        }
        self.plain("min.relu.s16x2", &[I32, I32], B32);
        self.plain("max.relu.s16x2", &[I32, I32], B32);
        for name in ["dp4a", "dp2a.lo", "dp2a.hi"] {
            for types in ["u32.u32", "u32.s32", "s32.u32", "s32.s32"] {
                self.plain(format!("{name}.{types}"), &[I32, I32, I32], B32);
            }
        }
    }

    /// Results and carry in one register.
    fn carries(&mut self) {
        let pack = "mov.b64 %out, {%t0, %t1};";
        for (first, second) in [("add.cc", "addc"), ("sub.cc", "subc")] {
            for ty in ["u32", "s32"] {
                let text = format!("{first}.{ty} %t0, %in0, %in1; {second}.{ty} %t1, %in2, 0; {pack}");
                self.add(format!("{first}.{ty}, {second}.{ty}"), text, &[I32, I32, I32], B64);
                let text = format!(
                    "{first}.{ty} %t0, %in0, %in1; {second}.cc.{ty} %t0, %in2, %in0; {second}.{ty} %t1, 0, 0; {pack}"
                );
                self.add(format!("{second}.cc.{ty}"), text, &[I32, I32, I32], B64);
            }
            let text = format!("{first}.u64 %out, %in0, %in1; {second}.u64 %out, %in2, %in0;");
            self.add(format!("{first}.u64, {second}.u64"), text, &[I64, I64, I64], B64);
        }
        for ty in ["u32", "s32"] {
            let text = format!("mad.lo.cc.{ty} %t0, %in0, %in1, %in2; madc.hi.{ty} %t1, %in0, %in1, 0; {pack}");
            self.add(format!("mad.lo.cc.{ty}, madc.hi.{ty}"), text, &[I32, I32, I32], B64);
            let text = format!("mad.hi.cc.{ty} %t0, %in0, %in1, %in2; madc.lo.{ty} %t1, %in0, %in1, %in2; {pack}");
            self.add(format!("mad.hi.cc.{ty}, madc.lo.{ty}"), text, &[I32, I32, I32], B64);
        }
    }

    fn bits(&mut self) {
        for (ty, kind, output) in BITS {
            for name in ["and", "or", "xor"] {
                self.plain(format!("{name}.{ty}"), &[kind, kind], output);
            }
            self.plain(format!("not.{ty}"), &[kind], output);
            self.plain(format!("cnot.{ty}"), &[kind], output);
            self.plain(format!("shl.{ty}"), &[kind, Amount], output);
            self.plain(format!("shr.{ty}"), &[kind, Amount], output);
        }
        for (ty, kind, output) in INTEGERS {
            self.plain(format!("shr.{ty}"), &[kind, Amount], output);
        }
        for table in [0x00, 0x01, 0x80, 0x96, 0xe8, 0xca, 0xd8, 0x1b, 0x3c, 0xf7, 0x40] {
            let text = format!("lop3.b32 %out, %in0, %in1, %in2, {table};");
            self.add(format!("lop3.b32 {table:#04x}"), text, &[I32, I32, I32], B32);
        }
        for name in ["shf.l.wrap", "shf.l.clamp", "shf.r.wrap", "shf.r.clamp"] {
            self.plain(format!("{name}.b32"), &[I32, I32, Amount], B32);
        }
        for (ty, kind, output) in &INTEGERS[2..] {
            // Position and length are defined from 0 to 255.
            let text = format!("and.b32 %t0, %in1, 255; and.b32 %t1, %in2, 255; bfe.{ty} %out, %in0, %t0, %t1;");
            self.add(format!("bfe.{ty}"), text, &[*kind, Amount, Amount], *output);
            self.plain(format!("bfind.{ty}"), &[*kind], B32);
            self.plain(format!("bfind.shiftamt.{ty}"), &[*kind], B32);
        }
        for (ty, kind, output) in &BITS[1..] {
            // Position and length in one operand, so that three are enough.
            let text = format!(
                "and.b32 %t0, %in2, 255; shr.u32 %t1, %in2, 8; and.b32 %t1, %t1, 255; bfi.{ty} %out, %in0, %in1, %t0, %t1;"
            );
            self.add(format!("bfi.{ty}"), text, &[*kind, *kind, I32], *output);
            for length in [0, 5, 32, 64, 255] {
                let text = format!("and.b32 %t0, %in2, 255; bfi.{ty} %out, %in0, %in1, %t0, {length};");
                self.add(format!("bfi.{ty} length {length}"), text, &[*kind, *kind, Amount], *output);
            }
            self.plain(format!("clz.{ty}"), &[*kind], B32);
            self.plain(format!("popc.{ty}"), &[*kind], B32);
            self.plain(format!("brev.{ty}"), &[*kind], *output);
        }
        let text = "and.b32 %t0, %in1, 31; sub.s32 %t1, %in2, 16; fns.b32 %out, %in0, %t0, %t1;";
        self.add("fns.b32 near", text, &[I32, Amount, Amount], B32);
        for mode in ["clamp", "wrap"] {
            self.plain(format!("bmsk.{mode}.b32"), &[Amount, Amount], B32);
            self.plain(format!("szext.{mode}.u32"), &[I32, Amount], B32);
            self.plain(format!("szext.{mode}.s32"), &[I32, Amount], B32);
        }
        for mode in ["", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"] {
            self.plain(format!("prmt.b32{mode}"), &[I32, I32, I32], B32);
        }
        for name in ["and", "or", "xor"] {
            let text = format!(
                "setp.lt.s32 %p, %in0, 5; setp.gt.s32 %q, %in1, -7; {name}.pred %p, %p, %q; selp.b16 %out, 1, 0, %p;"
            );
            self.add(format!("{name}.pred"), text, &[I32, I32], B16);
        }
        self.add("not.pred", "setp.lt.s32 %p, %in0, 5; not.pred %q, %p; selp.b16 %out, 1, 0, %q;", &[I32], B16);
    }

    fn comparisons(&mut self) {
        for (ty, kind, _) in INTEGERS {
            for relation in ["eq", "ne", "lt", "le", "gt", "ge"] {
                self.predicate(format!("setp.{relation}.{ty}"), &[kind, kind]);
            }
            if ty.starts_with('u') {
                for relation in ["lo", "ls", "hi", "hs"] {
                    self.predicate(format!("setp.{relation}.{ty}"), &[kind, kind]);
                }
            }
        }
        for (ty, kind, _) in BITS {
            self.predicate(format!("setp.eq.{ty}"), &[kind, kind]);
            self.predicate(format!("setp.ne.{ty}"), &[kind, kind]);
        }
        let relations = ["eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"];
        let mut types = vec![("ftz.f32", F32), ("ftz.f16", F16)];
        types.extend(FLOATS.iter().chain(&HALVES).map(|&(ty, kind, _)| (ty, kind)));
        for (ty, kind) in types {
            for relation in relations {
                if ty.ends_with("x2") {
                    let name = format!("setp.{relation}.{ty}");
                    let text = format!(
                        "{name} %p|%q, %in0, %in1; selp.b32 %t0, 1, 0, %p; selp.b32 %t1, 2, 0, %q; or.b32 %t0, %t0, %t1; cvt.u16.u32 %out, %t0;"
                    );
                    self.add(name, text, &[kind, kind], B16);
                } else {
                    self.predicate(format!("setp.{relation}.{ty}"), &[kind, kind]);
                }
            }
        }
        for (name, negation) in [("and", ""), ("or", "!"), ("xor", "")] {
            for (ty, kind) in [("s32", I32), ("f32", F32)] {
                let text = format!(
                    "setp.lt.{ty} %q, %in1, %in2; setp.ge.{name}.{ty} %p|%q, %in0, %in1, {negation}%q; selp.b32 %t0, 1, 0, %p; selp.b32 %t1, 2, 0, %q; or.b32 %out, %t0, %t1;"
                );
                self.add(format!("setp.ge.{name}.{ty} p|q"), text, &[kind, kind, kind], B32);
            }
        }
        for result in ["u32", "s32", "f32"] {
            for (ty, kind) in [("s32", I32), ("u16", I16), ("u64", I64), ("f32", F32), ("f64", F64)] {
                self.plain(format!("set.le.{result}.{ty}"), &[kind, kind], B32);
            }
            self.plain(format!("set.gtu.ftz.{result}.f32"), &[F32, F32], B32);
        }
        for (ty, kind, _) in FLOATS {
            for property in ["finite", "infinite", "number", "notanumber", "normal", "subnormal"] {
                self.predicate(format!("testp.{property}.{ty}"), &[kind]);
            }
        }
    }

    fn selections(&mut self) {
        for (ty, kind, output) in BITS.iter().chain(&FLOATS) {
            let text = format!("setp.lt.s32 %p, %in2, 0; selp.{ty} %out, %in0, %in1, %p;");
            self.add(format!("selp.{ty}"), text, &[*kind, *kind, I32], *output);
            self.plain(format!("slct.{ty}.s32"), &[*kind, *kind, I32], *output);
            self.plain(format!("slct.{ty}.f32"), &[*kind, *kind, F32], *output);
        }
    }

    fn singles_and_doubles(&mut self) {
        for rounding in ROUNDINGS {
            for mode in ["", ".ftz", ".sat", ".ftz.sat"] {
                for name in ["add", "sub", "mul"] {
                    self.plain(format!("{name}{rounding}{mode}.f32"), &[F32, F32], OUT_F32);
                }
                self.plain(format!("fma{rounding}{mode}.f32"), &[F32, F32, F32], OUT_F32);
            }
            for mode in ["", ".ftz"] {
                self.plain(format!("div{rounding}{mode}.f32"), &[F32, F32], OUT_F32);
                self.plain(format!("rcp{rounding}{mode}.f32"), &[F32], OUT_F32);
                self.plain(format!("sqrt{rounding}{mode}.f32"), &[F32], OUT_F32);
            }
            for name in ["add", "sub", "mul", "div"] {
                self.plain(format!("{name}{rounding}.f64"), &[F64, F64], OUT_F64);
            }
            self.plain(format!("fma{rounding}.f64"), &[F64, F64, F64], OUT_F64);
            self.plain(format!("rcp{rounding}.f64"), &[F64], OUT_F64);
            self.plain(format!("sqrt{rounding}.f64"), &[F64], OUT_F64);
        }
        self.plain("mad.rn.f32", &[F32, F32, F32], OUT_F32);
        for name in ["min", "max"] {
            for mode in ["", ".ftz", ".NaN", ".ftz.NaN", ".xorsign.abs", ".NaN.xorsign.abs", ".ftz.xorsign.abs"] {
                self.plain(format!("{name}{mode}.f32"), &[F32, F32], OUT_F32);
            }
            self.plain(format!("{name}.f64"), &[F64, F64], OUT_F64);
        }
        for name in ["neg", "abs"] {
            self.plain(format!("{name}.ftz.f32"), &[F32], OUT_F32);
            for (ty, kind, output) in FLOATS {
                self.plain(format!("{name}.{ty}"), &[kind], output);
            }
        }
        for (ty, kind, output) in FLOATS {
            self.plain(format!("copysign.{ty}"), &[kind, kind], output);
        }
    }

    fn halves(&mut self) {
        for (ty, kind, output) in HALVES {
            let half = !ty.starts_with('b');
            let modes: &[&str] = if half { &["", ".ftz", ".sat", ".ftz.sat"] } else { &[""] };
            for mode in modes {
                for name in ["add", "sub", "mul"] {
                    self.plain(format!("{name}.rn{mode}.{ty}"), &[kind, kind], output);
                    self.plain(format!("{name}{mode}.{ty}"), &[kind, kind], output);
                }
            }
            let modes: &[&str] =
                if half { &["", ".ftz", ".sat", ".ftz.sat", ".relu", ".ftz.relu"] } else { &["", ".relu"] };
            for mode in modes {
                self.plain(format!("fma.rn{mode}.{ty}"), &[kind, kind, kind], output);
            }
            let flushes: &[&str] = if half { &["", ".ftz"] } else { &[""] };
            for flush in flushes {
                for name in ["min", "max"] {
                    for mode in ["", ".NaN", ".xorsign.abs", ".NaN.xorsign.abs"] {
                        self.plain(format!("{name}{flush}{mode}.{ty}"), &[kind, kind], output);
                    }
                }
                self.plain(format!("neg{flush}.{ty}"), &[kind], output);
                self.plain(format!("abs{flush}.{ty}"), &[kind], output);
            }
        }
    }

    fn integer_conversions(&mut self) {
        let types = [
            ("u8", I16, B32),
            ("s8", I16, B32),
            ("u16", I16, B16),
            ("s16", I16, B16),
            ("u32", I32, B32),
            ("s32", I32, B32),
            ("u64", I64, B64),
            ("s64", I64, B64),
        ];
        for (to, _, output) in types {
            for (from, kind, _) in types {
                self.plain(format!("cvt.{to}.{from}"), &[kind], output);
                if !holds_every(to, from) {
                    self.plain(format!("cvt.sat.{to}.{from}"), &[kind], output);
                }
            }
            for rounding in [".rni", ".rzi", ".rmi", ".rpi"] {
                let floats = [("f16", F16), ("bf16", Bf16), ("f32", F32), ("f64", F64)];
                for (from, kind) in floats {
                    // No `bf16` is converted to an integer of 8 bits, nor the reverse.
                    if !(from == "bf16" && to.ends_with('8')) {
                        self.plain(format!("cvt{rounding}.{to}.{from}"), &[kind], output);
                    }
                }
                self.plain(format!("cvt{rounding}.ftz.{to}.f32"), &[F32], output);
            }
        }
        for (from, kind, _) in types {
            for rounding in ROUNDINGS {
                for (to, output) in [("f16", OUT_F16), ("bf16", OUT_BF16), ("f32", OUT_F32), ("f64", OUT_F64)] {
                    if !(to == "bf16" && from.ends_with('8')) {
                        self.plain(format!("cvt{rounding}.{to}.{from}"), &[kind], output);
                    }
                }
            }
            self.plain(format!("cvt.rn.sat.f32.{from}"), &[kind], OUT_F32);
            self.plain(format!("cvt.rn.sat.f16.{from}"), &[kind], OUT_F16);
        }
    }

    fn float_conversions(&mut self) {
        let types = [("f16", F16, OUT_F16), ("bf16", Bf16, OUT_BF16), ("f32", F32, OUT_F32), ("f64", F64, OUT_F64)];
        for (to, _, output) in types {
            for (from, kind, _) in types {
                let narrows = output.bits < kind.bits() || output.bits == kind.bits() && to != from;
                let roundings: &[&str] = if narrows { &ROUNDINGS } else { &[""] };
                for rounding in roundings {
                    self.plain(format!("cvt{rounding}.{to}.{from}"), &[kind], output);
                    if to != "bf16" && from != "bf16" {
                        self.plain(format!("cvt{rounding}.sat.{to}.{from}"), &[kind], output);
                    }
                    if (to == "f32" || from == "f32") && to != "bf16" && from != "bf16" {
                        self.plain(format!("cvt{rounding}.ftz.{to}.{from}"), &[kind], output);
                    }
                }
            }
        }
        for rounding in [".rni", ".rzi", ".rmi", ".rpi"] {
            for (ty, kind, output) in types {
                self.plain(format!("cvt{rounding}.{ty}.{ty}"), &[kind], output);
            }
            self.plain(format!("cvt{rounding}.ftz.sat.f32.f32"), &[F32], OUT_F32);
        }
        for rounding in [".rn", ".rz"] {
            for mode in [".relu", ".satfinite", ".relu.satfinite"] {
                self.plain(format!("cvt{rounding}{mode}.f16.f32"), &[F32], OUT_F16);
                self.plain(format!("cvt{rounding}{mode}.bf16.f32"), &[F32], OUT_BF16);
            }
            self.plain(format!("cvt{rounding}.tf32.f32"), &[F32], OUT_F32);
            self.plain(format!("cvt{rounding}.relu.tf32.f32"), &[F32], OUT_F32);
        }
        self.plain("cvt.rna.tf32.f32", &[F32], OUT_F32);
    }

    fn packed_conversions(&mut self) {
        for rounding in [".rn", ".rz"] {
            for mode in ["", ".relu", ".satfinite", ".relu.satfinite"] {
                self.plain(format!("cvt{rounding}{mode}.f16x2.f32"), &[F32, F32], OUT_F16X2);
                self.plain(format!("cvt{rounding}{mode}.bf16x2.f32"), &[F32, F32], OUT_BF16X2);
            }
        }
        for ty in ["e4m3x2", "e5m2x2"] {
            for relu in ["", ".relu"] {
                self.plain(format!("cvt.rn.satfinite{relu}.{ty}.f32"), &[F32, F32], B16);
                self.plain(format!("cvt.rn.satfinite{relu}.{ty}.f16x2"), &[F16x2], B16);
                self.plain(format!("cvt.rn{relu}.f16x2.{ty}"), &[I16], OUT_F16X2);
            }
        }
    }

    /// Bounds: those that the ISA states for each instruction, with one unit more for the simulator's own rounding.
    fn approximations(&mut self) {
        for flush in ["", ".ftz"] {
            for (name, bound) in [("rcp", 2), ("sqrt", 4), ("rsqrt", 4), ("ex2", 4)] {
                self.approximate(format!("{name}.approx{flush}.f32"), &[F32], OUT_F32, ulps(bound));
            }
            let logarithm = Tolerance { ulps: 4, absolute: 2f64.powi(-22) };
            self.approximate(format!("lg2.approx{flush}.f32"), &[F32], OUT_F32, logarithm);
            let angle = Tolerance { ulps: 0, absolute: 2f64.powf(-20.5) };
            self.approximate(format!("sin.approx{flush}.f32"), &[Angle], OUT_F32, angle);
            self.approximate(format!("cos.approx{flush}.f32"), &[Angle], OUT_F32, angle);
            self.approximate(format!("div.approx{flush}.f32"), &[F32, Divisor], OUT_F32, ulps(3));
            self.approximate(format!("div.full{flush}.f32"), &[F32, F32], OUT_F32, ulps(3));
        }
        // Relative error 2^-11 is up to 2^13 units of a `f32`.
        self.approximate("tanh.approx.f32", &[F32], OUT_F32, ulps(1 << 13));
        let half = Tolerance { ulps: 1, absolute: 2f64.powf(-10.98) };
        let bfloat = Tolerance { ulps: 1, absolute: 2f64.powi(-8) };
        self.approximate("tanh.approx.f16", &[F16], OUT_F16, half);
        self.approximate("tanh.approx.f16x2", &[F16x2], OUT_F16X2, half);
        self.approximate("tanh.approx.bf16", &[Bf16], OUT_BF16, bfloat);
        self.approximate("tanh.approx.bf16x2", &[Bf16x2], OUT_BF16X2, bfloat);
        self.approximate("ex2.approx.f16", &[F16], OUT_F16, ulps(2));
        self.approximate("ex2.approx.f16x2", &[F16x2], OUT_F16X2, ulps(2));
        self.approximate("ex2.approx.ftz.bf16", &[Bf16], OUT_BF16, ulps(2));
        self.approximate("ex2.approx.ftz.bf16x2", &[Bf16x2], OUT_BF16X2, ulps(2));
        // The lower word of the result is zero, and of the upper one 20 bits are fraction.
        self.approximate("rcp.approx.ftz.f64", &[F64], OUT_F64, ulps(1 << 33));
        self.approximate("rsqrt.approx.f64", &[F64], OUT_F64, ulps(1 << 33));
        self.approximate("rsqrt.approx.ftz.f64", &[F64], OUT_F64, ulps(1 << 33));
    }
}

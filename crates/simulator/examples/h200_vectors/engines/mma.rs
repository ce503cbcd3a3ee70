//! `mma.sync`: four warps to a CTA, each with 16 rows of A, all with the same eight columns of B.

use super::element::{Accumulator, Element, Matrix, Values};
use super::fragments::{fragments_of_a, fragments_of_b, inexact, list, packed, places_of_d};
use super::{Case, Class, output, words};
use crate::inputs::Random;

pub const THREADS: usize = 128;
pub const ROWS: usize = 64;
pub const COLUMNS: usize = 8;

/// A form of the instruction.
#[derive(Clone, Copy)]
pub struct Form {
    pub k: usize,
    pub accumulator: Accumulator,
    pub a: Element,
    pub b: Element,
    pub saturate: bool,
}

impl Form {
    fn a_registers(&self) -> usize {
        (self.k * self.a.bytes() / 8).max(1)
    }

    fn d_registers(&self) -> usize {
        4 / self.accumulator.elements()
    }

    pub fn name(&self) -> String {
        let Self { k, accumulator, a, b, saturate } = self;
        let satfinite = if *saturate { ".satfinite" } else { "" };
        let d = accumulator.name();
        format!("mma.sync.aligned.m16n8k{k}.row.col{satfinite}.{d}.{}.{}.{d}", a.name(), b.name())
    }

    fn body(&self) -> String {
        let (a, d) = (self.a_registers(), self.d_registers());
        let b = a / 2;
        let ty = self.accumulator.register();
        let mut text = format!(
            ".reg .b32 %a<{a}>, %b<{b}>; .reg .{ty} %c<{d}>, %d<{d}>;
ld.param.u64 %rd1, [p0]; ld.param.u64 %rd2, [p1]; ld.param.u64 %rd3, [p2]; ld.param.u64 %rd4, [p3];
mad.lo.u32 %r1, %cta, {THREADS}, %thread;
mul.wide.u32 %rd5, %r1, {}; add.u64 %rd1, %rd1, %rd5; mul.wide.u32 %rd5, %r1, {}; add.u64 %rd2, %rd2, %rd5;
mul.wide.u32 %rd5, %r1, {}; add.u64 %rd3, %rd3, %rd5; add.u64 %rd4, %rd4, %rd5;\n",
            4 * a,
            4 * b,
            4 * d
        );
        for (name, count, address) in [("a", a, 1), ("b", b, 2), ("c", d, 3)] {
            for i in 0..count {
                text += &format!("ld.global.b32 %{name}{i}, [%rd{address}+{}];\n", 4 * i);
            }
        }
        let lists = [list("d", 0, d), list("a", 0, a), list("b", 0, b), list("c", 0, d)];
        text += &format!("{} {};\n", self.name(), lists.join(", "));
        for i in 0..d {
            text += &format!("st.global.b32 [%rd4+{}], %d{i};\n", 4 * i);
        }
        text
    }

    /// A launch on given matrices: 64 rows of A and eight of B (columns) for each CTA, and the elements of C by thread.
    pub fn case(&self, name: String, a: &Matrix, b: &Matrix, c: &[u32], class: Class) -> Case {
        let grid = a.bits.len() / (ROWS * self.k);
        let a_words = fragments_of_a(a, grid * THREADS, 0, self.a_registers());
        let b_words = (0..grid)
            .flat_map(|cta| fragments_of_b(b, THREADS, cta * COLUMNS, self.a_registers() / 2))
            .collect::<Vec<_>>();
        let c_words = packed(self.accumulator, c);
        let out = output(4 * c_words.len());
        Case {
            name,
            body: self.body(),
            grid: grid as u32,
            block: THREADS as u32,
            parameters: vec![words(a_words), words(b_words), words(c_words), out],
            format: self.accumulator.format(),
            class,
        }
    }

    pub fn random(&self, values: Values) -> Case {
        const GRID: usize = 4;
        let mut random = Random::new(self.k as u64 + 100 * self.a as u64 + 1000 * values as u64);
        let a = Matrix::draw(self.a, values, GRID * ROWS, self.k, &mut random);
        let b = Matrix::draw(self.b, values, GRID * COLUMNS, self.k, &mut random);
        let places = || places_of_d(GRID * THREADS, COLUMNS).map(|(row, column)| (row, row / ROWS * COLUMNS + column));
        let c: Vec<u32> = places().map(|_| self.accumulator.draw(values, &mut random)).collect();
        let class = match values {
            Values::Narrow | Values::Wide | Values::Deep => inexact((&a, &b), 1.0, self.accumulator, &c, places()),
            Values::Tiny | Values::Huge => Class::Open,
            _ => Class::Exact,
        };
        self.case(format!("{} {values:?}", self.name()), &a, &b, &c, class)
    }
}

/// The floating forms that `sm_90` has.
pub fn floating() -> Vec<Form> {
    use Accumulator::{F16, F32};
    let form = |k, accumulator, a, b| Form { k, accumulator, a, b, saturate: false };
    let mut forms = Vec::new();
    for k in [8, 16] {
        forms.push(form(k, F32, Element::F16, Element::F16));
        forms.push(form(k, F16, Element::F16, Element::F16));
        forms.push(form(k, F32, Element::Bf16, Element::Bf16));
    }
    for k in [4, 8] {
        forms.push(form(k, F32, Element::Tf32, Element::Tf32));
    }
    for k in [16, 32] {
        for a in [Element::E4m3, Element::E5m2] {
            for b in [Element::E4m3, Element::E5m2] {
                forms.push(form(k, F32, a, b));
            }
            forms.push(form(k, F16, a, a));
        }
    }
    forms
}

pub fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    for form in floating() {
        for values in [Values::Small, Values::Special, Values::Narrow, Values::Wide, Values::Deep] {
            cases.push(form.random(values));
        }
    }
    let dirty =
        Form { k: 8, accumulator: Accumulator::F32, a: Element::DirtyTf32, b: Element::DirtyTf32, saturate: false };
    let mut case = dirty.random(Values::Small);
    case.name += ", low bits set";
    cases.push(case);
    for k in [16, 32] {
        for a in [Element::S8, Element::U8] {
            for b in [Element::S8, Element::U8] {
                for saturate in [false, true] {
                    let form = Form { k, accumulator: Accumulator::S32, a, b, saturate };
                    cases.push(form.random(Values::Full));
                }
            }
        }
    }
    // Sums at the ends of the range, which saturate or wrap around.
    for saturate in [false, true] {
        let form = Form { k: 32, accumulator: Accumulator::S32, a: Element::S8, b: Element::S8, saturate };
        let mut random = Random::new(7);
        let a = Matrix::draw(form.a, Values::Full, ROWS, form.k, &mut random);
        let b = Matrix::draw(form.b, Values::Full, COLUMNS, form.k, &mut random);
        let c: Vec<u32> = places_of_d(THREADS, COLUMNS)
            .map(|(row, _)| if row % 2 == 0 { 0x7fff_fff0 } else { 0x8000_0010 })
            .collect();
        cases.push(form.case(format!("{} at the ends", form.name()), &a, &b, &c, Class::Exact));
    }
    cases
}

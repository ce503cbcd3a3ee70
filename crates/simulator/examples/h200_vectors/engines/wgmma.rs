//! `wgmma.mma_async` on operands in shared memory and in registers.
//!
//! Where an element lies is computed here from the ISA's canonical layouts, not with the simulator's code.

use super::element::{Accumulator, Element, Matrix, Values};
use super::fragments::{fragments_of_a, inexact, list, packed, places_of_d};
use super::{Case, Class, Parameter, output, words};
use crate::inputs::Random;

pub const THREADS: usize = 128;
pub const ROWS: usize = 64;

/// Where the elements of an operand lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    /// M- or N-major: neighbours along M or N are neighbours in memory.
    pub transposed: bool,
    /// Bytes within which 16-byte units are exchanged; 0 without a swizzle.
    pub span: usize,
    /// The units along K come before those along M or N.
    pub k_first: bool,
}

pub const fn k_major(span: usize) -> Layout {
    Layout { transposed: false, span, k_first: false }
}

const fn mn_major(span: usize) -> Layout {
    Layout { transposed: true, span, k_first: false }
}

impl Layout {
    fn k_first(self) -> Self {
        Self { k_first: true, ..self }
    }

    fn name(self) -> String {
        let major = if self.transposed { "mn" } else { "k" };
        let first = if self.k_first { ", k first" } else { "" };
        format!("{major}-major swizzle {}{first}", self.span)
    }

    /// Leading and stride byte offsets for an operand of `rows` times `depth` elements.
    fn offsets(self, rows: usize, depth: usize, bytes: usize) -> (usize, usize) {
        match (self.transposed, self.span) {
            (false, 0) if self.k_first => (128, 128 * (depth * bytes / 16)),
            (false, 0) => (rows * 16, 128),
            // The leading offset is not used.
            (false, span) => (16, 8 * span),
            (true, 0) if self.k_first => (128, 128 * (depth / 8)),
            (true, 0) => (128 * (rows / 8), 128),
            (true, span) if self.k_first => (8 * span * (depth / 8), 8 * span),
            (true, span) => (8 * span, 8 * span * (rows * 2).div_ceil(span)),
        }
    }

    /// Byte of an element before the swizzle.
    fn linear(self, rows: usize, depth: usize, bytes: usize, row: usize, k: usize) -> usize {
        let (leading, stride) = self.offsets(rows, depth, bytes);
        let along_k = k * bytes;
        let unit = row * bytes / 16;
        match (self.transposed, self.span) {
            (false, 0) => row % 8 * 16 + row / 8 * stride + along_k / 16 * leading + along_k % 16,
            (false, span) => along_k / span * (rows * span) + row % 8 * span + row / 8 * stride + along_k % span,
            (true, 0) => unit * stride + k % 8 * 16 + k / 8 * leading + row * bytes % 16,
            (true, span) => {
                let units = span / 16;
                unit % units * 16 + unit / units * leading + k % 8 * span + k / 8 * stride + row * bytes % 16
            }
        }
    }

    fn place(self, rows: usize, depth: usize, bytes: usize, row: usize, k: usize) -> usize {
        let linear = self.linear(rows, depth, bytes, row, k);
        // Rows of 128 bytes count the pattern, whatever the span.
        let pattern = if self.span == 0 { 0 } else { linear / 128 % (self.span / 16) };
        linear ^ (pattern * 16)
    }

    /// The descriptor of the part from `k` on, of an operand at `base` beyond the tile's address.
    fn descriptor(self, base: usize, rows: usize, depth: usize, bytes: usize, k: usize) -> u64 {
        let (leading, stride) = self.offsets(rows, depth, bytes);
        let code: u64 = match self.span {
            0 => 0,
            128 => 1,
            64 => 2,
            _ => 3,
        };
        let start = base + self.linear(rows, depth, bytes, 0, k);
        code << 62 | (stride as u64 >> 4) << 32 | (leading as u64 >> 4) << 16 | start as u64 >> 4
    }

    fn bytes(self, rows: usize, depth: usize, bytes: usize) -> usize {
        let places = (0..rows).flat_map(|row| (0..depth).map(move |k| self.place(rows, depth, bytes, row, k)));
        (places.max().unwrap_or(0) + bytes).next_multiple_of(1024)
    }
}

/// A form of the instruction, with its operands' places.
#[derive(Clone, Copy)]
pub struct Form {
    pub n: usize,
    pub accumulator: Accumulator,
    pub a: Element,
    pub b: Element,
    /// `None`: in registers.
    pub a_layout: Option<Layout>,
    pub b_layout: Layout,
    pub signs: (i32, i32),
    pub saturate: bool,
    /// The first instruction overwrites D.
    pub overwrite: bool,
    /// Instructions, one after the other along K.
    pub steps: usize,
}

impl Form {
    pub fn new(n: usize, accumulator: Accumulator, element: Element) -> Self {
        Self {
            n,
            accumulator,
            a: element,
            b: element,
            a_layout: Some(k_major(128)),
            b_layout: k_major(128),
            signs: (1, 1),
            saturate: false,
            overwrite: false,
            steps: 2,
        }
    }

    /// K of one instruction.
    pub fn k(&self) -> usize {
        32 / self.a.bytes()
    }

    fn registers(&self) -> usize {
        self.n / 2 / self.accumulator.elements()
    }

    fn instruction(&self) -> String {
        let Self { n, accumulator, a, b, .. } = self;
        let satfinite = if self.saturate { ".satfinite" } else { "" };
        let k = self.k();
        let d = accumulator.name();
        format!("wgmma.mma_async.sync.aligned.m64n{n}k{k}{satfinite}.{d}.{}.{}", a.name(), b.name())
    }

    pub fn name(&self) -> String {
        let name = self.instruction().replace(".mma_async.sync.aligned", "");
        let a = self.a_layout.map_or("registers".to_owned(), Layout::name);
        let overwrite = if self.overwrite { ", D overwritten" } else { "" };
        let signs = if self.signs == (1, 1) { String::new() } else { format!(", signs {:?}", self.signs) };
        format!("{name} x{}, A {a}, B {}{signs}{overwrite}", self.steps, self.b_layout.name())
    }

    fn body(&self, image_bytes: usize) -> String {
        let registers = self.registers();
        let a_words = 4 * self.steps;
        let mut text = format!(
            ".shared .align 1024 .b8 tile[{image_bytes}]; .reg .{} %d<{registers}>; .reg .b32 %a<{a_words}>; .reg .b64 %da<{steps}>, %db<{steps}>, %base;
ld.param.u64 %rd1, [p0]; ld.param.u64 %rd2, [p1]; ld.param.u64 %rd3, [p2]; ld.param.u64 %rd4, [p3]; ld.param.u64 %rd5, [p4];
mul.wide.u32 %rd6, %thread, 16; add.u64 %rd1, %rd1, %rd6; mul.wide.u32 %rd6, %thread, {}; add.u64 %rd2, %rd2, %rd6;
mul.wide.u32 %rd6, %thread, {}; add.u64 %rd3, %rd3, %rd6; add.u64 %rd5, %rd5, %rd6;
mov.u32 %r1, tile; cvt.u64.u32 %base, %r1; shr.u64 %base, %base, 4; shl.b32 %r2, %thread, 4; add.u32 %r1, %r1, %r2; mov.u32 %r3, %r2;
FILL: ld.global.v4.b32 {{%r10, %r11, %r12, %r13}}, [%rd1]; st.shared.v4.b32 [%r1], {{%r10, %r11, %r12, %r13}};
add.u32 %r1, %r1, 2048; add.u64 %rd1, %rd1, 2048; add.u32 %r3, %r3, 2048; setp.lt.u32 %p1, %r3, {image_bytes}; @%p1 bra FILL;\n",
            self.accumulator.register(),
            4 * a_words,
            4 * registers,
            steps = self.steps,
        );
        if self.a_layout.is_none() {
            for i in 0..a_words {
                text += &format!("ld.global.b32 %a{i}, [%rd2+{}];\n", 4 * i);
            }
        }
        for i in 0..registers {
            text += &format!("ld.global.b32 %d{i}, [%rd3+{}];\n", 4 * i);
        }
        for step in 0..self.steps {
            text += &format!(
                "ld.global.b64 %da{step}, [%rd4+{}]; add.u64 %da{step}, %da{step}, %base; ld.global.b64 %db{step}, [%rd4+{}]; add.u64 %db{step}, %db{step}, %base;\n",
                16 * step,
                16 * step + 8
            );
        }
        text += "setp.ne.u32 %p2, %r3, %r3; setp.eq.u32 %p3, %r3, %r3;
fence.proxy.async.shared::cta; bar.sync 0; wgmma.fence.sync.aligned;\n";
        let d = list("d", 0, registers);
        let signs = match self.accumulator {
            Accumulator::S32 => String::new(),
            _ => format!(", {}, {}", self.signs.0, self.signs.1),
        };
        let major = |layout: Layout| match self.a.bytes() {
            2 => format!(", {}", u32::from(layout.transposed)),
            _ => String::new(),
        };
        let majors = format!("{}{}", self.a_layout.map_or(String::new(), major), major(self.b_layout));
        for step in 0..self.steps {
            let a = match self.a_layout {
                Some(_) => format!("%da{step}"),
                None => list("a", 4 * step, 4),
            };
            let scale = if self.overwrite && step == 0 { "%p2" } else { "%p3" };
            text += &format!("{} {d}, {a}, %db{step}, {scale}{signs}{majors};\n", self.instruction());
        }
        text += "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\n";
        for i in 0..registers {
            text += &format!("st.global.b32 [%rd5+{}], %d{i};\n", 4 * i);
        }
        text
    }

    /// A launch on given matrices; C is by thread.
    pub fn case(&self, name: String, a: &Matrix, b: &Matrix, c: &[u32], class: Class) -> Case {
        let depth = self.steps * self.k();
        let bytes = self.a.bytes();
        let a_bytes = self.a_layout.map_or(0, |layout| layout.bytes(ROWS, depth, bytes));
        let b_bytes = self.b_layout.bytes(self.n, depth, bytes);
        let image_bytes = (a_bytes + b_bytes).next_multiple_of(2048);
        assert!(image_bytes <= 48 << 10, "{name}: {image_bytes} bytes of shared memory");
        let mut image = vec![0; image_bytes];
        let mut fill = |base: usize, layout: Layout, matrix: &Matrix, rows: usize| {
            for row in 0..rows {
                for k in 0..depth {
                    let at = base + layout.place(rows, depth, bytes, row, k);
                    image[at..at + bytes].copy_from_slice(&matrix.bits(row, k).to_le_bytes()[..bytes]);
                }
            }
        };
        if let Some(layout) = self.a_layout {
            fill(0, layout, a, ROWS);
        }
        fill(a_bytes, self.b_layout, b, self.n);
        let mut fragments = vec![0; THREADS * 4 * self.steps];
        for step in 0..self.steps {
            let part = fragments_of_a(a, THREADS, step * self.k(), 4);
            for (thread, registers) in part.chunks(4).enumerate() {
                fragments[4 * (thread * self.steps + step)..][..4].copy_from_slice(registers);
            }
        }
        let descriptors: Vec<u8> = (0..self.steps)
            .flat_map(|step| {
                let k = step * self.k();
                let a = self.a_layout.map_or(0, |layout| layout.descriptor(0, ROWS, depth, bytes, k));
                [a, self.b_layout.descriptor(a_bytes, self.n, depth, bytes, k)]
            })
            .flat_map(u64::to_le_bytes)
            .collect();
        let c = packed(self.accumulator, c);
        let out = output(4 * c.len());
        Case {
            name,
            body: self.body(image_bytes),
            grid: 1,
            block: THREADS as u32,
            parameters: vec![Parameter::Input(image), words(fragments), words(c), Parameter::Input(descriptors), out],
            format: self.accumulator.format(),
            class,
        }
    }

    pub fn random(&self, values: Values) -> Case {
        let mut random = Random::new(self.n as u64 + 1000 * self.a as u64 + 10000 * values as u64);
        let depth = self.steps * self.k();
        let a = Matrix::draw(self.a, values, ROWS, depth, &mut random);
        let b = Matrix::draw(self.b, values, self.n, depth, &mut random);
        let places = || places_of_d(THREADS, self.n);
        let c: Vec<u32> = places().map(|_| self.accumulator.draw(values, &mut random)).collect();
        let class = match values {
            Values::Narrow | Values::Wide | Values::Deep => {
                let zero = vec![0; c.len()];
                let sign = f64::from(self.signs.0 * self.signs.1);
                inexact((&a, &b), sign, self.accumulator, if self.overwrite { &zero } else { &c }, places())
            }
            Values::Tiny | Values::Huge => Class::Open,
            _ => Class::Exact,
        };
        self.case(format!("{} {values:?}", self.name()), &a, &b, &c, class)
    }
}

/// Types of the floating forms.
pub const FLOATING: [(Element, Accumulator); 7] = [
    (Element::Bf16, Accumulator::F32),
    (Element::F16, Accumulator::F32),
    (Element::F16, Accumulator::F16),
    (Element::Tf32, Accumulator::F32),
    (Element::E4m3, Accumulator::F32),
    (Element::E5m2, Accumulator::F32),
    (Element::E4m3, Accumulator::F16),
];

pub fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    let mut exact =
        |form: Form| cases.push(form.random(if form.a.is_integer() { Values::Full } else { Values::Small }));
    let integer = (Element::S8, Accumulator::S32);
    for (element, accumulator) in FLOATING.into_iter().chain([integer]) {
        for n in [8, 64, 128, 256] {
            let form = Form::new(n, accumulator, element);
            exact(form);
            exact(Form { a_layout: None, ..form });
        }
        let form = Form::new(64, accumulator, element);
        for span in [0, 32, 64, 128] {
            let layout = k_major(span);
            exact(Form { a_layout: Some(layout), b_layout: layout, steps: 4, ..form });
            exact(Form { a_layout: Some(layout), b_layout: k_major(128), steps: 4, ..form });
        }
        let layout = k_major(0).k_first();
        exact(Form { a_layout: Some(layout), b_layout: layout, steps: 4, ..form });
        exact(Form { overwrite: true, ..form });
        if accumulator != Accumulator::S32 {
            for signs in [(-1, 1), (1, -1), (-1, -1)] {
                exact(Form { signs, ..form });
            }
            exact(Form { signs: (-1, 1), a_layout: None, ..form });
        }
    }
    for element in [Element::Bf16, Element::F16] {
        for span in [0, 32, 64, 128] {
            for layout in [mn_major(span), mn_major(span).k_first()] {
                for n in [8, 64, 256] {
                    let form = Form { b_layout: layout, ..Form::new(n, Accumulator::F32, element) };
                    exact(form);
                    exact(Form { a_layout: Some(layout), ..form });
                }
                exact(Form { a_layout: Some(layout), ..Form::new(128, Accumulator::F32, element) });
                exact(Form { a_layout: None, b_layout: layout, ..Form::new(128, Accumulator::F32, element) });
            }
        }
    }
    exact(Form { a: Element::DirtyTf32, b: Element::DirtyTf32, ..Form::new(64, Accumulator::F32, Element::Tf32) });
    exact(Form { a_layout: None, a: Element::DirtyTf32, ..Form::new(64, Accumulator::F32, Element::Tf32) });
    for (a, b) in [(Element::E4m3, Element::E5m2), (Element::E5m2, Element::E4m3)] {
        exact(Form { b, ..Form::new(64, Accumulator::F32, a) });
    }
    for (a, b) in [(Element::S8, Element::U8), (Element::U8, Element::S8), (Element::U8, Element::U8)] {
        exact(Form { b, ..Form::new(64, Accumulator::S32, a) });
        exact(Form { b, saturate: true, ..Form::new(32, Accumulator::S32, a) });
    }
    for (a, b, accumulator) in [
        (Element::E4m3, Element::E5m2, Accumulator::F32),
        (Element::E5m2, Element::E4m3, Accumulator::F32),
        (Element::E5m2, Element::E5m2, Accumulator::F16),
    ] {
        for values in [Values::Wide, Values::Deep] {
            cases.push(Form { b, steps: 1, ..Form::new(64, accumulator, a) }.random(values));
        }
    }
    for (element, accumulator) in FLOATING {
        for steps in [1, 4] {
            let form = Form { steps, ..Form::new(64, accumulator, element) };
            for values in [Values::Narrow, Values::Wide, Values::Deep] {
                cases.push(form.random(values));
                cases.push(Form { a_layout: None, ..form }.random(values));
            }
        }
        cases.push(Form::new(64, accumulator, element).random(Values::Special));
    }
    cases
}

//! `wgmma` on shared memory and registers that the test lays out by itself, from the ISA's tables.

mod fixture;

use fixture::{GPU, Machine, kernel_for, launch};
use half::{bf16, f16};
use simulator::Fault;
use simulator::number::NarrowFloat;
use simulator::program::Operation;
use simulator::trace::{AsyncOperation, Event, EventKind, Stage};
use std::sync::{Arc, Mutex};

const M: usize = 64;
/// Where B starts in shared memory.
const B_OFFSET: usize = 16384;
const IMAGE_BYTES: usize = 36864;

#[derive(Clone, Copy, PartialEq, Debug)]
enum Layout {
    /// K-major, 128-byte swizzle.
    Swizzled,
    /// K-major, no swizzle: 8 rows of 16 bytes together, then the next 16 bytes of K.
    Plain,
    /// M- or N-major, 128-byte swizzle: 64 elements of 16 bits along M or N in a row.
    Transposed,
}

impl Layout {
    /// Byte of an element of `bytes` bytes in a matrix of `rows` rows.
    fn place(self, rows: usize, bytes: usize, row: usize, k: usize) -> usize {
        match self {
            Self::Swizzled => {
                let (chunk, within) = (k * bytes / 16, k * bytes % 16);
                row / 8 * 1024 + row % 8 * 128 + (chunk ^ (row % 8)) * 16 + within
            }
            Self::Plain => k * bytes / 16 * (rows * 16) + row / 8 * 128 + row % 8 * 16 + k * bytes % 16,
            Self::Transposed => {
                // Atoms of 64 x 8 elements, along M or N first.
                let (chunk, within) = (row % 64 / 8, row % 8 * 2);
                k / 8 * (1024 * rows.div_ceil(64)) + row / 64 * 1024 + k % 8 * 128 + (chunk ^ (k % 8)) * 16 + within
            }
        }
    }

    /// Descriptor of the part that starts at `k`.
    fn descriptor(self, base: usize, rows: usize, bytes: usize, k: usize) -> u64 {
        let (swizzle, leading, stride, start) = match self {
            Self::Swizzled => (1u64, 16, 1024, k * bytes),
            Self::Plain => (0, rows * 16, 128, k * bytes / 16 * (rows * 16)),
            Self::Transposed => (1, 1024, 1024 * rows.div_ceil(64), k / 8 * (1024 * rows.div_ceil(64))),
        };
        swizzle << 62 | (stride as u64 >> 4) << 32 | (leading as u64 >> 4) << 16 | (base + start) as u64 >> 4
    }
}

#[derive(Clone, Copy)]
struct Type {
    name: &'static str,
    bytes: usize,
    encode: fn(i32) -> u32,
}

const BF16: Type = Type { name: "bf16", bytes: 2, encode: |v| bf16::from_f32(v as f32).to_bits().into() };
const F16: Type = Type { name: "f16", bytes: 2, encode: |v| f16::from_f32(v as f32).to_bits().into() };
const TF32: Type = Type { name: "tf32", bytes: 4, encode: |v| (v as f32).to_bits() | 0x0fff };
const E4M3: Type = Type { name: "e4m3", bytes: 1, encode: |v| NarrowFloat::E4m3.encode(v as f32).into() };
const E5M2: Type = Type { name: "e5m2", bytes: 1, encode: |v| NarrowFloat::E5m2.encode(v as f32).into() };
const S8: Type = Type { name: "s8", bytes: 1, encode: |v| u32::from(v as i8 as u8) };

fn value(row: usize, k: usize, salt: usize) -> i32 {
    ((row * 5 + k * 3 + salt) % 7) as i32 - 3
}

struct Case {
    n: usize,
    d: &'static str,
    a: Type,
    b: Type,
    /// `None`: in registers.
    a_layout: Option<Layout>,
    b_layout: Layout,
    /// Sign and major-ness operands.
    a_sign: i32,
    b_sign: i32,
}

impl Case {
    /// K of one instruction: 32 bytes.
    fn k(&self) -> usize {
        32 / self.a.bytes
    }

    fn d_registers(&self) -> usize {
        if self.d == "f16" { self.n / 4 } else { self.n / 2 }
    }

    /// Two instructions, the first of which overwrites D.
    fn ptx(&self, edit: &Edit) -> String {
        let list = |prefix: &str, count: usize| {
            let names: Vec<_> = (0..count).map(|r| format!("%{prefix}{r}")).collect();
            format!("{{{}}}", names.join(", "))
        };
        let d = list("d", self.d_registers());
        let name = format!(
            "wgmma.mma_async.sync.aligned.m64n{}k{}.{}.{}.{}",
            self.n,
            self.k(),
            self.d,
            self.a.name,
            self.b.name
        );
        let signs = if self.d == "s32" { String::new() } else { format!(", {}, {}", self.a_sign, self.b_sign) };
        let major = |layout: Layout| {
            if self.a.bytes != 2 {
                ""
            } else if layout == Layout::Transposed {
                ", 1"
            } else {
                ", 0"
            }
        };
        let majors = format!("{}{}", self.a_layout.map_or("", major), major(self.b_layout));
        let a = |step: usize| match self.a_layout {
            Some(_) => format!("%rd{}", 10 + 2 * step),
            None => format!("{{%a{}, %a{}, %a{}, %a{}}}", 4 * step, 4 * step + 1, 4 * step + 2, 4 * step + 3),
        };
        let mma = |step: usize, scale_d: &str| {
            format!("{name} {d}, {}, %rd{}, {scale_d}{signs}{majors};\n", a(step), 11 + 2 * step)
        };
        let load_a: String = (0..8).map(|i| format!("ld.global.b32 %a{i}, [%rd5+{}];\n", 4 * i)).collect();
        let stores: String =
            (0..self.d_registers()).map(|i| format!("st.global.b32 [%rd6+{}], %d{i};\n", 4 * i)).collect();
        let Edit { before, fence, between, commit, wait, after } = edit;
        let parameters = ".param .u64 image, .param .u64 fragments, .param .u64 out, .param .u64 a1, .param .u64 b1, .param .u64 a2, .param .u64 b2";
        let body = format!(
            ".shared .align 1024 .b8 tile[{IMAGE_BYTES}]; .reg .b32 %d<128>; .reg .b32 %a<8>;
             ld.param.u64 %rd1, [image]; ld.param.u64 %rd5, [fragments]; ld.param.u64 %rd6, [out];
             ld.param.u64 %rd10, [a1]; ld.param.u64 %rd11, [b1]; ld.param.u64 %rd12, [a2]; ld.param.u64 %rd13, [b2];
             mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 16; add.s64 %rd1, %rd1, %rd2;
             mul.wide.u32 %rd2, %r1, 32; add.s64 %rd5, %rd5, %rd2; mul.wide.u32 %rd2, %r1, {}; add.s64 %rd6, %rd6, %rd2;
             mov.u32 %r2, tile; shl.b32 %r3, %r1, 4; add.u32 %r2, %r2, %r3; mov.u32 %r4, 0;
             FILL: ld.global.v4.b32 {{%r10, %r11, %r12, %r13}}, [%rd1]; st.shared.v4.b32 [%r2], {{%r10, %r11, %r12, %r13}};
             add.u32 %r2, %r2, 2048; add.s64 %rd1, %rd1, 2048; add.u32 %r4, %r4, 2048; setp.lt.u32 %p1, %r4, {IMAGE_BYTES}; @%p1 bra FILL;
             {load_a}
             setp.ne.u32 %p2, %r4, %r4; setp.eq.u32 %p3, %r4, %r4;
             {before} {fence}
             {} {between} {}
             {commit} {wait} {after}
             {stores} ret;",
            4 * self.d_registers(),
            mma(0, "%p2"),
            mma(1, "%p3"),
        );
        kernel_for("sm_90a", parameters, &body)
    }

    fn run(&self, seed: u64, edit: &Edit) -> Result<Vec<u32>, Fault> {
        self.run_text(seed, 128, &self.ptx(edit))
    }

    fn run_text(&self, seed: u64, threads: u32, ptx: &str) -> Result<Vec<u32>, Fault> {
        self.run_observed(seed, threads, ptx, |_| ())
    }

    fn run_observed(
        &self,
        seed: u64,
        threads: u32,
        ptx: &str,
        observe: impl FnMut(&Event<'_>) + Send + 'static,
    ) -> Result<Vec<u32>, Fault> {
        let mut image = vec![0u8; IMAGE_BYTES];
        let mut put = |at: usize, bytes: usize, bits: u32| {
            image[at..at + bytes].copy_from_slice(&bits.to_le_bytes()[..bytes]);
        };
        let depth = 2 * self.k();
        for k in 0..depth {
            if let Some(layout) = self.a_layout {
                for row in 0..M {
                    put(layout.place(M, self.a.bytes, row, k), self.a.bytes, (self.a.encode)(value(row, k, 1)));
                }
            }
            for row in 0..self.n {
                let at = B_OFFSET + self.b_layout.place(self.n, self.b.bytes, row, k);
                put(at, self.b.bytes, (self.b.encode)(value(row, k, 2)));
            }
        }
        // Fragments of A: as in mma.m16n8k16 and its relatives, 16 rows to a warp.
        let per = 4 / self.a.bytes;
        let mut fragments = Vec::new();
        for thread in 0..128 {
            let (group, member) = (thread % 32 / 4, thread % 4);
            for register in 0..8 {
                let row = thread / 32 * 16 + group + if register % 2 == 1 { 8 } else { 0 };
                let first = register / 4 * self.k() + register % 4 / 2 * 4 * per + member * per;
                let word = (0..per)
                    .fold(0, |word, i| word | (self.a.encode)(value(row, first + i, 1)) << (8 * self.a.bytes * i));
                fragments.push(word);
            }
        }
        let image: Vec<u32> = image.chunks_exact(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect();
        let mut machine = Machine::new(1, seed, ptx);
        machine.node.observe(observe);
        let image = machine.buffer(GPU, &image);
        let fragments = machine.buffer(GPU, &fragments);
        let words = 128 * self.d_registers();
        let out = machine.buffer(GPU, &vec![0; words]);
        let a = |k| self.a_layout.map_or(0, |layout| layout.descriptor(0, M, self.a.bytes, k));
        let b = |k| self.b_layout.descriptor(B_OFFSET, self.n, self.b.bytes, k);
        let parameters = [image, fragments, out, a(0), b(0), a(self.k()), b(self.k())];
        machine.run(launch(1, 1, threads), &parameters)?;
        assert_eq!(machine.node.counters(GPU).tensor_macs, (M * self.n * depth) as u64);
        Ok(machine.words(GPU, out, words))
    }

    /// D as the lanes hold it (PTX ISA, "Register Fragments", figure for D).
    fn expected(&self) -> Vec<u32> {
        let sign = self.a_sign * self.b_sign;
        let at = |row: usize, column: usize| {
            sign * (0..2 * self.k()).map(|k| value(row, k, 1) * value(column, k, 2)).sum::<i32>()
        };
        let mut out = Vec::new();
        for thread in 0..128 {
            let element = |i: usize| {
                let row = thread / 32 * 16 + thread % 32 / 4 + 8 * (i / 2 % 2);
                at(row, i / 4 * 8 + thread % 4 * 2 + i % 2)
            };
            for register in 0..self.d_registers() {
                out.push(match self.d {
                    "f32" => (element(register) as f32).to_bits(),
                    "s32" => element(register) as u32,
                    _ => (F16.encode)(element(2 * register)) | (F16.encode)(element(2 * register + 1)) << 16,
                });
            }
        }
        out
    }
}

/// What stands around the two instructions.
#[derive(Clone)]
struct Edit {
    before: &'static str,
    fence: &'static str,
    between: &'static str,
    commit: &'static str,
    wait: &'static str,
    after: &'static str,
}

const EDIT: Edit = Edit {
    before: "fence.proxy.async.shared::cta; bar.sync 0;",
    fence: "wgmma.fence.sync.aligned;",
    between: "",
    commit: "wgmma.commit_group.sync.aligned;",
    wait: "wgmma.wait_group.sync.aligned 0;",
    after: "",
};

const CASE: Case = Case {
    n: 64,
    d: "f32",
    a: BF16,
    b: BF16,
    a_layout: Some(Layout::Swizzled),
    b_layout: Layout::Swizzled,
    a_sign: 1,
    b_sign: 1,
};

#[track_caller]
fn check(case: &Case) {
    for seed in 0..4 {
        match case.run(seed, &EDIT) {
            Ok(out) => assert!(out == case.expected(), "wrong product, seed {seed}"),
            Err(fault) => panic!("seed {seed}: {fault}"),
        }
    }
}

#[test]
fn every_type_multiplies() {
    check(&CASE);
    check(&Case { n: 8, ..CASE });
    check(&Case { n: 136, ..CASE });
    check(&Case { a: F16, b: F16, ..CASE });
    check(&Case { d: "f16", a: F16, b: F16, ..CASE });
    check(&Case { a: TF32, b: TF32, ..CASE });
    check(&Case { a: E4M3, b: E5M2, ..CASE });
    check(&Case { d: "f16", a: E5M2, b: E4M3, ..CASE });
    check(&Case { d: "s32", a: S8, b: S8, ..CASE });
}

#[test]
fn a_may_be_in_registers() {
    for ty in [BF16, TF32, E4M3] {
        check(&Case { a: ty, b: ty, a_layout: None, ..CASE });
    }
    check(&Case { a_layout: None, a_sign: -1, b_layout: Layout::Transposed, ..CASE });
}

#[test]
fn layouts_follow_their_descriptors() {
    check(&Case { a_layout: Some(Layout::Plain), b_layout: Layout::Plain, ..CASE });
    check(&Case { a_layout: Some(Layout::Transposed), b_layout: Layout::Transposed, n: 128, ..CASE });
    check(&Case { a: E4M3, b: E4M3, a_layout: Some(Layout::Plain), b_layout: Layout::Plain, n: 24, ..CASE });
}

#[test]
fn operands_can_be_negated() {
    check(&Case { a_sign: -1, ..CASE });
    check(&Case { b_sign: -1, ..CASE });
    check(&Case { a_sign: -1, b_sign: -1, ..CASE });
}

#[track_caller]
fn assert_fault(edit: &Edit, texts: &[&str]) {
    for seed in 0..8 {
        let message = CASE.run(seed, edit).expect_err("no fault").to_string();
        assert!(texts.iter().any(|text| message.contains(text)), "seed {seed}: {message}");
    }
}

#[test]
fn a_missing_proxy_fence_is_noticed() {
    assert_fault(
        &Edit { before: "bar.sync 0;", ..EDIT },
        &["through the generic proxy, and the async proxy now accesses it (PTX ISA, proxies)"],
    );
}

#[test]
fn a_missing_fence_is_noticed() {
    let text = "wgmma.fence is missing: it must stand before the first wgmma.mma_async, and between any access to the registers of A or D and the wgmma.mma_async that uses them";
    assert_fault(&Edit { fence: "", ..EDIT }, &[text]);
    // The registers change between the wait and the next product.
    let between = "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; add.f32 %d3, %d3, %d3;";
    assert_fault(&Edit { between, ..EDIT }, &[text]);
    // Without a change, or with a fence, that is legal.
    let between = "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;";
    assert!(CASE.run(1, &Edit { between, ..EDIT }).unwrap() == CASE.expected());
    let between = "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; add.f32 %d3, %d3, 0f00000000; wgmma.fence.sync.aligned;";
    assert!(CASE.run(1, &Edit { between, ..EDIT }).unwrap() == CASE.expected());
}

#[test]
fn accumulators_are_poisoned_until_the_wait() {
    // The group of the second product is still pending.
    let between = "wgmma.commit_group.sync.aligned;";
    let out = CASE.run(
        1,
        &Edit {
            between,
            wait: "wgmma.wait_group.sync.aligned 1; mov.b32 %r50, %d0; wgmma.wait_group.sync.aligned 0;",
            after: "mov.b32 %d0, %r50;",
            ..EDIT
        },
    );
    assert_eq!(out.unwrap()[0], 0xffc0_dead);
}

#[test]
fn overwriting_operands_in_flight_is_noticed() {
    let text = "shared memory at 0x0 is overwritten while a wgmma.mma_async of the warpgroup of warp 0 of cluster CTA 0 may still read it: wgmma.wait_group (and a barrier towards the other warps) is missing";
    let overwrite = "bar.sync 0; setp.eq.u32 %p4, %r1, 0; mov.u32 %r50, tile; @%p4 st.shared.u32 [%r50], %r1;";
    assert_fault(&Edit { wait: overwrite, after: "wgmma.wait_group.sync.aligned 0;", ..EDIT }, &[text]);
    // After the wait it is legal.
    assert!(CASE.run(1, &Edit { after: overwrite, ..EDIT }).unwrap() == CASE.expected());
}

#[test]
fn one_warp_alone_never_completes() {
    let fault = CASE.run(
        1,
        &Edit {
            fence: "setp.gt.u32 %p5, %r1, 31; @%p5 bra DONE; wgmma.fence.sync.aligned;",
            after: "DONE: bar.sync 0;",
            ..EDIT
        },
    );
    let message = fault.expect_err("no fault").to_string();
    let text = "waits until at most 0 of its wgmma groups are pending: all four warps of the warpgroup must issue the same wgmma.mma_async";
    assert!(message.contains(text), "{message}");
}

#[test]
fn wrong_uses_are_refused() {
    assert_fault(
        &Edit { fence: "wgmma.fence.sync.aligned; or.b64 %rd10, %rd10, 0x400000000000;", ..EDIT },
        &["wgmma matrix descriptor 0x4000404000010000: bits 46..49 must be 0, they are 0x1"],
    );
    assert_fault(
        &Edit { fence: "wgmma.fence.sync.aligned; add.s64 %rd10, %rd10, 0x2000;", ..EDIT },
        &["is outside the CTA's 36864 bytes of shared memory"],
    );
    assert_fault(
        &Edit { fence: "wgmma.fence.sync.aligned; setp.gt.u32 %p2, %r1, 5;", ..EDIT },
        &["wgmma.mma_async: scale-d must be the same in all lanes"],
    );
    // Three warps are no warpgroup.
    let message = CASE.run_text(1, 96, &CASE.ptx(&Edit { before: "", ..EDIT })).expect_err("no fault").to_string();
    let text = "wgmma needs a warpgroup of four warps, the first a multiple of four; warp ";
    assert!(message.contains(text), "{message}");
}

#[test]
fn only_its_own_target_has_it() {
    let text = CASE.ptx(&EDIT).replace("sm_90a", "sm_100a");
    let message = simulator::ptx::load(&text).expect_err("accepted").to_string();
    assert_eq!(message, "`wgmma.fence.sync.aligned` needs sm_90a, but the module's target is sm_100a");
    let text = CASE.ptx(&EDIT).replace("m64n64k16", "m64n64k8");
    let message = simulator::ptx::load(&text).expect_err("accepted").to_string();
    assert_eq!(
        message,
        "`wgmma.mma_async.sync.aligned.m64n64k8.f32.bf16.bf16` needs a combination of shape and types that wgmma.mma_async has"
    );
}

#[test]
fn an_observer_is_told_of_each_warps_share() {
    let text = CASE.ptx(&EDIT);
    let events = Arc::new(Mutex::new(Vec::new()));
    let seen = events.clone();
    let observe = move |event: &Event<'_>| {
        let mut seen = seen.lock().unwrap();
        match event.kind {
            EventKind::Operation { warp, operation: AsyncOperation::Mma { macs }, stage, number, .. } => {
                assert_eq!(macs, 16 * 64 * 16);
                seen.push((warp, number, Some(stage)));
            }
            // The instruction after the wait.
            EventKind::Instruction { warp, pc, .. } => {
                let is_store = matches!(event.kernel.instructions[pc as usize].operation, Operation::Store(_));
                if is_store && seen.iter().any(|&(of, ..)| of == warp) {
                    seen.push((warp, 0, None));
                }
            }
            _ => {}
        }
    };
    CASE.run_observed(1, 128, &text, observe).unwrap();
    let events = events.lock().unwrap();
    for warp in 0..4 {
        let own: Vec<_> = events.iter().filter(|event| event.0 == warp).collect();
        let of = |stage| own.iter().filter(|event| event.2 == stage).map(|event| event.1).collect::<Vec<_>>();
        assert_eq!(of(Some(Stage::Issued)).len(), 2);
        // In order of issue, and before the results are used.
        assert_eq!(of(Some(Stage::Issued)), of(Some(Stage::Completed)));
        let last = own.iter().rposition(|event| event.2 == Some(Stage::Completed));
        assert!(last < own.iter().position(|event| event.2.is_none()));
    }
}

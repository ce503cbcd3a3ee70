//! Every kind of `tcgen05.mma` from PTX text to memory, A from shared and from tensor memory.

mod fixture;

use fixture::{GPU, Machine, kernel, launch};
use half::{bf16, f16};
use simulator::Fault;
use simulator::number::NarrowFloat;

const M: usize = 128;
const N: usize = 64;
/// Where B starts in shared memory, and the scales.
const B_OFFSET: usize = 16384;
const SCALE_OFFSET: usize = 24576;
const IMAGE_BYTES: usize = 26624;

struct Kind {
    name: &'static str,
    /// Bytes of an element.
    bytes: usize,
    /// Format code in the instruction descriptor.
    code: u32,
    encode: fn(i32) -> u32,
    scaled: bool,
    a_in_tensor_memory: bool,
}

const F16: Kind = Kind {
    name: "f16",
    bytes: 2,
    code: 0,
    encode: |v| f16::from_f32(v as f32).to_bits().into(),
    scaled: false,
    a_in_tensor_memory: false,
};

fn kinds() -> Vec<Kind> {
    let e4m3: fn(i32) -> u32 = |v| NarrowFloat::E4m3.encode(v as f32).into();
    let e5m2: fn(i32) -> u32 = |v| NarrowFloat::E5m2.encode(v as f32).into();
    vec![
        F16,
        Kind { code: 1, encode: |v| bf16::from_f32(v as f32).to_bits().into(), ..F16 },
        Kind { name: "tf32", bytes: 4, code: 2, encode: |v| (v as f32).to_bits(), ..F16 },
        Kind { name: "f8f6f4", bytes: 1, code: 0, encode: e4m3, ..F16 },
        Kind { name: "f8f6f4", bytes: 1, code: 1, encode: e5m2, ..F16 },
        Kind { name: "i8", bytes: 1, code: 1, encode: |v| u32::from(v as i8 as u8), ..F16 },
        Kind { name: "mxf8f6f4", bytes: 1, code: 0, encode: e4m3, scaled: true, ..F16 },
    ]
}

fn value(row: usize, k: usize, salt: usize) -> i32 {
    ((row * 5 + k * 3 + salt) % 7) as i32 - 3
}

/// K-major with the 128-byte swizzle.
fn place(bytes: usize, row: usize, k: usize) -> usize {
    let (chunk, within) = (k * bytes / 16, k * bytes % 16);
    row / 8 * 1024 + row % 8 * 128 + (chunk ^ (row % 8)) * 16 + within
}

impl Kind {
    fn k(&self) -> usize {
        32 / self.bytes
    }

    /// Exponents of the scales of A's and B's rows.
    fn scale(&self, row: usize, salt: usize) -> i32 {
        if self.scaled { ((row + salt) % 4) as i32 } else { 0 }
    }

    fn instruction_descriptor(&self) -> u32 {
        let shape = (N as u32 >> 3) << 17 | (M as u32 >> 4) << 24;
        let formats = self.code << 7 | self.code << 10;
        if self.scaled {
            // UE8M0 scales.
            return shape & !(0xf << 24) | (M as u32 >> 7) << 27 | formats | 1 << 23;
        }
        let d = if self.name == "i8" { 2 } else { 1 };
        shape | formats | d << 4
    }

    fn ptx(&self) -> String {
        let stores: String = (0..N).map(|i| format!("st.global.b32 [%rd6+{}], %d{i};\n", 4 * i)).collect();
        let d: Vec<_> = (0..N).map(|i| format!("%d{i}")).collect();
        let (scale, copies) = if self.scaled {
            (
                ".block_scale",
                "tcgen05.cp.cta_group::1.32x128b.warpx4 [%r20+96], %rd14; tcgen05.cp.cta_group::1.32x128b.warpx4 [%r20+100], %rd15;",
            )
        } else {
            ("", "")
        };
        let name = format!("tcgen05.mma.cta_group::1.kind::{}{scale}", self.name);
        let scales = if self.scaled { ", [%r20+96], [%r20+100]" } else { "" };
        let (a, store_a) = if self.a_in_tensor_memory {
            (
                "[%r20+64]",
                "tcgen05.st.sync.aligned.32x32b.x8.b32 [%r20+64], {%a0, %a1, %a2, %a3, %a4, %a5, %a6, %a7};
                 tcgen05.wait::st.sync.aligned;",
            )
        } else {
            ("%rd10", "")
        };
        let load_a: String = (0..8).map(|i| format!("ld.global.b32 %a{i}, [%rd5+{}];\n", 4 * i)).collect();
        kernel(
            ".param .u64 image, .param .u64 rows, .param .u64 out, .param .u64 a, .param .u64 b, .param .u64 scale_a, .param .u64 scale_b",
            &format!(
                ".shared .align 1024 .b8 tile[{IMAGE_BYTES}]; .shared .align 8 .b64 bar; .shared .align 4 .b32 tensor;
                 .reg .b32 %d<64>; .reg .b32 %a<8>;
                 ld.param.u64 %rd1, [image]; ld.param.u64 %rd5, [rows]; ld.param.u64 %rd6, [out];
                 ld.param.u64 %rd10, [a]; ld.param.u64 %rd11, [b]; ld.param.u64 %rd14, [scale_a]; ld.param.u64 %rd15, [scale_b];
                 mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 16; add.s64 %rd1, %rd1, %rd2;
                 mul.wide.u32 %rd2, %r1, 32; add.s64 %rd5, %rd5, %rd2; mul.wide.u32 %rd2, %r1, 256; add.s64 %rd6, %rd6, %rd2;
                 mov.u32 %r2, tile; shl.b32 %r3, %r1, 4; add.u32 %r2, %r2, %r3; mov.u32 %r4, 0; mov.u32 %r7, bar; mov.u32 %r8, tensor;
                 FILL: ld.global.v4.b32 {{%r10, %r11, %r12, %r13}}, [%rd1]; st.shared.v4.b32 [%r2], {{%r10, %r11, %r12, %r13}};
                 add.u32 %r2, %r2, 2048; add.s64 %rd1, %rd1, 2048; add.u32 %r4, %r4, 2048; setp.lt.u32 %p1, %r4, {IMAGE_BYTES}; @%p1 bra FILL;
                 setp.ne.u32 %p2, %r1, 0; shr.u32 %r5, %r1, 5; setp.ne.u32 %p3, %r5, 0;
                 @!%p2 mbarrier.init.shared.b64 [%r7], 1; fence.proxy.async.shared::cta; fence.mbarrier_init.release.cluster;
                 @%p3 bra ALLOCATED; tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r8], 128; ALLOCATED:
                 tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync;
                 ld.shared.b32 %r20, [%r8]; {load_a} {store_a}
                 tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync;
                 @%p2 bra ISSUED; setp.ne.u32 %p4, %r1, %r1; mov.u32 %r21, {};
                 {copies} {name} [%r20], {a}, %rd11, %r21{scales}, %p4;
                 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r7]; ISSUED:
                 WAIT: mbarrier.try_wait.parity.shared.b64 %p5, [%r7], 0; @!%p5 bra WAIT;
                 tcgen05.fence::after_thread_sync;
                 tcgen05.ld.sync.aligned.32x32b.x64.b32 {{{}}}, [%r20]; tcgen05.wait::ld.sync.aligned;
                 {stores}
                 tcgen05.fence::before_thread_sync; bar.sync 0;
                 @%p3 bra FREED; tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r20, 128; FREED: ret;",
                self.instruction_descriptor(),
                d.join(", "),
            ),
        )
    }

    fn run(&self, seed: u64, ptx: &str) -> Result<Vec<u32>, Fault> {
        let mut image = vec![0u8; IMAGE_BYTES];
        let mut put = |at: usize, bits: u32| {
            image[at..at + self.bytes].copy_from_slice(&bits.to_le_bytes()[..self.bytes]);
        };
        for k in 0..self.k() {
            (0..M).for_each(|row| put(place(self.bytes, row, k), (self.encode)(value(row, k, 1))));
            (0..N).for_each(|row| put(B_OFFSET + place(self.bytes, row, k), (self.encode)(value(row, k, 2))));
        }
        // Scale of row r: byte (r % 32) * 16 + r / 32 * 4 of its atom.
        for row in 0..M {
            let at = SCALE_OFFSET + row % 32 * 16 + row / 32 * 4;
            image[at] = (127 + self.scale(row, 1)) as u8;
            image[at + 512] = (127 + self.scale(row, 2)) as u8;
        }
        let image: Vec<u32> = image.chunks_exact(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect();
        // A row by row, for tensor memory.
        let per = 4 / self.bytes;
        let word = |row: usize, word: usize| {
            (0..per).fold(0, |bits, i| bits | (self.encode)(value(row, word * per + i, 1)) << (8 * self.bytes * i))
        };
        let rows: Vec<u32> =
            (0..M).flat_map(|row| (0..8).map(move |index| (row, index))).map(|(r, i)| word(r, i)).collect();
        let mut machine = Machine::new(1, seed, ptx);
        let (image, rows) = (machine.buffer(GPU, &image), machine.buffer(GPU, &rows));
        let out = machine.buffer(GPU, &vec![0; M * N]);
        let swizzled = |at: usize| 0x4000_4040_0000_0000 | at as u64 >> 4;
        let scales = |at: usize| 0x0000_4008_0000_0000 | at as u64 >> 4;
        let parameters =
            [image, rows, out, swizzled(0), swizzled(B_OFFSET), scales(SCALE_OFFSET), scales(SCALE_OFFSET + 512)];
        machine.run(launch(1, 1, 128), &parameters)?;
        Ok(machine.words(GPU, out, M * N))
    }

    #[track_caller]
    fn check(&self) {
        for seed in 0..4 {
            let out = self.run(seed, &self.ptx()).unwrap_or_else(|fault| panic!("{}: {fault}", self.name));
            for row in 0..M {
                for column in 0..N {
                    let sum: i32 = (0..self.k()).map(|k| value(row, k, 1) * value(column, k, 2)).sum();
                    let sum = sum << (self.scale(row, 1) + self.scale(column, 2));
                    let expected = if self.name == "i8" { sum as u32 } else { (sum as f32).to_bits() };
                    let given = out[row * N + column];
                    assert_eq!(given, expected, "{}, code {}, row {row}, column {column}", self.name, self.code);
                }
            }
        }
    }
}

#[test]
fn every_kind_multiplies() {
    kinds().iter().for_each(Kind::check);
}

#[test]
fn a_may_be_in_tensor_memory() {
    for kind in kinds() {
        Kind { a_in_tensor_memory: true, ..kind }.check();
    }
}

#[test]
fn a_kind_takes_only_its_formats() {
    // The descriptor of f16 with bf16 for A and a code that no format has for B.
    let text =
        F16.ptx().replace(&format!("mov.u32 %r21, {}", F16.instruction_descriptor()), "mov.u32 %r21, 0x08101490");
    let message = F16.run(1, &text).expect_err("no fault").to_string();
    assert!(message.contains("instruction descriptor 0x08101490 for F16"), "{message}");
}

/// What the ISA has and the simulator does not execute is refused by name, before anything runs.
#[test]
fn products_that_are_not_executed_are_refused_at_load_time() {
    let registers = ".reg .pred %p; .reg .b32 %r<8>; .reg .b64 %rd<4>;";
    let scaled = "[%r0], %rd0, %rd1, %r1, [%r2], [%r3], %p";
    let cases = [
        ("ws.cta_group::1.kind::f16", "[%r0], %rd0, %rd1, %r1, %p", "weight-stationary forms"),
        ("ws.cta_group::1.kind::i8", "[%r0], %rd0, %rd1, %r1, %p", "weight-stationary forms"),
        ("ws.cta_group::1.kind::tf32.collector::b0::fill", "[%r0], %rd0, %rd1, %r1, %p", "weight-stationary forms"),
        ("ws.sp.cta_group::1.kind::f16", "[%r0], %rd0, %rd1, [%r2], %r1, %p", "weight-stationary forms"),
        ("sp.cta_group::1.kind::f16", "[%r0], %rd0, %rd1, [%r2], %r1, %p", "sparse operands"),
        (
            "sp.cta_group::1.kind::mxf4.block_scale.scale_vec::2X",
            "[%r0], %rd0, %rd1, [%r4], %r1, [%r2], [%r3], %p",
            "sparse operands",
        ),
        ("cta_group::1.kind::mxf4.block_scale.scale_vec::2X", scaled, "4-bit kinds"),
        ("cta_group::1.kind::mxf4.block_scale.block32", scaled, "4-bit kinds"),
        ("cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::4X", scaled, "4-bit kinds"),
        ("cta_group::1.kind::f16.ashift", "[%r0], [%r4], %rd1, %r1, %p", ".ashift"),
        ("cta_group::1.kind::f16", "[%r0], %rd0, %rd1, %r1, %p, 3", "scale-input-d"),
    ];
    for (form, operands, what) in cases {
        let text = format!("tcgen05.mma.{form} {operands};");
        let ptx = format!(
            ".version 8.8\n.target sm_100a\n.address_size 64\n.visible .entry k()\n{{\n{registers}\n{text}\nret;\n}}\n"
        );
        let error = simulator::ptx::load(&ptx).expect_err("accepted");
        assert_eq!(error.to_string(), format!("unsupported: `tcgen05.mma.{form}`: {what}"));
        assert!(error.diagnostic().contains(&text), "{}", error.diagnostic());
    }
}

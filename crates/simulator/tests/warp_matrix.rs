//! `ldmatrix`, `stmatrix` and `mma.sync`, against the ISA's fragment tables written out once more.

mod fixture;

use fixture::{GPU, Machine, assert_fault, kernel, launch, run_one_cta};
use half::{bf16, f16};
use simulator::number::NarrowFloat;

/// Lane t fills 16 bytes of `tile` with the halfwords 8t..8t+8, then all meet.
const FILL: &str = ".shared .align 128 .b8 tile[512];
    mov.u32 %r1, %tid.x; mov.u32 %r2, tile; shl.b32 %r3, %r1, 4; add.u32 %r4, %r2, %r3;
    mul.lo.u32 %r5, %r1, 0x00080008; add.u32 %r6, %r5, 0x00010000; add.u32 %r7, %r6, 0x00020002;
    add.u32 %r8, %r7, 0x00020002; add.u32 %r9, %r8, 0x00020002;
    st.shared.v4.b32 [%r4], {%r6, %r7, %r8, %r9}; bar.warp.sync 0xffffffff;
    ld.param.u64 %rd1, [out]; mul.wide.u32 %rd2, %r1, 16; add.s64 %rd1, %rd1, %rd2;";

/// Element (row, column) of the matrices that `FILL` writes.
fn element(matrix: u32, row: u32, column: u32) -> u32 {
    64 * matrix + 8 * row + column
}

#[test]
fn ldmatrix_hands_out_rows() {
    let body = format!(
        "{FILL} ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{%r10, %r11, %r12, %r13}}, [%r4];
         st.global.v4.b32 [%rd1], {{%r10, %r11, %r12, %r13}}; ret;"
    );
    let out = run_one_cta(1, 32, 128, &body).unwrap();
    for lane in 0..32 {
        for matrix in 0..4 {
            let (row, column) = (lane / 4, 2 * (lane % 4));
            let expected = element(matrix, row, column) | element(matrix, row, column + 1) << 16;
            assert_eq!(out[(4 * lane + matrix) as usize], expected, "lane {lane}, matrix {matrix}");
        }
    }
}

#[test]
fn ldmatrix_transposes() {
    // Generic address; the lanes past the first 16 give no addresses.
    let body = format!(
        "{FILL} cvt.u64.u32 %rd3, %r4; cvta.shared.u64 %rd3, %rd3; setp.gt.u32 %p1, %r1, 15; @%p1 mov.u64 %rd3, 3;
         ldmatrix.sync.aligned.m8n8.x2.trans.b16 {{%r10, %r11}}, [%rd3];
         st.global.v4.b32 [%rd1], {{%r10, %r11, %r10, %r11}}; ret;"
    );
    let out = run_one_cta(1, 32, 128, &body).unwrap();
    for lane in 0..32 {
        for matrix in 0..2 {
            let (row, column) = (lane / 4, 2 * (lane % 4));
            let expected = element(matrix, column, row) | element(matrix, column + 1, row) << 16;
            assert_eq!(out[(4 * lane + matrix) as usize], expected, "lane {lane}, matrix {matrix}");
        }
    }
}

#[test]
fn stmatrix_undoes_ldmatrix() {
    for trans in ["", ".trans"] {
        let body = format!(
            "{FILL} .shared .align 128 .b8 copy[512]; mov.u32 %r20, copy; add.u32 %r20, %r20, %r3;
             ldmatrix.sync.aligned.m8n8.x4{trans}.shared.b16 {{%r10, %r11, %r12, %r13}}, [%r4];
             stmatrix.sync.aligned.m8n8.x4{trans}.shared.b16 [%r20], {{%r10, %r11, %r12, %r13}};
             bar.warp.sync 0xffffffff;
             ld.shared.v4.b32 {{%r10, %r11, %r12, %r13}}, [%r20];
             st.global.v4.b32 [%rd1], {{%r10, %r11, %r12, %r13}}; ret;"
        );
        let expected: Vec<u32> = (0..128).map(|pair| (2 * pair) | ((2 * pair + 1) << 16)).collect();
        assert_eq!(run_one_cta(1, 32, 128, &body).unwrap(), expected);
    }
}

#[test]
fn stmatrix_of_one_matrix_takes_one_register() {
    let body = format!(
        "{FILL} stmatrix.sync.aligned.m8n8.x1.trans.shared::cta.b16 [%r4], {{%r1}}; bar.warp.sync 0xffffffff;
         ld.shared.v4.b32 {{%r10, %r11, %r12, %r13}}, [%r4];
         st.global.v4.b32 [%rd1], {{%r10, %r11, %r12, %r13}}; ret;"
    );
    let out = run_one_cta(1, 32, 128, &body).unwrap();
    // Lane t holds column t / 4, rows 2 * (t % 4) and the next; its low half is t and its high half 0.
    for row in 0..8 {
        for pair in 0..4 {
            let of = |column: u32| if row % 2 == 0 { 4 * column + row / 2 } else { 0 };
            assert_eq!(out[(4 * row + pair) as usize], of(2 * pair) | of(2 * pair + 1) << 16);
        }
    }
}

#[test]
fn wrong_uses_of_matrix_instructions_are_refused() {
    assert_fault(
        32,
        &format!("{FILL} add.u32 %r4, %r4, 8; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {{%r10}}, [%r4]; ret;"),
        "lane 0: load of 16 bytes at 0x8: the address must be a multiple of 16",
    );
    assert_fault(
        32,
        &format!(
            "{FILL} setp.eq.u32 %p1, %r1, 31; @%p1 exit; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {{%r10}}, [%r4]; ret;"
        ),
        "this instruction needs all 32 lanes of the warp, but only lanes 0x7fffffff are live",
    );
    assert_fault(
        32,
        &format!(
            "{FILL} setp.eq.u32 %p1, %r1, 31; @%p1 stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r4], {{%r10}}; ret;"
        ),
        ".aligned instruction reached by lanes 0x80000000 of a warp whose live lanes are 0xffffffff: all must execute it together",
    );
    assert_fault(
        64,
        "mov.u32 %r1, %tid.x; .shared .align 128 .b8 tile[512]; mov.u32 %r2, tile; and.b32 %r3, %r1, 31; shl.b32 %r3, %r3, 4; add.u32 %r4, %r2, %r3;
         shr.u32 %r5, %r1, 5; setp.eq.u32 %p1, %r5, 0; @%p1 bra STORE;
         nanosleep.u32 100000; ld.shared.u32 %r7, [%r4]; ret;
         STORE: stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r4], {%r1, %r1, %r1, %r1}; ret;",
        "lane 0: data race in shared memory at 0x0: warp 0 of cluster CTA 0 wrote it and this warp has not synchronised with it since",
    );
}

/// One form of `mma.sync`: the values are small integers, exact in every type.
struct Form {
    name: &'static str,
    k: usize,
    /// Registers of A, B, and C or D.
    registers: [usize; 3],
    /// Bits of an element.
    bits: u32,
    encode: fn(i32) -> u32,
    accumulator: Accumulator,
    /// Row and column of element i of A, and of B, from groupID and threadID_in_group.
    a: fn(usize, usize, usize) -> (usize, usize),
    b: fn(usize, usize, usize) -> (usize, usize),
}

#[derive(Clone, Copy, PartialEq)]
enum Accumulator {
    F32,
    F16,
    S32,
}

fn a16x16(i: usize, group: usize, thread: usize) -> (usize, usize) {
    let row = if i < 2 || (4..6).contains(&i) { group } else { group + 8 };
    (row, thread * 2 + (i & 1) + if i >= 4 { 8 } else { 0 })
}

fn b16x8(i: usize, group: usize, thread: usize) -> (usize, usize) {
    (thread * 2 + (i & 1) + if i >= 2 { 8 } else { 0 }, group)
}

fn a16x8(i: usize, group: usize, thread: usize) -> (usize, usize) {
    (if i < 2 { group } else { group + 8 }, thread * 2 + (i & 1))
}

fn b8x8(i: usize, group: usize, thread: usize) -> (usize, usize) {
    (thread * 2 + i, group)
}

fn a_tf32(i: usize, group: usize, thread: usize) -> (usize, usize) {
    (if i == 0 || i == 2 { group } else { group + 8 }, if i < 2 { thread } else { thread + 4 })
}

fn b_tf32(i: usize, group: usize, thread: usize) -> (usize, usize) {
    (if i == 0 { thread } else { thread + 4 }, group)
}

fn a16x32(i: usize, group: usize, thread: usize) -> (usize, usize) {
    let row = if i < 4 || (8..12).contains(&i) { group } else { group + 8 };
    (row, thread * 4 + (i & 3) + if i >= 8 { 16 } else { 0 })
}

fn b32x8(i: usize, group: usize, thread: usize) -> (usize, usize) {
    (thread * 4 + (i & 3) + if i >= 4 { 16 } else { 0 }, group)
}

fn d16x8(i: usize, group: usize, thread: usize) -> (usize, usize) {
    (if i < 2 { group } else { group + 8 }, thread * 2 + (i & 1))
}

fn as_f16(value: i32) -> u32 {
    f16::from_f32(value as f32).to_bits().into()
}

fn as_bf16(value: i32) -> u32 {
    bf16::from_f32(value as f32).to_bits().into()
}

fn as_tf32(value: i32) -> u32 {
    // The tensor core ignores the low 13 bits.
    (value as f32).to_bits() | 0x1abc
}

fn as_e4m3(value: i32) -> u32 {
    NarrowFloat::E4m3.encode(value as f32).into()
}

fn as_e5m2(value: i32) -> u32 {
    NarrowFloat::E5m2.encode(value as f32).into()
}

fn as_s8(value: i32) -> u32 {
    u32::from(value as i8 as u8)
}

fn forms() -> Vec<Form> {
    let form = |name, k, registers, bits, encode, accumulator, a, b| Form {
        name,
        k,
        registers,
        bits,
        encode,
        accumulator,
        a,
        b,
    };
    use Accumulator as D;
    vec![
        form("m16n8k16.row.col.f32.bf16.bf16.f32", 16, [4, 2, 4], 16, as_bf16, D::F32, a16x16, b16x8),
        form("m16n8k16.row.col.f32.f16.f16.f32", 16, [4, 2, 4], 16, as_f16, D::F32, a16x16, b16x8),
        form("m16n8k16.row.col.f16.f16.f16.f16", 16, [4, 2, 2], 16, as_f16, D::F16, a16x16, b16x8),
        form("m16n8k8.row.col.f32.bf16.bf16.f32", 8, [2, 1, 4], 16, as_bf16, D::F32, a16x8, b8x8),
        form("m16n8k8.row.col.f16.f16.f16.f16", 8, [2, 1, 2], 16, as_f16, D::F16, a16x8, b8x8),
        form("m16n8k8.row.col.f32.tf32.tf32.f32", 8, [4, 2, 4], 32, as_tf32, D::F32, a_tf32, b_tf32),
        form("m16n8k4.row.col.f32.tf32.tf32.f32", 4, [2, 1, 4], 32, as_tf32, D::F32, a_tf32, b_tf32),
        form("m16n8k32.row.col.f32.e4m3.e4m3.f32", 32, [4, 2, 4], 8, as_e4m3, D::F32, a16x32, b32x8),
        form("m16n8k32.row.col.f32.e5m2.e5m2.f32", 32, [4, 2, 4], 8, as_e5m2, D::F32, a16x32, b32x8),
        form("m16n8k32.row.col.s32.s8.s8.s32", 32, [4, 2, 4], 8, as_s8, D::S32, a16x32, b32x8),
        form("m16n8k16.row.col.satfinite.s32.s8.s8.s32", 16, [2, 1, 4], 8, as_s8, D::S32, a16x32, b32x8),
    ]
}

fn value(row: usize, column: usize, salt: usize) -> i32 {
    ((row * 5 + column * 3 + salt) % 7) as i32 - 3
}

/// Packs a lane's elements of a matrix into registers.
fn pack(registers: usize, bits: u32, mut element: impl FnMut(usize) -> u32) -> Vec<u32> {
    let per = (32 / bits) as usize;
    (0..registers)
        .map(|register| (0..per).fold(0, |word, i| word | element(register * per + i) << (bits * i as u32)))
        .collect()
}

#[test]
fn mma_multiplies_every_form() {
    for form in forms() {
        let [a, b, d] = form.registers;
        let list = |first: usize, count: usize| {
            let names: Vec<_> = (first..first + count).map(|r| format!("%r{r}")).collect();
            names.join(", ")
        };
        let loads: String =
            (0..a + b + d).map(|i| format!("ld.global.b32 %r{}, [%rd1+{}];\n", 10 + i, 4 * i)).collect();
        let stores: String = (0..d).map(|i| format!("st.global.b32 [%rd2+{}], %r{};\n", 4 * i, 30 + i)).collect();
        let ptx = kernel(
            ".param .u64 operands, .param .u64 out",
            &format!(
                "ld.param.u64 %rd1, [operands]; ld.param.u64 %rd2, [out]; mov.u32 %r1, %tid.x;
                 mul.wide.u32 %rd3, %r1, {}; add.s64 %rd1, %rd1, %rd3; mul.wide.u32 %rd3, %r1, {}; add.s64 %rd2, %rd2, %rd3;
                 {loads} mma.sync.aligned.{} {{{}}}, {{{}}}, {{{}}}, {{{}}};
                 {stores} ret;",
                4 * (a + b + d),
                4 * d,
                form.name,
                list(30, d),
                list(10, a),
                list(10 + a, b),
                list(10 + a + b, d),
            ),
        );
        let (d_bits, d_encode): (u32, fn(i32) -> u32) = match form.accumulator {
            Accumulator::F32 => (32, |value| (value as f32).to_bits()),
            Accumulator::F16 => (16, as_f16),
            Accumulator::S32 => (32, |value| value as u32),
        };
        let mut operands = Vec::new();
        let mut expected = Vec::new();
        for lane in 0..32 {
            let (group, thread) = (lane >> 2, lane % 4);
            let at = |(row, column): (usize, usize), salt| (form.encode)(value(row, column, salt));
            operands.extend(pack(a, form.bits, |i| at((form.a)(i, group, thread), 1)));
            operands.extend(pack(b, form.bits, |i| at((form.b)(i, group, thread), 2)));
            let c = |i| {
                let (row, column) = d16x8(i, group, thread);
                (value(row, column, 3), row, column)
            };
            operands.extend(pack(d, d_bits, |i| d_encode(c(i).0)));
            expected.extend(pack(d, d_bits, |i| {
                let (c, row, column) = c(i);
                d_encode(c + (0..form.k).map(|k| value(row, k, 1) * value(k, column, 2)).sum::<i32>())
            }));
        }
        let mut machine = Machine::new(1, 1, &ptx);
        let operands = machine.buffer(GPU, &operands);
        let out = machine.buffer(GPU, &vec![0; 32 * d]);
        machine.run(launch(1, 1, 32), &[operands, out]).unwrap();
        assert_eq!(machine.words(GPU, out, 32 * d), expected, "{}", form.name);
        assert_eq!(machine.node.counters(GPU).tensor_macs, 16 * 8 * form.k as u64);
    }
}

#[test]
fn integer_mma_wraps_or_saturates() {
    // Every product is 1 and C is the largest integer.
    for (satfinite, expected) in [("", i32::MIN + 15), (".satfinite", i32::MAX)] {
        let body = format!(
            "ld.param.u64 %rd1, [out]; mov.u32 %r1, 0x01010101; mov.u32 %r2, 0x7fffffff;
             mma.sync.aligned.m16n8k16.row.col{satfinite}.s32.s8.u8.s32 {{%r3, %r4, %r5, %r6}}, {{%r1, %r1}}, {{%r1}}, {{%r2, %r2, %r2, %r2}};
             st.global.b32 [%rd1], %r6; ret;"
        );
        assert_eq!(run_one_cta(1, 32, 1, &body).unwrap(), [expected as u32]);
    }
}

fn refusal(text: &str) -> String {
    let text = kernel("", &format!("{text} ret;"));
    simulator::ptx::load(&text).expect_err("accepted").to_string()
}

#[test]
fn forms_that_do_not_exist_are_refused_at_load_time() {
    assert_eq!(
        refusal(
            "mma.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f1, %f2, %f3, %f4};"
        ),
        "`mma.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32` needs a combination of shape and types that mma has"
    );
    assert_eq!(
        refusal("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1, %r2}, [%r3];"),
        "expected a vector of 4, found a vector of 2"
    );
}

//! `ldmatrix` and `stmatrix` of bytes, and of 4- and 6-bit elements that `ldmatrix` widens to bytes.

mod common;
mod fixture;

use common::module_for;
use fixture::{assert_fault, run_one_cta};

/// Lane t fills 16 bytes of `tile` with the bytes 16t..16t+16 (modulo 256), then all meet. `%r4` is the lane's row.
const FILL: &str = ".shared .align 128 .b8 tile[512];
    mov.u32 %r1, %tid.x; mov.u32 %r2, tile; shl.b32 %r3, %r1, 4; add.u32 %r4, %r2, %r3; and.b32 %r5, %r3, 255;
    mad.lo.u32 %r6, %r5, 0x01010101, 0x03020100; add.u32 %r7, %r6, 0x04040404; add.u32 %r8, %r7, 0x04040404;
    add.u32 %r9, %r8, 0x04040404; st.shared.v4.b32 [%r4], {%r6, %r7, %r8, %r9}; bar.warp.sync 0xffffffff;
    ld.param.u64 %rd1, [out]; mul.wide.u32 %rd2, %r1, 16; add.s64 %rd1, %rd1, %rd2;";

/// The row's element as `ldmatrix` finds it: `bits` wide, packed from the lowest bit on.
fn element(row: u32, column: u32, bits: u32) -> u8 {
    let packed = (0..16).rev().fold(0u128, |packed, byte| packed << 8 | u128::from((16 * row + byte) as u8));
    (packed >> (column * bits) & ((1 << bits) - 1)) as u8
}

/// The four registers of every lane, of which the last `4 - registers` are 7.
fn load(form: &str, registers: u32) -> Vec<[u32; 4]> {
    let names: Vec<String> = (10..10 + registers).map(|index| format!("%r{index}")).collect();
    let body = format!(
        "{FILL} mov.u32 %r10, 7; mov.u32 %r11, 7; mov.u32 %r12, 7; mov.u32 %r13, 7;
         ldmatrix.sync.aligned.{form} {{{}}}, [%r4]; st.global.v4.b32 [%rd1], {{%r10, %r11, %r12, %r13}}; ret;",
        names.join(", ")
    );
    let words = run_one_cta(1, 32, 128, &body).unwrap();
    words.chunks_exact(4).map(|lane| [lane[0], lane[1], lane[2], lane[3]]).collect()
}

const FORMATS: [(&str, u32); 2] = [("b8x16.b6x16_p32", 6), ("b8x16.b4x16_p64", 4)];

/// "Each thread in a warp loads 4 consecutive columns" of a row that four lanes share.
#[test]
fn rows_of_narrow_elements() {
    for (format, bits) in FORMATS {
        for (number, registers) in [("x1", 1), ("x2", 2), ("x4", 4)] {
            let lanes = load(&format!("m8n16.{number}.shared.{format}"), registers);
            for (lane, words) in (0..).zip(lanes) {
                for matrix in 0..registers {
                    let bytes =
                        std::array::from_fn(|byte| element(8 * matrix + lane / 4, 4 * (lane % 4) + byte as u32, bits));
                    assert_eq!(words[matrix as usize], u32::from_le_bytes(bytes), "{format}.{number}: lane {lane}");
                }
                assert!(words[registers as usize..].iter().all(|&word| word == 7));
            }
        }
    }
}

/// "Each thread in a warp loads 4 consecutive columns across 2 rows" of the transposed matrix.
#[test]
fn transposed_matrices_of_sixteen_rows() {
    for (format, bits) in FORMATS.into_iter().chain([("b8", 8)]) {
        for (number, matrices) in [("x1", 1), ("x2", 2)] {
            let lanes = load(&format!("m16n16.{number}.trans.shared::cta.{format}"), 2 * matrices);
            for (lane, words) in (0..).zip(lanes) {
                for register in 0..2 * matrices {
                    let (matrix, row) = (register / 2, lane / 4 + 8 * (register % 2));
                    let bytes =
                        std::array::from_fn(|byte| element(16 * matrix + 4 * (lane % 4) + byte as u32, row, bits));
                    assert_eq!(words[register as usize], u32::from_le_bytes(bytes), "{format}.{number}: lane {lane}");
                }
            }
        }
    }
}

/// A lane holds columns 2c and 2c + 1 of rows r and r + 8, as it does of an accumulator; memory has columns.
#[test]
fn bytes_are_stored_in_columns() {
    for (number, matrices) in [("x1", 1), ("x2", 2), ("x4", 4)] {
        let sources: Vec<String> = (10..10 + matrices).map(|index| format!("%r{index}")).collect();
        let body = format!(
            "{FILL} mul.lo.u32 %r10, %r1, 0x01010101; and.b32 %r10, %r10, 0x3f3f3f3f; or.b32 %r10, %r10, 0xc0804000;
             add.u32 %r11, %r10, 0x01010101; add.u32 %r12, %r11, 0x01010101; add.u32 %r13, %r12, 0x01010101;
             stmatrix.sync.aligned.m16n8.{number}.trans.shared.b8 [%r4], {{{}}}; bar.warp.sync 0xffffffff;
             ld.shared.v4.b32 {{%r20, %r21, %r22, %r23}}, [%r4]; st.global.v4.b32 [%rd1], {{%r20, %r21, %r22, %r23}}; ret;",
            sources.join(", ")
        );
        let words = run_one_cta(1, 32, 128, &body).unwrap();
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        for matrix in 0..matrices {
            for (column, row) in (0..8).flat_map(|column| (0..16).map(move |row| (column, row))) {
                let lane = 4 * (row % 8) + column / 2;
                let index = column % 2 + 2 * (row / 8);
                let expected = (lane + matrix) as u8 + 64 * index as u8;
                assert_eq!(bytes[(128 * matrix + 16 * column + row) as usize], expected, "{number}: ({row}, {column})");
            }
        }
        assert_eq!(bytes[128 * matrices as usize..], (128 * matrices..512).map(|byte| byte as u8).collect::<Vec<_>>());
    }
}

#[test]
fn rows_are_checked() {
    let aligned = ".shared .align 16 .b8 tile[512]; mov.u32 %r4, tile; add.u32 %r4, %r4, 8;
        ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b4x16_p64 {%r1}, [%r4]; ret;";
    assert_fault(32, aligned, "load of 16 bytes at 0x8: the address must be a multiple of 16");
    // The padding of a row need not be there.
    let padding = |form: &str| {
        format!(
            ".shared .align 16 .b8 tile[16]; mov.u32 %r4, tile; mov.u32 %r5, 0; st.shared.v2.u32 [tile], {{%r5, %r5}};
             bar.warp.sync 0xffffffff; ldmatrix.sync.aligned.m8n16.x1.shared.{form} {{%r1}}, [%r4]; ret;"
        )
    };
    run_one_cta(0, 32, 1, &padding("b8x16.b4x16_p64")).unwrap();
    let fault = run_one_cta(0, 32, 1, &padding("b8x16.b6x16_p32")).unwrap_err().to_string();
    assert!(fault.ends_with("the byte at 0x8 was never written"), "{fault}");
}

#[test]
fn spellings_that_the_isa_lacks_are_refused() {
    let registers = ".reg .b32 %r<8>; .shared .align 16 .b8 tile[512];";
    let cases = [
        (
            "sm_100a",
            "ldmatrix.sync.aligned.m16n16.x1.shared.b8 {%r1, %r2}, [tile];",
            "`.trans`, and one or two matrices, with `.m16n16`",
        ),
        (
            "sm_100a",
            "ldmatrix.sync.aligned.m16n16.x4.trans.shared.b8 {%r1, %r2, %r3, %r4}, [tile];",
            "`.trans`, and one or two matrices, with `.m16n16`",
        ),
        ("sm_100a", "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b16 {%r1, %r2}, [tile];", "needs `.b8x16`"),
        ("sm_100a", "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r1}, [tile];", "expected a vector of 2"),
        (
            "sm_100a",
            "ldmatrix.sync.aligned.m8n16.x1.trans.shared.b8x16.b4x16_p64 {%r1}, [tile];",
            "no `.trans` with `.m8n16`",
        ),
        ("sm_100a", "ldmatrix.sync.aligned.m8n16.x1.shared.b8 {%r1}, [tile];", "needs `.b8x16`"),
        ("sm_100a", "ldmatrix.sync.aligned.m8n8.x1.shared.b8 {%r1}, [tile];", "needs `.b16`"),
        ("sm_90a", "ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b4x16_p64 {%r1}, [tile];", "needs sm_100a"),
        ("sm_100", "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r1, %r2}, [tile];", "needs sm_100a"),
        ("sm_100a", "stmatrix.sync.aligned.m16n8.x1.shared.b8 [tile], {%r1};", "`.trans` with `.m16n8`"),
        ("sm_100a", "stmatrix.sync.aligned.m16n8.x1.trans.shared.b16 [tile], {%r1};", "needs `.b8`"),
        ("sm_100a", "stmatrix.sync.aligned.m8n8.x1.shared.b8 [tile], {%r1};", "needs `.b16`"),
        ("sm_100", "stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [tile], {%r1};", "needs sm_100a"),
    ];
    for (target, text, part) in cases {
        let error = simulator::ptx::load(&module_for(target, &format!("{registers}\n{text}"))).unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
}

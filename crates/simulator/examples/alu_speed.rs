//! Lane-instructions per second of the per-lane executor, by instruction.

use simulator::program::{Operation, Registers};
use std::hint::black_box;
use std::time::Instant;

const INSTRUCTIONS: [&str; 22] = [
    "mov.b32 %r0, %r1;",
    "add.s32 %r0, %r1, %r2;",
    "add.s64 %d0, %d1, %d2;",
    "mul.lo.s32 %r0, %r1, %r2;",
    "mad.lo.s32 %r0, %r1, %r2, %r3;",
    "mul.hi.u32 %r0, %r1, %r2;",
    "mad.wide.u32 %d0, %r1, %r2, %d1;",
    "shl.b32 %r0, %r1, 3;",
    "and.b32 %r0, %r1, %r2;",
    "lop3.b32 %r0, %r1, %r2, %r3, 0x96;",
    "setp.lt.s32 %p, %r1, %r2;",
    "selp.b32 %r0, %r1, %r2, %p;",
    "div.u32 %r0, %r1, %r2;",
    "add.f32 %r0, %r1, %r2;",
    "fma.rn.f32 %r0, %r1, %r2, %r3;",
    "fma.rn.f32x2 %d0, %d1, %d2, %d3;",
    "max.f32 %r0, %r1, %r2;",
    "cvt.rn.bf16x2.f32 %r0, %r1, %r2;",
    "cvt.rn.satfinite.e4m3x2.f32 %h, %r1, %r2;",
    "add.bf16x2 %r0, %r1, %r2;",
    "ex2.approx.ftz.f32 %r0, %r1;",
    "cvt.u64.u32 %d0, %r1;",
];

fn main() {
    for text in INSTRUCTIONS {
        let ptx = format!(
            ".version 8.8\n.target sm_100a\n.address_size 64\n.entry k() {{ .reg .pred %p; .reg .b16 %h; .reg .b32 %r<4>; .reg .b64 %d<4>; {text} }}"
        );
        let module = simulator::ptx::load(&ptx).expect("the list is well-formed");
        let Operation::Scalar(scalar) = &module.kernels[0].instructions[0].operation else {
            unreachable!("the list has per-lane instructions only");
        };
        let mut registers = Registers::new(8, 1);
        for (i, register) in registers.values.iter_mut().enumerate() {
            for (lane, value) in register.iter_mut().enumerate() {
                *value = u64::from((1.0 + lane as f32 + i as f32 / 8.0).to_bits());
            }
        }
        let rounds = 300_000u64;
        for lanes in [u32::MAX, 0x0000_ffff] {
            let start = Instant::now();
            for _ in 0..rounds {
                simulator::alu::execute(black_box(scalar), &mut registers, black_box(lanes), &|_| 0);
            }
            let rate = (rounds * u64::from(lanes.count_ones())) as f64 / start.elapsed().as_secs_f64() / 1e6;
            print!("{rate:8.0} M/s  ");
        }
        println!("{text}");
    }
}

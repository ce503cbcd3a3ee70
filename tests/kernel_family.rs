//! One suite, stamped on every kernel of the table.

mod common;

use common::operands::{Mxfp8Problem, Problem};
use common::rank::{MODES, Rank, node, on_each_rank_with};
use plan::kernels::{KERNELS, KernelSpec, OperandType};

/// Shapes that are whole, ragged and narrower than a tile, in both directions.
fn shapes(spec: &KernelSpec) -> Vec<[usize; 3]> {
    let k = spec.tile.k as usize;
    let shapes = [
        [1, 128, k],
        [16, 384, 2 * k],
        [31, 256, 9 * k],
        [128, 512, k],
        [129, 384, 3 * k],
        [300, 256, 5 * k],
        [257, 512, 2 * k],
    ];
    shapes.into_iter().filter(|[m, ..]| spec.max_rows().is_none_or(|rows| *m <= rows as usize)).collect()
}

/// Ranks that the suite runs on.
const RANKS: [usize; 3] = [2, 3, 4];
const CAPACITY: [u64; 2] = [300, 512];
const SEEDS: u64 = 2;

fn suite(name: &'static str) {
    let spec = KERNELS.iter().find(|spec| spec.name == name).unwrap();
    for ranks in RANKS {
        let on_seeds = |body: &(dyn Fn(&Rank) + Sync)| {
            for seed in 0..SEEDS {
                on_each_rank_with(&node(ranks as u32, seed), CAPACITY, Some(name), body);
            }
        };
        match spec.operands {
            OperandType::Bf16 => {
                let problems: Vec<_> = shapes(spec).into_iter().map(|shape| Problem::random(shape, ranks, 3)).collect();
                let references: Vec<_> = problems.iter().map(Problem::reference).collect();
                on_seeds(&|rank| {
                    for (problem, reference) in problems.iter().zip(&references) {
                        for mode in MODES {
                            rank.check(problem, reference, mode);
                        }
                    }
                });
            }
            OperandType::Mxfp8 => {
                let problems: Vec<_> =
                    shapes(spec).into_iter().map(|shape| Mxfp8Problem::random(shape, ranks, 3)).collect();
                let references: Vec<_> = problems.iter().map(Mxfp8Problem::reference).collect();
                on_seeds(&|rank| {
                    for (problem, reference) in problems.iter().zip(&references) {
                        for mode in MODES {
                            rank.check_mxfp8(problem, reference, mode);
                        }
                    }
                });
            }
        }
    }
}

macro_rules! suites {
    ($($name:ident)*) => {
        $(#[test] fn $name() { suite(stringify!($name)); })*

        #[test]
        fn every_kernel_has_its_suite() {
            let table: Vec<_> = KERNELS.iter().map(|spec| spec.name).collect();
            assert_eq!([$(stringify!($name)),*].as_slice(), table);
        }
    };
}

suites! {
    gemm_bf16_128x128 gemm_bf16_128x224 gemm_bf16_128x256
    gemm_bf16_pair_128x128 gemm_bf16_pair_128x224 gemm_bf16_pair_128x256
    gemm_bf16_swapped_32x128 gemm_bf16_swapped_64x128
    gemm_mxfp8_128x128 gemm_mxfp8_128x224 gemm_mxfp8_128x256
    gemm_mxfp8_pair_128x128 gemm_mxfp8_pair_128x224 gemm_mxfp8_pair_128x256
    gemm_mxfp8_swapped_32x128 gemm_mxfp8_swapped_64x128
}

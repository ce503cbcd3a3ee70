//! One suite, stamped on every kernel of the table.

mod common;

use common::operands::Problem;
use common::rank::{MODES, node, on_each_rank_with};
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

fn bf16_suite(name: &'static str) {
    let spec = KERNELS.iter().find(|spec| spec.name == name).unwrap();
    for ranks in [2, 3, 4] {
        let problems: Vec<_> = shapes(spec).into_iter().map(|shape| Problem::random(shape, ranks, 3)).collect();
        let references: Vec<_> = problems.iter().map(Problem::reference).collect();
        for seed in 0..2 {
            on_each_rank_with(&node(ranks as u32, seed), [300, 512], Some(name), |rank| {
                for (problem, reference) in problems.iter().zip(&references) {
                    for mode in MODES {
                        rank.check(problem, reference, mode);
                    }
                }
            });
        }
    }
}

macro_rules! bf16_suites {
    ($($name:ident)*) => {
        $(#[test] fn $name() { bf16_suite(stringify!($name)); })*

        #[test]
        fn every_bf16_kernel_has_its_suite() {
            let stamped = [$(stringify!($name)),*];
            let table: Vec<_> = KERNELS.iter().filter(|spec| spec.operands == OperandType::Bf16).collect();
            assert_eq!(stamped.len(), table.len());
            assert!(table.iter().all(|spec| stamped.contains(&spec.name)));
        }
    };
}

bf16_suites! {
    gemm_bf16_128x128 gemm_bf16_128x224 gemm_bf16_128x256
    gemm_bf16_pair_128x128 gemm_bf16_pair_128x224 gemm_bf16_pair_128x256
    gemm_bf16_swapped_32x128 gemm_bf16_swapped_64x128
}

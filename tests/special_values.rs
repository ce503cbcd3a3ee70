//! Infinities and NaNs in the operands come out as IEEE arithmetic says, on every kernel, and hang nothing.

mod common;

use common::operands::{Mxfp8Problem, Problem};
use common::rank::{Gaps, MODES, Rank, node, on_each_rank_with};
use gemm_rs_ar::Mode;
use half::bf16;
use plan::kernels::{KERNELS, OperandType};

const RANKS: usize = 2;

/// What is put at `[row, at]` of X.
const SPECIAL: [(usize, usize, bf16); 3] = [(1, 5, bf16::NAN), (3, 200, bf16::INFINITY), (7, 64, bf16::NEG_INFINITY)];

/// Rows of the whole result that a rank has, by their number.
fn rows<'a>(
    rank: &Rank,
    problem: &Problem,
    mode: Mode,
    elements: &'a [bf16],
) -> impl Iterator<Item = (usize, &'a [bf16])> {
    let first = rank.first_row(problem, mode);
    (first..problem.m).zip(elements.chunks_exact(problem.n))
}

#[test]
fn special_values_reach_the_rows_that_they_are_in_and_no_other() {
    for spec in KERNELS {
        let mut problem = Problem::small_integers([16, 256, 128], RANKS, 5);
        for (row, at, value) in SPECIAL {
            let k = problem.k();
            problem.x[row * k + at] = value;
        }
        let quantized = Mxfp8Problem::new(&problem);
        on_each_rank_with(&node(RANKS as u32, 1), [16, 256], Some(spec.name), |rank| {
            for mode in MODES {
                let pending = match spec.operands {
                    OperandType::Bf16 => rank.enqueue(&problem, mode, Gaps::default()).unwrap(),
                    OperandType::Mxfp8 => rank.enqueue_mxfp8(&quantized, mode).unwrap(),
                };
                rank.synchronize();
                let elements = pending.rows();
                for (row, elements) in rows(rank, &problem, mode, &elements) {
                    let special = SPECIAL.iter().find(|(special, ..)| *special == row).map(|(.., value)| *value);
                    let right = |element: &bf16| match (special, spec.operands) {
                        (None, _) => element.is_finite(),
                        // W is positive, so an infinity keeps its sign.
                        (Some(value), OperandType::Bf16) if value.is_infinite() => *element == value,
                        // A block with an infinity is NaN as a whole once quantised.
                        (Some(_), _) => element.is_nan(),
                    };
                    assert!(elements.iter().all(right), "{}, {mode:?}, row {row}: {elements:?}", spec.name);
                }
            }
        });
    }
}

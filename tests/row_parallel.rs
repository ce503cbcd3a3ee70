//! The fused projection on simulated ranks: every element of every rank's result, against the FP64 product under the
//! derived bound, or exactly.

mod common;

use common::operands::Problem;
use std::sync::Arc;

use common::rank::{Gaps, MODES, Rank, node, on_each_rank};
use gemm_rs_ar::driver::Device;
use gemm_rs_ar::reference::Reference;
use gemm_rs_ar::symmetric::Rendezvous;
use gemm_rs_ar::{GemmRsAr, GemmRsArConfig, Mode};
use half::bf16;

const ROWS: [usize; 7] = [1, 7, 127, 128, 129, 173, 257];
const COLUMNS: [usize; 2] = [128, 384];
const INNER: [usize; 3] = [64, 192, 512];
/// Large enough for every shape here.
const CAPACITY: [u64; 2] = [257, 384];

/// Every shape and both modes, one after the other on one workspace.
fn whole_grid(ranks: usize) {
    let mut problems: Vec<(Problem, Reference)> = vec![];
    for m in ROWS {
        for n in COLUMNS {
            for k in INNER {
                let problem = Problem::random([m, n, k], ranks, (m * n * k) as u64);
                let reference = problem.reference();
                problems.push((problem, reference));
            }
        }
    }
    // Neighbours in the list differ in every extent.
    let count = problems.len();
    let order = (0..count).map(|index| &problems[index * 11 % count]);
    let order: Vec<_> = order.collect();
    on_each_rank(&node(ranks as u32, 0), CAPACITY, |rank| {
        for (index, (problem, reference)) in order.iter().enumerate() {
            for mode in [MODES[index % 2], MODES[1 - index % 2]] {
                rank.check(problem, reference, mode);
            }
        }
    });
}

#[test]
fn every_shape_on_2_ranks() {
    whole_grid(2);
}

#[test]
fn every_shape_on_3_ranks() {
    whole_grid(3);
}

#[test]
fn every_shape_on_4_ranks() {
    whole_grid(4);
}

#[test]
fn every_shape_on_8_ranks() {
    whole_grid(8);
}

#[test]
fn every_shape_on_16_ranks() {
    whole_grid(16);
}

const SEEDS: u64 = 20;

/// Launches of both modes in a row under many seeds, each seed with its own order of everything that hardware leaves
/// open.
fn many_seeds(ranks: usize, shape: [usize; 3]) {
    let problem = Problem::random(shape, ranks, 7);
    let reference = problem.reference();
    for seed in 0..SEEDS {
        println!("seed {seed}");
        on_each_rank(&node(ranks as u32, seed), CAPACITY, |rank| {
            for mode in [Mode::ReduceScatter, Mode::AllReduce, Mode::AllReduce, Mode::ReduceScatter] {
                rank.check(&problem, &reference, mode);
            }
        });
    }
}

#[test]
fn many_seeds_on_2_ranks_with_a_ragged_tile() {
    many_seeds(2, [129, 128, 192]);
}

#[test]
fn many_seeds_on_3_ranks_with_several_columns_of_tiles() {
    many_seeds(3, [173, 384, 64]);
}

#[test]
fn many_seeds_on_8_ranks() {
    many_seeds(8, [127, 128, 64]);
}

#[test]
fn many_seeds_on_16_ranks_of_which_some_own_no_rows() {
    many_seeds(16, [7, 128, 64]);
}

#[test]
fn small_integers_come_out_exactly() {
    for (ranks, shape) in [
        (2, [257, 384, 64]),
        (3, [173, 128, 192]),
        (4, [129, 384, 64]),
        (5, [128, 128, 64]),
        (8, [127, 384, 64]),
        (12, [173, 128, 64]),
        (16, [257, 128, 64]),
        (16, [1, 384, 64]),
    ] {
        let problem = Problem::small_integers(shape, ranks, 3);
        let reference = problem.reference();
        on_each_rank(&node(ranks as u32, 1), CAPACITY, |rank| {
            for mode in MODES {
                let first_row = rank.first_row(&problem, mode);
                for (row, elements) in (first_row..).zip(rank.run(&problem, mode).chunks_exact(problem.n)) {
                    for (column, &element) in elements.iter().enumerate() {
                        let wanted = if row < problem.m { reference.value(row, column) } else { 0.0 };
                        let at = format!("{mode:?}, rank {} of {ranks}, {shape:?}, [{row}, {column}]", rank.rank);
                        assert_eq!(element.to_f64(), wanted, "{at}");
                    }
                }
            }
        });
    }
}

#[test]
fn launches_queue_up_without_synchronisation_between_them() {
    let shapes = [[129, 128, 64], [7, 384, 64], [257, 128, 192], [1, 128, 64], [173, 384, 64]];
    for ranks in [2, 4] {
        let problems = shapes.map(|shape| Problem::random(shape, ranks, 11));
        let references = problems.each_ref().map(Problem::reference);
        for seed in 0..5 {
            on_each_rank(&node(ranks as u32, seed), CAPACITY, |rank| {
                let calls: Vec<_> =
                    (0..2 * shapes.len()).map(|call| (call % shapes.len(), MODES[call / 3 % 2])).collect();
                let enqueue =
                    |&(index, mode): &(usize, Mode)| rank.enqueue(&problems[index], mode, Gaps::default()).unwrap();
                let pending: Vec<_> = calls.iter().map(enqueue).collect();
                rank.synchronize();
                for (&(index, mode), pending) in calls.iter().zip(&pending) {
                    rank.check_rows(&problems[index], &references[index], mode, &pending.rows());
                }
            });
        }
    }
}

#[test]
fn rows_may_have_gaps_which_are_neither_read_nor_written() {
    let problem = Problem::random([129, 256, 128], 2, 13);
    let reference = problem.reference();
    on_each_rank(&node(2, 0), CAPACITY, |rank| {
        for gaps in
            [Gaps { x: 8, ..Gaps::default() }, Gaps { weight: 24, ..Gaps::default() }, Gaps { x: 64, weight: 8, y: 16 }]
        {
            for mode in MODES {
                let pending = rank.enqueue(&problem, mode, gaps).unwrap();
                rank.synchronize();
                rank.check_rows(&problem, &reference, mode, &pending.rows());
            }
        }
    });
}

#[test]
fn every_rank_has_the_same_all_reduced_rows() {
    let problem = Problem::random([173, 128, 64], 4, 17);
    let results = on_each_rank(&node(4, 0), CAPACITY, |rank| rank.run(&problem, Mode::AllReduce));
    let bits = |rows: &[bf16]| rows.iter().map(|element| element.to_bits()).collect::<Vec<_>>();
    for result in &results[1..] {
        assert_eq!(bits(result), bits(&results[0]));
    }
}

#[test]
fn a_margin_of_sms_is_left_alone() {
    let problem = Problem::random([257, 384, 64], 2, 19);
    let reference = problem.reference();
    for sm_margin in [1, 2] {
        let node = node(2, 0);
        let sms = node.device(0).unwrap().properties().sm_count;
        node.run_ranks(|device, rendezvous| {
            let config = GemmRsArConfig { sm_margin, ..GemmRsArConfig::new(CAPACITY[0], CAPACITY[1]) };
            let gemm = GemmRsAr::new(Arc::clone(&device), &rendezvous, config).unwrap();
            let rank = Rank { rank: rendezvous.rank() as usize, device, gemm, rendezvous };
            for mode in MODES {
                rank.check(&problem, &reference, mode);
            }
        });
        for rank in 0..2 {
            // Fewer if it takes pairs.
            assert!(node.counters(rank).ctas_retired <= u64::from(sms - sm_margin) * MODES.len() as u64);
        }
    }
}

//! The test grid of the module that this crate follows: N = 512, shapes forwards and backwards on one workspace, both
//! operand types and both modes, by the kernels that the cost model chooses; under derived bounds.
//!
//! K counts per rank. The largest shape takes minutes on the simulator, so it runs on request:
//! `cargo test --release --test reference_grid -- --ignored`.

mod common;

use common::operands::{Mxfp8Problem, Problem};
use common::rank::{MODES, node, on_each_rank};

const N: usize = 512;
const SHAPES: [(usize, usize); 5] = [(129, 512), (129, 768), (257, 768), (1023, 4224), (1024, 4224)];
const LARGEST: (usize, usize) = (8191, 4224);

/// All shapes in order, then in reverse, on one workspace; `rank.check` looks at every element of every rank's rows.
fn grid(shapes: &[(usize, usize)], ranks: usize, max_m: u64) {
    let problems: Vec<_> = (shapes.iter().zip(1..))
        .map(|(&(m, k), seed)| {
            let problem = Problem::random([m, N, k], ranks, seed);
            let quantized = Mxfp8Problem::new(&problem);
            let (reference, of_quantized) = (problem.reference(), quantized.reference());
            (problem, reference, quantized, of_quantized)
        })
        .collect();
    on_each_rank(&node(ranks as u32, 3), [max_m, N as u64], |rank| {
        for (index, (problem, reference, quantized, of_quantized)) in
            problems.iter().chain(problems.iter().rev()).enumerate()
        {
            // Each shape comes by twice, once in each mode.
            for mode in if index < problems.len() { MODES } else { [MODES[1], MODES[0]] }.into_iter().take(1) {
                rank.check(problem, reference, mode);
                rank.check_mxfp8(quantized, of_quantized, mode);
            }
        }
    });
}

#[test]
fn forwards_and_backwards_on_2_ranks() {
    grid(&SHAPES, 2, 1024);
}

#[test]
fn the_smaller_shapes_on_4_ranks() {
    grid(&SHAPES[..3], 4, 257);
}

#[test]
fn the_smaller_shapes_on_8_ranks() {
    grid(&SHAPES[..3], 8, 257);
}

#[test]
fn the_smaller_shapes_on_16_ranks() {
    grid(&SHAPES[..3], 16, 257);
}

#[test]
#[ignore = "minutes on the simulator"]
fn the_largest_shape_on_2_ranks() {
    grid(&[LARGEST], 2, 8191);
}

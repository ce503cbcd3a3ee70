//! The table that is printed, one line as each case ends.

use gemm_rs_ar::Mode;

use crate::layer::Layer;
use crate::run::{Case, Outcome};

/// Prints the heading.
pub fn print_heading() {
    println!(
        "{:<16} {:<14} {:>5} {:>5} {:>5} {:>10} {:<23} {:>11} {:>13} {:>13} {:>8}",
        "layer",
        "mode",
        "ranks",
        "M",
        "N",
        "K per rank",
        "kernel",
        "error/bound",
        "instructions",
        "NVLink bytes",
        "seconds"
    );
}

/// Prints a case, and what is wrong with it if anything is.
pub fn print_line(layer: &Layer, case: Case, outcome: &Outcome) {
    println!(
        "{:<16} {:<14} {:>5} {:>5} {:>5} {:>10} {:<23} {:>11.3} {:>13} {:>13} {:>8.2}",
        layer.name,
        mode_name(case.mode),
        case.ranks,
        layer.m,
        layer.n,
        case.k_per_rank,
        outcome.kernel,
        outcome.comparison.largest_ratio(),
        outcome.instructions,
        outcome.nvlink_bytes,
        outcome.elapsed.as_secs_f64(),
    );
    if let Some(report) = &outcome.report {
        println!(
            "  relative error of rank 0's rows: {:.4} against the exact product ({:.4} by quantisation alone), {:.4} against \
             the quantised one",
            report.total, report.quantization, report.arithmetic
        );
    }
    if !outcome.comparison.is_within_bound() {
        println!(
            "  WRONG: {} of {} elements are outside their bound; the worst: {:?}",
            outcome.comparison.outside, outcome.comparison.elements, outcome.comparison.worst
        );
    }
}

/// The mode as it is written on the command line.
pub fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::ReduceScatter => "reduce-scatter",
        Mode::AllReduce => "all-reduce",
    }
}

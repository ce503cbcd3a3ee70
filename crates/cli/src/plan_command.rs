//! The kernels that could run a problem, what the cost model expects of each, and which one it takes.

use std::fmt::Write;

use plan::choice::{Choice, Estimate, Machine, Problem, candidates, try_choose};
use serde_json::{Value, json};

use crate::arguments::Plan;
use crate::error::CliError;

/// The text to print.
pub fn plan(arguments: &Plan) -> Result<String, CliError> {
    let problem = Problem {
        m: arguments.m,
        n: arguments.n,
        k: arguments.k,
        operands: arguments.dtype.into(),
        ranks: arguments.ranks,
        mode: arguments.mode.into(),
    };
    let machine = Machine { sm_count: arguments.sms, sm_margin: arguments.sm_margin, ..Machine::B200 };
    let choice = try_choose(&problem, &machine)?;
    let mut all: Vec<Choice> = candidates(&problem, &machine).collect();
    all.sort_by(|a, b| a.estimate.total_ns.total_cmp(&b.estimate.total_ns));
    Ok(if arguments.json { json_text(&all, &choice) } else { text(&all, &choice) })
}

/// What an estimate's memory column shows: the slowest of the ways that operands take.
fn memory_ns(estimate: &Estimate) -> f64 {
    estimate.shared_ns.max(estimate.l2_ns).max(estimate.hbm_ns)
}

fn text(all: &[Choice], choice: &Choice) -> String {
    let mut text = String::new();
    write_text(all, choice, &mut text).expect("a string takes everything");
    text
}

fn write_text(all: &[Choice], choice: &Choice, text: &mut String) -> std::fmt::Result {
    let width = all.iter().map(|choice| choice.kernel.name.len()).max().unwrap_or(0) + 2;
    writeln!(text, "modelled for a B200's rates, best total first; times in us\n")?;
    writeln!(
        text,
        "{:<width$}{:>8}{:>6}{:>7}{:>6}{:>9}{:>9}{:>9}{:>9}{:>9}  bound",
        "kernel", "tiles", "CTAs", "waves", "full", "tensor", "memory", "GEMM", "link", "total"
    )?;
    for candidate in all {
        let Choice { kernel, ctas, estimate } = candidate;
        let marked = if kernel.name == choice.kernel.name { "* " } else { "  " };
        let us = |ns: f64| format!("{:.1}", ns / 1000.0);
        writeln!(
            text,
            "{:<width$}{:>8}{ctas:>6}{:>7}{:>6}{:>9}{:>9}{:>9}{:>9}{:>9}  {}",
            format!("{marked}{}", kernel.name),
            estimate.tiles,
            estimate.waves,
            format!("{:.0}%", 100.0 * estimate.wave_efficiency),
            us(estimate.tensor_ns),
            us(memory_ns(estimate)),
            us(estimate.gemm_ns),
            us(estimate.link_ns),
            us(estimate.total_ns),
            estimate.bound,
        )?;
    }
    let percent = 100.0 * plan::choice::TIE;
    writeln!(text, "\n* {choice}")?;
    writeln!(text, "  (of the totals within {percent:.0} % of the least, the one with the least time without the link)")
}

fn json_text(all: &[Choice], choice: &Choice) -> String {
    let object = json!({
        "evidence": "modelled",
        "candidates": all.iter().map(candidate_json).collect::<Vec<_>>(),
        "choice": choice.kernel.name,
        "reason": choice.to_string(),
    });
    format!("{object}\n")
}

fn candidate_json(candidate: &Choice) -> Value {
    let Choice { kernel, ctas, estimate } = candidate;
    json!({
        "kernel": kernel.name,
        "tiles": estimate.tiles,
        "ctas": ctas,
        "waves": estimate.waves,
        "wave_efficiency": estimate.wave_efficiency,
        "modelled_ns": {
            "tensor": estimate.tensor_ns,
            "shared_memory": estimate.shared_ns,
            "l2": estimate.l2_ns,
            "device_memory": estimate.hbm_ns,
            "epilogue": estimate.epilogue_ns,
            "gemm": estimate.gemm_ns,
            "link": estimate.link_ns,
            "fill": estimate.fill_ns,
            "tail": estimate.tail_ns,
            "total": estimate.total_ns,
        },
        "bound": estimate.bound.to_string(),
    })
}

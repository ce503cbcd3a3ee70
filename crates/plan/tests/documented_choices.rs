//! The table of choices in `docs/performance.md` is what the model says.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use plan::arguments::Mode;
use plan::choice::{Machine, Problem, choose};
use plan::kernels::OperandType;

#[test]
fn the_table_in_the_documentation_is_current() {
    let mut table = String::from("| N | K | M | BF16 reduce-scatter | BF16 all-reduce | MXFP8 reduce-scatter |\n");
    table += "|---|---|---|---|---|---|\n";
    for (n, k) in [(7168, 768), (7168, 1536), (7168, 2304), (5120, 1024)] {
        for m in [1, 16, 64, 128, 512, 1024, 2048, 8192] {
            write!(table, "| {n} | {k} | {m} |").unwrap();
            for (operands, mode) in [
                (OperandType::Bf16, Mode::ReduceScatter),
                (OperandType::Bf16, Mode::AllReduce),
                (OperandType::Mxfp8, Mode::ReduceScatter),
            ] {
                let choice = choose(&Problem { m, n, k, operands, ranks: 8, mode }, &Machine::B200).unwrap();
                let (_, name) =
                    choice.kernel.name.split_at(choice.kernel.name.match_indices('_').nth(1).unwrap().0 + 1);
                let estimate = choice.estimate;
                let us = estimate.total_ns / 1000.0;
                write!(table, " {} {us:.1} ({}) |", name.replace('_', " "), estimate.bound).unwrap();
            }
            table.push('\n');
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/performance.md");
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains(&table), "docs/performance.md wants this table:\n{table}");
}

//! What a run left: buffers and counters, for a person or as JSON.

use std::fmt::Write;

use serde_json::{Value, json};
use simulator::node::{Counters, GpuId};
use simulator::{Fault, Node};

use crate::arguments::Simulate;
use crate::buffers::Buffers;

/// What is reported on.
pub struct Report<'a> {
    pub arguments: &'a Simulate,
    pub node: &'a Node,
    pub buffers: &'a Buffers,
    pub fault: Option<&'a Fault>,
}

/// Each counter's name and value.
fn counter_rows(counters: &Counters) -> [(&'static str, u64); 11] {
    [
        ("warp instructions", counters.warp_instructions),
        ("lane instructions", counters.lane_instructions),
        ("global bytes read", counters.global_bytes_read),
        ("global bytes written", counters.global_bytes_written),
        ("global sectors written", counters.global_sectors_written),
        ("NVLink bytes in", counters.nvlink_bytes_in),
        ("NVLink bytes out", counters.nvlink_bytes_out),
        ("TMA bytes", counters.tma_bytes),
        ("tensor multiply-accumulates", counters.tensor_macs),
        ("waits", counters.waits),
        ("CTAs retired", counters.ctas_retired),
    ]
}

/// One GPU's copy of a buffer after the run.
struct Seen {
    gpu: u32,
    buffer: usize,
    element: &'static str,
    count: usize,
    /// Elements that differ from what was there before.
    changed: usize,
    /// Elements that were never written.
    missing: usize,
    head: Vec<Option<String>>,
}

fn look(report: &Report<'_>, gpu: u32, buffer: usize) -> Seen {
    let specification = &report.buffers.list[buffer];
    let width = specification.element.bytes() as usize;
    let contents = report.buffers.read(report.node, gpu, buffer);
    let element = |bytes: &[Option<u8>]| bytes.iter().copied().collect::<Option<Vec<u8>>>();
    let (mut changed, mut missing, mut head) = (0, 0, Vec::new());
    for (index, bytes) in contents.chunks_exact(width).enumerate() {
        let before = specification.initial.as_ref().map(|bytes| &bytes[index * width..][..width]);
        let now = element(bytes);
        missing += usize::from(now.is_none());
        changed += usize::from(now.as_deref() != before);
        if index < report.arguments.head {
            head.push(now.map(|bytes| specification.element.show(&bytes)));
        }
    }
    let (element, count) = (specification.element.name(), contents.len() / width);
    Seen { gpu, buffer, element, count, changed, missing, head }
}

fn all_seen<'a>(report: &'a Report<'_>) -> impl Iterator<Item = Seen> + 'a {
    (0..report.arguments.gpus)
        .flat_map(move |gpu| (0..report.buffers.list.len()).map(move |buffer| look(report, gpu, buffer)))
}

/// For a person.
pub fn text(report: &Report<'_>) -> String {
    let mut text = String::new();
    write_text(report, &mut text).expect("a string takes everything");
    text
}

fn write_text(report: &Report<'_>, text: &mut String) -> std::fmt::Result {
    let arguments = report.arguments;
    let end = match report.fault {
        None => "ran to its end",
        Some(Fault::Deadlock(_)) => "deadlocked",
        Some(_) => "faulted",
    };
    writeln!(text, "kernel `{}` {end}, seed {}", arguments.entry, arguments.seed)?;
    for seen in all_seen(report) {
        let Seen { gpu, buffer, element, count, changed, missing, head } = seen;
        write!(text, "\nGPU {gpu}, buffer {buffer}: {element} x {count}, ")?;
        match changed {
            0 => write!(text, "unchanged")?,
            changed => write!(text, "{changed} changed")?,
        }
        if missing > 0 {
            write!(text, ", {missing} never written")?;
        }
        let more = if count > head.len() { " …" } else { "" };
        let shown: Vec<&str> = head.iter().map(|element| element.as_deref().unwrap_or("?")).collect();
        writeln!(text, "\n  {}{more}", shown.join(" "))?;
    }
    write!(text, "\n{:<28}", "counter")?;
    for gpu in 0..arguments.gpus {
        write!(text, "{:>14}", format!("GPU {gpu}"))?;
    }
    writeln!(text)?;
    let columns: Vec<_> = (0..arguments.gpus).map(|gpu| counter_rows(&report.node.counters(GpuId(gpu)))).collect();
    for row in 0..columns[0].len() {
        write!(text, "{:<28}", columns[0][row].0)?;
        for column in &columns {
            write!(text, "{:>14}", column[row].1)?;
        }
        writeln!(text)?;
    }
    Ok(())
}

/// For a program: one object.
pub fn json(report: &Report<'_>) -> String {
    let arguments = report.arguments;
    let mut seen: Vec<Seen> = all_seen(report).collect();
    let gpus: Vec<Value> = (0..arguments.gpus)
        .map(|gpu| {
            let counters = counter_rows(&report.node.counters(GpuId(gpu)));
            let counters: serde_json::Map<String, Value> = counters
                .into_iter()
                .map(|(name, value)| (name.to_lowercase().replace([' ', '-'], "_"), value.into()))
                .collect();
            let (own, others) = std::mem::take(&mut seen).into_iter().partition(|seen: &Seen| seen.gpu == gpu);
            seen = others;
            let own: Vec<Seen> = own;
            let buffers: Vec<Value> = own.into_iter().map(buffer_json).collect();
            json!({ "gpu": gpu, "buffers": buffers, "counters": counters })
        })
        .collect();
    let object = json!({
        "kernel": arguments.entry,
        "seed": arguments.seed,
        "outcome": match report.fault {
            None => "ran",
            Some(Fault::Deadlock(_)) => "deadlock",
            Some(_) => "fault",
        },
        "fault": report.fault.map(fault_json),
        "gpus": gpus,
    });
    format!("{object}\n")
}

fn buffer_json(seen: Seen) -> Value {
    // Infinities and NaN are no JSON numbers; a null is an element that was never written.
    let head: Vec<Value> = seen
        .head
        .into_iter()
        .map(|element| element.map_or(Value::Null, |text| serde_json::from_str(&text).unwrap_or(Value::String(text))))
        .collect();
    json!({
        "buffer": seen.buffer,
        "type": seen.element,
        "count": seen.count,
        "changed": seen.changed,
        "never_written": seen.missing,
        "head": head,
    })
}

fn fault_json(fault: &Fault) -> Value {
    match fault {
        Fault::Instruction(fault) => json!({
            "line": fault.line,
            "source": fault.source,
            "gpu": fault.gpu.0,
            "cta": fault.cta,
            "warp": fault.warp,
            "lanes": fault.lanes,
            "message": fault.cause.to_string(),
        }),
        Fault::Deadlock(report) => {
            let waiting: Vec<Value> = report
                .waiting
                .iter()
                .map(|wait| {
                    json!({
                        "line": wait.line,
                        "source": wait.source,
                        "gpu": wait.gpu.0,
                        "cta": wait.cta,
                        "warp": wait.warp,
                        "lanes": wait.lanes,
                        "message": wait.reason.to_string(),
                    })
                })
                .collect();
            json!({ "waiting": waiting, "message": fault.to_string() })
        }
        Fault::Copy { .. } => json!({ "message": fault.to_string() }),
    }
}

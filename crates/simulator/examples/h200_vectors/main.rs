//! Writes what `tools/h200_cross_check/run.py` compares with a GPU: a PTX module with one entry per per-lane instruction form,
//! operands, and the results of the simulator, which runs the same entries; and the same for what warps and engines do together.
//!
//! `cargo run --release -p gemm-rs-ar-simulator --example h200_vectors -- DIRECTORY`

mod engines;
mod forms;
mod inputs;

use forms::Form;
use inputs::{Kind, Random};
use simulator::Node;
use simulator::node::{GpuId, LaunchConfig, NodeConfig};
use std::collections::HashMap;
use std::error::Error;
use std::fmt::Write as _;
use std::path::PathBuf;

/// Runs of each form.
const CASES: usize = 2560;
const BLOCK: u32 = 128;
const GPU: GpuId = GpuId(0);

/// A list of operands, kept once for all forms that take the same.
struct Column {
    offset: usize,
    bytes: Vec<u8>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let directory = PathBuf::from(std::env::args().nth(1).ok_or("usage: h200_vectors DIRECTORY")?);
    std::fs::create_dir_all(&directory)?;
    let forms = forms::all();
    let text = module(&forms);

    let mut sets: HashMap<Vec<Kind>, Vec<Column>> = HashMap::new();
    let mut operands = Vec::new();
    let mut expected = Vec::new();
    let mut entries = Vec::new();
    let mut node = Node::new(NodeConfig {
        gpus: 1,
        sms_per_gpu: 8,
        seed: 1,
        memory_bytes_per_gpu: 1 << 30,
        ..NodeConfig::default()
    });
    let module = node.load_module(&text).map_err(|error| error.diagnostic())?;
    for (index, form) in forms.iter().enumerate() {
        let columns = sets.entry(form.inputs.clone()).or_insert_with(|| {
            let mut random = Random::new(form.inputs.iter().fold(1, |seed, &kind| seed * 31 + kind as u64));
            inputs::operands(&form.inputs, CASES, &mut random)
                .iter()
                .zip(&form.inputs)
                .map(|(values, kind)| {
                    let bytes = packed(values, kind.bits());
                    let offset = operands.len();
                    operands.extend_from_slice(&bytes);
                    Column { offset, bytes }
                })
                .collect()
        });
        let mut parameters = Vec::new();
        for column in &*columns {
            let address = node.allocate(GPU, column.bytes.len() as u64)?;
            node.write(GPU, address, &column.bytes)?;
            parameters.push(address);
        }
        let mut results = vec![0; CASES * form.output.bits as usize / 8];
        let output = node.allocate(GPU, results.len() as u64)?;
        parameters.push(output);
        let bytes: Vec<[u8; 8]> = parameters.iter().map(|address| address.to_le_bytes()).collect();
        let arguments: Vec<&[u8]> = bytes.iter().map(|bytes| &bytes[..]).collect();
        let config = LaunchConfig {
            grid: [CASES as u32 / BLOCK, 1, 1],
            cluster: [1; 3],
            block: [BLOCK, 1, 1],
            dynamic_shared_bytes: 0,
        };
        node.launch(GPU, 0, module, &entry(index), config, &arguments)?;
        node.run()?;
        node.read(GPU, output, &mut results)?;
        for address in parameters {
            node.free(GPU, address)?;
        }
        entries.push(manifest_entry(index, form, columns, expected.len()));
        expected.extend_from_slice(&results);
    }
    let manifest =
        format!("{{\n\"cases\": {CASES},\n\"block\": {BLOCK},\n\"entries\": [\n{}\n]\n}}\n", entries.join(",\n"));
    std::fs::write(directory.join("vectors.ptx"), &text)?;
    std::fs::write(directory.join("operands.bin"), &operands)?;
    std::fs::write(directory.join("expected.bin"), &expected)?;
    std::fs::write(directory.join("manifest.json"), &manifest)?;
    let total = text.len() + operands.len() + expected.len() + manifest.len();
    println!("{} forms of {CASES} cases, {:.1} MB", forms.len(), total as f64 / 1e6);
    engines::write(&directory)
}

fn packed(values: &[u64], bits: u32) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes().into_iter().take(bits as usize / 8)).collect()
}

fn entry(index: usize) -> String {
    format!("form{index}")
}

fn manifest_entry(index: usize, form: &Form, columns: &[Column], expected: usize) -> String {
    let inputs: Vec<String> = form
        .inputs
        .iter()
        .zip(columns)
        .map(|(kind, column)| format!("{{\"offset\": {}, \"bits\": {}}}", column.offset, kind.bits()))
        .collect();
    format!(
        "{{\"entry\": \"{}\", \"name\": \"{}\", \"inputs\": [{}], \"expected\": {expected}, \"bits\": {}, \"format\": \"{}\", \"ulps\": {}, \"absolute\": {:e}}}",
        entry(index),
        form.name,
        inputs.join(", "),
        form.output.bits,
        form.output.format,
        form.tolerance.ulps,
        form.tolerance.absolute,
    )
}

/// One entry per form: thread i loads operand i of each list and stores result i.
fn module(forms: &[Form]) -> String {
    let mut text = ".version 8.4\n.target sm_90\n.address_size 64\n".to_owned();
    for (index, form) in forms.iter().enumerate() {
        let count = form.inputs.len();
        let parameters: Vec<String> = (0..=count).map(|i| format!(".param .u64 p{i}")).collect();
        let _ = writeln!(text, "\n// {}\n.visible .entry {}({})\n{{", form.name, entry(index), parameters.join(", "));
        text += ".reg .pred %p, %q;\n.reg .b16 %h<4>;\n.reg .b32 %t<4>, %i, %j, %k;\n.reg .b64 %a, %o;\n";
        for (i, kind) in form.inputs.iter().enumerate() {
            let _ = writeln!(text, ".reg .b{} %in{i};", kind.bits());
        }
        let bits = form.output.bits;
        let _ = writeln!(text, ".reg .b{bits} %out;");
        text += "mov.u32 %i, %tid.x;\nmov.u32 %j, %ctaid.x;\nmov.u32 %k, %ntid.x;\nmad.lo.u32 %i, %j, %k, %i;\n";
        for (i, kind) in form.inputs.iter().enumerate() {
            let bits = kind.bits();
            let _ = writeln!(
                text,
                "ld.param.u64 %a, [p{i}];\nmul.wide.u32 %o, %i, {};\nadd.u64 %a, %a, %o;\nld.global.b{bits} %in{i}, [%a];",
                bits / 8
            );
        }
        let _ = writeln!(
            text,
            "{}\nld.param.u64 %a, [p{count}];\nmul.wide.u32 %o, %i, {};\nadd.u64 %a, %a, %o;\nst.global.b{bits} [%a], %out;\nret;\n}}",
            form.text,
            bits / 8
        );
    }
    text
}

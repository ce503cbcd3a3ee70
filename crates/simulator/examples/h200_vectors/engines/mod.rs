//! Operations of warps, warpgroups and asynchronous engines: each case is a kernel, the contents of its buffers before the
//! run, and after it as the simulator has them.
//!
//! A result is compared bit for bit. How a floating sum is rounded inside the tensor core is not documented; such a case also
//! comes with the sum in double precision and the sum of magnitudes, in terms of which `run.py` measures both.

mod copies;
mod element;
mod fragments;
mod lanes;
mod mma;
mod probes;
mod wgmma;

use std::collections::HashMap;
use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};
use simulator::node::{
    GpuId, LaunchConfig, ModuleId, NodeConfig, TensorMapDescription, TensorMapElement, TensorMapSwizzle,
};
use simulator::{Node, encode_tensor_map};

use super::inputs::Random;

const GPU: GpuId = GpuId(0);
/// What outputs hold before the run, so that what is not written is seen.
const FILL: u8 = 0xa5;

/// How the results are compared.
enum Class {
    /// Bit for bit.
    Exact,
    /// Bit for bit, and measured against the exact sums and the sums of magnitudes, element by element.
    Inexact { exact: Vec<f64>, bound: Vec<f64> },
    /// As multiples of `unit` beyond `base`, by distance.
    Probe(probes::Key),
    /// Not at all: the kernel must stop with an illegal instruction, as the simulator refuses it.
    Illegal,
    /// Bit for bit, but only reported: what silicon does is not known. The simulator may refuse it.
    Open,
}

/// A kernel parameter.
enum Parameter {
    /// A buffer with its first contents.
    Input(Vec<u8>),
    /// A buffer that is compared after the run, with its first contents.
    Output(Vec<u8>),
    /// A tensor map of an earlier parameter, the base of which is that buffer.
    Map { buffer: usize, description: TensorMapDescription },
}

/// A launch.
struct Case {
    name: String,
    /// Shared variables, registers and statements; parameters are `p0`, `p1`, …
    body: String,
    grid: u32,
    block: u32,
    parameters: Vec<Parameter>,
    /// Elements of the outputs: `bits`, `f16` or `f32`.
    format: &'static str,
    class: Class,
}

impl Case {
    fn exact(name: impl Into<String>, body: impl Into<String>, block: u32, parameters: Vec<Parameter>) -> Self {
        let (name, body) = (name.into(), body.into());
        Self { name, body, grid: 1, block, parameters, format: "bits", class: Class::Exact }
    }
}

/// A buffer of so many bytes that the kernel writes.
fn output(bytes: usize) -> Parameter {
    Parameter::Output(vec![FILL; bytes])
}

fn words(values: impl IntoIterator<Item = u32>) -> Parameter {
    Parameter::Input(values.into_iter().flat_map(u32::to_le_bytes).collect())
}

fn random_bytes(count: usize, seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    (0..count).map(|_| random.next() as u8).collect()
}

/// Waits for phase 0 of the mbarrier at `%bar`. It gives up after a while, so that a difference in what completes the phase
/// shows as a wrong result and not as a kernel without end.
const WAIT: &str = "mov.u32 %tries, 0;
WAIT: mbarrier.try_wait.parity.shared::cta.b64 %done, [%bar], 0; add.u32 %tries, %tries, 1;
setp.lt.and.u32 %again, %tries, 100000, !%done; @%again bra WAIT;";

/// Registers that the bodies use, beyond those that they declare.
const REGISTERS: &str =
    ".reg .pred %p<8>, %done, %again; .reg .b16 %h<8>; .reg .b32 %r<64>, %tries, %bar, %thread, %cta, %lane;
.reg .b64 %rd<32>;
mov.u32 %thread, %tid.x; mov.u32 %cta, %ctaid.x; and.b32 %lane, %thread, 31;";

fn all() -> Vec<Case> {
    let mut cases = lanes::all();
    cases.extend(copies::all());
    cases.extend(mma::all());
    cases.extend(wgmma::all());
    cases.extend(probes::all());
    cases.extend(probes::limits());
    cases.extend(copies::limits());
    cases
}

/// One entry for each kernel, though several cases may run it.
fn module(cases: &[Case]) -> (String, Vec<String>) {
    let mut text = ".version 8.7\n.target sm_90a\n.address_size 64\n".to_owned();
    let mut entries: HashMap<(String, String), String> = HashMap::new();
    let mut names = Vec::new();
    for case in cases {
        let declare = |(index, parameter): (usize, &Parameter)| match parameter {
            Parameter::Map { .. } => format!(".param .align 64 .b8 p{index}[128]"),
            _ => format!(".param .u64 p{index}"),
        };
        let parameters: Vec<String> = case.parameters.iter().enumerate().map(declare).collect();
        let key = (parameters.join(", "), case.body.clone());
        let fresh = format!("case{}", entries.len());
        let entry = entries.entry(key).or_insert_with_key(|(parameters, body)| {
            let _ = writeln!(
                text,
                "\n// {}\n.visible .entry {fresh}({parameters})\n{{\n{REGISTERS}\n{body}\nret;\n}}",
                case.name
            );
            fresh
        });
        names.push(entry.clone());
    }
    (text, names)
}

/// The file of buffers; equal ones are kept once.
#[derive(Default)]
struct Data {
    bytes: Vec<u8>,
    known: HashMap<Vec<u8>, usize>,
}

impl Data {
    fn put(&mut self, bytes: &[u8]) -> Value {
        let offset = *self.known.entry(bytes.to_vec()).or_insert_with(|| {
            let offset = self.bytes.len();
            self.bytes.extend_from_slice(bytes);
            offset
        });
        json!({ "offset": offset, "bytes": bytes.len() })
    }

    fn put_numbers(&mut self, numbers: &[f64]) -> Value {
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        self.put(&bytes)
    }
}

/// Runs a case: the addresses of its parameters, 0 for a tensor map, and whether the simulator refuses it.
fn run(node: &mut Node, module: ModuleId, entry: &str, case: &Case) -> Result<(Vec<u64>, bool), Box<dyn Error>> {
    let (mut addresses, mut arguments) = (Vec::new(), Vec::<Vec<u8>>::new());
    for parameter in &case.parameters {
        let (address, argument) = match parameter {
            Parameter::Input(bytes) | Parameter::Output(bytes) => {
                let address = node.allocate(GPU, bytes.len() as u64)?;
                node.write(GPU, address, bytes)?;
                (address, address.to_le_bytes().to_vec())
            }
            Parameter::Map { buffer, description } => {
                let description = TensorMapDescription { base: addresses[*buffer], ..description.clone() };
                let map = encode_tensor_map(&description).map_err(|error| format!("{}: {error}", case.name))?;
                (0, map.0.to_vec())
            }
        };
        addresses.push(address);
        arguments.push(argument);
    }
    let arguments: Vec<&[u8]> = arguments.iter().map(|bytes| &bytes[..]).collect();
    let config =
        LaunchConfig { grid: [case.grid, 1, 1], cluster: [1; 3], block: [case.block, 1, 1], dynamic_shared_bytes: 0 };
    node.launch(GPU, 0, module, entry, config, &arguments)?;
    match (node.run(), &case.class) {
        (Ok(_), Class::Illegal) => Err(format!("{}: the simulator does not refuse it", case.name).into()),
        (Ok(_), _) => Ok((addresses, false)),
        (Err(_), Class::Illegal | Class::Open) => Ok((addresses, true)),
        (Err(fault), _) => Err(format!("{}: {fault}", case.name).into()),
    }
}

fn load(text: &str) -> Result<(Node, ModuleId), Box<dyn Error>> {
    let mut node = Node::new(NodeConfig { sms_per_gpu: 8, seed: 1, ..NodeConfig::default() });
    let module = node.load_module(text).map_err(|error| error.diagnostic())?;
    Ok((node, module))
}

/// Runs every case and writes `engines.ptx`, `engines.bin` and `engines.json`.
pub fn write(directory: &Path) -> Result<(), Box<dyn Error>> {
    let cases = all();
    let (text, entries) = module(&cases);
    std::fs::write(directory.join("engines.ptx"), &text)?;
    let (mut node, loaded) = load(&text)?;
    let mut data = Data::default();
    let mut manifest = Vec::new();
    for (case, entry) in cases.iter().zip(&entries) {
        // A refusal ends the node, so that what may be refused gets one of its own.
        let alone = matches!(case.class, Class::Illegal | Class::Open);
        let mut own;
        let (node, (addresses, refused)) = if alone {
            let (text, entries) = module(std::slice::from_ref(case));
            let loaded;
            (own, loaded) = load(&text)?;
            let result = run(&mut own, loaded, &entries[0], case)?;
            (&mut own, result)
        } else {
            let result = run(&mut node, loaded, entry, case)?;
            (&mut node, result)
        };
        let mut parameters = Vec::new();
        for (parameter, &address) in case.parameters.iter().zip(&addresses) {
            parameters.push(match parameter {
                Parameter::Input(bytes) => json!({ "initial": data.put(bytes) }),
                Parameter::Output(bytes) => {
                    let mut after = bytes.clone();
                    if !refused {
                        node.read(GPU, address, &mut after)?;
                    }
                    json!({ "initial": data.put(bytes), "expected": data.put(&after) })
                }
                Parameter::Map { buffer, description } => json!({ "map": map_manifest(*buffer, description) }),
            });
            if address != 0 && !alone {
                node.free(GPU, address)?;
            }
        }
        let mut item = json!({
            "entry": entry, "name": case.name, "grid": case.grid, "block": case.block, "format": case.format,
            "parameters": parameters,
        });
        match &case.class {
            Class::Exact => item["class"] = "exact".into(),
            Class::Illegal => item["class"] = "illegal".into(),
            Class::Open => {
                item["class"] = "open".into();
                item["refused"] = refused.into();
            }
            Class::Inexact { exact, bound } => {
                item["class"] = "inexact".into();
                item["exact"] = data.put_numbers(exact);
                item["bound"] = data.put_numbers(bound);
            }
            Class::Probe(key) => {
                item["class"] = "probe".into();
                item["columns"] = json!(probes::COLUMNS);
                item["group"] = json!(key.group);
                for (name, numbers) in
                    [("base", &key.base), ("unit", &key.unit), ("distance", &key.distance), ("column", &key.column)]
                {
                    item[name] = data.put_numbers(numbers);
                }
            }
        }
        manifest.push(item.to_string());
    }
    let manifest = format!("{{\"cases\": [\n{}\n]}}\n", manifest.join(",\n"));
    std::fs::write(directory.join("engines.json"), &manifest)?;
    std::fs::write(directory.join("engines.bin"), &data.bytes)?;
    let total = text.len() + data.bytes.len() + manifest.len();
    println!("{} cases of warps and engines, {:.1} MB", cases.len(), total as f64 / 1e6);
    Ok(())
}

/// What `cuTensorMapEncodeTiled` is given, in the driver's numbers.
fn map_manifest(buffer: usize, description: &TensorMapDescription) -> Value {
    let element = match description.element {
        TensorMapElement::U8 => 0,
        TensorMapElement::U16 => 1,
        TensorMapElement::U32 => 2,
        TensorMapElement::U64 => 4,
        TensorMapElement::F16 => 6,
        TensorMapElement::F32 => 7,
        TensorMapElement::Bf16 => 9,
    };
    let swizzle = match description.swizzle {
        TensorMapSwizzle::None => 0,
        TensorMapSwizzle::B32 => 1,
        TensorMapSwizzle::B64 => 2,
        TensorMapSwizzle::B128 => 3,
    };
    json!({
        "buffer": buffer, "element": element, "swizzle": swizzle, "nan_fill": u8::from(description.nan_fill),
        "dimensions": description.dimensions, "strides_bytes": description.strides_bytes,
        "box": description.box_dimensions, "element_strides": description.element_strides,
    })
}

//! `simulate`: one launch per GPU, from arguments to report.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use simulator::node::{GpuId, LaunchConfig, ModuleId, NodeConfig};
use simulator::ptx::PtxError;
use simulator::timeline::Timeline;
use simulator::{Fault, Node};

use crate::arguments::Simulate;
use crate::buffers::{Buffers, made};
use crate::error::CliError;
use crate::report::{self, Report};
use crate::specification::{CtaName, TraceTarget};
use crate::statements::Statements;
use crate::trace::{Followed, TextTrace};

/// What is left to print.
pub struct Outcome {
    pub stdout: String,
    pub stderr: String,
    pub faulted: bool,
}

/// What watches the run.
#[derive(Default)]
struct Watchers {
    trace: Option<TextTrace>,
    timeline: Option<Timeline>,
}

/// Runs the kernel and reports.
pub fn simulate(arguments: &Simulate) -> Result<Outcome, CliError> {
    let path = &arguments.file;
    let ptx = fs::read_to_string(path).map_err(|error| failed(path, &error))?;
    let config =
        NodeConfig { gpus: arguments.gpus, sms_per_gpu: arguments.sms, seed: arguments.seed, ..NodeConfig::default() };
    let mut node = Node::new(config);
    let module =
        node.load_module(&ptx).map_err(|error| CliError::Ptx { path: path.clone(), diagnostic: quoted(&error) })?;
    let followed: Vec<Followed> =
        arguments.traces.iter().map(|&target| follow(arguments, target)).collect::<Result<_, _>>()?;
    let mut specifications: Vec<_> = arguments.buffers.iter().collect();
    specifications.extend(made(&arguments.arguments));
    let mut buffers = Buffers::new(&mut node, &specifications)?;
    for dump in &arguments.dumps {
        buffers.get(dump.buffer)?;
        if dump.gpu >= arguments.gpus {
            return Err(CliError::NoSuchGpu { given: dump.gpu, gpus: arguments.gpus });
        }
    }
    launch(&mut node, module, &mut buffers, arguments)?;
    let watchers = watch(&mut node, module, arguments, followed)?;
    let result = node.run();
    let fault = result.err();
    // The observer's share goes, so that everything is written.
    node.stop_observing();
    let mut watchers = watchers.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(trace) = &mut watchers.trace {
        trace.finish();
        if let (Some(error), Some(path)) = (&trace.failed, &arguments.trace_file) {
            return Err(failed(path, error));
        }
    }
    if let (Some(timeline), Some(path)) = (&watchers.timeline, &arguments.timeline) {
        let caption = format!("{}, seed {}", arguments.entry, arguments.seed);
        fs::write(path, timeline.svg(&caption)).map_err(|error| failed(path, &error))?;
    }
    dump(&node, &buffers, arguments)?;
    let report = Report { arguments, node: &node, buffers: &buffers, fault: fault.as_ref() };
    let stdout = if arguments.json { report::json(&report) } else { report::text(&report) };
    let stderr = fault.as_ref().map(diagnostic).unwrap_or_default();
    Ok(Outcome { stdout, stderr, faulted: fault.is_some() })
}

fn failed(path: &Path, error: &std::io::Error) -> CliError {
    CliError::File { path: path.to_owned(), problem: error.to_string() }
}

/// The error and its line, without the word that every message begins with.
fn quoted(error: &PtxError) -> String {
    let diagnostic = error.diagnostic();
    diagnostic.strip_prefix("error: ").unwrap_or(&diagnostic).trim_end().to_owned()
}

fn diagnostic(fault: &Fault) -> String {
    match fault {
        Fault::Deadlock(_) => format!("{fault}\n"),
        _ => format!("fault: {fault}\n"),
    }
}

fn launch(node: &mut Node, module: ModuleId, buffers: &mut Buffers, arguments: &Simulate) -> Result<(), CliError> {
    let config = LaunchConfig {
        grid: arguments.grid,
        cluster: arguments.cluster,
        block: arguments.block,
        dynamic_shared_bytes: arguments.shared,
    };
    for gpu in 0..arguments.gpus {
        let parameters = buffers.parameters(node, gpu, &arguments.arguments)?;
        let parameters: Vec<&[u8]> = parameters.iter().map(|bytes| &bytes[..]).collect();
        node.launch(GpuId(gpu), 0, module, &arguments.entry, config, &parameters)?;
    }
    Ok(())
}

/// Sets up what the arguments want to see of the run.
fn watch(
    node: &mut Node,
    module: ModuleId,
    arguments: &Simulate,
    followed: Vec<Followed>,
) -> Result<Arc<Mutex<Watchers>>, CliError> {
    let mut watchers = Watchers::default();
    if let Some(kernel) = node.kernel(module, &arguments.entry).filter(|_| !followed.is_empty()) {
        let out: Box<dyn Write + Send> = match &arguments.trace_file {
            Some(path) => Box::new(BufWriter::new(File::create(path).map_err(|error| failed(path, &error))?)),
            None => Box::new(BufWriter::new(std::io::stderr())),
        };
        watchers.trace = Some(TextTrace::new(followed, Arc::new(Statements::new(&kernel)), out));
    }
    if arguments.timeline.is_some() {
        watchers.timeline = Some(Timeline::default());
    }
    let wanted = watchers.trace.is_some() || watchers.timeline.is_some();
    let watchers = Arc::new(Mutex::new(watchers));
    if wanted {
        let shared = watchers.clone();
        node.observe(move |event| {
            let mut watchers = shared.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(trace) = &mut watchers.trace {
                trace.event(event);
            }
            if let Some(timeline) = &mut watchers.timeline {
                timeline.event(event);
            }
        });
    }
    Ok(watchers)
}

/// Checks that what is to be followed will run.
fn follow(arguments: &Simulate, target: TraceTarget) -> Result<Followed, CliError> {
    let outside = |what, given: String, limit: String| CliError::TraceOutside { what, given, limit };
    let (TraceTarget::Warp { gpu, cta, .. } | TraceTarget::Barrier { gpu, cta, .. }) = target;
    if gpu >= arguments.gpus {
        return Err(outside("GPU", gpu.to_string(), arguments.gpus.to_string()));
    }
    let [width, height, depth] = arguments.grid.map(u64::from);
    let cta = match cta {
        CtaName::Place(place) if (0..3).all(|axis| place[axis] < arguments.grid[axis]) => place,
        CtaName::Place(place) => {
            return Err(outside("CTA", format!("{place:?}"), format!("{:?} in each axis", arguments.grid)));
        }
        CtaName::Number(number) if number < width * height * depth => {
            [number % width, number / width % height, number / width / height].map(|axis| axis as u32)
        }
        CtaName::Number(number) => {
            return Err(outside("CTA", number.to_string(), (width * height * depth).to_string()));
        }
    };
    match target {
        TraceTarget::Warp { warp, .. } => {
            let warps = arguments.block.iter().product::<u32>().div_ceil(32);
            if warp >= warps {
                return Err(outside("warp", warp.to_string(), warps.to_string()));
            }
            Ok(Followed::Warp { gpu, cta, warp })
        }
        TraceTarget::Barrier { offset, .. } => Ok(Followed::Barrier { gpu, cta, offset }),
    }
}

fn dump(node: &Node, buffers: &Buffers, arguments: &Simulate) -> Result<(), CliError> {
    for dump in &arguments.dumps {
        let contents = buffers.read(node, dump.gpu, dump.buffer);
        let missing = contents.iter().filter(|byte| byte.is_none()).count();
        if missing > 0 {
            return Err(CliError::DumpUninitialised { buffer: dump.buffer, gpu: dump.gpu, missing });
        }
        let bytes: Vec<u8> = contents.into_iter().flatten().collect();
        fs::write(&dump.path, bytes).map_err(|error| failed(&dump.path, &error))?;
    }
    Ok(())
}

//! Runs real row-parallel layers over several simulated ranks and checks every element of every rank's result.
//!
//! The kernels' PTX runs, instruction by instruction, on the simulator of a multi-GPU NVLink node. The result is
//! compared with the FP64 product under an error bound derived from the roundings that the kernel makes;
//! reduce-scatter's padding rows have to be zero.
//!
//! Exit code: 0 if everything is within its bound, 1 if anything is not or a rank failed, 2 for input that cannot be
//! used.

mod layer;
mod run;
mod table;

use std::error::Error;
use std::io::{IsTerminal, stderr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use gemm_rs_ar::Mode;
use gemm_rs_ar::reference::Reference;
use indicatif::{ProgressBar, ProgressStyle};
use thiserror::Error;

use layer::{Layer, LayerError};
use run::Case;

/// Row-parallel layers over simulated ranks, checked element by element.
#[derive(Parser)]
struct Options {
    /// Rank counts, comma-separated.
    #[arg(long, value_delimiter = ',', default_values_t = [2, 4, 8])]
    ranks: Vec<u32>,
    /// Which collective.
    #[arg(long, value_enum, default_value_t = ModeChoice::Both)]
    mode: ModeChoice,
    /// Which layer of the file: ffn_output, attention_output, another one that the file has, or all for the first two.
    #[arg(long, default_value = "ffn_output")]
    layer: String,
    /// Seed of everything that hardware leaves open: a run is repeated exactly by its seed.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// A safetensors file with <layer>.x [M, K] and <layer>.weight [N, K] in BF16.
    #[arg(long)]
    file: Option<PathBuf>,
    /// Draws what the CTAs' engines did into this SVG file; of one run only.
    #[arg(long)]
    timeline: Option<PathBuf>,
}

/// Why there is no timeline.
#[derive(Debug, Error)]
enum TimelineError {
    #[error("--timeline draws one run, and these are {0}: choose one of --ranks, one --mode and one --layer")]
    SeveralRuns(usize),
    #[error("{path}: {source}")]
    File { path: String, source: std::io::Error },
}

#[derive(Clone, Copy, ValueEnum)]
enum ModeChoice {
    AllReduce,
    ReduceScatter,
    Both,
}

impl ModeChoice {
    fn modes(self) -> &'static [Mode] {
        match self {
            Self::AllReduce => &[Mode::AllReduce],
            Self::ReduceScatter => &[Mode::ReduceScatter],
            Self::Both => &[Mode::AllReduce, Mode::ReduceScatter],
        }
    }
}

/// Exit code for a result that is not right.
const WRONG: u8 = 1;
/// Exit code for input that cannot be used.
const BAD_INPUT: u8 = 2;

fn main() -> ExitCode {
    let options = Options::parse();
    let jobs = match read_jobs(&options) {
        Ok(jobs) => jobs,
        Err(error) => return complain(&error, BAD_INPUT),
    };
    let runs = jobs.len() * options.mode.modes().len();
    if options.timeline.is_some() && runs != 1 {
        return complain(&TimelineError::SeveralRuns(runs), BAD_INPUT);
    }
    println!("simulated: the kernels' PTX on a simulated NVLink node, seed {}", options.seed);
    table::print_heading();
    let progress = progress_bar(runs);
    let mut wrong = 0;
    for job in &jobs {
        match run_job(job, &options, &progress) {
            Ok(results) => wrong += results,
            Err(error) => {
                progress.finish_and_clear();
                return complain(error.as_ref(), WRONG);
            }
        }
    }
    progress.finish_and_clear();
    if wrong > 0 {
        println!("{wrong} simulated results are wrong");
        return ExitCode::from(WRONG);
    }
    println!("every element of every rank is within its bound (simulated)");
    ExitCode::SUCCESS
}

/// A layer on a number of ranks.
struct Job {
    layer: Arc<Layer>,
    ranks: u32,
    k_per_rank: usize,
}

/// Reads the layers and checks that each rank count can share them.
fn read_jobs(options: &Options) -> Result<Vec<Job>, LayerError> {
    let names = match options.layer.as_str() {
        "all" => vec!["ffn_output", "attention_output"],
        name => vec![name],
    };
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/data/minilm_layer0.safetensors");
    let path = options.file.clone().unwrap_or_else(|| PathBuf::from(default));
    let mut jobs = vec![];
    for name in names {
        let layer = Arc::new(Layer::read(&path, name)?);
        for &ranks in &options.ranks {
            let k_per_rank = layer.k_per_rank(ranks)?;
            jobs.push(Job { layer: Arc::clone(&layer), ranks, k_per_rank });
        }
    }
    Ok(jobs)
}

/// Runs a layer by each collective and returns how many results are wrong.
fn run_job(job: &Job, options: &Options, progress: &ProgressBar) -> Result<u32, Box<dyn Error>> {
    let layer = &*job.layer;
    let shape = [layer.m, layer.n, layer.k];
    let reference = Reference::row_parallel(&layer.x, &layer.weight, shape, job.ranks as usize)?;
    let mut wrong = 0;
    if let Some(text) = disagreement(layer, &reference) {
        progress.suspend(|| println!("  WRONG: {text}"));
        wrong += 1;
    }
    for &mode in options.mode.modes() {
        let records = options.timeline.is_some();
        let case = Case { mode, ranks: job.ranks, k_per_rank: job.k_per_rank, seed: options.seed, records };
        progress.set_message(format!("{} {} on {} ranks", layer.name, table::mode_name(mode), job.ranks));
        let outcome = run::run(layer, &reference, case)?;
        wrong += u32::from(!outcome.comparison.is_within_bound());
        progress.suspend(|| table::print_line(layer, case, &outcome));
        if let Some(path) = &options.timeline {
            let mode = table::mode_name(mode);
            let caption = format!("{} {mode} on {} ranks, seed {}", layer.name, job.ranks, options.seed);
            let file = |source| TimelineError::File { path: path.display().to_string(), source };
            std::fs::write(path, outcome.timeline.svg(&caption)).map_err(file)?;
        }
        progress.inc(1);
    }
    Ok(wrong)
}

/// Compares the reference with the result that the file has from elsewhere, which is rounded to FP32.
fn disagreement(layer: &Layer, reference: &Reference) -> Option<String> {
    let y = layer.y.as_ref()?;
    let differs = |&(at, &value): &(usize, &f32)| {
        let exact = reference.value(at / layer.n, at % layer.n);
        (exact - f64::from(value)).abs() > exact.abs() * f64::from(f32::EPSILON)
    };
    let (at, value) = y.iter().enumerate().find(differs)?;
    let (row, column) = (at / layer.n, at % layer.n);
    let exact = reference.value(row, column);
    Some(format!("{}.y_f32 has {value} at [{row}, {column}], and the FP64 product is {exact}", layer.name))
}

fn complain(error: &dyn Error, code: u8) -> ExitCode {
    eprintln!("error: {error}");
    ExitCode::from(code)
}

/// A progress bar on a terminal, nothing elsewhere.
fn progress_bar(cases: usize) -> ProgressBar {
    if !stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(cases as u64);
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} {elapsed} {msg}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

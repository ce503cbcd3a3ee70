//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum, value_parser};
use plan::choice::Machine;

use crate::error::CliError;
use crate::specification::{Argument, Buffer, Dump, TraceTarget};

/// Most GPUs that a multicast object may have in the simulator.
const MAX_GPUS: i64 = 64;
/// Most SMs of a GPU, so that a slip of the finger does not fill the host's memory.
const MAX_SMS: i64 = 1024;

/// Runs PTX on a simulated node of GPUs, and shows which kernel a problem is given.
#[derive(Debug, Parser)]
#[command(name = "gemm-rs-ar", version)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run one kernel of a PTX file, on every GPU of the node at once.
    Simulate(Box<Simulate>),
    /// Show what the cost model expects of each kernel that could run a problem, and which one it chooses. Nothing runs.
    Plan(Plan),
}

/// Arguments of `plan`.
#[derive(Debug, Args)]
pub struct Plan {
    /// Rows of X and Y.
    #[arg(long, value_name = "ROWS")]
    pub m: u32,
    /// Columns of Y.
    #[arg(long, value_name = "COLUMNS")]
    pub n: u32,
    /// Each rank's part of the inner dimension.
    #[arg(long, value_name = "ELEMENTS")]
    pub k: u32,
    /// Ranks.
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub ranks: u32,
    /// Collective.
    #[arg(long, value_enum, default_value_t = Mode::ReduceScatter)]
    pub mode: Mode,
    /// Operand type.
    #[arg(long, value_enum, default_value_t = Dtype::Bf16)]
    pub dtype: Dtype,
    /// SMs of each GPU.
    #[arg(long, value_name = "N", default_value_t = Machine::B200.sm_count)]
    pub sms: u32,
    /// SMs of each GPU to leave free.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub sm_margin: u32,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// Collective of `plan`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// Each rank gets its rows.
    #[value(alias = "rs")]
    ReduceScatter,
    /// Every rank gets all rows.
    #[value(alias = "ar")]
    AllReduce,
}

impl From<Mode> for plan::arguments::Mode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::ReduceScatter => Self::ReduceScatter,
            Mode::AllReduce => Self::AllReduce,
        }
    }
}

/// Operand type of `plan`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Dtype {
    /// bfloat16.
    Bf16,
    /// E4M3 with a scale for every 32 elements.
    Mxfp8,
}

impl From<Dtype> for plan::kernels::OperandType {
    fn from(dtype: Dtype) -> Self {
        match dtype {
            Dtype::Bf16 => Self::Bf16,
            Dtype::Mxfp8 => Self::Mxfp8,
        }
    }
}

/// Arguments of `simulate`.
#[derive(Debug, Args)]
#[command(after_help = SPECIFICATIONS)]
pub struct Simulate {
    /// The PTX text.
    #[arg(value_name = "FILE.ptx")]
    pub file: PathBuf,
    /// The kernel's name.
    #[arg(long, value_name = "NAME")]
    pub entry: String,
    /// CTAs.
    #[arg(long, value_name = "X[,Y,Z]", value_parser = grid, default_value = "1")]
    pub grid: [u32; 3],
    /// Threads per CTA.
    #[arg(long, value_name = "X[,Y,Z]", value_parser = block)]
    pub block: [u32; 3],
    /// CTAs per cluster.
    #[arg(long, value_name = "X[,Y,Z]", value_parser = cluster, default_value = "1")]
    pub cluster: [u32; 3],
    /// Dynamic shared memory per CTA.
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    pub shared: u32,
    /// GPUs; each runs the kernel.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u32).range(1..=MAX_GPUS))]
    pub gpus: u32,
    /// SMs per GPU.
    #[arg(long, value_name = "N", default_value_t = 148, value_parser = value_parser!(u32).range(1..=MAX_SMS))]
    pub sms: u32,
    /// Decides everything that hardware leaves open.
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub seed: u64,
    /// A buffer that is not itself a parameter, for others to name. These are numbered first.
    #[arg(long = "buffer", value_name = "SPEC")]
    pub buffers: Vec<Buffer>,
    /// A parameter, in order. See below.
    #[arg(long = "arg", value_name = "SPEC", allow_hyphen_values = true)]
    pub arguments: Vec<Argument>,
    /// Elements to print of each buffer.
    #[arg(long, value_name = "COUNT", default_value_t = 16)]
    pub head: usize,
    /// Write buffer K of GPU 0, or of GPU G, to a file.
    #[arg(long = "dump", value_name = "K[@G]=PATH")]
    pub dumps: Vec<Dump>,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
    /// Follow a warp (`warp=GPU:CTA:WARP`) or an mbarrier (`barrier=GPU:CTA:ADDRESS`, or `all`). CTA is a number, or
    /// `X,Y,Z`; ADDRESS is the offset in the CTA's shared memory.
    #[arg(long = "trace", value_name = "WHAT")]
    pub traces: Vec<TraceTarget>,
    /// Where the trace goes instead of standard error.
    #[arg(long, value_name = "PATH", requires = "traces")]
    pub trace_file: Option<PathBuf>,
    /// Draw what each CTA's engines did.
    #[arg(long, value_name = "OUT.svg")]
    pub timeline: Option<PathBuf>,
}

const SPECIFICATIONS: &str = "\
Parameters (--arg), in the kernel's order:
  TYPE:VALUE                u8, i8, u16, i16, u32, i32, u64, i64, f16, bf16, f32 or f64
  buffer:TYPE:COUNT[=FILL]  address of a new buffer; FILL is zero (the default), one, iota, random[:SEED] or uninit
  file:PATH:TYPE            address of a new buffer with a file's bytes
  pointer:K[+BYTES]         address in buffer K
  peer:G:K[+BYTES]          address in GPU G's buffer K
  multicast:K[+BYTES]       multicast address of buffer K over all GPUs
  rank, gpus                the GPU's number and how many there are, as u32
  tensormap:K:dims=D[xD..]:box=B[xB..][:swizzle=none|32|64|128][:strides=BYTES[xBYTES..]][:type=TYPE]
                            tensor map over buffer K, innermost dimension first; dense unless strides are given
  zeros:BYTES               bytes of zero
  struct:SPEC,SPEC,..       several of the above, each scalar and address aligned to its size
Buffers are numbered from 0: first those of --buffer, then those of --arg. Each GPU has its own, with the same contents.";

fn grid(text: &str) -> Result<[u32; 3], CliError> {
    // The limits of CUDA's launches.
    dimensions(text, [i32::MAX as u32, 65535, 65535])
}

fn block(text: &str) -> Result<[u32; 3], CliError> {
    dimensions(text, [1024, 1024, 64])
}

fn cluster(text: &str) -> Result<[u32; 3], CliError> {
    dimensions(text, [16; 3])
}

fn dimensions(text: &str, limits: [u32; 3]) -> Result<[u32; 3], CliError> {
    let wrong = || CliError::Dimensions { given: text.to_owned(), limits };
    let mut dimensions = [1; 3];
    let parts: Vec<&str> = text.split(',').collect();
    if parts.len() > 3 {
        return Err(wrong());
    }
    for ((slot, part), limit) in dimensions.iter_mut().zip(parts).zip(limits) {
        *slot = part.trim().parse().ok().filter(|value| (1..=limit).contains(value)).ok_or_else(wrong)?;
    }
    Ok(dimensions)
}

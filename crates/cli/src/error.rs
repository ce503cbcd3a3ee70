//! Why there was nothing to run.

use std::path::PathBuf;

use simulator::{LaunchError, MemoryError};

/// Why there was nothing to run. A fault of the kernel is not among them: it is a result.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CliError {
    /// Grid, block or cluster.
    #[error(
        "given `{given}`, wanted one to three numbers from 1 to {}, {} and {}, like 4 or 4,2,1",
        limits[0], limits[1], limits[2]
    )]
    Dimensions {
        /// Given.
        given: String,
        /// Most per axis.
        limits: [u32; 3],
    },
    /// An element type.
    #[error("given type `{given}`, wanted one of {wanted}")]
    Type {
        /// Given.
        given: String,
        /// What there is.
        wanted: &'static str,
    },
    /// A value of a type.
    #[error("given `{given}`, wanted a value of type {wanted}")]
    Value {
        /// Given.
        given: String,
        /// Its type.
        wanted: &'static str,
    },
    /// Something else of a specification.
    #[error("given `{given}`, wanted {wanted}")]
    Form {
        /// Given.
        given: String,
        /// What would do.
        wanted: &'static str,
    },
    /// A buffer that does not exist.
    #[error("given buffer {given}, wanted one of the {available} buffers that --buffer and --arg make, counted from 0")]
    NoSuchBuffer {
        /// Given.
        given: usize,
        /// How many there are.
        available: usize,
    },
    /// A GPU that does not exist.
    #[error("given GPU {given}, wanted one of the {gpus} of --gpus, counted from 0")]
    NoSuchGpu {
        /// Given.
        given: u32,
        /// How many there are.
        gpus: u32,
    },
    /// An offset past a buffer.
    #[error("given offset {given} in buffer {buffer}, wanted at most its {bytes} bytes")]
    OffsetOutside {
        /// Given.
        given: u64,
        /// Which.
        buffer: usize,
        /// Its size.
        bytes: u64,
    },
    /// A buffer that does not fit.
    #[error("given a buffer of {given} bytes, wanted 1 to {limit}, what a simulated GPU has")]
    BufferSize {
        /// Given.
        given: u128,
        /// Most.
        limit: u64,
    },
    /// A file that is no whole number of elements.
    #[error("{}: given {given} bytes, wanted a multiple of {element}", path.display())]
    FileSize {
        /// Which.
        path: PathBuf,
        /// Given.
        given: u64,
        /// Bytes of an element.
        element: u32,
    },
    /// A tensor map.
    #[error("tensor map of buffer {buffer}: {problem}")]
    TensorMap {
        /// Which.
        buffer: usize,
        /// What is wrong.
        problem: String,
    },
    /// A trace of something that will not run.
    #[error("trace: given {what} {given}, wanted less than {limit}")]
    TraceOutside {
        /// `GPU`, `CTA` or `warp`.
        what: &'static str,
        /// Given.
        given: String,
        /// How many there are.
        limit: String,
    },
    /// A file.
    #[error("{}: {problem}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the system says.
        problem: String,
    },
    /// A dump of what was never written.
    #[error("buffer {buffer} of GPU {gpu} is not dumped: {missing} of its bytes were never written")]
    DumpUninitialised {
        /// Which.
        buffer: usize,
        /// GPU.
        gpu: u32,
        /// How many.
        missing: usize,
    },
    /// PTX that does not load.
    #[error("{}: {diagnostic}", path.display())]
    Ptx {
        /// Which.
        path: PathBuf,
        /// With the line quoted.
        diagnostic: String,
    },
    /// A problem that no kernel runs.
    #[error(transparent)]
    Unsupported(#[from] plan::choice::Unsupported),
    /// Memory.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// The launch.
    #[error(transparent)]
    Launch(#[from] LaunchError),
}

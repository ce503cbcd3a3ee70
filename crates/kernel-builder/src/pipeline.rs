//! rustc to IR, edits, `opt`, `llc`.

use std::path::{Path, PathBuf};

use plan::entries::{Entry, entries};
use plan::kernels::Architecture;

use crate::ir;
use crate::process::{self, ProcessError};
use crate::toolchain::Toolchain;

/// The kernels could not be compiled.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// A program of the toolchain failed.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// IR and kernel table disagree.
    #[error(transparent)]
    Ir(#[from] ir::IrError),
    /// A file could not be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
}

/// File name of an architecture's PTX.
pub fn ptx_file_name(architecture: Architecture) -> String {
    format!("{}.ptx", architecture.target())
}

/// Compiles the device crate for one architecture; the PTX text. Intermediate files go to `work_directory`.
pub fn compile(
    toolchain: &Toolchain,
    device_crate: &Path,
    work_directory: &Path,
    architecture: Architecture,
) -> Result<String, BuildError> {
    let target = architecture.target();
    let target_directory = work_directory.join("target");
    let deps = target_directory.join("nvptx64-nvidia-cuda/release/deps");
    process::run(
        process::command(&toolchain.cargo)
            .current_dir(device_crate)
            // build-std and the ptx-kernel ABI are unstable; the distribution's rustc is a stable one.
            .env("RUSTC_BOOTSTRAP", "1")
            .env("RUSTC", &toolchain.rustc)
            // No linker: the IR is what is taken. JumpThreading duplicates barriers into both arms of a branch.
            .env("RUSTFLAGS", format!("-C target-cpu={target} -C linker=true -Z mir-enable-passes=-JumpThreading"))
            .args(["rustc", "--release", "--locked", "-Z", "build-std=core", "--target", "nvptx64-nvidia-cuda"])
            .arg("--target-dir")
            .arg(&target_directory)
            .args(["--", "-C", "no-prepopulate-passes", "--emit=llvm-ir"]),
    )?;
    let kernels: Vec<Entry> = entries().filter(|entry| entry.architecture == architecture).collect();
    let raw = deps.join("gpu_kernels.ll");
    let edited = work_directory.join(format!("{target}.edited.ll"));
    let optimised = work_directory.join(format!("{target}.optimised.ll"));
    write(&edited, &ir::edit(&read(&raw)?, &kernels)?)?;
    process::run(process::command(&toolchain.opt).args(["-O3", "-S", "-o"]).arg(&optimised).arg(&edited))?;
    let (major, minor) = architecture.ptx_version();
    let ptx = process::run(
        process::command(&toolchain.llc)
            // Comments would carry mangled names, whose hashes depend on where the sources lie.
            .args([
                "-O3",
                "-asm-verbose=0",
                &format!("-mcpu={target}"),
                &format!("-mattr=+ptx{major}{minor}"),
                "-o",
                "-",
            ])
            .arg(&optimised),
    )?;
    Ok(ptx)
}

fn read(path: &Path) -> Result<String, BuildError> {
    std::fs::read_to_string(path).map_err(|error| BuildError::File { path: path.to_owned(), error })
}

fn write(path: &Path, text: &str) -> Result<(), BuildError> {
    std::fs::write(path, text).map_err(|error| BuildError::File { path: path.to_owned(), error })
}

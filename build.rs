//! Embeds the kernels' PTX: compiled from source where a device toolchain is found, otherwise the kept copy.
//!
//! `GEMM_RS_AR_KERNELS` decides otherwise: `source` makes a missing toolchain an error, `prebuilt` does not look for
//! one.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use kernel_builder::{Toolchain, compile, ptx_file_name};
use plan::kernels::Architecture;

const CHOICE: &str = "GEMM_RS_AR_KERNELS";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from).ok_or(format!("{name} is not set"));
    let root = variable("CARGO_MANIFEST_DIR")?;
    let out = variable("OUT_DIR")?;
    println!("cargo::rerun-if-env-changed={CHOICE}");
    println!("cargo::rerun-if-env-changed=PATH");
    for source in ["gpu-kernels/src", "gpu-kernels/Cargo.toml", "gpu-kernels/Cargo.lock", "gpu-kernels/prebuilt"] {
        println!("cargo::rerun-if-changed={source}");
    }
    let directory = match std::env::var(CHOICE).as_deref() {
        Err(_) | Ok("auto" | "") => match Toolchain::find() {
            Ok(toolchain) => from_source(&root, &out, &toolchain)?,
            Err(error) => {
                println!("cargo::warning=using the kept PTX in gpu-kernels/prebuilt: {error}");
                root.join("gpu-kernels/prebuilt")
            }
        },
        Ok("source") => from_source(&root, &out, &Toolchain::find().map_err(|error| error.to_string())?)?,
        Ok("prebuilt") => root.join("gpu-kernels/prebuilt"),
        Ok(other) => return Err(format!("{CHOICE} is `{other}`: wanted `auto`, `source` or `prebuilt`")),
    };
    println!("cargo::rustc-env=GEMM_RS_AR_PTX_DIR={}", directory.display());
    Ok(())
}

fn from_source(root: &Path, out: &Path, toolchain: &Toolchain) -> Result<PathBuf, String> {
    let file_error = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    let directory = out.join("ptx");
    std::fs::create_dir_all(&directory).map_err(|error| file_error(&directory, error))?;
    for architecture in Architecture::ALL {
        let ptx = compile(toolchain, &root.join("gpu-kernels"), out, architecture).map_err(|error| {
            format!(
                "compiling the kernels with {} failed: {error}\nset {CHOICE}=prebuilt to use the kept PTX",
                toolchain.description
            )
        })?;
        let path = directory.join(ptx_file_name(architecture));
        std::fs::write(&path, ptx).map_err(|error| file_error(&path, error))?;
    }
    Ok(directory)
}

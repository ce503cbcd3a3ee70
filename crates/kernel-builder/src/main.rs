//! `kernel-builder build` writes the PTX into `gpu-kernels/prebuilt`; `kernel-builder check` fails if what is kept
//! there differs from what the sources give.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use kernel_builder::{Toolchain, compile, ptx_file_name};
use plan::kernels::Architecture;

fn main() -> ExitCode {
    let mode = std::env::args().nth(1);
    let result = match mode.as_deref() {
        Some("build") => each_architecture(|path, ptx| {
            std::fs::write(path, ptx).map_err(|error| format!("{}: {error}", path.display()))?;
            println!("wrote {}", path.display());
            Ok(())
        }),
        Some("check") => each_architecture(|path, ptx| {
            let kept = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
            if kept != ptx {
                let line = kept.lines().zip(ptx.lines()).take_while(|(a, b)| a == b).count() + 1;
                return Err(format!(
                    "{} is stale: it differs from the compiled kernels at line {line}; run `cargo run -p \
                     gemm-rs-ar-kernel-builder -- build` and commit the result",
                    path.display()
                ));
            }
            println!("{} is up to date", path.display());
            Ok(())
        }),
        _ => Err("usage: kernel-builder build | check".to_owned()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

fn each_architecture(act: impl Fn(&Path, &str) -> Result<(), String>) -> Result<(), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let root = root.canonicalize().map_err(|error| format!("{}: {error}", root.display()))?;
    let device_crate = root.join("gpu-kernels");
    let work: PathBuf = root.join("target/device");
    std::fs::create_dir_all(&work).map_err(|error| format!("{}: {error}", work.display()))?;
    let toolchain = Toolchain::find().map_err(|error| error.to_string())?;
    println!("device toolchain: {}", toolchain.description);
    for architecture in Architecture::ALL {
        let ptx = compile(&toolchain, &device_crate, &work, architecture).map_err(|error| error.to_string())?;
        act(&device_crate.join("prebuilt").join(ptx_file_name(architecture)), &ptx)?;
    }
    Ok(())
}

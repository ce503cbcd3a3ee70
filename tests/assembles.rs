//! ptxas accepts every PTX file for every GPU of its family, without spills or stack. Assembled is all this shows.
//!
//! ptxas is not part of the build. It is taken from `PTXAS` or PATH; without it the test says so and passes, unless
//! `GEMM_RS_AR_REQUIRE_PTXAS` is set.

use std::path::{Path, PathBuf};
use std::process::Command;

use plan::kernels::Architecture;

fn ptxas() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("PTXAS") {
        return Some(path.into());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join("ptxas")).find(|file| file.is_file())
}

/// The real GPUs that load an architecture's PTX.
fn gpus(architecture: Architecture) -> &'static [&'static str] {
    match architecture {
        Architecture::Sm100 => &["sm_100a", "sm_103a"],
    }
}

#[test]
fn ptxas_accepts_every_kernel_without_spills_or_stack() {
    let Some(ptxas) = ptxas() else {
        assert!(
            std::env::var_os("GEMM_RS_AR_REQUIRE_PTXAS").is_none(),
            "GEMM_RS_AR_REQUIRE_PTXAS is set, but there is no ptxas in PTXAS or PATH"
        );
        eprintln!("skipped: no ptxas in PTXAS or PATH (the Python package nvidia-cuda-nvcc==13.0.88 has one)");
        return;
    };
    for architecture in Architecture::ALL {
        let ptx = Path::new(env!("GEMM_RS_AR_PTX_DIR")).join(format!("{}.ptx", architecture.target()));
        for gpu in gpus(architecture) {
            let cubin = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{gpu}.cubin"));
            let output = Command::new(&ptxas)
                .arg(format!("-arch={gpu}"))
                .arg("-v")
                .arg(&ptx)
                .arg("-o")
                .arg(&cubin)
                .output()
                .unwrap_or_else(|error| panic!("cannot run {}: {error}", ptxas.display()));
            let report = String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success(), "{gpu}: {report}");
            let resources: Vec<&str> = report.lines().filter(|line| line.contains("bytes stack frame")).collect();
            assert!(!resources.is_empty(), "{gpu}: no resource report: {report}");
            for line in resources {
                let clean = "0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads";
                assert_eq!(line.trim(), clean, "{gpu}");
            }
            assert!(!report.contains("warning") && !report.contains("C75"), "{gpu}: {report}");
        }
    }
}

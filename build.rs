//! Says where the kernels' PTX is.

use std::env;
use std::path::Path;

fn main() {
    let root = env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    let directory = Path::new(&root).join("gpu-kernels").join("prebuilt");
    println!("cargo::rustc-env=GEMM_RS_AR_PTX_DIR={}", directory.display());
    println!("cargo::rerun-if-changed={}", directory.display());
}

//! Finding a device toolchain: a rustc that has the source of `core`, and `opt` and `llc` of the same LLVM.

use std::path::{Path, PathBuf};

use crate::process::query;

/// Programs that turn the device crate into PTX.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toolchain {
    /// The compiler.
    pub rustc: PathBuf,
    /// Its cargo.
    pub cargo: PathBuf,
    /// LLVM's optimiser.
    pub opt: PathBuf,
    /// LLVM's code generator.
    pub llc: PathBuf,
    /// What was found, for a person.
    pub description: String,
}

/// No usable toolchain.
#[derive(Debug, thiserror::Error)]
#[error(
    "no device toolchain: wanted a rustc with the source of core, and opt and llc of the same LLVM. Install either \
     `rustup toolchain install nightly --component rust-src --component llvm-tools`, or the Debian packages \
     `rustc-web cargo-web rust-web-src llvm-22`. Looked at: {}", tried.join("; ")
)]
pub struct ToolchainError {
    /// Each candidate and what it lacks.
    pub tried: Vec<String>,
}

impl Toolchain {
    /// Looks at rustup's toolchains, nightlies first, then at the distribution's rustc.
    pub fn find() -> Result<Self, ToolchainError> {
        let mut tried = Vec::new();
        for candidate in rustup_candidates().into_iter().chain(distribution_candidate()) {
            match candidate.complete() {
                Ok(toolchain) => return Ok(toolchain),
                Err(lack) => tried.push(lack),
            }
        }
        if tried.is_empty() {
            tried.push("neither rustup nor a rustc beside it was found".into());
        }
        Err(ToolchainError { tried })
    }
}

/// A rustc that may or may not have the rest.
struct Candidate {
    name: String,
    rustc: PathBuf,
    cargo: PathBuf,
    /// Where to look for LLVM's tools: rustup's component directory, or PATH with the version in the name.
    rustup_sysroot: Option<PathBuf>,
}

impl Candidate {
    fn complete(self) -> Result<Toolchain, String> {
        let lacks = |what: &str| format!("{} lacks {what}", self.name);
        let verbose = query(&self.rustc, ["-vV"]).ok_or_else(|| lacks("a working rustc"))?;
        let field = |key: &str| verbose.lines().find_map(|line| line.strip_prefix(key)).map(|v| v.trim().to_owned());
        let release = field("release:").ok_or_else(|| lacks("a release number"))?;
        let host = field("host:").ok_or_else(|| lacks("a host triple"))?;
        let llvm = field("LLVM version:").ok_or_else(|| lacks("an LLVM version"))?;
        let sysroot = query(&self.rustc, ["--print", "sysroot"]).ok_or_else(|| lacks("a sysroot"))?;
        if !Path::new(sysroot.trim()).join("lib/rustlib/src/rust/library/core/Cargo.toml").is_file() {
            return Err(lacks("the source of core (rust-src)"));
        }
        if !self.cargo.is_file() {
            return Err(lacks("cargo"));
        }
        let major = llvm.split('.').next().unwrap_or(&llvm).to_owned();
        let tool = |name: &str| match &self.rustup_sysroot {
            Some(sysroot) => {
                Some(sysroot.join("lib/rustlib").join(&host).join("bin").join(name)).filter(|p| p.is_file())
            }
            None => find_in_path(&format!("{name}-{major}")),
        };
        let opt = tool("opt").ok_or_else(|| lacks(&format!("opt of LLVM {major} (llvm-tools, or llvm-{major})")))?;
        let llc = tool("llc").ok_or_else(|| lacks(&format!("llc of LLVM {major} (llvm-tools, or llvm-{major})")))?;
        let description = format!("{}, rustc {release}, LLVM {llvm}", self.name);
        Ok(Toolchain { rustc: self.rustc, cargo: self.cargo, opt, llc, description })
    }
}

fn rustup_candidates() -> Vec<Candidate> {
    let Some(rustup) = find_in_path("rustup") else { return Vec::new() };
    let Some(list) = query(&rustup, ["toolchain", "list"]) else { return Vec::new() };
    let mut names: Vec<&str> = list.lines().filter_map(|line| line.split_whitespace().next()).collect();
    names.sort_by_key(|name| !name.starts_with("nightly"));
    names
        .into_iter()
        .filter_map(|name| {
            let rustc = PathBuf::from(query(&rustup, ["which", "--toolchain", name, "rustc"])?.trim());
            let bin = rustc.parent()?.to_owned();
            Some(Candidate {
                name: format!("rustup toolchain {name}"),
                cargo: bin.join("cargo"),
                rustup_sysroot: Some(bin.parent()?.to_owned()),
                rustc,
            })
        })
        .collect()
}

/// The distribution's rustc lives beside rustup's proxies, which come first in PATH, so it is asked for by place.
fn distribution_candidate() -> Option<Candidate> {
    let bin = Path::new("/usr/bin");
    let rustc = bin.join("rustc");
    rustc.is_file().then(|| Candidate {
        name: "the distribution's rustc".into(),
        rustc,
        cargo: bin.join("cargo"),
        rustup_sysroot: None,
    })
}

fn find_in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_compiler_is_named() {
        let candidate = Candidate {
            name: "rustup toolchain nightly".into(),
            rustc: "/nonexistent/rustc".into(),
            cargo: "/nonexistent/cargo".into(),
            rustup_sysroot: None,
        };
        assert_eq!(candidate.complete().unwrap_err(), "rustup toolchain nightly lacks a working rustc");
    }
}

//! Running the toolchain's programs.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program did not do its work.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// It could not be started.
    #[error("cannot run {}: {error}", program.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// It ended with an error.
    #[error("{} failed ({status}):\n{stderr}", program.display())]
    Failed {
        /// The program.
        program: PathBuf,
        /// Its status.
        status: std::process::ExitStatus,
        /// What it wrote to standard error.
        stderr: String,
    },
}

/// A command that does not inherit what an outer cargo put into the environment for its own rustc: flags, wrappers and
/// the pinned host toolchain would all reach the device compiler.
pub fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        let inherited_from_cargo = text.starts_with("CARGO")
            && !["CARGO_HOME", "CARGO_NET_OFFLINE"].contains(&&*text)
            && !text.starts_with("CARGO_REGISTRIES_")
            && !text.starts_with("CARGO_HTTP_");
        if inherited_from_cargo
            || text.starts_with("RUSTC")
            || text.starts_with("RUSTFLAGS")
            || text == "RUSTUP_TOOLCHAIN"
        {
            command.env_remove(&name);
        }
    }
    command
}

/// Runs a command to its end; its standard output.
pub fn run(command: &mut Command) -> Result<String, ProcessError> {
    let program = PathBuf::from(command.get_program());
    let output = command.output().map_err(|error| ProcessError::Start { program: program.clone(), error })?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(ProcessError::Failed { program, status: output.status, stderr });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs a program for one line of output; `None` if it is missing or fails.
pub fn query<A: AsRef<OsStr>>(program: &Path, arguments: impl IntoIterator<Item = A>) -> Option<String> {
    run(command(program).args(arguments)).ok()
}

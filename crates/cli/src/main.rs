//! `gemm-rs-ar`: runs PTX on the simulator from the command line, and shows which kernel a problem is given.
//!
//! Exit status: 0 when the run came to its end, 1 when it faulted or deadlocked, 2 when there was nothing to run. `plan`
//! runs nothing: 0 when it chose, 2 when no kernel runs the problem.

mod arguments;
mod buffers;
mod element;
mod error;
mod plan_command;
mod report;
mod simulate;
mod specification;
mod statements;
mod trace;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

use arguments::{Arguments, Command};
use simulate::Outcome;

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Simulate(arguments) => simulate::simulate(&arguments),
        Command::Plan(arguments) => {
            plan_command::plan(&arguments).map(|stdout| Outcome { stdout, stderr: String::new(), faulted: false })
        }
    };
    match outcome {
        Ok(outcome) => {
            // A reader that has closed the pipe has what it wanted.
            let _ = std::io::stdout().write_all(outcome.stdout.as_bytes());
            let _ = std::io::stderr().write_all(outcome.stderr.as_bytes());
            ExitCode::from(u8::from(outcome.faulted))
        }
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "error: {error}");
            ExitCode::from(2)
        }
    }
}

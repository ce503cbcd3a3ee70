//! Loads PTX files and says what the simulator does not accept: `cargo run --example check_ptx FILE…`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut refused = false;
    for file in std::env::args().skip(1) {
        let text = match std::fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) => {
                eprintln!("{file}: {error}");
                refused = true;
                continue;
            }
        };
        match simulator::ptx::load(&text) {
            Ok(module) => {
                let kernels = module.kernels.iter().map(|kernel| {
                    let (count, slots) = (kernel.instructions.len(), kernel.register_count);
                    format!("{} ({count} instructions, {slots} register slots)", kernel.name)
                });
                println!("{file}: {}", kernels.collect::<Vec<_>>().join(", "));
            }
            Err(error) => {
                eprintln!("{file}: {}", error.diagnostic());
                refused = true;
            }
        }
    }
    if refused { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

//! Loads PTX files as the simulator would, and says what is in them or what is wrong.

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    for path in std::env::args().skip(1) {
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) => {
                eprintln!("{path}: {error}");
                code = ExitCode::FAILURE;
                continue;
            }
        };
        match simulator::ptx::load(&text) {
            Ok(module) => {
                for kernel in &module.kernels {
                    println!(
                        "{path}: {}: {} instructions, {} registers, {} predicates, {} bytes of static shared memory",
                        kernel.name,
                        kernel.instructions.len(),
                        kernel.register_count,
                        kernel.predicate_count,
                        kernel.static_shared_bytes,
                    );
                }
            }
            Err(error) => {
                eprint!("{path}: {}", error.diagnostic());
                code = ExitCode::FAILURE;
            }
        }
    }
    code
}

//! The program `lastmile`: [`lastmile_cli::main`] with the arguments of the process.

use std::process::ExitCode;

fn main() -> ExitCode {
    lastmile_cli::main().into()
}

//! Prints the reference of the scenario file: `cargo run -p lastmile-scenario --example reference >
//! docs/reference/scenario.md`.
#![allow(clippy::print_stdout, reason = "printing is what it is for")]

fn main() {
    print!("{}", lastmile_scenario::reference::render());
}

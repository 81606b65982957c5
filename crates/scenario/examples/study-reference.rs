//! Prints the reference of the study file: `cargo run -p lastmile-scenario --example study-reference
//! > docs/reference/study.md`.
#![allow(clippy::print_stdout, reason = "printing is what it is for")]

fn main() {
    print!("{}", lastmile_scenario::study::render_reference());
}

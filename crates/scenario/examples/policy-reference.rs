//! Prints the reference of the policy file: `cargo run -p lastmile-scenario --example policy-reference
//! > docs/reference/policy.md`.
#![allow(clippy::print_stdout, reason = "printing is what it is for")]

fn main() {
    print!("{}", lastmile_scenario::policy::render_reference());
}

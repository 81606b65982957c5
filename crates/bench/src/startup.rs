//! Start-up time: a whole `lastmile` process that prints one table.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant as Clock;

use crate::measurement::Measurement;

const NAME: &str = "start-up: lastmile overhead --size 40";

/// The one measurement, if the program has been built next to this one.
pub(crate) fn names() -> Vec<String> {
    program().map(|_| NAME.to_owned()).into_iter().collect()
}

pub(crate) fn run(name: &str) -> Option<Measurement> {
    if name != NAME {
        return None;
    }
    let program = program()?;
    let clock = Clock::now();
    let status = Command::new(program).args(["overhead", "--size", "40"]).stdout(Stdio::null()).status().ok()?;
    let wall_s = clock.elapsed().as_secs_f64();
    status.success().then(|| Measurement::of_events(name, wall_s, 0))
}

/// The `lastmile` program next to this one, if it is built.
pub(crate) fn program() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?.with_file_name("lastmile");
    program.exists().then_some(program)
}

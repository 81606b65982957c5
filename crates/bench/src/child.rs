//! All measurements by name, each in a separate process.

use std::process::Command;

use crate::measurement::Measurement;
use crate::{atm, captures, cells, datapath, live, machine_baseline, queues, runs, simulate, startup};

/// All measurements, in the order of the table.
pub(crate) fn names() -> Vec<String> {
    let names =
        machine_baseline::names().into_iter().chain(simulate::names()).chain(runs::names()).chain(cells::names());
    names
        .chain(startup::names())
        .chain(queues::names())
        .chain(datapath::names())
        .chain(atm::names())
        .chain(captures::names())
        .chain(live::names())
        .collect()
}

/// Runs the measurement of this name in this process; `brief` for counting its instructions.
pub(crate) fn run(name: &str, brief: bool) -> Option<Measurement> {
    // Selection by the first word avoids building other names, which would count among the
    // instructions of whole simulations.
    match name.split_once(": ") {
        Some(("queue", _)) => queues::run(name, brief),
        Some(("datapath", _)) => datapath::run(name, brief),
        Some(("atm", _)) => atm::run(name, brief),
        Some(("live", _)) => live::run(name),
        Some((runs::PREFIX, _)) => runs::run(name),
        Some((captures::PREFIX, _)) => captures::run(name),
        _ => simulate::run(name)
            .or_else(|| machine_baseline::run(name))
            .or_else(|| cells::run(name))
            .or_else(|| startup::run(name)),
    }
}

/// Runs a measurement `repeat` times, each in a separate process, and returns the fastest.
pub(crate) fn best_of(name: &str, repeat: u32) -> Result<Measurement, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut best: Option<Measurement> = None;
    for _ in 0..repeat.max(1) {
        let output = Command::new(&program).args(["--child", name]).output().map_err(|error| error.to_string())?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        let row: Measurement = serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
        if best.as_ref().is_none_or(|best| row.wall_s < best.wall_s) {
            best = Some(row);
        }
    }
    best.ok_or_else(|| "nothing ran".to_owned())
}

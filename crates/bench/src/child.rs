//! One measurement in a separate process.

use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::costs::Cost;
use crate::{atm, captures, cells, datapath, live, queues, runs, simulate, startup, yardstick};

/// The result of one run of one measurement.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Measurement {
    pub(crate) name: String,
    pub(crate) wall_s: f64,
    pub(crate) events: u64,
    pub(crate) hops: u64,
    pub(crate) data_packets: u64,
    pub(crate) peak_bytes: u64,
    /// Resident memory a flow before its first packet: endpoints, application, pending events.
    pub(crate) state_bytes_per_flow: Option<f64>,
    /// Peak resident memory a flow, including queued and in-flight packets and the state of
    /// recoveries.
    pub(crate) bytes_per_flow: Option<f64>,
    /// Instructions of the whole process.
    pub(crate) instructions: Option<u64>,
    /// The cost of a packet in a discipline, for a measurement of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) queue: Option<Cost>,
    /// The cost of a packet from port to port, for a measurement of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) datapath: Option<Cost>,
    /// The cost of a cell at a hop of ATM, for a measurement of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) atm: Option<atm::CellCost>,
    /// The cost of a capture, for a program that reads one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) capture: Option<captures::Cost>,
    /// Rows of a separate table, for a measurement with real packets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) live: Vec<live::Row>,
}

impl Measurement {
    pub(crate) fn of_events(name: &str, wall_s: f64, events: u64) -> Self {
        Self {
            name: name.to_owned(),
            wall_s,
            events,
            hops: 0,
            data_packets: 0,
            peak_bytes: peak_bytes(),
            state_bytes_per_flow: None,
            bytes_per_flow: None,
            instructions: None,
            queue: None,
            datapath: None,
            atm: None,
            capture: None,
            live: Vec::new(),
        }
    }

    /// True for a result in a separate table.
    pub(crate) fn has_a_table(&self) -> bool {
        self.queue.is_some()
            || self.datapath.is_some()
            || self.atm.is_some()
            || self.capture.is_some()
            || !self.live.is_empty()
    }
}

/// All measurements, in the order of the table.
pub(crate) fn names() -> Vec<String> {
    let names = yardstick::names().into_iter().chain(simulate::names()).chain(runs::names()).chain(cells::names());
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
            .or_else(|| yardstick::run(name))
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

/// Peak resident memory of this process (`VmHWM` of proc(5)); zero if the system does not report
/// it.
pub(crate) fn peak_bytes() -> u64 {
    memory("VmHWM:")
}

/// Current resident memory of this process (`VmRSS` of proc(5)).
pub(crate) fn resident_bytes() -> u64 {
    memory("VmRSS:")
}

fn memory(key: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(key)).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) * 1024
}

//! The result of one measurement, and the memory of the process that runs it.

use serde::{Deserialize, Serialize};

use crate::atm::CellCost;
use crate::costs::{Cost, OfCapture};
use crate::live::Row;

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
    pub(crate) atm: Option<CellCost>,
    /// The cost of a capture, for a program that reads one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) capture: Option<OfCapture>,
    /// Rows of a separate table, for a measurement with real packets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) live: Vec<Row>,
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

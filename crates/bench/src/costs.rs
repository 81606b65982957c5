//! The cost of a packet, with few flows and with many, and the table of costs.

use comfy_table::{LineStyle, Table, TableStyle};
use serde::{Deserialize, Serialize};

/// The cost of a packet.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Cost {
    /// The measured part of the datapath.
    pub(crate) what: String,
    /// The packets of the load.
    pub(crate) load: String,
    pub(crate) flows: u32,
    pub(crate) ns_per_packet: f64,
    pub(crate) instructions_per_packet: Option<f64>,
}

/// The cost of a capture to a program that reads it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct OfCapture {
    /// Time of the processor, in user and kernel mode.
    pub(crate) cpu_s: f64,
    /// Packets in the capture.
    pub(crate) packets: u64,
}

/// One row for each part and load, with a column per number of flows, and a legend below.
pub(crate) fn print_table<const N: usize>(costs: &[&Cost], [what, load]: [&str; 2], flows: [u32; N], legend: &str) {
    if costs.is_empty() {
        return;
    }
    let mut table = Table::new();
    table.load_style(TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─')));
    let columns = |what: &str| flows.map(|flows| format!("{what} at {flows}"));
    table.set_header([what.to_owned(), load.to_owned()].into_iter().chain(columns("ns")).chain(columns("instr")));
    let mut lines: Vec<(&str, &str)> = costs.iter().map(|cost| (&*cost.what, &*cost.load)).collect();
    lines.dedup();
    for (what, load) in lines {
        let at = |flows| costs.iter().find(|cost| (&*cost.what, &*cost.load, cost.flows) == (what, load, flows));
        let ns = flows.map(|flows| at(flows).map_or(String::new(), |cost| format!("{:.0}", cost.ns_per_packet)));
        let instructions = flows.map(|flows| {
            at(flows).and_then(|cost| cost.instructions_per_packet).map_or(String::new(), |count| format!("{count:.0}"))
        });
        table.add_row([what.to_owned(), load.to_owned()].into_iter().chain(ns).chain(instructions));
    }
    println!("{table}");
    println!("{legend}");
}

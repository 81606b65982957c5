//! Results of real packets only, for a terminal.

use std::fmt::Write as _;

use lastmile_lab::summary::{Live, Transfer};

use super::super::emulate::devices;

/// The hosts, their transfers and the devices of the line.
pub(super) fn table(live: &Live) -> String {
    let kernel = live.kernel.as_deref().unwrap_or("of unknown release");
    let mut text = format!("Hosts: TCP of Linux {kernel}");
    for Transfer { name, congestion, payload_bytes, window_bytes, .. } in &live.transfers {
        let _ = write!(text, "; {name} {congestion}, segments of {payload_bytes} B, window {window_bytes} B");
    }
    format!("{text}\n{}{}", incidents(live, ""), devices::table(&live.line))
}

/// Notes on incidents, if there were any, each line beginning with `label`.
pub(super) fn incidents(live: &Live, label: &str) -> String {
    let mut text = String::new();
    let label = if label.is_empty() { String::new() } else { format!("{label}: ") };
    for Transfer { name, failure, .. } in &live.transfers {
        if let Some(failure) = failure {
            let _ = writeln!(text, "{label}{name} ended early: {failure}");
        }
    }
    if let Some(missed) = live.capture_missed_packets.filter(|missed| *missed > 0) {
        let _ = writeln!(text, "{label}{missed} packets are missing from the captures: they arrived too fast");
    }
    if !live.realtime {
        let _ = writeln!(text, "{label}the kernel refused real-time priority: lateness depends on other processes");
    }
    text
}

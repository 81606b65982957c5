//! Runs with real packets, their traffic, and the figures that they give to a table.

use crate::data::Table;
use crate::error::ExperimentError;
use crate::reproduction::TableResult;
use crate::rounding::significant;
use crate::value::Values;
use crate::verdict::Finding;

use super::super::super::Lab;
use super::super::super::trial::{Overrides, Trial};

const SHORT: &str = "Live: one run with each setting, of the seconds that are told beforehand, with this kernel's \
                     Reno in place of Linux 2.4's, whose windows grow half as \
                     fast and begin with fewer segments; two hosts, so that pings go from the host to the server, \
                     which is the BBRAS where the thesis pinged that. \"as live\" is \
                     a simulation of the same runs with windows that grow and begin as this kernel's.";

/// Differences of a current kernel from Linux 2.4, whatever a scenario says: windows grow by the
/// segments that an ACK acknowledges, not by ACKs, and begin with ten; F-RTO finds needless
/// timeouts too.
pub(super) const KERNEL: [(&str, &str); 3] =
    [("tcp.byte_counting", "true"), ("tcp.initial_window", "10"), ("tcp.frto", "true")];

/// One run of a scenario for `seconds`, with keys set otherwise and with further traffic.
pub(super) fn trial(
    lab: &mut Lab<'_>,
    (name, text): (&str, &str),
    seconds: u64,
    set: &[(&str, &str)],
    traffic: &str,
) -> Result<Trial, ExperimentError> {
    let mut overrides = Overrides::default();
    overrides.set("duration", format_args!("{seconds} s"));
    KERNEL.iter().chain(set).for_each(|(key, value)| overrides.set(key, value.replace('\n', " ")));
    // Two hosts: the server answers the pings that the thesis sent to the BBRAS.
    let text = text.replace("to = \"bbras\"\ndscp", "to = \"server\"\ndscp");
    Trial::live((name, &format!("{text}\n{traffic}")), &overrides, lab)
}

/// A middlebox without the backbone behind the BBRAS, which is the server here.
pub(super) const AT_BBRAS: (&str, &str) = ("link.backbone.delay", "0 ms");

pub(super) fn upload(name: &str, start_s: u64, keys: &str) -> String {
    format!("[[traffic]]\nname = \"{name}\"\nkind = \"persistent\"\nstart = \"{start_s} s\"\n{keys}\n")
}

pub(super) fn ping(name: &str, dscp: u8, interval: &str) -> String {
    format!(
        "[[traffic]]\nname = \"{name}\"\nkind = \"ping\"\nfrom = \"host\"\nto = \"server\"\ndscp = {dscp}\ninterval \
         = \"{interval}\"\n"
    )
}

pub(super) fn small_packets(rate: u64, start_s: u64) -> String {
    format!(
        "[[traffic]]\nname = \"udp\"\nkind = \"blast\"\nfrom = \"host\"\nto = \"server\"\ndscp = 50\nsize = \"40 B\"\n\
         rate = \"{rate} packets/s\"\nstart = \"{start_s} s\"\n"
    )
}

/// Sets the live figures of the row for which `is_it` holds.
pub(super) fn set(result: &mut TableResult, is_it: impl Fn(&Values) -> bool, figures: &[(&'static str, f64)]) {
    if let Some(row) = result.rows.iter_mut().find(|row| is_it(&row.params)) {
        row.set_live(figures.iter().map(|(name, value)| (*name, significant(*value))).collect());
    }
}

/// Adds the table's claim, judged by live figures.
pub(super) fn judge(table: &Table, result: &mut TableResult, text: Option<&str>, shown: bool, evidence: String) {
    let finding = Finding::new(shown, evidence);
    result.live_claims.push(finding.claim(text.unwrap_or(&table.claim)));
    result.assumptions.push(SHORT.to_owned());
}

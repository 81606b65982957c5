//! What a comparison tells of each run in one row. Over an access line: the phase in which both directions are busy, or all of it where there is
//! none. Over other networks: connections, queues of cells, losses.

mod network;

use serde::Serialize;

pub use self::network::MeasuredNetwork;
use crate::format::{self, rate};
use crate::schema::{Phase, Summary};
use crate::{Run, tabular};

/// What a comparison tells of one run.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Row {
    /// Over an access line.
    Line(Measured),
    /// Over a network without an access line.
    Network(MeasuredNetwork),
}

/// A row for each of `runs`, all of one kind, beside downloads that have `alone_bps` on their own.
#[must_use]
pub fn rows(runs: &[&Run], alone_bps: Option<f64>) -> Vec<Row> {
    if network::all_over_networks(runs) {
        let port = network::busiest(runs);
        return runs.iter().map(|run| Row::Network(MeasuredNetwork::of(run, port.as_deref()))).collect();
    }
    runs.iter().map(|run| Row::Line(Measured::of(&run.summary, alone_bps))).collect()
}

/// Names of columns and the text of each row. Columns in which no row of a network has something to tell are left out.
#[must_use]
pub fn table(rows: &[Row]) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let mut texts: Vec<Vec<String>> = rows
        .iter()
        .map(|row| match row {
            Row::Line(measured) => measured.cells().into(),
            Row::Network(measured) => measured.cells().into(),
        })
        .collect();
    if !matches!(rows.first(), Some(Row::Network(_))) {
        return (COLUMNS.into(), texts);
    }
    let mut columns = network::COLUMNS.into();
    tabular::keep_told(&mut columns, &mut texts);
    (columns, texts)
}

/// What the rows are of, in words: a phase, or the whole run and a port.
#[must_use]
pub fn measured_where(rows: &[Row]) -> String {
    match rows.first() {
        Some(Row::Line(measured)) => measured.phase.clone(),
        Some(Row::Network(MeasuredNetwork { port: Some(port), .. })) => {
            format!("over the whole run, the queue at port {port}")
        }
        _ => WHOLE_RUN.to_owned(),
    }
}

/// Which part of the run, where no phase is meant.
const WHOLE_RUN: &str = "over the whole run";

/// The columns of [`Measured::cells`].
pub const COLUMNS: [&str; 10] =
    ["download", "of alone", "upload", "ping p50", "p99", "max", "queue of down", "queue of up", "max", "drops"];

/// What one run came to.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// Which part of the run.
    pub phase: String,
    /// Goodput of all downloads.
    pub download_bps: f64,
    /// The same as a share of the downloads alone, where those are known.
    pub download_share: Option<f64>,
    /// Goodput of all uploads.
    pub upload_bps: f64,
    /// Round-trip time of the first ping: the median.
    pub rtt_p50_s: Option<f64>,
    /// The 99th percentile of it.
    pub rtt_p99_s: Option<f64>,
    /// The largest.
    pub rtt_max_s: Option<f64>,
    /// Mean time in the queues of the downstream: at its far end, and in a middlebox behind it.
    pub down_queue_delay_mean_s: Option<f64>,
    /// Mean time in the queues of the upstream: in a middlebox before it, and in the modem.
    pub queue_delay_mean_s: Option<f64>,
    /// The longest in each of them, together.
    pub queue_delay_max_s: Option<f64>,
    /// Packets that the queues of the upstream dropped in the whole run, regulated ACKs included.
    pub drops: u64,
}

impl Measured {
    /// What `summary` came to, beside downloads that have `reference_bps` alone.
    #[must_use]
    pub fn of(summary: &Summary, reference_bps: Option<f64>) -> Self {
        let phase = busiest(summary);
        let download_bps = goodput(summary, phase, "down");
        let probe = phase.and_then(|phase| phase.probes.first()).map(|probe| probe.rtt_s);
        let rtt = probe.or_else(|| summary.probes.first().map(|probe| probe.rtt_s));
        let (up, down) = (waits(summary, phase, UP), waits(summary, phase, DOWN));
        Self {
            phase: phase.map_or_else(|| WHOLE_RUN.to_owned(), |phase| phase.name.clone()),
            download_bps,
            download_share: reference_bps.filter(|bps| *bps > 0.0).map(|bps| download_bps / bps),
            upload_bps: goodput(summary, phase, "up"),
            rtt_p50_s: rtt.as_ref().and_then(|rtt| rtt.p50),
            rtt_p99_s: rtt.as_ref().and_then(|rtt| rtt.p99),
            rtt_max_s: rtt.as_ref().and_then(|rtt| rtt.max),
            down_queue_delay_mean_s: down.map(|waits| waits.0),
            queue_delay_mean_s: up.map(|waits| waits.0),
            queue_delay_max_s: up.map(|waits| waits.1),
            drops: summary
                .links
                .iter()
                .filter(|link| UP.contains(&&*link.name))
                .flat_map(|link| link.drops.values())
                .sum(),
        }
    }

    /// A row of the table, in the order of [`COLUMNS`].
    #[must_use]
    pub fn cells(&self) -> [String; COLUMNS.len()] {
        [
            rate(self.download_bps),
            format::or_dash(self.download_share, |share| format!("{:.1} %", share * 100.0)),
            rate(self.upload_bps),
            time(self.rtt_p50_s),
            time(self.rtt_p99_s),
            time(self.rtt_max_s),
            time(self.down_queue_delay_mean_s),
            time(self.queue_delay_mean_s),
            time(self.queue_delay_max_s),
            self.drops.to_string(),
        ]
    }
}

/// The links whose queues a packet of each direction waits in, at the line.
const UP: [&str; 2] = ["up", "middlebox-up"];
const DOWN: [&str; 2] = ["down", "middlebox-down"];

/// Mean and longest waits in the queues of these links, one after the other. `None`: nothing waited there.
fn waits(summary: &Summary, phase: Option<&Phase>, links: [&str; 2]) -> Option<(f64, f64)> {
    let add = |sum: Option<(f64, f64)>, waits: (Option<f64>, Option<f64>)| match (sum, waits) {
        (Some((before, most)), (Some(mean), Some(max))) => Some((before + mean, most + max)),
        (sum, (mean, max)) => sum.or(mean.zip(max)),
    };
    let wanted = |name: &str| links.contains(&name);
    match phase {
        Some(phase) => {
            let found = phase.links.iter().filter(|link| wanted(&link.name));
            found.map(|link| (link.queue_delay_mean_s, link.queue_delay_max_s)).fold(None, add)
        }
        None => {
            let found = summary.links.iter().filter(|link| wanted(&link.name));
            found.map(|link| (link.queue_delay_s.mean, link.queue_delay_s.max)).fold(None, add)
        }
    }
}

/// Goodput of all downloads over the whole run, bit/s.
#[must_use]
pub fn downloads(summary: &Summary) -> f64 {
    goodput(summary, None, "down")
}

/// The longest phase of those in which both directions carry data.
fn busiest(summary: &Summary) -> Option<&Phase> {
    let busy = |phase: &&Phase| ["down", "up"].iter().all(|direction| goodput(summary, Some(phase), direction) > 0.0);
    let both = summary.phases.iter().filter(busy);
    // What trickles after the upload has stopped is no upload.
    let upload = |phase: &Phase| goodput(summary, Some(phase), "up") * (phase.to_s - phase.from_s);
    both.max_by(|a, b| upload(a).total_cmp(&upload(b)))
}

/// Payload of the TCP flows of a direction, in a phase or the whole run.
fn goodput(summary: &Summary, phase: Option<&Phase>, direction: &str) -> f64 {
    let flows = summary.flows.iter().filter(|flow| *flow.direction == *direction && flow.tcp.is_some());
    flows
        .map(|flow| match phase {
            Some(phase) => {
                phase.flows.iter().find(|other| other.name == flow.name).map_or(0.0, |flow| flow.goodput_bps)
            }
            None => flow.goodput_bps,
        })
        .sum()
}

/// In milliseconds, so that a column compares at a glance.
fn time(seconds: Option<f64>) -> String {
    format::or_dash(seconds, |seconds| format!("{:.1} ms", seconds * 1e3))
}

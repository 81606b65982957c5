//! Counters of a queue and its line, in the words of `tc -s qdisc`, and the bytes on the wire.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use lastmile_live::bump::{DirectionReport, HopReport};
use lastmile_live::io::Refusal;
use lastmile_model::outcome::Buckets;
use lastmile_queueing::line::Count;
use lastmile_queueing::{Backlog, DropReason};
use lastmile_results::schema::{Delay, Grants};
use lastmile_results::{delay, grants};
use lastmile_units::BitRate;
use serde::{Deserialize, Serialize};

/// Packets and their IP bytes.
#[derive(Clone, Copy, Default, Debug, Serialize, Deserialize)]
pub(crate) struct Amount {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
}

impl From<Count> for Amount {
    fn from(count: Count) -> Self {
        Self { packets: count.packets, bytes: count.bytes }
    }
}

impl From<Backlog> for Amount {
    fn from(backlog: Backlog) -> Self {
        Self { packets: backlog.packets.as_u64(), bytes: backlog.bytes.as_u64() }
    }
}

/// A queue and its line.
#[derive(Clone, Default, Debug, Serialize, Deserialize)]
pub(crate) struct Counters {
    /// Packets whose transmission began.
    pub(crate) transmitted: Amount,
    /// Bytes of these packets on the wire of the line.
    pub(crate) wire_bytes: u64,
    /// Cells, on a line of cells.
    pub(crate) cells: Option<u64>,
    /// The rate that a controller has given the shaper, if one has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) shaper_rate_bps: Option<u64>,
    /// Packets dropped by the queues, by reason.
    pub(crate) dropped: BTreeMap<String, Amount>,
    /// Packets that the wire made: duplicates.
    #[serde(default)]
    pub(crate) duplicated: u64,
    /// Packets that overtook one that was transmitted before them.
    #[serde(default)]
    pub(crate) reordered: u64,
    /// Packets that had to wait.
    pub(crate) overlimits: u64,
    pub(crate) queued: Amount,
    pub(crate) most_queued: Amount,
    /// Delay from arrival to the start of transmission.
    pub(crate) waited_s: Spread,
    /// Delay of pure ACKs from arrival to the start of transmission.
    pub(crate) acks_waited_s: Spread,
    /// Requests and grants, on a line that has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) grants: Option<Grants>,
}

/// A distribution of times, in seconds.
#[derive(Clone, Default, Debug, Serialize, Deserialize)]
pub(crate) struct Spread {
    #[serde(flatten)]
    pub(crate) delay: Delay,
    /// Their sum: the mean times the count is rounded, and may fall while the count rises.
    #[serde(default)]
    pub(crate) sum_ns: u64,
    /// Bounds, and for each the number of times above the preceding bound and at most this one.
    pub(crate) up_to: Vec<(f64, u64)>,
}

/// Bounds of [`Spread::up_to`] in microseconds, from the lateness of an idle machine to the queue
/// of a slow line.
const BOUNDS_US: [u32; 12] = [10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000];

impl Spread {
    /// The distribution of times in nanoseconds.
    pub(crate) fn of(times: &Buckets) -> Self {
        let mut up_to = BOUNDS_US.map(|us| (us, 0));
        for (ns, count) in times.ends() {
            if let Some((_, sum)) = up_to.iter_mut().find(|(us, _)| ns <= u64::from(*us) * 1000) {
                *sum += count;
            }
        }
        let up_to = up_to.into_iter().map(|(us, count)| (f64::from(us) / 1e6, count)).collect();
        Self { delay: delay(times), sum_ns: u64::try_from(times.sum()).unwrap_or(u64::MAX), up_to }
    }

    /// Median, 99th percentile and maximum; `None` without values.
    pub(crate) fn words(&self) -> Option<String> {
        let Delay { p50, p99, max, .. } = self.delay;
        let [p50, p99, max] = [p50?, p99?, max?].map(|s| s * 1e3);
        Some(format!("p50 {p50:.3} ms, p99 {p99:.3} ms, max {max:.3} ms"))
    }
}

impl Counters {
    pub(crate) fn of(hop: &HopReport) -> Self {
        let dropped = DropReason::ALL.iter().map(|reason| (reason.name(), hop.line.dropped[reason.index()]));
        Self {
            transmitted: hop.line.transmitted.into(),
            wire_bytes: hop.line.wire_bytes.as_u64(),
            cells: hop.cells.map(lastmile_units::CellCount::as_u64),
            shaper_rate_bps: hop.shaper_rate.map(BitRate::as_bps),
            dropped: dropped
                .filter(|(_, count)| count.packets > 0)
                .map(|(name, count)| (name.to_owned(), count.into()))
                .collect(),
            duplicated: hop.line.duplicated.packets,
            reordered: hop.line.reordered.packets,
            overlimits: hop.overlimits,
            queued: hop.queued.into(),
            most_queued: hop.most_queued.into(),
            waited_s: Spread::of(&hop.waited),
            acks_waited_s: Spread::of(&hop.acks_waited),
            grants: hop.grants.as_ref().map(grants),
        }
    }

    pub(crate) fn dropped_packets(&self) -> u64 {
        self.dropped.values().map(|amount| amount.packets).sum()
    }

    /// Lines for a terminal of 80 columns, longer only for very large counts. `since` are earlier
    /// counters and their age in seconds.
    pub(crate) fn lines(&self, since: Option<(&Self, f64)>) -> String {
        let mut text = String::new();
        let mut say = |line: std::fmt::Arguments<'_>| writeln!(text, "  {line}").expect("a string takes all");
        let Self { transmitted, queued, most_queued, overlimits, .. } = self;
        let dropped = self.dropped_packets();
        say(format_args!(
            "Sent {} bytes {} pkt (dropped {dropped}, overlimits {overlimits})",
            transmitted.bytes, transmitted.packets
        ));
        if let Some((before, seconds)) = since.filter(|(_, seconds)| *seconds > 0.0) {
            let per_s = |now: u64, before: u64| rate(now.saturating_sub(before), seconds);
            say(format_args!(
                "rate {}bit {}pps, {}bit on the wire",
                per_s(transmitted.bytes, before.transmitted.bytes) * 8,
                per_s(transmitted.packets, before.transmitted.packets),
                per_s(self.wire_bytes, before.wire_bytes) * 8,
            ));
        }
        say(format_args!(
            "backlog {}b {}p, at most {}b {}p",
            queued.bytes, queued.packets, most_queued.bytes, most_queued.packets
        ));
        if let Some(rate) = self.shaper_rate_bps.and_then(BitRate::from_bps) {
            say(format_args!("shaper {rate}"));
        }
        for (reason, amount) in &self.dropped {
            say(format_args!("dropped {} bytes {} pkt: {reason}", amount.bytes, amount.packets));
        }
        if self.duplicated + self.reordered > 0 {
            say(format_args!("duplicated {} pkt, reordered {} pkt", self.duplicated, self.reordered));
        }
        let cells = self.cells.map_or_else(String::new, |cells| format!(" in {cells} cells"));
        say(format_args!("wire {} bytes{cells}{}", self.wire_bytes, self.ratio()));
        for (what, spread) in [("waited", &self.waited_s), ("ACKs waited", &self.acks_waited_s)] {
            if let Some(words) = spread.words() {
                say(format_args!("{what} {words}"));
            }
        }
        if let Some(of) = &self.grants {
            let Grants { requests, collisions, piggybacked, grants, granted_bytes, unused_bytes, .. } = of;
            say(format_args!("requests {requests} (collided {collisions}, piggybacked {piggybacked})"));
            say(format_args!(
                "granted {granted_bytes} bytes in {grants} grants (unused {unused_bytes}), without request {}",
                of.unrequested_bytes
            ));
            if let (Some(mean), Some(p99)) = (of.request_grant_s.mean, of.request_grant_s.p99) {
                say(format_args!("request-grant mean {:.3} ms, p99 {:.3} ms", mean * 1e3, p99 * 1e3));
            }
        }
        text
    }

    /// Bytes on the wire for one byte of IP.
    #[expect(clippy::cast_precision_loss, reason = "statistics only")]
    fn ratio(&self) -> String {
        match self.transmitted.bytes {
            0 => String::new(),
            bytes => format!(", {:.3} for each of IP", self.wire_bytes as f64 / bytes as f64),
        }
    }
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "statistics only"
)]
fn rate(count: u64, seconds: f64) -> u64 {
    (count as f64 / seconds).round() as u64
}

type Fault = (&'static str, fn(&DirectionReport) -> u64);

/// Faults beside frames that were refused.
const FAULTS: [Fault; 9] = [
    ("unreadable", |report| report.unreadable),
    ("not_ip", |report| report.not_ip),
    ("evicted", |report| report.evicted),
    ("oversize", |report| report.oversize.packets),
    ("dropped_unread", |report| report.port.dropped_unread),
    ("cut_short", |report| report.port.cut_short),
    ("unstamped", |report| report.port.unstamped),
    ("not_cut", |report| report.port.offloads.refused),
    ("overslept", |report| report.overslept),
];

/// Frames that took another path than planned or whose arrival is unknown, by reason; evicted
/// flows; and overlong sleeps of the program. Zeros are omitted.
pub(crate) fn faults(report: &DirectionReport) -> BTreeMap<String, u64> {
    let faults = FAULTS.iter().map(|(name, count)| (*name, count(report)));
    let refused = Refusal::ALL.iter().map(|refusal| (refusal.name(), report.refused[refusal.index()].packets));
    faults.chain(refused).filter(|(_, count)| *count > 0).map(|(name, n)| (name.to_owned(), n)).collect()
}

/// The names of all faults.
pub(crate) fn fault_names<'a>() -> impl Iterator<Item = &'a str> {
    FAULTS.iter().map(|(name, _)| *name).chain(Refusal::ALL.iter().map(|refusal| refusal.name()))
}

#[cfg(test)]
mod tests {
    use lastmile_live::io::{Counters as Port, Offloads};

    use super::*;

    /// docs/reference/results.md has these names.
    #[test]
    fn faults_have_the_names_of_results() {
        let one = Count { packets: 1, bytes: 40 };
        let offloads = Offloads { finished: 1, cut: 1, segments: 2, refused: 1 };
        let report = DirectionReport {
            received: one,
            oversize: one,
            unreadable: 1,
            not_ip: 1,
            evicted: 1,
            hops: Vec::new(),
            sent: one,
            refused: [one, Count::default(), Count::default(), one],
            port: Port { dropped_unread: 1, cut_short: 1, unstamped: 1, offloads },
            overslept: 1,
            lateness: Buckets::default(),
        };
        let names: Vec<_> = faults(&report).into_keys().collect();
        let (port, own) = (["cut_short", "dropped_unread"], ["evicted", "not_cut", "not_ip", "oversize", "overslept"]);
        let rest = ["receiver_full", "receiver_other", "unreadable", "unstamped"];
        assert_eq!(names, [&port[..], &own, &rest].concat());
    }
}

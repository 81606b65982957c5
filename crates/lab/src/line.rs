//! The outcome of an emulated line in the schema of every run, and the counters and delays that only real packets have.

use std::collections::BTreeMap;

use lastmile_live::bump::{DirectionReport, HopReport};
use lastmile_live::emulate::{Ended, Outcome};
use lastmile_live::io::{Refusal, offload};
use lastmile_model::outcome::{self, Conservation, LinkOutcome};
use lastmile_model::{Link, Network};
use lastmile_results::schema::{Clock, Delay, Summary};
use lastmile_results::{Origin, delay, summarise};
use lastmile_units::{BitRate, Duration};
use serde::Serialize;

use crate::path::Path;

/// A summary, and the part that only real packets have.
#[derive(Serialize)]
pub struct Document {
    /// In the schema of every run.
    #[serde(flatten)]
    pub summary: Summary,
    /// The part that only real packets have.
    pub live: Live,
}

/// Counters and delays that only real packets have.
#[derive(Serialize)]
pub struct Live {
    /// Why the line ended.
    pub ended_by: String,
    /// From the client to the server.
    pub up: Direction,
    /// From the server to the client.
    pub down: Direction,
}

/// The devices at the two ends of a direction.
#[derive(Serialize)]
pub struct Direction {
    /// Packets read from the device at the sending end.
    pub received: u64,
    /// Packets that the device at the receiving end took.
    pub sent: u64,
    /// Carried untouched, since their headers could not be read.
    pub unreadable: u64,
    /// Ethernet frames carried untouched that are not of IP, such as ARP.
    pub not_ip: u64,
    /// Flows that lost their number to new ones.
    pub evicted: u64,
    /// Longer than the MTU and dropped.
    pub oversize: u64,
    /// Dropped by the kernel before they could be read.
    pub dropped_unread: u64,
    /// Frames longer than any buffer, dropped before they counted as received.
    pub cut_short: u64,
    /// Packets that count as arrived when they were read, since they have no stamp of the device.
    pub unstamped: u64,
    /// Checksums that the sending host had left to a device, finished.
    pub checksums_finished: u64,
    /// Packets in one piece that it had left to a device to cut.
    pub cut: u64,
    /// Segments that they became.
    pub segments: u64,
    /// Pieces that cannot be cut here, dropped before they counted as received.
    pub not_cut: u64,
    /// Not taken by the receiving device, by reason.
    pub refused: BTreeMap<&'static str, u64>,
    /// From when a packet was due at the receiving end to when it was sent there.
    pub lateness_s: Delay,
}

/// All that an emulated line did on `path`.
#[must_use]
pub fn document(origin: &Origin, path: &Path<'_>, outcome: &Outcome) -> Document {
    // Real packets are of no flow of the scenario: nobody knows the goodput of a line.
    let network = Network { lines: Vec::new(), ..path.network() };
    let run = outcome::Outcome {
        duration: outcome.elapsed,
        events: None,
        flows: Vec::new(),
        links: links(outcome, &network, outcome.elapsed),
        probes: Vec::new(),
        applications: outcome::Applications::default(),
        snapshots: Vec::new(),
        series: Vec::new(),
        conservation: conservation(outcome),
        atm: None,
        losses: Vec::new(),
        datagram_delays_ns: Vec::new(),
    };
    let mut summary = summarise(origin, &network, &run);
    summary.run.clock = Clock::Monotonic;
    Document { summary, live: Live::new(outcome) }
}

/// The hops as links of the simulator, in the order of the network's, after so long.
pub(crate) fn links(outcome: &Outcome, network: &Network, after: Duration) -> Vec<LinkOutcome> {
    let hops = outcome.up.hops.iter().chain(&outcome.down.hops);
    hops.zip(&network.links).map(|(hop, link_spec)| link(hop, link_spec, after)).collect()
}

fn link(hop: &HopReport, spec: &Link, after: Duration) -> LinkOutcome {
    // Of a trace the bits that it could carry until then.
    let rate = spec.hop.line.mean_rate(after);
    // Frames carry the class that the rules of a policy gave them.
    let classes = (0..).zip(&hop.class_waited).filter(|(_, waits)| !waits.is_empty());
    let named = |(class, waits): (u16, &outcome::Buckets)| {
        (spec.hop.queue.class_name(class).unwrap_or_else(|| class.to_string()), waits.clone())
    };
    let begun = hop.line.wire_bytes.bits();
    LinkOutcome {
        stats: hop.line.clone(),
        begun_bits: begun,
        wire_bits: rate.map_or(begun, |rate| begun.min(carried(rate, after))),
        queue_delay_ns: hop.waited.clone(),
        ack_queue_delay_ns: hop.acks_waited.clone(),
        class_queue_delay_ns: classes.map(named).collect(),
        max_backlog_packets: hop.most_queued.packets.as_u64(),
        max_backlog_bytes: hop.most_queued.bytes.as_u64(),
        cells: hop.cells.map(lastmile_units::CellCount::as_u64),
        counters: hop.queue_counters.iter().map(|c| (c.path.clone(), c.kind, c.name, c.value)).collect(),
        grants: hop.grants.clone(),
    }
}

/// The bits that a line carries in some time: of a transmission that outlasts it, no more than that has left.
fn carried(rate: BitRate, time: Duration) -> u64 {
    let bits = u128::from(rate.as_bps()) * u128::from(time.as_ps()) / 1_000_000_000_000;
    u64::try_from(bits).unwrap_or(u64::MAX)
}

/// As the simulator sums up, the drops at the devices included.
pub(crate) fn conservation(outcome: &Outcome) -> Conservation {
    let mut sums = Conservation::default();
    for direction in [&outcome.up, &outcome.down] {
        sums.sent += direction.received;
        sums.delivered += direction.sent;
        sums.dropped += direction.oversize;
        direction.refused.iter().for_each(|count| sums.dropped += *count);
        for hop in &direction.hops {
            hop.line.dropped.iter().for_each(|count| sums.dropped += *count);
            let counted = |name: &str| -> u64 {
                hop.queue_counters.iter().filter(|counter| counter.name == name).map(|counter| counter.value).sum()
            };
            sums.created += hop.line.created;
            sums.created.bytes += counted("grown_bytes");
            sums.dropped.bytes += counted("shrunk_bytes");
            sums.queued += hop.queued.into();
            sums.in_flight += hop.in_flight;
        }
    }
    sums
}

fn direction(report: &DirectionReport) -> Direction {
    let refused = Refusal::ALL.iter().map(|refusal| (refusal.name(), report.refused[refusal.index()].packets));
    Direction {
        received: report.received.packets,
        sent: report.sent.packets,
        unreadable: report.unreadable,
        not_ip: report.not_ip,
        evicted: report.evicted,
        oversize: report.oversize.packets,
        dropped_unread: report.port.dropped_unread,
        cut_short: report.port.cut_short,
        unstamped: report.port.unstamped,
        checksums_finished: report.port.offloads.finished,
        cut: report.port.offloads.cut,
        segments: report.port.offloads.segments,
        not_cut: report.port.offloads.refused,
        refused: refused.filter(|(_, count)| *count > 0).collect(),
        lateness_s: delay(&report.lateness),
    }
}

impl Live {
    /// The counters of the devices.
    #[must_use]
    pub fn new(outcome: &Outcome) -> Self {
        let ended_by = match outcome.ended {
            Ended::Asked => "request".to_owned(),
            Ended::Signal(number) => format!("signal {number}"),
            Ended::Limit => "duration".to_owned(),
            Ended::Command(_) => "command".to_owned(),
        };
        Self { ended_by, up: direction(&outcome.up), down: direction(&outcome.down) }
    }
}

impl Direction {
    /// Incidents that a user should know: count and description.
    #[must_use]
    pub fn incidents(&self) -> Vec<(u64, String)> {
        let mut incidents = vec![
            (self.unreadable, "packets carried untouched, their headers could not be read".to_owned()),
            (self.evicted, "flows forgotten for new ones, since more came than can be distinguished".to_owned()),
            (self.oversize, "packets longer than the MTU, dropped".to_owned()),
            (self.dropped_unread, "packets dropped by the kernel before they could be read".to_owned()),
            (self.cut_short, "frames longer than any buffer, dropped".to_owned()),
            (
                self.unstamped,
                "packets whose arrival counts from the read, since the kernel reported no time".to_owned(),
            ),
            (
                self.not_cut,
                format!("packets in pieces that are not cut here, dropped: `{}`", offload::remedy("INTERFACE")),
            ),
        ];
        incidents.extend(self.refused.iter().map(|(reason, count)| {
            let reason = reason.replace('_', " ");
            (*count, format!("packets not taken at the far end: {reason}"))
        }));
        incidents.retain(|(count, _)| *count > 0);
        incidents
    }
}

#[cfg(test)]
mod tests {
    use lastmile_live::bump::{Bump, BumpConfig};
    use lastmile_packet::HashKey;
    use lastmile_scenario::Scenario;

    use super::*;

    /// Of eight lines that share a DSLAM one is on the path, and no flow says which goodput it has.
    #[test]
    fn a_line_among_several_has_a_document() {
        let scenario = Scenario::parse("line.toml", crate::path::tests::SEVERAL, &[]).unwrap();
        for (client, server) in [("client-8", "server"), ("client-2", "client-7")] {
            let path = Path::of(&scenario, Some(&(client.to_owned(), server.to_owned()))).unwrap();
            let (up, down) = (path.up(), path.down());
            let names: Vec<String> = up.iter().chain(&down).map(|hop| hop.name.clone()).collect();
            let bump =
                Bump::new(&BumpConfig { up, down, mtu: 1500, seed: 1, hash_key: HashKey::new([0; 16]) }).unwrap();
            let (up, down) = bump.reports();
            let outcome = Outcome { ended: Ended::Limit, elapsed: Duration::from_s(1), up, down };
            let summary = document(&Origin::default(), &path, &outcome).summary;
            assert_eq!(summary.links.iter().map(|link| link.name.clone()).collect::<Vec<_>>(), names);
            assert!(summary.lines.is_empty() && summary.line_fairness.is_empty());
        }
    }

    /// 1500 bytes at 1 kbit/s take 12 s: after 3 s 3000 bits have left, however many were begun.
    #[test]
    fn a_line_carries_no_more_than_its_rate() {
        let rate = BitRate::from_kbit_per_s(1);
        assert_eq!(carried(rate, Duration::from_s(3)), 3_000);
        assert_eq!(
            carried(BitRate::from_mbit_per_s(1_000_000), Duration::from_s(1_000_000)),
            1_000_000_000_000_000_000
        );
    }
}

//! A row for a run over a network without an access line: goodputs, losses, and the queue of a port
//! of cells.

use std::collections::BTreeMap;

use serde::Serialize;

use super::cell::{Cell, Quantity};
use crate::format;
use crate::goodput;
use crate::schema::{AbrSource, CellPort, Flow, Summary};
use crate::{Run, tabular};

/// The result of one run over a network, over its whole length.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct MeasuredNetwork {
    /// Goodput of all TCP connections together: their bytes over the time in which any of them lived.
    pub goodput_bps: f64,
    /// The lowest goodput of a connection.
    pub goodput_min_bps: Option<f64>,
    /// The highest goodput of a connection.
    pub goodput_max_bps: Option<f64>,
    /// Jain's index of the goodputs, from 1/n to 1.
    pub jain_index: Option<f64>,
    /// Retransmitted segments of all connections.
    pub retransmissions: u64,
    /// Packets that queues of packets dropped, by reason, without zeros.
    pub drops_packets: BTreeMap<String, u64>,
    /// The port of cells whose queue is reported: the busiest of all switches in all compared runs.
    /// `None` without any.
    pub port: Option<String>,
    /// Mean of the sampled queue length there; `None` without series.
    pub queue_mean_cells: Option<f64>,
    /// The longest queue there.
    pub queue_max_cells: Option<u64>,
    /// Cells dropped at all ports, by reason, without zeros.
    pub drops_cells: BTreeMap<String, u64>,
    /// Mean of the sampled edge backlog of an ABR connection, in bytes; `None` without any or
    /// without series.
    pub edge_mean_bytes: Option<f64>,
    /// The largest edge backlog of one of them.
    pub edge_max_bytes: Option<u64>,
    /// Packets dropped at full edge queues.
    pub edge_dropped_packets: Option<u64>,
    /// Mean delay of ACKs at the edge.
    pub ack_hold_mean_s: Option<f64>,
}

impl MeasuredNetwork {
    /// The result of `run`, with the queue of `port`.
    pub(super) fn of(run: &Run, port: Option<&str>) -> Self {
        let summary = &run.summary;
        let goodputs = || connections(summary).map(|flow| flow.goodput_bps);
        let ports = || summary.atm.iter().flat_map(|atm| &atm.ports);
        let drops_cells = sums(ports().map(|port| &port.drops_cells));
        let drops_packets = sums(summary.links.iter().map(|link| &link.queue.drops));
        let sources = || summary.atm.iter().flat_map(|atm| &atm.vcs).filter_map(|vc| vc.abr.as_ref());
        let held = |source: &AbrSource| source.ack_hold_mean_s.map(|mean| (mean, format::to_f64(source.acks_held)));
        let (held_s, acks) =
            sources().filter_map(held).fold((0.0, 0.0), |(sum, all), (mean, acks)| (sum + mean * acks, all + acks));
        Self {
            goodput_bps: goodput::together(connections(summary)),
            goodput_min_bps: goodputs().min_by(f64::total_cmp),
            goodput_max_bps: goodputs().max_by(f64::total_cmp),
            jain_index: lastmile_theory::fairness::jain(goodputs()),
            retransmissions: connections(summary).filter_map(|flow| flow.transport.retransmissions).sum(),
            drops_packets,
            port: port.map(str::to_owned),
            queue_mean_cells: mean(run, "queue_cells", |link| Some(link) == port),
            queue_max_cells: ports().find(|other| Some(&*other.link) == port).map(|port| port.max_queue_cells),
            drops_cells,
            edge_mean_bytes: mean(run, "edge_bytes", |_| true),
            edge_max_bytes: sources().map(|source| source.edge_max_bytes).max(),
            edge_dropped_packets: sources().map(|source| source.edge_dropped_frames).reduce(|sum, more| sum + more),
            ack_hold_mean_s: (acks > 0.0).then(|| held_s / acks),
        }
    }

    /// The cells of the row.
    pub(super) fn cells(&self) -> Vec<Cell> {
        let rate = |column, bps| Cell::new(column, Quantity::Rate, bps);
        let dropped = |column, drops: &BTreeMap<String, u64>| {
            Cell::count(column, Some(drops.values().sum())).with_reasons(tabular::reasons(drops))
        };
        vec![
            rate("goodput", Some(self.goodput_bps)),
            rate("least", self.goodput_min_bps),
            rate("most", self.goodput_max_bps),
            Cell::new("Jain", Quantity::Index(3), self.jain_index),
            Cell::count("retransmitted", Some(self.retransmissions)),
            dropped("packets dropped", &self.drops_packets),
            Cell::new("cells queued, mean", Quantity::Index(0), self.queue_mean_cells),
            Cell::count("cells queued, max", self.queue_max_cells),
            dropped("cells dropped", &self.drops_cells),
            Cell::new("edge, mean", Quantity::Bytes, self.edge_mean_bytes),
            Cell::new("edge, max", Quantity::Bytes, self.edge_max_bytes.map(format::to_f64)),
            Cell::count("edge, dropped", self.edge_dropped_packets),
            Cell::new("ACKs held", Quantity::Time, self.ack_hold_mean_s),
        ]
    }
}

/// True if all runs have flows, none of them down or up an access line.
pub(super) fn all_over_networks(runs: &[&Run]) -> bool {
    !runs.is_empty() && runs.iter().all(|run| is_network(&run.summary))
}

/// True if the run has flows, none of them down or up an access line.
pub(super) fn is_network(summary: &Summary) -> bool {
    let on_line = |flow: &Flow| matches!(&*flow.direction, "down" | "up");
    !summary.flows.is_empty() && !summary.flows.iter().any(on_line)
}

/// The port with the highest utilisation in any of the runs.
pub(super) fn busiest(runs: &[&Run]) -> Option<String> {
    let used = |run: &Run, port: &CellPort| {
        run.summary.links.iter().find(|link| link.name == port.link).and_then(|link| link.utilisation)
    };
    let mut busiest: Option<(f64, &str)> = None;
    for run in runs {
        for port in run.summary.atm.iter().flat_map(|atm| &atm.ports).filter(|port| port.buffer_cells.is_some()) {
            let used = used(run, port).unwrap_or(0.0);
            if busiest.is_none_or(|(most, _)| used > most) {
                busiest = Some((used, &port.link));
            }
        }
    }
    busiest.map(|(_, link)| link.to_owned())
}

/// Sums over all places, by reason.
fn sums<'a>(places: impl Iterator<Item = &'a BTreeMap<String, u64>>) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for (reason, count) in places.flatten().filter(|(_, count)| **count > 0) {
        *sums.entry(reason.clone()).or_default() += count;
    }
    sums
}

/// TCP flows except web users and video viewers, whose goodput depends on what they request.
fn connections(summary: &Summary) -> impl Iterator<Item = &Flow> {
    summary.flows.iter().filter(|flow| flow.is_elastic())
}

/// Mean of all samples of the series of this name for the selected entities.
fn mean(run: &Run, name: &str, is_meant: impl Fn(&str) -> bool) -> Option<f64> {
    let series = run.series.iter().filter(|series| series.name == name && is_meant(&series.entity));
    let (sum, count) = series
        .flat_map(|series| &series.points)
        .fold((0.0, 0_u64), |(sum, count), (_, value)| (sum + value, count + 1));
    (count > 0).then(|| sum / format::to_f64(count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Series;
    use crate::schema::{Atm, FlowKind, FlowSetup, Link, LinkQueue, Transport, VirtualChannel};

    fn port(link: &str, buffer_cells: Option<u64>, drops: &[(&str, u64)]) -> CellPort {
        let drops_cells = drops.iter().map(|(reason, cells)| ((*reason).to_owned(), *cells)).collect();
        CellPort { link: link.into(), buffer_cells, max_queue_cells: 70, drops_cells, ..CellPort::default() }
    }

    fn run(goodputs: [f64; 2], used: [f64; 2]) -> Run {
        let flow = |goodput_bps| Flow {
            direction: "a to b".into(),
            setup: FlowSetup { tcp: Some("reno".into()), ..FlowSetup::default() },
            bytes_delivered: goodput_bps as u64,
            goodput_bps,
            transport: Transport { retransmissions: Some(3), ..Transport::default() },
            ..Flow::default()
        };
        let drops: BTreeMap<String, u64> = [("tail".to_owned(), 1), ("aqm".to_owned(), 0)].into();
        let link = |name: &str, used| Link {
            name: name.into(),
            utilisation: Some(used),
            queue: LinkQueue { drops: drops.clone(), ..LinkQueue::default() },
            ..Link::default()
        };
        let source = |acks_held, ack_hold_mean_s| VirtualChannel {
            abr: Some(AbrSource {
                acks_held,
                ack_hold_mean_s,
                edge_max_bytes: acks_held,
                edge_dropped_frames: 2,
                ..AbrSource::default()
            }),
            ..VirtualChannel::default()
        };
        let ports = vec![
            port("host", None, &[]),
            port("near", Some(100), &[("epd", 1)]),
            port("trunk", Some(200), &[("epd", 2), ("queue_full", 4)]),
        ];
        let vcs = vec![source(30, Some(1e-3)), source(10, Some(5e-3)), source(0, None), VirtualChannel::default()];
        let summary = Summary {
            flows: goodputs.map(flow).into(),
            links: vec![link("host", 1.0), link("near", used[0]), link("trunk", used[1])],
            atm: Some(Atm { ports, vcs, ..Atm::default() }),
            ..Summary::default()
        };
        let series = |name: &str, entity: &str, values: [f64; 2]| Series {
            name: name.into(),
            entity: entity.into(),
            points: values.map(|value| (0.0, value)).into(),
        };
        let series = vec![
            series("queue_cells", "near", [9.0, 9.0]),
            series("queue_cells", "trunk", [10.0, 30.0]),
            series("edge_bytes", "one", [1000.0, 3000.0]),
            series("edge_bytes", "two", [0.0, 0.0]),
        ];
        Run { label: "a".into(), own: Vec::new(), summary, series }
    }

    /// Of 3 and 1 Mbit/s: (3 + 1)^2 / (2 (9 + 1)) = 0.8. ACKs are held (30 x 1 ms + 10 x 5 ms) /
    /// 40 = 2 ms.
    #[test]
    fn a_row_tells_who_got_what_where_cells_waited_and_which_were_lost() {
        let measured = MeasuredNetwork::of(&run([3e6, 1e6], [0.5, 0.9]), Some("trunk"));
        let expected = MeasuredNetwork {
            goodput_bps: 4e6,
            goodput_min_bps: Some(1e6),
            goodput_max_bps: Some(3e6),
            jain_index: Some(0.8),
            retransmissions: 6,
            drops_packets: [("tail".to_owned(), 3)].into(),
            port: Some("trunk".into()),
            queue_mean_cells: Some(20.0),
            queue_max_cells: Some(70),
            drops_cells: [("epd".to_owned(), 3), ("queue_full".to_owned(), 4)].into(),
            edge_mean_bytes: Some(1000.0),
            edge_max_bytes: Some(30),
            edge_dropped_packets: Some(6),
            ack_hold_mean_s: Some(2e-3),
        };
        assert!((measured.ack_hold_mean_s.unwrap() - 2e-3).abs() < 1e-12);
        assert_eq!(MeasuredNetwork { ack_hold_mean_s: Some(2e-3), ..measured }, expected);
        let row = [
            "4 Mbit/s",
            "1 Mbit/s",
            "3 Mbit/s",
            "0.800",
            "6",
            "tail 3",
            "20",
            "70",
            "epd 3, queue full 4",
            "1 kB",
            "30 B",
            "6",
            "2.0 ms",
        ];
        assert_eq!(expected.cells().iter().map(Cell::text).collect::<Vec<_>>(), row);
    }

    /// A host's port never counts.
    #[test]
    fn the_port_is_the_busiest_of_all_switches_and_runs() {
        let (one, two) = (run([1.0, 1.0], [0.5, 0.6]), run([1.0, 1.0], [0.7, 0.1]));
        assert_eq!(busiest(&[&one]).as_deref(), Some("trunk"));
        assert_eq!(busiest(&[&one, &two]).as_deref(), Some("near"));
        assert_eq!(busiest(&[]), None);
    }

    #[test]
    fn without_series_sources_or_connections_nothing_is_made_up() {
        let mut bare = run([1.0, 1.0], [0.5, 0.6]);
        bare.series.clear();
        bare.summary.flows[0].setup.tcp = None;
        bare.summary.flows[1].setup.kind = FlowKind::Web;
        bare.summary.atm.as_mut().unwrap().vcs.clear();
        let measured = MeasuredNetwork::of(&bare, Some("trunk"));
        assert_eq!((measured.goodput_bps, measured.goodput_min_bps, measured.jain_index), (0.0, None, None));
        assert_eq!((measured.queue_mean_cells, measured.queue_max_cells), (None, Some(70)));
        assert_eq!(
            (measured.edge_mean_bytes, measured.edge_max_bytes, measured.edge_dropped_packets),
            (None, None, None)
        );
        assert_eq!(measured.ack_hold_mean_s, None);
    }

    #[test]
    fn an_access_line_is_compared_as_one() {
        let (cells, mut line) = (run([1.0, 1.0], [0.5, 0.6]), run([1.0, 1.0], [0.5, 0.6]));
        assert!(all_over_networks(&[&cells, &cells]));
        line.summary.flows[0].direction = "down".into();
        assert!(!all_over_networks(&[&cells, &line]));
        line.summary.flows.clear();
        assert!(!all_over_networks(&[&line]) && !all_over_networks(&[]));
    }
}

//! One simulated run, measured as the publications measure it.

use std::fmt::Display;

use lastmile_analysis::quantiles::upper_median;
use lastmile_atm::network::LinkStats;
use lastmile_model::outcome::{FlowOutcome, LinkOutcome, Outcome, Series};
use lastmile_model::{Network, Source};
use lastmile_queueing::DropReason;
use lastmile_scenario::Scenario;
use lastmile_units::{Duration, Instant};

use super::live_experiment::Lab;
use crate::error::ExperimentError;
use crate::stop::simulate;

/// A run of a shipped scenario.
pub(crate) struct Trial {
    outcome: Outcome,
    flows: Vec<FlowShape>,
    links: Vec<String>,
    /// Names of the links of cells, in their order.
    ports: Vec<String>,
    rates_bps: Vec<u64>,
}

/// The fixed properties of a flow.
struct FlowShape {
    /// Name of its traffic, which several flows may share.
    traffic: String,
    /// TCP payload of its full segments, for a transfer.
    mss: Option<f64>,
}

/// The outcome of a TCP connection.
pub(super) struct Connection {
    pub(super) name: String,
    pub(super) goodput_bps: f64,
    pub(super) timeouts: u64,
    pub(super) fast_retransmits: u64,
}

/// The overrides of one row: `key=value`, as `--set` takes them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Overrides(Vec<String>);

impl Overrides {
    pub(crate) fn set(&mut self, key: &str, value: impl Display) {
        self.0.push(format!("{key}={value}"));
    }

    /// They themselves, in their order.
    pub(crate) fn into_pairs(self) -> Vec<String> {
        self.0
    }

    /// The scenario `text`, which ships as `name`, with these.
    pub(crate) fn scenario(&self, name: &str, text: &str) -> Result<Scenario, ExperimentError> {
        Scenario::parse(name, text, &self.0).map_err(|report| ExperimentError::Network(report.to_string()))
    }
}

impl Trial {
    /// Runs the scenario `text`, which ships as `name`, until the flow `download` is complete, so
    /// that every total is that of the transfer alone.
    pub(crate) fn until_complete(name: &str, text: &str, overrides: &Overrides) -> Result<Self, ExperimentError> {
        let mut network = network(name, text, overrides)?;
        let whole = simulate(&network)?;
        let end = whole.flows.iter().find(|flow| flow.name == "download").and_then(|flow| flow.end);
        let end = end.ok_or(ExperimentError::Unfinished(network.duration))?;
        network.duration = end.since(Instant::ZERO);
        Self::of(&network)
    }

    /// Runs the scenario `text`, which ships as `name`, for as long as it says.
    pub(crate) fn whole(name: &str, text: &str, overrides: &Overrides) -> Result<Self, ExperimentError> {
        Self::of(&network(name, text, overrides)?)
    }

    /// Runs the scenario `text`, which ships as `name`, with real packets.
    pub(super) fn live(
        (name, text): (&str, &str),
        overrides: &Overrides,
        lab: &mut Lab<'_>,
    ) -> Result<Self, ExperimentError> {
        let scenario = overrides.scenario(name, text)?;
        let (network, outcome) = lab(&scenario).map_err(ExperimentError::Live)?;
        Ok(Self::new(&network, outcome))
    }

    fn of(network: &Network) -> Result<Self, ExperimentError> {
        Ok(Self::new(network, simulate(network)?))
    }

    fn new(network: &Network, outcome: Outcome) -> Self {
        let shape = |flow: &FlowOutcome| {
            let traffic = &network.traffic[flow.traffic];
            let mss = match &traffic.source {
                Source::Bulk { sender: tcp, .. } | Source::Writes { tcp, .. } => Some(f64::from(tcp.mss)),
                _ => None,
            };
            FlowShape { traffic: traffic.name.clone(), mss }
        };
        let ports = network.atm.iter().flat_map(|atm| &atm.links).map(|link| network.links[*link].hop.name.clone());
        Self {
            flows: outcome.flows.iter().map(shape).collect(),
            outcome,
            ports: ports.collect(),
            links: network.links.iter().map(|link| link.hop.name.clone()).collect(),
            rates_bps: network
                .links
                .iter()
                .map(|link| link.hop.line.rate.map_or(0, lastmile_units::BitRate::as_bps))
                .collect(),
        }
    }

    /// The duration of the run: for a transfer, from the first SYN to the last byte.
    pub(super) fn time_s(&self) -> f64 {
        self.outcome.duration.as_secs_f64()
    }

    /// Share of a link's rate that was used from a fifth of the transfer to its last second but
    /// one, in percent: without start-up and end.
    pub(super) fn steady_utilisation_pct(&self, link: &str) -> f64 {
        let samples = self.series("wire_rate_bps", link);
        let (from, to) = (self.time_s() * 0.2, self.time_s() - 1.0);
        let steady: Vec<f64> = samples
            .points
            .iter()
            .filter(|(at, _)| (from..=to).contains(&at.as_secs_f64()))
            .map(|(_, rate)| *rate)
            .collect();
        let mean = steady.iter().sum::<f64>() / steady.len().max(1) as f64;
        100.0 * mean / self.rates_bps[self.index(link)] as f64
    }

    /// Bits on a link's wire for each second of the transfer.
    pub(super) fn mean_wire_bps(&self, link: &str) -> f64 {
        self.link(link).wire_bits as f64 / self.time_s()
    }

    /// Mean time in a link's queue, the time of the packet's own transmission not counted.
    pub(super) fn mean_queue_delay_s(&self, link: &str) -> f64 {
        self.link(link).queue_delay_ns.mean() / 1e9
    }

    /// ACKs that a regulator dropped in front of a link.
    pub(super) fn acks_dropped(&self, link: &str) -> u64 {
        let dropped = &self.link(link).stats.dropped;
        let regulated = DropReason::ALL.iter().filter(|reason| reason.is_ack_regulation());
        regulated.map(|reason| dropped[reason.index()].packets).sum()
    }

    /// Bytes of a flow that had been acknowledged when its congestion window first reached `window` bytes.
    pub(super) fn acked_when_window_reached(&self, flow: &str, window: f64) -> Option<f64> {
        let cwnd = &self.series("cwnd_bytes", flow).points;
        let (reached, _) = cwnd.iter().find(|(_, cwnd)| *cwnd >= window)?;
        let acked = &self.series("acked_bytes", flow).points;
        acked.iter().find(|(at, _)| at == reached).map(|(_, acked)| *acked)
    }

    /// Mean time in a link's queue of the packets that left it while `flow` ran.
    pub(super) fn queue_delay_while_s(&self, link: &str, flow: &str) -> Option<f64> {
        let end = self.outcome.flows.iter().find(|known| known.name == flow)?.end?;
        let index = self.index(link);
        let waits = self.outcome.snapshots.iter().filter(|snapshot| snapshot.at <= end).map(|s| s.queue_delay[index]);
        let (packets, sum_ns) = waits.fold((0, 0), |(packets, sum), w| (packets + w.packets, sum + w.sum_ns));
        (packets > 0).then(|| sum_ns as f64 / packets as f64 / 1e9)
    }

    /// Share of a link's rate that was used from `from_s` on, in percent.
    pub(super) fn utilisation_from_pct(&self, link: &str, from_s: f64) -> f64 {
        let samples = self.series("wire_rate_bps", link);
        let rates: Vec<f64> =
            samples.points.iter().filter(|(at, _)| at.as_secs_f64() > from_s).map(|(_, rate)| *rate).collect();
        let mean = rates.iter().sum::<f64>() / rates.len().max(1) as f64;
        100.0 * mean / self.rates_bps[self.index(link)] as f64
    }

    /// The duration of the longest flow of `traffic`, from start to last byte. `None` when one is not complete.
    pub(super) fn flow_time_s(&self, traffic: &str) -> Option<f64> {
        self.of_traffic(traffic)
            .map(|flow| Some(flow.end?.since(flow.start).as_secs_f64()))
            .try_fold(0.0, |longest, time| Some(f64::max(longest, time?)))
    }

    /// Payload of the flows of `traffic` delivered for each second of the run.
    pub(super) fn goodput_bps(&self, traffic: &str) -> f64 {
        let bytes: u64 = self.of_traffic(traffic).map(|flow| flow.bytes_delivered).sum();
        bytes as f64 * 8.0 / self.time_s()
    }

    /// Goodput of the flows of `traffic` as a share of a link's rate, in percent.
    pub(super) fn goodput_pct(&self, traffic: &str, link: &str) -> f64 {
        100.0 * self.goodput_bps(traffic) / self.rates_bps[self.index(link)] as f64
    }

    /// Payload delivered by each flow of `traffic`, in bytes.
    pub(super) fn bytes_each(&self, traffic: &str) -> Vec<f64> {
        self.of_traffic(traffic).map(|flow| flow.bytes_delivered as f64).collect()
    }

    /// Retransmission timeouts of the flows of `traffic`.
    pub(super) fn timeouts(&self, traffic: &str) -> u64 {
        self.of_traffic(traffic).filter_map(|flow| flow.tcp.as_ref()).map(|tcp| tcp.timeouts).sum()
    }

    /// ACKs of data that came back to the senders of `traffic`: not those that end a handshake.
    pub(super) fn acks_received(&self, traffic: &str) -> u64 {
        self.of_traffic(traffic)
            .filter_map(|flow| flow.tcp.as_ref())
            .map(|tcp| tcp.acks_received.saturating_sub(1))
            .sum()
    }

    /// Bytes of `flow` that its sender knows to have arrived.
    pub(super) fn acked_bytes(&self, flow: &str) -> f64 {
        self.series("acked_bytes", flow).points.last().map_or(0.0, |(_, acked)| *acked)
    }

    /// Segments of payload that the flows of `traffic` delivered for each ACK that came back.
    pub(super) fn segments_per_ack(&self, traffic: &str) -> f64 {
        let segments: f64 = self
            .outcome
            .flows
            .iter()
            .zip(&self.flows)
            .filter(|(_, shape)| belongs(&shape.traffic, traffic))
            .filter_map(|(flow, shape)| Some(flow.bytes_delivered as f64 / shape.mss?))
            .sum();
        segments / self.acks_received(traffic).max(1) as f64
    }

    /// When and how large the congestion window of `flow` was, in bytes.
    pub(super) fn congestion_window(&self, flow: &str) -> impl Iterator<Item = (f64, f64)> {
        self.series("cwnd_bytes", flow).points.iter().map(|(at, cwnd)| (at.as_secs_f64(), *cwnd))
    }

    /// Samples of a series of a link, flow or probe: when, in s, and the value.
    pub(super) fn samples(&self, name: &str, entity: &str) -> impl Iterator<Item = (f64, f64)> {
        self.series(name, entity).points.iter().map(|(at, value)| (at.as_secs_f64(), *value))
    }

    /// Round trips of a ping: when each left, in s, and how long it took, in ms.
    pub(super) fn round_trips(&self, ping: &str) -> impl Iterator<Item = (f64, f64)> {
        let replies = self.outcome.probes.iter().find(|probe| probe.name == ping).map(|probe| &probe.replies);
        let took = |(left, took): &(Instant, Duration)| (left.as_secs_f64(), took.as_secs_f64() * 1e3);
        replies.into_iter().flatten().map(took)
    }

    /// The fastest round trip of all pings whose names begin with `name`, in ms.
    pub(super) fn least_round_trip_ms(&self, name: &str) -> f64 {
        let pings = self.outcome.probes.iter().filter(|probe| probe.name.starts_with(name));
        let took = pings.flat_map(|probe| &probe.replies).map(|(_, took)| took.as_secs_f64() * 1e3);
        took.fold(f64::INFINITY, f64::min)
    }

    /// Echo requests that no reply came back to.
    pub(super) fn pings_lost(&self, ping: &str) -> u64 {
        let probe = self.outcome.probes.iter().find(|probe| probe.name == ping);
        probe.map_or(0, |probe| probe.sent - probe.received)
    }

    /// When the flows of `traffic` began, and when the last of their data arrived, in s.
    pub(super) fn flow_span_s(&self, traffic: &str) -> Option<(f64, f64)> {
        let start = self.of_traffic(traffic).map(|flow| flow.start).min()?;
        let end = self
            .of_traffic(traffic)
            .filter_map(|flow| flow.end.or(flow.deliveries.map(|deliveries| deliveries.last)))
            .max()?;
        Some((start.as_secs_f64(), end.as_secs_f64()))
    }

    /// Segments that the flows of `traffic` had retransmitted at the last change of the offered traffic up to `at_s`.
    pub(super) fn sent_again_by(&self, traffic: &str, at_s: f64) -> u64 {
        let Some(snapshot) = self.outcome.snapshots.iter().rfind(|snapshot| snapshot.at.as_secs_f64() <= at_s) else {
            return 0;
        };
        let flows = snapshot.retransmissions.iter().zip(&self.flows);
        flows.filter(|(_, shape)| belongs(&shape.traffic, traffic)).map(|(again, _)| again).sum()
    }

    /// Packets of `traffic` that arrived for each second from the first to the last of them.
    pub(super) fn arrivals_per_s(&self, traffic: &str) -> Option<f64> {
        let flow = self.of_traffic(traffic).next()?;
        let deliveries = flow.deliveries?;
        let span = deliveries.last.since(deliveries.first).as_secs_f64();
        (span > 0.0).then(|| (flow.data_packets_received as f64 - 1.0) / span)
    }

    /// Packets of `traffic` that were sent, and that arrived.
    pub(super) fn packets(&self, traffic: &str) -> (u64, u64) {
        self.of_traffic(traffic)
            .fold((0, 0), |(sent, arrived), flow| (sent + flow.data_packets, arrived + flow.data_packets_received))
    }

    /// Segments that the flows of `traffic` retransmitted.
    pub(super) fn sent_again(&self, traffic: &str) -> u64 {
        self.of_traffic(traffic).filter_map(|flow| flow.tcp.as_ref()).map(|tcp| tcp.retransmissions).sum()
    }

    /// The TCP connections of a traffic, in their order.
    pub(super) fn connections(&self, traffic: &str) -> Vec<Connection> {
        let seconds = self.time_s();
        let connection = |flow: &FlowOutcome| {
            let tcp = flow.tcp.as_ref();
            Connection {
                name: flow.name.clone(),
                goodput_bps: flow.bytes_delivered as f64 * 8.0 / seconds,
                timeouts: tcp.map_or(0, |tcp| tcp.timeouts),
                fast_retransmits: tcp.map_or(0, |tcp| tcp.fast_retransmits),
            }
        };
        self.of_traffic(traffic).map(connection).collect()
    }

    /// The counters of the port of a link of cells.
    pub(super) fn cells(&self, link: &str) -> LinkStats {
        let port = self.ports.iter().position(|port| port == link).expect("the scenario has this link");
        self.outcome.atm.as_ref().expect("the scenario has cells").ports[port]
    }

    /// Share of a link's rate that the cells of complete frames took, in percent.
    pub(super) fn cells_goodput_pct(&self, link: &str) -> f64 {
        let cells_per_s = self.rates_bps[self.index(link)] as f64 / 424.0;
        100.0 * self.cells(link).good_cells as f64 / self.time_s() / cells_per_s
    }

    /// Packets that a link transmitted.
    pub(super) fn link_packets(&self, link: &str) -> u64 {
        self.link(link).stats.transmitted.packets
    }

    /// Packets that a link dropped, for whatever reason.
    pub(super) fn dropped(&self, link: &str) -> u64 {
        self.link(link).stats.dropped.iter().map(|dropped| dropped.packets).sum()
    }

    fn of_traffic(&self, traffic: &str) -> impl Iterator<Item = &FlowOutcome> {
        let named = move |(_, shape): &(&FlowOutcome, &FlowShape)| belongs(&shape.traffic, traffic);
        self.outcome.flows.iter().zip(&self.flows).filter(named).map(|(flow, _)| flow)
    }

    fn series(&self, name: &str, entity: &str) -> &Series {
        let named = |series: &&Series| series.name == name && series.entity == entity;
        self.outcome.series.iter().find(named).expect("the scenario records series")
    }

    fn link(&self, name: &str) -> &LinkOutcome {
        &self.outcome.links[self.index(name)]
    }

    fn index(&self, name: &str) -> usize {
        self.links.iter().position(|link| link == name).expect("an access line has this link")
    }
}

fn network(name: &str, text: &str, overrides: &Overrides) -> Result<Network, ExperimentError> {
    Ok(overrides.scenario(name, text)?.network())
}

/// True for `download` and for the numbered `download-3`.
fn belongs(name: &str, traffic: &str) -> bool {
    name.strip_prefix(traffic).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// IP bytes for each byte of payload: 1500 for 1448.
const IP_PER_PAYLOAD: f64 = 1500.0 / 1448.0;

/// Throughput of the flows of `traffic` together, in IP bytes from one time to another, in kbit/s.
pub(super) fn ip_kbps(trial: &Trial, traffic: &str, from_s: f64, to_s: f64) -> f64 {
    let of_flow = |flow: &FlowOutcome| mean(trial.samples("goodput_bps", &flow.name), from_s, to_s);
    trial.of_traffic(traffic).map(of_flow).sum::<f64>() * IP_PER_PAYLOAD / 1e3
}

/// The median of that throughput over spans of 10 s from a time on.
pub(super) fn ip_kbps_median(trial: &Trial, traffic: &str, from_s: f64) -> f64 {
    let mut spans: Vec<(f64, u32)> = Vec::new();
    for (at, rate) in trial.samples("goodput_bps", traffic).filter(|(at, _)| *at > from_s) {
        let span = ((at - from_s) / 10.0) as usize;
        if spans.len() <= span {
            spans.resize(span + 1, (0.0, 0));
        }
        spans[span].0 += rate;
        spans[span].1 += 1;
    }
    let rates: Vec<f64> = spans.iter().filter(|(_, n)| *n > 0).map(|(sum, n)| sum / f64::from(*n)).collect();
    upper_median(&rates).map_or(0.0, |rate| rate * IP_PER_PAYLOAD / 1e3)
}

/// The mean of the samples after one time and up to another.
pub(super) fn mean(samples: impl Iterator<Item = (f64, f64)>, from_s: f64, to_s: f64) -> f64 {
    let values: Vec<f64> = samples.filter(|(at, _)| *at > from_s && *at <= to_s).map(|(_, value)| value).collect();
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_is_of_the_samples_after_its_begin_and_up_to_its_end() {
        let samples = [(1.0, 100.0), (2.0, 3.0), (3.0, 5.0), (3.1, 100.0)];
        assert!((mean(samples.into_iter(), 1.0, 3.0) - 4.0).abs() < 1e-9);
    }
}

//! One simulated transfer over an access line, measured as the publications measure it.

use std::fmt::Display;

use lastmile_queueing::DropReason;
use lastmile_scenario::Scenario;
use lastmile_sim::outcome::{LinkOutcome, Outcome, Series};
use lastmile_sim::run;
use lastmile_units::Instant;

use super::ExperimentError;

/// A run of a shipped scenario until its download was complete.
pub(super) struct Transfer {
    outcome: Outcome,
    links: Vec<String>,
    rates_bps: Vec<u64>,
}

/// The overrides of one row: `key=value`, as `--set` takes them.
#[derive(Clone, Default)]
pub(super) struct Overrides(Vec<String>);

impl Overrides {
    pub(super) fn set(&mut self, key: &str, value: impl Display) {
        self.0.push(format!("{key}={value}"));
    }
}

impl Transfer {
    /// Runs the scenario `text`, which ships as `name`, until the flow `download` is complete, so that every total is that of
    /// the transfer alone.
    pub(super) fn run(name: &str, text: &str, overrides: &Overrides) -> Result<Self, ExperimentError> {
        let scenario =
            Scenario::parse(name, text, &overrides.0).map_err(|report| ExperimentError::Network(report.to_string()))?;
        let mut network = scenario.network();
        let network_error = |error: lastmile_sim::BuildError| ExperimentError::Network(error.to_string());
        let whole = run(&network).map_err(network_error)?;
        let end = whole.flows.iter().find(|flow| flow.name == "download").and_then(|flow| flow.end);
        let end = end.ok_or(ExperimentError::Unfinished(network.duration))?;
        network.duration = end.since(Instant::ZERO);
        let outcome = run(&network).map_err(network_error)?;
        Ok(Self {
            outcome,
            links: network.links.iter().map(|link| link.name.clone()).collect(),
            rates_bps: network.links.iter().map(|link| link.rate.map_or(0, lastmile_units::BitRate::as_bps)).collect(),
        })
    }

    /// How long the transfer took, from the first SYN to the last byte.
    pub(super) fn time_s(&self) -> f64 {
        self.outcome.duration.as_secs_f64()
    }

    /// Share of a link's rate that was used from a fifth of the transfer to its last second but one, in percent: without
    /// start-up and end.
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
        self.link(link).stats.wire_bytes.bits() as f64 / self.time_s()
    }

    /// Mean time in a link's queue, the time of the packet's own transmission not counted.
    pub(super) fn mean_queue_delay_s(&self, link: &str) -> f64 {
        self.link(link).queue_delay_ns.mean() / 1e9
    }

    /// ACKs that a regulator dropped in front of a link.
    pub(super) fn acks_dropped(&self, link: &str) -> u64 {
        let regulated =
            [DropReason::AckMerged, DropReason::AckFiltered, DropReason::AckCollapsed, DropReason::AckDuplicate];
        let dropped = &self.link(link).stats.dropped;
        regulated.iter().map(|reason| dropped[reason.index()].packets).sum()
    }

    /// Bytes of the download that had been acknowledged when its congestion window first reached `window` bytes.
    pub(super) fn acked_when_window_reached(&self, window: f64) -> Option<f64> {
        let cwnd = &self.series("cwnd_bytes", "download").points;
        let (reached, _) = cwnd.iter().find(|(_, cwnd)| *cwnd >= window)?;
        let acked = &self.series("acked_bytes", "download").points;
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

//! From the outcome of a simulation to the result schema. Flows, probes and totals are in this
//! file, links and phases in files of their own.

mod applications;
mod class;
mod experience;
mod full_link;
mod groups;
mod links;
mod notes;
mod phase;
mod run;
mod statistics;
mod streams;

use std::collections::BTreeMap;
use std::sync::Arc;

use lastmile_analysis::fairness::{self as analysis, Share};
use lastmile_model::outcome::{FlowOutcome, Outcome, ProbeOutcome};
use lastmile_model::{Echo, Network, Source};
use lastmile_queueing::{Count, DropReason};
use lastmile_units::{Duration, Instant};

use self::class::class;
use self::phase::{BY_ITS_SOURCE, of_flow, rate, within};
use self::run::Run;
pub use self::statistics::{delay, grants};
use self::statistics::{distribution, round_trip};
use self::streams::{datagrams, flow_verdict, one_way, probe_verdict};
use crate::atm;
use crate::bounds::{self, Before, Bound};
use crate::format;
use crate::lines;
use crate::phases;
use crate::policing;
use crate::schema::{
    Account, Clock, Conservation, Fairness, Flow, FlowLimits, FlowSetup, Inputs, Phase, Probe, RunFacts, Summary,
    Transport,
};

/// Inputs of a summary in addition to the simulation.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    /// Name of the scenario.
    pub scenario: String,
    /// Version of the program.
    pub version: String,
    /// The user's inputs.
    pub inputs: Inputs,
}

/// The summary of a simulated run of `network`.
#[must_use]
pub fn summarise(origin: &Origin, network: &Network, outcome: &Outcome) -> Summary {
    let run = Run::new(network, outcome);
    let mut summary = Summary {
        run: RunFacts {
            scenario: origin.scenario.clone(),
            seed: network.seed,
            version: origin.version.clone(),
            duration_s: outcome.duration.as_secs_f64(),
            events: outcome.events.unwrap_or(0),
            clock: Clock::Simulated,
            inputs: origin.inputs.clone(),
        },
        notes: Vec::new(),
        groups: Vec::new(),
        flows: Vec::new(),
        links: run.links(),
        probes: outcome.probes.iter().map(|probe| run.probe(probe)).collect(),
        datagram_classes: Vec::new(),
        pages: applications::pages(network, outcome),
        applications: applications::applications(network, outcome),
        phases: run.phases(),
        fairness: Vec::new(),
        lines: Vec::new(),
        line_fairness: Vec::new(),
        conservation: conservation(outcome),
        atm: atm::atm(network, outcome),
    };
    let flows = outcome.flows.iter().enumerate();
    summary.flows = flows.map(|(index, flow)| run.flow((index, flow), &summary.phases)).collect();
    summary.notes = run.notes(&summary.flows);
    summary.groups = groups::groups(&summary.flows);
    summary.datagram_classes = run.datagram_classes(&summary.flows);
    let ends: Vec<f64> = outcome.flows.iter().map(|flow| run.active_until(flow).as_secs_f64()).collect();
    summary.fairness = fairness(&summary.flows, &ends);
    summary.lines = lines::lines(network, outcome, &summary.links);
    summary.line_fairness = lines::fairness(&summary.lines);
    summary
}

impl Run<'_> {
    /// The index of the first flow of a traffic.
    fn first_of(&self, traffic: usize) -> usize {
        self.firsts[traffic]
    }

    fn flow(&self, (index, flow): (usize, &FlowOutcome), phases: &[Phase]) -> Flow {
        let traffic = &self.network.traffic[flow.traffic];
        let shape = self.shapes[flow.traffic].as_ref();
        let tcp = flow.tcp.as_ref();
        let names = &self.names[flow.traffic];
        let (until, sized) = (self.active_until(flow), bounds::bytes_of(&traffic.source).is_some());
        let span = (flow.start, until);
        let bound = self.bound(flow, span, Before::Nothing);
        let share = self.fair_share_over_life(flow).map(|share| within(&share, bound.as_ref()).clone());
        let delay_s = flow.data_delays.as_deref().map(one_way);
        let lost = flow.data_packets_lost.filter(|_| flow.connections.is_none());
        let y1541 = flow.data_delays.as_deref().zip(lost).and_then(|(delays, lost)| flow_verdict(delays, lost));
        Flow {
            name: flow.name.clone(),
            direction: Arc::clone(&names.direction),
            setup: FlowSetup {
                kind: names.kind,
                class: Arc::clone(&names.class),
                tcp: names.tcp.clone(),
                receive_window_bytes: shape.and_then(|shape| Some(shape.tcp?.window)),
                payload_bytes: shape.map_or(0, |shape| shape.payload),
                data_path: Arc::clone(&names.data_path),
                ack_path: Arc::clone(&names.ack_path),
            },
            start_s: flow.start.as_secs_f64(),
            end_s: flow.end.map(Instant::as_secs_f64),
            bytes_delivered: flow.bytes_delivered,
            goodput_bps: rate(flow.bytes_delivered, until.since(flow.start)),
            response_time_s: flow.end.filter(|_| sized).map(|end| end.since(flow.start).as_secs_f64()),
            transport: Transport {
                retransmissions: tcp.map(|tcp| tcp.retransmissions),
                timeouts: tcp.map(|tcp| tcp.timeouts),
                fast_retransmits: tcp.map(|tcp| tcp.fast_retransmits),
                data_packets: flow.data_packets,
                data_packets_received: flow.data_packets_received,
                acks_sent: tcp.map(|tcp| tcp.acks_sent),
                acks_received: tcp.map(|tcp| tcp.acks_received),
                connections: flow.connections.map(|(opened, _)| opened),
                connections_failed: flow.connections.map(|(_, failed)| failed),
                max_in_flight_bytes: tcp.map(|tcp| tcp.max_in_flight),
                srtt_s: tcp.and_then(|tcp| tcp.srtt).map(Duration::as_secs_f64),
            },
            limits: FlowLimits {
                limited_by: tcp.map_or(BY_ITS_SOURCE, |tcp| phases::shares(&tcp.limited)),
                explanation: self.explanation((index, flow), phases),
                bound_bps: bound.as_ref().map(|bound| bound.bps),
                bound_by: bound.map(|bound| bound.by).or_else(|| self.without_a_line(flow, span).map(Arc::from)),
                fair_share_bps: share.as_ref().map(|share| share.bps),
                fair_share_by: share.map(|share| share.by),
            },
            delay_s: delay_s.map(Box::new),
            ack_delay_s: flow.ack_delays.as_deref().map(one_way).map(Box::new),
            datagrams: if tcp.is_none() { datagrams(traffic, flow).map(Box::new) } else { None },
            y1541: y1541.map(Box::new),
        }
    }

    fn probe(&self, probe: &ProbeOutcome) -> Probe {
        let traffic = &self.network.traffic[probe.traffic];
        let echo = if let Source::Ping { echo, .. } = traffic.source { echo } else { Echo::Icmp };
        let rtt_s = round_trip(probe.replies.iter().map(|(_, took)| *took));
        let lost = self.lost_requests(probe);
        Probe {
            name: probe.name.clone(),
            class: class(traffic.ip.dscp),
            protocol: echo.name().to_owned(),
            sent: probe.sent,
            received: probe.received,
            lost,
            y1541: probe_verdict(probe, &rtt_s, lost),
            rtt_distribution: distribution(probe.replies.iter().map(|(_, took)| *took)),
            rtt_s,
        }
    }

    /// The requests that were lost, they or their replies. Where drops are not known by flow, a request without a reply
    /// counts once the longest round trip has passed since.
    fn lost_requests(&self, probe: &ProbeOutcome) -> u64 {
        if let Some(dropped) = probe.dropped {
            return dropped.min(probe.sent - probe.received);
        }
        let waited = probe.replies.iter().map(|(_, took)| *took).max().unwrap_or_default();
        let end = Instant::ZERO + self.outcome.duration;
        let is_over = |left: Instant| left + waited < end;
        let asked = self.requests(probe).filter(|left| is_over(*left)).count();
        let answered = probe.replies.iter().filter(|(left, _)| is_over(*left)).count();
        asked.saturating_sub(answered) as u64
    }

    /// The times of a probe's requests.
    fn requests(&self, probe: &ProbeOutcome) -> impl Iterator<Item = Instant> {
        let traffic = &self.network.traffic[probe.traffic];
        let interval = match traffic.source {
            Source::Ping { interval, .. } => interval,
            _ => Duration::ZERO,
        };
        (0..probe.sent).map(move |number| probe.start + interval * number)
    }

    /// The limit of a flow over its life, in words.
    fn explanation(&self, (index, flow): (usize, &FlowOutcome), phases: &[Phase]) -> String {
        let traffic = &self.network.traffic[flow.traffic];
        match (&traffic.source, &flow.tcp) {
            (_, None) => self.open_loop(index, flow),
            (source, Some(tcp)) if traffic.opens() => {
                let shares = phases::shares(&tcp.limited);
                let most = shares.iter().reduce(|a, b| if b.1 > a.1 { b } else { a });
                let words = |(cause, share)| match (self.full_link(flow), cause) {
                    (Some(link), "application") => {
                        format!("{link}; all data were on their way for {} of the time", format::percent(share))
                    }
                    (Some(link), _) => format!("{link}; {}", applications::limit(source, cause, share)),
                    (None, _) => applications::limit(source, cause, share),
                };
                most.map_or_else(String::new, words)
            }
            _ => explanation(&flow.name, phases),
        }
    }

    /// The result of a source that does not wait for the network, in words.
    fn open_loop(&self, index: usize, flow: &FlowOutcome) -> String {
        let source = match self.network.traffic[flow.traffic].source {
            Source::Replay(_) => "a capture, which waits for nothing",
            Source::Conference(_) => "its rate control, which follows delay and losses",
            _ => "its source, which waits for nothing",
        };
        let (sent, arrived) = (flow.data_packets, flow.data_packets_received);
        let member = index - self.first_of(flow.traffic);
        let policing = policing::words(self.network, (flow.traffic, member), of_flow(&self.losses, index));
        let is_policed = policing.is_some();
        let policing = policing.map_or_else(String::new, |words| format!("; {words}"));
        let full = if arrived < sent && !is_policed { self.full_link(flow) } else { None };
        let dropped = if full.is_none() && !is_policed { self.most_drops(index) } else { None };
        let dropped = dropped.map_or_else(String::new, |words| format!("; {words}"));
        let full = full.map_or_else(String::new, |link| format!("{link}; "));
        let arrived = if arrived == sent { "all".to_owned() } else { format::grouped(arrived) };
        format!("{full}{source}: {} packets sent, {arrived} arrived{policing}{dropped}", format::grouped(sent))
    }

    /// The link that dropped the most data packets of a flow, in words.
    fn most_drops(&self, flow: usize) -> Option<String> {
        let mut dropped: BTreeMap<usize, u64> = BTreeMap::new();
        for (loss, count) in of_flow(&self.losses, flow).filter(|(loss, _)| !loss.back) {
            *dropped.entry(loss.link).or_default() += count;
        }
        let (link, count) = dropped.into_iter().reduce(|a, b| if b.1 > a.1 { b } else { a })?;
        let (name, count) = (&self.network.links[link].hop.name, policing::counted([count, 0]));
        Some(format!("link {name} drops {count}"))
    }

    /// The last time at which the flow offered or delivered data.
    fn active_until(&self, flow: &FlowOutcome) -> Instant {
        let end = Instant::ZERO + self.outcome.duration;
        let stop = self.network.traffic[flow.traffic].stop;
        let last = stop.map(|stop| flow.deliveries.map_or(stop, |deliveries| deliveries.last.max(stop)));
        flow.end.or(last).unwrap_or(end).min(end)
    }

    /// The bound of a flow over a span.
    fn bound(&self, flow: &FlowOutcome, span: (Instant, Instant), before: Before) -> Option<Bound> {
        let of = (self.shapes[flow.traffic].as_ref(), &self.limits[flow.traffic]);
        bounds::of_flow((self.network, self.outcome), of, flow, span, before)
    }

    /// The reason for which a flow has no bound in a span.
    fn without_a_line(&self, flow: &FlowOutcome, span: (Instant, Instant)) -> Option<String> {
        bounds::without_a_line(self.network, self.shapes[flow.traffic].as_ref()?, span)
    }

    /// The mean of the flow's fair shares over the parts of its life in which it has one, and the cause that applied
    /// longest. After its last offer it may deliver, and has none.
    fn fair_share_over_life(&self, flow: &FlowOutcome) -> Option<Bound> {
        let until = self.active_until(flow);
        let mut times: BTreeMap<&str, (f64, &Bound)> = BTreeMap::new();
        let (mut bits, mut seconds) = (0.0, 0.0);
        for (part, shares) in self.parts.iter().zip(&self.fair) {
            let Some(bound) = &shares[flow.traffic] else { continue };
            let span = part.to.min(until).since(part.from.max(flow.start)).as_secs_f64();
            bits += bound.bps * span;
            seconds += span;
            times.entry(&bound.by).or_insert((0.0, bound)).0 += span;
        }
        let (_, longest) = times.into_values().reduce(|a, b| if b.0 > a.0 { b } else { a })?;
        let bps = bits / seconds;
        (bps.is_finite() && seconds > 0.0).then(|| Bound { bps, ..longest.clone() })
    }
}

/// The limit of a flow over its life: the words of its phases, without repetition.
fn explanation(flow: &str, phases: &[Phase]) -> String {
    let in_phases = phases.iter().filter_map(|phase| {
        let flow = phase.flows.iter().find(|other| other.name == flow)?;
        Some((phase.name.as_str(), flow.explanation.as_str()))
    });
    let (explained, others): (Vec<_>, Vec<_>) = in_phases.partition(|(_, words)| !words.is_empty());
    match explained.as_slice() {
        [] => String::new(),
        [(_, words)] if others.is_empty() => (*words).to_owned(),
        several => several.iter().map(|(phase, words)| format!("{phase}: {words}")).collect::<Vec<_>>().join(". "),
    }
}

/// Jain's index for the flows of each direction, by the ends of their lives, without web users and video viewers (Jain,
/// Chiu, Hawe 1984): of those that lived together with another one for at least half of their lives, as of the
/// connections of a capture.
fn fairness(flows: &[Flow], ends_s: &[f64]) -> Vec<Fairness> {
    let mut directions: BTreeMap<&str, Vec<Share>> = BTreeMap::new();
    for (flow, &end_s) in flows.iter().zip(ends_s).filter(|(flow, _)| flow.is_elastic()) {
        let share = Share { goodput_bps: flow.goodput_bps, start_s: flow.start_s, end_s, ..Share::default() };
        directions.entry(&flow.direction).or_default().push(share);
    }
    let index = directions.into_iter().filter_map(|(direction, shares)| {
        let shared = analysis::fairness(&shares);
        let jain_index = shared.jain_index.filter(|_| shared.compared >= 2)?;
        Some(Fairness { direction: direction.to_owned(), flows: shared.compared as u64, jain_index })
    });
    index.collect()
}

/// The reason for packets with a lost cell in the table of conservation; the rows of virtual
/// channels have the causes.
pub(crate) const LOST_CELLS: &str = "lost_cells";

fn account(conservation: &lastmile_model::outcome::Conservation, of: impl Fn(Count) -> u64) -> Account {
    let lastmile_model::outcome::Conservation { sent, created, delivered, dropped, queued, in_flight } = *conservation;
    let [sent, created, delivered, dropped, queued, in_flight] =
        [sent, created, delivered, dropped, queued, in_flight].map(of);
    Account { sent, created, delivered, dropped, queued, in_flight }
}

fn conservation(outcome: &Outcome) -> Conservation {
    let conservation = &outcome.conservation;
    let mut dropped_by_reason = BTreeMap::new();
    for link in &outcome.links {
        for reason in DropReason::ALL {
            let bytes = link.stats.dropped[reason.index()].bytes;
            if bytes > 0 {
                *dropped_by_reason.entry(reason.name().to_owned()).or_default() += bytes;
            }
        }
    }
    if let Some(atm) = &outcome.atm {
        let bytes: u64 = atm.vcs.iter().map(|vc| vc.lost_bytes).sum();
        if bytes > 0 {
            *dropped_by_reason.entry(LOST_CELLS.to_owned()).or_default() += bytes;
        }
    }
    Conservation {
        bytes: account(conservation, |count| count.bytes),
        packets: account(conservation, |count| count.packets),
        dropped_by_reason,
        holds: conservation.holds(),
    }
}

#[cfg(test)]
mod tests;

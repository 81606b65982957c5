//! From what a simulation leaves to the one result schema.

use std::collections::BTreeMap;
use std::sync::Arc;

use hdrhistogram::Histogram;
use lastmile_queueing::{DropReason, Limit, Spec};
use lastmile_sim::outcome::{FlowOutcome, LinkOutcome, Outcome, ProbeOutcome};
use lastmile_sim::spec::{Link as LinkSpec, Network, Source};
use lastmile_tcp::Variant;
use lastmile_units::{Duration, Instant};

use crate::atm;
use crate::bounds::{self, Bound, Shape};
use crate::format::{self, to_f64};
use crate::limits::Case;
use crate::lines;
use crate::phases::{self, Interval};
use crate::schema::{
    Clock, Conservation, ConservedPackets, Counter, Delay, Fairness, Flow, Inputs, Link, PageResponse, Pages, Phase,
    PhaseFlow, PhaseLink, PhaseProbe, Probe, RoundTrip, Shares, Summary,
};

/// What a summary tells beside what was simulated.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    /// Name of the scenario.
    pub scenario: String,
    /// Version of the program.
    pub version: String,
    /// What the user gave.
    pub inputs: Inputs,
}

/// The summary of a simulated run of `network`.
#[must_use]
pub fn summarise(origin: &Origin, network: &Network, outcome: &Outcome) -> Summary {
    let run = Run::new(network, outcome);
    let mut summary = Summary {
        scenario: origin.scenario.clone(),
        seed: network.seed,
        version: origin.version.clone(),
        duration_s: outcome.duration.as_secs_f64(),
        events: outcome.events,
        clock: Clock::Simulated,
        inputs: origin.inputs.clone(),
        flows: Vec::new(),
        links: run.links(),
        probes: outcome.probes.iter().map(|probe| run.probe(probe)).collect(),
        pages: pages(network, outcome),
        phases: run.phases(),
        fairness: Vec::new(),
        lines: Vec::new(),
        line_fairness: Vec::new(),
        conservation: conservation(outcome),
        atm: atm::atm(network, outcome),
    };
    summary.flows = outcome.flows.iter().map(|flow| run.flow(flow, &summary.phases)).collect();
    summary.fairness = fairness(&summary.flows);
    summary.lines = lines::lines(network, outcome, &summary.links);
    summary.line_fairness = lines::fairness(&summary.lines);
    summary
}

/// What several parts of the summary need.
struct Run<'a> {
    network: &'a Network,
    outcome: &'a Outcome,
    /// By traffic; `None` for pings.
    shapes: Vec<Option<Shape>>,
    parts: Vec<Interval>,
    /// Bounds by phase and traffic.
    bounds: Vec<Vec<Option<Bound>>>,
    /// By traffic: the rows of very many flows share them.
    names: Vec<Names>,
}

/// What the rows of one traffic have in common.
#[derive(Clone, Default)]
struct Names {
    direction: Arc<str>,
    kind: Arc<str>,
    tcp: Option<Arc<str>>,
    data_path: Arc<[Arc<str>]>,
    ack_path: Arc<[Arc<str>]>,
}

impl Names {
    fn new(network: &Network, flow: &FlowOutcome) -> Self {
        let traffic = &network.traffic[flow.traffic];
        let path = |path: &[usize]| path.iter().map(|link| network.links[*link].name.as_str().into()).collect();
        Self {
            direction: traffic.direction.as_str().into(),
            kind: kind(&traffic.source).into(),
            tcp: match &traffic.source {
                Source::Bulk { sender, .. } => Some(variant_name(sender.variant).into()),
                Source::Writes { tcp, .. } => Some(variant_name(tcp.variant).into()),
                Source::Web(web) => Some(variant_name(web.server.variant).into()),
                Source::Swarm(swarm) => Some(variant_name(swarm.tcp.variant).into()),
                _ => None,
            },
            data_path: path(&flow.data_path),
            ack_path: path(&flow.ack_path),
        }
    }
}

impl<'a> Run<'a> {
    fn new(network: &'a Network, outcome: &'a Outcome) -> Self {
        let mut shapes = vec![None; network.traffic.len()];
        let mut names = vec![Names::default(); network.traffic.len()];
        let mut latest = None;
        for flow in &outcome.flows {
            // The flows of one traffic stand together.
            if latest.replace(flow.traffic) == Some(flow.traffic) {
                continue;
            }
            names[flow.traffic] = Names::new(network, flow);
            let shape = &mut shapes[flow.traffic];
            if shape.is_none() {
                *shape = Shape::new(network, flow.traffic, &flow.data_path, &flow.ack_path);
            }
        }
        let parts = phases::intervals(network, outcome);
        let bound = |part: &Interval| bounds::in_phase(network, outcome, &shapes, (part.from, part.to));
        let bounds = parts.iter().map(bound).collect();
        Self { network, outcome, shapes, parts, bounds, names }
    }

    fn flow(&self, flow: &FlowOutcome, phases: &[Phase]) -> Flow {
        let traffic = &self.network.traffic[flow.traffic];
        let shape = self.shapes[flow.traffic].as_ref();
        let tcp = flow.tcp.as_ref();
        let names = &self.names[flow.traffic];
        let (until, sized) = (self.active_until(flow), matches!(traffic.source, Source::Bulk { bytes: Some(_), .. }));
        let bound = self.bound_over_life(flow);
        Flow {
            name: flow.name.clone(),
            direction: Arc::clone(&names.direction),
            kind: Arc::clone(&names.kind),
            tcp: names.tcp.clone(),
            receive_window_bytes: shape.and_then(|shape| Some(shape.tcp?.window)),
            payload_bytes: shape.map_or(0, |shape| shape.payload),
            data_path: Arc::clone(&names.data_path),
            ack_path: Arc::clone(&names.ack_path),
            start_s: flow.start.as_secs_f64(),
            end_s: flow.end.map(Instant::as_secs_f64),
            bytes_delivered: flow.bytes_delivered,
            goodput_bps: rate(flow.bytes_delivered, until.since(flow.start)),
            response_time_s: flow.end.filter(|_| sized).map(|end| end.since(flow.start).as_secs_f64()),
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
            limited_by: tcp.map_or(BY_ITS_SOURCE, |tcp| phases::shares(&tcp.limited)),
            explanation: self.explanation(flow, phases),
            bound_bps: bound.as_ref().map(|bound| bound.bps),
            bound_by: bound.map(|bound| bound.by),
        }
    }

    /// What held a flow back over its life.
    fn explanation(&self, flow: &FlowOutcome, phases: &[Phase]) -> String {
        match (&self.network.traffic[flow.traffic].source, &flow.tcp) {
            (_, None) => self.open_loop(flow),
            (Source::Web(_) | Source::Swarm(_), Some(tcp)) => {
                let shares = phases::shares(&tcp.limited);
                let most = shares.iter().reduce(|a, b| if b.1 > a.1 { b } else { a });
                most.map_or_else(String::new, |(cause, share)| {
                    let cause = cause.replace('_', " ");
                    format!("all its connections together: {cause}, {} of their time", format::percent(share))
                })
            }
            _ => explanation(&flow.name, phases),
        }
    }

    /// What waits for nothing is told by what became of it.
    fn open_loop(&self, flow: &FlowOutcome) -> String {
        let source = match self.network.traffic[flow.traffic].source {
            Source::Replay(_) => "a capture",
            _ => "its source",
        };
        let (sent, arrived) = (flow.data_packets, flow.data_packets_received);
        let arrived = if arrived == sent { "all".to_owned() } else { format::grouped(arrived) };
        format!("{source}, which waits for nothing: {} packets sent, {arrived} arrived", format::grouped(sent))
    }

    /// Until when the flow offered or delivered data.
    fn active_until(&self, flow: &FlowOutcome) -> Instant {
        let end = Instant::ZERO + self.outcome.duration;
        let stop = self.network.traffic[flow.traffic].stop;
        let last = stop.map(|stop| flow.last_delivery.map_or(stop, |last| last.max(stop)));
        flow.end.or(last).unwrap_or(end).min(end)
    }

    /// The mean of the flow's bounds over the phases of its life, and what sets it for the longest time.
    fn bound_over_life(&self, flow: &FlowOutcome) -> Option<Bound> {
        let until = self.active_until(flow);
        let mut times: BTreeMap<&Arc<str>, f64> = BTreeMap::new();
        let (mut bits, mut seconds) = (0.0, 0.0);
        for (part, bounds) in self.parts.iter().zip(&self.bounds) {
            let Some(bound) = &bounds[flow.traffic] else { continue };
            let span = part.to.min(until).since(part.from.max(flow.start)).as_secs_f64();
            bits += bound.bps * span;
            seconds += span;
            *times.entry(&bound.by).or_default() += span;
        }
        let (by, _) = times.into_iter().reduce(|a, b| if b.1 > a.1 { b } else { a })?;
        let bps = bits / seconds;
        (bps.is_finite() && seconds > 0.0).then(|| Bound { bps, by: Arc::clone(by) })
    }

    fn links(&self) -> Vec<Link> {
        let links = self.network.links.iter().zip(&self.outcome.links).enumerate();
        links.map(|(index, (spec, link))| self.link(index, spec, link)).collect()
    }

    fn link(&self, index: usize, spec: &LinkSpec, link: &LinkOutcome) -> Link {
        let node = |node: usize| self.network.nodes[node].name.clone();
        let wire_bits = link.wire_bits;
        let share = |bits: u64| Some(to_f64(bits) / to_f64(spec.rate?.as_bps()) / self.outcome.duration.as_secs_f64());
        // Of the packet on the wire at the end, as much as had left.
        let begun_bits = link.stats.wire_bytes.bits();
        let ip_share = |share: f64| share * to_f64(link.stats.transmitted.bytes * 8) / to_f64(begun_bits.max(1));
        let drops = DropReason::ALL.iter().map(|reason| (reason.name().to_owned(), link.stats.dropped[reason.index()]));
        let crossing = self.shapes.iter().flatten().filter(|shape| shape.data_path.contains(&index));
        Link {
            name: spec.name.clone(),
            from: node(spec.from),
            to: node(spec.to),
            rate_bps: spec.rate.map(|rate| to_f64(rate.as_bps())),
            delay_s: spec.delay.as_secs_f64(),
            payload_capacity_bps: crossing.filter_map(|shape| shape.capacity_bps(spec)).reduce(f64::max),
            queue_limit_bytes: limit_in_bytes(&spec.queue),
            wire_bits,
            ip_bytes: link.stats.transmitted.bytes,
            packets: link.stats.transmitted.packets,
            cells: link.cells.unwrap_or(0),
            utilisation: share(wire_bits).filter(|share| share.is_finite()),
            utilisation_ip: share(wire_bits).map(ip_share).filter(|share| share.is_finite()),
            queue_delay_s: delay(&link.queue_delay_ns),
            ack_queue_delay_s: delay(&link.ack_queue_delay_ns),
            max_backlog_packets: link.max_backlog_packets,
            max_backlog_bytes: link.max_backlog_bytes,
            dropped_bytes: drops
                .clone()
                .filter(|(_, c)| c.packets > 0)
                .map(|(name, count)| (name, count.bytes))
                .collect(),
            drops: drops.map(|(name, count)| (name, count.packets)).collect(),
            counters: link
                .counters
                .iter()
                .map(|(part, kind, name, value)| Counter {
                    part: part.clone(),
                    kind: (*kind).to_owned(),
                    name: (*name).to_owned(),
                    value: *value,
                })
                .collect(),
        }
    }

    fn probe(&self, probe: &ProbeOutcome) -> Probe {
        Probe {
            name: probe.name.clone(),
            class: class(self.network.traffic[probe.traffic].dscp),
            sent: probe.sent,
            received: probe.received,
            rtt_s: round_trip(probe.replies.iter().map(|(_, took)| *took)),
        }
    }

    fn phases(&self) -> Vec<Phase> {
        let names = phases::names(self.network, self.outcome, &self.parts);
        let parts = self.parts.iter().zip(&self.bounds).zip(names);
        parts.map(|((part, bounds), name)| self.phase(part, bounds, name)).collect()
    }

    fn phase(&self, part: &Interval, bounds: &[Option<Bound>], name: String) -> Phase {
        let links = self.phase_links(part);
        let sharing = self.sharing(part);
        let few = self.outcome.flows.len() <= self.network.record.flow_limit;
        let flows = self.outcome.flows.iter().enumerate().filter(|_| few);
        let flows =
            flows.filter_map(|(index, flow)| self.phase_flow(index, flow, part, bounds, &links, &sharing)).collect();
        let within =
            |at: Instant| at >= part.from && (at < part.to || part.to == Instant::ZERO + self.outcome.duration);
        let probes = self.outcome.probes.iter().map(|probe| {
            let replies: Vec<Duration> =
                probe.replies.iter().filter(|(left, _)| within(*left)).map(|(_, took)| *took).collect();
            PhaseProbe {
                name: probe.name.clone(),
                class: class(self.network.traffic[probe.traffic].dscp),
                received: replies.len() as u64,
                rtt_s: round_trip(replies.into_iter()),
            }
        });
        Phase {
            name,
            from_s: part.from.as_secs_f64(),
            to_s: part.to.as_secs_f64(),
            flows,
            probes: probes.collect(),
            links,
        }
    }

    /// `None` for a flow that neither offered nor delivered anything in this part.
    fn phase_flow(
        &self,
        index: usize,
        flow: &FlowOutcome,
        part: &Interval,
        bounds: &[Option<Bound>],
        links: &[PhaseLink],
        sharing: &Sharing,
    ) -> Option<PhaseFlow> {
        let bound = &bounds[flow.traffic];
        if bound.is_none() && part.bytes[index] == 0 {
            return None;
        }
        let shares = match &part.limited[index] {
            Some(limited) => phases::shares(limited),
            None => BY_ITS_SOURCE,
        };
        let shape = self.shapes[flow.traffic].as_ref().filter(|shape| !shape.many);
        let retransmissions = part.retransmissions[index];
        let two_way = shape.and_then(|shape| bounds::two_way(self.network, shape, part, &sharing.acks));
        let closer = |two_way: &Bound| bound.as_ref().is_some_and(|bound| two_way.bps < CLOSER * bound.bps);
        let two_way = two_way.filter(closer);
        let explain = |shape| {
            let (network, traffic, sharing) = (self.network, flow.traffic, &sharing.data);
            let words =
                Case { network, shape, traffic, interval: part, links, shares, retransmissions, sharing }.words();
            match &two_way {
                Some(bound) if !words.is_empty() => {
                    format!("{words}; at most {} by {}", format::rate(bound.bps), bound.by)
                }
                _ => words,
            }
        };
        Some(PhaseFlow {
            name: flow.name.clone(),
            goodput_bps: rate(part.bytes[index], part.to.since(part.from)),
            limited_by: shares,
            explanation: shape.map_or_else(String::new, explain),
            bound_bps: bound.as_ref().map(|bound| bound.bps).filter(|bps| *bps < f64::MAX),
            bound_by: bound.as_ref().map(|bound| bound.by.to_string()),
            two_way_bound_bps: two_way.as_ref().map(|bound| bound.bps),
            two_way_bound_by: two_way.as_ref().map(|bound| bound.by.to_string()),
            retransmissions: flow.tcp.as_ref().map(|_| retransmissions),
        })
    }

    fn phase_links(&self, part: &Interval) -> Vec<PhaseLink> {
        let length_s = part.length_s();
        let links = self.network.links.iter().enumerate();
        let max_s = |waits: &lastmile_sim::outcome::Waits| (waits.packets > 0).then(|| to_f64(waits.max_ns) / 1e9);
        links
            .map(|(index, spec)| PhaseLink {
                name: spec.name.clone(),
                utilisation: spec.rate.map(|rate| to_f64(part.wire_bits[index]) / to_f64(rate.as_bps()) / length_s),
                queue_delay_mean_s: part.waits[index].mean_s(),
                queue_delay_max_s: max_s(&part.waits[index]),
                ack_queue_delay_mean_s: part.ack_waits[index].mean_s(),
                ack_queue_delay_max_s: max_s(&part.ack_waits[index]),
            })
            .collect()
    }

    /// How many active flows use each link.
    fn sharing(&self, part: &Interval) -> Sharing {
        let none = vec![0; self.network.links.len()];
        let mut sharing = Sharing { data: none.clone(), acks: none };
        for (index, shape) in self.shapes.iter().enumerate() {
            let Some(shape) = shape.as_ref().filter(|shape| !shape.many) else { continue };
            let active = bounds::active(self.network, self.outcome, index, (part.from, part.to));
            shape.data_path.iter().for_each(|link| sharing.data[*link] += active);
            shape.ack_path.iter().for_each(|link| sharing.acks[*link] += active);
        }
        sharing
    }
}

/// How many active flows use each link, connections that come and go apart.
struct Sharing {
    /// For their data.
    data: Vec<usize>,
    /// For their ACKs.
    acks: Vec<usize>,
}

/// What held a flow back over its life: the words of its phases, each kind of them once.
fn explanation(flow: &str, phases: &[Phase]) -> String {
    let in_phases = phases.iter().filter_map(|phase| {
        let flow = phase.flows.iter().find(|other| other.name == flow)?;
        (!flow.explanation.is_empty()).then_some((phase.name.as_str(), flow.explanation.as_str()))
    });
    let told: Vec<(&str, &str)> = in_phases.collect();
    match told.as_slice() {
        [] => String::new(),
        [(_, words)] => (*words).to_owned(),
        several => several.iter().map(|(phase, words)| format!("{phase}: {words}")).collect::<Vec<_>>().join(". "),
    }
}

/// A two-way bound is worth telling below this share of the other one.
const CLOSER: f64 = 0.9;

/// What is not TCP waits for nothing but its source.
const BY_ITS_SOURCE: Shares =
    Shares { application: Some(1.0), awaiting_ack: None, congestion_window: None, receive_window: None };

/// Bytes over a span in bits per second; zero over no time.
fn rate(bytes: u64, span: Duration) -> f64 {
    if span.is_zero() { 0.0 } else { to_f64(bytes) * 8.0 / span.as_secs_f64() }
}

fn kind(source: &Source) -> &'static str {
    match source {
        Source::Bulk { .. } => "bulk",
        Source::Writes { .. } => "writes",
        Source::Poisson { .. } => "poisson",
        Source::OnOff { .. } => "onoff",
        Source::Constant { kind, .. } => kind,
        Source::Web(_) => "web",
        Source::Swarm(_) => "swarm",
        Source::Replay(_) => "replay",
        Source::Ping { .. } => "ping",
    }
}

fn variant_name(variant: Variant) -> &'static str {
    match variant {
        Variant::Tahoe => "tahoe",
        Variant::Reno => "reno",
        Variant::NewReno => "newreno",
        Variant::Sack => "sack",
        Variant::Cubic => "cubic",
    }
}

/// What the queue holds at most, where one limit in bytes says so.
fn limit_in_bytes(queue: &Spec) -> Option<u64> {
    match queue {
        Spec::Fifo { limit, .. }
        | Spec::AckFilter { limit, .. }
        | Spec::AckCollapsing { limit, .. }
        | Spec::CakeAckFilter { limit, .. } => match limit {
            Limit::Bytes(bytes) => Some(bytes.as_u64()),
            Limit::Packets(_) | Limit::Cells(_) => None,
        },
        Spec::Tbf { queue, .. }
        | Spec::Policer { queue, .. }
        | Spec::Sad { queue, .. }
        | Spec::AckRegenerator { queue, .. } => limit_in_bytes(queue),
        _ => None,
    }
}

/// The name of a code point: RFC 2474 (CS), RFC 2597 (AF), RFC 3246 (EF), RFC 5865 (VA), RFC 8622 (LE).
fn class(dscp: u8) -> String {
    match dscp {
        0 => "default".to_owned(),
        1 => "LE".to_owned(),
        44 => "VA".to_owned(),
        46 => "EF".to_owned(),
        n if n % 8 == 0 => format!("CS{}", n / 8),
        n if n % 2 == 0 && (1..=4).contains(&(n / 8)) && (1..=3).contains(&(n % 8 / 2)) => {
            format!("AF{}{}", n / 8, n % 8 / 2)
        }
        n => format!("dscp-{n}"),
    }
}

fn delay(histogram: &Histogram<u64>) -> Delay {
    let count = histogram.len();
    let some = |ns: f64| (count > 0).then_some(ns / 1e9);
    let at = |quantile: f64| some(to_f64(histogram.value_at_quantile(quantile)));
    // A histogram tells the upper end of the bucket that holds a value; its largest value is no larger than that.
    let (p50, p99, p999) = (at(0.5), at(0.99), at(0.999));
    Delay { mean: some(histogram.mean()), p50, p99, p999, max: some(to_f64(histogram.max())), count }
}

/// The distribution of `times`, exact: percentiles by nearest rank.
fn round_trip(times: impl Iterator<Item = Duration>) -> RoundTrip {
    let mut times: Vec<Duration> = times.collect();
    times.sort_unstable();
    let (Some(min), Some(max)) = (times.first().copied(), times.last().copied()) else { return RoundTrip::default() };
    let rank = |thousandths| rank(&times, thousandths).as_secs_f64();
    let p999 = rank(999);
    RoundTrip {
        min: Some(min.as_secs_f64()),
        mean: Some(mean_s(&times)),
        p50: Some(rank(500)),
        p99: Some(rank(990)),
        p999: Some(p999),
        max: Some(max.as_secs_f64()),
        jitter: Some(p999 - min.as_secs_f64()),
    }
}

/// What the users of each web traffic met.
fn pages(network: &Network, outcome: &Outcome) -> Vec<Pages> {
    let web = network.traffic.iter().enumerate().filter(|(_, traffic)| matches!(traffic.source, Source::Web(_)));
    web.map(|(index, traffic)| {
        let users = || outcome.browsing.iter().filter(|browsing| browsing.traffic == index);
        let mut times: Vec<Duration> = users().flat_map(|user| user.responses.iter().copied()).collect();
        times.sort_unstable();
        Pages {
            name: traffic.name.clone(),
            users: traffic.count.into(),
            pages: users().map(|user| user.pages).sum(),
            complete: times.len() as u64,
            objects: users().map(|user| user.objects).sum(),
            response_s: page_response(&times),
        }
    })
    .collect()
}

fn page_response(times: &[Duration]) -> PageResponse {
    let Some(max) = times.last() else { return PageResponse::default() };
    PageResponse {
        mean: Some(mean_s(times)),
        p50: Some(rank(times, 500).as_secs_f64()),
        p95: Some(rank(times, 950).as_secs_f64()),
        p99: Some(rank(times, 990).as_secs_f64()),
        max: Some(max.as_secs_f64()),
    }
}

/// The smallest of `sorted` times that has this many thousandths of all at or below it.
fn rank(sorted: &[Duration], thousandths: usize) -> Duration {
    sorted[(sorted.len() * thousandths).div_ceil(1_000).max(1) - 1]
}

#[expect(clippy::cast_precision_loss, reason = "statistics only")]
fn mean_s(times: &[Duration]) -> f64 {
    let sum: u128 = times.iter().map(|time| u128::from(time.as_ps())).sum();
    sum as f64 / times.len() as f64 / 1e12
}

/// Jain's index for the TCP flows of each direction that has at least two, web users apart (Jain, Chiu, Hawe 1984).
fn fairness(flows: &[Flow]) -> Vec<Fairness> {
    let mut directions: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    // A web user gets what is asked for, which is another with each page.
    for flow in flows.iter().filter(|flow| flow.tcp.is_some() && &*flow.kind != "web") {
        directions.entry(&flow.direction).or_default().push(flow.goodput_bps);
    }
    let shared = directions.into_iter().filter(|(_, rates)| rates.len() >= 2);
    let index = shared.filter_map(|(direction, rates)| {
        let jain_index = lastmile_theory::fairness::jain(rates.iter().copied())?;
        Some(Fairness { direction: direction.to_owned(), flows: rates.len() as u64, jain_index })
    });
    index.collect()
}

/// What the table of conservation calls packets that lost a cell; the rows of virtual channels tell why.
pub(crate) const LOST_CELLS: &str = "lost_cells";

fn conservation(outcome: &Outcome) -> Conservation {
    let held = &outcome.conservation;
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
        sent: held.sent.bytes,
        created: held.created.bytes,
        delivered: held.delivered.bytes,
        dropped: held.dropped.bytes,
        queued: held.queued.bytes,
        in_flight: held.in_flight.bytes,
        packets: ConservedPackets {
            sent: held.sent.packets,
            created: held.created.packets,
            delivered: held.delivered.packets,
            dropped: held.dropped.packets,
            queued: held.queued.packets,
            in_flight: held.in_flight.packets,
        },
        dropped_by_reason,
        holds: held.holds(),
    }
}

#[cfg(test)]
mod tests;

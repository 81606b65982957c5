//! The outcome of a lab run in the schema of every run, and the part that only real hosts have.

use lastmile_live::bump::HopGlance;
use lastmile_model::outcome::{self as sim, FlowOutcome, ProbeOutcome, Snapshot, TcpOutcome, Waits};
use lastmile_model::{Network, Source};
use lastmile_results::schema::{Clock, Summary};
use lastmile_results::{Origin, Run, Series, summarise};
use lastmile_sim::sources::UserOutcome;
use lastmile_units::{Duration, Instant};
use serde::Serialize;

use crate::line;
use crate::outcome as lab;
use crate::plan::Plan;

/// A live run in the schema of every run, and its live part.
pub struct Measured {
    /// The run, in the schema of every run.
    pub run: Run,
    /// The part that only real hosts have.
    pub live: Live,
}

impl Measured {
    /// Summary and live part, as one document.
    #[must_use]
    pub fn document(&self) -> Document<'_> {
        Document { summary: &self.run.summary, live: &self.live }
    }
}

/// The summary of a live run, and the part that only real hosts have.
#[derive(Serialize)]
pub struct Document<'a> {
    #[serde(flatten)]
    summary: &'a Summary,
    live: &'a Live,
}

/// The part that only real hosts have.
#[derive(Serialize)]
pub struct Live {
    /// Release of the kernel whose TCP it was.
    pub kernel: Option<String>,
    /// Emulator and generator ran before every ordinary process.
    pub realtime: bool,
    /// The longest delay of the generator in sending a datagram or a request.
    pub generator_late_max_s: f64,
    /// Every transfer.
    pub transfers: Vec<Transfer>,
    /// Packets missing from captures, since they came faster than they could be written; `null` without captures.
    pub capture_missed_packets: Option<u64>,
    /// Keys that the kernel treats differently.
    pub warnings: Vec<String>,
    /// The emulated line.
    #[serde(flatten)]
    pub line: line::Live,
}

/// The kernel's settings of a transfer.
#[derive(Serialize)]
pub struct Transfer {
    /// Name of the flow.
    pub name: String,
    /// The congestion control that the sender really had.
    pub congestion: String,
    /// Payload of the segments that it really sent.
    pub payload_bytes: u32,
    /// The largest window that the receiver advertised.
    pub window_bytes: u32,
    /// Why it ended early.
    pub failure: Option<String>,
}

impl Live {
    fn new(plan: &Plan<'_>, outcome: &lab::Outcome) -> Self {
        let rows = plan.rows().zip(&outcome.flows);
        let transfers = rows.filter_map(|((_, name), flow)| {
            let tcp = flow.tcp.as_ref()?;
            Some(Transfer {
                name,
                congestion: tcp.congestion.clone(),
                payload_bytes: tcp.payload,
                window_bytes: tcp.peer_window,
                failure: flow.failure.clone(),
            })
        });
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").ok();
        Self {
            kernel: release.map(|release| release.trim().to_owned()),
            realtime: outcome.realtime,
            generator_late_max_s: outcome.generator_late.as_secs_f64(),
            transfers: transfers.collect(),
            capture_missed_packets: None,
            warnings: plan.warnings().map(str::to_owned).chain(outcome.refused.iter().cloned()).collect(),
            line: line::Live::new(&outcome.line),
        }
    }
}

/// The outcome of a run, under this label.
#[must_use]
pub fn measured(origin: &Origin, plan: &Plan<'_>, outcome: &lab::Outcome, label: String) -> Measured {
    let network = plan.network();
    let run = as_simulated(plan, outcome);
    let mut summary = summarise(origin, network, &run);
    summary.run.clock = Clock::Monotonic;
    // The kernel does not report its fast retransmits, and an old one does not report its timeouts.
    for (flow, live) in summary.flows.iter_mut().zip(transfers_and_datagrams(plan, outcome)) {
        flow.transport.fast_retransmits = None;
        if let Some(tcp) = live.tcp.as_ref().filter(|tcp| !tcp.congestion.is_empty()) {
            flow.setup.tcp = Some(tcp.congestion.as_str().into());
        }
        flow.transport.timeouts = live.tcp.as_ref().and_then(|tcp| tcp.last.timeouts);
    }
    let series = run.series.iter().map(Series::from).collect();
    Measured { run: Run { label, own: Vec::new(), summary, series }, live: Live::new(plan, outcome) }
}

fn is_ping(plan: &Plan<'_>, traffic: usize) -> bool {
    matches!(plan.network().traffic[traffic].source, Source::Ping { .. })
}

/// The flows that have a row of their own.
fn transfers_and_datagrams<'a>(plan: &Plan<'_>, outcome: &'a lab::Outcome) -> Vec<&'a lab::FlowOutcome> {
    let rows = plan.rows().zip(&outcome.flows).filter(|((traffic, _), _)| !is_ping(plan, *traffic));
    rows.map(|(_, flow)| flow).collect()
}

/// As the simulator would have left it.
#[must_use]
pub fn as_simulated(plan: &Plan<'_>, outcome: &lab::Outcome) -> sim::Outcome {
    let network = plan.network();
    let emulated = &outcome.line;
    let (mut flows, mut probes, mut applications) = (Vec::new(), Vec::new(), sim::Applications::default());
    for (number, ((traffic, name), flow)) in plan.rows().zip(&outcome.flows).enumerate() {
        if is_ping(plan, traffic) {
            let (sent, received, replies) = (flow.packets_sent, flow.packets_received, flow.replies.clone());
            let start = plan.start(number);
            probes.push(ProbeOutcome { traffic, name, start, sent, received, dropped: None, replies });
        } else {
            if let Some(user) = flow.user.clone() {
                user.add_to(&mut applications);
            }
            flows.push(row(plan, number, (traffic, name), flow));
        }
    }
    let mut series = link_series(plan, outcome);
    series.extend(flow_series(plan, outcome));
    series.extend(probes.iter().map(|probe| sim::Series {
        name: "rtt_s",
        entity: probe.name.clone(),
        points: probe.replies.iter().map(|(left, took)| (*left, took.as_secs_f64())).collect(),
    }));
    series.retain(|series| !series.points.is_empty() && network.record.interval.is_some());
    sim::Outcome {
        duration: network.duration,
        events: None,
        flows,
        links: line::links(emulated, network, network.duration),
        probes,
        applications,
        snapshots: snapshots(&outcome.samples, &outcome.glances, first_start(network)),
        series,
        conservation: line::conservation(emulated),
        atm: None,
        losses: Vec::new(),
        datagram_delays_ns: datagram_delays_ns(plan, outcome),
    }
}

/// The delays of all datagrams of each traffic.
fn datagram_delays_ns(plan: &Plan<'_>, outcome: &lab::Outcome) -> Vec<Option<Box<sim::Buckets>>> {
    let mut all: Vec<Option<Box<sim::Buckets>>> = vec![None; plan.network().traffic.len()];
    for ((traffic, _), flow) in plan.rows().zip(&outcome.flows) {
        let Some(own) = flow.stream.as_ref().and_then(|stream| stream.reception.distribution.as_deref()) else {
            continue;
        };
        match &mut all[traffic] {
            Some(sum) => sum.add(own),
            none => *none = Some(Box::new(own.clone())),
        }
    }
    all
}

/// The end of a backup whose files were all copied.
fn end_of_backup(flow: &lab::FlowOutcome, start: Instant) -> Option<Instant> {
    match &flow.user {
        Some(UserOutcome::Backup(backup)) => Some(start + backup.end?),
        _ => None,
    }
}

fn row(plan: &Plan<'_>, number: usize, (traffic, name): (usize, String), flow: &lab::FlowOutcome) -> FlowOutcome {
    let [data, acks] = plan.paths(number);
    let tcp = flow.tcp.as_ref().map(|tcp| TcpOutcome {
        retransmissions: tcp.last.retransmissions,
        timeouts: tcp.last.timeouts.unwrap_or(0),
        fast_retransmits: 0,
        acks_sent: tcp.acks_sent,
        acks_received: tcp.acks_received,
        limited: tcp.last.limited,
        srtt: tcp.last.srtt,
        max_in_flight: tcp.max_in_flight,
        closed: false,
    });
    let start = plan.start(number);
    FlowOutcome {
        traffic,
        name,
        start,
        end: flow.end.or_else(|| end_of_backup(flow, start)),
        bytes_delivered: flow.bytes_delivered,
        deliveries: flow.deliveries,
        data_path: data.into(),
        ack_path: if tcp.is_some() { acks.into() } else { Vec::new().into() },
        data_packets: flow.packets_sent,
        data_packets_received: flow.packets_received,
        tcp,
        connections: flow.connections,
        data_packets_lost: flow.stream.as_ref().map(|stream| stream.lost),
        data_delays: flow.stream.as_ref().map(|stream| stream.reception.clone()),
        ack_delays: None,
    }
}

/// The number of the first glance that was taken after `at`.
fn glance_after(glances: &[lab::Glance], at: Instant) -> usize {
    let number = glances.partition_point(|glance| glance.at < at);
    number.min(glances.len().saturating_sub(1))
}

/// Waits in the queue of `hop` over these glances.
fn waits(glances: &[lab::Glance], hop: usize, of: fn(&HopGlance) -> Waits) -> Waits {
    let mut sum = Waits::default();
    for waited in glances.iter().filter_map(|glance| glance.hops.get(hop)).map(of) {
        sum.join(&waited);
    }
    sum
}

/// The time at which the first traffic starts, where phases begin under both clocks.
fn first_start(network: &Network) -> Instant {
    network.traffic.iter().map(|traffic| traffic.start).min().unwrap_or_default()
}

/// Where everything stood when the offered traffic changed, `from` this time on.
fn snapshots(samples: &[lab::Sample], glances: &[lab::Glance], from: Instant) -> Vec<Snapshot> {
    let mut snapshots = Vec::new();
    let mut seen = 0;
    let cuts = samples.iter().filter_map(|sample| Some((sample, sample.cut?)));
    for (sample, at) in cuts.filter(|(_, at)| *at >= from) {
        let number = glance_after(glances, sample.at);
        let Some(glance) = glances.get(number) else { continue };
        let since = &glances[seen.min(number + 1)..=number];
        seen = number + 1;
        let hops = || 0..glance.hops.len();
        let tcp = || sample.flows.iter().map(|flow| flow.tcp.as_ref());
        snapshots.push(Snapshot {
            at,
            bytes_delivered: sample.flows.iter().map(|flow| flow.bytes_delivered).collect(),
            wire_bits: glance.hops.iter().map(|hop| hop.wire_bits).collect(),
            limited: tcp().map(|tcp| tcp.map(|sample| sample.limited)).collect(),
            round_trips: vec![None; sample.flows.len()],
            streams: vec![None; sample.flows.len()],
            receive_window: vec![None; sample.flows.len()],
            retransmissions: tcp().map(|tcp| tcp.map_or(0, |tcp| tcp.retransmissions)).collect(),
            mark_reductions: vec![0; sample.flows.len()],
            queue_delay: hops().map(|hop| waits(since, hop, |glance| glance.waited)).collect(),
            ack_queue_delay: hops().map(|hop| waits(since, hop, |glance| glance.acks_waited)).collect(),
            losses: Vec::new(),
        });
    }
    snapshots
}

/// The points of one series for each of several things.
fn series(name: &'static str, entity: &str, points: Vec<(Instant, f64)>) -> sim::Series {
    sim::Series { name, entity: entity.to_owned(), points }
}

/// Series of queues and wires, a point for each regular sample.
#[expect(clippy::cast_precision_loss, reason = "statistics only")]
fn link_series(plan: &Plan<'_>, outcome: &lab::Outcome) -> Vec<sim::Series> {
    let regular = outcome.samples.iter().filter(|sample| sample.cut.is_none());
    let mut numbers: Vec<usize> = regular.map(|sample| glance_after(&outcome.glances, sample.at)).collect();
    numbers.dedup();
    let mut all = Vec::new();
    for (hop, link) in plan.network().links.iter().enumerate() {
        let mut points: [Vec<(Instant, f64)>; 5] = Default::default();
        let (mut seen, mut last) = (0, (Instant::ZERO, 0));
        for number in &numbers {
            let Some(glance) = outcome.glances.get(*number) else { continue };
            let Some(here) = glance.hops.get(hop) else { continue };
            let waited = waits(&outcome.glances[seen..=*number], hop, |glance| glance.waited);
            seen = number + 1;
            let [packets, bytes, delay, shaper, rate] = &mut points;
            packets.push((glance.at, here.queued.packets.as_u64() as f64));
            bytes.push((glance.at, here.queued.bytes.as_u64() as f64));
            delay.extend(waited.mean_s().map(|mean| (glance.at, mean)));
            shaper.extend(here.shaper_rate.map(|rate| (glance.at, rate.as_bps() as f64)));
            rate.extend(per_second(here.wire_bits - last.1, glance.at.since(last.0)).map(|bps| (glance.at, bps)));
            last = (glance.at, here.wire_bits);
        }
        let names = ["queue_packets", "queue_bytes", "queue_delay_s", "shaper_rate_bps", "wire_rate_bps"];
        all.extend(names.into_iter().zip(points).map(|(name, points)| series(name, &link.hop.name, points)));
    }
    all
}

/// Series of flows, a point for each regular sample.
#[expect(clippy::cast_precision_loss, reason = "statistics only")]
fn flow_series(plan: &Plan<'_>, outcome: &lab::Outcome) -> Vec<sim::Series> {
    let regular: Vec<&lab::Sample> = outcome.samples.iter().filter(|sample| sample.cut.is_none()).collect();
    let mut all = Vec::new();
    for (number, (traffic, name)) in plan.rows().enumerate() {
        if is_ping(plan, traffic) {
            continue;
        }
        let mut goodput = Vec::new();
        let mut last = (Instant::ZERO, 0);
        for sample in &regular {
            let bytes = sample.flows[number].bytes_delivered;
            goodput.extend(per_second((bytes - last.1) * 8, sample.at.since(last.0)).map(|bps| (sample.at, bps)));
            last = (sample.at, bytes);
        }
        all.push(series("goodput_bps", &name, goodput));
        let stream = |of: fn(&lab::FlowSample) -> Option<f64>| -> Vec<(Instant, f64)> {
            regular.iter().filter_map(|sample| Some((sample.at, of(&sample.flows[number])?))).collect()
        };
        all.push(series("one_way_delay_s", &name, stream(|flow| flow.delay_mean_s)));
        all.push(series("jitter_s", &name, stream(|flow| flow.jitter_s)));
        let tcp = |of: fn(&lab::TcpSample) -> Option<f64>| -> Vec<(Instant, f64)> {
            let points = regular.iter().filter_map(|sample| {
                // Before it is connected there is nothing to report.
                let tcp = sample.flows[number].tcp.as_ref().filter(|tcp| tcp.cwnd_bytes > 0)?;
                Some((sample.at, of(tcp)?))
            });
            points.collect()
        };
        all.extend([
            series("cwnd_bytes", &name, tcp(|tcp| Some(tcp.cwnd_bytes as f64))),
            series("ssthresh_bytes", &name, tcp(|tcp| tcp.ssthresh_bytes.map(|bytes| bytes as f64))),
            series("in_flight_bytes", &name, tcp(|tcp| Some(tcp.in_flight_bytes as f64))),
            series("acked_bytes", &name, tcp(|tcp| Some(tcp.acked_bytes as f64))),
            series("srtt_s", &name, tcp(|tcp| tcp.srtt.map(Duration::as_secs_f64))),
        ]);
    }
    all
}

/// `None` over no time.
#[expect(clippy::cast_precision_loss, reason = "statistics only")]
fn per_second(bits: u64, span: Duration) -> Option<f64> {
    (!span.is_zero()).then(|| bits as f64 / span.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use lastmile_queueing::Backlog;

    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_ms(ms)
    }

    /// A glance at one hop that has carried `wire_bits`, and one packet since the glance before, which had waited for
    /// `waited_ns`.
    fn glance(ms: u64, wire_bits: u64, waited_ns: u64) -> lab::Glance {
        let waited = Waits { packets: 1, sum_ns: waited_ns, max_ns: waited_ns };
        let hop = HopGlance {
            queued: Backlog::default(),
            shaper_rate: None,
            wire_bits,
            dropped_packets: 0,
            waited,
            acks_waited: Waits::default(),
        };
        lab::Glance { at: at(ms), hops: vec![hop] }
    }

    fn sample(ms: u64, cut: Option<u64>, bytes_delivered: u64) -> lab::Sample {
        let flow = lab::FlowSample { bytes_delivered, ..lab::FlowSample::default() };
        lab::Sample { at: at(ms), cut: cut.map(at), flows: vec![flow] }
    }

    /// Cuts at 0 and 1000 ms, both taken a little late, and a regular sample between them; the waits of the glance that
    /// the latter made belong to the cut behind it.
    #[test]
    fn a_snapshot_stands_at_its_planned_time_and_has_all_waits_since_the_one_before() {
        let samples = [sample(1, Some(0), 0), sample(500, None, 70), sample(1002, Some(1000), 150)];
        let glances = [glance(2, 10, 5), glance(501, 600, 20), glance(1003, 1100, 30)];
        let snapshots = snapshots(&samples, &glances, at(0));
        let times: Vec<Instant> = snapshots.iter().map(|snapshot| snapshot.at).collect();
        assert_eq!(times, [at(0), at(1000)]);
        assert_eq!(snapshots[0].queue_delay, [Waits { packets: 1, sum_ns: 5, max_ns: 5 }]);
        assert_eq!(snapshots[1].queue_delay, [Waits { packets: 2, sum_ns: 50, max_ns: 30 }]);
        assert_eq!((snapshots[1].wire_bits[0], snapshots[1].bytes_delivered[0]), (1100, 150));
    }

    /// The simulator has no phase before the first traffic.
    #[test]
    fn snapshots_begin_with_the_first_traffic() {
        let samples = [sample(1, Some(0), 0), sample(1002, Some(1000), 0), sample(3001, Some(3000), 70)];
        let glances = [glance(2, 0, 0), glance(1003, 0, 0), glance(3002, 600, 20)];
        let times: Vec<_> = snapshots(&samples, &glances, at(1000)).into_iter().map(|snapshot| snapshot.at).collect();
        assert_eq!(times, [at(1000), at(3000)]);
    }

    #[test]
    fn two_cuts_that_one_glance_answers_do_not_count_its_waits_twice() {
        let samples = [sample(0, Some(0), 0), sample(1, Some(1), 0)];
        let snapshots = snapshots(&samples, &[glance(2, 10, 5)], at(0));
        let packets: Vec<u64> = snapshots.iter().map(|snapshot| snapshot.queue_delay[0].packets).collect();
        assert_eq!(packets, [1, 0]);
    }
}

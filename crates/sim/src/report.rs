//! From the state at the end of a run to what is told of it.

use std::sync::Arc;

use hdrhistogram::Histogram;
use lastmile_queueing::spec::Spec;
use lastmile_units::Instant;

use crate::engine::Wheel;
use crate::flow::Place;
use crate::host::{Datagrams, Ping, Replay, Totals, Transfer};
use crate::net::LinkState;
use crate::route::PathId;
use crate::simulation::{Hosts, Simulation};
use lastmile_model::Link;
use lastmile_model::outcome::{
    BrowsingOutcome, FlowOutcome, LinkOutcome, Loss, Outcome, ProbeOutcome, Series, Snapshot, TcpOutcome,
};

/// What came of a run.
pub(crate) fn outcome(mut simulation: Simulation<'_>) -> Outcome {
    let conservation = simulation.net.conservation();
    simulation.close_books();
    // Queues, wires and the pending set go first, and each transfer as its row is made: of very many flows the rows below
    // take half as much again.
    simulation.net.pending = Wheel::new();
    let mut links: Vec<LinkOutcome> =
        links_of(&simulation.network.links, std::mem::take(&mut simulation.net.links), simulation.now);
    let cells = simulation.net.cells.take();
    for (index, bits) in cells.iter().flat_map(|cells| cells.bits_sent()) {
        links[index].wire_bits = bits;
    }
    for (index, sent) in cells.iter().flat_map(|cells| cells.sent()) {
        links[index].cells = Some(sent);
    }
    let losses = std::mem::take(&mut simulation.net.losses).into_all();
    let flows = flows(&mut simulation, &losses);
    let traffics = 0..simulation.network.traffic.len();
    let datagram_delays_ns = traffics.map(|traffic| simulation.net.tracks.take_distribution(traffic)).collect();
    let mut series = simulation.sampler.take().map(crate::sample::Sampler::into_series).unwrap_or_default();
    let probes = probes(&mut simulation);
    let browsing = browsing(&mut simulation);
    if simulation.network.record.interval.is_some() {
        series.extend(probes.iter().map(round_trips));
    }
    Outcome {
        duration: simulation.network.duration,
        events: simulation.events,
        flows,
        links,
        probes,
        browsing,
        snapshots: simulation.snapshots,
        series,
        conservation,
        losses,
        datagram_delays_ns,
        atm: cells.map(|cells| cells.outcome()),
    }
}

/// Where everything stands now.
pub(crate) fn snapshot(simulation: &mut Simulation<'_>) -> Snapshot {
    let hosts = &simulation.hosts;
    let now = simulation.now;
    let declared = &simulation.net.flows[..simulation.net.declared];
    let senders = || {
        declared.iter().map(|flow| match flow.place() {
            Place::Transfer(index) => Some(hosts.transfers[index as usize].sender()),
            _ => None,
        })
    };
    let mut snapshot = Snapshot {
        at: now,
        bytes_delivered: declared.iter().map(|flow| hosts.bytes_delivered(flow.place())).collect(),
        wire_bits: simulation.net.links.iter().map(|link| link.line.bits_sent(now)).collect(),
        limited: senders().map(|sender| sender.map(|s| s.limited_by(now))).collect(),
        srtt: senders().map(|sender| sender.and_then(lastmile_tcp::Endpoint::srtt)).collect(),
        retransmissions: senders().map(|sender| sender.map_or(0, |s| s.stats().retransmissions.into())).collect(),
        queue_delay: Vec::with_capacity(simulation.net.links.len()),
        ack_queue_delay: Vec::with_capacity(simulation.net.links.len()),
        losses: simulation.net.losses.take_latest(),
    };
    for (index, bits) in simulation.net.cells.iter().flat_map(|cells| cells.bits_sent()) {
        snapshot.wire_bits[index] = bits;
    }
    for link in &mut simulation.net.links {
        let [all, acks] = std::mem::take(&mut link.monitor.since_snapshot);
        snapshot.queue_delay.push(all);
        snapshot.ack_queue_delay.push(acks);
    }
    snapshot
}

/// The flow that a row is about.
struct Row {
    /// Index of its traffic.
    traffic: usize,
    name: String,
    start: Instant,
}

fn flows(simulation: &mut Simulation<'_>, losses: &[(Loss, u64)]) -> Vec<FlowOutcome> {
    // In the order of the flows, as they were placed, the first at the end: the rows take the place of what is behind it.
    let mut transfers = std::mem::take(&mut simulation.hosts.transfers);
    transfers.reverse();
    let paths = |[there, back]: &[PathId; 2]| {
        [there, back].map(|path| simulation.net.paths.links(*path).iter().map(|link| *link as usize).collect())
    };
    let paths: Vec<[Arc<[usize]>; 2]> = simulation.net.routes.iter().map(paths).collect();
    let mut flows = Vec::new();
    let mut tracks = std::mem::take(&mut simulation.net.tracks);
    let rows = simulation.net.flows.iter().zip(simulation.flow_names()).zip(&simulation.starts).enumerate();
    for (number, ((flow, name), start)) in rows {
        let [there, back] = &paths[flow.traffic as usize];
        let row = Row { traffic: flow.traffic as usize, name, start: *start };
        match flow.place() {
            Place::Transfer(_) => {
                let transfer = transfers.pop().expect("as many transfers as flows of that kind");
                if transfers.len() < transfers.capacity() / 8 * 7 {
                    transfers.shrink_to_fit();
                }
                let paths = [there, back].map(Arc::clone);
                flows.push(transfer_outcome(simulation, &transfer, row, paths));
            }
            Place::Datagrams(index) => {
                let source = &simulation.hosts.datagrams[index as usize];
                flows.push(datagram_outcome(source, row, Arc::clone(there)));
            }
            Place::Web(index) => {
                let session = &simulation.hosts.sessions[index as usize];
                let paths = [there, back].map(Arc::clone);
                flows.push(owner_outcome(&session.totals, row, paths));
            }
            Place::Swarm(index) => {
                let swarm = &simulation.hosts.swarms[index as usize];
                let paths = [there, back].map(Arc::clone);
                flows.push(owner_outcome(&swarm.totals, row, paths));
            }
            Place::Replay(index) => {
                let replay = &simulation.hosts.replays[index as usize];
                flows.push(replay_outcome(replay, row, Arc::clone(there)));
            }
            Place::Ping(_) | Place::Owned(_) | Place::Gone => {}
        }
        if let (Some(row), Place::Transfer(_) | Place::Datagrams(_)) = (flows.last_mut(), flow.place()) {
            let first = losses.partition_point(|(loss, _)| loss.flow < number);
            let own = losses[first..].iter().take_while(|(loss, _)| loss.flow == number);
            let dropped = own.filter(|(loss, _)| !loss.back).map(|(_, count)| count).sum();
            row.data_packets_lost = Some(dropped);
            [row.data_delays, row.ack_delays] = tracks.finish(number, simulation.now, dropped);
        }
    }
    simulation.net.tracks = tracks;
    flows
}

/// A row for what an owner's connections did together.
fn owner_outcome(totals: &Totals, row: Row, [data_path, ack_path]: [Arc<[usize]>; 2]) -> FlowOutcome {
    FlowOutcome {
        traffic: row.traffic,
        name: row.name,
        start: row.start,
        end: None,
        bytes_delivered: totals.bytes,
        first_delivery: totals.first_delivery,
        last_delivery: totals.last_delivery,
        data_path,
        ack_path,
        data_packets: totals.data_packets,
        data_packets_received: totals.data_received,
        tcp: Some(TcpOutcome {
            retransmissions: totals.retransmissions,
            timeouts: totals.timeouts,
            fast_retransmits: totals.fast_retransmits,
            acks_sent: totals.acks_sent,
            acks_received: totals.acks_received,
            limited: totals.limited,
            srtt: None,
            max_in_flight: totals.max_in_flight,
            closed: false,
        }),
        connections: Some((totals.opened, totals.failed)),
        data_packets_lost: None,
        data_delays: None,
        ack_delays: None,
    }
}

fn replay_outcome(replay: &Replay, row: Row, data_path: Arc<[usize]>) -> FlowOutcome {
    FlowOutcome {
        traffic: row.traffic,
        name: row.name,
        start: row.start,
        end: None,
        bytes_delivered: replay.bytes_delivered,
        first_delivery: replay.first_delivery,
        last_delivery: replay.last_delivery,
        data_path,
        ack_path: Arc::default(),
        data_packets: replay.sent(),
        data_packets_received: replay.received,
        tcp: None,
        connections: None,
        data_packets_lost: None,
        data_delays: None,
        ack_delays: None,
    }
}

fn browsing(simulation: &mut Simulation<'_>) -> Vec<BrowsingOutcome> {
    let mut sessions = std::mem::take(&mut simulation.hosts.sessions);
    let mut browsing = Vec::new();
    for (flow, name) in simulation.net.flows.iter().zip(simulation.flow_names()) {
        if let Place::Web(index) = flow.place() {
            let session = &mut sessions[index as usize];
            browsing.push(BrowsingOutcome {
                traffic: session.traffic as usize,
                name,
                pages: session.pages,
                objects: session.objects,
                responses: std::mem::take(&mut session.responses),
            });
        }
    }
    browsing
}

fn transfer_outcome(
    simulation: &Simulation<'_>,
    transfer: &Transfer,
    row: Row,
    [data_path, ack_path]: [Arc<[usize]>; 2],
) -> FlowOutcome {
    let (sender, receiver) = (transfer.sender(), transfer.receiver());
    let stats = sender.stats();
    FlowOutcome {
        traffic: row.traffic,
        name: row.name,
        start: row.start,
        end: transfer.completed(),
        bytes_delivered: transfer.bytes_delivered(),
        first_delivery: transfer.deliveries().map(|(first, _)| first),
        last_delivery: transfer.deliveries().map(|(_, last)| last),
        data_path,
        ack_path,
        data_packets: stats.data_packets,
        data_packets_received: receiver.stats().data_received,
        tcp: Some(TcpOutcome {
            retransmissions: stats.retransmissions.into(),
            timeouts: stats.timeouts.into(),
            fast_retransmits: stats.fast_retransmits.into(),
            acks_sent: receiver.stats().acks_sent,
            acks_received: stats.acks_received,
            limited: sender.limited_by(simulation.now),
            srtt: sender.srtt(),
            max_in_flight: transfer.max_in_flight.into(),
            closed: sender.is_closed() && receiver.is_closed(),
        }),
        connections: None,
        data_packets_lost: None,
        data_delays: None,
        ack_delays: None,
    }
}

fn datagram_outcome(source: &Datagrams, row: Row, data_path: Arc<[usize]>) -> FlowOutcome {
    FlowOutcome {
        traffic: row.traffic,
        name: row.name,
        start: row.start,
        end: None,
        bytes_delivered: source.bytes_delivered,
        first_delivery: source.first_delivery,
        last_delivery: source.last_delivery,
        data_path,
        ack_path: Arc::default(),
        data_packets: source.sent,
        data_packets_received: source.received,
        tcp: None,
        connections: None,
        data_packets_lost: None,
        data_delays: None,
        ack_delays: None,
    }
}

fn probes(simulation: &mut Simulation<'_>) -> Vec<ProbeOutcome> {
    let mut pings = std::mem::take(&mut simulation.hosts.pings);
    let mut probes = Vec::new();
    for (flow, name) in simulation.net.flows.iter().zip(simulation.flow_names()) {
        if let Place::Ping(index) = flow.place() {
            let ping: &mut Ping = &mut pings[index as usize];
            let replies = std::mem::take(&mut ping.replies);
            probes.push(ProbeOutcome {
                traffic: ping.traffic,
                name,
                start: ping.start,
                sent: ping.sent(),
                received: replies.len() as u64,
                replies,
            });
        }
    }
    probes
}

fn round_trips(probe: &ProbeOutcome) -> Series {
    let points = probe.replies.iter().map(|(left, took)| (*left, took.as_secs_f64())).collect();
    Series { name: "rtt_s", entity: probe.name.clone(), points }
}

/// Waits of the classes that sent something, each under the name of its class.
fn of_classes(queue: &Spec, waits: Vec<Histogram<u64>>) -> Vec<(String, Histogram<u64>)> {
    let waits = (0..).zip(waits).filter(|(_, waits)| !waits.is_empty());
    waits.map(|(class, waits)| (queue.class_name(class).unwrap_or_else(|| class.to_string()), waits)).collect()
}

fn links_of(specs: &[Link], states: Vec<LinkState>, end: Instant) -> Vec<LinkOutcome> {
    specs.iter().zip(states).map(|(spec, state)| link(spec, state, end)).collect()
}

fn link(spec: &Link, state: LinkState, end: Instant) -> LinkOutcome {
    let mut counters = Vec::new();
    state.line.queue().counters(&mut |c| counters.push((c.path.to_owned(), c.kind, c.name, c.value)));
    LinkOutcome {
        stats: state.line.stats().clone(),
        wire_bits: state.line.bits_sent(end),
        cells: state.line.cells().map(lastmile_units::CellCount::as_u64),
        queue_delay_ns: state.monitor.delay_ns,
        ack_queue_delay_ns: state.monitor.ack_delay_ns,
        class_queue_delay_ns: of_classes(&spec.queue, state.monitor.class_delay_ns),
        max_backlog_packets: state.monitor.max_backlog_packets,
        max_backlog_bytes: state.monitor.max_backlog_bytes,
        counters,
    }
}

impl Hosts {
    /// Payload bytes that a flow has handed to its receiving application.
    pub(crate) fn bytes_delivered(&self, place: Place) -> u64 {
        match place {
            Place::Transfer(index) => self.transfers[index as usize].bytes_delivered(),
            Place::Datagrams(index) => self.datagrams[index as usize].bytes_delivered,
            Place::Web(index) => self.sessions[index as usize].totals.bytes,
            Place::Swarm(index) => self.swarms[index as usize].totals.bytes,
            Place::Replay(index) => self.replays[index as usize].bytes_delivered,
            Place::Ping(_) | Place::Owned(_) | Place::Gone => 0,
        }
    }
}

impl Simulation<'_> {
    /// The name of each flow, pings included: that of its traffic, numbered if there are several.
    pub(crate) fn flow_names(&self) -> impl Iterator<Item = String> {
        self.network.traffic.iter().flat_map(|traffic| {
            (1..=traffic.count).map(|member| match traffic.count {
                1 => traffic.name.clone(),
                _ => format!("{}-{member}", traffic.name),
            })
        })
    }
}

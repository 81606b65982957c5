//! The outcome of a run, and snapshots during it.

use std::sync::Arc;

use lastmile_queueing::spec::Spec;
use lastmile_units::Instant;

use super::flow_names;
use crate::engine::Wheel;
use crate::hosts::{DataCounts, Ping, Totals, Transfer};
use crate::network::LinkState;
use crate::network::flow::{FlowEntry, StateIndex};
use crate::network::route::PathId;
use crate::simulation::state::Simulation;
use lastmile_model::Link;
use lastmile_model::outcome::{
    Applications, Buckets, FlowOutcome, GrantsOutcome, LinkOutcome, Loss, Outcome, ProbeOutcome, Series, Snapshot,
    StreamProgress, TcpOutcome,
};

/// The outcome of a run.
pub(crate) fn outcome(mut simulation: Simulation<'_>) -> Outcome {
    let conservation = simulation.net.conservation();
    // The rows of very many flows take half as much memory as their state. So queues, wires and the pending
    // set are freed first, and each transfer as its row is made.
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
    let datagram_delays_ns = traffics.map(|traffic| simulation.net.delays.take_distribution(traffic)).collect();
    let mut series = simulation.sampler.take().map(super::series::Sampler::into_series).unwrap_or_default();
    let probes = probes(&mut simulation, &losses);
    let applications = applications(&mut simulation);
    if simulation.network.record.interval.is_some() {
        series.extend(probes.iter().map(round_trips));
    }
    Outcome {
        duration: simulation.network.duration,
        events: Some(simulation.events),
        flows,
        links,
        probes,
        applications,
        snapshots: simulation.snapshots,
        series,
        conservation,
        losses,
        datagram_delays_ns,
        atm: cells.map(|cells| cells.outcome()),
    }
}

/// A snapshot of all counts.
pub(crate) fn snapshot(simulation: &mut Simulation<'_>) -> Snapshot {
    let hosts = &simulation.hosts;
    let now = simulation.now;
    let declared = &simulation.net.flows[..simulation.net.declared];
    let opened = simulation.opened();
    let transfer = |flow: &FlowEntry| match flow.state() {
        StateIndex::Transfer(index) => Some(&hosts.transfers[index as usize]),
        _ => None,
    };
    let sender = |flow: &FlowEntry| transfer(flow).map(Transfer::sender);
    let counts = || {
        declared.iter().zip(&opened).map(|(flow, opened)| match transfer(flow) {
            Some(transfer) => Some((transfer.limited_by(now), transfer.sender().counts().retransmissions)),
            None => *opened,
        })
    };
    let mut snapshot = Snapshot {
        at: now,
        bytes_delivered: declared.iter().map(|flow| hosts.bytes_delivered(flow.state())).collect(),
        wire_bits: simulation.net.links.iter().map(|link| link.line.bits_sent(now)).collect(),
        limited: counts().map(|counts| Some(counts?.0)).collect(),
        round_trips: declared.iter().map(|flow| Some(sender(flow)?.round_trips(now))).collect(),
        streams: declared.iter().map(|flow| transfer(flow).map(stream)).collect(),
        receive_window: declared.iter().map(|flow| sender(flow)?.peer_window()).collect(),
        retransmissions: counts().map(|counts| counts.map_or(0, |(_, retransmissions)| retransmissions)).collect(),
        mark_reductions: declared
            .iter()
            .map(|flow| sender(flow).map_or(0, |sender| sender.counts().mark_reductions))
            .collect(),
        queue_delay: Vec::with_capacity(simulation.net.links.len()),
        ack_queue_delay: Vec::with_capacity(simulation.net.links.len()),
        losses: simulation.net.losses.take_latest(),
    };
    for (index, bits) in simulation.net.cells.iter().flat_map(|cells| cells.bits_sent()) {
        snapshot.wire_bits[index] = bits;
    }
    for link in &mut simulation.net.links {
        let acks = std::mem::take(&mut link.monitor.acks.since_snapshot);
        let mut all = std::mem::take(&mut link.monitor.others.since_snapshot);
        all.join(&acks);
        snapshot.queue_delay.push(all);
        snapshot.ack_queue_delay.push(acks);
    }
    snapshot
}

/// The progress of a transfer's data.
fn stream(transfer: &Transfer) -> StreamProgress {
    let (sent, acked) = transfer.sender().sent_and_acked();
    StreamProgress { sent, acked, arrived: transfer.receiver().arrived() }
}

/// The identity of a flow in its row.
struct Row {
    /// Index of its traffic.
    traffic: usize,
    name: String,
    start: Instant,
}

fn flows(simulation: &mut Simulation<'_>, losses: &[(Loss, u64)]) -> Vec<FlowOutcome> {
    // Transfers are in the order of the flows. Reversed, they are popped one by one, and the list shrinks.
    let mut transfers = std::mem::take(&mut simulation.hosts.transfers);
    transfers.reverse();
    let paths = |[there, back]: &[PathId; 2]| {
        [there, back].map(|path| simulation.net.paths.links(*path).iter().map(|link| *link as usize).collect())
    };
    let paths: Vec<[Arc<[usize]>; 2]> = simulation.net.routes.iter().map(paths).collect();
    let mut flows = Vec::new();
    let mut delays = std::mem::take(&mut simulation.net.delays);
    let rows = simulation.net.flows.iter().zip(flow_names(simulation.network)).zip(&simulation.starts).enumerate();
    for (number, ((flow, name), start)) in rows {
        let [there, back] = &paths[flow.traffic as usize];
        let row = Row { traffic: flow.traffic as usize, name, start: *start };
        match flow.state() {
            StateIndex::Transfer(_) => {
                let transfer = transfers.pop().expect("as many transfers as flows of that kind");
                if transfers.len() < transfers.capacity() / 8 * 7 {
                    transfers.shrink_to_fit();
                }
                let paths = [there, back].map(Arc::clone);
                flows.push(transfer_outcome(simulation.now, &transfer, row, paths));
            }
            StateIndex::Datagrams(index) => {
                let counts = &simulation.hosts.datagrams[index as usize].counts;
                flows.push(datagram_outcome(counts, row, Arc::clone(there)));
            }
            StateIndex::Client(index) => {
                let client = &simulation.hosts.clients[index as usize];
                let paths = [there, back].map(Arc::clone);
                flows.push(FlowOutcome { end: client.user.end(), ..opened_outcome(&client.totals, row, paths) });
            }
            StateIndex::Swarm(index) => {
                let swarm = &simulation.hosts.swarms[index as usize];
                let paths = [there, back].map(Arc::clone);
                flows.push(opened_outcome(&swarm.totals, row, paths));
            }
            StateIndex::Dialogue(index) => {
                let counts = simulation.hosts.dialogues[index as usize].counts();
                flows.push(datagram_outcome(counts, row, Arc::clone(there)));
            }
            StateIndex::Replay(index) => {
                let counts = &simulation.hosts.replays[index as usize].counts;
                flows.push(datagram_outcome(counts, row, Arc::clone(there)));
            }
            StateIndex::Ping(_) | StateIndex::Autorate(_) | StateIndex::Opened(_) | StateIndex::Closed => {}
        }
        if let (Some(row), StateIndex::Transfer(_) | StateIndex::Datagrams(_) | StateIndex::Dialogue(_)) =
            (flows.last_mut(), flow.state())
        {
            let first = losses.partition_point(|(loss, _)| loss.flow < number);
            let own = losses[first..].iter().take_while(|(loss, _)| loss.flow == number);
            let dropped: u64 = own.filter(|(loss, _)| !loss.back).map(|(_, count)| count).sum();
            // Of a datagram, the one of two copies that was dropped is no loss.
            let missing = row.data_packets - row.data_packets_received.min(row.data_packets);
            let dropped = if row.tcp.is_none() { dropped.min(missing) } else { dropped };
            row.data_packets_lost = Some(dropped);
            [row.data_delays, row.ack_delays] = delays.finish(number, simulation.now, dropped);
        }
    }
    simulation.net.delays = delays;
    flows
}

/// A row without counts.
fn empty_outcome(row: Row, data_path: Arc<[usize]>, ack_path: Arc<[usize]>) -> FlowOutcome {
    FlowOutcome {
        traffic: row.traffic,
        name: row.name,
        start: row.start,
        end: None,
        bytes_delivered: 0,
        deliveries: None,
        data_path,
        ack_path,
        data_packets: 0,
        data_packets_received: 0,
        tcp: None,
        connections: None,
        data_packets_lost: None,
        data_delays: None,
        ack_delays: None,
    }
}

/// A row of all connections that a web user or swarm opened.
fn opened_outcome(totals: &Totals, row: Row, [data_path, ack_path]: [Arc<[usize]>; 2]) -> FlowOutcome {
    FlowOutcome {
        bytes_delivered: totals.bytes,
        deliveries: totals.deliveries,
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
        ..empty_outcome(row, data_path, ack_path)
    }
}

/// A row of datagrams.
fn datagram_outcome(counts: &DataCounts, row: Row, data_path: Arc<[usize]>) -> FlowOutcome {
    FlowOutcome {
        bytes_delivered: counts.bytes_delivered,
        deliveries: counts.deliveries,
        data_packets: counts.sent,
        data_packets_received: counts.received,
        ..empty_outcome(row, data_path, Arc::default())
    }
}

fn applications(simulation: &mut Simulation<'_>) -> Applications {
    let now = simulation.now;
    // Applications are in the order of their flows.
    let mut clients = std::mem::take(&mut simulation.hosts.clients).into_iter();
    let mut dialogues = std::mem::take(&mut simulation.hosts.dialogues).into_iter();
    let mut all = Applications::default();
    let rows = simulation.net.flows.iter().zip(flow_names(simulation.network)).zip(&simulation.starts);
    for ((flow, name), start) in rows {
        let user = match flow.state() {
            StateIndex::Client(_) => {
                clients.next().map(|client| client.user.outcome(now, client.traffic as usize, name))
            }
            StateIndex::Dialogue(_) => dialogues.next().map(|dialogue| {
                let stop = simulation.network.traffic[dialogue.traffic()].stop.unwrap_or(now).min(now);
                dialogue.outcome(now, name, stop.since(*start))
            }),
            _ => continue,
        };
        user.expect("as many applications as flows of that kind").add_to(&mut all);
    }
    all
}

fn transfer_outcome(
    now: Instant,
    transfer: &Transfer,
    row: Row,
    [data_path, ack_path]: [Arc<[usize]>; 2],
) -> FlowOutcome {
    let (sender, receiver) = (transfer.sender(), transfer.receiver());
    let (stats, received) = (sender.counts(), receiver.counts());
    FlowOutcome {
        end: transfer.completed(),
        bytes_delivered: transfer.bytes_delivered(),
        deliveries: transfer.deliveries(),
        data_packets: stats.data_packets,
        data_packets_received: received.data_received,
        tcp: Some(TcpOutcome {
            retransmissions: stats.retransmissions,
            timeouts: stats.timeouts,
            fast_retransmits: stats.fast_retransmits,
            acks_sent: received.acks_sent,
            acks_received: stats.acks_received,
            limited: transfer.limited_by(now),
            srtt: sender.srtt(),
            max_in_flight: transfer.max_in_flight.into(),
            closed: sender.is_closed() && receiver.is_closed(),
        }),
        ..empty_outcome(row, data_path, ack_path)
    }
}

fn probes(simulation: &mut Simulation<'_>, losses: &[(Loss, u64)]) -> Vec<ProbeOutcome> {
    let mut pings = std::mem::take(&mut simulation.hosts.pings);
    let mut probes = Vec::new();
    for (number, (flow, name)) in simulation.net.flows.iter().zip(flow_names(simulation.network)).enumerate() {
        let of_flow = || losses.iter().filter(|(loss, _)| loss.flow == number);
        if let StateIndex::Ping(index) = flow.state() {
            let ping: &mut Ping = &mut pings[index as usize];
            let replies = std::mem::take(&mut ping.replies);
            probes.push(ProbeOutcome {
                traffic: ping.traffic,
                name,
                start: ping.start,
                sent: ping.sent(),
                received: replies.len() as u64,
                dropped: Some(of_flow().map(|(_, count)| count).sum()),
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

/// Queueing delays by name of the class, of the classes that sent.
fn of_classes(queue: &Spec, waits: Vec<Buckets>) -> Vec<(String, Buckets)> {
    let waits = (0..).zip(waits).filter(|(_, waits)| !waits.is_empty());
    waits.map(|(class, waits)| (queue.class_name(class).unwrap_or_else(|| class.to_string()), waits)).collect()
}

fn links_of(specs: &[Link], states: Vec<LinkState>, end: Instant) -> Vec<LinkOutcome> {
    specs.iter().zip(states).map(|(spec, state)| link(spec, state, end)).collect()
}

fn link(spec: &Link, state: LinkState, end: Instant) -> LinkOutcome {
    let mut counters = Vec::new();
    let mut queue_delay_ns = state.monitor.others.all_ns;
    queue_delay_ns.add(&state.monitor.acks.all_ns);
    state.line.queue().counters(&mut |c| counters.push((c.path.to_owned(), c.kind, c.name, c.value)));
    let grants = state.line.grants();
    LinkOutcome {
        grants: grants.map(|counts| GrantsOutcome { counts: *counts, waited_ns: state.monitor.granted_ns }),
        stats: state.line.stats().clone(),
        wire_bits: state.line.bits_sent(end),
        begun_bits: state.line.begun_bits(),
        cells: state.line.cells().map(lastmile_units::CellCount::as_u64),
        queue_delay_ns,
        ack_queue_delay_ns: state.monitor.acks.all_ns,
        class_queue_delay_ns: of_classes(&spec.hop.queue, state.monitor.class_delay_ns),
        max_backlog_packets: state.monitor.max_backlog_packets,
        max_backlog_bytes: state.monitor.max_backlog_bytes,
        counters,
    }
}

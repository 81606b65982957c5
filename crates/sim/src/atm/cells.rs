//! Links that carry cells. A packet enters as a frame, and departs when [`lastmile_atm::Network`] has all of its cells.
//!
//! One event drives all cells: the network advances to the next time at which a packet may depart. The number
//! of events is thus about that of packets, not of cells. The network never advances beyond the time of the
//! current event, so a packet is never offered in its past. Samples and snapshots advance it to the
//! picosecond before their time: packets offered at that time have the same fate with and without a sample.

use std::collections::BTreeMap;

use lastmile_atm::aal5::Encapsulation;
use lastmile_atm::discard::CellDrop;
use lastmile_atm::{Clp, Departure, Fate, LinkId, Queues, VcId, VcSpec, VpId};
use lastmile_packet::Meta;
use lastmile_queueing::{Count, DropReason};
use lastmile_units::Instant;

use super::ack_hold::{HeldAcks, VcHold};
use super::cell_sources::CellSources;
use super::edges::Edges;
use crate::engine::Handle;
use crate::network::route::LinkIndex;
use lastmile_model::BuildError;
use lastmile_model::outcome::{AtmOutcome, CellDelays, VcOutcome, Waits};
use lastmile_model::{AckHold, Atm, Circuit, Network};

/// The links that carry cells, and the packets on them.
pub(crate) struct Cells {
    network: lastmile_atm::Network,
    /// By traffic, and data or back.
    circuits: Vec<[Vec<CircuitState>; 2]>,
    /// By VC: its far end.
    far_ends: Vec<FarEnd>,
    /// The links, with their index in the simulated network.
    links: Vec<(LinkId, usize)>,
    /// The links with a limited queue: series are recorded of them.
    bounded: Vec<(LinkId, usize)>,
    edges: Edges,
    held: HeldAcks,
    frames: Frames,
    sources: CellSources,
    /// By VC: its encapsulation.
    encapsulations: Vec<Encapsulation>,
    vcs: Vec<(VcId, VcCount)>,
    vps: Vec<VpId>,
    /// The pending event of the cells.
    pub(crate) wake: Option<Handle>,
    /// Departures that are not yet handled.
    pub(crate) departures: Vec<Departure>,
    pub(crate) dropped: Count,
}

/// The last link of a virtual channel, and the node behind it.
#[derive(Clone, Copy)]
struct FarEnd {
    link: LinkIndex,
    node: usize,
}

/// The virtual channels of a circuit, over which packets of one traffic enter at one link.
struct CircuitState {
    entry: LinkIndex,
    /// The first flow of the traffic.
    first: u32,
    vcs: Vec<VcId>,
    /// By VC; empty without an edge that conditions packets.
    conditioners: Vec<usize>,
    /// The node that holds ACKs for its packets.
    hold: Option<(usize, AckHold)>,
}

/// Counts of a VC beside those of its cells.
#[derive(Clone, Default)]
struct VcCount {
    lost: [u64; CellDrop::ALL.len()],
    on_wire: u64,
    joined: u64,
    too_large: u64,
    policed: u64,
    lost_bytes: u64,
    held: VcHold,
    transit: Waits,
    cell_delays: CellDelays,
}

/// A packet in transit as cells.
#[derive(Clone, Copy)]
struct Frame {
    since: Instant,
    /// The start of the transmission of its last cell at the source.
    last_cell: Option<Instant>,
    packet: Meta,
}

/// All packets in transit as cells.
#[derive(Default)]
struct Frames {
    slots: Vec<Frame>,
    free: Vec<u32>,
    inside: Count,
}

impl Frames {
    fn put(&mut self, since: Instant, packet: Meta) -> u32 {
        self.inside.add(&packet);
        let frame = Frame { since, last_cell: None, packet };
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = frame;
            return slot;
        }
        self.slots.push(frame);
        u32::try_from(self.slots.len() - 1).expect("fewer than 2^32 packets at a time")
    }

    fn take(&mut self, slot: u64) -> Frame {
        let slot = u32::try_from(slot).expect("put() returned it");
        let frame = self.slots[slot as usize];
        self.inside.packets -= 1;
        self.inside.bytes -= u64::from(frame.packet.ip_len);
        self.free.push(slot);
        frame
    }
}

/// A packet that has departed from the links of cells.
pub(crate) enum Departed {
    /// It arrived at the far end of this link.
    Whole(LinkIndex, Meta),
    /// It was lost. The link is the last of its VC.
    Lost(LinkIndex, Meta, DropReason),
}

impl Cells {
    pub(crate) fn new(network: &Network, atm: &Atm) -> Result<Self, BuildError> {
        let cells = lastmile_atm::Network::seeded(&atm.network, network.seed)?;
        let ours = |link: LinkId| u32::try_from(atm.links[link.index()]).expect("the network was checked");
        let far_end = |vc: &VcSpec| {
            let last = *vc.route.last().expect("lastmile_atm::Network checks that a route has links");
            FarEnd { link: ours(last), node: atm.network.links[last.index()].to.index() }
        };
        let far_ends = atm.network.vcs.iter().map(far_end).collect();
        let (mut edges, mut nodes) = (Edges::new(atm), BTreeMap::new());
        let mut first = 0;
        let mut circuits: Vec<[Vec<CircuitState>; 2]> = Vec::new();
        for (index, traffic) in network.traffic.iter().enumerate() {
            let ways = [false, true].map(|back| {
                let own = atm.circuits.iter().filter(|circuit| (circuit.traffic, circuit.back) == (index, back));
                let state = |circuit: &Circuit| CircuitState {
                    entry: ours(atm.network.vcs[circuit.vcs[0].index()].route[0]),
                    first,
                    vcs: circuit.vcs.clone(),
                    conditioners: edges.of(atm, circuit, &mut nodes),
                    hold: circuit.hold.map(|hold| (entry_node(atm, circuit), hold)),
                };
                own.map(state).collect()
            });
            circuits.push(ways);
            first += traffic.count;
        }
        let ends = |link: &lastmile_atm::LinkSpec| {
            let unlimited = matches!(&link.queues, Queues::Fifo(queue) if queue.limit.is_none());
            !unlimited || atm.network.nodes[link.from.index()].shared_memory.is_some()
        };
        let links: Vec<(LinkId, usize)> = atm.network.link_ids().zip(atm.links.iter().copied()).collect();
        let bounded = links.iter().copied().filter(|(link, _)| ends(&atm.network.links[link.index()])).collect();
        Ok(Self {
            network: cells,
            circuits,
            far_ends,
            links,
            bounded,
            edges,
            held: HeldAcks::default(),
            frames: Frames::default(),
            sources: CellSources::new(&atm.network),
            encapsulations: atm.network.vcs.iter().map(|vc| vc.encapsulation).collect(),
            vcs: atm.network.vc_ids().map(|vc| (vc, VcCount::default())).collect(),
            vps: atm.network.vp_ids().collect(),
            wake: None,
            departures: Vec::new(),
            dropped: Count::default(),
        })
    }

    /// A packet enters a link of cells, marked by its edge. `None`: it is a frame now. Otherwise the reason
    /// of its drop.
    pub(crate) fn offer(
        &mut self,
        now: Instant,
        (entry, traffic): (LinkIndex, u32),
        packet: &mut Meta,
    ) -> Option<DropReason> {
        let number = packet.flow.index();
        let ways = &self.circuits[traffic as usize][number as usize % 2];
        let Some(circuit) = ways.iter().find(|circuit| circuit.entry == entry) else {
            self.dropped.add(packet);
            return Some(DropReason::Unreachable);
        };
        let member = (number / 2).wrapping_sub(circuit.first) as usize % circuit.vcs.len();
        let vc = circuit.vcs[member];
        let conditioner = circuit.conditioners.get(member).copied();
        let count = &mut self.vcs[vc.index()].1;
        if conditioner.is_some_and(|conditioner| !self.edges.pass(now, conditioner, vc, packet)) {
            count.policed += 1;
            count.lost_bytes += u64::from(packet.ip_len);
            self.dropped.add(packet);
            return Some(DropReason::Policed);
        }
        let bytes = lastmile_units::ByteCount::new(packet.ip_len.into());
        let clp = if packet.mark.clp() { Clp::One } else { Clp::Zero };
        let slot = self.frames.put(now, *packet);
        if self.network.offer_marked(now, vc, bytes, clp, slot.into()).is_err() {
            self.frames.take(slot.into());
            count.too_large += 1;
            count.lost_bytes += u64::from(packet.ip_len);
            self.dropped.add(packet);
            return Some(DropReason::TooLarge);
        }
        let cells = self.encapsulations[vc.index()].cells(bytes);
        if let Some(cells) = cells {
            self.frames.slots[slot as usize].last_cell = self.sources.offer(now, vc.index(), cells.into());
        }
        None
    }

    /// The next time at which a packet may depart or a held ACK is released.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.network.next_event().into_iter().chain(self.held.next()).min()
    }

    /// Holds a departed ACK, if the data of its flow become cells at this node. False: the packet continues at once.
    pub(crate) fn hold(&mut self, departure: &Departure, (traffic, link): (u32, LinkIndex), packet: &Meta) -> bool {
        let number = packet.flow.index();
        let node = self.far_ends[departure.vc.index()].node;
        let data = &self.circuits[traffic as usize][usize::from(number.is_multiple_of(2))];
        let held_here = |circuit: &&CircuitState| circuit.hold.is_some_and(|(at, _)| at == node);
        let Some(circuit) = data.iter().find(held_here).filter(|_| packet.is_pure_ack()) else { return false };
        let Some((_, hold)) = circuit.hold else { return false };
        let vc = circuit.vcs[(number / 2).wrapping_sub(circuit.first) as usize % circuit.vcs.len()];
        let Some(edge) = self.network.abr_stats(vc) else { return false };
        let of = &mut self.vcs[vc.index()].1.held;
        self.held.hold((departure.at, &hold), &edge, of, (link, packet))
    }

    /// Releases the next held ACK that is due by `now`. Returns the link at whose far end it is.
    pub(crate) fn release(&mut self, now: Instant) -> Option<(LinkIndex, Meta)> {
        self.held.release(now)
    }

    /// The ACKs held.
    pub(crate) fn held(&self) -> Count {
        self.held.amount()
    }

    /// Sources of ABR: VC, allowed cell rate in bit/s, backlog in bytes.
    pub(crate) fn sources(&self) -> impl Iterator<Item = (VcId, u64, u64)> + '_ {
        self.vcs.iter().filter_map(|(vc, _)| {
            let stats = self.network.abr_stats(*vc)?;
            Some((*vc, stats.acr_bps, stats.edge_bytes))
        })
    }

    /// Advances the network to `now`. Packets that depart are added to `departures`.
    pub(crate) fn advance(&mut self, now: Instant) {
        self.network.advance(now);
        self.network.departures(&mut self.departures);
    }

    /// Advances the network to the picosecond before `now`.
    pub(crate) fn advance_before(&mut self, now: Instant) {
        if let Some(before) = now.as_ps().checked_sub(1) {
            self.advance(Instant::from_ps(before));
        }
    }

    /// Takes the packet of a departure.
    pub(crate) fn departed(&mut self, departure: &Departure) -> Departed {
        let Frame { since, last_cell, packet } = self.frames.take(departure.packet);
        let vc = departure.vc.index();
        let count = &mut self.vcs[vc].1;
        let reason = match departure.fate {
            Fate::Whole => {
                count.transit.add(departure.at.since(since));
                last_cell.into_iter().for_each(|sent| count.cell_delays.add(departure.at.since(sent)));
                return Departed::Whole(self.far_ends[vc].link, packet);
            }
            Fate::Lost => {
                count.on_wire += 1;
                DropReason::WireLoss
            }
            Fate::Joined => {
                count.joined += 1;
                DropReason::Tail
            }
            Fate::Dropped(drop) => {
                count.lost[drop.index()] += 1;
                reason(drop)
            }
        };
        count.lost_bytes += u64::from(packet.ip_len);
        self.dropped.add(&packet);
        Departed::Lost(self.far_ends[vc].link, packet, reason)
    }

    /// The packets in transit as cells.
    pub(crate) fn inside(&self) -> Count {
        self.frames.inside
    }

    /// Queued cells of each link with a limited queue.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = u64> + '_ {
        self.bounded.iter().map(|(link, _)| self.network.waiting(*link))
    }

    /// The links with a limited queue, by their index in the simulated network.
    pub(crate) fn sampled(&self) -> impl Iterator<Item = usize> + '_ {
        self.bounded.iter().map(|(_, ours)| *ours)
    }

    /// Bits that each link has sent, by its index in the simulated network.
    pub(crate) fn bits_sent(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.links.iter().map(|(link, ours)| (*ours, self.network.bits_sent(*link)))
    }

    /// Cells whose transmission each link has begun, by its index in the simulated network.
    pub(crate) fn sent(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.links.iter().map(|(link, ours)| (*ours, self.network.sent(*link)))
    }

    pub(crate) fn outcome(&self) -> AtmOutcome {
        let vcs = self.vcs.iter().zip(self.network.all_hop_stats()).map(|((vc, count), hops)| VcOutcome {
            stats: self.network.vc_stats(*vc),
            hops,
            conformance: self.network.conformance(*vc),
            lost: count.lost,
            on_wire: count.on_wire,
            joined: count.joined,
            too_large: count.too_large,
            policed: count.policed,
            lost_bytes: count.lost_bytes,
            abr: self.network.abr_stats(*vc),
            acks_held: count.held.waits,
            transit: count.transit,
            cell_delays: count.cell_delays,
        });
        AtmOutcome {
            vcs: vcs.collect(),
            ports: self.links.iter().map(|(link, _)| self.network.link_stats(*link)).collect(),
            paths: self.vps.iter().map(|vp| self.network.path_conformance(*vp)).collect(),
            edges: self.edges.outcome(),
            cells: self.network.stats(),
            frames_inside: self.frames.inside.packets,
        }
    }
}

/// The node where packets of a circuit become cells.
fn entry_node(atm: &Atm, circuit: &Circuit) -> usize {
    let first = atm.network.vcs[circuit.vcs[0].index()].route[0];
    atm.network.links[first.index()].from.index()
}

/// The first link of cells on a path without a VC for this traffic and direction.
pub(crate) fn uncarried(atm: &Atm, way: (usize, bool), path: &[usize]) -> Option<usize> {
    let mut rest = path;
    while let Some((&link, after)) = rest.split_first() {
        rest = if atm.links.contains(&link) {
            let Some((_, links)) = atm.carrier(way, rest) else { return Some(link) };
            &rest[links..]
        } else {
            after
        };
    }
    None
}

/// The reason under which captures and counters of packets list a lost frame.
fn reason(drop: CellDrop) -> DropReason {
    match drop {
        CellDrop::QueueFull | CellDrop::MemoryFull | CellDrop::Ppd | CellDrop::EdgeFull => DropReason::Tail,
        CellDrop::Epd | CellDrop::Spd | CellDrop::Selective => DropReason::Aqm,
        CellDrop::PeakRate | CellDrop::SustainableRate | CellDrop::FrameConformance => DropReason::Policed,
    }
}

//! Links that carry cells: packets go in as they come, and out when [`lastmile_atm::Network`] says that their frame is whole.
//!
//! There is one event for all cells: the network is let go on until something may leave it, and asked again. So events are as many
//! as packets, about, not cells; a packet offered at some time is never before what the network has done, since that goes no further than
//! the pending set. Looking (a sample, a snapshot) brings it up to the picosecond before, so that what is offered at the same time
//! does not depend on who looked.

use std::collections::BTreeMap;

use lastmile_atm::aal5::Encapsulation;
use lastmile_atm::discard::CellDrop;
use lastmile_atm::{Clp, Departure, Fate, LinkId, Queues, VcId, VcSpec, VpId};
use lastmile_packet::Meta;
use lastmile_queueing::DropReason;
use lastmile_units::Instant;

use crate::cell_delays::Sources;
use crate::edges::Edges;
use crate::engine::Handle;
use crate::held::{Held, HeldOf};
use crate::route::LinkIndex;
use lastmile_model::BuildError;
use lastmile_model::outcome::{Amount, AtmOutcome, CellDelays, VcOutcome, Waits};
use lastmile_model::{AckHold, Atm, Circuit, Network};

/// The links that carry cells, and the packets on them.
pub(crate) struct Cells {
    network: lastmile_atm::Network,
    /// By traffic, and data or back.
    crossings: Vec<[Vec<Crossing>; 2]>,
    /// By VC: the link at its far end.
    exits: Vec<LinkIndex>,
    /// By VC: the node there.
    far_nodes: Vec<usize>,
    /// Each link, and which of ours it is.
    links: Vec<(LinkId, usize)>,
    /// Links whose queues have an end, which are worth a look.
    bounded: Vec<(LinkId, usize)>,
    edges: Edges,
    held: Held,
    packets: Packets,
    sources: Sources,
    /// By VC.
    encapsulations: Vec<Encapsulation>,
    vcs: Vec<(VcId, VcCount)>,
    vps: Vec<VpId>,
    /// The pending event of the cells.
    pub(crate) wake: Option<Handle>,
    /// What has left and is not yet handled.
    pub(crate) gone: Vec<Departure>,
    pub(crate) dropped: Amount,
}

/// The virtual channels over which a traffic's packets go from one link to another.
struct Crossing {
    entry: LinkIndex,
    /// The first flow of the traffic.
    first: u32,
    vcs: Vec<VcId>,
    /// By VC; empty where no edge conditions its packets.
    conditioners: Vec<usize>,
    /// ACKs for its packets are held at this node.
    hold: Option<(usize, AckHold)>,
}

/// What is counted of a VC beside its cells.
#[derive(Clone, Default)]
struct VcCount {
    lost: [u64; CellDrop::ALL.len()],
    on_wire: u64,
    joined: u64,
    too_large: u64,
    policed: u64,
    lost_bytes: u64,
    held: HeldOf,
    transit: Waits,
    cell_delays: CellDelays,
}

/// A packet that is cells now.
#[derive(Clone, Copy)]
struct Inside {
    since: Instant,
    /// When the transmission of its last cell begins at the source.
    last_cell: Option<Instant>,
    packet: Meta,
}

/// Packets that are cells now.
#[derive(Default)]
struct Packets {
    slots: Vec<Inside>,
    free: Vec<u32>,
    inside: Amount,
}

impl Packets {
    fn put(&mut self, since: Instant, packet: Meta) -> u32 {
        self.inside.add(&packet);
        let inside = Inside { since, last_cell: None, packet };
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = inside;
            return slot;
        }
        self.slots.push(inside);
        u32::try_from(self.slots.len() - 1).expect("fewer than 2^32 packets at a time")
    }

    fn take(&mut self, slot: u64) -> Inside {
        let slot = u32::try_from(slot).expect("as it was given");
        let inside = self.slots[slot as usize];
        self.inside.packets -= 1;
        self.inside.bytes -= u64::from(inside.packet.ip_len);
        self.free.push(slot);
        inside
    }
}

/// What came of a packet that has left the cells.
pub(crate) enum Left {
    /// It is at the far end of this link.
    Whole(LinkIndex, Meta),
    /// It was lost, having come by this link's VC.
    Lost(LinkIndex, Meta, DropReason),
}

impl Cells {
    pub(crate) fn new(network: &Network, atm: &Atm) -> Result<Self, BuildError> {
        let cells = lastmile_atm::Network::seeded(&atm.network, network.seed)?;
        let ours = |link: LinkId| u32::try_from(atm.links[link.index()]).expect("the network was checked");
        let exits = atm.network.vcs.iter().map(|vc| ours(*vc.route.last().expect("checked"))).collect();
        let end = |vc: &VcSpec| atm.network.links[vc.route.last().expect("checked").index()].to.index();
        let far_nodes = atm.network.vcs.iter().map(end).collect();
        let (mut edges, mut nodes) = (Edges::new(atm), BTreeMap::new());
        let mut first = 0;
        let mut crossings: Vec<[Vec<Crossing>; 2]> = Vec::new();
        for (index, traffic) in network.traffic.iter().enumerate() {
            let ways = [false, true].map(|back| {
                let own = atm.circuits.iter().filter(|circuit| (circuit.traffic, circuit.back) == (index, back));
                let crossing = |circuit: &Circuit| Crossing {
                    entry: ours(atm.network.vcs[circuit.vcs[0].index()].route[0]),
                    first,
                    vcs: circuit.vcs.clone(),
                    conditioners: edges.of(atm, circuit, &mut nodes),
                    hold: circuit.hold.map(|hold| (entry_node(atm, circuit), hold)),
                };
                own.map(crossing).collect()
            });
            crossings.push(ways);
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
            crossings,
            exits,
            far_nodes,
            links,
            bounded,
            edges,
            held: Held::default(),
            packets: Packets::default(),
            sources: Sources::new(&atm.network),
            encapsulations: atm.network.vcs.iter().map(|vc| vc.encapsulation).collect(),
            vcs: atm.network.vc_ids().map(|vc| (vc, VcCount::default())).collect(),
            vps: atm.network.vp_ids().collect(),
            wake: None,
            gone: Vec::new(),
            dropped: Amount::default(),
        })
    }

    /// A packet of a flow comes to a link of cells, and is marked by the edge. `None` if it is a frame now, else why it cannot be.
    pub(crate) fn offer(
        &mut self,
        now: Instant,
        (entry, traffic): (LinkIndex, u32),
        packet: &mut Meta,
    ) -> Option<DropReason> {
        let number = packet.flow.index();
        let ways = &self.crossings[traffic as usize][number as usize % 2];
        let Some(crossing) = ways.iter().find(|crossing| crossing.entry == entry) else {
            self.dropped.add(packet);
            return Some(DropReason::Unreachable);
        };
        let member = (number / 2).wrapping_sub(crossing.first) as usize % crossing.vcs.len();
        let vc = crossing.vcs[member];
        let conditioner = crossing.conditioners.get(member).copied();
        let count = &mut self.vcs[vc.index()].1;
        if conditioner.is_some_and(|conditioner| !self.edges.pass(now, conditioner, vc, packet)) {
            count.policed += 1;
            count.lost_bytes += u64::from(packet.ip_len);
            self.dropped.add(packet);
            return Some(DropReason::Policed);
        }
        let bytes = lastmile_units::ByteCount::new(packet.ip_len.into());
        let clp = if packet.mark.clp() { Clp::One } else { Clp::Zero };
        let slot = self.packets.put(now, *packet);
        if self.network.offer_marked(now, vc, bytes, clp, slot.into()).is_err() {
            self.packets.take(slot.into());
            count.too_large += 1;
            count.lost_bytes += u64::from(packet.ip_len);
            self.dropped.add(packet);
            return Some(DropReason::TooLarge);
        }
        let cells = self.encapsulations[vc.index()].cells(bytes);
        if let Some(cells) = cells {
            self.packets.slots[slot as usize].last_cell = self.sources.offer(now, vc.index(), cells.into());
        }
        None
    }

    /// When something may leave next, or is let go.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.network.next_event().into_iter().chain(self.held.next()).min()
    }

    /// Holds an ACK back that has come out of VC `vc` at the node where the packets of its flow become cells. False for whatever goes on at once.
    pub(crate) fn hold(&mut self, departure: &Departure, (traffic, link): (u32, LinkIndex), packet: &Meta) -> bool {
        let number = packet.flow.index();
        let node = self.far_nodes[departure.vc.index()];
        let data = &self.crossings[traffic as usize][usize::from(number.is_multiple_of(2))];
        let held_here = |data: &&Crossing| data.hold.is_some_and(|(at, _)| at == node);
        let Some(crossing) = data.iter().find(held_here).filter(|_| packet.is_pure_ack()) else { return false };
        let Some((_, hold)) = crossing.hold else { return false };
        let vc = crossing.vcs[(number / 2).wrapping_sub(crossing.first) as usize % crossing.vcs.len()];
        let Some(edge) = self.network.abr_stats(vc) else { return false };
        let of = &mut self.vcs[vc.index()].1.held;
        self.held.hold((departure.at, &hold), &edge, of, (link, packet))
    }

    /// The next ACK that is let go by `now`, and the link at whose far end it is.
    pub(crate) fn release(&mut self, now: Instant) -> Option<(LinkIndex, Meta)> {
        self.held.release(now)
    }

    /// ACKs that are held.
    pub(crate) fn held(&self) -> Amount {
        self.held.amount()
    }

    /// Sources of ABR: VC, allowed cell rate in bit/s, bytes that wait.
    pub(crate) fn sources(&self) -> impl Iterator<Item = (VcId, u64, u64)> + '_ {
        self.vcs.iter().filter_map(|(vc, _)| {
            let stats = self.network.abr_stats(*vc)?;
            Some((*vc, stats.acr_bps, stats.edge_bytes))
        })
    }

    /// Lets all happen that happens by `now`. What leaves is in `gone`.
    pub(crate) fn advance(&mut self, now: Instant) {
        self.network.advance(now);
        self.network.departures(&mut self.gone);
    }

    /// Lets all happen that happens before `now`: for a look.
    pub(crate) fn advance_before(&mut self, now: Instant) {
        if let Some(before) = now.as_ps().checked_sub(1) {
            self.advance(Instant::from_ps(before));
        }
    }

    /// What became of the packet of a departure.
    pub(crate) fn left(&mut self, departure: &Departure) -> Left {
        let Inside { since, last_cell, packet } = self.packets.take(departure.packet);
        let vc = departure.vc.index();
        let count = &mut self.vcs[vc].1;
        let reason = match departure.fate {
            Fate::Whole => {
                count.transit.add(departure.at.since(since));
                last_cell.into_iter().for_each(|sent| count.cell_delays.add(departure.at.since(sent)));
                return Left::Whole(self.exits[vc], packet);
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
        Left::Lost(self.exits[vc], packet, reason)
    }

    /// Packets that are cells now.
    pub(crate) fn inside(&self) -> Amount {
        self.packets.inside
    }

    /// The links that are worth a sample, and how many cells wait there.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = u64> + '_ {
        self.bounded.iter().map(|(link, _)| self.network.waiting(*link))
    }

    /// Those links, by ours.
    pub(crate) fn sampled(&self) -> impl Iterator<Item = usize> + '_ {
        self.bounded.iter().map(|(_, ours)| *ours)
    }

    /// Bits that each link of cells has sent, with ours.
    pub(crate) fn bits_sent(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.links.iter().map(|(link, ours)| (*ours, self.network.bits_sent(*link)))
    }

    /// Cells whose transmission each link of cells has begun, with ours.
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
            frames_inside: self.packets.inside.packets,
        }
    }
}

/// The node where packets of a circuit become cells.
fn entry_node(atm: &Atm, circuit: &Circuit) -> usize {
    let first = atm.network.vcs[circuit.vcs[0].index()].route[0];
    atm.network.links[first.index()].from.index()
}

/// The first link of cells on a path that no VC of this traffic and way carries along it.
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

/// What captures and counters of packets call it.
fn reason(drop: CellDrop) -> DropReason {
    match drop {
        CellDrop::QueueFull | CellDrop::MemoryFull | CellDrop::Ppd | CellDrop::EdgeFull => DropReason::Tail,
        CellDrop::Epd | CellDrop::Spd | CellDrop::Selective => DropReason::Aqm,
        CellDrop::PeakRate | CellDrop::SustainableRate | CellDrop::FrameConformance => DropReason::Policed,
    }
}

//! The trial that property tests and fuzzing run: a network derived from bytes, and its invariants.
//!
//! Three sources and two sinks are around two switches, with VCs in both directions, small buffers,
//! every discard policy, scheduler and contract, sources and ports of ABR, and links that lose
//! cells. Equal packets go through the network three times: with trains, from one event to the
//! next; cell by cell, from one packet to the next; with trains, all at once. A network with ABR is
//! always cell by cell. Every departure and every counter must be equal.

use lastmile_units::{BitRate, ByteCount, CellCount, Duration, Instant};

use crate::aal5::Encapsulation;
use crate::abr::{Parameters, erica};
use crate::contract::{Contract, Peak, Sbr, Sustainable};
use crate::discard::{CellDrop, Discard, LastCell, Measure, Scheme};
use crate::network::{
    Abr, AbrPort, ClassSpec, Clp, Departure, Fate, LinkId, LinkSpec, Network, NetworkSpec, NodeId, QueueSpec, Queues,
    Upc, VcId, VcSpec, VpId,
};

/// Panics if the network derived from `input`, or its traffic, violates an invariant.
pub fn check(input: &[u8]) {
    let mut bytes = Bytes(input);
    let spec = network(&mut bytes);
    let offers = offers(&mut bytes, spec.vcs.len());
    let cells = NetworkSpec { trains: false, ..spec.clone() };
    let (Ok(mut by_event), Ok(mut by_cell), Ok(mut at_once)) =
        (Network::new(&spec), Network::new(&cells), Network::new(&spec))
    else {
        assert_eq!(Network::new(&spec).err(), Network::new(&cells).err());
        return;
    };
    let (mut events, mut singles) = (Vec::new(), Vec::new());
    for offer in &offers {
        // A packet offered in the present picosecond arrives after all that has arrived in it.
        let before = Instant::from_ps(offer.at.as_ps().saturating_sub(1));
        if before > by_event.now() {
            step(&mut by_event, before, &mut events);
            by_cell.advance(before);
            by_cell.departures(&mut singles);
            compare(&spec, &by_event, &by_cell);
            same(&events, &singles);
        }
        for network in [&mut by_event, &mut by_cell, &mut at_once] {
            let Offer { at, vc, bytes, clp, packet } = *offer;
            network.offer_marked(at, vc, bytes, clp, packet).expect("a packet that fits");
        }
    }
    let end = Instant::ZERO + Duration::from_s(60);
    step(&mut by_event, end, &mut events);
    by_cell.advance(end);
    by_cell.departures(&mut singles);
    let mut together = Vec::new();
    at_once.advance(end);
    at_once.departures(&mut together);
    compare(&spec, &by_event, &by_cell);
    compare(&spec, &by_event, &at_once);
    same(&events, &singles);
    same(&events, &together);
    check_end(&by_event, &offers, &events);
}

/// Advances from event to event up to `until`. No frame arrives before the announced time.
fn step(network: &mut Network, until: Instant, departures: &mut Vec<Departure>) {
    while let Some(next) = network.next_event()
        && next <= until
    {
        let before = departures.len();
        network.advance(next);
        network.departures(departures);
        let early = departures[before..].iter().find(|gone| gone.fate == Fate::Whole && gone.at < next);
        assert!(early.is_none(), "{early:?} arrived before {next}");
    }
    network.advance(until);
    network.departures(departures);
}

fn same(one: &[Departure], other: &[Departure]) {
    let different = one.iter().zip(other).find(|(one, other)| one != other);
    assert_eq!((different, one.len()), (None, other.len()));
}

/// All counters are equal, and consistent.
fn compare(spec: &NetworkSpec, one: &Network, other: &Network) {
    let hops = one.all_hop_stats();
    assert_eq!(hops, other.all_hop_stats());
    for (index, vc) in spec.vcs.iter().enumerate() {
        let id = VcId(index as u32);
        assert_eq!(one.vc_stats(id), other.vc_stats(id), "{}", vc.name);
        assert_eq!(one.conformance(id), other.conformance(id), "{}", vc.name);
        assert_eq!(one.abr_stats(id), other.abr_stats(id), "{}", vc.name);
        let mut came = u64::MAX;
        let mut low = one.vc_stats(id).offered_low_priority.cells;
        for (hop, counted) in hops[index].iter().enumerate() {
            let stats = one.hop_stats(id, hop);
            assert_eq!(stats, *counted, "{} at hop {hop}", vc.name);
            assert_eq!(stats.arrived, stats.sent + stats.dropped_cells() + stats.waiting);
            assert!(stats.lost <= stats.sent && (stats.lost == 0 || spec.links[vc.route[hop].index()].loss_ppb > 0));
            assert!(stats.arrived <= came, "no hop gets more than was sent to it");
            assert!(stats.dropped_low_priority <= stats.arrived_low_priority + stats.tagged);
            assert!(stats.arrived_low_priority <= low, "CLP = 1 comes from the source or a policer");
            low = stats.arrived_low_priority + stats.tagged - stats.dropped_low_priority - stats.lost_low_priority;
            came = stats.sent - stats.lost;
        }
        assert!(one.vc_stats(id).arrived_cells <= came);
        assert!(one.vc_stats(id).arrived_low_priority_cells <= low);
    }
    for path in (0..spec.vps.len() as u32).map(VpId) {
        assert_eq!(one.path_conformance(path), other.path_conformance(path), "{path:?}");
    }
    for index in 0..spec.links.len() {
        let link = LinkId(index as u32);
        assert_eq!(one.link_stats(link), other.link_stats(link), "link {index}");
        assert_eq!(one.link_stats(link).cells.waiting, one.waiting(link), "link {index}");
        assert_eq!(one.link_stats(link).cells.sent, one.sent(link), "link {index}");
        check_reasons(&spec.links[index], one, link);
    }
    assert_eq!(one.stats(), other.stats());
    assert!(one.stats().holds(), "cells were lost in silence: {:?}", one.stats());
}

/// Every drop has a reason that the queue has, and the rest of a frame is dropped only after a cell
/// of it.
fn check_reasons(link: &LinkSpec, network: &Network, id: LinkId) {
    let stats = network.link_stats(id);
    let dropped = |reason| stats.cells.dropped_for(reason);
    let discards: Vec<Discard> = match &link.queues {
        Queues::Fifo(queue) | Queues::PerVc(queue) => vec![queue.discard],
        Queues::Classes(classes) => classes.iter().map(|class| class.queue.discard).collect(),
    };
    let any = |wanted: fn(&Scheme) -> bool| discards.iter().any(|discard| wanted(&discard.scheme));
    let early = |scheme: &Scheme| matches!(scheme, Scheme::Epd { .. } | Scheme::EpdPerVc { .. } | Scheme::Spd { .. });
    assert!(dropped(CellDrop::Epd) == 0 || any(early));
    assert!(dropped(CellDrop::Spd) == 0 || any(|scheme| matches!(scheme, Scheme::Spd { .. })));
    assert!(dropped(CellDrop::Ppd) == 0 || any(|scheme| *scheme != Scheme::Tail));
    let overflow = dropped(CellDrop::QueueFull) + dropped(CellDrop::MemoryFull) + dropped(CellDrop::Selective);
    assert!(dropped(CellDrop::Ppd) == 0 || overflow > 0);
}

/// Every packet has left once, and each VC in the order of its offers.
fn check_end(network: &Network, offers: &[Offer], departures: &[Departure]) {
    assert_eq!(network.next_event(), None);
    assert_eq!((network.stats().inside, network.stats().frames_inside), (0, 0));
    let mut packets: Vec<u64> = departures.iter().map(|gone| gone.packet).collect();
    packets.sort_unstable();
    assert_eq!(packets, offers.iter().map(|offer| offer.packet).collect::<Vec<_>>());
    let mut last = vec![None; network.vcs()];
    for gone in departures.iter().filter(|gone| gone.fate == Fate::Whole) {
        let last = last.get_mut(gone.vc.index()).expect("a VC");
        assert!(last.is_none_or(|before| before < gone.packet), "{gone:?} was overtaken");
        *last = Some(gone.packet);
    }
    assert!(departures.is_sorted_by_key(|gone| gone.at));
}

struct Offer {
    at: Instant,
    vc: VcId,
    bytes: ByteCount,
    clp: Clp,
    packet: u64,
}

/// The input, byte by byte; zeros once it has ended.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn take(&mut self) -> u8 {
        match self.0.split_first() {
            Some((first, rest)) => {
                self.0 = rest;
                *first
            }
            None => 0,
        }
    }

    fn below(&mut self, bound: u8) -> u8 {
        self.take() % bound
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[usize::from(self.take()) % choices.len()]
    }
}

fn offers(bytes: &mut Bytes<'_>, vcs: usize) -> Vec<Offer> {
    let mut at = Instant::ZERO;
    let mut offers = Vec::new();
    while !bytes.0.is_empty() && offers.len() < 200 {
        at += Duration::from_ps(bytes.one_of(&[0, 1, 7_919, 2_831_196, 40_000_003, 500_000_000, 3_000_000_000]));
        let vc = VcId(u32::from(bytes.take()) % vcs as u32);
        let size = bytes.one_of(&[0, 40, 41, 88, 300, 1064, 1500, 8232]) + u64::from(bytes.below(49));
        let clp = if size.is_multiple_of(3) { Clp::One } else { Clp::Zero };
        offers.push(Offer { at, vc, bytes: ByteCount::new(size), clp, packet: offers.len() as u64 });
    }
    offers
}

fn network(bytes: &mut Bytes<'_>) -> NetworkSpec {
    let mut spec = NetworkSpec::new();
    let hosts = ["a", "b", "c", "d", "e"].map(|name| spec.node(name));
    let switches = ["x", "y"].map(|name| {
        let cells = bytes.one_of(&[0, 0, 20, 60, 150]);
        if cells == 0 { spec.node(name) } else { spec.shared_memory_node(name, CellCount::new(cells)) }
    });
    // a, b and c are at x, d and e at y.
    for (index, host) in hosts.into_iter().enumerate() {
        let switch = switches[usize::from(index > 2)];
        let up = LinkSpec::new(host, switch, rate(bytes), delay(bytes));
        spec.link(up);
        let down = link(bytes, switch, host);
        spec.link(down);
    }
    for (from, to) in [(switches[0], switches[1]), (switches[1], switches[0])] {
        let trunk = link(bytes, from, to);
        let at = spec.link(trunk);
        // Frames are not policed by path.
        let contract = Some(contract(bytes)).filter(|contract| !matches!(contract, Contract::Gfr { .. }));
        spec.vp("trunk", contract.map(|contract| Upc { at, contract }));
    }
    let many = bytes.take();
    // With ABR there are no trains, so half of the networks have none.
    let abr = many < 128;
    for index in 0..=many % 6 {
        let vc = vc(bytes, &spec, index, abr);
        spec.vc(vc);
    }
    if bytes.below(2) == 0 {
        for link in &mut spec.links {
            link.loss_ppb = bytes.one_of(&[0, 0, 0, 5_000_000, 50_000_000, 500_000_000]);
        }
    }
    spec
}

/// Behind the links of five hosts, up and down: one there, one back.
const TRUNKS: [LinkId; 2] = [LinkId(10), LinkId(11)];

fn rate(bytes: &mut Bytes<'_>) -> BitRate {
    BitRate::from_kbit_per_s(bytes.one_of(&[149_760, 10_000, 20_000, 149_760, 35_000, 155_000, 3_333]))
}

fn delay(bytes: &mut Bytes<'_>) -> Duration {
    Duration::from_ps(bytes.one_of(&[0, 1, 50_000, 2_831_196, 100_000_000, 3_000_000_000]))
}

fn link(bytes: &mut Bytes<'_>, from: NodeId, to: NodeId) -> LinkSpec {
    let mut link = LinkSpec::new(from, to, rate(bytes), delay(bytes));
    if bytes.below(8) == 0 {
        link.pace = Some(BitRate::from_kbit_per_s(3_000));
    }
    link.queues = match bytes.below(6) {
        0..3 => Queues::Fifo(queue(bytes)),
        3 => Queues::PerVc(queue(bytes)),
        _ => Queues::Classes((0..3).map(|_| class(bytes)).collect()),
    };
    link.abr = match bytes.below(3) {
        0 => None,
        1 => Some(AbrPort::Efci { threshold: CellCount::new(bytes.one_of(&[1, 20])) }),
        _ => Some(AbrPort::Erica(erica::Config::new(Duration::from_us(bytes.one_of(&[50, 1_000]))))),
    };
    link
}

fn class(bytes: &mut Bytes<'_>) -> ClassSpec {
    let (priority, weight) = (bytes.below(2), u16::from(bytes.below(5)) + 1);
    ClassSpec { queue: queue(bytes), priority, weight }
}

fn queue(bytes: &mut Bytes<'_>) -> QueueSpec {
    let limit = bytes.one_of(&[40, 1, 8, 25, 60, 200]);
    let cells = |part: u64| CellCount::new((limit * part / 4).max(1));
    let scheme = match bytes.below(6) {
        0 => Scheme::Tail,
        1 => Scheme::Ppd,
        2 => Scheme::Epd { threshold: cells(2) },
        3 => Scheme::EpdPerVc { threshold: cells(2), vcs: bytes.one_of(&[None, None, Some(3)]) },
        _ => Scheme::Spd { epd_threshold: cells(3), vc_threshold: cells(1), activation: cells(1) },
    };
    let discard = Discard {
        scheme,
        last_cell: bytes.one_of(&[LastCell::Pass, LastCell::Drop]),
        measure: bytes.one_of(&[Measure::Queue, Measure::Queue, Measure::Memory]),
        low_priority_limit: bytes.one_of(&[None, Some(CellCount::new(10))]),
    };
    QueueSpec { limit: bytes.one_of(&[Some(CellCount::new(limit)), Some(CellCount::new(limit)), None]), discard }
}

fn vc(bytes: &mut Bytes<'_>, spec: &NetworkSpec, index: u8, abr: bool) -> VcSpec {
    let (near, far) = (bytes.one_of(&["a", "b", "c"]), bytes.one_of(&["d", "e"]));
    let path = match bytes.below(4) {
        0 => [far, "y", "x", near],
        _ => [near, "x", "y", far],
    };
    let route = spec.route(&path).expect("links between neighbours");
    let mut vc = VcSpec::new(format!("vc {index}"), 32 + u16::from(index), route);
    vc.encapsulation = bytes.one_of(&[Encapsulation::LlcSnap, Encapsulation::VcMux]);
    vc.pcr = bytes.one_of(&[None, Some(1_500), Some(2_000), Some(3_333)]).map(BitRate::from_kbit_per_s);
    vc.low_priority = bytes.below(4) == 0;
    vc.class = usize::from(bytes.below(3));
    vc.priority = bytes.below(2);
    vc.weight = u16::from(bytes.below(5)) + 1;
    if bytes.below(4) == 0 {
        let path = if vc.route.contains(&TRUNKS[0]) { 0 } else { 1 };
        vc.vp = Some(VpId(path));
    }
    if bytes.below(2) == 0 {
        let at = vc.route[usize::from(bytes.below(3))];
        vc.upc = Some(Upc { at, contract: contract(bytes) });
    } else if abr && bytes.below(2) == 0 {
        let back: Vec<&str> = path.iter().rev().copied().collect();
        let mbit = BitRate::from_mbit_per_s;
        let mut parameters = Parameters::new(mbit(3));
        (parameters.mcr, parameters.icr) = (mbit(1), mbit(bytes.one_of(&[1, 2, 3])));
        parameters.nrm = bytes.one_of(&[32, 2, 8]);
        let edge_limit = bytes.one_of(&[None, Some(ByteCount::new(3_000)), Some(ByteCount::new(20_000))]);
        vc.abr = Some(Abr { parameters, back: spec.route(&back).expect("links between neighbours"), edge_limit });
    }
    vc
}

fn contract(bytes: &mut Bytes<'_>) -> Contract {
    let cdvt = Duration::from_ps(bytes.one_of(&[0, 2_000_000, 100_000_000]));
    let peak = Peak { rate: BitRate::from_kbit_per_s(bytes.one_of(&[149_760, 10_000, 3_333])), cdvt };
    let mbs = CellCount::new(bytes.one_of(&[1, 10, 30]));
    let sustainable = Sustainable { rate: BitRate::from_kbit_per_s(bytes.one_of(&[1_000, 3_333])), mbs, cdvt };
    match bytes.below(6) {
        0 => Contract::Dbr { peak },
        1 => Contract::Ubr { peak: Some(peak), tagging: true },
        2 => Contract::Gfr { peak, minimum: sustainable, mfs: mbs, tagging: bytes.below(2) == 0 },
        kind => Contract::Sbr { variant: [Sbr::One, Sbr::Two, Sbr::Three][usize::from(kind - 3)], peak, sustainable },
    }
}

//! Trains that come side by side to one port, with many rounds before anything else comes: against
//! the same cell by cell.

use lastmile_atm::contract::{Contract, Peak, Sbr, Sustainable};
use lastmile_atm::discard::Scheme;
use lastmile_atm::network::{ClassSpec, Upc};
use lastmile_atm::time::Spacing;
use lastmile_atm::{Departure, Discard, LinkId, LinkSpec, Network, NetworkSpec, QueueSpec, Queues, VcId, VcSpec, VpId};
use lastmile_units::{BitRate, ByteCount, CellCount, Duration, Instant};
use proptest::prelude::*;

#[derive(Clone, Debug)]
struct Frame {
    vc: usize,
    /// Behind the one before.
    gap: Duration,
    bytes: ByteCount,
}

/// Who sends, and how.
#[derive(Clone, Copy)]
struct Load {
    vcs: usize,
    pcr: BitRate,
    trunk: BitRate,
    /// Priority of cells that are not tagged.
    low_priority: bool,
    /// Some are policed together, too.
    path: bool,
    /// Links of senders and the trunk lose so many cells of a billion.
    loss_ppb: u32,
    /// As many as VCs, each has a far end for itself; fewer, some share one.
    receivers: usize,
}

/// Senders shaped alike to a switch, a trunk at which some are policed, and receivers; the network,
/// its trunk and its VCs.
fn network(trains: bool, load: Load, queues: Queues) -> (Network, LinkId, Vec<VcId>, VpId) {
    let rate = BitRate::from_kbit_per_s(149_760);
    let mut spec = NetworkSpec { trains, ..NetworkSpec::new() };
    let (near, far) = (spec.node("near"), spec.node("far"));
    let delay = Duration::from_us(700);
    let loss_ppb = load.loss_ppb;
    let own = LinkSpec::new(near, far, load.trunk, delay).with_queues(queues);
    let trunk = spec.link(LinkSpec { loss_ppb, ..own });
    for index in 0..load.receivers {
        let receiver = spec.node(format!("receiver {index}"));
        spec.link(LinkSpec::new(far, receiver, rate, Duration::ZERO));
    }
    let path = spec.vp("path", load.path.then(|| Upc { at: trunk, contract: contract() }));
    let ids = (0..load.vcs).map(|index| {
        let names = [format!("sender {index}"), format!("receiver {}", index % load.receivers)];
        let sender = spec.node(names[0].clone());
        spec.link(LinkSpec { loss_ppb, ..LinkSpec::new(sender, near, rate, Duration::ZERO) });
        let route = spec.route(&[&names[0], "near", "far", &names[1]]).expect("links");
        let upc = (index % 4 == 0).then(|| Upc { at: trunk, contract: contract() });
        spec.vc(VcSpec {
            pcr: Some(load.pcr),
            class: index % 3,
            vp: (index % 5 < 2).then_some(path),
            low_priority: load.low_priority && index % 3 == 1,
            upc,
            ..VcSpec::new(format!("vc {index}"), 32 + index as u16, route)
        })
    });
    let ids = ids.collect();
    (Network::new(&spec).expect("a network"), trunk, ids, path)
}

/// Some cells of a frame pass, the others are tagged.
fn contract() -> Contract {
    let peak = Peak { rate: BitRate::from_kbit_per_s(149_760), cdvt: Duration::from_us(100) };
    let sustainable =
        Sustainable { rate: BitRate::from_kbit_per_s(3_120), mbs: CellCount::new(60), cdvt: Duration::ZERO };
    Contract::Sbr { variant: Sbr::Three, peak, sustainable }
}

fn frames() -> impl Strategy<Value = Vec<Frame>> {
    let gap = prop_oneof![Just(0), Just(1), 0..3_000_000_u64, 0..4_000_000_000_u64];
    let frame = (0..7_usize, gap, prop_oneof![1 => 1..80_u64, 4 => 1..9_000_u64]);
    let frame =
        frame.prop_map(|(vc, gap, bytes)| Frame { vc, gap: Duration::from_ps(gap), bytes: ByteCount::new(bytes) });
    prop::collection::vec(frame, 2..60)
}

/// Of senders and of the trunk, kbit/s.
fn rates() -> impl Strategy<Value = (u64, u64)> {
    // Four and a half of 33.333 Mbit/s fill the trunk.
    (prop_oneof![Just(149_760_u64), Just(74_880), Just(33_333), Just(10_000)], Just(149_760))
}

/// Those at which a cell takes whole microseconds (5, 10, 20, 40), so that much comes and starts at
/// the very same time.
fn even_rates() -> impl Strategy<Value = (u64, u64)> {
    (
        prop_oneof![Just(84_800_u64), Just(42_400), Just(21_200), Just(10_600)],
        prop_oneof![Just(84_800_u64), Just(42_400)],
    )
}

proptest! {
    #[test]
    fn trains_side_by_side_are_the_cells_that_they_are_made_of(
        frames in frames(),
        vcs in 2..8_usize,
        ((kbit_per_s, trunk_kbit_per_s), grid_ps) in prop_oneof![5 => (rates(), Just(1)), 3 => (even_rates(), Just(1_000_000_u64))],
        limit in prop_oneof![Just(None), Just(Some(25)), Just(Some(400))],
        (scheme, share, low_limit, low_priority) in (0..5_u8, 1..12_u64, any::<bool>(), any::<bool>()),
        path in prop_oneof![2 => Just(false), 1 => Just(true)],
        (receivers, loss_ppb) in (prop_oneof![2 => Just(7_usize), 1 => 1..4_usize], prop_oneof![2 => Just(0_u32), 1 => Just(3_000_000), 1 => Just(100_000_000)]),
        // Weight and priority of three queues.
        classes in prop_oneof![1 => Just(None), 3 => prop::array::uniform3((1..6_u16, 0..5_u8)).prop_map(Some)],
        samples in prop::collection::vec(0..4_000_000_u64, 1..12),
    ) {
        let threshold = CellCount::new(limit.unwrap_or(30) * 2 / 3);
        let scheme = match scheme {
            0 => Scheme::Tail,
            1 => Scheme::Epd { threshold },
            2 => Scheme::EpdPerVc { threshold, vcs: None },
            3 => Scheme::EpdPerVc { threshold, vcs: Some(4) },
            _ => Scheme::Spd { epd_threshold: threshold, vc_threshold: CellCount::new(share), activation: CellCount::new(share + 2) },
        };
        let low_priority_limit = low_limit.then_some(CellCount::new(20));
        let discard = Discard { scheme, low_priority_limit, ..Discard::default() };
        let queue = QueueSpec { limit: limit.map(CellCount::new), discard };
        // One in five has a priority of its own.
        let class = |(weight, priority)| ClassSpec { queue, priority: priority / 4, weight };
        let queues = || classes.map_or(Queues::Fifo(queue), |classes| Queues::Classes(classes.map(class).to_vec()));
        let [pcr, trunk] = [kbit_per_s, trunk_kbit_per_s].map(BitRate::from_kbit_per_s);
        let load = Load { vcs, pcr, trunk, low_priority, path, loss_ppb, receivers: receivers.min(vcs) };
        let mut both = [true, false].map(|trains| network(trains, load, queues()));
        let mut at = Instant::ZERO;
        for (index, frame) in frames.iter().enumerate() {
            at += Duration::from_ps(frame.gap.as_ps() / grid_ps * grid_ps);
            for (network, _, ids, _) in &mut both {
                network.offer(at, ids[frame.vc % vcs], frame.bytes, index as u64).expect("a packet that fits");
            }
        }
        let mut left: [Vec<Departure>; 2] = Default::default();
        let mut now = Instant::ZERO;
        for sample in samples.into_iter().chain([60_000_000_000]) {
            now += Duration::from_ns(sample);
            for ((network, ..), left) in both.iter_mut().zip(&mut left) {
                network.advance(now);
                network.departures(left);
            }
            let [trains, cells] = &both;
            prop_assert_eq!(trains.0.all_hop_stats(), cells.0.all_hop_stats());
            prop_assert_eq!(trains.0.link_stats(trains.1), cells.0.link_stats(cells.1));
            prop_assert_eq!(trains.0.waiting(trains.1), cells.0.waiting(cells.1));
            prop_assert_eq!(trains.0.stats(), cells.0.stats());
            prop_assert_eq!(trains.0.path_conformance(trains.3), cells.0.path_conformance(cells.3));
            for vc in &trains.2 {
                prop_assert_eq!(trains.0.conformance(*vc), cells.0.conformance(*vc));
            }
            prop_assert!(trains.0.stats().holds());
            prop_assert_eq!(&left[0], &left[1]);
        }
        prop_assert_eq!(left[0].len(), frames.len());
    }
}

/// A sender that sends one frame: how far behind the others its first cell comes, and over a link
/// of which rate, kbit/s.
#[derive(Clone, Debug)]
struct Start {
    spacings: u64,
    microseconds: u64,
    link: u64,
    cells: u64,
}

/// How long a cell takes on a slow trunk of 2.12 Mbit/s.
const CELL_US: u64 = 200;

/// Frames of senders at the first of these rates that come to a trunk of the second; but for less
/// than a picosecond, to the microsecond.
fn one_frame_each(trains: bool, [pcr, trunk]: [u64; 2], queues: &Queues, starts: &[Start]) -> (Network, LinkId) {
    let mut spec = NetworkSpec { trains, ..NetworkSpec::new() };
    let (near, far) = (spec.node("near"), spec.node("far"));
    let [pcr, trunk] = [pcr, trunk].map(BitRate::from_kbit_per_s);
    let trunk = spec.link(LinkSpec::new(near, far, trunk, Duration::ZERO).with_queues(queues.clone()));
    let ids = starts.iter().enumerate().map(|(index, start)| {
        let [name, receiver] = [format!("sender {index}"), format!("receiver {index}")];
        let (from, to) = (spec.node(name.clone()), spec.node(receiver.clone()));
        spec.link(LinkSpec::new(from, near, BitRate::from_kbit_per_s(start.link), Duration::ZERO));
        spec.link(LinkSpec::new(far, to, BitRate::from_kbit_per_s(84_800), Duration::ZERO));
        let route = spec.route(&[&name, "near", "far", &receiver]).expect("links");
        let vc = VcSpec::new(name, 32 + index as u16, route);
        spec.vc(VcSpec { pcr: Some(pcr), class: index % 3, ..vc })
    });
    let ids: Vec<VcId> = ids.collect();
    let mut network = Network::new(&spec).expect("a network");
    let offers = starts.iter().zip(&ids).map(|(start, id)| {
        let lead = Spacing::of_cell(BitRate::from_kbit_per_s(start.link)).ps();
        let ps = 1_000_000_000 + start.spacings * Spacing::of_cell(pcr).ps() + start.microseconds * 1_000_000 - lead;
        (Instant::from_ps(ps), *id, ByteCount::new(48 * start.cells - 16))
    });
    let mut offers: Vec<_> = offers.collect();
    offers.sort_by_key(|(at, id, _)| (*at, id.index()));
    for (number, (at, id, bytes)) in offers.into_iter().enumerate() {
        network.offer(at, id, bytes, number as u64).expect("a packet that fits");
    }
    (network, trunk)
}

/// Two trains come, a cell of each every 10 us, and a third of three cells; a cell takes from 2 us
/// to 200 us. Whatever lies between them, and whenever somebody looks for the first time, the same
/// has happened as cell by cell.
#[test]
fn trains_at_any_distance_are_their_cells_at_any_time() {
    let start = |spacings, microseconds, cells| Start { spacings, microseconds, link: 84_800, cells };
    for trunk in [212_000, 84_800, 42_400, 2_120] {
        for (second, third) in (1..10).flat_map(|second| (0..30).step_by(2).map(move |third| (second, third))) {
            let starts = [start(0, 0, 8), start(0, second, 7), start(1, third, 3)];
            for us in (third % 3..90).step_by(3) {
                let [trains, cells] = [true, false].map(|trains| {
                    let (mut network, trunk) =
                        one_frame_each(trains, [42_400, trunk], &Queues::Fifo(QueueSpec::default()), &starts);
                    network.advance(Instant::ZERO + Duration::from_us(1_000 + us));
                    (network.all_hop_stats(), network.link_stats(trunk))
                });
                assert_eq!(trains, cells, "cells at {trunk} kbit/s, {second} us and {third} us apart, after {us} us");
            }
        }
    }
}

/// Cells of 10 us, and 5 us on the last link. One comes every 40 us, another 15 us behind each, and
/// 3 us behind the fifth of those the only cell of a third.
#[test]
fn a_cell_close_behind_trains_waits_for_the_last_of_them() {
    let start = |spacings, microseconds, cells| Start { spacings, microseconds, link: 84_800, cells };
    let starts = [start(0, 0, 10), start(0, 15, 10), start(4, 18, 1)];
    let (mut network, _) = one_frame_each(true, [10_600, 42_400], &Queues::Fifo(QueueSpec::default()), &starts);
    network.advance(Instant::ZERO + Duration::from_ms(2));
    let mut left = Vec::new();
    network.departures(&mut left);
    let us: Vec<u64> = left.iter().map(|gone| gone.at.as_ps() / 1_000_000).collect();
    assert_eq!(us, [1_000 + 4 * 40 + 15 + 10 + 15, 1_000 + 9 * 40 + 15, 1_000 + 9 * 40 + 15 + 15]);
}

proptest! {
    /// Whenever somebody looks for the first time, the same cells have left; and when all have
    /// come, those that wait leave one after the other. Two that come in the same picosecond go in
    /// the order of their inputs, whichever is earlier by less than that.
    #[test]
    fn cells_leave_in_the_order_in_which_they_came(
        kbit_per_s in prop_oneof![Just(84_800_u64), Just(42_400), Just(33_333)],
        trunk in prop_oneof![2 => Just(2_120_u64), 1 => Just(42_400), 2 => Just(84_800), 1 => Just(149_760), 2 => Just(212_000)],
        looks in prop::collection::vec(0..600_u64, 10),
        starts in prop::collection::vec((0..6_u64, prop_oneof![0..3_u64, 0..12_u64], prop_oneof![Just(149_760_u64), Just(155_000), Just(84_800)], 1..50_u64), 2..7),
        weights in prop_oneof![Just(None), prop::array::uniform3(1..4_u16).prop_map(Some)],
        scheme in prop_oneof![Just(Scheme::Tail), Just(Scheme::EpdPerVc { threshold: CellCount::new(20), vcs: None })],
    ) {
        let starts = starts.into_iter().map(|(spacings, microseconds, link, cells)| Start { spacings, microseconds, link, cells });
        let starts: Vec<Start> = starts.collect();
        let queue = QueueSpec { limit: None, discard: Discard { scheme, ..Discard::default() } };
        let class = |weight| ClassSpec { queue, priority: 0, weight };
        let queues = weights.map_or(Queues::Fifo(queue), |weights| Queues::Classes(weights.map(class).to_vec()));
        let both = || [true, false].map(|trains| one_frame_each(trains, [kbit_per_s, trunk], &queues, &starts));
        for us in looks {
            let [trains, cells] = both().map(|(mut network, trunk)| {
                network.advance(Instant::ZERO + Duration::from_us(1_000 + us));
                (network.all_hop_stats(), network.link_stats(trunk))
            });
            prop_assert_eq!(trains, cells);
        }
        // The last has come by then.
        let come = 1_000 + (6 + 50) * 424_000 / kbit_per_s + 20;
        let mut both = both();
        for us in (come..come + 7 * 50 * CELL_US).step_by(CELL_US as usize) {
            both.iter_mut().for_each(|(network, _)| network.advance(Instant::ZERO + Duration::from_us(us)));
            let [trains, cells] = &both;
            prop_assert_eq!(trains.0.all_hop_stats(), cells.0.all_hop_stats());
            prop_assert_eq!(trains.0.link_stats(trains.1), cells.0.link_stats(cells.1));
            if both.iter().all(|(network, _)| network.stats().inside == 0) {
                break;
            }
        }
        let [trains, cells] = both.each_mut().map(|(network, _)| {
            let mut left = Vec::new();
            network.departures(&mut left);
            left
        });
        prop_assert_eq!(trains.len(), starts.len());
        prop_assert_eq!(trains, cells);
    }
}

//! Trains that come side by side to one port, with many rounds before anything else comes: against the same cell by cell.

use lastmile_atm::contract::{Contract, Peak, Sbr, Sustainable};
use lastmile_atm::discard::Scheme;
use lastmile_atm::network::{ClassSpec, Upc};
use lastmile_atm::{Departure, Discard, LinkId, LinkSpec, Network, NetworkSpec, QueueSpec, Queues, VcId, VcSpec};
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
    /// As many as VCs, each has a far end for itself; fewer, some share one.
    receivers: usize,
}

/// Senders shaped alike to a switch, a trunk at which some are policed, and receivers; the network, its trunk and its VCs.
fn network(trains: bool, load: Load, queues: Queues) -> (Network, LinkId, Vec<VcId>) {
    let trunk_rate = BitRate::from_kbit_per_s(149_760);
    let mut spec = NetworkSpec { trains, ..NetworkSpec::new() };
    let (near, far) = (spec.node("near"), spec.node("far"));
    let delay = Duration::from_us(700);
    let trunk = spec.link(LinkSpec::new(near, far, trunk_rate, delay).with_queues(queues));
    for index in 0..load.receivers {
        let receiver = spec.node(format!("receiver {index}"));
        spec.link(LinkSpec::new(far, receiver, trunk_rate, Duration::ZERO));
    }
    let ids = (0..load.vcs).map(|index| {
        let names = [format!("sender {index}"), format!("receiver {}", index % load.receivers)];
        let sender = spec.node(names[0].clone());
        spec.link(LinkSpec::new(sender, near, trunk_rate, Duration::ZERO));
        let route = spec.route(&[&names[0], "near", "far", &names[1]]).expect("links");
        let upc = (index % 4 == 0).then(|| Upc { at: trunk, contract: contract() });
        spec.vc(VcSpec {
            pcr: Some(load.pcr),
            class: index % 3,
            upc,
            ..VcSpec::new(format!("vc {index}"), 32 + index as u16, route)
        })
    });
    let ids = ids.collect();
    (Network::new(&spec).expect("a network"), trunk, ids)
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
    let frame = (0..7_usize, gap, 1..9_000_u64);
    let frame =
        frame.prop_map(|(vc, gap, bytes)| Frame { vc, gap: Duration::from_ps(gap), bytes: ByteCount::new(bytes) });
    prop::collection::vec(frame, 2..60)
}

proptest! {
    #[test]
    fn trains_side_by_side_are_the_cells_that_they_are_made_of(
        frames in frames(),
        vcs in 2..8_usize,
        // Four and a half of 33.333 Mbit/s fill the trunk.
        kbit_per_s in prop_oneof![Just(149_760_u64), Just(74_880), Just(33_333), Just(10_000)],
        limit in prop_oneof![Just(None), Just(Some(25)), Just(Some(400))],
        epd in any::<bool>(),
        receivers in prop_oneof![2 => Just(7_usize), 1 => 1..4_usize],
        // Weight and priority of three queues.
        classes in prop_oneof![1 => Just(None), 3 => prop::array::uniform3((1..6_u16, 0..5_u8)).prop_map(Some)],
        samples in prop::collection::vec(0..4_000_000_u64, 1..12),
    ) {
        let scheme = if epd { Scheme::Epd { threshold: CellCount::new(limit.unwrap_or(30) * 2 / 3) } } else { Scheme::Tail };
        let queue = QueueSpec { limit: limit.map(CellCount::new), discard: Discard { scheme, ..Discard::default() } };
        // One in five has a priority of its own.
        let class = |(weight, priority)| ClassSpec { queue, priority: priority / 4, weight };
        let queues = || classes.map_or(Queues::Fifo(queue), |classes| Queues::Classes(classes.map(class).to_vec()));
        let load = Load { vcs, pcr: BitRate::from_kbit_per_s(kbit_per_s), receivers: receivers.min(vcs) };
        let mut both = [true, false].map(|trains| network(trains, load, queues()));
        let mut at = Instant::ZERO;
        for (index, frame) in frames.iter().enumerate() {
            at += frame.gap;
            for (network, _, ids) in &mut both {
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
            for vc in &trains.2 {
                prop_assert_eq!(trains.0.conformance(*vc), cells.0.conformance(*vc));
            }
            prop_assert!(trains.0.stats().holds());
            prop_assert_eq!(&left[0], &left[1]);
        }
        prop_assert_eq!(left[0].len(), frames.len());
    }
}

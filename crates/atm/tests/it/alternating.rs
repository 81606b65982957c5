//! Frames of several VCs whose cells alternate at one port: in runs and cell by cell, with equal
//! results.

use lastmile_atm::contract::{Contract, Peak, Sbr, Sustainable};
use lastmile_atm::discard::Scheme;
use lastmile_atm::network::{ClassSpec, Upc};
use lastmile_atm::{Departure, Discard, LinkId, LinkSpec, Network, NetworkSpec, QueueSpec, Queues, VcId, VcSpec, VpId};
use lastmile_units::{BitRate, ByteCount, CellCount, Duration, Instant};
use proptest::prelude::*;

#[derive(Clone, Debug)]
struct Frame {
    vc: usize,
    /// From the offer before.
    gap: Duration,
    bytes: ByteCount,
}

/// The senders, the trunk and the receivers.
#[derive(Clone, Copy)]
struct Load {
    vcs: usize,
    pcr: BitRate,
    trunk: BitRate,
    /// Priority of cells that are not tagged.
    low_priority: bool,
    /// The policer of a path polices some VCs.
    path: bool,
    /// Loss of the senders' links and of the trunk, cells of a billion.
    loss_ppb: u32,
    /// Number of far ends, at most that of VCs.
    receivers: usize,
}

/// A network of senders with equal shaping, a trunk with policers, and receivers; with its trunk, VCs
/// and path.
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

/// Rates of senders and of the trunk, kbit/s.
fn rates() -> impl Strategy<Value = (u64, u64)> {
    // Four and a half of 33.333 Mbit/s fill the trunk.
    (prop_oneof![Just(149_760_u64), Just(74_880), Just(33_333), Just(10_000)], Just(149_760))
}

/// Rates at which a cell takes whole microseconds (5, 10, 20, 40), so that arrivals and starts
/// coincide.
fn even_rates() -> impl Strategy<Value = (u64, u64)> {
    (
        prop_oneof![Just(84_800_u64), Just(42_400), Just(21_200), Just(10_600)],
        prop_oneof![Just(84_800_u64), Just(42_400)],
    )
}

proptest! {
    #[test]
    fn alternating_frames_are_equal_in_runs_and_cell_by_cell(
        frames in frames(),
        vcs in 2..8_usize,
        ((kbit_per_s, trunk_kbit_per_s), grid_ps) in
            prop_oneof![5 => (rates(), Just(1)), 3 => (even_rates(), Just(1_000_000_u64))],
        limit in prop_oneof![Just(None), Just(Some(25)), Just(Some(400))],
        (scheme, share, low_limit, low_priority) in (0..5_u8, 1..12_u64, any::<bool>(), any::<bool>()),
        path in prop_oneof![2 => Just(false), 1 => Just(true)],
        receivers in prop_oneof![2 => Just(7_usize), 1 => 1..4_usize],
        loss_ppb in prop_oneof![2 => Just(0_u32), 1 => Just(3_000_000), 1 => Just(100_000_000)],
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
            _ => {
                let (vc_threshold, activation) = (CellCount::new(share), CellCount::new(share + 2));
                Scheme::Spd { epd_threshold: threshold, vc_threshold, activation }
            }
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

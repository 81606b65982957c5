//! Cells that links lose: their choice, their share, and the fate of their frames and of others.

use lastmile_atm::network::{HopStats, NetworkError};
use lastmile_atm::{Departure, Fate, LinkSpec, Network, NetworkSpec, QueueSpec, Queues, VcId, VcSpec};
use lastmile_queueing::random::Stream;
use lastmile_units::{BitRate, ByteCount, Duration, Instant};

const SEED: u64 = 7;
/// 8 bytes of LLC/SNAP and 8 of trailer: 5 cells.
const BYTES: ByteCount = ByteCount::new(5 * 48 - 16);
const CELLS: u64 = 5;

/// A chain of links from node 0, with the loss of each in cells of a billion.
fn chain(trains: bool, losses_ppb: &[u32]) -> NetworkSpec {
    let mut spec = NetworkSpec { trains, ..NetworkSpec::new() };
    let mut from = spec.node("0");
    for (index, loss_ppb) in losses_ppb.iter().enumerate() {
        let to = spec.node((index + 1).to_string());
        let link = LinkSpec::new(from, to, BitRate::from_mbit_per_s(10), Duration::from_us(100));
        spec.link(LinkSpec { loss_ppb: *loss_ppb, ..link });
        from = to;
    }
    let route = spec.link_ids().collect();
    spec.vc(VcSpec { pcr: Some(BitRate::from_mbit_per_s(5)), ..VcSpec::new("vc", 32, route) });
    spec
}

/// The departures of a network whose first VC is offered a number of packets, and the VC at each of
/// its links.
fn run(spec: &NetworkSpec, packets: u64) -> (Vec<Departure>, Vec<HopStats>, Network) {
    let mut network = Network::seeded(spec, SEED).expect("a network");
    let vc = spec.vc_ids().next().expect("a VC");
    for packet in 0..packets {
        network.offer(Instant::ZERO, vc, BYTES, packet).expect("a packet");
    }
    network.advance(Instant::ZERO + Duration::from_s(3_600));
    let mut left = Vec::new();
    network.departures(&mut left);
    let hops = network.all_hop_stats().swap_remove(0);
    assert!(network.stats().holds(), "{:?}", network.stats());
    assert_eq!((network.stats().inside, left.len() as u64), (0, packets));
    (left, hops, network)
}

/// The cells of the only VC of [`chain`] that its generator loses at the first link.
fn lost_cells(loss_ppb: u32, cells: u64) -> Vec<u64> {
    let mut gaps = Stream::new(SEED, "cells of vc lost from 0 to 1");
    let mut next = gaps.geometric(loss_ppb).expect("some are lost");
    let mut lost = Vec::new();
    while next < cells {
        lost.push(next);
        next += 1 + gaps.geometric(loss_ppb).expect("some are lost");
    }
    lost
}

/// Frames that lose a cell are lost; those behind a frame of which some cells but not the last
/// arrived are joined to it; all others are whole.
#[test]
fn the_cells_that_are_drawn_are_lost_and_no_other() {
    let (packets, loss_ppb) = (400, 150_000_000);
    let lost = lost_cells(loss_ppb, packets * CELLS);
    let mut fates = Vec::new();
    let mut pending = false;
    for packet in 0..packets {
        let arrives: Vec<bool> = (0..CELLS).map(|cell| !lost.contains(&(packet * CELLS + cell))).collect();
        fates.push(match (arrives.iter().all(|arrives| *arrives), pending) {
            (false, _) => Fate::Lost,
            (true, true) => Fate::Joined,
            (true, false) => Fate::Whole,
        });
        pending = !arrives[CELLS as usize - 1] && (pending || arrives.contains(&true));
    }
    assert!([Fate::Lost, Fate::Joined, Fate::Whole].iter().all(|fate| fates.contains(fate)), "all of them are tried");
    for (trains, losses_ppb) in
        [(true, &[loss_ppb][..]), (false, &[loss_ppb]), (true, &[loss_ppb, 0, 0]), (false, &[loss_ppb, 0])]
    {
        let (mut left, hops, _) = run(&chain(trains, losses_ppb), packets);
        left.sort_by_key(|gone| gone.packet);
        let found: Vec<Fate> = left.iter().map(|gone| gone.fate).collect();
        assert_eq!(found, fates, "trains {trains}, {losses_ppb:?}");
        let (sent, lost) = (packets * CELLS, lost.len() as u64);
        assert_eq!((hops[0].sent, hops[0].lost, hops[0].dropped_cells()), (sent, lost, 0));
        assert!(
            hops[1..].iter().all(|hop| (hop.arrived, hop.sent, hop.lost) == (sent - lost, sent - lost, 0)),
            "{hops:?}"
        );
    }
}

/// A cell every 84.8 us, and 100 us on the wire: the time at which the last of 5 would arrive.
#[test]
fn a_frame_of_which_all_is_lost_leaves_when_its_last_cell_would_have_come() {
    for trains in [true, false] {
        let (left, hops, network) = run(&chain(trains, &[1_000_000_000]), 1);
        let at = Instant::ZERO + Duration::from_ps(4 * 84_800_000 + 42_400_000 + 100_000_000);
        assert_eq!((left[0].fate, left[0].at), (Fate::Lost, at));
        assert_eq!((hops[0].sent, hops[0].lost, network.stats().lost), (CELLS, CELLS, CELLS));
    }
}

#[test]
fn the_share_of_cells_and_of_frames_is_that_of_independent_losses() {
    let (packets, loss) = (100_000, 0.01);
    let (left, hops, _) = run(&chain(true, &[0, 10_000_000]), packets);
    let within = |found: u64, of: u64, expected: f64| {
        let deviation = (expected * (1.0 - expected) / of as f64).sqrt();
        let share = found as f64 / of as f64;
        assert!((share - expected).abs() < 4.0 * deviation, "{share} of {of}, not {expected}");
    };
    within(hops[1].lost, packets * CELLS, loss);
    let lost = left.iter().filter(|gone| gone.fate == Fate::Lost).count() as u64;
    within(lost, packets, 1.0 - (1.0 - loss).powi(CELLS as i32));
    // A frame is joined if it loses no cell and the previous frame its last cell, but not all.
    let joined = left.iter().filter(|gone| gone.fate == Fate::Joined).count() as u64;
    within(joined, packets, (1.0 - loss).powi(CELLS as i32) * (loss - loss.powi(CELLS as i32)));
}

/// Counters at all links are equal in runs and cell by cell at any time.
#[test]
fn what_is_counted_at_any_time_does_not_depend_on_trains() {
    for losses_ppb in [[0, 50_000_000, 0, 0], [50_000_000, 0, 0, 50_000_000], [50_000_000, 100_000_000, 0, 0]] {
        let specs = [true, false].map(|trains| chain(trains, &losses_ppb));
        let vc = specs[0].vc_ids().next().expect("a VC");
        let mut both = specs.map(|spec| Network::seeded(&spec, SEED).expect("a network"));
        for ms in 0..60 {
            let now = Instant::ZERO + Duration::from_ms(ms);
            both.iter_mut().for_each(|network| network.advance(now));
            let [trains, cells] = &both;
            assert_eq!(trains.all_hop_stats(), cells.all_hop_stats());
            assert_eq!(trains.stats(), cells.stats());
            for network in &mut both {
                network.offer(now, vc, BYTES, ms).expect("a packet");
            }
        }
        assert!(both[0].stats().lost > 0);
    }
}

/// Cells of other VCs do not change which cells a VC loses.
#[test]
fn every_vc_loses_its_own_cells() {
    let alone = chain(true, &[100_000_000]);
    let mut shared = alone.clone();
    let route: Vec<_> = shared.link_ids().collect();
    let other = shared.vc(VcSpec::new("other", 33, route));
    let (left, ..) = run(&alone, 200);
    let mut network = Network::seeded(&shared, SEED).expect("a network");
    let vc = shared.vc_ids().next().expect("a VC");
    for packet in 0..200 {
        network.offer(Instant::ZERO, vc, BYTES, packet).expect("a packet");
        network.offer(Instant::ZERO, other, BYTES, 1_000 + packet).expect("a packet");
    }
    network.advance(Instant::ZERO + Duration::from_s(60));
    let mut both = Vec::new();
    network.departures(&mut both);
    let fates = |left: &[Departure], vc: VcId| {
        let mut own: Vec<_> =
            left.iter().filter(|gone| gone.vc == vc).map(|gone| (gone.packet % 1_000, gone.fate)).collect();
        own.sort_by_key(|(packet, _)| *packet);
        own
    };
    assert_eq!(fates(&both, vc), fates(&left, vc));
    assert_ne!(fates(&both, vc), fates(&both, other));
}

/// Cells leave a scheduler unevenly spaced.
#[test]
fn cells_that_are_not_evenly_spaced_are_lost_one_by_one() {
    let gone = [true, false].map(|trains| {
        let mut spec = chain(trains, &[0, 200_000_000]);
        spec.links[1].queues = Queues::PerVc(QueueSpec::default());
        let route: Vec<_> = spec.link_ids().collect();
        let other = spec.vc(VcSpec { weight: 3, ..VcSpec::new("other", 33, route) });
        let mut network = Network::seeded(&spec, SEED).expect("a network");
        let vc = spec.vc_ids().next().expect("a VC");
        for packet in 0..50 {
            network.offer(Instant::ZERO, vc, ByteCount::new(1_500), packet).expect("a packet");
            network.offer(Instant::ZERO, other, ByteCount::new(1_500), 100 + packet).expect("a packet");
        }
        network.advance(Instant::ZERO + Duration::from_s(60));
        let mut left = Vec::new();
        network.departures(&mut left);
        assert!(network.stats().holds() && network.stats().lost > 0);
        left
    });
    assert_eq!(gone[0], gone[1]);
}

#[test]
fn no_link_loses_more_than_all() {
    let mut spec = chain(true, &[1_000_000_001]);
    let whose = "link from \"0\" to \"1\"".to_owned();
    assert_eq!(Network::new(&spec).err(), Some(NetworkError::LossAboveAll { whose, loss_ppb: 1_000_000_001 }));
    spec.links[0].loss_ppb = 1_000_000_000;
    assert!(Network::new(&spec).is_ok());
}

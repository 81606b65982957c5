//! Packets over links of cells: exact times, every packet accounted for, and outcomes that depend neither on
//! samples nor on trains.

use std::sync::{Arc, Mutex};

use lastmile_atm::discard::{Discard, Scheme};
use lastmile_atm::{LinkSpec, NetworkSpec, Queues, VcSpec};
use lastmile_linklayer::LinkLayer;
use lastmile_model::outcome::Outcome;
use lastmile_model::{Atm, Circuit, Hop, Link, Network, Node, Source, Traffic};
use lastmile_model::{BuildError, Observer, Passage};
use lastmile_packet::Meta;
use lastmile_queueing::line::Config as LineConfig;
use lastmile_queueing::spec::Spec;
use lastmile_sim::{Simulation, run};
use lastmile_tcp::{Config, Variant};
use lastmile_units::{BitRate, ByteCount, CellCount, Duration, Instant};
use proptest::prelude::*;

use crate::build;

const OC3: BitRate = BitRate::from_kbit_per_s(149_760);

/// Source - switch 1 - switch 2 - sink, nodes 0 to 3, links 2n there and 2n + 1 back. Each flow has a VC each
/// way. The link between the switches has `bottleneck`, and the port there a queue of 200 cells.
fn switched(traffic: Vec<Traffic>, bottleneck: BitRate, discard: Discard) -> Network {
    let mut network = build::line(1, 1, "ipoa-llcsnap", Duration::ZERO);
    network.links.clear();
    let nodes = ["source", "one", "two", "sink"];
    network.nodes = nodes.map(|name| Node { name: name.to_owned(), processing: Duration::ZERO }).to_vec();
    let mut spec = NetworkSpec::new();
    let node_ids = nodes.map(|name| spec.node(name));
    for (from, to) in (0..3).flat_map(|hop| [(hop, hop + 1), (hop + 1, hop)]) {
        let (rate, delay) =
            if (from, to) == (1, 2) { (bottleneck, Duration::from_ms(3)) } else { (OC3, Duration::from_us(10)) };
        let queues = Queues::fifo(CellCount::new(200), discard);
        let link = LinkSpec::new(node_ids[from], node_ids[to], rate, delay);
        spec.link(if (from, to) == (1, 2) { link.with_queues(queues) } else { link });
        let line = LineConfig::new(Some(rate), LinkLayer::from_name("ipoa-llcsnap").unwrap(), delay);
        let name = format!("{}-{}", nodes[from], nodes[to]);
        network.links.push(Link { from, to, hop: Hop { name, line, queue: Spec::fifo(1) } });
    }
    let mut circuits = Vec::new();
    for (index, traffic) in traffic.iter().enumerate() {
        let there = traffic.from < traffic.to;
        for back in [false, true] {
            let path = if there == back { ["sink", "two", "one", "source"] } else { ["source", "one", "two", "sink"] };
            let route = spec.route(&path).unwrap();
            let vcs = (0..traffic.count).map(|member| {
                let vci = 32 + 2 * spec.vcs.len() as u16 + u16::from(back);
                spec.vc(VcSpec::new(format!("{}-{member}", traffic.name), vci, route.clone()))
            });
            circuits.push(Circuit { traffic: index, back, vcs: vcs.collect(), contract: None, edge: None, hold: None });
        }
    }
    network.traffic = traffic;
    let links = (0..network.links.len()).collect();
    network.atm = Some(Atm { network: spec, links, circuits, edges: Vec::new() });
    network
}

fn upload(count: u32, variant: Variant) -> Traffic {
    let tcp = Config { variant, mss: 1024, ..Config::default() };
    Traffic { from: 0, to: 3, count, ..build::upload(&tcp, None) }
}

fn ping() -> Traffic {
    let source =
        Source::Ping { interval: Duration::from_ms(100), size: ByteCount::new(84), echo: lastmile_model::Echo::Icmp };
    build::traffic("ping", 0, 3, source)
}

fn epd() -> Discard {
    Discard { scheme: Scheme::Epd { threshold: CellCount::new(100) }, ..Discard::default() }
}

/// 84 + 8 + 8 = 100 bytes are 3 cells. A hop begins to send a cell when the cell has arrived, so a ping takes
/// 3 cell times on the slowest link and one on each other link. These links are alike: 3 + 1 + 1 cells of 2
/// 831 196.58 ps, and 3.02 ms, each way.
#[test]
fn a_ping_takes_its_cells_and_the_delays() {
    let mut network = switched(vec![ping()], OC3, Discard::default());
    network.links[3].hop.line.delay = Duration::from_ms(3);
    network.atm.as_mut().unwrap().network.links[3].delay = Duration::from_ms(3);
    let outcome = run(&network).unwrap();
    let expected_ps = 2.0 * (5.0 * 2_831_196.581 + 3.02e9);
    for (_, took) in &outcome.probes[0].replies {
        assert!((took.as_ps() as f64 - expected_ps).abs() < 4.0, "{took}");
    }
    assert_eq!(
        (outcome.probes[0].received, outcome.probes[0].sent),
        (100, 101),
        "the last request departs at the end of the run"
    );
}

/// From the start of its own transmission, the last of 3 cells takes a cell time on each of 3 links and 3.02
/// ms, in each direction. No cell waits, so the delays do not vary (ITU-T I.356).
#[test]
fn the_last_cell_of_a_ping_takes_a_cell_time_on_each_link() {
    let mut network = switched(vec![ping()], OC3, Discard::default());
    network.links[3].hop.line.delay = Duration::from_ms(3);
    network.atm.as_mut().unwrap().network.links[3].delay = Duration::from_ms(3);
    let outcome = run(&network).unwrap();
    let expected_ps = 3.0 * 2_831_196.581 + 3.02e9;
    for vc in outcome.atm.unwrap().vcs {
        let delays = vc.cell_delays;
        assert_eq!(delays.cells, 100);
        assert!((delays.min.as_ps() as f64 - expected_ps).abs() < 8.0, "{:?}", delays.min);
        assert!(delays.max.as_ps() - delays.min.as_ps() <= 8, "{:?}", delays.max);
    }
}

/// Two pings start at once over the one link of the source. The 3 cells of the second wait for those of the first; the
/// cell transfer delay does not include this wait.
#[test]
fn waiting_at_the_source_is_no_transfer_delay() {
    let mut two = ping();
    two.count = 2;
    let mut network = switched(vec![two], OC3, Discard::default());
    network.links[3].hop.line.delay = Duration::from_ms(3);
    network.atm.as_mut().unwrap().network.links[3].delay = Duration::from_ms(3);
    network.duration = Duration::from_s(5);
    let outcome = run(&network).unwrap();
    let expected_ps = 3.0 * 2_831_196.581 + 3.02e9;
    for vc in &outcome.atm.as_ref().unwrap().vcs {
        assert!((vc.cell_delays.max.as_ps() as f64 - expected_ps).abs() < 8.0, "{:?}", vc.cell_delays);
    }
    // A whole packet takes two cell times more, and three more behind another packet.
    let longest = outcome.atm.unwrap().vcs.iter().map(|vc| vc.transit.max_ns).max().unwrap();
    assert!((longest as f64 * 1e3 - expected_ps - 5.0 * 2_831_196.581).abs() < 2e3, "{longest}");
}

#[test]
fn a_transfer_fills_the_bottleneck_with_cells() {
    let bottleneck = BitRate::from_mbit_per_s(10);
    let network = switched(vec![upload(1, Variant::Sack)], bottleneck, Discard::default());
    let outcome = run(&network).unwrap();
    // 1024 bytes in 23 cells of 424 bits.
    let payload_bps = 10e6 * 1024.0 * 8.0 / (23.0 * 424.0);
    let goodput_bps = outcome.flows[0].bytes_delivered as f64 * 8.0 / 10.0;
    assert!((0.9..=1.0).contains(&(goodput_bps / payload_bps)), "{goodput_bps} of {payload_bps}");
    let atm = outcome.atm.unwrap();
    assert!(atm.holds(), "{atm:?}");
    let cells = atm.ports[2].cells.sent;
    assert_eq!(outcome.links[2].cells, Some(cells));
    // The last cell is in transmission at the end.
    let bits = outcome.links[2].wire_bits;
    assert!((cells * 424 - 423..=cells * 424).contains(&bits) && bits <= 100_000_000, "{bits} bits of {cells} cells");
}

/// The outcome of a run without the number of its events.
fn without_events(outcome: &Outcome) -> String {
    let Outcome { flows, links, conservation, atm, .. } = outcome;
    format!("{flows:?}\n{links:?}\n{conservation:?}\n{atm:?}")
}

#[test]
fn neither_trains_nor_samples_change_a_result() {
    let mut network = switched(vec![upload(4, Variant::Tahoe), ping()], BitRate::from_mbit_per_s(10), epd());
    let plain = without_events(&run(&network).unwrap());
    network.record.interval = Some(Duration::from_ms(7));
    let sampled = run(&network).unwrap();
    assert_eq!(plain, without_events(&sampled));
    let queue = sampled.series.iter().find(|series| series.name == "queue_cells").expect("a port that fills");
    assert_eq!(queue.entity, "one-two");
    assert!(queue.points.iter().any(|(_, cells)| *cells > 50.0), "{:?}", &queue.points[..50]);
    network.atm.as_mut().unwrap().network.trains = false;
    assert_eq!(plain, without_events(&run(&network).unwrap()));
    // A network that loses cells in both directions.
    let lossy = |trains, interval| {
        let mut network = network.clone();
        network.record.interval = interval;
        let spec = &mut network.atm.as_mut().unwrap().network;
        spec.trains = trains;
        for link in [2, 5] {
            spec.links[link].loss_ppb = 3_000_000;
        }
        run(&network).unwrap()
    };
    let losses = lossy(true, None);
    assert!(losses.conservation.holds() && losses.atm.as_ref().unwrap().holds());
    assert!(losses.atm.as_ref().unwrap().vcs.iter().any(|vc| vc.on_wire > 0));
    assert_eq!(without_events(&losses), without_events(&lossy(false, Some(Duration::from_ms(7)))));
}

#[test]
fn a_traffic_without_a_virtual_channel_is_refused() {
    let mut network = switched(vec![upload(1, Variant::Reno)], OC3, Discard::default());
    network.atm.as_mut().unwrap().circuits.pop();
    let error = run(&network).unwrap_err();
    assert!(matches!(&error, BuildError::NoVc { back: true, .. }), "{error}");
    assert_eq!(
        error.to_string(),
        "traffic \"upload\": no virtual channel for its replies, which come to link \"sink-two\""
    );
}

/// Times, links and passages of all packets.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<(Instant, usize, Passage)>>>);

impl Observer<Meta> for Log {
    fn packet(&mut self, at: Instant, link: usize, passage: Passage, _packet: &Meta) {
        self.0.lock().unwrap().push((at, link, passage));
    }
}

#[test]
fn a_capture_sees_packets_that_enter_depart_and_are_lost() {
    let network = switched(vec![upload(4, Variant::Tahoe)], BitRate::from_mbit_per_s(10), epd());
    let log = Log::default();
    let outcome = Simulation::new(&network, Some(Box::new(log.clone()))).unwrap().finish();
    let seen = log.0.lock().unwrap();
    let count = |of: fn(&Passage) -> bool| seen.iter().filter(|(_, _, passage)| of(passage)).count() as u64;
    let held = outcome.conservation;
    assert_eq!(count(|passage| *passage == Passage::Transmitted), held.sent.packets);
    assert_eq!(count(|passage| *passage == Passage::Arrived), held.delivered.packets);
    assert_eq!(count(|passage| matches!(passage, Passage::Dropped(_))), held.dropped.packets);
    assert!(held.dropped.packets > 0, "{held:?}");
    let entered = seen.iter().filter(|(_, link, _)| [0, 5].contains(link)).map(|(at, ..)| *at);
    assert!(entered.collect::<Vec<_>>().is_sorted());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn every_packet_and_every_cell_is_somewhere(
        kbit in 500_u64..50_000,
        count in 1_u32..8,
        variant in prop::sample::select(vec![Variant::Tahoe, Variant::Reno, Variant::Cubic]),
        scheme in 0_usize..5,
        stop_ms in 10_u64..2_000,
        seed in any::<u64>(),
        loss_ppb in prop_oneof![Just(0_u32), Just(1_000_000), Just(200_000_000)],
    ) {
        let cells = CellCount::new;
        let schemes = [
            Scheme::Tail,
            Scheme::Ppd,
            Scheme::Epd { threshold: cells(150) },
            Scheme::EpdPerVc { threshold: cells(100), vcs: None },
            Scheme::Spd { epd_threshold: cells(180), vc_threshold: cells(20), activation: cells(40) },
        ];
        let discard = Discard { scheme: schemes[scheme], ..Discard::default() };
        let poisson = Source::Poisson { rate: BitRate::from_kbit_per_s(kbit / 2), size: ByteCount::new(700) };
        let traffic = vec![upload(count, variant), ping(), build::traffic("poisson", 3, 0, poisson)];
        let mut network = switched(traffic, BitRate::from_kbit_per_s(kbit), discard);
        network.seed = seed;
        network.duration = Duration::from_s(2);
        network.atm.as_mut().unwrap().network.links[2].loss_ppb = loss_ppb;
        let mut simulation = Simulation::new(&network, None).unwrap();
        simulation.advance_to(Instant::ZERO + Duration::from_ms(stop_ms));
        let half_way = simulation.conservation();
        prop_assert!(half_way.holds(), "{half_way:?}");
        let outcome = simulation.finish();
        prop_assert!(outcome.conservation.holds(), "{:?}", outcome.conservation);
        let atm = outcome.atm.unwrap();
        prop_assert!(atm.holds(), "{atm:?}");
        let lost: u64 = atm.vcs.iter().map(|vc| vc.lost.iter().sum::<u64>() + vc.on_wire + vc.joined).sum();
        prop_assert_eq!(lost, outcome.conservation.dropped.packets);
    }
}

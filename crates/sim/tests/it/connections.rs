//! Connections that web users and swarms open and close, and replays.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use lastmile_model::outcome::Outcome;
use lastmile_model::{Http, Network, Replay, Source, Swarm, Transport, Web};
use lastmile_model::{Observer, Passage};
use lastmile_packet::{FlowAddresses, FlowId, FlowKey, Meta, Protocol, SeqNumber, TcpFlags};
use lastmile_sim::{Simulation, run};
use lastmile_tcp::Config;
use lastmile_units::{Duration, Ratio};

use crate::build;

fn web(connections: u32, persistent: bool) -> Source {
    let tcp = Arc::new(Config::default());
    Source::Web(Arc::new(Web {
        transport: Transport::Tcp(tcp),
        reading: Duration::from_s(2),
        parsing: Duration::from_ms(130),
        request: 350,
        connections,
        http: if persistent { Http::One1 } else { Http::One0 },
        tls: false,
    }))
}

fn swarm(peers: u32, slots: u32) -> Source {
    let tcp = Arc::new(Config::default());
    Source::Swarm(Arc::new(Swarm { tcp, peers, slots, rechoke: Duration::from_s(10) }))
}

fn network(source: Source, from: usize, seconds: u64) -> Network {
    let mut network = build::line(8_000, 1_000, "pppoe-llcsnap", Duration::from_ms(10));
    network.duration = Duration::from_s(seconds);
    network.traffic.push(build::traffic("source", from, 1 - from, source));
    network
}

/// The flow numbers seen, and the largest number of connections open at a time: SYNs less connections closed
/// by a server.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Counts>>);

#[derive(Default)]
struct Counts {
    flows: BTreeSet<u32>,
    open: BTreeSet<u32>,
    most: usize,
}

impl Observer<Meta> for Seen {
    fn packet(&mut self, _: lastmile_units::Instant, link: usize, passage: Passage, packet: &Meta) {
        if passage != Passage::Transmitted {
            return;
        }
        let Counts { flows, open, most } = &mut *self.0.lock().unwrap();
        flows.insert(packet.flow.index() / 2);
        if packet.flags.contains(TcpFlags::SYN) && link == 0 {
            open.insert(packet.flow.index() / 2);
        }
        if packet.flags.contains(TcpFlags::FIN) && link == 1 {
            open.remove(&(packet.flow.index() / 2));
        }
        *most = (*most).max(open.len());
    }
}

fn watched(network: &Network) -> (Outcome, usize, usize) {
    let seen = Seen::default();
    let outcome = Simulation::new(network, Some(Box::new(seen.clone()))).unwrap().finish();
    assert!(outcome.conservation.holds(), "{:?}", outcome.conservation);
    let Counts { flows, most, .. } = &*seen.0.lock().unwrap();
    (outcome, flows.len(), *most)
}

#[test]
fn pages_are_read_over_no_more_connections_than_a_browser_opens() {
    for (connections, persistent) in [(6, true), (6, false), (1, true), (1, false)] {
        let (outcome, _, most) = watched(&network(web(connections, persistent), 1, 300));
        let browsing = &outcome.applications.browsing[0];
        let (opened, failed) = outcome.flows[0].connections.unwrap();
        assert!(browsing.pages >= 50, "{} pages", browsing.pages);
        assert_eq!(failed, 0);
        assert!(browsing.responses.len() as u64 >= browsing.pages - 1, "all but the last are complete");
        assert!(most <= connections as usize, "{most} open at a time");
        if persistent {
            assert!(opened <= browsing.pages * u64::from(connections));
            assert!(opened < browsing.objects);
        } else {
            assert!(opened >= browsing.objects && opened <= browsing.objects + u64::from(connections));
        }
        // The minimum is a handshake and a request: two round trips of 20 ms of propagation.
        assert!(browsing.responses.iter().all(|took| *took > Duration::from_ms(40)));
        assert!(outcome.flows[0].bytes_delivered > 1_000_000);
    }
}

/// The random draws of a session do not depend on the network.
#[test]
fn a_slow_line_carries_the_same_pages_later() {
    let fast = run(&network(web(6, true), 1, 600)).unwrap();
    let mut slow = network(web(6, true), 1, 600);
    slow.links[1].hop.line.rate = lastmile_units::BitRate::from_bps(256_000);
    let slow = run(&slow).unwrap();
    let sum = |outcome: &Outcome| {
        let responses = outcome.applications.browsing[0].responses.iter().take(20);
        responses.map(|took| took.as_secs_f64()).sum::<f64>()
    };
    assert!(slow.applications.browsing[0].responses.len() >= 20);
    assert!(sum(&slow) > 3.0 * sum(&fast), "{} s against {} s", sum(&slow), sum(&fast));
}

/// Flow numbers are reused after a minute, so an hour with one connection an object needs few.
#[test]
fn flow_numbers_are_reused() {
    let (outcome, numbers, _) = watched(&network(web(6, false), 1, 3_600));
    let (opened, _) = outcome.flows[0].connections.unwrap();
    assert!(opened > 2_000, "{opened} connections");
    assert!((numbers as u64) < opened / 4, "{numbers} numbers for {opened} connections");
}

#[test]
fn a_stopped_user_requests_nothing() {
    let mut network = network(web(6, true), 1, 60);
    network.traffic[0].stop = Some(build::at_ms(20_000));
    let outcome = run(&network).unwrap();
    assert!(outcome.conservation.holds());
    assert!(outcome.flows[0].deliveries.unwrap().last < build::at_ms(25_000));
}

#[test]
fn a_swarm_fills_its_direction_over_changing_connections() {
    let (outcome, numbers, _) = watched(&network(swarm(40, 4), 0, 125));
    let flow = &outcome.flows[0];
    let (opened, failed) = flow.connections.unwrap();
    // Four at the start, and one more at each of 10, 20, ... 120 s.
    assert_eq!((opened, failed), (16, 0));
    assert!(numbers <= 17);
    let up = outcome.links[0].wire_bits as f64 / 1e6 / 125.0;
    assert!(up > 0.9, "{up} of the upstream");
    assert!(flow.tcp.as_ref().unwrap().acks_received > 0);
    assert!(flow.bytes_delivered > 10_000_000);
}

#[test]
fn equal_seeds_open_equal_connections() {
    for source in [web(6, true), web(6, false), swarm(40, 4)] {
        let sums = |seed| {
            let mut network = network(source.clone(), 1, 120);
            network.seed = seed;
            network.links[1].hop.line.loss = Ratio::from_ppm(10_000).unwrap();
            let outcome = run(&network).unwrap();
            assert!(outcome.conservation.holds());
            (outcome.events, outcome.conservation, outcome.flows[0].bytes_delivered)
        };
        assert_eq!(sums(7), sums(7));
        assert_ne!(sums(7), sums(8));
    }
}

fn replay(packets: Vec<(Duration, Meta)>, flows: u32) -> Source {
    let addresses = |flow| FlowAddresses::of_simulated(FlowId::new(2 * flow));
    let flows = (0..flows).map(|flow| FlowKey { addresses: addresses(flow), protocol: 6 }).collect();
    Source::Replay(Arc::new(Replay { packets, flows }))
}

/// Time in ms, flow, sequence number and length of a sent packet.
type Row = (u64, u32, u32, u16);

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<Row>>>);

impl Observer<Meta> for Log {
    fn packet(&mut self, at: lastmile_units::Instant, _: usize, passage: Passage, packet: &Meta) {
        if passage == Passage::Transmitted {
            let row = (at.as_ps() / 1_000_000_000, packet.flow.index(), packet.seq.raw(), packet.ip_len);
            self.0.lock().unwrap().push(row);
        }
    }
}

#[test]
fn a_replay_sends_each_packet_unchanged_at_its_time() {
    let packet = |flow, seq, len| Meta {
        flow: FlowId::new(flow),
        protocol: Protocol::Tcp,
        seq: SeqNumber::new(seq),
        ip_len: len,
        header_len: 40,
        flags: TcpFlags::ACK,
        ..Meta::default()
    };
    let packets = vec![
        (Duration::ZERO, packet(0, 1, 1_500)),
        (Duration::from_ms(100), packet(1, 77, 40)),
        (Duration::from_ms(250), packet(0, 1_461, 1_000)),
    ];
    let mut network = build::line(1_000, 1_000, "ip", Duration::from_ms(1));
    let ping = Source::Ping {
        interval: Duration::from_s(100),
        size: lastmile_units::ByteCount::new(84),
        echo: lastmile_model::Echo::Icmp,
    };
    let mut traffic = build::traffic("replay", 0, 1, replay(packets, 2));
    traffic.start = build::at_ms(1_000);
    network.traffic.push(traffic);
    let mut late = build::traffic("ping", 0, 1, ping);
    late.start = build::at_ms(9_000);
    network.traffic.push(late);
    let log = Log::default();
    let outcome = Simulation::new(&network, Some(Box::new(log.clone()))).unwrap().finish();
    // The traffic list has flows 0 and 1. The flows of the capture are thus 2 and 3, with packets of flow ID 4 and 6.
    let rows = log.0.lock().unwrap().clone();
    assert_eq!(rows[..3], [(1_000, 4, 1, 1_500), (1_100, 6, 77, 40), (1_250, 4, 1_461, 1_000)]);
    assert!(outcome.conservation.holds());
    let flow = &outcome.flows[0];
    assert_eq!((flow.data_packets, flow.data_packets_received, flow.bytes_delivered), (3, 3, 1_460 + 960));
}

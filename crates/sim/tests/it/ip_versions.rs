//! Traffic of IPv4 and IPv6: the version and the lengths of every packet.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use lastmile_model::{BuildError, Echo, IpFields, Observer, OpenedBy, Passage, Source, Steady, Traffic};
use lastmile_model::{Http, Transport, Web};
use lastmile_packet::Meta;
use lastmile_quic::Config as Quic;
use lastmile_sim::{Simulation, run};
use lastmile_tcp::Config;
use lastmile_units::{ByteCount, Duration, Instant};

use crate::build;

/// Version, bytes of headers and bytes of each packet that is sent.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<BTreeSet<(bool, u8, u16)>>>);

impl Observer<Meta> for Seen {
    fn packet(&mut self, _: Instant, _: usize, _: Passage, packet: &Meta) {
        self.0.lock().unwrap().insert((packet.mark.ipv6(), packet.header_len, packet.ip_len));
    }
}

fn packets(traffic: Traffic, ipv6: bool) -> BTreeSet<(bool, u8, u16)> {
    let mut network = build::line(10_000, 2_000, "ip", Duration::from_ms(5));
    network.duration = Duration::from_s(2);
    network.traffic.push(Traffic { ip: IpFields { ipv6, dscp: 0 }, ..traffic });
    let seen = Seen::default();
    let outcome = Simulation::new(&network, Some(Box::new(seen.clone()))).unwrap().finish();
    assert!(outcome.conservation.holds(), "{:?}", outcome.conservation);
    let seen = seen.0.lock().unwrap();
    seen.clone()
}

/// A size that the traffic states is that of the whole packet, so that IPv6 leaves less for the payload.
#[test]
fn datagrams_of_ipv6_have_headers_of_48_bytes_within_their_size() {
    let constant =
        || Source::Constant { interval: Duration::from_ms(20), size: ByteCount::new(200), kind: Steady::Voice };
    let ping = || Source::Ping { interval: Duration::from_ms(20), size: ByteCount::new(104), echo: Echo::Icmp };
    assert_eq!(packets(build::traffic("call", 0, 1, constant()), false), BTreeSet::from([(false, 28, 200)]));
    assert_eq!(packets(build::traffic("call", 0, 1, constant()), true), BTreeSet::from([(true, 48, 200)]));
    assert_eq!(packets(build::traffic("ping", 0, 1, ping()), true), BTreeSet::from([(true, 48, 104)]));
}

fn transfer(quic: Arc<Quic>) -> Source {
    Source::Quic { quic, bytes: None, request: 0, opened_by: OpenedBy::Receiver }
}

fn pages(quic: Arc<Quic>) -> Source {
    Source::Web(Arc::new(Web {
        transport: Transport::Quic(quic),
        http: Http::Three,
        tls: false,
        reading: Duration::from_ms(100),
        parsing: Duration::from_ms(10),
        request: 350,
        connections: 1,
    }))
}

/// A datagram of QUIC does not depend on the version: 1452 bytes make packets of 1480 and of 1500.
#[test]
fn packets_of_quic_are_20_bytes_longer() {
    for (ipv6, headers, longest) in [(false, 28, 1480), (true, 48, 1500)] {
        let seen = packets(build::traffic("download", 1, 0, transfer(Arc::default())), ipv6);
        assert!(seen.iter().all(|(version, header, _)| (*version, *header) == (ipv6, headers)), "{seen:?}");
        assert_eq!(seen.iter().map(|(_, _, ip_len)| *ip_len).max(), Some(longest));
    }
}

/// 65487 bytes and 48 of UDP and IPv6 are an IP packet of 65535.
#[test]
fn datagrams_of_quic_that_no_ip_packet_holds_are_refused() {
    for (ipv6, most) in [(false, 65_507), (true, 65_487)] {
        let run = |datagram: u16, over: fn(Arc<Quic>) -> Source| {
            let mut network = build::line(50_000, 2_000, "ip", Duration::from_ms(5));
            network.duration = Duration::from_s(2);
            let download = build::traffic("download", 1, 0, over(Arc::new(Quic { datagram, ..Quic::default() })));
            network.traffic.push(Traffic { ip: IpFields { ipv6, dscp: 0 }, ..download });
            run(&network)
        };
        for over in [transfer, pages] {
            assert!(run(most, over).is_ok());
            assert!(matches!(run(most + 1, over), Err(BuildError::PacketSize { size: 65_536, .. })));
        }
    }
}

#[test]
fn tcp_of_another_version_than_its_traffic_is_refused() {
    let download = build::download(&Config { ipv6: true, ..Config::default() }, None);
    let seen = packets(download.clone(), true);
    assert!(seen.iter().all(|(version, header, _)| *version && *header >= 60), "{seen:?}");
    let mut network = build::line(10_000, 2_000, "ip", Duration::from_ms(5));
    network.traffic.push(download);
    assert!(matches!(run(&network), Err(BuildError::Version { .. })));
}

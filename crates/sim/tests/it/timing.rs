//! Times are exact: a packet takes its wire time, its propagation and its processing, to the picosecond.

use lastmile_model::{Echo, Source, Steady};
use lastmile_queueing::line::impairments::{Chance, Reorder};
use lastmile_sim::run;
use lastmile_units::{ByteCount, Duration, Ratio};

use crate::build;

/// 100 bytes over ipoa-vcmux: 108 bytes in 3 cells, 159 bytes, 1272 bits. Up at 512 kbit/s 2.484375 ms, down
/// at 2 Mbit/s 0.636 ms; 4 ms of propagation each way and 1 ms of processing at each end.
#[test]
fn a_lone_ping_takes_its_wire_time_propagation_and_processing() {
    let mut network = build::line(2_000, 512, "ipoa-vcmux", Duration::from_ms(4));
    for node in &mut network.nodes {
        node.processing = Duration::from_ms(1);
    }
    let ping = Source::Ping { interval: Duration::from_ms(100), size: ByteCount::new(100), echo: Echo::Icmp };
    network.traffic.push(build::traffic("ping", 0, 1, ping));
    let outcome = run(&network).unwrap();
    let probe = &outcome.probes[0];
    assert_eq!(probe.sent, 101);
    assert_eq!(probe.received, 100, "the last request departs at the end of the run");
    let exact = Duration::from_us(2_484) + Duration::from_ns(375) + Duration::from_us(636) + Duration::from_ms(10);
    assert!(probe.replies.iter().all(|(_, took)| *took == exact), "{:?} is not {exact}", probe.replies[0].1);
}

/// A ping over UDP has the round trip of a ping over ICMP of equal size. Its requests depart halfway between those of a
/// ping with an equal interval.
#[test]
fn a_ping_over_udp_departs_between_those_over_icmp() {
    let mut network = build::line(2_000, 512, "ipoa-vcmux", Duration::from_ms(4));
    for (name, echo) in [("ping", Echo::Icmp), ("probe", Echo::Udp)] {
        let source = Source::Ping { interval: Duration::from_ms(100), size: ByteCount::new(100), echo };
        network.traffic.push(build::traffic(name, 0, 1, source));
    }
    let outcome = run(&network).unwrap();
    let [ping, probe] = &outcome.probes[..] else { panic!("two probes") };
    let exact = Duration::from_us(2_484) + Duration::from_ns(375) + Duration::from_us(636) + Duration::from_ms(8);
    for ((departed, udp), (_, icmp)) in probe.replies.iter().zip(&ping.replies) {
        assert_eq!((*udp, *icmp), (exact, exact));
        assert_eq!(departed.since(lastmile_units::Instant::ZERO).as_ms() % 100, 50);
    }
    assert_eq!(probe.replies.len(), 100);
    assert!(outcome.conservation.holds());
}

/// Back-to-back frames of one cell at 149.76 Mbit/s: 10^6 cells end within 1 ns of 10^6 * 424 / 149.76e6 s.
#[test]
fn a_million_back_to_back_cells_end_on_time() {
    let mut network = build::line(149_760, 149_760, "ipoa-vcmux", Duration::ZERO);
    // 40 bytes and 8 of AAL5 are one cell. The source is a little faster than the line, so the line is never idle.
    let blast = Source::Constant { interval: Duration::from_ns(2_831), size: ByteCount::new(40), kind: Steady::Blast };
    network.traffic.push(build::traffic("blast", 1, 0, blast));
    network.duration = Duration::from_ms(2_900);
    let mut simulation = lastmile_sim::Simulation::new(&network, None).unwrap();
    let exact_ps = 1_000_000_u128 * 424 * 1_000_000_000_000 / 149_760_000;
    let exact = lastmile_units::Instant::from_ps(u64::try_from(exact_ps).unwrap());
    simulation.advance_to(exact + Duration::from_ns(1));
    assert_eq!(simulation.link_stats(1).arrived.packets, 1_000_000);
    let mut simulation = lastmile_sim::Simulation::new(&network, None).unwrap();
    simulation.advance_to(lastmile_units::Instant::from_ps(exact.as_ps() - 1_000));
    assert_eq!(simulation.link_stats(1).arrived.packets, 999_999);
}

/// 1500 bytes at 1 kbit/s take 12 s: the wire carries 1000 bits in every sample of a second, and 3000 in three.
#[test]
fn bits_count_when_they_depart() {
    let mut network = build::line(1, 1, "ip", Duration::ZERO);
    network.duration = Duration::from_s(3);
    network.record.interval = Some(Duration::from_s(1));
    let blast = Source::Constant { interval: Duration::from_ms(100), size: ByteCount::new(1500), kind: Steady::Blast };
    network.traffic.push(build::traffic("blast", 0, 1, blast));
    let outcome = run(&network).unwrap();
    let rates: Vec<f64> = outcome
        .series
        .iter()
        .filter(|series| series.name == "wire_rate_bps" && series.points.iter().any(|(_, rate)| *rate > 0.0))
        .flat_map(|series| series.points.iter().map(|(_, rate)| *rate))
        .collect();
    assert_eq!(rates, [1000.0; 3]);
    assert!(outcome.links.iter().any(|link| link.wire_bits == 3000));
}

/// One datagram in ten overtakes the delay of 50 ms, and with it all of the 50 ms before: 400 datagrams. The delay of
/// each is measured, however far behind it arrives.
#[test]
fn datagrams_are_measured_however_late_they_come() {
    let mut network = build::line(200_000, 200_000, "ip", Duration::from_ms(50));
    network.duration = Duration::from_s(3);
    let chance = Chance::independent(Ratio::from_percent(10).unwrap());
    network.links[1].hop.line.impairments.reorder = Some(Reorder::Overtaking { chance, gap: 1 });
    let (interval, size) = (Duration::from_us(125), ByteCount::new(1500));
    let source = Source::Constant { interval, size, kind: Steady::Blast };
    network.traffic.push(build::traffic("datagrams", 1, 0, source));
    let outcome = run(&network).unwrap();
    let flow = &outcome.flows[0];
    let measured = flow.data_delays.as_ref().expect("delays of datagrams");
    assert_eq!(measured.packets, flow.data_packets_received);
    let expected = 0.9 * 0.05 + 1500.0 * 8.0 / 200e6;
    let mean_s = measured.mean_s().expect("packets");
    assert!((mean_s - expected).abs() < 0.001, "{mean_s} s");
}

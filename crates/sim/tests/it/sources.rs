//! Sources offer their configured rate.

use std::collections::BTreeSet;
use std::sync::Arc;

use lastmile_model::BuildError;
use lastmile_model::outcome::{FlowOutcome, Outcome};
use lastmile_model::{Echo, Game, Network, OpenedBy, Source, Steady, Traffic};
use lastmile_queueing::line::impairments::{BitErrorRate, Chance, Impairments};
use lastmile_sim::run;
use lastmile_tcp::Config;
use lastmile_units::{BitRate, ByteCount, Duration, Instant, Ratio};

use crate::build;
use crate::conference::conference;
use crate::game::datagrams;

fn offered(source: Source, duration: Duration) -> f64 {
    let mut network: Network = build::line(100_000, 100_000, "ip", Duration::from_ms(1));
    network.duration = duration;
    network.traffic.push(build::traffic("source", 0, 1, source));
    let outcome = run(&network).unwrap();
    assert!(outcome.conservation.holds());
    outcome.links[0].stats.enqueued.bytes as f64 * 8.0 / duration.as_secs_f64()
}

#[test]
fn a_constant_source_sends_at_its_interval() {
    let voice = Source::Constant { interval: Duration::from_ms(20), size: ByteCount::new(200), kind: Steady::Voice };
    // 50 packets a second of 1600 bits, and the one at the end of the run.
    assert_eq!(offered(voice, Duration::from_s(10)), 80_160.0);
}

#[test]
fn a_poisson_source_has_its_mean_rate() {
    let poisson = Source::Poisson { rate: BitRate::from_mbit_per_s(1), size: ByteCount::new(500) };
    let rate = offered(poisson, Duration::from_s(200));
    assert!((0.99e6..1.01e6).contains(&rate), "{rate} bit/s");
}

#[test]
fn an_on_off_source_has_its_mean_rate() {
    let (on, off) = (Duration::from_ms(100), Duration::from_ms(300));
    let source = Source::OnOff { peak: BitRate::from_mbit_per_s(4), on, off, size: ByteCount::new(500) };
    let rate = offered(source, Duration::from_s(2_000));
    assert!((0.98e6..1.02e6).contains(&rate), "{rate} bit/s, a quarter of 4 Mbit/s");
}

#[test]
fn a_source_stops_at_its_stop_time() {
    let mut network = build::line(1_000, 1_000, "ip", Duration::from_ms(1));
    let voice = Source::Constant { interval: Duration::from_ms(20), size: ByteCount::new(200), kind: Steady::Voice };
    let mut traffic = build::traffic("voice", 0, 1, voice);
    traffic.start = build::at_ms(1_000);
    traffic.stop = Some(build::at_ms(2_000));
    network.traffic.push(traffic);
    let outcome = run(&network).unwrap();
    assert_eq!(outcome.flows[0].data_packets, 50, "at 1.00, 1.02, ... 1.98 s");
}

fn writes(kbit_per_s: u64, size: u64, opened_by: OpenedBy) -> Traffic {
    let (from, to) = if opened_by == OpenedBy::Sender { (0, 1) } else { (1, 0) };
    let (tcp, rate) = (Arc::new(Config::default()), BitRate::from_kbit_per_s(kbit_per_s));
    build::traffic("writes", from, to, Source::Writes { tcp, rate, size: ByteCount::new(size), first: None, opened_by })
}

/// The standard deviation of 5000 writes is 1.4 % of their mean.
#[test]
fn random_writes_arrive_at_their_rate_whichever_side_opens() {
    for opened_by in [OpenedBy::Sender, OpenedBy::Receiver] {
        let mut network = build::line(10_000, 10_000, "ip", Duration::from_ms(1));
        network.duration = Duration::from_s(100);
        network.traffic.push(writes(400, 1000, opened_by));
        let outcome = run(&network).unwrap();
        assert!(outcome.conservation.holds());
        let flow = &outcome.flows[0];
        let rate = flow.bytes_delivered as f64 * 8.0 / 100.0;
        assert!((384e3..416e3).contains(&rate), "{rate} bit/s");
        assert_eq!(flow.bytes_delivered % 1000, 0, "each write is sent at once, and none waits for the next");
        assert_eq!(flow.data_packets, flow.bytes_delivered / 1000);
    }
}

#[test]
fn data_that_tcp_cannot_send_yet_is_sent_later() {
    let mut network = build::line(1_000, 1_000, "ip", Duration::from_ms(1));
    network.duration = Duration::from_s(20);
    network.traffic.push(writes(2_000, 1000, OpenedBy::Sender));
    let outcome = run(&network).unwrap();
    // The rate is twice that of the line. The line is full, with 40 bytes of header to 1460 of payload.
    let rate = outcome.flows[0].bytes_delivered as f64 * 8.0 / 20.0;
    assert!((900e3..974e3).contains(&rate), "{rate} bit/s");
}

#[test]
fn writing_ends_with_the_traffic() {
    let mut network = build::line(10_000, 10_000, "ip", Duration::from_ms(1));
    network.duration = Duration::from_s(10);
    let mut traffic = writes(800, 1000, OpenedBy::Sender);
    (traffic.start, traffic.stop) = (build::at_ms(1_000), Some(build::at_ms(3_000)));
    network.traffic.push(traffic);
    let outcome = run(&network).unwrap();
    let flow = &outcome.flows[0];
    assert!((150..250).contains(&(flow.bytes_delivered / 1000)), "100 writes a second for 2 s");
    assert!(flow.deliveries.is_some_and(|deliveries| deliveries.last < build::at_ms(3_010)));
}

#[test]
fn writes_without_an_interval_are_refused() {
    let mut network = build::line(10_000, 10_000, "ip", Duration::from_ms(1));
    for size in [0, 1] {
        network.traffic = vec![writes(100_000_000, size, OpenedBy::Sender)];
        assert!(matches!(run(&network), Err(BuildError::TooManyWrites { .. })));
    }
}

/// The line spoils a tenth of all packets of 200 bytes by bit errors, 1600 * 6.6e-5, and delivers this share of the
/// others twice.
fn over_a_poor_line(duplicate: u32, sources: Vec<(usize, Source)>) -> Outcome {
    let mut network = build::line(4_000, 4_000, "ip", Duration::from_ms(10));
    network.duration = Duration::from_s(20);
    for link in &mut network.links {
        let chance = Ratio::from_percent(duplicate).map(Chance::independent);
        let bit_errors = BitErrorRate::new(6.6e-5);
        link.hop.line.impairments = Impairments { duplicate: chance, bit_errors, ..Impairments::default() };
    }
    for (number, (from, source)) in sources.into_iter().enumerate() {
        network.traffic.push(build::traffic(&format!("source {number}"), from, 1 - from, source));
    }
    let outcome = run(&network).unwrap();
    assert!(outcome.conservation.holds());
    outcome
}

/// Over a wire that delivers every packet twice, a call, a game and a conference have the results that they have
/// without the copies: a receiver discards them.
#[test]
fn a_copy_of_a_datagram_does_not_count() {
    let results = |duplicate| {
        let voice =
            Source::Constant { interval: Duration::from_ms(20), size: ByteCount::new(200), kind: Steady::Voice };
        let conference = Source::Conference(Arc::new(conference()));
        let (commands, updates) = (datagrams(40, 0, 100, 0), datagrams(50, 0, 200, 0));
        let game = Source::Game(Arc::new(Game { commands, updates, limit: Duration::from_ms(100) }));
        let outcome = over_a_poor_line(duplicate, vec![(1, voice), (1, game), (1, conference)]);
        assert_eq!(outcome.links[1].stats.duplicated.packets > 1_000, duplicate > 0);
        outcome
    };
    let (once, twice) = (results(0), results(100));
    let flows = |outcome: &Outcome| {
        let of = |flow: &FlowOutcome| (flow.data_packets, flow.data_packets_received, flow.data_packets_lost);
        outcome.flows.iter().map(of).collect::<Vec<_>>()
    };
    assert_eq!(flows(&once), flows(&twice));
    let delays = |outcome: &Outcome| format!("{:?}", outcome.flows[0].data_delays);
    assert_eq!(delays(&once), delays(&twice));
    assert_eq!(format!("{:?}", once.applications), format!("{:?}", twice.applications));
    let lost = once.flows[0].data_packets - once.flows[0].data_packets_received;
    assert!((60..140).contains(&lost), "{lost} of 1000 packets");
}

/// Each request is answered twice, once for each copy, and each answer is delivered twice.
#[test]
fn the_first_reply_to_a_request_counts() {
    let ping = Source::Ping { interval: Duration::from_ms(100), size: ByteCount::new(200), echo: Echo::Icmp };
    let outcome = over_a_poor_line(100, vec![(0, ping)]);
    let probe = &outcome.probes[0];
    let requests: BTreeSet<Instant> = probe.replies.iter().map(|(left, _)| *left).collect();
    assert_eq!((probe.sent, probe.replies.len()), (201, requests.len()));
    // A request is lost as a whole; two answers are lost at once in a hundredth of all cases.
    assert!((160..195).contains(&probe.received), "{}", probe.received);
}

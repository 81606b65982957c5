//! QUIC on an asymmetric line: datagrams of real sizes, ACKs that nothing in the network can tell from data, and the
//! rate to which they limit a download.

use std::sync::Arc;

use lastmile_model::outcome::{FlowOutcome, Outcome};
use lastmile_model::{Network, OpenedBy, Source, Traffic};
use lastmile_queueing::ack::{cake, collapsing, filter};
use lastmile_queueing::line::impairments::{Chance, Distribution, Impairments, Jitter, Reorder};
use lastmile_queueing::spec::Spec;
use lastmile_queueing::{Limit, Match, Overflow};
use lastmile_quic::{AckFrequency, Config, CongestionControl};
use lastmile_sim::run;
use lastmile_units::{Duration, PacketCount, Ratio};
use proptest::prelude::*;

use crate::build;

fn quic(congestion: CongestionControl, every: Option<u32>) -> Config {
    let ack_frequency = every.map(|every| AckFrequency { every, max_delay: None, reordering: 1 });
    Config { congestion, ack_frequency, ..Config::default() }
}

fn transfer(config: Config, bytes: Option<u64>, down: bool) -> Traffic {
    let opened_by = if down { OpenedBy::Receiver } else { OpenedBy::Sender };
    let source = Source::Quic { quic: Arc::new(config), bytes, request: 0, opened_by };
    if down { build::traffic("download", 1, 0, source) } else { build::traffic("upload", 0, 1, source) }
}

/// A download for 20 s over 10 Mbit/s and `up_kbit`, without framing.
fn download(up_kbit: u64, config: Config) -> Network {
    let mut network = build::line(10_000, up_kbit, "ip", Duration::from_ms(5));
    network.duration = Duration::from_s(20);
    network.traffic.push(transfer(config, None, true));
    network
}

fn goodput_mbit(outcome: &Outcome) -> f64 {
    outcome.flows[0].bytes_delivered as f64 * 8.0 / 20e6
}

fn acks(flow: &FlowOutcome) -> (u64, u64) {
    flow.tcp.as_ref().map_or((0, 0), |tcp| (tcp.acks_sent, tcp.acks_received))
}

/// min(1, d/k) with d packets for each ACK: 10 Mbit/s carry 1418 of 1480 bytes; an ACK has 34 bytes and 28 of UDP and
/// IPv4, so that 100 kbit/s carry 201.6 a second. A sender of BBR, which fills no queue, comes within 8 %.
#[test]
fn acks_limit_a_download_to_the_closed_form() {
    let capacity: f64 = 10.0 * 1418.0 / 1480.0;
    for (up_kbit, every) in [(50, 1), (100, 1), (100, 2), (200, 2), (100, 4), (100, 10), (400, 2)] {
        let request = (every != 2).then_some(every);
        let outcome = run(&download(up_kbit, quic(CongestionControl::Bbr, request))).unwrap();
        let acks_per_s = up_kbit as f64 * 1000.0 / (62.0 * 8.0);
        let bound = capacity.min(acks_per_s * f64::from(every) * 1418.0 * 8.0 / 1e6);
        let share = goodput_mbit(&outcome) / bound;
        assert!((0.92..1.005).contains(&share), "{up_kbit} kbit/s, every {every}: {share} of {bound} Mbit/s");
        let (sent, received) = acks(&outcome.flows[0]);
        let packets = outcome.flows[0].data_packets_received as f64 / f64::from(every);
        assert!((packets * 0.98..packets * 1.05 + 40.0).contains(&(sent as f64)), "{sent} ACKs for {packets}");
        // Those in the network at the end are missing.
        assert!(received <= sent && sent - received < 60, "{sent} sent, {received} received");
    }
}

/// IP bytes of the upstream: 59 to 66 for each ACK (28 and 31 to 38), and a handshake of three datagrams.
#[test]
fn acks_have_their_real_sizes_on_the_line() {
    let outcome = run(&download(1000, quic(CongestionControl::Cubic, None))).unwrap();
    let up = &outcome.links[0].stats.enqueued;
    let (sent, _) = acks(&outcome.flows[0]);
    assert!(up.packets >= sent && up.packets <= sent + 10, "{up:?}, {sent} ACKs");
    let handshake = 2 * 1228 + 200;
    let mean = (up.bytes - handshake) as f64 / (up.packets - 3) as f64;
    assert!((61.0..66.0).contains(&mean), "{mean} bytes");
    // 1480 bytes for a full packet.
    let down = &outcome.links[1].stats.enqueued;
    let mean = down.bytes as f64 / down.packets as f64;
    assert!((1470.0..=1480.0).contains(&mean), "{mean} bytes");
}

/// Regulators pass datagrams: a run with each of them is the run without, packet by packet.
#[test]
fn no_regulator_thins_the_acks_of_quic() {
    let config = || quic(CongestionControl::NewReno, None);
    let plain = run(&download(100, config())).unwrap();
    let (limit, drop, exempt) = (Limit::from(PacketCount::new(100)), Overflow::Tail, Match::Never);
    let regulators = [
        build::sad(Spec::fifo(100)),
        Spec::AckFilter(filter::Config { limit, drop, rules: filter::Rules::default() }),
        Spec::AckCollapsing(collapsing::Config { limit, drop, exempt: exempt.clone() }),
        Spec::CakeAckFilter(cake::Config { limit, drop, rules: cake::Rules { mode: cake::Mode::Aggressive, exempt } }),
    ];
    for queue in regulators {
        let mut network = download(100, config());
        network.links[0].hop.queue = queue;
        let regulated = run(&network).unwrap();
        assert_eq!(acks(&regulated.flows[0]), acks(&plain.flows[0]), "{:?}", network.links[0].hop.queue);
        assert_eq!(regulated.flows[0].bytes_delivered, plain.flows[0].bytes_delivered);
    }
}

/// All bytes arrive, the connection ends in both directions, and the sender reports what it did.
#[test]
fn a_transfer_of_given_size_ends() {
    for down in [true, false] {
        let mut network = build::line(10_000, 1_000, "pppoe-llcsnap", Duration::from_ms(20));
        network.traffic.push(transfer(quic(CongestionControl::Cubic, None), Some(500_000), down));
        let outcome = run(&network).unwrap();
        let flow = &outcome.flows[0];
        let report = flow.tcp.as_ref().unwrap();
        assert_eq!(flow.bytes_delivered, 500_000);
        assert!(flow.end.is_some() && report.closed, "{flow:?}");
        assert!(flow.data_packets >= 500_000 / 1418 && report.max_in_flight > 0);
        assert!(report.srtt.is_some_and(|srtt| srtt >= Duration::from_ms(40)));
        assert!(flow.data_delays.is_some() && flow.ack_delays.is_some());
        assert!(outcome.conservation.holds());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// A wire that loses, overtakes and duplicates: every byte arrives once, packets are conserved, and equal seeds
    /// give equal runs.
    #[test]
    fn a_disordered_wire_costs_time_only(
        congestion in prop::sample::select(vec![
            CongestionControl::NewReno, CongestionControl::Cubic, CongestionControl::Bbr, CongestionControl::Bbr3,
        ]),
        every in proptest::option::of(1_u32..20),
        (down, up) in (500_u64..20_000, 50_u64..2_000),
        loss_ppm in 0_u32..50_000,
        down_way in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let mut network = build::line(down, up, "ethernet", Duration::from_ms(15));
        network.seed = seed;
        network.duration = Duration::from_s(300);
        let percent = |percent| Ratio::from_percent(percent).unwrap();
        for link in &mut network.links {
            link.hop.line.loss = Ratio::from_ppm(loss_ppm).unwrap();
            link.hop.line.impairments = Impairments {
                duplicate: Some(Chance::independent(percent(3))),
                jitter: Some(Jitter {
                    spread: Duration::from_ms(8),
                    correlation: percent(20),
                    distribution: Distribution::Normal,
                }),
                reorder: Some(Reorder::ByDelay),
                ..Impairments::default()
            };
        }
        network.traffic.push(transfer(quic(congestion, every), Some(300_000), down_way));
        let outcome = run(&network).unwrap();
        prop_assert_eq!(outcome.flows[0].bytes_delivered, 300_000);
        prop_assert!(outcome.conservation.holds());
        let again = run(&network).unwrap();
        prop_assert_eq!(again.flows[0].end, outcome.flows[0].end);
        prop_assert_eq!(again.events, outcome.events);
    }
}

//! The senders of today on a line: models of the path, marks, and transfers that yield.

use lastmile_model::outcome::Outcome;
use lastmile_model::{Network, Traffic};
use lastmile_queueing::aqm::dualpi2;
use lastmile_queueing::spec::Spec;
use lastmile_sim::run;
use lastmile_tcp::{AckConfig, Config, CongestionConfig, Ecn, Variant};
use lastmile_units::{ByteCount, Duration, Ratio};

use crate::build;

/// As the defaults of a scenario, with buffers that do not limit.
fn today(variant: Variant, ecn: Ecn) -> Config {
    Config {
        variant,
        ecn,
        mss: 1448,
        receive_window: ByteCount::new(4 << 20),
        timestamps: true,
        acks: AckConfig { quick_acks: true, read_delay: Duration::from_us(40), ..AckConfig::default() },
        congestion: CongestionConfig { tso_deferral: true, ..CongestionConfig::default() },
        ..Config::default()
    }
}

/// Downloads over 100/20 Mbit/s with a round trip of 20 ms, for this long; the FIFO downstream has 300 packets.
fn downloads(senders: &[Config], down_mbit: u64, seconds: u64) -> Network {
    let mut network = build::line(down_mbit * 1000, 20_000, "ethernet", Duration::from_ms(10));
    network.duration = Duration::from_s(seconds);
    network.links[1].hop.queue = Spec::fifo(300);
    network.traffic.extend(senders.iter().enumerate().map(|(index, sender)| {
        let download = build::download(sender, None);
        Traffic { name: format!("download-{index}"), ..download }
    }));
    network
}

fn goodput_mbit(outcome: &Outcome, flow: usize, seconds: u64) -> f64 {
    outcome.flows[flow].bytes_delivered as f64 * 8.0 / 1e6 / seconds as f64
}

fn median_queue_ms(outcome: &Outcome) -> f64 {
    outcome.links[1].queue_delay_ns.value_at_quantile(0.5) as f64 / 1e6
}

/// tcp_bbr.c: at least 95 % of the line, and a median queue below a round trip. CUBIC's queue is longer.
#[test]
fn bbr_alone_fills_the_line_with_a_small_queue() {
    let cubic = run(&downloads(&[today(Variant::Cubic, Ecn::Off)], 100, 20)).unwrap();
    for variant in [Variant::Bbr, Variant::Bbr3] {
        let outcome = run(&downloads(&[today(variant, Ecn::Off)], 100, 20)).unwrap();
        // 1448 of 1538 bytes are payload on Ethernet.
        let share = goodput_mbit(&outcome, 0, 20) / (100.0 * 1448.0 / 1538.0);
        let queue = median_queue_ms(&outcome);
        assert!(share > 0.95, "{variant:?}: {share}");
        assert!(queue < 5.0, "{variant:?}: median queue {queue} ms");
        assert!(median_queue_ms(&cubic) > 2.0 * queue, "CUBIC: {} ms", median_queue_ms(&cubic));
    }
}

/// Losses alone, without reordering: no repair is needless, whatever its ACKs echo. With timestamps there are as many
/// repairs as without.
#[test]
fn no_echo_disproves_a_repair_of_losses() {
    let repairs = |timestamps: bool| -> u64 {
        let of_seed = |seed: u64| {
            let sender = Config { timestamps, ..today(Variant::Bbr, Ecn::Off) };
            let mut network = downloads(&[sender], 30, 15);
            network.seed = seed;
            network.links[1].hop.line.loss = Ratio::from_ppm(20_000).unwrap();
            let outcome = run(&network).unwrap();
            outcome.flows[0].tcp.as_ref().map_or(0, |tcp| tcp.fast_retransmits)
        };
        (1..=4).map(of_seed).sum()
    };
    let (with, without) = (repairs(true), repairs(false));
    assert!(with.abs_diff(without) * 10 <= without, "{with} with timestamps, {without} without");
}

/// Neither starves the other at 1.8 times the product of rate and round trip.
#[test]
fn bbr_and_cubic_share_a_line() {
    let senders = [today(Variant::Bbr, Ecn::Off), today(Variant::Cubic, Ecn::Off)];
    let outcome = run(&downloads(&senders, 100, 30)).unwrap();
    let (bbr, cubic) = (goodput_mbit(&outcome, 0, 30), goodput_mbit(&outcome, 1, 30));
    assert!(bbr + cubic > 88.0, "{bbr} and {cubic} Mbit/s");
    assert!(bbr > 15.0 && cubic > 15.0, "{bbr} and {cubic} Mbit/s");
}

/// RFC 9332, section 1.1: a flow of L4S and a classic one have about equal rates under DualPI2, and the packets of L4S
/// wait for a millisecond or two. Equal: within a factor of two.
#[test]
fn prague_and_cubic_share_a_line_under_dualpi2() {
    let senders = [today(Variant::Prague, Ecn::Accurate), today(Variant::Cubic, Ecn::Classic)];
    let mut network = downloads(&senders, 40, 40);
    network.links[1].hop.queue = Spec::DualPi2(dualpi2::Config::default());
    let outcome = run(&network).unwrap();
    let (prague, cubic) = (goodput_mbit(&outcome, 0, 40), goodput_mbit(&outcome, 1, 40));
    assert!(prague + cubic > 33.0, "{prague} and {cubic} Mbit/s");
    assert!((0.5..2.0).contains(&(prague / cubic)), "{prague} and {cubic} Mbit/s");
    assert_eq!(outcome.flows[0].tcp.as_ref().map(|tcp| tcp.retransmissions), Some(0), "marks take the place of drops");
}

/// RFC 8257: DCTCP under CoDel with marks keeps the line full.
#[test]
fn dctcp_follows_marks() {
    let mut network = downloads(&[today(Variant::Dctcp, Ecn::Classic)], 100, 20);
    let codel = lastmile_queueing::aqm::codel::Config { ecn: true, ..Default::default() };
    network.links[1].hop.queue = Spec::Codel(codel);
    let outcome = run(&network).unwrap();
    let goodput = goodput_mbit(&outcome, 0, 20);
    assert!(goodput > 85.0, "{goodput} Mbit/s");
    assert!(median_queue_ms(&outcome) < 12.0, "{} ms", median_queue_ms(&outcome));
}

/// A background transfer leaves CUBIC nearly all of the line, and uses it alone.
#[test]
fn ledbat_yields_to_cubic() {
    let background = today(Variant::Ledbat, Ecn::Off);
    let mut network = downloads(&[background.clone(), today(Variant::Cubic, Ecn::Off)], 20, 60);
    let outcome = run(&network).unwrap();
    let (ledbat, cubic) = (goodput_mbit(&outcome, 0, 60), goodput_mbit(&outcome, 1, 60));
    assert!(cubic > 5.0 * ledbat, "{ledbat} and {cubic} Mbit/s");
    network.traffic.truncate(1);
    let alone = goodput_mbit(&run(&network).unwrap(), 0, 60);
    assert!(alone > 13.0, "{alone} Mbit/s");
}

/// Receive offload: fewer acknowledgements for the same data.
#[test]
fn receive_offload_stretches_acknowledgements() {
    let acks = |gro: Duration| {
        let sender = today(Variant::Cubic, Ecn::Off);
        let config = Config { acks: AckConfig { gro, ..sender.acks.clone() }, ..sender };
        let outcome = run(&downloads(&[config], 300, 10)).unwrap();
        let goodput = goodput_mbit(&outcome, 0, 10);
        assert!(goodput > 150.0, "{goodput} Mbit/s");
        outcome.flows[0].tcp.as_ref().map_or(0, |tcp| tcp.acks_sent) as f64 / goodput
    };
    let (without, with) = (acks(Duration::ZERO), acks(Duration::from_us(300)));
    assert!(with < without * 0.7, "{with} and {without} acknowledgements per Mbit/s");
}

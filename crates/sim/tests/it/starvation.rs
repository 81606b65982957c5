//! Acknowledgements that wait behind data starve a download.

use lastmile_model::outcome::Outcome;
use lastmile_sim::run;
use lastmile_tcp::{AckConfig, Config, Variant};
use lastmile_units::{ByteCount, Duration};

use crate::build;

/// Phanse's settings: 1500-byte segments, an ACK for each, windows of 64 KB, no options.
fn phanse() -> Config {
    Config {
        variant: Variant::Reno,
        mss: 1_500,
        receive_window: ByteCount::new(65_535),
        acks: AckConfig { delayed_ack: Duration::ZERO, ack_every: 1, ..AckConfig::default() },
        sack: false,
        timestamps: false,
        ..Config::default()
    }
}

fn utilisation(outcome: &Outcome, link: usize, rate_bps: f64) -> f64 {
    outcome.links[link].stats.wire_bytes.bits() as f64 / outcome.duration.as_secs_f64() / rate_bps
}

/// Without ATM k = (1544/16) / (1540/40) = 2.506 at 16 kbit/s: the ACKs allow 39.9 % of the line.
#[test]
fn a_lone_download_is_bounded_by_its_acks() {
    for (up_kbit, preset, bound) in [(16, "ip", 1.0 / 2.506_49), (64, "ip", 1.0), (16, "aal5", 1.0 / 2.924_24)] {
        let mut network = build::line(1_544, up_kbit, preset, Duration::from_ms(5));
        network.traffic.push(build::download(&phanse(), None));
        network.duration = Duration::from_s(400);
        let outcome = run(&network).unwrap();
        let reached = utilisation(&outcome, 1, 1_544_000.0);
        assert!((reached - bound).abs() < 0.005, "{preset} at {up_kbit} kbit/s: {reached} is not {bound}");
    }
}

/// The window is 64 KiB, and an upload fills the upstream queue. The download falls to window / round trip.
#[test]
fn an_upload_starves_a_download() {
    let goodput = |up: bool| {
        let mut network = build::line(2_000, 512, "bridged-vcmux-fcs", Duration::from_ms(5));
        network.links[0].hop.queue = build::fifo_bytes(206_000);
        let tcp = Config { receive_window: ByteCount::new(65_536), ..Config::default() };
        network.traffic.push(build::download(&tcp, None));
        if up {
            network.traffic.push(build::upload(&tcp, None));
        }
        network.duration = Duration::from_s(120);
        let outcome = run(&network).unwrap();
        assert!(outcome.conservation.holds());
        outcome.flows[0].bytes_delivered as f64 * 8.0 / 120.0
    };
    let (alone, starved) = (goodput(false), goodput(true));
    assert!(alone > 1.6e6, "alone {alone}");
    assert!(starved < 0.5 * alone, "starved {starved}");
}

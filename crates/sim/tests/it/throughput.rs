//! Long runs under random loss, compared with the TCP throughput equation of RFC 5348, section 3.1.

use lastmile_sim::run;
use lastmile_tcp::{AckConfig, ByteCounting, Config, CongestionConfig, Variant};
use lastmile_units::{ByteCount, Duration, Ratio};

use crate::build;

/// Bytes per second: s / (R sqrt(2 b p / 3) + t_RTO (3 sqrt(3 b p / 8)) p (1 + 32 p^2)).
fn equation(segment: f64, round_trip: f64, rto: f64, segments_per_ack: f64, loss: f64) -> f64 {
    let b = segments_per_ack;
    let waiting = rto * 3.0 * (3.0 * b * loss / 8.0).sqrt() * loss * (1.0 + 32.0 * loss * loss);
    segment / (round_trip * (2.0 * b * loss / 3.0).sqrt() + waiting)
}

#[test]
fn a_long_transfer_under_loss_reaches_the_rate_of_the_equation() {
    for variant in [Variant::NewReno, Variant::Sack] {
        for (loss_ppb, seed) in [(1_000_000, 1), (3_000_000, 2), (10_000_000, 3)] {
            // A line so fast that only loss and round trip count.
            let mut network = build::line(1_000_000, 1_000_000, "ip", Duration::from_ms(50));
            network.seed = seed;
            network.duration = Duration::from_s(2_000);
            network.links[1].hop.line.loss = Ratio::from_parts_per_billion(loss_ppb).unwrap();
            let tcp = Config {
                variant,
                receive_window: ByteCount::new(4 << 20),
                congestion: CongestionConfig { byte_counting: ByteCounting::PerAck, ..CongestionConfig::default() },
                acks: AckConfig { delayed_ack: Duration::ZERO, ack_every: 1, ..AckConfig::default() },
                ..Config::default()
            };
            network.traffic.push(build::download(&tcp, None));
            let outcome = run(&network).unwrap();
            let rate = outcome.flows[0].bytes_delivered as f64 / 2_000.0;
            let expected = equation(1_460.0, 0.1, 0.3, 1.0, f64::from(loss_ppb) / 1e9);
            let ratio = rate / expected;
            // The equation is a model: it counts all losses of a window as one, and has no limited transmit.
            assert!((0.9..1.12).contains(&ratio), "{variant:?} at {loss_ppb} ppb: {ratio:.2} of the equation");
        }
    }
}

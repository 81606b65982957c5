//! Sources offer what they say.

use lastmile_sim::run;
use lastmile_sim::spec::{Network, Source};
use lastmile_units::{BitRate, ByteCount, Duration};

use crate::build;

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
    let voice = Source::Constant { interval: Duration::from_ms(20), size: ByteCount::new(200), kind: "voice" };
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
    assert!(
        (0.98e6..1.03e6).contains(&rate),
        "{rate} bit/s, a quarter of 4 Mbit/s and what a burst's last packet adds"
    );
}

#[test]
fn a_source_stops_when_it_is_told() {
    let mut network = build::line(1_000, 1_000, "ip", Duration::from_ms(1));
    let voice = Source::Constant { interval: Duration::from_ms(20), size: ByteCount::new(200), kind: "voice" };
    let mut traffic = build::traffic("voice", 0, 1, voice);
    traffic.start = build::at_ms(1_000);
    traffic.stop = Some(build::at_ms(2_000));
    network.traffic.push(traffic);
    let outcome = run(&network).unwrap();
    assert_eq!(outcome.flows[0].data_packets, 50, "at 1.00, 1.02, ... 1.98 s");
}

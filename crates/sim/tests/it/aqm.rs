//! Active queue management and fair queueing on a line.

use lastmile_model::{Network, Source};
use lastmile_queueing::Overflow;
use lastmile_queueing::aqm::{codel, red};
use lastmile_queueing::fair::{FlowKeys, Per, sfq};
use lastmile_queueing::spec::Spec;
use lastmile_sim::run;
use lastmile_tcp::{Config, Variant};
use lastmile_units::{BitRate, ByteCount, Duration, PacketCount, WireBytes};

use crate::build;

/// One upload over 2 Mbit/s with a round trip of 40 ms, behind `queue`; a full packet takes 6 ms.
fn upload(queue: Spec) -> Network {
    let mut network = build::line(20_000, 2_000, "ip", Duration::from_ms(20));
    network.duration = Duration::from_s(60);
    network.links[0].hop.queue = queue;
    let tcp = Config { variant: Variant::Sack, receive_window: ByteCount::new(1 << 20), ..Config::default() };
    network.traffic.push(build::upload(&tcp, None));
    network
}

/// The median queueing delay in ms, and the share of the line used.
fn outcome(queue: Spec) -> (f64, f64) {
    let outcome = run(&upload(queue)).unwrap();
    let up = &outcome.links[0];
    (up.queue_delay_ns.value_at_quantile(0.5) as f64 / 1e6, up.wire_bits as f64 / (60.0 * 2e6))
}

/// A packet also waits for the one in transmission: at most the target and one packet, 15 + 6 ms.
#[test]
fn codel_keeps_the_standing_queue_of_a_transfer_near_its_target() {
    let (fifo, _) = outcome(Spec::fifo(200));
    assert!(fifo > 300.0, "without CoDel the delay is {fifo} ms");
    let config = codel::Config { target: Duration::from_ms(15), ..codel::Config::default() };
    let (wait, used) = outcome(Spec::Codel(config));
    assert!((5.0..21.0).contains(&wait), "median wait {wait} ms");
    assert!(used > 0.9, "{used} of the line");
}

/// The average stays below twice the upper threshold of 15 packets, where everything is dropped: 30 * 6 = 180 ms.
#[test]
fn red_keeps_the_standing_queue_of_a_transfer_among_its_thresholds() {
    let config = red::Config { bandwidth: BitRate::from_mbit_per_s(2), ..red::Config::default() };
    let (wait, used) = outcome(Spec::Red(config));
    assert!((10.0..180.0).contains(&wait), "median wait {wait} ms");
    assert!(used > 0.9, "{used} of the line");
}

/// A stream with twice the rate of the line leaves a transfer little of a FIFO. SFQ gives the transfer half
/// of the line, less headers of 40 in 1500 bytes and the cost of slow start.
#[test]
fn sfq_gives_a_transfer_half_of_a_flooded_line() {
    let goodput = |queue: Spec| {
        let mut network = upload(queue);
        let flood = Source::Poisson { rate: BitRate::from_mbit_per_s(4), size: ByteCount::new(500) };
        network.traffic.push(build::traffic("flood", 0, 1, flood));
        let outcome = run(&network).unwrap();
        assert!(outcome.conservation.holds());
        outcome.flows[0].bytes_delivered as f64 * 8.0 / 60.0
    };
    let fifo = goodput(Spec::fifo(127));
    assert!(fifo < 0.2e6, "{fifo}");
    let config = sfq::Config {
        flows: FlowKeys::Exact,
        per: Per::Flow,
        quantum: WireBytes::new(1500),
        perturb: Duration::ZERO,
        limit: PacketCount::new(127),
        depth: PacketCount::new(127),
        drop: Overflow::Tail,
    };
    let fair = goodput(Spec::Sfq(config));
    assert!((0.9e6..1.0e6).contains(&fair), "{fair}");
}

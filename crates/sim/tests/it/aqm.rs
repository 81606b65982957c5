//! What active queue management does to a standing queue.

use lastmile_queueing::aqm::codel;
use lastmile_queueing::spec::Spec;
use lastmile_sim::run;
use lastmile_sim::spec::Network;
use lastmile_tcp::{Config, Variant};
use lastmile_units::{ByteCount, Duration};

use crate::build;

/// One upload over 2 Mbit/s with a round trip of 40 ms, behind `queue`; a full packet takes 6 ms.
fn upload(queue: Spec) -> Network {
    let mut network = build::line(20_000, 2_000, "ip", Duration::from_ms(20));
    network.duration = Duration::from_s(60);
    network.links[0].queue = queue;
    let tcp = Config { variant: Variant::Sack, receive_window: ByteCount::new(1 << 20), ..Config::default() };
    network.traffic.push(build::upload(&tcp, None));
    network
}

/// (median wait in the queue in ms, share of the line used)
fn outcome(queue: Spec) -> (f64, f64) {
    let outcome = run(&upload(queue)).unwrap();
    let up = &outcome.links[0];
    (up.queue_delay_ns.value_at_quantile(0.5) as f64 / 1e6, up.wire_bits as f64 / (60.0 * 2e6))
}

/// A packet waits behind one on the wire, so a wait is good up to target and one packet: 15 + 6 ms.
#[test]
fn codel_keeps_the_standing_queue_of_a_transfer_near_its_target() {
    let (fifo, _) = outcome(Spec::fifo(200));
    assert!(fifo > 300.0, "the queue to be shortened stands at {fifo} ms");
    let config = codel::Config { target: Duration::from_ms(15), ..codel::Config::default() };
    let (wait, used) = outcome(Spec::Codel(config));
    assert!((5.0..21.0).contains(&wait), "median wait {wait} ms");
    assert!(used > 0.9, "{used} of the line");
}

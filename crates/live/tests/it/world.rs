//! Lines to test on, and what exact time says of them.

use std::thread;
use std::time::Duration as StdDuration;

use lastmile_linklayer::LinkLayer;
use lastmile_live::emulate::{Config, Outcome, World};
use lastmile_live::netns::Namespace;
use lastmile_live::shape::Tuning;
use lastmile_live::stop::Stop;
use lastmile_model::Hop;
use lastmile_packet::{Meta, Protocol};
use lastmile_queueing::discipline::{DropReason, DropSink};
use lastmile_queueing::line::{self, Line, TransmissionSink};
use lastmile_queueing::random::Stream;
use lastmile_queueing::spec::Spec;
use lastmile_queueing::{Limit, Overflow, fifo};
use lastmile_units::{BitRate, ByteCount, Duration, Instant};

/// One direction of an ADSL line, bridged with FCS over ATM, with a FIFO of 206 kB.
pub(crate) fn adsl(rate: BitRate, delay: Duration) -> Hop {
    Hop {
        name: "adsl".into(),
        line: line::Config::new(Some(rate), LinkLayer::from_name("bridged-vcmux-fcs").unwrap(), delay),
        queue: Spec::Fifo(fifo::Config { limit: Limit::Bytes(ByteCount::new(206_000)), drop: Overflow::Tail }),
    }
}

/// 512 kbit/s up and 2 Mbit/s down, 4 ms each way.
pub(crate) fn two_megabit() -> Config {
    let delay = Duration::from_ms(4);
    Config::new(vec![adsl(BitRate::from_kbit_per_s(512), delay)], vec![adsl(BitRate::from_mbit_per_s(2), delay)])
}

/// That line with real-time priority.
pub(crate) fn two_megabit_first() -> Config {
    let config = two_megabit();
    Config { tuning: Tuning { realtime: true, ..config.tuning }, ..config }
}

/// The time that a lone packet takes from one end to the other, as the line under simulated time has it.
pub(crate) fn crossing(hop: &Hop, ip_len: u16) -> Duration {
    struct Nobody;
    impl DropSink<Meta> for Nobody {
        fn dropped(&mut self, _: Instant, _: Meta, reason: DropReason) {
            panic!("a lone packet was dropped: {reason:?}");
        }
    }
    impl TransmissionSink<Meta> for Nobody {
        fn transmitted(&mut self, _: Instant, _: Instant, _: Duration, _: &Meta) {}
    }
    let queue = hop.queue.build(&hop.line.link_layer).unwrap();
    let mut line = Line::new(&hop.line, queue, Stream::new(1, "any"));
    let packet = Meta { ip_len, protocol: Protocol::EchoRequest, header_len: 28, ..Meta::default() };
    line.enqueue(Instant::ZERO, packet, &mut Nobody);
    line.next_arrival().unwrap() - Instant::ZERO
}

/// Why these tests cannot run here.
pub(crate) fn obstacle() -> Option<&'static str> {
    let id = std::process::Command::new("id").arg("-u").output().ok()?;
    if id.stdout.trim_ascii() != b"0" {
        return Some("not root");
    }
    if !std::path::Path::new("/dev/net/tun").exists() {
        return Some("no /dev/net/tun");
    }
    None
}

/// Ends the test where it cannot run, and says so.
macro_rules! needs_live {
    () => {
        if let Some(obstacle) = crate::world::obstacle() {
            eprintln!("skipped: {obstacle}");
            return;
        }
    };
}
pub(crate) use needs_live;

/// Carries packets while `work` runs, which gets the namespaces of client and server.
pub(crate) fn emulating<T>(config: &Config, work: impl FnOnce(&Namespace, &Namespace) -> T) -> (Outcome, T) {
    let mut world = World::build(config).unwrap();
    let name = |side: &lastmile_live::emulate::Side| side.namespace().unwrap().name().to_owned();
    let client = Namespace::open(&name(world.client())).unwrap();
    let server = Namespace::open(&name(world.server())).unwrap();
    let stop = Stop::new().unwrap();
    let handle = stop.handle().unwrap();
    thread::scope(|scope| {
        let carrier = scope.spawn(|| world.run(&stop, Some(Duration::from_s(60))).unwrap());
        let done = work(&client, &server);
        // Packets that the kernel still holds get through.
        thread::sleep(StdDuration::from_millis(20));
        handle.stop();
        let outcome = carrier.join().unwrap();
        for direction in [&outcome.up, &outcome.down] {
            assert!(direction.is_balanced(), "{direction:?}");
            assert_eq!(direction.port.dropped_unread, 0);
        }
        (outcome, done)
    })
}

/// True where every test may take minutes.
pub(crate) fn is_long() -> bool {
    std::env::var_os("LASTMILE_LONG").is_some()
}

/// The relative error of the rate of packets that leave one every `interval_ns`, as a share, by
/// when they arrived. Arrivals are late by what the machine does to them and never early, so the
/// least late of each end tell the rate.
pub(crate) fn deviation(arrivals_ns: &[f64], interval_ns: f64) -> f64 {
    let late: Vec<f64> = (0..).zip(arrivals_ns).map(|(k, at)| at - f64::from(k) * interval_ns).collect();
    let least = |part: &[f64]| part.iter().copied().fold(f64::INFINITY, f64::min);
    let part = late.len() / 4;
    let (first, last) = (least(&late[..part]), least(&late[late.len() - part..]));
    (last - first) / (interval_ns * (late.len() - part) as f64)
}

/// The largest relative error of a rate.
pub(crate) const TOLERANCE: f64 = 1e-4;

/// A rate with a larger error is measured again, for longer: the error of looking shrinks with the
/// span, and that of a rate does not.
const AIM: f64 = 5e-5;

/// The relative error of a rate that `look` measures for one span after the other, and how often it was looked at.
pub(crate) fn deviation_over<Span>(
    spans: impl IntoIterator<Item = Span>,
    mut look: impl FnMut(Span) -> f64,
) -> (f64, usize) {
    let (mut last, mut looks) = (f64::INFINITY, 0);
    for span in spans {
        (last, looks) = (look(span), looks + 1);
        if last.abs() < AIM {
            break;
        }
    }
    (last, looks)
}

#[test]
fn a_rate_that_is_off_is_seen_and_lateness_is_not() {
    // A packet each 1000 ns where each 1001 is meant; every seventh in time, the others late.
    let arrivals: Vec<f64> = (0..10_000).map(|k| f64::from(k * 1000 + (k % 7) * 300)).collect();
    assert!(deviation(&arrivals, 1000.0).abs() < 1e-9);
    assert!((deviation(&arrivals, 1001.0) + 1.0 / 1001.0).abs() < 1e-6, "{}", deviation(&arrivals, 1001.0));
}

//! A packet-delivery trace with real packets.

use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::sync::Arc;
use std::thread;
use std::time::{Duration as StdDuration, Instant as StdInstant};

use lastmile_linklayer::LinkLayer;
use lastmile_live::emulate::Config;
use lastmile_live::shape::Tuning;
use lastmile_model::Hop;
use lastmile_queueing::line;
use lastmile_queueing::line::trace::{Opportunities, Trace};
use lastmile_queueing::spec::Spec;
use lastmile_units::Duration;

use crate::world::{emulating, needs_live};

const PORT: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(198, 18, 0, 1), 9000);

/// Milliseconds of the opportunities in a period of 50 ms: a packet each, unevenly spread, with a gap of 13 ms.
const AT: [u64; 12] = [1, 2, 4, 7, 11, 16, 22, 29, 42, 44, 47, 50];

/// Packets of 1504 bytes that always wait take one opportunity each. With any phase between the clock of the
/// receiver and that of the line, the pattern of the arrivals is that of the trace: the 99th percentile of their
/// deviation from it is below 0.2 ms, or twice what the machine itself wakes a thread late at the time. The time
/// stamps are those of the receiver in the other namespace.
#[test]
#[ignore = "needs root: real packets"]
fn packet_rates_of_a_trace_are_its_opportunities() {
    needs_live!();
    let times = AT.map(Duration::from_ms).to_vec();
    let blocks = Opportunities::new(times, Duration::from_ms(50), Opportunities::MAHIMAHI_BYTES).unwrap();
    let trace = Trace::Opportunities(Arc::new(blocks));
    let plain = line::Config::new(None, LinkLayer::from_name("ip").unwrap(), Duration::ZERO);
    let traced = line::Config { trace: Some(trace), ..plain.clone() };
    let hop = |line| Hop { name: "line".into(), line, queue: Spec::fifo(1_000) };
    let config = Config::new(vec![hop(traced)], vec![hop(plain)]);
    let config = Config { tuning: Tuning { realtime: true, ..config.tuning }, mtu: 1_504, ..config };
    let look = || {
        let (_, (times, late)) = emulating(&config, |client, server| {
            let receiver = server.run(|| UdpSocket::bind(PORT)).unwrap().unwrap();
            let sender = client.run(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))).unwrap().unwrap();
            sender.connect(PORT).unwrap();
            receiver.set_read_timeout(Some(StdDuration::from_millis(500))).unwrap();
            let count = 12 * 60;
            let receiving = thread::spawn(move || {
                let (start, mut buffer, mut times) = (StdInstant::now(), [0; 2048], Vec::new());
                while times.len() < count && receiver.recv(&mut buffer).is_ok() {
                    times.push(start.elapsed().as_secs_f64() * 1e3);
                }
                times
            });
            for _ in 0..count {
                sender.send(&[0; 1_504 - 28]).unwrap();
            }
            let late = wakes_late_ms(|| receiving.is_finished());
            (receiving.join().unwrap(), late)
        });
        assert!(times.len() > 600, "{} packets", times.len());
        (worst(&times), late)
    };
    // The machine may be busy: one good look of three counts.
    let looks: Vec<(f64, f64)> = (0..3).map(|_| look()).collect();
    assert!(
        looks.iter().any(|(p99, late)| *p99 < f64::max(0.2, 2.0 * late)),
        "99th percentiles, wake-ups: {looks:?} ms"
    );
}

/// The 99th percentile of how late a thread wakes that sleeps a millisecond at a time, until `done`.
fn wakes_late_ms(done: impl Fn() -> bool) -> f64 {
    let mut late = Vec::new();
    while !done() {
        let start = StdInstant::now();
        thread::sleep(StdDuration::from_millis(1));
        late.push(start.elapsed().as_secs_f64() * 1e3 - 1.0);
    }
    late.sort_by(f64::total_cmp);
    late[late.len() * 99 / 100]
}

/// The 99th percentile of the deviation of arrivals from the opportunities, for the best of all assignments of the
/// first arrival to an opportunity; the median deviation is the phase of the clock.
fn worst(times: &[f64]) -> f64 {
    let planned = |number: usize| (number / AT.len() * 50) as f64 + AT[number % AT.len()] as f64;
    let of = |first: usize| {
        let mut off: Vec<f64> = times.iter().enumerate().map(|(number, at)| at - planned(first + number)).collect();
        off.sort_by(f64::total_cmp);
        let phase = off[off.len() / 2];
        let mut off: Vec<f64> = off.into_iter().map(|off| (off - phase).abs()).collect();
        off.sort_by(f64::total_cmp);
        off[off.len() * 99 / 100]
    };
    (0..AT.len()).map(of).fold(f64::MAX, f64::min)
}

#[test]
fn a_pattern_that_is_late_or_another_is_seen() {
    let exact: Vec<f64> = (5..605).map(|n| (n / 12 * 50) as f64 + AT[n % 12] as f64 + 3.7).collect();
    assert!(worst(&exact) < 1e-9);
    let late: Vec<f64> = exact.iter().enumerate().map(|(n, at)| at + if n % 20 == 0 { 0.5 } else { 0.0 }).collect();
    assert!((worst(&late) - 0.5).abs() < 1e-9);
    let even: Vec<f64> = (0..600).map(|n| f64::from(n) * 50.0 / 12.0).collect();
    assert!(worst(&even) > 1.0);
}

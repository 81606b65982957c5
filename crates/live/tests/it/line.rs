//! The line itself: round trips, rates, TCP.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration as StdDuration, Instant as StdInstant};

use lastmile_live::emulate::Config;
use lastmile_live::netns::Namespace;
use lastmile_live::probe::{Ping, ping};
use lastmile_units::{BitRate, ByteCount, Duration};

use crate::hosts::ping_times;
use crate::world::{
    TOLERANCE, adsl, crossing, deviation, deviation_over, emulating, needs_live, two_megabit, two_megabit_first,
};

const SERVER: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
const PORT: SocketAddrV4 = SocketAddrV4::new(SERVER, 9000);

fn ms(span: Duration) -> f64 {
    span.as_secs_f64() * 1e3
}

/// 84 bytes: 112 with overhead, 3 cells: 2.484375 ms up at 512 kbit/s, 0.636 ms down at 2 Mbit/s, 4
/// ms each way: 11.12 ms. 1500 bytes: 32 cells: 26.5 + 6.784 + 8 = 41.284 ms.
#[test]
#[ignore = "needs root: real packets"]
fn a_ping_takes_as_long_as_the_line_under_simulated_time_says() {
    needs_live!();
    let config = two_megabit_first();
    for (ip_len, interval, closed_form) in [
        (84, Duration::from_ms(20), Duration::from_ps(11_120_375_000)),
        (1500, Duration::from_ms(60), Duration::from_us(41_284)),
    ] {
        let exact = crossing(&config.up[0], ip_len) + crossing(&config.down[0], ip_len);
        assert_eq!(exact, closed_form);
        let request = Ping { target: SERVER.into(), count: 60, interval, ip_len, patience: Duration::from_s(1) };
        let (_, replies) = emulating(&config, |client, _| client.run(|| ping(&request)).unwrap().unwrap());
        let times = replies.sorted();
        assert_eq!((times.len(), replies.duplicates), (60, 0), "{replies:?}");
        let (shortest, median, longest) = (times[0], times[30], times[59]);
        eprintln!(
            "{ip_len} bytes: exact {:.3} ms, added: min {:.3} median {:.3} max {:.3} ms",
            ms(exact),
            ms(shortest) - ms(exact),
            ms(median) - ms(exact),
            ms(longest) - ms(exact),
        );
        // Nothing is faster than the line, to the accuracy of the time stamps.
        assert!(shortest + Duration::from_us(20) > exact, "{shortest} < {exact}");
        assert!(median.saturating_sub(exact) < Duration::from_ms(1), "median {median}, exact {exact}");
    }
}

/// As iputils prints them: whole, with decimals, and a lost one.
#[test]
fn the_round_trips_of_ping_are_read_in_ascending_order() {
    let line = |n, time| format!("64 bytes from 198.18.0.1: icmp_seq={n} ttl=64 time={time} ms\n");
    let text =
        ["PING\n", &line(1, "10.5"), &line(2, "9"), "no answer yet for icmp_seq=3\n", &line(4, "0.025")].concat();
    assert_eq!(ping_times(&text), [0.025, 9.0, 10.5]);
}

/// The round trip by ping(8) of iputils, which knows nothing of lastmile.
#[test]
#[ignore = "needs root: real packets"]
fn the_systems_own_ping_finds_the_same_round_trip() {
    needs_live!();
    if Command::new("ping").arg("-V").output().is_err() {
        eprintln!("skipped: no ping(8)");
        return;
    }
    let config = two_megabit_first();
    let exact = crossing(&config.up[0], 84) + crossing(&config.down[0], 84);
    let (_, output) = emulating(&config, |client, _| {
        let mut command = Command::new("ping");
        command.args(["-n", "-c", "100", "-i", "0.02", "-s", "56", &SERVER.to_string()]);
        client.run(|| command.output()).unwrap().unwrap()
    });
    let text = String::from_utf8(output.stdout).unwrap();
    let times = ping_times(&text);
    assert_eq!(times.len(), 100, "{text}");
    assert!((times[50] - ms(exact)).abs() < 1.0, "median {} ms, exact {} ms", times[50], ms(exact));
}

/// Arrival times of UDP packets at the server while the client sends more than the line takes.
fn flood(client: &Namespace, server: &Namespace, ip_len: u16, offered: StdDuration, lasting: StdDuration) -> Vec<f64> {
    let receiver = server.run(|| UdpSocket::bind(PORT)).unwrap().unwrap();
    let sender = client.run(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))).unwrap().unwrap();
    sender.connect(PORT).unwrap();
    receiver.set_read_timeout(Some(StdDuration::from_millis(100))).unwrap();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let arrivals = scope.spawn(|| {
            let mut buffer = [0; 2048];
            let (start, mut times) = (StdInstant::now(), Vec::new());
            while !over.load(Ordering::Relaxed) {
                if let Ok(len) = receiver.recv(&mut buffer) {
                    times.push(start.elapsed().as_secs_f64());
                    assert_eq!(len, usize::from(ip_len) - 28);
                }
            }
            times
        });
        let (start, payload) = (StdInstant::now(), vec![0; usize::from(ip_len) - 28]);
        let mut sent = 0;
        while start.elapsed() < lasting {
            while offered * sent < start.elapsed() {
                sender.send(&payload).unwrap();
                sent += 1;
            }
            thread::sleep(StdDuration::from_millis(1));
        }
        over.store(true, Ordering::Relaxed);
        arrivals.join().unwrap()
    })
}

/// Sizes on both sides of cell boundaries: n + 28 = 48 k. At overload the packet rate is rate /
/// (cells * 424), and nothing else: lateness does not enter it.
#[test]
#[ignore = "needs root: real packets"]
fn a_flood_leaves_at_the_rate_that_the_cells_of_its_packets_give() {
    needs_live!();
    let rate = BitRate::from_mbit_per_s(2);
    let line = adsl(rate, Duration::from_ms(1));
    let config = Config::new(vec![line.clone()], vec![line]);
    for (ip_len, cells) in [(68, 2), (69, 3), (116, 3), (117, 4), (1460, 31), (1461, 32), (1500, 32)] {
        assert_eq!(config.up[0].line.link_layer.cells(ByteCount::new(u64::from(ip_len))).unwrap().as_u64(), cells);
        let exact = rate.as_bps() as f64 / (cells * 424) as f64;
        let offered = StdDuration::from_secs_f64(0.5 / exact);
        let (deviation, looks) = deviation_over([900, 3200], |span_ms| {
            let lasting = StdDuration::from_millis(span_ms);
            let (outcome, times) = emulating(&config, |client, server| flood(client, server, ip_len, offered, lasting));
            let hop = outcome.up.hop("adsl").unwrap();
            assert_eq!(hop.cells.unwrap().as_u64(), hop.line.transmitted.packets * cells);
            // The first tenth of a second may come before the queue has filled.
            let settled = times.iter().filter(|time| **time > times[0] + 0.1).map(|time| time * 1e9);
            deviation(&settled.collect::<Vec<_>>(), 1e9 / exact)
        });
        eprintln!(
            "{ip_len} bytes, {cells} cells: {exact:.2} packets/s, measured {deviation:+.2e} beside it, looks: {looks}"
        );
        assert!(deviation.abs() < TOLERANCE, "{ip_len} bytes: {deviation:+.2e} beside {exact} packets/s");
    }
}

/// A download by the kernel's TCP fills the line: 1448 bytes of payload in each 32 cells.
#[test]
#[ignore = "needs root: real packets"]
fn a_tcp_download_gets_the_lines_payload_rate() {
    needs_live!();
    let mut config = two_megabit();
    config.down = vec![adsl(BitRate::from_mbit_per_s(8), Duration::from_ms(4))];
    let exact = 8e6 * 1448.0 / (32.0 * 53.0);
    let (_, goodput) = emulating(&config, |client, server| download(client, server, PORT, exact));
    eprintln!("TCP: {:.3} Mbit/s, the line's payload rate is {:.3}", goodput / 1e6, exact / 1e6);
    assert!(goodput > 0.96 * exact && goodput < 1.01 * exact, "{goodput} bit/s, exact {exact}");
}

/// Bits of payload a second that the client's kernel gets from the server's by TCP, after a second,
/// over a line that takes `exact` of them. Bytes are read late and never early, so the rate is that
/// between the least late of the first and of the last quarter.
pub(crate) fn download(client: &Namespace, server: &Namespace, from: SocketAddrV4, exact: f64) -> f64 {
    let listener = server.run(|| TcpListener::bind(from)).unwrap().unwrap();
    thread::scope(|scope| {
        scope.spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let block = vec![0; 1 << 16];
            // Until the client has had enough and closes. Its reset goes behind the upload, and may
            // be lost there as often as it is sent.
            stream.set_write_timeout(Some(StdDuration::from_secs(5))).unwrap();
            while stream.write_all(&block).is_ok() {}
        });
        let mut stream = client.run(|| TcpStream::connect(from)).unwrap().unwrap();
        stream.set_read_timeout(Some(StdDuration::from_secs(5))).unwrap();
        let (start, mut buffer, mut bits, mut reads) = (StdInstant::now(), vec![0; 1 << 16], 0.0, Vec::new());
        while start.elapsed() < StdDuration::from_secs(3) {
            bits += 8.0 * stream.read(&mut buffer).unwrap() as f64;
            reads.push((start.elapsed().as_secs_f64(), bits));
        }
        let least_late = |from_s: f64, to_s: f64| {
            let part = reads.iter().filter(|(at, _)| (from_s..to_s).contains(at));
            part.copied().min_by(|a, b| (a.0 - a.1 / exact).total_cmp(&(b.0 - b.1 / exact))).unwrap()
        };
        let (first, last) = (least_late(1.0, 1.5), least_late(2.5, 3.1));
        (last.1 - first.1) / (last.0 - first.0)
    })
}

//! Our client against `iperf3 -s`.

use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;
use std::time::Duration;

use lastmile_measure::foreign::iperf3::{Iperf3, PORT, Settings};
use lastmile_measure::load::{Direction, Load, Stop, Transferred};
use lastmile_measure::train::Way;
use serde_json::Value;

use crate::hosts::Hosts;
use crate::servers::{SERVER, output, programs, start, tc, wait_for_port};

/// Bytes of one write of iperf3.
const BLOCK: u64 = 128 << 10;

fn load(streams: u32, congestion: Option<&str>) -> Iperf3 {
    let settings = Settings {
        host: SERVER.to_owned(),
        port: PORT,
        streams: NonZeroU32::new(streams).unwrap(),
        longest_s: NonZeroU32::new(20).unwrap(),
        congestion: congestion.map(str::to_owned),
        udp_bps: None,
    };
    Iperf3::new(settings).unwrap()
}

/// A test of `length` in the left host, and what was transferred.
fn run(hosts: &Hosts, load: &mut Iperf3, direction: Direction, length: Duration) -> ((u64, u64), Result<(), String>) {
    let (transferred, stop) = (Transferred::default(), Stop::default());
    let done = std::thread::scope(|scope| {
        let done = scope.spawn(|| hosts.left.run(|| load.run(direction, &transferred, &stop)).unwrap());
        std::thread::sleep(length);
        stop.request();
        done.join().unwrap()
    });
    (transferred.totals(), done.map_err(|error| error.to_string()))
}

/// Each stream's bytes, and retransmissions if the server sent them, from the report of `iperf3 -s --json`. One number
/// is the stream's own end of the server: received by a receiver, sent by a sender.
fn reported(server: &Value) -> Vec<(bool, u64, Option<u64>)> {
    let streams = server["end"]["streams"].as_array().unwrap();
    let report = streams.iter().map(|stream| {
        let sends = stream["sender"]["sender"].as_bool().unwrap();
        let end = &stream[if sends { "sender" } else { "receiver" }];
        let retransmissions = sends.then(|| stream["sender"]["retransmits"].as_u64().unwrap());
        (sends, end["bytes"].as_u64().unwrap(), retransmissions)
    });
    report.collect()
}

/// Largest receive buffer of a connection. tcp(7).
fn receive_buffer() -> u64 {
    let sizes = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_rmem").unwrap();
    sizes.split_whitespace().nth(2).unwrap().parse().unwrap()
}

fn agrees(program: &PathBuf, direction: Direction, streams: u32) {
    let hosts = Hosts::new(true);
    let server = start(&hosts.right, program, "-s -1 --json");
    wait_for_port(&hosts.right, PORT);
    let mut load = load(streams, Some("cubic"));
    let ((down, up), done) = run(&hosts, &mut load, direction, Duration::from_millis(1500));
    done.unwrap();
    let text = output(server);
    let report: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let used = load.congestion();
    let of = |is_loaded: bool| is_loaded.then(|| "cubic".to_owned());
    assert_eq!(used.down, of(direction != Direction::Upload), "{program:?}");
    assert_eq!(used.up, of(direction != Direction::Download), "{program:?}");
    let outcome = load.outcome().unwrap();
    let reported = reported(&report);
    assert_eq!(reported.len(), outcome.len());
    for (stream, (sends, bytes, retransmissions)) in outcome.iter().zip(reported) {
        assert_eq!(stream.way == Way::Down, sends);
        if sends {
            // A server with threads (3.16 and later) sends on while it reports.
            assert!(stream.sent_bytes.abs_diff(bytes) <= 4 * BLOCK, "{stream:?}: {program:?} reports {bytes} bytes");
            assert_eq!(stream.retransmissions, retransmissions, "{program:?}");
        } else {
            assert_eq!(stream.received_bytes, bytes, "{program:?} {direction:?}");
        }
    }
    let received = |way| outcome.iter().filter(|stream| stream.way == way).map(|stream| stream.received_bytes).sum();
    let (received_down, received_up): (u64, u64) = (received(Way::Down), received(Way::Up));
    assert_eq!(down, received_down);
    // The server's kernel has acknowledged what iperf3 had not yet read when the test ended.
    let unread = u64::from(streams) * receive_buffer();
    assert!((received_up..=received_up + unread).contains(&up), "{up} acknowledged, {received_up} received");
    assert!(outcome.iter().all(|stream| stream.received_bytes > 1 << 20), "{outcome:?}");
    assert!(outcome.iter().all(|stream| stream.received_bytes <= stream.sent_bytes + 4 * BLOCK), "{outcome:?}");
}

#[test]
#[ignore = "live: needs root and iperf3"]
fn results_are_those_of_the_iperf3_server() {
    for program in programs("iperf3", "LASTMILE_IPERF3") {
        for (direction, streams) in
            [(Direction::Download, 1), (Direction::Upload, 3), (Direction::Both, 2), (Direction::Download, 5)]
        {
            agrees(&program, direction, streams);
        }
    }
}

#[test]
#[ignore = "live: needs root and iperf3"]
fn an_iperf3_server_refuses_in_plain_words() {
    for program in programs("iperf3", "LASTMILE_IPERF3") {
        let hosts = Hosts::new(true);
        let _server = start(&hosts.right, &program, "-s");
        wait_for_port(&hosts.right, PORT);
        let second = Duration::from_secs(1);
        std::thread::scope(|scope| {
            let first = scope.spawn(|| run(&hosts, &mut load(1, None), Direction::Download, 2 * second).1);
            std::thread::sleep(second / 2);
            let ((down, _), busy) = run(&hosts, &mut load(1, None), Direction::Download, second);
            assert!(busy.unwrap_err().contains("refuses: it is busy with the test of another client"));
            assert_eq!(down, 0);
            assert_eq!(first.join().unwrap(), Ok(()), "the refused client does not disturb the first");
        });
    }
}

#[test]
#[ignore = "live: needs root and iperf3"]
fn an_iperf3_server_that_is_killed_is_told_and_its_bytes_count() {
    for program in programs("iperf3", "LASTMILE_IPERF3") {
        let hosts = Hosts::new(true);
        let server = start(&hosts.right, &program, "-s");
        wait_for_port(&hosts.right, PORT);
        let (transferred, stop) = (Transferred::default(), Stop::default());
        let mut load = load(2, None);
        let done = std::thread::scope(|scope| {
            let done = scope.spawn(|| hosts.left.run(|| load.run(Direction::Both, &transferred, &stop)).unwrap());
            std::thread::sleep(Duration::from_millis(700));
            drop(server);
            done.join().unwrap()
        });
        let error = done.unwrap_err().to_string();
        assert!(error.contains("closes the connection during the test"), "{error}");
        let (down, up) = transferred.totals();
        assert!(down > 1 << 20 && up > 1 << 20, "{down} down, {up} up");
        assert!(load.outcome().is_none());
    }
}

/// Numbers, losses and jitter of both ends agree with the server's own report. Token buckets of the kernel in the
/// middle drop a tenth of the datagrams upstream and a fifth downstream.
#[test]
#[ignore = "live: needs root and iperf3"]
fn datagrams_are_those_of_the_iperf3_server() {
    for program in programs("iperf3", "LASTMILE_IPERF3") {
        for direction in [Direction::Upload, Direction::Download, Direction::Both] {
            let hosts = Hosts::new(true);
            let server = start(&hosts.right, &program, "-s -1 --json");
            wait_for_port(&hosts.right, PORT);
            // 20 Mbit/s of payload are 1490 bytes of Ethernet for 1448: 20.58 Mbit/s.
            for (device, rate) in [("west", 16_464), ("east", 18_522)] {
                let queue = format!("root tbf rate {rate}kbit burst 3k limit 60k");
                tc(&hosts, &format!("qdisc add dev {device} {queue}"));
            }
            let settings = Settings { udp_bps: NonZeroU64::new(20_000_000), ..load(4, None).settings().clone() };
            let mut load = Iperf3::new(settings).unwrap();
            let ((down, up), done) = run(&hosts, &mut load, direction, Duration::from_secs(3));
            done.unwrap();
            let text = output(server);
            let report: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
            let streams = report["end"]["streams"].as_array().unwrap();
            assert_eq!(streams.len(), load.datagrams().len());
            for (stream, ours) in streams.iter().zip(load.datagrams()) {
                let theirs = &stream["udp"];
                let number = |key: &str| theirs[key].as_f64().unwrap_or_else(|| panic!("{theirs}"));
                eprintln!("{direction:?}: {ours:?}, {down} bytes down, {up} up, the server's {theirs}");
                let (share, bytes) = if ours.way == Way::Up { (0.1, up) } else { (0.2, down) };
                #[expect(clippy::cast_precision_loss, reason = "some thousand datagrams")]
                let lost = ours.lost as f64 / (ours.lost + ours.received) as f64;
                // A sender that is late on a busy machine sends bursts, which the queue takes up to 24 ms of. The queue
                // takes the first 40 datagrams of those that are too many.
                assert!((share - 0.01..share + 0.1).contains(&lost), "{direction:?}: {lost} of {share} lost");
                assert!((4900..=5300).contains(&ours.sent), "3 s of 20 Mbit/s are 5180: {ours:?}");
                assert_eq!(bytes % 1448, 0);
                if ours.way == Way::Up {
                    let counted = ["lost_packets", "packets"].map(|key| theirs[key].as_u64().unwrap());
                    assert_eq!(counted, [ours.lost, ours.lost + ours.received], "{theirs}");
                    assert!((number("jitter_ms") / 1e3 - ours.jitter_s).abs() < 1e-9, "{theirs}");
                    // Two processors of a busy machine may hand over two datagrams in the other order.
                    assert!(number("out_of_order") < 5.0 && ours.reordered.is_none(), "{theirs}");
                } else {
                    assert!(ours.reordered.is_some_and(|datagrams| datagrams < 5), "{ours:?}");
                    assert!(ours.jitter_s > 1e-6 && ours.jitter_s < 0.01, "{ours:?}");
                }
            }
        }
    }
}

//! Timelines of small connections, packet by packet. Each is a claim: its comment has the arithmetic of the RFC.
//!
//! After an intended change of behaviour, `cargo test -p lastmile-quic --test it -- --ignored bless` rewrites the
//! files. Compare every line of the difference with the RFC before it is committed.

use std::path::{Path, PathBuf};

use lastmile_quic::{AckFrequency, Config, CongestionControl};
use lastmile_units::{Duration, Instant};

use crate::pair::{CLIENT, Fate, Pair, SERVER};

fn ms(count: u64) -> Duration {
    Duration::from_ms(count)
}

fn config() -> Config {
    Config { congestion: CongestionControl::NewReno, datagram: 1200, ..Config::default() }
}

/// A client that sends `bytes` over a path of 50 ms each way; packets of the client with these numbers are lost.
fn upload(config: Config, bytes: u64, lost: &'static [u64], until: Duration) -> String {
    let decide = |from: usize, _, packet: &lastmile_quic::Packet| {
        if from == CLIENT && lost.contains(&packet.number) { Fate::Lost } else { Fate::Arrives }
    };
    let mut pair = Pair::new(config, ms(50), Box::new(decide));
    pair.ends[CLIENT].write(bytes);
    pair.ends[CLIENT].close();
    pair.ends[CLIENT].connect(Instant::ZERO);
    pair.run(Instant::ZERO + until);
    pair.log
}

/// The server answers a request with `bytes`.
fn download(config: Config, bytes: u64) -> String {
    let mut pair = Pair::new(config, ms(50), Box::new(|_, _, _| Fate::Arrives));
    pair.ends[CLIENT].write(100);
    pair.ends[CLIENT].close();
    pair.ends[SERVER].write(bytes);
    pair.ends[CLIENT].connect(Instant::ZERO);
    pair.run(Instant::ZERO + ms(5000));
    pair.log
}

/// Each timeline by the name of its file.
fn timelines() -> Vec<(&'static str, String)> {
    let every = |every, reordering| {
        let request = AckFrequency { every, max_delay: Some(ms(40)), reordering };
        Config { ack_frequency: Some(request), ..config() }
    };
    vec![
        // RFC 9000, sections 7 and 14.1; one round trip before the request, HANDSHAKE_DONE with the answer.
        ("handshake", download(config(), 3000)),
        // RFC 9002, section 6.2.2: the ClientHello is repeated after 999 ms, then after twice that.
        ("client-hello-lost", upload(config(), 100, &[0, 1], ms(10_000))),
        // RFC 9000, section 13.2.2: an acknowledgement for every second packet, and after 25 ms for the last.
        ("delayed-acks", upload(config(), 5_000, &[], ms(5000))),
        // RFC 9002, section 6.1.1: packet 3 is lost once packet 6 is acknowledged; the window halves.
        ("packet-threshold", upload(config(), 10_000, &[5], ms(5000))),
        // RFC 9002, section 6.1.2: the last but one packet is lost 9/8 of a round trip after its transmission.
        ("time-threshold", upload(config(), 5_000, &[6], ms(5000))),
        // RFC 9002, section 6.2: the tail is lost; probes after the probe timeout, then after twice of it.
        ("probe-timeout", upload(config(), 3_000, &[5, 6, 7, 8], ms(5000))),
        // Draft, section 4: an acknowledgement for each five packets, after 40 ms for the last ones.
        ("ack-frequency", upload(every(5, 1), 20_000, &[], ms(5000))),
        // Draft, section 6.2: a loss is acknowledged at once when three later packets have arrived.
        ("ack-frequency-loss", upload(every(8, 3), 20_000, &[7], ms(5000))),
    ]
}

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/{name}.trace"))
}

#[test]
fn every_timeline_comes_out_as_written() {
    for (name, actual) in timelines() {
        let written = std::fs::read_to_string(file(name)).unwrap_or_default();
        assert_eq!(actual, written, "{name}");
    }
}

#[test]
#[ignore = "rewrites the timelines"]
fn bless() {
    for (name, actual) in timelines() {
        std::fs::write(file(name), actual).expect("a writable file");
    }
}

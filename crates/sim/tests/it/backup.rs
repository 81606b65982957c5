//! Backups against closed forms.

use std::sync::Arc;

use lastmile_model::outcome::{BackupOutcome, Outcome};
use lastmile_model::{Backup, FileSizes, Network, OpenedBy, Source, Transport};
use lastmile_sim::run;
use lastmile_tcp::{AckConfig, Config};
use lastmile_units::{ByteCount, Duration, Instant, Ratio};

use crate::build;

/// IP bytes for each byte of payload in full segments.
const HEADERS: f64 = 1500.0 / 1460.0;
const RTT_S: f64 = 0.04;

fn tcp() -> Transport {
    Transport::Tcp(Arc::new(Config { mss: 1460, ..Config::default() }))
}

fn quic() -> Transport {
    Transport::Quic(Arc::new(lastmile_quic::Config::default()))
}

/// `files` of `bytes` each. The client is node 0, so an upload comes from there.
fn backup(transport: Transport, opened_by: OpenedBy, files: u64, bytes: u64) -> Backup {
    Backup {
        transport,
        opened_by,
        files: Some(files),
        sizes: FileSizes::Fixed(ByteCount::new(bytes)),
        request: 350,
        reply: 200,
        parallel: 1,
        pause: Duration::ZERO,
    }
}

/// A line of bare IP with 8 Mbit/s in both directions and a round trip of 40 ms.
fn network(backup: Backup, seconds: u64) -> Network {
    let mut network = build::line(8_000, 8_000, "none", Duration::from_ms(20));
    network.duration = Duration::from_s(seconds);
    let (from, to) = if backup.opened_by == OpenedBy::Sender { (0, 1) } else { (1, 0) };
    network.traffic.push(build::traffic("backup", from, to, Source::Backup(Arc::new(backup))));
    network
}

fn copy(network: &Network) -> (Outcome, BackupOutcome) {
    let outcome = run(network).expect("the network runs");
    assert!(outcome.conservation.holds(), "{:?}", outcome.conservation);
    let client = outcome.applications.backups[0].clone();
    (outcome, client)
}

/// A file of 14 000 bytes and its request fit the initial window of ten segments, so that no file waits for ACKs. 100
/// files take 100 round trips and the time of their bytes on the line, after a handshake of a round trip: 100 * (40 ms
/// + 14.74 ms) + 40 ms = 5.51 s. The smaller message of a file takes 0.24 ms (up) or 0.39 ms (down), about 0.5 %.
#[test]
fn files_on_an_idle_line_take_a_round_trip_and_their_bytes_each() {
    let transfer_s = 14_350.0 * HEADERS * 8.0 / 8e6;
    let expected_s = RTT_S + 100.0 * (RTT_S + transfer_s);
    for opened_by in [OpenedBy::Sender, OpenedBy::Receiver] {
        let (outcome, client) = copy(&network(backup(tcp(), opened_by, 100, 14_000), 10));
        let end_s = client.end.unwrap().as_secs_f64();
        assert!((end_s / expected_s - 1.0).abs() < 0.01, "{opened_by:?}: {end_s} s of {expected_s} s");
        assert_eq!((client.took.len(), client.bytes, client.active), (100, 1_400_000, client.end.unwrap()));
        assert_eq!(outcome.flows[0].connections, Some((1, 0)));
        // Its flow ends with the last file, which ends a part of the run.
        let end = Instant::ZERO + client.end.unwrap();
        assert_eq!(outcome.flows[0].end, Some(end));
        let cuts: Vec<Instant> = outcome.snapshots.iter().map(|snapshot| snapshot.at).collect();
        assert_eq!(cuts, [Instant::ZERO, end, Instant::ZERO + outcome.duration]);
        // What arrives is the files, with their requests on the way up.
        let request = if opened_by == OpenedBy::Sender { 350 } else { 0 };
        assert_eq!(outcome.flows[0].bytes_delivered, 100 * (14_000 + request));
    }
}

/// A file waits from its request to the end of its first segment, and for the answer: a round trip and the 1.5 ms of a
/// segment, of 54.7 ms. The first file also waits for the handshake.
#[test]
fn the_share_of_waiting_is_the_round_trip() {
    let transfer_s = 14_350.0 * HEADERS * 8.0 / 8e6;
    let (waits_s, file_s) = (RTT_S + 0.0015, RTT_S + transfer_s);
    let expected = (100.0 * waits_s + RTT_S) / (100.0 * file_s + RTT_S);
    for opened_by in [OpenedBy::Sender, OpenedBy::Receiver] {
        let (_, client) = copy(&network(backup(tcp(), opened_by, 100, 14_000), 10));
        let took_s: f64 = client.took.iter().map(|took| took.as_secs_f64()).sum();
        let share = client.waited.as_secs_f64() / took_s;
        assert!((share - expected).abs() < 0.012, "{opened_by:?}: {share} of {expected}");
    }
}

/// Ten files of 1 MB: 10 * (40 ms + 1.027 s), and a handshake and slow start before the first. The window, once grown,
/// covers the path of 40 kB.
#[test]
fn large_files_take_the_time_of_the_line() {
    for transport in [tcp(), quic()] {
        for opened_by in [OpenedBy::Sender, OpenedBy::Receiver] {
            let (_, client) = copy(&network(backup(transport.clone(), opened_by, 10, 1_000_000), 20));
            let least_s = 10.0 * (RTT_S + 1e6 * HEADERS * 8.0 / 8e6);
            let end_s = client.end.unwrap().as_secs_f64();
            assert!((least_s * 0.995..least_s + 0.35).contains(&end_s), "{opened_by:?}: {end_s} s, least {least_s} s");
        }
    }
}

/// A pause of 100 ms lies between files, not behind the last: 20 files have 19.
#[test]
fn pauses_lie_between_files() {
    let paused = Backup { pause: Duration::from_ms(100), ..backup(tcp(), OpenedBy::Sender, 20, 14_000) };
    let (_, without) = copy(&network(backup(tcp(), OpenedBy::Sender, 20, 14_000), 10));
    let (_, with) = copy(&network(paused, 10));
    let difference = with.end.unwrap() - without.end.unwrap();
    assert!((difference.as_secs_f64() / 1.9 - 1.0).abs() < 0.01, "{difference}");
    assert_eq!(with.took.len(), 20);
}

/// With four connections four files share a round trip: 25 rounds of max(40 + 14.7, 4 * 14.7) ms and a little.
#[test]
fn parallel_connections_fill_the_round_trip() {
    let parallel = Backup { parallel: 4, ..backup(tcp(), OpenedBy::Sender, 100, 14_000) };
    let (outcome, client) = copy(&network(parallel, 10));
    let end_s = client.end.unwrap().as_secs_f64();
    assert!((25.0 * 0.0590..25.0 * 0.0590 + 0.12).contains(&end_s), "{end_s} s");
    assert_eq!(outcome.flows[0].connections, Some((4, 0)));
}

#[test]
fn a_backup_that_is_stopped_or_cut_off_has_no_end() {
    let whole = || network(backup(tcp(), OpenedBy::Sender, 1_000, 14_000), 10);
    let (_, cut_off) = copy(&whole());
    assert_eq!((cut_off.end, cut_off.active), (None, Duration::from_s(10)));
    let mut stopped = whole();
    stopped.traffic[0].stop = Some(Instant::ZERO + Duration::from_s(4));
    let (outcome, stopped) = copy(&stopped);
    assert_eq!((stopped.end, stopped.active), (None, Duration::from_s(4)));
    assert!((70..74).contains(&stopped.took.len()), "{} files in 4 s of 54.7 ms each", stopped.took.len());
    assert!(outcome.flows[0].deliveries.unwrap().last < Instant::ZERO + Duration::from_ms(4_100));
}

/// Equal seeds draw equal sizes, in both directions and over both transports.
#[test]
fn published_sizes_depend_on_the_seed_alone() {
    let sizes = |transport, opened_by, seed| {
        let drawn = Backup { sizes: FileSizes::Published, ..backup(transport, opened_by, 30, 1) };
        let mut network = network(drawn, 400);
        network.seed = seed;
        copy(&network).1.bytes
    };
    let bytes = sizes(tcp(), OpenedBy::Sender, 1);
    assert_eq!(bytes, sizes(quic(), OpenedBy::Receiver, 1));
    assert_ne!(bytes, sizes(tcp(), OpenedBy::Sender, 2));
}

/// Receive offload holds a segment back until a timer: after a loss, the last one of a file.
#[test]
fn offloaded_segments_end_files_and_transfers() {
    let tcp = Config {
        mss: 1460,
        acks: AckConfig { gro: Duration::from_us(20), ..AckConfig::default() },
        ..Config::default()
    };
    for seed in 1..=8 {
        for opened_by in [OpenedBy::Sender, OpenedBy::Receiver] {
            let transport = Transport::Tcp(Arc::new(tcp.clone()));
            let mut lossy = network(backup(transport, opened_by, 3, 200_000), 20);
            lossy.seed = seed;
            lossy.links.iter_mut().for_each(|link| link.hop.line.loss = Ratio::from_ppm(10_000).unwrap());
            let (outcome, client) = copy(&lossy);
            assert_eq!((client.took.len(), client.bytes), (3, 600_000), "{seed}: {:?}", outcome.flows[0]);

            let source = build::bulk(&tcp, Some(200_000), opened_by);
            let (from, to) = if opened_by == OpenedBy::Sender { (0, 1) } else { (1, 0) };
            lossy.traffic = vec![build::traffic("file", from, to, source)];
            let outcome = run(&lossy).expect("the network runs");
            let (file, end) = (&outcome.flows[0], outcome.flows[0].end.expect("a whole file"));
            assert_eq!(file.deliveries.unwrap().last, end);
            let at_end = outcome.snapshots.iter().find(|snapshot| snapshot.at == end);
            assert_eq!(at_end.map(|snapshot| snapshot.bytes_delivered[0]), Some(200_000), "{seed}");
        }
    }
}

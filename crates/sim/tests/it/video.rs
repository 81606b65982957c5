//! Video viewers against closed forms.

use std::sync::Arc;

use lastmile_model::outcome::{Outcome, ViewingOutcome};
use lastmile_model::{Network, Rule, Source, Transport, Video};
use lastmile_sim::run;
use lastmile_tcp::Config;
use lastmile_units::{BitRate, ByteCount, Duration, Instant};

use crate::build;

/// Payload of a segment with 40 bytes of headers in 1500 IP bytes.
const PAYLOAD_SHARE: f64 = 1460.0 / 1500.0;

fn video(transport: Transport, rule: Rule, ladder_kbit: &[u64]) -> Video {
    Video {
        transport,
        segment: Duration::from_s(4),
        ladder: ladder_kbit.iter().map(|kbit| BitRate::from_kbit_per_s(*kbit)).collect(),
        rule,
        startup: Duration::from_s(4),
        buffer: Duration::from_s(24),
        length: None,
        request: 350,
    }
}

fn tcp() -> Transport {
    Transport::Tcp(Arc::new(Config { mss: 1460, ..Config::default() }))
}

fn quic() -> Transport {
    Transport::Quic(Arc::new(lastmile_quic::Config::default()))
}

/// A line of `kbit` bare IP downstream, with a round trip of 40 ms.
fn network(video: Video, kbit: u64, seconds: u64) -> Network {
    let mut network = build::line(kbit, 2_000, "none", Duration::from_ms(20));
    network.duration = Duration::from_s(seconds);
    network.traffic.push(build::traffic("film", 1, 0, Source::Video(Arc::new(video))));
    network
}

fn watch(network: &Network) -> (Outcome, ViewingOutcome) {
    let outcome = run(network).expect("the network runs");
    assert!(outcome.conservation.holds(), "{:?}", outcome.conservation);
    let viewer = outcome.applications.viewing[0].clone();
    (outcome, viewer)
}

/// A segment is 12 Mbit, 2.47 s of the line's payload. The rest is the handshake, the request, and slow start, which
/// fills 25 kB of path from a window of 14.6 kB within two round trips.
#[test]
fn a_line_faster_than_the_video_starts_within_a_segment_and_never_stalls() {
    let transfer_s = 12e6 / (5e6 * PAYLOAD_SHARE);
    for transport in [tcp(), quic()] {
        let (_, viewer) = watch(&network(video(transport, Rule::Throughput, &[3_000]), 5_000, 120));
        let start_s = viewer.start.unwrap().as_secs_f64();
        assert!(viewer.stalls.is_empty(), "{:?}", viewer.stalls);
        assert!((transfer_s + 0.08..transfer_s + 0.3).contains(&start_s), "{start_s} s, transfer {transfer_s} s");
        assert!((viewer.played.as_secs_f64() - (120.0 - start_s)).abs() < 1e-6);
    }
}

/// A line that carries less than the only bit rate plays the quotient of the rates, and stalls for the rest.
#[test]
fn a_line_slower_than_the_video_plays_its_share_of_the_time() {
    let (outcome, viewer) = watch(&network(video(tcp(), Rule::Throughput, &[3_000]), 2_000, 600));
    let stalled: f64 = viewer.stalls.iter().map(|stall| stall.as_secs_f64()).sum();
    let (start, played) = (viewer.start.unwrap().as_secs_f64(), viewer.played.as_secs_f64());
    assert!((start + played + stalled - 600.0).abs() < 1e-6, "{start} + {played} + {stalled}");
    let share = played / (played + stalled);
    assert!((share / (2.0 * PAYLOAD_SHARE / 3.0) - 1.0).abs() < 0.03, "{share} of the time");
    assert!(outcome.flows[0].bytes_delivered as f64 * 8.0 / 600.0 > 1.9e6);
}

/// With 0.7 of 4.87 Mbit/s a rise to 3 Mbit/s is possible. Buffer rules reach the top where the buffer allows it.
#[test]
fn every_rule_reaches_the_rate_that_the_line_carries_without_a_stall() {
    for rule in [Rule::Throughput, Rule::Bola, Rule::Bba] {
        for transport in [tcp(), quic()] {
            let (_, viewer) = watch(&network(video(transport, rule, &[1_000, 3_000]), 5_000, 300));
            let top = viewer.segments.iter().filter(|step| **step == 1).count();
            assert!(viewer.stalls.is_empty(), "{rule:?}: {:?}", viewer.stalls);
            assert!(top * 10 > viewer.segments.len() * 6, "{rule:?}: {:?}", viewer.segments);
        }
    }
}

/// A rate that no estimate allows is left out: 0.95 of 2 Mbit/s of line carries no 3 Mbit/s.
#[test]
fn a_player_by_throughput_keeps_below_the_line() {
    let (_, viewer) = watch(&network(video(tcp(), Rule::Throughput, &[500, 1_300, 3_000]), 2_000, 300));
    assert!(viewer.stalls.is_empty());
    assert!(viewer.segments.iter().all(|step| *step < 2), "{:?}", viewer.segments);
    assert!(viewer.segments.contains(&1));
}

/// No more media is requested than was played and fits the buffer.
#[test]
fn a_player_holds_at_most_its_buffer() {
    let (_, viewer) = watch(&network(video(tcp(), Rule::Throughput, &[1_000]), 20_000, 100));
    let loaded = Duration::from_s(4) * viewer.segments.len() as u64;
    assert!(loaded <= viewer.played + Duration::from_s(24), "{loaded} of {}", viewer.played);
    assert!(loaded + Duration::from_s(4) > viewer.played + Duration::from_s(24) - Duration::from_ms(500));
}

#[test]
fn a_whole_video_ends_and_closes_its_connection() {
    for transport in [tcp(), quic()] {
        let short = Video { length: Some(Duration::from_s(20)), ..video(transport, Rule::Throughput, &[1_000]) };
        let (outcome, viewer) = watch(&network(short, 5_000, 60));
        assert_eq!((viewer.segments.len(), viewer.played), (5, Duration::from_s(20)));
        assert!(viewer.stalls.is_empty());
        assert_eq!(outcome.flows[0].connections, Some((1, 0)));
        assert_eq!(outcome.flows[0].bytes_delivered, 5 * 500_000);
        // The flow ends with the last byte of the last segment.
        assert_eq!(outcome.flows[0].end, outcome.flows[0].deliveries.map(|deliveries| deliveries.last));
        assert_eq!(outcome.flows[0].end, viewer.arrivals.last().copied());
    }
}

#[test]
fn a_viewer_who_goes_stops_the_video() {
    let mut network = network(video(tcp(), Rule::Throughput, &[3_000]), 5_000, 60);
    network.traffic[0].stop = Some(Instant::ZERO + Duration::from_s(30));
    let (outcome, viewer) = watch(&network);
    let start = viewer.start.unwrap();
    assert_eq!(viewer.played + start, Duration::from_s(30));
    assert!(outcome.flows[0].deliveries.unwrap().last < Instant::ZERO + Duration::from_s(31));
    assert!(ByteCount::new(outcome.flows[0].bytes_delivered).as_u64() < 30_000_000);
}

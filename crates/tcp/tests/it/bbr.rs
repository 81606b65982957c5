//! BBR on a path with a bottleneck: its phases, its rate, and its queue.

use std::fmt::Write as _;

use lastmile_tcp::{AckConfig, Config, CongestionConfig, Variant};
use lastmile_units::{ByteCount, Duration};

use crate::path::{Path, at};

fn today(variant: Variant) -> Config {
    Config {
        variant,
        mss: 1448,
        receive_window: ByteCount::new(4 << 20),
        timestamps: true,
        acks: AckConfig { quick_acks: true, ..AckConfig::default() },
        congestion: CongestionConfig { tso_deferral: true, ..CongestionConfig::default() },
        ..Config::default()
    }
}

/// The phases in order, with the pacing rate and the window at the beginning of each.
fn timeline(config: &Config, rate_mbit: u64, delay_ms: u64, buffer_ms: u64, until_ms: u64) -> String {
    let mut path = Path::new(config, rate_mbit, delay_ms, buffer_ms);
    let mut out = String::new();
    let mut last = None;
    path.run(at(until_ms), |path| {
        let sender = &path.ends[0];
        let now = (sender.model_phase(), sender.pacing_rate());
        // A change of phase, or in the first second of the rate by more than a tenth.
        let changed = last.is_none_or(|(phase, rate): (Option<&str>, Option<lastmile_units::BitRate>)| {
            let bps = |rate: Option<lastmile_units::BitRate>| rate.map_or(0, lastmile_units::BitRate::as_bps);
            let early = path.now < at(1000);
            phase != now.0 || (early && bps(rate).abs_diff(bps(now.1)) * 10 > bps(rate))
        });
        if changed {
            last = Some(now);
            let _ = writeln!(
                out,
                "{:8.3} {} {:.2} Mbit/s cwnd {} in flight {} lost {}",
                path.now.as_secs_f64(),
                now.0.unwrap_or("none"),
                now.1.map_or(0.0, |rate| rate.as_bps() as f64 / 1e6),
                sender.cwnd_bytes() / 1448,
                sender.in_flight() / 1448,
                path.lost,
            );
        }
    });
    out
}

/// 10 Mbit/s with 20 ms: 17 segments are the product. Startup, drain, cycles of eight phases, and `PROBE_RTT` after 10
/// s. With version 3 `REFILL` is before `UP`, and `PROBE_RTT` after 5 s.
const TIMELINES: [(&str, Variant); 2] =
    [("bbr-10mbit-20ms.txt", Variant::Bbr), ("bbr3-10mbit-20ms.txt", Variant::Bbr3)];

/// Gives each timeline's name, its file, the comment and the timeline there, and the timeline as it is.
fn each_timeline(mut visit: impl FnMut(&str, &std::path::Path, &str, &str, &str)) {
    for (name, version) in TIMELINES {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/timelines").join(name);
        let written = std::fs::read_to_string(&path).expect("a readable timeline");
        let (head, body) = written.split_once("\n\n").expect("a comment, an empty line, the timeline");
        visit(name, &path, head, body, &timeline(&today(version), 10, 10, 200, 13_000));
    }
}

#[test]
fn the_phases_of_bbr_follow_one_another() {
    each_timeline(|name, _, _, body, actual| {
        assert!(body == actual, "{name} differs:\n{}", crate::diff::diff(name, body, actual));
    });
}

#[test]
#[ignore = "rewrites the timelines"]
fn bless() {
    each_timeline(|_, path, head, _, actual| {
        std::fs::write(path, format!("{head}\n\n{actual}")).expect("a writable timeline");
    });
}

/// tcp_bbr.c: the window is twice the product and three bursts, and the queue that a single flow builds comes from the
/// phase at 5/4 alone.
#[test]
fn bbr_alone_fills_the_path_with_a_small_queue() {
    let lines = [(1, 20), (10, 10), (100, 10), (100, 50), (300, 5)];
    let versions = [Variant::Bbr, Variant::Bbr3];
    for ((rate, delay), version) in lines.into_iter().flat_map(|line| versions.map(|version| (line, version))) {
        let mut path = Path::new(&today(version), rate, delay, 300);
        path.run(at(5000), |_| ());
        path.take_queue();
        let (since, delivered) = (path.now, path.ends[1].delivered());
        path.run(at(25_000), |_| ());
        let used = path.utilisation(since, delivered);
        let queue = path.take_queue();
        assert!(used > 95.0, "{version:?}, {rate} Mbit/s, {delay} ms: {used:.1} %");
        // At 1 Mbit/s a burst of two segments takes 24 ms.
        let most = Duration::from_ms(if rate == 1 { 60 } else { delay });
        assert!(queue <= most, "{version:?}, {rate} Mbit/s, {delay} ms: median queue {queue:?}");
    }
}

/// A shallow buffer loses packets at 5/4 of the rate, and random losses of 1 % hardly matter: BBR does not answer them.
#[test]
fn losses_do_not_lower_the_rate_of_bbr() {
    let mut path = Path::new(&today(Variant::Bbr), 20, 20, 100);
    path.loses_every = Some(100);
    path.run(at(3000), |_| ());
    let (since, delivered) = (path.now, path.ends[1].delivered());
    path.run(at(15_000), |_| ());
    let used = path.utilisation(since, delivered);
    assert!(used > 90.0, "{used:.1} %");
    assert!(path.lost > 100, "{} lost", path.lost);
}

/// The same losses take most of the rate of CUBIC, so the test above can fail.
#[test]
fn the_same_losses_lower_the_rate_of_cubic() {
    let mut path = Path::new(&today(Variant::Cubic), 20, 20, 100);
    path.loses_every = Some(100);
    path.run(at(15_000), |_| ());
    let used = path.utilisation(at(0), 0);
    assert!(used < 60.0, "{used:.1} %");
}

/// `tcp.pacing`: CUBIC with segments spread over the round trip has the rate of CUBIC, and a smaller queue in slow
/// start.
#[test]
fn cubic_may_pace() {
    let paced = Config {
        congestion: CongestionConfig { pacing: true, ..today(Variant::Cubic).congestion },
        ..today(Variant::Cubic)
    };
    let mut path = Path::new(&paced, 20, 20, 50);
    path.run(at(10_000), |_| ());
    let used = path.utilisation(at(0), 0);
    assert!(used > 90.0, "{used:.1} %");
    assert!(path.ends[0].limited_by(path.now).pacing > Duration::from_ms(100));
}

/// A receiver without SACK: the model works by the cumulative acknowledgement.
#[test]
fn bbr_works_with_a_peer_without_sack() {
    let mut path = Path::new(&today(Variant::Bbr), 10, 10, 100);
    let plain = Config { sack: false, variant: Variant::NewReno, ..today(Variant::NewReno) };
    path.ends[1] = lastmile_tcp::Endpoint::new(
        std::sync::Arc::new(plain),
        lastmile_packet::FlowId::new(1),
        lastmile_tcp::Open::Passive,
        lastmile_packet::SeqNumber::new(9),
    );
    path.loses_every = Some(1000);
    path.run(at(10_000), |_| ());
    let used = path.utilisation(at(0), 0);
    assert!(used > 80.0, "{used:.1} %");
}

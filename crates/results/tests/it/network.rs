//! The line of the demonstration: 2 Mbit/s down, 512 kbit/s up, ATM, a modem that queues 206 kB.

use lastmile_model::{Network, OpenedBy, Record, Source, Traffic};
use lastmile_queueing::spec::Spec;
use lastmile_tcp::{Config, Variant};
use lastmile_units::{ByteCount, Duration, Instant};

#[allow(dead_code, reason = "shared with the tests of `sim`, which use more of it")]
#[path = "../../../sim/tests/it/build.rs"]
mod build;

pub(crate) use build::{bulk, sad, traffic};

/// Links 0 `up` and 1 `down` between nodes 0 `client` and 1 `server`, and no traffic. Empty round
/// trip: 44 ms of propagation.
pub(crate) fn line(down_kbit: u64, up_kbit: u64, preset: &str, up_queue: Spec) -> Network {
    let mut network = build::line(down_kbit, up_kbit, preset, Duration::from_ms(22));
    network.links[0].hop.queue = up_queue;
    network.duration = Duration::from_s(180);
    network.record = Record { interval: Some(Duration::from_ms(100)), ..Record::default() };
    network
}

/// A modem's FIFO of 206 kB.
pub(crate) fn modem() -> Spec {
    build::fifo_bytes(206_000)
}

/// CUBIC with a receive window of 64 KiB.
pub(crate) fn tcp() -> Config {
    Config { variant: Variant::Cubic, receive_window: ByteCount::new(65_536), ..Config::default() }
}

/// A download for the whole run, an upload with large windows from 60 to 120 s, a ping per second.
pub(crate) fn upload_starves_download(up_queue: Spec) -> Network {
    let mut network = line(2_000, 512, "bridged-vcmux-fcs", up_queue);
    let large = Config { receive_window: ByteCount::new(4 << 20), ..tcp() };
    let ping =
        Source::Ping { interval: Duration::from_s(1), size: ByteCount::new(64), echo: lastmile_model::Echo::Icmp };
    // The ping is first: a snapshot includes it, a list of flows does not.
    network.traffic.push(traffic("ping", 0, 1, ping));
    network.traffic.push(traffic("download", 1, 0, bulk(&tcp(), None, OpenedBy::Receiver)));
    let upload = traffic("upload", 0, 1, bulk(&large, None, OpenedBy::Sender));
    let at_s = |s| Instant::ZERO + Duration::from_s(s);
    network.traffic.push(Traffic { start: at_s(60), stop: Some(at_s(120)), ..upload });
    network
}

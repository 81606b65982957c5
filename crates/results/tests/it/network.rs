//! The line of the demonstration: 2 Mbit/s down, 512 kbit/s up, ATM, a modem that queues 206 kB.

use std::sync::Arc;

use lastmile_linklayer::LinkLayer;
use lastmile_model::{Hop, IpFields, Link, Names, Network, Node, OpenedBy, Record, Source, Traffic};
use lastmile_queueing::ack::sad;
use lastmile_queueing::ack::sad::{Duplicates, Report};
use lastmile_queueing::line::Config as LineConfig;
use lastmile_queueing::spec::{Over, Spec};
use lastmile_queueing::{Limit, Match, Overflow, fifo};
use lastmile_tcp::{Config, Variant};
use lastmile_units::{BitRate, ByteCount, Duration, Instant};

/// Links 0 `up` and 1 `down` between nodes 0 `client` and 1 `server`, and no traffic. Empty round
/// trip: 44 ms of propagation.
pub(crate) fn line(down_kbit: u64, up_kbit: u64, preset: &str, up_queue: Spec) -> Network {
    let node = |name: &str| Node { name: name.to_owned(), processing: Duration::ZERO };
    let link = |name: &str, from, to, rate, queue| {
        let line = LineConfig::new(
            Some(BitRate::from_kbit_per_s(rate)),
            LinkLayer::from_name(preset).expect("a preset"),
            Duration::from_ms(22),
        );
        Link { from, to, hop: Hop { name: name.to_owned(), line, queue } }
    };
    Network {
        nodes: vec![node("client"), node("server")],
        links: vec![link("up", 0, 1, up_kbit, up_queue), link("down", 1, 0, down_kbit, Spec::fifo(100))],
        traffic: Vec::new(),
        duration: Duration::from_s(180),
        seed: 1,
        start_jitter: Duration::ZERO,
        record: Record { interval: Some(Duration::from_ms(100)), ..Record::default() },
        lines: Vec::new(),
        atm: None,
    }
}

/// A traffic between two nodes, from the start to the end of the run.
pub(crate) fn traffic(name: &str, from: usize, to: usize, source: Source) -> Traffic {
    Traffic {
        name: name.to_owned(),
        direction: if from == 0 { "up" } else { "down" }.to_owned(),
        from,
        to,
        count: 1,
        start: Instant::ZERO,
        stop: None,
        ip: IpFields::default(),
        names: Names::default(),
        listener: Default::default(),
        source,
    }
}

/// A TCP transfer; unlimited for `None`.
pub(crate) fn bulk(tcp: &Config, bytes: Option<u64>, opened_by: OpenedBy) -> Source {
    let tcp = Arc::new(tcp.clone());
    Source::Bulk { sender: Arc::clone(&tcp), receiver: tcp, bytes, request: 0, opened_by }
}

/// A modem's FIFO of 206 kB.
pub(crate) fn modem() -> Spec {
    Spec::Fifo(fifo::Config { limit: Limit::Bytes(ByteCount::new(206_000)), drop: Overflow::Tail })
}

/// A Smart ACK Dropper in front of a queue.
pub(crate) fn sad(queue: Spec) -> Spec {
    Spec::Sad(Over {
        config: sad::Config { duplicates: Duplicates::Keep, report: Report::None, exempt: Match::Never },
        queue: Box::new(queue),
    })
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

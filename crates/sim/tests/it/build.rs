//! Small networks for the tests.

use std::sync::Arc;

use lastmile_linklayer::LinkLayer;
use lastmile_model::{Hop, IpFields, Link, Names, Network, Node, OpenedBy, Record, Source, Traffic};
use lastmile_queueing::ack::sad;
use lastmile_queueing::ack::sad::{Duplicates, Report};
use lastmile_queueing::line::Config as LineConfig;
use lastmile_queueing::spec::{Over, Spec};
use lastmile_queueing::{Limit, Match, Overflow, fifo};
use lastmile_tcp::Config;
use lastmile_units::{BitRate, ByteCount, Duration, Instant};

/// Client - line - server: links 0 `up` and 1 `down` between nodes 0 `client` and 1 `server`.
pub(crate) fn line(down_kbit: u64, up_kbit: u64, preset: &str, delay: Duration) -> Network {
    let node = |name: &str| Node { name: name.to_owned(), processing: Duration::ZERO };
    let link = |name: &str, from, to, rate| {
        let line = LineConfig::new(
            Some(BitRate::from_kbit_per_s(rate)),
            LinkLayer::from_name(preset).expect("a preset"),
            delay,
        );
        Link { from, to, hop: Hop { name: name.to_owned(), line, queue: Spec::fifo(100) } }
    };
    Network {
        nodes: vec![node("client"), node("server")],
        links: vec![link("up", 0, 1, up_kbit), link("down", 1, 0, down_kbit)],
        traffic: Vec::new(),
        duration: Duration::from_s(10),
        seed: 1,
        start_jitter: Duration::ZERO,
        record: Record::default(),
        lines: Vec::new(),
        atm: None,
        autorates: Vec::new(),
    }
}

/// A traffic from one node to another, from the start to the end of the run.
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

/// A download of `bytes`, or without end.
pub(crate) fn download(tcp: &Config, bytes: Option<u64>) -> Traffic {
    traffic("download", 1, 0, bulk(tcp, bytes, OpenedBy::Receiver))
}

/// An upload of `bytes`, or without end.
pub(crate) fn upload(tcp: &Config, bytes: Option<u64>) -> Traffic {
    traffic("upload", 0, 1, bulk(tcp, bytes, OpenedBy::Sender))
}

pub(crate) fn bulk(tcp: &Config, bytes: Option<u64>, opened_by: OpenedBy) -> Source {
    let tcp = Arc::new(tcp.clone());
    Source::Bulk { sender: Arc::clone(&tcp), receiver: tcp, bytes, request: 0, opened_by }
}

/// A modem's FIFO with a limit in IP bytes.
pub(crate) fn fifo_bytes(bytes: u64) -> Spec {
    Spec::Fifo(fifo::Config { limit: Limit::Bytes(ByteCount::new(bytes)), drop: Overflow::Tail })
}

/// A Smart ACK Dropper in front of a queue.
pub(crate) fn sad(queue: Spec) -> Spec {
    Spec::Sad(Over {
        config: sad::Config { duplicates: Duplicates::Keep, report: Report::None, exempt: Match::Never },
        queue: Box::new(queue),
    })
}

pub(crate) fn at_ms(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_ms(ms)
}

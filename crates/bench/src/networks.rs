//! The measured networks.

use std::sync::Arc;

use lastmile_linklayer::LinkLayer;
use lastmile_model::{Hop, IpFields, Link, Names, Network, Node, OpenedBy, Record, Source, Traffic};
use lastmile_queueing::line;
use lastmile_queueing::spec::Spec;
use lastmile_tcp::{Config, Variant};
use lastmile_units::{BitRate, Duration, Instant};

/// A dumbbell: `flows` senders on one side, their receivers on the other, one queue of `packets`
/// each way between them.
pub(crate) struct Dumbbell {
    pub(crate) flows: u32,
    pub(crate) down: BitRate,
    pub(crate) up: BitRate,
    pub(crate) round_trip: Duration,
    pub(crate) packets: u64,
    pub(crate) duration: Duration,
    pub(crate) upload: bool,
}

impl Dumbbell {
    pub(crate) fn network(&self) -> Network {
        let node = |name: &str| Node { name: name.to_owned(), processing: Duration::ZERO };
        let link = |name: &str, from, to, rate| {
            let line =
                line::Config::new(Some(rate), LinkLayer::from_name("ip").expect("a preset"), self.round_trip / 2);
            Link { from, to, hop: Hop { name: name.to_owned(), line, queue: Spec::fifo(self.packets) } }
        };
        let tcp = Arc::new(Config { variant: Variant::Sack, ..Config::default() });
        let bulk = |name: &str, count, from, to, opened_by| Traffic {
            name: name.to_owned(),
            direction: name.to_owned(),
            from,
            to,
            count,
            start: Instant::ZERO,
            stop: None,
            ip: IpFields::default(),
            names: Names::default(),
            listener: Default::default(),
            source: Source::Bulk {
                sender: Arc::clone(&tcp),
                receiver: Arc::clone(&tcp),
                bytes: None,
                request: 0,
                opened_by,
            },
        };
        let mut traffic = vec![bulk("down", self.flows, 0, 1, OpenedBy::Receiver)];
        if self.upload {
            traffic.push(bulk("up", 1, 1, 0, OpenedBy::Sender));
        }
        Network {
            nodes: vec![node("server"), node("client")],
            links: vec![link("down", 0, 1, self.down), link("up", 1, 0, self.up)],
            traffic,
            duration: self.duration,
            seed: 1,
            start_jitter: Duration::ZERO,
            record: Record::default(),
            lines: Vec::new(),
            atm: None,
            autorates: Vec::new(),
        }
    }
}

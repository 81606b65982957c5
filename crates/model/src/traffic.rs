//! Traffic: who sends what to whom, and from when to when.

use std::net::IpAddr;
use std::sync::Arc;

use lastmile_theory::voice::Codec;
use lastmile_units::{BitRate, ByteCount, Duration, Instant};

use crate::network::NodeIndex;

/// A source, or `count` equal ones.
#[derive(Clone, Debug)]
pub struct Traffic {
    /// Name; with `count` above one, flows are called `name-1`, `name-2`, ...
    pub name: String,
    /// What results call its direction: `down`, `up` or anything else.
    pub direction: String,
    /// Where the data comes from.
    pub from: NodeIndex,
    /// Where the data goes.
    pub to: NodeIndex,
    /// How many.
    pub count: u32,
    /// When it starts.
    pub start: Instant,
    /// When the application stops offering data.
    pub stop: Option<Instant>,
    /// Differentiated services code point of its packets (RFC 2474), 0 to 63.
    pub dscp: u8,
    /// What its packets say of their ends.
    pub names: Names,
    /// Who listens to its datagrams.
    pub listener: Listener,
    /// What it is.
    pub source: Source,
}

/// The application that receives datagrams.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Listener {
    /// Its fixed play-out buffer: a packet that takes this much longer than the fastest so far is late.
    pub buffer: Duration,
    /// What decodes them, if they are voice.
    pub codec: Option<Codec>,
}

impl Default for Listener {
    /// 60 ms, three packets of a usual call, and no voice.
    fn default() -> Self {
        Self { buffer: Duration::from_ms(60), codec: None }
    }
}

impl Traffic {
    /// True if its packets are IPv6, as only its TCP can say.
    #[must_use]
    pub fn ipv6(&self) -> bool {
        match &self.source {
            Source::Bulk { sender, .. } => sender.ipv6,
            Source::Writes { tcp, .. } => tcp.ipv6,
            Source::Web(web) => web.server.ipv6,
            Source::Swarm(swarm) => swarm.tcp.ipv6,
            _ => false,
        }
    }

    /// Which end opens the connection, or sends first.
    #[must_use]
    pub fn opened_by(&self) -> OpenedBy {
        match self.source {
            Source::Bulk { opened_by, .. } | Source::Writes { opened_by, .. } => opened_by,
            Source::Web(_) => OpenedBy::Receiver,
            _ => OpenedBy::Sender,
        }
    }

    /// True for what opens connections as it goes.
    #[must_use]
    pub fn opens(&self) -> bool {
        matches!(self.source, Source::Web(_) | Source::Swarm(_))
    }

    /// The name of that end.
    #[must_use]
    pub fn opener(&self) -> &EndName {
        match self.opened_by() {
            OpenedBy::Sender => &self.names.from,
            OpenedBy::Receiver => &self.names.to,
        }
    }
}

/// What the packets of a traffic say of its two ends, to whoever looks into their headers: classifiers, header compression,
/// captures. They are routed by their nodes all the same.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Names {
    /// Where the data comes from.
    pub from: EndName,
    /// Where the data goes.
    pub to: EndName,
}

/// What packets say of one end.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EndName {
    /// Address; that of the node if there is none ([`crate::Directory`]).
    pub address: Option<IpAddr>,
    /// Port; one for each connection if there is none. Of several connections the end that opens them takes the ports
    /// from this one on.
    pub port: Option<u16>,
    /// The first bytes that this end sends, as far as a classifier may look into them.
    pub first_payload: Vec<u8>,
}

/// Kinds of traffic.
#[derive(Clone, Debug)]
pub enum Source {
    /// A TCP transfer of so many bytes; `None` is as many as there is time for.
    Bulk {
        /// TCP of the data sender.
        sender: Arc<lastmile_tcp::Config>,
        /// TCP of the data receiver.
        receiver: Arc<lastmile_tcp::Config>,
        /// Bytes to transfer.
        bytes: Option<u64>,
        /// Bytes that the client sends first, for a transfer that the client's side receives; zero for none.
        request: u64,
        /// Which end opens the connection.
        opened_by: OpenedBy,
    },
    /// A TCP connection whose application hands it data at random times, with exponential gaps, whatever has been sent of it: what TCP cannot
    /// send yet waits in a send buffer without limit.
    Writes {
        /// TCP of both ends.
        tcp: Arc<lastmile_tcp::Config>,
        /// Mean rate of the data in bits per second, headers not counted.
        rate: BitRate,
        /// Bytes of data handed over at a time, at least one.
        size: ByteCount,
        /// Which end opens the connection.
        opened_by: OpenedBy,
    },
    /// UDP packets with exponential gaps.
    Poisson {
        /// Mean rate in IP bits per second.
        rate: BitRate,
        /// IP bytes of a packet.
        size: ByteCount,
    },
    /// UDP packets at a constant rate during exponential on-times, silence during exponential off-times.
    OnOff {
        /// Rate in IP bits per second while on.
        peak: BitRate,
        /// Mean length of a burst.
        on: Duration,
        /// Mean length of a silence.
        off: Duration,
        /// IP bytes of a packet.
        size: ByteCount,
    },
    /// UDP packets of one size at a constant interval: voice, or a packet blast.
    Constant {
        /// Time between packets.
        interval: Duration,
        /// IP bytes of a packet.
        size: ByteCount,
        /// What results call it: `voice` or `blast`.
        kind: &'static str,
    },
    /// A web user, who reads pages of the server at `from`; TCP connections come and go.
    Web(Arc<Web>),
    /// One direction of a peer in a swarm; TCP connections come and go.
    Swarm(Arc<Swarm>),
    /// Packets of a capture, each at its time.
    Replay(Arc<Replay>),
    /// Requests at equal intervals, answered by the other end.
    Ping {
        /// Time between requests.
        interval: Duration,
        /// IP bytes of a request and of its reply.
        size: ByteCount,
        /// What the packets are.
        echo: Echo,
    },
}

/// The packets of a ping.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Echo {
    /// ICMP echo requests and replies, as those of ping(8).
    #[default]
    Icmp,
    /// UDP datagrams, which the other end returns (RFC 862).
    Udp,
}

impl Echo {
    /// The name in files and results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Icmp => "icmp",
            Self::Udp => "udp",
        }
    }
}

/// A web user's browser and the pages it meets: see `host/web.rs` for the model.
#[derive(Clone, Debug)]
pub struct Web {
    /// TCP of the server.
    pub server: Arc<lastmile_tcp::Config>,
    /// TCP of the browser.
    pub browser: Arc<lastmile_tcp::Config>,
    /// Mean time between the end of a page and the request for the next.
    pub reading: Duration,
    /// Mean time between a page and the requests for what it embeds.
    pub parsing: Duration,
    /// Bytes of a request.
    pub request: u32,
    /// Connections at a time, at least one.
    pub connections: u32,
    /// A connection carries several objects of a page; otherwise one.
    pub persistent: bool,
}

/// One direction of a peer: to so many others at a time it sends, or so many send to it.
#[derive(Clone, Debug)]
pub struct Swarm {
    /// TCP of both ends.
    pub tcp: Arc<lastmile_tcp::Config>,
    /// Peers to choose from.
    pub peers: u32,
    /// Connections that carry data at a time.
    pub slots: u32,
    /// Time between choices.
    pub rechoke: Duration,
}

/// Packets of a capture.
#[derive(Clone, Debug, Default)]
pub struct Replay {
    /// Each packet with its time after the start, in order of time. The flow is the packet's place among the capture's flows, from 0.
    pub packets: Vec<(Duration, lastmile_packet::Meta)>,
    /// The flows, as the capture's headers name them.
    pub flows: Vec<lastmile_packet::FlowKey>,
}

/// Which end of a transfer opens the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpenedBy {
    /// The end that sends the data: an upload.
    Sender,
    /// The end that receives the data: a download.
    Receiver,
}

//! Traffic: sources, their two ends, and their times.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use lastmile_tcp::Controls;
use lastmile_theory::voice::Codec;
use lastmile_units::{BitRate, ByteCount, Duration, Instant};

use crate::applications::{Backup, Conference, Game, Swarm, Video, Web};
use crate::ip::IpFields;
use crate::node::NodeIndex;
use crate::transport::{OpenedBy, Transport};

/// A source, or `count` equal ones.
#[derive(Clone, Debug)]
pub struct Traffic {
    /// Name. With a `count` above one, flows are named `name-1`, `name-2`, ...
    pub name: String,
    /// The direction in results: `down`, `up` or any other word.
    pub direction: String,
    /// The node that sends the data.
    pub from: NodeIndex,
    /// The node that receives the data.
    pub to: NodeIndex,
    /// Number of equal sources.
    pub count: u32,
    /// Start time.
    pub start: Instant,
    /// When the application stops offering data.
    pub stop: Option<Instant>,
    /// The IP headers of its packets.
    pub ip: IpFields,
    /// Addresses, ports and first payload bytes of its packets.
    pub names: Names,
    /// The application that receives its datagrams.
    pub listener: Listener,
    /// The kind of source.
    pub source: Source,
}

/// The application that receives datagrams.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Listener {
    /// The play-out buffer: a packet whose delay exceeds the smallest of the last half to one
    /// second by more than this is late.
    pub buffer: Duration,
    /// The codec of a voice stream.
    pub codec: Option<Codec>,
}

impl Default for Listener {
    /// 60 ms, three packets of a usual call, and no codec.
    fn default() -> Self {
        Self { buffer: Duration::from_ms(60), codec: None }
    }
}

impl Traffic {
    /// The TCP of its ends, first of the end that sends the data; none for other protocols.
    pub fn tcp(&self) -> impl Iterator<Item = &lastmile_tcp::Config> {
        let ends = match &self.source {
            Source::Bulk { sender, receiver, .. } => [Some(sender), Some(receiver)],
            Source::Writes { tcp, .. } => [Some(tcp), None],
            Source::Swarm(swarm) => [Some(&swarm.tcp), None],
            other => [other.transport().and_then(Transport::tcp), None],
        };
        ends.into_iter().flatten().map(Arc::as_ref)
    }

    /// Gives its TCP senders a congestion control of the caller: [`lastmile_tcp::Config::with_control`]. False: no TCP
    /// sends.
    pub fn set_control(&mut self, controls: &Controls, paces: bool) -> bool {
        let set = |tcp: &mut Arc<lastmile_tcp::Config>| {
            *tcp = Arc::new(lastmile_tcp::Config::clone(tcp).with_control(controls.clone(), paces));
            true
        };
        let over = |transport: &mut Transport| match transport {
            Transport::Tcp(tcp) => set(tcp),
            Transport::Quic(_) => false,
        };
        match &mut self.source {
            Source::Bulk { sender: tcp, .. } | Source::Writes { tcp, .. } => set(tcp),
            Source::Swarm(swarm) => set(&mut Arc::make_mut(swarm).tcp),
            Source::Web(web) => over(&mut Arc::make_mut(web).transport),
            Source::Video(video) => over(&mut Arc::make_mut(video).transport),
            Source::Backup(backup) => over(&mut Arc::make_mut(backup).transport),
            _ => false,
        }
    }

    /// The end that opens the connection, or sends first.
    #[must_use]
    pub fn opened_by(&self) -> OpenedBy {
        match self.source {
            Source::Bulk { opened_by, .. } | Source::Quic { opened_by, .. } | Source::Writes { opened_by, .. } => {
                opened_by
            }
            Source::Backup(ref backup) => backup.opened_by,
            _ if self.source.transport().is_some() => OpenedBy::Receiver,
            _ => OpenedBy::Sender,
        }
    }

    /// True for a source that opens connections during the run.
    #[must_use]
    pub fn opens(&self) -> bool {
        matches!(self.source, Source::Swarm(_)) || self.source.transport().is_some()
    }

    /// The members of this traffic whose connections, opened during the run, have flow numbers of their own: each
    /// where each has a host of its own, else the first for all. None for a source that opens none.
    #[must_use]
    pub fn opening_members(&self) -> std::ops::Range<u32> {
        let spread = self.names.from.one_each || self.names.to.one_each;
        0..if !self.opens() {
            0
        } else if spread {
            self.count
        } else {
            1
        }
    }

    /// The addresses of the end that opens the connection.
    #[must_use]
    pub fn opener(&self) -> &EndName {
        match self.opened_by() {
            OpenedBy::Sender => &self.names.from,
            OpenedBy::Receiver => &self.names.to,
        }
    }
}

/// Addresses, ports and first payload bytes at both ends of a traffic, in its packets' headers, for
/// classifiers, header compression and captures. Routing follows the nodes, not these addresses.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Names {
    /// The end that sends the data.
    pub from: EndName,
    /// The end that receives the data.
    pub to: EndName,
}

/// Address, port and first payload bytes of one end.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EndName {
    /// Address; by default that of the node ([`crate::Directory`]).
    pub address: Option<IpAddr>,
    /// Each connection, or each user who opens connections, has a host of its own, from the address on.
    pub one_each: bool,
    /// Port; by default one for each connection. With several connections the opening end takes the
    /// ports from this one on.
    pub port: Option<u16>,
    /// The first bytes that this end sends, for classifiers that inspect payload.
    pub first_payload: Vec<u8>,
}

impl EndName {
    /// The address of connection or user `member` of the traffic, from 0; `None`: that of the node.
    #[must_use]
    pub fn address_of(&self, member: u32) -> Option<IpAddr> {
        let first = self.address?;
        if !self.one_each {
            return Some(first);
        }
        Some(match first {
            IpAddr::V4(first) => Ipv4Addr::from_bits(first.to_bits().wrapping_add(member)).into(),
            IpAddr::V6(first) => Ipv6Addr::from_bits(first.to_bits().wrapping_add(member.into())).into(),
        })
    }
}

/// A kind of packets at a constant interval.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Steady {
    /// Audio of a call.
    Voice,
    /// A constant packet load.
    Blast,
}

/// Kinds of traffic.
#[derive(Clone, Debug)]
pub enum Source {
    /// A TCP transfer of `bytes` bytes, or of unlimited size for `None`.
    Bulk {
        /// TCP of the data sender.
        sender: Arc<lastmile_tcp::Config>,
        /// TCP of the data receiver.
        receiver: Arc<lastmile_tcp::Config>,
        /// Bytes to transfer.
        bytes: Option<u64>,
        /// Bytes that the client sends first, for a transfer that the client receives; zero for
        /// none.
        request: u64,
        /// The end that opens the connection.
        opened_by: OpenedBy,
    },
    /// A QUIC transfer of `bytes` bytes, or of unlimited size for `None`.
    Quic {
        /// QUIC of both ends.
        quic: Arc<lastmile_quic::Config>,
        /// Bytes to transfer.
        bytes: Option<u64>,
        /// Bytes that the client sends first, for a transfer that the client receives; zero for
        /// none.
        request: u64,
        /// The end that opens the connection.
        opened_by: OpenedBy,
    },
    /// A TCP connection whose application writes at random times, with exponential gaps,
    /// independent of TCP's progress. Unsent data wait in an unlimited send buffer.
    Writes {
        /// TCP of both ends.
        tcp: Arc<lastmile_tcp::Config>,
        /// Mean rate of the data in bits per second, headers not counted.
        rate: BitRate,
        /// Bytes of a write, at least one.
        size: ByteCount,
        /// The time from the start to the first write; `None`: a random gap, too.
        first: Option<Duration>,
        /// The end that opens the connection.
        opened_by: OpenedBy,
    },
    /// UDP packets with exponential gaps.
    Poisson {
        /// Mean rate in IP bits per second.
        rate: BitRate,
        /// IP bytes of a packet.
        size: ByteCount,
    },
    /// UDP packets at a constant rate during exponential on-times, none during exponential
    /// off-times.
    OnOff {
        /// Rate in IP bits per second while on.
        peak: BitRate,
        /// Mean length of a burst.
        on: Duration,
        /// Mean time between bursts.
        off: Duration,
        /// IP bytes of a packet.
        size: ByteCount,
    },
    /// UDP packets of one size at a constant interval: voice, or a constant packet load.
    Constant {
        /// Time between packets.
        interval: Duration,
        /// IP bytes of a packet.
        size: ByteCount,
        /// The kind in results.
        kind: Steady,
    },
    /// A web user who reads pages of the server at `from`; opens TCP connections during the run.
    Web(Arc<Web>),
    /// A viewer who watches a video of the server at `from`, segment by segment; opens a connection during the
    /// run.
    Video(Arc<Video>),
    /// Files that a client copies to or from a server, one after another; opens connections during the run.
    Backup(Arc<Backup>),
    /// One direction of a video conference: audio and video from `from`, reports back.
    Conference(Arc<Conference>),
    /// A player of a game whose server is at `from`: updates to the client, commands back.
    Game(Arc<Game>),
    /// One direction of a peer in a swarm; opens TCP connections during the run.
    Swarm(Arc<Swarm>),
    /// Packets of a capture, each at its captured time.
    Replay(Arc<Replay>),
    /// Requests at equal intervals, answered by the other end.
    Ping {
        /// Time between requests.
        interval: Duration,
        /// IP bytes of a request and of its reply.
        size: ByteCount,
        /// The kind of packets.
        echo: Echo,
    },
}

impl Source {
    /// True if packets also travel from its receiver to its sender.
    #[must_use]
    pub fn is_answered(&self) -> bool {
        !matches!(self, Self::Poisson { .. } | Self::OnOff { .. } | Self::Constant { .. } | Self::Replay(_))
    }

    /// The transport of an application that requests data over connections of its own: web pages, videos, backups.
    #[must_use]
    pub fn transport(&self) -> Option<&Transport> {
        match self {
            Self::Web(web) => Some(&web.transport),
            Self::Video(video) => Some(&video.transport),
            Self::Backup(backup) => Some(&backup.transport),
            _ => None,
        }
    }

    /// The settings of QUIC, if its data go over QUIC.
    #[must_use]
    pub fn quic(&self) -> Option<&lastmile_quic::Config> {
        match (self, self.transport()) {
            (Self::Quic { quic, .. }, _) | (_, Some(Transport::Quic(quic))) => Some(quic),
            _ => None,
        }
    }
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

/// Packets of a capture.
#[derive(Clone, Debug, Default)]
pub struct Replay {
    /// Each packet with its time after the start, in order of time. Its flow number is an index
    /// into `flows`.
    pub packets: Vec<(Duration, lastmile_packet::Meta)>,
    /// The flows, with the addresses in the capture's headers.
    pub flows: Vec<lastmile_packet::FlowKey>,
}

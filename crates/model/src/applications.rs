//! Applications of people: web pages, videos, backups, conferences, games, swarms.

use std::sync::Arc;

use crate::ip::IpFields;
use lastmile_units::{BitRate, ByteCount, Duration};

use crate::transport::{OpenedBy, Transport};

/// A web user's browser and the requested pages. `crates/sim/src/hosts/web.rs` has the model.
#[derive(Clone, Debug)]
pub struct Web {
    /// Transport of all connections; QUIC for HTTP/3.
    pub transport: Transport,
    /// The version of HTTP on a connection.
    pub http: Http,
    /// Each connection begins with a handshake of TLS 1.3 over TCP. False for HTTP/3, whose QUIC has its own.
    pub tls: bool,
    /// Mean time between the end of a page and the request for the next.
    pub reading: Duration,
    /// Mean time between a page and the requests for its embedded objects.
    pub parsing: Duration,
    /// Bytes of a request.
    pub request: u32,
    /// Concurrent connections of HTTP/1, at least one.
    pub connections: u32,
}

/// A version of HTTP: the objects that a connection carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Http {
    /// One object.
    One0,
    /// One object after another.
    One1,
    /// All objects of a page at a time, over TCP.
    Two,
    /// All objects of a page at a time, over QUIC.
    Three,
}

impl Http {
    /// The name in files and results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::One0 => "1.0",
            Self::One1 => "1.1",
            Self::Two => "2",
            Self::Three => "3",
        }
    }

    /// A connection carries several objects at a time.
    #[must_use]
    pub const fn multiplexes(self) -> bool {
        matches!(self, Self::Two | Self::Three)
    }
}

/// A video and its player. `crates/sim/src/hosts/video.rs` has the model.
#[derive(Clone, Debug)]
pub struct Video {
    /// Transport of the connection.
    pub transport: Transport,
    /// Playing time of a segment.
    pub segment: Duration,
    /// The bit rates in which each segment exists, ascending; at least one.
    pub ladder: Vec<BitRate>,
    /// The choice of the next segment's bit rate.
    pub rule: Rule,
    /// Media that playback needs to start, and to continue after a stall.
    pub startup: Duration,
    /// The most media that the player holds: at least `startup` and a segment.
    pub buffer: Duration,
    /// Playing time of the video; `None` for one that exceeds the run.
    pub length: Option<Duration>,
    /// Bytes of a request.
    pub request: u32,
}

/// The rule by which a player chooses the bit rate of the next segment. `crates/sim/src/hosts/bitrate.rs` has the
/// sources.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rule {
    /// A moving average of measured throughput, with a safety margin.
    Throughput,
    /// BOLA: a utility by the level of the buffer.
    Bola,
    /// BBA-0: a linear map from the level of the buffer to bit rates.
    Bba,
}

/// Files that are copied one after another. `crates/sim/src/hosts/backup.rs` has the model.
#[derive(Clone, Debug)]
pub struct Backup {
    /// Transport of all connections.
    pub transport: Transport,
    /// The end of the client: the sender of an upload, the receiver of a download.
    pub opened_by: OpenedBy,
    /// Files to copy; `None` for as many as the run has time for.
    pub files: Option<u64>,
    /// Bytes of each file.
    pub sizes: FileSizes,
    /// Bytes that ask for a file, or that precede it on its way up.
    pub request: u32,
    /// Bytes of the server's answer to a file that has come up.
    pub reply: u32,
    /// Concurrent connections, at least one, each with a file at a time.
    pub parallel: u32,
    /// Time from the end of a file to the next file of the same connection.
    pub pause: Duration,
}

/// The sizes of files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileSizes {
    /// All have this many bytes.
    Fixed(ByteCount),
    /// Drawn from the published distribution of `crates/sim/src/hosts/backup.rs`.
    Published,
}

/// A video conference in one direction. `crates/sim/src/hosts/conference` has the model.
#[derive(Clone, Debug)]
pub struct Conference {
    /// Rates of audio and video together, headers included.
    pub rates: Rates,
    /// Frames a second, at least one.
    pub frame_rate: u32,
    /// Payload of a full packet of video.
    pub packet: ByteCount,
    /// The audio that accompanies the video.
    pub audio: Audio,
    /// Time from the first packet that a report covers to the report.
    pub feedback: Duration,
}

impl Conference {
    /// The most that [`Conference::headers`] returns.
    pub const MOST_HEADERS: u64 = Self::headers(IpFields { dscp: 0, ipv6: true });

    /// IP bytes that a packet has in addition to its payload: IP and UDP (28 or 48), RTP (12), the extension with its
    /// number (8), and the tag of SRTP (10).
    #[must_use]
    pub const fn headers(ip: IpFields) -> u64 {
        ip.datagram_headers() as u64 + 12 + 8 + 10
    }

    /// The rate of the audio in IP bits per second.
    #[must_use]
    pub fn audio_bps(&self, ip: IpFields) -> f64 {
        (self.audio.payload.as_u64() + Self::headers(ip)) as f64 * 8.0 / self.audio.interval.as_secs_f64()
    }
}

/// The rates between which a rate control chooses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rates {
    /// The lowest.
    pub least: BitRate,
    /// The first.
    pub start: BitRate,
    /// The highest.
    pub most: BitRate,
}

/// A stream of audio packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Audio {
    /// Time between packets.
    pub interval: Duration,
    /// Payload of a packet.
    pub payload: ByteCount,
}

/// A session of one player of a networked game. `crates/sim/src/hosts/game.rs` has the model.
#[derive(Clone, Debug)]
pub struct Game {
    /// The client's commands.
    pub commands: Datagrams,
    /// The server's updates.
    pub updates: Datagrams,
    /// A response that takes longer is late.
    pub limit: Duration,
}

/// Datagrams of one direction of a game.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Datagrams {
    /// Time between two datagrams.
    pub interval: Spread<Duration>,
    /// IP bytes.
    pub size: Spread<ByteCount>,
    /// The most IP bytes.
    pub most: ByteCount,
}

/// An extreme-value (Gumbel) distribution.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spread<T> {
    /// The mode.
    pub location: T,
    /// The scale; zero for a constant.
    pub scale: T,
}

/// One direction of a peer: `slots` concurrent connections that send, or that receive.
#[derive(Clone, Debug)]
pub struct Swarm {
    /// TCP of both ends.
    pub tcp: Arc<lastmile_tcp::Config>,
    /// Peers to choose from.
    pub peers: u32,
    /// Concurrent connections that carry data.
    pub slots: u32,
    /// Time between choices.
    pub rechoke: Duration,
}

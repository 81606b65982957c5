//! Applications that open connections during the run: web users, video viewers, swarms.

use std::sync::Arc;

use lastmile_units::{BitRate, Duration};

/// The transport of an application's connections. Both ends have the same settings.
#[derive(Clone, Debug)]
pub enum Transport {
    /// TCP.
    Tcp(Arc<lastmile_tcp::Config>),
    /// QUIC.
    Quic(Arc<lastmile_quic::Config>),
}

impl Transport {
    /// The settings of TCP, if the transport is TCP.
    #[must_use]
    pub fn tcp(&self) -> Option<&Arc<lastmile_tcp::Config>> {
        match self {
            Self::Tcp(tcp) => Some(tcp),
            Self::Quic(_) => None,
        }
    }
}

/// A web user's browser and the requested pages. `crates/sim/src/hosts/web.rs` has the model.
#[derive(Clone, Debug)]
pub struct Web {
    /// Transport of all connections.
    pub transport: Transport,
    /// Mean time between the end of a page and the request for the next.
    pub reading: Duration,
    /// Mean time between a page and the requests for its embedded objects.
    pub parsing: Duration,
    /// Bytes of a request.
    pub request: u32,
    /// Concurrent connections, at least one.
    pub connections: u32,
    /// True if a connection carries several objects of a page, false for one.
    pub persistent: bool,
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

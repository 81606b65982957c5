//! Sources of probes, and their samples.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::load::Stop;
use crate::train::Way;

/// The wait after which a probe counts as lost. A modem with 206 kB in front of 512 kbit/s delays
/// by 3.2 s.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// The kind of a probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// ICMP echo (RFC 792, RFC 4443).
    Icmp,
    /// Datagrams that the server returns with its time stamps.
    Udp,
    /// irtt's protocol.
    Irtt,
    /// A TCP connection set up: SYN to SYN-ACK.
    TcpConnect,
    /// A TLS session set up, less the time for its TCP connection.
    TlsHandshake,
    /// A small HTTP/2 request over a connection of its own, until its whole answer.
    HttpForeign,
    /// A small HTTP/2 request over a connection that carries load, until its whole answer.
    HttpSelf,
}

impl Kind {
    /// A word or three for people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Icmp => "ICMP",
            Self::Udp => "UDP",
            Self::Irtt => "irtt",
            Self::TcpConnect => "TCP",
            Self::TlsHandshake => "TLS",
            Self::HttpForeign => "HTTP",
            Self::HttpSelf => "HTTP under load",
        }
    }
}

/// One probe and its answer. Times are seconds of the client's monotonic clock since the
/// measurement started.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct Sample {
    /// When the probe left.
    pub sent_s: f64,
    /// Round-trip time; `None` for a probe without an answer.
    pub rtt_s: Option<f64>,
    /// One-way delay to the server, where clocks can be compared.
    pub up_s: Option<f64>,
    /// One-way delay from the server, where clocks can be compared.
    pub down_s: Option<f64>,
    /// Whether the answer came after that of a later probe.
    pub reordered: bool,
    /// Whether this is a second answer to a probe, told for the count alone.
    #[serde(default)]
    pub duplicate: bool,
    /// The direction in which a probe without an answer was lost, where the server's later answers
    /// show it.
    #[serde(default)]
    pub lost: Option<Way>,
}

/// The clocks behind the one-way delays of a prober.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Clocks {
    /// One clock, or two that are as good as one: `up_s` and `down_s` are delays.
    Comparable,
    /// Each end has its own zero: `up_s` and `down_s` are differences of both clocks, from which the
    /// session estimates offset and drift.
    Apart,
}

/// The subject of a series of probes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Subject {
    /// Name or address of the target, as the user wrote it.
    pub target: String,
    /// The kind of probe.
    pub kind: Kind,
    /// Differentiated services code point of the probes, 0 to 63.
    pub code_point: u8,
}

/// Kind, target and code point, such as `UDP 192.0.2.1 @46`.
impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.name(), self.target)?;
        match self.code_point {
            0 => Ok(()),
            code_point => write!(f, " @{code_point}"),
        }
    }
}

/// A source of probes.
pub trait Prober: Send {
    /// Target, kind and code point.
    fn subject(&self) -> Subject;

    /// The meaning of the one-way delays of the samples.
    fn clocks(&self) -> Clocks {
        Clocks::Comparable
    }

    /// Time between two probes, where it does not follow from the load.
    fn interval(&self) -> Option<Duration> {
        None
    }

    /// Sends probes until `stop` and tells each sample as soon as its answer has come or is given
    /// up. It blocks: the session calls it on a thread of its own.
    ///
    /// `now_s` is the session's clock: seconds since the measurement started.
    ///
    /// # Errors
    /// No socket, no route, a target that refuses; samples that were told before stay valid.
    fn run(&mut self, now_s: &(dyn Fn() -> f64 + Sync), stop: &Stop, tell: &mut dyn FnMut(Sample))
    -> Result<(), Error>;
}

//! The results of one interval of watching, and the names that they are stored under.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::delays::Delays;

/// Milliseconds since 1970-01-01 00:00 UTC, on the wall clock.
pub type WallMs = i64;

/// The time after which a request without a reply is lost. Bufferbloat delays replies by seconds, so the patience of
/// ping(8), a second, would call them lost.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// A host, and the code point of the pings to it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct Path {
    /// The host in the user's words, or `gateway`.
    pub target: String,
    /// The differentiated services code point, 0 to 63.
    pub code_point: u8,
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code_point {
            0 => f.write_str(&self.target),
            code_point => write!(f, "{} dscp {code_point}", self.target),
        }
    }
}

/// The program that has a queue.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// A running `lastmile shape`.
    Shape,
    /// A queueing discipline or class of the kernel.
    Kernel,
    /// A direction of an interface.
    Interface,
}

impl Source {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Shape, Self::Kernel, Self::Interface];

    /// Its name in the store.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Shape => "shape",
            Self::Kernel => "kernel",
            Self::Interface => "interface",
        }
    }

    /// The source of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|source| source.name() == name)
    }
}

/// A queue that is watched.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct QueueName {
    /// The program that has it.
    pub source: Source,
    /// The line and direction, such as `shape up`, or the interface.
    pub place: String,
    /// The class; empty for the whole line of a shaper. `received` or `sent` of an interface.
    pub class: String,
}

impl fmt::Display for QueueName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.class.as_str() {
            "" => f.write_str(&self.place),
            class => write!(f, "{} {class}", self.place),
        }
    }
}

/// The outcome of one request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ping {
    /// The host and the code point.
    pub path: Path,
    /// The time from the request to the end of the interval.
    pub age_ms: u64,
    /// The round-trip time; `None` without a reply.
    pub rtt_ns: Option<u64>,
}

/// The counts of a queue within an interval, and its backlog at the end.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// The time that they cover.
    pub span_ms: u64,
    /// Packets that departed.
    pub packets: u64,
    /// Their bytes: of IP in a shaper, of frames in the kernel.
    pub bytes: u64,
    /// Their bytes on the wire, where they are known.
    pub wire_bytes: Option<u64>,
    /// Packets that were dropped, by reason, without zeros.
    pub dropped: BTreeMap<String, u64>,
    /// Times that it was held back, or packets that had to wait.
    pub overlimits: u64,
    /// The backlog at the end of the interval; `None` where it is not known.
    pub backlog: Option<Backlog>,
    /// Delays from arrival to the start of transmission.
    pub waits: Delays,
}

impl Counts {
    /// Packets dropped for any reason.
    #[must_use]
    pub fn dropped_packets(&self) -> u64 {
        self.dropped.values().sum()
    }
}

/// Packets that wait, and their bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Backlog {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

/// Something that happened once.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Event {
    /// The time.
    pub at_ms: WallMs,
    /// The kind.
    pub kind: EventKind,
    /// The details, in words.
    pub detail: String,
}

/// Kinds of events.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EventKind {
    /// The watcher started.
    Started,
    /// The watcher ended on request.
    Stopped,
    /// The wall clock was set.
    Clock,
    /// The machine was suspended.
    Suspended,
    /// A source of readings, or a host, is unreachable, or answers again.
    Source,
    /// The store took no rows for a while, or dropped old ones to stay under its limit.
    Store,
}

impl EventKind {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Started, Self::Stopped, Self::Clock, Self::Suspended, Self::Source, Self::Store];

    /// Its name in the store.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::Stopped => "stopped",
            Self::Clock => "clock",
            Self::Suspended => "suspended",
            Self::Source => "source",
            Self::Store => "store",
        }
    }

    /// The kind of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// The results of one interval: one transaction of the store.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Interval {
    /// Its end.
    pub end_ms: WallMs,
    /// Its length on the monotonic clock.
    pub span_ms: u64,
    /// The requests whose outcome became known in it.
    pub pings: Vec<Ping>,
    /// The counts of queues.
    pub queues: Vec<(QueueName, Counts)>,
    /// Events.
    pub events: Vec<Event>,
}

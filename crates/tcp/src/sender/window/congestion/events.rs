//! The events by which the congestion window grows.

use lastmile_units::{Duration, Instant};

use crate::sender::flight::Outstanding;

/// An acknowledgement of new data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acked {
    pub(crate) now: Instant,
    pub(crate) bytes: u64,
    pub(crate) mss: u32,
    /// The data below were retransmitted after a timeout, where RFC 3465, section 2.3, asks for L = 1.
    pub(crate) after_timeout: bool,
    /// The shortest round trip of the connection, and the smoothed one.
    pub(crate) least_rtt: Duration,
    pub(crate) srtt: Option<Duration>,
    /// The round trip that this acknowledgement measured.
    pub(crate) rtt: Option<Duration>,
    /// Octets that arrived with CE.
    pub(crate) marked: u64,
}

/// An expiry of the retransmission timer, for the slow start threshold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Expiry {
    /// The threshold is held: the timer has retransmitted the segment before (RFC 5681, section 3.1), or a reduction
    /// has answered this window of data (RFC 3168, section 6.1.2).
    Answered,
    /// The first one for the segment.
    First,
    /// The first one for the segment, during fast recovery.
    InRecovery,
}

/// A round trip measured in slow start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RoundTrip {
    pub(crate) now: Instant,
    /// The round trip of the newest acknowledged octets, in microseconds.
    pub(crate) us: u32,
    pub(crate) outstanding: Outstanding,
    pub(crate) mss: u32,
    pub(crate) srtt: Duration,
    /// The sender paces (Linux: `sk_pacing_status`).
    pub(crate) paced: bool,
}

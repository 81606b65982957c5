//! One TCP packet, as the analysis understands it: the row of a table of all segments, and a mark in a
//! picture.

use lastmile_packet::TcpFlags;
use lastmile_units::{Duration, Instant};

use crate::cause::Cause;
use crate::congestion::Phase;

/// The data of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Kind {
    /// New data, or SYN or FIN.
    #[default]
    New,
    /// Data sent before, or lost before the capture.
    Retransmission(Cause),
    /// A copy that the network made.
    Duplicate,
    /// A packet that the network reordered.
    Reordered,
    /// A window probe or keep-alive.
    Probe,
}

impl Kind {
    /// The name in outputs; `None` for new data.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::New => None,
            Self::Retransmission(cause) => Some(cause.name()),
            Self::Duplicate => Some("duplicated"),
            Self::Reordered => Some("out_of_order"),
            Self::Probe => Some("probe"),
        }
    }
}

/// The data in a packet. Offsets count from the initial sequence number, or from the first captured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Data {
    /// Offset of its first octet.
    pub start: i64,
    /// One past its last octet.
    pub end: i64,
    /// New, or the cause of its retransmission.
    pub kind: Kind,
    /// The sender after it.
    pub sender: Sender,
}

/// The acknowledgement in a packet, of the other direction's data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Acknowledgement {
    /// The cumulative acknowledgement.
    pub offset: i64,
    /// Octets that it acknowledges for the first time.
    pub advance: u64,
    /// The window; `None` if its scale is unknown.
    pub window: Option<u64>,
    /// SACK blocks, the first [`SACK_BLOCKS`], by their offsets; unused ones are empty.
    pub sack: [(i64, i64); SACK_BLOCKS],
    /// The round trip that it measures.
    pub round_trip: Option<Duration>,
    /// Its distance from the preceding ACK, and that of the data that both acknowledge, where both are
    /// comparable.
    pub spacing: Option<(Duration, Duration)>,
    /// True for a duplicate ACK (RFC 5681, section 2).
    pub duplicate: bool,
    /// The sender of the acknowledged data after it, before it reacts.
    pub sender: Sender,
}

/// The most SACK blocks of a packet that are kept: three fit next to timestamps.
pub const SACK_BLOCKS: usize = 3;

/// The state of the sender of a direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sender {
    /// Octets sent and not acknowledged.
    pub outstanding: u64,
    /// Octets in the network: outstanding, without those SACKed, or lost and not retransmitted.
    pub in_network: u64,
    /// The estimated congestion window; meaningful next to the sender.
    pub congestion_window: Option<u64>,
    /// The phase of that window.
    pub phase: Phase,
}

/// A TCP packet of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Traced {
    /// The time of capture, not before the preceding packet's.
    pub at: Instant,
    /// Index of the connection, in the order of [`crate::Analysis::finish`].
    pub connection: usize,
    /// True for a packet from the side that opened the connection, as far as known at this packet.
    pub from_opener: bool,
    /// The flags.
    pub flags: TcpFlags,
    /// The ECN field: 0 Not-ECT, 1 ECT(1), 2 ECT(0), 3 CE (RFC 3168, section 5).
    pub ecn: u8,
    /// Payload octets.
    pub payload: u16,
    /// Data, SYN or FIN.
    pub data: Option<Data>,
    /// The acknowledgement.
    pub ack: Option<Acknowledgement>,
}

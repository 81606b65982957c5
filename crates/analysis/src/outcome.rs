//! The numbers that come out, connection by connection.

use lastmile_packet::{FlowAddresses, SynOptions};
use lastmile_units::{Duration, Instant};

use crate::limit::Shares;
use crate::roundtrip::RoundTrip;
use crate::sender::Basis;
use crate::vantage::Vantage;

/// Most pauses of a direction that are listed; all are counted.
pub const MOST_PAUSES: usize = 1_000;

/// Who opened a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Opener {
    /// Its SYN, or the answer to it, was seen.
    Seen,
    /// No SYN was seen: taken to be the side with the larger port.
    Guessed,
}

/// A connection.
#[derive(Clone, Debug)]
pub struct Connection {
    /// From the side that opened it.
    pub addresses: FlowAddresses,
    /// How that is known.
    pub opener: Opener,
    /// When its first packet was seen.
    pub from: Instant,
    /// When its last packet was seen.
    pub to: Instant,
    /// A RST was seen.
    pub reset: bool,
    /// Both FINs were seen.
    pub closed: bool,
    /// What was agreed on when it was opened.
    pub handshake: Handshake,
    /// What was sent by the side that opened it.
    pub up: Direction,
    /// What was sent to it.
    pub down: Direction,
}

/// What the SYN and its answer offered; `None` for one that was not seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Handshake {
    /// Options of the SYN, and whether it had timestamps.
    pub syn: Option<(SynOptions, bool)>,
    /// Options of the answer, and whether it had timestamps.
    pub syn_ack: Option<(SynOptions, bool)>,
    /// From the first SYN to the first ACK of the side that sent it.
    pub took: Option<Duration>,
}

/// One direction of a connection: its data, and what the other side said of them.
#[derive(Clone, Debug, Default)]
pub struct Direction {
    /// Packets of any kind.
    pub packets: u64,
    /// Packets with payload.
    pub data_packets: u64,
    /// IP bytes of all packets.
    pub ip_bytes: u64,
    /// Payload bytes that were seen for the first time.
    pub bytes_new: u64,
    /// Payload bytes that were seen before: sent again, or duplicated by the network.
    pub bytes_repeated: u64,
    /// Payload bytes of window probes and keep-alives.
    pub bytes_probed: u64,
    /// Payload bytes that the other side acknowledged.
    pub bytes_acknowledged: u64,
    /// Of these, bytes that the capture never saw.
    pub bytes_unseen: u64,
    /// From the connection's first packet to the last news of this direction's data.
    pub active: Duration,
    /// Acknowledged payload over that time.
    pub goodput_bps: f64,
    /// Payload of the largest segment.
    pub largest_segment: u64,
    /// Bytes sent before the first acknowledgement of data; `None` if no SYN was seen.
    pub initial_window: Option<u64>,
    /// Most bytes between the highest sent and the highest acknowledged, as the capture sees it.
    pub max_in_flight: u64,
    /// Code point of the first packet with payload.
    pub dscp: Option<u8>,
    /// What was sent again, and why.
    pub repeats: Repeats,
    /// From the capture to the receiver and back.
    pub round_trips: RoundTrips,
    /// From the capture to the sender and back, while data were in flight: from an ACK to the first packet that echoes its timestamp.
    pub answers: RoundTrips,
    /// The same at the fastest, of the last few and with the times in which the sender had nothing to send.
    pub turnaround: Option<Duration>,
    /// Pure ACKs that came back for this direction.
    pub acks: u64,
    /// Duplicate ACKs among them (RFC 5681, section 2).
    pub duplicate_acks: u64,
    /// ACKs whose distance from the ACK before could be compared with the distance of the data.
    pub spaced_acks: u64,
    /// Of these, ACKs that came at less than half the distance of the data that they acknowledge (ACK compression: Zhang, Shenker and Clark
    /// 1991; Mogul 1992).
    pub compressed_acks: u64,
    /// Largest window that the receiver offered; `None` where its scale is not known.
    pub max_window: Option<u64>,
    /// How often the window closed.
    pub zero_windows: u64,
    /// For how long it was closed.
    pub zero_window: Duration,
    /// What the sender waited for; nothing where that cannot be told from where the capture stands.
    pub limits: Shares,
    /// Where that comes from.
    pub limits_from: Option<Basis>,
    /// Where the capture stands.
    pub vantage: Vantage,
    /// The fastest round trip from the capture to the sender.
    pub to_sender: Option<Duration>,
    /// The fastest round trip from the capture to the receiver.
    pub to_receiver: Option<Duration>,
    /// Pauses of more than a second between packets with payload, the first [`MOST_PAUSES`].
    pub pauses: Vec<Pause>,
    /// How many there were.
    pub pauses_count: u64,
    /// The longest time without a new acknowledgement while data were out.
    pub longest_stall: Duration,
    /// When retransmission timers expired, the first [`MOST_PAUSES`].
    pub timeouts_at: Vec<Instant>,
    /// When fast retransmits began, the first [`MOST_PAUSES`].
    pub fast_retransmits_at: Vec<Instant>,
    /// Segments that were forgotten unacknowledged, since there were too many.
    pub forgotten: u64,
}

/// Packets that were sent again. The first six are causes: each packet has one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Repeats {
    /// First packets after a retransmission timer expired, of SYNs and FINs too (RFC 6298).
    pub timeouts: u64,
    /// First packets after three duplicate ACKs or as much by SACK (RFC 5681, section 3.2; RFC 6675, section 5).
    pub fast: u64,
    /// Further packets of a fast recovery.
    pub in_recovery: u64,
    /// Further packets after a timeout.
    pub after_timeout: u64,
    /// Tail loss probes that repeat a segment (RFC 8985, section 7).
    pub tail_probes: u64,
    /// No ACK was captured: nobody can say why.
    pub unknown: u64,

    /// Repeats that were not needed, as DSACK (RFC 2883), timestamps (RFC 3522) or an ACK sooner than a round trip say.
    pub spurious: u64,
    /// Timeouts that were not needed, by timestamps or an ACK sooner than a round trip.
    pub spurious_timeouts: u64,
    /// Repeats of what the capture had not seen: it was lost on the way to the capture.
    pub lost_before_capture: u64,
    /// Timeouts after one another without an acknowledgement between, at most: the timer was backed off.
    pub most_in_a_row: u64,
    /// No repeats: packets that the network put out of order.
    pub out_of_order: u64,
    /// No repeats: packets that the network duplicated.
    pub duplicated: u64,
    /// No repeats: probes of a closed window, and keep-alives.
    pub probes: u64,
}

impl Repeats {
    /// All packets that were sent again.
    #[must_use]
    pub const fn packets(&self) -> u64 {
        self.timeouts + self.fast + self.in_recovery + self.after_timeout + self.tail_probes + self.unknown
    }

    /// Of timeouts and fast retransmits the share of timeouts; `None` where there were neither.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "statistics")]
    pub fn timeout_share(&self) -> Option<f64> {
        let all = self.timeouts + self.fast;
        (all > 0).then(|| self.timeouts as f64 / all as f64)
    }
}

/// Distribution of round trips; percentiles within 1 %.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RoundTrips {
    /// How many were measured.
    pub count: u64,
    /// The smallest, exact.
    pub least: Option<Duration>,
    /// Half of all are at or below it.
    pub median: Option<Duration>,
    /// 95 of 100 are at or below it.
    pub p95: Option<Duration>,
}

impl RoundTrips {
    pub(crate) fn of(trips: &RoundTrip) -> Self {
        Self { count: trips.count(), least: trips.least(), median: trips.quantile(0.5), p95: trips.quantile(0.95) }
    }
}

/// A time in which no data were sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pause {
    /// The last packet before it.
    pub from: Instant,
    /// How long it was.
    pub span: Duration,
    /// What the sender waited for at its end.
    pub limit: crate::Limit,
}

//! The results of an analysis, per connection.

use lastmile_packet::{FlowAddresses, SynOptions};
use lastmile_units::{Duration, Instant};

use crate::ecn::{Codepoints, EcnFeedback};
use crate::limit::Shares;
use crate::roundtrip::RoundTrip;
use crate::sender::Basis;
use crate::vantage::{FEW, Vantage, is_distant};

/// The fewest answers of a sender that measure the round trip away from it.
pub const LEAST_ANSWERS: u64 = FEW;

/// The most pauses of a direction that are listed. The counters include all.
pub const MOST_PAUSES: usize = 1_000;

/// How the opener of a connection was determined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Opener {
    /// By a captured SYN or SYN-ACK.
    Seen,
    /// By the larger port, without a captured SYN.
    Guessed,
}

/// A connection.
#[derive(Clone, Debug)]
pub struct Connection {
    /// Addresses, with the opener as the source.
    pub addresses: FlowAddresses,
    /// How the opener was determined.
    pub opener: Opener,
    /// Time of the first packet.
    pub from: Instant,
    /// Time of the last packet.
    pub to: Instant,
    /// True if a RST was captured.
    pub reset: bool,
    /// True if both FINs were captured.
    pub closed: bool,
    /// The options of the handshake.
    pub handshake: Handshake,
    /// Data from the opener.
    pub up: Direction,
    /// Data to the opener.
    pub down: Direction,
}

/// The options in SYN and SYN-ACK; `None` for one that was not captured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Handshake {
    /// Options of the SYN, and whether it had timestamps.
    pub syn: Option<(SynOptions, bool)>,
    /// Options of the SYN-ACK, and whether it had timestamps.
    pub syn_ack: Option<(SynOptions, bool)>,
    /// Whether the capture cut the options of the SYN and of the SYN-ACK: those not seen are unknown.
    pub cut: [bool; 2],
    /// The feedback of ECN; `None` without SYN and SYN-ACK.
    pub ecn: Option<EcnFeedback>,
    /// Time from the first SYN to the first ACK of its sender.
    pub took: Option<Duration>,
}

/// One direction of a connection: its data, and the ACKs of the other side.
#[derive(Clone, Debug, Default)]
pub struct Direction {
    /// Packets and bytes.
    pub volume: Volume,
    /// Time from the connection's first packet to the last acknowledgement of payload of this direction, or without
    /// one to its last new acknowledgement or packet.
    pub active: Duration,
    /// [`Volume::bytes_of_goodput`] over that time.
    pub goodput_bps: f64,
    /// Payload of the largest segment.
    pub largest_segment: u64,
    /// Bytes sent before the first acknowledgement of data arrived; `None` if no SYN was seen, and away from a sender
    /// without timestamps.
    pub initial_window: Option<u64>,
    /// The largest distance from the highest offset acknowledged to the highest sent, at the
    /// capture.
    pub max_in_flight: u64,
    /// DSCP and ECN.
    pub codepoints: Codepoints,
    /// Retransmissions and their causes.
    pub repeats: Repeats,
    /// Round trips on both sides of the capture.
    pub delays: Delays,
    /// ACKs of the other side.
    pub acks: Acks,
    /// The receiver's window.
    pub window: Window,
    /// The sender's limits.
    pub limits: Limits,
    /// The position of the capture.
    pub position: Position,
    /// Events and their times.
    pub events: Events,
    /// Unacknowledged segments whose records were removed at [`crate::MOST_OUTSTANDING`].
    pub forgotten: u64,
}

impl Direction {
    /// True if packets of this direction were captured. A capture of one direction may have the ACKs for it alone.
    #[must_use]
    pub const fn has_packets(&self) -> bool {
        self.volume.packets > 0
    }

    /// True if packets that acknowledge this direction were captured. Results that need them are zero without.
    #[must_use]
    pub const fn has_acks(&self) -> bool {
        self.acks.captured > 0
    }

    /// True if both were captured.
    #[must_use]
    pub const fn has_both(&self) -> bool {
        self.has_packets() && self.has_acks()
    }

    /// True if the round trip of the whole path is a sum of its parts, on both sides of the capture.
    #[must_use]
    pub const fn is_sum(&self) -> bool {
        matches!(self.position.vantage, Vantage::Between | Vantage::Receiver)
    }

    /// The round trip of the whole path, median and 95th percentile. Away from the sender it has two
    /// parts, whose medians are added. The 95th percentile is the larger of two sums: that of one part
    /// and the median of the other. `None` for fewer than [`LEAST_ANSWERS`] of its sender there, and at an unknown
    /// position whose answers from the sender usually take longer than the rest: these are of a queue between them,
    /// or of a sender that waits.
    #[must_use]
    pub fn whole_round_trip(&self) -> (Option<Duration>, Option<Duration>) {
        let (own, other) = (self.delays.round_trips, self.delays.answers);
        match self.position.vantage {
            Vantage::Sender => return (own.median, own.p95),
            Vantage::Unknown if is_distant(self.delays.usual()) => return (None, None),
            Vantage::Unknown => return (own.median, own.p95),
            Vantage::Between | Vantage::Receiver => {}
        }
        if other.count < LEAST_ANSWERS {
            return (None, None);
        }
        let medians = own.median.zip(other.median);
        let varied = |varies: RoundTrips, stays: RoundTrips| Some(varies.p95? + stays.median?);
        (medians.map(|(own, other)| own + other), varied(own, other).max(varied(other, own)))
    }
}

/// Packets and bytes of a direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Volume {
    /// Packets of any kind.
    pub packets: u64,
    /// Packets with payload.
    pub data_packets: u64,
    /// Segments in them: segmentation offload and receive offload show several in one packet.
    pub segments: u64,
    /// Packets of several segments.
    pub packets_of_several: u64,
    /// IP bytes of all packets.
    pub ip_bytes: u64,
    /// Payload bytes captured for the first time.
    pub bytes_new: u64,
    /// Payload bytes captured before: retransmitted, or duplicated by the network.
    pub bytes_repeated: u64,
    /// Payload bytes of window probes and keep-alives.
    pub bytes_probed: u64,
    /// Payload bytes acknowledged by the other side.
    pub bytes_acknowledged: u64,
    /// Acknowledged bytes that the capture missed.
    pub bytes_unseen: u64,
    /// Payload bytes of the goodput: `bytes_acknowledged`, or `bytes_new` if no ACK was captured.
    pub bytes_of_goodput: u64,
}

/// Round trips on both sides of the capture.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Delays {
    /// Round trips from the capture to the receiver and back.
    pub round_trips: RoundTrips,
    /// Round trips from the capture to the sender and back with data in flight: from an ACK to the
    /// first packet that echoes its timestamp.
    pub answers: RoundTrips,
    /// The fastest of the last few round trips to the sender, including times when it had no data
    /// to send.
    pub turnaround: Option<Duration>,
}

impl Delays {
    /// The medians of the answers and of the round trips to the receiver, where the answers are enough to be
    /// usual ones.
    pub(crate) fn usual(&self) -> Option<(Duration, Duration)> {
        self.answers.median.zip(self.round_trips.median).filter(|_| self.answers.count >= FEW)
    }
}

/// ACKs for a direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Acks {
    /// Packets of the other side with an acknowledgement, except resets.
    pub captured: u64,
    /// Pure ACKs.
    pub pure: u64,
    /// Duplicate ACKs among them (RFC 5681, section 2).
    pub duplicate: u64,
    /// ACKs whose distance from the preceding ACK can be compared with the distance of the data.
    pub spaced: u64,
    /// ACKs at less than half the distance of the data that they acknowledge (ACK compression:
    /// Zhang, Shenker and Clark 1991; Mogul 1992), among `spaced`.
    pub compressed: u64,
}

/// The receiver's window over time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Window {
    /// Largest window that the receiver offered; `None` for an unknown scale.
    pub max: Option<u64>,
    /// Its mean over the time for which it limited the sender; `None` where it did not, or where the sender's limits
    /// are known by round trips alone.
    pub limiting: Option<u64>,
    /// Number of times the window closed.
    pub closings: u64,
    /// Time with a closed window.
    pub closed: Duration,
}

/// The sender's limits.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// Time by limit; empty if the capture's position does not allow a verdict.
    pub shares: Shares,
    /// The basis of that verdict.
    pub basis: Option<Basis>,
}

/// The position of the capture.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Position {
    /// The end that is next to the capture.
    pub vantage: Vantage,
    /// The fastest round trip from the capture to the sender.
    pub to_sender: Option<Duration>,
    /// The fastest round trip from the capture to the receiver.
    pub to_receiver: Option<Duration>,
}

/// Events of a direction and their times.
#[derive(Clone, Debug, Default)]
pub struct Events {
    /// Pauses above a second between packets with payload or before a FIN, the first [`MOST_PAUSES`].
    pub pauses: Vec<Pause>,
    /// Number of all such pauses.
    pub pauses_count: u64,
    /// The longest time without a new acknowledgement while data were outstanding.
    pub longest_stall: Duration,
    /// Times of expired retransmission timers, the first [`MOST_PAUSES`].
    pub timeouts_at: Vec<Instant>,
    /// Start times of fast retransmits, the first [`MOST_PAUSES`].
    pub fast_retransmits_at: Vec<Instant>,
}

/// Retransmitted packets. The first six fields are causes: each packet has one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Repeats {
    /// First packets after a retransmission timer expired, of SYNs and FINs too (RFC 6298).
    pub timeouts: u64,
    /// First packets after three duplicate ACKs or equivalent SACK information (RFC 5681,
    /// section 3.2; RFC 6675, section 5).
    pub fast: u64,
    /// Further packets of a fast recovery.
    pub in_recovery: u64,
    /// Further packets after a timeout.
    pub after_timeout: u64,
    /// Tail loss probes that retransmit a segment (RFC 8985, section 7).
    pub tail_probes: u64,
    /// Retransmissions of unknown cause, because no ACK was captured.
    pub unknown: u64,

    /// Unneeded retransmissions, by DSACK (RFC 2883), timestamps (RFC 3522) or an ACK sooner than a
    /// round trip.
    pub spurious: u64,
    /// Unneeded timeouts, by the same.
    pub spurious_timeouts: u64,
    /// Retransmissions of data that were lost before the capture.
    pub lost_before_capture: u64,
    /// The most consecutive timeouts without an acknowledgement between them: the timer backed off.
    pub most_in_a_row: u64,
    /// Packets that the network reordered; not retransmissions.
    pub out_of_order: u64,
    /// Packets that the network duplicated; not retransmissions.
    pub duplicated: u64,
    /// Probes of a closed window, and keep-alives; not retransmissions.
    pub probes: u64,
}

impl Repeats {
    /// All retransmitted packets.
    #[must_use]
    pub const fn packets(&self) -> u64 {
        self.timeouts + self.fast + self.in_recovery + self.after_timeout + self.tail_probes + self.unknown
    }

    /// The share of timeouts among timeouts and fast retransmits; `None` without either.
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
    /// Number of measurements.
    pub count: u64,
    /// The minimum, exact.
    pub least: Option<Duration>,
    /// The median.
    pub median: Option<Duration>,
    /// The 95th percentile.
    pub p95: Option<Duration>,
}

impl RoundTrips {
    pub(crate) fn of(trips: &RoundTrip) -> Self {
        Self { count: trips.count(), least: trips.least(), median: trips.quantile(0.5), p95: trips.quantile(0.95) }
    }
}

/// A time without data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pause {
    /// Time of the packet before the pause.
    pub from: Instant,
    /// Length of the pause.
    pub span: Duration,
    /// The sender's limit for the longest part of the pause.
    pub limit: crate::Limit,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The longer part by its median varies little, and the other much: 100 + 300 ms are more than 110 + 90 ms.
    #[test]
    fn the_whole_p95_is_that_of_the_part_with_the_larger_sum() {
        let part = |median, p95| RoundTrips {
            count: LEAST_ANSWERS,
            median: Some(Duration::from_ms(median)),
            p95: Some(Duration::from_ms(p95)),
            ..RoundTrips::default()
        };
        let (long, varied) = (part(100, 110), part(90, 300));
        for (round_trips, answers) in [(long, varied), (varied, long)] {
            let delays = Delays { round_trips, answers, ..Delays::default() };
            let position = Position { vantage: Vantage::Between, ..Position::default() };
            let direction = Direction { delays, position, ..Direction::default() };
            let whole = (Some(Duration::from_ms(190)), Some(Duration::from_ms(400)));
            assert_eq!((direction.is_sum(), direction.whole_round_trip()), (true, whole));
            let few = RoundTrips { count: LEAST_ANSWERS - 1, ..answers };
            let direction = Direction { delays: Delays { answers: few, ..delays }, ..direction };
            assert_eq!(direction.whole_round_trip(), (None, None));
        }
    }

    /// Within hosts the fastest answers give no position. Usual ones of 58 ms are not those of the sender itself.
    #[test]
    fn the_whole_is_unknown_where_the_sender_may_be_behind_a_queue() {
        let part = |us, count| RoundTrips {
            count,
            median: Some(Duration::from_us(us)),
            p95: Some(Duration::from_us(us)),
            ..RoundTrips::default()
        };
        let whole = |round_trips, answers| {
            let delays = Delays { round_trips, answers, ..Delays::default() };
            Direction { delays, ..Direction::default() }.whole_round_trip().0
        };
        assert_eq!(whole(part(12, 900), part(58_000, 900)), None, "at the receiver");
        assert_eq!(whole(part(12, 900), part(58_000, 7)), Some(Duration::from_us(12)), "too few answers");
        assert_eq!(whole(part(58_000, 900), part(12, 900)), Some(Duration::from_us(58_000)), "at the sender");
        assert_eq!(whole(part(12, 900), part(900, 900)), Some(Duration::from_us(12)), "a busy host");
    }
}

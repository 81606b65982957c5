//! The parts of a direction's state.

use std::collections::VecDeque;
use std::num::{NonZeroU16, NonZeroU32};

use lastmile_packet::SeqNumber;
use lastmile_units::{Duration, Instant};

use super::numbers::Numbers;
use super::reports::Reports;
use super::undo::Undo;
use crate::cause::Cause;
use crate::limit::{Limit, Shares};
use crate::ranges::Ranges;
use crate::response_time::Turnaround;
use crate::sender::AtSender;
use crate::timestamps;
use crate::trace::Data;

/// Duplicate ACKs that indicate a loss (RFC 5681, section 3.2).
pub(super) const DUP_THRESH: u32 = 3;

/// The most retransmissions whose first transmission may be late.
const MOST_FILLED: usize = 1_024;

/// The state of loss recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Phase {
    #[default]
    Open,
    Fast,
    Loss,
}

/// The first packet of a repair, of which it is open whether it was needed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Doubt {
    pub(super) start: i64,
    pub(super) at: Instant,
    pub(super) timestamp: Option<u32>,
}

/// The part of a packet below the highest offset.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Old {
    /// Bytes that fill a hole.
    pub(super) filled: i64,
    /// True if any byte was captured before.
    pub(super) seen: bool,
    /// The time of the last transmission of the first segment that was captured before.
    pub(super) last: Instant,
    /// The recovery episode of that transmission.
    pub(super) episode: Option<NonZeroU32>,
    /// The IP identification of that transmission.
    pub(super) ip_id: Option<NonZeroU16>,
    /// The TCP timestamp of that transmission.
    pub(super) timestamp: Option<u32>,
    /// What showed a hole that it fills.
    pub(super) above: Option<Above>,
}

/// The time of the segment above a hole, and timestamp and IP identification of the packet that showed the hole.
#[derive(Clone, Copy, Debug)]
pub(super) struct Above {
    pub(super) seen: Instant,
    pub(super) timestamp: Option<u32>,
    pub(super) ip_id: Option<NonZeroU16>,
}

/// The sequence space of a direction, in offsets.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stream {
    /// The sequence number at offset 0.
    pub(super) base: Option<SeqNumber>,
    /// Offset of the first byte of data: 1 after a SYN.
    pub(super) origin: i64,
    /// One past the highest offset sent.
    pub(super) next: i64,
    /// The highest offset acknowledged.
    pub(super) una: i64,
    /// Offset of the FIN.
    pub(super) fin: Option<i64>,
    /// Offset of the octet of the last probe of a closed window.
    pub(super) probed: Option<i64>,
    /// After an acknowledgement of octets above all that were captured: the last acknowledgement of payload, if the
    /// last of these is the FIN.
    pub(super) missed_end: Option<Option<Instant>>,
    /// The handshake of the side that opens the connection.
    pub(super) opening: Opening,
}

/// The handshake of a direction, as far as its sender opens the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Opening {
    /// The other side opens the connection, or no SYN was captured.
    #[default]
    Other,
    /// The sender has not acknowledged the SYN of the other side: it may not have it yet.
    Unanswered,
    /// The packet with that acknowledgement was captured at this time.
    Answered(Instant),
}

impl Stream {
    /// True during the handshake: while the captured SYN is not acknowledged, or its sender does not know that it is.
    /// Without one, offsets below zero were sent before the capture.
    pub(super) fn is_opening(&self) -> bool {
        self.origin == 1 && (self.una < 1 || self.opening == Opening::Unanswered)
    }

    /// True for the offset of the captured SYN.
    pub(super) fn is_syn(&self, offset: i64) -> bool {
        self.origin == 1 && offset < 1
    }
}

/// The sender's response times, and its account of time by limit.
#[derive(Clone, Debug, Default)]
pub(crate) struct SenderSide {
    pub(crate) turnaround: Turnaround,
    pub(super) account: AtSender,
    /// True for a sender far from the capture, as it saw the direction.
    pub(crate) is_far: bool,
    /// The fastest answer of the sender that needs no timestamps, from the handshake on: data after its completion, or
    /// an acknowledgement of data of the other side.
    pub(crate) plain_answer: Option<Duration>,
    /// The sender's response time for the current packet, if it is the first echo of a timestamp.
    pub(crate) answer: Option<Duration>,
}

/// A retransmission of the last data under way, by a timer: a tail loss probe, or after a timeout.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expiry {
    pub(super) start: i64,
    pub(super) end: i64,
    pub(super) at: Instant,
    /// The time for which the timer ran.
    pub(super) wait: Duration,
    /// True if nothing else was under way.
    pub(super) is_only: bool,
    pub(super) cause: Cause,
}

/// The last repair, as far as it matters after its end.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Past {
    pub(super) phase: Phase,
    /// The offset of its first packet.
    pub(super) first: i64,
    pub(super) begun: Option<Instant>,
    pub(super) ended: Option<Instant>,
    /// The time of the last new acknowledgement after sufficient evidence of a loss.
    pub(super) evident: Option<Instant>,
    /// True for a timeout of data that were lost before the capture, of which the extent does not show.
    pub(super) is_hidden: bool,
}

/// A segment that was acknowledged: when it was sent, and when that was known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delivered {
    pub(super) sent: Instant,
    pub(super) at: Instant,
}

/// What the sender's repairs show of it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Habits {
    pub(super) lost_repairs: LostRepairs,
    pub(super) as_reno: AsReno,
    /// True if its fast recovery goes on after the first new ACK: it repaired a hole above the first, which requires
    /// SACK, or the first at a partial ACK (RFC 6582).
    pub(super) goes_on: bool,
}

/// The first fast retransmits of a sender within its recoveries, which only one without SACK begins there.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AsReno([Option<Instant>; 4]);

impl AsReno {
    pub(super) fn note(&mut self, at: Instant) {
        if let Some(free) = self.0.iter_mut().find(|place| place.is_none()) {
            *free = Some(at);
        }
    }

    pub(super) fn take(&mut self) -> impl Iterator<Item = Instant> {
        std::mem::take(&mut self.0).into_iter().flatten()
    }
}

/// How the sender learned of lost retransmissions: by later deliveries (RFC 8985), or not before its timer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LostRepairs {
    pub(super) found: u64,
    pub(super) left: u64,
}

/// The repair of losses.
#[derive(Clone, Debug, Default)]
pub(super) struct Recovery {
    pub(super) phase: Phase,
    pub(super) past: Past,
    /// The last retransmission by a timer, until it is acknowledged.
    pub(super) expiry: Option<Expiry>,
    /// The offset whose acknowledgement ends the repair.
    pub(super) until: i64,
    /// Number of the last repair.
    pub(super) episode: Option<NonZeroU32>,
    pub(super) doubt: Option<Doubt>,
    pub(super) reports: Reports,
    pub(super) undo: Undo,
    /// Of the acknowledged segments the one that was sent last.
    pub(super) delivered: Option<Delivered>,
    pub(super) habits: Habits,
    pub(super) dup_acks: u32,
    /// Consecutive timeouts without an acknowledgement between them.
    pub(super) in_a_row: u64,
    /// Time of the first sufficient evidence of a loss.
    pub(super) evidence: Option<Instant>,
    /// The offset below which the holes of this repair are known.
    pub(super) lost_to: i64,
    /// Segments that duplicate ACKs without SACK show to have left the network, by the reckoning of Linux
    /// (`tcp_add_reno_sack`, `tcp_remove_reno_sacks`).
    pub(super) departed: i64,
}

/// The sender's queue of unsent data after its last packet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Queue {
    /// The packet consists of full segments: the application may have had more.
    pub(super) is_full: bool,
    /// The last new data lack PSH, which the last of a queue carry (RFC 9293, section 3.9.1.2).
    is_amid: bool,
    /// The last new packet is the end of a write: a single segment with PSH. Linux also marks the last segment of a
    /// packet of several, which follows others without.
    pub(super) is_end: bool,
    /// The limits since the last data.
    pub(super) since: Shares,
}

impl Queue {
    /// Records a packet of new data.
    pub(super) fn sent(&mut self, is_single: bool, is_pushed: bool) {
        self.is_end = is_single && is_pushed && !self.is_amid;
        self.is_amid = !is_pushed;
    }

    /// No ACK releases what follows: the time of the congestion window that was the application's, which had nothing
    /// after the end of a write.
    pub(super) fn was_empty(&mut self) -> Duration {
        let waited = if self.is_end { self.since.of(Limit::CongestionWindow) } else { Duration::ZERO };
        self.since.revise(Limit::CongestionWindow, Limit::Application, waited);
        waited
    }
}

/// The results of the last ACK.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AckFact {
    pub(super) offset: i64,
    pub(super) advance: u64,
    pub(super) round_trip: Option<Duration>,
    pub(super) spacing: Option<(Duration, Duration)>,
    pub(super) duplicate: bool,
}

/// The last packet and the last ACK.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Last {
    /// The data of the packet, without the sender's state.
    pub(super) data: Option<Data>,
    pub(super) numbers: Numbers,
    pub(super) ack: AckFact,
}

/// Times of the last events.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Times {
    /// The first packet of the direction or ACK towards it.
    pub(super) begun: Option<Instant>,
    /// The last new acknowledgement, and the last of payload.
    pub(super) advanced: Option<Instant>,
    pub(super) delivered: Option<Instant>,
    /// The start of the current wait for a new acknowledgement.
    pub(super) waiting: Option<Instant>,
    pub(super) last_ack: Option<Instant>,
    pub(super) last_sent: Option<Instant>,
    /// The last packet in either direction.
    pub(super) last_event: Option<Instant>,
    /// The preceding ACK, and the transmission of the data that it acknowledges.
    pub(super) spaced: Option<(Instant, Instant)>,
    /// The other side's last SYN.
    pub(super) asked: Option<Instant>,
}

/// Selective acknowledgements.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sack {
    /// Offsets reported above the cumulative acknowledgement.
    pub(super) ranges: Ranges,
    /// True if a SACK block was captured.
    pub(super) used: bool,
    /// True if SACK was negotiated, or used.
    pub(crate) allowed: bool,
    /// True if the sender has passed over SACKed octets in a repair.
    pub(super) heeded: bool,
}

/// The receiver's window.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReceiveWindow {
    /// Its scale, from the handshake.
    pub(crate) shift: Option<u8>,
    /// Its value in the last header.
    pub(super) raw: Option<u16>,
    /// Its size, if the scale is known.
    pub(super) bytes: Option<i64>,
    /// The time since which it is closed.
    pub(super) closed_since: Option<Instant>,
    /// For how long it was closed since the last new acknowledgement, until it opened.
    pub(super) was_closed: Duration,
    /// Where it limited the sender.
    pub(super) limiting: LimitingWindow,
    /// The ACKs with the last timestamp, for a distant sender.
    pub(super) unit: Option<Unit>,
}

/// ACKs with the same timestamp. A sender that echoes it has the first of them, and perhaps no other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unit {
    value: u32,
    /// One past the last offset that the sender surely may send: that before these ACKs, and from its next data on that
    /// of the first ACK.
    pub(super) edge: i64,
    first_edge: i64,
    /// The window before these ACKs.
    pub(super) before: i64,
}

impl ReceiveWindow {
    /// Notes an ACK with this timestamp. `before` are the acknowledged offset and the window before it, and `una` is
    /// the offset after it.
    pub(super) fn note(&mut self, value: u32, before: (i64, Option<i64>), una: i64) {
        if let ((una_before, Some(before)), Some(bytes)) = (before, self.bytes)
            && self.unit.is_none_or(|unit| timestamps::is_before(unit.value, value))
        {
            self.unit = Some(Unit { value, edge: una_before + before, first_edge: una + bytes, before });
        }
    }

    /// The sender's next data show that it has the first ACK.
    pub(super) fn answered(&mut self) {
        if let Some(unit) = &mut self.unit {
            unit.edge = unit.first_edge;
        }
    }
}

/// The receiver's window over the time for which it limited the sender.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LimitingWindow {
    byte_ps: u128,
    span_ps: u128,
}

impl LimitingWindow {
    /// A window of `bytes` limited the sender for `span`.
    pub(super) fn add(&mut self, bytes: i64, span: Duration) {
        self.byte_ps += u128::from(bytes.max(0).unsigned_abs()) * u128::from(span.as_ps());
        self.span_ps += u128::from(span.as_ps());
    }

    /// The mean over that time.
    pub(super) fn mean(self) -> Option<u64> {
        u64::try_from(self.byte_ps.checked_div(self.span_ps)?).ok()
    }
}

/// A packet that was acknowledged.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Known {
    pub(super) start: i64,
    pub(super) ip_id: Option<NonZeroU16>,
    pub(super) timestamp: Option<u32>,
}

/// The packets acknowledged last, and retransmissions whose first transmission was not captured.
#[derive(Clone, Debug, Default)]
pub(super) struct Recent {
    packets: [Known; 8],
    /// Number of packets ever stored.
    count: usize,
    /// Range and timestamp of retransmissions of what seems to be lost before the capture, the last [`MOST_FILLED`].
    filled: VecDeque<(i64, i64, u32)>,
}

impl Recent {
    pub(super) fn acknowledged(&mut self, packet: Known) {
        self.packets[self.count % self.packets.len()] = packet;
        self.count += 1;
    }

    /// The packet that begins at `start`.
    pub(super) fn at(&self, start: i64) -> Option<&Known> {
        self.packets.iter().take(self.count).find(|packet| packet.start == start)
    }

    /// Records a retransmission with this timestamp that filled a hole.
    pub(super) fn fill(&mut self, (start, end): (i64, i64), timestamp: u32) {
        if self.filled.len() == MOST_FILLED {
            self.filled.pop_front();
        }
        self.filled.push_back((start, end, timestamp));
    }

    /// The number of these retransmissions that a packet of `start..end` precedes by its timestamp. They are removed.
    pub(super) fn take_overtaken(&mut self, (start, end): (i64, i64), own: u32) -> u64 {
        let before = self.filled.len();
        let is_of = |filled: &(i64, i64, u32)| filled.0 < end && start < filled.1;
        self.filled.retain(|filled| !is_of(filled) || !timestamps::is_before(own, filled.2));
        (before - self.filled.len()) as u64
    }
}

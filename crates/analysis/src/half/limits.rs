//! The sender's limits over time, and the results of a direction.

use lastmile_packet::{Meta, TcpFlags};
use lastmile_units::{Duration, Instant};

use super::Half;
use super::cause::{LEAST, PROMPT};
use super::state::Phase;
use crate::limit::{Limit, Shares};
use crate::outcome::{Delays, Direction, Limits, RoundTrips};
use crate::response_time::faster;
use crate::sender::Basis;
use crate::vantage::{FEW, Vantage, WITHIN_HOSTS};

/// Doublings of a timer beyond which it no longer grows (RFC 6298, section 5.5: 60 s is enough).
const MOST_DOUBLINGS: u16 = 8;
/// The unit of timestamps in current systems.
const TIMESTAMP_UNIT: Duration = Duration::from_ms(1);

impl Half {
    /// Charges the time since the last event.
    pub(super) fn account(&mut self, now: Instant, instead: Option<Limit>) {
        if let (Some(last), Some(limit)) = (self.times.last_event, instead.or(self.limit)) {
            self.out.limits.shares.add(limit, now.since(last));
            if limit == Limit::ReceiveWindow
                && let Some(bytes) = self.window.bytes
            {
                self.window.limiting.add(bytes, now.since(last));
            }
            self.queue.since.add(limit, now.since(last));
        }
        self.times.begun.get_or_insert(now);
        self.times.last_event = Some(now);
    }

    /// Data were lost on the way to the capture: they were in flight while nothing seemed to be. They show by the hole
    /// below `start` or, of the last data, by identifications that are missing. After these a timer ran, and once more,
    /// for twice the time, for each packet that is missing. True if it expired at a distant sender, so that these are
    /// the data again.
    pub(super) fn recall(&mut self, now: Instant, start: i64) -> bool {
        let Some(since) = self.times.last_event.filter(|_| self.limit == Some(Limit::Application)) else {
            return false;
        };
        let missing = self.last.numbers.missing();
        if start > self.stream.next {
            self.limit = Some(Limit::CongestionWindow);
            return false;
        }
        let Some(timer) = self.whole_smoothed().map(|smoothed| smoothed + LEAST) else { return false };
        if start < self.stream.next || missing == 0 {
            return false;
        }
        let waited = now.since(since);
        let longest = timer * ((1 << missing.min(MOST_DOUBLINGS)) - 1);
        let from = since + waited.saturating_sub(longest);
        self.account(from, None);
        let has_expired = waited >= timer;
        self.limit = Some(if has_expired { Limit::Timer } else { Limit::CongestionWindow });
        let is_again = has_expired && self.sender.is_far;
        if is_again {
            self.times.waiting.get_or_insert(from);
        }
        is_again
    }

    /// New data end the wait since the last. Without an ACK that released them they come from the application, which
    /// had nothing to send since then.
    pub(super) fn end_wait(&mut self, now: Instant, packet: &Meta, opened: Option<Duration>) {
        let prompt = PROMPT + opened.unwrap_or_default();
        if self.times.last_ack.is_some_and(|at| now.since(at) > prompt) {
            let own = self.queue.was_empty();
            self.out.limits.shares.revise(Limit::CongestionWindow, Limit::Application, own);
        }
        let is_single = self.size.segments(packet.payload_len().into()) == 1;
        // Nothing follows a SYN before its answer.
        self.queue.sent(is_single, packet.flags.intersects(TcpFlags::PSH.with(TcpFlags::SYN)));
    }

    /// True for a write of which at most a segment is in flight: outside of repairs a window has two, after the first
    /// ACK of data (RFC 5681, section 3.1).
    fn is_alone(&self, flight: i64) -> bool {
        self.queue.is_end && flight <= self.size.mss().cast_signed() && self.stream.una > self.stream.origin
    }

    /// The limit of a sender whose data in flight fill the receiver's window. A distant one has an unknown number of
    /// the ACKs with the last timestamp: if there is no room without these, the window is full, unless they offer a
    /// larger one.
    fn full_window(&self, flight: i64) -> Option<Limit> {
        let (window, mss) = (self.window.bytes?, self.size.mss().cast_signed());
        if flight + mss > window {
            return Some(Limit::ReceiveWindow);
        }
        let unit = self.window.unit.filter(|unit| self.stream.next + mss > unit.edge)?;
        Some(if window > unit.before { Limit::Window } else { Limit::ReceiveWindow })
    }

    pub(super) fn limit_now(&self) -> Limit {
        let flight = self.stream.next - self.stream.una;
        if self.stream.is_opening() {
            Limit::Handshake
        } else if flight == 0 {
            if self.window.closed_since.is_some() { Limit::ReceiveWindow } else { Limit::Application }
        } else if self.recovery.phase != Phase::Open {
            Limit::Recovery
        } else if self.recovery.expiry.is_some() {
            // The answer to a probe.
            Limit::Timer
        } else if let Some(limit) = self.full_window(flight) {
            limit
        } else if !self.queue.is_full || self.is_alone(flight) {
            // A segment below the full size, or less than any window: the application had no more data.
            Limit::Application
        } else {
            Limit::CongestionWindow
        }
    }

    /// The fastest round trip from the capture to this half's receiver, whose own half is `other`.
    pub(crate) fn to_receiver(&self, other: &Self) -> Option<Duration> {
        // A SYN is answered immediately. A small number of segments may all have met a delayed ACK.
        let is_sure = self.initial().is_some() || self.rtt.count() >= FEW;
        let by_data = self.rtt.least();
        // Echoes are too fast by up to the unit of timestamps.
        let by_echo = other.sender.turnaround.least().map(|least| least + TIMESTAMP_UNIT);
        if is_sure { by_data.or(by_echo) } else { faster(by_data, by_echo) }
    }

    /// The fastest response of this half's sender by timestamps and in the handshake, if that is on
    /// another host, and enough was captured to be sure.
    pub(crate) fn to_distant_sender(&self, opened: Option<Duration>) -> Option<Duration> {
        let turnaround = &self.sender.turnaround;
        let is_sure = opened.is_some() || turnaround.prompt.count() >= FEW;
        faster(opened, turnaround.least()).filter(|least| is_sure && *least > WITHIN_HOSTS)
    }

    /// The sender's limits from the capture's vantage point, and their basis. The account at a distant sender has the
    /// handshake in the time between its SYN and its first data.
    fn judge_limits(&mut self, vantage: Vantage, opening: Duration) -> Option<Basis> {
        if !self.out.has_both() {
            return None;
        }
        let turnaround = self.sender.turnaround.least().or(self.sender.plain_answer);
        let there = self.sender.account.finish(self.times.advanced, turnaround);
        self.out.limits.shares.add(Limit::Handshake, opening);
        let (shares, basis) = match (vantage, there) {
            (Vantage::Sender, _) => (self.out.limits.shares, Basis::Packets),
            (_, Some((shares, Basis::Timestamps))) => (shares, Basis::Timestamps),
            (Vantage::Between | Vantage::Receiver, Some(there)) => there,
            (Vantage::Between | Vantage::Receiver, None) => return None,
            // A long path to the receiver, or a short round trip: the capture counts as next to the
            // sender.
            (Vantage::Unknown, _) if self.rtt.least() >= Some(TIMESTAMP_UNIT) || there.is_some() => {
                (self.out.limits.shares, Basis::Packets)
            }
            (Vantage::Unknown, _) => return None,
        };
        self.out.limits.shares = shares;
        Some(basis)
    }

    /// The results of a connection whose first packet was captured at `from`. `ways` are the
    /// fastest round trips to the sender and to the receiver, and `remote` is the direction as its
    /// distant sender saw it.
    ///
    /// The other side `has_closed` if its FIN was captured, and no reset.
    pub(crate) fn finish(
        mut self,
        from: Instant,
        ways: [Option<Duration>; 2],
        remote: Option<Self>,
        has_closed: bool,
    ) -> Direction {
        [self.out.position.to_sender, self.out.position.to_receiver] = ways;
        self.out.delays = Delays {
            round_trips: RoundTrips::of(&self.rtt),
            answers: RoundTrips::of(&self.sender.turnaround.prompt),
            turnaround: self.sender.turnaround.fastest(),
        };
        self.out.position.vantage = Vantage::new(ways[0], ways[1]).behind_a_queue(self.out.delays.usual());
        self.out.window.limiting = self.window.limiting.mean();
        // The SYN of the other side.
        let opening = self.times.begun.filter(|_| self.initial().is_some());
        let opening = opening.map(|begun| begun.since(from)).unwrap_or_default();
        if let Some(remote) = remote.filter(|_| self.out.position.vantage != Vantage::Sender) {
            self.out.repeats = remote.out.repeats;
            self.out.events = remote.out.events;
            self.out.limits = Limits { shares: remote.out.limits.shares, basis: Some(Basis::Timestamps) };
            self.out.limits.shares.add(Limit::Handshake, opening);
            self.out.initial_window = remote.out.initial_window;
            self.out.window.limiting = remote.window.limiting.mean();
        } else {
            // An acknowledgement passes the capture before it reaches the sender.
            if matches!(self.out.position.vantage, Vantage::Between | Vantage::Receiver) {
                self.out.initial_window = None;
            }
            self.out.limits.basis = self.judge_limits(self.out.position.vantage, opening);
            if self.out.limits.basis.is_none() {
                self.out.limits.shares = Shares::default();
            }
        }
        if let Some(since) = self.window.closed_since {
            self.out.window.closed += self.times.last_event.unwrap_or(since).since(since);
        }
        // The last octet that the other side acknowledged before it closed was the FIN, if the capture lacks it.
        if let Some(delivered) = self.stream.missed_end.filter(|_| has_closed && self.stream.fin.is_none())
            && self.stream.next == self.stream.una
        {
            self.stream.fin = Some(self.stream.una - 1);
            self.times.delivered = delivered;
            self.out.volume.bytes_unseen -= 1;
        }
        let acknowledged = self.stream.una.min(self.stream.fin.unwrap_or(i64::MAX)) - self.stream.origin;
        self.out.volume.bytes_acknowledged = acknowledged.max(0).unsigned_abs();
        let end = self.times.delivered.or(self.times.advanced).or(self.times.last_sent).unwrap_or(from);
        self.out.active = end.since(from);
        let volume = &mut self.out.volume;
        volume.bytes_of_goodput =
            if self.times.last_ack.is_some() { volume.bytes_acknowledged } else { volume.bytes_new };
        let seconds = self.out.active.as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "statistics")]
        let bits = self.out.volume.bytes_of_goodput as f64 * 8.0;
        self.out.goodput_bps = if seconds > 0.0 { bits / seconds } else { 0.0 };
        self.out
    }
}

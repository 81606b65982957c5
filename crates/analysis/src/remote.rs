//! A sender far from the capture, with its packets and the ACKs in the order and at the times of its
//! own end.
//!
//! At a distance a capture shows data that left the sender long ago, and ACKs that it has yet to
//! receive. The timestamps of each packet (RFC 7323) name the last ACK that its sender had received,
//! and how long the packet was in queues before the capture. So the analysis of a direction can be
//! made at the sender's end: an ACK counts before the first packet that echoes it or a later one,
//! and a packet at the time of its transmission. Times are those of the capture's clock, earlier by
//! the fastest response for data, so that the whole round trip lies behind the sender.
//!
//! Data that were lost before the capture remain unknown.

use std::collections::VecDeque;

use lastmile_packet::{Meta, TcpFlags};
use lastmile_units::{Duration, Instant};

use crate::half::Half;
use crate::sender_clock::SenderClock;
use crate::timestamps;
use crate::trace::Kind;

/// The most ACKs on their way to the sender that are stored.
const MOST_ACKS: usize = 8_192;
/// The number of responses whose fastest is the delay of ACKs.
const RESPONSES: usize = 8;
/// A timestamp is up to a unit too early, and so is its echo.
const UNITS: Duration = Duration::from_ms(2);

/// The sender of a direction.
#[derive(Clone, Debug)]
pub(crate) struct Remote {
    half: Half,
    clock: SenderClock,
    /// ACKs on their way to the sender, with their timestamps.
    acks: VecDeque<(u32, Instant, Meta)>,
    /// The delays of the latest ACKs that released data, beyond the fastest response.
    responses: VecDeque<Duration>,
    /// The least of them, their median, and the longest.
    least: Duration,
    usual: Duration,
    longest: Duration,
    /// The sender's time.
    now: Instant,
}

impl Remote {
    /// A sender at this distance, whose direction has come so far.
    pub(crate) fn new(half: &Half, distance: Duration) -> Self {
        Self {
            half: half.seen_from_its_sender(distance),
            clock: SenderClock::default(),
            acks: VecDeque::new(),
            responses: VecDeque::new(),
            least: Duration::ZERO,
            usual: Duration::ZERO,
            longest: Duration::ZERO,
            now: Instant::ZERO,
        }
    }

    /// Records a packet towards the sender, captured at `now`.
    pub(crate) fn towards(&mut self, now: Instant, packet: &Meta) {
        let last = self.acks.back().map(|(value, ..)| *value);
        // A packet without timestamps (RST) has the place of the packet before.
        let value = timestamps::of(packet).or(last);
        if self.acks.len() == MOST_ACKS {
            self.arrive(now);
        }
        match value {
            Some(value) => self.acks.push_back((value, now, *packet)),
            None => self.half.on_ack(self.now, packet),
        }
    }

    /// Records a packet of the sender, captured at `now`, whose fastest response is `distance`.
    /// False if its timestamps tell no time.
    pub(crate) fn sent(&mut self, now: Instant, packet: &Meta, distance: Duration) -> bool {
        let mut sent_at = self.now;
        if let Some((value, echo)) = packet.options().timestamps() {
            let Some(queued) = self.clock.queued(now, value) else { return false };
            sent_at = sent_at.max(earlier(now, queued + distance));
            if packet.flags.contains(TcpFlags::ACK) {
                self.release(sent_at, echo, packet);
            }
        }
        self.now = sent_at;
        self.half.on_packet(sent_at, packet, Some(UNITS + self.usual.saturating_sub(self.least)));
        true
    }

    /// The ACKs up to the one with this timestamp have reached the sender by `sent_at`.
    fn release(&mut self, sent_at: Instant, echo: u32, packet: &Meta) {
        let mut answered = None;
        // An ACK that ought to have arrived before the last packet, and that this did not echo, was lost or late: it
        // counts with the next.
        let last_sent = self.now;
        let mut overdue = 0;
        while let Some((value, at, _)) = self.acks.get(overdue)
            && !timestamps::is_before(echo, *value)
        {
            answered = (*value == echo).then_some(*at);
            overdue += 1;
            if at.saturating_add(self.usual) >= last_sent {
                self.arrive_all(overdue, sent_at);
                overdue = 0;
            }
        }
        self.arrive_all(overdue, sent_at);
        // Data that follow an ACK while others are in flight were released by it.
        if let Some(at) = answered
            && self.half.has_others_in_flight(packet)
        {
            self.note_response(sent_at.since(at));
        }
    }

    fn note_response(&mut self, delay: Duration) {
        if self.responses.len() == RESPONSES {
            self.responses.pop_front();
        }
        self.responses.push_back(delay);
        let mut sorted = [Duration::MAX; RESPONSES];
        sorted.iter_mut().zip(&self.responses).for_each(|(place, delay)| *place = *delay);
        sorted.sort_unstable();
        (self.least, self.usual) = (sorted[0], sorted[self.responses.len() / 2]);
        self.longest = sorted[self.responses.len() - 1];
    }

    /// The oldest ACK reaches the sender, at the latest at `latest`.
    fn arrive(&mut self, latest: Instant) {
        self.arrive_all(1, latest);
    }

    /// The `count` oldest ACKs reach the sender when the last of them does, at the latest at `latest`.
    fn arrive_all(&mut self, count: usize, latest: Instant) {
        let Some((_, at, last)) = count.checked_sub(1).and_then(|last| self.acks.get(last)) else { return };
        // Without data in flight the sender waits for its application, if not for this ACK: it may take as long as
        // others did.
        let usual = if self.half.leaves_none_in_flight(last) { self.longest } else { self.usual };
        self.now = at.saturating_add(usual).min(latest).max(self.now);
        for (_, _, packet) in self.acks.drain(..count) {
            self.half.on_ack(self.now, &packet);
        }
    }

    /// The kind of the last packet's data.
    pub(crate) fn kind(&self) -> Option<Kind> {
        self.half.kind()
    }

    /// The direction as its sender saw it.
    pub(crate) fn finish(mut self) -> Half {
        while !self.acks.is_empty() {
            self.arrive(Instant::from_ps(u64::MAX));
        }
        self.half
    }
}

fn earlier(now: Instant, span: Duration) -> Instant {
    Instant::ZERO + now.since(Instant::ZERO).saturating_sub(span)
}

#[cfg(test)]
mod tests;

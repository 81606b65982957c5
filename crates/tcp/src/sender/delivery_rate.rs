//! Samples of the delivery rate: the octets delivered between the transmission of a segment and its acknowledgement,
//! over the time that they took.
//!
//! Published: draft-cheng-iccrg-delivery-rate-estimation-02; the behaviour of Linux's `tcp_rate.c`.
//!
//! Each segment records the connection's count of delivered octets, and when that count and the flight began, at its
//! transmission. An acknowledgement takes the record of the most recently sent segment that it delivers. The time of a
//! sample is the longer of the send phase and the acknowledgement phase, so that a sample exceeds neither rate: neither
//! a burst of transmissions nor a compressed run of acknowledgements looks like a fast path. A sample whose flight had
//! been short of data is marked as limited by the application.
//!
//! Differs: octets count, not segments. A SACK block that covers a part of a segment delivers it whole. The connection
//! counts as limited by the application when the sender finds no data to send, where the kernel looks when the
//! application writes.
//! Cost: a record of 80 bytes for each segment in flight, a push for each segment sent and a pop for each delivered,
//! a binary search for each SACKed part; boxed, and absent from senders that need no samples.

use std::collections::VecDeque;

use lastmile_units::{Duration, Instant};

use super::octet_rate::OctetRate;
use crate::ranges::Range;

/// The state of the connection when a segment was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Record {
    /// One past its last octet.
    end: u64,
    sent: Instant,
    /// Octets delivered and lost before it (P.delivered, P.lost).
    delivered: u64,
    lost: u64,
    /// When `delivered` last changed (P.delivered_time), and when the flight that it belongs to began
    /// (P.first_sent_time).
    delivered_at: Instant,
    first_sent: Instant,
    /// Octets in flight with it.
    in_flight: u64,
    app_limited: bool,
    retransmitted: bool,
    /// A SACK block has delivered it.
    done: bool,
}

/// The totals of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Totals {
    pub(crate) now: Instant,
    /// Octets delivered and lost since the connection began.
    pub(crate) delivered: u64,
    pub(crate) lost: u64,
}

/// The findings of an acknowledgement (the rate sample of the draft, section 3.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RateSample {
    pub(crate) now: Instant,
    /// Octets that it newly delivers, and newly lost ones.
    pub(crate) acked: u64,
    pub(crate) newly_lost: u64,
    /// Octets in flight before it and after it.
    pub(crate) prior_in_flight: u64,
    pub(crate) in_flight: u64,
    /// Octets delivered and lost since the connection began.
    pub(crate) delivered: u64,
    pub(crate) lost: u64,
    /// The segment that it measures.
    pub(crate) segment: Option<Measured>,
}

/// The measurement of the most recently sent segment that an acknowledgement delivers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Measured {
    /// Octets delivered and lost before its transmission.
    pub(crate) prior_delivered: u64,
    pub(crate) prior_lost: u64,
    /// Octets in flight at its transmission, itself included.
    pub(crate) sent_in_flight: u64,
    /// Octets delivered since, and their time. `None`: too short a time to be true.
    pub(crate) delivered: u64,
    pub(crate) interval: Option<Duration>,
    /// The round trip, unless the segment was retransmitted.
    pub(crate) rtt: Option<Duration>,
    pub(crate) app_limited: bool,
    /// The receiver may have delayed the acknowledgement: the segment was alone in flight.
    pub(crate) maybe_delayed: bool,
}

/// A segment that is found to be lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LostSegment {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Octets in flight at its transmission, itself included.
    pub(crate) in_flight: u64,
    /// Octets lost since its transmission, itself included.
    pub(crate) lost_since: u64,
    pub(crate) app_limited: bool,
}

impl RateSample {
    pub(crate) fn totals(&self) -> Totals {
        Totals { now: self.now, delivered: self.delivered, lost: self.lost }
    }
}

impl Measured {
    /// The delivery rate, if the sample has one.
    pub(crate) fn rate(&self) -> Option<OctetRate> {
        self.interval.map(|interval| OctetRate::of(self.delivered, interval))
    }
}

/// The state of an acknowledgement that the sample needs from the sender.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckState {
    pub(crate) now: Instant,
    /// Octets that the receiver is known to hold.
    pub(crate) delivered: u64,
    pub(crate) prior_in_flight: u64,
    pub(crate) in_flight: u64,
    /// The shortest round trip, once there is one.
    pub(crate) least_rtt: Option<Duration>,
    pub(crate) mss: u64,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct DeliveryRate {
    /// In order of the stream.
    records: VecDeque<Record>,
    /// Octets that the receiver was known to hold at the last acknowledgement, and the sum of all increases
    /// (C.delivered).
    held: u64,
    delivered: u64,
    delivered_at: Instant,
    /// Octets found to be lost (C.lost).
    lost: u64,
    lost_before: u64,
    /// C.first_sent_time.
    first_sent: Instant,
    /// Samples of segments sent until this count is delivered are limited by the application (C.app_limited).
    app_limited: Option<u64>,
    /// The newest transmission that the current acknowledgement delivers.
    newest: Option<Record>,
    /// The segments found to be lost since the last sample.
    losses: Vec<LostSegment>,
}

impl DeliveryRate {
    pub(crate) fn new() -> Self {
        Self {
            records: VecDeque::new(),
            held: 1,
            delivered: 0,
            delivered_at: Instant::ZERO,
            lost: 0,
            lost_before: 0,
            first_sent: Instant::ZERO,
            app_limited: None,
            newest: None,
            losses: Vec::new(),
        }
    }

    pub(crate) fn totals(&self, now: Instant) -> Totals {
        Totals { now, delivered: self.delivered, lost: self.lost }
    }

    /// An acknowledgement arrives: losses found by timers before it are not its own.
    pub(crate) fn begin_ack(&mut self) {
        self.lost_before = self.lost;
    }

    pub(crate) fn is_app_limited(&self) -> bool {
        self.app_limited.is_some()
    }

    /// Octets `range` are sent; `in_flight` are in flight without them.
    pub(crate) fn on_sent(&mut self, now: Instant, range: Range, again: bool, in_flight: u64) {
        if self.records.is_empty() {
            (self.first_sent, self.delivered_at) = (now, now);
        }
        let record = Record {
            end: range.end,
            sent: now,
            delivered: self.delivered,
            lost: self.lost,
            delivered_at: self.delivered_at,
            first_sent: self.first_sent,
            in_flight: in_flight + range.len(),
            app_limited: self.app_limited.is_some(),
            retransmitted: again,
            done: false,
        };
        if !again {
            self.records.push_back(record);
            return;
        }
        let mut index = self.find(range.start);
        while let Some(old) = self.records.get_mut(index)
            && old.end <= range.end
        {
            if !old.done {
                *old = Record { end: old.end, ..record };
            }
            index += 1;
        }
    }

    fn find(&self, octet: u64) -> usize {
        self.records.partition_point(|record| record.end <= octet)
    }

    /// A SACK block newly reports `range`.
    pub(crate) fn on_sacked(&mut self, range: Range) {
        let mut index = self.find(range.start);
        let mut from = range.start;
        while from < range.end
            && let Some(record) = self.records.get_mut(index)
        {
            if !record.done {
                record.done = true;
                Self::choose(&mut self.newest, record);
            }
            from = record.end;
            index += 1;
        }
    }

    /// The cumulative acknowledgement moved to `una`.
    pub(crate) fn on_acked(&mut self, una: u64) {
        while let Some(record) = self.records.front()
            && record.end <= una
        {
            if !record.done {
                Self::choose(&mut self.newest, record);
            }
            self.records.pop_front();
        }
    }

    /// Of two deliveries, the more recently sent one is measured (draft, section 3.3; Linux: `tcp_skb_sent_after`).
    fn choose(newest: &mut Option<Record>, record: &Record) {
        let later = |old: &Record| (record.sent, record.end) > (old.sent, old.end);
        if newest.as_ref().is_none_or(later) {
            *newest = Some(*record);
        }
    }

    /// Octets are newly found to be lost.
    pub(crate) fn on_lost(&mut self, range: Range) {
        let (mut index, mut start) = (self.find(range.start), range.start);
        while start < range.end
            && let Some(record) = self.records.get(index)
        {
            let end = record.end.min(range.end);
            self.lost += end - start;
            let lost_since = self.lost - record.lost;
            let Record { in_flight, app_limited, .. } = *record;
            self.losses.push(LostSegment { start, end, in_flight, lost_since, app_limited });
            start = end;
            index += 1;
        }
    }

    /// Octets that are lost and never sent under their offsets again: an advancing acknowledgement delivers none of
    /// them. For transports that give a retransmission new offsets.
    pub(crate) fn abandon(&mut self, range: Range) {
        let mut index = self.find(range.start);
        while let Some(record) = self.records.get_mut(index)
            && record.end <= range.end
        {
            record.done = true;
            index += 1;
        }
    }

    /// The segments found to be lost since the last call.
    pub(crate) fn take_losses(&mut self) -> Vec<LostSegment> {
        core::mem::take(&mut self.losses)
    }

    /// No data wait to be sent while `in_flight` octets are in flight: the network is not the limit.
    pub(crate) fn on_app_limited(&mut self, in_flight: u64) {
        self.app_limited = Some((self.delivered + in_flight).max(1));
    }

    /// All of an acknowledgement is recorded: the draft's GenerateRateSample.
    pub(crate) fn sample(&mut self, state: &AckState) -> RateSample {
        let AckState { now, prior_in_flight, in_flight, least_rtt, mss, .. } = *state;
        let acked = state.delivered.saturating_sub(self.held);
        // A receiver that reneges takes octets back, which count once.
        self.held = self.held.max(state.delivered);
        self.delivered += acked;
        if acked > 0 {
            self.delivered_at = now;
        }
        if self.app_limited.is_some_and(|until| self.delivered > until) {
            self.app_limited = None;
        }
        let newly_lost = self.lost - core::mem::replace(&mut self.lost_before, self.lost);
        let segment = self.newest.take().map(|record| {
            self.first_sent = record.sent;
            // Section 3.3: the longer of the send phase and the acknowledgement phase.
            let interval = record.sent.since(record.first_sent).max(now.since(record.delivered_at));
            // Less than the shortest round trip: the acknowledgement is not of the last transmission.
            let real = least_rtt.is_none_or(|least| interval >= least) && !interval.is_zero();
            Measured {
                prior_delivered: record.delivered,
                prior_lost: record.lost,
                sent_in_flight: record.in_flight,
                delivered: self.delivered - record.delivered,
                interval: real.then_some(interval),
                rtt: (!record.retransmitted).then(|| now.since(record.sent)),
                app_limited: record.app_limited,
                maybe_delayed: acked <= mss && record.in_flight <= mss,
            }
        });
        RateSample {
            now,
            acked,
            newly_lost,
            prior_in_flight,
            in_flight,
            delivered: self.delivered,
            lost: self.lost,
            segment,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(count: u64) -> Instant {
        Instant::ZERO + Duration::from_ms(count)
    }

    fn range(start: u64, end: u64) -> Range {
        Range { start, end }
    }

    fn ack(rate: &mut DeliveryRate, at: u64, una: u64) -> RateSample {
        rate.on_acked(una);
        rate.sample(&AckState {
            now: ms(at),
            delivered: una,
            prior_in_flight: 0,
            in_flight: 0,
            least_rtt: None,
            mss: 1000,
        })
    }

    /// Ten segments at once, acknowledged from 100 ms on, one each 10 ms: the first sample has 1000 octets in 100 ms,
    /// the tenth 10 000 in 190 ms.
    #[test]
    fn the_rate_is_what_was_delivered_since_the_transmission() {
        let mut rate = DeliveryRate::new();
        for n in 0..10 {
            rate.on_sent(ms(0), range(1 + n * 1000, 1001 + n * 1000), false, n * 1000);
        }
        let samples: Vec<_> =
            (0..10).map(|n| ack(&mut rate, 100 + 10 * n, 1001 + 1000 * n).segment.expect("a segment")).collect();
        assert_eq!((samples[0].delivered, samples[0].interval), (1000, Some(Duration::from_ms(100))));
        assert_eq!((samples[9].delivered, samples[9].interval), (10_000, Some(Duration::from_ms(190))));
        assert_eq!(samples[9].rtt, Some(Duration::from_ms(190)));
    }

    /// Draft, section 2.3: the send phase of 90 ms is longer than acknowledgements compressed into one instant.
    #[test]
    fn compressed_acknowledgements_do_not_raise_the_rate() {
        let mut rate = DeliveryRate::new();
        for n in 0..10 {
            rate.on_sent(ms(10 * n), range(1 + n * 1000, 1001 + n * 1000), false, n * 1000);
        }
        ack(&mut rate, 100, 1001);
        let last = ack(&mut rate, 100, 10_001).segment.expect("a segment");
        // Sent at 90 ms in a flight that began at 0, when nothing was delivered: 10 000 in max(90, 100) ms.
        assert_eq!((last.delivered, last.interval), (10_000, Some(Duration::from_ms(100))));
    }

    /// Samples are marked until all that was in flight when the data ended, and one octet more, is delivered.
    #[test]
    fn a_flight_short_of_data_is_marked() {
        let mut rate = DeliveryRate::new();
        rate.on_sent(ms(0), range(1, 1001), false, 0);
        rate.on_app_limited(1000);
        rate.on_sent(ms(10), range(1001, 2001), false, 1000);
        assert!(!ack(&mut rate, 100, 1001).segment.expect("a segment").app_limited);
        rate.on_sent(ms(100), range(2001, 3001), false, 1000);
        assert!(ack(&mut rate, 110, 2001).segment.expect("a segment").app_limited);
        rate.on_sent(ms(110), range(3001, 4001), false, 1000);
        assert!(ack(&mut rate, 200, 3001).segment.expect("a segment").app_limited, "sent before the bubble had passed");
        assert!(!ack(&mut rate, 210, 4001).segment.expect("a segment").app_limited);
    }

    /// Karn's algorithm, and the record of the last transmission.
    #[test]
    fn a_retransmission_gives_a_rate_and_no_round_trip() {
        let mut rate = DeliveryRate::new();
        for n in 0..3 {
            rate.on_sent(ms(0), range(1 + n * 1000, 1001 + n * 1000), false, n * 1000);
        }
        rate.on_sacked(range(1001, 3001));
        let sample = rate.sample(&AckState {
            now: ms(100),
            delivered: 2001,
            prior_in_flight: 3000,
            in_flight: 0,
            least_rtt: None,
            mss: 1000,
        });
        assert_eq!((sample.acked, sample.segment.expect("SACKed").rtt), (2000, Some(Duration::from_ms(100))));
        rate.on_lost(range(1, 1001));
        let lost = LostSegment { start: 1, end: 1001, in_flight: 1000, lost_since: 1000, app_limited: false };
        assert_eq!(rate.take_losses(), [lost]);
        rate.on_sent(ms(100), range(1, 1001), true, 0);
        let sample = ack(&mut rate, 200, 3001);
        let segment = sample.segment.expect("the retransmission");
        assert_eq!((sample.acked, sample.newly_lost, segment.rtt), (1000, 1000, None));
        assert_eq!((segment.delivered, segment.interval), (1000, Some(Duration::from_ms(100))));
    }

    #[test]
    fn an_interval_below_the_shortest_round_trip_gives_no_rate() {
        let mut rate = DeliveryRate::new();
        rate.on_sent(ms(0), range(1, 1001), false, 0);
        rate.on_acked(1001);
        let sample = rate.sample(&AckState {
            now: ms(5),
            delivered: 1001,
            prior_in_flight: 1000,
            in_flight: 0,
            least_rtt: Some(Duration::from_ms(10)),
            mss: 1000,
        });
        assert_eq!(sample.segment.expect("a segment").rate(), None);
    }
}

//! The packet numbers that an end has received, and the timing of its acknowledgements.
//!
//! Published: RFC 9000, section 13.2; draft-ietf-quic-ack-frequency, sections 4 to 6.
//!
//! An acknowledgement is due at once after the second ack-eliciting packet (or the number that the peer requested), for
//! a packet out of order, for packets of the handshake, and on IMMEDIATE_ACK; else `max_ack_delay` after the first
//! packet that is not acknowledged. It reports the 32 highest ranges. Ranges whose report the peer has acknowledged are
//! forgotten (section 13.2.4), and late packets from there count as duplicates.
//!
//! Differs: packets are handled one by one, so that none waits for others of a batch (section 13.2.2 permits both).
//! Cost: O(1) for a packet in order, a binary search for others.

use lastmile_tcp::ranges::{Range, RangeSet};
use lastmile_units::{Duration, Instant};

use crate::config::ACK_EVERY;
use crate::packet::{ACK_DELAY_UNIT_US, AckFrame, AckFrequencyFrame};

/// Ranges of an ACK frame (RFC 9000, section 13.2.3, leaves their number to the receiver).
const MOST_RANGES: usize = 32;

/// The rule for acknowledgements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Policy {
    /// Ack-eliciting packets after which an acknowledgement is due.
    every: u64,
    max_delay: Duration,
    /// Packets out of order after which one is due; 0 for never.
    reordering: u64,
    /// The sequence number of the last `ACK_FREQUENCY` frame.
    sequence: Option<u64>,
}

/// A packet, ack-eliciting or not, as far as the timing of acknowledgements depends on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Arrival {
    pub(crate) number: u64,
    pub(crate) elicits: bool,
    /// Acknowledged at once: a packet of the handshake, or IMMEDIATE_ACK.
    pub(crate) immediate: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Received {
    numbers: RangeSet,
    /// All numbers below count as received.
    floor: u64,
    /// The largest number, and its arrival.
    largest: Option<(u64, Instant)>,
    /// The largest number of an ack-eliciting packet (Largest Unacked).
    largest_eliciting: u64,
    /// The largest number that an acknowledgement has reported (Largest Acked).
    reported: Option<u64>,
    /// Ack-eliciting packets since the last acknowledgement.
    pending: u64,
    due: Option<Instant>,
    policy: Policy,
}

impl Received {
    pub(crate) fn new(max_ack_delay: Duration) -> Self {
        let policy = Policy { every: ACK_EVERY.into(), max_delay: max_ack_delay, reordering: 1, sequence: None };
        Self {
            numbers: RangeSet::default(),
            floor: 0,
            largest: None,
            largest_eliciting: 0,
            reported: None,
            pending: 0,
            due: None,
            policy,
        }
    }

    /// True for a number that has arrived before, or may have.
    pub(crate) fn is_duplicate(&self, number: u64) -> bool {
        number < self.floor || self.numbers.at_or_after(number).is_some_and(|range| range.contains(number))
    }

    /// True for a number above all that have arrived.
    pub(crate) fn is_newest(&self, number: u64) -> bool {
        self.largest.is_none_or(|(largest, _)| number > largest)
    }

    /// A packet arrives for the first time.
    pub(crate) fn on_packet(&mut self, now: Instant, arrival: Arrival) {
        let Arrival { number, elicits, immediate } = arrival;
        self.numbers.insert(Range { start: number, end: number + 1 }, |_| ());
        if self.is_newest(number) {
            self.largest = Some((number, now));
        }
        if !elicits {
            return;
        }
        self.largest_eliciting = self.largest_eliciting.max(number);
        self.pending += 1;
        let at_once = immediate || self.pending >= self.policy.every || self.is_out_of_order(number);
        let deadline = if at_once { now } else { now.saturating_add(self.policy.max_delay) };
        self.due = Some(self.due.map_or(deadline, |due| due.min(deadline)));
    }

    /// Draft, section 6.2; with a threshold of 1 as RFC 9000, section 13.2.1.
    fn is_out_of_order(&self, number: u64) -> bool {
        let threshold = self.policy.reordering;
        if threshold == 0 {
            return false;
        }
        let known = self.reported.and_then(|reported| reported.checked_sub(threshold));
        if known.is_some_and(|known| number <= known) {
            return true;
        }
        let from = known.map_or(0, |known| known + 1).max(self.floor);
        let missing = match self.numbers.at_or_after(from) {
            Some(range) if range.start <= from => range.end,
            _ => from,
        };
        self.largest_eliciting.checked_sub(missing).is_some_and(|behind| behind >= threshold)
    }

    /// The peer requests another rule.
    pub(crate) fn on_request(&mut self, frame: &AckFrequencyFrame) {
        if self.policy.sequence.is_some_and(|sequence| frame.sequence <= sequence) {
            return;
        }
        self.policy = Policy {
            every: frame.threshold + 1,
            max_delay: frame.max_delay,
            reordering: frame.reordering,
            sequence: Some(frame.sequence),
        };
    }

    /// An acknowledgement is due.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.due.is_some_and(|due| due <= now)
    }

    /// When an acknowledgement is due, if a packet waits for it.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.due
    }

    /// The acknowledgement, if there is a packet to acknowledge: an ack-eliciting one that waits, or with `any` any.
    pub(crate) fn frame(&self, now: Instant, any: bool) -> Option<AckFrame> {
        let (_, arrived) = self.largest.filter(|_| any || self.pending > 0)?;
        let mut ranges = self.numbers.descending().take(MOST_RANGES);
        let first = ranges.next()?;
        let units = now.since(arrived).as_us() / ACK_DELAY_UNIT_US;
        Some(AckFrame { first, more: ranges.collect(), delay: Duration::from_us(units * ACK_DELAY_UNIT_US) })
    }

    /// An acknowledgement is sent.
    pub(crate) fn on_reported(&mut self) {
        self.reported = self.largest.map(|(largest, _)| largest);
        (self.pending, self.due) = (0, None);
    }

    /// Packets are missing between those received.
    pub(crate) fn has_gaps(&self) -> bool {
        self.numbers.len() > 1
    }

    /// The peer has acknowledged a report of all numbers up to `largest`.
    pub(crate) fn forget(&mut self, largest: u64) {
        // The range of the largest number stays, so that an acknowledgement always has one.
        let Some((newest, _)) = self.largest else { return };
        self.floor = self.floor.max((largest + 1).min(newest));
        self.numbers.trim_below(self.floor);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DELAY: Duration = Duration::from_ms(25);

    fn ms(count: u64) -> Instant {
        Instant::ZERO + Duration::from_ms(count)
    }

    fn arrive(received: &mut Received, at: u64, number: u64) {
        received.on_packet(ms(at), Arrival { number, elicits: true, immediate: false });
    }

    fn requested(every: u64, reordering: u64) -> Received {
        let mut received = Received::new(DELAY);
        let max_delay = Duration::from_s(10);
        received.on_request(&AckFrequencyFrame { sequence: 0, threshold: every - 1, max_delay, reordering });
        received
    }

    /// RFC 9000, section 13.2.2: after two packets; section 13.2.1: a single one after `max_ack_delay`.
    #[test]
    fn every_second_packet_or_25_ms() {
        let mut received = Received::new(DELAY);
        arrive(&mut received, 0, 0);
        assert_eq!((received.is_due(ms(24)), received.deadline()), (false, Some(ms(25))));
        arrive(&mut received, 10, 1);
        assert!(received.is_due(ms(10)));
        received.on_reported();
        assert_eq!(received.deadline(), None);
        arrive(&mut received, 30, 2);
        assert!(!received.is_due(ms(54)) && received.is_due(ms(55)));
    }

    /// RFC 9000, section 13.2.1: a gap and what fills it are acknowledged at once; a known gap is not.
    #[test]
    fn packets_out_of_order_are_acknowledged_at_once() {
        let mut received = Received::new(DELAY);
        for (number, due) in [(0, false), (2, true), (3, false), (1, true), (4, false)] {
            arrive(&mut received, 0, number);
            assert_eq!(received.is_due(ms(0)), due, "{number}");
            if due || number == 0 || number == 3 {
                received.on_reported();
            }
        }
    }

    /// Draft, section 6.2.1: its two examples.
    #[test]
    fn the_reordering_examples_of_the_draft() {
        let three = [(0, false), (1, false), (3, false), (4, false), (5, true), (8, false), (9, true), (10, true)];
        let five = [(0, false), (1, false), (3, false), (5, false), (6, false), (7, true), (8, false), (9, true)];
        for (threshold, numbers) in [(3, three), (5, five)] {
            let mut received = requested(100, threshold);
            for (number, due) in numbers {
                arrive(&mut received, 0, number);
                assert_eq!(received.is_due(ms(0)), due, "threshold {threshold}, packet {number}");
                if due {
                    received.on_reported();
                }
            }
        }
    }

    /// Draft, section 4: 0 for never; the threshold counts packets without an acknowledgement.
    #[test]
    fn ten_packets_bring_one_acknowledgement() {
        let mut received = requested(10, 0);
        for number in 0..9 {
            arrive(&mut received, 0, 2 * number);
            assert!(!received.is_due(ms(0)));
        }
        arrive(&mut received, 0, 18);
        assert!(received.is_due(ms(0)));
    }

    /// Draft, section 4.1: a frame with an older sequence number is ignored.
    #[test]
    fn an_older_request_is_ignored() {
        let mut received = Received::new(DELAY);
        let frame = |sequence, threshold| AckFrequencyFrame { sequence, threshold, max_delay: DELAY, reordering: 1 };
        received.on_request(&frame(1, 3));
        received.on_request(&frame(0, 7));
        assert_eq!(received.policy.every, 4);
    }

    /// RFC 9000, section 19.3: the delay is that of the largest number, in steps of 8 us.
    #[test]
    fn a_frame_reports_ranges_and_the_delay_of_the_largest_number() {
        let mut received = Received::new(DELAY);
        arrive(&mut received, 0, 0);
        arrive(&mut received, 5, 7);
        arrive(&mut received, 6, 5);
        let frame = received.frame(ms(6) + Duration::from_us(7), false).expect("packets wait");
        assert_eq!(frame.delay, Duration::from_us(1000));
        let ranges: Vec<_> = frame.ranges().map(|range| (range.start, range.end)).collect();
        assert_eq!(ranges, [(7, 8), (5, 6), (0, 1)]);
    }

    /// RFC 9000, section 13.2.4: once a report is acknowledged its ranges need not be reported again.
    #[test]
    fn acknowledged_reports_are_forgotten() {
        let mut received = Received::new(DELAY);
        for number in [0, 2, 4, 9] {
            arrive(&mut received, 0, number);
        }
        assert!(received.has_gaps());
        received.forget(4);
        assert!(!received.has_gaps());
        assert!([0, 1, 3, 4, 9].into_iter().all(|number| received.is_duplicate(number)));
        assert!(!received.is_duplicate(5));
        received.forget(9);
        assert!(received.frame(ms(0), true).is_some(), "the largest number stays");
    }

    #[test]
    fn a_frame_has_at_most_32_ranges() {
        let mut received = Received::new(DELAY);
        (0..100).for_each(|number| arrive(&mut received, 0, 2 * number));
        assert_eq!(received.frame(ms(0), false).expect("packets wait").ranges().count(), 32);
    }
}

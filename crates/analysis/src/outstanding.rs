//! Captured segments without acknowledgement, in the order of the stream.
//!
//! Cost: constant for new and for acknowledged data, a binary search for retransmissions; 64 bytes
//! a segment.

use std::collections::VecDeque;
use std::num::{NonZeroU16, NonZeroU32};

use lastmile_units::Instant;

/// The most segments in flight that one direction stores. The oldest beyond that count as
/// acknowledged.
pub const MOST_OUTSTANDING: usize = 65_536;

/// How often a range was sent, as far as the capture shows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sends {
    /// No packet of it was captured: a hole.
    Never,
    Once,
    /// Several times, or perhaps: of data from before the capture, and of a filled hole, the first is unknown.
    Several,
}

/// A range of the stream sent in one packet, or a hole of which no packet was captured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    pub(crate) start: i64,
    pub(crate) end: i64,
    /// Time of the first transmission; for a hole, of the packet that revealed it.
    pub(crate) first: Instant,
    /// Time of the last transmission.
    pub(crate) last: Instant,
    /// Time of the SACK that reported its arrival.
    pub(crate) sacked: Option<Instant>,
    /// The timestamp of its last transmission; of a hole that of the packet that showed it.
    pub(crate) timestamp: Option<u32>,
    pub(crate) sends: Sends,
    /// The episode of repair of its last retransmission.
    pub(crate) episode: Option<NonZeroU32>,
    /// Identification in the IPv4 header of its last transmission; of a hole that of the packet that showed it.
    pub(crate) ip_id: Option<NonZeroU16>,
    /// False for a segment that was SACKed, or lost and not retransmitted.
    pub(crate) in_network: bool,
}

impl Segment {
    /// Data that were sent before the capture began, whose first packet was captured at `at`. They measure no
    /// round trip.
    pub(crate) fn before_capture(start: i64, end: i64, at: Instant) -> Self {
        Self {
            start,
            end,
            first: at,
            last: at,
            sacked: None,
            timestamp: None,
            sends: Sends::Several,
            episode: None,
            ip_id: None,
            in_network: true,
        }
    }

    fn octets(&self) -> i64 {
        if self.in_network { self.end - self.start } else { 0 }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Outstanding {
    segments: VecDeque<Segment>,
    /// Octets of the segments in the network.
    in_network: i64,
}

impl Outstanding {
    pub(crate) fn first(&self) -> Option<&Segment> {
        self.segments.front()
    }

    /// The segment that holds the byte at `offset`.
    pub(crate) fn at(&self, offset: i64) -> Option<&Segment> {
        self.segments
            .get(self.segments.partition_point(|segment| segment.end <= offset))
            .filter(|found| found.start <= offset)
    }

    /// Appends a segment that begins at the end of the last. True if the oldest was removed for it.
    pub(crate) fn push(&mut self, segment: Segment) -> bool {
        debug_assert!(self.segments.back().is_none_or(|last| last.end == segment.start), "segments lie end to end");
        let full = self.segments.len() >= MOST_OUTSTANDING;
        if full {
            self.in_network -= self.segments.pop_front().map_or(0, |oldest| oldest.octets());
        }
        self.in_network += segment.octets();
        self.segments.push_back(segment);
        full
    }

    /// Adds a segment that ends at the begin of the first.
    pub(crate) fn prepend(&mut self, segment: Segment) {
        debug_assert!(self.segments.front().is_none_or(|first| first.start == segment.end), "segments lie end to end");
        self.in_network += segment.octets();
        self.segments.push_front(segment);
    }

    /// The segments that `start..end` covers, split at both ends.
    pub(crate) fn cut(&mut self, start: i64, end: i64) -> impl Iterator<Item = &mut Segment> {
        self.split(start);
        self.split(end);
        let from = self.segments.partition_point(|segment| segment.end <= start);
        let to = self.segments.partition_point(|segment| segment.start < end).max(from);
        self.segments.range_mut(from..to)
    }

    /// Octets in the network, by the sender's reckoning (RFC 6675: pipe).
    pub(crate) fn in_network(&self) -> i64 {
        self.in_network
    }

    /// Records a SACK block. Calls `each` with each segment that it reports for the first time.
    pub(crate) fn sack(&mut self, left: i64, right: i64, now: Instant, mut each: impl FnMut(&Segment)) {
        let mut gone = 0;
        for segment in self.cut(left, right) {
            if segment.sacked.is_none() {
                each(segment);
                segment.sacked = Some(now);
            }
            gone += segment.octets();
            segment.in_network = false;
        }
        self.in_network -= gone;
    }

    /// The sender takes `start..end` for lost, except what it has retransmitted in this `episode`.
    pub(crate) fn lose(&mut self, start: i64, end: i64, episode: Option<NonZeroU32>) {
        let mut gone = 0;
        for segment in self.cut(start, end) {
            if episode.is_none() || segment.episode != episode {
                gone += segment.octets();
                segment.in_network = false;
            }
        }
        self.in_network -= gone;
    }

    /// `start..end` is in the network again, except what was SACKed.
    pub(crate) fn restore(&mut self, start: i64, end: i64) {
        let mut more = 0;
        for segment in self.cut(start, end) {
            if segment.sacked.is_none() && !segment.in_network {
                segment.in_network = true;
                more += segment.octets();
            }
        }
        self.in_network += more;
    }

    fn split(&mut self, at: i64) {
        let place = self.segments.partition_point(|segment| segment.end <= at);
        if let Some(segment) = self.segments.get_mut(place)
            && segment.start < at
        {
            let rest = Segment { start: at, ..*segment };
            segment.end = at;
            self.segments.insert(place + 1, rest);
        }
    }

    /// Removes the data that `ack` acknowledges, in order.
    pub(crate) fn acknowledge(&mut self, ack: i64, mut gone: impl FnMut(&Segment)) {
        while let Some(segment) = self.segments.front_mut()
            && segment.start < ack
        {
            let whole = segment.end <= ack;
            let part = Segment { end: segment.end.min(ack), ..*segment };
            segment.start = part.end;
            self.in_network -= part.octets();
            gone(&part);
            if whole {
                self.segments.pop_front();
            }
        }
    }

    /// The earliest and the latest SACK report for a segment sent after `sent`.
    pub(crate) fn overtaken_since(&self, sent: Instant) -> Option<(Instant, Instant)> {
        let reports = self.segments.iter().filter(|segment| segment.last > sent).filter_map(|segment| segment.sacked);
        reports.map(|at| (at, at)).reduce(|all, one| (all.0.min(one.0), all.1.max(one.1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(start: i64, end: i64) -> Segment {
        Segment { sends: Sends::Once, ..Segment::before_capture(start, end, Instant::ZERO) }
    }

    #[test]
    fn segments_are_cut_where_a_repeat_begins_and_ends() {
        let mut sent = Outstanding::default();
        sent.push(segment(0, 100));
        sent.push(segment(100, 200));
        let cut: Vec<(i64, i64)> = sent.cut(50, 150).map(|segment| (segment.start, segment.end)).collect();
        assert_eq!(cut, [(50, 100), (100, 150)]);
        assert_eq!(sent.segments.len(), 4);
        let mut gone = Vec::new();
        sent.acknowledge(120, |segment| gone.push((segment.start, segment.end)));
        assert_eq!(gone, [(0, 50), (50, 100), (100, 120)]);
        assert_eq!(sent.at(130).map(|segment| segment.start), Some(120));
        assert_eq!(sent.at(200).map(|segment| segment.start), None);
    }

    #[test]
    fn octets_in_the_network_are_neither_sacked_nor_lost() {
        let mut sent = Outstanding::default();
        (0..10).for_each(|number| _ = sent.push(segment(100 * number, 100 * number + 100)));
        assert_eq!(sent.in_network(), 1000);
        let mut reported = Vec::new();
        for (left, right) in [(300, 500), (400, 600)] {
            sent.sack(left, right, Instant::ZERO, |segment| reported.push((segment.start, segment.end)));
        }
        assert_eq!(reported, [(300, 400), (400, 500), (500, 600)], "each once");
        assert_eq!(sent.in_network(), 700);
        let repair = Some(NonZeroU32::MIN);
        sent.lose(0, 300, repair);
        assert_eq!(sent.in_network(), 400);
        sent.restore(0, 100);
        sent.restore(300, 400);
        assert_eq!(sent.in_network(), 500, "a SACKed segment has arrived");
        sent.cut(0, 100).for_each(|segment| segment.episode = repair);
        sent.lose(0, 600, repair);
        assert_eq!(sent.in_network(), 500, "it was retransmitted in this repair");
        sent.lose(0, 1000, None);
        assert_eq!(sent.in_network(), 0);
        sent.restore(0, 1000);
        sent.acknowledge(650, |_| {});
        assert_eq!(sent.in_network(), 350);
    }
}

//! Captured segments without acknowledgement, in the order of the stream.
//!
//! Cost: constant for new and for acknowledged data, a binary search for retransmissions; 64 bytes
//! a segment.

use std::collections::VecDeque;

use lastmile_units::Instant;

/// The most segments in flight that one direction stores. The oldest beyond that count as
/// acknowledged.
pub const MOST_OUTSTANDING: usize = 65_536;

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
    /// The timestamp of its last transmission.
    pub(crate) timestamp: Option<u32>,
    /// Number of transmissions; 0 for a hole.
    pub(crate) sends: u32,
    /// The episode of repair of its last retransmission; 0 for none.
    pub(crate) episode: u32,
    /// Identification in the IPv4 header of its last transmission, 0 for none.
    pub(crate) ip_id: u16,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Outstanding(VecDeque<Segment>);

impl Outstanding {
    pub(crate) fn first(&self) -> Option<&Segment> {
        self.0.front()
    }

    /// The segment that holds the byte at `offset`.
    pub(crate) fn at(&self, offset: i64) -> Option<&Segment> {
        self.0.get(self.0.partition_point(|segment| segment.end <= offset)).filter(|found| found.start <= offset)
    }

    /// Appends a segment that begins at the end of the last. True if the oldest was removed for it.
    pub(crate) fn push(&mut self, segment: Segment) -> bool {
        debug_assert!(self.0.back().is_none_or(|last| last.end == segment.start), "segments lie end to end");
        let full = self.0.len() >= MOST_OUTSTANDING;
        if full {
            self.0.pop_front();
        }
        self.0.push_back(segment);
        full
    }

    /// The segments that `start..end` covers, split at both ends.
    pub(crate) fn cut(&mut self, start: i64, end: i64) -> impl Iterator<Item = &mut Segment> {
        self.split(start);
        self.split(end);
        let from = self.0.partition_point(|segment| segment.end <= start);
        let to = self.0.partition_point(|segment| segment.start < end).max(from);
        self.0.range_mut(from..to)
    }

    fn split(&mut self, at: i64) {
        let place = self.0.partition_point(|segment| segment.end <= at);
        if let Some(segment) = self.0.get_mut(place)
            && segment.start < at
        {
            let rest = Segment { start: at, ..*segment };
            segment.end = at;
            self.0.insert(place + 1, rest);
        }
    }

    /// Removes the data that `ack` acknowledges, in order.
    pub(crate) fn acknowledge(&mut self, ack: i64, mut gone: impl FnMut(Segment)) {
        self.split(ack);
        while let Some(segment) = self.0.front()
            && segment.end <= ack
        {
            gone(*segment);
            self.0.pop_front();
        }
    }

    /// The earliest SACK report for a segment sent after `sent`.
    pub(crate) fn overtaken_since(&self, sent: Instant) -> Option<Instant> {
        self.0.iter().filter(|segment| segment.last > sent).filter_map(|segment| segment.sacked).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(start: i64, end: i64) -> Segment {
        let at = Instant::ZERO;
        Segment { start, end, first: at, last: at, sacked: None, timestamp: None, sends: 1, episode: 0, ip_id: 0 }
    }

    #[test]
    fn segments_are_cut_where_a_repeat_begins_and_ends() {
        let mut sent = Outstanding::default();
        sent.push(segment(0, 100));
        sent.push(segment(100, 200));
        let cut: Vec<(i64, i64)> = sent.cut(50, 150).map(|segment| (segment.start, segment.end)).collect();
        assert_eq!(cut, [(50, 100), (100, 150)]);
        assert_eq!(sent.0.len(), 4);
        let mut gone = Vec::new();
        sent.acknowledge(120, |segment| gone.push((segment.start, segment.end)));
        assert_eq!(gone, [(0, 50), (50, 100), (100, 120)]);
        assert_eq!(sent.at(130).map(|segment| segment.start), Some(120));
        assert_eq!(sent.at(200).map(|segment| segment.start), None);
    }
}

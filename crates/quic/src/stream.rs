//! The octets of a stream at its sender and at its receiver, and their flow control.
//!
//! Published: RFC 9000, sections 2.2, 3, 4 and 13.3.
//! Differs: a connection has one stream, so that the limits of stream and connection are one. The receiving application
//! reads at once.
//! Cost: O(1) for octets in order, a binary search for others.

use lastmile_tcp::Limit;
use lastmile_tcp::ranges::{Range, RangeSet};

use crate::packet::Chunk;

/// More than any connection sends, and within a variable-length integer.
pub(crate) const FOREVER: u64 = 1 << 61;

/// The state of the end of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Fin {
    #[default]
    Unsent,
    InFlight,
    Lost,
    Delivered,
}

/// The sending part of a stream.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct SendStream {
    /// One past the last octet that the application offered.
    end: u64,
    closing: bool,
    fin: Fin,
    /// The first octet that was never sent.
    next: u64,
    /// Octets to send again.
    lost: RangeSet,
    delivered: RangeSet,
    /// The peer admits octets below.
    limit: u64,
}

/// Octets to send, and whether they were sent before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Next {
    pub(crate) chunk: Chunk,
    pub(crate) again: bool,
}

impl SendStream {
    pub(crate) fn new(limit: u64) -> Self {
        Self { limit, ..Self::default() }
    }

    /// The application offers `bytes` more. Ignored after `close`.
    pub(crate) fn offer(&mut self, bytes: u64) {
        if !self.closing {
            self.end = self.end.saturating_add(bytes).min(FOREVER);
        }
    }

    pub(crate) fn close(&mut self) {
        self.closing = true;
    }

    /// The application offers no more.
    pub(crate) fn is_closing(&self) -> bool {
        self.closing
    }

    /// The first octet that is offered and not delivered.
    pub(crate) fn unfinished(&self) -> Option<u64> {
        (self.acked() < self.end).then(|| self.acked())
    }

    /// Discards the octets that were never sent.
    pub(crate) fn truncate(&mut self) {
        self.end = self.next;
    }

    pub(crate) fn raise_limit(&mut self, limit: u64) {
        self.limit = self.limit.max(limit);
    }

    pub(crate) fn offered(&self) -> u64 {
        self.end
    }

    /// Octets that were sent at least once.
    pub(crate) fn sent(&self) -> u64 {
        self.next
    }

    /// Octets from the beginning that are delivered without a gap.
    pub(crate) fn acked(&self) -> u64 {
        self.delivered.first().filter(|first| first.start == 0).map_or(0, |first| first.end)
    }

    /// All octets and the end of the stream are delivered.
    pub(crate) fn is_finished(&self) -> bool {
        self.fin == Fin::Delivered && self.acked() >= self.end
    }

    /// The first octet of the next chunk, or the reason why there is none.
    pub(crate) fn peek(&mut self) -> Result<u64, Limit> {
        if let Some(range) = self.first_lost() {
            return Ok(range.start);
        }
        if self.next < self.end {
            return if self.next < self.limit { Ok(self.next) } else { Err(Limit::ReceiveWindow) };
        }
        let fin_due = self.closing && matches!(self.fin, Fin::Unsent | Fin::Lost);
        if fin_due { Ok(self.end) } else { Err(Limit::Application) }
    }

    /// The first lost octets that were not delivered meanwhile.
    fn first_lost(&mut self) -> Option<Range> {
        while let Some(lost) = self.lost.first() {
            match self.delivered.at_or_after(lost.start) {
                Some(held) if held.start <= lost.start => self.lost.trim_below(held.end),
                Some(held) if held.start < lost.end => return Some(Range { start: lost.start, end: held.start }),
                _ => return Some(lost),
            }
        }
        None
    }

    /// Takes at most `room` octets to send: lost ones first.
    pub(crate) fn take(&mut self, room: u64) -> Option<Next> {
        let start = self.peek().ok()?;
        let lost = self.first_lost();
        let end = match lost {
            Some(range) => range.end.min(start + room),
            None => self.end.min(self.limit).min(start + room).max(start),
        };
        let fin_free = self.closing && matches!(self.fin, Fin::Unsent | Fin::Lost);
        let fin = fin_free && end == self.end;
        if start == end && !fin {
            return None;
        }
        let again = lost.is_some() || (start == end && self.fin == Fin::Lost);
        if lost.is_some() {
            self.lost.trim_below(end);
        } else {
            self.next = self.next.max(end);
        }
        if fin {
            self.fin = Fin::InFlight;
        }
        Some(Next { chunk: Chunk { start, end, fin }, again })
    }

    /// At most `room` octets that are sent and not delivered, the oldest ones: for a probe without anything new.
    pub(crate) fn oldest(&self, room: u64) -> Option<Next> {
        let start = self.acked();
        let end = self.delivered.at_or_after(start).map_or(self.next, |held| held.start).min(start + room);
        let fin = self.fin == Fin::InFlight && end == self.end;
        (start < end || fin).then_some(Next { chunk: Chunk { start, end, fin }, again: true })
    }

    /// A chunk is delivered.
    pub(crate) fn on_delivered(&mut self, chunk: Chunk) {
        if let Some(range) = chunk.range() {
            self.delivered.insert(range, |_| ());
        }
        if chunk.fin {
            self.fin = Fin::Delivered;
        }
    }

    /// A chunk is lost.
    pub(crate) fn on_lost(&mut self, chunk: Chunk) {
        if let Some(range) = chunk.range() {
            self.lost.insert(range, |_| ());
        }
        if chunk.fin && self.fin == Fin::InFlight {
            self.fin = Fin::Lost;
        }
    }
}

/// The receiving part of a stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ReceiveStream {
    held: RangeSet,
    /// The size of the stream, once known.
    size: Option<u64>,
    window: u64,
    /// The peer may send octets below.
    limit: u64,
}

impl ReceiveStream {
    pub(crate) fn new(window: u64) -> Self {
        Self { held: RangeSet::default(), size: None, window, limit: window }
    }

    /// Octets that the application has read.
    pub(crate) fn read(&self) -> u64 {
        self.held.first().filter(|first| first.start == 0).map_or(0, |first| first.end)
    }

    /// The number of octets that have arrived, in order or not.
    pub(crate) fn arrived(&self) -> u64 {
        self.held.octets()
    }

    /// The octets from `start` to `end` have arrived.
    pub(crate) fn holds(&self, start: u64, end: u64) -> bool {
        start >= end || self.held.at_or_after(start).is_some_and(|held| held.start <= start && held.end >= end)
    }

    /// All octets are read.
    pub(crate) fn is_finished(&self) -> bool {
        self.size.is_some_and(|size| self.read() >= size)
    }

    /// A chunk arrives. Returns whether any of it is new.
    pub(crate) fn on_chunk(&mut self, chunk: Chunk) -> bool {
        let mut new = false;
        if let Some(range) = chunk.range() {
            self.held.insert(range, |_| new = true);
        }
        if chunk.fin {
            new |= self.size.is_none();
            self.size = Some(chunk.end);
        }
        new
    }

    /// The limit to announce, once half of the window was read since the last one (RFC 9000, section 4.2, leaves the
    /// time to the receiver).
    pub(crate) fn new_limit(&mut self) -> Option<u64> {
        let limit = self.read() + self.window;
        if self.size.is_some() || limit < self.limit + (self.window / 2).max(1) {
            return None;
        }
        self.limit = limit;
        Some(limit)
    }

    /// The last limit announced.
    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(start: u64, end: u64, fin: bool) -> Chunk {
        Chunk { start, end, fin }
    }

    fn stream(bytes: u64) -> SendStream {
        let mut stream = SendStream::new(10_000);
        stream.offer(bytes);
        stream.close();
        stream
    }

    #[test]
    fn lost_octets_are_sent_first_and_without_those_delivered_meanwhile() {
        let mut stream = stream(3000);
        let first = stream.take(1000).expect("data");
        assert_eq!(first, Next { chunk: chunk(0, 1000, false), again: false });
        stream.take(1000);
        stream.on_lost(chunk(0, 1000, false));
        stream.on_delivered(chunk(300, 500, false));
        assert_eq!(stream.take(1000), Some(Next { chunk: chunk(0, 300, false), again: true }));
        assert_eq!(stream.take(200), Some(Next { chunk: chunk(500, 700, false), again: true }));
        assert_eq!(stream.take(1000), Some(Next { chunk: chunk(700, 1000, false), again: true }));
        assert_eq!(stream.take(1000), Some(Next { chunk: chunk(2000, 3000, true), again: false }));
        assert_eq!(stream.peek(), Err(Limit::Application));
        stream.on_lost(chunk(2000, 3000, true));
        assert_eq!(stream.take(2000), Some(Next { chunk: chunk(2000, 3000, true), again: true }));
        stream.on_delivered(chunk(0, 2000, false));
        stream.on_delivered(chunk(2000, 3000, true));
        assert!(stream.is_finished());
    }

    #[test]
    fn the_peer_limits_new_octets_but_no_repair() {
        let mut stream = SendStream::new(1500);
        stream.offer(5000);
        stream.take(1000);
        assert_eq!(stream.take(1000).expect("free").chunk, chunk(1000, 1500, false));
        assert_eq!((stream.peek(), stream.take(1000)), (Err(Limit::ReceiveWindow), None));
        stream.on_lost(chunk(0, 1000, false));
        assert_eq!(stream.take(1000).expect("lost").chunk, chunk(0, 1000, false));
        stream.raise_limit(2000);
        assert_eq!(stream.take(1000).expect("free").chunk, chunk(1500, 2000, false));
    }

    #[test]
    fn a_probe_repeats_the_oldest_octets() {
        let mut stream = stream(2000);
        stream.take(1000);
        stream.take(1000);
        stream.on_delivered(chunk(0, 500, false));
        assert_eq!(stream.oldest(400).expect("in flight").chunk, chunk(500, 900, false));
        stream.on_delivered(chunk(500, 2000, false));
        assert_eq!(stream.oldest(400).expect("the end").chunk, chunk(2000, 2000, true));
    }

    #[test]
    fn a_stopped_application_ends_the_stream_where_it_is() {
        let mut stream = SendStream::new(10_000);
        stream.offer(FOREVER);
        stream.take(1000);
        stream.truncate();
        stream.close();
        assert_eq!(stream.take(1000).expect("the end").chunk, chunk(1000, 1000, true));
    }

    /// A window of 1000: the limit rises once 500 were read.
    #[test]
    fn a_receiver_raises_the_limit_by_half_windows() {
        let mut stream = ReceiveStream::new(1000);
        assert!(stream.on_chunk(chunk(0, 400, false)));
        assert_eq!(stream.new_limit(), None);
        assert!(stream.on_chunk(chunk(600, 700, false)) && !stream.on_chunk(chunk(0, 400, false)));
        assert_eq!((stream.read(), stream.new_limit()), (400, None));
        let held = [(0, 400), (600, 700), (650, 700)].map(|(start, end)| stream.holds(start, end));
        let missing = [(0, 401), (599, 700), (600, 701), (500, 510)].map(|(start, end)| stream.holds(start, end));
        assert_eq!((held, missing), ([true; 3], [false; 4]));
        stream.on_chunk(chunk(400, 600, false));
        assert_eq!((stream.read(), stream.new_limit(), stream.new_limit()), (700, Some(1700), None));
        stream.on_chunk(chunk(700, 1700, true));
        assert!(stream.is_finished());
        assert_eq!(stream.new_limit(), None, "the size is known");
    }
}

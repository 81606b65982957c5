//! Data Center TCP: a reduction by half of the fraction of octets that were marked.
//!
//! Published: RFC 8257; Linux's `tcp_dctcp.c`.
//!
//! The window grows as Reno's. A mark reduces it once in each window of data, by alpha / 2; a loss halves it, also
//! after a mark of the same window of data (RFC 8257, section 3.5). The receiver reports each change of the mark
//! (section 3.2), or uses Accurate ECN.
//! Differs: the window falls at once, where Linux spreads the reduction over a round trip. A timeout after a mark of
//! the same window halves the threshold, as the RFC asks; in Linux it stays.

use super::mark_fraction::MarkFraction;
use super::marked_ack::MarkedAck;

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Dctcp {
    marks: MarkFraction,
}

impl Dctcp {
    pub(super) fn new() -> Self {
        Self { marks: MarkFraction::new() }
    }

    pub(super) fn on_ack(&mut self, ack: &MarkedAck) {
        self.marks.on_ack(ack.acked, ack.marked, ack.una, ack.max);
    }

    /// The window after a mark; at least two segments.
    pub(super) fn reduced(&self, cwnd: u32, mss: u32) -> u32 {
        (self.marks.reduced(u64::from(cwnd)) as u32).max(2 * mss)
    }
}

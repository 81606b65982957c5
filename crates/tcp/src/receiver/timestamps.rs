//! The timestamps that a receiver echoes, and its protection against wrapped sequence numbers.
//!
//! Published: RFC 7323, sections 4.3, 5.3 and 5.5.
//! Cost: two comparisons for each segment with timestamps.

use lastmile_packet::SeqNumber;

use crate::TimerConfig;

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Timestamps {
    /// TS.Recent.
    recent: u32,
    /// When TS.Recent was set, on the timestamp clock of this end.
    recent_at: u32,
}

impl Timestamps {
    pub(super) fn new(recent: u32) -> Self {
        Self { recent, recent_at: 0 }
    }

    /// TS.Recent.
    pub(crate) fn recent(&self) -> u32 {
        self.recent
    }

    /// The connection is established when this end's timestamp clock reads `clock`.
    pub(crate) fn on_established(&mut self, clock: u32) {
        self.recent_at = clock;
    }

    /// RFC 7323, section 5.3, R1: true if the segment is an old duplicate. TS.Recent is void after 24 days
    /// (section 5.5).
    #[inline]
    pub(crate) fn is_stale(&self, value: u32, clock: u32, timers: &TimerConfig) -> bool {
        value.wrapping_sub(self.recent).cast_signed() < 0
            && u64::from(clock.wrapping_sub(self.recent_at)) * timers.timestamp_tick().as_ms() < 24 * 86_400_000
    }

    /// RFC 7323, section 4.3 (2), and 5.3, R3: the timestamp to echo is that of the earliest segment not
    /// acknowledged. `octets`: the first of the segment, and one past the last. If all are acknowledged, it lies
    /// outside of the window (R2) and its timestamp does not count: a needless retransmission that overtakes new
    /// data would else make them old duplicates. As in Linux (`tcp_sequence`), a segment that ends at the last
    /// acknowledgement counts.
    #[inline]
    pub(crate) fn note(&mut self, octets: (SeqNumber, SeqNumber), last_ack: SeqNumber, value: u32, clock: u32) {
        if octets.0.at_or_before(last_ack) && octets.1.at_or_after(last_ack) {
            (self.recent, self.recent_at) = (value, clock);
        }
    }
}

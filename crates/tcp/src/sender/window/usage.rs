//! The use of the congestion window: a window that is not used does not grow, and shrinks in time.
//!
//! Published: RFC 7661, section 4.3, and RFC 2861, section 3.2, in Linux's form (`tcp_cwnd_validate`,
//! `tcp_is_cwnd_limited`, `tcp_cwnd_application_limited`).
//!
//! Each time the sender has sent what it may, it notes whether the congestion window stopped it. For a window of data
//! from a stop on, the window counts as used. A sender that runs out of data sends nothing more, so that the
//! acknowledgements of its last burst all count. In slow start half of the window counts as use, too.
//!
//! Differs: octets in place of segments.
//! Cost: a dozen operations for each acknowledgement.

use lastmile_units::Instant;

/// What the sender has outstanding when it has sent what it may.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    pub(crate) una: u64,
    /// One past the last octet sent.
    pub(crate) max: u64,
    /// One past the last octet that the application has offered.
    pub(crate) end: u64,
    /// The congestion window, in place of the application or the peer, ended the transmission.
    pub(crate) limited: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct WindowUse {
    /// The congestion window ended a transmission in this window of data (`is_cwnd_limited`).
    limited: bool,
    /// The most octets outstanding in this window of data (`max_packets_out`).
    most: u64,
    /// The window of data ends here (`cwnd_usage_seq`).
    end: u64,
    /// One past the last octet sent, at the last look.
    seen: u64,
    /// The most octets outstanding since the window was last used, and that time (`snd_cwnd_used`, `snd_cwnd_stamp`).
    unused: (u64, Instant),
}

impl WindowUse {
    pub(crate) fn new() -> Self {
        Self { limited: false, most: 0, end: 0, seen: 0, unused: (0, Instant::ZERO) }
    }

    /// The window may grow.
    #[inline]
    pub(crate) fn is_full(&self, cwnd: u32, in_slow_start: bool) -> bool {
        self.limited || (in_slow_start && u64::from(cwnd) < 2 * self.most)
    }

    /// The sender has sent what it may. False: it has sent nothing, and the congestion window did not stop it.
    #[inline]
    pub(crate) fn on_sent(&mut self, sent: Outcome) -> bool {
        let Outcome { una, max, end, limited } = sent;
        if max == self.seen && (!limited || end <= max) {
            return false;
        }
        self.seen = max;
        let outstanding = max - una;
        if limited || una >= self.end || (!self.limited && outstanding > self.most) {
            self.limited = limited;
            self.most = outstanding;
            self.end = max;
        }
        true
    }

    /// The window is in use at `now`, or begins anew.
    #[inline]
    pub(crate) fn restart(&mut self, now: Instant) {
        self.unused = (0, now);
    }

    /// The window is not in use, with `outstanding` octets. Returns the most octets outstanding since it was, and when
    /// that was.
    pub(crate) fn note_unused(&mut self, outstanding: u64) -> (u64, Instant) {
        self.unused.0 = self.unused.0.max(outstanding);
        self.unused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(una: u64, max: u64, end: u64, limited: bool) -> Outcome {
        Outcome { una, max, end, limited }
    }

    /// Ten segments fill the window of ten; the last of a response do not. All acknowledgements of the former count,
    /// and of the latter until the window of data is acknowledged and something is sent.
    #[test]
    fn a_full_window_counts_for_a_window_of_data() {
        let mut usage = WindowUse::new();
        assert!(usage.on_sent(sent(1, 10_001, 50_001, true)));
        assert!(usage.is_full(10_000, false));
        assert!(usage.on_sent(sent(5_001, 12_001, 12_001, false)), "the rest of the response");
        assert!(usage.is_full(14_000, false), "in the same window of data");
        assert!(!usage.on_sent(sent(12_001, 12_001, 12_001, false)), "nothing is sent");
        assert!(usage.is_full(17_000, false));
        assert!(usage.on_sent(sent(12_001, 14_001, 14_001, false)), "the next response");
        assert!(!usage.is_full(17_000, false));
    }

    /// `tcp_is_cwnd_limited`: "cwnd is 10 (IW10), but application sends 9 frames. We allow cwnd to reach 18."
    #[test]
    fn in_slow_start_half_of_the_window_is_enough() {
        let mut usage = WindowUse::new();
        assert!(usage.on_sent(sent(1, 9_001, 9_001, false)));
        assert!(usage.is_full(17_999, true) && !usage.is_full(18_000, true) && !usage.is_full(17_999, false));
        // The most of this window of data counts.
        assert!(usage.on_sent(sent(8_001, 10_001, 10_001, false)));
        assert!(usage.is_full(17_999, true));
        assert!(usage.on_sent(sent(10_001, 11_001, 11_001, false)));
        assert!(!usage.is_full(2_000, true));
    }

    /// A window that is full when nothing is left to send stops nothing.
    #[test]
    fn a_full_window_without_data_to_send_is_no_limit() {
        let mut usage = WindowUse::new();
        assert!(usage.on_sent(sent(1, 10_001, 10_001, false)));
        assert!(!usage.on_sent(sent(1, 10_001, 10_001, true)));
        assert!(usage.on_sent(sent(1, 10_001, 10_501, true)));
        assert!(usage.is_full(10_000, false));
    }
}

//! The congestion window of a sender, estimated from its packets.
//!
//! A capture next to the sender shows the octets in the network by the sender's own reckoning (the
//! pipe of RFC 6675: sent, neither acknowledged nor SACKed, nor lost and not yet retransmitted). A
//! sender with data to send and space in the receiver's window stops where another segment would
//! exceed its congestion window. The window is therefore at least the octets in the network after a
//! transmission, and less than a segment above them when the next ACK arrives. Both bounds hold for
//! any growth law, so none is assumed.
//!
//! At the start of a repair a sender by RFC 6675 is silent until the octets in the network fall below
//! the reduced window; one with proportional rate reduction (RFC 9937) sends for every few ACKs. After
//! [`SILENT`] ACKs without a transmission the window is taken to be the flight times the reduction that
//! the preceding repair showed, a half at first; in the repairs after it at once.
//!
//! Without SACK, fast recovery inflates the window unseen until it exceeds the flight; there the
//! estimate is that of RFC 5681, section 3.2. A sender that transmits new data earlier does not inflate:
//! like Linux it takes each duplicate ACK for a segment that has left the network, and reduces its rate
//! in proportion. From the first such transmission on the octets in the network are counted in this way. After a
//! timeout it is one segment (section 3.1). It is not observable how far the window exceeds the flight while the
//! application or the receiver's window limits the sender: the last estimate holds.
//!
//! Slow start ends with a loss, at half the flight of a timeout, or after a round trip in which the
//! window grew by less than a quarter.
//!
//! Published: Jaiswal, Iannaccone, Diot, Kurose and Towsley 2004 ("Inferring TCP Connection
//! Characteristics Through Passive Measurements") replay a sender of each variant instead. Cost: a
//! few comparisons for each packet.

use lastmile_units::{Duration, Instant};

/// A sender answers an ACK within this time, if it may send.
const PROMPT: Duration = Duration::from_ms(1);
/// A round trip of slow start adds more than 1 in this number of the window. Delayed ACKs without
/// byte counting add a half, congestion avoidance at 8 segments an eighth.
const GROWTH: i64 = 4;
/// ACKs without a transmission after which a repair has no rate reduction. Twice as many show it for the
/// repairs to come.
const SILENT: u32 = 2;

/// The phase of a sender's congestion control.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Phase {
    /// The handshake is not complete.
    #[default]
    Handshake,
    /// Slow start.
    SlowStart,
    /// Congestion avoidance.
    Avoidance,
    /// Fast recovery.
    Recovery,
    /// The repair after a retransmission timeout.
    Timeout,
    /// The receiver's window limits the sender.
    ReceiveWindow,
    /// The application limits the sender.
    Application,
}

impl Phase {
    /// All phases.
    pub const ALL: [Self; 7] = [
        Self::Handshake,
        Self::SlowStart,
        Self::Avoidance,
        Self::Recovery,
        Self::Timeout,
        Self::ReceiveWindow,
        Self::Application,
    ];

    /// The name in outputs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Handshake => "handshake",
            Self::SlowStart => "slow_start",
            Self::Avoidance => "congestion_avoidance",
            Self::Recovery => "fast_recovery",
            Self::Timeout => "after_timeout",
            Self::ReceiveWindow => "window_limited",
            Self::Application => "application_limited",
        }
    }
}

/// The sender at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) now: Instant,
    /// Octets in the network.
    pub(crate) in_network: i64,
    pub(crate) mss: i64,
    /// True if the congestion window limits the sender.
    pub(crate) limited: bool,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Congestion {
    /// The estimate; zero before the first data.
    window: i64,
    /// The window after the repair, where a law gives it.
    threshold: i64,
    past_slow_start: bool,
    /// The offset whose acknowledgement ends the round trip, and the window at its start.
    round_end: i64,
    round_window: i64,
    /// Since the last ACK the sender has sent, or had the time to.
    sent_since_ack: bool,
    last_ack: Instant,
    /// The repair by SACK: the flight at its start, and the ACKs without a transmission.
    repair: Option<(i64, u32)>,
    /// The window after the preceding repair, as a share of the flight before it, in thousandths.
    kept: Option<i64>,
    /// A repair has shown that the sender waits for the reduced window.
    waits: bool,
    /// A repair without SACK has shown that duplicate ACKs count as SACKed segments.
    counts_duplicates: bool,
}

impl Congestion {
    pub(crate) fn window(&self) -> Option<u64> {
        (self.window > 0).then_some(self.window.unsigned_abs())
    }

    pub(crate) const fn in_slow_start(&self) -> bool {
        !self.past_slow_start
    }

    /// An ACK arrives: the sender had the time to use its window since the preceding one. `at` is
    /// the state before this ACK.
    pub(crate) fn before_ack(&mut self, at: Moment) {
        let had_time = self.sent_since_ack || at.now.since(self.last_ack) >= PROMPT;
        if at.limited && had_time && self.window >= at.in_network + at.mss {
            self.window = at.in_network.max(at.mss);
        }
        if let Some((flight, silent)) = &mut self.repair {
            *silent = if self.sent_since_ack { 0 } else { *silent + 1 };
            if *silent >= SILENT {
                self.waits |= *silent >= 2 * SILENT;
                let flight = *flight;
                self.reduce(flight, at.mss);
            }
        }
        (self.sent_since_ack, self.last_ack) = (false, at.now);
    }

    /// New data were acknowledged up to `una`, of `next` sent; `at` is the state after it.
    pub(crate) fn advanced(&mut self, at: Moment, una: i64, next: i64) {
        if una < self.round_end {
            return;
        }
        let grown = self.window - self.round_window;
        if at.limited && self.round_end > 0 && grown < self.round_window / GROWTH {
            self.past_slow_start = true;
        }
        (self.round_end, self.round_window) = (next, self.window);
    }

    /// A segment was sent that the window allowed; `spare` are octets that RFC 3042 allows beyond it.
    pub(crate) fn sent(&mut self, at: Moment, spare: i64) {
        self.sent_since_ack = true;
        self.window = self.window.max(at.in_network - spare);
        if self.threshold > 0 && !self.past_slow_start && self.window >= self.threshold {
            self.past_slow_start = true;
        }
    }

    /// Fast recovery begins, with `flight` octets outstanding. With SACK the octets in the network
    /// show the window, without it a law is needed.
    pub(crate) fn lost(&mut self, flight: i64, mss: i64, sack: bool) {
        self.past_slow_start = true;
        self.threshold = (flight / 2).max(2 * mss);
        if sack || self.counts_duplicates {
            self.repair = Some((flight, 0));
            if self.waits {
                self.reduce(flight, mss);
            }
        } else {
            self.window = self.threshold + 3 * mss;
        }
        // The retransmission itself follows.
        self.sent_since_ack = true;
    }

    /// The window of a repair without rate reduction.
    fn reduce(&mut self, flight: i64, mss: i64) {
        let reduced = flight * self.kept.unwrap_or(500) / 1000;
        self.window = self.window.min(reduced.max(2 * mss));
    }

    /// The repair is complete.
    pub(crate) fn repaired(&mut self) {
        if let Some((flight, _)) = self.repair.take().filter(|(flight, _)| *flight > 0) {
            self.kept = Some((1000 * self.window / flight).clamp(300, 900));
        }
    }

    /// The sender has taken the repair back.
    pub(crate) fn undone(&mut self) {
        self.repair = None;
    }

    /// True for a sender whose repairs without SACK take duplicate ACKs for segments that have left the
    /// network.
    pub(crate) const fn counts_duplicates(&self) -> bool {
        self.counts_duplicates
    }

    /// New data were sent in a repair without SACK, of which no data were acknowledged yet: `flight`
    /// octets are outstanding, and duplicate ACKs are of `departed` octets. By RFC 5681 the flight is at most
    /// the inflated window.
    pub(crate) fn sent_in_repair(&mut self, flight: i64, departed: i64, mss: i64) {
        if !self.counts_duplicates && flight > self.threshold + departed + 2 * mss {
            self.counts_duplicates = true;
            self.window = (flight - departed).max(2 * mss);
            self.repair = Some((flight, 0));
        }
    }

    /// A further duplicate ACK in fast recovery without SACK (RFC 5681, section 3.2, step 4).
    pub(crate) fn inflate(&mut self, mss: i64) {
        if !self.counts_duplicates {
            self.window += mss;
        }
    }

    /// A new ACK in fast recovery without SACK (step 6).
    pub(crate) fn deflate(&mut self) {
        if !self.counts_duplicates {
            self.window = self.threshold;
        }
    }

    /// A retransmission timer expired with `flight` octets outstanding.
    pub(crate) fn timed_out(&mut self, flight: i64, mss: i64) {
        self.threshold = (flight / 2).max(2 * mss);
        self.past_slow_start = false;
        self.round_end = 0;
        self.window = mss;
        self.repair = None;
        self.sent_since_ack = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64, in_network: i64, limited: bool) -> Moment {
        Moment { now: Instant::ZERO + Duration::from_ms(ms), in_network, mss: 1000, limited }
    }

    #[test]
    fn a_sender_that_stops_shows_its_window() {
        let mut congestion = Congestion::default();
        assert_eq!(congestion.window(), None);
        congestion.sent(at(0, 10_000, true), 0);
        assert_eq!(congestion.window(), Some(10_000));
        // An ACK of 2 segments, and 2 are sent: nothing has grown. A reduction by 4 segments shows as
        // silence.
        congestion.before_ack(at(20, 10_000, true));
        congestion.sent(at(20, 10_000, true), 0);
        assert_eq!(congestion.window(), Some(10_000));
        congestion.before_ack(at(40, 6_000, true));
        assert_eq!(congestion.window(), Some(6_000));
    }

    #[test]
    fn silence_of_an_application_shows_nothing() {
        let mut congestion = Congestion::default();
        congestion.sent(at(0, 10_000, true), 0);
        congestion.before_ack(at(20, 1_000, false));
        assert_eq!(congestion.window(), Some(10_000));
    }

    #[test]
    fn acks_in_a_row_leave_the_sender_no_time() {
        let mut congestion = Congestion::default();
        congestion.sent(at(0, 10_000, true), 0);
        congestion.before_ack(at(20, 10_000, true));
        congestion.before_ack(at(20, 8_000, true));
        assert_eq!(congestion.window(), Some(10_000));
    }

    #[test]
    fn slow_start_ends_where_a_round_trip_adds_little() {
        let mut congestion = Congestion::default();
        for (round, window) in [(1, 10_000), (2, 20_000), (3, 40_000)] {
            congestion.sent(at(round, window, true), 0);
            congestion.advanced(at(round, window, true), window, 2 * window);
            assert!(congestion.in_slow_start(), "{round}");
        }
        congestion.sent(at(4, 42_000, true), 0);
        congestion.advanced(at(4, 42_000, true), 80_000, 122_000);
        assert!(!congestion.in_slow_start());
        congestion.timed_out(42_000, 1000);
        assert!(congestion.in_slow_start());
        congestion.sent(at(5, 21_000, true), 0);
        assert!(!congestion.in_slow_start(), "half the flight");
    }
}

//! The flight: which octets of the stream are sent and not acknowledged, and the records about them.
//!
//! Published: RFC 9293, section 3.3.1 (send sequence variables); RFC 6675, section 4 (SetPipe).
//! Differs: offsets of the stream have 64 bits (the SYN is octet 0, the first byte octet 1) and never wrap.
//! Cost: a few stores for each segment sent and each acknowledgement.

mod scoreboard;
mod segment_state;
mod transmissions;

use lastmile_units::Instant;

use crate::ranges::Range;
pub(crate) use scoreboard::{DUP_THRESH, Scoreboard};
pub(crate) use segment_state::{SegmentState, Transmission};
pub(crate) use transmissions::{LossBounds, Transmissions};

/// Octets `una..max` are in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outstanding {
    /// First octet that is not acknowledged (SND.UNA).
    pub(crate) una: u64,
    /// One past the highest octet sent (SND.NXT of RFC 9293).
    pub(crate) max: u64,
}

/// The record that decides which octets are in flight and which are sent next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Accounting {
    /// The cumulative acknowledgement alone: no octet is SACKed, and no repair by SACK is under way.
    Cumulative,
    /// RFC 6675: SACKed octets are counted.
    Scoreboard(Box<Scoreboard>),
    /// RFC 8985: the state of each transmission.
    Transmissions,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Flight {
    una: u64,
    max: u64,
    /// Next octet to send; below `max` while a sender without SACK goes back.
    nxt: u64,
    /// Start of the last segment with data that was sent for the first time; only with Linux's retransmission timer.
    last_start: u64,
    /// When data were last sent.
    last_sent: Instant,
    /// The times at which octets were acknowledged, less those of their first transmissions, in microseconds; wraps.
    held_us: u64,
    /// Stays empty unless Linux's retransmission timer or RACK is in use.
    transmissions: Transmissions,
    accounting: Accounting,
}

fn us(at: Instant) -> u64 {
    at.since(Instant::ZERO).as_us()
}

impl Flight {
    /// The SYN is acknowledged, and no data are sent.
    pub(crate) fn new() -> Self {
        Self {
            una: 1,
            max: 1,
            nxt: 1,
            last_start: 1,
            last_sent: Instant::ZERO,
            held_us: 0,
            transmissions: Transmissions::default(),
            accounting: Accounting::Cumulative,
        }
    }

    #[inline]
    pub(crate) fn una(&self) -> u64 {
        self.una
    }

    #[inline]
    pub(crate) fn max(&self) -> u64 {
        self.max
    }

    #[inline]
    pub(crate) fn nxt(&self) -> u64 {
        self.nxt
    }

    /// Start of the last segment with data, for a tail loss probe.
    pub(crate) fn last_start(&self) -> u64 {
        self.last_start
    }

    /// A segment with data that begins at `start` is sent for the first time.
    #[inline]
    pub(crate) fn set_last_start(&mut self, start: u64) {
        self.last_start = start;
    }

    #[inline]
    pub(crate) fn last_sent(&self) -> Instant {
        self.last_sent
    }

    #[inline]
    pub(crate) fn outstanding(&self) -> Outstanding {
        Outstanding { una: self.una, max: self.max }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.una == self.max
    }

    /// Octets sent and not acknowledged.
    #[inline]
    pub(crate) fn size(&self) -> u64 {
        self.max - self.una
    }

    /// Octets that the network holds by this sender's estimate: the pipe of RFC 6675 or RFC 8985 with SACK,
    /// else those sent from `una`, or since the sender went back there.
    #[inline]
    pub(crate) fn in_network(&self) -> u64 {
        match &self.accounting {
            Accounting::Scoreboard(board) => board.pipe(self.una, self.max),
            // Without RACK the record counts no octet as SACKed or lost.
            _ => {
                let held = u64::from(self.transmissions.sacked()) + u64::from(self.transmissions.lost());
                self.nxt - self.una - held
            }
        }
    }

    /// Octets that the receiver is known to hold since the connection began.
    pub(crate) fn delivered(&self) -> u64 {
        let sacked = self.board().map_or(self.transmissions.sacked(), Scoreboard::sacked);
        self.una + u64::from(sacked)
    }

    /// The next octet to send is `nxt`.
    #[inline]
    pub(crate) fn set_nxt(&mut self, nxt: u64) {
        self.nxt = nxt;
    }

    /// A segment that ends at `nxt` or below was sent.
    #[inline]
    pub(crate) fn on_sent(&mut self, now: Instant) {
        self.reach(now, self.nxt);
        self.last_sent = now;
    }

    /// The cumulative acknowledgement advances to `ack`. Returns its value before.
    #[inline]
    pub(crate) fn advance(&mut self, now: Instant, ack: u64) -> u64 {
        self.nxt = self.nxt.max(ack);
        self.reach(now, ack);
        self.held_us = self.held_us.wrapping_add((ack - self.una).wrapping_mul(us(now)));
        core::mem::replace(&mut self.una, ack)
    }

    /// Octets below `end` are sent for the first time, unless they were before.
    #[inline]
    fn reach(&mut self, now: Instant, end: u64) {
        if end > self.max {
            self.held_us = self.held_us.wrapping_sub((end - self.max).wrapping_mul(us(now)));
            self.max = end;
        }
    }

    /// The time that octets have spent in flight until now, summed in microseconds; wraps.
    pub(crate) fn in_flight_us(&self, now: Instant) -> u64 {
        self.held_us.wrapping_add(self.size().wrapping_mul(us(now)))
    }

    /// All octets in flight are to be sent once more, from `una` on.
    pub(crate) fn go_back(&mut self) {
        self.nxt = self.una;
    }

    /// New data are next.
    pub(crate) fn go_on(&mut self) {
        self.nxt = self.max;
    }

    #[inline]
    pub(crate) fn transmissions(&self) -> &Transmissions {
        &self.transmissions
    }

    #[inline]
    pub(crate) fn transmissions_mut(&mut self) -> &mut Transmissions {
        &mut self.transmissions
    }

    #[inline]
    pub(crate) fn accounting(&self) -> &Accounting {
        &self.accounting
    }

    /// SACKed octets or a repair by SACK decide what is sent.
    #[inline]
    pub(crate) fn uses_sack(&self) -> bool {
        self.accounting != Accounting::Cumulative
    }

    /// The state of each transmission decides from now on. Returns whether it did not before.
    pub(crate) fn begin_by_transmissions(&mut self) -> bool {
        let begins = !self.uses_sack();
        self.accounting = Accounting::Transmissions;
        begins
    }

    /// The scoreboard decides from now on.
    pub(crate) fn begin_scoreboard(&mut self) -> &mut Scoreboard {
        if self.board().is_none() {
            self.accounting = Accounting::Scoreboard(Box::new(Scoreboard::new(self.una)));
        }
        let Accounting::Scoreboard(board) = &mut self.accounting else { unreachable!("it has just been made") };
        board
    }

    #[inline]
    pub(crate) fn board(&self) -> Option<&Scoreboard> {
        if let Accounting::Scoreboard(board) = &self.accounting { Some(board) } else { None }
    }

    #[inline]
    pub(crate) fn board_mut(&mut self) -> Option<&mut Scoreboard> {
        if let Accounting::Scoreboard(board) = &mut self.accounting { Some(board) } else { None }
    }

    /// No repair is under way: an empty scoreboard is dropped.
    pub(crate) fn settle_board(&mut self, mss: u32) {
        let una = self.una;
        let Some(board) = self.board_mut() else { return };
        board.forget_retransmissions(una);
        board.update(una, mss);
        if board.is_empty() {
            self.accounting = Accounting::Cumulative;
        }
    }

    /// `busy`: a repair or a probe is under way. Without one, the cumulative acknowledgement decides once
    /// no octet in flight is SACKed, lost or retransmitted.
    pub(crate) fn settle_transmissions(&mut self, busy: bool) {
        let records = &self.transmissions;
        let dirty = records.retransmitted() > self.una || records.sacked() > 0 || records.lost() > 0;
        self.accounting = if busy || dirty { Accounting::Transmissions } else { Accounting::Cumulative };
    }

    /// The first lost octets by the record of transmissions, at most `mss`.
    pub(crate) fn first_lost(&self, mss: u32) -> Option<Range> {
        self.transmissions.first_lost(self.una, mss)
    }
}

#[cfg(test)]
mod tests {
    use lastmile_units::Duration;

    use super::*;
    use crate::RoundTrips;

    fn at_ms(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_ms(ms)
    }

    /// 100 octets for 30 ms, 50 of them sent twice, and 100 for 10 ms so far: 4 s of octets. Of two octets in flight at
    /// an end one counts: 100 and a half of 100.
    #[test]
    fn octets_are_in_flight_from_their_first_transmission_on() {
        let mut flight = Flight::new();
        let send = |flight: &mut Flight, ms, end| {
            flight.set_nxt(end);
            flight.on_sent(at_ms(ms));
        };
        send(&mut flight, 1_000, 101);
        let before = RoundTrips { in_flight_us: flight.in_flight_us(at_ms(1_000)), ..RoundTrips::default() };
        flight.go_back();
        send(&mut flight, 1_020, 51);
        flight.go_on();
        send(&mut flight, 1_030, 201);
        assert_eq!(flight.advance(at_ms(1_030), 101), 1);
        let after = RoundTrips {
            sent: 200,
            acknowledged: 100,
            measured_us: 0,
            in_flight_us: flight.in_flight_us(at_ms(1_040)),
        };
        let grown = after.since(before);
        assert_eq!(grown.in_flight_us, 100 * 30_000 + 100 * 10_000);
        assert_eq!(grown.in_flight_s(), Some(4.0 / 150.0));
        assert_eq!(grown.measured_s(), None);
        let measured = RoundTrips { measured_us: 3_000_000, ..grown };
        assert_eq!(measured.measured_s(), Some(0.03));
        assert_eq!(measured.plus(measured).in_flight_s(), Some(4.0 / 150.0));
        assert_eq!(RoundTrips::default().in_flight_s(), None);
    }
}

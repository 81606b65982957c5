//! The end of a repair that its sender takes back as needless.
//!
//! A sender learns that nothing was lost in three ways, and ends its repair at once: an echo from before its
//! first retransmission (Eifel: RFC 3522, RFC 4015), reports of every octet that it retransmitted in this repair
//! (DSACK: RFC 3708), and after a timeout, while it has retransmitted the first segment alone, an acknowledgement of
//! octets that were sent once (F-RTO with SACK: RFC 5682, section 3). As in Linux, a timeout in a fast recovery has no
//! F-RTO, and where retransmissions of an earlier repair are in flight, the first of them is the one to compare with.
//! The next retransmission begins another repair.

use crate::timestamps;
use lastmile_packet::Meta;
use lastmile_units::Instant;

/// What an ACK covers for the first time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Covered {
    /// It is above the highest earlier one.
    pub(super) advanced: bool,
    /// Its SACK blocks report new octets.
    pub(super) sacked: bool,
    /// It covers octets that were sent once, before the repair began.
    pub(super) original: bool,
    /// The transmission of the newest segment that its SACK blocks report for the first time, of those that were sent
    /// once.
    pub(super) newest: Option<Instant>,
}

/// The evidence by which the sender undoes this repair.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Undo {
    /// The timestamp of the first retransmission in flight, if any is.
    first: Option<u32>,
    /// One past the highest octet that was retransmitted.
    retransmitted_to: i64,
    /// Octets that were retransmitted in this repair and that no DSACK has reported; `None` before the first.
    unreported: Option<i64>,
    /// The first octet in flight when the repair began: reports below it are of an earlier one.
    from: i64,
    /// True while F-RTO waits for an answer.
    pub(super) waits: bool,
}

impl Undo {
    /// A repair begins with the octets from `una` on in flight. `waits`: F-RTO does.
    pub(super) fn begin(&mut self, una: i64, waits: bool) {
        *self = Self { unreported: None, from: una, waits, ..*self };
    }

    /// `start..end` is retransmitted while the octets from `una` on are in flight.
    pub(super) fn note(&mut self, (start, end): (i64, i64), una: i64, timestamp: Option<u32>) {
        if self.retransmitted_to <= una {
            self.first = timestamp;
        }
        self.retransmitted_to = self.retransmitted_to.max(end);
        self.unreported = Some(self.unreported.unwrap_or(0) + end - start);
    }

    /// F-RTO is over: more than the first segment is retransmitted.
    pub(super) fn goes_on(&mut self) {
        self.waits = false;
    }

    /// A DSACK reports `left..right`.
    pub(super) fn report(&mut self, left: i64, right: i64) {
        if left >= self.from {
            self.unreported = self.unreported.map(|octets| (octets - (right - left)).max(0));
        }
    }

    /// `heeds`: the sender uses SACK.
    pub(super) fn is_needless(&self, covered: Covered, packet: &Meta, heeds: bool) -> bool {
        let echo = timestamps::echo(packet);
        let is_earlier = echo.zip(self.first).is_some_and(|(echo, first)| timestamps::is_before(echo, first));
        (covered.advanced && is_earlier) || (heeds && self.unreported == Some(0)) || (self.waits && covered.original)
    }
}

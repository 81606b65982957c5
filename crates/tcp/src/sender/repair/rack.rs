//! RACK: losses found by time. A delivered segment shows when earlier ones should have arrived.
//!
//! Published: RFC 8985, section 6; defaults and open choices as in Linux (`tcp_recovery` = 1).
//!
//! A segment is lost if a later transmission was delivered and the segment has been in flight for longer
//! than that one's round trip and a reordering window. Retransmissions are judged likewise, so the loss of
//! a repair is found a round trip later and not by the timer. The window is zero once three segments are
//! SACKed or a repair is under way. Where reordering was seen it is a quarter of the least round trip. Each
//! round trip that reports a duplicate (DSACK) adds a quarter, up to the smoothed round trip, until sixteen
//! repairs passed without one.
//!
//! Differs: delivered segments are processed in the order of the stream, those below the acknowledgement
//! number before SACKed ones, and the last one sets the round trip (RFC 8985: in the order of transmission).
//! So where the first segment may have been answered twice, the next one, which was sent once, shows that the
//! others are not late: as in Linux. Where an ACK delivers the segment before a hole and a later one behind
//! it, the later one sets the round trip, as in the RFC. Linux takes the earlier one (`tcp_ack` in tcp_input.c
//! processes SACKs first), and waits for up to a reordering window more. Segments sent
//! within one microsecond are ordered by their position in the stream. The least round trip is that of the
//! connection (Linux: of five minutes). At a timeout without earlier SACKs, RACK.rtt is the smoothed round
//! trip. RACK needs SACK and the times of transmission, which only Linux's timer records; without them
//! losses are found by counting (RFC 6675).
//! Cost: nothing while no octet is SACKed; then a visit to each record of transmissions before the newest
//! delivered one.

use std::num::NonZeroU64;

use lastmile_units::Instant;

use crate::ranges::Range;
use crate::sender::flight::{DUP_THRESH, LossBounds, Transmission};

/// RFC 8985, section 6.2, step 4: repairs without a DSACK that end its effect (Linux: `TCP_RACK_RECOVERY_THRESH`).
const PERSIST: u8 = 16;

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Rack {
    newest: Option<Newest>,
    /// One past the highest octet that was delivered (RACK.fack).
    highest: u64,
    /// RACK.reordering_seen.
    reordering: bool,
    /// The highest octet in flight at the DSACK that last widened the window, until it is acknowledged
    /// (RACK.dsack_round).
    dsack_round: Option<NonZeroU64>,
    /// Quarters of the least round trip beyond the first (RACK.reo_wnd_mult - 1).
    wider: u8,
    /// RACK.reo_wnd_persist.
    persist: u8,
    /// A delivery counted since losses were last looked for.
    advanced: bool,
}

/// The most recent transmission that was delivered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Newest {
    /// RACK.xmit_ts.
    sent: Transmission,
    /// One past its last octet (RACK.end_seq).
    end: u64,
    /// The round trip of the last delivery, in microseconds (RACK.rtt).
    rtt_us: u32,
}

/// The inputs of the reordering window (RFC 8985, section 6.2, step 4).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reordering {
    /// A repair is under way.
    pub(crate) repairing: bool,
    /// SACKed octets.
    pub(crate) sacked: u32,
    pub(crate) mss: u32,
    pub(crate) srtt_us: u64,
    pub(crate) least_rtt_us: u32,
}

impl Rack {
    /// Octets are SACKed or retransmitted after a time without: all below `una` is acknowledged.
    pub(crate) fn begin(&mut self, una: u64) {
        self.newest = None;
        self.highest = una;
        self.advanced = false;
    }

    /// One past the highest octet that was delivered.
    pub(crate) fn highest(&self) -> u64 {
        self.highest
    }

    /// RFC 8985, section 6.2, steps 1 to 3, for a part that is newly delivered. `highest`: before this
    /// acknowledgement. `is_earlier`: by the timestamp echo, an earlier transmission of the part was delivered.
    /// Returns the age of the part in microseconds.
    pub(crate) fn on_delivered(
        &mut self,
        now: Instant,
        range: Range,
        sent: Transmission,
        least_rtt_us: Option<u32>,
        highest: u64,
        is_earlier: bool,
    ) -> u32 {
        let age = sent.age_us(now);
        if range.start < highest {
            self.reordering |= !sent.retransmitted;
        } else {
            self.highest = self.highest.max(range.end);
        }
        // Step 2: within less than a round trip, the first transmission was delivered.
        if sent.retransmitted && (is_earlier || least_rtt_us.is_none_or(|least| age < least)) {
            return age;
        }
        self.advanced = true;
        let this = Newest { sent, end: range.end, rtt_us: age };
        let newest = self.newest.get_or_insert(this);
        newest.rtt_us = age;
        let lag = newest.sent.age_us(now);
        if age < lag || (age == lag && newest.end < range.end) {
            *newest = this;
        }
        age
    }

    /// A delivery counts that losses were not looked for after.
    pub(crate) fn take_advanced(&mut self) -> bool {
        core::mem::take(&mut self.advanced)
    }

    /// All octets below `una` are acknowledged: a DSACK may widen the window once more after the last round.
    pub(crate) fn expire_dsack_round(&mut self, una: u64) {
        self.dsack_round = self.dsack_round.filter(|round| round.get() > una);
    }

    /// RFC 8985, section 6.2, step 4: a duplicate is reported with octets up to `max` in flight.
    pub(crate) fn on_dsack(&mut self, max: u64) {
        if self.reordering && self.dsack_round.is_none() {
            self.dsack_round = NonZeroU64::new(max);
            self.wider = self.wider.saturating_add(1);
            self.persist = PERSIST;
        }
    }

    pub(crate) fn on_repair_end(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.wider = 0;
        }
    }

    /// RFC 8985, section 6.2, step 4, in microseconds.
    fn reordering_window_us(&self, inputs: Reordering) -> u32 {
        let enough = (u32::from(DUP_THRESH) - 1) * inputs.mss;
        if !self.reordering && (inputs.repairing || inputs.sacked > enough) {
            return 0;
        }
        let quarter = u64::from(inputs.least_rtt_us / 4);
        (quarter * (u64::from(self.wider) + 1)).min(inputs.srtt_us) as u32
    }

    /// The criterion for a loss, once a segment was delivered.
    pub(crate) fn loss_bounds(&self, inputs: Reordering) -> Option<LossBounds> {
        let Newest { sent, end, rtt_us } = self.newest?;
        let due_us = rtt_us.saturating_add(self.reordering_window_us(inputs));
        Some(LossBounds { newest: sent, newest_end: end, due_us })
    }

    /// RACK.rtt, in microseconds.
    pub(crate) fn rtt_us(&self) -> Option<u32> {
        self.newest.map(|newest| newest.rtt_us)
    }
}

//! Repairs that the sender takes back: when it may, and their end.

use lastmile_packet::Meta;
use lastmile_units::Instant;

use super::Half;
use super::state::Phase;
use super::undo::Covered;

impl Half {
    /// Records the evidence that would end the repair that begins: by a timeout (`Loss`) or by a fast retransmit.
    pub(super) fn begin_undo(&mut self, begins: Phase) {
        let una = self.stream.una;
        match begins {
            Phase::Loss if self.recovery.phase == Phase::Fast => self.recovery.undo.waits = false,
            // The timer expired once more for the same octets.
            Phase::Loss if self.recovery.in_a_row > 1 => self.recovery.undo.waits = self.sack.heeded,
            // After evidence of a loss the sender was in a recovery. Its packets may have been lost before the capture.
            Phase::Loss => {
                let is_hidden = self.out.repeats.lost_before_capture > 0 && self.recovery.evidence.is_some();
                let waits = self.sack.heeded && !is_hidden;
                self.recovery.undo.begin(una, waits);
            }
            Phase::Fast | Phase::Open => self.recovery.undo.begin(una, false),
        }
    }

    /// Records that the sender uses SACK. Retransmissions that counted as fast ones, as of a sender without SACK, then
    /// count as parts of recoveries.
    pub(super) fn heed(&mut self) {
        self.sack.heeded = true;
        for at in self.recovery.habits.as_reno.take() {
            self.out.repeats.fast -= 1;
            self.out.repeats.in_recovery += 1;
            self.out.events.fast_retransmits_at.retain(|other| *other != at);
        }
    }

    /// Ends the repair if an ACK shows its sender that it was needless.
    pub(super) fn undo(&mut self, now: Instant, covered: Covered, packet: &Meta) {
        if self.recovery.phase == Phase::Open {
            return;
        }
        let undo = &mut self.recovery.undo;
        if undo.is_needless(covered, packet, self.sack.heeded) {
            undo.begin(self.stream.una, false);
            (self.recovery.phase, self.recovery.departed) = (Phase::Open, 0);
            self.recovery.past.ended = Some(now);
            self.congestion.undone();
            self.sent.restore(self.stream.una, self.stream.next);
        } else if covered.sacked && self.stream.next > self.recovery.until {
            // RFC 5682, section 3.1, step 3a: of the new data alone, so the loss was real.
            undo.goes_on();
        }
    }
}

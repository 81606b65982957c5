//! Taking back a repair that proves needless: the segments had only been late.
//!
//! Published: RFC 3522 and RFC 4015 (Eifel: an echo older than the first retransmission acknowledges the original), RFC
//! 3708 (every octet sent again is reported as a duplicate by DSACK), RFC 5682, section 3 (F-RTO with SACK); together
//! as in P. Sarolahti and A. Kuznetsov, "Congestion Control in Linux TCP", USENIX 2002, section 5.
//! Window and threshold are kept when a repair begins. If one of the three says that nothing was lost they are as
//! before, or as they are now if that is more; what was taken for lost is in flight again.
//!
//! After a timeout F-RTO sends the first segment again and waits. If then octets are acknowledged or SACKed that were
//! sent once and before, the timeout was needless. If only what was sent again is, new data go out instead of the next
//! repair, and the next acknowledgement decides: SACK blocks of the new data alone mean a loss.
//! Differs: as in Linux, one acknowledgement of what was sent once is enough for F-RTO (the RFC asks for two in its step
//! 2b), timeouts that interrupt a fast recovery have no F-RTO, and reports of duplicates count until a window after the
//! repair. F-RTO needs SACK; without it (NewReno) Eifel alone decides. Tahoe and Reno, of an earlier time, take nothing
//! back. As in Linux, CUBIC begins a new curve at the window that it has again; RFC 9438, section 4.9, would go on with the
//! old one. Unlike in Linux no reordering is learned from it.
//! Cost: a null test for each acknowledgement; 24 bytes from the beginning of a repair to a window after its end.

use core::num::NonZeroU32;

use lastmile_packet::{Meta, SeqNumber};
use lastmile_units::Instant;

use crate::Config;
use crate::congestion::Style;
use crate::ranges::Low;
use crate::recovery::News;
use crate::sender::{Phase, Sender, Stage, Urgent};

/// What is needed to take a repair back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Undo {
    /// Before the repair.
    cwnd: u32,
    /// Never zero: that stands for no repair.
    ssthresh: NonZeroU32,
    /// Octets sent again that are not reported as duplicates.
    unreported: u32,
    /// The first that is not acknowledged when the repair began: reports below it are of an earlier one.
    from: Low,
    /// One past the highest octet sent when the repair ended.
    until: Low,
    /// The timestamp of the first retransmission; zero before it.
    first_again: u32,
}

/// What an acknowledgement is judged by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Evidence<'a> {
    pub(crate) segment: &'a Meta,
    /// It acknowledges new data.
    pub(crate) advanced: bool,
    pub(crate) news: News,
    /// Octets that the timeout took for lost and that were not sent again, before this acknowledgement.
    pub(crate) untouched: u32,
}

impl Undo {
    /// The repair has come to its end with octets up to `max` sent.
    pub(crate) fn on_end(&mut self, max: u64) {
        self.until = Low::of(max);
    }

    /// All that was sent again has arrived twice.
    fn is_reported(&self) -> bool {
        self.first_again != 0 && self.unreported == 0
    }

    /// RFC 3522, section 3.2, step 4: the echo is from before the first retransmission.
    fn is_answered_by_original(&self, segment: &Meta) -> bool {
        let Some((_, echo)) = segment.options().timestamps() else { return false };
        self.first_again != 0 && echo.wrapping_sub(self.first_again).cast_signed() < 0
    }
}

impl Sender {
    /// A repair begins, and is about to reduce the window.
    #[cold]
    pub(crate) fn keep_for_undo(&mut self, config: &Config) {
        if !config.undo || !matches!(self.style, Style::NewReno | Style::Sack | Style::Rack) {
            return;
        }
        self.repair.set_undo(Undo {
            cwnd: self.congestion.cwnd(),
            ssthresh: NonZeroU32::new(self.congestion.ssthresh()).unwrap_or(NonZeroU32::MIN),
            unreported: 0,
            from: Low::of(self.una),
            until: Low::of(self.max),
            first_again: 0,
        });
    }

    /// The timer expired; `recovering`: in the midst of a fast recovery.
    #[cold]
    pub(crate) fn start_frto(&mut self, config: &Config, recovering: bool) {
        let starts = config.frto && self.style.is_sack() && self.repair.undo().is_some() && !recovering;
        self.stage = if starts { Stage::FirstAnswer } else { Stage::Begun };
    }

    /// `len` octets go out again.
    pub(crate) fn count_again(&mut self, now: Instant, config: &Config, len: u32) {
        if let Some(undo) = self.repair.undo_mut() {
            undo.unreported = undo.unreported.saturating_add(len);
            if undo.first_again == 0 {
                undo.first_again = config.timestamp(now).max(1);
            }
        }
    }

    /// RFC 2883, section 4: the first block reports a duplicate if it lies at or below the cumulative acknowledgement or
    /// within the second. RFC 3708, section 2: it is taken off what was sent again.
    #[cold]
    pub(crate) fn note_duplicate(&mut self, segment: &Meta) {
        let una = self.una;
        let Some((left, right)) = self.reported_duplicate(segment) else { return };
        let Some(undo) = self.repair.undo_mut() else { return };
        if left >= undo.from.ahead_of(una) {
            undo.unreported = undo.unreported.saturating_sub((right - left) as u32);
        }
    }

    /// The duplicate that a segment reports, by how far its edges lie ahead of the cumulative acknowledgement.
    pub(crate) fn reported_duplicate(&self, segment: &Meta) -> Option<(i64, i64)> {
        let wire = self.wire(self.una);
        let options = segment.options();
        let mut blocks = options.sack_blocks();
        let first = blocks.next()?;
        let ahead = |edge: SeqNumber| i64::from(edge.distance_from(wire).cast_signed());
        let (left, right) = (ahead(first.left), ahead(first.right));
        let within = blocks.next().is_some_and(|second| ahead(second.left) <= left && right <= ahead(second.right));
        (left < right && (right <= 0 || within)).then_some((left, right))
    }

    /// Octets that a timeout took for lost and that were not sent again, as long as F-RTO asks.
    #[inline]
    pub(crate) fn untouched(&self) -> u32 {
        match self.aside.board() {
            Some(board) if matches!(self.stage, Stage::FirstAnswer | Stage::SecondAnswer) => board.untouched(),
            _ => 0,
        }
    }

    /// Looks whether an acknowledgement tells that the repair was needless.
    #[cold]
    pub(crate) fn judge(&mut self, evidence: Evidence<'_>) {
        let untouched = self.untouched();
        let Some(undo) = self.repair.undo_mut() else { return };
        if undo.is_reported()
            || (evidence.advanced && undo.is_answered_by_original(evidence.segment))
            || (evidence.news.original && matches!(self.stage, Stage::FirstAnswer | Stage::SecondAnswer))
            || untouched < evidence.untouched
        {
            self.take_back();
        } else if self.phase == Phase::Open {
            if undo.until.ahead_of(self.una) < 0 {
                self.repair.take_undo();
            }
        } else if self.stage == Stage::FirstAnswer && evidence.advanced {
            self.stage = Stage::SecondAnswer;
        } else if self.stage == Stage::SecondAnswer && evidence.news.any {
            self.stage = Stage::Begun;
        }
    }

    fn take_back(&mut self) {
        let Some(undo) = self.repair.take_undo() else { return };
        self.congestion.restore(undo.cwnd, undo.ssthresh.get());
        self.stage = Stage::Begun;
        if self.phase == Phase::Open {
            return;
        }
        self.phase = Phase::Open;
        self.urgent = Urgent::Nothing;
        self.backoff = 0;
        self.dup_acks = 0;
        self.nxt = Low::of(self.max);
        // The next loss is repaired at once.
        self.recover = Low::of(self.una - 1);
        if let Some(board) = self.aside.board_mut() {
            board.forget_timeout(self.una);
        }
        self.forgive();
        self.settle_board();
    }
}

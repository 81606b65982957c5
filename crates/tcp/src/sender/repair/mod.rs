//! The repair of losses: its phase, and the state of each algorithm that takes part in it.
//!
//! Published: RFC 5681, section 3.2; RFC 6582 (NewReno); RFC 6675, section 5 (SACK); RFC 5682 (F-RTO). The
//! files of this folder name the others.
//! Differs: in Reno and Tahoe duplicate acknowledgements start no fast retransmit before all octets that
//! were in flight at a timeout (in Tahoe: at a loss) are acknowledged, since going back causes them. RFC
//! 6582 asks this of NewReno.
//! Cost: a few comparisons for each acknowledgement.

mod prr;
mod rack;
mod style;
mod tail_loss_probe;
mod undo;

use super::flight::DUP_THRESH;
pub(crate) use prr::{Progress, Prr, Step};
pub(crate) use rack::{Rack, Reordering};
pub(crate) use style::Style;
pub(crate) use tail_loss_probe::{ProbeAnswer, TailProbe};
pub(crate) use undo::{Duplicate, Evidence, Undo};

/// The phase of a sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    /// Slow start or congestion avoidance; duplicate acknowledgements may have arrived.
    Open,
    /// Fast recovery. `partial`: NewReno's first partial acknowledgement has arrived.
    Recovery { partial: bool },
    /// Retransmission of the octets that were in flight at a timeout or, in Tahoe, at a fast retransmit.
    Loss { frto: Option<Frto> },
}

/// The state of F-RTO after a timeout (RFC 5682).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Frto {
    /// The first retransmission is unanswered.
    First,
    /// The first retransmission is answered. New data are sent, and the answer to them decides.
    Second,
}

/// The answer to a duplicate acknowledgement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OnDuplicate {
    Nothing,
    /// The window is inflated by a segment (RFC 5681, section 3.2, step 4).
    Inflate,
    FastRetransmit,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Repair {
    style: Style,
    phase: Phase,
    /// Duplicate acknowledgements in a row.
    dup_acks: u8,
    /// Octets sent by limited transmit: not part of FlightSize when a loss is found (RFC 5681, section 3.2, step 2).
    limited_sent: u32,
    /// One past the highest octet sent when the current or last repair began.
    recover: u64,
    pub(super) rack: Rack,
    /// The tail loss probe in flight.
    pub(super) probe: Option<TailProbe>,
    pub(super) prr: Option<Box<Prr>>,
    /// The state from which the current or last repair can be undone.
    pub(super) undo: Option<Box<Undo>>,
    /// The timestamp of the first retransmission in flight; it holds until none is (Linux: `retrans_stamp`).
    first_retransmission: Option<u32>,
    /// Segments that DSACKs have reported (Linux: `dsack_dups`).
    reported: u32,
}

impl Repair {
    pub(crate) fn new(style: Style) -> Self {
        Self {
            style,
            phase: Phase::Open,
            dup_acks: 0,
            limited_sent: 0,
            recover: 0,
            rack: Rack::default(),
            probe: None,
            prr: None,
            undo: None,
            first_retransmission: None,
            reported: 0,
        }
    }

    #[inline]
    pub(crate) fn style(&self) -> Style {
        self.style
    }

    #[inline]
    pub(crate) fn phase(&self) -> Phase {
        self.phase
    }

    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.phase == Phase::Open
    }

    #[inline]
    pub(crate) fn in_recovery(&self) -> bool {
        matches!(self.phase, Phase::Recovery { .. })
    }

    #[inline]
    pub(crate) fn in_loss(&self) -> bool {
        matches!(self.phase, Phase::Loss { .. })
    }

    #[inline]
    pub(crate) fn frto(&self) -> Option<Frto> {
        if let Phase::Loss { frto } = self.phase { frto } else { None }
    }

    /// Losses are found by time (RFC 8985).
    #[inline]
    pub(crate) fn is_rack(&self) -> bool {
        self.style == Style::Rack
    }

    #[inline]
    pub(crate) fn recover(&self) -> u64 {
        self.recover
    }

    /// All octets that were in flight when the repair began are acknowledged.
    #[inline]
    pub(crate) fn is_covered(&self, una: u64) -> bool {
        self.recover <= una
    }

    #[inline]
    pub(crate) fn dup_acks(&self) -> u8 {
        self.dup_acks
    }

    /// FlightSize of RFC 5681, for the threshold after a loss.
    pub(crate) fn flight_size(&self, outstanding: u64) -> u32 {
        u32::try_from(outstanding).unwrap_or(u32::MAX).saturating_sub(self.limited_sent)
    }

    /// Limited transmit: `len` octets of new data were sent while duplicate acknowledgements arrive.
    #[inline]
    pub(crate) fn on_new_data(&mut self, len: u64) {
        if self.dup_acks > 0 {
            self.limited_sent = self.limited_sent.saturating_add(len as u32);
        }
    }

    /// New data are acknowledged.
    #[inline]
    pub(crate) fn end_duplicates(&mut self) {
        (self.dup_acks, self.limited_sent) = (0, 0);
    }

    /// A duplicate acknowledgement arrived. `first_is_lost`: by the scoreboard, the segment at `una` is lost.
    pub(crate) fn on_duplicate(&mut self, una: u64, first_is_lost: bool) -> OnDuplicate {
        self.dup_acks = self.dup_acks.saturating_add(1);
        let retransmits = match (self.phase, self.style) {
            (Phase::Recovery { .. }, Style::Reno | Style::NewReno) => return OnDuplicate::Inflate,
            (Phase::Recovery { .. } | Phase::Loss { .. }, _) | (_, Style::Rack) => false,
            // RFC 6675, section 5, steps 1 and 2; section 5.1: not before HighACK reaches the recovery point.
            (Phase::Open, Style::Sack) => (self.dup_acks >= DUP_THRESH || first_is_lost) && self.recover <= una,
            // RFC 6582, section 3.2, step 2: the acknowledgement covers more than `recover`.
            (Phase::Open, _) => self.dup_acks == DUP_THRESH && self.recover < una,
        };
        if retransmits { OnDuplicate::FastRetransmit } else { OnDuplicate::Nothing }
    }

    /// `len` octets are retransmitted at the time `timestamp`. `alone`: no earlier retransmission is in flight.
    pub(crate) fn on_retransmission(&mut self, len: u32, timestamp: u32, alone: bool) {
        if let Some(undo) = &mut self.undo {
            undo.on_retransmission(len, timestamp);
        }
        if alone || self.first_retransmission.is_none() {
            self.first_retransmission = Some(timestamp);
        }
    }

    /// The timestamp of the first retransmission, of which one is in flight.
    pub(crate) fn first_retransmission(&self) -> Option<u32> {
        self.first_retransmission
    }

    /// Counts a duplicate that a DSACK reports, and returns whether it may be a retransmission.
    ///
    /// False: more segments have been reported than were retransmitted, so the network duplicates (RFC 3708, section
    /// 3), and the report is of no use (Linux: `tcp_dsack_seen`).
    pub(crate) fn note_report(&mut self, duplicate: &Duplicate, mss: u16, retransmissions: u32) -> bool {
        let octets = (duplicate.right - duplicate.left).cast_unsigned();
        self.reported = self.reported.saturating_add(octets.div_ceil(u64::from(mss).max(1)) as u32);
        self.reported <= retransmissions
    }

    /// Fast retransmit with octets up to `max` in flight.
    pub(crate) fn start_recovery(&mut self, max: u64) {
        self.probe = None;
        self.phase = match self.style {
            Style::Tahoe => Phase::Loss { frto: None },
            _ => Phase::Recovery { partial: false },
        };
        if self.style != Style::Reno {
            self.recover = max;
        }
    }

    /// NewReno: a partial acknowledgement arrived.
    pub(crate) fn on_partial_ack(&mut self) {
        self.phase = Phase::Recovery { partial: true };
    }

    /// The retransmission timer expired. RFC 6582, section 4.2, and RFC 6675, section 5.1: the recovery
    /// point moves to `max`, and recovery ends. `frto` is `RepairConfig::frto`.
    pub(crate) fn on_timeout(&mut self, max: u64, frto: bool) {
        let starts = frto && self.style.is_sack() && self.undo.is_some() && !self.in_recovery();
        self.phase = Phase::Loss { frto: starts.then_some(Frto::First) };
        self.recover = max;
        self.end_duplicates();
    }

    /// F-RTO has no new data to send, so the timeout counts as genuine (RFC 5682, section 2.1, step 2b).
    pub(crate) fn end_frto(&mut self) {
        if self.in_loss() {
            self.phase = Phase::Loss { frto: None };
        }
    }

    /// The repair is complete with octets up to `max` sent.
    pub(crate) fn end(&mut self, max: u64) {
        self.phase = Phase::Open;
        self.rack.on_repair_end();
        if let Some(undo) = &mut self.undo {
            undo.on_repair_end(max);
        }
    }

    /// Looks for evidence in an acknowledgement that the repair was needless, and returns the state before
    /// it if there is.
    pub(crate) fn judge(&mut self, una: u64, evidence: Evidence<'_>) -> Option<Box<Undo>> {
        let undo = self.undo.as_mut()?;
        let frto = if let Phase::Loss { frto } = self.phase { frto } else { None };
        if undo.is_disproved(&evidence, frto.is_some()) {
            return self.undo.take();
        }
        if self.phase == Phase::Open {
            if undo.has_expired(una) {
                self.undo = None;
            }
        } else if frto == Some(Frto::First) && evidence.advanced {
            self.phase = Phase::Loss { frto: Some(Frto::Second) };
        } else if frto == Some(Frto::Second) && evidence.sacked {
            self.phase = Phase::Loss { frto: None };
        }
        None
    }

    /// The repair was needless and ends at once. The next loss is repaired without delay.
    pub(crate) fn cancel(&mut self, una: u64) {
        self.phase = Phase::Open;
        self.recover = una - 1;
        self.dup_acks = 0;
    }

    /// The window before the repair applies once more, and no limited transmit counts.
    pub(crate) fn forget_limited_transmit(&mut self) {
        self.limited_sent = 0;
    }
}

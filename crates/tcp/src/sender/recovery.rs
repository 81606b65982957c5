//! The repair of losses: its start, its pace, its undoing and its end.
//!
//! Published: RFC 5681, section 3.2 (fast retransmit); RFC 8985, section 6.2, step 5; RFC 9937 (PRR); RFC
//! 3522, RFC 3708 and RFC 5682 (undo).
//! Differs: the timer restarts at a fast retransmit, as in BSD and Linux; the RFCs are silent.
//! Cost: nothing without losses.

use lastmile_units::{Duration, Instant};

use super::acknowledgement::Delivery;
use super::repair::{Progress, Prr, Reordering, Step, Style, Undo};
use super::{Alarm, Sender, Urgent};
use crate::Config;
use crate::config::Recovery;

impl Sender {
    /// RFC 8985, section 6.2, step 5, after `delivered` octets were newly delivered. True: octets are newly lost.
    #[cold]
    pub(super) fn find_losses(&mut self, now: Instant, config: &Config, delivered: u64) -> bool {
        let inputs = Reordering {
            repairing: !self.data.repair.is_open(),
            sacked: self.data.flight.transmissions().sacked(),
            mss: u32::from(self.mss),
            srtt_us: self.rtt.srtt_us(),
            least_rtt_us: self.rtt.least_us().unwrap_or(0),
        };
        let (mut newly_lost, mut repair_lost) = (false, false);
        let mut wait_us = None;
        if let Some(bounds) = self.data.repair.rack.loss_bounds(inputs) {
            let una = self.data.flight.una();
            let mut rate = self.data.rate.as_deref_mut();
            wait_us = self.data.flight.transmissions_mut().mark_lost(now, una, bounds, |range, sent| {
                if let Some(rate) = &mut rate {
                    rate.on_lost(range);
                }
                newly_lost = true;
                repair_lost |= sent.retransmitted;
            });
        }
        let lost = self.data.flight.transmissions().lost() > 0;
        // As in Linux, a repair after a timeout ends when one of its retransmissions is lost.
        if (self.data.repair.is_open() && lost) || (self.data.repair.in_loss() && repair_lost) {
            self.start_recovery(now, config, delivered);
        }
        if let Some(us) = wait_us {
            self.timers.start(Alarm::Reordering, config.timers.deadline(now, Duration::from_us(u64::from(us))));
        }
        newly_lost
    }

    /// Fast retransmit, at an acknowledgement that newly delivered `delivered` octets.
    #[cold]
    pub(super) fn start_recovery(&mut self, now: Instant, config: &Config, delivered: u64) {
        self.data.stats.fast_retransmits += 1;
        let (una, max, mss) = (self.data.flight.una(), self.data.flight.max(), u32::from(self.mss));
        let style = self.data.repair.style();
        let reduce = self.may_reduce(una);
        if reduce {
            self.keep_for_undo(config);
            self.data.ecn.on_reduction(max);
        }
        let flight = self.data.repair.flight_size(max - una);
        // Little is in flight in the repair after a timeout. And as in Linux: octets SACKed above a segment
        // that was lost several times are not in flight, so that more than the window may be outstanding
        // when the next repair begins.
        let flight = match style {
            Style::Rack => flight.min(self.data.congestion.cwnd()),
            _ if self.data.repair.in_loss() => flight.min(self.data.congestion.cwnd()),
            _ => flight,
        };
        self.data.congestion.on_fast_retransmit(config, style, flight, mss, reduce);
        if config.repair.recovery == Recovery::Prr && style.is_sack() && !self.data.congestion.is_model() {
            let before = self.progress();
            self.data.repair.prr = Some(Box::new(Prr::begin(max - una, before.delivered - una, delivered, before)));
        }
        self.data.repair.start_recovery(max);
        self.set_rto(now, config);
        if style == Style::Tahoe {
            self.data.flight.go_back();
            self.rtt.abandon_timed_segment();
        } else {
            self.data.urgent = Some(Urgent::First);
        }
    }

    /// The octets delivered and sent since the connection began.
    fn progress(&self) -> Progress {
        Progress {
            delivered: self.data.flight.delivered(),
            sent: self.data.flight.max() + self.data.stats.retransmitted_bytes,
        }
    }

    /// An acknowledgement arrived, or a timer revealed a loss: PRR sets the window.
    #[inline]
    pub(super) fn pace_recovery(&mut self, delivery: Delivery) {
        if self.data.repair.prr.is_some() {
            self.pace_by_prr(delivery);
        }
    }

    #[cold]
    fn pace_by_prr(&mut self, delivery: Delivery) {
        if !self.data.repair.in_recovery() {
            self.data.repair.prr = None;
        }
        let Some(prr) = self.data.repair.prr.as_deref().copied().filter(|_| delivery.octets > 0) else { return };
        let in_flight = self.in_flight();
        let allowed = prr.allows(
            self.progress(),
            Step {
                delivered: delivery.octets,
                in_flight,
                ssthresh: u64::from(self.data.congestion.ssthresh()),
                safe: delivery.advanced && !delivery.lost,
                mss: u64::from(self.mss),
            },
        );
        self.data.congestion.set_window(in_flight + allowed);
    }

    /// A repair is about to reduce the window.
    #[cold]
    pub(super) fn keep_for_undo(&mut self, config: &Config) {
        if config.repair.undo && matches!(self.data.repair.style(), Style::NewReno | Style::Sack | Style::Rack) {
            let windows = (self.data.congestion.cwnd(), self.data.congestion.ssthresh());
            let (una, max) = (self.data.flight.una(), self.data.flight.max());
            let in_flight = self.data.flight.transmissions().retransmitted() > una;
            let earlier = self.data.repair.first_retransmission().filter(|_| in_flight);
            self.data.repair.undo = Some(Box::new(Undo::new(windows, una, max, earlier)));
        }
    }

    /// While F-RTO waits, the octets that the timeout marked as lost on the scoreboard and that were not
    /// retransmitted.
    #[inline]
    pub(super) fn lost_by_timeout(&self) -> u32 {
        match self.data.flight.board() {
            Some(board) if self.data.repair.frto().is_some() => board.lost_not_retransmitted(),
            _ => 0,
        }
    }

    /// The repair was needless: window and threshold return to their values before it.
    #[cold]
    pub(super) fn undo_repair(&mut self, undo: Undo) {
        self.data.congestion.restore(undo.cwnd, undo.ssthresh);
        self.data.ecn.on_undo();
        self.data.repair.forget_limited_transmit();
        if self.data.repair.is_open() {
            return;
        }
        let una = self.data.flight.una();
        self.data.repair.cancel(una);
        self.data.urgent = None;
        self.timers.end_backoff();
        self.data.flight.go_on();
        if let Some(board) = self.data.flight.board_mut() {
            board.forget_timeout(una);
        }
        self.data.flight.transmissions_mut().clear_lost();
        self.data.flight.settle_board(u32::from(self.mss));
    }

    /// The repair is complete.
    pub(super) fn end_repair(&mut self) {
        self.data.repair.end(self.data.flight.max());
        self.data.flight.settle_board(u32::from(self.mss));
    }
}

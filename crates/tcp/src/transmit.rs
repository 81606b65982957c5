//! What goes out next: new data, what is lost, or what must go whatever the window says.
//!
//! Published: RFC 5681; RFC 3042 (limited transmit); RFC 6675, section 5 (SACK); RFC 9293, section 3.8.6.2.1 (silly windows).
//! Differs: no Nagle algorithm, so what the application offers goes out at once. After a timeout without SACK, and in Tahoe, the
//! sender goes back to the hole and sends all from there.
//! Cost: on the path without loss a dozen comparisons and additions for each segment.

use lastmile_units::{Duration, Instant};

use crate::congestion::Style;
use crate::ranges::{Low, Range};
use crate::sender::{Alarm, Phase, Sender, Stage, Urgent};
use crate::timer::Timer;
use crate::{Config, Limit};

/// A segment to send: octets `start..end` of the stream, the FIN counted as one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Plan {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) again: bool,
    pub(crate) probe: bool,
}

impl Sender {
    /// The segment to send now, or what forbids it.
    #[inline]
    pub(crate) fn next(&mut self, now: Instant, config: &Config) -> Result<Plan, Limit> {
        if self.urgent != Urgent::Nothing
            && let Some(plan) = self.next_urgent(now, config)
        {
            return Ok(plan);
        }
        if self.una == self.max {
            self.after_idle(now, config);
        }
        let plan = match (self.sacking, self.style) {
            (false, _) => self.next_in_order(now, config),
            (true, Style::Rack) => self.next_by_rack(config),
            (true, _) => self.next_by_sack(config),
        };
        match plan {
            Ok(plan) => {
                self.note_sent(now, config, plan);
                Ok(plan)
            }
            Err(limit) => {
                if self.una == self.max && limit == Limit::ReceiveWindow && self.timer.is_off() {
                    // RFC 9293, section 3.8.6.1: the first probe after one retransmission timeout.
                    self.alarm = Alarm::Window;
                    self.timer = Timer::at(config.deadline(now, self.rtt.rto()));
                }
                Err(limit)
            }
        }
    }

    #[inline]
    fn next_in_order(&mut self, now: Instant, config: &Config) -> Result<Plan, Limit> {
        let start = self.nxt();
        let again = start < self.max;
        let last = if again { self.max.min(self.end) } else { self.end };
        let mut len = last.saturating_sub(start).min(u64::from(self.mss));
        if len == 0 {
            return self.next_fin();
        }
        let flight = start - self.una;
        let cwnd = self.usable_cwnd(config);
        // What was sent once was within the window then, and a receiver should not shrink it.
        let room = self.edge().max(self.max) - start;
        if flight + len > cwnd {
            return Err(self.shut_by_cwnd(cwnd, room < len));
        }
        if config.tso_deferral && !again && self.gathers(now, cwnd, flight) {
            return Err(Limit::CongestionWindow);
        }
        if room < len {
            // RFC 9293, section 3.8.6.2.1: less than a segment goes only if it is half of the largest window.
            if room == 0 || room < u64::from(self.window_max / 2) {
                return Err(Limit::ReceiveWindow);
            }
            len = room;
        }
        let end = start + len;
        // The FIN rides on the last data, whatever the window.
        let fin = end == self.end && self.closing && (!again || self.fin_sent());
        let end = end + u64::from(fin);
        self.nxt = Low::of(end);
        if self.dup_acks > 0 && !again {
            self.congestion.limited_sent = self.congestion.limited_sent.saturating_add(len as u32);
        }
        Ok(Plan { start, end, again, probe: false })
    }

    /// Waits for more of the window, to send about a millisecond's worth at once. Linux does so whatever offloads are set: it builds
    /// packets of that size for itself, and a device without segmentation gets them in pieces, back to back. Not for longer than 1 ms
    /// after the last packet, not for more than a third of the window, not if the application has offered less, and not if the next
    /// acknowledgement is expected later than in 1 ms (half of a round trip, if that is less). The acknowledgement is expected a
    /// smoothed round trip after the oldest segment in flight was sent (Linux 6.18, and stable kernels from October 2025 on; earlier
    /// kernels waited if that segment was older than half of the round trip).
    fn gathers(&self, now: Instant, cwnd: u64, flight: u64) -> bool {
        const RECENT: Duration = Duration::from_ms(1);
        let apart = now.since(self.last_sent);
        let usable = cwnd - flight;
        let building = apart.is_zero() && self.packet > 0;
        if building || apart > RECENT || usable >= cwnd / 3 || self.end - self.nxt() <= usable || usable >= self.burst()
        {
            return false;
        }
        let srtt = self.rtt.srtt().unwrap_or(Duration::ZERO);
        let soon = Duration::from_ps(srtt.as_ps() / 2).min(Duration::from_ms(1));
        !self.rtt.is_linux() || self.trips.sent().first_age(now) + soon >= srtt
    }

    /// What Linux builds one packet of for itself: octets in 2^-10 s at the rate of the window and a fifth more (twice that in the first half
    /// of slow start), in whole segments, two at least and 64 KiB at most.
    pub(crate) fn burst(&self) -> u64 {
        let mss = u64::from(self.mss);
        let (cwnd, ssthresh) = (self.congestion.cwnd(), self.congestion.ssthresh());
        let percent = if cwnd < ssthresh / 2 { 200 } else { 120 };
        let srtt_ns = self.rtt.srtt().map_or(1, |srtt| (srtt.as_ps() / 1000).max(1));
        let worth = u64::from(cwnd) * percent / 100 * 976_562 / srtt_ns;
        (worth.min(65_535) / mss).max(2) * mss
    }

    /// The segment that has just gone out ends a packet of several segments: the packet is as large as it may become, or the windows admit
    /// no more. Linux sets PSH on it.
    pub(crate) fn ends_packet(&mut self) -> bool {
        let mss = u64::from(self.mss);
        let full = u64::from(self.packet) >= self.burst();
        let follows = self.end.saturating_sub(self.max).min(mss);
        let shut = self.in_flight() + mss > u64::from(self.congestion.cwnd()) || self.max + follows > self.edge();
        if !full && !shut {
            return false;
        }
        core::mem::take(&mut self.packet) > u32::from(self.mss)
    }

    /// All that was offered is out.
    fn next_fin(&mut self) -> Result<Plan, Limit> {
        if !self.closing {
            return Err(Limit::Application);
        }
        let start = self.nxt();
        if start > self.end {
            return Err(Limit::AwaitingAck);
        }
        self.nxt = Low::of(start + 1);
        Ok(Plan { start, end: start + 1, again: self.fin_sent(), probe: false })
    }

    /// RFC 3042, section 2: the first two duplicate acknowledgements allow a segment each beyond the window. Only
    /// without SACK: the pipe of RFC 6675 shrinks instead.
    #[inline]
    fn usable_cwnd(&self, config: &Config) -> u64 {
        let cwnd = u64::from(self.congestion.cwnd());
        if self.dup_acks == 0 || self.phase != Phase::Open || !config.limited_transmit {
            return cwnd;
        }
        cwnd + u64::from(self.dup_acks.min(2)) * u64::from(self.mss)
    }

    fn shut_by_cwnd(&self, cwnd: u64, window_shut: bool) -> Limit {
        if self.backoff > 0 {
            Limit::AwaitingAck
        } else if window_shut && self.edge() <= self.una + cwnd {
            Limit::ReceiveWindow
        } else {
            Limit::CongestionWindow
        }
    }

    /// RFC 6675, section 5: steps 3.3 and C, and after a timeout the holes in order.
    fn next_by_sack(&mut self, config: &Config) -> Result<Plan, Limit> {
        let mss = u32::from(self.mss);
        let (una, max) = (self.una, self.max);
        let cwnd = u64::from(self.congestion.cwnd());
        let board = self.aside.board_mut().expect("a sender by SACK has a scoreboard");
        let pipe = board.pipe(una, max);
        let counted = if self.phase == Phase::Open && !config.limited_transmit { max - una } else { pipe };
        if counted + u64::from(mss) > cwnd {
            return Err(self.shut_by_cwnd(cwnd, false));
        }
        let new_first = self.stage == Stage::SecondAnswer;
        let board = self.aside.board_mut().expect("a sender by SACK has a scoreboard");
        if self.phase != Phase::Open
            && !new_first
            && let Some(part) = board.next_lost(una, max, mss)
        {
            return Ok(part.again());
        }
        let limit = match self.next_new() {
            Ok(plan) => {
                if self.phase == Phase::Open && self.dup_acks > 0 {
                    let sent = (plan.end - plan.start) as u32;
                    self.congestion.limited_sent = self.congestion.limited_sent.saturating_add(sent);
                }
                return Ok(plan);
            }
            Err(limit) => limit,
        };
        let board = self.aside.board_mut().expect("a sender by SACK has a scoreboard");
        if new_first {
            // RFC 5682, section 2.1, step 2b: without new data the timeout is taken for right.
            self.stage = Stage::Begun;
            return self.next_by_sack(config);
        }
        if self.phase == Phase::Recovery {
            let part =
                board.next_suspect(una, max, mss).or_else(|| board.rescue(una, max, mss, self.recover.near(una)));
            return part.map(Range::again).ok_or(limit);
        }
        Err(limit)
    }

    /// What is lost, then new data: as Linux does with RACK, nothing is sent again that is not known to be lost.
    fn next_by_rack(&mut self, config: &Config) -> Result<Plan, Limit> {
        let mss = u32::from(self.mss);
        let cwnd = u64::from(self.congestion.cwnd());
        let open = self.phase == Phase::Open;
        let counted = if open && !config.limited_transmit { self.max - self.una } else { self.in_flight() };
        if counted + u64::from(mss) > cwnd {
            return Err(self.shut_by_cwnd(cwnd, false));
        }
        let new_first = self.stage == Stage::SecondAnswer;
        if self.rack.lost > 0
            && !new_first
            && let Some(part) = self.trips.sent().first_lost(self.una, mss)
        {
            return Ok(part.again());
        }
        match self.next_new() {
            Ok(plan) => {
                if open && self.dup_acks > 0 {
                    let sent = (plan.end - plan.start) as u32;
                    self.congestion.limited_sent = self.congestion.limited_sent.saturating_add(sent);
                }
                Ok(plan)
            }
            Err(_) if new_first => {
                // RFC 5682, section 2.1, step 2b: without new data the timeout is taken for right.
                self.stage = Stage::Begun;
                self.next_by_rack(config)
            }
            Err(limit) => Err(limit),
        }
    }

    /// RFC 6675, section 4, NextSeg, rule 2: octets never sent before, as the receiver's window allows.
    pub(crate) fn next_new(&mut self) -> Result<Plan, Limit> {
        let start = self.max;
        let mut len = self.end.saturating_sub(start).min(u64::from(self.mss));
        if len == 0 {
            return self.next_fin();
        }
        let room = self.edge().saturating_sub(start);
        if room < len {
            if room == 0 || room < u64::from(self.window_max / 2) {
                return Err(Limit::ReceiveWindow);
            }
            len = room;
        }
        let end = start + len;
        let end = end + u64::from(end == self.end && self.closing);
        self.nxt = Low::of(end);
        Ok(Plan { start, end, again: false, probe: false })
    }

    /// What goes out whatever the congestion window says: the first segment again, or a probe.
    #[cold]
    fn next_urgent(&mut self, now: Instant, config: &Config) -> Option<Plan> {
        match core::mem::replace(&mut self.urgent, Urgent::Nothing) {
            Urgent::Probe => return self.next_probe(now, config),
            Urgent::Tail => return self.next_tail(now, config),
            Urgent::First | Urgent::Nothing => {}
        }
        let (una, max, mss) = (self.una, self.max, self.mss);
        let part = match self.aside.board_mut() {
            Some(board) if self.sacking => board.resend_first(una, max, u32::from(mss)),
            None if self.style == Style::Rack => self.trips.sent().first_lost(una, u32::from(mss))?,
            _ => {
                // The FIN rides along if it did before.
                let last = if una + u64::from(mss) >= self.end { max } else { una + u64::from(mss) };
                Range { start: una, end: last.min(max) }
            }
        };
        let plan = part.again();
        self.note_sent(now, config, plan);
        Some(plan)
    }

    /// Nothing was in flight. RFC 5681, section 4.1: after more than one retransmission timeout without sending, the window is at most
    /// the initial one.
    fn after_idle(&mut self, now: Instant, config: &Config) {
        if self.end > self.max {
            self.congestion.on_idle(now, self.last_sent);
        }
        if config.idle_restart
            && self.max > 1
            && now.since(self.last_sent) > self.rtt.rto()
            && self.alarm != Alarm::Window
        {
            self.congestion.hold_at(config.initial_window.bytes(self.mss));
        }
    }
}

impl Range {
    fn again(self) -> Plan {
        Plan { start: self.start, end: self.end, again: true, probe: false }
    }
}

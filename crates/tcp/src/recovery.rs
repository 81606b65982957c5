//! The sender's answer to acknowledgements, duplicate acknowledgements, ECN echoes and timeouts.
//!
//! Published: RFC 5681, section 3.2 (fast retransmit and recovery); RFC 6582 (NewReno); RFC 6675, section 5 (SACK); RFC
//! 6298 (timer); RFC 3168, section 6.1.2 (ECN).
//! Differs: the timer starts anew at a fast retransmit, as it does in BSD and Linux; the RFCs are silent. In Reno and
//! Tahoe duplicate acknowledgements start no fast retransmit before all that was out at a timeout (in Tahoe: at a loss)
//! is acknowledged, since going back causes them; RFC 6582 asks this of NewReno.
//! Cost: an acknowledgement in order takes a dozen comparisons and stores.

use lastmile_packet::Meta;
use lastmile_units::{Duration, Instant};

use crate::congestion::{Acked, RoundTrip, Style};
use crate::ranges::{Low, Range};
use crate::scoreboard::DUP_THRESH;
use crate::sender::{Alarm, Phase, Sender, Stage, Urgent};
use crate::tail::Probe;
use crate::timer::Timer;
use crate::undo::Evidence;
use crate::{Config, SlowStart};

/// The parts of a segment that the sender looks at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckInfo<'a> {
    pub(crate) segment: &'a Meta,
    /// No payload, SYN or FIN.
    pub(crate) bare: bool,
    /// An ECN echo, on a connection with ECN.
    pub(crate) ecn_echo: bool,
    /// The round trip that the timestamp echo tells, if timestamps are in use.
    pub(crate) echoed: Option<Duration>,
}

/// What the connection should do about an acknowledgement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AckVerdict {
    /// It moved SND.UNA.
    Advanced,
    /// It did not.
    Unmoved,
    /// It acknowledges what was never sent: answer with an acknowledgement and drop the segment (RFC 9293, 3.10.7.4).
    Unsent,
}

/// What a segment told anew while something is missing: by its number and by its SACK blocks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct News {
    pub(crate) any: bool,
    /// The first SACKed octet of it that was sent once, where losses are found by counting.
    pub(crate) once: Option<u64>,
    /// The cumulative acknowledgement moved.
    pub(crate) advanced: bool,
    /// Losses are found by time.
    pub(crate) by_time: bool,
    /// Octets that were out before the repair, and that were sent once, are delivered.
    pub(crate) original: bool,
    /// Octets that the receiver is newly known to hold (RFC 9937: DeliveredData), while something is missing.
    pub(crate) delivered: u32,
    /// Something is newly lost.
    pub(crate) lost: bool,
    /// The round trip in microseconds that was measured.
    pub(crate) age_us: Option<u32>,
}

impl News {
    /// `part` is newly held; what lies below `again` was sent again.
    pub(crate) fn add(&mut self, part: Range, again: u64) {
        self.any = true;
        let first = part.start.max(again);
        if first < part.end {
            self.once = Some(self.once.map_or(first, |once| once.min(first)));
        }
    }
}

/// What an acknowledgement of new data means for the window outside of fast recovery.
#[derive(Clone, Copy, Debug)]
struct Growth {
    /// Octets that it covers, and that were in flight before it.
    acked: u64,
    flight: u64,
    ecn_echo: bool,
    /// Since the newest octets that it covers went out, if that is looked at.
    newest: Option<Duration>,
}

impl Sender {
    #[inline]
    pub(crate) fn on_ack(&mut self, now: Instant, config: &Config, info: AckInfo<'_>) -> AckVerdict {
        let segment = info.segment;
        let ahead = segment.ack.distance_from(self.wire(self.una)).cast_signed();
        if ahead < 0 {
            // Overtaken by a newer one. RFC 9293, section 3.10.7.4: it can be ignored.
            return AckVerdict::Unmoved;
        }
        let ack = self.una + u64::from(ahead.cast_unsigned());
        if ack > self.max + self.probed_beyond(ack) {
            return AckVerdict::Unsent;
        }
        let old_edge = self.edge;
        self.update_window(segment, ack);
        if ack > self.una {
            self.on_new_ack(now, config, info, ack);
            AckVerdict::Advanced
        } else {
            self.on_same_ack(now, config, info, old_edge == self.edge);
            AckVerdict::Unmoved
        }
    }

    /// RFC 9293, section 3.10.7.4: the window of the newest segment counts. SND.WL2 is not kept: an acknowledgement
    /// below SND.UNA never comes here.
    #[inline]
    fn update_window(&mut self, segment: &Meta, ack: u64) {
        if segment.seq.before(self.wl1) {
            return;
        }
        self.wl1 = segment.seq;
        let window = u32::from(segment.window) << self.shift;
        self.edge = Low::of(ack + u64::from(window));
        self.window_max = self.window_max.max(window);
    }

    #[inline]
    fn on_new_ack(&mut self, now: Instant, config: &Config, info: AckInfo<'_>, ack: u64) {
        let flight = self.in_flight();
        let from = self.una;
        let acked = ack - from;
        self.una = ack;
        self.nxt = Low::of(self.nxt().max(ack));
        self.max = self.max.max(ack);
        self.keep_near(from);
        self.backoff = 0;
        self.end_probe();
        let untouched = self.untouched();
        let mut news = News::default();
        let newest = if self.congestion.watches(config) && !self.sacking { self.trips.age(now, ack - 1) } else { None };
        if self.sacking || (self.style.is_sack() && info.segment.options().sack_count() > 0) {
            news = if self.style == Style::Rack { self.deliver(now, info, from) } else { self.board_after(from, info) };
        }
        self.measure(now, config, info.echoed, from, news);
        if self.repair.undo().is_some() {
            self.judge(Evidence { segment: info.segment, advanced: true, news, untouched });
        }
        // RFC 6298 (5.2) When all outstanding data has been acknowledged, turn off the timer. (5.3) When an ACK is
        // received that acknowledges new data, restart it.
        if self.una == self.max {
            self.timer = Timer::OFF;
            if self.alarm == Alarm::Window {
                self.alarm = Alarm::Timeout;
            }
            self.aside.end(|rare| rare.probes = 0);
        } else if self.style == Style::Rack {
            // By what the acknowledgement leads to, below.
        } else if self.phase != Phase::Recovery
            || self.stage != Stage::Partial
            || self.recover.ahead_of(self.una) <= 0
            || self.rtt.is_linux()
        {
            // RFC 6582, section 3.2, step 3: among partial acknowledgements only the first restarts it. In Linux all do.
            self.timer = Timer::at(config.deadline(now, self.rtt.rto()));
        }
        if self.phase == Phase::Recovery {
            self.recover_by_ack(acked);
        } else {
            self.grow(now, config, Growth { acked, flight, ecn_echo: info.ecn_echo, newest });
        }
        self.dup_acks = 0;
        self.congestion.limited_sent = 0;
        if self.style == Style::Rack {
            self.after_new_ack(now, config, &mut news);
        }
        if self.repair.prr().is_some() {
            self.pace_recovery(news);
        }
        if info.ecn_echo {
            self.on_ecn_echo(config);
        }
    }

    #[inline]
    fn grow(&mut self, now: Instant, config: &Config, growth: Growth) {
        let Growth { acked, flight, ecn_echo, newest } = growth;
        if newest.is_some() && config.slow_start == SlowStart::HyStart {
            self.watch_slow_start(now, config, newest);
        }
        let cwnd = u64::from(self.congestion.cwnd());
        let mss = u32::from(self.mss);
        // RFC 7661, section 4.3, in Linux's form: a window that is not used does not grow; in slow start half of it is
        // use.
        // What waits to go as one burst is use.
        let unused = if config.tso_deferral { self.burst() } else { u64::from(mss) };
        let used = flight + unused > cwnd || (self.congestion.in_slow_start() && flight * 2 > cwnd);
        let after_timeout = self.phase == Phase::Loss;
        // RFC 3168, section 6.1.2: nor does an acknowledgement with an ECN echo let it grow.
        if (used || after_timeout) && !ecn_echo {
            let least_rtt = self.rtt.least().unwrap_or_default();
            self.congestion.grow(&Acked { now, bytes: acked, mss, after_timeout, least_rtt }, config);
        }
        if newest.is_some() && config.slow_start == SlowStart::HyStartPlusPlus {
            self.watch_slow_start(now, config, newest);
        }
        if after_timeout && self.recover.ahead_of(self.una) <= 0 {
            self.end_repair();
        }
    }

    #[cold]
    fn watch_slow_start(&mut self, now: Instant, config: &Config, newest: Option<Duration>) {
        let Some(age) = newest else { return };
        let trip = RoundTrip {
            now,
            us: ((age.as_ps() / 1_000_000) as u32).max(1),
            una: self.una,
            max: self.max,
            mss: u32::from(self.mss),
            srtt: self.rtt.srtt().unwrap_or_default(),
        };
        self.congestion.watch(&trip, config);
    }

    /// New data are acknowledged in fast recovery.
    #[cold]
    fn recover_by_ack(&mut self, acked: u64) {
        let mss = u32::from(self.mss);
        // RFC 5681, section 3.2, step 6: Reno's ends with the first. RFC 6582, section 3.2, step 3, and RFC 6675,
        // section 5, step A: others with the one that covers all that was out when recovery began.
        if self.style == Style::Reno || self.recover.ahead_of(self.una) <= 0 {
            let flight = u32::try_from(self.max - self.una).unwrap_or(u32::MAX);
            self.congestion.on_recovered(self.style, flight, mss);
            self.end_repair();
        } else if self.style == Style::NewReno {
            self.congestion.on_partial_ack(acked, mss);
            self.urgent = Urgent::First;
            self.stage = Stage::Partial;
        }
    }

    /// SND.UNA stays.
    fn on_same_ack(&mut self, now: Instant, config: &Config, info: AckInfo<'_>, same_window: bool) {
        if self.alarm == Alarm::Window {
            // The receiver answers: it is only slow.
            self.backoff = 0;
            if self.edge() > self.max {
                self.timer = Timer::OFF;
                self.alarm = Alarm::Timeout;
                self.urgent = Urgent::Nothing;
                self.aside.end(|rare| rare.probes = 0);
            }
        }
        let outstanding = self.max > self.una;
        let untouched = self.untouched();
        let mut news = News::default();
        if self.style.is_sack() && info.segment.options().sack_count() > 0 {
            if self.style == Style::Rack {
                news = self.deliver(now, info, self.una);
                self.measure_delivered(now, config, news);
            } else {
                news = self.record_sack(info);
                if let Some(octet) = news.once
                    && self.rtt.is_linux()
                {
                    self.measure_sacked(now, config, octet);
                }
            }
            if self.repair.undo().is_some() {
                self.judge(Evidence { segment: info.segment, advanced: false, news, untouched });
            }
        }
        // With SACK, RFC 6675, section 2: the segment tells of octets that were not known to be held. Without, RFC
        // 5681, section 2: data are out, and the segment has no data, SYN or FIN, the same number and the same window.
        let duplicate = outstanding && if self.style.is_sack() { news.any } else { info.bare && same_window };
        if duplicate {
            self.stats.dup_acks_received += 1;
            self.on_duplicate(now, config, news.delivered);
        }
        if self.style == Style::Rack {
            if self.rack.probe != Probe::None {
                self.on_probe_answer(config, info.bare && same_window && !news.any);
            }
            if self.sacking {
                self.find_losses_by(now, config, &mut news);
            }
        }
        if self.repair.prr().is_some() {
            self.pace_recovery(news);
        }
        if info.ecn_echo {
            self.on_ecn_echo(config);
        }
    }

    /// Losses are found by time, and an acknowledgement has moved SND.UNA.
    #[inline]
    fn after_new_ack(&mut self, now: Instant, config: &Config, news: &mut News) {
        if self.rack.probe != Probe::None {
            self.on_probe_answer(config, false);
        }
        if self.una != self.max {
            self.arm(now, config, true);
        }
        if self.sacking {
            self.find_losses_by(now, config, news);
        }
    }

    /// RFC 8985, section 6.2: whatever was delivered may tell of a loss.
    #[cold]
    fn find_losses_by(&mut self, now: Instant, config: &Config, news: &mut News) {
        if self.una != self.max && (news.any || news.advanced) {
            news.lost = self.find_losses(now, config, news.delivered);
        }
        self.settle_rack();
    }

    /// `delivered`: octets that are newly SACKed.
    fn on_duplicate(&mut self, now: Instant, config: &Config, delivered: u32) {
        self.dup_acks = self.dup_acks.saturating_add(1);
        match (self.phase, self.style) {
            // RFC 5681, section 3.2, step 4.
            (Phase::Recovery, Style::Reno | Style::NewReno) => self.congestion.inflate(u32::from(self.mss)),
            (Phase::Recovery | Phase::Loss, _) | (_, Style::Rack) => {}
            // RFC 6675, section 5, steps 1 and 2; section 5.1: not before HighACK reaches the recovery point.
            (Phase::Open, Style::Sack) => {
                let lost = self.aside.board().is_some_and(|board| board.is_lost(self.una));
                if (self.dup_acks >= DUP_THRESH || lost) && self.recover.ahead_of(self.una) <= 0 {
                    self.start_recovery(now, config, delivered);
                }
            }
            // RFC 6582, section 3.2, step 2: the acknowledgement covers more than `recover`.
            (Phase::Open, _) => {
                if self.dup_acks == DUP_THRESH && self.recover.ahead_of(self.una) < 0 {
                    self.start_recovery(now, config, delivered);
                }
            }
        }
    }

    /// Fast retransmit, at an acknowledgement that newly delivered so many octets.
    #[cold]
    pub(crate) fn start_recovery(&mut self, now: Instant, config: &Config, delivered: u32) {
        self.stats.fast_retransmits += 1;
        let mss = u32::from(self.mss);
        // RFC 3168, section 6.1.2: at most one reduction for a window of data.
        let reduce = self.ecn_until().is_none_or(|until| until.ahead_of(self.una) <= 0);
        if reduce {
            self.keep_for_undo(config);
        }
        let flight = match (self.phase, self.style) {
            // The repair after a timeout has had little out. And as in Linux: what is SACKed above a segment that was lost again and
            // again is not in flight, so that more than the window may be out when the next repair begins.
            (Phase::Loss, _) | (_, Style::Rack) => self.flight_size().min(self.congestion.cwnd()),
            _ => self.flight_size(),
        };
        self.congestion.on_fast_retransmit(config, self.style, flight, mss, reduce);
        self.begin_prr(config, delivered);
        self.stage = Stage::Begun;
        self.rack.probe = Probe::None;
        self.set_rto(now, config);
        match self.style {
            Style::Tahoe => {
                self.recover = Low::of(self.max);
                self.phase = Phase::Loss;
                self.nxt = Low::of(self.una);
                self.trips.give_up();
            }
            Style::Reno => {
                self.phase = Phase::Recovery;
                self.urgent = Urgent::First;
            }
            Style::NewReno | Style::Sack | Style::Rack => {
                self.recover = Low::of(self.max);
                self.phase = Phase::Recovery;
                self.urgent = Urgent::First;
            }
        }
    }

    /// `max` at the last reduction for an ECN echo.
    fn ecn_until(&self) -> Option<Low> {
        self.aside.get()?.ecn_until
    }

    /// RFC 3168, section 6.1.2: as for a loss, once for each window of data.
    #[cold]
    fn on_ecn_echo(&mut self, config: &Config) {
        if self.phase != Phase::Open || self.ecn_until().is_some_and(|until| until.ahead_of(self.una) >= 0) {
            return;
        }
        let max = self.max;
        let rare = self.aside.rare();
        rare.ecn_reductions += 1;
        rare.ecn_until = Some(Low::of(max));
        rare.tell_reduced = true;
        self.congestion.on_ecn_echo(config, u32::from(self.mss));
    }

    /// The retransmission timer fired with data or a FIN out. False: give up (R2 of RFC 9293, section 3.8.3).
    #[cold]
    pub(crate) fn on_retransmission_timer(&mut self, now: Instant, config: &Config) -> bool {
        if self.backoff >= config.max_retries {
            return false;
        }
        self.stats.timeouts += 1;
        let flight = u32::try_from(self.max - self.una).unwrap_or(u32::MAX);
        let recovering = self.phase == Phase::Recovery;
        if self.backoff == 0 && !recovering {
            self.keep_for_undo(config);
        }
        self.start_frto(config, recovering);
        self.congestion.on_timeout(config, flight, u32::from(self.mss), self.backoff == 0, recovering);
        self.backoff += 1;
        // RFC 6582, section 4.2; RFC 6675, section 5.1: the recovery point moves, recovery ends.
        self.recover = Low::of(self.max);
        self.phase = Phase::Loss;
        self.dup_acks = 0;
        self.congestion.limited_sent = 0;
        self.urgent = Urgent::Nothing;
        self.trips.give_up();
        if self.style == Style::Rack {
            self.expire_by_time(now);
            self.congestion.allow(self.in_flight() + u64::from(self.mss));
        } else if self.style == Style::Sack {
            let (una, max) = (self.una, self.max);
            self.aside.begin_board(una).on_timeout(una, max);
            self.sacking = true;
        } else {
            self.nxt = Low::of(self.una);
        }
        // RFC 6298 (5.5) Back off the timer. (5.6) Start it.
        self.rtt.back_off(config);
        self.set_rto(now, config);
        true
    }

    /// The repair has come to its end.
    fn end_repair(&mut self) {
        self.phase = Phase::Open;
        self.stage = Stage::Begun;
        self.settle_board();
        self.aside.end(|rare| rare.duplicates.on_end());
        if let Some(undo) = self.repair.undo_mut() {
            undo.on_end(self.max);
        }
    }
}

//! The response to acknowledgements: SND.UNA and the windows, round trips, growth, and the start of repairs.
//!
//! Published: RFC 9293, section 3.10.7.4; RFC 5681, section 3.2; RFC 6582 (NewReno); RFC 6675, section 5
//! (SACK); RFC 6298 (timer); RFC 3168, section 6.1.2 (ECN).
//! Differs: nothing beyond what the parts name.
//! Cost: an acknowledgement in order takes a few dozen comparisons and stores.

use std::num::NonZeroU32;

use lastmile_packet::Meta;
use lastmile_units::{Duration, Instant};

use super::flight::Accounting;
use super::repair::{Evidence, OnDuplicate, Phase, ProbeAnswer, Style};
use super::window::{Acked, Marks, RoundTrip};
use super::{Alarm, Sender, Urgent};
use crate::{Config, Ecn, SlowStart};

/// The parts of a segment that concern the sender.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckInfo<'a> {
    pub(crate) segment: &'a Meta,
    /// No payload, SYN or FIN.
    pub(crate) bare: bool,
    /// The ECN by which the segment reports marks.
    pub(crate) ecn: Ecn,
    /// The round trip by the timestamp echo in ticks, if timestamps are in use.
    pub(crate) echoed: Option<NonZeroU32>,
}

/// The effect of an acknowledgement on the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AckVerdict {
    /// The acknowledgement moved SND.UNA.
    Advanced,
    /// The acknowledgement did not move SND.UNA.
    Unmoved,
    /// The segment acknowledges octets never sent: answer with an acknowledgement and drop the segment (RFC 9293,
    /// 3.10.7.4).
    Unsent,
}

/// The octets that a segment newly delivers while others are missing, by its number and by its SACK blocks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Delivery {
    /// SACK blocks report octets that were not known to be held.
    pub(super) sacked: bool,
    /// The cumulative acknowledgement moved.
    pub(super) advanced: bool,
    /// By the times of transmission, it covers octets in flight before the repair that were sent once.
    pub(super) original: bool,
    /// Newly delivered octets (RFC 9937: DeliveredData).
    pub(super) octets: u64,
    /// Octets are newly lost.
    pub(super) lost: bool,
    /// The measured age of a delivered segment that was sent once.
    pub(super) age: Option<Duration>,
    /// The age of the newest such segment, by the times of transmission: of the SACKed ones, if there are any.
    pub(super) newest: Option<Duration>,
}

/// An acknowledgement of new data outside of fast recovery.
#[derive(Clone, Copy, Debug)]
struct Growth {
    /// Octets that it covers.
    acked: u64,
    marks: Marks,
    /// The age of the newest octets that it covers, while slow start watches round trips.
    newest: Option<Duration>,
    /// The round trip that it measured.
    rtt: Option<Duration>,
}

impl Sender {
    #[inline]
    pub(crate) fn on_ack(&mut self, now: Instant, config: &Config, info: AckInfo<'_>) -> AckVerdict {
        let segment = info.segment;
        let una = self.data.flight.una();
        let ahead = segment.ack.distance_from(self.wire(una)).cast_signed();
        if ahead < 0 {
            // A newer one has overtaken it. RFC 9293, section 3.10.7.4: it can be ignored.
            return AckVerdict::Unmoved;
        }
        let ack = una + u64::from(ahead.cast_unsigned());
        if ack > self.data.flight.max() + self.timers.probe_octets() {
            return AckVerdict::Unsent;
        }
        if let Some(rate) = &mut self.data.rate {
            rate.begin_ack();
        }
        let old_edge = self.peer.edge();
        self.peer.update(segment, ack);
        if ack > una {
            self.on_new_ack(now, config, info, ack);
            AckVerdict::Advanced
        } else {
            // An end that only receives has nothing in flight.
            if !self.buffer.is_unused() {
                self.on_same_ack(now, config, info, old_edge == self.peer.edge());
            }
            AckVerdict::Unmoved
        }
    }

    // Not inlined: an end that receives data has no use for the registers that this takes.
    #[inline(never)]
    fn on_new_ack(&mut self, now: Instant, config: &Config, info: AckInfo<'_>, ack: u64) {
        let flight = self.in_flight();
        let from = self.data.flight.advance(now, ack);
        let acked = ack - from;
        if let Some(rate) = &mut self.data.rate {
            rate.on_acked(ack);
        }
        self.timers.end_backoff();
        self.timers.forget_probe_octet();
        let uses_sack = self.data.flight.uses_sack();
        let mut newest = match uses_sack {
            false if self.data.congestion.watches(config) => self.data.flight.transmissions().age(now, ack - 1),
            _ => None,
        };
        let untouched = self.lost_by_timeout();
        let (mut delivery, mut age) = (Delivery::default(), None);
        if uses_sack || (self.data.repair.style().is_sack() && info.segment.options().sack_count() > 0) {
            delivery = self.deliver(now, config, info, from);
            newest = self.watched(config, &delivery).or(newest);
        }
        delivery.advanced = true;
        if self.rtt.is_linux() {
            age = match self.data.flight.accounting() {
                // The delivery has settled the record.
                Accounting::Transmissions => delivery.age,
                _ => self.data.flight.transmissions_mut().acknowledge(now, from, ack).or(delivery.age),
            };
            self.rtt.add_trip(acked, age);
        }
        self.rtt.on_new_ack(now, &config.timers, self.data.flight.outstanding(), age, info.echoed);
        if self.data.repair.undo.is_some() {
            self.judge(info.segment, delivery, untouched);
        }
        self.restart_timer(now, config);
        let marks = match info.ecn {
            Ecn::Off => Marks::default(),
            _ => self.read_marks(now, &info, delivery.octets.max(acked)),
        };
        if self.data.repair.in_recovery() {
            self.recover_by_ack(acked);
        } else {
            self.grow(now, config, Growth { acked, marks, newest, rtt: age });
        }
        self.data.repair.end_duplicates();
        if self.data.repair.is_rack() {
            self.after_new_ack(now, config, &mut delivery);
        }
        self.pace_recovery(delivery);
        if marks.packets > 0 {
            self.on_ecn_echo(config);
        }
        if self.data.pacer.is_some() {
            self.control_rate(now, flight);
        }
    }

    /// RFC 6298 (5.2) When all outstanding data has been acknowledged, turn off the timer. (5.3) When an
    /// ACK is received that acknowledges new data, restart it.
    #[inline]
    fn restart_timer(&mut self, now: Instant, config: &Config) {
        if self.data.flight.is_empty() {
            self.timers.stop();
            self.timers.end_window_probes();
            return;
        }
        // RACK restarts it by the consequences of the acknowledgement. RFC 6582, section 3.2, step 3: of
        // several partial acknowledgements only the first restarts it. In Linux all do.
        let later_partial = self.data.repair.phase() == Phase::Recovery { partial: true }
            && !self.data.repair.is_covered(self.data.flight.una())
            && !self.rtt.is_linux();
        if !self.data.repair.is_rack() && !later_partial {
            self.set_rto(now, config);
        }
    }

    #[inline]
    fn grow(&mut self, now: Instant, config: &Config, growth: Growth) {
        let Growth { acked, marks, newest, rtt } = growth;
        if let Some(age) = newest
            && config.congestion.slow_start == SlowStart::HyStart
        {
            self.watch_slow_start(now, config, age);
        }
        let mss = u32::from(self.mss);
        let used = self.data.usage.is_full(self.data.congestion.cwnd(), self.data.congestion.in_slow_start());
        let after_timeout = self.data.repair.in_loss();
        // RFC 3168, section 6.1.2: the window does not grow by an acknowledgement with an ECN echo.
        let stays = marks.packets > 0 && !self.data.congestion.grows_with_marks();
        let grows = (used || after_timeout) && !stays && !self.data.congestion.is_model();
        let least_rtt = self.rtt.least().unwrap_or_default();
        let srtt = self.rtt.srtt();
        let marked = marks.octets;
        let acked = Acked { now, bytes: acked, mss, after_timeout, least_rtt, srtt, rtt, marked };
        if grows {
            self.data.congestion.grow(&acked, config);
        } else {
            self.data.congestion.yield_unused(&acked);
        }
        if let Some(age) = newest
            && config.congestion.slow_start == SlowStart::HyStartPlusPlus
        {
            self.watch_slow_start(now, config, age);
        }
        if after_timeout && self.data.repair.is_covered(self.data.flight.una()) {
            self.end_repair();
        }
    }

    /// The round trip that HyStart watches where octets are SACKed. As in Linux, that of a segment which has overtaken
    /// others counts (`tcp_clean_rtx_queue`, `cubictcp_acked`).
    fn watched(&self, config: &Config, delivery: &Delivery) -> Option<Duration> {
        let watches = config.congestion.slow_start == SlowStart::HyStart && self.data.congestion.watches(config);
        delivery.newest.filter(|_| watches)
    }

    #[cold]
    fn watch_slow_start(&mut self, now: Instant, config: &Config, age: Duration) {
        let trip = RoundTrip {
            now,
            us: (age.as_us() as u32).max(1),
            outstanding: self.data.flight.outstanding(),
            mss: u32::from(self.mss),
            srtt: self.rtt.srtt().unwrap_or_default(),
            paced: self.data.pacer.is_some(),
        };
        self.data.congestion.watch(&trip, config);
    }

    /// New data are acknowledged in fast recovery.
    #[cold]
    fn recover_by_ack(&mut self, acked: u64) {
        let mss = u32::from(self.mss);
        let style = self.data.repair.style();
        // RFC 5681, section 3.2, step 6: Reno's recovery ends with the first such acknowledgement. RFC
        // 6582, section 3.2, step 3, and RFC 6675, section 5, step A: others end with the one that covers
        // all that was in flight at the start.
        if style == Style::Reno || self.data.repair.is_covered(self.data.flight.una()) {
            let flight = u32::try_from(self.data.flight.size()).unwrap_or(u32::MAX);
            self.data.congestion.on_recovered(style, flight, mss);
            self.end_repair();
        } else if style == Style::NewReno {
            self.data.congestion.on_partial_ack(acked, mss);
            self.data.urgent = Some(Urgent::First);
            self.data.repair.on_partial_ack();
        }
    }

    /// SND.UNA stays.
    #[inline(never)]
    fn on_same_ack(&mut self, now: Instant, config: &Config, info: AckInfo<'_>, same_window: bool) {
        if self.timers.alarm() == Some(Alarm::Persist) {
            self.on_window_probe_answer();
        }
        let style = self.data.repair.style();
        let prior = if self.data.pacer.is_some() { self.in_flight() } else { 0 };
        let mut delivery = Delivery::default();
        if style.is_sack() && info.segment.options().sack_count() > 0 {
            let untouched = self.lost_by_timeout();
            delivery = self.deliver(now, config, info, self.data.flight.una());
            if let Some(age) = self.watched(config, &delivery) {
                self.watch_slow_start(now, config, age);
            }
            self.measure_sacked(now, config, delivery.age);
            if self.data.repair.undo.is_some() {
                self.judge(info.segment, delivery, untouched);
            }
        }
        // With SACK, RFC 6675, section 2: the segment reports octets that were not known to be held.
        // Without, RFC 5681, section 2: data are in flight, and the segment has no data, SYN or FIN, and
        // repeats number and window.
        let repeats = info.bare && same_window;
        if !self.data.flight.is_empty() && if style.is_sack() { delivery.sacked } else { repeats } {
            self.data.stats.dup_acks_received += 1;
            self.on_duplicate(now, config, delivery.octets);
        }
        if style == Style::Rack {
            self.on_probe_answer(config, repeats && !delivery.sacked);
            if self.data.flight.uses_sack() {
                self.find_losses_by(now, config, &mut delivery);
            }
        }
        self.pace_recovery(delivery);
        let marks = match info.ecn {
            Ecn::Off => Marks::default(),
            _ => self.read_marks(now, &info, delivery.octets),
        };
        if marks.packets > 0 {
            self.on_ecn_echo(config);
        }
        if self.data.pacer.is_some() {
            self.control_rate(now, prior);
        }
    }

    /// SACK blocks measured a round trip without new data. Linux's timer uses it, and restarts if the
    /// measured segment was sent before the last retransmission of the first one, whose answer cannot be
    /// here.
    fn measure_sacked(&mut self, now: Instant, config: &Config, age: Option<Duration>) {
        let Some(age) = age.filter(|_| self.rtt.is_linux()) else { return };
        self.rtt.sample(config.timers.ticked(now, age), self.data.flight.outstanding(), &config.timers);
        let records = self.data.flight.transmissions();
        if !self.data.repair.is_rack() {
            if records.precedes_first_retransmission(now, age) {
                self.set_rto(now, config);
            }
        } else if records.first_age(now).is_some_and(|first| age > first)
            && self.timers.alarm() != Some(Alarm::Reordering)
        {
            self.arm(now, config, true);
        }
    }

    /// An acknowledgement has moved SND.UNA where losses are found by time.
    #[inline]
    fn after_new_ack(&mut self, now: Instant, config: &Config, delivery: &mut Delivery) {
        self.on_probe_answer(config, false);
        if !self.data.flight.is_empty() {
            self.arm(now, config, true);
        }
        if self.data.flight.uses_sack() {
            self.find_losses_by(now, config, delivery);
        }
    }

    /// An acknowledgement may answer the tail loss probe.
    #[inline]
    fn on_probe_answer(&mut self, config: &Config, duplicate: bool) {
        let Some(probe) = self.data.repair.probe else { return };
        match probe.answer(self.data.flight.una(), duplicate) {
            ProbeAnswer::Pending => return,
            // The last octet below the end of the probe was lost.
            ProbeAnswer::RepairedLoss if self.data.repair.is_open() && self.may_reduce(probe.end - 1) => {
                self.data.ecn.on_reduction(self.data.flight.max());
                self.data.congestion.on_repaired_loss(config, self.data.repair.style(), u32::from(self.mss));
            }
            ProbeAnswer::RepairedLoss | ProbeAnswer::Over => {}
        }
        self.data.repair.probe = None;
    }

    /// RFC 8985, section 6.2: each delivery may reveal a loss, but none that step 2 ignores.
    #[cold]
    fn find_losses_by(&mut self, now: Instant, config: &Config, delivery: &mut Delivery) {
        if self.data.repair.rack.take_advanced() && !self.data.flight.is_empty() {
            delivery.lost = self.find_losses(now, config, delivery.octets);
        }
        let busy = !self.data.repair.is_open() || self.data.urgent == Some(Urgent::TailLossProbe);
        self.data.flight.settle_transmissions(busy);
    }

    /// `delivered`: octets that are newly SACKed.
    fn on_duplicate(&mut self, now: Instant, config: &Config, delivered: u64) {
        let una = self.data.flight.una();
        let first_is_lost = self.data.flight.board().is_some_and(|board| board.is_lost(una));
        match self.data.repair.on_duplicate(una, first_is_lost) {
            OnDuplicate::Nothing => {}
            OnDuplicate::Inflate => self.data.congestion.inflate(u32::from(self.mss)),
            OnDuplicate::FastRetransmit => self.start_recovery(now, config, delivered),
        }
    }

    /// Looks for evidence that a repair was needless, and undoes it. `lost_before`:
    /// [`lost_by_timeout`](Self::lost_by_timeout) before this acknowledgement.
    fn judge(&mut self, segment: &Meta, delivery: Delivery, lost_before: u32) {
        let evidence = Evidence {
            segment,
            advanced: delivery.advanced,
            sacked: delivery.sacked,
            original: delivery.original,
            original_by_count: self.lost_by_timeout() < lost_before,
        };
        if let Some(undo) = self.data.repair.judge(self.data.flight.una(), evidence) {
            self.undo_repair(*undo);
        }
    }
}

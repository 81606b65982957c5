//! The congestion window: the growth that all variants share. Each variant's answer to loss has a file of its own.
//!
//! Published: RFC 5681 (growth), RFC 3465 (byte counting), and the sources that the files name.
//! Differs: in congestion avoidance the window grows by a whole segment each time a window's worth has been
//! acknowledged, the first of the two methods of RFC 5681, section 3.1. Its equation 3 spreads this growth
//! over the window.
//! Cost: additions, comparisons and two divisions for each acknowledgement.

mod bbr1;
mod bbr3;
mod cubic;
mod dctcp;
mod events;
mod hystart;
mod hystart_plus_plus;
mod law;
mod ledbat;
mod mark_fraction;
mod marked_ack;
mod model;
mod newreno;
mod prague;
mod reno;
mod sack;
mod supplied;
mod tahoe;
mod windowed_max;

use lastmile_units::{ByteCount, Duration, Instant};

use crate::config::{ControlLoss, LossKind, MAX_WINDOW};
use crate::sender::repair::Style;
use crate::{ByteCounting, Config, SlowStart, Variant};
use cubic::Cubic;
pub(crate) use events::{Acked, Expiry, RoundTrip};
use hystart::HyStart;
use hystart_plus_plus::HyStartPlusPlus;
pub(crate) use law::Law;
pub(crate) use marked_ack::MarkedAck;
pub(crate) use model::{ModelAck, ModelRestart, RepairPhase};

/// The state of growth beyond the window.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Growth {
    /// For the end of slow start. It outlasts a fast retransmit, which may be undone.
    watch: Option<Watch>,
    cubic: Option<Cubic>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Watch {
    HyStart(HyStart),
    PlusPlus(HyStartPlusPlus),
}

/// Congestion window and slow start threshold, in bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Congestion {
    cwnd: u32,
    ssthresh: u32,
    /// Octets acknowledged towards the next segment of growth (RFC 3465: bytes_acked).
    counted: u32,
    growth: Option<Box<Growth>>,
    /// The state of a variant that measures the path or the marks on it.
    law: Option<Box<Law>>,
    /// The last transmission before the last restart after an idle time.
    restarted: Option<Instant>,
}

impl Congestion {
    /// `seed`: the initial sequence number.
    pub(crate) fn new(config: &Config, mss: u16, seed: u32) -> Self {
        let cwnd = config.congestion.initial_window.bytes(mss).min(MAX_WINDOW);
        let ssthresh = config.congestion.initial_ssthresh.map_or(u64::MAX, ByteCount::as_u64);
        Self {
            cwnd,
            ssthresh: u32::try_from(ssthresh).unwrap_or(MAX_WINDOW).clamp(1, MAX_WINDOW),
            counted: 0,
            growth: None,
            law: Law::new(config, cwnd, seed).map(Box::new),
            restarted: None,
        }
    }

    /// The law of a variant that has one.
    #[inline]
    pub(crate) fn law(&self) -> Option<&Law> {
        self.law.as_deref()
    }

    /// The law of a variant that has one.
    #[inline]
    pub(crate) fn law_mut(&mut self) -> Option<&mut Law> {
        self.law.as_deref_mut()
    }

    /// A model of the path sets the window, at every acknowledgement.
    #[inline]
    pub(crate) fn is_model(&self) -> bool {
        self.law.as_deref().is_some_and(Law::is_model)
    }

    /// The variant follows the fraction of marks.
    #[inline]
    pub(crate) fn counts_marks(&self) -> bool {
        self.law.as_deref().is_some_and(Law::counts_marks)
    }

    /// Unmarked octets grow the window even where others are marked.
    pub(crate) fn grows_with_marks(&self) -> bool {
        self.law.as_deref().is_some_and(Law::is_prague)
    }

    /// Segments are paced at the rate of the window, without a margin.
    pub(crate) fn is_smooth(&self) -> bool {
        self.law.as_deref().is_some_and(Law::is_prague)
    }

    /// An acknowledgement and its marks, for a variant that counts them.
    pub(crate) fn on_marked_ack(&mut self, ack: &MarkedAck) {
        if let Some(law) = self.law.as_deref_mut() {
            law.on_marked_ack(ack);
        }
    }

    /// The name of the model's phase, as in reports.
    pub(crate) fn phase(&self) -> Option<&'static str> {
        self.law.as_deref().and_then(Law::phase_name)
    }

    #[inline]
    pub(crate) fn cwnd(&self) -> u32 {
        self.cwnd
    }

    pub(crate) fn ssthresh(&self) -> u32 {
        self.ssthresh
    }

    #[inline]
    pub(crate) fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    fn set_cwnd(&mut self, cwnd: u32) {
        self.cwnd = cwnd.min(MAX_WINDOW);
        self.counted = 0;
    }

    /// The window that the repair of a loss allows now.
    pub(crate) fn set_window(&mut self, bytes: u64) {
        self.set_cwnd(u32::try_from(bytes).unwrap_or(MAX_WINDOW));
    }

    /// Growth by an acknowledgement of new data, outside of fast recovery, of a sender that used its window.
    #[inline]
    pub(crate) fn grow(&mut self, acked: &Acked, config: &Config) {
        let mss = acked.mss;
        if let Some((cwnd, ssthresh)) =
            self.law.as_deref_mut().and_then(|law| law.window(self.cwnd, self.ssthresh, acked))
        {
            (self.cwnd, self.ssthresh) = (cwnd.min(MAX_WINDOW), ssthresh);
            return;
        }
        if self.in_slow_start() {
            let most = match config.congestion.byte_counting {
                // RFC 5681, equation 2: cwnd += min(N, SMSS).
                ByteCounting::PerAck => mss,
                // RFC 3465, section 2.2: cwnd += min(N, L * SMSS).
                ByteCounting::Abc { limit } if !acked.after_timeout => u32::from(limit.max(1)) * mss,
                ByteCounting::Abc { .. } => mss,
            };
            let growth = acked.bytes.min(u64::from(most)) as u32 / self.slow_start_divisor();
            self.cwnd = (self.cwnd + growth).min(MAX_WINDOW);
            return;
        }
        if let Some(octets) = self.law.as_deref_mut().and_then(|law| law.growth(self.cwnd, acked)) {
            self.cwnd = self.cwnd.saturating_add(octets).min(MAX_WINDOW);
            return;
        }
        let counted = match config.congestion.byte_counting {
            ByteCounting::PerAck => mss,
            ByteCounting::Abc { .. } => acked.bytes.min(u64::from(MAX_WINDOW)) as u32,
        };
        // RFC 3465, section 2.1, and RFC 5681, section 3.1: one segment for each window's worth.
        let every = if config.variant == Variant::Cubic {
            let cwnd = self.cwnd;
            self.cubic().growth_every(cwnd, counted, acked)
        } else {
            u64::from(self.cwnd)
        };
        self.step(every, counted, mss);
    }

    /// An acknowledgement finds the window unused, or echoes a mark: the window may shrink, and does not grow.
    #[inline]
    pub(crate) fn yield_unused(&mut self, acked: &Acked) {
        let (cwnd, ssthresh) = (self.cwnd, self.ssthresh);
        if let Some(windows) = self.law.as_deref_mut().and_then(|law| law.unused_window(cwnd, ssthresh, acked)) {
            (self.cwnd, self.ssthresh) = windows;
        }
    }

    /// A segment of growth for each `every` octets acknowledged. Octets counted towards a larger `every`
    /// bring at most one.
    fn step(&mut self, every: u64, counted: u32, mss: u32) {
        let mut steps = 0;
        if u64::from(self.counted) >= every {
            (self.counted, steps) = (0, 1);
        }
        let all = u64::from(self.counted) + u64::from(counted);
        self.counted = (all % every) as u32;
        steps += all / every;
        let growth = steps * u64::from(mss);
        self.cwnd = u32::try_from(u64::from(self.cwnd) + growth).unwrap_or(MAX_WINDOW).min(MAX_WINDOW);
    }

    /// RFC 9406, section 4.2: the growth of slow start is divided by this.
    fn slow_start_divisor(&self) -> u32 {
        match self.growth.as_deref() {
            Some(Growth { watch: Some(Watch::PlusPlus(state)), .. }) if self.is_first_slow_start() => state.divisor(),
            _ => 1,
        }
    }

    /// The state of CUBIC, created if absent.
    fn cubic(&mut self) -> &mut Cubic {
        self.growth.get_or_insert_default().cubic.get_or_insert_default()
    }

    /// The state of CUBIC, if it exists.
    #[inline]
    fn cubic_if_any(&mut self) -> Option<&mut Cubic> {
        self.growth.as_deref_mut()?.cubic.as_mut()
    }

    /// No threshold is set.
    #[inline]
    fn is_first_slow_start(&self) -> bool {
        self.ssthresh == MAX_WINDOW
    }

    /// Round trips may end this slow start. Only the first one, before a threshold is set (RFC 9406, section 4.3), or
    /// after the repair that set it was undone.
    #[inline]
    pub(crate) fn watches(&self, config: &Config) -> bool {
        self.is_first_slow_start()
            && !self.is_model()
            && match config.congestion.slow_start {
                SlowStart::Standard => false,
                // In Linux, HyStart is a part of CUBIC.
                SlowStart::HyStart => config.variant == Variant::Cubic,
                SlowStart::HyStartPlusPlus => true,
            }
    }

    /// A round trip was measured, before the window grows (HyStart) or after (HyStart++).
    #[cold]
    pub(crate) fn watch(&mut self, trip: &RoundTrip, config: &Config) {
        let cwnd = self.cwnd;
        let growth = self.growth.get_or_insert_default();
        let watch = growth.watch.get_or_insert_with(|| match config.congestion.slow_start {
            SlowStart::HyStartPlusPlus => Watch::PlusPlus(HyStartPlusPlus::new(trip)),
            _ => Watch::HyStart(HyStart::new(trip)),
        });
        let ends = match watch {
            Watch::HyStart(state) => state.ends(trip, cwnd),
            Watch::PlusPlus(state) => state.ends(trip),
        };
        if ends {
            self.ssthresh = cwnd;
            self.end_watch();
        }
    }

    /// The state for the end of slow start is of no more use.
    fn end_watch(&mut self) {
        match self.growth.as_deref_mut() {
            Some(growth) if growth.cubic.is_some() => growth.watch = None,
            _ => self.growth = None,
        }
    }

    /// Data are sent after a time with nothing in flight; the last were sent at `last` (RFC 9438, section 4.2).
    pub(crate) fn on_idle(&mut self, now: Instant, last: Instant) {
        if let Some(cubic) = self.cubic_if_any() {
            cubic.on_idle(now, last);
        }
    }

    /// The threshold after a loss with `flight` bytes in flight. `style`: as the handshake allows repairs.
    fn reduced(&mut self, config: &Config, style: Style, flight: u32, mss: u32, kind: LossKind) -> u32 {
        if config.variant == Variant::Cubic {
            let cwnd = self.cwnd;
            self.cubic().on_congestion(cwnd, mss);
            return cubic::reduced(cwnd, mss);
        }
        let windowed = style == Style::Rack;
        let Self { cwnd, ssthresh, .. } = *self;
        let loss = ControlLoss { kind, octets: if windowed { cwnd } else { flight }, mss, cwnd, ssthresh };
        match self.law.as_deref().and_then(|law| law.threshold(&loss)) {
            Some(ssthresh) => ssthresh.min(MAX_WINDOW),
            None if windowed => reno::halved(cwnd, mss),
            None => reno::reduced(flight, mss),
        }
    }

    /// A repair begins. True: a model sets the window, which stays as it is until the next acknowledgement.
    fn keeps_window(&mut self) -> bool {
        let cwnd = u64::from(self.cwnd);
        self.law.as_deref_mut().is_some_and(|law| law.on_loss(cwnd))
    }

    /// Fast retransmit. `reduce` is false when a reduction has already answered this window of data (RFC
    /// 3168, section 6.1.2).
    pub(crate) fn on_fast_retransmit(&mut self, config: &Config, style: Style, flight: u32, mss: u32, reduce: bool) {
        if self.keeps_window() {
            return;
        }
        if reduce {
            self.ssthresh = self.reduced(config, style, flight, mss, LossKind::Loss);
        }
        self.set_cwnd(match style {
            Style::Tahoe => tahoe::after_loss(mss),
            Style::Reno | Style::NewReno => reno::inflated(self.ssthresh, mss),
            Style::Sack | Style::Rack => sack::in_recovery(self.ssthresh),
        });
    }

    /// One more duplicate acknowledgement in fast recovery without SACK.
    pub(crate) fn inflate(&mut self, mss: u32) {
        if self.is_model() {
            return;
        }
        self.cwnd = (self.cwnd + mss).min(MAX_WINDOW);
    }

    /// A partial acknowledgement of `acked` bytes (NewReno).
    pub(crate) fn on_partial_ack(&mut self, acked: u64, mss: u32) {
        if self.is_model() {
            return;
        }
        let cwnd = newreno::deflated(self.cwnd, acked, mss);
        self.set_cwnd(cwnd);
    }

    /// Fast recovery is over; `flight` bytes are still in flight.
    pub(crate) fn on_recovered(&mut self, style: Style, flight: u32, mss: u32) {
        if self.is_model() {
            return;
        }
        self.set_cwnd(match style {
            Style::NewReno => newreno::after_recovery(self.ssthresh, flight, mss),
            Style::Tahoe | Style::Reno | Style::Sack | Style::Rack => self.ssthresh,
        });
    }

    /// The retransmission timer expired.
    pub(crate) fn on_timeout(&mut self, config: &Config, style: Style, flight: u32, mss: u32, expiry: Expiry) {
        if self.keeps_window() {
            self.set_cwnd(mss);
            return;
        }
        match expiry {
            Expiry::Answered => {}
            Expiry::First => self.ssthresh = self.reduced(config, style, flight, mss, LossKind::Timeout),
            // Linux reduces a window once for each repair (`tcp_enter_loss`), with every congestion control.
            Expiry::InRecovery if style == Style::Rack => {}
            // RFC 5681, section 3.1, says "no more than": segments that duplicate ACKs released in recovery show no
            // larger capacity.
            Expiry::InRecovery => {
                let reduced = self.reduced(config, style, flight, mss, LossKind::Timeout);
                self.ssthresh = self.ssthresh.min(reduced);
            }
        }
        // As in Linux (`bictcp_state`), curve and HyStart begin anew.
        self.growth = None;
        // RFC 5681, section 3.1: cwnd is set to no more than the loss window, 1 full-sized segment.
        self.set_cwnd(mss);
    }

    /// The window is at least this large after a timeout: the last segments may not be lost.
    pub(crate) fn allow(&mut self, bytes: u64) {
        self.cwnd = self.cwnd.max(u32::try_from(bytes).unwrap_or(MAX_WINDOW)).min(MAX_WINDOW);
    }

    /// A reduction is undone: window and threshold are at least those before it (RFC 4015, section 3.2).
    pub(crate) fn restore(&mut self, cwnd: u32, ssthresh: u32) {
        if let Some(law) = self.law.as_deref_mut()
            && law.on_undo()
        {
            return;
        }
        self.set_cwnd(self.cwnd.max(cwnd));
        self.ssthresh = self.ssthresh.max(ssthresh);
    }

    /// An ECN echo: RFC 3168, section 6.1.2, halves the window itself, not the flight.
    pub(crate) fn on_ecn_echo(&mut self, config: &Config, style: Style, mss: u32) {
        let (cwnd, law) = (self.cwnd, self.law.as_deref());
        match law.and_then(|law| law.reduced_by_marks(cwnd, mss)) {
            Some(reduced) => {
                self.ssthresh = reduced;
                self.set_cwnd(reduced);
            }
            None => self.reduce_now(config, style, mss, LossKind::Mark),
        }
    }

    /// A loss that a tail loss probe has repaired reduces the window at once.
    pub(crate) fn on_repaired_loss(&mut self, config: &Config, style: Style, mss: u32) {
        self.reduce_now(config, style, mss, LossKind::Loss);
    }

    fn reduce_now(&mut self, config: &Config, style: Style, mss: u32, kind: LossKind) {
        if self.keeps_window() {
            return;
        }
        self.ssthresh = self.reduced(config, style, self.cwnd, mss, kind);
        self.set_cwnd(self.ssthresh);
    }

    /// Data are sent after an idle time of more than `rto` since `last`, as in Linux (`tcp_cwnd_restart`, after RFC
    /// 2861): the window is halved for each timeout that has passed, down to `least`, and slow start leads back to
    /// three quarters of it. Once for each idle time.
    pub(crate) fn restart(&mut self, now: Instant, last: Instant, rto: Duration, (least, mss): (u32, u32)) {
        if self.restarted == Some(last) {
            return;
        }
        self.restarted = Some(last);
        self.remember_window(mss);
        let least = least.min(self.cwnd);
        let (mut cwnd, mut left) = (self.cwnd, now.since(last).saturating_sub(rto));
        while !left.is_zero() && cwnd > least {
            cwnd = cwnd / mss / 2 * mss;
            left = left.saturating_sub(rto);
        }
        self.set_cwnd(cwnd.max(least));
    }

    /// At most `used` octets of the window were in use for a retransmission timeout: it shrinks to the mean of both,
    /// and slow start leads back to three quarters of it (`tcp_cwnd_application_limited`, after RFC 2861).
    pub(crate) fn yield_part(&mut self, used: u32, mss: u32) {
        if used < self.cwnd {
            self.remember_window(mss);
            self.cwnd = (self.cwnd / mss + used / mss) / 2 * mss;
        }
    }

    /// Slow start leads back to three quarters of the window (`tcp_current_ssthresh`).
    fn remember_window(&mut self, mss: u32) {
        let segments = self.cwnd / mss;
        self.ssthresh = self.ssthresh.max((segments / 2 + segments / 4) * mss);
    }

    /// Limits the window: to the initial one after an idle time (RFC 5681, section 4.1), to one segment if
    /// the SYN was lost (3.1).
    pub(crate) fn hold_at(&mut self, bytes: u32) {
        if self.cwnd > bytes {
            self.set_cwnd(bytes);
        }
    }
}

#[cfg(test)]
mod tests;

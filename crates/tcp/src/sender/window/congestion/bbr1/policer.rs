//! The long-term rate: a path that loses a fifth at one steady rate has a token-bucket policer, and the sender keeps to
//! its rate.
//!
//! Published: Linux's `tcp_bbr.c` (`bbr_lt_bw_sampling`, `bbr_lt_bw_interval_done`).
//!
//! An interval begins and ends with a loss, and has 4 to 16 rounds. Two intervals in a row with at least a fifth lost
//! (50/256) and rates within an eighth, or 4 kbit/s, of one another show a policer. After 48 rounds the sender probes
//! once more.

use lastmile_units::{Duration, Instant};

use crate::sender::delivery_rate::{RateSample, Totals};
use crate::sender::octet_rate::{Gain, OctetRate};

/// `bbr_lt_intvl_min_rtts`, and the longest interval.
const LEAST_ROUNDS: u32 = 4;
const MOST_ROUNDS: u32 = 4 * LEAST_ROUNDS;
/// `bbr_lt_loss_thresh`.
const LOSS_THRESHOLD: Gain = Gain::from_256ths(50);
/// `bbr_lt_bw_ratio` and `bbr_lt_bw_diff`.
const NEAR: Gain = Gain::from_256ths(32);
const NEAR_RATE: OctetRate = OctetRate::from_octets_per_s(500);
/// `bbr_lt_bw_max_rtts`.
const LASTS_ROUNDS: u32 = 48;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    Nothing,
    /// A policer was found.
    Policed,
    /// The rate of the policer has held for long enough.
    Probe,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct LongTerm {
    /// The rate of the last interval.
    last: Option<OctetRate>,
    /// True if the rate is that of a policer.
    used: bool,
    sampling: bool,
    rounds: u32,
    /// The start of the interval: time, and octets delivered and lost.
    since: Instant,
    delivered: u64,
    lost: u64,
}

impl LongTerm {
    /// The rate of a policer, if one was found.
    pub(super) fn rate(&self) -> Option<OctetRate> {
        self.last.filter(|_| self.used)
    }

    pub(super) fn begin(&mut self, now: Instant) {
        self.since = now;
    }

    /// Sampling ends, and no rate is known.
    pub(super) fn reset(&mut self) {
        (self.last, self.used, self.sampling, self.rounds) = (None, false, false, 0);
    }

    /// The retransmission timer expired, which is a loss and begins a round.
    pub(super) fn on_timeout(&mut self, totals: Totals) {
        if !self.used && !self.sampling {
            self.begin_interval(totals);
            self.sampling = true;
        }
        self.rounds += u32::from(!self.used);
    }

    fn begin_interval(&mut self, totals: Totals) {
        let Totals { now, delivered, lost } = totals;
        (self.since, self.delivered, self.lost, self.rounds) = (now, delivered, lost, 0);
    }

    pub(super) fn on_ack(&mut self, sample: &RateSample, round_started: bool, in_probe_bw: bool) -> Verdict {
        if self.used {
            self.rounds += u32::from(in_probe_bw && round_started);
            if self.rounds < LASTS_ROUNDS {
                return Verdict::Nothing;
            }
            self.reset();
            return Verdict::Probe;
        }
        if !self.sampling {
            if sample.newly_lost == 0 {
                return Verdict::Nothing;
            }
            self.begin_interval(sample.totals());
            self.sampling = true;
        }
        if sample.segment.is_some_and(|segment| segment.app_limited) {
            self.reset();
            return Verdict::Nothing;
        }
        self.rounds += u32::from(round_started);
        if self.rounds > MOST_ROUNDS {
            self.reset();
        }
        if self.rounds < LEAST_ROUNDS || sample.newly_lost == 0 {
            return Verdict::Nothing;
        }
        self.end_interval(sample)
    }

    fn end_interval(&mut self, sample: &RateSample) -> Verdict {
        let (lost, delivered) = (sample.lost - self.lost, sample.delivered - self.delivered);
        let span = sample.now.since(self.since);
        if delivered == 0 || lost < LOSS_THRESHOLD.of(delivered) || span < Duration::from_ms(1) {
            return Verdict::Nothing;
        }
        let rate = OctetRate::of(delivered, span);
        if let Some(last) = self.last {
            let apart = rate.abs_diff(last);
            if apart <= last.times(NEAR) || apart <= NEAR_RATE {
                let mean = u64::midpoint(rate.octets_per_s(), last.octets_per_s());
                (self.last, self.used, self.rounds) = (Some(OctetRate::from_octets_per_s(mean)), true, 0);
                return Verdict::Policed;
            }
        }
        self.last = Some(rate);
        self.begin_interval(sample.totals());
        Verdict::Nothing
    }
}

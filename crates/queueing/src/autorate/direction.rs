//! One direction: its load, its window of delays, its rate.

use core::cmp::Ordering;

use lastmile_units::{BitRate, Duration, Instant};

use super::config::{Adjust, Config, Load, Rates};

const THOUSAND: i64 = 1000;

/// One direction of a controller. Times are microseconds, rates kbit/s.
#[derive(Clone, Debug)]
pub(super) struct Direction {
    min: i64,
    base: i64,
    max: i64,
    /// The rate of the shaper.
    rate: i64,
    largest_bits: i64,
    /// Excess of the latest replies over their baselines, and whether they were delayed. The oldest is at `oldest`.
    window: Vec<(i64, bool)>,
    oldest: usize,
    achieved: i64,
    /// The load is measured, and no rise has followed yet.
    is_fresh: bool,
    /// The load compared with the threshold of a high one.
    load: Ordering,
    is_active: bool,
    last_bufferbloat: Instant,
    last_decay: Instant,
}

fn kbit(rate: BitRate) -> i64 {
    i64::try_from(rate.as_bps() / 1000).unwrap_or(i64::MAX)
}

fn us(time: Duration) -> i64 {
    i64::try_from(time.as_us()).unwrap_or(i64::MAX)
}

/// How far `part` is along `whole`, in thousandths from 0 to 1000. A `whole` of zero or less is passed.
fn thousandths(part: i64, whole: i64) -> i64 {
    if whole <= 0 { THOUSAND } else { (THOUSAND * part / whole).clamp(0, THOUSAND) }
}

impl Direction {
    pub(super) fn new(config: &Config, rates: Rates, start: Instant) -> Self {
        Self {
            min: kbit(rates.min),
            base: kbit(rates.base),
            max: kbit(rates.max),
            rate: kbit(rates.base),
            largest_bits: i64::try_from(rates.largest.bits()).unwrap_or(0),
            window: vec![(0, false); config.detection.bufferbloat_detection_window as usize],
            oldest: 0,
            achieved: 0,
            is_fresh: false,
            load: Ordering::Less,
            is_active: false,
            last_bufferbloat: start,
            last_decay: start,
        }
    }

    pub(super) fn rate(&self) -> BitRate {
        BitRate::from_kbit_per_s(self.rate.unsigned_abs())
    }

    pub(super) fn set_min(&mut self) {
        self.rate = self.min;
    }

    pub(super) fn is_idle(&self) -> bool {
        self.load.is_le() && !self.is_active
    }

    pub(super) fn is_low(&self) -> bool {
        self.load.is_lt()
    }

    pub(super) fn exceeds(&self, rate: BitRate) -> bool {
        self.achieved > kbit(rate)
    }

    /// The transmission time of the largest packet.
    pub(super) fn largest_us(&self) -> i64 {
        THOUSAND * self.largest_bits / self.rate
    }

    /// The shaper has sent so many bits in this time.
    pub(super) fn achieved(&mut self, load: &Load, bits: u64, elapsed: Duration) {
        let kbit_per_s = u128::from(bits) * 1_000_000_000 / u128::from(elapsed.as_ps());
        self.achieved = i64::try_from(kbit_per_s).unwrap_or(i64::MAX / 100);
        let percent = i64::from(load.high_load_thr.as_parts_per_billion() / 10_000_000);
        self.load = (100 * self.achieved / self.rate).cmp(&percent);
        self.is_active = self.exceeds(load.connection_active_thr);
        self.is_fresh = true;
    }

    /// A reply that exceeds its baseline by `delta`.
    pub(super) fn sample(&mut self, config: &Config, now: Instant, delta: i64) {
        let [up, delayed, down] = [
            config.thresholds.avg_owd_delta_max_adjust_up_thr,
            config.thresholds.owd_delta_delay_thr,
            config.thresholds.avg_owd_delta_max_adjust_down_thr,
        ]
        .map(|threshold| us(threshold) + self.largest_us());
        self.window[self.oldest] = (delta, delta > delayed);
        self.oldest = (self.oldest + 1) % self.window.len();
        let mean = self.window.iter().map(|(delta, _)| delta).sum::<i64>() / self.window.len() as i64;
        let count = self.window.iter().filter(|(_, delayed)| *delayed).count();
        let rested = now > self.last_bufferbloat.saturating_add(config.detection.bufferbloat_refractory_period);
        if count >= config.detection.bufferbloat_detection_thr as usize {
            if rested {
                let excess = thousandths(mean - delayed, down - delayed);
                let Adjust { min_adjust_down_bufferbloat: least, max_adjust_down_bufferbloat: most, .. } =
                    config.adjust;
                self.scale(least, most, excess);
                (self.last_bufferbloat, self.last_decay) = (now, now);
            }
        } else if self.load.is_gt() {
            if rested && self.is_fresh {
                let room = thousandths(delayed - mean, delayed - up);
                let Adjust { min_adjust_up_load_high: least, max_adjust_up_load_high: most, .. } = config.adjust;
                self.scale(least, most, room);
                (self.is_fresh, self.last_decay) = (false, now);
            }
        } else if now > self.last_decay.saturating_add(config.adjust.decay_refractory_period) {
            self.return_to_base(&config.adjust);
            self.last_decay = now;
        }
        self.rate = self.rate.clamp(self.min, self.max);
    }

    /// Multiplies the rate by a factor between `least` and `most`, at `part` thousandths of the way.
    fn scale(&mut self, least: u32, most: u32, part: i64) {
        let (least, most) = (i64::from(least), i64::from(most));
        let millionths = THOUSAND * least - part * (least - most);
        self.rate = self.rate.saturating_mul(millionths) / (THOUSAND * THOUSAND);
    }

    fn return_to_base(&mut self, adjust: &Adjust) {
        let scaled = |factor: u32| self.rate * i64::from(factor) / THOUSAND;
        self.rate = match self.rate.cmp(&self.base) {
            Ordering::Greater => scaled(adjust.adjust_down_load_low).max(self.base),
            Ordering::Less => scaled(adjust.adjust_up_load_low).min(self.base),
            Ordering::Equal => self.base,
        };
    }
}

//! Rates of classes that follow the rate of the link.

use lastmile_units::{BitRate, Instant};

/// `rate`, which belongs to a link of `whole`, on a link of `new`: rounded down, and 1 bit/s at least.
#[must_use]
pub fn in_proportion(rate: BitRate, whole: BitRate, new: BitRate) -> BitRate {
    let bps = u128::from(rate.as_bps()) * u128::from(new.as_bps()) / u128::from(whole.as_bps());
    let bps = u64::try_from(bps).unwrap_or(u64::MAX).min(BitRate::MAX.as_bps());
    BitRate::from_bps(bps.max(1)).expect("above zero")
}

/// A clock that runs as fast as the link compared with the rate for which curves were built: on it the curves stay,
/// and all rates are in proportion. Nothing is rounded from change to change.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    built: BitRate,
    rate: BitRate,
    since: Instant,
    /// The sum of time in picoseconds times rate until `since`.
    reached: u128,
}

impl Clock {
    /// The clock of a link that had the rate `built` so far.
    pub(super) fn new(built: BitRate) -> Self {
        Self { built, rate: built, since: Instant::ZERO, reached: 0 }
    }

    pub(super) fn set_rate(&mut self, now: Instant, rate: BitRate) {
        self.reached = self.reached_at(now);
        (self.since, self.rate) = (now, rate);
    }

    fn reached_at(&self, now: Instant) -> u128 {
        self.reached + u128::from(now.since(self.since).as_ps()) * u128::from(self.rate.as_bps())
    }

    /// What this clock shows at `now`.
    pub(super) fn at(&self, now: Instant) -> Instant {
        let time = self.reached_at(now) / u128::from(self.built.as_bps());
        Instant::from_ps(u64::try_from(time).unwrap_or(u64::MAX))
    }

    /// When this clock shows `time`, at its present speed.
    pub(super) fn when(&self, time: Instant) -> Instant {
        let missing = (u128::from(time.as_ps()) * u128::from(self.built.as_bps())).saturating_sub(self.reached);
        let span = missing.div_ceil(u128::from(self.rate.as_bps()));
        Instant::from_ps(self.since.as_ps().saturating_add(u64::try_from(span).unwrap_or(u64::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use lastmile_units::Duration;

    use super::*;

    /// A third of 1 Mbit/s, when 1 Mbit/s become 500 kbit/s, is 166 666.5 bit/s.
    #[test]
    fn a_rate_is_rounded_down() {
        let bps = |bps| BitRate::from_bps(bps).expect("above zero");
        assert_eq!(in_proportion(bps(333_333), bps(1_000_000), bps(500_000)), bps(166_666));
        assert_eq!(in_proportion(bps(1), bps(1_000_000), bps(500_000)), bps(1));
    }

    /// Built for 2 Mbit/s. After 10 ms the link has 1 Mbit/s, and after 20 more 6: 10 + 10 ms, and then thrice as fast.
    #[test]
    fn the_clock_runs_as_fast_as_the_link() {
        let ms = |ms| Instant::ZERO + Duration::from_ms(ms);
        let mut clock = Clock::new(BitRate::from_mbit_per_s(2));
        clock.set_rate(ms(10), BitRate::from_mbit_per_s(1));
        assert_eq!([10, 20, 30].map(|at| clock.at(ms(at))), [10, 15, 20].map(ms));
        assert_eq!([15, 20].map(|at| clock.when(ms(at))), [20, 30].map(ms));
        clock.set_rate(ms(30), BitRate::from_mbit_per_s(6));
        assert_eq!([30, 40].map(|at| clock.at(ms(at))), [20, 50].map(ms));
        assert_eq!(clock.when(ms(50)), ms(40));
        assert_eq!(clock.when(ms(10)), ms(30), "it has shown that before");
    }
}

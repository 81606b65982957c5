//! CUBIC as Linux has it: the window as a cubic function of the time since the last loss.
//!
//! Published: RFC 9438; S. Ha, I. Rhee and L. Xu, "CUBIC: a new TCP-friendly high-speed TCP variant", 2008;
//! the behaviour of Linux 6.18 where the two differ.
//! Differs from the RFC as Linux does:
//!
//! - Before the first loss, and after a timeout, the window grows by at least a segment for each twenty
//!   acknowledged (5 % a round trip). HyStart often ends slow start long before the path is full, and the
//!   curve alone would take seconds to fill it.
//! - The curve is read one *least* round trip ahead, not one smoothed round trip.
//! - Time in which the window is not the limit counts. Only a sender with nothing in flight moves its epoch.
//! - The estimate of Reno's window grows by 8/15 of a segment a round trip throughout.
//! - The threshold after a loss follows from the window, not from the flight.
//! - Windows are whole segments. The law gives the number of acknowledged segments after which the window
//!   grows by one. It is recomputed when the window has changed, or after 1/32 s.
//!
//! Differs from Linux: time counts in 2^-20 s, not in the kernel's ticks; C is 0.4, not 0.4004; K is an
//! exact integer cube root.
//! Cost: three 64-bit divisions and one 128-bit product each time that the window has changed; 64 bytes, boxed.

use lastmile_units::{Duration, Instant};

use super::events::Acked;

/// RFC 9438, section 4.6: beta = 0.7, as 717/1024 and in whole segments; at least two.
pub(super) fn reduced(cwnd: u32, mss: u32) -> u32 {
    let segments = u64::from(cwnd / mss) * 717 / 1024;
    (segments.max(2) as u32) * mss
}

/// The law is recomputed after this time where the window stays.
const LAW_LASTS: Duration = Duration::from_us(31_250);
/// Acknowledged segments for one of growth: the minimum, and the maximum before the first loss.
const FASTEST: u32 = 2;
const UNTIL_FIRST_LOSS: u32 = 20;

/// The state of RFC 9438, section 4.1.2. Windows in segments.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Cubic {
    /// Start of the current congestion avoidance stage, later by the times in which nothing was in flight.
    epoch: Option<Instant>,
    /// Time and window for which `every` was last computed.
    judged: Instant,
    judged_for: u32,
    /// The window grows by a segment for each `every` acknowledged.
    every: u32,
    /// Window before the last reduction, with fast convergence (section 4.7); `None` before the first loss,
    /// and after a timeout until the next one.
    w_max: Option<u32>,
    /// The plateau of the curve in this stage.
    origin: u32,
    /// The window of Reno in its place (W_est).
    w_est: u32,
    /// Octets acknowledged towards its next segment.
    w_est_counted: u64,
    /// Time from the epoch to the plateau, in 2^-20 s.
    k: u64,
}

impl Default for Cubic {
    fn default() -> Self {
        Self {
            epoch: None,
            judged: Instant::ZERO,
            judged_for: 0,
            every: 0,
            w_max: None,
            origin: 0,
            w_est: 0,
            w_est_counted: 0,
            k: 0,
        }
    }
}

impl Cubic {
    #[cfg(test)]
    pub(super) fn w_max(&self) -> Option<u32> {
        self.w_max
    }

    /// The window is about to be reduced from `cwnd` octets.
    pub(super) fn on_congestion(&mut self, cwnd: u32, mss: u32) {
        let cwnd = cwnd / mss;
        // RFC 9438, section 4.7: a flow that lost below its last maximum yields capacity: W_max = cwnd * (1
        // + beta) / 2.
        let below = self.w_max.is_some_and(|w_max| cwnd < w_max);
        self.w_max = Some(if below { (u64::from(cwnd) * 1741 / 2048) as u32 } else { cwnd });
        self.epoch = None;
    }

    /// Data are sent after a time with nothing in flight, which the curve does not count; the last were
    /// sent at `last`.
    pub(super) fn on_idle(&mut self, now: Instant, last: Instant) {
        self.epoch = self.epoch.map(|epoch| epoch.saturating_add(now.since(last)).min(now));
    }

    /// The acknowledged octets after which the window grows by a segment. This acknowledgement counts `counted`.
    pub(super) fn growth_every(&mut self, cwnd: u32, counted: u32, acked: &Acked) -> u64 {
        let mss = acked.mss;
        let segments = cwnd / mss;
        self.w_est_counted += u64::from(counted);
        if self.judged_for != segments || acked.now.since(self.judged) > LAW_LASTS {
            (self.judged, self.judged_for) = (acked.now, segments);
            self.judge(segments, counted, acked);
        }
        u64::from(self.every) * u64::from(mss)
    }

    fn judge(&mut self, cwnd: u32, counted: u32, acked: &Acked) {
        let epoch = match self.epoch {
            Some(epoch) => epoch,
            None => self.begin(acked.now, cwnd, counted),
        };
        let ahead = acked.now.since(epoch).as_ps().saturating_add(acked.least_rtt.as_ps());
        let target = self.curve(ticks(Duration::from_ps(ahead)));
        let mut every = match target.checked_sub(u64::from(cwnd)) {
            // The curve is at or below the window, which hardly grows.
            None | Some(0) => cwnd.saturating_mul(100),
            Some(above) => (u64::from(cwnd) / above) as u32,
        };
        if self.w_max.is_none() {
            every = every.min(UNTIL_FIRST_LOSS);
        }
        self.advance_estimate(cwnd, acked.mss);
        // RFC 9438, section 4.3: below Reno's window, growth reaches it within a window of acknowledgements.
        if let Some(below) = self.w_est.checked_sub(cwnd).filter(|&below| below > 0) {
            every = every.min(cwnd / below);
        }
        self.every = every.max(FASTEST);
    }

    fn begin(&mut self, now: Instant, cwnd: u32, counted: u32) -> Instant {
        self.epoch = Some(now);
        self.w_est = cwnd;
        self.w_est_counted = u64::from(counted);
        // RFC 9438, equation 2: K = cbrt((W_max - cwnd_epoch) / C), windows in segments, C = 0.4.
        let w_max = self.w_max.unwrap_or(0);
        let below = w_max.saturating_sub(cwnd);
        self.origin = w_max.max(cwnd);
        self.k = cube_root(((u128::from(below) * 10) << 60) / 4);
        now
    }

    /// RFC 9438, section 4.3: W_est grows by alpha segments for each window acknowledged, alpha = 3 (1 -
    /// beta) / (1 + beta), which Linux rounds to 8/15.
    fn advance_estimate(&mut self, cwnd: u32, mss: u32) {
        let for_one = (u64::from(cwnd) * 15 / 8).max(1) * u64::from(mss);
        // One octet remains, as in the kernel.
        let steps = self.w_est_counted.saturating_sub(1) / for_one;
        self.w_est_counted -= steps * for_one;
        self.w_est = self.w_est.saturating_add(u32::try_from(steps).unwrap_or(u32::MAX));
    }

    /// RFC 9438, equation 1: W_cubic(t) = C (t - K)^3 + W_max, in segments.
    fn curve(&self, t: u64) -> u64 {
        let distance = u128::from(t.abs_diff(self.k).min(1 << 31));
        let height = ((distance * distance * distance * 4) >> 60) as u64 / 10;
        let origin = u64::from(self.origin);
        if t < self.k { origin.saturating_sub(height) } else { origin + height }
    }
}

/// A span in 2^-20 s: ps * 2^20 / 10^12 = ps * 2^8 / 5^12.
fn ticks(span: Duration) -> u64 {
    const LONGEST: u64 = u64::MAX >> 8;
    (span.as_ps().min(LONGEST) << 8) / 244_140_625
}

/// The largest integer whose cube is at most `n`, bit by bit from the top.
fn cube_root(n: u128) -> u64 {
    let mut root: u128 = 0;
    for bit in (0..42).rev() {
        let trial = root | (1 << bit);
        if trial * trial * trial <= n {
            root = trial;
        }
    }
    root as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn cube_roots_are_exact() {
        for (n, root) in [(0, 0), (1, 1), (7, 1), (8, 2), (26, 2), (27, 3), (999, 9), (1000, 10)] {
            assert_eq!(cube_root(n), root);
        }
    }

    #[test]
    fn a_second_is_two_to_the_twentieth_ticks() {
        assert_eq!(ticks(Duration::from_s(1)), 1 << 20);
        assert_eq!(ticks(Duration::from_s(1000)), 1000 << 20);
    }

    const MSS: u32 = 1000;

    fn at(ms: u64) -> Acked {
        let now = Instant::ZERO + Duration::from_ms(ms);
        Acked {
            now,
            bytes: 2000,
            mss: MSS,
            after_timeout: false,
            least_rtt: Duration::from_ms(100),
            srtt: None,
            rtt: None,
            marked: 0,
        }
    }

    fn every(cubic: &mut Cubic, cwnd: u32, ms: u64) -> u64 {
        cubic.growth_every(cwnd * MSS, 2000, &at(ms)) / u64::from(MSS)
    }

    fn after_loss_at(cwnd: u32) -> Cubic {
        let mut cubic = Cubic::default();
        cubic.on_congestion(cwnd * MSS, MSS);
        cubic.begin(Instant::ZERO, reduced(cwnd * MSS, MSS) / MSS, 0);
        cubic
    }

    /// 717/1024 of 1000 and of 10 segments, without the fraction; never below two.
    #[test]
    fn a_loss_leaves_seven_tenths_in_whole_segments() {
        assert_eq!([1000, 10, 2].map(|cwnd| reduced(cwnd * MSS, MSS) / MSS), [700, 7, 2]);
    }

    /// RFC 9438, equation 2: K = cbrt((1000 - 700) / 0.4) = 9.0856 s, in 2^-20 s.
    #[test]
    fn the_plateau_comes_after_k() {
        let cubic = after_loss_at(1000);
        assert_eq!(cubic.k, 9_526_945);
        assert_eq!(cubic.curve(cubic.k), 1000);
        // Equation 1 at t = 0 gives the window after the reduction.
        assert!(cubic.curve(0).abs_diff(700) <= 1);
        // C * 10 s^3 = 400 segments beyond and before.
        assert_eq!(cubic.curve(cubic.k + (10 << 20)), 1400);
        assert_eq!(cubic.curve(cubic.k - (5 << 20)), 950);
    }

    /// The curve one least round trip, 100 ms, ahead of 5 s: 1000 - 0.4 * (9.0856 - 5.1)^3 = 974.7; 900 / 74 = 12.
    #[test]
    fn the_curve_is_read_one_least_round_trip_ahead() {
        assert_eq!(every(&mut after_loss_at(1000), 900, 5000), 12);
    }

    /// At 8 s the curve is 0.4 * (9.0856 - 8.1)^3 = 0.38 below 1000, so a window of 1000 hardly grows.
    #[test]
    fn at_the_plateau_the_window_rests() {
        assert_eq!(every(&mut after_loss_at(1000), 1000, 8000), 100_000);
    }

    /// Linux 6.18: 5 % a round trip before the first loss, and after a timeout.
    #[test]
    fn before_the_first_loss_a_twentieth_is_added_each_round_trip() {
        let mut cubic = Cubic::default();
        assert_eq!(every(&mut cubic, 110, 0), 20);
        assert_eq!(every(&mut cubic, 115, 20), 20);
        cubic.on_congestion(250 * MSS, MSS);
        assert_ne!(every(&mut cubic, 175, 100), 20);
        cubic = Cubic::default();
        assert_eq!(every(&mut cubic, 100, 1000), 20);
    }

    /// 970 / 5 = 194 at 5.1 s, where the curve is 25 below 1000, and 970 / 6 = 161 at 5.132 s, where it is 24 below.
    #[test]
    fn the_law_is_recomputed_after_a_while() {
        let mut cubic = after_loss_at(1000);
        assert_eq!([5000, 5031, 5032].map(|ms| every(&mut cubic, 970, ms)), [194, 194, 161]);
    }

    /// A pause with nothing in flight moves the curve.
    #[test]
    fn an_idle_time_does_not_move_the_curve() {
        let (mut steady, mut paused) = (after_loss_at(1000), after_loss_at(1000));
        let first = every(&mut steady, 900, 5000);
        paused.on_idle(Instant::ZERO + Duration::from_s(22), Instant::ZERO + Duration::from_s(2));
        assert_eq!(every(&mut paused, 900, 25_000), first);
    }

    /// Linux never grows faster than a segment for two acknowledged.
    #[test]
    fn growth_is_at_most_half_of_what_is_acknowledged() {
        assert_eq!(every(&mut after_loss_at(1000), 700, 100_000), 2);
    }

    /// Reno's estimate grows by a segment for each 20 * 15 / 8 = 37 acknowledged. A window of 29 that is
    /// four below it grows by one for each seven.
    #[test]
    fn below_reno_the_window_is_reno() {
        let mut cubic = after_loss_at(30);
        let before = cubic.w_est;
        cubic.w_est_counted = 37 * 1000;
        cubic.advance_estimate(20, MSS);
        assert_eq!(cubic.w_est, before);
        cubic.w_est_counted += 1;
        cubic.advance_estimate(20, MSS);
        assert_eq!((cubic.w_est, cubic.w_est_counted), (before + 1, 1));
        cubic.w_est = 33;
        assert_eq!(every(&mut cubic, 29, 0), 7);
    }

    proptest! {
        #[test]
        fn a_cube_root_is_the_largest_whose_cube_fits(n in 0_u128..1 << 120) {
            let root = u128::from(cube_root(n));
            prop_assert!(root.pow(3) <= n && (root + 1).pow(3) > n);
        }
    }
}

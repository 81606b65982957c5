//! CUBIC (RFC 9438): the window as a cubic function of the time since the last loss.
//!
//! Differs: integers. Time counts in 2^-20 s (0.954 us), windows in bytes, and K comes from an exact integer cube root,
//! so that every machine gets the same bits. Divisions carry their remainders. Recovery and slow start are those of the
//! other variants.
//! Cost: four 64-bit divisions and one 128-bit product for each acknowledgement in congestion avoidance; 48 bytes,
//! boxed.

use lastmile_units::{Duration, Instant};

use super::Acked;
use crate::timer::Timer;

/// RFC 9438, section 4.6: ssthresh = FlightSize * beta with beta = 0.7, at least two segments.
pub(super) fn reduced(flight: u32, mss: u32) -> u32 {
    ((u64::from(flight) * 7 / 10) as u32).max(2 * mss)
}

/// The state of RFC 9438, section 4.1.2. Windows in bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Cubic {
    /// Start of the current congestion avoidance stage; later by each time that the window was not the limit.
    epoch: Timer,
    /// The last acknowledgement.
    touched: Instant,
    /// Window before the last reduction, fast convergence applied (section 4.7). Zero: none since the last timeout.
    w_max: u32,
    /// Window just before the last reduction (cwnd_prior).
    prior: u32,
    /// Where the curve has its plateau in this stage.
    origin: u32,
    /// Window that Reno would have (W_est).
    w_est: u32,
    /// Numerator that the last division for W_est left over.
    w_est_rest: u64,
    /// Numerator that the last division for cwnd left over.
    cwnd_rest: u64,
    /// Time from the epoch to the plateau, in 2^-20 s.
    k: u64,
}

impl Default for Cubic {
    fn default() -> Self {
        Self {
            epoch: Timer::OFF,
            touched: Instant::ZERO,
            w_max: 0,
            prior: u32::MAX,
            origin: 0,
            w_est: 0,
            w_est_rest: 0,
            cwnd_rest: 0,
            k: 0,
        }
    }
}

impl Cubic {
    #[cfg(test)]
    pub(super) fn w_max(&self) -> u32 {
        self.w_max
    }

    /// The window was about to be reduced from `cwnd`.
    pub(super) fn on_congestion(&mut self, cwnd: u32) {
        // RFC 9438, section 4.7: a flow that lost below its last maximum makes room: W_max = cwnd * (1 + beta) / 2.
        self.w_max = if cwnd < self.w_max { (u64::from(cwnd) * 17 / 20) as u32 } else { cwnd };
        self.prior = cwnd;
        self.epoch = Timer::OFF;
    }

    /// RFC 9438, section 4.8: the stage after a timeout has K = 0 and its plateau where it begins.
    pub(super) fn on_timeout(&mut self) {
        self.w_max = 0;
    }

    /// The window is another: the next acknowledgement begins a stage.
    pub(super) fn begin_anew(&mut self) {
        self.epoch = Timer::OFF;
    }

    /// Time in which the window was not the limit is none of the curve's.
    pub(super) fn rest(&mut self, now: Instant) {
        if let Some(epoch) = self.epoch.earlier(Timer::OFF) {
            self.epoch = Timer::at(epoch.saturating_add(now.since(self.touched)));
        }
        self.touched = now;
    }

    /// The window after an acknowledgement in congestion avoidance that counts for `counted` bytes.
    pub(super) fn grow(&mut self, cwnd: u32, counted: u32, acked: &Acked) -> u32 {
        let mss = acked.mss;
        self.touched = acked.now;
        let epoch = match self.epoch.earlier(Timer::OFF) {
            Some(epoch) => epoch,
            None => self.begin(acked.now, cwnd, mss),
        };
        let elapsed = acked.now.since(epoch);
        self.advance_estimate(cwnd, counted, mss);
        // RFC 9438, section 4.3: below Reno's window, be Reno.
        if self.curve(ticks(elapsed), mss) < u64::from(self.w_est) {
            self.cwnd_rest = 0;
            return cwnd.max(self.w_est);
        }
        // RFC 9438, section 4.2: the target is the curve one round trip ahead, between cwnd and 1.5 cwnd.
        let ahead = Duration::from_ps(elapsed.as_ps().saturating_add(acked.srtt.as_ps()));
        let target = self.curve(ticks(ahead), mss).clamp(u64::from(cwnd), u64::from(cwnd) * 3 / 2);
        // RFC 9438, sections 4.4 and 4.5: cwnd += (target - cwnd) / cwnd for each segment acknowledged.
        let numerator = (target - u64::from(cwnd)) * u64::from(counted) + self.cwnd_rest;
        self.cwnd_rest = numerator % u64::from(cwnd);
        cwnd.saturating_add(u32::try_from(numerator / u64::from(cwnd)).unwrap_or(u32::MAX))
    }

    fn begin(&mut self, now: Instant, cwnd: u32, mss: u32) -> Instant {
        self.epoch = Timer::at(now);
        self.w_est = cwnd;
        self.w_est_rest = 0;
        self.cwnd_rest = 0;
        // RFC 9438, equation 2: K = cbrt((W_max - cwnd_epoch) / C), windows in segments, C = 0.4.
        let below = self.w_max.saturating_sub(cwnd);
        self.origin = self.w_max.max(cwnd);
        self.k = cube_root(((u128::from(below) * 10) << 60) / (4 * u128::from(mss)));
        now
    }

    /// RFC 9438, section 4.3: W_est += alpha * segments_acked / cwnd, with alpha = 3 (1 - beta) / (1 + beta) = 9/17
    /// until W_est reaches the window before the last reduction, and 1 from there.
    fn advance_estimate(&mut self, cwnd: u32, counted: u32, mss: u32) {
        let alpha = if self.w_est >= self.prior { 17 } else { 9 };
        let numerator = u64::from(counted) * u64::from(mss) * alpha + self.w_est_rest;
        let denominator = u64::from(cwnd) * 17;
        self.w_est_rest = numerator % denominator;
        self.w_est = self.w_est.saturating_add(u32::try_from(numerator / denominator).unwrap_or(u32::MAX));
    }

    /// RFC 9438, equation 1: W_cubic(t) = C (t - K)^3 + W_max, in bytes.
    fn curve(&self, t: u64, mss: u32) -> u64 {
        let distance = u128::from(t.abs_diff(self.k).min(1 << 31));
        let cube = distance * distance * distance;
        let height = ((cube * u128::from(4 * mss)) >> 60) as u64 / 10;
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

    fn at(ms: u64, rtt_ms: u64) -> Acked {
        let now = Instant::ZERO + Duration::from_ms(ms);
        Acked { now, bytes: 2000, mss: MSS, after_timeout: false, srtt: Duration::from_ms(rtt_ms) }
    }

    fn after_loss_at(cwnd: u32) -> Cubic {
        let mut cubic = Cubic::default();
        cubic.on_congestion(cwnd);
        cubic.begin(Instant::ZERO, reduced(cwnd, MSS), MSS);
        cubic
    }

    /// RFC 9438, equation 2: K = cbrt((1000 - 700) / 0.4) = 9.0856 s, in 2^-20 s.
    #[test]
    fn the_plateau_comes_after_k() {
        let cubic = after_loss_at(1_000_000);
        assert_eq!(cubic.k, 9_526_945);
        assert_eq!(cubic.curve(cubic.k, MSS), 1_000_000);
        // Equation 1 at t = 0 gives the window after the reduction.
        assert!(cubic.curve(0, MSS).abs_diff(700_000) <= 1);
        // C * 1 s^3 = 0.4 segments beyond and before.
        assert_eq!(cubic.curve(cubic.k + (1 << 20), MSS), 1_000_400);
        assert_eq!(cubic.curve(cubic.k - (1 << 20), MSS), 999_600);
    }

    /// RFC 9438, section 4.2: time in which the application was the limit does not count.
    #[test]
    fn a_pause_of_the_application_does_not_move_the_curve() {
        let (mut steady, mut paused) = (after_loss_at(1_000_000), after_loss_at(1_000_000));
        let first = steady.grow(700_000, 2000, &at(0, 100));
        assert_eq!(paused.grow(700_000, 2000, &at(0, 100)), first);
        let next = steady.grow(first, 2000, &at(1000, 100));
        paused.rest(Instant::ZERO + Duration::from_s(20));
        assert_eq!(paused.grow(first, 2000, &at(21_000, 100)), next);
        assert!(next > first);
    }

    /// RFC 9438, section 4.2: the target is at most 1.5 cwnd, so 2000 bytes acknowledged add at most 1000.
    #[test]
    fn the_target_is_at_most_half_a_window_ahead() {
        let mut cubic = after_loss_at(1_000_000);
        assert_eq!(cubic.grow(700_000, 2000, &at(100_000, 100)), 701_000);
    }

    /// RFC 9438, section 4.8: K = 0 and the plateau is where the stage begins.
    #[test]
    fn after_a_timeout_the_curve_is_convex_at_once() {
        let mut cubic = after_loss_at(1_000_000);
        cubic.on_congestion(800_000);
        cubic.on_timeout();
        cubic.begin(Instant::ZERO, 560_000, MSS);
        assert_eq!((cubic.k, cubic.origin), (0, 560_000));
        assert_eq!(cubic.curve(10 << 20, MSS), 560_000 + 400_000);
    }

    proptest! {
        #[test]
        fn a_cube_root_is_the_largest_whose_cube_fits(n in 0_u128..1 << 120) {
            let root = u128::from(cube_root(n));
            prop_assert!(root.pow(3) <= n && (root + 1).pow(3) > n);
        }
    }
}

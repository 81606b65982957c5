//! HyStart++: slow start that grows slowly for a while, once round trips grow, before it ends.
//!
//! Published: RFC 9406. Constants are those that section 4.3 recommends.
//!
//! When the least round trip of a round is an eighth, but 4 to 16 ms, above that of the round before,
//! conservative slow start (CSS) begins, with a quarter of the growth. If the round trips fall, it was
//! jitter, and slow start continues. After five rounds of CSS the threshold becomes the window.
//!
//! Differs: [`ByteCounting`](crate::ByteCounting) sets the segments that an acknowledgement adds (L; the
//! RFC has 8 without pacing). Needs the times of transmission, which only Linux's timer records.
//! Cost: a dozen operations for each acknowledgement in slow start, none after; boxed while slow start lasts.

use super::events::RoundTrip;

/// `MIN_RTT_THRESH` and `MAX_RTT_THRESH`, in microseconds.
const RTT_THRESH_US: (u32, u32) = (4_000, 16_000);
/// `MIN_RTT_DIVISOR`.
const MIN_RTT_DIVISOR: u32 = 8;
/// `N_RTT_SAMPLE`.
const N_RTT_SAMPLE: u8 = 8;
/// `CSS_GROWTH_DIVISOR`.
const CSS_GROWTH_DIVISOR: u32 = 4;
/// `CSS_ROUNDS`.
const CSS_ROUNDS: u8 = 5;

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct HyStartPlusPlus {
    /// `windowEnd`.
    window_end: u64,
    /// `lastRoundMinRTT`, `currentRoundMinRTT` and `cssBaselineMinRtt` in microseconds; the last only in CSS.
    last_us: Option<u32>,
    current_us: Option<u32>,
    baseline_us: Option<u32>,
    /// `rttSampleCount`, at most 255.
    samples: u8,
    /// Rounds of CSS; the first one is partial.
    rounds: u8,
}

impl HyStartPlusPlus {
    pub(super) fn new(trip: &RoundTrip) -> Self {
        let window_end = trip.outstanding.max;
        Self { window_end, last_us: None, current_us: None, baseline_us: None, samples: 0, rounds: 0 }
    }

    /// The divisor of the growth in slow start.
    pub(super) fn divisor(&self) -> u32 {
        if self.baseline_us.is_some() { CSS_GROWTH_DIVISOR } else { 1 }
    }

    /// Section 4.2, after the window has grown. True: slow start is over.
    pub(super) fn ends(&mut self, trip: &RoundTrip) -> bool {
        self.look(trip.us);
        // The acknowledgement that ends a round belongs to it.
        if self.window_end > trip.outstanding.una {
            return false;
        }
        (self.last_us, self.current_us, self.samples) = (self.current_us, None, 0);
        self.window_end = trip.outstanding.max;
        self.rounds += u8::from(self.baseline_us.is_some());
        self.rounds >= CSS_ROUNDS
    }

    fn look(&mut self, us: u32) {
        let current = self.current_us.map_or(us, |least| least.min(us));
        self.current_us = Some(current);
        self.samples = self.samples.saturating_add(1);
        if self.samples < N_RTT_SAMPLE {
            return;
        }
        match (self.baseline_us, self.last_us) {
            (Some(baseline), _) if current < baseline => (self.baseline_us, self.rounds) = (None, 0),
            (Some(_), _) | (None, None) => {}
            (None, Some(last)) => {
                let (least, most) = RTT_THRESH_US;
                let threshold = (last / MIN_RTT_DIVISOR).clamp(least, most);
                if current >= last.saturating_add(threshold) {
                    self.baseline_us = Some(current);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use lastmile_units::{Duration, Instant};

    use super::*;
    use crate::sender::flight::Outstanding;

    /// A round of `count` round trips; returns whether slow start ended, and the divisor after it.
    fn round(state: &mut HyStartPlusPlus, number: u64, us: u32, count: u64) -> (bool, u32) {
        let base = number * 100;
        let mut ended = false;
        for n in 0..count {
            ended |= state.ends(&RoundTrip {
                now: Instant::ZERO,
                us,
                outstanding: Outstanding { una: base + 100 * (n + 1) / count, max: base + 200 },
                mss: 1000,
                srtt: Duration::ZERO,
                paced: false,
            });
        }
        (ended, state.divisor())
    }

    fn begun() -> HyStartPlusPlus {
        let first = RoundTrip {
            now: Instant::ZERO,
            us: 0,
            outstanding: Outstanding { una: 0, max: 100 },
            mss: 1000,
            srtt: Duration::ZERO,
            paced: false,
        };
        HyStartPlusPlus::new(&first)
    }

    /// Section 4.2: RttThresh = max(4 ms, min(lastRoundMinRTT / 8, 16 ms)), and eight samples.
    #[test]
    fn a_round_an_eighth_longer_than_the_last_begins_css() {
        for (last, longer) in [(80_000, 90_000), (16_000, 20_000), (400_000, 416_000)] {
            for (us, count, divisor) in [(longer, 8, 4), (longer - 1, 8, 1), (longer, 7, 1)] {
                let mut state = begun();
                assert_eq!(round(&mut state, 0, last, 10), (false, 1));
                assert_eq!(round(&mut state, 1, us, count), (false, divisor), "{us} after {last}");
            }
        }
    }

    /// Section 4.2: at most CSS_ROUNDS, the round in which CSS began included.
    #[test]
    fn css_lasts_five_rounds() {
        let mut state = begun();
        round(&mut state, 0, 40_000, 10);
        assert_eq!(round(&mut state, 1, 50_000, 10), (false, 4));
        for number in 2..5 {
            assert_eq!(round(&mut state, number, 60_000, 10), (false, 4), "{number}");
        }
        assert_eq!(round(&mut state, 5, 60_000, 10), (true, 4));
    }

    /// Section 4.2: a round trip below the baseline was jitter.
    #[test]
    fn slow_start_continues_when_round_trips_fall() {
        let mut state = begun();
        round(&mut state, 0, 40_000, 10);
        assert_eq!(round(&mut state, 1, 50_000, 10), (false, 4));
        assert_eq!(round(&mut state, 2, 49_999, 10), (false, 1));
    }
}

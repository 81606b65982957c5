//! HyStart: slow start ends when round trips show a queue, not when the queue overflows.
//!
//! Published: S. Ha and I. Rhee, "Taming the Elephants: New TCP Slow Start", Computer Networks 55(9), 2011;
//! thresholds and details as in Linux's CUBIC (`hystart` = 1, `hystart_detect` = 3).
//!
//! From 16 segments on, either of two signs ends slow start, and the threshold becomes the window:
//!
//! - acknowledgements follow one another within 2 ms for half of the least round trip, so that the flight
//!   fills the path; for a whole one where the sender paces, which spreads the flight over half of a round trip;
//! - of at least nine round trips in a round, the least is an eighth, but 4 to 16 ms, above the least of all rounds.
//!
//! A fast retransmit that is undone leaves the state as it was, a timeout begins it anew.
//! Where octets are SACKed, the round trip of the newest one of them counts, though it may have overtaken others.
//!
//! Differs: only the first slow start is watched. Linux also watches that after a timeout, which ends at a
//! threshold anyway, and learns of shorter round trips while a loss is repaired. Needs the times of transmission,
//! which only Linux's timer records.
//! Cost: a dozen operations for each acknowledgement in slow start, none after; boxed while slow start lasts.

use lastmile_units::{Duration, Instant};

use super::events::RoundTrip;

/// `hystart_low_window`: the least window in segments.
const LOW_WINDOW: u32 = 16;
/// `hystart_ack_delta_us`: the longest gap in a train of acknowledgements.
const TRAIN_GAP: Duration = Duration::from_ms(2);
/// `HYSTART_MIN_SAMPLES`: round trips of a round before the next one decides.
const MIN_SAMPLES: u8 = 8;
/// `HYSTART_DELAY_MIN` and `HYSTART_DELAY_MAX`, in microseconds.
const DELAY_US: (u32, u32) = (4_000, 16_000);

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct HyStart {
    round_began: Instant,
    /// The last acknowledgement of the train.
    last_ack: Instant,
    /// The round ends beyond this octet.
    round_end: u64,
    /// The least round trip of all (`delay_min`), in microseconds.
    least_us: u32,
    /// The least round trip of this round since the window reached [`LOW_WINDOW`], in microseconds.
    current_us: Option<u32>,
    samples: u8,
}

impl HyStart {
    pub(super) fn new(trip: &RoundTrip) -> Self {
        Self {
            round_began: trip.now,
            last_ack: trip.now,
            round_end: trip.outstanding.max,
            least_us: trip.us,
            current_us: None,
            samples: 0,
        }
    }

    /// True: slow start is over. `cwnd` is the window before the acknowledgement.
    pub(super) fn ends(&mut self, trip: &RoundTrip, cwnd: u32) -> bool {
        self.least_us = self.least_us.min(trip.us);
        if self.round_end < trip.outstanding.una {
            *self = Self { least_us: self.least_us, ..Self::new(trip) };
        }
        if cwnd < LOW_WINDOW * trip.mss {
            return false;
        }
        self.train_is_long(trip, cwnd) || self.delay_grows(trip.us)
    }

    fn train_is_long(&mut self, trip: &RoundTrip, cwnd: u32) -> bool {
        if trip.now.since(self.last_ack) > TRAIN_GAP {
            return false;
        }
        self.last_ack = trip.now;
        // Segmentation offload sends four bursts of 64 KiB at twice the rate at once: at most 1 ms.
        let srtt_us = trip.srtt.as_ps() / 1_000_000;
        let bursts_us = (4 * 65_536 * srtt_us / (2 * u64::from(cwnd))).min(1000);
        let train_us = u64::from(self.least_us) + bursts_us;
        let enough = Duration::from_us(if trip.paced { train_us } else { train_us / 2 });
        trip.now.since(self.round_began) > enough
    }

    fn delay_grows(&mut self, us: u32) -> bool {
        let current_us = self.current_us.map_or(us, |least| least.min(us));
        self.current_us = Some(current_us);
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
            return false;
        }
        current_us > self.least_us + (self.least_us / 8).clamp(DELAY_US.0, DELAY_US.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sender::flight::Outstanding;

    const MSS: u32 = 1000;

    fn trip(at_us: u64, us: u32, una: u64, max: u64) -> RoundTrip {
        let now = Instant::ZERO + Duration::from_us(at_us);
        let outstanding = Outstanding { una, max };
        RoundTrip { now, us, outstanding, mss: MSS, srtt: Duration::from_us(u64::from(us)), paced: false }
    }

    /// 40 ms and an eighth are 45 ms; the least of nine round trips must exceed them.
    #[test]
    fn the_ninth_round_trip_above_an_eighth_more_ends_it() {
        for (us, ends) in [(45_000, false), (45_001, true)] {
            let mut hystart = HyStart::new(&trip(0, 40_000, 1, 16_001));
            assert!(!hystart.ends(&trip(0, 40_000, 1, 16_001), 15_999), "below 16 segments");
            let next = |n: u64| trip(100_000 + n * 3000, us, 16_002 + n, 40_000);
            for n in 0..8 {
                assert!(!hystart.ends(&next(n), 16_000), "{n}");
            }
            assert_eq!(hystart.ends(&next(8), 16_000), ends);
            assert!(hystart.samples <= MIN_SAMPLES);
        }
    }

    /// The eighth is at least 4 ms and at most 16 ms.
    #[test]
    fn the_threshold_of_a_longer_round_trip_has_bounds() {
        for (least, bound) in [(8_000, 12_000), (400_000, 416_000)] {
            for (us, ends) in [(bound, false), (bound + 1, true)] {
                let mut hystart = HyStart::new(&trip(0, least, 1, 10));
                assert!(!hystart.ends(&trip(0, least, 1, 10), MSS));
                let last = (0..9).map(|n| hystart.ends(&trip(1_000_000 + n * 2500, us, 11, 900), 16 * MSS)).last();
                assert_eq!(last, Some(ends), "{us} after {least}");
            }
        }
    }

    /// Half of 40 ms and of the 1 ms of bursts: a train of 20.5 ms with gaps of at most 2 ms. Of a sender that paces
    /// 41 ms.
    #[test]
    fn a_train_of_half_a_round_trip_ends_it_and_of_a_whole_one_with_pacing() {
        let ends_at = |gap_us: u64, paced: bool| {
            let mut hystart = HyStart::new(&trip(0, 40_000, 1, 50_000));
            let next = |at| RoundTrip { paced, ..trip(at, 40_000, 1, 50_000) };
            (0..90).map(|n| n * gap_us).find(|&at| hystart.ends(&next(at), 16 * MSS))
        };
        assert_eq!([2000, 500, 2001].map(|gap| ends_at(gap, false)), [Some(22_000), Some(21_000), None]);
        assert_eq!([2000, 500, 2001].map(|gap| ends_at(gap, true)), [Some(42_000), Some(41_500), None]);
    }
}

//! The immediate AQM of DOCSIS: marks of the shallow queue by a predicted wait.
//!
//! A sojourn time contains the wait for grants, which no sender can shorten. DOCSIS predicts the wait by a virtual
//! queue instead: each packet of the shallow queue adds its bytes, and the Maximum Sustained Traffic Rate drains them
//! whether grants come or not. Published: CableLabs MULPI v3.1, annexes N and O (`qdelayCoupledV`, `iaqm`); in
//! brackets its names.

use lastmile_units::{BitRate, Duration, Instant, WireBytes};

use crate::aqm::pi::ONE;

/// The width of the ramp (`LG_RANGE` of 19): 2^19 ns.
const RANGE: Duration = Duration::from_ns(1 << 19);
/// Two frames of `MAX_FRAME_SIZE`: no wait below their time at the rate is marked (`FLOOR`).
const FLOOR: WireBytes = WireBytes::new(2 * 2000);

/// A virtual queue, and a ramp of marks over its wait.
#[derive(Clone, Debug)]
pub(super) struct Predicted {
    rate: BitRate,
    /// Packets with at most this wait are not marked (`MINTH`).
    least: Duration,
    /// The time at which the virtual queue is empty.
    empty: Instant,
    /// The sum of the probabilities since the last mark, less one for each mark.
    likelihood: u64,
}

impl Predicted {
    /// A ramp up to `most` (`MAXTH`), or to the width of the ramp above two frames where that is longer.
    pub(super) fn new(rate: BitRate, most: Duration) -> Self {
        let least = most.saturating_sub(RANGE).max(rate.time_for(FLOOR));
        Self { rate, least, empty: Instant::ZERO, likelihood: 0 }
    }

    /// The end of the ramp: packets with at least this wait are all marked (`MAXTH`).
    pub(super) fn most(&self) -> Duration {
        self.least + RANGE
    }

    /// A packet joins the virtual queue. Returns the wait until its end is sent.
    pub(super) fn joins(&mut self, now: Instant, size: WireBytes) -> Duration {
        self.empty = self.empty.max(now).saturating_add(self.rate.time_for(size));
        self.empty.since(now)
    }

    /// The packet that joined last waits in the classic queue instead.
    pub(super) fn leaves(&mut self, size: WireBytes) {
        let empty = self.empty.as_ps().saturating_sub(self.rate.time_for(size).as_ps());
        self.empty = Instant::from_ps(empty);
    }

    /// The probability of a mark at this wait.
    pub(super) fn probability(&self, wait: Duration) -> u64 {
        let above = wait.saturating_sub(self.least).min(RANGE);
        (u128::from(above.as_ps()) * u128::from(ONE) / u128::from(RANGE.as_ps())) as u64
    }

    /// True for the share `probability` of the calls, evenly spaced (`recur`).
    pub(super) fn marks(&mut self, probability: u64) -> bool {
        self.likelihood += probability;
        let marks = self.likelihood > ONE;
        self.likelihood -= if marks { ONE } else { 0 };
        marks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(us: u64) -> Duration {
        Duration::from_us(us)
    }

    /// At 100 Mbit/s two frames take 320 us, so that the ramp ends at 1 ms: half of 2^19 ns below, half of the packets
    /// are marked. At 10 Mbit/s two frames take 3.2 ms, where the ramp begins.
    #[test]
    fn the_ramp_begins_above_two_frames() {
        let fast = Predicted::new(BitRate::from_mbit_per_s(100), us(1000));
        let probabilities = [Duration::ZERO, us(1000) - RANGE, us(1000) - RANGE / 2, us(1000), us(5000)];
        assert_eq!(probabilities.map(|wait| fast.probability(wait)), [0, 0, ONE / 2, ONE, ONE]);
        let slow = Predicted::new(BitRate::from_mbit_per_s(10), us(1000));
        let probabilities = [us(3200), us(3200) + RANGE / 4, us(3200) + RANGE];
        assert_eq!(probabilities.map(|wait| slow.probability(wait)), [0, ONE / 4, ONE]);
        assert_eq!([fast, slow].map(|ramp| ramp.most()), [us(1000), us(3200) + RANGE]);
    }

    /// 1250 bytes take 100 us at 100 Mbit/s. The virtual queue drains with time; one that left does not count.
    #[test]
    fn the_virtual_queue_drains_at_its_rate() {
        let mut queue = Predicted::new(BitRate::from_mbit_per_s(100), us(1000));
        let (at, size) = (|us: u64| Instant::ZERO + Duration::from_us(us), WireBytes::new(1250));
        assert_eq!([0, 0, 150].map(|time| queue.joins(at(time), size)), [us(100), us(200), us(150)]);
        queue.leaves(size);
        assert_eq!(queue.joins(at(150), size), us(150));
        assert_eq!(queue.joins(at(1000), size), us(100));
    }

    /// With a probability of 3/8, three of eight are marked: as the sums 9/8, 10/8 and 11/8 exceed one.
    #[test]
    fn marks_are_evenly_spaced() {
        let mut queue = Predicted::new(BitRate::from_mbit_per_s(100), us(1000));
        let marked: Vec<u64> = (1..=9).filter(|_| queue.marks(ONE / 8 * 3)).collect();
        assert_eq!(marked, [3, 6, 9]);
    }
}

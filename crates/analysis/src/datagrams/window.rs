//! The fullest span of a direction of datagrams.
//!
//! The span ends with each datagram in turn. Its memory is bounded: above 10 000 datagrams a second, those of a tenth
//! of a millisecond share an entry and leave the span together, so that it is up to 0.1 ms shorter. Cost: constant for
//! each datagram; at most 2000 entries of 16 bytes.

use std::collections::VecDeque;

use lastmile_units::{Duration, Instant};

/// The span of the peak rate.
pub const PEAK_SPAN: Duration = Duration::from_ms(100);
/// Entries of a span, beyond which datagrams of one [`PEAK_STEP`] share an entry.
const MOST_ALONE: usize = 1000;
/// The longest time from the first datagram of an entry to its last.
const PEAK_STEP: Duration = Duration::from_us(100);

/// The last [`PEAK_SPAN`].
#[derive(Clone, Debug, Default)]
pub(super) struct Window {
    /// The time of the first datagram of each entry, and the IP bytes of all.
    entries: VecDeque<(Instant, u64)>,
    bytes: u64,
    fullest: u64,
}

impl Window {
    pub(super) fn add(&mut self, now: Instant, bytes: u64) {
        while let Some((at, gone)) = self.entries.front().copied()
            && now.since(at) >= PEAK_SPAN
        {
            self.entries.pop_front();
            self.bytes -= gone;
        }
        let is_crowded = self.entries.len() >= MOST_ALONE;
        match self.entries.back_mut() {
            Some((at, held)) if is_crowded && now.since(*at) < PEAK_STEP => *held += bytes,
            _ => self.entries.push_back((now, bytes)),
        }
        self.bytes += bytes;
        self.fullest = self.fullest.max(self.bytes);
    }

    /// The most bytes that it has held.
    pub(super) const fn fullest(&self) -> u64 {
        self.fullest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Instant {
        Instant::ZERO + Duration::from_us(us)
    }

    /// A datagram a microsecond for 50 ms after a pause: 50 000 in 100 ms. For 300 ms: 99 900 to 100 000.
    #[test]
    fn a_flood_has_its_peak_within_bounded_memory() {
        let flood = |ms: u64| {
            let mut window = Window::default();
            window.add(at(0), 1);
            let most = (0..ms * 1000).map(|us| {
                window.add(at(130_030 + us), 1);
                window.entries.len()
            });
            let most = most.max().unwrap();
            (window.fullest, most)
        };
        assert_eq!(flood(50), (50_000, MOST_ALONE + 490));
        let (fullest, most) = flood(300);
        assert!((99_900..=100_000).contains(&fullest) && most <= 2 * MOST_ALONE, "{fullest} {most}");
    }
}

//! Queueing delays in front of a hop.

use hdrhistogram::Histogram;
use lastmile_packet::{Frame, Packet};
use lastmile_units::{Duration, Instant};

use lastmile_model::outcome::Waits as Sum;

/// Queueing delays in nanoseconds: of all packets, and of pure ACKs.
pub(super) struct Waits {
    pub(super) all: Distribution,
    pub(super) acks: Distribution,
    /// By the class that rules gave the packet.
    pub(super) classes: Vec<Distribution>,
    /// Packets that came before then wear classes of an earlier queue.
    classes_since: Instant,
    /// Packets that waited at all.
    pub(super) overlimits: u64,
    /// Since the last glance.
    pub(super) lately: Sum,
    pub(super) acks_lately: Sum,
}

impl Waits {
    pub(super) fn new() -> Self {
        Self {
            all: Distribution::new(3),
            acks: Distribution::new(3),
            classes: Vec::new(),
            classes_since: Instant::ZERO,
            overlimits: 0,
            lately: Sum::default(),
            acks_lately: Sum::default(),
        }
    }

    /// Classes are those of another queue from now on.
    pub(super) fn begin_classes(&mut self, now: Instant) {
        self.classes.clear();
        self.classes_since = now;
    }

    pub(super) fn record(&mut self, waited: Duration, packet: &Frame) {
        let ns = waited.as_ns();
        self.all.record(ns);
        self.lately.add(waited);
        self.overlimits += u64::from(waited > Duration::ZERO);
        if packet.meta().is_pure_ack() {
            self.acks.record(ns);
            self.acks_lately.add(waited);
        }
        if let Some(class) = packet.meta().class
            && packet.meta().arrived >= self.classes_since
        {
            let class = usize::from(class);
            if class >= self.classes.len() {
                // Once a class, and rules have few.
                self.classes.resize_with(class + 1, || Distribution::new(2));
            }
            self.classes[class].record(ns);
        }
    }
}

/// Counts of waits to a number of digits, in the slots of an HDR histogram, which is made on
/// request: a third of the instructions of the histogram's own counting, which looks for the least,
/// the greatest and an overflow with every packet.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Distribution {
    counts: Vec<u64>,
    digits: u8,
    /// Bits of the largest number with these digits: the precision of a slot.
    bits: u32,
}

impl Distribution {
    pub(super) fn new(digits: u8) -> Self {
        // As HdrHistogram has it: the next power of two above the numbers that have a slot each.
        let bits = (2 * 10_u64.pow(digits.into())).next_power_of_two().ilog2();
        Self { counts: vec![0; histogram(digits).distinct_values()], digits, bits }
    }

    #[inline]
    pub(super) fn record(&mut self, ns: u64) {
        let place = self.place(ns);
        match self.counts.get_mut(place) {
            Some(count) => *count += 1,
            None => self.record_longest(),
        }
    }

    /// Beyond the last place: as long as any.
    #[cold]
    fn record_longest(&mut self) {
        let longest = self.place(LONGEST_NS);
        self.counts[longest] += 1;
    }

    #[inline]
    fn place(&self, ns: u64) -> usize {
        match (ns >> self.bits).checked_ilog2() {
            None => ns as usize,
            Some(more) => ((more as usize + 1) << (self.bits - 1)) + (ns >> (more + 1)) as usize,
        }
    }

    /// All of them.
    pub(super) fn whole(&self) -> Histogram<u64> {
        let mut whole = histogram(self.digits);
        for (place, count) in (0_u64..).zip(&self.counts).filter(|(_, count)| **count > 0) {
            let shift = (place >> (self.bits - 1)).saturating_sub(1);
            whole.saturating_record_n((place - (shift << (self.bits - 1))) << shift, *count);
        }
        whole
    }
}

/// An hour.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// Nanoseconds up to an hour, to `digits` digits: 264 kB at three, 36 kB at two.
pub(super) fn histogram(digits: u8) -> Histogram<u64> {
    Histogram::new_with_max(LONGEST_NS, digits).expect("bounds and digits in range")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Waits of all magnitudes.
        #[test]
        fn counts_are_those_of_a_histogram(
            waits in prop::collection::vec((any::<u64>(), 0..64_u32), 0..100),
            digits in 2..4_u8,
        ) {
            let (mut counted, mut plain) = (Distribution::new(digits), histogram(digits));
            for (ns, shift) in waits {
                counted.record(ns >> shift);
                plain.saturating_record(ns >> shift);
            }
            prop_assert_eq!(counted.whole(), plain.clone());
            for quantile in [0.0, 0.5, 0.99, 1.0] {
                prop_assert_eq!(counted.whole().value_at_quantile(quantile), plain.value_at_quantile(quantile));
            }
            let whole = counted.whole();
            prop_assert_eq!((whole.min(), whole.max(), whole.len()), (plain.min(), plain.max(), plain.len()));
        }
    }

    #[test]
    fn both_sides_of_each_place_are_told_apart_as_a_histogram_does() {
        let (mut counted, mut plain) = (Distribution::new(3), histogram(3));
        for edge in
            (0..64).flat_map(|bit| [(1_u64 << bit) - 1, 1 << bit, 3 << bit >> 1]).chain([3_600_000_000_000, u64::MAX])
        {
            counted.record(edge);
            plain.saturating_record(edge);
        }
        assert_eq!(counted.whole(), plain);
    }
}

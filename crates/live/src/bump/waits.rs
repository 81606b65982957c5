//! Queueing delays in front of a hop.

use hdrhistogram::Histogram;
use lastmile_packet::Packet;
use lastmile_units::{Duration, Instant};

use lastmile_model::outcome::Waits as Sum;

/// Queueing delays in nanoseconds: of all packets, and of pure ACKs.
pub(super) struct Waits {
    pub(super) all: Counted,
    pub(super) acks: Counted,
    /// By the class that rules gave the packet.
    pub(super) classes: Vec<Counted>,
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
            all: Counted::new(3),
            acks: Counted::new(3),
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

    pub(super) fn record(&mut self, waited: Duration, packet: &impl Packet) {
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
                self.classes.resize_with(class + 1, || Counted::new(2));
            }
            self.classes[class].record(ns);
        }
    }
}

/// Delays of the packets that have crossed all hops of a direction, in nanoseconds: from arrival at the first hop to
/// arrival behind the last. Queueing, transmission and propagation are in them, late wake-ups are not.
#[derive(Clone, PartialEq, Debug)]
pub struct Crossed {
    /// Delays of all packets.
    pub all: WaitCounts,
    /// Delays of pure ACKs alone.
    pub acks: WaitCounts,
}

impl Crossed {
    pub(super) fn new() -> Self {
        Self { all: WaitCounts::new(), acks: WaitCounts::new() }
    }

    /// Counts a packet that arrives behind the last hop. `Meta::sent` is its arrival at the first one.
    #[inline]
    pub(super) fn record(&mut self, packet: &impl Packet) {
        let meta = packet.meta();
        let ns = meta.arrived.since(meta.sent).as_ns();
        self.all.0.record(ns);
        if meta.is_pure_ack() {
            self.acks.0.record(ns);
        }
    }
}

/// Counts of waits, twice: for reports, and for displays that ask several times a second.
#[derive(PartialEq)]
pub(super) struct Counted {
    pub(super) exact: Distribution,
    pub(super) coarse: WaitCounts,
}

impl Counted {
    fn new(digits: u8) -> Self {
        Self { exact: Distribution::new(digits), coarse: WaitCounts::new() }
    }

    #[inline]
    fn record(&mut self, ns: u64) {
        self.exact.record(ns);
        self.coarse.0.record(ns);
    }
}

/// Counts of waits to one digit, each at most 6 % above its wait: 5 kB to copy.
#[derive(Clone, PartialEq, Debug)]
pub struct WaitCounts(Distribution);

impl WaitCounts {
    pub(super) fn new() -> Self {
        Self(Distribution::new(1))
    }

    /// The waits in nanoseconds that are not in `before`, an earlier copy. A copy of the counts of
    /// another queue is not one: then all waits.
    #[must_use]
    pub fn since(&self, before: Option<&Self>) -> Histogram<u64> {
        let (now, digits) = (&self.0.counts, self.0.digits);
        let earlier = before.map(|before| &before.0.counts).filter(|then| then.iter().zip(now).all(|(a, b)| a <= b));
        match earlier {
            Some(then) => {
                let counts = now.iter().zip(then).map(|(now, then)| now - then).collect();
                Distribution { counts, digits, bits: self.0.bits }.whole()
            }
            None => self.0.whole(),
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
    fn coarse_counts_of_an_interval_are_those_of_its_waits() {
        let mut counts = WaitCounts::new();
        counts.0.record(1_000_000);
        let before = counts.clone();
        for ms in 1..=100 {
            counts.0.record(ms * 1_000_000);
        }
        let lately = counts.since(Some(&before));
        assert_eq!(lately.len(), 100);
        for (quantile, ms) in [(0.5, 50.0), (0.99, 99.0)] {
            #[expect(clippy::cast_precision_loss, reason = "within 6 %")]
            let shown = lately.value_at_quantile(quantile) as f64 / 1e6;
            assert!((ms..ms * 1.0625).contains(&shown), "{quantile}: {shown}");
        }
        assert!(counts.since(Some(&counts)).is_empty());
        // Another queue has begun to count.
        assert_eq!(before.since(Some(&counts)).len(), 1);
        assert_eq!(counts.since(None).len(), 101);
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

//! How long packets waited in front of a hop.

use hdrhistogram::Histogram;
use lastmile_packet::{Frame, Packet};
use lastmile_units::{Duration, Instant};

use super::WaitSum;

/// How long packets waited in a queue, in nanoseconds: all of them, and pure ACKs.
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
    pub(super) lately: WaitSum,
    pub(super) acks_lately: WaitSum,
}

impl Waits {
    pub(super) fn new() -> Self {
        Self {
            all: Distribution::new(3),
            acks: Distribution::new(3),
            classes: Vec::new(),
            classes_since: Instant::ZERO,
            overlimits: 0,
            lately: WaitSum::default(),
            acks_lately: WaitSum::default(),
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
        self.lately.add(ns);
        self.overlimits += u64::from(waited > Duration::ZERO);
        if packet.meta().is_pure_ack() {
            self.acks.record(ns);
            self.acks_lately.add(ns);
        }
        if let Some(class) = packet.class()
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

/// Exact counts of waits, to so many digits. Most packets of a queue that is not full do not wait, and those are counted apart, which costs
/// a twentieth of the histogram's own counting.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Distribution {
    at_once: u64,
    waited: Histogram<u64>,
}

impl Distribution {
    fn new(digits: u8) -> Self {
        Self { at_once: 0, waited: histogram(digits) }
    }

    #[inline]
    fn record(&mut self, ns: u64) {
        if ns == 0 {
            self.at_once += 1;
        } else {
            self.waited.saturating_record(ns);
        }
    }

    /// All of them, those that did not wait at zero.
    pub(super) fn whole(&self) -> Histogram<u64> {
        let mut whole = self.waited.clone();
        whole.saturating_record_n(0, self.at_once);
        whole
    }
}

/// Nanoseconds up to an hour, to so many digits: 264 kB at three, 36 kB at two.
pub(super) fn histogram(digits: u8) -> Histogram<u64> {
    Histogram::new_with_max(3_600_000_000_000, digits).expect("bounds and digits in range")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_did_not_wait_are_in_the_distribution_as_if_it_had_counted_them() {
        let (mut apart, mut plain) = (Distribution::new(3), histogram(3));
        for ns in [0, 1, 0, 999_999, 0, u64::MAX] {
            apart.record(ns);
            plain.saturating_record(ns);
        }
        assert_eq!(apart.whole(), plain);
        assert_eq!((apart.whole().len(), apart.whole().min(), apart.whole().value_at_quantile(0.5)), (6, 0, 0));
    }
}

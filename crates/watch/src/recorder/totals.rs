//! Counters that only grow, until their program starts again.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::delays::Delays;
use crate::sample::{Backlog, Counts, QueueName};

/// The kernel counts drops and overlimits of a queue in 32 bits (struct `gnet_stats_queue`).
const WRAP: u64 = 1 << 32;
/// The largest step of such a counter between two readings. A larger one would be that of another queue of the name.
const LARGEST_STEP: u64 = WRAP / 2;

/// The counters of a queue since a start that is not known.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Totals {
    /// Packets that departed.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Their bytes on the wire.
    pub wire_bytes: Option<u64>,
    /// Drops by reason.
    pub dropped: BTreeMap<String, u64>,
    /// Times that it was held back.
    pub overlimits: u64,
    /// Delays in nanoseconds, each with the number of packets that it had.
    pub waits: BTreeMap<u64, u64>,
}

/// A queue at a moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reading {
    /// Its name.
    pub name: QueueName,
    /// Its counters.
    pub totals: Totals,
    /// Its backlog; `None` where it is not known.
    pub backlog: Option<Backlog>,
}

impl Totals {
    /// The counts between two readings. A counter that went back has started again at zero.
    pub(super) fn since(&self, before: &Self, span: Duration, backlog: Option<Backlog>) -> Counts {
        let nothing = Self::default();
        let before = if self.continues(before) { before } else { &nothing };
        let mut waits = Delays::default();
        for (ns, count) in &self.waits {
            waits.record_n(*ns, count - before.waits.get(ns).unwrap_or(&0));
        }
        let since = |(reason, packets): (&String, &u64)| {
            let packets = packets - before.dropped.get(reason).unwrap_or(&0);
            (packets > 0).then(|| (reason.clone(), packets))
        };
        Counts {
            span_ms: u64::try_from(span.as_millis()).unwrap_or(u64::MAX),
            packets: self.packets - before.packets,
            bytes: self.bytes - before.bytes,
            wire_bytes: self.wire_bytes.map(|bytes| bytes - before.wire_bytes.unwrap_or(0)),
            dropped: self.dropped.iter().filter_map(since).collect(),
            overlimits: self.overlimits - before.overlimits,
            backlog,
            waits,
        }
    }

    /// The counters of a queue of the kernel, with 2^32 added to drops and overlimits that have wrapped: they went
    /// back, and bytes and packets did not. The counters stay as they are where one of them began at zero.
    pub(super) fn unwrapped(self, before: &Self) -> Self {
        let went_on = self.packets >= before.packets && self.bytes >= before.bytes;
        if went_on { self.added(before).unwrap_or(self) } else { self }
    }

    fn added(&self, before: &Self) -> Option<Self> {
        let dropped = self.dropped.iter().map(|(reason, count)| {
            let before = before.dropped.get(reason).copied().unwrap_or(0);
            Some((reason.clone(), unwrapped(*count, before)?))
        });
        let dropped = dropped.collect::<Option<_>>()?;
        Some(Self { dropped, overlimits: unwrapped(self.overlimits, before.overlimits)?, ..self.clone() })
    }

    /// True if no counter has gone back.
    fn continues(&self, before: &Self) -> bool {
        let grown = |now: &BTreeMap<_, u64>, before: &BTreeMap<_, u64>| {
            before.iter().all(|(key, count)| now.get::<String>(key).is_some_and(|now| now >= count))
        };
        self.packets >= before.packets
            && self.bytes >= before.bytes
            && self.wire_bytes.unwrap_or(0) >= before.wire_bytes.unwrap_or(0)
            && self.overlimits >= before.overlimits
            && grown(&self.dropped, &before.dropped)
            && before.waits.iter().all(|(ns, count)| self.waits.get(ns).is_some_and(|now| now >= count))
    }
}

/// A counter of 32 bits that went on; `None` where it went back by too much for a wrap.
fn unwrapped(now: u64, before: u64) -> Option<u64> {
    if now >= before {
        return Some(now);
    }
    let sum = now + WRAP;
    sum.checked_sub(before).is_some_and(|step| step <= LARGEST_STEP).then_some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(packets: u64, tail: u64, waits: &[(u64, u64)]) -> Totals {
        Totals {
            packets,
            bytes: packets * 100,
            wire_bytes: Some(packets * 106),
            dropped: BTreeMap::from([("tail".to_owned(), tail)]),
            overlimits: packets / 2,
            waits: waits.iter().copied().collect(),
        }
    }

    #[test]
    fn counters_become_counts_and_a_restart_counts_from_zero() {
        let span = Duration::from_millis(1500);
        let before = totals(10, 3, &[(1000, 4), (2000, 6)]);
        let later = totals(14, 3, &[(1000, 5), (2000, 8), (9000, 1)]);
        let counts = later.since(&before, span, None);
        assert_eq!((counts.packets, counts.bytes, counts.wire_bytes, counts.overlimits), (4, 400, Some(424), 2));
        assert_eq!((counts.span_ms, counts.dropped_packets(), counts.waits.count()), (1500, 0, 4));
        assert_eq!(counts.waits.max_ns(), Some(9000));
        let restarted = totals(4, 1, &[(1000, 4)]);
        let counts = restarted.since(&later, span, None);
        assert_eq!((counts.packets, counts.dropped_packets(), counts.waits.count()), (4, 1, 4));
    }

    /// Overlimits wrap from 2^32 - 6 to 20: 6 and 20.
    #[test]
    fn a_counter_of_32_bits_that_wraps_goes_on() {
        let queue = |packets: u64, overlimits: u64, dropped: u64| Totals {
            packets,
            bytes: packets * 1000,
            dropped: BTreeMap::from([("any".to_owned(), dropped)]),
            overlimits,
            ..Totals::default()
        };
        let counts = |before: Totals, now: Totals| {
            let counts = now.unwrapped(&before).since(&before, Duration::from_secs(1), None);
            (counts.packets, counts.bytes, counts.overlimits, counts.dropped_packets())
        };
        let before = queue(5_000_000_000, 4_294_967_290, 7);
        assert_eq!(counts(before.clone(), queue(5_000_000_100, 20, 9)), (100, 100_000, 26, 2));
        assert_eq!(counts(queue(10, 0, 4_294_967_295), queue(11, 0, 0)), (1, 1000, 0, 1));
        // Another queue of the name: its bytes are fewer, or a wrap would be a step of 4 294 967 291 drops.
        assert_eq!(counts(before, queue(100, 20, 3)), (100, 100_000, 20, 3));
        assert_eq!(counts(queue(10, 4_294_967_290, 5), queue(100, 20, 0)), (100, 100_000, 20, 0));
    }
}

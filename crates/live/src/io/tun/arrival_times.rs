//! When a packet that a TUN device hands over was given to it: what the device does not say, a
//! packet socket beside it does.
//!
//! Both see the packets in one order. The device drops what it has no room for, and the socket's
//! ring what that has none for; so a packet is known by its length and its beginning. Where it is
//! not among the next few, nothing is known until the device is empty.

use std::time::{Duration, SystemTime};

use crate::sys::outgoing::{Given, Outgoing};

/// Packets in a row that the device may have dropped.
const PASSED_OVER: usize = 64;

/// A packet that the kernel has given to a device is there within this time.
const ON_ITS_WAY: Duration = Duration::from_millis(1);

/// Records of packets given to a device, oldest first.
pub(super) trait Record {
    fn first(&self) -> Option<Given<'_>>;

    fn consume(&mut self);
}

impl Record for Outgoing {
    fn first(&self) -> Option<Given<'_>> {
        self.first()
    }

    fn consume(&mut self) {
        self.consume();
    }
}

/// Times of what a device hands over.
#[derive(Debug)]
pub(super) struct Times<R> {
    record: R,
    in_step: bool,
}

impl<R: Record> Times<R> {
    /// Of a device that has handed over nothing.
    pub(super) const fn new(record: R) -> Self {
        Self { record, in_step: true }
    }

    /// When the device was given `packet`, the next that it has handed over; `None` if that is not known.
    pub(super) fn of(&mut self, packet: &[u8]) -> Option<SystemTime> {
        // Out of step the ring is left full: where more comes than is read, neither side then spends time on it.
        if !self.in_step {
            return None;
        }
        for _ in 0..PASSED_OVER {
            let Some(given) = self.record.first() else { break };
            let (at, is_it) = (given.at, given.len == packet.len() && packet.starts_with(given.beginning));
            self.record.consume();
            if is_it {
                return Some(at);
            }
        }
        self.in_step = false;
        None
    }

    /// The device is empty: what was given to it long before `now` it has dropped.
    pub(super) fn nothing_waits(&mut self, now: impl FnOnce() -> SystemTime) {
        if self.in_step && self.record.first().is_none() {
            return;
        }
        let (now, all) = (now(), !self.in_step);
        self.forget(|at| all || now.duration_since(at).is_ok_and(|age| age > ON_ITS_WAY));
        self.in_step = true;
    }

    fn forget(&mut self, mut which: impl FnMut(SystemTime) -> bool) {
        while self.record.first().is_some_and(|given| which(given.at)) {
            self.record.consume();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// Times in ms, and packets, of which 4 bytes are kept.
    #[derive(Default)]
    struct Few(VecDeque<(u64, Vec<u8>)>);

    fn at(ms: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_millis(ms)
    }

    impl Record for Few {
        fn first(&self) -> Option<Given<'_>> {
            let (ms, packet) = self.0.front()?;
            Some(Given { at: at(*ms), len: packet.len(), beginning: &packet[..packet.len().min(4)] })
        }

        fn consume(&mut self) {
            self.0.pop_front();
        }
    }

    fn times() -> Times<Few> {
        Times::new(Few::default())
    }

    fn give(times: &mut Times<Few>, ms: u64, packet: &[u8]) {
        times.record.0.push_back((ms, packet.to_vec()));
    }

    #[test]
    fn a_packet_has_the_time_of_its_own_record_whatever_the_device_dropped_before_it() {
        let mut times = times();
        for (ms, packet) in [(1, b"1aaa5"), (2, b"2bbb5"), (3, b"3ccc5"), (4, b"3ccc5")] {
            give(&mut times, ms, packet);
        }
        give(&mut times, 5, b"3ccc56");
        assert_eq!(times.of(b"1aaa5"), Some(at(1)));
        assert_eq!([times.of(b"3ccc5"), times.of(b"3ccc5")], [Some(at(3)), Some(at(4))]);
        assert_eq!(times.of(b"3ccc56"), Some(at(5)), "known by its length");
    }

    #[test]
    fn what_the_ring_had_no_room_for_has_no_time_and_those_behind_it_only_when_the_device_was_empty() {
        let mut times = times();
        give(&mut times, 1, b"1aaa");
        give(&mut times, 9, b"9iii");
        assert_eq!(times.of(b"1aaa"), Some(at(1)));
        assert_eq!(times.of(b"2bbb"), None, "it is not among the next");
        assert_eq!(times.of(b"9iii"), None, "its record went with the search");
        give(&mut times, 10, b"10jj");
        assert_eq!(times.of(b"10jj"), None, "the device was not empty");
        give(&mut times, 11, b"11kk");
        times.nothing_waits(|| at(11));
        give(&mut times, 12, b"12ll");
        assert_eq!(times.of(b"12ll"), Some(at(12)));
    }

    #[test]
    fn one_that_was_dropped_long_ago_does_not_stand_for_its_equal() {
        let mut times = times();
        give(&mut times, 1, b"same");
        give(&mut times, 50, b"same");
        times.nothing_waits(|| at(50));
        assert_eq!(times.of(b"same"), Some(at(50)));
        give(&mut times, 60, b"same");
        times.nothing_waits(|| at(60));
        assert_eq!(times.of(b"same"), Some(at(60)), "on its way while the device was read");
    }
}

//! The pending timer events of one end of a transfer.
//!
//! A timer mostly moves to a later time. Its event then stays where it is: when it comes, the end is asked once more.
//! Where a timer moves to an earlier time, the later event stays pending, too: a receiver waits for the next read, which
//! comes within microseconds, and then for at most 40 ms to acknowledge, again and again.
//!
//! Cost: O(1).

use lastmile_units::Instant;

use crate::engine::event::{Event, Token};
use crate::engine::{Handle, Wheel};

/// The pending timer events of an end, at most two.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wakes {
    first: Option<Handle>,
    /// An event that comes after `first`.
    second: Option<Handle>,
}

impl Wakes {
    /// Schedules `event`, a timer event of the end, at `at`, unless one comes no later.
    #[inline(always)]
    pub(crate) fn arm(&mut self, pending: &mut Wheel<Token>, at: Instant, event: Event) {
        if let Some(first) = self.first {
            if pending.time(first) <= at {
                return;
            }
            match self.second {
                Some(_) => pending.cancel(first),
                None => self.second = Some(first),
            }
        }
        self.first = Some(pending.push(at, event.into()));
    }

    /// The first event has come.
    #[inline]
    pub(crate) fn on_event(&mut self) {
        self.first = self.second.take();
    }

    /// Removes the events from the pending set.
    pub(crate) fn cancel(&mut self, pending: &mut Wheel<Token>) {
        [self.first.take(), self.second.take()].into_iter().flatten().for_each(|wake| pending.cancel(wake));
    }
}

#[cfg(test)]
mod tests {
    use lastmile_units::Duration;

    use super::*;
    use crate::network::flow::Side;

    /// The delay of an ACK, then two earlier times: the latter replaces the former, and the delay of the ACK stays.
    #[test]
    fn an_earlier_timer_leaves_the_later_event() {
        let mut pending: Wheel<Token> = Wheel::new();
        let mut wakes = Wakes::default();
        let at = |us| Instant::ZERO + Duration::from_us(us);
        let arm = |wakes: &mut Wakes, pending: &mut Wheel<Token>, us| {
            wakes.arm(pending, at(us), Event::Timer(0, Side::Receiver));
            pending.len()
        };
        assert_eq!(arm(&mut wakes, &mut pending, 40_000), 1);
        assert_eq!(arm(&mut wakes, &mut pending, 50_000), 1, "an event comes no later");
        assert_eq!(arm(&mut wakes, &mut pending, 90), 2);
        assert_eq!(arm(&mut wakes, &mut pending, 80), 2, "in place of the one at 90 us");
        assert_eq!(pending.pop(Instant::MAX).map(|(time, _)| time), Some(at(80)));
        wakes.on_event();
        assert_eq!(arm(&mut wakes, &mut pending, 60_000), 1, "the one at 40 ms comes no later");
        assert_eq!(arm(&mut wakes, &mut pending, 30_000), 2);
        wakes.cancel(&mut pending);
        assert!(pending.is_empty());
    }
}

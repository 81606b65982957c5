//! The packets of a line that have left its queue, and those that wait behind them.

use std::collections::VecDeque;

/// Packets in the order of their arrivals at the far end.
#[derive(Debug)]
pub(super) struct InFlight<P> {
    /// Packets on the wire, whose `arrived` is the time at which they will arrive; behind them those that wait.
    pub(super) packets: VecDeque<P>,
    /// Packets whose transmission has not begun. The queue has admitted them
    /// ([`Discipline::admits`](crate::Discipline::admits)).
    pub(super) waiting: usize,
}

impl<P> Default for InFlight<P> {
    fn default() -> Self {
        Self { packets: VecDeque::new(), waiting: 0 }
    }
}

impl<P> InFlight<P> {
    /// The next packet that arrives, if one is on the wire.
    #[inline]
    pub(super) fn first(&self) -> Option<&P> {
        if self.packets.len() == self.waiting { None } else { self.packets.front() }
    }

    pub(super) fn on_wire(&self) -> impl Iterator<Item = &P> {
        self.packets.iter().take(self.packets.len() - self.waiting)
    }

    pub(super) fn take_waiting(&mut self) -> VecDeque<P> {
        self.packets.split_off(self.packets.len() - std::mem::take(&mut self.waiting))
    }
}

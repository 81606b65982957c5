//! New and old queues in turns of a quantum, for [`super::FqCodel`] and [`super::FqPie`].
//!
//! Published: RFC 8290, section 4.2. A queue that gets its first packet is *new*, and served before all *old* ones
//! until it has sent its quantum. A new queue that becomes empty is old for a turn, or each of its packets would be
//! new. Credits count bytes on the wire.
//! Cost: O(1) a packet if no quantum is smaller than the largest packet.

use std::collections::VecDeque;

use lastmile_packet::Packet;
use lastmile_units::WireBytes;

use super::flows::Flows;

/// The two lists.
#[derive(Clone, Debug)]
pub(super) struct Rounds {
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    quantum: i64,
    new_flows: u64,
}

/// The state of a queue in the rounds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Turn {
    /// Bytes on the wire that it may still send in this round.
    credit: i64,
    /// True if the queue is in one of the two lists.
    listed: bool,
}

/// State of a queue that has a turn.
pub(super) trait HasTurn: Clone + Default {
    fn turn(&mut self) -> &mut Turn;
}

impl Rounds {
    pub(super) fn new(quantum: WireBytes) -> Self {
        let quantum = i64::try_from(quantum.as_u64()).unwrap_or(i64::MAX / 2);
        Self { new: VecDeque::new(), old: VecDeque::new(), quantum, new_flows: 0 }
    }

    /// Queues that have been new.
    pub(super) const fn new_flows(&self) -> u64 {
        self.new_flows
    }

    /// A packet arrived in `queue`.
    #[inline]
    pub(super) fn arrived(&mut self, queue: u32, turn: &mut Turn) {
        if !turn.listed {
            *turn = Turn { credit: self.quantum, listed: true };
            self.new.push_back(queue);
            self.new_flows += 1;
        }
    }

    /// The queue that has the turn; it may be empty. `None`: no queue is listed.
    #[inline]
    pub(super) fn current<P: Packet, S: HasTurn>(&mut self, flows: &mut Flows<P, S>) -> Option<u32> {
        loop {
            let list = if self.new.is_empty() { &mut self.old } else { &mut self.new };
            let queue = *list.front()?;
            let turn = flows.state_mut(queue).turn();
            if turn.credit > 0 {
                return Some(queue);
            }
            turn.credit += self.quantum;
            list.pop_front();
            self.old.push_back(queue);
        }
    }

    /// The queue that has the turn is empty.
    pub(super) fn emptied<P: Packet, S: HasTurn>(&mut self, flows: &mut Flows<P, S>) {
        if let Some(queue) = self.new.pop_front() {
            self.old.push_back(queue);
        } else if let Some(queue) = self.old.pop_front() {
            flows.state_mut(queue).turn().listed = false;
            flows.release(queue);
        }
    }
}

impl Turn {
    /// The queue has sent a packet of `size`.
    #[inline]
    pub(super) fn sent(&mut self, size: WireBytes) {
        self.credit -= i64::try_from(size.as_u64()).expect("a packet of at most 64 KiB");
    }
}

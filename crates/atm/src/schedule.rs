//! The scheduler of a port: strict priority among levels, weighted fair queueing within a level.
//!
//! Published: Golestani 1994 (self-clocked fair queueing) for the weights. All cells have one size,
//! so the tag of a queue's next cell is the tag of the cell before plus 1/weight; a queue that was
//! empty starts from the tag of the cell sent last. The least tag is served; of equal tags that of
//! the queue with the lower index. A transmission is not interrupted, so priority acts between the
//! cells of a frame.
//! A tag counts 2^-28 of a cell of weight 1 in 64 bits, enough for 2^36 cells.
//! Cost: a logarithm of the queues with a backlog for each cell.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

/// 1/weight for a weight of 1.
const CELL_TAG: u64 = 1 << 28;

/// The turn of a queue with a backlog. Turns are ordered by level, then tag, then queue.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Turn {
    level: u16,
    /// Tag of the queue's next cell.
    tag: u64,
    pub(crate) queue: u16,
}

/// A queue's share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    /// From 0 without gaps; lower levels are served first.
    level: u16,
    /// 1/weight.
    step: u64,
    /// Tag of the cell sent last.
    finish: u64,
}

impl Share {
    pub(crate) fn new(level: u16, weight: u16) -> Self {
        Self { level, step: CELL_TAG / u64::from(weight), finish: 0 }
    }
}

#[derive(Debug)]
pub(crate) struct Schedule {
    /// By queue.
    shares: Vec<Share>,
    /// By level: tag of the cell sent last.
    clocks: Vec<u64>,
    /// One turn for each queue with a backlog.
    turns: BinaryHeap<Reverse<Turn>>,
}

impl Schedule {
    pub(crate) fn new(shares: Vec<Share>) -> Self {
        let levels = shares.iter().map(|share| usize::from(share.level) + 1).max().unwrap_or(0);
        Self { shares, clocks: vec![0; levels], turns: BinaryHeap::new() }
    }

    /// Records cells that pass an idle port without a wait.
    #[inline]
    pub(crate) fn pass(&mut self, queue: u16, cells: u16) {
        let share = &mut self.shares[queue as usize];
        let clock = &mut self.clocks[share.level as usize];
        share.finish = share.finish.max(*clock) + share.step * u64::from(cells);
        *clock = share.finish;
    }

    /// A queue that was empty has a backlog.
    #[inline]
    pub(crate) fn add(&mut self, queue: u16) {
        let Share { level, step, finish } = self.shares[queue as usize];
        let tag = finish.max(self.clocks[level as usize]) + step;
        self.turns.push(Reverse(Turn { level, tag, queue }));
    }

    /// The queue to serve next, and whether it is the only one with a backlog.
    #[inline]
    pub(crate) fn next(&self) -> Option<(u16, bool)> {
        let Reverse(turn) = self.turns.peek()?;
        Some((turn.queue, self.turns.len() == 1))
    }

    /// Records that the queue of the current turn sent `cells` cells in a row. `empty`: the queue has no more.
    #[inline]
    pub(crate) fn served(&mut self, cells: u32, empty: bool) {
        let Some(mut first) = self.turns.peek_mut() else { return };
        let Turn { level, tag, queue } = first.0;
        let share = &mut self.shares[queue as usize];
        share.finish = tag + share.step * (u64::from(cells) - 1);
        self.clocks[level as usize] = share.finish;
        if empty {
            PeekMut::pop(first);
        } else {
            first.0.tag = share.finish + share.step;
        }
    }

    /// The turns of all queues with a backlog, in no order.
    pub(crate) fn turns(&self) -> impl Iterator<Item = Turn> {
        self.turns.iter().map(|turn| turn.0)
    }

    /// The turn of a queue's `nth` cell, from 1, when that of its first is `first`.
    pub(crate) fn nth(&self, first: Turn, nth: u64) -> Turn {
        Turn { tag: first.tag + self.shares[first.queue as usize].step * (nth - 1), ..first }
    }

    /// The number of a queue's `waiting` cells that are served before `turn`, when the turn of the
    /// first is `first`.
    pub(crate) fn served_before(&self, turn: Turn, first: Turn, waiting: u32) -> u64 {
        if first >= turn {
            return 0;
        }
        if first.level < turn.level {
            return waiting.into();
        }
        let (apart, step) = (turn.tag - first.tag, self.shares[first.queue as usize].step);
        // Of equal tags that of the lower queue is served.
        let one_more = !apart.is_multiple_of(step) || first.queue < turn.queue;
        (apart / step + u64::from(one_more)).min(waiting.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(schedule: &mut Schedule, count: usize) -> Vec<u16> {
        let next = |_| {
            let (queue, _) = schedule.next().expect("a backlog");
            schedule.served(1, false);
            queue
        };
        (0..count).map(next).collect()
    }

    /// Tags of weight 1: 1, 2, ...; of weight 3: 1/3, 2/3, 1, ... . Equal tags go to the lower queue.
    #[test]
    fn weights_share_a_level_and_a_lower_level_comes_first() {
        let mut schedule = Schedule::new(vec![Share::new(1, 1), Share::new(1, 2), Share::new(0, 1)]);
        schedule.add(0);
        schedule.add(1);
        assert_eq!(served(&mut schedule, 6), [1, 0, 1, 1, 0, 1]);
        schedule.add(2);
        assert_eq!(served(&mut schedule, 3), [2, 2, 2]);
        assert_eq!(schedule.next(), Some((2, false)));
        schedule.served(1, true);
        assert_eq!(schedule.turns().count(), 2);
    }

    #[test]
    fn cells_before_a_turn_are_those_that_are_served_first() {
        for weights in [[1, 3], [2, 3], [5, 1]] {
            let mut schedule = Schedule::new(weights.map(|weight| Share::new(0, weight)).to_vec());
            schedule.add(0);
            schedule.add(1);
            let turns: Vec<Turn> =
                (0..2).map(|queue| schedule.turns().find(|turn| turn.queue == queue).unwrap()).collect();
            for nth in 1..20 {
                let turn = schedule.nth(turns[1], nth);
                let before = turns.iter().map(|first| schedule.served_before(turn, *first, 100)).sum::<u64>();
                let order = served(
                    &mut Schedule { turns: schedule.turns.clone(), ..Schedule::new(schedule.shares.clone()) },
                    120,
                );
                let place = order.iter().enumerate().filter(|(_, queue)| **queue == 1).nth(nth as usize - 1).unwrap().0;
                assert_eq!(before, place as u64, "cell {nth} of weights {weights:?}");
            }
        }
    }
}

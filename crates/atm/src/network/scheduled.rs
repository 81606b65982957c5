//! A port with several queues: strict priority among levels, weighted fair queueing within a level.
//!
//! Published: Golestani 1994 (self-clocked fair queueing) for the weights. Cells are of one size, so a queue's next cell has the tag of
//! the one before and 1/weight more; a queue that was empty begins at the tag of the cell sent last. The least tag goes; of equal
//! ones the queue that stands first. A cell in transmission is not interrupted: priority goes between the cells of a frame.
//! Tags count 2^-28 of a cell of weight 1 in 64 bits, enough for 2^36 cells.
//!
//! A cell that comes in the picosecond in which a transmission may start, or later, no longer takes part in that choice.
//! Cost: a heap of the queues in which something waits; a queue that is alone in its level is served a run at a time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::connection::Connection;
use super::run::{END, Fabric, Run};
use crate::discard::{Occupancy, Rules};
use crate::time::{Moment, Spacing};

const CELL_TAG: u64 = 1 << 28;

#[derive(Debug)]
pub(super) struct Scheduled {
    /// From one start to the next.
    pub(super) interval: Spacing,
    /// Of the interval.
    pub(super) class: u16,
    /// From a start to the arrival at the far end of the link.
    pub(super) transit: Spacing,
    /// When the next transmission may start.
    pub(super) free: Moment,
    pub(super) queues: Vec<Queue>,
    levels: Vec<Level>,
    /// Queues in which something waits: level, tag of the next cell, which.
    active: BinaryHeap<Reverse<(u16, u64, u16)>>,
    pub(super) waiting: u32,
    /// Ends of frames among those.
    pub(super) ends: u32,
    /// From here to the far end at the least, picoseconds.
    pub(super) remaining: u64,
}

#[derive(Debug)]
pub(super) struct Queue {
    pub(super) rules: Rules,
    items: VecDeque<Item>,
    pub(super) waiting: u32,
    pub(super) peak: u32,
    active_vcs: u32,
    level: u16,
    /// 1/weight.
    step: u64,
    /// Tag of the cell sent last.
    finish: u64,
}

/// Queues of one priority.
#[derive(Clone, Copy, Debug, Default)]
struct Level {
    /// Tag of the cell sent last.
    clock: u64,
    /// Queues in which something waits.
    active: u32,
}

/// Cells of one frame that wait one behind the other.
#[derive(Clone, Copy, Debug)]
struct Item {
    frame: u32,
    label: u16,
    cells: u16,
    flags: u16,
}

impl Queue {
    /// `level` counts from 0 without gaps; lower ones go first.
    pub(super) fn new(rules: Rules, level: u16, weight: u16) -> Self {
        let step = CELL_TAG / u64::from(weight);
        Self { rules, items: VecDeque::new(), waiting: 0, peak: 0, active_vcs: 0, level, step, finish: 0 }
    }
}

impl Scheduled {
    pub(super) fn new(queues: Vec<Queue>, interval: Spacing, class: u16, transit: Spacing) -> Self {
        let levels = queues.iter().map(|queue| usize::from(queue.level) + 1).max().unwrap_or(0);
        Self {
            interval,
            class,
            transit,
            free: Moment::default(),
            queues,
            levels: vec![Level::default(); levels],
            active: BinaryHeap::new(),
            waiting: 0,
            ends: 0,
            remaining: u64::MAX,
        }
    }

    /// Starts every transmission that is due by `now`. Gives how many cells left.
    pub(super) fn serve(&mut self, now: Moment, connections: &mut [Connection], fabric: &mut Fabric) -> u32 {
        let before = self.waiting;
        while self.waiting > 0 && self.free <= now {
            self.send(now, connections, fabric);
        }
        before - self.waiting
    }

    /// Sends the next cell, or of a queue that has no rival as many as are due.
    fn send(&mut self, now: Moment, connections: &mut [Connection], fabric: &mut Fabric) {
        let Reverse((level, tag, index)) = self.active.pop().expect("something waits");
        let queue = &mut self.queues[index as usize];
        let item = queue.items.front_mut().expect("a queue that is active");
        let cells = if self.levels[level as usize].active == 1 {
            let due = now.since(self.free).divided_by(self.interval) + 1;
            due.min(item.cells.into()) as u16
        } else {
            1
        };
        let sent = Item { cells, ..*item };
        item.cells -= cells;
        let flags = if item.cells == 0 { item.flags } else { item.flags & !END };
        if item.cells == 0 {
            queue.items.pop_front();
        }
        let count = u32::from(cells);
        (queue.waiting, self.waiting) = (queue.waiting - count, self.waiting - count);
        let last_tag = tag + queue.step * u64::from(cells - 1);
        (queue.finish, self.levels[level as usize].clock) = (last_tag, last_tag);
        if queue.waiting == 0 {
            self.levels[level as usize].active -= 1;
        } else {
            self.active.push(Reverse((level, last_tag + queue.step, index)));
        }
        let connection = &mut connections[sent.label as usize];
        if connection.leaves(count) {
            queue.active_vcs -= 1;
        }
        if flags & END != 0 {
            self.ends -= 1;
        }
        let at = self.free.plus(self.transit);
        fabric.push(connection.out, Run::new(at, sent.frame, connection.label, cells, self.class, flags));
        self.free = self.free.plus(self.interval.times(cells.into()));
    }

    #[inline]
    pub(super) fn seen(&self, connection: &Connection, memory: u32) -> Occupancy {
        let queue = &self.queues[connection.queue as usize];
        Occupancy { queue: queue.waiting, memory, vc: connection.waiting, active: queue.active_vcs }
    }

    /// How many cells of a run may be judged together: none of them may find that another has left since.
    pub(super) fn at_once(&self, run: &Run, spacing: Spacing) -> u16 {
        let at = run.at();
        if run.cells == 1 {
            return 1;
        }
        if at >= self.free {
            return if spacing >= self.interval { run.cells } else { 1 };
        }
        if run.last_at(spacing) < self.free {
            return run.cells;
        }
        self.free.since(at).multiples_below(spacing).min(run.cells.into()) as u16
    }

    /// Lets in cells that [`Self::at_once`] allows. Gives how many wait more than before.
    pub(super) fn accept(
        &mut self,
        run: Run,
        spacing: Spacing,
        connections: &mut [Connection],
        fabric: &mut Fabric,
    ) -> i64 {
        let connection = &mut connections[run.label as usize];
        let index = connection.queue;
        let queue = &mut self.queues[index as usize];
        let level = &mut self.levels[queue.level as usize];
        if run.at() >= self.free {
            // Nothing waits: it starts when it comes, and so does each that follows.
            let tag = queue.finish.max(level.clock) + queue.step * u64::from(run.cells);
            (queue.finish, level.clock) = (tag, tag);
            self.free = run.last_at(spacing).plus(self.interval);
            let mut sent = run.moved(run.at().plus(self.transit));
            sent.label = connection.label;
            fabric.push(connection.out, sent);
            return 0;
        }
        let cells = u32::from(run.cells);
        if queue.waiting == 0 {
            level.active += 1;
            let tag = queue.finish.max(level.clock) + queue.step;
            self.active.push(Reverse((queue.level, tag, index)));
        }
        if connection.waits(cells) {
            queue.active_vcs += 1;
        }
        (queue.waiting, self.waiting) = (queue.waiting + cells, self.waiting + cells);
        queue.peak = queue.peak.max(queue.waiting);
        self.ends += u32::from(run.ends());
        match queue.items.back_mut() {
            Some(back) if fabric.trains && back.frame == run.frame && back.flags == run.flags & !END => {
                back.cells += run.cells;
                back.flags = run.flags;
            }
            _ => {
                let Run { frame, label, cells, flags, .. } = run;
                queue.items.push_back(Item { frame, label, cells, flags });
            }
        }
        cells.into()
    }
}

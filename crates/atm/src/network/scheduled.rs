//! A port with several queues: strict priority among levels, weighted fair queueing within a level.
//!
//! Published: Golestani 1994 (self-clocked fair queueing) for the weights. Cells are of one size, so a queue's next cell has the tag of
//! the one before and 1/weight more; a queue that was empty begins at the tag of the cell sent last. The least tag goes; of equal
//! ones the queue that stands first. A cell in transmission is not interrupted: priority goes between the cells of a frame.
//! Tags count 2^-28 of a cell of weight 1 in 64 bits, enough for 2^36 cells.
//!
//! A cell that comes in the picosecond in which a transmission may start, or later, no longer takes part in that choice.
//! Cost: a heap of the queues in which something waits; a queue that is alone in its level is served a run at a time.
//! When a cell leaves if nothing else comes is told in closed form, since tags of a queue are one step apart.

use std::collections::VecDeque;

use super::bundle::{Bundle, Bundled};
use super::connection::Connection;
use super::exit::Output;
use super::run::{About, Fabric, Run};
use super::stats::Cells;
use super::turns::{Turn, Turns};
use crate::discard::{Occupancy, Rules};
use crate::time::{Moment, Spacing};

const CELL_TAG: u64 = 1 << 28;

#[derive(Debug)]
pub(super) struct Scheduled {
    /// From one start to the next.
    pub(super) interval: Spacing,
    /// Of the interval.
    pub(super) class: u16,
    /// When the next transmission may start.
    pub(super) free: Moment,
    pub(super) queues: Vec<Queue>,
    levels: Vec<Level>,
    /// Queues in which something waits, with the tags of their next cells.
    turns: Turns,
    pub(super) waiting: u32,
    /// From the start of a transmission to the far end of its VC at the least.
    pub(super) onward: Spacing,
}

#[derive(Debug)]
pub(super) struct Queue {
    pub(super) rules: Rules,
    items: VecDeque<Item>,
    /// Ends of frames that wait: how many cells have waited here up to each.
    ends: VecDeque<u64>,
    /// Cells that ever waited here and do so no longer.
    left: u64,
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
    about: About,
    frame: u32,
}

impl Queue {
    /// `level` counts from 0 without gaps; lower ones go first.
    pub(super) fn new(rules: Rules, level: u16, weight: u16) -> Self {
        Self {
            rules,
            items: VecDeque::new(),
            ends: VecDeque::new(),
            left: 0,
            waiting: 0,
            peak: 0,
            active_vcs: 0,
            level,
            step: CELL_TAG / u64::from(weight),
            finish: 0,
        }
    }

    /// Cells at the end, with those before them if they continue them and `join`.
    #[inline]
    fn append(&mut self, item: Item, join: bool) {
        match self.items.back_mut() {
            Some(back) if join && back.frame == item.frame && back.about.continued_by(item.about) => {
                back.about = item.about.with_cells(back.about.cells() + item.about.cells());
            }
            _ => self.items.push_back(item),
        }
    }

    /// How many of its cells have tags that come before `turn`, the first of them having `tag`.
    fn before(&self, turn: Turn, first: Turn) -> u64 {
        if first >= turn {
            return 0;
        }
        if first.level() < turn.level() {
            return self.waiting.into();
        }
        let apart = turn.tag() - first.tag();
        // Of equal tags the queue that stands first goes first.
        let one_more = !apart.is_multiple_of(self.step) || first.queue() < turn.queue();
        (apart / self.step + u64::from(one_more)).min(self.waiting.into())
    }
}

impl Scheduled {
    pub(super) fn new(queues: Vec<Queue>, interval: Spacing, class: u16) -> Self {
        let levels = queues.iter().map(|queue| usize::from(queue.level) + 1).max().unwrap_or(0);
        Self {
            interval,
            class,
            free: Moment::default(),
            queues,
            levels: vec![Level::default(); levels],
            turns: Turns::default(),
            waiting: 0,
            onward: Spacing::LONGEST,
        }
    }

    /// Starts every transmission that is due by `now`. Gives how many cells left.
    fn serve(&mut self, now: Moment, connections: &mut [Connection], fabric: &mut Fabric) -> u32 {
        let before = self.waiting;
        while self.waiting > 0 && self.free <= now {
            self.send(now, connections, fabric);
        }
        before - self.waiting
    }

    /// Sends the next cell, or of a queue that has no rival as many as are due.
    #[inline(always)]
    fn send(&mut self, now: Moment, connections: &mut [Connection], fabric: &mut Fabric) {
        let turn = self.turns.first().expect("something waits");
        let queue = &mut self.queues[turn.queue() as usize];
        let level = &mut self.levels[turn.level() as usize];
        let item = queue.items.front_mut().expect("a queue that is active");
        let next = self.free.plus(self.interval);
        let waiting = item.about.cells();
        let cells = if waiting == 1 || level.active > 1 || next > now {
            1
        } else {
            let due = now.since(self.free).divided_by(self.interval) + 1;
            due.min(waiting.into()) as u16
        };
        let Item { mut about, frame } = *item;
        if cells == waiting {
            queue.items.pop_front();
        } else {
            item.about = about.with_cells(waiting - cells);
            about = about.with_cells(cells).without_end();
        }
        let count = u32::from(cells);
        queue.waiting -= count;
        self.waiting -= count;
        queue.left += u64::from(cells);
        let tag = turn.tag() + queue.step * u64::from(cells - 1);
        (queue.finish, level.clock) = (tag, tag);
        if queue.waiting == 0 {
            level.active -= 1;
            self.turns.remove_first();
        } else {
            self.turns.replace_first(Turn::new(turn.level(), tag + queue.step, turn.queue()));
        }
        let connection = &mut connections[about.label() as usize];
        if connection.leaves(count) {
            queue.active_vcs -= 1;
        }
        if about.ends() {
            queue.ends.pop_front();
        }
        let at = self.free.plus(connection.transit);
        let about = about.with_label(connection.label).with_class(self.class);
        fabric.push(connection.out, Run::of(at, frame, about));
        self.free = if cells == 1 { next } else { self.free.plus(self.interval.times(cells.into())) };
    }

    /// Cells of a VC that wait. Walks through all of its queue.
    pub(super) fn waiting_of(&self, queue: u16, label: u16) -> Cells {
        let mut cells = Cells::default();
        let own = self.queues[queue as usize].items.iter().filter(|item| item.about.label() == label);
        own.for_each(|item| cells.add(item.about.cells(), item.about.low()));
        cells
    }

    /// Before when no frame that waits here is at the far end: when the first of their ends leaves, if nothing else comes, and the least
    /// way from here. What comes yet can only put it off, since tags of cells that wait stay what they are. `None`: no end waits.
    pub(super) fn bound(&self) -> Option<u64> {
        let ends = self.turns.all().iter().filter_map(|first| {
            let queue = &self.queues[first.queue() as usize];
            let end = queue.ends.front()?;
            let tag = first.tag() + queue.step * (end - queue.left - 1);
            Some(Turn::new(first.level(), tag, first.queue()))
        });
        let turn = ends.min()?;
        let before = self.turns.all().iter().map(|first| self.queues[first.queue() as usize].before(turn, *first));
        Some(self.free.plus(self.interval.times(before.sum())).plus(self.onward).ps())
    }
}

impl Output for Scheduled {
    #[inline(always)]
    fn settle(&mut self, now: Moment, connections: &mut [Connection], fabric: &mut Fabric) -> u32 {
        if self.waiting > 0 && self.free <= now { self.serve(now, connections, fabric) } else { 0 }
    }

    #[inline(always)]
    fn seen(&self, connection: &Connection, memory: u32) -> (Occupancy, &Rules) {
        let queue = &self.queues[connection.queue as usize];
        let seen = Occupancy { queue: queue.waiting, memory, vc: connection.waiting, active: queue.active_vcs };
        (seen, &queue.rules)
    }

    /// How many cells of a run may be judged together: none of them may find that another has left since.
    fn at_once(&self, run: &Run, spacing: Spacing) -> u16 {
        let at = run.at();
        if run.cells() == 1 {
            return 1;
        }
        if at >= self.free {
            return if spacing >= self.interval { run.cells() } else { 1 };
        }
        if run.last_at(spacing) < self.free {
            return run.cells();
        }
        self.free.since(at).multiples_below(spacing).min(run.cells().into()) as u16
    }

    #[inline(always)]
    fn accept_cell(&mut self, cell: Run, connection: &mut Connection, fabric: &mut Fabric) -> u32 {
        self.take_in(cell, Spacing::ZERO, connection, fabric) as u32
    }

    /// Lets in cells that [`Self::at_once`] allows. Gives how many wait more than before.
    #[inline]
    fn accept(&mut self, run: Run, spacing: Spacing, connections: &mut [Connection], fabric: &mut Fabric) -> i64 {
        self.take_in(run, spacing, &mut connections[run.label() as usize], fabric)
    }

    /// Which queue goes next depends on which are empty, and on nothing else that comes. If each queue to which cells come holds more than may leave
    /// by then, all of them may come before any leaves.
    fn accept_bundle(&mut self, bundle: &Bundle, connections: &mut [Connection], fabric: &mut Fabric) -> Bundled {
        self.settle(bundle.at(0, 0), connections, fabric);
        let (first, last) = (bundle.at(0, 0), bundle.last_at());
        if first >= self.free {
            return Bundled::Cells;
        }
        let leaving = if last < self.free { 0 } else { last.since(self.free).divided_by(self.interval) + 1 };
        let cells = bundle.count();
        for train in &bundle.trains {
            let connection = &connections[train.label() as usize];
            let queue = &self.queues[connection.queue as usize];
            if !queue.rules.goes_on(&connection.state) {
                return Bundled::Round;
            }
            let most = Occupancy { queue: queue.waiting + cells, memory: self.waiting + cells, vc: 0, active: 0 };
            let alone = queue.rules.counts_vcs() || queue.rules.full(&most, train.low()).is_some();
            if alone || u64::from(queue.waiting) <= leaving || queue.waiting + cells > queue.peak {
                return Bundled::Cells;
            }
        }
        self.queue_bundle(bundle, connections, fabric.trains);
        self.settle(last, connections, fabric);
        Bundled::Done
    }

    #[inline]
    fn waiting(&self) -> u32 {
        self.waiting
    }

    #[inline]
    fn finish(&mut self, now: Moment, connections: &mut [Connection], fabric: &mut Fabric) -> (u32, u64) {
        let left = self.serve(now, connections, fabric);
        (left, if self.waiting > 0 { self.free.ps() } else { u64::MAX })
    }
}

impl Scheduled {
    /// Appends all cells of a bundle to queues none of which is empty.
    fn queue_bundle(&mut self, bundle: &Bundle, connections: &mut [Connection], join: bool) {
        let rounds = bundle.rounds;
        let queue_of = |connections: &[Connection], train: &Run| connections[train.label() as usize].queue;
        for (index, train) in bundle.trains.iter().enumerate() {
            let own = queue_of(connections, train);
            let connection = &mut connections[train.label() as usize];
            let queue = &mut self.queues[own as usize];
            if connection.waits(rounds.into()) {
                queue.active_vcs += 1;
            }
            queue.waiting += u32::from(rounds);
            let others = |trains: &[Run]| trains.iter().any(|other| queue_of(connections, other) == own);
            if others(&bundle.trains[..index]) {
                continue;
            }
            if !others(&bundle.trains[index + 1..]) {
                queue.append(Item { about: train.about.with_cells(rounds).without_end(), frame: train.frame }, join);
                continue;
            }
            for _ in 0..rounds {
                for train in bundle.trains[index..].iter().filter(|train| queue_of(connections, train) == own) {
                    queue.append(Item { about: train.about.with_cells(1).without_end(), frame: train.frame }, join);
                }
            }
        }
        self.waiting += bundle.count();
    }

    /// Lets in a run, or a cell. Gives how many cells wait more than before.
    #[inline]
    fn take_in(&mut self, run: Run, spacing: Spacing, connection: &mut Connection, fabric: &mut Fabric) -> i64 {
        let index = connection.queue;
        let queue = &mut self.queues[index as usize];
        let level = &mut self.levels[queue.level as usize];
        if run.at() >= self.free {
            // Nothing waits: it starts when it comes, and so does each that follows.
            let tag = queue.finish.max(level.clock) + queue.step * u64::from(run.cells());
            (queue.finish, level.clock) = (tag, tag);
            self.free = run.last_at(spacing).plus(self.interval);
            fabric.push(connection.out, run.towards(connection.label, run.at().plus(connection.transit)));
            return 0;
        }
        let cells = u32::from(run.cells());
        if queue.waiting == 0 {
            level.active += 1;
            let tag = queue.finish.max(level.clock) + queue.step;
            self.turns.add(Turn::new(queue.level, tag, index));
        }
        if connection.waits(cells) {
            queue.active_vcs += 1;
        }
        queue.waiting += cells;
        self.waiting += cells;
        queue.peak = queue.peak.max(queue.waiting);
        if run.ends() {
            queue.ends.push_back(queue.left + u64::from(queue.waiting));
        }
        queue.append(Item { about: run.about, frame: run.frame }, fabric.trains);
        cells.into()
    }
}

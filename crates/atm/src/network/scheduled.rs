//! A port with several queues: strict priority among levels, weighted fair queueing within a level.
//!
//! Published: Golestani 1994 (self-clocked fair queueing) for the weights. Cells are of one size, so a queue's next cell has the tag of
//! the one before and 1/weight more; a queue that was empty begins at the tag of the cell sent last. The least tag goes; of equal
//! ones the queue that stands first. A cell in transmission is not interrupted: priority goes between the cells of a frame.
//! Tags count 2^-28 of a cell of weight 1 in 64 bits, enough for 2^36 cells.
//!
//! A cell that comes in the picosecond in which a transmission may start, or later, no longer takes part in that choice.
//! Which queue goes next depends on which are empty and on their tags, and on nothing else that comes. So what comes to a queue that cannot be empty
//! by then may be let in before others have left, as long as that decides nothing; then many leave at once.
//! Cost: a heap of the queues in which something waits, in which one moves when it is the turn of another; a queue that is alone in its level
//! is served a run at a time.
//! When a cell leaves if nothing else comes is told in closed form, since tags of a queue are one step apart.

use std::collections::VecDeque;

use super::bundle::{Bundle, Bundled};
use super::connection::Connection;
use super::exit::Output;
use super::fabric::Fabric;
use super::ring::Ring;
use super::run::{About, Run};
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
    /// By level: tag of the cell sent last.
    clocks: Vec<u64>,
    /// Queues in which something waits, with the tags of their next cells.
    turns: Turns,
    /// Of trains side by side, those that go to one queue; kept for its room.
    abreast: Vec<Item>,
    pub(super) waiting: u32,
    /// From the start of a transmission to the far end of its VC at the least.
    pub(super) onward: Spacing,
}

#[derive(Debug)]
pub(super) struct Queue {
    pub(super) rules: Rules,
    items: Ring<Item>,
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
            items: Ring::default(),
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
            _ => self.items.push(item),
        }
    }

    /// Takes out the first cells of the first item, at most so many.
    #[inline(always)]
    fn take(&mut self, most: u32) -> Item {
        let first = self.items.front_mut().expect("a queue in which something waits");
        let mut taken = *first;
        let waiting = taken.about.cells();
        if most >= u32::from(waiting) {
            self.items.skip(1);
            if taken.about.ends() {
                self.ends.pop_front();
            }
        } else {
            first.about = first.about.with_cells(waiting - most as u16);
            taken.about = taken.about.with_cells(most as u16).without_end();
        }
        taken
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
            clocks: vec![0; levels],
            turns: Turns::default(),
            abreast: Vec::new(),
            waiting: 0,
            onward: Spacing::LONGEST,
        }
    }

    /// Starts every transmission that is due by `now`. Gives how many cells left.
    fn serve(&mut self, now: Moment, connections: &mut [Connection], fabric: &mut Fabric) -> u32 {
        let due = self.due(now).min(self.waiting.into()) as u32;
        let mut left = 0;
        while left < due {
            left += self.serve_first(due - left, connections, fabric);
        }
        self.waiting -= due;
        due
    }

    /// How many transmissions may start by `now`.
    fn due(&self, now: Moment) -> u64 {
        if now < self.free { 0 } else { now.since(self.free).divided_by(self.interval) + 1 }
    }

    /// Serves the queue whose turn it is until it is that of another, or nothing waits in it: at most so many cells. Gives how many.
    #[inline(always)]
    fn serve_first(&mut self, most: u32, connections: &mut [Connection], fabric: &mut Fabric) -> u32 {
        let turn = self.turns.first().expect("something waits");
        let queue = &mut self.queues[turn.queue() as usize];
        let (step, interval, class) = (queue.step, self.interval, self.class);
        let most = most.min(queue.waiting);
        let (mut cells, mut last) = (1, turn.tag());
        match self.turns.second() {
            Some(rival) if rival.level() == turn.level() => {
                // Of equal tags the queue that stands first goes first.
                let bound = rival.tag() + u64::from(turn.queue() < rival.queue());
                while cells < most && last + step < bound {
                    (cells, last) = (cells + 1, last + step);
                }
            }
            _ => (cells, last) = (most, last + step * u64::from(most - 1)),
        }
        let (mut rest, mut start) = (cells, self.free);
        while rest > 0 {
            let Item { about, frame } = queue.take(rest);
            let connection = &mut connections[about.label() as usize];
            if connection.leaves(about.cells().into()) {
                queue.active_vcs -= 1;
            }
            let sent = about.with_label(connection.label).with_class(class);
            fabric.push(connection.out, Run::of(start.plus(connection.transit), frame, sent));
            rest -= u32::from(about.cells());
            start = if about.cells() == 1 {
                start.plus(interval)
            } else {
                start.plus(interval.times(about.cells().into()))
            };
        }
        self.free = start;
        queue.waiting -= cells;
        queue.left += u64::from(cells);
        queue.finish = last;
        self.clocks[turn.level() as usize] = last;
        if queue.waiting == 0 {
            self.turns.remove_first();
        } else {
            self.turns.replace_first(Turn::new(turn.level(), last + step, turn.queue()));
        }
        cells
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

    /// It comes to a queue that holds more than may leave by then; with all of that still there it would be let in, and no more would have waited than
    /// ever did.
    #[inline]
    fn may_come_first(&self, cell: &Run, connection: &Connection) -> bool {
        let queue = &self.queues[connection.queue as usize];
        let most = Occupancy { queue: queue.waiting, memory: self.waiting, vc: 0, active: 0 };
        queue.waiting > 1
            && queue.waiting < queue.peak
            && cell.at() < self.free.plus(self.interval.times(u64::from(queue.waiting) - 1))
            && queue.rules.goes_on(&connection.state)
            && queue.rules.full(&most, cell.low()).is_none()
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

    /// All of them may come before any leaves, if that decides nothing.
    fn accept_bundle(&mut self, bundle: &Bundle, connections: &mut [Connection], fabric: &mut Fabric) -> Bundled {
        let mut may = self.may_queue(bundle, connections);
        if may == Bundled::Cells {
            self.settle(bundle.at(0, 0), connections, fabric);
            may = self.may_queue(bundle, connections);
        }
        if may == Bundled::Done {
            self.queue_bundle(bundle, connections);
        }
        may
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
    /// Whether cells of a bundle may be queued at once, before others leave.
    fn may_queue(&self, bundle: &Bundle, connections: &[Connection]) -> Bundled {
        let (cells, leaving) = (bundle.count(), self.due(bundle.last_at()));
        for train in &bundle.trains {
            let connection = &connections[train.label() as usize];
            let queue = &self.queues[connection.queue as usize];
            if queue.rules.counts_vcs() {
                return Bundled::Cells;
            }
            if !queue.rules.goes_on(&connection.state) {
                return Bundled::Round;
            }
            let most = Occupancy { queue: queue.waiting + cells, memory: self.waiting + cells, vc: 0, active: 0 };
            let full = queue.rules.full(&most, train.low()).is_some();
            if full || u64::from(queue.waiting) <= leaving || queue.waiting + cells > queue.peak {
                return Bundled::Cells;
            }
        }
        Bundled::Done
    }

    /// Appends all cells of a bundle to queues none of which is empty.
    fn queue_bundle(&mut self, bundle: &Bundle, connections: &mut [Connection]) {
        let rounds = bundle.rounds;
        let item = |train: &Run, cells| Item { about: train.about.with_cells(cells).without_end(), frame: train.frame };
        for (index, train) in bundle.trains.iter().enumerate() {
            let own = connections[train.label() as usize].queue;
            let queue = &mut self.queues[own as usize];
            if connections[train.label() as usize].waits(rounds.into()) {
                queue.active_vcs += 1;
            }
            queue.waiting += u32::from(rounds);
            let beside = |other: &&Run| connections[other.label() as usize].queue == own;
            if bundle.trains[..index].iter().any(|other| beside(&other)) {
                // It went with the first of them.
                continue;
            }
            self.abreast.clear();
            self.abreast.extend(bundle.trains[index..].iter().filter(beside).map(|train| item(train, 1)));
            if self.abreast.len() == 1 {
                queue.append(item(train, rounds), true);
                continue;
            }
            for _ in 0..rounds {
                for item in &self.abreast {
                    queue.items.push(*item);
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
        let clock = &mut self.clocks[queue.level as usize];
        if self.waiting == 0 && run.at() >= self.free {
            // It starts when it comes, and so does each that follows.
            queue.finish = queue.finish.max(*clock) + queue.step * u64::from(run.cells());
            *clock = queue.finish;
            self.free = run.last_at(spacing).plus(self.interval);
            fabric.push(connection.out, run.towards(connection.label, run.at().plus(connection.transit)));
            return 0;
        }
        let cells = u32::from(run.cells());
        if queue.waiting == 0 {
            let tag = queue.finish.max(*clock) + queue.step;
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

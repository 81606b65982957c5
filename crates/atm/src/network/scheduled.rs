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

use super::bundle::{Bundle, Bundled};
use super::connection::Connection;
use super::exit::Output;
use super::fabric::Fabric;
use super::queue::Queue;
use super::run::Run;
use super::turns::{Turn, Turns};
use crate::discard::{Occupancy, Rules};
use crate::time::{Moment, Spacing};

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
    pub(super) waiting: u32,
    /// From the start of a transmission to the far end of its VC at the least.
    pub(super) onward: Spacing,
    /// No VC shares its stream with another, and all streams lead to far ends.
    pub(super) apart: bool,
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
            waiting: 0,
            onward: Spacing::LONGEST,
            apart: false,
        }
    }

    /// Starts every transmission that is due by `now`. Gives how many cells left.
    fn serve(&mut self, now: Moment, connections: &mut [Connection], fabric: &mut Fabric) -> u32 {
        if self.waiting == 0 {
            return 0;
        }
        let due = self.due(now).min(self.waiting.into()) as u32;
        // So many that going through all queues once more costs little.
        let apart = self.apart && due as usize > 2 * self.queues.len();
        let every = (self.interval, self.class);
        let mut left = 0;
        while left < due {
            if apart
                && let Some(pair) = self.turns.pair()
                && pair[0].level() == pair[1].level()
            {
                left += self.note_pair(pair, due - left);
                continue;
            }
            let (index, cells) = self.choose(due - left);
            let queue = &mut self.queues[index as usize];
            if apart {
                for _ in 0..cells {
                    queue.starts.push(self.free);
                    self.free = self.free.plus(self.interval);
                }
            } else {
                queue.send(cells, self.free, every, connections, fabric);
                self.free = self.free.plus(self.interval.times(cells.into()));
            }
            left += cells;
        }
        if apart {
            self.queues.iter_mut().for_each(|queue| queue.send_noted(every, connections, fabric));
        }
        self.waiting -= due;
        due
    }

    /// How many transmissions may start by `now`.
    fn due(&self, now: Moment) -> u64 {
        if now < self.free { 0 } else { now.since(self.free).divided_by(self.interval) + 1 }
    }

    /// Notes when cells start of two queues of one level, which alone are not empty: until one of them is, at most so many. Gives how many. What
    /// [`Self::choose`] tells again and again, with no branch for whose turn it is.
    fn note_pair(&mut self, pair: [Turn; 2], most: u32) -> u32 {
        let index = pair.map(|turn| usize::from(turn.queue()));
        let steps = index.map(|index| self.queues[index].step);
        let mut starts = index.map(|index| core::mem::take(&mut self.queues[index].starts));
        let mut waiting = index.map(|index| self.queues[index].waiting);
        let mut tags = pair.map(Turn::tag);
        // Of equal tags the queue that stands first goes first.
        let ahead = u64::from(index[0] < index[1]);
        let (mut noted, mut last) = (0, 0);
        while noted < most && waiting[0] > 0 && waiting[1] > 0 {
            let which = usize::from(tags[0] >= tags[1] + ahead);
            last = tags[which];
            tags[which] += steps[which];
            waiting[which] -= 1;
            starts[which].push(self.free);
            self.free = self.free.plus(self.interval);
            noted += 1;
        }
        let level = pair[0].level();
        self.clocks[usize::from(level)] = last;
        for ((index, starts), (waiting, tag)) in index.into_iter().zip(starts).zip(waiting.into_iter().zip(tags)) {
            let queue = &mut self.queues[index];
            queue.left += u64::from(queue.waiting - waiting);
            // If none of its cells went, what stands here is not asked before one has.
            queue.finish = tag - queue.step;
            (queue.starts, queue.waiting) = (starts, waiting);
        }
        let turns = [0, 1].map(|place| (waiting[place], Turn::new(level, tags[place], pair[place].queue())));
        self.turns.replace_all(turns.into_iter().filter(|(waiting, _)| *waiting > 0).map(|(_, turn)| turn));
        noted
    }

    /// Whose turn it is, and for how many cells one behind the other: until it is that of another, or nothing waits there; at most so many.
    #[inline(always)]
    fn choose(&mut self, most: u32) -> (u16, u32) {
        let turn = self.turns.first().expect("something waits");
        let queue = &mut self.queues[turn.queue() as usize];
        let step = queue.step;
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
        queue.waiting -= cells;
        queue.left += u64::from(cells);
        queue.finish = last;
        self.clocks[turn.level() as usize] = last;
        if queue.waiting == 0 {
            self.turns.remove_first();
        } else {
            self.turns.replace_first(Turn::new(turn.level(), last + step, turn.queue()));
        }
        (turn.queue(), cells)
    }

    /// Before when no frame that waits here is at the far end: when the first of their ends leaves, if nothing else comes, and the least
    /// way from here. What comes yet can only put it off, since tags of cells that wait stay what they are. `None`: no end waits.
    pub(super) fn bound(&self) -> Option<u64> {
        let ends = self.turns.all().iter().filter_map(|first| {
            let queue = &self.queues[first.queue() as usize];
            let tag = first.tag() + queue.step * (queue.until_end()? - 1);
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

    /// VCs are counted as cells leave.
    #[inline(always)]
    fn catch_up(&mut self, _: &Run, _: &mut [Connection]) {}

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
            let of_train = Bundled::of(&queue.rules, &connection.state);
            if of_train != Bundled::Done {
                return of_train;
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
        for (index, train) in bundle.trains.iter().enumerate() {
            let own = connections[train.label() as usize].queue;
            let queue = &mut self.queues[own as usize];
            if connections[train.label() as usize].waits(rounds.into()) {
                queue.active_vcs += 1;
            }
            let beside = |other: &&Run| connections[other.label() as usize].queue == own;
            if bundle.trains[..index].iter().any(|other| beside(&other)) {
                // It went with the first of them.
                continue;
            }
            let mut others = bundle.trains[index + 1..].iter().filter(beside);
            if others.next().is_some() {
                queue.append_braid(bundle.trains[index..].iter().filter(beside), rounds);
            } else {
                let about = train.about.with_cells(rounds).without_end();
                queue.append(&Run::of(train.at(), train.frame, about), true);
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
        queue.append(&run, fabric.trains);
        queue.peak = queue.peak.max(queue.waiting);
        self.waiting += cells;
        cells.into()
    }
}

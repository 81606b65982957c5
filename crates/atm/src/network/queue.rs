//! One of the queues of a scheduler: which cells wait, in which order they leave, and what the scheduler remembers of it.
//!
//! Cells of one frame that wait one behind the other are one item. Frames whose cells alternate, for so many rounds, are a *braid*: an item for each, served in
//! turn.

use std::collections::VecDeque;

use super::connection::Connection;
use super::fabric::Fabric;
use super::ring::Ring;
use super::run::{About, Run};
use super::stats::Cells;
use super::turns::Turn;
use crate::discard::Rules;
use crate::time::{Moment, Spacing};

/// Tags count 2^-28 of a cell of weight 1.
const CELL_TAG: u64 = 1 << 28;

#[derive(Debug)]
pub(super) struct Queue {
    pub(super) rules: Rules,
    items: Ring<Item>,
    /// Of a braid in front: whose cell is next.
    next: usize,
    /// Ends of frames that wait: how many cells have waited here up to each.
    ends: VecDeque<u64>,
    /// Cells whose turn has come.
    pub(super) left: u64,
    /// Cells whose turn has not come.
    pub(super) waiting: u32,
    pub(super) peak: u32,
    pub(super) active_vcs: u32,
    pub(super) level: u16,
    /// 1/weight.
    pub(super) step: u64,
    /// Tag of the cell sent last.
    pub(super) finish: u64,
    /// When those start whose turn has come, and which are among the items yet.
    pub(super) starts: Vec<Moment>,
}

/// Cells of one frame, one behind the other; or in turn with those of other frames, without an end among them.
#[derive(Clone, Copy, Debug)]
struct Item {
    about: About,
    frame: u32,
    /// How many items take turns, from the first of them on; they have as many cells each. One: it stands alone.
    abreast: u16,
}

impl Queue {
    /// `level` counts from 0 without gaps; lower ones go first.
    pub(super) fn new(rules: Rules, level: u16, weight: u16) -> Self {
        Self {
            rules,
            items: Ring::default(),
            next: 0,
            ends: VecDeque::new(),
            left: 0,
            waiting: 0,
            peak: 0,
            active_vcs: 0,
            level,
            step: CELL_TAG / u64::from(weight),
            finish: 0,
            starts: Vec::new(),
        }
    }

    /// Appends a run, or cells of one frame to those before them if they continue them and `join`.
    #[inline(always)]
    pub(super) fn append(&mut self, run: &Run, join: bool) {
        self.waiting += u32::from(run.cells());
        if run.ends() {
            self.ends.push_back(self.left + u64::from(self.waiting));
        }
        match self.items.back_mut() {
            Some(back)
                if join && back.frame == run.frame && back.abreast == 1 && back.about.continued_by(run.about) =>
            {
                back.about = run.about.with_cells(back.about.cells() + run.cells());
            }
            _ => self.items.push(Item { about: run.about, frame: run.frame, abreast: 1 }),
        }
    }

    /// Appends `rounds` cells of each of several frames, in turn.
    pub(super) fn append_braid<'a>(&mut self, runs: impl Iterator<Item = &'a Run> + Clone, rounds: u16) {
        let abreast = runs.clone().count() as u16;
        for run in runs {
            let about = run.about.with_cells(rounds).without_end();
            self.items.push(Item { about, frame: run.frame, abreast });
        }
        self.waiting += u32::from(rounds) * u32::from(abreast);
    }

    /// How many cells stand before the first end of a frame, with that. `None`: no end waits.
    pub(super) fn until_end(&self) -> Option<u64> {
        Some(self.ends.front()? - self.left)
    }

    /// How many of its cells have tags that come before `turn`, the turn of the first of them being `first`.
    pub(super) fn before(&self, turn: Turn, first: Turn) -> u64 {
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

    /// Cells of a VC that wait. Walks through all of them.
    pub(super) fn waiting_of(&self, label: u16) -> Cells {
        let mut cells = Cells::default();
        let own = self.items.iter().filter(|item| item.about.label() == label);
        own.for_each(|item| cells.add(item.about.cells(), item.about.low()));
        cells
    }

    /// Sends the first `cells` cells, one behind the other from `start` on.
    #[inline(always)]
    pub(super) fn send(
        &mut self,
        cells: u32,
        mut start: Moment,
        (interval, class): (Spacing, u16),
        connections: &mut [Connection],
        fabric: &mut Fabric,
    ) {
        let mut rest = cells;
        while rest > 0 {
            let Item { about, frame, .. } = self.take(rest);
            let connection = &mut connections[about.label() as usize];
            if connection.leaves(about.cells().into()) {
                self.active_vcs -= 1;
            }
            let sent = about.with_label(connection.label).with_class(class);
            fabric.push(connection.out, Run::of(start.plus(connection.transit), frame, sent));
            rest -= u32::from(about.cells());
            start = start.plus(if about.cells() == 1 { interval } else { interval.times(about.cells().into()) });
        }
    }

    /// Takes the next cells of one frame that stand one behind the other, at most so many.
    #[inline(always)]
    fn take(&mut self, most: u32) -> Item {
        let item = self.items.get_mut(self.next).expect("a queue in which something waits");
        let mut taken = *item;
        let waiting = taken.about.cells();
        if taken.abreast > 1 {
            item.about = taken.about.with_cells(waiting - 1);
            taken.about = taken.about.with_cells(1);
            self.pass_braid(1, waiting, taken.abreast.into());
        } else if most >= u32::from(waiting) {
            self.items.skip(1);
            if taken.about.ends() {
                self.ends.pop_front();
            }
        } else {
            item.about = taken.about.with_cells(waiting - most as u16);
            taken.about = taken.about.with_cells(most as u16).without_end();
        }
        taken
    }

    /// Of a braid in front some cells have gone; before, the next of its items had so many.
    fn pass_braid(&mut self, cells: usize, had: u16, abreast: usize) {
        let gone = self.next + cells;
        self.next = gone % abreast;
        if gone == abreast * usize::from(had) {
            self.items.skip(abreast);
        }
    }

    /// Sends all cells whose starts are noted, frame by frame: for VCs none of which shares its stream with another.
    pub(super) fn send_noted(
        &mut self,
        (interval, class): (Spacing, u16),
        connections: &mut [Connection],
        fabric: &mut Fabric,
    ) {
        let mut from = 0;
        while from < self.starts.len() {
            let next = self.items.get(self.next).expect("a queue in which something waits");
            let (abreast, had) = (usize::from(next.abreast), next.about.cells());
            let cells = (abreast * usize::from(had) - self.next).min(self.starts.len() - from);
            for place in 0..abreast {
                let offset = (place + abreast - self.next) % abreast;
                if offset < cells {
                    let own = (from + offset..from + cells).step_by(abreast);
                    self.send_strand(place, own, (interval, class), connections, fabric);
                }
            }
            if abreast > 1 {
                self.pass_braid(cells, had, abreast);
            } else if cells == usize::from(had) {
                self.items.skip(1);
            }
            from += cells;
        }
        self.starts.clear();
    }

    /// Sends cells of one of the items in front, when it is noted.
    fn send_strand(
        &mut self,
        place: usize,
        noted: impl ExactSizeIterator<Item = usize> + Clone,
        (interval, class): (Spacing, u16),
        connections: &mut [Connection],
        fabric: &mut Fabric,
    ) {
        let item = self.items.get_mut(place).expect("one of a braid");
        let (cells, frame) = (noted.len() as u16, item.frame);
        let mut about = item.about.with_cells(cells);
        if cells < item.about.cells() {
            about = about.without_end();
        }
        item.about = item.about.with_cells(item.about.cells() - cells);
        let connection = &mut connections[about.label() as usize];
        if connection.leaves(cells.into()) {
            self.active_vcs -= 1;
        }
        if about.ends() {
            self.ends.pop_front();
        }
        let about = about.with_label(connection.label).with_class(class);
        let mut times = noted.map(|index| self.starts[index].plus(connection.transit));
        let (first, last) = (times.clone().next().expect("one cell or more"), times.clone().last());
        if last == Some(first.plus(interval.times(u64::from(cells) - 1))) {
            fabric.push(connection.out, Run::of(first, frame, about));
        } else {
            fabric.push_times(connection.out, frame, about, &mut times);
        }
    }
}

//! A port whose cells wait in one queue.
//!
//! When a cell leaves follows from when it came: at once, or one interval behind the one before. So a cell goes to the next stage as
//! soon as it is let in, with the time at which it will be there, and the queue is a count: of cells whose transmission has not begun. It is
//! brought up to date when somebody asks. Only a scheme that counts cells by VC needs to know whose they are (`by_vc`).
//!
//! A run is one cell after another in closed form. With spacing s and interval c, times exact:
//! - the port is idle and s >= c: each cell finds it idle and starts when it comes;
//! - the port is idle and s < c: the first starts when it comes, the others one interval behind one another;
//! - the port is busy: cells start one interval behind one another from when it is free, for good if s <= c, and else until one
//!   finds it idle.

use super::bundle::{Bundle, Bundled};
use super::by_vc::ByVc;
use super::connection::Connection;
use super::exit::Output;
use super::fabric::Fabric;
use super::run::Run;
use crate::discard::{Occupancy, Rules};
use crate::time::{Moment, Spacing};

#[derive(Debug)]
pub(super) struct Fifo {
    pub(super) rules: Rules,
    /// From one start to the next.
    pub(super) interval: Spacing,
    /// Of the interval.
    pub(super) class: u16,
    /// When the next transmission may start.
    free: Moment,
    /// When that of the cell at the head starts, if one waits.
    head: Moment,
    pub(super) waiting: u32,
    pub(super) peak: u32,
    by_vc: Option<ByVc>,
    /// By number: the class of so many intervals.
    classes: Vec<Option<u16>>,
}

impl Fifo {
    pub(super) fn new(rules: Rules, interval: Spacing, class: u16) -> Self {
        let by_vc = rules.counts_vcs().then(ByVc::default);
        let (free, head) = (Moment::default(), Moment::default());
        Self { rules, interval, class, free, head, waiting: 0, peak: 0, by_vc, classes: Vec::new() }
    }

    /// Takes those whose transmission has begun off the count. Gives how many.
    #[inline(always)]
    fn drain(&mut self, now: Moment) -> u32 {
        if self.waiting == 0 || self.head > now {
            return 0;
        }
        let next = self.head.plus(self.interval);
        let begun = if next > now {
            self.head = next;
            1
        } else {
            self.begun(now)
        };
        self.waiting -= begun;
        if let Some(by_vc) = &mut self.by_vc {
            by_vc.leave(begun);
        }
        begun
    }

    /// How many that is, of some; the next one becomes the head.
    #[inline(never)]
    fn begun(&mut self, now: Moment) -> u32 {
        let count = (now.since(self.head).divided_by(self.interval) + 1).min(self.waiting.into());
        self.head = self.head.plus(self.interval.times(count));
        count as u32
    }

    /// How many cells wait at a time that is not earlier than any cell that came.
    pub(super) fn waiting_at(&self, now: Moment) -> u32 {
        if self.waiting == 0 || self.head > now {
            return self.waiting;
        }
        let begun = now.since(self.head).divided_by(self.interval) + 1;
        self.waiting - begun.min(self.waiting.into()) as u32
    }

    /// When the transmission that goes on at `now` is over, which is not earlier than any cell that came; in the past if none goes on.
    pub(super) fn free_before_waiting(&self, now: Moment) -> Moment {
        self.free.minus(self.interval.times(self.waiting_at(now).into()))
    }

    /// So many cells wait, of a run that came until `last_at`. Gives how many cells wait more than before.
    #[inline]
    fn wait(
        &mut self,
        cells: u16,
        label: u16,
        spacing: Spacing,
        last_at: Moment,
        connections: &mut [Connection],
    ) -> i64 {
        let before = self.waiting;
        self.waiting += u32::from(cells);
        if let Some(by_vc) = &mut self.by_vc {
            by_vc.wait(label, cells.into(), &mut connections[label as usize]);
        }
        let mut left = 0;
        if cells > 1 && spacing > self.interval {
            // Fewer wait from cell to cell.
            self.peak = self.peak.max(before + 1);
        } else {
            // More wait from cell to cell, so most do when the last has come.
            left = self.drain(last_at);
            self.peak = self.peak.max(self.waiting);
        }
        i64::from(cells) - i64::from(left)
    }
}

/// Trains side by side ([`Bundle`]). Cell n of a bundle that finds the port busy all the while starts n intervals behind the first.
impl Fifo {
    /// Every cell finds the port busy. Both when cells come and when they start goes evenly from round to round, so the first and the last tell.
    fn stays_busy(&self, bundle: &Bundle) -> bool {
        let trains = bundle.trains.len();
        let busy = |train, round: u16| {
            let before = trains as u64 * u64::from(round) + train as u64;
            bundle.at(train, round) < self.free.plus(self.interval.times(before))
        };
        (0..trains).all(|train| busy(train, 0) && busy(train, bundle.rounds - 1))
    }

    /// Every cell finds the port idle: none comes sooner than one interval behind the one before.
    fn stays_idle(&self, bundle: &Bundle) -> bool {
        let apart = |pair: &[Run]| pair[1].at() >= pair[0].at().plus(self.interval);
        let last = bundle.at(bundle.trains.len() - 1, 0);
        bundle.at(0, 0) >= self.free
            && bundle.trains.windows(2).all(apart)
            && bundle.at(0, 1) >= last.plus(self.interval)
    }

    fn queue_bundle(
        &mut self,
        bundle: &Bundle,
        cells: u32,
        connections: &mut [Connection],
        fabric: &mut Fabric,
    ) -> Bundled {
        let trains = bundle.trains.len();
        let Some(class) = self.class_of(trains, fabric) else { return Bundled::Cells };
        if self.waiting == 0 {
            self.head = self.free;
        }
        if self.waiting + cells > self.peak {
            self.peak = self.peak.max(self.peak_of(bundle));
        }
        let mut start = self.free;
        for train in &bundle.trains {
            let connection = &connections[train.label() as usize];
            let about = train.about.with_cells(bundle.rounds).without_end().with_class(class);
            let sent = Run::of(start, train.frame, about);
            fabric.push(connection.out, sent.towards(connection.label, start.plus(connection.transit)));
            start = start.plus(self.interval);
        }
        self.free = self.free.plus(self.interval.times(cells.into()));
        self.waiting += cells;
        if let Some(by_vc) = &mut self.by_vc {
            by_vc.wait_in_turn(bundle, connections);
        }
        Bundled::Done
    }

    fn pass_bundle(&mut self, bundle: &Bundle, connections: &mut [Connection], fabric: &mut Fabric) -> Bundled {
        for train in &bundle.trains {
            let connection = &connections[train.label() as usize];
            let about = train.about.with_cells(bundle.rounds).without_end();
            let sent = Run::of(train.at(), train.frame, about);
            fabric.push(connection.out, sent.towards(connection.label, train.at().plus(connection.transit)));
        }
        self.free = bundle.last_at().plus(self.interval);
        Bundled::Done
    }

    /// The most cells that wait when one of a bundle has come, all of which wait. From round to round either no fewer leave than come, or no more; so they are
    /// most in the first or in the last.
    fn peak_of(&self, bundle: &Bundle) -> u32 {
        let trains = bundle.trains.len();
        let waiting = |train: usize, round: u16| {
            let now = bundle.at(train, round);
            let begun = if now < self.head { 0 } else { now.since(self.head).divided_by(self.interval) + 1 };
            let come = trains as u64 * u64::from(round) + train as u64 + 1;
            (u64::from(self.waiting) + come - begun) as u32
        };
        let rounds = [0, bundle.rounds - 1];
        (0..trains).flat_map(|train| rounds.map(|round| waiting(train, round))).max().unwrap_or(0)
    }

    /// The class of so many intervals. `None`: there are no more classes.
    fn class_of(&mut self, intervals: usize, fabric: &mut Fabric) -> Option<u16> {
        if self.classes.len() <= intervals {
            self.classes.resize(intervals + 1, None);
        }
        if self.classes[intervals].is_none() {
            let class = u16::try_from(fabric.spacings.len()).ok()?;
            fabric.spacings.push(self.interval.times(intervals as u64));
            self.classes[intervals] = Some(class);
        }
        self.classes[intervals]
    }
}

/// True if two of the trains go on in one stream, where those that overlap cannot be.
fn shared_way(bundle: &Bundle, connections: &[Connection]) -> bool {
    let out = |train: &Run| connections[train.label() as usize].out;
    let mut trains = bundle.trains.iter().enumerate();
    trains.any(|(index, train)| bundle.trains[..index].iter().any(|other| out(other) == out(train)))
}

impl Output for Fifo {
    #[inline(always)]
    fn settle(&mut self, now: Moment, _: &mut [Connection], _: &mut Fabric) -> u32 {
        self.drain(now)
    }

    #[inline(always)]
    fn catch_up(&mut self, run: &Run, connections: &mut [Connection]) {
        if let Some(by_vc) = &mut self.by_vc
            && connections[run.label() as usize].state.asks_whose()
        {
            by_vc.catch_up(connections);
        }
    }

    /// To take cells off the count costs no more than to ask.
    #[inline(always)]
    fn may_come_first(&self, _: &Run, _: &Connection) -> bool {
        false
    }

    #[inline(always)]
    fn seen(&self, connection: &Connection, memory: u32) -> (Occupancy, &Rules) {
        let active = self.by_vc.as_ref().map_or(0, ByVc::active);
        (Occupancy { queue: self.waiting, memory, vc: connection.waiting, active }, &self.rules)
    }

    /// How many cells of a run may be judged together: all. If the VC has none here for a moment between two of them, so it has when its next comes, which then
    /// tells that SPD may take a frame again: the port sends faster than they come, so each waits less than the one before.
    #[inline]
    fn at_once(&self, run: &Run, _: Spacing) -> u16 {
        run.cells()
    }

    #[inline(always)]
    fn accept_cell(&mut self, cell: Run, connection: &mut Connection, fabric: &mut Fabric) -> u32 {
        let at = cell.at();
        let waits = at < self.free;
        let start = if waits { self.free } else { at };
        self.free = start.plus(self.interval);
        let sent = cell.towards(connection.label, start.plus(connection.transit));
        fabric.push(connection.out, sent);
        if waits {
            if self.waiting == 0 {
                self.head = start;
            }
            self.waiting += 1;
            self.peak = self.peak.max(self.waiting);
            if let Some(by_vc) = &mut self.by_vc {
                by_vc.wait(cell.label(), 1, connection);
            }
        }
        waits.into()
    }

    /// Lets a run in. Gives how many cells wait more than before.
    fn accept(&mut self, mut run: Run, spacing: Spacing, connections: &mut [Connection], fabric: &mut Fabric) -> i64 {
        let mut more = 0;
        loop {
            let (at, label) = (run.at(), run.label());
            let idle = at >= self.free;
            let together = if idle || run.cells() == 1 || spacing <= self.interval {
                run.cells()
            } else {
                // The first to find the port idle comes later.
                let busy = self.free.since(at).multiples_below(spacing.minus(self.interval));
                busy.min(run.cells().into()) as u16
            };
            let done = together == run.cells();
            let mut piece = if done { run } else { run.split(together, spacing) };
            let last_at = piece.last_at(spacing);
            let count = u64::from(piece.cells());
            let (start, queued) = if idle {
                if spacing >= self.interval {
                    self.free = last_at.plus(self.interval);
                    (at, 0)
                } else {
                    self.head = at.plus(self.interval);
                    self.free = at.plus(self.interval.times(count));
                    piece.set_class(self.class);
                    (at, piece.cells() - 1)
                }
            } else {
                let start = self.free;
                if self.waiting == 0 {
                    self.head = start;
                }
                self.free = start.plus(self.interval.times(count));
                piece.set_class(self.class);
                (start, piece.cells())
            };
            let connection = &mut connections[label as usize];
            fabric.push(connection.out, piece.towards(connection.label, start.plus(connection.transit)));
            if queued > 0 {
                more += self.wait(queued, label, spacing, last_at, connections);
            }
            if done {
                return more;
            }
            more -= i64::from(self.drain(run.at()));
        }
    }

    fn accept_bundle(&mut self, bundle: &Bundle, connections: &mut [Connection], fabric: &mut Fabric) -> Bundled {
        self.drain(bundle.at(0, 0));
        if shared_way(bundle, connections) {
            return Bundled::Cells;
        }
        let of_train = |train: &Run| Bundled::of(&self.rules, &connections[train.label() as usize].state);
        let most = bundle.trains.iter().map(of_train).max().unwrap_or(Bundled::Cells);
        if most != Bundled::Done {
            return most;
        }
        let cells = bundle.count();
        let low = bundle.trains.iter().any(Run::low);
        let most = Occupancy { queue: self.waiting + cells - 1, memory: self.waiting + cells - 1, vc: 0, active: 0 };
        if self.rules.full(&most, low).is_some() {
            return Bundled::Cells;
        }
        if self.stays_busy(bundle) {
            self.queue_bundle(bundle, cells, connections, fabric)
        } else if self.stays_idle(bundle) {
            self.pass_bundle(bundle, connections, fabric)
        } else {
            Bundled::Cells
        }
    }

    #[inline]
    fn waiting(&self) -> u32 {
        self.waiting
    }

    /// All that waits is on its way already.
    #[inline]
    fn finish(&mut self, _: Moment, _: &mut [Connection], _: &mut Fabric) -> (u32, u64) {
        (0, u64::MAX)
    }
}

//! Streams that carry runs of cells from one stage to the next, or to a far end, and what else the stages share.
//!
//! What a port sends goes to a stream, which keeps the order of time; the next stage takes it from there up to whatever time it may. A
//! run that continues the one before it joins it: so a frame that a slower port has drawn out crosses the network as one item (a *train*).
//! Nothing else tells trains from cells: with `trains` off runs are not joined, and every result is the same.
//!
//! A far end asks no more of cells than when they are there. So cells of one frame that are not evenly spaced wait for it as one *loose* run, with the
//! time of each beside it.

use std::collections::VecDeque;

use super::abr::Rms;
use super::bundle::Bundle;
use super::earliest::Earliest;
use super::frames::Frames;
use super::ring::Ring;
use super::run::{About, LOOSE, Run};
use crate::time::{Moment, Spacing};

/// Runs on their way to a stage or a far end, in order of time.
#[derive(Debug)]
pub(super) struct Stream {
    runs: Ring<Run>,
    /// To a far end: when the cells of loose runs are there.
    times: Ring<Moment>,
    to_far_end: bool,
    /// When the ends of frames among them are there, picoseconds.
    ends: VecDeque<u64>,
    /// Who takes them: see [`Fabric::next`].
    target: u32,
    /// Which of its inputs this is.
    input: u32,
    /// From there to the far end at the least, picoseconds.
    remaining: u64,
}

impl Stream {
    /// To a stage, as one of its inputs.
    pub(super) fn to_stage(target: u32, input: u32, remaining: u64) -> Self {
        Self { to_far_end: false, target, input, remaining, ..Self::to_far_end(target) }
    }

    /// To the far end of a link.
    pub(super) fn to_far_end(target: u32) -> Self {
        let (runs, times, ends) = (Ring::default(), Ring::default(), VecDeque::new());
        Self { runs, times, to_far_end: true, ends, target, input: 0, remaining: 0 }
    }

    /// Who takes its cells.
    pub(super) fn target(&self) -> u32 {
        self.target
    }

    /// From its target to the far end at the least, picoseconds.
    pub(super) fn remaining(&self) -> u64 {
        self.remaining
    }

    #[inline]
    pub(super) fn front_ps(&self) -> Option<u64> {
        self.runs.front().map(Run::ps)
    }

    #[inline]
    pub(super) fn front(&self) -> Option<&Run> {
        self.runs.front()
    }

    /// Of the first run some cells have been taken.
    #[inline]
    pub(super) fn replace_front(&mut self, rest: Run) {
        *self.runs.front_mut().expect("there is one") = rest;
    }

    /// How many cells are in it.
    pub(super) fn cells(&self) -> u64 {
        self.runs.iter().map(|run| u64::from(run.cells())).sum()
    }

    /// When the first cell with this label comes that comes after `moment`.
    pub(super) fn first_after(&self, moment: Moment, spacings: &[Spacing], label: u16) -> Option<Moment> {
        let mut behind = self.times.len();
        let mut first = None;
        for run in self.runs.iter().rev() {
            let at = if run.class() == LOOSE {
                let from = behind - usize::from(run.cells());
                let mut times = (from..behind).filter_map(|index| self.times.get(index));
                behind = from;
                times.find(|at| **at > moment).copied()
            } else {
                let spacing = spacings[run.class() as usize];
                let later = run.cells_after(moment, spacing);
                (later > 0).then(|| run.at().plus(spacing.times(u64::from(run.cells() - later))))
            };
            if at.is_none() {
                return first;
            }
            if run.label() == label {
                first = at;
            }
        }
        first
    }

    /// Tells of how many cells of each run come after `moment`, of the last run first.
    pub(super) fn after(&self, moment: Moment, spacings: &[Spacing], mut tell: impl FnMut(&Run, u16)) {
        let mut behind = self.times.len();
        for run in self.runs.iter().rev() {
            let cells = if run.class() == LOOSE {
                let first = behind - usize::from(run.cells());
                let later =
                    (first..behind).filter(|index| self.times.get(*index).is_some_and(|at| *at > moment)).count();
                behind = first;
                later as u16
            } else {
                run.cells_after(moment, spacings[run.class() as usize])
            };
            if cells == 0 {
                return;
            }
            tell(run, cells);
        }
    }

    #[inline(never)]
    fn push_end(&mut self, index: usize, ps: u64, bounds: &mut Earliest) {
        if self.ends.is_empty() {
            bounds.set(index, ps.saturating_add(self.remaining));
        }
        self.ends.push_back(ps);
    }

    #[inline(never)]
    fn take_end(&mut self, index: usize, bounds: &mut Earliest) {
        self.ends.pop_front();
        bounds.set(index, self.ends.front().map_or(u64::MAX, |ps| ps.saturating_add(self.remaining)));
    }

    /// Takes those of the first `most` cells of the first run, which is loose, that are there in picosecond `bound` or before, as its first is.
    /// Gives how many, and in which picosecond the last of them is there.
    fn take_loose(&mut self, bound: u64, most: u16) -> (u16, u64) {
        let front = self.runs.front_mut().expect("it is loose");
        let all = usize::from(front.cells());
        let most = all.min(most.into());
        let ps = |index: usize| self.times.get(index).map_or(u64::MAX, |at| at.ps());
        let taken = if ps(most - 1) <= bound { most } else { first_above(most, |index| ps(index) > bound) };
        let last = ps(taken - 1);
        self.times.skip(taken);
        if taken < all
            && let Some(at) = self.times.front()
        {
            *front = Run::of(*at, front.frame, front.about.with_cells((all - taken) as u16));
        }
        (taken as u16, last)
    }
}

/// The first of `count` for which `above` holds, as it does for all behind it and the last.
fn first_above(count: usize, above: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, count - 1);
    while low < high {
        let middle = usize::midpoint(low, high);
        if above(middle) { high = middle } else { low = middle + 1 }
    }
    low
}

/// What the stages share.
#[derive(Debug)]
pub(super) struct Fabric {
    pub(super) streams: Vec<Stream>,
    /// By class. The first is none at all, the second that of loose runs.
    pub(super) spacings: Vec<Spacing>,
    pub(super) frames: Frames,
    pub(super) rms: Rms,
    /// By stage, in the order in which they are gone through, and sinks behind them: in which picosecond it has something to do.
    pub(super) next: Earliest,
    /// By stage in that order: inputs that have something again.
    pub(super) woken: Vec<Vec<u32>>,
    /// By stream: before when none of its frames can be at the far end.
    pub(super) bounds: Earliest,
    /// What a stage has merged and not yet handled; kept for its room.
    pub(super) batch: Vec<Run>,
    /// What of it came over links that lose cells; kept for its room, too.
    pub(super) crossed: Vec<Run>,
    /// The same.
    pub(super) bundle: Bundle,
    /// Runs are joined.
    pub(super) trains: bool,
}

impl Fabric {
    /// Appends `run` to a stream; never earlier than what is in it.
    #[inline(always)]
    pub(super) fn push(&mut self, stream: u32, run: Run) {
        let index = stream as usize;
        if run.ends() {
            let ps = run.last_at(self.spacings[run.class() as usize]).ps();
            self.streams[index].push_end(index, ps, &mut self.bounds);
        }
        let stream = &mut self.streams[index];
        if let Some(back) = stream.runs.back_mut() {
            let joins = self.trains || stream.to_far_end;
            if joins && back.frame == run.frame && back.about.continued_by(run.about) {
                let joined = if back.class() == LOOSE {
                    loosen(back, &run, &mut stream.times)
                } else {
                    self.trains && join(back, &run, &self.spacings)
                        || stream.to_far_end && loosen(back, &run, &mut stream.times)
                };
                if joined {
                    return;
                }
            }
        } else {
            wake(stream, run.ps(), &mut self.next, &mut self.woken);
        }
        stream.runs.push(run);
    }

    /// Appends all `count` cells of a frame one by one, the first of which is given.
    pub(super) fn push_cells(&mut self, stream: u32, first: Run, count: u16) {
        let spacing = self.spacings[first.class() as usize];
        let mut at = first.at();
        for _ in 1..count {
            self.push(stream, Run::of(at, first.frame, first.about));
            at = at.plus(spacing);
        }
        self.push(stream, Run::of(at, first.frame, first.about.with_end()));
    }

    /// Appends cells of one frame to a stream to a far end, where they are at these times.
    pub(super) fn push_times(
        &mut self,
        stream: u32,
        frame: u32,
        about: About,
        times: &mut impl Iterator<Item = Moment>,
    ) {
        let before_end = usize::from(about.cells()) - usize::from(about.ends());
        let cell = about.with_cells(1).without_end();
        let mut plain = times.by_ref().take(before_end);
        while let Some(at) = plain.next() {
            self.push(stream, Run::of(at, frame, cell));
            let Stream { runs, times, .. } = &mut self.streams[stream as usize];
            if let Some(back) = runs.back_mut()
                && back.class() == LOOSE
            {
                // Those behind it join it.
                let before = times.len();
                plain.by_ref().for_each(|at| times.push(at));
                back.about = back.about.with_cells(back.cells() + (times.len() - before) as u16);
            }
        }
        if let Some(at) = times.next() {
            self.push(stream, Run::of(at, frame, cell.with_end()));
        }
    }

    /// Takes all cells of a stream that come in picosecond `bound` or before. Tells when the next is there.
    #[inline]
    pub(super) fn take_until(&mut self, stream: u32, bound: u64, into: &mut Vec<Run>) -> Option<u64> {
        let index = stream as usize;
        let source = &mut self.streams[index];
        loop {
            let front = source.runs.front_mut()?;
            let run = *front;
            let ps = run.ps();
            if ps > bound {
                return Some(ps);
            }
            if run.cells() > 1
                && let Some((some, next)) = front.take_until(bound, &self.spacings)
            {
                into.push(some);
                return Some(next);
            }
            source.runs.skip(1);
            into.push(run);
            if run.ends() {
                source.take_end(index, &mut self.bounds);
            }
        }
    }

    /// Takes the cells at the front of a stream to a far end that are there in picosecond `bound` or before, as many as are of one frame and
    /// alike. Tells how many that is, in the name of the first, and in which picosecond the last of them comes.
    #[inline]
    pub(super) fn gather(&mut self, stream: u32, bound: u64) -> Option<(Run, u64)> {
        let index = stream as usize;
        let source = &mut self.streams[index];
        let mut all: Option<(Run, u64)> = None;
        while let Some(front) = source.runs.front_mut() {
            let mut run = *front;
            let follows = all.is_none_or(|(all, _)| run.frame == all.frame && all.about.continued_by(run.about));
            if run.ps() > bound || !follows {
                break;
            }
            let (taken, last) = if run.class() == LOOSE {
                source.take_loose(bound, u16::MAX)
            } else if run.cells() == 1 {
                (1, run.ps())
            } else {
                let some = front.take_until(bound, &self.spacings).map_or(run, |(some, _)| some);
                (some.cells(), some.last_at(self.spacings[some.class() as usize]).ps())
            };
            let whole = taken == run.cells();
            if whole {
                source.runs.skip(1);
                if run.ends() {
                    source.take_end(index, &mut self.bounds);
                }
            } else {
                run.about = run.about.without_end();
            }
            let before = all.map_or(0, |(all, _)| all.cells());
            run.about = run.about.with_cells(before + taken);
            all = Some((run, last));
        }
        all
    }

    /// Takes those of the first `most` cells of the first run of a stream to a far end that are there in picosecond `bound` or before, as its first
    /// is. Tells how many that is, and in which picosecond the last of them comes, as [`Self::gather`] does.
    pub(super) fn take_some(&mut self, stream: u32, bound: u64, most: u16) -> (Run, u64) {
        let index = stream as usize;
        let source = &mut self.streams[index];
        let front = source.runs.front_mut().expect("something is there");
        let mut run = *front;
        let all = run.cells();
        let (taken, last) = if run.class() == LOOSE {
            source.take_loose(bound, most)
        } else {
            let spacing = self.spacings[run.class() as usize];
            let taken = if all == 1 { 1 } else { run.cells_until(bound, spacing).min(most) };
            let piece = front.split(taken, spacing);
            (taken, piece.last_at(spacing).ps())
        };
        if taken == all {
            source.runs.skip(1);
            if run.ends() {
                source.take_end(index, &mut self.bounds);
            }
        } else {
            run.about = run.about.without_end();
        }
        run.about = run.about.with_cells(taken);
        (run, last)
    }
}

/// The first run comes to a stream: who takes it has something to do.
#[inline(never)]
fn wake(stream: &Stream, ps: u64, next: &mut Earliest, woken: &mut [Vec<u32>]) {
    let target = stream.target as usize;
    next.lower(target, ps);
    if let Some(woken) = woken.get_mut(target) {
        woken.push(stream.input);
    }
}

/// Lets a cell join a loose run, or a cell that makes one with it; both of one frame and alike.
#[inline(always)]
fn loosen(back: &mut Run, cell: &Run, times: &mut Ring<Moment>) -> bool {
    if cell.cells() > 1 {
        return false;
    }
    if back.class() != LOOSE {
        if back.cells() > 1 {
            return false;
        }
        times.push(back.at());
    }
    times.push(cell.at());
    back.about = back.about.continued(cell.about, LOOSE);
    true
}

/// Joins `run` to the one before it, of the same frame and alike and not loose, if it continues that: one spacing on.
#[inline]
fn join(back: &mut Run, run: &Run, spacings: &[Spacing]) -> bool {
    let spacing = spacings[run.class() as usize];
    let expected = if back.cells() == 1 {
        back.at().plus(spacing)
    } else if back.class() == run.class() {
        back.at().plus(spacing.times(back.cells().into()))
    } else {
        return false;
    };
    if expected != run.at() {
        return false;
    }
    back.about = run.about.with_cells(back.cells() + run.cells());
    true
}

#[cfg(test)]
mod tests {
    use lastmile_units::{Duration, Instant};

    use super::*;
    use crate::network::run::END;

    fn run(ps: u64, cells: u16) -> Run {
        Run::new(Moment::at(Instant::from_ps(ps)), 0, 0, cells, 2, END)
    }

    #[test]
    fn a_run_that_was_split_joins_again() {
        let spacing = Spacing::of(Duration::from_ps(10));
        let spacings = [Spacing::ZERO, Spacing::ZERO, spacing];
        let mut rest = run(100, 8);
        let mut front = rest.split(3, spacing);
        assert!(join(&mut front, &rest, &spacings));
        assert_eq!((front.cells(), front.ends(), front.last_at(spacing).ps()), (8, true, 170));
        assert!(!front.about.continued_by(run(180, 1).about), "nothing follows the end of a frame");
    }

    #[test]
    fn cells_that_are_not_evenly_spaced_wait_as_one_loose_run() {
        let mut stream = Stream::to_far_end(0);
        for ps in [100, 107, 130] {
            let mut cell = run(ps, 2).split(1, Spacing::ZERO);
            match stream.runs.back_mut() {
                Some(back) => assert!(loosen(back, &cell, &mut stream.times)),
                None => stream.runs.push(cell),
            }
            cell.set_low();
            assert!(!stream.runs.front().expect("a run").about.continued_by(cell.about), "of another CLP");
        }
        let later = |stream: &Stream, ps| {
            let mut cells = 0;
            stream.after(Moment::at(Instant::from_ps(ps)), &[Spacing::ZERO; 3], |_, later| cells += later);
            cells
        };
        assert_eq!([99, 100, 129, 130].map(|ps| later(&stream, ps)), [3, 2, 1, 0]);
        assert_eq!(stream.take_loose(129, 3), (2, 107));
        assert_eq!((stream.front_ps(), stream.cells(), later(&stream, 129)), (Some(130), 1, 1));
    }
}

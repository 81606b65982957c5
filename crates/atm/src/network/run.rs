//! Runs of cells, the streams that carry them from one stage to the next, and what the stages share.
//!
//! A run is cells of one frame, evenly spaced; a single cell is a run of one. What a port sends goes to a stream, which keeps the order
//! of time; the next stage takes it from there up to whatever time it may. A run that continues the one before it joins it: so a
//! frame that a slower port has drawn out crosses the network as one item (a *train*). Nothing else tells trains from cells:
//! with `trains` off runs are not joined, and every result is the same.

use std::collections::VecDeque;

use super::abr::Rms;
use super::bundle::Bundle;
use super::earliest::Earliest;
use super::frames::Frames;
use crate::time::{Moment, Spacing};

/// The run holds the end-of-frame cell of its frame, as its last.
pub(super) const END: u16 = 1;
/// CLP = 1.
pub(super) const LOW: u16 = 2;

/// The cell came through congestion (EFCI).
pub(super) const EFCI: u16 = 4;
/// A resource management cell, of no frame; its slot is among those.
pub(super) const RM: u16 = 8;

/// Number, VC, spacing and flags of a run in one word, so that a run is three words to copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct About(u64);

const CLASS: u32 = 16;
const LABEL: u32 = 32;
const FLAGS: u32 = 48;
const FIELD: u64 = 0xffff;

impl About {
    #[inline]
    const fn new(label: u16, cells: u16, class: u16, flags: u16) -> Self {
        Self(cells as u64 | (class as u64) << CLASS | (label as u64) << LABEL | (flags as u64) << FLAGS)
    }

    /// At least 1, at most those of a frame.
    #[inline]
    pub(super) const fn cells(self) -> u16 {
        self.0 as u16
    }

    /// Which spacing; of no meaning for one cell.
    #[inline]
    const fn class(self) -> u16 {
        (self.0 >> CLASS) as u16
    }

    /// What the receiving stage knows the VC by.
    #[inline]
    pub(super) const fn label(self) -> u16 {
        (self.0 >> LABEL) as u16
    }

    #[inline]
    const fn has(self, flag: u16) -> bool {
        self.0 & (flag as u64) << FLAGS != 0
    }

    #[inline]
    pub(super) const fn ends(self) -> bool {
        self.has(END)
    }

    #[inline]
    pub(super) const fn low(self) -> bool {
        self.has(LOW)
    }

    #[inline]
    pub(super) const fn with_cells(self, cells: u16) -> Self {
        Self(self.0 & !FIELD | cells as u64)
    }

    #[inline]
    pub(super) const fn with_class(self, class: u16) -> Self {
        Self(self.0 & !(FIELD << CLASS) | (class as u64) << CLASS)
    }

    #[inline]
    pub(super) const fn with_label(self, label: u16) -> Self {
        Self(self.0 & !(FIELD << LABEL) | (label as u64) << LABEL)
    }

    #[inline]
    pub(super) const fn without_end(self) -> Self {
        Self(self.0 & !((END as u64) << FLAGS))
    }

    /// True if cells of the same frame, told by `next`, may be counted with these: of one CLP, and not behind the end.
    #[inline]
    pub(super) const fn continued_by(self, next: Self) -> bool {
        self.0 >> FLAGS == next.without_end().0 >> FLAGS
    }
}

/// Cells of one frame, evenly spaced. 24 bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    /// When its first cell is there, the lower and the upper word.
    low: u64,
    high: u32,
    /// Its slot among the frames.
    pub(super) frame: u32,
    pub(super) about: About,
}

impl Run {
    pub(super) fn new(at: Moment, frame: u32, label: u16, cells: u16, class: u16, flags: u16) -> Self {
        Self::of(at, frame, About::new(label, cells, class, flags))
    }

    #[inline]
    pub(super) fn of(at: Moment, frame: u32, about: About) -> Self {
        let (low, high) = at.words();
        Self { low, high, frame, about }
    }

    /// When its first cell is there.
    #[inline]
    pub(super) fn at(&self) -> Moment {
        Moment::from_words(self.low, self.high)
    }

    /// In which picosecond that is.
    #[inline]
    pub(super) fn ps(&self) -> u64 {
        self.at().ps()
    }

    #[inline]
    pub(super) fn cells(&self) -> u16 {
        self.about.cells()
    }

    #[inline]
    pub(super) fn class(&self) -> u16 {
        self.about.class()
    }

    #[inline]
    pub(super) fn set_class(&mut self, class: u16) {
        self.about = self.about.with_class(class);
    }

    #[inline]
    pub(super) fn label(&self) -> u16 {
        self.about.label()
    }

    #[inline]
    pub(super) fn ends(&self) -> bool {
        self.about.ends()
    }

    #[inline]
    pub(super) fn low(&self) -> bool {
        self.about.low()
    }

    #[inline]
    pub(super) fn set_low(&mut self) {
        self.about.0 |= u64::from(LOW) << FLAGS;
    }

    pub(super) fn efci(&self) -> bool {
        self.about.has(EFCI)
    }

    pub(super) fn set_efci(&mut self) {
        self.about.0 |= u64::from(EFCI) << FLAGS;
    }

    #[inline]
    pub(super) fn rm(&self) -> bool {
        self.about.has(RM)
    }

    /// When its last cell is there.
    #[inline]
    pub(super) fn last_at(&self, spacing: Spacing) -> Moment {
        if self.cells() == 1 { self.at() } else { self.at().plus(spacing.times(u64::from(self.cells()) - 1)) }
    }

    /// The same at the next stage, its first cell there at `at`.
    #[inline]
    pub(super) fn towards(self, label: u16, at: Moment) -> Self {
        Self::of(at, self.frame, self.about.with_label(label))
    }

    /// Takes the first `cells` away, of more.
    #[inline]
    pub(super) fn split(&mut self, cells: u16, spacing: Spacing) -> Self {
        if cells == self.cells() {
            return *self;
        }
        let front = Self { about: self.about.with_cells(cells).without_end(), ..*self };
        let rest = self.about.with_cells(self.cells() - cells);
        *self = Self::of(self.at().plus(spacing.times(cells.into())), self.frame, rest);
        front
    }

    /// Takes those of its cells away that come in picosecond `bound` or before, and tells when the next is there. `None`: all do, and
    /// nothing is changed. There are several, and the first does.
    #[inline]
    fn take_until(&mut self, bound: u64, spacings: &[Spacing]) -> Option<(Self, u64)> {
        let spacing = spacings[self.class() as usize];
        let second = self.at().plus(spacing);
        if second.ps() > bound {
            let some = Self { about: self.about.with_cells(1).without_end(), ..*self };
            *self = Self::of(second, self.frame, self.about.with_cells(self.cells() - 1));
            return Some((some, second.ps()));
        }
        let cells = self.cells_until(bound, spacing);
        (cells < self.cells()).then(|| {
            let some = self.split(cells, spacing);
            (some, self.ps())
        })
    }

    /// How many of its cells come in picosecond `bound` or before. The first does.
    #[inline(never)]
    fn cells_until(&self, bound: u64, spacing: Spacing) -> u16 {
        if self.last_at(spacing).ps() <= bound {
            return self.cells();
        }
        // The last moment of the picosecond; not all come by then, so the spacing is not zero.
        let span = Moment::from_parts(bound, u32::MAX).since(self.at());
        span.divided_by(spacing) as u16 + 1
    }

    /// How many of its cells come after `moment`.
    pub(super) fn cells_after(&self, moment: Moment, spacing: Spacing) -> u16 {
        if self.at() > moment {
            return self.cells();
        }
        if self.last_at(spacing) <= moment {
            return 0;
        }
        let begun = moment.since(self.at()).divided_by(spacing) + 1;
        self.cells() - begun as u16
    }
}

/// Runs on their way to a stage, in order of time.
#[derive(Debug)]
pub(super) struct Stream {
    ring: VecDeque<Run>,
    /// When the ends of frames among them are there, picoseconds.
    ends: VecDeque<u64>,
    /// Who takes them: see [`Fabric::next`].
    pub(super) target: u32,
    /// Which of its inputs this is.
    pub(super) input: u32,
    /// From there to the far end at the least, picoseconds.
    remaining: u64,
}

impl Stream {
    pub(super) fn new(target: u32, input: u32, remaining: u64) -> Self {
        Self { ring: VecDeque::new(), ends: VecDeque::new(), target, input, remaining }
    }

    /// From its target to the far end at the least, picoseconds.
    pub(super) fn remaining(&self) -> u64 {
        self.remaining
    }

    #[inline]
    pub(super) fn front_ps(&self) -> Option<u64> {
        self.ring.front().map(Run::ps)
    }

    #[inline]
    pub(super) fn front(&self) -> Option<&Run> {
        self.ring.front()
    }

    /// Of the first run some cells have been taken.
    #[inline]
    pub(super) fn replace_front(&mut self, rest: Run) {
        *self.ring.front_mut().expect("there is one") = rest;
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

    pub(super) fn runs(&self) -> impl DoubleEndedIterator<Item = &Run> {
        self.ring.iter()
    }
}

/// What the stages share.
#[derive(Debug)]
pub(super) struct Fabric {
    pub(super) streams: Vec<Stream>,
    /// By class. The first is none at all.
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
    /// Kept for its room, too.
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
        if let Some(back) = stream.ring.back_mut() {
            if self.trains && back.frame == run.frame && join(back, &run, &self.spacings) {
                return;
            }
        } else {
            wake(stream, run.ps(), &mut self.next, &mut self.woken);
        }
        stream.ring.push_back(run);
    }

    /// Takes all cells of a stream that come in picosecond `bound` or before. Tells when the next is there.
    #[inline]
    pub(super) fn take_until(&mut self, stream: u32, bound: u64, into: &mut Vec<Run>) -> Option<u64> {
        let index = stream as usize;
        let source = &mut self.streams[index];
        loop {
            let front = source.ring.front_mut()?;
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
            source.ring.pop_front();
            into.push(run);
            if run.ends() {
                source.take_end(index, &mut self.bounds);
            }
        }
    }

    /// Takes the cells at the front of a stream that come in picosecond `bound` or before, as many as are of one frame and alike. Tells
    /// how many that is, in the name of the first, and in which picosecond the last of them comes.
    #[inline]
    pub(super) fn gather(&mut self, stream: u32, bound: u64) -> Option<(Run, u64)> {
        let index = stream as usize;
        let source = &mut self.streams[index];
        let mut all: Option<(Run, u64)> = None;
        while let Some(front) = source.ring.front_mut() {
            let mut run = *front;
            let mut last = run.ps();
            let follows = all.is_none_or(|(all, _)| run.frame == all.frame && all.about.continued_by(run.about));
            if last > bound || !follows {
                break;
            }
            let mut whole = true;
            if run.cells() > 1 {
                if let Some((some, _)) = front.take_until(bound, &self.spacings) {
                    (run, whole) = (some, false);
                }
                last = run.last_at(self.spacings[run.class() as usize]).ps();
            }
            if whole {
                source.ring.pop_front();
                if run.ends() {
                    source.take_end(index, &mut self.bounds);
                }
            }
            let before = all.map_or(0, |(all, _)| all.cells());
            run.about = run.about.with_cells(before + run.cells());
            all = Some((run, last));
        }
        all
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

/// Joins `run` to the one before it if it continues that: the same cells, one spacing on.
#[inline]
fn join(back: &mut Run, run: &Run, spacings: &[Spacing]) -> bool {
    if !back.about.continued_by(run.about) {
        return false;
    }
    let expected = if back.cells() == 1 {
        back.at().plus(spacings[run.class() as usize])
    } else if back.class() == run.class() {
        back.at().plus(spacings[run.class() as usize].times(back.cells().into()))
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

    fn run(ps: u64, cells: u16) -> Run {
        Run::new(Moment::at(Instant::from_ps(ps)), 0, 0, cells, 1, END)
    }

    #[test]
    fn a_run_is_24_bytes() {
        assert_eq!(size_of::<Run>(), 24);
    }

    #[test]
    fn the_cells_until_a_time_are_counted_exactly() {
        let spacing = Spacing::of(Duration::from_ps(10));
        for bound in 100..200 {
            let expected = (0..8).filter(|n| 100 + 10 * n <= bound).count();
            assert_eq!(usize::from(run(100, 8).cells_until(bound, spacing)), expected);
        }
        assert_eq!(run(100, 8).cells_until(100, Spacing::ZERO), 8);
    }

    #[test]
    fn a_run_splits_and_joins_again() {
        let spacing = Spacing::of(Duration::from_ps(10));
        let spacings = [Spacing::ZERO, spacing];
        let mut rest = run(100, 8);
        let mut front = rest.split(3, spacing);
        assert_eq!((front.cells(), front.ends(), rest.cells(), rest.ends(), rest.ps()), (3, false, 5, true, 130));
        assert!(join(&mut front, &rest, &spacings));
        assert_eq!((front.cells(), front.ends(), front.last_at(spacing).ps()), (8, true, 170));
        let mut end = run(100, 1);
        assert!(!join(&mut end, &run(110, 1), &spacings), "nothing follows the end of a frame");
    }
}

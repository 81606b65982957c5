//! Runs of cells, the streams that carry them from one stage to the next, and what the stages share.
//!
//! A run is cells of one frame, evenly spaced; a single cell is a run of one. What a port sends goes to a stream, which keeps the order
//! of time; the next stage takes it from there up to whatever time it may. A run that continues the one before it joins it: so a
//! frame that a slower port has drawn out crosses the network as one item (a *train*). Nothing else tells trains from cells:
//! with `trains` off runs are not joined, and every result is the same.

use std::collections::VecDeque;

use super::frames::Frames;
use crate::time::{Moment, Spacing};

/// The run holds the end-of-frame cell of its frame, as its last.
pub(super) const END: u16 = 1;
/// CLP = 1.
pub(super) const LOW: u16 = 2;

/// Cells of one frame, evenly spaced. 24 bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    ps: u64,
    fraction: u32,
    /// Its slot among the frames.
    pub(super) frame: u32,
    /// What the receiving stage knows the VC by.
    pub(super) label: u16,
    /// At least 1, at most those of a frame.
    pub(super) cells: u16,
    /// Which spacing; of no meaning for one cell.
    pub(super) class: u16,
    pub(super) flags: u16,
}

impl Run {
    pub(super) fn new(at: Moment, frame: u32, label: u16, cells: u16, class: u16, flags: u16) -> Self {
        Self { ps: at.ps(), fraction: at.fraction(), frame, label, cells, class, flags }
    }

    /// When its first cell is there.
    #[inline]
    pub(super) fn at(&self) -> Moment {
        Moment::from_parts(self.ps, self.fraction)
    }

    #[inline]
    pub(super) fn ends(&self) -> bool {
        self.flags & END != 0
    }

    #[inline]
    pub(super) fn low(&self) -> bool {
        self.flags & LOW != 0
    }

    /// When its last cell is there.
    #[inline]
    pub(super) fn last_at(&self, spacing: Spacing) -> Moment {
        if self.cells == 1 { self.at() } else { self.at().plus(spacing.times(u64::from(self.cells) - 1)) }
    }

    /// The same, its first cell at another time.
    #[inline]
    pub(super) fn moved(mut self, at: Moment) -> Self {
        (self.ps, self.fraction) = (at.ps(), at.fraction());
        self
    }

    /// Takes the first `cells` away, of more.
    #[inline]
    pub(super) fn split(&mut self, cells: u16, spacing: Spacing) -> Self {
        if cells == self.cells {
            return *self;
        }
        let front = Self { cells, flags: self.flags & !END, ..*self };
        *self = self.moved(self.at().plus(spacing.times(cells.into())));
        self.cells -= cells;
        front
    }

    /// How many of its cells come in picosecond `bound` or before. The first does.
    #[inline]
    fn cells_until(&self, bound: u64, spacing: Spacing) -> u16 {
        if self.cells == 1 {
            return 1;
        }
        let at = self.at();
        if at.plus(spacing).ps() > bound {
            return 1;
        }
        if self.last_at(spacing).ps() <= bound {
            return self.cells;
        }
        // The last moment of the picosecond; there is a second cell beyond the first, so the spacing is not zero.
        let span = Moment::from_parts(bound, u32::MAX).since(at);
        span.divided_by(spacing) as u16 + 1
    }
}

impl Run {
    /// How many of its cells come after `moment`.
    pub(super) fn cells_after(&self, moment: Moment, spacing: Spacing) -> u16 {
        if self.at() > moment {
            return self.cells;
        }
        if self.last_at(spacing) <= moment {
            return 0;
        }
        let begun = moment.since(self.at()).divided_by(spacing) + 1;
        self.cells - begun as u16
    }
}

/// Runs on their way to a stage, in order of time.
#[derive(Debug)]
pub(super) struct Stream {
    ring: VecDeque<Run>,
    /// When the ends of frames among them are there, picoseconds.
    ends: VecDeque<u64>,
    /// The stage or sink that takes them.
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

    #[inline]
    pub(super) fn front_ps(&self) -> Option<u64> {
        self.ring.front().map(|run| run.ps)
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
    /// By stage, and sinks behind them: in which picosecond it has something to do, `u64::MAX` for never.
    pub(super) next: Vec<u64>,
    /// By stage: inputs that have something again.
    pub(super) woken: Vec<Vec<u32>>,
    /// By stream: before when none of its frames can be at the far end.
    pub(super) bounds: Vec<u64>,
    /// Runs are joined.
    pub(super) trains: bool,
}

impl Fabric {
    /// Appends `run` to a stream; never earlier than what is in it.
    #[inline]
    pub(super) fn push(&mut self, stream: u32, run: Run) {
        let spacing = self.spacings[run.class as usize];
        let index = stream as usize;
        let stream = &mut self.streams[index];
        if run.ends() {
            if stream.ends.is_empty() {
                self.bounds[index] = run.last_at(spacing).ps().saturating_add(stream.remaining);
            }
            stream.ends.push_back(run.last_at(spacing).ps());
        }
        if let Some(back) = stream.ring.back_mut() {
            if self.trains && back.frame == run.frame && join(back, &run, spacing) {
                return;
            }
        } else {
            let target = stream.target as usize;
            self.next[target] = self.next[target].min(run.ps);
            self.woken[target].push(stream.input);
        }
        stream.ring.push_back(run);
    }

    /// Takes the cells at the front of a stream that come in picosecond `bound` or before; the first does. Then tells when
    /// the next is there.
    #[inline]
    pub(super) fn take(&mut self, stream: u32, bound: u64) -> (Run, Option<u64>) {
        let index = stream as usize;
        let stream = &mut self.streams[index];
        let front = stream.ring.front_mut().expect("a stream that has something");
        let spacing = self.spacings[front.class as usize];
        let cells = front.cells_until(bound, spacing);
        if cells < front.cells {
            let run = front.split(cells, spacing);
            return (run, Some(front.ps));
        }
        let run = *front;
        stream.ring.pop_front();
        if run.ends() {
            stream.ends.pop_front();
            let next = stream.ends.front().map_or(u64::MAX, |ps| ps.saturating_add(stream.remaining));
            self.bounds[index] = next;
        }
        (run, stream.front_ps())
    }
}

/// Joins `run` to the one before it if it continues that: the same cells, one spacing on.
#[inline]
fn join(back: &mut Run, run: &Run, spacing: Spacing) -> bool {
    let alike = back.flags == run.flags & !END && (back.class == run.class || back.cells == 1);
    if !alike || back.at().plus(spacing.times(back.cells.into())) != run.at() {
        return false;
    }
    back.cells += run.cells;
    (back.class, back.flags) = (run.class, run.flags);
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
        let mut rest = run(100, 8);
        let mut front = rest.split(3, spacing);
        assert_eq!((front.cells, front.ends(), rest.cells, rest.ends(), rest.ps), (3, false, 5, true, 130));
        assert!(join(&mut front, &rest, spacing));
        assert_eq!((front.cells, front.ends(), front.last_at(spacing).ps()), (8, true, 170));
        let mut end = run(100, 1);
        assert!(!join(&mut end, &run(110, 1), spacing), "nothing follows the end of a frame");
    }
}

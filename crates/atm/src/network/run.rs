//! Runs of cells: cells of one frame, evenly spaced; a single cell is a run of one.

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

/// The class of cells that are not evenly spaced: see [`super::fabric`].
pub(super) const LOOSE: u16 = 1;

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
    pub(super) const fn with_end(self) -> Self {
        Self(self.0 | (END as u64) << FLAGS)
    }

    #[inline]
    pub(super) const fn without_end(self) -> Self {
        Self(self.0 & !((END as u64) << FLAGS))
    }

    /// One cell more, which continues these, with all of this class.
    #[inline]
    pub(super) const fn continued(self, next: Self, class: u16) -> Self {
        let end = next.0 & (END as u64) << FLAGS;
        Self((self.with_class(class).0 + 1) | end)
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
    pub(super) fn take_until(&mut self, bound: u64, spacings: &[Spacing]) -> Option<(Self, u64)> {
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
    pub(super) fn cells_until(&self, bound: u64, spacing: Spacing) -> u16 {
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

#[cfg(test)]
mod tests {
    use lastmile_units::{Duration, Instant};

    use super::*;

    fn run(ps: u64, cells: u16) -> Run {
        Run::new(Moment::at(Instant::from_ps(ps)), 0, 0, cells, 2, END)
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
    fn a_run_splits() {
        let mut rest = run(100, 8);
        let front = rest.split(3, Spacing::of(Duration::from_ps(10)));
        assert_eq!((front.cells(), front.ends(), rest.cells(), rest.ends(), rest.ps()), (3, false, 5, true, 130));
    }
}

//! Cells, and runs of them: consecutive cells of one frame at even spacing. A single cell is a run
//! of one.

use lastmile_units::Instant;

use crate::time::{Moment, Spacing};

/// Cell loss priority of a packet's cells.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Clp {
    /// CLP = 0: the promises of a contract hold for these cells.
    #[default]
    Zero,
    /// CLP = 1: switches with little free space drop these cells first.
    One,
}

/// The content of a cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Payload {
    /// Part of the frame in this slot of [`crate::network::frames::Frames`].
    Frame(u32),
    /// The resource management cell in this slot of [`crate::abr::rm::RmCells`].
    Rm(u32),
}

/// The header of a cell. VPI and VCI are [`Run::vc`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Header {
    pub(crate) payload: Payload,
    pub(crate) clp: Clp,
    /// Explicit forward congestion indication.
    pub(crate) efci: bool,
    /// The cell ends its frame. In the header of a run this is true for the run's last cell only.
    pub(crate) last: bool,
}

/// Consecutive cells of one frame at even spacing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Run {
    /// Arrival of the first cell.
    pub(crate) at: Moment,
    /// From one arrival to the next. A run of one cell does not use it.
    pub(crate) spacing: Spacing,
    pub(crate) header: Header,
    /// Index of the VC at the receiver: among the connections of a switch, or among all VCs at a
    /// far end.
    pub(crate) vc: u16,
    /// At least 1.
    pub(crate) cells: u16,
}

impl Run {
    /// One cell.
    pub(crate) const fn cell(at: Moment, vc: u16, header: Header) -> Self {
        Self { at, spacing: Spacing::ZERO, header, vc, cells: 1 }
    }

    #[inline]
    pub(crate) fn low_priority(&self) -> bool {
        self.header.clp == Clp::One
    }

    /// The cells of the run with CLP = 1.
    #[inline]
    pub(crate) fn low_priority_cells(&self) -> u64 {
        if self.low_priority() { self.cells.into() } else { 0 }
    }

    /// Arrival of the last cell.
    #[inline]
    pub(crate) fn last_at(&self) -> Moment {
        if self.cells == 1 { self.at } else { self.at.plus(self.spacing.times(u64::from(self.cells) - 1)) }
    }

    /// The first `cells` cells, 1 or more, and the others.
    #[inline]
    pub(crate) fn split(self, cells: u16) -> (Self, Option<Self>) {
        if cells >= self.cells {
            return (self, None);
        }
        let front = Self { cells, header: Header { last: false, ..self.header }, ..self };
        let at = self.at.plus(self.spacing.times(cells.into()));
        (front, Some(Self { at, cells: self.cells - cells, ..self }))
    }

    /// The cells that arrive in picosecond `until` or earlier. The first cell does.
    #[inline]
    pub(crate) fn cells_until(&self, until: Instant) -> u16 {
        if self.cells == 1 || self.last_at().instant() <= until {
            return self.cells;
        }
        if self.at.plus(self.spacing).instant() > until {
            return 1;
        }
        // Not all arrive in time, so the spacing is not zero.
        Moment::end_of(until).since(self.at).divided_by(self.spacing) as u16 + 1
    }

    /// Appends `next` if the result is a run.
    #[inline]
    pub(crate) fn join(&mut self, next: &Self) -> bool {
        let alike =
            matches!(self.header.payload, Payload::Frame(_)) && self.header == Header { last: false, ..next.header };
        if !alike {
            return false;
        }
        let spacing = if self.cells == 1 { next.at.since(self.at) } else { self.spacing };
        let continues = self.at.plus(spacing.times(self.cells.into())) == next.at;
        if !continues || next.cells > 1 && next.spacing != spacing {
            return false;
        }
        *self = Self { spacing, header: next.header, cells: self.cells + next.cells, ..*self };
        true
    }
}

/// The number of cells, and the number with CLP = 1.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CellCounts {
    pub(crate) all: u64,
    pub(crate) low_priority: u64,
}

impl CellCounts {
    #[inline]
    pub(crate) fn add(&mut self, run: &Run) {
        self.all += u64::from(run.cells);
        self.low_priority += run.low_priority_cells();
    }
}

#[cfg(test)]
mod tests {
    use lastmile_units::Duration;

    use super::*;

    fn run(ps: u64, spacing_ps: u64, cells: u16) -> Run {
        let header = Header { payload: Payload::Frame(7), clp: Clp::Zero, efci: false, last: true };
        let spacing = Spacing::of(Duration::from_ps(spacing_ps));
        Run { at: Moment::at(Instant::from_ps(ps)), spacing, header, vc: 0, cells }
    }

    #[test]
    fn cells_until_a_time_are_counted_to_the_picosecond() {
        for until in 100..200 {
            let expected = (0..8).filter(|n| 100 + 10 * n <= until).count();
            assert_eq!(usize::from(run(100, 10, 8).cells_until(Instant::from_ps(until))), expected);
        }
        assert_eq!(run(100, 0, 8).cells_until(Instant::from_ps(100)), 8);
    }

    #[test]
    fn a_run_splits_and_joins_again() {
        let whole = run(100, 10, 8);
        let (mut front, rest) = whole.split(3);
        let rest = rest.expect("five cells");
        assert_eq!((front.cells, front.header.last, rest.cells, rest.header.last), (3, false, 5, true));
        assert_eq!(rest.at.ps(), 130);
        assert!(front.join(&rest));
        assert_eq!(front, whole);
        assert!(!front.join(&run(180, 10, 1)), "no cell follows the end of a frame");
        assert_eq!(whole.split(8), (whole, None));
    }

    #[test]
    fn single_cells_join_at_any_even_spacing_and_only_then() {
        let (mut front, rest) = run(100, 7, 3).split(1);
        let (second, third) = rest.expect("two cells").split(1);
        assert!(front.join(&second));
        let third = third.expect("one cell");
        assert!(!front.clone().join(&Run { at: third.at.plus(Spacing::PICOSECOND), ..third }));
        assert!(!front.clone().join(&Run { header: Header { clp: Clp::One, ..third.header }, ..third }));
        assert!(front.join(&third));
        assert_eq!(front, run(100, 7, 3));
    }
}

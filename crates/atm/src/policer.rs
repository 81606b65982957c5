//! Usage parameter control (UPC): the policer that holds a VC or a VP to its contract, cell by cell.
//!
//! Published: ITU-T I.371 (2004), sections 7.2 (traffic control functions, UPC among them), 6.5 (SBR: peak and sustainable algorithm
//! together) and 6.8 (GFR: conformance of cells, and F-GCRA, which judges a frame by its first cell); ATM Forum TM 4.1.
//!
//! A cell that conforms to all algorithms that ask for it counts in all of them; one that does not counts in none, unless it goes on
//! tagged: then it counts in the peak algorithm. A GFR frame that lost a cell here loses the rest too, but for the last cell, which
//! delimits the next frame.
//! Cost: two comparisons and two additions a cell; but for GFR a few multiplications and divisions for all cells of a run that meet the same fate.

use crate::contract::{Contract, ContractError, Peak, Sbr, Sustainable};
use crate::discard::CellDrop;
use crate::gcra::{Gcra, burst_tolerance};
use crate::time::{Moment, Spacing};

/// What becomes of a cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It goes on as it is.
    Pass,
    /// It goes on with CLP = 1.
    Tag,
    /// It is above the peak rate, or belongs to a GFR frame that already lost a cell.
    DropPeak,
    /// It is above the sustainable rate.
    DropSustainable,
    /// It lies beyond the longest frame of GFR, or its CLP is not that of its frame's first cell.
    DropFrame,
}

impl Verdict {
    /// Why the cell is dropped. `None`: it goes on.
    #[inline]
    pub(crate) const fn refusal(self) -> Option<CellDrop> {
        match self {
            Self::Pass | Self::Tag => None,
            Self::DropPeak => Some(CellDrop::PeakRate),
            Self::DropSustainable => Some(CellDrop::SustainableRate),
            Self::DropFrame => Some(CellDrop::FrameConformance),
        }
    }
}

/// Cells by what became of them, and GFR's frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Conformance {
    /// Cells that conform.
    pub passed: u64,
    /// Those of them that came with CLP = 1.
    pub passed_low_priority: u64,
    /// Cells that went on with CLP = 1 instead of 0.
    pub tagged: u64,
    /// Cells above the peak rate, and what followed them in GFR's frames.
    pub dropped_peak: u64,
    /// Cells above the sustainable rate.
    pub dropped_sustainable: u64,
    /// Cells that no frame of GFR may have.
    pub dropped_frame: u64,
    /// Frames of GFR that were found eligible for the guarantee at their first cell.
    pub eligible_frames: u64,
    /// Frames of GFR that were not.
    pub other_frames: u64,
}

/// A cell as the policer sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seen {
    /// CLP = 1.
    pub low_priority: bool,
    /// The last cell of its frame, by its PTI.
    pub last: bool,
}

/// Evenly spaced cells of one frame and one CLP as the policer sees them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SeenRun {
    /// When the first comes.
    pub(crate) at: Moment,
    pub(crate) spacing: Spacing,
    /// At least one.
    pub(crate) cells: u16,
    /// CLP = 1.
    pub(crate) low_priority: bool,
    /// The last of them is the last of its frame, by its PTI.
    pub(crate) ends: bool,
}

/// A policer.
#[derive(Clone, Debug)]
pub struct Policer {
    peak: Option<Gcra>,
    rule: Rule,
    counts: Conformance,
}

#[derive(Clone, Debug)]
enum Rule {
    /// The peak rate is all there is.
    Peak,
    /// UBR.2.
    TagAll,
    Sustainable {
        variant: Sbr,
        gcra: Gcra,
    },
    Frames {
        gcra: Gcra,
        mfs: u64,
        tagging: bool,
        frame: Frame,
    },
}

/// The frame of GFR that is being received.
#[derive(Clone, Copy, Debug, Default)]
struct Frame {
    /// Cells of it so far.
    cells: u64,
    low_priority: bool,
    eligible: bool,
    /// Why a cell of it was dropped.
    broken: Option<Verdict>,
}

impl Policer {
    /// A policer of `contract`.
    ///
    /// # Errors
    /// What [`Contract::check`] says.
    pub fn new(contract: &Contract) -> Result<Self, ContractError> {
        contract.check()?;
        let sustained = |sustainable: &Sustainable, peak: &Peak| {
            let tolerance = burst_tolerance(sustainable.mbs, sustainable.rate, peak.rate);
            Gcra::new(Spacing::of_cell(sustainable.rate), tolerance.plus(Spacing::of(sustainable.cdvt)))
        };
        let (peak, rule) = match contract {
            Contract::Dbr { peak } => (Some(peak), Rule::Peak),
            Contract::Ubr { peak, tagging } => (peak.as_ref(), if *tagging { Rule::TagAll } else { Rule::Peak }),
            Contract::Sbr { variant, peak, sustainable } => {
                (Some(peak), Rule::Sustainable { variant: *variant, gcra: sustained(sustainable, peak) })
            }
            Contract::Gfr { peak, minimum, mfs, tagging } => {
                let (gcra, mfs) = (sustained(minimum, peak), mfs.as_u64());
                (Some(peak), Rule::Frames { gcra, mfs, tagging: *tagging, frame: Frame::default() })
            }
        };
        let peak = peak.map(|peak| Gcra::new(Spacing::of_cell(peak.rate), Spacing::of(peak.cdvt)));
        Ok(Self { peak, rule, counts: Conformance::default() })
    }

    /// What became of cells so far.
    #[must_use]
    pub const fn counts(&self) -> Conformance {
        self.counts
    }

    /// True for a contract that judges frames, which those of several VCs are not told apart by.
    #[must_use]
    pub const fn judges_frames(&self) -> bool {
        matches!(self.rule, Rule::Frames { .. })
    }

    /// Judges a cell at `at`. Times never go back.
    pub fn police(&mut self, at: Moment, cell: Seen) -> Verdict {
        let verdict = self.verdict(at, cell);
        self.commit(at, cell, verdict);
        verdict
    }

    /// Judges cells and takes the first of them that meet the same fate: which, and how many.
    pub(crate) fn police_run(&mut self, run: &SeenRun) -> (Verdict, u16) {
        if run.cells == 1 || self.judges_frames() {
            return self.police_each(run);
        }
        let (verdict, cells) = self.judge_run(run);
        self.take_run(&SeenRun { cells, ..*run }, verdict);
        (verdict, cells)
    }

    /// What becomes of the first cell, and of how many cells one behind the other; changes nothing.
    pub(crate) fn judge_run(&self, run: &SeenRun) -> (Verdict, u16) {
        if self.judges_frames() {
            return self.clone().police_each(run);
        }
        let verdict = self.verdict(run.at, Seen { low_priority: run.low_priority, last: false });
        let conforming = |gcra: &Gcra| gcra.conforming(run.at, run.spacing, run.cells.into());
        let refused = |gcra: &Gcra| gcra.refused(run.at, run.spacing, run.cells.into());
        let all = u64::from(run.cells);
        let by_peak = match (&self.peak, verdict) {
            (None, _) => all,
            (Some(peak), Verdict::DropPeak) => refused(peak),
            // Cells that are dropped are not taken, so none of them is too early for the peak rate.
            (Some(_), Verdict::DropSustainable) => all,
            (Some(peak), _) => conforming(peak),
        };
        let by_rule = match (&self.rule, verdict) {
            (_, Verdict::DropPeak) => all,
            (Rule::Sustainable { gcra, .. }, Verdict::Tag | Verdict::DropSustainable) => refused(gcra),
            (Rule::Sustainable { variant, gcra }, _) if variant.asks(run.low_priority) => conforming(gcra),
            _ => all,
        };
        (verdict, by_peak.min(by_rule) as u16)
    }

    /// Takes cells all of which meet the fate that [`Self::judge_run`] told.
    pub(crate) fn take_run(&mut self, run: &SeenRun, verdict: Verdict) {
        if self.judges_frames() {
            self.police_each(run);
            return;
        }
        self.count(verdict, run.low_priority, run.cells.into());
        let cells = u64::from(run.cells);
        if matches!(verdict, Verdict::Pass | Verdict::Tag)
            && let Some(peak) = &mut self.peak
        {
            peak.take_run(run.at, run.spacing, cells);
        }
        if let Rule::Sustainable { variant, gcra } = &mut self.rule
            && verdict == Verdict::Pass
            && variant.asks(run.low_priority)
        {
            gcra.take_run(run.at, run.spacing, cells);
        }
    }

    /// The same as [`Self::police_run`], cell by cell.
    fn police_each(&mut self, run: &SeenRun) -> (Verdict, u16) {
        let seen = |index: u16| Seen { low_priority: run.low_priority, last: run.ends && index + 1 == run.cells };
        let first = self.police(run.at, seen(0));
        let mut at = run.at;
        for index in 1..run.cells {
            at = at.plus(run.spacing);
            if self.verdict(at, seen(index)) != first {
                return (first, index);
            }
            self.commit(at, seen(index), first);
        }
        (first, run.cells)
    }

    /// What becomes of a cell; changes nothing.
    #[inline]
    fn verdict(&self, at: Moment, cell: Seen) -> Verdict {
        if let Rule::Frames { gcra, mfs, tagging, frame } = &self.rule {
            return self.frame_verdict(at, cell, (gcra, *mfs, *tagging), frame);
        }
        if !self.within_peak(at) {
            return Verdict::DropPeak;
        }
        match &self.rule {
            Rule::TagAll if !cell.low_priority => Verdict::Tag,
            Rule::Sustainable { variant, gcra } if variant.asks(cell.low_priority) && !gcra.conforms(at) => {
                if *variant == Sbr::Three { Verdict::Tag } else { Verdict::DropSustainable }
            }
            _ => Verdict::Pass,
        }
    }

    fn within_peak(&self, at: Moment) -> bool {
        self.peak.is_none_or(|peak| peak.conforms(at))
    }

    fn frame_verdict(
        &self,
        at: Moment,
        cell: Seen,
        (gcra, mfs, tagging): (&Gcra, u64, bool),
        frame: &Frame,
    ) -> Verdict {
        let first = frame.cells == 0;
        if let Some(verdict) = frame.broken
            && !cell.last
        {
            return verdict;
        }
        if !self.within_peak(at) {
            return Verdict::DropPeak;
        }
        if !first && cell.low_priority != frame.low_priority || frame.cells >= mfs && !cell.last {
            return Verdict::DropFrame;
        }
        let eligible = if first { !cell.low_priority && gcra.conforms(at) } else { frame.eligible };
        if tagging && !eligible && !cell.low_priority { Verdict::Tag } else { Verdict::Pass }
    }

    #[inline]
    fn count(&mut self, verdict: Verdict, low_priority: bool, cells: u64) {
        let counter = match verdict {
            Verdict::Pass => &mut self.counts.passed,
            Verdict::Tag => &mut self.counts.tagged,
            Verdict::DropPeak => &mut self.counts.dropped_peak,
            Verdict::DropSustainable => &mut self.counts.dropped_sustainable,
            Verdict::DropFrame => &mut self.counts.dropped_frame,
        };
        *counter += cells;
        if verdict == Verdict::Pass && low_priority {
            self.counts.passed_low_priority += cells;
        }
    }

    #[inline]
    fn commit(&mut self, at: Moment, cell: Seen, verdict: Verdict) {
        self.count(verdict, cell.low_priority, 1);
        let passes = matches!(verdict, Verdict::Pass | Verdict::Tag);
        if passes && let Some(peak) = &mut self.peak {
            peak.take(at);
        }
        match &mut self.rule {
            Rule::Sustainable { variant, gcra } if verdict == Verdict::Pass && variant.asks(cell.low_priority) => {
                gcra.take(at);
            }
            Rule::Frames { gcra, frame, .. } => {
                if frame.cells == 0 {
                    frame.low_priority = cell.low_priority;
                    frame.eligible = passes && !cell.low_priority && gcra.conforms(at);
                    let eligible =
                        if frame.eligible { &mut self.counts.eligible_frames } else { &mut self.counts.other_frames };
                    *eligible += 1;
                }
                if passes && frame.eligible {
                    gcra.take(at);
                }
                frame.cells += 1;
                if !passes {
                    frame.broken = frame.broken.or(Some(verdict));
                }
                if cell.last {
                    *frame = Frame::default();
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;

//! Usage parameter control (UPC): the policer that holds a VC or a VP to its contract, cell by cell.
//!
//! Published: ITU-T I.371 (2004), sections 7.2 (traffic control functions, UPC among them), 6.5 (SBR: peak and sustainable algorithm
//! together) and 6.8 (GFR: conformance of cells, and F-GCRA, which judges a frame by its first cell); ATM Forum TM 4.1.
//!
//! A cell that conforms to all algorithms that ask for it counts in all of them; one that does not counts in none, unless it goes on
//! tagged: then it counts in the peak algorithm. A GFR frame that lost a cell here loses the rest too, but for the last cell, which
//! delimits the next frame.
//! Cost: two comparisons and two additions a cell.

use crate::contract::{Contract, ContractError, Peak, Sbr, Sustainable};
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

    /// Judges a run of `cells`, at `at` and every `spacing` after, all of one frame and of one CLP; the last is that of its frame
    /// if `end`. Gives the verdict for the first and for how many of them it holds.
    pub(crate) fn police_run(
        &mut self,
        at: Moment,
        spacing: Spacing,
        cells: u16,
        low_priority: bool,
        end: bool,
    ) -> (Verdict, u16) {
        let seen = |index: u16| Seen { low_priority, last: end && index + 1 == cells };
        let first = self.police(at, seen(0));
        let mut at = at;
        for index in 1..cells {
            at = at.plus(spacing);
            if self.verdict(at, seen(index)) != first {
                return (first, index);
            }
            self.commit(at, seen(index), first);
        }
        (first, cells)
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
            Rule::Sustainable { variant, gcra }
                if (*variant == Sbr::One || !cell.low_priority) && !gcra.conforms(at) =>
            {
                if *variant == Sbr::Three {
                    Verdict::Tag
                } else {
                    Verdict::DropSustainable
                }
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
    fn commit(&mut self, at: Moment, cell: Seen, verdict: Verdict) {
        let counter = match verdict {
            Verdict::Pass => &mut self.counts.passed,
            Verdict::Tag => &mut self.counts.tagged,
            Verdict::DropPeak => &mut self.counts.dropped_peak,
            Verdict::DropSustainable => &mut self.counts.dropped_sustainable,
            Verdict::DropFrame => &mut self.counts.dropped_frame,
        };
        *counter += 1;
        self.counts.passed_low_priority += u64::from(verdict == Verdict::Pass && cell.low_priority);
        let passes = matches!(verdict, Verdict::Pass | Verdict::Tag);
        if passes && let Some(peak) = &mut self.peak {
            peak.take(at);
        }
        match &mut self.rule {
            Rule::Sustainable { variant, gcra }
                if verdict == Verdict::Pass && (*variant == Sbr::One || !cell.low_priority) =>
            {
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

//! Usage parameter control (UPC): the policer of a VC or VP, which holds it to its contract, cell
//! by cell.
//!
//! Published: ITU-T I.371 (2004), sections 7.2 (traffic control functions, UPC among them), 6.5
//! (SBR: peak and sustainable algorithm together) and 6.8 (GFR: conformance of cells, and F-GCRA,
//! which judges a frame by its first cell); ATM Forum TM 4.1.
//!
//! A cell that conforms to all algorithms that apply to it counts in each; any other counts in
//! none, unless it is tagged: then it counts in the peak algorithm. A GFR frame that lost a cell
//! here loses the others too, except the last, which delimits the next frame.
//! Differs: T of the GCRA is rounded down to 2^-32 ps, so that a source at exactly the rate
//! conforms forever.
//! Cost: two comparisons and two additions a cell.

use lastmile_queueing::meter::gcra::VirtualScheduling;

use super::{Contract, ContractError, Peak, Sbr, Sustainable};
use crate::discard::CellDrop;
use crate::time::{Moment, Spacing};

/// The verdict on a cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The cell passes unchanged.
    Pass,
    /// The cell passes with CLP = 1.
    Tag,
    /// The cell exceeds the peak rate, or belongs to a GFR frame that already lost a cell.
    DropPeak,
    /// The cell exceeds the sustainable rate.
    DropSustainable,
    /// The cell exceeds the longest frame of GFR, or its CLP is not that of its frame's first cell.
    DropFrame,
}

impl Verdict {
    /// Why the cell is dropped. `None`: it passes.
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

/// Cells by verdict, and frames of GFR.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Conformance {
    /// Cells that conform.
    pub passed: u64,
    /// Conforming cells that arrived with CLP = 1.
    pub passed_low_priority: u64,
    /// Cells that passed with CLP = 1 instead of 0.
    pub tagged: u64,
    /// Cells above the peak rate, and the rest of their frames under GFR.
    pub dropped_peak: u64,
    /// Cells above the sustainable rate.
    pub dropped_sustainable: u64,
    /// Cells dropped by the frame rules of GFR.
    pub dropped_frame: u64,
    /// Frames of GFR that are eligible for the guarantee.
    pub eligible_frames: u64,
    /// Other frames of GFR.
    pub other_frames: u64,
}

/// A cell as the policer sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seen {
    /// CLP = 1.
    pub low_priority: bool,
    /// The cell ends its frame, by its PTI.
    pub last: bool,
}

/// GCRA(T, tau), with times in units of 2^-32 ps.
fn gcra(increment: Spacing, limit: Spacing) -> VirtualScheduling {
    VirtualScheduling::new(increment.units(), limit.units())
}

/// A policer.
#[derive(Clone, Debug)]
pub struct Policer {
    peak: Option<VirtualScheduling>,
    rule: Rule,
    counts: Conformance,
}

#[derive(Clone, Debug)]
enum Rule {
    /// The peak rate alone.
    Peak,
    /// UBR.2.
    TagAll,
    Sustainable {
        variant: Sbr,
        gcra: VirtualScheduling,
    },
    Frames {
        gcra: VirtualScheduling,
        mfs: u64,
        tagging: bool,
        frame: Frame,
    },
}

/// The frame of GFR that is being received.
#[derive(Clone, Copy, Debug, Default)]
struct Frame {
    /// Cells of the frame so far.
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
    /// See [`Contract::check`].
    pub fn new(contract: &Contract) -> Result<Self, ContractError> {
        contract.check()?;
        let sustained = |sustainable: &Sustainable, peak: &Peak| {
            let tolerance = sustainable.burst_tolerance(peak.rate).plus(Spacing::of(sustainable.cdvt));
            gcra(Spacing::of_cell(sustainable.rate), tolerance)
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
        let peak = peak.map(|peak| gcra(Spacing::of_cell(peak.rate), Spacing::of(peak.cdvt)));
        Ok(Self { peak, rule, counts: Conformance::default() })
    }

    /// Counters of cells so far.
    #[must_use]
    pub const fn counts(&self) -> Conformance {
        self.counts
    }

    /// Judges a cell at `at`. Times never go back.
    pub fn police(&mut self, at: Moment, cell: Seen) -> Verdict {
        let verdict = self.verdict(at, cell);
        self.commit(at, cell, verdict);
        verdict
    }

    /// The verdict on a cell. Changes nothing.
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
            Rule::Sustainable { variant, gcra } if variant.asks(cell.low_priority) && !gcra.conforms(at.units(), 1) => {
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
        self.peak.is_none_or(|peak| peak.conforms(at.units(), 1))
    }

    fn frame_verdict(
        &self,
        at: Moment,
        cell: Seen,
        (gcra, mfs, tagging): (&VirtualScheduling, u64, bool),
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
        if !first && cell.low_priority != frame.low_priority || frame.cells + 1 >= mfs && !cell.last {
            return Verdict::DropFrame;
        }
        let eligible = if first { !cell.low_priority && gcra.conforms(at.units(), 1) } else { frame.eligible };
        if tagging && !eligible && !cell.low_priority { Verdict::Tag } else { Verdict::Pass }
    }

    #[inline]
    fn count(&mut self, verdict: Verdict, low_priority: bool) {
        let counter = match verdict {
            Verdict::Pass => &mut self.counts.passed,
            Verdict::Tag => &mut self.counts.tagged,
            Verdict::DropPeak => &mut self.counts.dropped_peak,
            Verdict::DropSustainable => &mut self.counts.dropped_sustainable,
            Verdict::DropFrame => &mut self.counts.dropped_frame,
        };
        *counter += 1;
        if verdict == Verdict::Pass && low_priority {
            self.counts.passed_low_priority += 1;
        }
    }

    #[inline]
    fn commit(&mut self, at: Moment, cell: Seen, verdict: Verdict) {
        self.count(verdict, cell.low_priority);
        let passes = matches!(verdict, Verdict::Pass | Verdict::Tag);
        if passes && let Some(peak) = &mut self.peak {
            peak.take(at.units(), 1);
        }
        match &mut self.rule {
            Rule::Sustainable { variant, gcra } if verdict == Verdict::Pass && variant.asks(cell.low_priority) => {
                gcra.take(at.units(), 1);
            }
            Rule::Frames { gcra, frame, .. } => {
                if frame.cells == 0 {
                    frame.low_priority = cell.low_priority;
                    frame.eligible = passes && !cell.low_priority && gcra.conforms(at.units(), 1);
                    let eligible =
                        if frame.eligible { &mut self.counts.eligible_frames } else { &mut self.counts.other_frames };
                    *eligible += 1;
                }
                if passes && frame.eligible {
                    gcra.take(at.units(), 1);
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

//! Discard of cells and frames: tail drop, PPD, EPD, EPD with per-VC accounting, SPD, and selective
//! cell discard.
//!
//! A frame that lost a cell is useless, and its other cells take buffer and time.
//!
//! - **Tail drop**: a cell that finds the buffer full is dropped.
//! - **PPD** (partial packet discard; Armitage and Adams 1993): the rest of its frame is dropped too.
//! - **EPD** (early packet discard; Romanow and Floyd 1995): a frame is also dropped whole if its
//!   first cell finds the threshold reached.
//! - **EPD with per-VC accounting** (Heinanen and Kilkki 1995; Sun 1998): EPD drops only frames of
//!   a VC that has its share of the threshold in the queue.
//! - **SPD** (single packet discard; Sun 1998, section 3.3): below the threshold of EPD, a VC above
//!   its own threshold loses one frame while the backlog is above the activation threshold, and no
//!   other until its queue has been empty.
//! - **SCD** (selective cell discard; Ano et al. 2002): cells of CLP = 1 are dropped from a lower
//!   occupancy on.
//!
//! Differs: Sun's listing swaps assignment and comparison in two places; the rules here follow its
//! text. As there, `Q >= T` drops (EPD), and `q >= SPDth` with `Q > CongestTh` drops (SPD). In
//! Sun's switch the last cell of a frame always passes if there is space, since it delimits the
//! next frame ([`LastCell::Pass`]). It is not checked as a first cell, so a frame of one cell is
//! never dropped early. The original EPD drops it with the others ([`LastCell::Drop`]), unless a part
//! of the frame was admitted, which it ends. A switch sees only the ends of frames: if a last cell
//! was lost upstream, the next frame counts as the rest of its frame.
//! Cost: a few comparisons for each cell, or run of cells.

mod epd;
mod ppd;
mod reason;
mod spd;
mod state;
mod tail_drop;

use lastmile_units::CellCount;
use thiserror::Error;

use epd::{Epd, Sharing};
use ppd::{Early, FrameRules};
pub use ppd::{LastCell, Measure};
pub use reason::CellDrop;
use spd::Spd;
pub use state::{FrameState, Occupancy};
use tail_drop::Limits;

/// The frames that a queue drops.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Scheme {
    /// No frames: only cells that find the buffer full.
    #[default]
    Tail,
    /// The rest of each frame that lost a cell.
    Ppd,
    /// PPD, and whole frames whose first cell finds the threshold reached.
    Epd {
        /// Cells in the queue. At least 1, at most the buffer.
        threshold: CellCount,
    },
    /// EPD, only for VCs that have their share of the threshold in the queue.
    EpdPerVc {
        /// As for EPD. The share of a VC is the threshold divided by the number of VCs.
        threshold: CellCount,
        /// Number of VCs. `None`: the VCs with cells in the queue.
        vcs: Option<u32>,
    },
    /// EPD, and below its threshold one frame of a VC at a time.
    Spd {
        /// As for EPD.
        epd_threshold: CellCount,
        /// SPDth: cells of the VC in the queue. At least 1, at most the buffer.
        vc_threshold: CellCount,
        /// CongestTh: SPD acts above this backlog.
        activation: CellCount,
    },
}

/// The discard rules of a queue of any size.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Discard {
    /// The frames to drop.
    pub scheme: Scheme,
    /// The treatment of the last cells of frames that are dropped.
    pub last_cell: LastCell,
    /// The cells that thresholds of the scheme count.
    pub measure: Measure,
    /// SCD: with this many cells in the memory, cells of CLP = 1 are dropped. `None`: both
    /// priorities alike.
    pub low_priority_limit: Option<CellCount>,
}

/// An error in the discard rules of a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum DiscardError {
    /// A buffer of no cells.
    #[error("a buffer of 0 cells holds nothing; it must hold at least 1")]
    NoBuffer,
    /// More cells than can be counted.
    #[error("{cells} cells are more than a buffer can have: 2 000 000 000")]
    TooLarge {
        /// Cells.
        cells: u64,
    },
    /// A threshold that would always drop.
    #[error("the {threshold} is 0 cells; it must be at least 1")]
    NoThreshold {
        /// Name of the threshold.
        threshold: &'static str,
    },
    /// A threshold that is never reached.
    #[error("the {threshold} of {cells} cells is above the buffer of {buffer} cells")]
    AboveBuffer {
        /// Name of the threshold.
        threshold: &'static str,
        /// The threshold, in cells.
        cells: u64,
        /// The buffer, in cells.
        buffer: u64,
    },
}

/// The largest buffer, in cells; sums of two occupancies fit into 32 bits.
const MOST: u32 = 2_000_000_000;

/// The discard rules of a queue of known size.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    limits: Limits,
    /// `None`: tail drop.
    frames: Option<FrameRules>,
}

/// Cells of one frame and one CLP that arrive in a row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arriving {
    pub(crate) cells: u16,
    /// True if the last of these cells ends the frame.
    pub(crate) last: bool,
    pub(crate) low_priority: bool,
    /// The largest number of these cells that wait at the same time.
    pub(crate) waiting: u16,
}

impl Discard {
    /// The rules of a queue of at most `limit` cells in a memory of at most `memory` cells. `None`:
    /// no limit.
    ///
    /// # Errors
    /// Thresholds of no cells or above the buffer, buffers of no cells.
    pub fn rules(&self, limit: Option<CellCount>, memory: Option<CellCount>) -> Result<Rules, DiscardError> {
        let size = |cells: Option<CellCount>| match cells.map(CellCount::as_u64) {
            None => Ok(MOST),
            Some(0) => Err(DiscardError::NoBuffer),
            Some(cells) => {
                u32::try_from(cells).ok().filter(|cells| *cells <= MOST).ok_or(DiscardError::TooLarge { cells })
            }
        };
        let (queue_limit, memory_limit) = (size(limit)?, size(memory)?);
        let queue_buffer = queue_limit.min(memory_limit);
        let measured = if self.measure == Measure::Memory { memory_limit } else { queue_buffer };
        let below = |threshold: &'static str, cells: CellCount, buffer: u32| match cells.as_u64() {
            0 => Err(DiscardError::NoThreshold { threshold }),
            cells if cells > u64::from(buffer) => {
                Err(DiscardError::AboveBuffer { threshold, cells, buffer: buffer.into() })
            }
            cells => Ok(cells as u32),
        };
        let epd = |threshold| Ok(Epd { threshold: below("EPD threshold", threshold, measured)?, per_vc: None });
        let early = match self.scheme {
            Scheme::Tail | Scheme::Ppd => None,
            Scheme::Epd { threshold } => Some(Early::Epd(epd(threshold)?)),
            Scheme::EpdPerVc { threshold, vcs } => {
                if vcs == Some(0) {
                    return Err(DiscardError::NoThreshold { threshold: "number of VCs that share the EPD threshold" });
                }
                Some(Early::Epd(Epd { per_vc: Some(Sharing { vcs }), ..epd(threshold)? }))
            }
            Scheme::Spd { epd_threshold, vc_threshold, activation } => Some(Early::Spd(Spd {
                epd: epd(epd_threshold)?,
                vc_threshold: below("SPD threshold", vc_threshold, queue_buffer)?,
                // 0 is allowed: any backlog is above it.
                activation: match activation {
                    CellCount::ZERO => 0,
                    cells => below("SPD activation threshold", cells, measured)?,
                },
            })),
        };
        let low_priority = self.low_priority_limit.map(|cells| below("limit of CLP = 1", cells, memory_limit));
        let limits = Limits { queue: queue_limit, memory: memory_limit, low_priority: low_priority.transpose()? };
        let frames = FrameRules { early, last_cell: self.last_cell, measure: self.measure };
        Ok(Rules { limits, frames: (self.scheme != Scheme::Tail).then_some(frames) })
    }
}

impl Rules {
    /// Judges a cell. `last`: it ends its frame; `low`: CLP = 1. `None`: the cell is admitted.
    #[inline]
    pub fn admit(&self, state: &mut FrameState, seen: &Occupancy, last: bool, low: bool) -> Option<CellDrop> {
        match &self.frames {
            None => self.limits.full(seen, low),
            Some(frames) => frames.admit(&self.limits, state, seen, last, low),
        }
    }

    /// Judges the first cells of a run: how many, and why they are dropped. `None`: they are admitted.
    ///
    /// If the first cell is admitted and there is space for all, every cell is: only the start of a
    /// frame and a full buffer begin a discard.
    #[inline]
    pub(crate) fn admit_run(
        &self,
        state: &mut FrameState,
        seen: &Occupancy,
        run: &Arriving,
    ) -> (u16, Option<CellDrop>) {
        let single = run.cells == 1;
        let refused = self.admit(state, seen, run.last && single, run.low_priority);
        if single || refused.is_some() || self.limits.free(seen, run.low_priority) < run.waiting.into() {
            return (1, refused);
        }
        if run.last {
            state.receiving = false;
        }
        (run.cells, None)
    }

    /// Judges a cell that belongs to no frame. `None`: the cell is admitted.
    #[inline]
    pub(crate) fn full(&self, seen: &Occupancy, low: bool) -> Option<CellDrop> {
        self.limits.full(seen, low)
    }
}

#[cfg(test)]
mod tests;

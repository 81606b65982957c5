//! What a stage knows of a VC that crosses it.

use super::fabric::Fabric;
use super::run::Run;
use crate::discard::{CellDrop, FrameState};
use crate::time::Spacing;

/// No policer.
pub(super) const NONE: u16 = u16::MAX;

/// A VC at a stage: what every cell needs, in one line of a cache.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    /// Of the stage.
    pub(super) port: u16,
    /// Of the port.
    pub(super) queue: u16,
    /// What the next stage knows it by.
    pub(super) label: u16,
    pub(super) policer: u16,
    pub(super) path_policer: u16,
    pub(super) state: FrameState,
    /// The stream to the next stage.
    pub(super) out: u32,
    /// From the start of a transmission to when the cell is in that stage.
    pub(super) transit: Spacing,
    /// Cells that wait, where that is counted.
    pub(super) waiting: u32,
    /// Cells that came.
    pub(super) arrived: u64,
    /// Those of them with CLP = 1.
    pub(super) arrived_low: u64,
    pub(super) lost: Box<Lost>,
}

/// What a contract and a full buffer did to a VC.
#[derive(Clone, Debug, Default)]
pub(super) struct Lost {
    /// Cells dropped with CLP = 1.
    pub(super) dropped_low: u64,
    /// Cells dropped, by [`CellDrop::index`].
    pub(super) dropped: [u64; CellDrop::ALL.len()],
    /// Cells whose CLP a policer set.
    pub(super) tagged: u64,
}

impl Connection {
    #[inline]
    pub(super) fn unpoliced(&self) -> bool {
        [self.policer, self.path_policer] == [NONE; 2]
    }

    /// Cells of it come.
    #[inline]
    pub(super) fn comes(&mut self, cells: u16, low: bool) {
        self.arrived += u64::from(cells);
        self.arrived_low += if low { u64::from(cells) } else { 0 };
    }

    /// One of its cells begins to wait. True if it is the only one.
    #[inline]
    pub(super) fn waits(&mut self, cells: u32) -> bool {
        self.waiting += cells;
        self.waiting == cells
    }

    /// So many of its cells wait no longer. True if none is left; then SPD may take a frame again.
    #[inline]
    pub(super) fn leaves(&mut self, cells: u32) -> bool {
        self.waiting -= cells;
        if self.waiting > 0 {
            return false;
        }
        self.state.armed = true;
        true
    }

    /// Cells of it are dropped for `reason`.
    #[cold]
    pub(super) fn drop(&mut self, run: Run, spacing: Spacing, reason: CellDrop, fabric: &mut Fabric) {
        self.lost.dropped[reason.index()] += u64::from(run.cells());
        self.lost.dropped_low += if run.low() { u64::from(run.cells()) } else { 0 };
        if run.rm() {
            fabric.rms.remove(run.frame);
            return;
        }
        let ps = [run.at().ps(), run.last_at(spacing).ps()];
        fabric.frames.drop_cells(run.frame, run.cells(), reason, ps);
    }

    pub(super) fn dropped_cells(&self) -> u64 {
        self.lost.dropped.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_64_bytes() {
        assert_eq!(size_of::<Connection>(), 64);
    }
}

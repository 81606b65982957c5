//! A virtual channel at a switch: its output port, its policers, and counters of its cells.

use crate::cell::{CellCounts, Payload, Run};
use crate::discard::{CellDrop, FrameState};
use crate::network::in_flight::InFlight;
use crate::network::loss::Loss;
use crate::time::Spacing;

/// A virtual channel at a switch.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    /// Output port: index among those of the switch.
    pub(crate) port: u16,
    /// Queue of that port.
    pub(crate) queue: u16,
    /// Policer of the VC: index among those of the switch.
    pub(crate) policer: Option<u16>,
    /// Policer of its virtual path.
    pub(crate) path_policer: Option<u16>,
    /// The link from the switch before, if it loses cells.
    pub(crate) loss: Option<Loss>,
    pub(crate) state: FrameState,
    /// Index of the VC at the next switch, or of the VC itself at the far end.
    pub(crate) next_vc: u16,
    /// Stream to that switch or far end.
    pub(crate) out: u32,
    /// From the start of a transmission to the arrival there.
    pub(crate) transit: Spacing,
    /// Cells in the queue.
    pub(crate) waiting: u32,
    /// Cells whose transmission has begun.
    pub(crate) sent: u64,
    pub(crate) arrived: CellCounts,
    pub(crate) dropped: Box<DropCounts>,
    /// Cells whose CLP a policer set.
    pub(crate) tagged: u64,
}

/// Cells dropped.
#[derive(Clone, Debug, Default)]
pub(crate) struct DropCounts {
    /// By [`CellDrop::index`].
    pub(crate) by_reason: [u64; CellDrop::ALL.len()],
    /// Dropped cells with CLP = 1.
    pub(crate) low_priority: u64,
}

impl DropCounts {
    pub(crate) fn all(&self) -> u64 {
        self.by_reason.iter().sum()
    }
}

impl Connection {
    #[inline]
    pub(crate) fn is_policed(&self) -> bool {
        self.policer.is_some() || self.path_policer.is_some()
    }

    /// Cells join the queue. True if none of the VC waited there.
    #[inline]
    pub(crate) fn joins_queue(&mut self, cells: u32) -> bool {
        self.waiting += cells;
        self.waiting == cells
    }

    /// Cells leave the queue for transmission. True if no other waits there; SPD may then drop a
    /// frame of the VC again.
    #[inline]
    pub(crate) fn leaves_queue(&mut self, cells: u32) -> bool {
        self.waiting -= cells;
        self.sent += u64::from(cells);
        if self.waiting == 0 {
            self.state.armed = true;
        }
        self.waiting == 0
    }

    /// Drops cells for `reason`.
    #[cold]
    pub(crate) fn drop(&mut self, run: &Run, reason: CellDrop, in_flight: &mut InFlight) {
        self.dropped.by_reason[reason.index()] += u64::from(run.cells);
        self.dropped.low_priority += run.low_priority_cells();
        match run.header.payload {
            Payload::Frame(frame) => {
                let span = [run.at.instant(), run.last_at().instant()];
                in_flight.frames.drop_cells(frame, run.cells, reason, span);
            }
            Payload::Rm(rm) => {
                in_flight.rm_cells.remove(rm);
            }
        }
    }
}

//! Counters of a network, up to [`Network::now`](super::Network::now).
//!
//! A port has *sent* a cell once its transmission has begun; before, the cell waits, and after, it
//! is in flight. A transmission that starts within the present picosecond has not begun. Cells
//! inside the network are counted one by one, not by subtraction, so that *offered = arrived +
//! dropped + lost + inside* can fail.

use lastmile_units::ByteCount;

use super::frames::Frame;
use crate::aal5::Reassembled;
use crate::cell::{Clp, Run};
use crate::discard::CellDrop;

/// Frames with their cells and the bytes of their packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FrameCount {
    /// Frames.
    pub frames: u64,
    /// Cells of the frames.
    pub cells: u64,
    /// Bytes of their packets.
    pub bytes: u64,
}

impl FrameCount {
    #[inline]
    pub(super) fn add(&mut self, cells: u16, bytes: ByteCount) {
        self.frames += 1;
        self.cells += u64::from(cells);
        self.bytes += bytes.as_u64();
    }
}

/// A VC, from end to end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct VcStats {
    /// Frames offered.
    pub offered: FrameCount,
    /// Frames offered whose cells left the source with CLP = 1.
    pub offered_low_priority: FrameCount,
    /// Frames that arrived whole: goodput.
    pub whole: FrameCount,
    /// Whole frames whose cells left the source with CLP = 1.
    pub whole_low_priority: FrameCount,
    /// Cells that arrived.
    pub arrived_cells: u64,
    /// Cells that arrived with CLP = 1.
    pub arrived_low_priority_cells: u64,
    /// Cells that arrived and were discarded, since their frame was not whole: badput.
    pub bad_cells: u64,
    /// Times the far end discarded cells; two joined frames count once.
    pub damaged: u64,
}

impl VcStats {
    /// Counts cells of a frame that arrive, and the `outcome` if the last of them ends a frame.
    #[inline]
    pub(super) fn arrived(&mut self, run: &Run, outcome: Option<Reassembled>, frame: &Frame) {
        self.arrived_cells += u64::from(run.cells);
        self.arrived_low_priority_cells += run.low_priority_cells();
        match outcome {
            None => {}
            Some(Reassembled::Whole(cells)) => {
                self.whole.add(cells as u16, frame.bytes());
                if frame.clp == Clp::One {
                    self.whole_low_priority.add(cells as u16, frame.bytes());
                }
            }
            Some(Reassembled::Damaged(cells)) => {
                self.bad_cells += u64::from(cells);
                self.damaged += 1;
            }
        }
    }
}

/// A VC at one of its links, or all VCs of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HopStats {
    /// Cells that arrived at the port.
    pub arrived: u64,
    /// Cells that arrived with CLP = 1.
    pub arrived_low_priority: u64,
    /// Cells whose transmission began.
    pub sent: u64,
    /// Cells in the queue.
    pub waiting: u64,
    /// Cells dropped, by [`CellDrop::index`].
    pub dropped: [u64; CellDrop::ALL.len()],
    /// Cells dropped with CLP = 1, tagged here or earlier.
    pub dropped_low_priority: u64,
    /// Cells whose CLP a policer set.
    pub tagged: u64,
    /// Cells sent that the link lost; a loss counts when the cell would have arrived.
    pub lost: u64,
    /// Cells lost with CLP = 1.
    pub lost_low_priority: u64,
}

impl HopStats {
    /// Cells dropped for all reasons.
    #[must_use]
    pub fn dropped_cells(&self) -> u64 {
        self.dropped.iter().sum()
    }

    /// Cells dropped for `reason`.
    #[must_use]
    pub const fn dropped_for(&self, reason: CellDrop) -> u64 {
        self.dropped[reason.index()]
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.arrived += other.arrived;
        self.arrived_low_priority += other.arrived_low_priority;
        self.dropped_low_priority += other.dropped_low_priority;
        self.sent += other.sent;
        self.waiting += other.waiting;
        self.tagged += other.tagged;
        self.lost += other.lost;
        self.lost_low_priority += other.lost_low_priority;
        for (sum, cells) in self.dropped.iter_mut().zip(other.dropped) {
            *sum += cells;
        }
    }
}

/// A link, for all its VCs together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LinkStats {
    /// Cells and their fate.
    pub cells: HopStats,
    /// Cells sent that belong to frames which have arrived whole at the far end of their VC.
    pub good_cells: u64,
    /// The largest backlog of one of its queues so far.
    pub peak: u64,
}

/// All cells of a network.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NetworkStats {
    /// Cells offered.
    pub offered: u64,
    /// Cells that arrived at the far end of their VC.
    pub arrived: u64,
    /// Cells dropped.
    pub dropped: u64,
    /// Cells lost on the wire.
    pub lost: u64,
    /// Cells in queues and in flight.
    pub inside: u64,
    /// Frames of which cells are inside.
    pub frames_inside: u64,
}

impl NetworkStats {
    /// True if every cell offered is accounted for.
    #[must_use]
    pub const fn holds(&self) -> bool {
        self.offered == self.arrived + self.dropped + self.lost + self.inside
    }
}

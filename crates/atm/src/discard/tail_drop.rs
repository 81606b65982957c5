//! Tail drop, and selective cell discard (SCD; Ano et al. 2002).

use super::reason::CellDrop;
use super::state::Occupancy;

/// The largest numbers of cells that may wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) queue: u32,
    pub(super) memory: u32,
    /// The largest number of cells in the memory for which a cell with CLP = 1 is taken (SCD). `None`: as for CLP = 0.
    pub(super) low_priority: Option<u32>,
}

impl Limits {
    /// The limit of the memory for cells of a priority.
    #[inline]
    fn memory(&self, low: bool) -> u32 {
        self.low_priority.filter(|_| low).map_or(self.memory, |limit| limit.min(self.memory))
    }

    /// The free space for cells of a priority.
    #[inline]
    pub(super) fn free(&self, seen: &Occupancy, low: bool) -> u32 {
        self.queue.saturating_sub(seen.queue).min(self.memory(low).saturating_sub(seen.memory))
    }

    /// Why a cell finds no space. `None`: there is space.
    #[inline]
    pub(super) fn full(&self, seen: &Occupancy, low: bool) -> Option<CellDrop> {
        if seen.queue >= self.queue {
            Some(CellDrop::QueueFull)
        } else if seen.memory >= self.memory {
            Some(CellDrop::MemoryFull)
        } else if seen.memory >= self.memory(low) {
            Some(CellDrop::Selective)
        } else {
            None
        }
    }
}

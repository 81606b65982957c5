//! PPD (partial packet discard; Armitage and Adams 1993): the rest of a frame that lost a cell is
//! dropped. EPD and SPD also judge the first cell of each frame.

use super::epd::Epd;
use super::reason::CellDrop;
use super::spd::Spd;
use super::state::{FrameState, Occupancy};
use super::tail_drop::Limits;

/// The last cell of a frame that is being discarded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LastCell {
    /// The cell passes if there is space, since it delimits the next frame.
    #[default]
    Pass,
    /// The cell is dropped with the others of a frame of which none was admitted. After a part of a frame it passes as
    /// with [`LastCell::Pass`], since it also ends that part.
    Drop,
}

/// The cells that thresholds of a scheme count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Measure {
    /// The cells of the queue.
    #[default]
    Queue,
    /// The cells of the memory that the queue shares.
    Memory,
}

/// The discard of whole frames, and of the rest of a frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct FrameRules {
    /// The scheme that judges first cells. `None`: PPD alone.
    pub(super) early: Option<Early>,
    pub(super) last_cell: LastCell,
    pub(super) measure: Measure,
}

/// The scheme that judges the first cell of a frame.
#[derive(Clone, Copy, Debug)]
pub(super) enum Early {
    Epd(Epd),
    Spd(Spd),
}

impl FrameRules {
    /// Judges a cell. `None`: the cell is admitted.
    pub(super) fn admit(
        &self,
        limits: &Limits,
        state: &mut FrameState,
        seen: &Occupancy,
        last: bool,
        low: bool,
    ) -> Option<CellDrop> {
        if seen.vc == 0 {
            state.armed = true;
        }
        let first = !state.receiving;
        state.receiving = !last;
        if last && (self.last_cell == LastCell::Pass || state.partial) {
            (state.discarding, state.partial) = (None, false);
            return limits.full(seen, low);
        }
        if first {
            state.discarding = self.refuses_frame(state, seen);
        }
        let reason = state.discarding.or_else(|| {
            let full = limits.full(seen, low);
            state.discarding = full.map(|_| CellDrop::Ppd);
            state.partial = full.is_some() && !first;
            full
        });
        if last {
            (state.discarding, state.partial) = (None, false);
        }
        reason
    }

    /// Why a frame is dropped whole at its first cell. `None`: it is not.
    fn refuses_frame(&self, state: &mut FrameState, seen: &Occupancy) -> Option<CellDrop> {
        let backlog = match self.measure {
            Measure::Queue => seen.queue,
            Measure::Memory => seen.memory,
        };
        match &self.early {
            None => None,
            Some(Early::Epd(epd)) => epd.refuses(backlog, seen).then_some(CellDrop::Epd),
            Some(Early::Spd(spd)) => spd.refuses(state, backlog, seen),
        }
    }
}

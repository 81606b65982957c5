//! SPD (single packet discard; Sun 1998, section 3.3): below the threshold of EPD, a VC above its
//! own threshold loses one frame while the backlog is above the activation threshold, and no other
//! frame until its queue has been empty.

use super::epd::Epd;
use super::reason::CellDrop;
use super::state::{FrameState, Occupancy};

#[derive(Clone, Copy, Debug)]
pub(super) struct Spd {
    pub(super) epd: Epd,
    /// SPDth: cells of the VC.
    pub(super) vc_threshold: u32,
    /// CongestTh: cells.
    pub(super) activation: u32,
}

impl Spd {
    /// Why a frame is dropped whose first cell finds this backlog. `None`: it is not.
    pub(super) fn refuses(&self, state: &mut FrameState, backlog: u32, seen: &Occupancy) -> Option<CellDrop> {
        if self.epd.refuses(backlog, seen) {
            return Some(CellDrop::Epd);
        }
        if seen.vc < self.vc_threshold || backlog <= self.activation || !state.armed {
            return None;
        }
        state.armed = false;
        Some(CellDrop::Spd)
    }
}

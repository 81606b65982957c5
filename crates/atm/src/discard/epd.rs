//! EPD (early packet discard; Romanow and Floyd 1995): a frame whose first cell finds the threshold
//! reached is dropped whole. With per-VC accounting (Heinanen and Kilkki 1995; Sun 1998) only the
//! frames of a VC that has its share of the threshold in the queue are dropped.

use super::state::Occupancy;

#[derive(Clone, Copy, Debug)]
pub(super) struct Epd {
    /// Cells.
    pub(super) threshold: u32,
    /// Per-VC accounting.
    pub(super) per_vc: Option<Sharing>,
}

/// The VCs that share the threshold.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sharing {
    /// The number of VCs that share the threshold. `None`: the VCs with cells in the queue.
    pub(super) vcs: Option<u32>,
}

impl Epd {
    /// True if a frame is dropped whose first cell finds this backlog.
    pub(super) fn refuses(&self, backlog: u32, seen: &Occupancy) -> bool {
        let has_share = |sharing: Sharing| {
            let vcs = u64::from(sharing.vcs.unwrap_or(seen.active));
            u64::from(seen.vc) * vcs >= u64::from(self.threshold)
        };
        backlog >= self.threshold && self.per_vc.is_none_or(has_share)
    }
}

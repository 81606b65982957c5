//! How long a frame takes that meets nobody.
//!
//! Ports send on each cell as it comes, so a frame is cut through, not stored: the cells follow one another as closely as the slowest
//! port, or the shaping of the source, lets them, and only the far end waits for the last. That is one cell at each link and all delays,
//! and for each further cell the longest of the spacings, once.

use lastmile_units::{ByteCount, Duration};

use super::passage::{interval, transit};
use super::spec::{NetworkSpec, VcId};
use crate::time::Spacing;

impl NetworkSpec {
    /// From the offer of a packet of `bytes` to when its frame is whole at the far end of `vc`, nothing else being in the network and
    /// nothing of it policed or dropped. Of a VC of ABR: at its peak cell rate and without an RM cell between, so that none takes less.
    /// `None` above 65 527 bytes, which no frame holds.
    ///
    /// # Panics
    /// If there is no such VC, or its route names a link that is not there.
    #[must_use]
    pub fn alone(&self, vc: VcId, bytes: ByteCount) -> Option<Duration> {
        let vc = &self.vcs[vc.index()];
        let cells = vc.encapsulation.cells(bytes)?;
        let links = || vc.route.iter().map(|link| &self.links[link.index()]);
        let first = links().fold(Spacing::ZERO, |sum, link| sum.plus(transit(link)));
        let shaped = vc.abr.as_ref().map_or(vc.pcr, |abr| Some(abr.parameters.pcr)).map(Spacing::of_cell);
        let apart = links().map(interval).chain(shaped).max().unwrap_or(Spacing::ZERO);
        Some(first.plus(apart.times(u64::from(cells) - 1)).duration())
    }
}

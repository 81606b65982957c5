//! The transit time of a frame through an otherwise empty network.
//!
//! A switch forwards each cell as it arrives; only the far end waits for the whole frame. The first
//! cell takes one cell time at each link and all delays. Each further cell takes the longest
//! spacing of the route, that of a link or that of the source, once.

use lastmile_units::{ByteCount, Duration};

use super::spec::{LinkSpec, NetworkSpec, VcId};
use crate::time::Spacing;

impl LinkSpec {
    /// From the start of a cell's transmission to its arrival.
    pub(crate) fn transit(&self) -> Spacing {
        Spacing::of_cell(self.rate).plus(Spacing::of(self.delay))
    }

    /// From one start of a transmission to the next, at least.
    pub(crate) fn interval(&self) -> Spacing {
        Spacing::of_cell(self.pace.unwrap_or(self.rate))
    }
}

impl NetworkSpec {
    /// The time from the offer of a packet of `bytes` to the arrival of its whole frame at the far
    /// end of `vc`, in an otherwise empty network in which it is neither policed nor dropped. For a
    /// VC of ABR this is at its peak cell rate and without an RM cell between, so it is the least
    /// possible. `None` above 65 527 bytes.
    ///
    /// # Panics
    /// If there is no such VC, or its route has an unknown link.
    #[must_use]
    pub fn unloaded_transit(&self, vc: VcId, bytes: ByteCount) -> Option<Duration> {
        let vc = &self.vcs[vc.index()];
        let cells = vc.encapsulation.cells(bytes)?;
        let links = || vc.route.iter().map(|link| &self.links[link.index()]);
        let first = links().fold(Spacing::ZERO, |sum, link| sum.plus(link.transit()));
        let shaped = vc.abr.as_ref().map_or(vc.pcr, |abr| Some(abr.parameters.pcr)).map(Spacing::of_cell);
        let apart = links().map(LinkSpec::interval).chain(shaped).max().unwrap_or(Spacing::ZERO);
        Some(first.plus(apart.times(u64::from(cells) - 1)).duration())
    }
}

//! An acknowledgement, as the controls that count marks see it.

use lastmile_units::{Duration, Instant};

#[derive(Clone, Copy, Debug)]
pub(crate) struct MarkedAck {
    pub(crate) now: Instant,
    /// Octets that it newly delivers, and those of them that arrived with CE.
    pub(crate) acked: u64,
    pub(crate) marked: u64,
    /// SND.UNA, and one past the highest octet sent.
    pub(crate) una: u64,
    pub(crate) max: u64,
    pub(crate) srtt: Option<Duration>,
}

//! The surroundings that traffic is read for.

use std::path::Path;

use lastmile_model::NodeIndex;
use lastmile_units::Duration;

use crate::tcp;
use crate::topology::Topology;

/// The surroundings that traffic is read for.
pub(crate) struct Surroundings<'a, 'd> {
    pub(crate) topology: &'a Topology<'d>,
    /// The client of each access line and the server of all, if there are lines.
    pub(crate) ends: Option<(Vec<NodeIndex>, NodeIndex)>,
    pub(crate) tcp: tcp::Settings,
    /// The traffic is IPv6 unless it says otherwise.
    pub(crate) ipv6: bool,
    pub(crate) duration: Duration,
    /// Where the file is: names of other files count from there.
    pub(crate) folder: &'a Path,
}

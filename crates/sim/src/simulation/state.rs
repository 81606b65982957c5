//! The state of a run.

use lastmile_queueing::line::Stats as LineStats;
use lastmile_units::Instant;

use crate::hosts::{ConnectionPool, Hosts};
use crate::network::Net;
use crate::record::series::Sampler;
use lastmile_model::Network;
use lastmile_model::outcome::{Conservation, Snapshot};

/// A network in the middle of a run.
pub struct Simulation<'a> {
    pub(crate) network: &'a Network,
    pub(crate) net: Net,
    pub(crate) hosts: Hosts,
    pub(crate) now: Instant,
    pub(crate) events: u64,
    pub(crate) snapshots: Vec<Snapshot>,
    pub(crate) sampler: Option<Sampler>,
    pub(super) pool: ConnectionPool,
    /// The start of each flow of the traffic list.
    pub(crate) starts: Vec<Instant>,
}

impl Simulation<'_> {
    /// The simulated time.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Events handled so far.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.events
    }

    /// The counters of a link so far, by its index in the network's list.
    ///
    /// # Panics
    /// If there is no such link.
    #[must_use]
    pub fn link_stats(&self, link: usize) -> &LineStats {
        self.net.links[link].line.stats()
    }

    /// Where every packet is at present.
    #[must_use]
    pub fn conservation(&self) -> Conservation {
        self.net.conservation()
    }
}

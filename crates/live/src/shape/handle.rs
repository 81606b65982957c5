//! Requests of other threads to a middlebox.

use lastmile_packet::HashKey;
use lastmile_units::Instant;

use super::direction::Direction;
use crate::bump::{self, HopGlance, HopState, Queues, Record};
use crate::error::Error;
use crate::handle::{self, Snapshot};

/// Asks something of a [`super::World`] that runs. Any number of threads may have one.
#[derive(Clone)]
pub struct Handle {
    pub(super) asks: handle::Handle,
    pub(super) hash_key: HashKey,
}

impl Handle {
    /// As [`handle::Handle::report`].
    #[must_use]
    pub fn report(&self) -> Option<Snapshot> {
        self.asks.report()
    }

    /// As [`handle::Handle::is_alive`].
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.asks.is_alive()
    }

    /// As [`handle::Handle::glance`].
    #[must_use]
    pub fn glance(&self) -> Option<(Instant, Vec<HopGlance>)> {
        self.asks.glance()
    }

    /// As [`handle::Handle::states`].
    #[must_use]
    pub fn states(&self) -> Option<(Instant, Vec<HopState>)> {
        self.asks.states()
    }

    /// As [`handle::Handle::records`].
    #[must_use]
    pub fn records(&self) -> Option<[Record; 2]> {
        self.asks.records()
    }

    /// Sends recorded packets through the queues of `directions`, up and down, and shows the hops at
    /// each of `times`, which ascend. The calling thread does the work; the middlebox does not notice.
    /// The packets arrive when they did arrive: an open loop, in which no sender reacts.
    ///
    /// # Errors
    /// A queue that its line cannot have.
    pub fn replay(
        &self,
        records: &[Record; 2],
        directions: [&Direction; 2],
        times: &[Instant],
        look: &mut dyn FnMut(Instant, Vec<HopState>),
    ) -> Result<(), Error> {
        let queues = directions.map(|direction| (&direction.queue, direction.link_layer));
        Ok(bump::replay(records, queues, self.hash_key, times, look)?)
    }

    /// Replaces the queues. The backlog departs before all but urgent packets, and nothing is lost.
    /// The calling thread builds the queues. Returns when they are in place.
    ///
    /// # Errors
    /// A queue that its line cannot have: then everything stays as it is.
    pub fn hand_over(&self, up: &Direction, down: &Direction) -> Result<(), Error> {
        let queues = Queues::build((&up.queue, up.link_layer), (&down.queue, down.link_layer), self.hash_key)?;
        self.asks.put_in(queues);
        Ok(())
    }

    /// Ends the run.
    pub fn stop(&self) {
        self.asks.stop();
    }
}

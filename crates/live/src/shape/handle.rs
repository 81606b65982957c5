//! Requests of other threads to a middlebox.

use std::ops::Deref;

use super::direction::Direction;
use crate::bump::Queues;
use crate::error::Error;
use crate::handle;

/// Asks something of a [`super::World`] that runs: all that an emulated line can be asked
/// ([`handle::Handle`]), and another policy. Any number of threads may have one.
#[derive(Clone)]
pub struct Handle(pub(super) handle::Handle);

impl Deref for Handle {
    type Target = handle::Handle;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Handle {
    /// Replaces the queues. The backlog departs before all but urgent packets, and nothing is lost. Behind a token
    /// bucket no packet is urgent.
    /// The calling thread builds the queues. Returns when they are in place.
    ///
    /// # Errors
    /// A queue that its line cannot have: then everything stays as it is.
    pub fn hand_over(&self, up: &Direction, down: &Direction) -> Result<(), Error> {
        let queues = Queues::build((&up.queue, up.link_layer), (&down.queue, down.link_layer), self.0.hash_key())?;
        self.0.put_in(queues);
        Ok(())
    }
}

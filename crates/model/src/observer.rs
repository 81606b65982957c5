//! What a run tells of single packets. Neither clock writes files: an observer does.

use lastmile_queueing::DropReason;
use lastmile_units::Instant;

/// What happens to a packet at a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Passage {
    /// Its transmission begins, at the near end.
    Transmitted,
    /// It reaches the far end.
    Arrived,
    /// It is dropped, in the queue or on the wire.
    Dropped(DropReason),
}

/// Sees what happens to each packet, at each link in order of time. `P` is what the clock knows of a packet: its metadata in simulation, its bytes from the IP
/// header on where packets are real.
pub trait Observer<P: ?Sized> {
    /// `packet` passes link number `link` of the network's list.
    fn packet(&mut self, at: Instant, link: usize, passage: Passage, packet: &P);
}

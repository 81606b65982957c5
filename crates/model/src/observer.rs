//! The interface for reports on single packets. Clocks write no files; an observer may.

use lastmile_queueing::DropReason;
use lastmile_units::Instant;

/// An event of a packet at a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Passage {
    /// The transmission begins, at the near end.
    Transmitted,
    /// The packet reaches the far end.
    Arrived,
    /// The packet is dropped, in the queue or on the wire.
    Dropped(DropReason),
}

/// Receives the events of each packet, in order of time at each link. `P` is the clock's view of a
/// packet: its metadata in simulation, its bytes from the IP header on for real packets.
pub trait Observer<P: ?Sized> {
    /// Reports an event of `packet` at index `link` of the network's list of links.
    fn packet(&mut self, at: Instant, link: usize, passage: Passage, packet: &P);
}

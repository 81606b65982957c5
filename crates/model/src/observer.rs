//! What a run tells of single packets. The simulator writes no files: a sink does.

use lastmile_packet::Meta;
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

/// Takes what happens to each packet, in order of time.
pub trait CaptureSink {
    /// `packet` passes link number `link` of the network's list.
    fn packet(&mut self, at: Instant, link: usize, passage: Passage, packet: &Meta);
}

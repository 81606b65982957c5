//! The counters of a line, and the observer of its transmissions and drops.

use lastmile_packet::Packet;
use lastmile_units::{Duration, Instant, WireBytes};

use crate::discipline::{Count, DropReason, DropSink};

/// Counters of a line since it was made.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// Packets and IP bytes that were given to the queue.
    pub enqueued: Count,
    /// Packets and IP bytes whose transmission began.
    pub transmitted: Count,
    /// Bytes on the wire of all transmissions begun, OAM cells included.
    pub wire_bytes: WireBytes,
    /// Packets and IP bytes that reached the far end and could be rebuilt there.
    pub arrived: Count,
    /// Packets that the queue made (restored ACKs) or the wire (duplicates), and their IP bytes.
    pub created: Count,
    /// Packets that the wire made: duplicates.
    pub duplicated: Count,
    /// Packets that overtook one that was transmitted before them.
    pub reordered: Count,
    /// Dropped packets and their IP bytes, by [`DropReason::index`].
    pub dropped: [Count; DropReason::ALL.len()],
}

/// Receives each transmission and each drop of a line.
pub trait TransmissionSink<P>: DropSink<P> {
    /// The transmission of `packet` begins at `start`, after a queueing time of `waited`. It ends
    /// at `end`, unless more urgent packets interrupt it. The packet still carries the class that
    /// it had in the queue.
    fn transmitted(&mut self, start: Instant, end: Instant, waited: Duration, packet: &P);

    /// The first grant of a request begins, after a time of `waited` since the request.
    fn granted(&mut self, _waited: Duration) {}
}

/// The fate of a packet on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fate {
    Arrives,
    ArrivesTwice,
    Lost(DropReason),
}

impl Fate {
    /// The fate of a packet of which the wire keeps this number of copies, all of them `spoilt` by bit errors or none.
    pub(super) fn of(copies: u8, spoilt: bool) -> Self {
        match copies {
            0 => Self::Lost(DropReason::WireLoss),
            _ if spoilt => Self::Lost(DropReason::BitError),
            1 => Self::Arrives,
            _ => Self::ArrivesTwice,
        }
    }
}

/// Counts dropped and created packets and passes them to the observer.
pub(super) struct Counted<'a, O> {
    pub(super) stats: &'a mut Stats,
    pub(super) observer: &'a mut O,
}

impl<P: Packet, O: TransmissionSink<P>> DropSink<P> for Counted<'_, O> {
    fn dropped(&mut self, now: Instant, packet: P, reason: DropReason) {
        self.stats.dropped[reason.index()].add(&packet);
        self.observer.dropped(now, packet, reason);
    }

    fn created(&mut self, now: Instant, packet: &P) {
        self.stats.created.add(packet);
        self.observer.created(now, packet);
    }
}

//! What a run holds in memory, part by part, as far as it can grow while the run goes on.
//!
//! Sizes are those of the parts in their containers, with the room that those keep; what is small beside them (queues without packets, the
//! pending set, SACK scoreboards) is left out. Cost: a look at each link and series.

use crate::host::Transfer;
use crate::simulation::Simulation;

/// Bytes of a packet that waits or is on a wire, and as many of room that its queue keeps.
const PACKET: u64 = 128;
/// The same of a packet that is cells: the packet itself, its frame, and a run of cells at least.
const FRAME: u64 = 160;
/// An entry of a ping's replies, or of a series.
const POINT: u64 = 16;
/// A flow beside its transfer: what it is, its events, and the row of the results.
const FLOW: u64 = 300;
/// A snapshot, for each flow or link.
const SNAPSHOT: u64 = 100;

/// A part of what a run holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Held {
    /// What holds it.
    pub holder: Holder,
    /// How many of what it holds.
    pub count: u64,
    /// How much memory that takes.
    pub bytes: u64,
}

/// What holds memory, links by their index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Holder {
    /// The queue in front of a link: packets.
    Queue(usize),
    /// The wire of a link: packets.
    Wire(usize),
    /// Links of cells and the sources of their virtual channels: packets.
    Cells,
    /// Series: samples.
    Series,
    /// Pings and web users: replies and response times.
    Probes,
    /// Flows.
    Flows,
    /// What each flow and link had done when the traffic changed: entries.
    Snapshots,
}

impl Held {
    fn new(holder: Holder, count: u64, size: u64) -> Self {
        Self { holder, count, bytes: count.saturating_mul(size) }
    }
}

impl Simulation<'_> {
    /// All that it holds now.
    #[must_use]
    pub fn held(&self) -> Vec<Held> {
        let mut all = Vec::with_capacity(2 * self.net.links.len() + 5);
        for (index, link) in self.net.links.iter().enumerate() {
            let queued = link.line.queue().backlog().packets.as_u64();
            let stats = link.line.stats();
            let gone: u64 = stats.dropped.iter().map(|count| count.packets).sum();
            let inside = (stats.enqueued.packets + stats.created.packets).saturating_sub(gone + stats.arrived.packets);
            all.push(Held::new(Holder::Queue(index), queued, PACKET));
            all.push(Held::new(Holder::Wire(index), inside.saturating_sub(queued), PACKET));
        }
        if let Some(cells) = &self.net.cells {
            all.push(Held::new(Holder::Cells, cells.inside().packets + cells.held().packets, FRAME));
        }
        let room = |len: usize| len as u64;
        let samples = self
            .sampler
            .as_ref()
            .map_or(0, |sampler| sampler.series().map(|series| room(series.points.capacity())).sum());
        all.push(Held::new(Holder::Series, samples, POINT));
        let replies: u64 = self.hosts.pings.iter().map(|ping| room(ping.replies.capacity())).sum();
        let responses: u64 = self.hosts.sessions.iter().map(|session| room(session.responses.capacity())).sum();
        all.push(Held::new(Holder::Probes, replies + responses, POINT));
        let transfers = room(self.hosts.transfers.len());
        let flows = room(self.net.flows.len());
        let bytes = transfers * size_of::<Transfer>() as u64 + flows * FLOW;
        all.push(Held { holder: Holder::Flows, count: flows, bytes });
        let entries =
            self.snapshots.iter().map(|snapshot| room(snapshot.bytes_delivered.len() + snapshot.wire_bits.len()));
        all.push(Held::new(Holder::Snapshots, entries.sum(), SNAPSHOT));
        all
    }
}

//! An estimate of the memory of a run, by the parts that can grow during it.
//!
//! The sizes include the spare capacity of containers. Small parts (empty queues, the pending set, SACK
//! scoreboards) are not included. Cost: one visit of each link and series.

use crate::hosts::Transfer;
use crate::simulation::state::Simulation;

/// Bytes of a packet in a queue or on a wire, with as much spare capacity.
const PACKET: u64 = 128;
/// Bytes of a packet among cells: the packet, its frame, and at least one run of cells.
const FRAME: u64 = 160;
/// Bytes of a reply to a ping, or of a point of a series.
const POINT: u64 = 16;
/// Bytes of a flow without its transfer: the boxed state of its sender, its entry, its events, and its row of the
/// results.
const FLOW: u64 = 700;
/// Bytes of a snapshot, for each flow or link.
const SNAPSHOT: u64 = 100;

/// A part of the memory of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Held {
    /// The part.
    pub holder: Holder,
    /// The number of its elements.
    pub count: u64,
    /// Memory in bytes.
    pub bytes: u64,
}

/// The parts that hold memory; links by their index.
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
    /// Snapshots: an entry for each flow and link.
    Snapshots,
}

impl Held {
    fn new(holder: Holder, count: u64, size: u64) -> Self {
        Self { holder, count, bytes: count.saturating_mul(size) }
    }
}

impl Simulation<'_> {
    /// The present memory of the run, by part.
    #[must_use]
    pub fn held(&self) -> Vec<Held> {
        let mut all = Vec::with_capacity(2 * self.net.links.len() + 5);
        for (index, link) in self.net.links.iter().enumerate() {
            let queued = link.line.backlog().packets.as_u64();
            let stats = link.line.stats();
            let gone: u64 = stats.dropped.iter().map(|count| count.packets).sum();
            let inside = (stats.enqueued.packets + stats.created.packets).saturating_sub(gone + stats.arrived.packets);
            all.push(Held::new(Holder::Queue(index), queued, PACKET));
            all.push(Held::new(Holder::Wire(index), inside.saturating_sub(queued), PACKET));
        }
        if let Some(cells) = &self.net.cells {
            all.push(Held::new(Holder::Cells, cells.inside().packets + cells.held().packets, FRAME));
        }
        let count = |len: usize| len as u64;
        let samples = self
            .sampler
            .as_ref()
            .map_or(0, |sampler| sampler.series().map(|series| count(series.points.capacity())).sum());
        all.push(Held::new(Holder::Series, samples, POINT));
        let replies: u64 = self.hosts.pings.iter().map(|ping| count(ping.replies.capacity())).sum();
        let responses: u64 = self.hosts.clients.iter().map(|client| count(client.user.kept())).sum();
        let dialogues: u64 = self.hosts.dialogues.iter().map(|dialogue| count(dialogue.kept())).sum();
        all.push(Held::new(Holder::Probes, replies + responses + dialogues, POINT));
        let transfers = count(self.hosts.transfers.len());
        let flows = count(self.net.flows.len());
        let bytes = transfers * size_of::<Transfer>() as u64 + flows * FLOW;
        all.push(Held { holder: Holder::Flows, count: flows, bytes });
        let entries =
            self.snapshots.iter().map(|snapshot| count(snapshot.bytes_delivered.len() + snapshot.wire_bits.len()));
        all.push(Held::new(Holder::Snapshots, entries.sum(), SNAPSHOT));
        all
    }
}

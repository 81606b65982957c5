//! The network between the hosts: packets are forwarded here, from line to line along their routes.

use std::sync::Arc;

use lastmile_packet::{FlowDirectory, FlowId, Meta};
use lastmile_queueing::Count;
use lastmile_units::{BitRate, Instant};

use crate::atm::Cells;
use crate::engine::event::{Event, Token};
use crate::engine::{Handle, Wheel};
use crate::record::delays::Delays;
use lastmile_model::outcome::Conservation;
use lastmile_model::{BuildError, Directory, Network, Observer, Passage};

mod cell_links;
pub(crate) mod flow;
mod link;
mod losses;
pub(crate) mod route;

use flow::{FlowEntry, StateIndex};
pub(crate) use link::LinkState;
use losses::LossCounts;
use route::{LinkIndex, PathId, Paths};

/// Links, routes, the flow table and the pending set.
pub(crate) struct Net {
    pub(crate) pending: Wheel<Token>,
    pub(crate) links: Vec<LinkState>,
    pub(crate) paths: Paths,
    /// The paths of each traffic: of its data, and back.
    pub(crate) routes: Vec<[PathId; 2]>,
    /// By flow number: the flows of the traffic list, then those of replays, then opened connections.
    pub(crate) flows: Vec<FlowEntry>,
    /// The number of flows in the traffic list.
    pub(crate) declared: usize,
    /// The flow number of the first opened connection.
    pub(crate) first_opened: u32,
    pub(crate) capture: Option<Box<dyn Observer<Meta>>>,
    pub(crate) sent: Count,
    pub(crate) delivered: Count,
    /// The links that carry cells.
    pub(crate) cells: Option<Box<Cells>>,
    pub(crate) losses: LossCounts,
    pub(crate) delays: Delays,
}

impl Net {
    pub(crate) fn new(network: &Network, capture: Option<Box<dyn Observer<Meta>>>) -> Result<Self, BuildError> {
        let flows: Arc<dyn FlowDirectory> = Arc::new(Directory::new(network));
        // Each flow passes one access line, so all middleboxes can share one memory of handshakes.
        let handshakes = Arc::default();
        let punctual = capture.is_some();
        let links = network.links.iter().map(|link| LinkState::new(network, link, &flows, &handshakes, punctual));
        let mut links = links.collect::<Result<Vec<_>, _>>()?;
        let cells = match &network.atm {
            Some(atm) => {
                atm.links.iter().for_each(|link| links[*link].cells = true);
                Some(Box::new(Cells::new(network, atm)?))
            }
            None => None,
        };
        Ok(Self {
            pending: Wheel::new(),
            links,
            paths: Paths::default(),
            routes: Vec::new(),
            flows: Vec::new(),
            declared: 0,
            first_opened: 0,
            capture,
            sent: Count::default(),
            delivered: Count::default(),
            cells,
            losses: LossCounts::default(),
            delays: Delays::new(network),
        })
    }

    /// Adds an event to the pending set.
    #[inline]
    pub(crate) fn schedule(&mut self, at: Instant, event: Event) -> Handle {
        self.pending.push(at, event.into())
    }

    #[inline]
    fn entry(&self, flow: FlowId) -> FlowEntry {
        self.flows[flow.index() as usize / 2]
    }

    /// The path of a packet of `flow`.
    #[inline]
    fn path(&self, flow: FlowId) -> PathId {
        self.routes[self.entry(flow).traffic as usize][flow.index() as usize % 2]
    }

    /// The state of the flow of a packet.
    #[inline]
    pub(crate) fn state_of(&self, flow: FlowId) -> StateIndex {
        self.entry(flow).state()
    }

    /// A host sends a packet.
    // By reference, since each call with a packet by value copies it.
    #[inline(always)]
    pub(crate) fn send(&mut self, now: Instant, packet: &mut Meta) {
        packet.sent = now;
        self.sent.add(packet);
        self.delays.sent(packet);
        let first = self.paths.links(self.path(packet.flow))[0];
        self.enqueue(now, first, packet);
    }

    /// Adds a packet to the queue of a link.
    #[inline]
    fn enqueue(&mut self, now: Instant, index: LinkIndex, packet: &Meta) {
        let link = &mut self.links[index as usize];
        if link.cells {
            return self.offer(now, index, *packet);
        }
        let (line, mut observer) = link.observed(index, &mut self.losses, &mut self.capture);
        line.enqueue(now, *packet, &mut observer);
        observer.monitor.note_backlog(line);
        link.arm(index, &mut self.pending);
    }

    /// A link's transmitter is free.
    #[inline]
    pub(crate) fn transmit(&mut self, now: Instant, index: LinkIndex) {
        let link = &mut self.links[index as usize];
        if link.transmit_at != Some(now) {
            // The line became ready earlier, and an earlier event has done the work.
            return;
        }
        link.transmit_at = None;
        let (line, mut observer) = link.observed(index, &mut self.losses, &mut self.capture);
        line.transmit(now, &mut observer);
        link.arm(index, &mut self.pending);
    }

    /// Takes the packet that reaches the far end of a link.
    #[inline]
    pub(crate) fn take_arrival(&mut self, now: Instant, index: LinkIndex) -> Option<Meta> {
        let link = &mut self.links[index as usize];
        if link.arrive_at != Some(now) {
            // A packet overtook the one that this event was for, and an earlier event has replaced it.
            return None;
        }
        link.arrive_at = None;
        let (line, mut observer) = link.observed(index, &mut self.losses, &mut self.capture);
        let packet = line.take_arrival(now, &mut observer);
        link.arm_arrival(index, &mut self.pending);
        if link.arrive_at.is_none() {
            self.catch_up_with(now, index);
        }
        packet
    }

    /// Brings links up to the events of `now`, so that they can be asked.
    pub(crate) fn catch_up(&mut self, now: Instant) {
        (0..self.links.len() as LinkIndex).for_each(|index| self.catch_up_with(now, index));
        self.advance_cells_before(now);
    }

    #[inline(never)]
    fn catch_up_with(&mut self, now: Instant, index: LinkIndex) {
        let link = &mut self.links[index as usize];
        let (line, mut observer) = link.observed(index, &mut self.losses, &mut self.capture);
        line.catch_up(now, &mut observer);
        link.arm(index, &mut self.pending);
    }

    /// A packet is at the far end of a link. Forwards it there, or returns true: it is at its destination.
    // Inlined: all events but those of cells are in one function.
    #[inline(always)]
    pub(crate) fn arrived(&mut self, now: Instant, index: LinkIndex, packet: &Meta) -> bool {
        if let Some(capture) = &mut self.capture {
            capture.packet(now, index as usize, Passage::Arrived, packet);
        }
        if let Some(next) = self.paths.after(self.path(packet.flow), index) {
            self.enqueue(now, next, packet);
            return false;
        }
        self.delivered.add(packet);
        self.delays.arrived(now, packet);
        true
    }

    /// Changes the rate of the shaper of a link's queue. False: it has none.
    pub(crate) fn set_rate(&mut self, now: Instant, index: LinkIndex, rate: BitRate) -> bool {
        let link = &mut self.links[index as usize];
        let (line, mut observer) = link.observed(index, &mut self.losses, &mut self.capture);
        let changed = line.set_rate(now, rate, &mut observer);
        link.arm(index, &mut self.pending);
        changed
    }

    /// Where every packet is: delivered, dropped, in a queue, or on a wire.
    pub(crate) fn conservation(&self) -> Conservation {
        let mut sums = Conservation { sent: self.sent, delivered: self.delivered, ..Conservation::default() };
        for link in &self.links {
            link.line.stats().dropped.iter().for_each(|dropped| sums.dropped += *dropped);
            sums.created += link.line.stats().created;
            link.line.queue().counters(&mut |counter| match counter.name {
                "grown_bytes" => sums.created.bytes += counter.value,
                "shrunk_bytes" => sums.dropped.bytes += counter.value,
                _ => {}
            });
            sums.queued += link.line.backlog().into();
            sums.in_flight += link.line.in_flight();
        }
        if let Some(cells) = &self.cells {
            sums.dropped += cells.dropped;
            sums.in_flight += cells.inside();
            sums.queued += cells.held();
        }
        sums
    }
}

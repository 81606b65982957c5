//! The network under the hosts: links with their queues, and the pending set that wakes them.

use std::sync::Arc;

use hdrhistogram::Histogram;
use lastmile_atm::{Departure, Fate};
use lastmile_packet::{FlowDirectory, FlowId, Meta};
use lastmile_queueing::ack::Handshakes;
use lastmile_queueing::line::{Line, Observer};
use lastmile_queueing::random::Stream;
use lastmile_queueing::{DropReason, DropSink, Environment};
use lastmile_units::{Duration, Instant};

use crate::cells::{Cells, Left};
use crate::engine::{Handle, Wheel};
use crate::event::{Event, Token};
use crate::flow::{FlowEntry, Place};
use crate::losses::Ledger;
use crate::route::{LinkIndex, PathId, Paths};
use crate::tracks::Tracks;
use lastmile_model::Network;
use lastmile_model::outcome::{Amount, Conservation, LossCause, Waits};
use lastmile_model::{BuildError, Directory};
use lastmile_model::{Observer as PacketObserver, Passage};

/// Links, paths and the pending set.
pub(crate) struct Net {
    pub(crate) pending: Wheel<Token>,
    pub(crate) links: Vec<LinkState>,
    pub(crate) paths: Paths,
    /// The paths of each traffic, of its data and back.
    pub(crate) routes: Vec<[PathId; 2]>,
    /// What each flow is, by flow number.
    pub(crate) flows: Vec<FlowEntry>,
    /// How many flows the traffic list has. Behind them come those of replays, then connections that come and go.
    pub(crate) declared: usize,
    /// How many come before those that come and go.
    pub(crate) standing: u32,
    pub(crate) capture: Option<Box<dyn PacketObserver<Meta>>>,
    pub(crate) sent: Amount,
    pub(crate) delivered: Amount,
    /// The links that carry cells.
    pub(crate) cells: Option<Box<Cells>>,
    pub(crate) losses: Ledger,
    pub(crate) tracks: Tracks,
}

/// A link, what it reports, and which of its two events are pending.
pub(crate) struct LinkState {
    pub(crate) line: Line<Meta>,
    pub(crate) monitor: Monitor,
    /// It carries cells: its line stays idle.
    pub(crate) cells: bool,
    transmit_at: Option<Instant>,
    arrival_pending: bool,
}

/// What is recorded of a link beside the counters of its line.
#[derive(Clone, Debug)]
pub(crate) struct Monitor {
    /// Queue delay of all packets, and of pure ACKs alone.
    pub(crate) delay_ns: Histogram<u64>,
    pub(crate) ack_delay_ns: Histogram<u64>,
    /// The same since the latest snapshot.
    pub(crate) since_snapshot: [Waits; 2],
    /// The same since the latest sample.
    pub(crate) since_sample: Waits,
    pub(crate) max_backlog_packets: u64,
    pub(crate) max_backlog_bytes: u64,
    /// Queue delay by class of the queue, up to the last class that sent.
    pub(crate) class_delay_ns: Vec<Histogram<u64>>,
}

impl Net {
    pub(crate) fn new(network: &Network, capture: Option<Box<dyn PacketObserver<Meta>>>) -> Result<Self, BuildError> {
        let flows: Arc<dyn FlowDirectory> = Arc::new(Directory::new(network));
        // Each flow of the network passes one line, so one memory does for all middleboxes.
        let handshakes = Arc::default();
        let links = network.links.iter().map(|link| LinkState::new(network, link, &flows, &handshakes));
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
            standing: 0,
            capture,
            sent: Amount::default(),
            delivered: Amount::default(),
            cells,
            losses: Ledger::default(),
            tracks: Tracks::new(network),
        })
    }

    /// Adds an event to the pending set.
    #[inline]
    pub(crate) fn schedule(&mut self, at: Instant, event: Event) -> Handle {
        self.pending.push(at, event.into())
    }

    /// The path of a flow's packets, by the direction that its number tells.
    #[inline]
    pub(crate) fn route(&self, flow: FlowId) -> PathId {
        let number = flow.index() as usize;
        self.routes[self.flows[number / 2].traffic as usize][number % 2]
    }

    /// Where the state of a packet's flow is.
    #[inline]
    pub(crate) fn place(&self, flow: FlowId) -> Place {
        self.flows[flow.index() as usize / 2].place()
    }

    /// A host sends a packet.
    #[inline]
    pub(crate) fn send(&mut self, now: Instant, packet: Meta) {
        self.sent.packets += 1;
        self.sent.bytes += u64::from(packet.ip_len);
        self.tracks.sent(now, &packet);
        let route = self.route(packet.flow);
        let first = self.paths.links(route)[0];
        self.enqueue(now, first, packet);
    }

    /// Puts a packet into the queue of a link.
    #[inline]
    fn enqueue(&mut self, now: Instant, index: LinkIndex, packet: Meta) {
        let link = &mut self.links[index as usize];
        if link.cells {
            return self.offer(now, index, packet);
        }
        let capture = self.capture.as_deref_mut();
        let mut watch = Watch { index, monitor: &mut link.monitor, losses: &mut self.losses, capture };
        link.line.enqueue(now, packet, &mut watch);
        if link.line.next_transmission().is_some() {
            let backlog = link.line.queue().backlog();
            link.monitor.max_backlog_packets = link.monitor.max_backlog_packets.max(backlog.packets.as_u64());
            link.monitor.max_backlog_bytes = link.monitor.max_backlog_bytes.max(backlog.bytes.as_u64());
        }
        self.arm(index);
    }

    /// A link's transmitter is free.
    #[inline]
    pub(crate) fn transmit(&mut self, now: Instant, index: LinkIndex) {
        let link = &mut self.links[index as usize];
        if link.transmit_at != Some(now) {
            // An earlier wake-up took its place and did its work.
            return;
        }
        link.transmit_at = None;
        let capture = self.capture.as_deref_mut();
        let mut watch = Watch { index, monitor: &mut link.monitor, losses: &mut self.losses, capture };
        link.line.transmit(now, &mut watch);
        self.arm(index);
    }

    /// A packet reaches the far end of a link: forwards it, or returns it if it is where it was bound for.
    #[inline]
    pub(crate) fn arrive(&mut self, now: Instant, index: LinkIndex) -> Option<Meta> {
        let link = &mut self.links[index as usize];
        link.arrival_pending = false;
        let capture = self.capture.as_deref_mut();
        let mut watch = Watch { index, monitor: &mut link.monitor, losses: &mut self.losses, capture };
        let packet = link.line.take_arrival(now, &mut watch);
        self.arm(index);
        self.arrived(now, index, packet?)
    }

    /// Forwards a packet that is at the far end of a link, or returns it if it is where it was bound for.
    #[inline]
    fn arrived(&mut self, now: Instant, index: LinkIndex, packet: Meta) -> Option<Meta> {
        if let Some(capture) = &mut self.capture {
            capture.packet(now, index as usize, Passage::Arrived, &packet);
        }
        let route = self.route(packet.flow);
        match self.paths.after(route, index) {
            Some(next) => {
                self.enqueue(now, next, packet);
                None
            }
            None => {
                self.delivered.packets += 1;
                self.delivered.bytes += u64::from(packet.ip_len);
                self.tracks.arrived(now, &packet);
                Some(packet)
            }
        }
    }

    /// Makes a frame of a packet that comes to a link of cells.
    fn offer(&mut self, now: Instant, index: LinkIndex, mut packet: Meta) {
        let traffic = self.flows[packet.flow.index() as usize / 2].traffic;
        let cells = self.cells.as_mut().expect("there are links of cells");
        let refused = cells.offer(now, (index, traffic), &mut packet);
        if let Some(reason) = refused {
            let cause = match reason {
                DropReason::Policed => LossCause::Edge,
                DropReason::TooLarge => LossCause::TooLarge,
                reason => LossCause::Packet(reason),
            };
            self.losses.add(index, &packet, cause);
        }
        if let Some(capture) = &mut self.capture {
            let passage = refused.map_or(Passage::Transmitted, Passage::Dropped);
            capture.packet(now, index as usize, passage, &packet);
        }
        if refused.is_none() {
            self.arm_cells();
        }
    }

    /// Lets the cells go on until now. What has left waits to be taken.
    pub(crate) fn advance_cells(&mut self, now: Instant) {
        if let Some(cells) = &mut self.cells {
            (cells.wake, cells.wake_at) = (Handle::NONE, None);
            cells.advance(now);
        }
    }

    /// Takes what has left the cells: forwards it, or returns it if it is where it was bound for.
    pub(crate) fn leave_cells(&mut self, departure: &Departure) -> Option<Meta> {
        let cells = self.cells.as_mut()?;
        match cells.left(departure) {
            Left::Whole(link, packet) => {
                let traffic = self.flows[packet.flow.index() as usize / 2].traffic;
                if cells.hold(departure, (traffic, link), &packet) {
                    return None;
                }
                self.arrived(departure.at, link, packet)
            }
            Left::Lost(link, packet, reason) => {
                let cause = match departure.fate {
                    Fate::Dropped(drop) => LossCause::Cell(drop),
                    Fate::Joined => LossCause::Joined,
                    Fate::Lost | Fate::Whole => LossCause::CellOnWire,
                };
                self.losses.add(link, &packet, cause);
                if let Some(capture) = &mut self.capture {
                    capture.packet(departure.at, link as usize, Passage::Dropped(reason), &packet);
                }
                None
            }
        }
    }

    /// Lets the next ACK go that an edge has held back until now or before: forwards it, or returns it if it is where it was bound for.
    /// `None`: none is due.
    pub(crate) fn release_ack(&mut self, now: Instant) -> Option<Option<Meta>> {
        let (link, packet) = self.cells.as_mut()?.release(now)?;
        Some(self.arrived(now, link, packet))
    }

    /// Brings the cells up to just before now, so that they can be looked at.
    pub(crate) fn look_at_cells(&mut self, now: Instant) {
        let Some(cells) = &mut self.cells else { return };
        cells.advance_before(now);
        let gone = std::mem::take(&mut cells.gone);
        for departure in &gone {
            let lost = self.leave_cells(departure);
            debug_assert!(lost.is_none(), "what arrives has an event of its own");
        }
        self.put_back(gone);
    }

    /// Gives an emptied list of departures back, for its room.
    pub(crate) fn put_back(&mut self, mut gone: Vec<Departure>) {
        gone.clear();
        if let Some(cells) = &mut self.cells {
            cells.gone = gone;
        }
    }

    /// Makes sure that the next time at which a packet may leave the cells is pending.
    pub(crate) fn arm_cells(&mut self) {
        let Some(cells) = &mut self.cells else { return };
        if let Some(due) = cells.next()
            && cells.wake_at.is_none_or(|at| due < at)
        {
            self.pending.cancel(cells.wake);
            cells.wake = self.pending.push(due, Event::Cells.into());
            cells.wake_at = Some(due);
        }
    }

    /// Makes sure that the link's next transmission and next arrival are pending.
    #[inline]
    fn arm(&mut self, index: LinkIndex) {
        let link = &mut self.links[index as usize];
        if let Some(due) = link.line.next_transmission()
            && link.transmit_at.is_none_or(|at| due < at)
        {
            link.transmit_at = Some(due);
            self.pending.push(due, Event::Transmit(index).into());
        }
        if !link.arrival_pending
            && let Some(arrival) = link.line.next_arrival()
        {
            link.arrival_pending = true;
            self.pending.push(arrival, Event::Arrive(index).into());
        }
    }

    /// Where every packet went.
    pub(crate) fn conservation(&self) -> Conservation {
        let mut sums = Conservation { sent: self.sent, delivered: self.delivered, ..Conservation::default() };
        for link in &self.links {
            for dropped in &link.line.stats().dropped {
                sums.dropped.packets += dropped.packets;
                sums.dropped.bytes += dropped.bytes;
            }
            let created = link.line.stats().created;
            sums.created.packets += created.packets;
            sums.created.bytes += created.bytes;
            link.line.queue().counters(&mut |counter| match counter.name {
                "grown_bytes" => sums.created.bytes += counter.value,
                "shrunk_bytes" => sums.dropped.bytes += counter.value,
                _ => {}
            });
            let backlog = link.line.queue().backlog();
            sums.queued.packets += backlog.packets.as_u64();
            sums.queued.bytes += backlog.bytes.as_u64();
            let in_flight = link.line.in_flight();
            sums.in_flight.packets += in_flight.packets;
            sums.in_flight.bytes += in_flight.bytes;
        }
        if let Some(cells) = &self.cells {
            let amounts = [cells.dropped, cells.inside(), cells.held()];
            for (sum, amount) in [&mut sums.dropped, &mut sums.in_flight, &mut sums.queued].into_iter().zip(amounts) {
                sum.packets += amount.packets;
                sum.bytes += amount.bytes;
            }
        }
        sums
    }
}

impl LinkState {
    fn new(
        network: &Network,
        link: &lastmile_model::Link,
        flows: &Arc<dyn FlowDirectory>,
        handshakes: &Arc<Handshakes>,
    ) -> Result<Self, BuildError> {
        let environment =
            Environment::new(link.link_layer).with_flows(Arc::clone(flows)).with_handshakes(Arc::clone(handshakes));
        let queue = link
            .queue
            .build_in::<Meta>(&environment)
            .map_err(|source| BuildError::Queue { link: link.name.clone(), source })?;
        let config = network.line_of(link);
        let losses = Stream::new(network.seed, &format!("loss on link {}", link.name));
        Ok(Self {
            line: Line::new(&config, queue, losses).with_flows(Arc::clone(flows)),
            monitor: Monitor::new(),
            cells: false,
            transmit_at: None,
            arrival_pending: false,
        })
    }
}

/// Why recording a delay cannot fail.
const RESIZES: &str = "the histogram grows to any value";

impl Monitor {
    fn new() -> Self {
        let histogram = || Histogram::new(3).expect("3 significant digits are in range");
        Self {
            delay_ns: histogram(),
            ack_delay_ns: histogram(),
            since_snapshot: [Waits::default(); 2],
            since_sample: Waits::default(),
            max_backlog_packets: 0,
            max_backlog_bytes: 0,
            class_delay_ns: Vec::new(),
        }
    }

    fn waited_in_class(&mut self, class: u16, waited: Duration) {
        let class = usize::from(class);
        if class >= self.class_delay_ns.len() {
            // Once a class, and schedulers have few.
            let histogram = || Histogram::new(3).expect("3 significant digits are in range");
            self.class_delay_ns.resize_with(class + 1, histogram);
        }
        self.class_delay_ns[class].record(waited.as_ns()).expect(RESIZES);
    }

    #[inline]
    fn waited(&mut self, waited: Duration, packet: &Meta) {
        let ns = waited.as_ns();
        // Not saturating_record, which would cut off at the range that the histogram happens to have.
        self.delay_ns.record(ns).expect(RESIZES);
        self.since_snapshot[0].add(waited);
        self.since_sample.add(waited);
        if packet.is_pure_ack() {
            self.ack_delay_ns.record(ns).expect(RESIZES);
            self.since_snapshot[1].add(waited);
        }
        if let Some(class) = packet.class {
            self.waited_in_class(class, waited);
        }
    }
}

/// Hears what a line does.
struct Watch<'a> {
    index: LinkIndex,
    monitor: &'a mut Monitor,
    losses: &'a mut Ledger,
    capture: Option<&'a mut (dyn PacketObserver<Meta> + 'static)>,
}

impl DropSink<Meta> for Watch<'_> {
    fn dropped(&mut self, now: Instant, packet: Meta, reason: DropReason) {
        self.losses.add(self.index, &packet, LossCause::Packet(reason));
        if let Some(capture) = &mut self.capture {
            capture.packet(now, self.index as usize, Passage::Dropped(reason), &packet);
        }
    }
}

impl Observer<Meta> for Watch<'_> {
    #[inline]
    fn transmitted(&mut self, start: Instant, _end: Instant, waited: Duration, packet: &Meta) {
        self.monitor.waited(waited, packet);
        if let Some(capture) = &mut self.capture {
            capture.packet(start, self.index as usize, Passage::Transmitted, packet);
        }
    }
}

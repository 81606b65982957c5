//! One direction of a line: a queue, a transmitter that takes exact time, a wire with a delay. Both
//! clocks drive it.
//!
//! The simulator calls at exactly the times that [`Line::next_transmission`] and [`Line::next_arrival`] return, or lets
//! the line catch up ([`Line::catch_up`]). A live program calls when it wakes up, always a little late. Both get equal
//! departures: a transmission starts at the time at which it was due, not when the caller woke up, so lateness does not
//! lower the rate.
//!
//! Packets on the wire are kept in a ring, in order. A line therefore needs one wake-up for its transmitter and one for
//! its wire, however many packets it holds.
//!
//! Cost: O(1) a packet, plus the discipline's own cost.

use std::sync::Arc;

use lastmile_linklayer::{Framing, Interleave, LinkLayer, WireMeter, aal5};
use lastmile_packet::{FlowDirectory, Packet};
use lastmile_units::{BitRate, ByteCount, CellCount, Duration, Instant, PacketCount, Ratio, WireBytes};

use crate::compress::Codec;
use crate::random::Stream;
use crate::ring;
use crate::{Backlog, Discipline, DropReason, DropSink, Fifo, Handover, Node, Overflow};

mod buffer;
mod config;
mod counted;
mod granted;
pub mod grants;
pub mod impairments;
mod in_flight;
mod in_transmission;
mod interruption;
pub mod trace;
mod transmitter;
mod waiting;

pub use crate::discipline::Count;
use buffer::Buffer;
pub use config::Config;
use counted::{Counted, Fate};
pub use counted::{Stats, TransmissionSink};
use impairments::Wire;
use in_flight::InFlight;
use in_transmission::PartlySent;
use transmitter::Transmitter;

/// One direction of a line.
pub struct Line<P: Packet> {
    queue: Node<P>,
    transmitter: Transmitter,
    meter: WireMeter,
    codec: Option<Codec>,
    delay: Duration,
    far_end: Duration,
    /// Independent losses on the wire: their share, and the stream that decides.
    losses: (Ratio, Stream),
    /// `None` on a wire without impairments.
    wire: Option<Box<Wire>>,
    /// Each packet is sent whole, and arrives once and as it is, a constant delay after its transmission.
    plain: bool,
    /// End of the current transmission, or of the last one.
    busy_until: Instant,
    /// When the next transmission is due.
    due: Option<Instant>,
    /// Packets whose transmission has begun, on a line that can interrupt them. The last element continues first.
    partly_sent: Vec<PartlySent<P>>,
    /// Packets that wait for grants behind a queue that shapes.
    buffer: Option<Box<Buffer<P>>>,
    in_flight: InFlight<P>,
    stats: Stats,
}

impl<P: Packet> Line<P> {
    /// An idle line. The stream `losses` decides which packets are lost; impairments and grants have children of it.
    #[must_use]
    pub fn new(config: &Config, queue: Node<P>, losses: Stream) -> Self {
        let mut line = Self {
            queue,
            transmitter: Transmitter::new(config, &losses),
            meter: WireMeter::new(config.link_layer),
            codec: Codec::new(config.compression),
            delay: config.delay,
            far_end: config.far_end,
            wire: Wire::new(&config.impairments, &losses),
            losses: (config.loss, losses),
            plain: false,
            busy_until: Instant::ZERO,
            due: None,
            partly_sent: Vec::new(),
            buffer: config.grants.as_ref().and_then(|grants| grants.buffer).map(|most| Box::new(Buffer::new(most))),
            in_flight: InFlight::default(),
            stats: Stats::default(),
        };
        line.plain = line.is_plain();
        line
    }

    /// This line with `flows` as the directory of flow addresses, which header compression needs.
    #[must_use]
    pub fn with_flows(mut self, flows: Arc<dyn FlowDirectory>) -> Self {
        if let Some(codec) = &mut self.codec {
            codec.set_flows(flows);
        }
        self
    }

    /// Hands a packet to the queue, and starts its transmission if the line is free.
    #[inline]
    pub fn enqueue(&mut self, now: Instant, mut packet: P, observer: &mut impl TransmissionSink<P>) {
        self.catch_up(now, observer);
        packet.meta_mut().arrived = now;
        self.stats.enqueued.add(&packet);
        if (self.plain || self.is_free(now)) && self.queue.admits(&packet) {
            if self.plain {
                return self.wait(now, packet, observer);
            }
            self.queue.departs(&packet);
            return self.send(now, packet, observer);
        }
        let mut drops = Counted { stats: &mut self.stats, observer };
        self.queue.enqueue(now, packet, &mut drops);
        if !self.may_be_late() && !self.continues(now) {
            self.reschedule(now);
            self.transmit(now, observer);
        }
    }

    #[inline]
    fn is_free(&self, now: Instant) -> bool {
        self.due.is_none() && self.busy_until <= now && self.is_steady()
    }

    /// The next transmission begins when the present one ends, whatever arrives before.
    #[inline]
    fn continues(&self, now: Instant) -> bool {
        let asks = matches!(self.transmitter, Transmitter::Granted(_));
        !asks && self.busy_until > now && self.due == Some(self.busy_until)
    }

    /// Starts every transmission that is due by `now`, each at the time at which it was due.
    #[inline]
    pub fn transmit(&mut self, now: Instant, observer: &mut impl TransmissionSink<P>) {
        while let Some(start) = self.due
            && start <= now
        {
            if self.may_be_late() {
                self.send_waiting(start, observer);
                continue;
            }
            if self.sends_pieces() {
                match self.transmitter {
                    Transmitter::Granted(_) => self.send_granted(start, observer),
                    _ => self.send_piece(start, observer),
                }
                continue;
            }
            let mut drops = Counted { stats: &mut self.stats, observer };
            match self.queue.dequeue(start, &mut drops) {
                Some(packet) => {
                    self.send(start, packet, observer);
                    self.reschedule(start);
                }
                None => {
                    self.reschedule(start);
                    // An AQM or regulator dropped all that was ready. A packet that is still ready breaks the contract.
                    debug_assert!(
                        self.due.is_none_or(|due| due > start),
                        "a discipline promised a packet and had none"
                    );
                    self.due = self.due.filter(|due| *due > start);
                }
            }
        }
    }

    /// Postpones a transmission that was due before `at` to `at`, without compensation for the lost time. For callers
    /// that slept so long that their lateness does less harm than a burst.
    pub fn forgive(&mut self, at: Instant) {
        self.due = self.due.map(|due| self.transmitter.ready(due.max(at)));
    }

    /// The time at which [`Line::transmit`] must be called next. May change after every call that takes `&mut self`.
    #[must_use]
    #[inline]
    pub fn next_transmission(&self) -> Option<Instant> {
        self.due
    }

    /// The time at which the next packet reaches the far end. May change after `enqueue`, `transmit`, `take_arrival`.
    #[must_use]
    #[inline]
    pub fn next_arrival(&self) -> Option<Instant> {
        self.in_flight.first().map(|packet| packet.meta().arrived)
    }

    /// Packets arrive in the order of their transmissions.
    #[must_use]
    #[inline]
    pub fn keeps_order(&self) -> bool {
        self.wire.is_none()
    }

    /// The next packet that has reached the far end by `now`. A packet whose headers cannot be rebuilt is dropped.
    #[inline]
    pub fn take_arrival(&mut self, now: Instant, observer: &mut impl TransmissionSink<P>) -> Option<P> {
        while self.next_arrival()? <= now {
            // Read in the ring: each move of a packet is a copy.
            let packet = self.in_flight.first()?;
            if let Some(codec) = &mut self.codec
                && !codec.arrive(packet)
            {
                let packet = self.in_flight.packets.pop_front()?;
                let mut drops = Counted { stats: &mut self.stats, observer };
                drops.dropped(now, packet, DropReason::HeaderCompression);
                continue;
            }
            self.stats.arrived.add(packet);
            return self.in_flight.packets.pop_front();
        }
        None
    }

    /// Replaces the queue: `next` takes over when the backlog of the present queue has been sent (see [`Handover`]).
    /// `link_layer` becomes the encapsulation by which later transmissions are counted.
    pub fn hand_over(&mut self, next: Node<P>, link_layer: LinkLayer)
    where
        P: Send + 'static,
    {
        self.queue.take_back(self.in_flight.take_waiting());
        let empty: Node<P> = Box::new(Fifo::in_packets(PacketCount::ZERO, Overflow::Tail));
        let earlier = std::mem::replace(&mut self.queue, empty);
        self.queue = Box::new(Handover::new(earlier, next));
        // Levels of two queues do not compare. Interrupted packets of the replaced queue are the most urgent ones.
        self.partly_sent.iter_mut().for_each(|begun| begun.level = 0);
        self.meter = WireMeter::new(link_layer);
        self.plain = self.is_plain();
    }

    /// Changes the rate of the queue's shaper at `now` ([`Discipline::set_rate`]). What was due earlier departs at the
    /// rate so far. False: the queue has no shaper, and nothing has changed.
    pub fn set_rate(&mut self, now: Instant, rate: BitRate, observer: &mut impl TransmissionSink<P>) -> bool {
        self.catch_up(now, observer);
        let changed = self.queue.set_rate(now, rate);
        if changed && !self.continues(now) {
            self.reschedule(now);
            self.transmit(now, observer);
        }
        changed
    }

    /// The queue in front of the transmitter.
    #[must_use]
    pub fn queue(&self) -> &dyn Discipline<P> {
        &*self.queue
    }

    /// Packets and bytes that wait for their transmission: those of the queue, and of the buffer of a granted
    /// transmitter.
    #[must_use]
    pub fn backlog(&self) -> Backlog {
        self.queue.backlog() + self.buffer.as_ref().map_or_else(Backlog::default, |buffer| buffer.backlog())
    }

    /// Packets on the wire and their IP bytes, including those whose transmission has begun. O(n) in these packets.
    #[must_use]
    pub fn in_flight(&self) -> Count {
        let mut count = Count::default();
        self.in_flight.on_wire().for_each(|packet| count.add(packet));
        self.partly_sent.iter().for_each(|begun| count.add(&begun.packet));
        count
    }

    /// Counters of the grants, on a line that has them.
    #[must_use]
    pub fn grants(&self) -> Option<&grants::Counts> {
        match &self.transmitter {
            Transmitter::Granted(station) => Some(station.counts()),
            _ => None,
        }
    }

    /// Counters since the line was made.
    #[must_use]
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Bits sent by `now`: the bits of all transmissions begun, less the unsent part of the current one.
    #[must_use]
    pub fn bits_sent(&self, now: Instant) -> u64 {
        let unsent = self.transmitter.unsent(now, self.busy_until);
        self.stats.wire_bytes.bits().saturating_sub(u64::try_from(unsent).unwrap_or(u64::MAX))
    }

    /// Cells sent on an ATM line, OAM cells included. `None` on other lines.
    #[must_use]
    pub fn cells(&self) -> Option<CellCount> {
        let atm = self.meter.link().framing() == Framing::Atm;
        atm.then(|| CellCount::new(self.stats.wire_bytes.as_u64() / aal5::CELL_BYTES))
    }

    #[inline(always)]
    fn reschedule(&mut self, now: Instant) {
        let next = if self.partly_sent.is_empty() { self.queue.next_ready(now) } else { Some(now) };
        self.due = match self.transmitter {
            Transmitter::Granted(_) => self.due_by_grants(now, next),
            _ => next.map(|ready| self.transmitter.ready(ready.max(self.busy_until).max(now))),
        };
    }

    /// Whether packets are sent in pieces and may be interrupted. Packets that have begun continue
    /// in pieces even if the encapsulation has changed since.
    #[inline]
    fn sends_pieces(&self) -> bool {
        let may = match self.transmitter {
            Transmitter::Granted(_) => true,
            _ => self.meter.link().interleave() != Interleave::Never && self.transmitter.takes_time(),
        };
        may || !self.partly_sent.is_empty()
    }

    /// Draws how many copies arrive of a packet whose transmission begins at `start`: as in netem, a packet that is
    /// duplicated and lost arrives once, and the copy of one that is not lost may be lost.
    fn copies(&mut self, start: Instant) -> u8 {
        let lost = self.loses(start);
        if !self.wire.as_mut().is_some_and(|wire| wire.duplicates()) {
            return u8::from(!lost);
        }
        let loss = self.loss(start);
        1 + u8::from(!lost && self.wire.as_mut().is_some_and(|wire| !wire.loses_copy(loss)))
    }

    /// The share of independent losses at `start`.
    fn loss(&self, start: Instant) -> Ratio {
        self.transmitter.step(start).map_or(self.losses.0, |step| step.loss)
    }

    /// Draws whether a packet whose transmission begins at `start` is lost on the wire.
    fn loses(&mut self, start: Instant) -> bool {
        let loss = self.loss(start);
        let lost = loss > Ratio::ZERO && self.losses.1.chance(loss.as_parts_per_billion());
        // The model counts packets, lost ones too.
        self.wire.as_mut().is_some_and(|wire| wire.loses()) || lost
    }

    /// Draws whether bit errors spoil the packet of `sent` bytes on the wire that was compressed
    /// last.
    fn spoils(&mut self, sent: WireBytes) -> bool {
        let Some(wire) = &mut self.wire else { return false };
        let bits = match self.meter.link().framing() {
            Framing::Atm => sent.as_u64() / aal5::CELL_BYTES * aal5::CELL_PAYLOAD * 8,
            Framing::None | Framing::Ptm => sent.bits(),
        };
        let spoilt = wire.spoils(bits);
        if spoilt && let Some(codec) = &mut self.codec {
            codec.damage_last();
        }
        spoilt
    }

    /// A packet whose transmission has ended is on the wire, or is lost there.
    fn depart(&mut self, start: Instant, mut packet: P, fate: Fate, observer: &mut impl TransmissionSink<P>) {
        match fate {
            Fate::Arrives => self.propagate(packet, false, observer),
            Fate::ArrivesTwice => self.propagate(packet, true, observer),
            Fate::Lost(reason) => {
                packet.meta_mut().class = None;
                Counted { stats: &mut self.stats, observer }.dropped(start, packet, reason);
            }
        }
    }

    /// Puts a packet whose transmission has ended on the wire. Without reordering it arrives no
    /// earlier than the packet before, however the delay has changed.
    fn propagate(&mut self, packet: P, twice: bool, observer: &mut impl TransmissionSink<P>) {
        if self.wire.is_some() {
            return self.propagate_impaired(packet, twice, observer);
        }
        let arrival = match self.transmitter.step(self.busy_until) {
            None => self.busy_until + self.delay + self.far_end,
            Some(step) => {
                let before = self.in_flight.packets.back().map_or(Instant::ZERO, |before| before.meta().arrived);
                (self.busy_until + step.delay + self.far_end).max(before)
            }
        };
        self.append(packet, arrival);
    }

    /// Puts a packet that arrives at `arrival` behind all others on the wire.
    // Inlined: a call copies the packet.
    #[inline(always)]
    fn append(&mut self, packet: P, arrival: Instant) {
        // Changed in the ring: a packet that changes in between is copied once more.
        ring::push(&mut self.in_flight.packets, packet);
        if let Some(packet) = self.in_flight.packets.back_mut() {
            let meta = packet.meta_mut();
            (meta.class, meta.arrived) = (None, arrival);
        }
    }

    fn propagate_impaired(&mut self, mut packet: P, twice: bool, observer: &mut impl TransmissionSink<P>) {
        let sent = self.busy_until;
        let delay = self.transmitter.step(sent).map_or(self.delay, |step| step.delay);
        let Some(wire) = &mut self.wire else { return };
        let meta = packet.meta_mut();
        (meta.class, meta.arrived) = (None, wire.arrival(sent, delay) + self.far_end);
        let twin = twice.then(|| {
            let mut twin = packet.duplicate();
            twin.meta_mut().arrived = wire.arrival(sent, delay) + self.far_end;
            twin
        });
        self.insert(packet);
        if let Some(twin) = twin {
            let mut counted = Counted { stats: &mut self.stats, observer };
            counted.created(sent, &twin);
            self.stats.duplicated.add(&twin);
            self.insert(twin);
        }
    }

    /// Inserts a packet among those on the wire, behind those that arrive no later.
    fn insert(&mut self, packet: P) {
        let arrives = packet.meta().arrived;
        if self.in_flight.packets.back().is_none_or(|last| last.meta().arrived <= arrives) {
            self.in_flight.packets.push_back(packet);
            return;
        }
        self.stats.reordered.add(&packet);
        let index = self.in_flight.packets.partition_point(|other| other.meta().arrived <= arrives);
        self.in_flight.packets.insert(index, packet);
    }

    /// IP bytes of `packet` as transmitted, its headers compressed if the line compresses them.
    fn bytes_to_send(&mut self, packet: &P, lost: bool) -> ByteCount {
        match &mut self.codec {
            None => packet.meta().ip_bytes(),
            Some(codec) => codec.transmit(packet, lost),
        }
    }

    /// Makes the wire busy from `start` with `wire` bytes and with the OAM cells that are due with them.
    // Inlined: without a rate and OAM cells hardly any work is left.
    #[inline(always)]
    fn occupy(&mut self, start: Instant, wire: WireBytes) {
        let wire = self.meter.piece(wire);
        self.busy_until = self.transmitter.send(start, wire, start <= self.busy_until);
        self.stats.wire_bytes += wire;
    }

    /// Sends a packet without interruption.
    // Inlined: a call copies the packet.
    #[inline(always)]
    fn send(&mut self, start: Instant, packet: P, observer: &mut impl TransmissionSink<P>) {
        if !self.plain {
            return self.send_to_fate(start, packet, observer);
        }
        let wire = self.meter.link().on_wire(packet.meta().ip_bytes());
        self.send_whole(start, &packet, wire, observer);
        self.append(packet, self.busy_until + self.delay + self.far_end);
    }

    fn is_plain(&self) -> bool {
        self.is_steady() && self.wire.is_none() && self.codec.is_none() && self.losses.0 == Ratio::ZERO
    }

    /// Each packet is sent whole, as soon as the one before has left.
    #[inline]
    fn is_steady(&self) -> bool {
        matches!(self.transmitter, Transmitter::Instantaneous | Transmitter::Constant(_)) && !self.sends_pieces()
    }

    /// Sends a packet that may be lost, change, or arrive twice.
    #[inline(never)]
    fn send_to_fate(&mut self, start: Instant, packet: P, observer: &mut impl TransmissionSink<P>) {
        let (wire, fate) = self.cost_of(start, &packet);
        self.send_whole(start, &packet, wire, observer);
        self.depart(start, packet, fate, observer);
    }

    /// The bytes on the wire of a packet whose transmission begins at `start`, and its fate there.
    fn cost_of(&mut self, start: Instant, packet: &P) -> (WireBytes, Fate) {
        let copies = self.copies(start);
        let ip_bytes = self.bytes_to_send(packet, copies == 0);
        let wire = self.meter.link().on_wire(ip_bytes);
        (wire, Fate::of(copies, copies > 0 && self.spoils(wire)))
    }

    /// Sends a packet of `wire` bytes without interruption.
    #[inline(always)]
    fn send_whole(&mut self, start: Instant, packet: &P, wire: WireBytes, observer: &mut impl TransmissionSink<P>) {
        self.occupy(start, wire);
        self.stats.transmitted.add(packet);
        let waited = start.since(packet.meta().arrived);
        observer.transmitted(start, self.busy_until, waited, packet);
    }
}

#[cfg(test)]
mod tests;

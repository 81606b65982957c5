//! One direction of a line: a queue, a transmitter that takes exact time, a wire with a delay. Both clocks drive it.
//!
//! The simulator calls at the very times that [`Line::next_transmission`] and [`Line::next_arrival`] name; a live program
//! calls when it wakes, which is always a little late. Both get the same departures: a transmission starts when it was due,
//! not when the caller woke up, so lateness never enters the rate.
//!
//! Packets on the wire wait in a ring, in order, so that a line needs one wake-up for its transmitter and one for its wire,
//! however many packets it holds.
//!
//! Cost: O(1) a packet beside the discipline's own.

use std::collections::VecDeque;
use std::sync::Arc;

use lastmile_linklayer::{Framing, Interleave, LinkLayer, WireMeter, aal5};
use lastmile_packet::{FlowDirectory, Packet};
use lastmile_units::{BitRate, ByteCount, CellCount, Duration, Instant, PacketCount, Serialiser, WireBytes};

use crate::compress::{Codec, Compression};
use crate::random::Stream;
use crate::{Discipline, DropReason, DropSink, Fifo, Handover, Node, Overflow};

mod under_way;

use under_way::UnderWay;

/// What a line is made of, apart from its queue.
#[derive(Clone, Debug)]
pub struct Config {
    /// Rate of the wire, headers and cells included. `None`: transmission takes no time.
    pub rate: Option<BitRate>,
    /// What an IP packet costs on this wire.
    pub link_layer: LinkLayer,
    /// Propagation delay, and the constant delay of what stands at the far end.
    pub delay: Duration,
    /// Probability that a packet is lost on the wire, in parts per 10^9.
    pub loss_ppb: u32,
    /// Header compression.
    pub compression: Compression,
}

/// What a line has done so far.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// Packets and IP bytes that came to the queue.
    pub enqueued: Count,
    /// Packets and IP bytes whose transmission began.
    pub transmitted: Count,
    /// Bytes on the wire that they took.
    pub wire_bytes: WireBytes,
    /// Packets and IP bytes that the far end took.
    pub arrived: Count,
    /// Packets that the queue made, and their IP bytes.
    pub created: Count,
    /// What was dropped, by [`DropReason::index`].
    pub dropped: [Count; DropReason::ALL.len()],
}

/// Packets and their IP bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// IP bytes.
    pub bytes: u64,
}

impl Count {
    /// Counts one packet.
    #[inline]
    pub fn add(&mut self, packet: &impl Packet) {
        self.packets += 1;
        self.bytes += u64::from(packet.meta().ip_len);
    }
}

/// Watches a line: told of each transmission and each drop.
pub trait Observer<P>: DropSink<P> {
    /// `packet` begins its transmission at `start`, having waited for `waited`; the last of it leaves at `end`, unless something more
    /// urgent interrupts it. It still carries the class that it had in the queue.
    fn transmitted(&mut self, start: Instant, end: Instant, waited: Duration, packet: &P);
}

/// One direction of a line.
pub struct Line<P: Packet> {
    queue: Node<P>,
    transmitter: Option<Serialiser>,
    meter: WireMeter,
    codec: Option<Codec>,
    delay: Duration,
    loss_ppb: u32,
    losses: Stream,
    /// When the last bit of the current or latest transmission leaves.
    busy_until: Instant,
    /// When the next transmission is due.
    due: Option<Instant>,
    /// Packets that have begun, where they may be interrupted: the one at the end goes on first.
    under_way: Vec<UnderWay<P>>,
    /// Packets on the wire. Their `arrived` is when they will arrive.
    in_flight: VecDeque<P>,
    stats: Stats,
}

impl<P: Packet> Line<P> {
    /// An idle line. `losses` decides which packets are lost on the wire.
    #[must_use]
    pub fn new(config: &Config, queue: Node<P>, losses: Stream) -> Self {
        Self {
            queue,
            transmitter: config.rate.map(Serialiser::new),
            meter: WireMeter::new(config.link_layer),
            codec: Codec::new(config.compression),
            delay: config.delay,
            loss_ppb: config.loss_ppb,
            losses,
            busy_until: Instant::ZERO,
            due: None,
            under_way: Vec::new(),
            in_flight: VecDeque::new(),
            stats: Stats::default(),
        }
    }

    /// The same line, over which flows go whose addresses are in `flows`: header compression sees them.
    #[must_use]
    pub fn with_flows(mut self, flows: Arc<dyn FlowDirectory>) -> Self {
        if let Some(codec) = &mut self.codec {
            codec.set_flows(flows);
        }
        self
    }

    /// Hands a packet to the queue, and starts its transmission if the line is free.
    #[inline]
    pub fn enqueue(&mut self, now: Instant, mut packet: P, observer: &mut impl Observer<P>) {
        if self.due.is_some_and(|due| due < now) {
            // What is due now may be what has just come, for a caller that is late as for one that is on time.
            self.transmit(Instant::from_ps(now.as_ps() - 1), observer);
        }
        packet.meta_mut().arrived = now;
        self.stats.enqueued.add(&packet);
        let mut drops = Counted { stats: &mut self.stats, observer };
        self.queue.enqueue(now, packet, &mut drops);
        self.reschedule(now);
        self.transmit(now, observer);
    }

    /// Starts every transmission that is due by `now`, each at the time at which it was due.
    #[inline]
    pub fn transmit(&mut self, now: Instant, observer: &mut impl Observer<P>) {
        while let Some(start) = self.due
            && start <= now
        {
            if self.sends_pieces() {
                self.send_piece(start, observer);
                continue;
            }
            let mut drops = Counted { stats: &mut self.stats, observer };
            match self.queue.dequeue(start, &mut drops) {
                Some(packet) => {
                    self.start(start, packet, observer);
                    self.reschedule(start);
                }
                None => {
                    self.reschedule(start);
                    // An AQM or regulator dropped what waited. Anything still ready now would break the contract.
                    debug_assert!(
                        self.due.is_none_or(|due| due > start),
                        "a discipline promised a packet and had none"
                    );
                    self.due = self.due.filter(|due| *due > start);
                }
            }
        }
    }

    /// What was due before `at` is due at `at`: nothing is made up for of the time before. For callers that slept so long that their
    /// lateness does less harm than a burst.
    pub fn forgive(&mut self, at: Instant) {
        self.due = self.due.map(|due| due.max(at));
    }

    /// When [`Line::transmit`] must be called next. May change after every call that takes `&mut self`.
    #[must_use]
    #[inline]
    pub fn next_transmission(&self) -> Option<Instant> {
        self.due
    }

    /// When the next packet reaches the far end. May change after `enqueue`, `transmit` and `take_arrival`.
    #[must_use]
    #[inline]
    pub fn next_arrival(&self) -> Option<Instant> {
        self.in_flight.front().map(|packet| packet.meta().arrived)
    }

    /// The next packet that has reached the far end by `now`. One whose headers cannot be rebuilt there is dropped.
    #[inline]
    pub fn take_arrival(&mut self, now: Instant, observer: &mut impl Observer<P>) -> Option<P> {
        while self.next_arrival()? <= now {
            let packet = self.in_flight.pop_front()?;
            if let Some(codec) = &mut self.codec
                && !codec.arrive(&packet)
            {
                let mut drops = Counted { stats: &mut self.stats, observer };
                drops.dropped(now, packet, DropReason::HeaderCompression);
                continue;
            }
            self.stats.arrived.add(&packet);
            return Some(packet);
        }
        None
    }

    /// Gives the line another queue, whose turn comes when what waits in the present one has left (see [`Handover`]), and
    /// another encapsulation, by which bytes on the wire are counted from now on.
    pub fn hand_over(&mut self, next: Node<P>, link_layer: LinkLayer)
    where
        P: Send + 'static,
    {
        let empty: Node<P> = Box::new(Fifo::in_packets(PacketCount::ZERO, Overflow::Tail));
        let earlier = std::mem::replace(&mut self.queue, empty);
        self.queue = Box::new(Handover::new(earlier, next));
        // Their levels mean nothing to another queue: they leave first.
        self.under_way.iter_mut().for_each(|begun| begun.level = 0);
        self.meter = WireMeter::new(link_layer);
    }

    /// The queue in front of the transmitter.
    #[must_use]
    pub fn queue(&self) -> &dyn Discipline<P> {
        &*self.queue
    }

    /// Packets on the wire, the one being transmitted included, and their IP bytes. Looks at each.
    #[must_use]
    pub fn in_flight(&self) -> Count {
        let packets = self.in_flight.len() as u64;
        let mut count =
            Count { packets, bytes: self.in_flight.iter().map(|packet| packet.meta().ip_bytes().as_u64()).sum() };
        self.under_way.iter().for_each(|begun| count.add(&begun.packet));
        count
    }

    /// What the line has done so far.
    #[must_use]
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Bits that have left by `now`: those of all transmissions begun, but for what is still to come of the current one.
    #[must_use]
    pub fn bits_sent(&self, now: Instant) -> u64 {
        let begun = self.stats.wire_bytes.bits();
        let Some(transmitter) = &self.transmitter else { return begun };
        let left_ps = u128::from(self.busy_until.since(now).as_ps());
        let unsent = left_ps * u128::from(transmitter.rate().as_bps()) / 1_000_000_000_000;
        begun.saturating_sub(u64::try_from(unsent).unwrap_or(u64::MAX))
    }

    /// Cells that the packets took, on a line of cells, OAM cells between them included.
    #[must_use]
    pub fn cells(&self) -> Option<CellCount> {
        let atm = self.meter.link().framing() == Framing::Atm;
        atm.then(|| CellCount::new(self.stats.wire_bytes.as_u64() / aal5::CELL_BYTES))
    }

    fn reschedule(&mut self, now: Instant) {
        let next = if self.under_way.is_empty() { self.queue.next_ready(now) } else { Some(now) };
        self.due = next.map(|ready| ready.max(self.busy_until).max(now));
    }

    /// Whether packets may be interrupted: what takes no time is not, and what has begun goes on piece by piece whatever has changed since.
    #[inline]
    fn sends_pieces(&self) -> bool {
        let may = self.meter.link().interleave() != Interleave::Never && self.transmitter.is_some();
        may || !self.under_way.is_empty()
    }

    /// Whether the next packet is lost on the wire.
    fn loses(&mut self) -> bool {
        self.loss_ppb > 0 && self.losses.chance(self.loss_ppb)
    }

    /// IP bytes of `packet` as they go out.
    #[inline]
    fn bytes_to_send(&mut self, packet: &P, lost: bool) -> ByteCount {
        match &mut self.codec {
            None => packet.meta().ip_bytes(),
            Some(codec) => codec.transmit(packet, lost),
        }
    }

    /// The wire is busy from `start` with `wire` bytes, and with the OAM cells that are due with them.
    // Without a rate and OAM cells there is hardly anything to do.
    #[inline(always)]
    fn occupy(&mut self, start: Instant, wire: WireBytes) {
        let wire = self.meter.piece(wire);
        if let Some(transmitter) = &mut self.transmitter {
            if start > self.busy_until {
                transmitter.restart();
            }
            self.busy_until = start + transmitter.advance(wire);
        } else {
            self.busy_until = start;
        }
        self.stats.wire_bytes += wire;
    }

    #[inline]
    fn start(&mut self, start: Instant, mut packet: P, observer: &mut impl Observer<P>) {
        let lost = self.loses();
        let ip_bytes = self.bytes_to_send(&packet, lost);
        self.occupy(start, self.meter.link().on_wire(ip_bytes));
        self.stats.transmitted.add(&packet);
        let waited = start.since(packet.meta().arrived);
        observer.transmitted(start, self.busy_until, waited, &packet);
        packet.meta_mut().class = None;
        if lost {
            let mut drops = Counted { stats: &mut self.stats, observer };
            drops.dropped(start, packet, DropReason::WireLoss);
            return;
        }
        packet.meta_mut().arrived = self.busy_until + self.delay;
        self.in_flight.push_back(packet);
    }
}

/// Counts what is dropped and created, on its way to the observer.
struct Counted<'a, O> {
    stats: &'a mut Stats,
    observer: &'a mut O,
}

impl<P: Packet, O: Observer<P>> DropSink<P> for Counted<'_, O> {
    fn dropped(&mut self, now: Instant, packet: P, reason: DropReason) {
        self.stats.dropped[reason.index()].add(&packet);
        self.observer.dropped(now, packet, reason);
    }

    fn created(&mut self, now: Instant, packet: &P) {
        self.stats.created.add(packet);
        self.observer.created(now, packet);
    }
}

#[cfg(test)]
mod tests;

//! First in, first out, limited in packets, IP bytes, bytes on the wire or cells, with tail or head drop.
//!
//! Published: `pfifo` and `bfifo` of tc-bfifo(8); head drop (drop from front) Lakshman, Neidhardt, Ott 1996, and
//! `pfifo_head_drop` of Linux.
//! Differs: a limit in cells counts the cells of each packet on its line, as the buffer of an ATM
//! modem does. A packet larger than the whole limit is dropped as [`DropReason::TooLarge`] under
//! both policies: head drop would empty the queue for it in vain.
//! Cost: O(1) a packet; the ring grows on demand; a limit in cells divides once a packet at enqueue
//! and at dequeue.

use std::collections::VecDeque;

use lastmile_linklayer::LinkLayer;
use lastmile_packet::Packet;
pub use lastmile_units::Limit;
use lastmile_units::{ByteCount, Instant, PacketCount};

use crate::catalogue::{Built, Mechanism};
use crate::discipline::Counter;
use crate::ring;
use crate::spec::{Problem, Site};
use crate::{Backlog, Discipline, DropReason, DropSink};

/// The packet to drop when the queue is full.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Overflow {
    /// The packet that arrives.
    #[default]
    Tail,
    /// The oldest packet, and as many after it as the new packet needs.
    Head,
}

/// The parameters of a FIFO.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// The capacity of the queue.
    pub limit: Limit,
    /// The packet to drop when the queue is full.
    pub drop: Overflow,
}

/// A FIFO.
#[derive(Clone, Debug)]
pub struct Fifo<P: Packet> {
    packets: VecDeque<P>,
    /// Packets that the line holds.
    admitted: usize,
    capacity: Capacity,
    overflow: Overflow,
    tally: Tally,
}

impl<P: Packet> Fifo<P> {
    /// An empty queue. `None` if the limit is in cells and `link_layer` has none.
    #[must_use]
    pub fn new(limit: Limit, overflow: Overflow, link_layer: &LinkLayer) -> Option<Self> {
        let capacity = Capacity::new(limit, link_layer)?;
        Some(Self { packets: VecDeque::new(), admitted: 0, capacity, overflow, tally: Tally::default() })
    }

    /// An empty queue that holds at most `limit` packets.
    #[must_use]
    pub fn in_packets(limit: PacketCount, overflow: Overflow) -> Self {
        let capacity = Capacity::of(Measure::Packets, limit.as_u64());
        Self { packets: VecDeque::new(), admitted: 0, capacity, overflow, tally: Tally::default() }
    }

    #[inline]
    fn push(&mut self, packet: P, size: u64) {
        self.capacity.take(&packet, size);
        ring::push(&mut self.packets, packet);
    }

    // Inlined, and the packet is read in the ring: each move of it is a copy.
    #[inline(always)]
    fn pop(&mut self) -> Option<P> {
        self.capacity.release(self.packets.front()?);
        self.packets.pop_front()
    }

    /// A packet arrives for which there is no space.
    #[cold]
    fn enqueue_full(&mut self, now: Instant, packet: P, size: u64, drops: &mut dyn DropSink<P>) {
        if self.capacity.never_fits(size) {
            self.tally.too_large += 1;
            drops.dropped(now, packet, DropReason::TooLarge);
            return;
        }
        if self.overflow == Overflow::Tail {
            self.tally.tail += 1;
            drops.dropped(now, packet, DropReason::Tail);
            return;
        }
        while !self.capacity.fits(size) {
            let oldest = self.pop().expect("an empty queue holds any packet within its limit");
            self.tally.head += 1;
            drops.dropped(now, oldest, DropReason::Head);
        }
        self.push(packet, size);
    }
}

impl<P: Packet> Discipline<P> for Fifo<P> {
    fn enqueue(&mut self, now: Instant, packet: P, drops: &mut dyn DropSink<P>) {
        let size = self.capacity.size_of(&packet);
        if self.capacity.fits(size) {
            self.push(packet, size);
        } else {
            self.enqueue_full(now, packet, size, drops);
        }
    }

    fn admits(&mut self, packet: &P) -> bool {
        let size = self.capacity.size_of(packet);
        let admits = self.overflow == Overflow::Tail && self.packets.is_empty() && self.capacity.fits(size);
        if admits {
            self.capacity.take(packet, size);
            self.admitted += 1;
        }
        admits
    }

    fn departs(&mut self, packet: &P) {
        self.tally.sent(packet);
        self.capacity.release(packet);
        self.admitted -= 1;
    }

    fn take_back(&mut self, admitted: VecDeque<P>) {
        (self.packets, self.admitted) = (admitted, 0);
    }

    fn dequeue(&mut self, _now: Instant, _drops: &mut dyn DropSink<P>) -> Option<P> {
        self.tally.sent(self.packets.front()?);
        self.pop()
    }

    fn next_ready(&self, now: Instant) -> Option<Instant> {
        if self.packets.is_empty() { None } else { Some(now) }
    }

    fn backlog(&self) -> Backlog {
        self.capacity.backlog(self.packets.len() + self.admitted)
    }

    fn counters(&self, visit: &mut dyn FnMut(Counter<'_>)) {
        self.tally.show("fifo", visit);
    }
}

/// The unit of a limit.
#[derive(Clone, Debug)]
enum Measure {
    Packets,
    Bytes,
    Wire(LinkLayer),
    Cells(LinkLayer),
}

/// Used and free space of a queue, in the unit of its limit.
#[derive(Clone, Debug)]
pub(crate) struct Capacity {
    measure: Measure,
    limit: u64,
    used: u64,
    bytes: u64,
}

impl Capacity {
    /// `None` if the limit is in cells and `link_layer` has none.
    pub(crate) fn new(limit: Limit, link_layer: &LinkLayer) -> Option<Self> {
        Some(match limit {
            Limit::Packets(packets) => Self::of(Measure::Packets, packets.as_u64()),
            Limit::Bytes(bytes) => Self::of(Measure::Bytes, bytes.as_u64()),
            Limit::Wire(bytes) => Self::of(Measure::Wire(*link_layer), bytes.as_u64()),
            Limit::Cells(cells) => {
                link_layer.cells(ByteCount::new(1))?;
                Self::of(Measure::Cells(*link_layer), cells.as_u64())
            }
        })
    }

    const fn of(measure: Measure, limit: u64) -> Self {
        Self { measure, limit, used: 0, bytes: 0 }
    }

    /// Size of the packet in the unit of the limit.
    // Inlined: most limits are in packets.
    #[inline(always)]
    pub(crate) fn size_of(&self, packet: &impl Packet) -> u64 {
        if matches!(self.measure, Measure::Packets) { 1 } else { self.amount_of(packet) }
    }

    fn amount_of(&self, packet: &impl Packet) -> u64 {
        match &self.measure {
            Measure::Packets => 1,
            Measure::Bytes => packet.meta().ip_bytes().as_u64(),
            Measure::Wire(link_layer) => link_layer.on_wire(packet.meta().ip_bytes()).as_u64(),
            Measure::Cells(link_layer) => {
                let cells = link_layer.cells(packet.meta().ip_bytes());
                cells.expect("a framing either has cells for every size or for none").as_u64()
            }
        }
    }

    #[inline]
    pub(crate) const fn fits(&self, size: u64) -> bool {
        // `used` never exceeds the limit.
        size <= self.limit - self.used
    }

    /// True when the packet would fit after `freed` units were released.
    pub(crate) const fn would_fit(&self, size: u64, freed: u64) -> bool {
        size <= self.limit - self.used + freed
    }

    /// True while at least a third of the limit is in use.
    pub(crate) const fn is_third_full(&self) -> bool {
        self.used >= self.limit.div_ceil(3)
    }

    #[inline]
    pub(crate) const fn never_fits(&self, size: u64) -> bool {
        size > self.limit
    }

    #[inline]
    pub(crate) fn take(&mut self, packet: &impl Packet, size: u64) {
        self.used += size;
        self.bytes += u64::from(packet.meta().ip_len);
    }

    #[inline]
    pub(crate) fn release(&mut self, packet: &impl Packet) {
        self.used -= self.size_of(packet);
        self.bytes -= u64::from(packet.meta().ip_len);
    }

    #[inline]
    pub(crate) const fn backlog(&self, packets: usize) -> Backlog {
        Backlog { packets: PacketCount::new(packets as u64), bytes: ByteCount::new(self.bytes) }
    }
}

/// Counters of every queue, whatever its order of service.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    sent_packets: u64,
    sent_bytes: u64,
    pub(crate) tail: u64,
    pub(crate) head: u64,
    pub(crate) too_large: u64,
}

impl Tally {
    #[inline]
    pub(crate) fn sent(&mut self, packet: &impl Packet) {
        self.sent_packets += 1;
        self.sent_bytes += u64::from(packet.meta().ip_len);
    }

    pub(crate) fn show(&self, kind: &'static str, visit: &mut dyn FnMut(Counter<'_>)) {
        let counts = [
            ("sent_packets", self.sent_packets),
            ("sent_bytes", self.sent_bytes),
            ("dropped_tail", self.tail),
            ("dropped_head", self.head),
            ("dropped_too_large", self.too_large),
        ];
        Counter::all(kind, counts, visit);
    }
}

/// Refuses a queue that holds nothing, and a limit in cells on a line without them.
pub(crate) fn check_limit(limit: Limit, link_layer: &LinkLayer) -> Result<(), Problem> {
    let count = match limit {
        Limit::Packets(packets) => packets.as_u64(),
        Limit::Bytes(bytes) => bytes.as_u64(),
        Limit::Wire(bytes) => bytes.as_u64(),
        Limit::Cells(cells) => {
            link_layer.cells(ByteCount::new(1)).ok_or(Problem::NoCells)?;
            cells.as_u64()
        }
    };
    if count == 0 { Err(Problem::ZeroLimit) } else { Ok(()) }
}

impl Mechanism for Config {
    fn check(&self, link_layer: &LinkLayer) -> Result<(), Problem> {
        check_limit(self.limit, link_layer)
    }

    fn limit(&self) -> Option<Limit> {
        Some(self.limit)
    }

    fn build<P: Packet + Send + 'static>(&self, site: &mut Site<'_>) -> Built<P> {
        let fifo = Fifo::new(self.limit, self.drop, &site.environment.link_layer);
        Ok(Box::new(fifo.ok_or_else(|| site.refuse(Problem::NoCells))?))
    }
}

#[cfg(test)]
mod tests;

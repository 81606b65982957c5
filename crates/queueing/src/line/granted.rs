//! Transmission by grants: the line as a [`Station`](super::grants::Station) sees it.

use lastmile_packet::Packet;
use lastmile_units::{ByteCount, Instant, WireBytes};

use super::grants::Waiting;
use super::in_transmission::{PartlySent, Unsent};
use super::{Counted, Line, TransmissionSink, Transmitter};

impl<P: Packet> Line<P> {
    /// The next wake-up of a line with grants, of which a packet is ready at `next`.
    pub(super) fn due_by_grants(&mut self, now: Instant, next: Option<Instant>) -> Option<Instant> {
        let free = self.busy_until.max(now);
        if let Some(buffer) = &self.buffer {
            let room = if buffer.has_room() { self.queue.next_ready(now) } else { None };
            let filled = room.map(|ready| ready.max(now));
            let (waits, backlog) = (self.waits_for_grant(), self.unsent());
            let sent = match &mut self.transmitter {
                Transmitter::Granted(station) if waits => station.due(free, backlog),
                _ => None,
            };
            return filled.into_iter().chain(sent).min();
        }
        let ready = next?;
        if ready > free {
            // The station does not know of it yet.
            return Some(ready);
        }
        let backlog = self.unsent();
        match &mut self.transmitter {
            Transmitter::Granted(station) => station.due(free, backlog),
            _ => Some(free),
        }
    }

    /// The demand of a request: bytes on the wire of the buffer's packets, or of the queue's, as if each had their mean
    /// size, and of the packet under way.
    fn unsent(&self) -> Waiting {
        let (backlog, buffered) = match &self.buffer {
            Some(buffer) => (buffer.backlog(), Some(buffer.wire_bytes())),
            None => (self.queue.backlog(), None),
        };
        let packets = backlog.packets.as_u64();
        let mean = ByteCount::new(backlog.bytes.as_u64().div_ceil(packets.max(1)));
        let mean = if packets == 0 { 0 } else { self.meter.link().on_wire(mean).as_u64() };
        let next = self.partly_sent.iter().map(|begun| match begun.unsent {
            Unsent::Bytes { left, .. } => left,
            Unsent::Pieces(_) => 0,
        });
        let next = next.sum::<u64>();
        Waiting { bytes: (buffered.unwrap_or(mean * packets) + next).max(1), next, mean }
    }

    /// True if a packet has left the queue and is not sent.
    fn waits_for_grant(&self) -> bool {
        !self.partly_sent.is_empty() || self.buffer.as_ref().is_some_and(|buffer| !buffer.is_empty())
    }

    /// Moves packets from the queue into the buffer, as far as the queue lets them go and the buffer has room.
    fn fill(&mut self, now: Instant, observer: &mut impl TransmissionSink<P>) {
        let Some(buffer) = &mut self.buffer else { return };
        let mut drops = Counted { stats: &mut self.stats, observer };
        while buffer.has_room() && self.queue.next_ready(now).is_some_and(|ready| ready <= now) {
            let Some(packet) = self.queue.dequeue(now, &mut drops) else { return };
            buffer.push(packet, self.meter.link());
        }
    }

    /// Does what is due at `start`: asks, or sends a packet or a piece of one.
    pub(super) fn send_granted(&mut self, start: Instant, observer: &mut impl TransmissionSink<P>) {
        self.fill(start, observer);
        if self.buffer.is_some() && (start < self.busy_until || !self.waits_for_grant()) {
            return self.reschedule(start);
        }
        let backlog = self.unsent();
        let Transmitter::Granted(station) = &mut self.transmitter else { return };
        if !station.ask(start, backlog) && station.may_send(start) {
            let sent = if self.partly_sent.is_empty() { self.send_next(start, observer) } else { None };
            if sent.is_none() && !self.partly_sent.is_empty() {
                self.send_part(start, observer);
            }
        }
        if let Transmitter::Granted(station) = &mut self.transmitter {
            station.take_waits().for_each(|waited| observer.granted(waited));
        }
        self.reschedule(start);
        if self.partly_sent.is_empty() && self.backlog().packets.as_u64() == 0 {
            // An AQM or regulator dropped all that was ready.
            self.due = self.due.filter(|due| *due > start);
        }
    }

    /// Sends the next packet whole. If the grant is too small, the packet becomes the one under way.
    fn send_next(&mut self, start: Instant, observer: &mut impl TransmissionSink<P>) -> Option<()> {
        let packet = match &mut self.buffer {
            Some(buffer) => buffer.pop(self.meter.link())?,
            None => self.queue.dequeue(start, &mut Counted { stats: &mut self.stats, observer })?,
        };
        let (wire, fate) = self.cost_of(start, &packet);
        let Transmitter::Granted(station) = &mut self.transmitter else { return None };
        if station.fits(start, wire.as_u64()) {
            self.send_whole(start, &packet, wire, observer);
            self.depart(start, packet, fate, observer);
            self.piggyback(start);
            return Some(());
        }
        let level = self.queue.level_sent();
        let unsent = Unsent::Bytes { left: wire.as_u64(), begun: false };
        self.partly_sent.push(PartlySent { packet, level, unsent, fate });
        None
    }

    /// Sends as much as possible of the packet under way.
    fn send_part(&mut self, start: Instant, observer: &mut impl TransmissionSink<P>) {
        let Transmitter::Granted(station) = &mut self.transmitter else { return };
        let Some(PartlySent { packet, unsent: Unsent::Bytes { left, begun }, .. }) = self.partly_sent.last_mut() else {
            // Begun before the line had grants.
            return self.send_piece(start, observer);
        };
        let Some(piece) = station.piece(start, *left) else { return };
        if !std::mem::replace(begun, true) {
            self.stats.transmitted.add(packet);
            let uninterrupted = station.rate().time_for(WireBytes::new(*left));
            let waited = start.since(packet.meta().arrived);
            observer.transmitted(start, start + uninterrupted, waited, packet);
            packet.meta_mut().class = None;
        }
        *left -= piece;
        let last = *left == 0;
        self.busy_until = station.send(start, piece, start <= self.busy_until, last);
        self.stats.wire_bytes += WireBytes::new(piece);
        if last && let Some(PartlySent { packet, fate, .. }) = self.partly_sent.pop() {
            self.depart(start, packet, fate, observer);
        }
        self.piggyback(start);
    }

    fn piggyback(&mut self, start: Instant) {
        let in_queue = || self.buffer.is_none() && self.queue.next_ready(start).is_some_and(|ready| ready <= start);
        if self.waits_for_grant() || in_queue() {
            let backlog = self.unsent();
            if let Transmitter::Granted(station) = &mut self.transmitter {
                station.piggyback(start, backlog);
            }
        }
    }
}

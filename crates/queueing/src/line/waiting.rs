//! Packets of a FIFO in front of a plain line wait in the ring of the line, behind those on the wire. A packet stays at
//! its place when its transmission begins: each move is a copy. Nothing but the line itself decides when it begins, so
//! a simulator has no event for it.
//!
//! Cost: a copy of each packet, and two calls of the queue.

use lastmile_packet::Packet;
use lastmile_units::Instant;

use super::Line;
use super::counted::TransmissionSink;
use super::in_flight::InFlight;
use crate::ring;

impl<P: Packet> Line<P> {
    /// [`Line::transmit`] need not be called in time: [`Line::catch_up`] before the line is asked for more than the
    /// packets on the wire is enough.
    #[must_use]
    #[inline]
    pub fn may_be_late(&self) -> bool {
        self.in_flight.waiting > 0
    }

    /// Starts the transmissions that are due before the events of `now`. A packet due exactly now may be the one
    /// enqueued next, whether the caller is late or on time, unless others wait in the ring.
    #[inline(always)]
    pub fn catch_up(&mut self, now: Instant, observer: &mut impl TransmissionSink<P>) {
        if self.due.is_some_and(|due| due < now || (due == now && self.may_be_late())) {
            let until = if self.may_be_late() { now } else { Instant::from_ps(now.as_ps() - 1) };
            self.transmit(until, observer);
        }
    }

    /// A packet that the queue has admitted waits, or departs at once.
    #[inline(always)]
    pub(super) fn wait(&mut self, now: Instant, packet: P, observer: &mut impl TransmissionSink<P>) {
        ring::push(&mut self.in_flight.packets, packet);
        self.in_flight.waiting += 1;
        if self.in_flight.waiting > 1 {
            return;
        }
        if self.busy_until <= now {
            self.send_waiting(now, observer);
        } else {
            self.due = Some(self.busy_until);
        }
    }

    /// Sends the oldest packet that waits.
    #[inline(always)]
    pub(super) fn send_waiting(&mut self, start: Instant, observer: &mut impl TransmissionSink<P>) {
        let InFlight { packets, waiting } = &mut self.in_flight;
        let oldest = packets.len() - *waiting;
        let Some(packet) = packets.get_mut(oldest) else { return };
        let wire = self.meter.on_wire(packet.meta().ip_bytes());
        self.busy_until = self.transmitter.send(start, wire, start <= self.busy_until);
        self.stats.wire_bytes += wire;
        self.stats.transmitted.add(packet);
        observer.transmitted(start, self.busy_until, start.since(packet.meta().arrived), packet);
        self.queue.departs(packet);
        let meta = packet.meta_mut();
        (meta.class, meta.arrived) = (None, self.busy_until + self.delay + self.far_end);
        *waiting -= 1;
        self.due = (*waiting > 0).then_some(self.busy_until);
    }
}

//! Interrupted transmissions: packets that a line has begun to send and may interrupt.
//!
//! The line sends a packet in pieces ([`lastmile_linklayer::Interleave`]). Before each piece it
//! asks the queue whether a more urgent packet is ready
//! ([`Discipline::level_ready`](crate::Discipline::level_ready)). That packet is sent first, whole,
//! unless it is interrupted in turn. Packets that have begun therefore form a stack, ordered by
//! urgency with the most urgent at the top; packets of one level keep the order in which they
//! began. The most urgent packet waits for at most one piece. A packet arrives when its last piece
//! does.
//! Cost: a wake-up for each piece.

use lastmile_packet::Packet;
use lastmile_units::{Instant, WireBytes};

use super::Line;
use super::counted::{Counted, Fate, TransmissionSink};
use super::in_transmission::{PartlySent, Unsent};

impl<P: Packet> Line<P> {
    /// Bits on the wire of all packets that count as transmitted: those of packets under way in full.
    #[must_use]
    pub fn begun_bits(&self) -> u64 {
        let left: WireBytes = self.partly_sent.iter().map(|packet| packet.unsent.left_of_begun()).sum();
        (self.stats.wire_bytes + left).bits()
    }

    /// Sends the next piece at `start`: of a ready packet that is more urgent than the top of the
    /// stack, else of the top.
    pub(super) fn send_piece(&mut self, start: Instant, observer: &mut impl TransmissionSink<P>) {
        let ready = self.queue.level_ready(start);
        let first = self.partly_sent.last().map(|top| top.level);
        if ready.is_some_and(|ready| first.is_none_or(|level| ready < level)) {
            self.begin(start, observer);
        }
        let Some(top) = self.partly_sent.last_mut() else {
            self.reschedule(start);
            // An AQM or regulator dropped all that was ready.
            self.due = self.due.filter(|due| *due > start);
            return;
        };
        let piece = top.unsent.next().expect("a packet that has left is not under way");
        self.occupy(start, piece);
        if self.partly_sent.last().is_some_and(|top| top.unsent.is_empty()) {
            let PartlySent { packet, fate, .. } = self.partly_sent.pop().expect("just seen");
            self.depart(start, packet, fate, observer);
        }
        self.reschedule(start);
    }

    fn begin(&mut self, start: Instant, observer: &mut impl TransmissionSink<P>) {
        let mut drops = Counted { stats: &mut self.stats, observer };
        let Some(mut packet) = self.queue.dequeue(start, &mut drops) else { return };
        let level = self.queue.level_sent();
        let copies = self.copies(start);
        let pieces = self.meter.link().pieces(self.bytes_to_send(&packet, copies == 0));
        let fate = Fate::of(copies, copies > 0 && self.spoils(pieces.sum()));
        self.stats.transmitted.add(&packet);
        let uninterrupted = self.transmitter.time_for(start, pieces);
        let waited = start.since(packet.meta().arrived);
        observer.transmitted(start, start + uninterrupted, waited, &packet);
        packet.meta_mut().class = None;
        // An AQM may drop the urgent packet and return a less urgent one, which is then inserted
        // further down.
        let position = self.partly_sent.iter().position(|begun| begun.level <= level).unwrap_or(self.partly_sent.len());
        self.partly_sent.insert(position, PartlySent { packet, level, unsent: Unsent::Pieces(pieces), fate });
    }
}

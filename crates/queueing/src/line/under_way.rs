//! Packets that a line has begun to send, on a line whose packets may be interrupted.
//!
//! A packet goes out piece by piece ([`lastmile_linklayer::Interleave`]). Before each piece the line asks its queue whether something more
//! urgent is ready ([`Discipline::level_ready`](crate::Discipline::level_ready)); that goes first, whole, unless it is interrupted
//! in turn. So packets that have begun form a stack, none less urgent than the one below it and of one level in the order in which they
//! began: packets of a level keep their order, and a piece is all that the most urgent packet ever waits for. A packet arrives when its
//! last piece does.
//! Cost: a wake-up for each piece.

use lastmile_linklayer::Pieces;
use lastmile_packet::Packet;
use lastmile_units::{Duration, Instant};

use super::{Counted, Line, Observer};
use crate::{DropReason, DropSink};

/// A packet whose transmission has begun.
pub(super) struct UnderWay<P> {
    pub(super) packet: P,
    pub(super) level: usize,
    pieces: Pieces,
    /// It will be lost on the wire.
    lost: bool,
}

impl<P: Packet> Line<P> {
    /// Sends the next piece at `start`: of a packet that is more urgent than the one under way, or of that.
    pub(super) fn send_piece(&mut self, start: Instant, observer: &mut impl Observer<P>) {
        let ready = self.queue.level_ready(start);
        let first = self.under_way.last().map(|top| top.level);
        if ready.is_some_and(|ready| first.is_none_or(|level| ready < level)) {
            self.begin(start, observer);
        }
        let Some(top) = self.under_way.last_mut() else {
            self.reschedule(start);
            // An AQM or regulator dropped what waited.
            self.due = self.due.filter(|due| *due > start);
            return;
        };
        let piece = top.pieces.next().expect("a packet that has left is not under way");
        self.occupy(start, piece);
        if self.under_way.last().is_some_and(|top| top.pieces.left() == 0) {
            let UnderWay { mut packet, lost, .. } = self.under_way.pop().expect("just seen");
            if lost {
                let mut drops = Counted { stats: &mut self.stats, observer };
                drops.dropped(start, packet, DropReason::WireLoss);
            } else {
                packet.meta_mut().arrived = self.busy_until + self.delay;
                self.in_flight.push_back(packet);
            }
        }
        self.reschedule(start);
    }

    fn begin(&mut self, start: Instant, observer: &mut impl Observer<P>) {
        let mut drops = Counted { stats: &mut self.stats, observer };
        let Some(mut packet) = self.queue.dequeue(start, &mut drops) else { return };
        let level = self.queue.level_sent();
        let lost = self.loses();
        let pieces = self.meter.link().pieces(self.bytes_to_send(&packet, lost));
        self.stats.transmitted.add(&packet);
        let alone = self.transmitter.map_or(Duration::ZERO, |transmitter| {
            pieces.map(|piece| transmitter.rate().time_for(piece)).sum::<Duration>()
        });
        let waited = start.since(packet.meta().arrived);
        observer.transmitted(start, start + alone, waited, &packet);
        packet.meta_mut().class = None;
        // An AQM may drop what was ready and leave something that is no more urgent than what is under way: that goes after it.
        let place = self.under_way.iter().position(|begun| begun.level <= level).unwrap_or(self.under_way.len());
        self.under_way.insert(place, UnderWay { packet, level, pieces, lost });
    }
}

//! A queue whose next packet has a known size, for schedulers that decide by it.
//!
//! A discipline shows the size of a packet only when it dequeues the packet. The sizes of the backlog are therefore
//! recorded in order of arrival, and the first is taken as that of the next packet. This is exact for a FIFO, with
//! either end dropped, and for an AQM over one. Where packets overtake one another it is a guess.
//!
//! Cost: O(1) a packet where packets depart in order; else a search among the sizes.

use std::collections::VecDeque;

use lastmile_linklayer::LinkLayer;
use lastmile_packet::Packet;
use lastmile_units::{Instant, WireBytes};

use crate::{Discipline as _, DropReason, DropSink, Node};

/// A queue and the sizes of its packets.
pub(crate) struct SizedQueue<P> {
    pub(crate) queue: Node<P>,
    /// Sizes of the packets in the queue as they arrived, in bytes on the wire, in order of arrival.
    sizes: VecDeque<u32>,
}

impl<P: Packet> SizedQueue<P> {
    pub(crate) const fn new(queue: Node<P>) -> Self {
        Self { queue, sizes: VecDeque::new() }
    }

    pub(crate) fn enqueue(&mut self, now: Instant, packet: P, link_layer: &LinkLayer, drops: &mut dyn DropSink<P>) {
        self.sizes.push_back(on_wire(link_layer, &packet));
        let mut tracker = SizeTracker { sizes: &mut self.sizes, link_layer, arriving: true, drops };
        self.queue.enqueue(now, packet, &mut tracker);
    }

    /// The next packet and its size on the wire.
    pub(crate) fn dequeue(
        &mut self,
        now: Instant,
        link_layer: &LinkLayer,
        drops: &mut dyn DropSink<P>,
    ) -> Option<(P, WireBytes)> {
        let mut tracker = SizeTracker { sizes: &mut self.sizes, link_layer, arriving: false, drops };
        let packet = self.queue.dequeue(now, &mut tracker)?;
        let wire = on_wire(link_layer, &packet);
        remove_size(&mut self.sizes, wire, false);
        Some((packet, WireBytes::new(wire.into())))
    }

    /// Size of the next packet; zero without one.
    pub(crate) fn next_size(&self) -> WireBytes {
        WireBytes::new(self.sizes.front().copied().unwrap_or_default().into())
    }
}

/// Size of a packet on the wire, in bytes.
fn on_wire(link_layer: &LinkLayer, packet: &impl Packet) -> u32 {
    let wire = link_layer.on_wire(packet.meta().ip_bytes()).as_u64();
    u32::try_from(wire).expect("a packet of at most 64 KiB and its overhead")
}

/// Updates the sizes when the discipline drops or creates packets.
struct SizeTracker<'a, P> {
    sizes: &'a mut VecDeque<u32>,
    link_layer: &'a LinkLayer,
    arriving: bool,
    drops: &'a mut dyn DropSink<P>,
}

impl<P: Packet> DropSink<P> for SizeTracker<'_, P> {
    fn dropped(&mut self, now: Instant, packet: P, reason: DropReason) {
        use DropReason::{Aqm, Policed, Tail, TooLarge};
        let newest = self.arriving && matches!(reason, Tail | TooLarge | Aqm | Policed);
        remove_size(self.sizes, on_wire(self.link_layer, &packet), newest);
        self.drops.dropped(now, packet, reason);
    }

    fn created(&mut self, now: Instant, packet: &P) {
        self.sizes.push_back(on_wire(self.link_layer, packet));
        self.drops.created(now, packet);
    }
}

/// Removes the oldest entry of this size, or the newest. If the packet changed its size in the
/// queue, removes the oldest of any size.
fn remove_size(sizes: &mut VecDeque<u32>, size: u32, newest: bool) {
    let same = |other: &u32| *other == size;
    let position = if newest { sizes.iter().rposition(same) } else { sizes.iter().position(same) };
    sizes.remove(position.unwrap_or(0));
}

#[cfg(test)]
mod tests {
    use lastmile_linklayer::Framing;
    use lastmile_packet::Meta;

    use super::*;

    const NOW: Instant = Instant::ZERO;

    fn plain() -> LinkLayer {
        LinkLayer::new(0, Framing::None).expect("no overhead")
    }

    fn packet(ip_len: u16) -> Meta {
        Meta { ip_len, ..Meta::default() }
    }

    /// Two of three packets have equal sizes. A packet refused on arrival is the newest of its size;
    /// any other drop is the oldest.
    #[test]
    fn the_size_of_a_dropped_packet_is_removed_at_its_position() {
        use DropReason::{AckFiltered, Aqm, Head, Policed, Tail, TooLarge};
        let left = |arriving, reason| {
            let mut sizes = VecDeque::from([100, 200, 100]);
            let mut dropped = 0;
            let mut sink = |_, _, _| dropped += 1;
            let mut tracker = SizeTracker { sizes: &mut sizes, link_layer: &plain(), arriving, drops: &mut sink };
            tracker.dropped(NOW, packet(100), reason);
            assert_eq!(dropped, 1, "it is handed on");
            Vec::from(sizes)
        };
        for reason in [Tail, TooLarge, Aqm, Policed] {
            assert_eq!(left(true, reason), [100, 200], "{reason:?}");
            assert_eq!(left(false, reason), [200, 100], "{reason:?}");
        }
        for reason in [Head, AckFiltered] {
            assert_eq!([left(true, reason), left(false, reason)], [[200, 100]; 2], "{reason:?}");
        }
    }

    #[test]
    fn a_packet_of_changed_size_removes_the_oldest_entry() {
        let mut sizes = VecDeque::from([100, 200]);
        remove_size(&mut sizes, 300, false);
        assert_eq!(sizes, [200]);
    }

    #[test]
    fn a_packet_made_below_is_recorded_and_reported() {
        struct Made(usize);
        impl DropSink<Meta> for Made {
            fn dropped(&mut self, _: Instant, packet: Meta, _: DropReason) {
                panic!("{packet:?} dropped");
            }
            fn created(&mut self, _: Instant, _: &Meta) {
                self.0 += 1;
            }
        }
        let (mut sizes, mut made) = (VecDeque::from([100]), Made(0));
        SizeTracker { sizes: &mut sizes, link_layer: &plain(), arriving: true, drops: &mut made }
            .created(NOW, &packet(40));
        assert_eq!((sizes, made.0), (VecDeque::from([100, 40]), 1));
    }
}

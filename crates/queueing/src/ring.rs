//! Rings of packets that stay close to what they hold: with very many flows the packets that wait or fly are a good part
//! of all memory, and a ring uses all that it has ever had.
//!
//! A ring grows by a quarter, a large one by a sixteenth, not to twice its size; a large one that has become nearly empty
//! gives memory back. What few packets have lies in a ring of its own, beside that of the packets ([`Slot`]).
//!
//! Cost: O(1) a packet, in the mean: a large ring moves eight packets for each by which it grows, and gives up space only
//! after seven eighths of its packets have left.

use std::collections::VecDeque;

use lastmile_packet::{Packet, Slot};

/// A ring grows by at least so many places.
const LEAST_GROWTH: usize = 16;
/// From so many places on, a ring is large.
const LARGE: usize = 4096;

/// Packets in the order in which they came.
#[derive(Clone, Debug)]
pub(crate) struct Ring<P: Packet> {
    slots: VecDeque<P::Slot>,
    /// What of the packets lies apart, in their order.
    apart: VecDeque<[u32; 2]>,
}

impl<P: Packet> Ring<P> {
    pub(crate) const fn new() -> Self {
        Self { slots: VecDeque::new(), apart: VecDeque::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Appends a packet.
    // Out of line it takes a third more instructions, for every packet.
    #[inline(always)]
    pub(crate) fn push(&mut self, packet: P) {
        if self.slots.len() == self.slots.capacity() {
            grow(&mut self.slots);
        }
        let apart = &mut self.apart;
        self.slots.push_back(P::Slot::store(packet, |pair| push_tightly(apart, pair)));
    }

    /// Takes the oldest packet.
    // As above.
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<P> {
        if self.slots.capacity() > LARGE {
            shrink(&mut self.slots);
        }
        if P::Slot::WHOLE {
            return self.slots.pop_front().map(|slot| slot.load(|| [0; 2]));
        }
        if let Some(packet) = self.slots.front()?.copied() {
            self.slots.pop_front();
            return Some(packet);
        }
        self.load()
    }

    /// The same, where something lies apart.
    #[inline(never)]
    fn load(&mut self) -> Option<P> {
        let apart = &mut self.apart;
        let slot = self.slots.pop_front()?;
        Some(slot.load(|| pop_tightly(apart).expect("what was stored with the packet")))
    }

    /// What is stored of the packet that comes out when `before` others have: 0 for the oldest.
    #[inline]
    pub(crate) fn get(&self, before: usize) -> Option<&P::Slot> {
        self.slots.get(before)
    }

    /// What is stored of all packets, the oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &P::Slot> {
        self.slots.iter()
    }
}

/// Appends an item.
#[inline]
pub(crate) fn push_tightly<T>(ring: &mut VecDeque<T>, item: T) {
    if ring.len() == ring.capacity() {
        grow(ring);
    }
    ring.push_back(item);
}

/// Makes room where there is none.
#[cold]
#[inline(never)]
fn grow<T>(ring: &mut VecDeque<T>) {
    let part = if ring.len() < LARGE { 4 } else { 16 };
    ring.reserve_exact((ring.len() / part).max(LEAST_GROWTH));
}

/// Takes the oldest item.
#[inline]
pub(crate) fn pop_tightly<T>(ring: &mut VecDeque<T>) -> Option<T> {
    if ring.capacity() > LARGE {
        shrink(ring);
    }
    ring.pop_front()
}

/// Gives back what a large ring no longer needs.
#[inline(never)]
fn shrink<T>(ring: &mut VecDeque<T>) {
    if ring.len() < ring.capacity() / 8 {
        ring.shrink_to(ring.len() * 2);
    }
}

#[cfg(test)]
mod tests {
    use lastmile_packet::{Meta, Options, SeqNumber};
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Packets with and without options, in and out, against a plain queue.
        #[test]
        fn packets_come_out_in_their_order_as_they_went_in(
            steps in prop::collection::vec((prop::bool::weighted(0.6), any::<u32>()), 1..300),
        ) {
            let (mut ring, mut plain) = (Ring::new(), VecDeque::new());
            for (comes, number) in steps {
                if comes {
                    let mut packet = Meta { seq: SeqNumber::new(number), ..Meta::default() };
                    if number % 3 == 0 {
                        packet.set_options(Options::NONE.with_timestamps(number, number / 3));
                    }
                    ring.push(packet);
                    plain.push_back(packet);
                } else {
                    prop_assert_eq!(ring.pop(), plain.pop_front());
                }
                prop_assert_eq!(ring.len(), plain.len());
            }
        }
    }

    #[test]
    fn a_ring_is_never_much_larger_than_what_it_held() {
        let mut ring = VecDeque::new();
        for number in 0..100_000 {
            push_tightly(&mut ring, number);
            let spare = if number < LARGE * 5 / 4 { number / 4 } else { number / 16 };
            assert!(ring.capacity() <= ring.len() + spare.max(LEAST_GROWTH));
        }
        assert!(ring.iter().copied().eq(0..100_000));
    }

    #[test]
    fn a_large_ring_gives_back_what_it_no_longer_needs() {
        let mut ring = VecDeque::new();
        for number in 0..100_000 {
            push_tightly(&mut ring, number);
        }
        for number in 0..100_000 {
            assert_eq!(pop_tightly(&mut ring), Some(number));
            assert!(ring.capacity() <= (8 * (ring.len() + 2)).max(LARGE), "{} of {}", ring.len(), ring.capacity());
        }
        assert_eq!(pop_tightly(&mut ring), None);
    }
}

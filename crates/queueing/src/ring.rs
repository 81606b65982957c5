//! Growth of long rings of packets: by a quarter, where `VecDeque` doubles its capacity. Each slot of a ring is used in
//! turn, so that spare ones take memory, too.
//!
//! Cost: a comparison a packet; five moves of each packet while a ring grows, where doubling has two.

use std::collections::VecDeque;

/// Appends a packet.
#[inline(always)]
pub(crate) fn push<P>(ring: &mut VecDeque<P>, packet: P) {
    if ring.len() == ring.capacity() {
        grow(ring);
    }
    ring.push_back(packet);
}

#[cold]
#[inline(never)]
fn grow<P>(ring: &mut VecDeque<P>) {
    ring.reserve_exact((ring.len() / 4).max(4));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A capacity of five quarters of the length is the largest.
    #[test]
    fn at_most_a_fifth_of_a_long_ring_is_spare() {
        let mut ring = VecDeque::new();
        for packet in 0..100_000_u32 {
            push(&mut ring, packet);
            // As in use: the ring turns.
            let first = ring.pop_front().unwrap();
            push(&mut ring, first);
            assert!(ring.len() < 1_000 || ring.capacity() <= ring.len() * 5 / 4 + 1, "{}", ring.capacity());
        }
    }
}

//! Rings of packets that grow by a quarter, not to twice their size: with very many flows the packets that wait or fly are
//! a good part of all memory, and a ring uses all that it has ever had.

use std::collections::VecDeque;

/// A ring grows by at least so many places.
const LEAST_GROWTH: usize = 16;

/// Appends a packet.
#[inline]
pub(crate) fn push_tightly<P>(ring: &mut VecDeque<P>, packet: P) {
    if ring.len() == ring.capacity() {
        ring.reserve_exact((ring.len() / 4).max(LEAST_GROWTH));
    }
    ring.push_back(packet);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_is_never_much_larger_than_what_it_held() {
        let mut ring = VecDeque::new();
        for number in 0..100_000 {
            push_tightly(&mut ring, number);
            assert!(ring.capacity() <= ring.len() + (ring.len() / 4).max(LEAST_GROWTH));
        }
        assert!(ring.iter().copied().eq(0..100_000));
    }
}

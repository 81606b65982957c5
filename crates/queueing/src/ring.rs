//! Rings of packets that stay close to what they hold: with very many flows the packets that wait or fly are a good part
//! of all memory, and a ring uses all that it has ever had.
//!
//! A ring grows by a quarter, a large one by a sixteenth, not to twice its size; a large one that has become nearly empty
//! gives memory back.
//!
//! Cost: O(1) a packet, in the mean: a large ring moves eight packets for each by which it grows, and gives up space only
//! after seven eighths of its packets have left.

use std::collections::VecDeque;

/// A ring grows by at least so many places.
const LEAST_GROWTH: usize = 16;
/// From so many places on, a ring is large.
const LARGE: usize = 4096;

/// Appends a packet.
#[inline]
pub(crate) fn push_tightly<P>(ring: &mut VecDeque<P>, packet: P) {
    if ring.len() == ring.capacity() {
        let part = if ring.len() < LARGE { 4 } else { 16 };
        ring.reserve_exact((ring.len() / part).max(LEAST_GROWTH));
    }
    ring.push_back(packet);
}

/// Takes the oldest packet.
#[inline]
pub(crate) fn pop_tightly<P>(ring: &mut VecDeque<P>) -> Option<P> {
    if ring.capacity() > LARGE && ring.len() < ring.capacity() / 8 {
        ring.shrink_to(ring.len() * 2);
    }
    ring.pop_front()
}

#[cfg(test)]
mod tests {
    use super::*;

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

//! The identifications of a sender's IPv4 headers, and the packets that they show to be missing.
//!
//! A sender that counts its packets in them, as Linux does for each connection, shows by a step of more than one
//! that it sent others, which were lost before the capture. Nothing is concluded from senders whose steps are
//! mostly others (RFC 6864 asks for none), nor from a step back, which is one of packets out of order.

/// The largest step that counts as missing packets.
const FARTHEST: u16 = 256;

/// The identifications of a direction.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Numbers {
    /// The IP identification of the last packet and the number of its segments (one identification each).
    last: Option<(u16, u16)>,
    /// Steps from packet to packet, those of one, and short ones forward or back.
    steps: u64,
    single: u64,
    short: u64,
    missing: u16,
}

impl Numbers {
    /// Records a packet of this many segments.
    pub(super) fn note(&mut self, id: u16, segments: u16) {
        self.missing = 0;
        if let Some((last, of_last)) = self.last {
            let step = id.wrapping_sub(last.wrapping_add(of_last));
            self.steps += 1;
            self.single += u64::from(step == 0);
            let is_back = step >= u16::MAX - FARTHEST;
            // A step back of one is the number itself again.
            self.short += u64::from(step < FARTHEST || is_back && step < u16::MAX);
            if step < FARTHEST && self.single * 2 > self.steps {
                self.missing = step;
            } else if is_back {
                // Older than the last.
                return;
            }
        }
        self.last = Some((id, segments.max(1)));
    }

    /// True for a sender that counts its packets, also if the network reorders them, or together with those of others.
    pub(super) fn are_in_order(&self) -> bool {
        self.short * 2 > self.steps
    }

    /// The number of packets that are missing between the last two.
    pub(super) fn missing(&self) -> u16 {
        self.missing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(ids: &[(u16, u16)]) -> Vec<u16> {
        let mut numbers = Numbers::default();
        ids.iter().map(|&(id, segments)| (numbers.note(id, segments), numbers.missing()).1).collect()
    }

    #[test]
    fn a_step_of_more_than_one_shows_missing_packets() {
        // Over the end of 16 bits, a packet of three segments, and one out of order.
        let ids = [(65_533, 1), (65_534, 1), (65_535, 1), (2, 1), (3, 3), (6, 1), (9, 1), (7, 1), (10, 1)];
        assert_eq!(missing(&ids), [0, 0, 0, 2, 0, 0, 2, 0, 0]);
    }

    /// Pairs that change places, a host's packets to others between, and senders that do not count.
    #[test]
    fn numbers_that_mostly_step_a_little_are_in_order() {
        let in_order = |ids: &[u16]| {
            let mut numbers = Numbers::default();
            ids.iter().for_each(|id| numbers.note(*id, 1));
            numbers.are_in_order()
        };
        assert!(in_order(&[1, 3, 2, 5, 4, 7, 6, 9, 8]) && in_order(&[65_530, 65_534, 2, 9]));
        assert!(!in_order(&[7, 9_000, 40_000, 3, 20_000]) && !in_order(&[5; 9]) && !in_order(&[]));
    }

    #[test]
    fn senders_that_do_not_count_show_nothing() {
        assert!(missing(&[(7, 1), (13, 1), (19, 1), (20, 1), (30, 1)]).iter().all(|missing| *missing == 0));
        assert!(missing(&[(0, 1); 9]).iter().all(|missing| *missing == 0));
    }
}

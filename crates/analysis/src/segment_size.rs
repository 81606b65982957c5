//! How large a full segment of a direction is.
//!
//! Captures at hosts show packets before they are cut (TSO, GSO) or after they were merged (GRO): several segments in one of up to 64 kB. The
//! largest packet is a segment where no smaller size is known; else it is what the receiver announced (MSS: RFC 9293, section 3.7.1) less
//! the options of each segment (RFC 6691).

/// What any path carries in IPv6 (RFC 8200, section 5), less 60 bytes of headers.
const ANY_PATH: u64 = 1_220;
/// Ethernet's 1500 bytes less 40 of headers.
const OF_ETHERNET: u64 = 1_460;
/// No link has larger packets than 9216 bytes, less 40 of headers.
const LARGEST: u64 = 9_176;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SegmentSize {
    /// What the receiver announced.
    pub(crate) announced: Option<u16>,
    /// Bytes of options that every segment has.
    pub(crate) options: u64,
    /// Payload of the largest packet, and of the largest that can be one segment.
    largest: u64,
    one: u64,
}

impl SegmentSize {
    /// A packet with this payload passes.
    pub(crate) fn note(&mut self, payload: u64) {
        self.largest = self.largest.max(payload);
        if payload <= self.announced.map_or(OF_ETHERNET, u64::from) {
            self.one = self.one.max(payload);
        }
    }

    /// A full segment.
    pub(crate) fn mss(self) -> u64 {
        let announced = self.announced.map(u64::from);
        if self.largest <= announced.unwrap_or(OF_ETHERNET) {
            self.largest
        } else if self.one >= ANY_PATH && self.largest.is_multiple_of(self.one) {
            self.one
        } else {
            match announced {
                Some(announced) => announced.saturating_sub(self.options).max(1),
                None if self.largest > LARGEST => ANY_PATH,
                None => self.largest,
            }
        }
    }

    /// True for a packet after which its sender had more: it holds full segments and nothing else.
    pub(crate) fn is_full(self, payload: u64) -> bool {
        let mss = self.mss();
        // Nobody announced it: what is merged cannot be counted in segments.
        let is_guessed = self.announced.is_none() && mss == ANY_PATH;
        payload > 0 && payload >= mss && (is_guessed || payload.is_multiple_of(mss))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(announced: Option<u16>, payloads: &[u64]) -> SegmentSize {
        let mut size = SegmentSize { announced, options: 12, ..SegmentSize::default() };
        payloads.iter().for_each(|payload| size.note(*payload));
        size
    }

    #[test]
    fn merged_segments_are_full_if_all_of_them_are() {
        assert_eq!(after(Some(1460), &[100, 1000]).mss(), 1000, "the path has a smaller one");
        let merged = after(Some(1460), &[2 * 1448, 45 * 1448, 100]);
        assert_eq!(merged.mss(), 1448);
        assert!(merged.is_full(1448) && merged.is_full(7 * 1448) && !merged.is_full(20_000) && !merged.is_full(0));
        let smaller = after(Some(1460), &[1400, 3 * 1400]);
        assert!(smaller.is_full(1400) && smaller.is_full(2800) && !smaller.is_full(1448));
    }

    #[test]
    fn without_a_handshake_sizes_that_were_seen_tell() {
        let plain = after(None, &[1448, 300]);
        assert!(plain.is_full(1448) && !plain.is_full(1447));
        let merged = after(None, &[1448, 5 * 1448]);
        assert!(merged.is_full(1448) && merged.is_full(2 * 1448) && !merged.is_full(2000));
        let jumbo = after(None, &[8948, 300]);
        assert!(jumbo.is_full(8948) && !jumbo.is_full(1448));
        let never_alone = after(None, &[20 * 1448, 600]);
        assert!(never_alone.is_full(2 * 1448) && !never_alone.is_full(600));
    }
}

//! The size of a full segment of a direction.
//!
//! Captures at hosts show packets before segmentation (TSO, GSO) or after merging (GRO): several
//! segments in one packet of up to 64 kB. A segment has the size of the largest packet if no
//! smaller size is known. Otherwise it has the size that the receiver announced (MSS: RFC 9293,
//! section 3.7.1) less the options of each segment (RFC 6691). Packets below the payload that paths carry are of an
//! application that writes less.

/// The payload that every IPv6 path carries (RFC 8200, section 5): 1280 bytes less 60 of headers.
const ANY_PATH: u64 = 1_220;
/// The payload that hosts of IPv4 take without an announcement (RFC 9293, section 3.7.1): no path of today carries
/// less.
const LEAST: u64 = 536;
/// The payload of an Ethernet packet: 1500 bytes less 40 of headers.
const OF_ETHERNET: u64 = 1_460;
/// The largest payload of one segment on any link: 9216 bytes less 40 of headers.
const LARGEST: u64 = 9_176;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SegmentSize {
    /// The MSS that the receiver announced.
    announced: Option<u16>,
    /// Bytes of options in every segment.
    options: u64,
    /// Payload of the largest packet, and of the largest that can be one segment.
    largest: u64,
    one: u64,
    /// The size of a full segment, from the fields above.
    mss: u64,
}

impl SegmentSize {
    /// Records the MSS that the receiver announced.
    pub(crate) fn announce(&mut self, mss: Option<u16>) {
        self.announced = mss;
        self.mss = self.derived();
    }

    /// Records the bytes of options in every segment.
    pub(crate) fn with_options(&mut self, bytes: u64) {
        if self.options != bytes {
            self.options = bytes;
            self.mss = self.derived();
        }
    }

    /// Records the payload of a packet.
    pub(crate) fn note(&mut self, payload: u64) {
        let can_be_one = payload <= self.announced.map_or(OF_ETHERNET, u64::from);
        if payload > self.largest || can_be_one && payload > self.one {
            self.largest = self.largest.max(payload);
            if can_be_one {
                self.one = self.one.max(payload);
            }
            self.mss = self.derived();
        }
    }

    /// The size of a full segment.
    pub(crate) const fn mss(self) -> u64 {
        self.mss
    }

    /// The segments in a packet with this payload.
    pub(crate) fn segments(self, payload: u64) -> u64 {
        let full = if self.is_guessed() { OF_ETHERNET } else { self.mss.max(1) };
        if payload <= full { 1 } else { payload.div_ceil(full) }
    }

    /// True without an announced MSS and before a segment of which the larger packets consist was captured.
    fn is_guessed(self) -> bool {
        self.announced.is_none() && self.largest > LARGEST && !self.consists_of_one()
    }

    fn consists_of_one(self) -> bool {
        self.one >= ANY_PATH && self.largest.is_multiple_of(self.one)
    }

    fn derived(self) -> u64 {
        let announced = self.announced.map(u64::from);
        if self.largest <= announced.unwrap_or(OF_ETHERNET) {
            let least = announced.map_or(LEAST, |announced| LEAST.min(announced.saturating_sub(self.options)));
            self.largest.max(least)
        } else if self.consists_of_one() {
            self.one
        } else {
            match announced {
                Some(announced) => announced.saturating_sub(self.options).max(1),
                None if self.is_guessed() => ANY_PATH,
                None => self.largest,
            }
        }
    }

    /// True for a packet after which the sender had more data: it consists of full segments only.
    pub(crate) fn is_full(self, payload: u64) -> bool {
        let mss = self.mss;
        if payload == mss {
            return payload > 0;
        }
        // Without an announced MSS merged segments cannot be counted.
        payload > mss && (self.is_guessed() || payload.is_multiple_of(mss))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(announced: Option<u16>, payloads: &[u64]) -> SegmentSize {
        let mut size = SegmentSize::default();
        size.announce(announced);
        size.with_options(12);
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
    fn small_packets_alone_are_those_of_an_application() {
        let small = after(Some(1460), &[60, 200]);
        assert!(!small.is_full(60) && !small.is_full(200) && small.is_full(536));
        assert!(!after(None, &[200]).is_full(200));
        // A serial line of 296 bytes.
        assert!(after(Some(256), &[244]).is_full(244));
    }

    /// A packet before segmentation has 22 segments of 1448 bytes.
    #[test]
    fn a_packet_has_as_many_segments_as_fit() {
        let merged = after(Some(1460), &[22 * 1448]);
        let counted = |size: SegmentSize, payloads: [u64; 4]| payloads.map(|payload| size.segments(payload));
        assert_eq!(counted(merged, [1, 1448, 1449, 31_856]), [1, 1, 2, 22]);
        assert_eq!(after(Some(8960), &[8948]).segments(8948), 1, "a jumbo frame");
        assert_eq!(after(None, &[8948]).segments(8948), 1);
        assert_eq!(counted(after(None, &[1448, 22 * 1448]), [1, 1448, 1449, 31_856]), [1, 1, 2, 22]);
        // A whole number of segments of an unknown size, at least those of an Ethernet.
        assert_eq!(after(None, &[22 * 1448]).segments(31_856), 22);
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

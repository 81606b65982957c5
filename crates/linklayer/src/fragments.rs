//! The bytes on the wire of multilink fragments.

use lastmile_units::{ByteCount, WireBytes};

use crate::LinkLayer;
use crate::multilink::Multilink;

impl Multilink {
    /// Bytes on the wire of a full fragment: the most that a small packet waits for.
    #[must_use]
    pub const fn fragment_on_wire(self, link: LinkLayer) -> WireBytes {
        self.piece(link, self.fragment().as_u64())
    }

    /// Bytes on the wire of all the fragments of a packet of `ip` bytes.
    #[must_use]
    pub const fn on_wire(self, link: LinkLayer, ip: ByteCount) -> WireBytes {
        let (full, last) = self.cut(ip);
        let full = self.fragment_on_wire(link).as_u64().saturating_mul(full);
        let last = if last == 0 { 0 } else { self.piece(link, last).as_u64() };
        WireBytes::new(full.saturating_add(last))
    }

    /// The largest packet whose fragments take at most `wire` together; `None` if one byte takes
    /// more.
    pub(crate) const fn largest_ip_in(self, link: LinkLayer, wire: WireBytes) -> Option<ByteCount> {
        let most = wire.as_u64();
        // Bytes on the wire grow with the packet and are at least the packet's, so the answer lies
        // in 0 to `most`.
        let (mut fits, mut beyond) = (0, most.saturating_add(1));
        while beyond - fits > 1 {
            let middle = fits + (beyond - fits) / 2;
            if self.on_wire(link, ByteCount::new(middle)).as_u64() <= most {
                fits = middle;
            } else {
                beyond = middle;
            }
        }
        if fits == 0 { None } else { Some(ByteCount::new(fits)) }
    }

    pub(crate) const fn piece(self, link: LinkLayer, bytes: u64) -> WireBytes {
        link.frame_on_wire(ByteCount::new(bytes.saturating_add(self.sequence().bytes())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::multilink::SequenceNumber;
    use crate::preset::PPPOA_VCMUX;
    use proptest::prelude::*;

    /// pppoa-vcmux: 10 bytes around each fragment, so 82 bytes of packet and 4 of sequence number
    /// fill two cells.
    #[test]
    fn fragments_of_two_cells_carry_82_bytes_each() {
        let multilink = Multilink::new(ByteCount::new(82), SequenceNumber::Long).unwrap();
        assert_eq!(multilink.fragments(ByteCount::new(1_500)), 19, "1502 / 82");
        assert_eq!(multilink.fragment_on_wire(PPPOA_VCMUX.link), WireBytes::new(106));
        // 18 fragments of two cells. The last has 26 bytes, 40 with headers: one cell.
        assert_eq!(multilink.on_wire(PPPOA_VCMUX.link, ByteCount::new(1_500)), WireBytes::new(37 * 53));
    }

    /// A fragment carries at least as many bytes of the packet as its header has, and at most
    /// 65 535.
    #[test]
    fn a_fragment_is_as_long_as_its_header_and_no_longer_than_a_packet() {
        let taken = |bytes, sequence| Multilink::new(ByteCount::new(bytes), sequence).map(Multilink::fragment);
        assert_eq!(taken(0, SequenceNumber::Short), None);
        assert_eq!(taken(2, SequenceNumber::Short), Some(ByteCount::new(2)));
        assert_eq!((taken(3, SequenceNumber::Long), taken(4, SequenceNumber::Long)), (None, Some(ByteCount::new(4))));
        assert_eq!(taken(65_535, SequenceNumber::Long), Some(Multilink::MAX_FRAGMENT));
        assert_eq!(taken(65_536, SequenceNumber::Long), None);
    }

    proptest! {
        /// The fragments together carry the packet: at least the bytes of one frame, and at most those of as many full
        /// fragments.
        #[test]
        fn fragments_carry_the_packet(bytes in 4..1_500_u64, ip in 20..1_500_u64) {
            let link = PPPOA_VCMUX.link;
            let multilink = Multilink::new(ByteCount::new(bytes), SequenceNumber::Long).expect("as long as its header");
            let whole = multilink.on_wire(link, ByteCount::new(ip));
            prop_assert!(whole >= link.on_wire(ByteCount::new(ip)));
            prop_assert!(whole.as_u64() <= multilink.fragments(ByteCount::new(ip)) *
                multilink.fragment_on_wire(link).as_u64());
        }
    }
}

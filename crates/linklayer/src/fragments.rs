//! The bytes on the wire of multilink fragments, and the size of fragments for a given wait.

use lastmile_units::{BitRate, ByteCount, Duration, WireBytes};

use crate::LinkLayer;
use crate::multilink::{Multilink, SequenceNumber};

impl Multilink {
    /// The largest fragments that occupy `link` at `rate` for at most `wait` each.
    ///
    /// `None` if a fragment as short as its header takes longer. A small packet then waits for at
    /// most `wait`, and is transmitted.
    #[must_use]
    pub fn for_wait(link: LinkLayer, rate: BitRate, wait: Duration, sequence: SequenceNumber) -> Option<Self> {
        let bits = u128::from(rate.as_bps()) * u128::from(wait.as_ps()) / 1_000_000_000_000;
        let wire = WireBytes::new(u64::try_from(bits / 8).unwrap_or(u64::MAX));
        let inside = link.largest_frame_in(wire)?;
        Self::new(inside.saturating_sub(ByteCount::new(sequence.bytes())).min(Self::MAX_FRAGMENT), sequence)
    }

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
    use crate::preset::PPPOA_VCMUX;
    use proptest::prelude::*;

    /// pppoa-vcmux: 10 bytes around each fragment, so 82 bytes of packet and 4 of sequence number
    /// fill two cells.
    #[test]
    fn fragments_of_two_cells_carry_82_bytes_each() {
        let wait = Duration::from_us(6_650);
        let rate = BitRate::from_kbit_per_s(128);
        let multilink = Multilink::for_wait(PPPOA_VCMUX.link, rate, wait, SequenceNumber::Long).unwrap();
        assert_eq!(multilink.fragment(), ByteCount::new(82));
        assert_eq!(multilink.fragments(ByteCount::new(1_500)), 19, "1502 / 82");
        assert_eq!(multilink.fragment_on_wire(PPPOA_VCMUX.link), WireBytes::new(106));
        // 18 fragments of two cells. The last has 26 bytes, 40 with headers: one cell.
        assert_eq!(multilink.on_wire(PPPOA_VCMUX.link, ByteCount::new(1_500)), WireBytes::new(37 * 53));
        assert!(rate.time_for(WireBytes::new(106)) <= wait);
    }

    #[test]
    fn a_wait_shorter_than_a_cell_cannot_be_had() {
        let rate = BitRate::from_kbit_per_s(128);
        let wait = Duration::from_us(3_312);
        assert_eq!(Multilink::for_wait(PPPOA_VCMUX.link, rate, wait, SequenceNumber::Short), None);
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
        /// The fragments together carry the packet: at least the bytes of one frame, and no
        /// fragment exceeds the size asked for.
        #[test]
        fn no_fragment_takes_longer_than_the_wait(us in 3_400..200_000_u64, kbit in 128..4_000_u64,
            ip in 20..1_500_u64) {
            let (rate, wait) = (BitRate::from_kbit_per_s(kbit), Duration::from_us(us));
            let link = PPPOA_VCMUX.link;
            let multilink = Multilink::for_wait(link, rate, wait, SequenceNumber::Long).expect("more than a cell");
            prop_assert!(rate.time_for(multilink.fragment_on_wire(link)) <= wait);
            let whole = multilink.on_wire(link, ByteCount::new(ip));
            prop_assert!(whole >= link.on_wire(ByteCount::new(ip)));
            prop_assert!(whole.as_u64() <= multilink.fragments(ByteCount::new(ip)) *
                multilink.fragment_on_wire(link).as_u64());
        }
    }
}

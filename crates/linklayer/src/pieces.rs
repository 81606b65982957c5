//! The pieces in which a packet is transmitted, where another packet may interrupt it.

use lastmile_units::{ByteCount, WireBytes};

use crate::interleave::Interleave;
use crate::{Framing, LinkLayer, aal5};

/// An iterator over the pieces in which a packet is transmitted: the bytes on the wire of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pieces {
    full: u64,
    each: WireBytes,
    last: Option<WireBytes>,
}

impl Pieces {
    /// Pieces that remain.
    #[must_use]
    pub const fn left(&self) -> u64 {
        self.full + self.last.is_some() as u64
    }
}

impl Iterator for Pieces {
    type Item = WireBytes;

    #[inline]
    fn next(&mut self) -> Option<WireBytes> {
        if self.full == 0 {
            return self.last.take();
        }
        self.full -= 1;
        Some(self.each)
    }
}

impl LinkLayer {
    /// The pieces of a packet of `ip` bytes; another packet may follow each of them. Their sum is
    /// [`LinkLayer::on_wire`].
    #[must_use]
    pub fn pieces(self, ip: ByteCount) -> Pieces {
        match self.interleave() {
            Interleave::Fragments(multilink) => {
                let (full, rest) = multilink.cut(ip);
                let last = (rest > 0).then(|| multilink.piece(self, rest));
                Pieces { full, each: multilink.fragment_on_wire(self), last }
            }
            Interleave::Cells if self.framing() == Framing::Atm => {
                let each = WireBytes::new(aal5::CELL_BYTES);
                Pieces { full: self.on_wire(ip).as_u64() / aal5::CELL_BYTES, each, last: None }
            }
            _ => Pieces { full: 0, each: WireBytes::ZERO, last: Some(self.on_wire(ip)) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::multilink::{Multilink, SequenceNumber};
    use crate::preset::{ETHERNET, PPPOA_VCMUX};
    use crate::{LinkError, PRESETS};
    use lastmile_units::CellCount;
    use proptest::prelude::*;

    fn fragments(bytes: u64) -> Interleave {
        Interleave::Fragments(Multilink::new(ByteCount::new(bytes), SequenceNumber::Long).expect("from 4 bytes on"))
    }

    /// 1500 bytes and 2 of PPP in fragments of 160: nine of 160 and one of 62. Each full fragment
    /// has 4 bytes of sequence number and 10 of overhead: 174 bytes in 4 cells. The last has 76
    /// bytes in 2 cells. Together 38 cells, against 32 without fragments.
    #[test]
    fn the_pieces_of_a_full_packet() {
        let whole = ByteCount::new(1500);
        let link = PPPOA_VCMUX.link;
        assert_eq!(link.pieces(whole).collect::<Vec<_>>(), [WireBytes::new(32 * 53)]);
        let cells = link.with_interleave(Interleave::Cells).expect("a link of cells");
        assert_eq!(cells.pieces(whole).collect::<Vec<_>>(), [WireBytes::new(53); 32]);
        let cut = link.with_interleave(fragments(160)).expect("PPP");
        let mut expected = vec![WireBytes::new(4 * 53); 9];
        expected.push(WireBytes::new(2 * 53));
        assert_eq!(cut.pieces(whole).collect::<Vec<_>>(), expected);
        assert_eq!(cut.on_wire(whole), WireBytes::new(38 * 53));
        assert_eq!(cut.cells(whole), Some(CellCount::new(38)));
        // A ping of 84 bytes is one fragment and pays its header: 84 + 2 + 4 + 10 = 100 bytes,
        // three cells instead of two.
        assert_eq!(
            (link.on_wire(ByteCount::new(84)), cut.on_wire(ByteCount::new(84))),
            (WireBytes::new(106), WireBytes::new(159))
        );
    }

    #[test]
    fn what_has_no_cells_is_not_interrupted_between_them() {
        let refused = ETHERNET.link.with_interleave(Interleave::Cells);
        assert_eq!(refused, Err(LinkError::InterleaveWithoutCells(Framing::None)));
    }

    proptest! {
        /// On every link the pieces add up to the packet, no piece exceeds a fragment, and the
        /// inverse holds.
        #[test]
        fn pieces_are_the_packet(preset in 0..PRESETS.len(), fragment in 4_u64..2_000, ip in 0_u64..9_000,
            wire in 0_u64..20_000) {
            let link = PRESETS[preset].link;
            for interleave in [Interleave::Never, Interleave::Cells, fragments(fragment)] {
                let Ok(link) = link.with_interleave(interleave) else { continue };
                let pieces = link.pieces(ByteCount::new(ip));
                prop_assert_eq!(pieces.left(), pieces.count() as u64);
                prop_assert_eq!(pieces.map(WireBytes::as_u64).sum::<u64>(), link.on_wire(ByteCount::new(ip)).as_u64());
                if let Interleave::Fragments(multilink) = interleave {
                    prop_assert!(pieces.max() <= Some(multilink.fragment_on_wire(link)));
                }
                if let Some(most) = link.largest_ip_in(WireBytes::new(wire)) {
                    prop_assert!(link.on_wire(most).as_u64() <= wire);
                    prop_assert!(most == ByteCount::MAX || link.on_wire(most + ByteCount::new(1)).as_u64() > wire);
                }
            }
        }
    }
}

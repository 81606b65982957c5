//! Header compression as a fixed share of the header: a model without state, for comparison with
//! [`crate::vj`].
//!
//! No publication defines this model. Simulators of around 2000 (OPNET among them) offer a
//! compression ratio as an attribute. Phanse 2000 switches header compression on in this way and
//! does not state the resulting size. Differs from real compression: no first or refreshing
//! uncompressed header, no loss, no incompressible headers. Cost: a multiplication and a division.

use lastmile_units::{ByteCount, Ratio};

/// Compresses every TCP/IP header to a fixed share of its bytes, rounded up to a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedRatio {
    remaining: Ratio,
}

impl FixedRatio {
    /// A header keeps `remaining` of its bytes: 10 % turns 40 bytes into 4.
    #[must_use]
    pub const fn new(remaining: Ratio) -> Self {
        Self { remaining }
    }

    /// The IP bytes of a packet of `packet` bytes once its header of `header` bytes is compressed.
    ///
    /// A header longer than its packet counts as long as the packet.
    #[must_use]
    pub fn compressed(self, packet: ByteCount, header: ByteCount) -> ByteCount {
        let header = header.min(packet);
        let saved = header.as_u64() - self.header(header).as_u64();
        ByteCount::new(packet.as_u64() - saved)
    }

    /// The compressed size of a header, rounded up to whole bytes so that the saving is never
    /// overstated.
    #[must_use]
    pub fn header(self, header: ByteCount) -> ByteCount {
        let gone = Ratio::ONE.as_parts_per_billion() - self.remaining.as_parts_per_billion();
        let gone = Ratio::from_parts_per_billion(gone).expect("a part of the whole");
        ByteCount::new(header.as_u64() - gone.of(header.as_u64()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_of_40_bytes_is_4() {
        let model = FixedRatio::new(Ratio::from_percent(10).unwrap());
        assert_eq!(model.compressed(ByteCount::new(1_540), ByteCount::new(40)), ByteCount::new(1_504));
        assert_eq!(model.header(ByteCount::new(52)), ByteCount::new(6), "5.2 bytes are 6");
    }

    #[test]
    fn the_whole_changes_nothing_and_nothing_leaves_the_payload() {
        let (packet, header) = (ByteCount::new(552), ByteCount::new(40));
        assert_eq!(FixedRatio::new(Ratio::ONE).compressed(packet, header), packet);
        assert_eq!(FixedRatio::new(Ratio::ZERO).compressed(packet, header), ByteCount::new(512));
        assert_eq!(FixedRatio::new(Ratio::ZERO).compressed(header, packet), ByteCount::ZERO);
    }
}

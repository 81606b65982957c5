//! The Internet checksum: computed (RFC 1071) and updated after a change (RFC 1624).
//!
//! An update costs a sum over the changed bytes and keeps a wrong checksum wrong. A damaged packet
//! therefore stays detectable, which a recomputed checksum would prevent.

use crate::IpAddresses;

/// A one's complement sum of 16-bit big-endian words in progress (RFC 1071, section 1). Carries
/// accumulate and are folded once, at the end; 2^32 words fit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sum(u64);

impl Sum {
    /// The empty sum.
    pub const ZERO: Self = Self(0);

    /// The sum with these bytes, which start at an even offset of the data. An odd last byte is
    /// padded with zero.
    #[must_use]
    pub fn bytes(self, bytes: &[u8]) -> Self {
        let (words, rest) = bytes.as_chunks::<4>();
        let mut sum = self.0;
        for word in words {
            // A 32-bit word is congruent to the sum of its halves modulo 2^16 - 1 (RFC 1071,
            // section 2, part C).
            sum += u64::from(u32::from_be_bytes(*word));
        }
        let mut last = [0; 4];
        last[..rest.len()].copy_from_slice(rest);
        Self(sum + u64::from(u32::from_be_bytes(last)))
    }

    /// The sum with one word.
    #[must_use]
    pub const fn word(self, word: u16) -> Self {
        Self(self.0 + word as u64)
    }

    /// The sum with the pseudo-header of IPv4 (RFC 9293, section 3.1) or IPv6 (RFC 8200,
    /// section 8.1): addresses, protocol and length of the transport packet.
    #[must_use]
    pub fn pseudo_header(self, addresses: &IpAddresses, protocol: u8, transport_len: u16) -> Self {
        let with_addresses = match addresses {
            IpAddresses::V4 { source, destination } => self.bytes(&source.octets()).bytes(&destination.octets()),
            IpAddresses::V6 { source, destination } => self.bytes(&source.octets()).bytes(&destination.octets()),
        };
        with_addresses.word(u16::from(protocol)).word(transport_len)
    }

    /// The sum folded to 16 bits.
    #[must_use]
    pub const fn fold(self) -> u16 {
        let mut sum = self.0;
        while sum > 0xFFFF {
            sum = (sum & 0xFFFF) + (sum >> 16);
        }
        sum as u16
    }

    /// The checksum: the complement of the folded sum. It is 0 over data that include a right
    /// checksum.
    #[must_use]
    pub const fn checksum(self) -> u16 {
        !self.fold()
    }
}

/// The checksum after words with the sum `removed` were replaced by words with the sum `added`:
/// HC' = ~(~HC + ~m + m'), RFC 1624, section 3, equation 3. It avoids RFC 1141's error of turning
/// 0x0000 into 0xFFFF.
#[must_use]
pub const fn mend(checksum: u16, removed: Sum, added: Sum) -> u16 {
    Sum::ZERO.word(!checksum).word(!removed.fold()).word(added.fold()).checksum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// RFC 1071, section 3: 00 01 f2 03 f4 f5 f6 f7 sum to ddf2 with the carries folded in.
    #[test]
    fn the_example_of_rfc_1071_sums_to_ddf2() {
        let data = [0x00, 0x01, 0xF2, 0x03, 0xF4, 0xF5, 0xF6, 0xF7];
        assert_eq!(Sum::ZERO.bytes(&data).fold(), 0xDDF2);
        assert_eq!(Sum::ZERO.bytes(&data).checksum(), 0x220D);
    }

    /// RFC 1624, section 4: HC = 0xDD2F, m = 0x5555, m' = 0x3285 gives 0x0000, not 0xFFFF.
    #[test]
    fn the_example_of_rfc_1624_gives_plus_zero() {
        assert_eq!(mend(0xDD2F, Sum::ZERO.word(0x5555), Sum::ZERO.word(0x3285)), 0x0000);
    }

    #[test]
    fn an_odd_byte_is_the_upper_half_of_its_word() {
        assert_eq!(Sum::ZERO.bytes(&[1, 2, 3]).fold(), 0x0102 + 0x0300);
        assert_eq!(Sum::ZERO.bytes(&[1, 2, 3, 4, 5]).fold(), 0x0102 + 0x0304 + 0x0500);
        assert_eq!(Sum::ZERO.bytes(&[]).checksum(), 0xFFFF);
    }

    fn word_by_word(data: &[u8]) -> u16 {
        let mut sum = 0u32;
        for pair in data.chunks(2) {
            sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
            sum = (sum & 0xFFFF) + (sum >> 16);
        }
        !(sum as u16)
    }

    proptest! {
        #[test]
        fn four_bytes_at_a_time_is_the_sum_word_by_word(data in prop::collection::vec(any::<u8>(), 0..2000)) {
            prop_assert_eq!(Sum::ZERO.bytes(&data).checksum(), word_by_word(&data));
        }

        /// A header is never all zeros, because the pseudo-header has its protocol: hence the
        /// leading 1.
        #[test]
        fn mending_gives_what_computing_anew_gives(
            mut data in prop::collection::vec(any::<u8>(), 4..80),
            at in any::<prop::sample::Index>(),
            new in any::<[u8; 2]>(),
        ) {
            data[0] = 1;
            let at = (at.index(data.len() - 3) + 2) & !1;
            let before = Sum::ZERO.bytes(&data).checksum();
            let removed = Sum::ZERO.bytes(&data[at..at + 2]);
            data[at..at + 2].copy_from_slice(&new);
            let mended = mend(before, removed, Sum::ZERO.bytes(&new));
            prop_assert_eq!(mended, Sum::ZERO.bytes(&data).checksum());
        }
    }
}

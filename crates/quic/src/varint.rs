//! Variable-length integers (RFC 9000, section 16): two bits of length, and 6, 14, 30 or 62 of value.

/// The largest value.
pub const MAX: u64 = (1 << 62) - 1;

/// The bytes that `value` takes: 1, 2, 4 or 8. Values above [`MAX`] have no encoding, and count as 8.
#[must_use]
pub const fn size(value: u64) -> u64 {
    match value {
        0..=0x3f => 1,
        0x40..=0x3fff => 2,
        0x4000..=0x3fff_ffff => 4,
        _ => 8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9000, appendix A.1: its examples, and the limits of table 4.
    #[test]
    fn the_examples_of_the_rfc_have_their_sizes() {
        for (value, bytes) in [(151_288_809_941_952_652, 8), (494_878_333, 4), (15_293, 2), (37, 1)] {
            assert_eq!(size(value), bytes, "{value}");
        }
        for (value, bytes) in [(63, 1), (64, 2), (16_383, 2), (16_384, 4), (1_073_741_823, 4), (1_073_741_824, 8)] {
            assert_eq!(size(value), bytes, "{value}");
        }
        assert_eq!(size(MAX), 8);
    }
}

//! PTM, the packet transfer mode of VDSL2 and EFM: 64b/65b coding adds one sync byte to every 64.
//!
//! Published: ITU-T G.992.3 Annex N, IEEE 802.3 clause 61.3.3. Blocks continue across frames on a
//! real line, where the mean is exactly 65/64. Here a frame's last partial block counts as a whole
//! block, as in CAKE (`tc-cake(8)`, keyword `ptm`). The excess is less than one byte a frame. Cost:
//! one shift.

/// Data bytes that share one sync byte.
pub const BLOCK: u64 = 64;

/// Start-of-frame byte S, end-of-frame byte Ck, and 2 bytes of TC-CRC around each frame.
pub const FRAME_OVERHEAD: u32 = 4;

/// Bytes on the wire for a frame of `bytes`: `n + ceil(n / 64)`, which is `ceil(n * 65 / 64)`.
#[inline]
#[must_use]
pub const fn on_wire(bytes: u64) -> u64 {
    bytes.saturating_add(bytes.div_ceil(BLOCK))
}

/// The largest frame whose bytes on the wire are at most `wire`.
///
/// `ceil(n * 65 / 64) <= wire` exactly when `n <= wire * 64 / 65`.
#[must_use]
pub const fn largest_frame(wire: u64) -> u64 {
    (wire as u128 * BLOCK as u128 / (BLOCK as u128 + 1)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_started_block_costs_a_whole_sync_byte() {
        assert_eq!([0, 1, 64, 65, 1522].map(on_wire), [0, 2, 65, 67, 1546]);
    }

    proptest! {
        #[test]
        fn the_largest_frame_fits_and_one_byte_more_does_not(wire in 0..1_u64 << 40) {
            let frame = largest_frame(wire);
            prop_assert!(on_wire(frame) <= wire);
            prop_assert!(on_wire(frame + 1) > wire);
        }
    }
}

//! The bits of a packet's mark.

/// Bits of the mark that no table uses.
pub(super) const OTHER_BITS: u32 = 0x00ff_ffff;
/// The bit that says that a packet is a pure ACK.
pub(super) const PURE_ACK: u32 = 1 << 31;

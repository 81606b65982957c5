//! Ethernet: what stands around a payload, and the shortest frame that it makes.
//!
//! Published: IEEE 802.3 clauses 3 and 4.4.2, IEEE 802.1Q for the tag; RFC 2684 section 5.2 for Ethernet inside AAL5.
//!
//! A frame is at least 64 bytes from destination address to FCS, so a payload is padded to 46. Whether that padding
//! crosses an ATM line depends on the FCS: RFC 2684 demands padding when the frame is bridged with its FCS, since the
//! FCS covers it, and leaves it to the sender without. The presets pad with FCS and do not without.

/// Destination 6, source 6, EtherType 2.
pub const MAC_HEADER: u32 = 14;
/// The largest payload of a frame (IEEE 802.3; RFC 894).
pub const MTU: u16 = 1500;
/// Frame check sequence.
pub const FCS: u32 = 4;
/// An 802.1Q tag.
pub const VLAN_TAG: u32 = 4;
/// The shortest frame, from destination address to FCS.
pub const MIN_FRAME: u32 = 64;
/// Seven bytes of preamble and the start delimiter.
pub const PREAMBLE: u32 = 8;
/// 96 bit times of silence between frames.
pub const GAP: u32 = 12;

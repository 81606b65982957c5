//! Ethernet: the headers and trailer around a payload, and the minimum frame.
//!
//! Published: IEEE 802.3 clauses 3 and 4.4.2, IEEE 802.1Q for the tag; RFC 2684 section 5.2 for
//! Ethernet inside AAL5.
//!
//! A frame is at least 64 bytes from destination address to FCS, so a payload is padded to 46.
//! RFC 2684 demands this padding on an ATM line if the frame is bridged with its FCS, because the
//! FCS covers the padding. Without FCS the padding is optional. The presets pad with FCS and do not
//! pad without it.

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
/// The inter-frame gap: 96 bit times without a signal.
pub const GAP: u32 = 12;

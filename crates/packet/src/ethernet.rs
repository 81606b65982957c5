//! The position of the IP packet in an Ethernet frame.
//!
//! Supported: Ethernet II (IEEE 802.3, clause 3.2.6), up to two VLAN tags (IEEE 802.1Q, clause 9;
//! the outer one may be IEEE 802.1ad), PPPoE sessions (RFC 2516) with IPv4 or IPv6 in PPP
//! (RFC 1332, RFC 5072). Every other frame has no readable packet: ARP, PPPoE discovery, LCP, a
//! length instead of an EtherType (LLC), a third tag.
//!
//! Cost: two to twelve comparisons of two bytes.

use crate::ParseError;

/// Destination, source and EtherType.
const HEADER_LEN: usize = 14;
/// Length of a VLAN tag, which precedes the EtherType.
const TAG_LEN: usize = 4;
/// PPPoE's version, type and code, session, length; PPP's protocol.
const PPPOE_LEN: usize = 8;
/// The PPP protocol, which the PPPoE length counts in addition to the IP packet.
const PPP_PROTOCOL_LEN: usize = 2;
/// Distance from the PPPoE length field to the IP packet: the field and PPP's protocol.
const PPPOE_LENGTH_BEFORE_IP: usize = 4;

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86DD;
const VLAN: u16 = 0x8100;
const SERVICE_VLAN: u16 = 0x88A8;
const PPPOE_SESSION: u16 = 0x8864;
const PPP_IPV4: u16 = 0x0021;
const PPP_IPV6: u16 = 0x0057;
/// Version 1, type 1, code 0: session data (RFC 2516, section 6).
const PPPOE_DATA: [u8; 2] = [0x11, 0x00];

/// Why a frame has no readable IP packet. Offsets count from the first byte of the frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FrameError {
    /// The frame ends inside the link's headers.
    #[error("the frame ends at byte {len}: at least {needed} bytes are needed")]
    Truncated {
        /// Bytes of the frame.
        len: usize,
        /// Bytes that the headers need.
        needed: usize,
    },
    /// The frame carries another protocol: ARP, PPPoE discovery, an unknown one.
    #[error("protocol {protocol:#06x} at byte {offset} is not IP")]
    NotIp {
        /// Offset of the protocol field.
        offset: usize,
        /// The EtherType, the length of an 802.3 frame, or PPP's protocol.
        protocol: u16,
    },
    /// The PPPoE header is not that of session data, or its length does not fit the frame.
    #[error("the PPPoE header at byte {offset} does not fit the frame")]
    Pppoe {
        /// Offset of the field at fault.
        offset: usize,
    },
    /// The link's protocol field and the packet disagree on the version of IP.
    #[error("IP version {version} at byte {offset} is not what the link says")]
    Version {
        /// Offset of the packet.
        offset: usize,
        /// The packet's version, its first four bits.
        version: u8,
    },
    /// The IP packet behind the link's headers is unreadable.
    #[error(transparent)]
    Packet(#[from] ParseError),
}

impl FrameError {
    /// True for an intact frame without IP; false for a damaged or truncated one.
    #[must_use]
    pub const fn is_not_ip(&self) -> bool {
        matches!(self, Self::NotIp { .. })
    }
}

/// The headers of the link in front of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Prefix {
    /// Bytes up to the packet, at most 30.
    pub len: u8,
    /// True if the last header is PPPoE, which has a length field.
    pub pppoe: bool,
}

impl Prefix {
    /// Updates the PPPoE length of a frame that ends with its packet of `ip_len` bytes.
    pub fn mend(self, frame: &mut [u8], ip_len: u16) {
        if self.pppoe {
            let at = usize::from(self.len) - PPPOE_LENGTH_BEFORE_IP;
            let length = ip_len + PPP_PROTOCOL_LEN as u16;
            frame[at..at + 2].copy_from_slice(&length.to_be_bytes());
        }
    }

    /// Updates the PPPoE length of a frame whose packet changed from `from` to `to` bytes. The
    /// padding of PPP stays included.
    pub fn resize(self, frame: &mut [u8], from: u16, to: u16) {
        if self.pppoe {
            let at = usize::from(self.len) - PPPOE_LENGTH_BEFORE_IP;
            // The difference suffices, because both lengths count the packet. A frame above 65 535
            // bytes has no valid length.
            let length = word(frame, at).unwrap_or(0).wrapping_sub(from).wrapping_add(to);
            frame[at..at + 2].copy_from_slice(&length.to_be_bytes());
        }
    }
}

/// The position of the packet in a frame, or why there is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Located {
    /// The headers in front of the packet. For an unreadable frame, the Ethernet header with its
    /// tags.
    pub prefix: Prefix,
    /// The upper limit of the packet's end, or why there is no packet.
    pub end: Result<usize, FrameError>,
}

/// Finds the IP packet in a frame.
#[must_use]
pub fn locate(frame: &[u8]) -> Located {
    let (mut start, mut ether_type) = (HEADER_LEN, word(frame, HEADER_LEN - 2));
    for _ in 0..2 {
        if !matches!(ether_type, Some(VLAN | SERVICE_VLAN)) {
            break;
        }
        start += TAG_LEN;
        ether_type = word(frame, start - 2);
    }
    let ethernet = Prefix { len: start.min(frame.len()) as u8, pppoe: false };
    let Some(ether_type) = ether_type else {
        let end = Err(FrameError::Truncated { len: frame.len(), needed: start });
        return Located { prefix: ethernet, end };
    };
    match ether_type {
        IPV4 => Located { prefix: ethernet, end: of_version(frame, start, frame.len(), 4) },
        IPV6 => Located { prefix: ethernet, end: of_version(frame, start, frame.len(), 6) },
        PPPOE_SESSION => match session(frame, start) {
            Ok((ip, end)) => Located { prefix: Prefix { len: ip as u8, pppoe: true }, end: Ok(end) },
            Err(error) => Located { prefix: ethernet, end: Err(error) },
        },
        protocol => Located { prefix: ethernet, end: Err(FrameError::NotIp { offset: start - 2, protocol }) },
    }
}

/// Start and end of the IP packet in a PPPoE session frame whose PPPoE header is at `offset`.
fn session(frame: &[u8], offset: usize) -> Result<(usize, usize), FrameError> {
    let ip = offset + PPPOE_LEN;
    let (Some(length), Some(protocol)) = (word(frame, offset + 4), word(frame, ip - PPP_PROTOCOL_LEN)) else {
        return Err(FrameError::Truncated { len: frame.len(), needed: ip });
    };
    let end = ip - PPP_PROTOCOL_LEN + usize::from(length);
    if frame[offset..offset + 2] != PPPOE_DATA || end < ip || end > frame.len() {
        return Err(FrameError::Pppoe { offset });
    }
    let version = match protocol {
        PPP_IPV4 => 4,
        PPP_IPV6 => 6,
        protocol => return Err(FrameError::NotIp { offset: ip - PPP_PROTOCOL_LEN, protocol }),
    };
    of_version(frame, ip, end, version).map(|end| (ip, end))
}

/// The end of a packet that must have the version `expected`.
fn of_version(frame: &[u8], offset: usize, end: usize, expected: u8) -> Result<usize, FrameError> {
    match frame[..end].get(offset).map(|first| first >> 4) {
        Some(version) if version != expected => Err(FrameError::Version { offset, version }),
        // The IP parser rejects an empty packet.
        _ => Ok(end),
    }
}

fn word(frame: &[u8], at: usize) -> Option<u16> {
    frame.get(at..)?.first_chunk().map(|bytes| u16::from_be_bytes(*bytes))
}

#[cfg(test)]
mod tests;

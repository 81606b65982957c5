//! L2TP from LAC to LNS: the user's PPP frames cross the provider's network inside UDP.
//!
//! Published: RFC 2661. Each packet gains IP 20, UDP 8, L2TP 8 (flags and version, length, tunnel,
//! session; 6 without the optional length) and the PPP header, on top of what the carrier adds.
//! Fragmentation is not counted, although the sum may exceed the carrier's MTU; the tunnel itself
//! has no MTU.

use crate::{LinkError, LinkLayer, Ppp};

/// Outer IPv4 header.
pub const IP: u32 = 20;
/// UDP header.
pub const UDP: u32 = 8;
/// Data message header with length field (RFC 2661 section 3.1).
pub const L2TP: u32 = 8;

/// The parts of the PPP header that cross the tunnel (RFC 1661, RFC 1662).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum PppHeader {
    /// Address, control and protocol: 4 bytes.
    #[default]
    Full,
    /// Address and control, one byte of protocol (protocol-field compression): 3 bytes.
    ShortProtocol,
    /// Protocol only (address-and-control-field compression): 2 bytes.
    NoAddress,
}

impl PppHeader {
    /// Bytes of the PPP header in the tunnel.
    #[must_use]
    pub const fn bytes(self) -> u32 {
        match self {
            Self::Full => 4,
            Self::ShortProtocol => 3,
            Self::NoAddress => 2,
        }
    }
}

/// Bytes that the tunnel adds to each packet, without the carrier's overhead: 38 to 40.
#[must_use]
pub const fn overhead(ppp: PppHeader) -> u32 {
    IP + UDP + L2TP + ppp.bytes()
}

/// The tunnel over `carrier`. The carrier's minimum frame and framing apply to the tunnelled
/// packet, which contains PPP.
///
/// # Errors
/// The sum of nested tunnels exceeds [`LinkLayer::MAX_OVERHEAD`].
pub const fn over(carrier: LinkLayer, ppp: PppHeader) -> Result<LinkLayer, LinkError> {
    match carrier.with_more_overhead(overhead(ppp) as i32) {
        Ok(link) => Ok(link.with_ppp(Ppp::Inside).with_mtu(None)),
        refused => refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preset;
    use lastmile_units::{ByteCount, WireBytes};

    #[test]
    fn the_carrier_carries_the_tunnelled_packet() {
        let link = over(preset::ETHERNET.link, PppHeader::Full).unwrap();
        assert_eq!(link.on_wire(ByteCount::new(1_460)), WireBytes::new(1_460 + 40 + 38));
        assert_eq!(link.on_wire(ByteCount::new(1)), WireBytes::new(84), "padded with the tunnel inside");
        let atm = over(preset::IPOA_LLCSNAP.link, PppHeader::NoAddress).unwrap();
        assert_eq!(atm.on_wire(ByteCount::new(40)), WireBytes::new(2 * 53), "40 + 38 + 16 = 94 of 96 bytes");
    }

    #[test]
    fn nesting_without_end_is_refused() {
        let mut link = preset::ETHERNET.link;
        let refused = loop {
            match over(link, PppHeader::Full) {
                Ok(deeper) => link = deeper,
                Err(error) => break error,
            }
        };
        assert_eq!(refused, LinkError::Overhead(518));
    }
}

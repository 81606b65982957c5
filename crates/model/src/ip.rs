//! The IP headers of a traffic's packets.

/// The fields that the IP headers of all packets of a traffic share.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct IpFields {
    /// Differentiated services code point (RFC 2474), 0 to 63.
    pub dscp: u8,
    /// IPv6 in place of IPv4. A replay does not use it: each captured packet has its own version.
    pub ipv6: bool,
}

impl IpFields {
    /// Bytes that the IP header has in addition to one of IPv4 without options.
    #[must_use]
    pub const fn more_than_ipv4(self) -> u16 {
        if self.ipv6 { 20 } else { 0 }
    }

    /// Bytes of the headers of IP and UDP, or of IP and an ICMP echo message.
    #[must_use]
    pub const fn datagram_headers(self) -> u8 {
        if self.ipv6 { 48 } else { 28 }
    }
}

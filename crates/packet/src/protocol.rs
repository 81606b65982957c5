//! Transport protocols and their numbers.

/// Protocol number of ICMP.
pub(crate) const ICMP_V4: u8 = 1;
/// Protocol number of ICMPv6.
pub(crate) const ICMP_V6: u8 = 58;
/// Protocol number of TCP.
pub(crate) const TCP: u8 = 6;
/// Protocol number of UDP.
pub(crate) const UDP: u8 = 17;
/// Protocol number of signals, and of [`Protocol::Other`].
pub(crate) const SIGNAL: u8 = 253;

/// Transport protocol of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(u8)]
pub enum Protocol {
    /// TCP.
    #[default]
    Tcp,
    /// UDP.
    Udp,
    /// ICMP echo request (v4 or v6).
    EchoRequest,
    /// ICMP echo reply (v4 or v6).
    EchoReply,
    /// Any other protocol, fragments and unreadable packets included: never regulated.
    Other,
    /// A signal of a Smart ACK Dropper to an ACK regenerator: the list that the next ACK of the
    /// flow replaces.
    AckSignal,
}

impl Protocol {
    /// The IANA protocol number in IPv4 or IPv6 headers. [`Protocol::Other`] and signals have that
    /// for experiments.
    #[must_use]
    pub const fn number(self, ipv6: bool) -> u8 {
        match self {
            Self::Tcp => TCP,
            Self::Udp => UDP,
            Self::EchoRequest | Self::EchoReply if ipv6 => ICMP_V6,
            Self::EchoRequest | Self::EchoReply => ICMP_V4,
            Self::Other | Self::AckSignal => SIGNAL,
        }
    }
}

//! Flow identity: exact keys, and the small numbers that the datapath uses for them.

use core::hash::{Hash, Hasher};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A unidirectional flow: one protocol, source and destination address and port. Exact, never a hash: two flows with one
/// identity would have their acknowledgements merged.
///
/// The simulator gives connection `c` the flows `2c` (from the side that opens) and `2c + 1` (back). Live programs intern
/// addresses and ports in a [`crate::FlowTable`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(transparent)]
pub struct FlowId(u32);

impl FlowId {
    /// The flow with this index.
    #[must_use]
    pub const fn new(index: u32) -> Self {
        Self(index)
    }

    /// The index of the flow.
    #[must_use]
    pub const fn index(self) -> u32 {
        self.0
    }
}

/// Source and destination of an IP packet, both of one family.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum IpAddresses {
    /// IPv4.
    V4 {
        /// Source address.
        source: Ipv4Addr,
        /// Destination address.
        destination: Ipv4Addr,
    },
    /// IPv6.
    V6 {
        /// Source address.
        source: Ipv6Addr,
        /// Destination address.
        destination: Ipv6Addr,
    },
}

impl IpAddresses {
    /// The pair of these addresses, or `None` when one is IPv4 and the other IPv6.
    #[must_use]
    pub const fn new(source: IpAddr, destination: IpAddr) -> Option<Self> {
        match (source, destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => Some(Self::V4 { source, destination }),
            (IpAddr::V6(source), IpAddr::V6(destination)) => Some(Self::V6 { source, destination }),
            _ => None,
        }
    }

    /// Where packets come from.
    #[must_use]
    pub const fn source(&self) -> IpAddr {
        match *self {
            Self::V4 { source, .. } => IpAddr::V4(source),
            Self::V6 { source, .. } => IpAddr::V6(source),
        }
    }

    /// Where packets go to.
    #[must_use]
    pub const fn destination(&self) -> IpAddr {
        match *self {
            Self::V4 { destination, .. } => IpAddr::V4(destination),
            Self::V6 { destination, .. } => IpAddr::V6(destination),
        }
    }

    /// True for IPv6.
    #[must_use]
    pub const fn is_ipv6(&self) -> bool {
        matches!(self, Self::V6 { .. })
    }

    /// The addresses of packets the other way.
    #[must_use]
    pub const fn reversed(self) -> Self {
        match self {
            Self::V4 { source, destination } => Self::V4 { source: destination, destination: source },
            Self::V6 { source, destination } => Self::V6 { source: destination, destination: source },
        }
    }
}

/// What a header says of a flow: addresses and ports.
///
/// ICMP echo has an identifier instead of ports: an echo request keeps it in `source_port`, a reply in `destination_port`,
/// and the other is 0, so that [`FlowAddresses::reversed`] gives the addresses of the reply. Protocols without ports have
/// 0 and 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct FlowAddresses {
    /// IP addresses.
    pub ip: IpAddresses,
    /// Source port, or the identifier of echo requests.
    pub source_port: u16,
    /// Destination port, or the identifier of echo replies.
    pub destination_port: u16,
}

impl FlowAddresses {
    /// The flow the other way.
    #[must_use]
    pub const fn reversed(self) -> Self {
        Self { ip: self.ip.reversed(), source_port: self.destination_port, destination_port: self.source_port }
    }
}

/// A flow as packets name it: addresses, ports and the protocol number of IP (IANA: 1 ICMP, 6 TCP, 17 UDP, 58 ICMPv6).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct FlowKey {
    /// Addresses and ports.
    pub addresses: FlowAddresses,
    /// Protocol number.
    pub protocol: u8,
}

impl FlowKey {
    /// The flow the other way.
    #[must_use]
    pub const fn reversed(self) -> Self {
        Self { addresses: self.addresses.reversed(), protocol: self.protocol }
    }
}

impl Hash for FlowKey {
    /// All bytes in one write, since a keyed hash pays for each. Keys of the two families differ in length.
    fn hash<H: Hasher>(&self, state: &mut H) {
        let mut bytes = [0; 37];
        let addresses_end = match self.addresses.ip {
            IpAddresses::V4 { source, destination } => {
                bytes[0..4].copy_from_slice(&source.octets());
                bytes[4..8].copy_from_slice(&destination.octets());
                8
            }
            IpAddresses::V6 { source, destination } => {
                bytes[0..16].copy_from_slice(&source.octets());
                bytes[16..32].copy_from_slice(&destination.octets());
                32
            }
        };
        bytes[addresses_end..addresses_end + 2].copy_from_slice(&self.addresses.source_port.to_be_bytes());
        bytes[addresses_end + 2..addresses_end + 4].copy_from_slice(&self.addresses.destination_port.to_be_bytes());
        bytes[addresses_end + 4] = self.protocol;
        state.write(&bytes[..addresses_end + 5]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reverse_of_a_reverse_is_the_flow_itself() {
        let ip = IpAddresses::new("10.0.0.1".parse().unwrap(), "192.0.2.7".parse().unwrap()).unwrap();
        let key = FlowKey { addresses: FlowAddresses { ip, source_port: 40_000, destination_port: 80 }, protocol: 6 };
        assert_eq!(key.reversed().addresses.ip.source(), ip.destination());
        assert_eq!(key.reversed().addresses.source_port, 80);
        assert_ne!(key.reversed(), key);
        assert_eq!(key.reversed().reversed(), key);
    }

    #[test]
    fn addresses_of_two_families_are_no_pair() {
        assert_eq!(IpAddresses::new("10.0.0.1".parse().unwrap(), "::1".parse().unwrap()), None);
    }
}

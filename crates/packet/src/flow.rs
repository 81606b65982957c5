//! Flow identity: exact keys, and the small numbers by which the datapath refers to them.

use core::hash::{Hash, Hasher};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A unidirectional flow: one protocol, source and destination address and port. The identity is
/// exact, not a hash, because two flows with one identity would have their acknowledgements merged.
///
/// The simulator gives connection `c` the flows `2c` (from the side that opens) and `2c + 1` (the
/// reverse). Live programs obtain the numbers of addresses and ports from a [`crate::FlowTable`],
/// which does not reuse a number while state of its flow can exist.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(transparent)]
pub struct FlowId(u32);

impl FlowId {
    /// The flow of packets whose bytes identify none. No table assigns it.
    pub const NONE: Self = Self(u32::MAX);

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

    /// The reverse flow of a simulated connection: `2c` and `2c + 1` are each other's reverse.
    #[must_use]
    pub const fn reversed(self) -> Self {
        Self(self.0 ^ 1)
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

/// Addresses and ports of a flow, from a packet's headers.
///
/// ICMP echo has an identifier instead of ports. An echo request has it in `source_port`, a reply
/// in `destination_port`, and the other port is 0, so that [`FlowAddresses::reversed`] of a request
/// are the addresses of its reply. Both ports are 0 for protocols without ports.
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
    /// Unique addresses for a simulated flow, derived from its number. The flows `2c` and `2c + 1`
    /// of a connection are each other's reverse.
    ///
    /// The opening side of connection `c` is in 10.0.0.0/8, for the first 256 at 10.0.0.1 with
    /// ports from 50 000 on. The far end is 192.0.2.1 (RFC 5737), port 49 152. Wireshark assigns no
    /// protocol to any of these ports.
    #[must_use]
    pub const fn of_simulated(flow: FlowId) -> Self {
        let connection = flow.index() / 2;
        let source = Ipv4Addr::from_bits((10 << 24) + 1 + connection / 256);
        let ip = IpAddresses::V4 { source, destination: Ipv4Addr::new(192, 0, 2, 1) };
        let opening = Self { ip, source_port: 50_000 + (connection % 256) as u16, destination_port: 49_152 };
        if flow.index().is_multiple_of(2) { opening } else { opening.reversed() }
    }

    /// The addresses of the reverse flow.
    #[must_use]
    pub const fn reversed(self) -> Self {
        Self { ip: self.ip.reversed(), source_port: self.destination_port, destination_port: self.source_port }
    }
}

/// A flow as its packets identify it: addresses, ports and the protocol number of IP (IANA: 1 ICMP,
/// 6 TCP, 17 UDP, 58 ICMPv6).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct FlowKey {
    /// Addresses and ports.
    pub addresses: FlowAddresses,
    /// Protocol number.
    pub protocol: u8,
}

impl FlowKey {
    /// The key of the reverse flow.
    #[must_use]
    pub const fn reversed(self) -> Self {
        Self { addresses: self.addresses.reversed(), protocol: self.protocol }
    }
}

impl Hash for FlowKey {
    /// Writes all bytes in one call, because a keyed hash has a cost per call. Keys of the two
    /// families differ in length.
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
    fn simulated_flows_have_addresses_of_their_own_and_connections_two_directions() {
        let of = |flow| FlowAddresses::of_simulated(FlowId::new(flow));
        assert_eq!(of(0).ip.source(), "10.0.0.1".parse::<IpAddr>().unwrap());
        assert_eq!((of(510).source_port, of(512).source_port), (50_255, 50_000));
        assert_eq!(of(u32::MAX).ip.destination(), "10.128.0.0".parse::<IpAddr>().unwrap());
        let mut seen: Vec<FlowAddresses> = (0..20_000).map(of).collect();
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), 20_000);
        assert_eq!(of(4711), of(4710).reversed());
    }

    #[test]
    fn addresses_of_two_families_are_no_pair() {
        assert_eq!(IpAddresses::new("10.0.0.1".parse().unwrap(), "::1".parse().unwrap()), None);
    }
}

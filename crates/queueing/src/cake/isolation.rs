//! Flow and host isolation of CAKE.
//!
//! Published: tc-cake(8), "Flow isolation parameters"; Høiland-Jørgensen, Täht, Morton 2018,
//! section III-B.

use core::net::IpAddr;
use std::collections::BTreeMap;

use lastmile_packet::FlowId;

/// The packets that share a queue, and the hosts among which the rate is shared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Isolation {
    /// One queue for all packets.
    FlowBlind,
    /// A queue for each source host.
    SourceHost,
    /// A queue for each destination host.
    DestinationHost,
    /// A queue for each pair of source and destination host.
    Hosts,
    /// A queue for each flow.
    Flows,
    /// A queue for each flow; the rate is shared among source hosts, and then among the flows of
    /// each.
    DualSourceHost,
    /// A queue for each flow; the rate is shared among destination hosts, and then among the flows
    /// of each.
    DualDestinationHost,
    /// A queue for each flow; a flow gets the smaller of its shares by source host and by
    /// destination host.
    #[default]
    Triple,
}

/// Source and destination host. `None` if the addresses of the packet cannot be read.
pub(super) type Hosts = Option<(IpAddr, IpAddr)>;

impl Isolation {
    /// Whether source hosts, and destination hosts, share the rate.
    const fn shares(self) -> (bool, bool) {
        match self {
            Self::DualSourceHost => (true, false),
            Self::DualDestinationHost => (false, true),
            Self::Triple => (true, true),
            _ => (false, false),
        }
    }

    /// True if the mode depends on the addresses of a packet.
    pub(super) const fn needs_hosts(self) -> bool {
        !matches!(self, Self::FlowBlind | Self::Flows)
    }

    /// A tag that is equal for packets that must share a queue, and differs for others: flows have
    /// numbers of their own, and addresses are hashed to 64 bits.
    pub(super) fn tag(self, flow: FlowId, hosts: Hosts) -> u64 {
        let (source, destination) =
            hosts.map_or((0, 0), |(source, destination)| (of_host(source), of_host(destination)));
        match self {
            Self::FlowBlind => 0,
            Self::SourceHost => source,
            Self::DestinationHost => destination,
            Self::Hosts => mix(source ^ destination.rotate_left(32)),
            Self::Flows | Self::DualSourceHost | Self::DualDestinationHost | Self::Triple => u64::from(flow.index()),
        }
    }
}

fn of_host(address: IpAddr) -> u64 {
    match address {
        IpAddr::V4(address) => mix(u64::from(address.to_bits())),
        IpAddr::V6(address) => {
            let bits = address.to_bits();
            mix(mix(bits as u64) ^ (bits >> 64) as u64)
        }
    }
}

/// Hashes 64 bits: the halves of a product, combined, so that each bit of the result depends on
/// all.
pub(super) fn mix(bits: u64) -> u64 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let wide = u128::from(bits ^ ODD) * u128::from(ODD);
    (wide >> 64) as u64 ^ wide as u64
}

/// Number of bulk flows, and of those of each host, by which the host's share is divided.
#[derive(Clone, Debug, Default)]
pub(super) struct HostLoad {
    flows: u32,
    sources: BTreeMap<IpAddr, u32>,
    destinations: BTreeMap<IpAddr, u32>,
}

impl HostLoad {
    /// A flow between these hosts became a bulk flow.
    pub(super) fn add(&mut self, isolation: Isolation, hosts: Hosts) {
        self.flows += 1;
        let Some((source, destination)) = hosts else { return };
        let (by_source, by_destination) = isolation.shares();
        if by_source {
            *self.sources.entry(source).or_default() += 1;
        }
        if by_destination {
            *self.destinations.entry(destination).or_default() += 1;
        }
    }

    /// A flow between these hosts stopped being a bulk flow.
    pub(super) fn remove(&mut self, isolation: Isolation, hosts: Hosts) {
        self.flows -= 1;
        let Some((source, destination)) = hosts else { return };
        let (by_source, by_destination) = isolation.shares();
        if by_source {
            decrement(&mut self.sources, source);
        }
        if by_destination {
            decrement(&mut self.destinations, destination);
        }
    }

    /// Bulk flows of all hosts.
    pub(super) fn flows(&self) -> u32 {
        self.flows
    }

    /// The number of flows with which a flow between these hosts shares: the larger load of the
    /// two, at least 1 (itself).
    pub(super) fn of(&self, hosts: Hosts) -> u32 {
        let Some((source, destination)) = hosts else { return 1 };
        let load = |map: &BTreeMap<IpAddr, u32>, host| map.get(host).copied().unwrap_or(1);
        load(&self.sources, &source).max(load(&self.destinations, &destination))
    }
}

fn decrement(map: &mut BTreeMap<IpAddr, u32>, host: IpAddr) {
    let count = map.get_mut(&host).expect("a flow was counted before");
    *count -= 1;
    if *count == 0 {
        map.remove(&host);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(source: u32, destination: u32) -> Hosts {
        Some((IpAddr::V4(source.into()), IpAddr::V4(destination.into())))
    }

    #[test]
    fn each_mode_separates_its_flows_or_hosts() {
        use Isolation::{DestinationHost, FlowBlind, Flows, Hosts, SourceHost, Triple};
        let tag = |mode: Isolation, flow, source, destination| mode.tag(FlowId::new(flow), hosts(source, destination));
        let first = |mode| tag(mode, 1, 1, 2);
        assert_eq!(first(FlowBlind), tag(FlowBlind, 9, 8, 7));
        assert_eq!(first(SourceHost), tag(SourceHost, 9, 1, 7));
        assert_ne!(first(SourceHost), tag(SourceHost, 1, 8, 2));
        assert_eq!(first(DestinationHost), tag(DestinationHost, 9, 8, 2));
        assert_ne!(first(DestinationHost), tag(DestinationHost, 1, 1, 7));
        assert_eq!(first(Hosts), tag(Hosts, 9, 1, 2));
        assert_ne!(first(Hosts), tag(Hosts, 1, 2, 1));
        assert_ne!(first(Flows), tag(Flows, 9, 1, 2));
        assert_ne!(first(Triple), tag(Triple, 9, 1, 2));
    }

    #[test]
    fn each_half_of_an_address_matters() {
        let tag = |bits: u128| {
            let host = IpAddr::V6(bits.into());
            Isolation::SourceHost.tag(FlowId::new(1), Some((host, host)))
        };
        assert_ne!(tag(1), tag(2));
        assert_ne!(tag(1), tag(1 << 64 | 1));
        assert_eq!(tag(1 << 64 | 1), tag(1 << 64 | 1));
    }

    /// One source with three flows to two destinations; a host's load counts only in modes that
    /// share by it.
    #[test]
    fn the_load_of_a_flow_is_the_larger_of_its_hosts() {
        let load = |mode| {
            let mut load = HostLoad::default();
            for destination in [5, 5, 6] {
                load.add(mode, hosts(1, destination));
            }
            [hosts(1, 5), hosts(1, 6), hosts(2, 5), None].map(|hosts| load.of(hosts))
        };
        assert_eq!(load(Isolation::Flows), [1, 1, 1, 1]);
        assert_eq!(load(Isolation::DualSourceHost), [3, 3, 1, 1]);
        assert_eq!(load(Isolation::DualDestinationHost), [2, 1, 2, 1]);
        assert_eq!(load(Isolation::Triple), [3, 3, 2, 1]);
        let mut fewer = HostLoad::default();
        (0..3).for_each(|_| fewer.add(Isolation::Triple, hosts(1, 5)));
        fewer.remove(Isolation::Triple, hosts(1, 5));
        assert_eq!((fewer.of(hosts(1, 5)), fewer.flows()), (2, 2));
        let mut gone = HostLoad::default();
        gone.add(Isolation::Triple, hosts(1, 5));
        gone.remove(Isolation::Triple, hosts(1, 5));
        assert!(gone.sources.is_empty() && gone.destinations.is_empty());
    }
}

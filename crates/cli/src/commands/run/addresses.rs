//! The addresses that simulated packets wear in a capture: one for each node, and ports for each connection.
//!
//! Node n of the network is 10.0.0.1 + n, or fd00::1 + n over IPv6. Whoever opens connection c has port 50 000 and up, the far
//! end 49 152 and up; Wireshark has no protocol of its own on any of them.

use std::net::{Ipv4Addr, Ipv6Addr};

use lastmile_packet::{FlowAddresses, IpAddresses, Meta};
use lastmile_sim::spec::{Network, OpenedBy, Source};

/// Connections for each port of a far end.
const PORTS: u32 = 10_000;

/// The ends of every flow of a network.
pub(super) struct Addresses {
    /// By connection: the node that opens it, the node at the far end, and whether the data come from the far end.
    ends: Vec<(u32, u32, bool)>,
}

impl Addresses {
    pub(super) fn new(network: &Network) -> Self {
        let node = |index: usize| u32::try_from(index).expect("a network has fewer than 2^32 nodes");
        let mut ends = Vec::new();
        for traffic in &network.traffic {
            let (from, to) = (node(traffic.from), node(traffic.to));
            let by_receiver = matches!(traffic.source, Source::Bulk { opened_by: OpenedBy::Receiver, .. });
            let end = if by_receiver { (to, from, true) } else { (from, to, false) };
            ends.extend((0..traffic.count).map(|_| end));
        }
        Self { ends }
    }

    /// The addresses of a packet. Flow `2c` carries the data of connection `c`, flow `2c + 1` goes back.
    pub(super) fn of(&self, packet: &Meta) -> FlowAddresses {
        let connection = packet.flow.index() / 2;
        let (opener, far, data_from_far) = self.ends[connection as usize];
        let ip = if packet.mark.ipv6() {
            IpAddresses::V6 { source: v6(opener), destination: v6(far) }
        } else {
            IpAddresses::V4 { source: v4(opener), destination: v4(far) }
        };
        let from_opener = FlowAddresses {
            ip,
            source_port: 50_000 + (connection % PORTS) as u16,
            destination_port: 49_152 + (connection / PORTS) as u16,
        };
        let goes_back = !packet.flow.index().is_multiple_of(2);
        if goes_back == data_from_far { from_opener } else { from_opener.reversed() }
    }
}

fn v4(node: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits((10 << 24) + 1 + node)
}

fn v6(node: u32) -> Ipv6Addr {
    Ipv6Addr::from_bits((0xfd00 << 112) + 1 + u128::from(node))
}

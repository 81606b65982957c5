//! An emulated line, and the positions of its two ends.

use core::num::NonZeroU16;
use std::net::{Ipv4Addr, Ipv6Addr};

use lastmile_model::Hop;

use crate::io::Path;
use crate::pace::Tuning;

/// An emulated line and where its two ends stand.
#[derive(Clone, Debug)]
pub struct Config {
    /// The hops from the client to the server, in this order; at least one.
    pub up: Vec<Hop>,
    /// The hops from the server to the client, in this order; at least one.
    pub down: Vec<Hop>,
    /// Where the client's device is.
    pub client: Place,
    /// Where the server's device is.
    pub server: Place,
    /// Address of the client's device.
    pub client_address: Ipv4Addr,
    /// Address of the server's device.
    pub server_address: Ipv4Addr,
    /// Bits of the network of both.
    pub prefix_len: u8,
    /// IPv6 address of the client's device.
    pub client_address_v6: Ipv6Addr,
    /// IPv6 address of the server's device.
    pub server_address_v6: Ipv6Addr,
    /// Bits of the IPv6 network of both.
    pub prefix_len_v6: u8,
    /// MTU of both devices. Below 1280 bytes they have no IPv6. An interface keeps its own.
    pub mtu: u16,
    /// Decides which packets are lost on the wire, where a direction loses any.
    pub seed: u64,
    /// By what frames come and go where the ends are interfaces.
    pub path: Path,
    /// How hard to try to be on time.
    pub tuning: Tuning,
    /// Whether the headers of packets are recorded, for [`super::Handle::replay`].
    pub records: bool,
}

impl Config {
    /// The line between two new namespaces, with addresses of the networks for benchmarks (RFC
    /// 2544, RFC 5180): 198.18.0.2 and 2001:2::2 for the client, 198.18.0.1 and 2001:2::1 for the
    /// server. The MTU is the least of the hops, and 1500 where none has one.
    #[must_use]
    pub fn new(up: Vec<Hop>, down: Vec<Hop>) -> Self {
        let mtus = up.iter().chain(&down).filter_map(|hop| hop.line.link_layer.mtu());
        let mtu = mtus.min().map_or(1500, NonZeroU16::get);
        Self {
            up,
            down,
            client: Place::New,
            server: Place::New,
            client_address: Ipv4Addr::new(198, 18, 0, 2),
            server_address: Ipv4Addr::new(198, 18, 0, 1),
            prefix_len: 30,
            client_address_v6: Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, 2),
            server_address_v6: Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, 1),
            prefix_len_v6: 126,
            mtu,
            seed: 1,
            path: Path::default(),
            tuning: Tuning::default(),
            records: false,
        }
    }
}

/// Where one end of the line is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// In a new namespace, removed at the end: `lastmile-PID-client` or `lastmile-PID-server`.
    New,
    /// In a new namespace without a name, which ends with the line and what runs in it:
    /// [`crate::netns::Namespace::unnamed`].
    Unnamed,
    /// In the namespace of this name, which exists.
    Existing(String),
    /// In the namespace of the caller.
    Here,
    /// Nowhere of its own: whatever is behind this interface. The other end must be an interface too.
    Interface {
        /// The namespace that it is in; `None` for that of the caller.
        namespace: Option<String>,
        /// Its name.
        name: String,
    },
}

#[cfg(test)]
mod tests {
    use lastmile_linklayer::LinkLayer;
    use lastmile_queueing::line;
    use lastmile_queueing::spec::Spec;
    use lastmile_units::Duration;

    use super::*;

    /// PPPoE leaves 1492 bytes of an Ethernet frame (RFC 2516); bare IP has no MTU of its own.
    #[test]
    fn the_devices_have_the_least_mtu_of_the_hops() {
        let hop = |name: &str| {
            let layer = LinkLayer::from_name(name).expect("a preset");
            Hop { name: name.to_owned(), line: line::Config::new(None, layer, Duration::ZERO), queue: Spec::fifo(100) }
        };
        let narrow = |bytes| {
            let mut hop = hop("pppoe-ptm");
            hop.line.link_layer = hop.line.link_layer.with_mtu(NonZeroU16::new(bytes));
            hop
        };
        let mtu = |up: Vec<Hop>, down: Vec<Hop>| Config::new(up, down).mtu;
        assert_eq!(mtu(vec![hop("ip")], vec![hop("ip")]), 1500);
        assert_eq!(mtu(vec![hop("ethernet"), hop("pppoe-ptm")], vec![hop("ethernet")]), 1492);
        assert_eq!(mtu(vec![hop("pppoe-ptm")], vec![narrow(1400), hop("ethernet")]), 1400);
        assert_eq!(mtu(vec![narrow(9000)], vec![narrow(9000)]), 9000);
    }
}

//! Addresses, ports and first payload bytes of every flow of a network, for simulated packets.
//!
//! Classifiers, header compression and captures share this directory, so that they see equal
//! values. Defaults: node n of the network is 10.0.0.1 + n, or fd00::1 + n over IPv6. The opener of
//! connection c has port 50 000 and up, the far end 49 152 and up; Wireshark assigns no protocol to
//! any of these ports. Connections with a given port of the far end have distinct ports for the
//! first 10 000 of them.
//!
//! Flow numbers begin with those of the traffic list. The pings of controllers follow, then the flows of replays, with
//! the addresses of their capture, then connections opened during the run, in turn for each traffic that opens such, or
//! for each of its users ([`number_of`], [`Traffic::opening_members`]).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use lastmile_packet::{FlowAddresses, FlowDirectory, FlowId, IpAddresses};

use crate::{Autorate, EndName, Network, NodeIndex, OpenedBy, Source, Traffic};

/// Connections for each port of a far end.
const PORTS: u32 = 10_000;

/// The addresses of every flow of a network.
#[derive(Debug)]
pub struct Directory {
    traffic: Vec<Entry>,
    /// The number of the first connection of each traffic.
    first: Vec<u32>,
    /// The number of connections in the traffic list, and of pings.
    declared: u32,
    /// The flows of replays, with the addresses of their captures.
    replayed: Vec<FlowAddresses>,
    /// The traffic that opens connections during the run, by index, each with its members.
    opening: Vec<(usize, u32)>,
}

/// The number of connection `slot` of the `place`-th of `opening` traffics or users, after `before` other
/// numbers.
#[must_use]
pub fn number_of(before: u32, opening: u32, place: u32, slot: u32) -> u32 {
    before + slot * opening + place
}

/// The addresses of a traffic.
#[derive(Debug)]
struct Entry {
    from: (IpAddr, EndName),
    to: (IpAddr, EndName),
    opened_by: OpenedBy,
}

impl Directory {
    /// The directory of a network that is checked before the first look-up.
    #[must_use]
    pub fn new(network: &Network) -> Self {
        let opening = network.traffic.iter().enumerate();
        let opening = opening.flat_map(|(index, traffic)| traffic.opening_members().map(move |member| (index, member)));
        let replays = network.traffic.iter().flat_map(|traffic| match &traffic.source {
            Source::Replay(capture) => vec![capture; traffic.count as usize],
            _ => Vec::new(),
        });
        let mut directory = Self {
            traffic: Vec::new(),
            first: Vec::new(),
            declared: 0,
            replayed: replays.flat_map(|capture| capture.flows.iter().map(|key| key.addresses)).collect(),
            opening: opening.collect(),
        };
        let mut connections = 0_u32;
        for traffic in &network.traffic {
            directory.first.push(connections);
            directory.traffic.push(Entry::of(traffic));
            connections = connections.saturating_add(traffic.count);
        }
        for autorate in &network.autorates {
            directory.first.push(connections);
            directory.traffic.push(Entry::of_pings(autorate));
            connections = connections.saturating_add(autorate.flows());
        }
        directory.declared = connections;
        directory
    }

    /// The number of connections before the first one opened during the run.
    fn before(&self) -> u32 {
        self.declared + self.replayed.len() as u32
    }

    /// The addresses in the capture of a replayed connection.
    fn replayed(&self, connection: u32) -> Option<FlowAddresses> {
        self.replayed.get(connection.checked_sub(self.declared)? as usize).copied()
    }

    /// The traffic of a flow, the number of the connection within it, and its member.
    fn entry(&self, connection: u32) -> (&Entry, u32, u32) {
        if let Some(number) = connection.checked_sub(self.before()) {
            let opening = self.opening.len() as u32;
            let (traffic, member) = self.opening[(number % opening) as usize];
            return (&self.traffic[traffic], number / opening, member);
        }
        let index = self.first.partition_point(|first| *first <= connection) - 1;
        let member = connection - self.first[index];
        (&self.traffic[index], member, member)
    }
}

impl FlowDirectory for Directory {
    /// # Panics
    /// For a network without traffic, and so without flows.
    fn addresses(&self, flow: FlowId) -> FlowAddresses {
        let connection = flow.index() / 2;
        let there = self.replayed(connection).unwrap_or_else(|| {
            let (entry, number, member) = self.entry(connection);
            entry.addresses(connection, number as u16, member)
        });
        if flow.index().is_multiple_of(2) { there } else { there.reversed() }
    }

    fn first_payload(&self, flow: FlowId) -> &[u8] {
        if self.replayed(flow.index() / 2).is_some() {
            return &[];
        }
        let (entry, ..) = self.entry(flow.index() / 2);
        let end = if flow.index().is_multiple_of(2) { &entry.from } else { &entry.to };
        &end.1.first_payload
    }
}

impl Entry {
    fn of(traffic: &Traffic) -> Self {
        let end = |end: &EndName, node: NodeIndex| (default(node, traffic.ip.ipv6), end.clone());
        Self {
            from: end(&traffic.names.from, traffic.from),
            to: end(&traffic.names.to, traffic.to),
            opened_by: traffic.opened_by(),
        }
    }

    fn of_pings(autorate: &Autorate) -> Self {
        let end = |node| (default(node, false), EndName::default());
        Self { from: end(autorate.from), to: end(autorate.reflector), opened_by: OpenedBy::Sender }
    }

    /// The addresses of the data of connection `connection` of the network, the `number`-th of its
    /// traffic, opened by its `member`.
    fn addresses(&self, connection: u32, number: u16, member: u32) -> FlowAddresses {
        let opener = |end: &EndName| match end.port {
            Some(first) => first.wrapping_add(number),
            None => 50_000 + (connection % PORTS) as u16,
        };
        let far = |end: &EndName| end.port.unwrap_or(49_152 + (connection / PORTS) as u16);
        let (source_port, destination_port) = match self.opened_by {
            OpenedBy::Sender => (opener(&self.from.1), far(&self.to.1)),
            OpenedBy::Receiver => (far(&self.from.1), opener(&self.to.1)),
        };
        let [from, to] = [&self.from, &self.to].map(|(node, end)| end.address_of(member).unwrap_or(*node));
        let ip = IpAddresses::new(from, to).expect("the network was checked: one family");
        FlowAddresses { ip, source_port, destination_port }
    }
}

/// The address of a node without a configured address.
fn default(node: NodeIndex, ipv6: bool) -> IpAddr {
    let node = u32::try_from(node).expect("a network has fewer than 2^32 nodes");
    if ipv6 {
        Ipv6Addr::from_bits((0xfd00 << 112) + 1 + u128::from(node)).into()
    } else {
        Ipv4Addr::from_bits((10 << 24) + 1 + node).into()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use lastmile_tcp::Config;
    use lastmile_units::{Duration, Instant};

    use super::*;
    use lastmile_packet::FlowKey;

    use crate::{Http, Names, Node, Record, Replay, Swarm, Transport, Web};

    fn transfers(count: u32, opened_by: OpenedBy, ipv6: bool, names: Names) -> Traffic {
        let tcp = Arc::new(Config { ipv6, ..Config::default() });
        Traffic {
            name: "transfer".into(),
            direction: "down".into(),
            from: 1,
            to: 0,
            count,
            start: Instant::ZERO,
            stop: None,
            ip: crate::IpFields { ipv6, ..crate::IpFields::default() },
            names,
            listener: Default::default(),
            source: Source::Bulk { sender: Arc::clone(&tcp), receiver: tcp, bytes: None, request: 0, opened_by },
        }
    }

    fn directory(traffic: Vec<Traffic>) -> Directory {
        let node = |name: &str| Node { name: name.into(), processing: Duration::ZERO };
        Directory::new(&Network {
            nodes: vec![node("client"), node("server")],
            links: vec![],
            traffic,
            duration: Duration::from_s(1),
            seed: 1,
            start_jitter: Duration::ZERO,
            record: Record::default(),
            lines: Vec::new(),
            atm: None,
            autorates: Vec::new(),
        })
    }

    fn ends_of(directory: &Directory, flow: u32) -> String {
        let FlowAddresses { ip, source_port, destination_port } = directory.addresses(FlowId::new(flow));
        format!("{} {source_port} > {} {destination_port}", ip.source(), ip.destination())
    }

    #[test]
    fn what_is_not_named_has_the_address_of_its_node_and_a_port_of_its_own() {
        let plain = |opened_by, ipv6| transfers(1, opened_by, ipv6, Names::default());
        let both = directory(vec![plain(OpenedBy::Receiver, false), plain(OpenedBy::Sender, true)]);
        assert_eq!(ends_of(&both, 0), "10.0.0.2 49152 > 10.0.0.1 50000");
        assert_eq!(ends_of(&both, 1), "10.0.0.1 50000 > 10.0.0.2 49152");
        assert_eq!(ends_of(&both, 2), "fd00::2 50001 > fd00::1 49152");
    }

    #[test]
    fn what_is_named_keeps_its_name_and_openers_take_one_port_each() {
        let end = |address: &str, port, text: &str| EndName {
            address: Some(address.parse().unwrap()),
            one_each: false,
            port: Some(port),
            first_payload: text.into(),
        };
        let names = Names { from: end("192.0.2.80", 80, "HTTP/1.1 200 OK"), to: end("10.0.1.7", 3000, "GET /") };
        let web = directory(vec![
            transfers(3, OpenedBy::Receiver, false, Names::default()),
            transfers(2, OpenedBy::Receiver, false, names),
        ]);
        assert_eq!(ends_of(&web, 4), "10.0.0.2 49152 > 10.0.0.1 50002");
        assert_eq!(ends_of(&web, 6), "192.0.2.80 80 > 10.0.1.7 3000");
        assert_eq!(ends_of(&web, 9), "10.0.1.7 3001 > 192.0.2.80 80");
        assert_eq!(web.first_payload(FlowId::new(4)), b"");
        assert_eq!(web.first_payload(FlowId::new(6)), b"HTTP/1.1 200 OK");
        assert_eq!(web.first_payload(FlowId::new(9)), b"GET /");
    }

    fn web() -> Source {
        Source::Web(Arc::new(Web {
            transport: Transport::Tcp(Arc::new(Config::default())),
            reading: Duration::from_s(30),
            parsing: Duration::from_ms(130),
            request: 350,
            connections: 6,
            http: Http::One1,
            tls: false,
        }))
    }

    #[test]
    fn each_connection_and_each_user_has_a_host_of_its_own_where_the_end_says_so() {
        let first =
            |address: &str| EndName { address: Some(address.parse().unwrap()), one_each: true, ..EndName::default() };
        let names = Names { from: first("203.0.113.9"), to: first("192.168.1.2") };
        let users = Traffic { source: web(), ..transfers(2, OpenedBy::Receiver, false, names.clone()) };
        let all = directory(vec![transfers(3, OpenedBy::Receiver, false, names), users]);
        assert_eq!(ends_of(&all, 0), "203.0.113.9 49152 > 192.168.1.2 50000");
        assert_eq!(ends_of(&all, 4), "203.0.113.11 49152 > 192.168.1.4 50002");
        // Numbers 0 to 4 are the traffic list; then the two users alternate.
        let number = |user, slot| 2 * number_of(5, 2, user, slot);
        assert_eq!(ends_of(&all, number(0, 0)), "203.0.113.9 49152 > 192.168.1.2 50005");
        assert_eq!(ends_of(&all, number(1, 0)), "203.0.113.10 49152 > 192.168.1.3 50006");
        assert_eq!(ends_of(&all, number(1, 1)), "203.0.113.10 49152 > 192.168.1.3 50008");
    }

    #[test]
    fn replays_keep_their_addresses_and_connections_that_come_take_those_of_their_traffic() {
        let tcp = Arc::new(Config::default());
        let captured = FlowAddresses::of_simulated(FlowId::new(2 * 77));
        let replay = Replay { packets: vec![], flows: vec![FlowKey { addresses: captured, protocol: 6 }] };
        let swarm = Swarm { tcp, peers: 9, slots: 4, rechoke: Duration::from_s(10) };
        let of = |source, names| Traffic { source, ..transfers(1, OpenedBy::Sender, false, names) };
        let http = Names { from: EndName { port: Some(80), ..EndName::default() }, ..Names::default() };
        let all = directory(vec![
            of(web(), http),
            of(Source::Replay(Arc::new(replay)), Names::default()),
            of(Source::Swarm(Arc::new(swarm)), Names::default()),
        ]);
        assert_eq!(all.addresses(FlowId::new(6)), captured);
        assert_eq!(all.addresses(FlowId::new(7)), captured.reversed());
        // Numbers 0 to 2 are the traffic list, 3 the capture's flow; then web and swarm alternate.
        let number = |place, slot| 2 * number_of(4, 2, place, slot);
        assert_eq!(ends_of(&all, number(0, 0)), "10.0.0.2 80 > 10.0.0.1 50004");
        assert_eq!(ends_of(&all, number(1, 0)), "10.0.0.2 50005 > 10.0.0.1 49152");
        assert_eq!(ends_of(&all, number(0, 1) + 1), "10.0.0.1 50006 > 10.0.0.2 80");
    }
}

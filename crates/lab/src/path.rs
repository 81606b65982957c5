//! From a scenario's links to the hops that packets take between its two ends.

use lastmile_model::{AccessLine, Autorate, Hop, Network, NodeIndex};
use lastmile_queueing::autorate;
use lastmile_scenario::Scenario;

use crate::error::Error;

/// The links between client and server, both ways, as indices into the network's list.
pub struct Path<'s> {
    network: &'s Network,
    ends: [NodeIndex; 2],
    up: Vec<usize>,
    down: Vec<usize>,
}

impl<'s> Path<'s> {
    /// The way between these nodes; without them, between client and server of the access line.
    pub fn of(scenario: &'s Scenario, between: Option<&(String, String)>) -> Result<Self, Error> {
        let network = scenario.network_ref();
        let (client, server) = match (between, scenario.access()) {
            (Some((client, server)), _) => (node(network, client)?, node(network, server)?),
            (None, Some(access)) => (access.client, access.server),
            (None, None) => return Err(Error::NoEnds { scenario: scenario.name().to_owned() }),
        };
        let way = |from: NodeIndex, to: NodeIndex| {
            scenario.way(from, to).filter(|way| !way.is_empty()).ok_or_else(|| {
                let [from, to] = [from, to].map(|node| network.nodes[node].name.clone());
                Error::NoPath { scenario: scenario.name().to_owned(), from, to }
            })
        };
        let path = Self { network, ends: [client, server], up: way(client, server)?, down: way(server, client)? };
        path.refuse_cells(scenario)?;
        Ok(path)
    }

    /// Switches and their contracts are simulated; real packets cross lines alone.
    fn refuse_cells(&self, scenario: &Scenario) -> Result<(), Error> {
        let Some(atm) = &self.network.atm else { return Ok(()) };
        match self.up.iter().chain(&self.down).find(|link| atm.links.contains(link)) {
            Some(link) => Err(Error::Cells {
                scenario: scenario.name().to_owned(),
                link: self.network.links[*link].hop.name.clone(),
            }),
            None => Ok(()),
        }
    }

    /// The controllers of shapers on the way, and the hops of their shapers: down, up. Hops up are numbered first.
    pub fn autorates(&self) -> Vec<(autorate::Config, [usize; 2])> {
        let steered = |autorate: &Autorate| {
            let [down, up] = autorate.shapers.map(|link| self.at(link));
            Some((autorate.controller.clone(), [down?, up?]))
        };
        self.network.autorates.iter().filter_map(steered).collect()
    }

    /// The hop of this link, if it is on the way.
    fn at(&self, link: usize) -> Option<usize> {
        self.up.iter().chain(&self.down).position(|crossed| *crossed == link)
    }

    /// The nodes at both ends: the client and the server.
    pub fn ends(&self) -> [NodeIndex; 2] {
        self.ends
    }

    /// From the client to the server.
    pub fn up(&self) -> Vec<Hop> {
        self.up.iter().map(|link| self.hop(*link)).collect()
    }

    /// From the server to the client.
    pub fn down(&self) -> Vec<Hop> {
        self.down.iter().map(|link| self.hop(*link)).collect()
    }

    /// The network with these links alone, those up and then those down, the access lines that they cross, and no
    /// traffic.
    pub fn network(&self) -> Network {
        let line = |line: &AccessLine| {
            Some(AccessLine { name: line.name.clone(), down: self.at(line.down)?, up: self.at(line.up)? })
        };
        Network {
            lines: self.network.lines.iter().filter_map(line).collect(),
            links: self.up.iter().chain(&self.down).map(|link| self.network.links[*link].clone()).collect(),
            traffic: Vec::new(),
            atm: None,
            autorates: Vec::new(),
            ..self.network.clone()
        }
    }

    fn hop(&self, link: usize) -> Hop {
        self.network.hop_of(&self.network.links[link])
    }
}

fn node(network: &Network, name: &str) -> Result<NodeIndex, Error> {
    network.nodes.iter().position(|node| node.name == name).ok_or_else(|| {
        let known = network.nodes.iter().map(|node| node.name.clone()).collect();
        Error::NoNode { name: name.to_owned(), known }
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use lastmile_units::{ByteCount, Duration};

    use super::*;

    fn scenario(text: &str) -> Scenario {
        Scenario::parse("line.toml", text, &[]).unwrap()
    }

    /// Eight access lines that share a DSLAM.
    pub(crate) const SEVERAL: &str = r#"
        duration = "1 s"
        [access]
        lines = 8
        down = { rate = "8 Mbit/s" }
        up = { rate = "1 Mbit/s" }
        [[traffic]]
        kind = "bulk"
        direction = "down"
    "#;

    /// An access line with a backbone of 10 ms, a processing delay in the DSLAM, and a ping.
    const ACCESS: &str = r#"
        duration = "1 s"
        [access]
        encapsulation = "bridged-vcmux-fcs"
        down = { rate = "2 Mbit/s", delay = "4 ms" }
        up = { rate = "512 kbit/s", delay = "4 ms" }
        processing = { dslam = "1 ms" }
        [[traffic]]
        kind = "ping"
        direction = "up"
    "#;

    #[test]
    fn the_hops_are_the_links_between_client_and_server() {
        let scenario = scenario(ACCESS);
        let path = Path::of(&scenario, None).unwrap();
        let names = |hops: Vec<Hop>| hops.into_iter().map(|hop| hop.name).collect::<Vec<_>>();
        assert_eq!(names(path.up()), ["client-cpe", "up", "dslam-gateway", "gateway-server"]);
        assert_eq!(names(path.down()), ["server-gateway", "gateway-dslam", "down", "cpe-client"]);
        let network = path.network();
        assert_eq!(network.links.len(), 8);
        assert!(network.traffic.is_empty());
    }

    /// The scenario computes the round trip of the empty line itself.
    #[test]
    fn transmission_and_delays_of_the_hops_sum_up_to_the_scenarios_round_trip() {
        let scenario = scenario(ACCESS);
        let path = Path::of(&scenario, None).unwrap();
        let size = ByteCount::new(84);
        let sum: Duration = path
            .up()
            .iter()
            .chain(&path.down())
            .map(|hop| hop.line.least_time(hop.line.link_layer.on_wire(size)))
            .sum();
        assert_eq!(Some(sum), scenario.base_rtt(0, size, size));
    }

    /// An access line is two indices into the links of its network.
    #[test]
    fn the_network_has_the_access_lines_that_its_links_are_of() {
        let alone = scenario(ACCESS);
        let several = scenario(SEVERAL);
        let crossed = |scenario: &Scenario, ends: Option<(&str, &str)>| {
            let ends = ends.map(|(client, server)| (client.to_owned(), server.to_owned()));
            let network = Path::of(scenario, ends.as_ref()).unwrap().network();
            let names = |line: &AccessLine| {
                let [up, down] = [line.up, line.down].map(|link| network.links[link].hop.name.clone());
                format!("{}: {up}, {down}", line.name)
            };
            network.lines.iter().map(names).collect::<Vec<_>>()
        };
        assert_eq!(crossed(&alone, None), ["line: up, down"]);
        assert_eq!(crossed(&several, Some(("client-8", "server"))), ["line-8: up-8, down-8"]);
        assert_eq!(crossed(&several, Some(("client-3", "client-2"))), ["line-2: up-2, down-2", "line-3: up-3, down-3"]);
        assert!(crossed(&several, Some(("server", "gateway"))).is_empty());
    }

    /// Between two nodes there is one way, so that both shapers are on it or none.
    #[test]
    fn a_controller_comes_with_the_hops_of_its_shapers() {
        let steered = ACCESS.replace("[access]", "[access]\npolicy = \"cake-autorate\"");
        let line = scenario(&steered);
        let path = Path::of(&line, None).unwrap();
        let hops: Vec<Hop> = path.up().into_iter().chain(path.down()).collect();
        let names = path.autorates().into_iter().map(|(_, shapers)| shapers.map(|hop| hops[hop].name.clone()));
        assert_eq!(names.collect::<Vec<_>>(), [["middlebox-down", "middlebox-up"]]);
        let beyond = ("dslam".to_owned(), "server".to_owned());
        assert!(Path::of(&line, Some(&beyond)).unwrap().autorates().is_empty());
    }

    #[test]
    fn links_of_ones_own_need_two_ends() {
        let own = scenario(
            r#"
            duration = "1 s"
            [[link]]
            from = "a"
            to = "b"
            rate = "1 Mbit/s"
            one_way = true
            [[link]]
            from = "b"
            to = "a"
            rate = "2 Mbit/s"
            one_way = true
            [[link]]
            from = "b"
            to = "c"
            rate = "2 Mbit/s"
            one_way = true
            "#,
        );
        assert!(Path::of(&own, None).is_err());
        let between = |client: &str, server: &str| Path::of(&own, Some(&(client.to_owned(), server.to_owned())));
        assert_eq!(between("a", "b").unwrap().up().len(), 1);
        assert!(matches!(between("a", "c"), Err(Error::NoPath { .. })), "no way back");
        assert!(matches!(between("a", "nowhere"), Err(Error::NoNode { .. })));
    }
}

//! From a scenario to what a lab is to do, and what of it only the simulator can.

use std::collections::BTreeSet;
use std::net::IpAddr;

use lastmile_live::emulate;
use lastmile_live::emulate::Tuning;
use lastmile_live::lab::{
    Application, ApplicationPlan, Config, DatagramPlan, EchoPlan, End, Flow, Hosts, Kind, TransferPlan, Window,
};
use lastmile_packet::{FlowAddresses, FlowDirectory as _, FlowId};
use lastmile_queueing::random::Stream;
use lastmile_scenario::Scenario;
use lastmile_sim::Directory;
use lastmile_sim::spec::{Echo, Network, NodeIndex, OpenedBy, Source, Traffic};
use lastmile_tcp::Config as Tcp;

use super::super::emulate::Path;
use super::{sources, tcp};
use crate::exit::{Failure, Result};

/// Most flows and connections at a time: every one is looked at whenever anything happens.
const MOST_FLOWS: u32 = 2000;
/// The timestamp option with its padding (RFC 7323, appendix A).
const TIMESTAMPS: u16 = 12;

/// What the kernel's TCP is to do otherwise than the scenario says.
#[derive(Clone, Copy, Default)]
pub(super) struct Kernel<'a> {
    /// Congestion control of every transfer, in place of that of its variant.
    pub(super) congestion: Option<&'a str>,
}

/// What the lab is to do with a scenario.
pub(super) struct Plan<'s> {
    /// The line's links, up and then down, and the traffic that the lab has.
    network: Network,
    /// Links of each direction.
    links: [usize; 2],
    config: Config,
    flows: Vec<Planned<'s>>,
    warnings: BTreeSet<String>,
}

/// One flow of a traffic.
struct Planned<'s> {
    traffic: &'s Traffic,
    /// Its place in the plan's network.
    index: usize,
    member: u32,
    from: End,
    addresses: FlowAddresses,
    congestion: String,
    timestamps: bool,
}

impl<'s> Plan<'s> {
    /// What the lab is to do with `scenario`. Its hosts stand for the nodes of these names, or for the ends of the access line, or for those
    /// between which all traffic runs.
    pub(super) fn of(scenario: &'s Scenario, between: Option<&(String, String)>, kernel: Kernel<'_>) -> Result<Self> {
        let whole = scenario.network_ref();
        if whole.lines.len() > 1 {
            let (name, lines) = (scenario.name(), whole.lines.len());
            return Err(Failure::new(format_args!("{name}: access.lines is {lines}, and the lab has one client"))
                .hint("set access.lines=1, or simulate it"));
        }
        let own = match (between, scenario.access()) {
            (None, None) => Some(ends_of_traffic(scenario)?),
            _ => None,
        };
        let path = Path::of(scenario, between.or(own.as_ref()))?;
        let [client, server] = path.ends();
        let (up, down) = (path.up(), path.down());
        let links = [up.len(), down.len()];
        let mut plan = Self {
            network: path.network(),
            links,
            config: Config {
                line: emulate::Config { seed: whole.seed, ..emulate::Config::new(up, down) },
                hosts: tcp::hosts(&[], &mut BTreeSet::new()),
                duration: whole.duration,
                interval: whole.record.interval,
            },
            flows: Vec::new(),
            warnings: BTreeSet::new(),
        };
        plan.config.line.tuning = Tuning { realtime: true, ..Tuning::default() };
        let directory = Directory::new(whole);
        let mut first = 0;
        for traffic in &whole.traffic {
            let from = match (traffic.from, traffic.to) {
                ends if ends == (client, server) => End::Client,
                ends if ends == (server, client) => End::Server,
                ends => return Err(elsewhere(scenario, traffic, ends, [client, server])),
            };
            if matches!(traffic.source, Source::Writes { .. } | Source::Ping { echo: Echo::Udp, .. }) {
                return Err(simulated_alone(scenario, traffic));
            }
            plan.add(traffic, from, first, &directory, kernel);
            first += traffic.count;
        }
        if plan.flows.is_empty() {
            return Err(Failure::new(format_args!("{}: nothing runs", scenario.name())).hint("add a [[traffic]]"));
        }
        let sockets = plan.sockets();
        if sockets > u64::from(MOST_FLOWS) {
            return Err(Failure::new(format_args!(
                "{}: {sockets} flows and connections at a time, of which the lab has {MOST_FLOWS} at most",
                scenario.name()
            )));
        }
        plan.settle();
        Ok(plan)
    }

    /// Flows, and connections that may be open at a time.
    pub(super) fn sockets(&self) -> u64 {
        let of = |flow: &Planned<'_>| match &flow.traffic.source {
            Source::Web(web) => u64::from(web.connections),
            // One that was dropped closes while the next one opens.
            Source::Swarm(swarm) => 2 * u64::from(swarm.slots),
            _ => 1,
        };
        self.flows.iter().map(of).sum()
    }

    /// Takes `traffic` in, which comes from `from`. `first` is the number of its first connection.
    fn add(&mut self, traffic: &'s Traffic, from: End, first: u32, directory: &Directory, kernel: Kernel<'_>) {
        let name = &traffic.name;
        if traffic.opens() && traffic.opener().port.is_some() && traffic.count > 1 {
            self.warnings.insert(format!("traffic \"{name}\": each of several has ports of the kernel's choice"));
        }
        let index = self.network.traffic.len();
        self.network.traffic.push(traffic.clone());
        let own = tcp_of(traffic).map_or("", |sender| tcp::congestion(sender.variant));
        for member in 0..traffic.count.min(MOST_FLOWS + 1) {
            self.flows.push(Planned {
                traffic,
                index,
                member,
                from,
                addresses: directory.addresses(FlowId::new(2 * (first + member))),
                congestion: kernel.congestion.unwrap_or(own).to_owned(),
                timestamps: false,
            });
        }
    }

    /// What all flows decide together: the settings of the hosts, and the MTU.
    fn settle(&mut self) {
        let configs: Vec<&Tcp> = self.network.traffic.iter().filter_map(tcp_of).collect();
        let mut warnings = BTreeSet::new();
        configs.iter().for_each(|config| tcp::warnings(config, &mut warnings));
        let hosts = tcp::hosts(&configs, &mut warnings);
        let options = if hosts.timestamps { TIMESTAMPS } else { 0 };
        let sizes = self.network.traffic.iter().map(|traffic| match &traffic.source {
            Source::Bulk { .. } | Source::Writes { .. } | Source::Web(_) | Source::Swarm(_) => {
                tcp_of(traffic).map_or(0, |sender| sender.mss.saturating_add(headers(sender) + options))
            }
            Source::Replay(capture) => capture.packets.iter().map(|(_, packet)| packet.ip_len).max().unwrap_or(0),
            Source::Poisson { size, .. }
            | Source::OnOff { size, .. }
            | Source::Constant { size, .. }
            | Source::Ping { size, .. } => u16::try_from(size.as_u64()).unwrap_or(u16::MAX),
        });
        self.config.line.mtu = sizes.max().unwrap_or(0).max(1500);
        self.flows.iter_mut().for_each(|flow| flow.timestamps = hosts.timestamps);
        let growing = self.network.traffic.iter().filter_map(receiver_of).filter(|receiver| receiver.autotune);
        self.config.hosts = Hosts { largest_window: growing.map(most_window).max(), ..hosts };
        self.warnings.append(&mut warnings);
    }

    /// The network that results tell of.
    pub(super) fn network(&self) -> &Network {
        &self.network
    }

    pub(super) fn config(&self) -> &Config {
        &self.config
    }

    /// What the lab does in another way than the simulator, or not at all.
    pub(super) fn warnings(&self) -> impl Iterator<Item = &str> {
        self.warnings.iter().map(String::as_str)
    }

    /// The links of the data of a flow, and those of its ACKs, by their places in the plan's network.
    pub(super) fn ways(&self, flow: usize) -> [Vec<usize>; 2] {
        let [up, down] = self.links;
        let ways = [(0..up).collect(), (up..up + down).collect()];
        match self.flows[flow].from {
            End::Client => ways,
            End::Server => {
                let [up, down] = ways;
                [down, up]
            }
        }
    }

    /// Of each flow: the place of its traffic in the plan's network, and its name.
    pub(super) fn rows(&self) -> impl Iterator<Item = (usize, String)> {
        self.flows.iter().map(|flow| (flow.index, flow.name()))
    }

    /// The flows, for one run.
    pub(super) fn flows(&self) -> Vec<Flow> {
        let line = &self.config.line;
        let mut hosts: BTreeSet<IpAddr> = [false, true].into_iter().flat_map(|ipv6| devices(line, ipv6)).collect();
        hosts.extend(self.flows.iter().flat_map(|flow| flow.ends(line)));
        self.flows.iter().filter_map(|planned| planned.flow(self.network.seed, line, &hosts)).collect()
    }
}

impl Planned<'_> {
    /// As the simulator calls it.
    fn name(&self) -> String {
        match self.traffic.count {
            1 => self.traffic.name.clone(),
            _ => format!("{}-{}", self.traffic.name, self.member + 1),
        }
    }

    fn flow(&self, seed: u64, line: &emulate::Config, hosts: &BTreeSet<IpAddr>) -> Option<Flow> {
        let Traffic { start, stop, dscp, source, .. } = self.traffic;
        let (start, stop, dscp) = (*start, *stop, *dscp);
        Some(Flow {
            name: self.name(),
            from: self.from,
            addresses: self.ends(line),
            start,
            stop,
            dscp,
            kind: self.kind(source, seed, hosts)?,
        })
    }

    fn kind(&self, source: &Source, seed: u64, hosts: &BTreeSet<IpAddr>) -> Option<Kind> {
        let FlowAddresses { source_port, destination_port, .. } = self.addresses;
        match source {
            Source::Bulk { sender, receiver, bytes, request, opened_by } => {
                Some(Kind::Transfer(self.transfer(sender, receiver, (*bytes, *request), *opened_by)))
            }
            Source::Ping { interval, size, .. } => {
                Some(Kind::Echo(EchoPlan { interval: *interval, size: u16::try_from(size.as_u64()).ok()? }))
            }
            Source::Web(model) => {
                let tcp = (model.server.as_ref(), model.browser.as_ref());
                let browser = sources::Browser::new(model, self.random(seed));
                Some(self.application(tcp, model.request, OpenedBy::Receiver, Box::new(browser)))
            }
            Source::Swarm(spec) => {
                let peer = sources::Peer::new(spec, self.random(seed));
                Some(self.application((&spec.tcp, &spec.tcp), 0, OpenedBy::Sender, Box::new(peer)))
            }
            Source::Replay(capture) => Some(Kind::Replay(sources::replay(capture, hosts))),
            other => {
                let (size, departures) = sources::departures(other, self.random(seed))?;
                Some(Kind::Datagrams(DatagramPlan {
                    size: u16::try_from(size.as_u64()).ok()?,
                    from_port: source_port,
                    to_port: destination_port,
                    first_payload: self.traffic.names.from.first_payload.clone(),
                    buffer: self.traffic.listener.buffer,
                    departures,
                }))
            }
        }
    }

    /// The addresses of client and server: those that the scenario names, and else those of the line's devices.
    fn ends(&self, line: &emulate::Config) -> [IpAddr; 2] {
        let names = &self.traffic.names;
        let (client, server) = match self.from {
            End::Client => (&names.from, &names.to),
            End::Server => (&names.to, &names.from),
        };
        let [own_client, own_server] = devices(line, self.traffic.ipv6());
        [client.address.unwrap_or(own_client), server.address.unwrap_or(own_server)]
    }

    /// The random stream that the simulator has for it.
    fn random(&self, seed: u64) -> Stream {
        Stream::new(seed, &format!("traffic {}-{}", self.traffic.name, self.member))
    }

    fn application(
        &self,
        (sender, receiver): (&Tcp, &Tcp),
        request: u32,
        opened_by: OpenedBy,
        application: Box<dyn Application>,
    ) -> Kind {
        let mut connection = self.transfer(sender, receiver, (None, request.into()), opened_by);
        if self.traffic.opener().port.is_none() || self.traffic.count > 1 {
            connection.opener_port = 0;
        }
        Kind::Application(ApplicationPlan { connection, application })
    }

    fn transfer(
        &self,
        sender: &Tcp,
        receiver: &Tcp,
        (bytes, request): (Option<u64>, u64),
        opened_by: OpenedBy,
    ) -> TransferPlan {
        let FlowAddresses { source_port, destination_port, .. } = self.addresses;
        let (opener, opener_port, listener_port) = match opened_by {
            OpenedBy::Sender => (self.from, source_port, destination_port),
            OpenedBy::Receiver => (self.from.other(), destination_port, source_port),
        };
        TransferPlan {
            congestion: self.congestion.clone(),
            segment: sender.mss.min(receiver.mss).saturating_add(if self.timestamps { TIMESTAMPS } else { 0 }),
            window: if receiver.autotune { Window::Grows } else { Window::Fixed(most_window(receiver)) },
            bytes,
            request,
            opener,
            opener_port,
            listener_port,
            first_payload: self.traffic.names.from.first_payload.clone(),
            first_request: self.traffic.names.to.first_payload.clone(),
            min_rto: sender.min_rto,
            max_rto: sender.max_rto,
            delayed_ack: receiver.delayed_ack,
            quick_acks: receiver.quick_acks || receiver.ack_every < 2,
        }
    }
}

/// The addresses of the devices of client and server.
fn devices(line: &emulate::Config, ipv6: bool) -> [IpAddr; 2] {
    if ipv6 {
        [line.client_address_v6.into(), line.server_address_v6.into()]
    } else {
        [line.client_address.into(), line.server_address.into()]
    }
}

/// Bytes of the IP and TCP headers without options.
fn headers(tcp: &Tcp) -> u16 {
    if tcp.ipv6 { 60 } else { 40 }
}

/// The TCP of the end that receives the data.
fn receiver_of(traffic: &Traffic) -> Option<&Tcp> {
    match &traffic.source {
        Source::Bulk { receiver, .. } => Some(receiver),
        Source::Web(web) => Some(&web.browser),
        _ => tcp_of(traffic),
    }
}

fn most_window(tcp: &Tcp) -> u32 {
    u32::try_from(tcp.receive_window.as_u64()).unwrap_or(1 << 30)
}

fn tcp_of(traffic: &Traffic) -> Option<&Tcp> {
    match &traffic.source {
        Source::Bulk { sender, .. } => Some(sender),
        Source::Writes { tcp, .. } => Some(tcp),
        Source::Web(web) => Some(&web.server),
        Source::Swarm(swarm) => Some(&swarm.tcp),
        _ => None,
    }
}

/// The names of the two nodes between which all traffic of a scenario without an access line runs: the one that opens first, and the other.
fn ends_of_traffic(scenario: &Scenario) -> Result<(String, String)> {
    let network = scenario.network_ref();
    let first = network.traffic.first().ok_or_else(|| {
        Failure::new(format_args!("{}: no [access] line and no traffic", scenario.name()))
            .hint("name the nodes that the two hosts stand for: --between CLIENT,SERVER")
    })?;
    let name = |node: NodeIndex| network.nodes[node].name.clone();
    Ok(match first.opened_by() {
        OpenedBy::Sender => (name(first.from), name(first.to)),
        OpenedBy::Receiver => (name(first.to), name(first.from)),
    })
}

/// Traffic that no application of the lab offers.
fn simulated_alone(scenario: &Scenario, traffic: &Traffic) -> Failure {
    let what = if matches!(traffic.source, Source::Ping { .. }) { "a ping over UDP" } else { "of kind \"writes\"" };
    let message = format_args!("{}: traffic.{} is {what}, which only the simulator has", scenario.name(), traffic.name);
    Failure::new(message).hint("`lastmile run` simulates it; of TCP the lab has bulk, persistent, web and swarm")
}

/// Traffic that runs between other nodes than the two hosts.
fn elsewhere(
    scenario: &Scenario,
    traffic: &Traffic,
    (from, to): (NodeIndex, NodeIndex),
    [client, server]: [NodeIndex; 2],
) -> Failure {
    let node = |node: NodeIndex| &scenario.network_ref().nodes[node].name;
    Failure::new(format_args!(
        "{}: traffic.{} runs from {} to {}, and the lab has hosts at {} and {} alone",
        scenario.name(),
        traffic.name,
        node(from),
        node(to),
        node(client),
        node(server)
    ))
    .hint("its keys from and to say where it runs; other hosts can be simulated")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"
        duration = "1 s"
        [access]
        encapsulation = "bridged-vcmux-fcs"
        down = { rate = "2 Mbit/s", delay = "4 ms" }
        up = { rate = "512 kbit/s", delay = "4 ms" }
    "#;

    fn scenario(traffic: &str) -> Scenario {
        Scenario::parse("lab.toml", &format!("{LINE}\n{traffic}"), &[]).unwrap()
    }

    #[test]
    fn what_only_the_simulator_has_is_refused() {
        let writes = "[[traffic]]\nkind = \"writes\"\ndirection = \"up\"\nrate = \"100 kbit/s\"";
        let scenario = scenario(writes);
        let refused = format!("{:?}", Plan::of(&scenario, None, Kernel::default()).err().unwrap());
        assert!(
            refused.contains("traffic.writes is of kind \\\"writes\\\", which only the simulator has"),
            "{refused}"
        );
    }

    #[test]
    fn a_file_that_sets_nothing_has_nothing_to_warn_of() {
        let bulk = scenario("[[traffic]]\nkind = \"bulk\"\ndirection = \"down\"\n");
        let plan = Plan::of(&bulk, None, Kernel::default()).unwrap();
        assert_eq!(plan.warnings().collect::<Vec<_>>(), [""; 0]);
    }

    #[test]
    fn a_transfer_over_ipv6_has_addresses_of_its_family_and_others_keep_theirs() {
        let traffic = "[[traffic]]\nkind = \"bulk\"\ndirection = \"down\"\ntcp = { ipv6 = true }\n\
                       [[traffic]]\nkind = \"bulk\"\nname = \"named\"\ndirection = \"down\"\ntcp = { ipv6 = true }\n\
                       server = \"2001:db8::7\"\n[[traffic]]\nkind = \"ping\"\n";
        let scenario = scenario(traffic);
        let plan = Plan::of(&scenario, None, Kernel::default()).unwrap();
        let addresses: Vec<String> = plan.flows().iter().map(|flow| format!("{:?}", flow.addresses)).collect();
        assert_eq!(addresses, ["[2001:2::2, 2001:2::1]", "[2001:2::2, 2001:db8::7]", "[198.18.0.2, 198.18.0.1]"]);
        let segment = plan.flows().into_iter().find_map(|flow| match flow.kind {
            Kind::Transfer(plan) => Some(plan.segment),
            _ => None,
        });
        // With the timestamps' 12 bytes: 1500 less 40 of IPv6 and 20 of TCP.
        assert_eq!((segment, plan.config().line.mtu), (Some(1440), 1500));
    }

    /// 3.75 MiB are what a current Linux makes of 6 MiB of memory.
    #[test]
    fn windows_grow_unless_the_file_sets_one() {
        let bulk = "[[traffic]]\nkind = \"bulk\"\ndirection = \"down\"\n";
        let window = |text: &str| {
            let scenario = scenario(text);
            let plan = Plan::of(&scenario, None, Kernel::default()).unwrap();
            let window = plan.flows().into_iter().find_map(|flow| match flow.kind {
                Kind::Transfer(plan) => Some(plan.window),
                _ => None,
            });
            (window.unwrap(), plan.config().hosts.largest_window)
        };
        assert_eq!(window(bulk), (Window::Grows, Some(15 << 18)));
        assert_eq!(window(&format!("{bulk}tcp = {{ receive_window = \"64 KiB\" }}")), (Window::Fixed(65_536), None));
        let both = "tcp = { receive_window = \"1 MiB\", autotune = true }";
        assert_eq!(window(&format!("{bulk}{both}")), (Window::Grows, Some(1 << 20)));
    }

    const DOWN_AND_UP: &str = r#"
        [[traffic]]
        name = "down"
        kind = "bulk"
        direction = "down"
        count = 2
        tcp = { variant = "sack" }
        [[traffic]]
        kind = "web"
        [[traffic]]
        name = "up"
        kind = "bulk"
        direction = "up"
        tcp = { variant = "cubic", receive_window = "64 KiB" }
    "#;

    #[test]
    fn flows_have_the_simulators_names_ports_and_ways() {
        let scenario = scenario(DOWN_AND_UP);
        let plan = Plan::of(&scenario, None, Kernel::default()).unwrap();
        let rows: Vec<(usize, String)> = plan.rows().collect();
        let names: Vec<(usize, &str)> = rows.iter().map(|(traffic, name)| (*traffic, name.as_str())).collect();
        assert_eq!(names, [(0, "down-1"), (0, "down-2"), (1, "web"), (2, "up")]);
        let [data, acks] = plan.ways(3);
        assert_eq!((data[0], acks.len()), (0, 4));
        assert_eq!(plan.ways(0), [acks, data]);
        let ports: Vec<(End, u16, u16, String)> = plan
            .flows()
            .into_iter()
            .filter_map(|flow| match flow.kind {
                Kind::Transfer(plan) => Some((plan.opener, plan.opener_port, plan.listener_port, plan.congestion)),
                _ => None,
            })
            .collect();
        // The client opens every one; the web user between them has number 2.
        let reno = || "reno".to_owned();
        let expected = [(50_000, reno()), (50_001, reno()), (50_003, "cubic".to_owned())];
        assert_eq!(ports, expected.map(|(port, name)| (End::Client, port, 49_152, name)));
    }

    #[test]
    fn connections_that_come_and_go_have_the_kernels_ports_and_count_as_many_as_may_be_open() {
        let small = scenario(DOWN_AND_UP);
        let plan = Plan::of(&small, None, Kernel::default()).unwrap();
        let web = plan.flows().into_iter().find_map(|flow| match flow.kind {
            Kind::Application(plan) => Some(plan.connection),
            _ => None,
        });
        let web = web.unwrap();
        assert_eq!((web.opener, web.opener_port, web.listener_port, web.request), (End::Client, 0, 49_152, 350));
        assert_eq!(plan.sockets(), 2 + 6 + 1);
        let many = DOWN_AND_UP.replace("kind = \"web\"", "kind = \"web\"\ncount = 400");
        let error = Plan::of(&scenario(&many), None, Kernel::default()).err().unwrap();
        assert!(format!("{error:?}").contains("2403 flows and connections"), "{error:?}");
    }

    #[test]
    fn the_mtu_lets_the_largest_segment_through_with_its_options() {
        let mtu = |text: &str| Plan::of(&scenario(text), None, Kernel::default()).unwrap().config().line.mtu;
        let bulk = "[[traffic]]\nkind = \"bulk\"\ndirection = \"down\"\n";
        assert_eq!(mtu(bulk), 1500);
        assert_eq!(mtu(&format!("{bulk}tcp = {{ timestamps = false }}")), 1500);
        // Links of bare IP have no MTU of their own.
        let jumbo = "[[traffic]]\nkind = \"bulk\"\nfrom = \"a\"\nto = \"c\"\ntcp = { mss = \"8948 B\" }\n";
        assert_eq!(Plan::of(&own(jumbo), None, Kernel::default()).unwrap().config().line.mtu, 9000);
    }

    const OWN: &str = r#"
        duration = "1 s"
        [[link]]
        from = "a"
        to = "b"
        rate = "1 Mbit/s"
        [[link]]
        from = "b"
        to = "c"
        rate = "2 Mbit/s"
    "#;

    fn own(traffic: &str) -> Scenario {
        Scenario::parse("own.toml", &format!("{OWN}\n{traffic}"), &[]).unwrap()
    }

    #[test]
    fn without_an_access_line_the_hosts_are_where_the_traffic_runs() {
        let ping = |from: &str, to: &str| format!("[[traffic]]\nkind = \"ping\"\nfrom = \"{from}\"\nto = \"{to}\"\n");
        let scenario = own(&ping("a", "c"));
        let plan = Plan::of(&scenario, None, Kernel::default()).unwrap();
        assert_eq!((plan.network().links.len(), plan.flows()[0].from), (4, End::Client));
        let ends = ("c".to_owned(), "a".to_owned());
        assert_eq!(Plan::of(&scenario, Some(&ends), Kernel::default()).unwrap().flows()[0].from, End::Server);
        let two = own(&format!("{}{}name = \"short\"\n", ping("a", "c"), ping("a", "b")));
        let error = format!("{:?}", Plan::of(&two, None, Kernel::default()).err().unwrap());
        assert!(error.contains("traffic.short runs from a to b, and the lab has hosts at a and c"), "{error}");
    }

    #[test]
    fn a_scenario_without_traffic_or_with_several_clients_is_refused() {
        assert!(Plan::of(&scenario(""), None, Kernel::default()).is_err());
        assert!(Plan::of(&own(""), None, Kernel::default()).is_err());
        let several = LINE.replace("[access]", "[access]\nlines = 2");
        let several = Scenario::parse("lab.toml", &format!("{several}\n[[traffic]]\nkind = \"web\""), &[]).unwrap();
        let error = format!("{:?}", Plan::of(&several, None, Kernel::default()).err().unwrap());
        assert!(error.contains("access.lines is 2"), "{error}");
    }
}

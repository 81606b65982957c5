//! From a scenario to what a lab is to do, and what of it only the simulator can.

use std::collections::BTreeSet;

use lastmile_live::emulate;
use lastmile_live::emulate::Tuning;
use lastmile_live::lab::{Config, DatagramPlan, EchoPlan, End, Flow, Kind, TransferPlan};
use lastmile_packet::{FlowAddresses, FlowDirectory as _, FlowId};
use lastmile_queueing::random::Stream;
use lastmile_scenario::Scenario;
use lastmile_sim::Directory;
use lastmile_sim::spec::{Network, OpenedBy, Source, Traffic};
use lastmile_tcp::Config as Tcp;

use super::super::emulate::Path;
use super::{departures, tcp};
use crate::exit::{Failure, Result};

/// Most flows: each is a handful of descriptors, of which a process has few.
const MOST_FLOWS: u32 = 200;
/// IPv4 and TCP headers without options.
const TCP_HEADERS: u16 = 40;
/// The timestamp option with its padding (RFC 7323, appendix A).
const TIMESTAMPS: u16 = 12;

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
    /// What the lab is to do with `scenario`, every transfer with this congestion control or with that of its variant.
    pub(super) fn of(scenario: &'s Scenario, congestion: Option<&str>) -> Result<Self> {
        let Some(access) = scenario.access() else {
            return Err(Failure::new(format_args!("{}: no [access] line", scenario.name()))
                .hint("the lab has one client and one server, with an access line between them"));
        };
        let whole = scenario.network_ref();
        if whole.lines.len() > 1 {
            return Err(Failure::new(format_args!("{}: several access lines", scenario.name()))
                .hint("the lab has one client: set access.lines=1, or simulate it"));
        }
        let path = Path::of(scenario, None)?;
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
                (from, to) if (from, to) == (access.client, access.server) => Some(End::Client),
                (from, to) if (from, to) == (access.server, access.client) => Some(End::Server),
                _ => None,
            };
            plan.add(traffic, from, first, &directory, congestion);
            first += traffic.count;
        }
        if plan.flows.is_empty() {
            return Err(Failure::new(format_args!("{}: no traffic that the lab has", scenario.name()))
                .hint(plan.warnings.into_iter().next().unwrap_or_else(|| "add a [[traffic]]".to_owned())));
        }
        if plan.flows.len() > MOST_FLOWS as usize {
            let count = plan.flows.len();
            return Err(Failure::new(format_args!(
                "{}: {count} flows, of which a host opens {MOST_FLOWS} at most",
                scenario.name()
            )));
        }
        plan.settle();
        Ok(plan)
    }

    /// Takes `traffic` in, or says why not. `first` is the number of its first connection.
    fn add(
        &mut self,
        traffic: &'s Traffic,
        from: Option<End>,
        first: u32,
        directory: &Directory,
        congestion: Option<&str>,
    ) {
        let name = &traffic.name;
        let Some(from) = from else {
            self.warnings.insert(format!("traffic \"{name}\" is left out: it does not run between client and server"));
            return;
        };
        let left_out = match &traffic.source {
            Source::Web(_) => Some("web"),
            Source::Swarm(_) => Some("swarm"),
            Source::Replay(_) => Some("replay"),
            _ => None,
        };
        if let Some(kind) = left_out {
            self.warnings.insert(format!("traffic \"{name}\" is left out: the lab has no kind = \"{kind}\""));
            return;
        }
        if traffic.names.from.address.is_some() || traffic.names.to.address.is_some() {
            self.warnings.insert(format!("traffic \"{name}\": client and server have the lab's addresses, not these"));
        }
        let index = self.network.traffic.len();
        self.network.traffic.push(traffic.clone());
        let own = match &traffic.source {
            Source::Bulk { sender, .. } => tcp::congestion(sender.variant),
            _ => "",
        };
        for member in 0..traffic.count.min(MOST_FLOWS + 1) {
            self.flows.push(Planned {
                traffic,
                index,
                member,
                from,
                addresses: directory.addresses(FlowId::new(2 * (first + member))),
                congestion: congestion.unwrap_or(own).to_owned(),
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
            Source::Bulk { sender, .. } => sender.mss.saturating_add(TCP_HEADERS + options),
            Source::Poisson { size, .. }
            | Source::OnOff { size, .. }
            | Source::Constant { size, .. }
            | Source::Ping { size, .. } => u16::try_from(size.as_u64()).unwrap_or(u16::MAX),
            Source::Web(_) | Source::Swarm(_) | Source::Replay(_) => 0,
        });
        self.config.line.mtu = sizes.max().unwrap_or(0).max(1500);
        self.flows.iter_mut().for_each(|flow| flow.timestamps = hosts.timestamps);
        self.config.hosts = hosts;
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

    /// True if the lab has this traffic of the scenario.
    pub(super) fn has(&self, traffic: &Traffic) -> bool {
        self.network.traffic.iter().any(|own| own.name == traffic.name)
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
        self.flows.iter().filter_map(|planned| planned.flow(self.network.seed)).collect()
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

    fn flow(&self, seed: u64) -> Option<Flow> {
        let Traffic { start, stop, dscp, source, .. } = self.traffic;
        let (start, stop, dscp) = (*start, *stop, *dscp);
        Some(Flow { name: self.name(), from: self.from, start, stop, dscp, kind: self.kind(source, seed)? })
    }

    fn kind(&self, source: &Source, seed: u64) -> Option<Kind> {
        let FlowAddresses { source_port, destination_port, .. } = self.addresses;
        match source {
            Source::Bulk { sender, receiver, bytes, request, opened_by } => {
                Some(Kind::Transfer(self.transfer(sender, receiver, (*bytes, *request), *opened_by)))
            }
            Source::Ping { interval, size } => {
                Some(Kind::Echo(EchoPlan { interval: *interval, size: u16::try_from(size.as_u64()).ok()? }))
            }
            other => {
                let random = Stream::new(seed, &format!("traffic {}-{}", self.traffic.name, self.member));
                let (size, departures) = departures::of(other, random)?;
                Some(Kind::Datagrams(DatagramPlan {
                    size: u16::try_from(size.as_u64()).ok()?,
                    from_port: source_port,
                    to_port: destination_port,
                    first_payload: self.traffic.names.from.first_payload.clone(),
                    departures,
                }))
            }
        }
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
            receive_window: u32::try_from(receiver.receive_window.as_u64()).unwrap_or(1 << 30),
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
        }
    }
}

fn tcp_of(traffic: &Traffic) -> Option<&Tcp> {
    match &traffic.source {
        Source::Bulk { sender, .. } => Some(sender),
        _ => None,
    }
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

    const DOWN_AND_UP: &str = r#"
        [[traffic]]
        name = "down"
        kind = "bulk"
        direction = "down"
        count = 2
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
        let plan = Plan::of(&scenario, None).unwrap();
        let rows: Vec<(usize, String)> = plan.rows().collect();
        assert_eq!(rows, [(0, "down-1".to_owned()), (0, "down-2".to_owned()), (1, "up".to_owned())]);
        let [data, acks] = plan.ways(2);
        assert_eq!((data[0], acks.len()), (0, 4));
        assert_eq!(plan.ways(0), [acks, data]);
        let ports: Vec<(End, u16, u16, String)> = plan
            .flows()
            .into_iter()
            .map(|flow| match flow.kind {
                Kind::Transfer(plan) => (plan.opener, plan.opener_port, plan.listener_port, plan.congestion),
                other => panic!("{other:?}"),
            })
            .collect();
        // The client opens every one; the web user between them has number 2.
        let reno = || "reno".to_owned();
        let expected = [(50_000, reno()), (50_001, reno()), (50_003, "cubic".to_owned())];
        assert_eq!(ports, expected.map(|(port, name)| (End::Client, port, 49_152, name)));
    }

    #[test]
    fn what_the_lab_lacks_is_left_out_with_a_warning_and_out_of_the_simulation_too() {
        let scenario = scenario(DOWN_AND_UP);
        let plan = Plan::of(&scenario, None).unwrap();
        let warnings: Vec<&str> = plan.warnings().collect();
        assert!(warnings.iter().any(|line| line.contains("no kind = \"web\"")), "{warnings:?}");
        let same = scenario.clone().with_traffic(|traffic| plan.has(traffic));
        assert_eq!(same.network_ref().traffic.len(), 2);
    }

    #[test]
    fn the_mtu_lets_the_largest_segment_through_with_its_options() {
        let mtu = |text: &str| Plan::of(&scenario(text), None).unwrap().config().line.mtu;
        let bulk = "[[traffic]]\nkind = \"bulk\"\ndirection = \"down\"\n";
        assert_eq!(mtu(bulk), 1500);
        assert_eq!(mtu(&format!("{bulk}tcp = {{ timestamps = true }}")), 1512);
        assert_eq!(mtu(&format!("{bulk}tcp = {{ mss = \"8960 B\" }}")), 9000);
    }

    #[test]
    fn a_scenario_without_a_line_or_traffic_is_refused() {
        assert!(Plan::of(&scenario(""), None).is_err());
        assert!(Plan::of(&scenario("[[traffic]]\nkind = \"web\""), None).is_err());
        let own = "duration = \"1 s\"\n[[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"1 Mbit/s\"";
        assert!(Plan::of(&Scenario::parse("own.toml", own, &[]).unwrap(), None).is_err());
    }
}

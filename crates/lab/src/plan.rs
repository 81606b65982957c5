//! From a scenario to the task of a lab: hosts, addresses and flows, and warnings about differences from the simulator.

mod flow;
mod sources;
mod tcp;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::net::IpAddr;

use lastmile_live::bump::Tap;
use lastmile_live::emulate::{self, Tuning};
use lastmile_live::stop::Stop;
use lastmile_model::{Directory, Echo, Network, NodeIndex, OpenedBy, Source, Traffic};
use lastmile_packet::{FlowDirectory as _, FlowId};
use lastmile_scenario::Scenario;
use lastmile_tcp::Config as Tcp;
use lastmile_units::Instant;

use crate::descriptors;
use crate::error::{Elsewhere, Error};
use crate::outcome::Outcome;
use crate::path::Path;
use crate::progress::Progress;
use crate::run;
use crate::spec::{Config, End, Flow, HostConfig};

use self::flow::{Planned, TIMESTAMPS, devices, headers, most_window, receiver_of};

/// Most flows and connections at a time: every one is looked at whenever anything happens.
const MOST_FLOWS: u32 = 2000;

/// Settings of the kernel's TCP that replace those of the scenario.
#[derive(Clone, Copy, Default)]
pub struct Kernel<'a> {
    /// Congestion control of every transfer, in place of that of its variant.
    pub congestion: Option<&'a str>,
}

/// The task of a lab for a scenario.
pub struct Plan<'s> {
    /// The line's links, up and then down, and the traffic that the lab has.
    network: Network,
    /// Links of each direction.
    links: [usize; 2],
    config: Config,
    flows: Vec<Planned<'s>>,
    warnings: BTreeSet<String>,
}

impl<'s> Plan<'s> {
    /// The task for `scenario`. Its hosts stand for the nodes that `between` names, else for the ends of the access
    /// line, else for the nodes between which all traffic runs.
    ///
    /// # Errors
    /// The scenario has no such ends, no path between them, or traffic that real hosts cannot offer.
    pub fn of(scenario: &'s Scenario, between: Option<&(String, String)>, kernel: Kernel<'_>) -> Result<Self, Error> {
        let whole = scenario.network_ref();
        if whole.lines.len() > 1 {
            let (scenario, lines) = (scenario.name().to_owned(), whole.lines.len());
            return Err(Error::SeveralLines { scenario, lines });
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
                autorates: path.autorates(),
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
            if let Some(kind) = simulated_only(&traffic.source) {
                let (scenario, traffic) = (scenario.name().to_owned(), traffic.name.clone());
                return Err(Error::SimulatedOnly { scenario, traffic, kind });
            }
            plan.add(traffic, from, first, &directory, kernel);
            first += traffic.count;
        }
        if plan.flows.is_empty() {
            return Err(Error::NoTraffic { scenario: scenario.name().to_owned() });
        }
        let sockets = plan.sockets();
        if sockets > u64::from(MOST_FLOWS) {
            return Err(Error::TooManyFlows { scenario: scenario.name().to_owned(), sockets, most: MOST_FLOWS });
        }
        plan.settle();
        Ok(plan)
    }

    /// Flows, and connections that may be open at a time.
    pub fn sockets(&self) -> u64 {
        let of = |flow: &Planned<'_>| match &flow.traffic.source {
            Source::Web(web) => u64::from(web.connections),
            Source::Backup(backup) => u64::from(backup.parallel),
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
        if let Some(quic) = traffic.source.quic() {
            self.warnings.extend(flow::quic_warnings(name, quic));
        }
        let index = self.network.traffic.len();
        self.network.traffic.push(traffic.clone());
        let own = traffic.tcp().next().map_or("", |sender| tcp::congestion(sender.variant));
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

    /// Sets the hosts' TCP and the MTU, which depend on all flows.
    fn settle(&mut self) {
        let configs: Vec<&Tcp> = self.network.traffic.iter().filter_map(|traffic| traffic.tcp().next()).collect();
        let mut warnings = BTreeSet::new();
        configs.iter().for_each(|config| tcp::warnings(config, &mut warnings));
        let hosts = tcp::hosts(&configs, &mut warnings);
        let options = if hosts.timestamps { TIMESTAMPS } else { 0 };
        let sizes = self.network.traffic.iter().map(|traffic| match &traffic.source {
            Source::Bulk { .. }
            | Source::Quic { .. }
            | Source::Writes { .. }
            | Source::Web(_)
            | Source::Video(_)
            | Source::Backup(_)
            | Source::Swarm(_) => {
                let tcp = traffic.tcp().next().map(|sender| sender.mss.saturating_add(headers(sender) + options));
                let datagram =
                    |quic: &lastmile_quic::Config| quic.datagram.saturating_add(traffic.ip.datagram_headers().into());
                tcp.or(traffic.source.quic().map(datagram)).unwrap_or(0)
            }
            Source::Replay(capture) => capture.packets.iter().map(|(_, packet)| packet.ip_len).max().unwrap_or(0),
            Source::Conference(model) => {
                let payload = model.packet.max(model.audio.payload).as_u64();
                u16::try_from(payload + lastmile_model::Conference::headers(traffic.ip)).unwrap_or(u16::MAX)
            }
            Source::Game(model) => {
                u16::try_from(model.commands.most.max(model.updates.most).as_u64()).unwrap_or(u16::MAX)
            }
            Source::Poisson { size, .. }
            | Source::OnOff { size, .. }
            | Source::Constant { size, .. }
            | Source::Ping { size, .. } => u16::try_from(size.as_u64()).unwrap_or(u16::MAX),
        });
        self.config.line.mtu = sizes.max().unwrap_or(0).max(1500);
        self.flows.iter_mut().for_each(|flow| flow.timestamps = hosts.timestamps);
        let growing = self.network.traffic.iter().filter_map(receiver_of).filter(|receiver| receiver.autotune);
        self.config.hosts = HostConfig { largest_window: growing.map(most_window).max(), ..hosts };
        self.warnings.append(&mut warnings);
    }

    /// The network of the results.
    #[must_use]
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// In runs from now on the headers of packets are recorded, for
    /// [`Handle::replay`](lastmile_live::emulate::Handle::replay).
    pub fn record_headers(&mut self) {
        self.config.line.records = true;
    }

    /// Line, hosts and duration of a run.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Warnings: keys that the lab treats differently from the simulator, or ignores.
    pub fn warnings(&self) -> impl Iterator<Item = &str> {
        self.warnings.iter().map(String::as_str)
    }

    /// The links of a flow's data, and those of its ACKs, as indices into the plan's network.
    pub fn paths(&self, flow: usize) -> [Vec<usize>; 2] {
        let [up, down] = self.links;
        let paths = [(0..up).collect(), (up..up + down).collect()];
        match self.flows[flow].from {
            End::Client => paths,
            End::Server => {
                let [up, down] = paths;
                [down, up]
            }
        }
    }

    /// For each flow the index of its traffic in the plan's network, and its name.
    pub fn rows(&self) -> impl Iterator<Item = (usize, String)> {
        self.flows.iter().map(|flow| (flow.index, flow.name()))
    }

    /// The start of a flow.
    #[must_use]
    pub fn start(&self, number: usize) -> Instant {
        let flow = &self.flows[number];
        self.network.start_of(flow.traffic, flow.member)
    }

    /// Raises this process's limit of descriptors to what the flows need.
    ///
    /// # Errors
    /// The process may not have enough.
    pub fn reserve_descriptors(&self) -> Result<(), Error> {
        descriptors::reserve(self.sockets())
    }

    /// Runs it once. `stop` ends the run early; `tap` gets every packet at every hop, at times counted from when the
    /// traffic may begin; `tick` gets the progress four times a second.
    ///
    /// # Errors
    /// Not root; a congestion control that the kernel lacks; a port that is taken; a device that went away.
    pub fn run(
        &self,
        stop: &Stop,
        tap: Option<Box<Tap>>,
        tick: &mut dyn FnMut(&Progress<'_>),
    ) -> Result<Outcome, Error> {
        self.reserve_descriptors()?;
        run::run(&self.config, self.flows(), stop, tap, tick)
    }

    /// The flows, for one run.
    pub fn flows(&self) -> Vec<Flow> {
        let line = &self.config.line;
        let mut hosts: BTreeSet<IpAddr> = [false, true].into_iter().flat_map(|ipv6| devices(line, ipv6)).collect();
        hosts.extend(self.flows.iter().flat_map(|flow| flow.ends(line)));
        self.flows.iter().filter_map(|planned| planned.flow(&self.network, line, &hosts)).collect()
    }
}

/// The names of the two nodes between which all traffic of a scenario without an access line runs, the first opener
/// first.
fn ends_of_traffic(scenario: &Scenario) -> Result<(String, String), Error> {
    let network = scenario.network_ref();
    let none = || Error::NoEndsOfTraffic { scenario: scenario.name().to_owned() };
    let first = network.traffic.first().ok_or_else(none)?;
    let name = |node: NodeIndex| network.nodes[node].name.clone();
    Ok(match first.opened_by() {
        OpenedBy::Sender => (name(first.from), name(first.to)),
        OpenedBy::Receiver => (name(first.to), name(first.from)),
    })
}

/// The kind of a source that no application of the lab offers, as part of a sentence; `None` for others.
fn simulated_only(source: &Source) -> Option<&'static str> {
    match source {
        Source::Ping { echo: Echo::Udp, .. } => Some("a ping over UDP"),
        Source::Writes { .. } => Some("of kind \"writes\""),
        _ => None,
    }
}

/// Traffic that runs between other nodes than the two hosts.
fn elsewhere(
    scenario: &Scenario,
    traffic: &Traffic,
    (from, to): (NodeIndex, NodeIndex),
    [client, server]: [NodeIndex; 2],
) -> Error {
    let name = |node: NodeIndex| scenario.network_ref().nodes[node].name.clone();
    let elsewhere = Elsewhere {
        scenario: scenario.name().to_owned(),
        traffic: traffic.name.clone(),
        from: name(from),
        to: name(to),
        client: name(client),
        server: name(server),
    };
    Box::new(elsewhere).into()
}

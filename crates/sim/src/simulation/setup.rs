//! The state of a run before its first event: routes, flows, and the events with which they begin.

use lastmile_packet::{FlowId, Meta};
use lastmile_queueing::random::Stream;
use lastmile_units::Instant;

use super::state::Simulation;
use crate::atm;
use crate::engine::event::Event;
use crate::hosts::{self, ConnectionPool, Hosts, NewFlow};
use crate::network::Net;
use crate::network::flow::{FlowEntry, StateIndex};
use crate::network::route::{self, LinkIndex, PathId};
use crate::record::series::Sampler;
use lastmile_model::{Autorate, BuildError, Network, NodeIndex, Observer, Source};

/// Why an index fits its type.
const CHECKED: &str = "Network::check limits the number of flows";

impl<'a> Simulation<'a> {
    /// A run of `network` before its first event. `capture` observes every packet at every link.
    ///
    /// # Errors
    /// If the network is invalid: no path between two ends, an index out of range, or a queue that cannot be built.
    pub fn new(network: &'a Network, capture: Option<Box<dyn Observer<Meta>>>) -> Result<Self, BuildError> {
        network.check()?;
        let mut simulation = Self {
            network,
            net: Net::new(network, capture)?,
            hosts: Hosts::default(),
            now: Instant::ZERO,
            events: 0,
            snapshots: Vec::new(),
            sampler: None,
            pool: ConnectionPool::new(network),
            starts: Vec::new(),
        };
        simulation.add_traffic()?;
        simulation.start_autorates()?;
        if let Some(interval) = network.record.interval {
            simulation.sampler = Some(Sampler::new(network, &simulation.net, interval));
            simulation.net.schedule(Instant::ZERO + interval, Event::Sample);
        }
        network.record.cuts.iter().for_each(|cut| {
            simulation.net.schedule(*cut, Event::Mark);
        });
        Ok(simulation)
    }

    /// Adds the routes and flows of all traffic. Flows of captures follow those of the traffic list.
    fn add_traffic(&mut self) -> Result<(), BuildError> {
        let network = self.network;
        let out = route::outgoing(network);
        let mut initial_numbers = Stream::new(network.seed, "initial sequence numbers");
        let declared: u32 = network.traffic.iter().map(|traffic| traffic.count).sum();
        let pings: u32 = network.autorates.iter().map(Autorate::flows).sum();
        let mut replayed = Vec::new();
        for (index, traffic) in (0..).zip(&network.traffic) {
            let routes =
                self.find_routes(&out, (&traffic.name, traffic.from, traffic.to), traffic.source.is_answered())?;
            self.check_circuits(index as usize, &traffic.name, routes)?;
            self.net.routes.push(routes);
            self.net.schedule(traffic.start, Event::Mark);
            for member in 0..traffic.count {
                let number = u32::try_from(self.net.flows.len()).expect(CHECKED);
                let random = || Stream::new(network.seed, &format!("traffic {}-{member}", traffic.name));
                let state = if let Source::Replay(capture) = &traffic.source {
                    let first = declared + pings + u32::try_from(replayed.len()).expect(CHECKED);
                    let state = self.hosts.add_replay(capture, index, first);
                    replayed.extend(capture.flows.iter().map(|_| FlowEntry::new(index, state)));
                    state
                } else {
                    let ids = [FlowId::new(2 * number), FlowId::new(2 * number + 1)];
                    self.hosts.add(NewFlow { traffic, index, ids }, random, &mut initial_numbers)
                };
                if matches!(state, StateIndex::Dialogue(_)) {
                    self.net.losses.dialogues.insert(number);
                }
                self.net.flows.push(FlowEntry::new(index, state));
                let start = network.start_of(traffic, member);
                self.starts.push(start);
                self.net.schedule(start, Event::Start(number));
                if let Some(stop) = traffic.stop {
                    self.net.schedule(stop, Event::Stop(number));
                }
            }
        }
        self.net.declared = self.net.flows.len();
        self.net.losses.declared = self.net.declared;
        self.add_autorates(&out)?;
        self.net.flows.extend(replayed);
        self.net.first_opened = u32::try_from(self.net.flows.len()).expect(CHECKED);
        Ok(())
    }

    /// Adds the routes and flow numbers of controllers.
    fn add_autorates(&mut self, out: &[Vec<LinkIndex>]) -> Result<(), BuildError> {
        for (index, autorate) in (0..).zip(&self.network.autorates) {
            let number = u32::try_from(self.net.routes.len()).expect(CHECKED);
            let routes = self.find_routes(out, (Autorate::PINGS, autorate.from, autorate.reflector), true)?;
            self.check_circuits(self.net.routes.len(), Autorate::PINGS, routes)?;
            self.net.routes.push(routes);
            let first = u32::try_from(self.net.flows.len()).expect(CHECKED);
            self.hosts.autorates.push(hosts::Autorate::new(autorate, first)?);
            let flows =
                std::iter::repeat_n(FlowEntry::new(number, StateIndex::Autorate(index)), autorate.flows() as usize);
            self.net.flows.extend(flows);
        }
        Ok(())
    }

    /// Gives the shapers of controllers their first rates, and schedules the first events.
    fn start_autorates(&mut self) -> Result<(), BuildError> {
        for autorate in &self.hosts.autorates {
            for (link, rate) in autorate.rates() {
                if !self.net.set_rate(Instant::ZERO, link, rate) {
                    let link = self.network.links[link as usize].hop.name.clone();
                    return Err(BuildError::NoShaper { link });
                }
            }
            autorate.starts().for_each(|(flow, start)| {
                self.net.schedule(start, Event::Source(flow));
            });
        }
        Ok(())
    }

    /// The paths between two ends: there, and back if the source is answered.
    fn find_routes(
        &mut self,
        out: &[Vec<LinkIndex>],
        (name, from, to): (&str, NodeIndex, NodeIndex),
        answered: bool,
    ) -> Result<[PathId; 2], BuildError> {
        let mut find = |from, to| -> Result<PathId, BuildError> {
            self.net.paths.find(self.network, out, from, to).ok_or_else(|| BuildError::NoPath {
                traffic: name.to_owned(),
                from: self.network.nodes[from].name.clone(),
                to: self.network.nodes[to].name.clone(),
            })
        };
        let there = find(from, to)?;
        Ok([there, if answered { find(to, from)? } else { PathId::default() }])
    }

    /// Refuses a traffic whose path has a link of cells without a virtual channel for it.
    fn check_circuits(&self, traffic: usize, name: &str, paths: [PathId; 2]) -> Result<(), BuildError> {
        let Some(spec) = &self.network.atm else { return Ok(()) };
        for (path, back) in paths.into_iter().zip([false, true]) {
            let links: Vec<usize> = self.net.paths.links(path).iter().map(|link| *link as usize).collect();
            if let Some(link) = atm::uncarried(spec, (traffic, back), &links) {
                let link = self.network.links[link].hop.name.clone();
                return Err(BuildError::NoVc { traffic: name.to_owned(), back, link });
            }
        }
        Ok(())
    }
}

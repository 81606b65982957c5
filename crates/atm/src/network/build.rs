//! Networks from their description: switches in order, VCs at them, and the streams between.

use std::collections::BTreeMap;

use lastmile_units::{Duration, Instant};

use super::error::NetworkError;
use super::in_flight::{InFlight, Stream};
use super::loss::Loss;
use super::spec::{AbrPort, ClassSpec, LinkId, LinkSpec, NetworkSpec, QueueSpec, Queues, VcSpec};
use super::{AbrEnd, Hop, Link, Network, Vc, VcStats, check::check, order::order};
use crate::aal5::Reassembler;
use crate::abr::control::{AbrPorts, AbrVc, Control};
use crate::abr::erica::Erica;
use crate::abr::sender::Sender;
use crate::cell::{CellCounts, Clp};
use crate::connection::{Connection, DropCounts};
use crate::contract::Contract;
use crate::contract::policer::Policer;
use crate::discard::{FrameState, Rules};
use crate::port::Port;
use crate::queue::Queue;
use crate::schedule::Share;
use crate::switch::Switch;
use crate::time::{Moment, Spacing};

impl Network {
    /// An idle network at time zero.
    ///
    /// # Errors
    /// See [`NetworkError`].
    pub fn new(spec: &NetworkSpec) -> Result<Self, NetworkError> {
        Self::seeded(spec, 0)
    }

    /// An idle network at time zero. The seed decides which cells links lose.
    ///
    /// # Errors
    /// See [`NetworkError`].
    pub fn seeded(spec: &NetworkSpec, seed: u64) -> Result<Self, NetworkError> {
        check(spec)?;
        let with_back = with_back_channels(spec);
        let mut builder = Builder::new(&with_back, spec.vcs.len(), seed);
        builder.add_path_policers();
        for vc in 0..with_back.vcs.len() {
            builder.add_vc(vc);
        }
        builder.add_senders();
        Ok(builder.finish())
    }
}

/// The network with a channel for the RM cells of each VC of ABR, after all other VCs.
fn with_back_channels(spec: &NetworkSpec) -> NetworkSpec {
    let mut with_back = spec.clone();
    let abr = spec.vcs.iter().filter_map(|vc| Some((vc, vc.abr.as_ref()?)));
    let back = abr.map(|(vc, abr)| VcSpec {
        name: format!("{} RM", vc.name),
        route: abr.back.clone(),
        vp: None,
        upc: None,
        abr: None,
        ..vc.clone()
    });
    with_back.vcs.extend(back);
    // An RM cell may change what its source does next, so cells are not joined.
    with_back.trains &= with_back.vcs.len() == spec.vcs.len();
    with_back
}

struct Builder<'a> {
    spec: &'a NetworkSpec,
    seed: u64,
    /// VCs of the description.
    declared: usize,
    switches: Vec<Switch>,
    look_ahead: Option<Duration>,
    links: Vec<Link>,
    streams: Vec<Stream>,
    /// By link and switch at its far end, if the VC goes on.
    by_link: BTreeMap<(usize, Option<u32>), u32>,
    /// By far end: its stream.
    far_ends: Vec<u32>,
    vcs: Vec<Vc>,
    paths: Vec<Option<(u32, u16)>>,
    senders: Vec<(Sender, u32)>,
}

impl<'a> Builder<'a> {
    /// All ports in their switches.
    fn new(spec: &'a NetworkSpec, declared: usize, seed: u64) -> Self {
        let has_abr = spec.vcs.len() > declared;
        let (switch_of, look_ahead) = place_switches(spec, has_abr);
        let count = switch_of.iter().max().map_or(0, |last| *last as usize + 1);
        let mut builder = Self {
            spec,
            seed,
            declared,
            switches: (0..count).map(|_| Switch::default()).collect(),
            look_ahead,
            links: Vec::new(),
            streams: Vec::new(),
            by_link: BTreeMap::new(),
            far_ends: Vec::new(),
            vcs: Vec::new(),
            paths: Vec::new(),
            senders: Vec::new(),
        };
        for (index, switch) in switch_of.into_iter().enumerate() {
            builder.add_port(index, switch, has_abr);
        }
        builder
    }

    fn add_port(&mut self, index: usize, at: u32, has_abr: bool) {
        let link = &self.spec.links[index];
        let queues = match &link.queues {
            Queues::Fifo(queue) => vec![(Queue::new(self.rules(link, queue)), Share::new(0, 1))],
            Queues::Classes(classes) => self.class_queues(link, classes),
            Queues::PerVc(queue) => self.vc_queues(LinkId(index as u32), self.rules(link, queue)),
        };
        let control = link.abr.map(|control| match control {
            AbrPort::Efci { threshold } => Control::Efci(u32::try_from(threshold.as_u64()).unwrap_or(u32::MAX)),
            AbrPort::Erica(config) => Control::Erica(Box::new(Erica::new(&config, link.pace.unwrap_or(link.rate)))),
        });
        let switch = &mut self.switches[at as usize];
        switch.shares_memory = self.spec.nodes[link.from.index()].shared_memory.is_some();
        switch.ports.push(Port::new(queues, link.interval()));
        if has_abr {
            switch.abr.get_or_insert_default().controls.push(control);
        }
        self.links.push(Link { switch: at, port: (switch.ports.len() - 1) as u16, crossed_by: Vec::new() });
    }

    fn rules(&self, link: &LinkSpec, queue: &QueueSpec) -> Rules {
        let memory = self.spec.nodes[link.from.index()].shared_memory;
        queue.discard.rules(queue.limit, memory).expect("checked")
    }

    fn class_queues(&self, link: &LinkSpec, classes: &[ClassSpec]) -> Vec<(Queue, Share)> {
        let levels = ranks(classes.iter().map(|class| class.priority));
        let queue = |class: &ClassSpec| {
            (Queue::new(self.rules(link, &class.queue)), Share::new(levels[&class.priority], class.weight))
        };
        classes.iter().map(queue).collect()
    }

    fn vc_queues(&self, link: LinkId, rules: Rules) -> Vec<(Queue, Share)> {
        let vcs = || self.spec.vcs.iter().filter(|vc| vc.route.contains(&link));
        let levels = ranks(vcs().map(|vc| vc.priority));
        vcs().map(|vc| (Queue::new(rules), Share::new(levels[&vc.priority], vc.weight))).collect()
    }

    fn add_policer(&mut self, at: LinkId, contract: &Contract) -> (u32, u16) {
        let switch = self.links[at.index()].switch;
        let policers = &mut self.switches[switch as usize].policers;
        policers.push(Policer::new(contract).expect("checked"));
        (switch, (policers.len() - 1) as u16)
    }

    fn add_path_policers(&mut self) {
        for vp in &self.spec.vps {
            let policer = vp.upc.as_ref().map(|upc| self.add_policer(upc.at, &upc.contract));
            self.paths.push(policer);
        }
    }

    /// A VC, from its far end back to its source.
    fn add_vc(&mut self, index: usize) {
        let vc = &self.spec.vcs[index];
        let mut next: Option<Hop> = None;
        let mut onward = Spacing::ZERO;
        let mut hops = Vec::new();
        for (hop, link) in vc.route.iter().enumerate().rev() {
            self.links[link.index()].crossed_by.push((index as u32, hop as u16));
            let out = self.link_stream(link.index(), next.map(|next| next.switch), onward);
            let loss = hop.checked_sub(1).and_then(|before| self.loss(vc, vc.route[before]));
            let next_vc = next.map_or(index as u16, |next| next.connection);
            let here = self.add_connection(index, *link, (out, next_vc), loss);
            onward = onward.plus(self.spec.links[link.index()].transit());
            let port = &mut self.switches[here.switch as usize].ports[self.links[link.index()].port as usize];
            port.onward = Some(port.onward.map_or(onward, |other| other.min(onward)));
            hops.push(here);
            next = Some(here);
        }
        hops.reverse();
        let source = self.stream(Some(hops[0].switch), onward);
        self.vcs.push(Vc {
            encapsulation: vc.encapsulation,
            clp: if vc.low_priority { Clp::One } else { Clp::Zero },
            source,
            spacing: vc.pcr.map_or(Spacing::ZERO, Spacing::of_cell),
            free: Moment::default(),
            hops,
            loss: self.loss(vc, *vc.route.last().expect("checked")),
            far_end: Reassembler::default(),
            stats: VcStats::default(),
            abr: AbrEnd::default(),
        });
    }

    fn loss(&self, vc: &VcSpec, link: LinkId) -> Option<Loss> {
        Loss::new(self.spec, self.seed, &self.spec.links[link.index()], vc)
    }

    /// The VC at the switch of one of its links.
    fn add_connection(&mut self, index: usize, link: LinkId, (out, next_vc): (u32, u16), loss: Option<Loss>) -> Hop {
        let vc = &self.spec.vcs[index];
        let Link { switch, port, .. } = self.links[link.index()];
        let policer = vc.upc.as_ref().filter(|upc| upc.at == link).map(|upc| self.add_policer(link, &upc.contract).1);
        let path = vc.vp.filter(|vp| self.spec.vps[vp.index()].upc.is_some_and(|upc| upc.at == link));
        let path_policer = path.and_then(|vp| self.paths[vp.index()]).map(|(_, policer)| policer);
        let queue = match &self.spec.links[link.index()].queues {
            Queues::Fifo(_) => 0,
            Queues::Classes(_) => vc.class,
            Queues::PerVc(_) => {
                let crosses = |other: &&VcSpec| other.route.contains(&link);
                self.spec.vcs[..index].iter().filter(crosses).count()
            }
        };
        let connections = &mut self.switches[switch as usize].connections;
        connections.push(Connection {
            port,
            queue: queue as u16,
            policer,
            path_policer,
            loss,
            state: FrameState::default(),
            next_vc,
            out,
            transit: self.spec.links[link.index()].transit(),
            waiting: 0,
            sent: 0,
            arrived: CellCounts::default(),
            dropped: Box::<DropCounts>::default(),
            tagged: 0,
        });
        Hop { switch, connection: (connections.len() - 1) as u16 }
    }

    /// The stream from a link to a switch or to its far end, which is `onward` from the far end of
    /// a VC.
    fn link_stream(&mut self, link: usize, switch: Option<u32>, onward: Spacing) -> u32 {
        if let Some(&stream) = self.by_link.get(&(link, switch)) {
            let known = &mut self.streams[stream as usize].onward;
            *known = onward.min(*known);
            return stream;
        }
        let stream = self.stream(switch, onward);
        self.by_link.insert((link, switch), stream);
        stream
    }

    fn stream(&mut self, switch: Option<u32>, onward: Spacing) -> u32 {
        let stream = self.streams.len() as u32;
        let (receiver, input) = if let Some(switch) = switch {
            let inputs = &mut self.switches[switch as usize].inputs;
            inputs.push(stream);
            (switch, Some(inputs.len() as u32 - 1))
        } else {
            self.far_ends.push(stream);
            ((self.switches.len() + self.far_ends.len() - 1) as u32, None)
        };
        self.streams.push(Stream::new(receiver, input, onward));
        stream
    }

    /// Sources of ABR, and their VCs at switches.
    fn add_senders(&mut self) {
        let spec = self.spec;
        let abr = spec.vcs.iter().enumerate().filter_map(|(index, vc)| Some((index, vc.abr.as_ref()?)));
        for ((index, abr), back) in abr.zip(self.declared..) {
            let sender = self.senders.len() as u32;
            let forward = &mut self.vcs[index];
            (forward.abr.sender, forward.abr.back) = (Some(sender), Some(back as u32));
            let own = Sender::new(&abr.parameters, abr.edge_limit, forward.source, forward.hops[0].connection);
            self.senders.push((own, index as u32));
            let hops = forward.hops.clone();
            self.vcs[back].abr.sender = Some(sender);
            let back_hops = self.vcs[back].hops.clone();
            for hop in &hops {
                self.abr_vc(hop).forward = true;
                if let Some(back) = back_hops.iter().find(|back| back.switch == hop.switch) {
                    self.abr_vc(back).back_of = Some(hop.connection);
                }
            }
        }
        for Switch { abr, connections, .. } in &mut self.switches {
            if let Some(abr) = abr {
                abr.vcs.resize(connections.len(), AbrVc::default());
            }
        }
    }

    fn abr_vc(&mut self, hop: &Hop) -> &mut AbrVc {
        let Switch { abr, connections, .. } = &mut self.switches[hop.switch as usize];
        let AbrPorts { vcs, .. } = &mut **abr.as_mut().expect("a network with ABR");
        vcs.resize(connections.len(), AbrVc::default());
        &mut vcs[hop.connection as usize]
    }

    fn finish(self) -> Network {
        let (switches, far_ends) = (self.switches.len(), self.far_ends.len());
        Network {
            now: Instant::ZERO,
            vcs: self.vcs,
            links: self.links,
            switches: self.switches,
            far_ends: self.far_ends,
            look_ahead: self.look_ahead,
            in_flight: InFlight::new(self.streams, switches, far_ends, self.spec.trains),
            paths: self.paths,
            senders: self.senders,
            declared: self.declared,
        }
    }
}

/// By link: the switch of its port; and the look-ahead of the network. The ports of a node are one
/// switch if they share a memory or the network has ABR; otherwise each is a switch of its own.
fn place_switches(spec: &NetworkSpec, has_abr: bool) -> (Vec<u32>, Option<Duration>) {
    let mut switch_of: Vec<u32> = Vec::new();
    let mut count = 0;
    for (index, link) in spec.links.iter().enumerate() {
        let together = has_abr || spec.nodes[link.from.index()].shared_memory.is_some();
        let neighbour = spec.links[..index].iter().position(|other| together && other.from == link.from);
        let switch = neighbour.map_or(count, |other| switch_of[other]);
        count = count.max(switch + 1);
        switch_of.push(switch);
    }
    let mut between: BTreeMap<(u32, u32), Duration> = BTreeMap::new();
    for pair in spec.vcs.iter().flat_map(|vc| vc.route.windows(2)) {
        let [from, to] = [pair[0], pair[1]].map(|link| switch_of[link.index()]);
        let time = spec.links[pair[0].index()].transit().duration();
        let least = between.entry((from, to)).or_insert(time);
        *least = time.min(*least);
    }
    let (index, mut look_ahead) = order(count as usize, &between);
    if has_abr {
        // RM cells that return within a step must have left before it.
        look_ahead = spec.links.iter().map(|link| link.transit().duration()).min();
    }
    (switch_of.into_iter().map(|switch| index[switch as usize]).collect(), look_ahead)
}

/// The rank of each priority among those in use.
fn ranks(priorities: impl Iterator<Item = u8>) -> BTreeMap<u8, u16> {
    let mut ranks: BTreeMap<u8, u16> = priorities.map(|priority| (priority, 0)).collect();
    for (rank, level) in ranks.values_mut().enumerate() {
        *level = rank as u16;
    }
    ranks
}

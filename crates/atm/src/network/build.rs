//! Networks from what describes them: stages, labels, streams, and the order in which stages are gone through.
//!
//! Where trains are on, ports at which nothing ever waits are left out ([`passage`]).

use std::collections::BTreeMap;

use lastmile_units::{Duration, Instant};

use super::abr::{Control, Mark, Rms, Sender};
use super::bundle::Bundle;
use super::check::check;
use super::connection::{Connection, NONE};
use super::earliest::Earliest;
use super::exit::Port;
use super::fabric::{Fabric, Stream};
use super::fifo::Fifo;
use super::frames::Frames;
use super::order::order;
use super::passage::{self, interval, transit};
use super::queue::Queue;
use super::run::LOW;
use super::scheduled::Scheduled;
use super::spec::{AbrPort, ClassSpec, LinkId, LinkSpec, NetworkError, NetworkSpec, QueueSpec, Queues, VcSpec};
use super::stage::Stage;
use super::wire::Wire;
use super::{AbrEnd, Hop, Link, Network, Sink, Vc, VcStats};
use crate::aal5::Reassembler;
use crate::abr::erica::Erica;
use crate::contract::Contract;
use crate::discard::{FrameState, Rules};
use crate::policer::Policer;
use crate::time::{Moment, Spacing};

impl Network {
    /// An idle network, at time zero.
    ///
    /// # Errors
    /// What makes no sense, by name: see [`NetworkError`].
    pub fn new(spec: &NetworkSpec) -> Result<Self, NetworkError> {
        Self::seeded(spec, 0)
    }

    /// The same in the run with this seed, on which depends which cells links lose.
    ///
    /// # Errors
    /// What makes no sense, by name: see [`NetworkError`].
    pub fn seeded(spec: &NetworkSpec, seed: u64) -> Result<Self, NetworkError> {
        check(spec)?;
        let with_back = with_back_channels(spec);
        let mut builder = Builder::new(&with_back, spec.vcs.len(), seed);
        for index in 0..spec.links.len() {
            builder.add_port(index);
        }
        builder.add_path_policers();
        for vc in 0..with_back.vcs.len() {
            builder.add_vc(vc);
        }
        builder.add_senders();
        Ok(builder.finish())
    }
}

/// The network with a channel for the RM cells of each VC of ABR, behind the others in their order.
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
    // An RM cell may change what its source does next, so cells go one by one.
    with_back.trains &= with_back.vcs.len() == spec.vcs.len();
    with_back
}

struct Builder<'a> {
    spec: &'a NetworkSpec,
    seed: u64,
    /// VCs that were asked for.
    declared: usize,
    senders: Vec<(Sender, u32)>,
    stages: Vec<Stage>,
    links: Vec<Link>,
    spacings: Vec<Spacing>,
    /// Far ends of links, by link.
    sinks: BTreeMap<usize, u32>,
    streams: Vec<Draft>,
    /// By link and the link behind it, or none.
    by_link: BTreeMap<(usize, Option<u32>), u32>,
    vcs: Vec<Vc>,
    paths: Vec<Option<(u32, u16)>>,
    /// By link: its port is left out.
    idle: Vec<bool>,
    /// From which stage to which, and how long that takes at the least.
    edges: BTreeMap<(u32, u32), u64>,
}

/// A stream before all are known.
#[derive(Clone, Copy)]
struct Draft {
    target: Target,
    remaining: u64,
}

#[derive(Clone, Copy)]
enum Target {
    Stage { stage: u32, input: u32 },
    Sink(u32),
}

impl<'a> Builder<'a> {
    fn new(spec: &'a NetworkSpec, declared: usize, seed: u64) -> Self {
        Self {
            spec,
            seed,
            declared,
            senders: Vec::new(),
            stages: Vec::new(),
            links: Vec::new(),
            // None at all, and that of loose runs.
            spacings: vec![Spacing::ZERO; 2],
            sinks: BTreeMap::new(),
            streams: Vec::new(),
            by_link: BTreeMap::new(),
            vcs: Vec::new(),
            paths: Vec::new(),
            idle: (0..spec.links.len())
                .map(|link| spec.trains && passage::never_waits(spec, LinkId(link as u32)))
                .collect(),
            edges: BTreeMap::new(),
        }
    }

    fn class(&mut self, spacing: Spacing) -> u16 {
        let known = self.spacings.iter().position(|other| *other == spacing);
        let class = known.unwrap_or_else(|| {
            self.spacings.push(spacing);
            self.spacings.len() - 1
        });
        u16::try_from(class).expect("no more rates than links and VCs, which are counted")
    }

    fn has_abr(&self) -> bool {
        self.spec.vcs.len() > self.declared
    }

    /// The port of a link, in the stage of its node if that has one memory or the network has ABR, else in one of its own.
    fn add_port(&mut self, index: usize) {
        let link = &self.spec.links[index];
        let shared = self.spec.nodes[link.from.index()].shared_memory.is_some();
        let together = shared || self.has_abr();
        let neighbour = self.spec.links[..index].iter().position(|other| together && other.from == link.from);
        let stage = neighbour.map_or_else(
            || {
                self.stages.push(Stage::default());
                self.stages.len() as u32 - 1
            },
            |other| self.links[other].stage,
        );
        let interval = interval(link);
        let class = self.class(interval);
        let port = match &link.queues {
            Queues::Fifo(queue) => Port::Fifo(Fifo::new(self.rules(link, queue), interval, class)),
            Queues::Classes(classes) => {
                Port::Scheduled(Scheduled::new(self.class_queues(link, classes), interval, class))
            }
            Queues::PerVc(queue) => {
                let queues = self.vc_queues(LinkId(index as u32), self.rules(link, queue));
                Port::Scheduled(Scheduled::new(queues, interval, class))
            }
        };
        let control = link.abr.map(|control| match control {
            AbrPort::Efci { threshold } => Control::Efci(u32::try_from(threshold.as_u64()).unwrap_or(u32::MAX)),
            AbrPort::Erica(config) => Control::Erica(Box::new(Erica::new(&config, link.pace.unwrap_or(link.rate)))),
        });
        let has_abr = self.has_abr();
        let Stage { ports, watch, .. } = &mut self.stages[stage as usize];
        ports.push(port);
        if has_abr {
            let watch = watch.get_or_insert_default();
            watch.apart = !shared;
            watch.controls.push(control);
        }
        self.links.push(Link { stage, port: (ports.len() - 1) as u16, crossed_by: Vec::new() });
    }

    fn rules(&self, link: &LinkSpec, queue: &QueueSpec) -> Rules {
        let memory = self.spec.nodes[link.from.index()].shared_memory;
        queue.discard.rules(queue.limit, memory).expect("checked")
    }

    fn class_queues(&self, link: &LinkSpec, classes: &[ClassSpec]) -> Vec<Queue> {
        let levels = ranks(classes.iter().map(|class| class.priority));
        let queue =
            |class: &ClassSpec| Queue::new(self.rules(link, &class.queue), levels[&class.priority], class.weight);
        classes.iter().map(queue).collect()
    }

    fn vc_queues(&self, link: LinkId, rules: Rules) -> Vec<Queue> {
        let vcs = || self.spec.vcs.iter().filter(|vc| vc.route.contains(&link));
        let levels = ranks(vcs().map(|vc| vc.priority));
        vcs().map(|vc| Queue::new(rules, levels[&vc.priority], vc.weight)).collect()
    }

    fn add_policer(&mut self, at: LinkId, contract: &Contract) -> (u32, u16) {
        let stage = self.links[at.index()].stage;
        let policers = &mut self.stages[stage as usize].policers;
        policers.push(Policer::new(contract).expect("checked"));
        (stage, (policers.len() - 1) as u16)
    }

    fn add_path_policers(&mut self) {
        for vp in &self.spec.vps {
            let policer = vp.upc.as_ref().map(|upc| self.add_policer(upc.at, &upc.contract));
            self.paths.push(policer);
        }
    }

    fn add_vc(&mut self, index: usize) {
        let vc = &self.spec.vcs[index];
        let mut hops: Vec<Hop> = vc.route.iter().map(|link| self.add_connection(index, *link)).collect();
        // From the far end back: what stands behind, over which link it is reached, how far its entry is and how far the far end from there.
        let mut next: Option<(u32, u16)> = None;
        let mut over = vc.route.last().expect("checked").index();
        let (mut ahead, mut remaining) = (Spacing::ZERO, 0_u64);
        for hop in (0..vc.route.len()).rev() {
            let link = vc.route[hop].index();
            self.links[link].crossed_by.push((index as u32, hop as u16));
            ahead = ahead.plus(transit(&self.spec.links[link]));
            if self.idle[link] {
                hops[hop].past = Some(ahead);
                continue;
            }
            let out = self.link_stream(over, next.map(|(stage, _)| stage));
            let draft = &mut self.streams[out as usize];
            draft.remaining = draft.remaining.min(remaining);
            let onward = ahead.plus(Spacing::of(Duration::from_ps(remaining)));
            remaining = onward.ps();
            let Hop { stage, label, .. } = hops[hop];
            if let Some((next, _)) = next {
                let edge = self.edges.entry((stage, next)).or_insert(u64::MAX);
                *edge = (*edge).min(ahead.ps());
            }
            let port = self.links[link].port as usize;
            let own = &mut self.stages[stage as usize];
            let connection = &mut own.connections[label as usize];
            connection.out = out;
            connection.transit = ahead;
            connection.label = next.map_or(index as u16, |(_, label)| label);
            if let Port::Scheduled(port) = &mut own.ports[port] {
                port.onward = port.onward.min(onward);
            }
            next = Some((stage, label));
            ahead = Spacing::ZERO;
            over = hop.checked_sub(1).map_or(over, |before| vc.route[before].index());
        }
        self.add_wires(index, &hops);
        let source = self.stream(next.map(|(stage, _)| stage), over);
        self.streams[source as usize].remaining = remaining;
        let class = vc.pcr.map_or(0, |pcr| self.class(Spacing::of_cell(pcr)));
        self.vcs.push(Vc {
            encapsulation: vc.encapsulation,
            flags: if vc.low_priority { LOW } else { 0 },
            source,
            class,
            label: next.map_or(index as u16, |(_, label)| label),
            lead: ahead,
            free: Moment::default(),
            hops,
            wire: self.wire(index, vc.route.len() - 1),
            far_end: Reassembler::default(),
            stats: VcStats::default(),
            abr: AbrEnd::default(),
        });
    }

    /// What the stages of a VC know of the links by which it comes to them.
    fn add_wires(&mut self, index: usize, hops: &[Hop]) {
        for (before, &Hop { stage, label, .. }) in hops.iter().skip(1).enumerate() {
            if let Some(wire) = self.wire(index, before) {
                let wires = &mut self.stages[stage as usize].wires;
                wires.resize(wires.len().max(usize::from(label) + 1), None);
                wires[label as usize] = Some(wire);
            }
        }
    }

    /// The link that is the `hop`th of a VC, as that finds it. `None`: it loses nothing.
    fn wire(&self, vc: usize, hop: usize) -> Option<Wire> {
        let vc = &self.spec.vcs[vc];
        Wire::new(self.spec, self.seed, &self.spec.links[vc.route[hop].index()], vc)
    }

    /// Sources of ABR, and what ports know of their VCs.
    fn add_senders(&mut self) {
        let spec = self.spec;
        let abr = spec.vcs.iter().enumerate().filter_map(|(index, vc)| Some((index, vc.abr.as_ref()?)));
        for ((index, abr), back) in abr.zip(self.declared..) {
            let sender = self.senders.len() as u32;
            let there = &mut self.vcs[index];
            (there.abr.sender, there.abr.back) = (Some(sender), Some(back as u32));
            let own = Sender::new(&abr.parameters, abr.edge_limit, there.source, there.label);
            self.senders.push((own, index as u32));
            let hops = there.hops.clone();
            self.vcs[back].abr.sender = Some(sender);
            let back_hops = self.vcs[back].hops.clone();
            for &Hop { stage, label, .. } in &hops {
                self.mark(stage, label).there = true;
                if let Some(&Hop { label: back, .. }) = back_hops.iter().find(|hop| hop.stage == stage) {
                    self.mark(stage, back).back_of = Some(label);
                }
            }
        }
    }

    fn mark(&mut self, stage: u32, label: u16) -> &mut Mark {
        let Stage { watch, connections, .. } = &mut self.stages[stage as usize];
        let marks = &mut watch.as_mut().expect("the network has ABR").marks;
        marks.resize(connections.len(), Mark::default());
        &mut marks[label as usize]
    }

    /// The VC at the stage of one of its links.
    fn add_connection(&mut self, index: usize, link: LinkId) -> Hop {
        let vc = &self.spec.vcs[index];
        let Link { stage, port, .. } = self.links[link.index()];
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
        let connections = &mut self.stages[stage as usize].connections;
        connections.push(Connection {
            port,
            queue: queue as u16,
            label: 0,
            policer: policer.unwrap_or(NONE),
            path_policer: path_policer.unwrap_or(NONE),
            state: FrameState::default(),
            out: 0,
            transit: Spacing::ZERO,
            waiting: 0,
            arrived: 0,
            arrived_low: 0,
            lost: Box::default(),
        });
        Hop { stage, label: (connections.len() - 1) as u16, past: None }
    }

    /// The stream of what a link carries to a stage, or to its far end.
    fn link_stream(&mut self, link: usize, next: Option<u32>) -> u32 {
        if let Some(&stream) = self.by_link.get(&(link, next)) {
            return stream;
        }
        let stream = self.stream(next, link);
        self.by_link.insert((link, next), stream);
        stream
    }

    fn stream(&mut self, next: Option<u32>, link: usize) -> u32 {
        let stream = self.streams.len() as u32;
        let target = match next {
            Some(stage) => {
                let inputs = &mut self.stages[stage as usize].inputs;
                inputs.push(stream);
                Target::Stage { stage, input: inputs.len() as u32 - 1 }
            }
            None => {
                let sink = self.sinks.len() as u32;
                self.sinks.insert(link, stream);
                Target::Sink(sink)
            }
        };
        self.streams.push(Draft { target, remaining: u64::MAX });
        stream
    }

    /// Schedulers whose VCs all go on to far ends, each in a stream of its own.
    fn tell_apart(&mut self) {
        for stage in &mut self.stages {
            for (index, port) in stage.ports.iter_mut().enumerate() {
                let Port::Scheduled(port) = port else { continue };
                let own = stage.connections.iter().filter(|connection| connection.port as usize == index);
                let mut streams: Vec<u32> = own.map(|connection| connection.out).collect();
                let vcs = streams.len();
                streams.sort_unstable();
                streams.dedup();
                let far = |stream: &u32| matches!(self.streams[*stream as usize].target, Target::Sink(_));
                port.apart = streams.len() == vcs && streams.iter().all(far);
            }
        }
    }

    fn finish(mut self) -> Network {
        for stage in &mut self.stages {
            if let Some(watch) = &mut stage.watch {
                watch.marks.resize(stage.connections.len(), Mark::default());
            }
        }
        self.tell_apart();
        let stages = self.stages.len();
        let (order, mut look_ahead) = order(stages, &self.edges);
        let mut places = vec![0; stages];
        for (place, stage) in (0_u32..).zip(&order) {
            places[*stage as usize] = place;
        }
        let streams = self.streams.iter().map(|draft| match draft.target {
            Target::Stage { stage, input } => Stream::to_stage(places[stage as usize], input, draft.remaining),
            Target::Sink(sink) => Stream::to_far_end(stages as u32 + sink),
        });
        let streams: Vec<Stream> = streams.collect();
        // In the order in which they were numbered.
        let sink =
            |(link, stream): (&usize, &u32)| Sink { stream: *stream, loses: self.spec.links[*link].loss_ppb > 0 };
        let mut sinks: Vec<Sink> = self.sinks.iter().map(sink).collect();
        sinks.sort_unstable_by_key(|sink| streams[sink.stream as usize].target());
        if self.has_abr() {
            // What goes over a link in a step comes after it, so RM cells that come in it went before.
            look_ahead = self.spec.links.iter().map(|link| transit(link).ps()).min().unwrap_or(u64::MAX);
        }
        let scheduled = (0..stages as u32).filter(|stage| self.stages[*stage as usize].schedules()).collect();
        let targets = stages + sinks.len();
        Network {
            now: Instant::ZERO,
            vcs: self.vcs,
            links: self.links,
            stages: self.stages,
            sinks,
            scheduled,
            order,
            look_ahead,
            fabric: Fabric {
                bounds: Earliest::new(streams.len()),
                streams,
                spacings: self.spacings,
                frames: Frames::default(),
                rms: Rms::default(),
                next: Earliest::new(targets),
                woken: vec![Vec::new(); stages],
                batch: Vec::new(),
                crossed: Vec::new(),
                bundle: Bundle::default(),
                trains: self.spec.trains,
            },
            paths: self.paths,
            senders: self.senders,
            declared: self.declared,
        }
    }
}

/// The rank of each priority among those in use.
fn ranks(priorities: impl Iterator<Item = u8>) -> BTreeMap<u8, u16> {
    let mut ranks: BTreeMap<u8, u16> = priorities.map(|priority| (priority, 0)).collect();
    for (rank, level) in ranks.values_mut().enumerate() {
        *level = rank as u16;
    }
    ranks
}

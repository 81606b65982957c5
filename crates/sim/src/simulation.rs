//! A run: hosts on a network, driven from event to event.

use lastmile_packet::{FlowId, Meta, Protocol, SeqNumber};
use lastmile_queueing::line::Stats as LineStats;
use lastmile_queueing::random::Stream;
use lastmile_units::{Duration, Instant};

use crate::cells;
use crate::event::Event;
use crate::flow::{FlowEntry, Place, Side};
use crate::host::{Datagrams, Ping, Progress, Replay, Session, Swarm, Totals, Transfer, Writer};
use crate::net::Net;
use crate::owned::Owned;
use crate::report;
use crate::route::{self, PathId};
use crate::sample::Sampler;
use lastmile_model::BuildError;
use lastmile_model::Observer;
use lastmile_model::outcome::{Conservation, Outcome, Snapshot};
use lastmile_model::{Network, Source, Traffic};

/// The state of so many transfers, about a mebibyte, stays in a cache near the processor: reading it ahead costs more than
/// it saves.
const CACHED_TRANSFERS: usize = 1024;

/// How far [`Simulation::advance_by`] came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Advance {
    /// Everything that happens by the given time has happened.
    Reached,
    /// The work that was granted is done, and more may be due.
    Paused,
}

/// A network in the middle of a run.
pub struct Simulation<'a> {
    pub(crate) network: &'a Network,
    pub(crate) net: Net,
    pub(crate) hosts: Hosts,
    pub(crate) now: Instant,
    pub(crate) events: u64,
    pub(crate) snapshots: Vec<Snapshot>,
    pub(crate) sampler: Option<Sampler>,
    pub(crate) owned: Owned,
    /// When each declared flow starts.
    pub(crate) starts: Vec<Instant>,
}

/// Everything that runs on hosts.
#[derive(Default)]
pub(crate) struct Hosts {
    pub(crate) transfers: Vec<Transfer>,
    /// In the order of their transfers.
    pub(crate) writers: Vec<Writer>,
    pub(crate) datagrams: Vec<Datagrams>,
    pub(crate) pings: Vec<Ping>,
    pub(crate) sessions: Vec<Session>,
    pub(crate) swarms: Vec<Swarm>,
    pub(crate) replays: Vec<Replay>,
}

impl<'a> Simulation<'a> {
    /// A run of `network` before its first event. `capture` hears of every packet at every link.
    ///
    /// # Errors
    /// If the network cannot be: no path between two ends, an index out of range, a queue that cannot be built.
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
            owned: Owned::new(network),
            starts: Vec::new(),
        };
        simulation.place_traffic()?;
        if let Some(interval) = network.record.interval {
            simulation.sampler = Some(Sampler::new(&simulation, interval));
            simulation.net.schedule(Instant::ZERO + interval, Event::Sample);
        }
        Ok(simulation)
    }

    /// The simulated time.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Events handled so far.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.events
    }

    /// What a link has done so far, by its index in the network's list.
    ///
    /// # Panics
    /// If there is no such link.
    #[must_use]
    pub fn link_stats(&self, link: usize) -> &LineStats {
        self.net.links[link].line.stats()
    }

    /// Where every packet is now.
    #[must_use]
    pub fn conservation(&self) -> Conservation {
        self.net.conservation()
    }

    /// Runs every event up to and including `until`, but not past the end of the run.
    pub fn advance_to(&mut self, until: Instant) {
        while self.advance_by(until, u64::MAX) == Advance::Paused {}
    }

    /// The same, but pauses after about `work` events and packets sent, so that the caller can look up in between. Pauses
    /// change nothing in what comes of the run. One event more than `work` may be handled, with all the packets that it sends.
    pub fn advance_by(&mut self, until: Instant, work: u64) -> Advance {
        let until = until.min(Instant::ZERO + self.network.duration);
        let pause = self.work().saturating_add(work);
        while self.work() < pause {
            let Some((at, token)) = self.net.pending.pop(until) else {
                self.now = self.now.max(until);
                return Advance::Reached;
            };
            self.now = at;
            self.events += 1;
            self.handle(token.event());
        }
        Advance::Paused
    }

    /// What has been done so far: an event may send a window of packets.
    #[inline]
    fn work(&self) -> u64 {
        self.events + self.net.sent.packets
    }

    /// Runs to the end and tells what came of it.
    #[must_use]
    pub fn finish(mut self) -> Outcome {
        let end = Instant::ZERO + self.network.duration;
        self.advance_to(end);
        self.snapshot();
        self.net.look_at_cells(end);
        report::outcome(self)
    }

    #[inline]
    fn handle(&mut self, event: Event) {
        let now = self.now;
        match event {
            Event::Transmit(link) => self.net.transmit(now, link),
            Event::Arrive(link) => {
                if let Some(packet) = self.net.arrive(now, link) {
                    self.look_ahead(link);
                    self.deliver(&packet);
                }
            }
            Event::Timer(transfer, side) => {
                self.hosts.transfers[transfer as usize].on_wake(now, side);
                self.pump(transfer, side);
                if self.hosts.transfers[transfer as usize].owner().is_some() {
                    self.retire_if_over(transfer);
                }
            }
            Event::Start(flow) => self.start(flow),
            Event::Stop(flow) => self.stop(flow),
            Event::Source(flow) => self.source(flow),
            Event::Cells => self.cells(),
            Event::Sample => self.sample(),
            Event::Mark => self.snapshot(),
        }
    }

    /// Packets leave the links of cells.
    fn cells(&mut self) {
        self.net.advance_cells(self.now);
        let gone = self.net.cells.as_mut().map(|cells| std::mem::take(&mut cells.gone)).unwrap_or_default();
        for departure in &gone {
            if let Some(packet) = self.net.leave_cells(departure) {
                self.deliver(&packet);
            }
        }
        self.net.put_back(gone);
        while let Some(released) = self.net.release_ack(self.now) {
            if let Some(packet) = released {
                self.deliver(&packet);
            }
        }
        self.net.arm_cells();
    }

    /// Reads the state that the next packets on this link will need, so that memory fetches it while this packet is
    /// handled: with 100 000 flows hardly any of it is in a cache. What is a pointer away comes a packet later than the
    /// pointer, and that one later than where it is.
    #[inline]
    fn look_ahead(&self, link: u32) {
        if self.hosts.transfers.len() <= CACHED_TRANSFERS {
            return;
        }
        let line = &self.net.links[link as usize].line;
        let transfer = |before| {
            let flow = line.flow_at(before)?;
            let (Place::Transfer(index) | Place::Owned(index)) = self.net.place(flow) else { return None };
            Some((&self.hosts.transfers[index as usize], Side::bound_for(flow)))
        };
        if let Some((next, side)) = transfer(0) {
            next.touch_further(side);
            std::hint::black_box(next.wake(side).map(|wake| self.net.pending.time(wake)));
        }
        if let Some((second, side)) = transfer(1) {
            second.touch(side);
        }
        if let Some(third) = line.flow_at(2) {
            std::hint::black_box(self.net.place(third));
        }
    }

    /// A packet has reached the host that it was bound for.
    #[inline]
    fn deliver(&mut self, packet: &Meta) {
        let now = self.now;
        match self.net.place(packet.flow) {
            // A signal that no regenerator took in: nobody here has its protocol.
            Place::Transfer(_) if packet.protocol == Protocol::AckSignal => {}
            Place::Transfer(index) => {
                let side = Side::bound_for(packet.flow);
                let progress = self.hosts.transfers[index as usize].on_segment(now, side, packet);
                self.pump(index, side);
                if progress == Progress::Complete {
                    self.snapshot();
                }
            }
            Place::Owned(index) => self.deliver_owned(index, packet),
            Place::Datagrams(index) => self.hosts.datagrams[index as usize].arrived(now, packet),
            Place::Replay(index) => self.hosts.replays[index as usize].arrived(now, packet),
            Place::Gone | Place::Web(_) | Place::Swarm(_) => {}
            Place::Ping(index) => {
                let ping = &mut self.hosts.pings[index as usize];
                match ping.answer(packet) {
                    Some(reply) => self.net.send(now, reply),
                    None => ping.replied(now, packet),
                }
            }
        }
    }

    /// Sends what an endpoint has to send, and sees to its wake-up.
    #[inline]
    pub(crate) fn pump(&mut self, index: u32, side: Side) {
        let now = self.now;
        let transfer = &mut self.hosts.transfers[index as usize];
        while let Some(segment) = transfer.poll_transmit(now, side) {
            self.net.send(now, segment);
        }
        transfer.sent_all(side);
        // One that is pending and comes no later will ask again.
        let Some(at) = transfer.next_wake(now, side) else { return };
        if let Some(wake) = transfer.wake(side) {
            if self.net.pending.time(wake) <= at {
                return;
            }
            self.net.pending.cancel(wake);
        }
        transfer.set_wake(side, self.net.schedule(at, Event::Timer(index, side)));
    }

    fn start(&mut self, flow: u32) {
        let now = self.now;
        match self.net.flows[flow as usize].place() {
            Place::Transfer(index) => {
                let side = self.hosts.transfers[index as usize].begin(now);
                self.pump(index, side);
                self.schedule_write(flow, index);
            }
            Place::Datagrams(index) => {
                let source = &mut self.hosts.datagrams[index as usize];
                let stop = self.network.traffic[source.traffic].stop;
                if let Some(first) = source.start(now, stop) {
                    self.net.schedule(first, Event::Source(flow));
                }
            }
            Place::Ping(index) => {
                let ping = &mut self.hosts.pings[index as usize];
                let stop = self.network.traffic[ping.traffic].stop;
                if let Some(first) = ping.start(now, stop) {
                    self.net.schedule(first, Event::Source(flow));
                }
            }
            Place::Replay(index) => {
                let replay = &mut self.hosts.replays[index as usize];
                let stop = self.network.traffic[replay.traffic as usize].stop;
                if let Some(first) = replay.start(now, stop) {
                    self.net.schedule(first, Event::Source(flow));
                }
            }
            Place::Web(_) | Place::Swarm(_) => self.source(flow),
            Place::Owned(_) | Place::Gone => {}
        }
    }

    fn stop(&mut self, flow: u32) {
        self.snapshot();
        match self.net.flows[flow as usize].place() {
            Place::Transfer(index) => {
                self.hosts.transfers[index as usize].stop();
                self.pump(index, Side::From);
            }
            _ => self.stop_owner(flow),
        }
    }

    fn source(&mut self, flow: u32) {
        let now = self.now;
        let (packet, next) = match self.net.flows[flow as usize].place() {
            Place::Datagrams(index) => self.hosts.datagrams[index as usize].next(now),
            Place::Ping(index) => self.hosts.pings[index as usize].next(now),
            Place::Replay(index) => match self.hosts.replays[index as usize].next() {
                Some(next) => next,
                None => return,
            },
            Place::Web(session) => {
                self.hosts.sessions[session as usize].wake(now);
                return self.browse(flow, session);
            }
            Place::Swarm(swarm) => return self.rechoke(flow, swarm),
            Place::Transfer(index) => return self.write(flow, index),
            Place::Owned(_) | Place::Gone => return,
        };
        self.net.send(now, packet);
        if let Some(next) = next {
            self.net.schedule(next, Event::Source(flow));
        }
    }

    /// The application of a transfer hands over its data.
    fn write(&mut self, flow: u32, index: u32) {
        let Some(size) = self.hosts.writer(index).map(|writer| writer.size()) else { return };
        self.hosts.transfers[index as usize].write(size);
        self.pump(index, Side::From);
        self.schedule_write(flow, index);
    }

    fn schedule_write(&mut self, flow: u32, index: u32) {
        let now = self.now;
        if let Some(next) = self.hosts.writer(index).and_then(|writer| writer.next(now)) {
            self.net.schedule(next, Event::Source(flow));
        }
    }

    fn sample(&mut self) {
        let Some(mut sampler) = self.sampler.take() else { return };
        self.net.look_at_cells(self.now);
        let next = sampler.sample(self);
        self.sampler = Some(sampler);
        self.net.schedule(next, Event::Sample);
    }

    /// Notes where everything stands, once a point in time, if the flows are few enough for it.
    fn snapshot(&mut self) {
        if self.net.declared > self.network.record.flow_limit {
            return;
        }
        if self.snapshots.last().is_some_and(|latest| latest.at == self.now) && !self.snapshots.is_empty() {
            return;
        }
        self.net.look_at_cells(self.now);
        let snapshot = report::snapshot(self);
        self.snapshots.push(snapshot);
    }

    fn place_traffic(&mut self) -> Result<(), BuildError> {
        let out = route::outgoing(self.network);
        let mut numbers = Stream::new(self.network.seed, "initial sequence numbers");
        let declared: u32 = self.network.traffic.iter().map(|traffic| traffic.count).sum();
        // Flows of captures come behind those of the traffic list.
        let mut replayed = Vec::new();
        for (index, traffic) in self.network.traffic.iter().enumerate() {
            let mut find = |from, to| -> Result<PathId, BuildError> {
                self.net.paths.find(self.network, &out, from, to).ok_or_else(|| BuildError::NoPath {
                    traffic: traffic.name.clone(),
                    from: self.network.nodes[from].name.clone(),
                    to: self.network.nodes[to].name.clone(),
                })
            };
            let there = find(traffic.from, traffic.to)?;
            let back = match traffic.source {
                Source::Bulk { .. }
                | Source::Writes { .. }
                | Source::Web(_)
                | Source::Swarm(_)
                | Source::Ping { .. } => find(traffic.to, traffic.from)?,
                // Nothing comes back to a datagram source.
                Source::Poisson { .. } | Source::OnOff { .. } | Source::Constant { .. } | Source::Replay(_) => {
                    PathId::default()
                }
            };
            self.check_circuits(index, [there, back])?;
            self.net.routes.push([there, back]);
            self.net.schedule(traffic.start, Event::Mark);
            for member in 0..traffic.count {
                let number = u32::try_from(self.net.flows.len()).expect("the network was checked");
                let ids = [FlowId::new(2 * number), FlowId::new(2 * number + 1)];
                let random = || Stream::new(self.network.seed, &format!("traffic {}-{member}", traffic.name));
                let traffic_index = u32::try_from(index).expect("the network was checked");
                let place = if let Source::Replay(capture) = &traffic.source {
                    let first = declared + u32::try_from(replayed.len()).expect("the network was checked");
                    self.hosts.replays.push(Replay::new(capture, traffic_index, first));
                    let place = Place::Replay(u32::try_from(self.hosts.replays.len() - 1).expect("as above"));
                    replayed.extend(capture.flows.iter().map(|_| FlowEntry::new(traffic_index, place)));
                    place
                } else {
                    self.hosts.place(traffic, ids, index, random, &mut numbers)
                };
                self.net.flows.push(FlowEntry::new(traffic_index, place));
                let start = start_of(self.network, traffic, member);
                self.starts.push(start);
                self.net.schedule(start, Event::Start(number));
                if let Some(stop) = traffic.stop {
                    self.net.schedule(stop, Event::Stop(number));
                }
            }
        }
        self.net.declared = self.net.flows.len();
        self.net.losses.declared = self.net.declared;
        self.net.flows.extend(replayed);
        self.net.standing = u32::try_from(self.net.flows.len()).expect("the network was checked");
        Ok(())
    }
}

impl Simulation<'_> {
    /// Refuses a traffic that comes to a link of cells without a virtual channel along its path.
    fn check_circuits(&self, traffic: usize, paths: [PathId; 2]) -> Result<(), BuildError> {
        let Some(atm) = &self.network.atm else { return Ok(()) };
        for (path, back) in paths.into_iter().zip([false, true]) {
            let links: Vec<usize> = self.net.paths.links(path).iter().map(|link| *link as usize).collect();
            if let Some(link) = cells::uncarried(atm, (traffic, back), &links) {
                let (traffic, link) = (&self.network.traffic[traffic].name, &self.network.links[link].name);
                return Err(BuildError::NoVc { traffic: traffic.clone(), back, link: link.clone() });
            }
        }
        Ok(())
    }
}

impl Hosts {
    /// What the connections of the owner at `place` have done, but for what those that are open have yet to tell.
    pub(crate) fn totals(&mut self, place: Place) -> Option<&mut Totals> {
        match place {
            Place::Web(index) => Some(&mut self.sessions[index as usize].totals),
            Place::Swarm(index) => Some(&mut self.swarms[index as usize].totals),
            _ => None,
        }
    }

    /// The same, with a transfer.
    pub(crate) fn totals_and_transfer(&mut self, place: Place, transfer: u32) -> Option<(&mut Totals, &Transfer)> {
        let transfer = &self.transfers[transfer as usize];
        match place {
            Place::Web(index) => Some((&mut self.sessions[index as usize].totals, transfer)),
            Place::Swarm(index) => Some((&mut self.swarms[index as usize].totals, transfer)),
            _ => None,
        }
    }

    /// What writes to the transfer at this place, if anything does.
    fn writer(&mut self, transfer: u32) -> Option<&mut Writer> {
        let place = self.writers.binary_search_by_key(&transfer, |writer| writer.transfer).ok()?;
        Some(&mut self.writers[place])
    }

    fn place(
        &mut self,
        of: &Traffic,
        ids: [FlowId; 2],
        traffic: usize,
        random: impl FnOnce() -> Stream,
        numbers: &mut Stream,
    ) -> Place {
        let at = |len: usize| u32::try_from(len).expect("the network was checked");
        let Traffic { source, dscp, stop, .. } = of;
        match source {
            Source::Bulk { .. } | Source::Writes { .. } => {
                let iss = [(); 2].map(|()| SeqNumber::new(numbers.bits() as u32));
                let transfer = Transfer::new(source, ids, iss).expect("both are transfers");
                self.transfers.push(transfer);
                let place = at(self.transfers.len() - 1);
                if matches!(source, Source::Writes { .. }) {
                    self.writers.extend(Writer::new(source, place, *stop, random()));
                }
                Place::Transfer(place)
            }
            Source::Ping { interval, size, echo } => {
                self.pings.push(Ping::new(ids, traffic, *dscp, (*interval, *size, *echo)));
                Place::Ping(at(self.pings.len() - 1))
            }
            Source::Web(model) => {
                self.sessions.push(Session::new(model, at(traffic), random()));
                Place::Web(at(self.sessions.len() - 1))
            }
            Source::Swarm(spec) => {
                self.swarms.push(Swarm::new(spec, random()));
                Place::Swarm(at(self.swarms.len() - 1))
            }
            Source::Replay(_) => Place::Gone,
            Source::Constant { .. } | Source::Poisson { .. } | Source::OnOff { .. } => {
                let source = Datagrams::new(source, ids[0], traffic, *dscp, random()).expect("a datagram source");
                self.datagrams.push(source);
                Place::Datagrams(at(self.datagrams.len() - 1))
            }
        }
    }
}

/// When a flow of `traffic` starts: [`Network::start_jitter`].
fn start_of(network: &Network, traffic: &Traffic, member: u32) -> Instant {
    let end = traffic.stop.unwrap_or(Instant::ZERO + network.duration);
    let most = network.start_jitter.min(end.since(traffic.start) / 10);
    if most.is_zero() || matches!(traffic.source, Source::Replay(_)) {
        return traffic.start;
    }
    let mut draw = Stream::new(network.seed, &format!("start of {}-{member}", traffic.name));
    traffic.start + Duration::from_ps(draw.below(most.as_ps()))
}

/// Runs `network` from its beginning to its end.
///
/// # Errors
/// As [`Simulation::new`].
pub fn run(network: &Network) -> Result<Outcome, BuildError> {
    Ok(Simulation::new(network, None)?.finish())
}

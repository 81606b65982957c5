//! TCP connections that web users and swarms open and close as they go.
//!
//! A connection has a flow number while it lives, behind those of the traffic list, so that queues and regulators tell it from others. Its
//! state is freed, and taken by the next, as soon as both ends are done with it; its number rests for as long as TIME-WAIT would keep the
//! port (60 s, RFC 9293 says up to 4 minutes), so that packets that are still about find nobody. Memory follows the number of
//! connections that are open, and the numbers the connections of a minute.

use std::collections::VecDeque;
use std::sync::Arc;

use lastmile_packet::{FlowId, Meta, SeqNumber};
use lastmile_queueing::random::Stream;
use lastmile_tcp::Config;
use lastmile_units::{Duration, Instant};

use crate::event::Event;
use crate::flow::{FlowEntry, Place, Side};
use crate::host::{Carries, Progress, Transfer};
use crate::simulation::Simulation;
use lastmile_model::number_of;
use lastmile_model::{Network, OpenedBy};

/// How long the number of a closed connection rests.
const REST: Duration = Duration::from_s(60);

/// What is free for the next connection.
pub(crate) struct Owned {
    /// Places in the hosts' list of transfers.
    free: Vec<u32>,
    /// By traffic that opens connections, in the order of the list.
    pools: Vec<Pool>,
    /// Initial sequence numbers.
    numbers: Stream,
}

/// The flow numbers of one traffic.
struct Pool {
    traffic: u32,
    /// How many there are.
    count: u32,
    /// Those that are not in use, and when they may be taken again; in order of time.
    resting: VecDeque<(Instant, u32)>,
}

impl Owned {
    pub(crate) fn new(network: &Network) -> Self {
        let opening = (0..).zip(&network.traffic).filter(|(_, traffic)| traffic.opens());
        Self {
            free: Vec::new(),
            pools: opening.map(|(traffic, _)| Pool { traffic, count: 0, resting: VecDeque::new() }).collect(),
            numbers: Stream::new(network.seed, "initial sequence numbers of short connections"),
        }
    }

    fn place(&self, traffic: u32) -> usize {
        self.pools.binary_search_by_key(&traffic, |pool| pool.traffic).expect("only such traffic opens connections")
    }

    /// A flow number for a connection of `traffic`, where `before` numbers come before those of all of them.
    fn take(&mut self, now: Instant, traffic: u32, before: u32) -> u32 {
        let (place, opening) = (self.place(traffic), self.pools.len() as u32);
        let pool = &mut self.pools[place];
        match pool.resting.front() {
            Some((at, _)) if *at <= now => pool.resting.pop_front().expect("it is there").1,
            _ => {
                pool.count += 1;
                number_of(before, opening, place as u32, pool.count - 1)
            }
        }
    }

    fn rest(&mut self, now: Instant, traffic: u32, number: u32) {
        let place = self.place(traffic);
        self.pools[place].resting.push_back((now + REST, number));
    }
}

impl Simulation<'_> {
    /// Opens a connection for flow number `owner`; returns its place in the list of transfers.
    fn open(&mut self, owner: u32, tcp: [&Arc<Config>; 2], carries: &Carries) -> u32 {
        let traffic = self.net.flows[owner as usize].traffic;
        let number = self.owned.take(self.now, traffic, self.net.standing);
        if self.net.flows.len() <= number as usize {
            self.net.flows.resize(number as usize + 1, FlowEntry::new(traffic, Place::Gone));
        }
        let iss = [(); 2].map(|()| SeqNumber::new(self.owned.numbers.bits() as u32));
        let flows = [FlowId::new(2 * number), FlowId::new(2 * number + 1)];
        let transfer = Transfer::between(tcp, flows, iss, owner, carries);
        let transfers = &mut self.hosts.transfers;
        let index = match self.owned.free.pop() {
            Some(index) => {
                let over = std::mem::replace(&mut transfers[index as usize], transfer);
                let wakes = [Side::From, Side::To].into_iter().filter_map(|side| over.wake(side));
                wakes.for_each(|wake| self.net.pending.cancel(wake));
                index
            }
            None => {
                transfers.push(transfer);
                u32::try_from(transfers.len() - 1).expect("fewer than 2^31 flows")
            }
        };
        self.net.flows[number as usize] = FlowEntry::new(traffic, Place::Owned(index));
        if let Some(totals) = self.hosts.totals(self.net.flows[owner as usize].place()) {
            totals.opened += 1;
        }
        let side = self.hosts.transfers[index as usize].begin(self.now);
        self.pump(index, side);
        index
    }

    /// A segment reaches an end of a connection that has an owner.
    pub(crate) fn deliver_owned(&mut self, index: u32, packet: &Meta) {
        let side = Side::bound_for(packet.flow);
        let transfer = &mut self.hosts.transfers[index as usize];
        let before = transfer.bytes_delivered();
        let progress = transfer.on_segment(self.now, side, packet);
        let delivered = transfer.bytes_delivered() - before;
        let owner = transfer.owner().expect("it has one");
        self.pump(index, side);
        let place = self.net.flows[owner as usize].place();
        if let Some(totals) = self.hosts.totals(place) {
            totals.deliver(self.now, delivered);
        }
        if progress == Progress::Complete
            && let Place::Web(session) = place
        {
            self.hosts.sessions[session as usize].completed(self.now, index);
            self.browse(owner, session);
        }
        self.retire_if_over(index);
    }

    /// Frees what a connection holds that is over. Its owner hears of it if it broke.
    pub(crate) fn retire_if_over(&mut self, index: u32) {
        let transfer = &self.hosts.transfers[index as usize];
        let Some(owner) = transfer.owner().filter(|_| transfer.is_over()) else { return };
        let number = transfer.sender().flow().index() / 2;
        if !matches!(self.net.flows[number as usize].place(), Place::Owned(place) if place == index) {
            // It is freed already: an end in TIME-WAIT has had its wake-up.
            return;
        }
        let place = self.net.flows[owner as usize].place();
        let failed = self.hosts.transfers[index as usize].has_failed();
        if let Some((totals, transfer)) = self.hosts.totals_and_transfer(place, index) {
            totals.add(self.now, transfer);
            totals.failed += u64::from(failed);
        }
        self.net.flows[number as usize].move_to(Place::Gone);
        let traffic = self.net.flows[number as usize].traffic;
        self.owned.rest(self.now, traffic, number);
        self.owned.free.push(index);
        match place {
            // A connection that ended in order is in none of their lists any more.
            Place::Web(session) if failed => {
                self.hosts.sessions[session as usize].broke(self.now, index);
                self.browse(owner, session);
            }
            Place::Swarm(swarm) => self.hosts.swarms[swarm as usize].broke(index),
            _ => {}
        }
    }

    /// Does what a session wants done: asks for objects, closes what it needs no more, and sees to its wake-up.
    pub(crate) fn browse(&mut self, owner: u32, session: u32) {
        let model = Arc::clone(self.hosts.sessions[session as usize].model());
        while let Some(request) = self.hosts.sessions[session as usize].next_request() {
            let index = match request.on {
                Some(index) => {
                    self.hosts.transfers[index as usize].ask(model.request, request.bytes);
                    self.pump(index, Side::To);
                    index
                }
                None => {
                    let carries = Carries {
                        bytes: Some(request.bytes),
                        request: model.request,
                        keep_open: model.persistent,
                        opened_by: OpenedBy::Receiver,
                    };
                    self.open(owner, [&model.server, &model.browser], &carries)
                }
            };
            self.hosts.sessions[session as usize].asked(index);
        }
        let session = &mut self.hosts.sessions[session as usize];
        let (timer, unneeded) = (session.take_timer(), session.take_unneeded());
        if let Some(at) = timer {
            self.net.schedule(at, Event::Source(owner));
        }
        for index in unneeded {
            self.hosts.transfers[index as usize].hang_up();
            self.pump(index, Side::From);
        }
    }

    /// A swarm chokes its slowest, fills its slots, and waits for the next time.
    pub(crate) fn rechoke(&mut self, owner: u32, index: u32) {
        let hosts = &mut self.hosts;
        let swarm = &mut hosts.swarms[index as usize];
        if swarm.is_stopped() {
            return;
        }
        let spec = Arc::clone(swarm.spec());
        let transfers = &hosts.transfers;
        let choked = swarm.choke(|connection| transfers[connection as usize].bytes_delivered());
        if let Some((connection, _)) = choked {
            self.stop_owned(connection);
        }
        let carries = Carries { bytes: None, request: 0, keep_open: false, opened_by: OpenedBy::Sender };
        while let Some(peer) = self.hosts.swarms[index as usize].unchoke(choked.map(|(_, peer)| peer)) {
            let connection = self.open(owner, [&spec.tcp, &spec.tcp], &carries);
            self.hosts.swarms[index as usize].opened(peer, connection);
        }
        self.net.schedule(self.now + spec.rechoke, Event::Source(owner));
    }

    /// An owner stops: what its connections had offered and not sent is given up.
    pub(crate) fn stop_owner(&mut self, flow: u32) {
        match self.net.flows[flow as usize].place() {
            Place::Web(session) => {
                let open = self.hosts.sessions[session as usize].stop();
                open.into_iter().for_each(|index| self.stop_owned(index));
            }
            Place::Swarm(swarm) => {
                let open = self.hosts.swarms[swarm as usize].stop();
                open.into_iter().for_each(|index| self.stop_owned(index));
            }
            _ => {}
        }
    }

    fn stop_owned(&mut self, index: u32) {
        self.hosts.transfers[index as usize].stop();
        self.pump(index, Side::From);
    }

    /// Adds what open connections have done to the totals of their owners: at the end of a run.
    pub(crate) fn close_books(&mut self) {
        for place in self.net.standing as usize..self.net.flows.len() {
            let Place::Owned(index) = self.net.flows[place].place() else { continue };
            let owner = self.hosts.transfers[index as usize].owner().expect("it has one");
            let owner = self.net.flows[owner as usize].place();
            if let Some((totals, transfer)) = self.hosts.totals_and_transfer(owner, index) {
                totals.add(self.now, transfer);
            }
        }
    }
}

//! Connections that applications and swarms open and close.

use std::sync::Arc;

use lastmile_packet::{FlowId, Meta};
use lastmile_tcp::LimitedTime;

use super::state::Simulation;
use crate::engine::event::Event;
use crate::hosts::{Exchange, Progress, Transfer};
use crate::network::flow::{FlowEntry, Side, StateIndex};
use lastmile_model::{OpenedBy, Transport};

impl Simulation<'_> {
    /// Opens a connection for the flow number `owner`, by turns if there is a `first` request with its response.
    /// Returns the index of its transfer.
    fn open(&mut self, owner: u32, transport: &Transport, exchange: &Exchange, first: Option<(u64, u64)>) -> u32 {
        let traffic = self.net.flows[owner as usize].traffic;
        let number = self.pool.take_number(self.now, owner, self.net.first_opened);
        if self.net.flows.len() <= number as usize {
            self.net.flows.resize(number as usize + 1, FlowEntry::new(traffic, StateIndex::Closed));
        }
        let iss = self.pool.initial_numbers();
        let flows = [FlowId::new(2 * number), FlowId::new(2 * number + 1)];
        let ip = self.network.traffic[traffic as usize].ip;
        let transfer = Transfer::over(transport, (flows, ip), iss, Some(owner), exchange);
        let transfer = match first {
            Some(turn) => transfer.by_turns(turn),
            None => transfer,
        };
        let transfers = &mut self.hosts.transfers;
        let index = match self.pool.take_transfer() {
            Some(index) => {
                let over = std::mem::replace(&mut transfers[index as usize], transfer);
                let wakes = [Side::Sender, Side::Receiver].into_iter().filter_map(|side| over.wake(side));
                wakes.for_each(|wake| self.net.pending.cancel(wake));
                index
            }
            None => {
                transfers.push(transfer);
                u32::try_from(transfers.len() - 1).expect("fewer than 2^31 flows")
            }
        };
        self.net.flows[number as usize] = FlowEntry::new(traffic, StateIndex::Opened(index));
        if let Some(totals) = self.hosts.totals(self.net.flows[owner as usize].state()) {
            totals.opened += 1;
        }
        let side = self.hosts.transfers[index as usize].begin(self.now);
        self.pump(index, side);
        index
    }

    /// A segment reaches an end of an opened connection.
    pub(super) fn deliver_opened(&mut self, index: u32, packet: &Meta) {
        let side = Side::bound_for(packet.flow);
        let transfer = &mut self.hosts.transfers[index as usize];
        let before = transfer.bytes_delivered();
        let progress = transfer.on_segment(self.now, side, packet);
        let delivered = transfer.bytes_delivered() - before;
        self.pump(index, side);
        self.report(index, delivered, progress);
    }

    /// Reports what an opened connection has delivered to its owner.
    pub(super) fn report(&mut self, index: u32, delivered: u64, progress: Progress) {
        let owner = self.hosts.transfers[index as usize].owner().expect("an opened connection has an owner");
        let state = self.net.flows[owner as usize].state();
        if let Some(totals) = self.hosts.totals(state) {
            totals.deliver(self.now, delivered);
        }
        if let StateIndex::Client(client) = state {
            let (now, user) = (self.now, &mut self.hosts.clients[client as usize].user);
            if delivered > 0 {
                user.delivered(now, index);
            }
            if let Progress::Complete(responses) = progress {
                (0..responses).for_each(|_| user.decide().completed(now, index));
                if user.end() == Some(now) {
                    self.snapshot();
                }
                self.browse(owner, client);
            }
        }
        self.retire_if_over(index);
    }

    /// Frees the transfer and the number of a connection that is over. Reports a failed connection to its owner.
    pub(super) fn retire_if_over(&mut self, index: u32) {
        let transfer = &self.hosts.transfers[index as usize];
        let Some(owner) = transfer.owner().filter(|_| transfer.is_over()) else { return };
        let number = transfer.sender().flow().index() / 2;
        if !matches!(self.net.flows[number as usize].state(), StateIndex::Opened(current) if current == index) {
            // The connection is freed already, and this was the TIME-WAIT timer of one end.
            return;
        }
        let state = self.net.flows[owner as usize].state();
        let failed = self.hosts.transfers[index as usize].has_failed();
        if let Some((totals, transfer)) = self.hosts.totals_and_transfer(state, index) {
            totals.add(self.now, transfer);
            totals.failed += u64::from(failed);
        }
        let traffic = self.net.flows[number as usize].traffic;
        self.net.flows[number as usize] = FlowEntry::new(traffic, StateIndex::Closed);
        self.pool.give_back(self.now, owner, number, index);
        match state {
            // An application does not list connections that have closed without failure.
            StateIndex::Client(client) if failed => {
                self.hosts.clients[client as usize].user.decide().broke(self.now, index);
                self.browse(owner, client);
            }
            StateIndex::Swarm(swarm) => self.hosts.swarms[swarm as usize].broke(index),
            _ => {}
        }
    }

    /// Carries out the decisions of an application: requests data, closes connections, and schedules its timer.
    pub(super) fn browse(&mut self, owner: u32, client: u32) {
        while let Some(request) = self.hosts.clients[client as usize].user.decide().next_request() {
            let index = match request.on {
                Some(index) => {
                    let transfer = &mut self.hosts.transfers[index as usize];
                    transfer.ask(request.request, request.bytes);
                    let opener = transfer.opener();
                    self.pump(index, opener);
                    index
                }
                None => {
                    let client = &self.hosts.clients[client as usize];
                    let (keep_open, opened_by) = (client.keep_open, client.opened_by);
                    let exchange = Exchange { bytes: None, request: 0, keep_open, opened_by };
                    let transport = client.transport.clone();
                    self.open(owner, &transport, &exchange, Some((request.request, request.bytes)))
                }
            };
            self.hosts.clients[client as usize].user.decide().asked(index);
        }
        let decide = self.hosts.clients[client as usize].user.decide();
        let (timer, unneeded) = (decide.take_timer(), decide.take_unneeded());
        if let Some(at) = timer {
            self.net.schedule(at, Event::Source(owner));
        }
        for index in unneeded {
            self.hosts.transfers[index as usize].hang_up();
            self.pump(index, Side::Sender);
        }
    }

    /// A swarm chokes its slowest peer, fills its slots, and schedules the next rechoke.
    pub(super) fn rechoke(&mut self, owner: u32, index: u32) {
        let hosts = &mut self.hosts;
        let swarm = &mut hosts.swarms[index as usize];
        if swarm.is_stopped() {
            return;
        }
        let spec = Arc::clone(swarm.spec());
        let transfers = &hosts.transfers;
        let choked = swarm.choke(|connection| transfers[connection as usize].bytes_delivered());
        if let Some((connection, _)) = choked {
            self.stop_opened(connection);
        }
        let transport = Transport::Tcp(Arc::clone(&spec.tcp));
        let exchange = Exchange { bytes: None, request: 0, keep_open: false, opened_by: OpenedBy::Sender };
        while let Some(peer) = self.hosts.swarms[index as usize].unchoke(choked.map(|(_, peer)| peer)) {
            let connection = self.open(owner, &transport, &exchange, None);
            self.hosts.swarms[index as usize].opened(peer, connection);
        }
        self.net.schedule(self.now + spec.rechoke, Event::Source(owner));
    }

    /// An application or swarm stops: its connections discard data that are offered and not sent.
    pub(super) fn stop_owner(&mut self, flow: u32) {
        match self.net.flows[flow as usize].state() {
            StateIndex::Client(client) => {
                let open = self.hosts.clients[client as usize].user.decide().stop(self.now);
                open.into_iter().for_each(|index| self.stop_opened(index));
            }
            StateIndex::Swarm(swarm) => {
                let open = self.hosts.swarms[swarm as usize].stop();
                open.into_iter().for_each(|index| self.stop_opened(index));
            }
            _ => {}
        }
    }

    fn stop_opened(&mut self, index: u32) {
        self.hosts.transfers[index as usize].stop();
        self.pump(index, Side::Sender);
    }

    /// Adds the counts of open connections to the totals of their owners, at the end of a run.
    pub(super) fn add_open_connections(&mut self) {
        for (owner, index) in self.open_connections().collect::<Vec<_>>() {
            let owner = self.net.flows[owner as usize].state();
            if let Some((totals, transfer)) = self.hosts.totals_and_transfer(owner, index) {
                totals.add(self.now, transfer);
            }
        }
    }

    /// By declared flow: the time by limit and the retransmissions of all connections that it has opened so far; `None`
    /// for flows that open none.
    pub(crate) fn opened(&self) -> Vec<Option<(LimitedTime, u64)>> {
        let declared = &self.net.flows[..self.net.declared];
        let closed = |flow: &FlowEntry| {
            let totals = self.hosts.totals_of(flow.state())?;
            Some((totals.limited, totals.retransmissions))
        };
        let mut all: Vec<_> = declared.iter().map(closed).collect();
        for (owner, index) in self.open_connections() {
            let transfer = &self.hosts.transfers[index as usize];
            if let Some((limited, retransmissions)) = &mut all[owner as usize] {
                *limited = limited.plus(transfer.limited_by(self.now));
                *retransmissions += transfer.sender().counts().retransmissions;
            }
        }
        all
    }

    /// The owner and the transfer of each open connection.
    fn open_connections(&self) -> impl Iterator<Item = (u32, u32)> {
        self.net.flows[self.net.first_opened as usize..].iter().filter_map(|flow| {
            let StateIndex::Opened(index) = flow.state() else { return None };
            Some((self.hosts.transfers[index as usize].owner().expect("an opened connection has an owner"), index))
        })
    }
}

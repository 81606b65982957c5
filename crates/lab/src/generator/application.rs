//! An application that opens and closes connections: the decisions of an [`Application`], carried out with sockets.

use std::collections::BTreeMap;
use std::net::{IpAddr, TcpStream};
use std::os::fd::BorrowedFd;

use lastmile_model::outcome::Deliveries;
use lastmile_units::Instant;
use rustix::event::PollFlags;

use crate::error::Error;
use crate::hosts::Hosts;
use crate::outcome::{FlowOutcome, FlowSample, TcpOutcome};
use crate::spec::{Application, ApplicationPlan, ConnectionPlan, End, Order, QuicPlan, TransferPlan, Turn};

use super::connection::{Between, Connection};

/// An application, and all connections that it has open.
pub(super) struct Owner {
    plan: ConnectionPlan,
    addresses: [IpAddr; 2],
    dscp: u8,
    from: End,
    application: Box<dyn Application>,
    connections: BTreeMap<u32, Connection>,
    opened: u32,
    failed: u64,
    /// The totals of the connections that are closed.
    totals: FlowOutcome,
}

/// An end of a connection: its number, and whether it is the end that sends the data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Side {
    number: u32,
    sends: bool,
}

impl Owner {
    pub(super) fn new(plan: ApplicationPlan, addresses: [IpAddr; 2], from: End, dscp: u8) -> Self {
        Self {
            plan: plan.connection,
            addresses,
            dscp,
            from,
            application: plan.application,
            connections: BTreeMap::new(),
            opened: 0,
            failed: 0,
            totals: FlowOutcome { tcp: Some(TcpOutcome::default()), ..FlowOutcome::default() },
        }
    }

    /// When it is to be woken.
    pub(super) fn next(&mut self) -> Option<Instant> {
        let timers = self.connections.values_mut().filter_map(Connection::next).min();
        [self.application.next_wake(), timers].into_iter().flatten().min()
    }

    /// Begins the application.
    pub(super) fn begin(&mut self, now: Instant, hosts: &Hosts<'_>) -> Result<(), Error> {
        self.decide(now);
        self.carry_out(now, hosts)
    }

    /// A time has come that it waited for.
    pub(super) fn wake(&mut self, now: Instant, hosts: &Hosts<'_>) -> Result<(), Error> {
        for number in self.connections.keys().copied().collect::<Vec<_>>() {
            let Some(connection) = self.connections.get_mut(&number) else { continue };
            if connection.next().is_some_and(|at| at <= now) {
                connection.wake(now);
                self.let_go(number, now);
            }
        }
        if self.application.next_wake().is_some_and(|at| at <= now) {
            self.decide(now);
        }
        self.carry_out(now, hosts)
    }

    fn decide(&mut self, now: Instant) {
        let connections = &self.connections;
        let delivered = |number: u32| connections.get(&number).map_or(0, Connection::bytes_delivered);
        self.application.wake(now, &delivered);
    }

    pub(super) fn stop(&mut self, now: Instant, hosts: &Hosts<'_>) -> Result<(), Error> {
        self.application.stop(now);
        self.carry_out(now, hosts)
    }

    fn carry_out(&mut self, now: Instant, hosts: &Hosts<'_>) -> Result<(), Error> {
        while let Some(order) = self.application.next_order() {
            match order {
                Order::Open { turn, keep_open } => {
                    let number = self.open(now, hosts, (turn, keep_open))?;
                    self.application.opened(number);
                }
                Order::Ask { connection, turn } => self.with(connection, |known| known.ask(turn, now)),
                Order::HangUp(connection) => self.with(connection, |known| known.hang_up(now)),
                Order::Stop(connection) => self.with(connection, |known| known.stop(now)),
            }
        }
        Ok(())
    }

    fn with(&mut self, number: u32, act: impl FnOnce(&mut Connection)) {
        if let Some(connection) = self.connections.get_mut(&number) {
            act(connection);
        }
    }

    fn open(&mut self, now: Instant, hosts: &Hosts<'_>, first: (Option<Turn>, bool)) -> Result<u32, Error> {
        let mut plan = self.plan.clone();
        let (ConnectionPlan::Tcp(TransferPlan { opener_port, .. })
        | ConnectionPlan::Quic(QuicPlan { opener_port, .. })) = &mut plan;
        if *opener_port > 0 {
            // The next of its ports; beyond the last it begins again.
            let room = u32::from(u16::MAX - *opener_port) + 1;
            *opener_port += u16::try_from(self.opened % room).unwrap_or(0);
        }
        let between = Between { hosts, addresses: self.addresses, from: self.from, dscp: self.dscp };
        let connection = Connection::open(&between, plan, first, now)?;
        let number = self.opened;
        self.opened += 1;
        self.connections.insert(number, connection);
        Ok(number)
    }

    /// The events that each open end waits for.
    pub(super) fn wishes(&self) -> impl Iterator<Item = (Side, BorrowedFd<'_>, PollFlags)> {
        self.connections.iter().flat_map(|(&number, connection)| {
            [true, false].into_iter().zip(connection.wishes()).filter_map(move |(sends, wish)| {
                let (fd, wish) = wish?;
                Some((Side { number, sends }, fd, wish))
            })
        })
    }

    /// Takes the connection that came to port `listener` at `end` from `port`, if it is one of these.
    pub(super) fn accept(
        &mut self,
        (end, listener): (End, u16),
        port: u16,
        stream: TcpStream,
    ) -> Result<Option<TcpStream>, Error> {
        let mut stream = Some(stream);
        if self.plan.opener().other() == end && self.plan.ports()[1] == listener {
            for connection in self.connections.values_mut().rev() {
                let Some(here) = stream.take() else { break };
                stream = connection.accepted(port, here, self.dscp)?;
            }
        }
        Ok(stream)
    }

    /// Something can be done at this end of a connection.
    pub(super) fn ready(&mut self, side: Side, now: Instant, hosts: &Hosts<'_>) -> Result<(), Error> {
        let Side { number, sends } = side;
        let Some(connection) = self.connections.get_mut(&number) else { return Ok(()) };
        let before = connection.bytes_delivered();
        let complete = connection.ready(sends, now);
        if connection.bytes_delivered() > before {
            Deliveries::note(&mut self.totals.deliveries, now);
            self.application.delivered(now, number);
        }
        (0..complete).for_each(|_| self.application.completed(now, number));
        if self.let_go(number, now) || complete > 0 { self.carry_out(now, hosts) } else { Ok(()) }
    }

    /// Forgets a connection that is over. True if it was.
    fn let_go(&mut self, number: u32, now: Instant) -> bool {
        let over = self.connections.get(&number).is_some_and(Connection::is_over);
        if over && let Some(mut gone) = self.connections.remove(&number) {
            gone.sample(now);
            let failed = gone.has_failed();
            self.failed += u64::from(failed);
            self.add(gone);
            if failed {
                self.application.broke(now, number);
            }
        }
        over
    }

    fn add(&mut self, connection: Connection) {
        let gone = connection.outcome();
        self.totals.bytes_delivered += gone.bytes_delivered;
        self.totals.packets_sent += gone.packets_sent;
        self.totals.packets_received += gone.packets_received;
        let (Some(sum), Some(tcp)) = (&mut self.totals.tcp, gone.tcp) else { return };
        sum.acks_sent += tcp.acks_sent;
        sum.acks_received += tcp.acks_received;
        sum.max_in_flight = sum.max_in_flight.max(tcp.max_in_flight);
        sum.peer_window = sum.peer_window.max(tcp.peer_window);
        sum.payload = sum.payload.max(tcp.payload);
        if !tcp.congestion.is_empty() {
            sum.congestion = tcp.congestion;
        }
        sum.last.acked_bytes += tcp.last.acked_bytes;
        sum.last.retransmissions += tcp.last.retransmissions;
        sum.last.timeouts = match (sum.last.timeouts, tcp.last.timeouts) {
            (None, None) => None,
            (before, own) => Some(before.unwrap_or(0) + own.unwrap_or(0)),
        };
        sum.last.limited = sum.last.limited.plus(tcp.last.limited);
    }

    /// Both those that are open and those that are gone.
    pub(super) fn sample(&self) -> FlowSample {
        let open: u64 = self.connections.values().map(Connection::bytes_delivered).sum();
        FlowSample { bytes_delivered: self.totals.bytes_delivered + open, ..FlowSample::default() }
    }

    pub(super) fn outcome(mut self, now: Instant) -> FlowOutcome {
        for (_, mut open) in std::mem::take(&mut self.connections) {
            open.sample(now);
            self.add(open);
        }
        let connections = Some((self.opened.into(), self.failed));
        FlowOutcome { connections, user: self.application.outcome(now), ..self.totals }
    }
}

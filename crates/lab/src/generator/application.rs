//! An application that opens and closes connections: the decisions of an [`Application`], carried out with the kernel's
//! sockets.

use std::collections::BTreeMap;
use std::net::{IpAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};

use lastmile_live::error::Context;
use lastmile_live::sys::socket;
use lastmile_model::outcome::Deliveries;
use lastmile_units::Instant;
use rustix::event::PollFlags;

use crate::error::Error;
use crate::hosts::Hosts;
use crate::outcome::{FlowOutcome, FlowSample, TcpOutcome};
use crate::spec::{Application, ApplicationPlan, End, Order, TransferPlan, Turn};

use super::transfer::{self, Transfer};

/// An application, and all connections that it has open.
pub(super) struct Owner {
    plan: TransferPlan,
    addresses: [IpAddr; 2],
    dscp: u8,
    from: End,
    application: Box<dyn Application>,
    connections: BTreeMap<u32, Connection>,
    opened: u32,
    failed: u64,
    /// Of the connections that are gone.
    totals: FlowOutcome,
}

/// A connection that is open.
struct Connection {
    /// Port of the end that opened it.
    port: u16,
    transfer: Transfer,
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
    pub(super) fn next(&self) -> Option<Instant> {
        self.application.next_wake()
    }

    /// It begins, or what it waited for is over.
    pub(super) fn wake(&mut self, now: Instant, hosts: &Hosts<'_>) -> Result<(), Error> {
        let connections = &self.connections;
        let delivered = |number: u32| connections.get(&number).map_or(0, |known| known.transfer.bytes_delivered());
        self.application.wake(now, &delivered);
        self.carry_out(now, hosts)
    }

    pub(super) fn stop(&mut self, now: Instant, hosts: &Hosts<'_>) -> Result<(), Error> {
        self.application.stop(now);
        self.carry_out(now, hosts)
    }

    fn carry_out(&mut self, now: Instant, hosts: &Hosts<'_>) -> Result<(), Error> {
        while let Some(order) = self.application.next_order() {
            match order {
                Order::Open { turn, keep_open } => {
                    let number = self.open(now, hosts, turn, keep_open)?;
                    self.application.opened(number);
                }
                Order::Ask { connection, turn } => self.with(connection, |transfer| transfer.ask(turn)),
                Order::HangUp(connection) => self.with(connection, Transfer::hang_up),
                Order::Stop(connection) => self.with(connection, Transfer::stop),
            }
        }
        Ok(())
    }

    fn with(&mut self, number: u32, act: impl FnOnce(&mut Transfer)) {
        if let Some(connection) = self.connections.get_mut(&number) {
            act(&mut connection.transfer);
        }
    }

    fn open(&mut self, now: Instant, hosts: &Hosts<'_>, first: Option<Turn>, keep_open: bool) -> Result<u32, Error> {
        let mut plan = self.plan.clone();
        if plan.opener_port > 0 {
            // The next of its ports; beyond the last it begins again.
            let room = u32::from(u16::MAX - plan.opener_port) + 1;
            plan.opener_port += u16::try_from(self.opened % room).unwrap_or(0);
        }
        hosts.namespaces[plan.opener.index()].enter()?;
        let own = plan.opener.socket_address(self.addresses, plan.opener_port);
        let far = plan.opener.other().socket_address(self.addresses, plan.listener_port);
        let fd = socket::open(own).context(|| "opening a TCP socket")?;
        transfer::set_up(fd.as_fd(), &plan, self.dscp, &mut |_| {})?;
        socket::bind(fd.as_fd(), own).context(|| format!("opening TCP port {own}"))?;
        let port = socket::port(fd.as_fd()).context(|| "opening a TCP socket")?;
        let sender_opens = plan.opener == self.from;
        let mut transfer = Transfer::new(plan, sender_opens, fd, far);
        if let Some(first) = first {
            transfer = transfer.by_turns(first, keep_open).context(|| "setting up a TCP socket")?;
        }
        transfer.begin(now).context(|| format!("connecting to {far}"))?;
        let number = self.opened;
        self.opened += 1;
        self.connections.insert(number, Connection { port, transfer });
        Ok(number)
    }

    /// The events that each open end waits for.
    pub(super) fn wishes(&self) -> impl Iterator<Item = (Side, BorrowedFd<'_>, PollFlags)> {
        self.connections.iter().flat_map(|(&number, Connection { transfer, .. })| {
            let wishes = [(true, transfer.sender_wish()), (false, transfer.receiver_wish())];
            wishes.into_iter().filter_map(move |(sends, wish)| {
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
        let is_here = self.plan.opener.other() == end && self.plan.listener_port == listener;
        let known = self.connections.values_mut().rfind(|known| is_here && known.port == port);
        let Some(Connection { transfer, .. }) = known else { return Ok(Some(stream)) };
        transfer.accepted(stream, self.dscp)?;
        Ok(None)
    }

    /// Something can be done at this end of a connection.
    pub(super) fn ready(&mut self, side: Side, now: Instant, hosts: &Hosts<'_>) -> Result<(), Error> {
        let Side { number, sends } = side;
        let Some(Connection { transfer, .. }) = self.connections.get_mut(&number) else { return Ok(()) };
        let before = transfer.bytes_delivered();
        let complete = if sends { transfer.sender_ready(now) } else { transfer.receiver_ready(now) };
        let (over, failed) = (transfer.is_over(), transfer.has_failed());
        if transfer.bytes_delivered() > before {
            Deliveries::note(&mut self.totals.deliveries, now);
            self.application.delivered(now, number);
        }
        (0..complete).for_each(|_| self.application.completed(now, number));
        if over && let Some(mut gone) = self.connections.remove(&number) {
            gone.transfer.sample(now);
            self.failed += u64::from(failed);
            self.add(gone.transfer);
            if failed {
                self.application.broke(now, number);
            }
        }
        if complete > 0 || over { self.carry_out(now, hosts) } else { Ok(()) }
    }

    fn add(&mut self, transfer: Transfer) {
        let gone = transfer.outcome();
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
        let open: u64 = self.connections.values().map(|open| open.transfer.bytes_delivered()).sum();
        FlowSample { bytes_delivered: self.totals.bytes_delivered + open, ..FlowSample::default() }
    }

    pub(super) fn outcome(mut self, now: Instant) -> FlowOutcome {
        for (_, mut open) in std::mem::take(&mut self.connections) {
            open.transfer.sample(now);
            self.add(open.transfer);
        }
        let connections = Some((self.opened.into(), self.failed));
        FlowOutcome { connections, user: self.application.outcome(now), ..self.totals }
    }
}

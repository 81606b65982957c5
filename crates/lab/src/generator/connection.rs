//! A connection of an application, over either transport.

use std::net::{IpAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};

use lastmile_live::error::Context;
use lastmile_live::sys::socket;
use lastmile_units::Instant;
use rustix::event::PollFlags;

use crate::error::Error;
use crate::hosts::Hosts;
use crate::outcome::{FlowOutcome, FlowSample};
use crate::spec::{ConnectionPlan, End, TransferPlan, Turn};

use super::quic::Turns;
use super::transfer::{self, Transfer};
use super::udp;

/// A connection, both ends of it.
pub(super) enum Connection {
    Tcp {
        /// Port of the end that opened it.
        port: u16,
        transfer: Box<Transfer>,
    },
    Quic(Box<Turns>),
}

/// The hosts between which connections are opened.
pub(super) struct Between<'a> {
    pub(super) hosts: &'a Hosts<'a>,
    pub(super) addresses: [IpAddr; 2],
    /// The end that sends the data.
    pub(super) from: End,
    pub(super) dscp: u8,
}

impl Connection {
    /// Opens a connection: with a first turn, or for as many bytes as there is time for. It stays open for more, or
    /// closes after one. It takes the ports of the plan.
    pub(super) fn open(
        between: &Between<'_>,
        plan: ConnectionPlan,
        (first, keep_open): (Option<Turn>, bool),
        now: Instant,
    ) -> Result<Self, Error> {
        match (plan, first) {
            (ConnectionPlan::Tcp(plan), first) => Self::open_tcp(between, plan, (first, keep_open), now),
            (ConnectionPlan::Quic(plan), Some(first)) => {
                let [near, away] = [plan.opener, plan.opener.other()];
                let own = near.socket_address(between.addresses, plan.opener_port);
                let far = away.socket_address(between.addresses, plan.listener_port);
                let sockets = udp::pair(between.hosts, [(near, own), (away, far)], between.dscp)?;
                let sender_opens = near == between.from;
                let mut turns = Box::new(Turns::open(plan, first, sender_opens, sockets, now)?);
                if !keep_open {
                    turns.hang_up(now);
                }
                Ok(Self::Quic(turns))
            }
            (ConnectionPlan::Quic(_), None) => unreachable!("applications over QUIC ask for what they want"),
        }
    }

    fn open_tcp(
        Between { hosts, addresses, from, dscp }: &Between<'_>,
        plan: TransferPlan,
        (first, keep_open): (Option<Turn>, bool),
        now: Instant,
    ) -> Result<Self, Error> {
        hosts.namespaces[plan.opener.index()].enter()?;
        let own = plan.opener.socket_address(*addresses, plan.opener_port);
        let far = plan.opener.other().socket_address(*addresses, plan.listener_port);
        let fd = socket::open(own).context(|| "opening a TCP socket")?;
        transfer::set_up(fd.as_fd(), &plan, *dscp, &mut |_| {})?;
        socket::bind(fd.as_fd(), own).context(|| format!("opening TCP port {own}"))?;
        let port = socket::port(fd.as_fd()).context(|| "opening a TCP socket")?;
        let sender_opens = plan.opener == *from;
        let mut transfer = Transfer::new(plan, sender_opens, fd, far);
        if let Some(first) = first {
            transfer = transfer.by_turns(first, keep_open).context(|| "setting up a TCP socket")?;
        }
        transfer.begin(now).context(|| format!("connecting to {far}"))?;
        Ok(Self::Tcp { port, transfer: Box::new(transfer) })
    }

    pub(super) fn ask(&mut self, turn: Turn, now: Instant) {
        match self {
            Self::Tcp { transfer, .. } => transfer.ask(turn),
            Self::Quic(turns) => turns.ask(turn, now),
        }
    }

    /// Closes the connection when every requested response has arrived.
    pub(super) fn hang_up(&mut self, now: Instant) {
        match self {
            Self::Tcp { transfer, .. } => transfer.hang_up(),
            Self::Quic(turns) => turns.hang_up(now),
        }
    }

    /// The application offers no more data, and it closes.
    pub(super) fn stop(&mut self, now: Instant) {
        match self {
            Self::Tcp { transfer, .. } => transfer.stop(),
            Self::Quic(turns) => turns.stop(now),
        }
    }

    /// When a timer of its own expires. The kernel has those of TCP.
    pub(super) fn next(&mut self) -> Option<Instant> {
        match self {
            Self::Tcp { .. } => None,
            Self::Quic(turns) => turns.next(),
        }
    }

    /// A timer may have expired.
    pub(super) fn wake(&mut self, now: Instant) {
        if let Self::Quic(turns) = self {
            turns.wake(now);
        }
    }

    /// The events that the end of the data and the other wait for.
    pub(super) fn wishes(&self) -> [Option<(BorrowedFd<'_>, PollFlags)>; 2] {
        match self {
            Self::Tcp { transfer, .. } => [transfer.sender_wish(), transfer.receiver_wish()],
            Self::Quic(turns) => turns.ends().map(|fd| Some((fd, PollFlags::IN))),
        }
    }

    /// Takes the connection that came from `port`, if it is this one.
    pub(super) fn accepted(&mut self, from: u16, stream: TcpStream, dscp: u8) -> Result<Option<TcpStream>, Error> {
        match self {
            Self::Tcp { port, transfer } if *port == from => {
                transfer.accepted(stream, dscp)?;
                Ok(None)
            }
            _ => Ok(Some(stream)),
        }
    }

    /// Something can be done at an end. Returns the number of responses that are whole with it.
    pub(super) fn ready(&mut self, at_sender: bool, now: Instant) -> u32 {
        match self {
            Self::Tcp { transfer, .. } if at_sender => transfer.sender_ready(now),
            Self::Tcp { transfer, .. } => transfer.receiver_ready(now),
            Self::Quic(turns) => turns.ready(at_sender, now),
        }
    }

    pub(super) fn bytes_delivered(&self) -> u64 {
        match self {
            Self::Tcp { transfer, .. } => transfer.bytes_delivered(),
            Self::Quic(turns) => turns.bytes_delivered(),
        }
    }

    pub(super) fn is_over(&self) -> bool {
        match self {
            Self::Tcp { transfer, .. } => transfer.is_over(),
            Self::Quic(turns) => turns.is_over(),
        }
    }

    pub(super) fn has_failed(&self) -> bool {
        match self {
            Self::Tcp { transfer, .. } => transfer.has_failed(),
            Self::Quic(turns) => turns.has_failed(),
        }
    }

    pub(super) fn sample(&mut self, now: Instant) -> FlowSample {
        match self {
            Self::Tcp { transfer, .. } => transfer.sample(now),
            Self::Quic(turns) => turns.sample(),
        }
    }

    pub(super) fn outcome(self) -> FlowOutcome {
        match self {
            Self::Tcp { transfer, .. } => transfer.outcome(),
            Self::Quic(turns) => turns.outcome(),
        }
    }
}

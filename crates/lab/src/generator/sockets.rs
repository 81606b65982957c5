//! Sockets of the two hosts, opened before traffic starts.
//!
//! A socket belongs to the namespace in which it was opened, whoever uses it.

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::fd::AsFd;

use lastmile_live::error::Context;
use lastmile_live::sys::socket;

use crate::error::Error;
use crate::hosts::Hosts;
use crate::spec::{ConnectionPlan, End, Flow, Kind, TransferPlan};

use super::application::Owner;
use super::datagrams::Datagrams;
use super::dialogue::Exchange;
use super::echo::Echo;
use super::quic::QuicTransfer;
use super::replay::{self, Catcher, Replay};
use super::source::Source;
use super::transfer::{self, Transfer};
use super::udp;

/// A listening socket. Flows may share one: the port that connects identifies the flow.
pub(super) struct Listener {
    pub(super) end: End,
    pub(super) address: SocketAddr,
    pub(super) socket: TcpListener,
}

/// Opens sockets in the namespaces of the two hosts.
pub(super) struct Opener<'a> {
    pub(super) hosts: Hosts<'a>,
    pub(super) listeners: Vec<Listener>,
    /// Receivers of replayed packets, at each end that gets any.
    pub(super) catchers: [Option<Catcher>; 2],
    /// The two addresses of each UDP flow.
    datagrams: Vec<[SocketAddr; 2]>,
    /// Settings that this kernel refuses, each once.
    pub(super) refused: BTreeSet<String>,
}

impl<'a> Opener<'a> {
    pub(super) fn new(hosts: Hosts<'a>) -> Self {
        Self { hosts, listeners: Vec::new(), catchers: [None, None], datagrams: Vec::new(), refused: BTreeSet::new() }
    }

    pub(super) fn source(&mut self, flow: Flow) -> Result<Source, Error> {
        let (from, to) = (flow.from, flow.from.other());
        let (hosts, addresses) = (self.hosts, flow.addresses);
        match flow.kind {
            Kind::Transfer(plan) => self.transfer(plan, addresses, from, flow.dscp),
            Kind::Datagrams(plan) => {
                let own = from.socket_address(addresses, plan.from_port);
                let far = to.socket_address(addresses, plan.to_port);
                self.take_udp(own, far)?;
                let out = hosts.namespaces[from.index()].run(|| udp::sender(own, far, flow.dscp))?;
                let out = out.context(|| format!("opening UDP port {own}"))?;
                let sink = hosts.namespaces[to.index()].run(|| udp::sink(far, own))?;
                let sink = sink.context(|| format!("opening UDP port {far}"))?;
                Ok(Source::Datagrams(Box::new(Datagrams::new(plan, out, sink))))
            }
            Kind::Quic(plan) => {
                let [near, away] = [plan.opener, plan.opener.other()];
                let own = near.socket_address(addresses, plan.opener_port);
                let far = away.socket_address(addresses, plan.listener_port);
                self.take_udp(own, far)?;
                let [opener, listener] = udp::pair(&hosts, [(near, own), (away, far)], flow.dscp)?;
                let sockets = if near == from { [opener, listener] } else { [listener, opener] };
                Ok(Source::Quic(Box::new(QuicTransfer::new(plan, near == from, sockets)?)))
            }
            Kind::Dialogue(plan) => {
                let own = from.socket_address(addresses, plan.from_port);
                let far = to.socket_address(addresses, plan.to_port);
                self.take_udp(own, far)?;
                let ends = udp::pair(&hosts, [(from, own), (to, far)], flow.dscp)?;
                Ok(Source::Dialogue(Box::new(Exchange::new(plan, flow.name, ends))))
            }
            Kind::Echo(plan) => {
                let [own, target] = [from, to].map(|end| addresses[end.index()]);
                let echo = hosts.namespaces[from.index()].run(|| Echo::new(plan, own, target, flow.dscp))?;
                Ok(Source::Echo(echo.context(|| "opening a raw socket")?))
            }
            Kind::Application(plan) => {
                if let ConnectionPlan::Tcp(connection) = &plan.connection {
                    self.listen(connection, addresses, flow.dscp)?;
                }
                Ok(Source::Application(Box::new(Owner::new(plan, addresses, from, flow.dscp))))
            }
            Kind::Replay(plan) => {
                let open = |end: End| format!("opening a packet socket on {}", hosts.devices[end.index()]);
                let out = hosts.namespaces[from.index()].run(|| replay::sender(hosts.devices[from.index()]))?;
                let out = out.context(|| open(from))?;
                if self.catchers[to.index()].is_none() {
                    let catcher = hosts.namespaces[to.index()].run(|| Catcher::open(hosts.devices[to.index()]))?;
                    self.catchers[to.index()] = Some(catcher.context(|| open(to))?);
                }
                Ok(Source::Replay(Box::new(Replay::new(plan, out))))
            }
        }
    }

    /// Notes the addresses of a UDP flow: packets of a second one between them would reach the sockets of the first.
    fn take_udp(&mut self, own: SocketAddr, far: SocketAddr) -> Result<(), Error> {
        if self.datagrams.iter().any(|pair| *pair == [own, far] || *pair == [far, own]) {
            let taken = Err(io::Error::from(io::ErrorKind::AddrInUse));
            return Ok(taken.context(|| format!("opening UDP ports {own} and {far}"))?);
        }
        self.datagrams.push([own, far]);
        Ok(())
    }

    fn transfer(&mut self, plan: TransferPlan, addresses: [IpAddr; 2], from: End, dscp: u8) -> Result<Source, Error> {
        self.listen(&plan, addresses, dscp)?;
        let near = plan.opener;
        let own = near.socket_address(addresses, plan.opener_port);
        let far = near.other().socket_address(addresses, plan.listener_port);
        let refused = &mut self.refused;
        let opened = self.hosts.namespaces[near.index()].run(|| {
            let fd = socket::open(own).context(|| "opening a TCP socket")?;
            transfer::set_up(fd.as_fd(), &plan, dscp, &mut |text| refused.extend([text]))?;
            socket::bind(fd.as_fd(), own).context(|| format!("opening TCP port {own}"))?;
            Ok::<_, Error>(fd)
        })??;
        Ok(Source::Transfer(Box::new(Transfer::new(plan, near == from, opened, far))))
    }

    fn listen(&mut self, plan: &TransferPlan, addresses: [IpAddr; 2], dscp: u8) -> Result<(), Error> {
        let end = plan.opener.other();
        let own = end.socket_address(addresses, plan.listener_port);
        if self.listeners.iter().any(|listener| listener.end == end && listener.address == own) {
            return Ok(());
        }
        let opened = self.hosts.namespaces[end.index()].run(|| {
            let fd = socket::open(own).context(|| "opening a TCP socket")?;
            transfer::set_up(fd.as_fd(), plan, dscp, &mut |_| {})?;
            let listen = || socket::bind(fd.as_fd(), own).and_then(|()| socket::listen(fd.as_fd()));
            listen().context(|| format!("listening on TCP port {own}"))?;
            Ok::<_, Error>(fd)
        })??;
        self.listeners.push(Listener { end, address: own, socket: TcpListener::from(opened) });
        Ok(())
    }
}

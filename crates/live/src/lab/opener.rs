//! The two hosts, and the sockets that are opened on them before anything runs.
//!
//! A socket belongs to the namespace in which it was opened, whoever uses it.

use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use std::os::fd::AsFd;

use crate::error::{Context, Error};
use crate::sys::{device, socket};

use super::application::Owner;
use super::datagrams::{self, Datagrams};
use super::echo::Echo;
use super::generator::Source;
use super::replay::{self, Catcher, Replay};
use super::transfer::{self, Transfer};
use super::{End, Flow, Kind, Namespace, TransferPlan};

/// Where the two hosts are.
#[derive(Clone, Copy)]
pub(super) struct Hosts<'a> {
    pub(super) namespaces: [&'a Namespace; 2],
    pub(super) addresses: [Ipv4Addr; 2],
    /// The device of each that leads to the other.
    pub(super) devices: [&'a str; 2],
}

impl Hosts<'_> {
    pub(super) fn address(&self, end: End, port: u16) -> SocketAddrV4 {
        SocketAddrV4::new(self.addresses[end.index()], port)
    }

    /// The same hosts by the addresses that a flow has of its own.
    fn named(self, own: [Option<Ipv4Addr>; 2]) -> Self {
        let [client, server] = self.addresses;
        Self { addresses: [own[0].unwrap_or(client), own[1].unwrap_or(server)], ..self }
    }

    /// Gives the hosts the addresses that flows have of their own, and a way to those of the other.
    pub(super) fn add_addresses(&self, flows: &[Flow]) -> Result<(), Error> {
        for end in [End::Client, End::Server] {
            let mut own: Vec<Ipv4Addr> = flows.iter().filter_map(|flow| flow.addresses[end.index()]).collect();
            own.sort_unstable();
            own.dedup();
            self.namespaces[end.index()].run(|| {
                for (number, address) in own.iter().filter(|own| !self.addresses.contains(own)).enumerate() {
                    // Of no network, so that no route but the one below leads to it from outside.
                    device::set_address(&format!("lo:{}", number + 1), *address, 32)
                        .context(|| format!("giving a host the address {address}"))?;
                }
                device::set_default_route(self.devices[end.index()]).context(|| "setting a route")
            })??;
        }
        Ok(())
    }
}

/// A listening socket; flows may share one, and are told apart by the port that connects.
pub(super) struct Listener {
    pub(super) end: End,
    pub(super) address: SocketAddrV4,
    pub(super) socket: TcpListener,
}

/// Opens sockets in the namespaces of the two hosts.
pub(super) struct Opener<'a> {
    pub(super) hosts: Hosts<'a>,
    pub(super) listeners: Vec<Listener>,
    /// Who takes replayed packets, at each end to which any go.
    pub(super) catchers: [Option<Catcher>; 2],
    pub(super) refused: Vec<String>,
}

impl<'a> Opener<'a> {
    pub(super) fn new(hosts: Hosts<'a>) -> Self {
        Self { hosts, listeners: Vec::new(), catchers: [None, None], refused: Vec::new() }
    }

    pub(super) fn source(&mut self, flow: Flow) -> Result<Source, Error> {
        let (from, to) = (flow.from, flow.from.other());
        let hosts = self.hosts.named(flow.addresses);
        match flow.kind {
            Kind::Transfer(plan) => self.transfer(hosts, plan, from, flow.dscp),
            Kind::Datagrams(plan) => {
                let (own, far) = (hosts.address(from, plan.from_port), hosts.address(to, plan.to_port));
                let out = hosts.namespaces[from.index()].run(|| datagrams::sender(own, flow.dscp))?;
                let out = out.context(|| format!("opening UDP port {own}"))?;
                let sink = hosts.namespaces[to.index()].run(|| datagrams::sink(far))?;
                let sink = sink.context(|| format!("opening UDP port {far}"))?;
                let source = Datagrams::new(plan, out, sink, far).context(|| format!("connecting to {far}"))?;
                Ok(Source::Datagrams(Box::new(source)))
            }
            Kind::Echo(plan) => {
                let [own, target] = [from, to].map(|end| hosts.addresses[end.index()]);
                let echo = hosts.namespaces[from.index()].run(|| Echo::new(plan, own, target, flow.dscp))?;
                Ok(Source::Echo(echo.context(|| "opening a raw socket")?))
            }
            Kind::Application(plan) => {
                self.listen(hosts, &plan.connection, plan.connection.opener.other(), flow.dscp)?;
                Ok(Source::Application(Box::new(Owner::new(plan, hosts.addresses, from, flow.dscp))))
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

    fn transfer(&mut self, hosts: Hosts<'_>, plan: TransferPlan, from: End, dscp: u8) -> Result<Source, Error> {
        let (near, far_end) = (plan.opener, plan.opener.other());
        self.listen(hosts, &plan, far_end, dscp)?;
        let (own, far) = (hosts.address(near, plan.opener_port), hosts.address(far_end, plan.listener_port));
        let refused = &mut self.refused;
        let opened = hosts.namespaces[near.index()].run(|| {
            let fd = socket::open().context(|| "opening a TCP socket")?;
            transfer::set_up(fd.as_fd(), &plan, dscp, &mut |text| refused.push(text))?;
            socket::bind(fd.as_fd(), own).context(|| format!("opening TCP port {own}"))?;
            Ok::<_, Error>(fd)
        })??;
        Ok(Source::Transfer(Box::new(Transfer::new(plan, near == from, opened, far))))
    }

    fn listen(&mut self, hosts: Hosts<'_>, plan: &TransferPlan, end: End, dscp: u8) -> Result<(), Error> {
        let own = hosts.address(end, plan.listener_port);
        if self.listeners.iter().any(|listener| listener.end == end && listener.address == own) {
            return Ok(());
        }
        let opened = hosts.namespaces[end.index()].run(|| {
            let fd = socket::open().context(|| "opening a TCP socket")?;
            transfer::set_up(fd.as_fd(), plan, dscp, &mut |_| {})?;
            let listen = || socket::bind(fd.as_fd(), own).and_then(|()| socket::listen(fd.as_fd()));
            listen().context(|| format!("listening on TCP port {own}"))?;
            Ok::<_, Error>(fd)
        })??;
        self.listeners.push(Listener { end, address: own, socket: TcpListener::from(opened) });
        Ok(())
    }
}

//! The two hosts, and the sockets that are opened on them before anything runs.
//!
//! A socket belongs to the namespace in which it was opened, whoever uses it.

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::fd::AsFd;

use crate::emulate;
use crate::error::{Context, Error};
use crate::sys::{device, ipv6, socket};

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
    /// The device of each that leads to the other.
    pub(super) devices: [&'a str; 2],
}

impl Hosts<'_> {
    /// Gives the hosts the addresses of flows that are not those of the line's devices, and a route to those of the other host.
    pub(super) fn add_addresses(&self, line: &emulate::Config, flows: &[Flow]) -> Result<(), Error> {
        let devices: [IpAddr; 4] = [
            line.client_address.into(),
            line.server_address.into(),
            line.client_address_v6.into(),
            line.server_address_v6.into(),
        ];
        let needs_ipv6 = flows.iter().any(|flow| flow.addresses[0].is_ipv6());
        for end in [End::Client, End::Server] {
            let of_flows = flows.iter().map(|flow| flow.addresses[end.index()]);
            let own: BTreeSet<IpAddr> = of_flows.filter(|address| !devices.contains(address)).collect();
            let device = self.devices[end.index()];
            self.namespaces[end.index()].run(|| {
                for (number, address) in own.iter().enumerate() {
                    // Of no network, so that no route but the one below leads to it from outside.
                    let added = match address {
                        IpAddr::V4(address) => device::set_address(&format!("lo:{}", number + 1), *address, 32),
                        IpAddr::V6(address) => ipv6::set_address("lo", *address, 128),
                    };
                    added.context(|| format!("giving a host the address {address}"))?;
                }
                device::set_default_route(device).context(|| "setting a route")?;
                if needs_ipv6 {
                    ipv6::set_default_route(device).context(|| "setting a route for IPv6")?;
                }
                Ok::<_, Error>(())
            })??;
        }
        Ok(())
    }
}

/// A listening socket; flows may share one, and are told apart by the port that connects.
pub(super) struct Listener {
    pub(super) end: End,
    pub(super) address: SocketAddr,
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
        let (hosts, addresses) = (self.hosts, flow.addresses);
        match flow.kind {
            Kind::Transfer(plan) => self.transfer(plan, addresses, from, flow.dscp),
            Kind::Datagrams(plan) => {
                let own = from.socket_address(addresses, plan.from_port);
                let far = to.socket_address(addresses, plan.to_port);
                let out = hosts.namespaces[from.index()].run(|| datagrams::sender(own, flow.dscp))?;
                let out = out.context(|| format!("opening UDP port {own}"))?;
                let sink = hosts.namespaces[to.index()].run(|| datagrams::sink(far))?;
                let sink = sink.context(|| format!("opening UDP port {far}"))?;
                let source = Datagrams::new(plan, out, sink, far).context(|| format!("connecting to {far}"))?;
                Ok(Source::Datagrams(Box::new(source)))
            }
            Kind::Echo(plan) => {
                let [IpAddr::V4(own), IpAddr::V4(target)] = [from, to].map(|end| addresses[end.index()]) else {
                    return Err(io::Error::from(io::ErrorKind::Unsupported)).context(|| "sending ICMP echo over IPv6");
                };
                let echo = hosts.namespaces[from.index()].run(|| Echo::new(plan, own, target, flow.dscp))?;
                Ok(Source::Echo(echo.context(|| "opening a raw socket")?))
            }
            Kind::Application(plan) => {
                self.listen(&plan.connection, addresses, flow.dscp)?;
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

    fn transfer(&mut self, plan: TransferPlan, addresses: [IpAddr; 2], from: End, dscp: u8) -> Result<Source, Error> {
        self.listen(&plan, addresses, dscp)?;
        let near = plan.opener;
        let own = near.socket_address(addresses, plan.opener_port);
        let far = near.other().socket_address(addresses, plan.listener_port);
        let refused = &mut self.refused;
        let opened = self.hosts.namespaces[near.index()].run(|| {
            let fd = socket::open(own).context(|| "opening a TCP socket")?;
            transfer::set_up(fd.as_fd(), &plan, dscp, &mut |text| refused.push(text))?;
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

//! One flow of a plan: addresses, ports and the task of its generator.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use lastmile_live::emulate;
use lastmile_model::{EndName, Network, OpenedBy, Source, Traffic, Transport};
use lastmile_packet::{FlowAddresses, FlowId};
use lastmile_queueing::random::Stream;
use lastmile_quic::CongestionControl;
use lastmile_sim::sources::Dialogue;
use lastmile_tcp::Config as Tcp;

use crate::spec::{
    Application, ApplicationPlan, ConnectionPlan, DatagramPlan, DialoguePlan, EchoPlan, End, Flow, Kind, QuicPlan,
    TransferPlan, Window,
};

use super::sources;

/// The timestamp option with its padding (RFC 7323, appendix A).
pub(super) const TIMESTAMPS: u16 = 12;

/// One flow of a traffic.
pub(super) struct Planned<'s> {
    pub(super) traffic: &'s Traffic,
    /// The index of the traffic in the plan's network.
    pub(super) index: usize,
    pub(super) member: u32,
    pub(super) from: End,
    pub(super) addresses: FlowAddresses,
    pub(super) congestion: String,
    pub(super) timestamps: bool,
}

impl Planned<'_> {
    /// As the simulator calls it.
    pub(super) fn name(&self) -> String {
        match self.traffic.count {
            1 => self.traffic.name.clone(),
            _ => format!("{}-{}", self.traffic.name, self.member + 1),
        }
    }

    pub(super) fn flow(&self, network: &Network, line: &emulate::Config, hosts: &BTreeSet<IpAddr>) -> Option<Flow> {
        let Traffic { stop, ip, source, .. } = self.traffic;
        let (start, stop, dscp) = (network.start_of(self.traffic, self.member), *stop, ip.dscp);
        Some(Flow {
            name: self.name(),
            from: self.from,
            addresses: self.ends(line),
            phase: self.traffic.start,
            start,
            stop,
            dscp,
            kind: self.kind(source, network.seed, hosts)?,
        })
    }

    fn kind(&self, source: &Source, seed: u64, hosts: &BTreeSet<IpAddr>) -> Option<Kind> {
        let FlowAddresses { source_port, destination_port, .. } = self.addresses;
        match source {
            Source::Bulk { sender, receiver, bytes, request, opened_by } => {
                Some(Kind::Transfer(self.transfer(sender, receiver, (*bytes, *request), *opened_by)))
            }
            Source::Quic { quic, bytes, request, opened_by } => {
                Some(Kind::Quic(self.quic(quic, (*bytes, *request), *opened_by)))
            }
            Source::Ping { interval, size, .. } => {
                Some(Kind::Echo(EchoPlan { interval: *interval, size: u16::try_from(size.as_u64()).ok()? }))
            }
            Source::Web(_) | Source::Video(_) | Source::Backup(_) => {
                let client = sources::Client::new(source, (self.index, self.name()), self.random(seed))?;
                Some(self.application(source.transport()?, Box::new(client)))
            }
            Source::Conference(_) | Source::Game(_) => {
                let flows = [0, 1].map(FlowId::new);
                Some(Kind::Dialogue(DialoguePlan {
                    dialogue: Dialogue::new(self.traffic, self.index, flows, self.random(seed))?,
                    flows,
                    headers: self.traffic.ip.datagram_headers(),
                    from_port: source_port,
                    to_port: destination_port,
                    buffer: self.traffic.listener.buffer,
                }))
            }
            Source::Swarm(spec) => {
                let peer = sources::Peer::new(spec, self.random(seed));
                Some(self.application(&Transport::Tcp(Arc::clone(&spec.tcp)), Box::new(peer)))
            }
            Source::Replay(capture) => Some(Kind::Replay(sources::replay(capture, hosts))),
            other => {
                let headers = self.traffic.ip.datagram_headers();
                let (size, departures) = sources::departures(other, self.random(seed))?;
                Some(Kind::Datagrams(DatagramPlan {
                    payload: u16::try_from(size.as_u64()).ok()?.saturating_sub(headers.into()),
                    from_port: source_port,
                    to_port: destination_port,
                    first_payload: self.traffic.names.from.first_payload.clone(),
                    buffer: self.traffic.listener.buffer,
                    departures,
                }))
            }
        }
    }

    /// The addresses of client and server: those that the scenario names, and else those of the line's devices.
    pub(super) fn ends(&self, line: &emulate::Config) -> [IpAddr; 2] {
        let names = &self.traffic.names;
        let (client, server) = match self.from {
            End::Client => (&names.from, &names.to),
            End::Server => (&names.to, &names.from),
        };
        let [own_client, own_server] = devices(line, self.traffic.ip.ipv6);
        let of = |end: &EndName, own| end.address_of(self.member).unwrap_or(own);
        [of(client, own_client), of(server, own_server)]
    }

    /// The random stream that the simulator has for it.
    fn random(&self, seed: u64) -> Stream {
        Stream::new(seed, &format!("traffic {}-{}", self.traffic.name, self.member))
    }

    fn application(&self, transport: &Transport, application: Box<dyn Application>) -> Kind {
        let opened_by = self.traffic.opened_by();
        let chosen = self.traffic.opener().port.is_none() || self.traffic.count > 1;
        let connection = match transport {
            Transport::Tcp(tcp) => {
                let plan = self.transfer(tcp, tcp, (None, 0), opened_by);
                let opener_port = if chosen { 0 } else { plan.opener_port };
                ConnectionPlan::Tcp(TransferPlan { opener_port, ..plan })
            }
            Transport::Quic(quic) => {
                let plan = self.quic(quic, (None, 0), opened_by);
                let opener_port = if chosen { 0 } else { plan.opener_port };
                ConnectionPlan::Quic(QuicPlan { opener_port, ..plan })
            }
        };
        Kind::Application(ApplicationPlan { connection, application })
    }

    fn quic(
        &self,
        quic: &Arc<lastmile_quic::Config>,
        (bytes, request): (Option<u64>, u64),
        opened_by: OpenedBy,
    ) -> QuicPlan {
        let (opener, opener_port, listener_port) = self.opener(opened_by);
        QuicPlan { quic: Arc::clone(quic), bytes, request, opener, opener_port, listener_port }
    }

    /// The host that opens a connection, its port, and the port of the other.
    fn opener(&self, opened_by: OpenedBy) -> (End, u16, u16) {
        let FlowAddresses { source_port, destination_port, .. } = self.addresses;
        match opened_by {
            OpenedBy::Sender => (self.from, source_port, destination_port),
            OpenedBy::Receiver => (self.from.other(), destination_port, source_port),
        }
    }

    fn transfer(
        &self,
        sender: &Tcp,
        receiver: &Tcp,
        (bytes, request): (Option<u64>, u64),
        opened_by: OpenedBy,
    ) -> TransferPlan {
        let (opener, opener_port, listener_port) = self.opener(opened_by);
        TransferPlan {
            congestion: self.congestion.clone(),
            segment: sender.mss.min(receiver.mss).saturating_add(if self.timestamps { TIMESTAMPS } else { 0 }),
            window: if receiver.autotune { Window::Grows } else { Window::Fixed(most_window(receiver)) },
            send_buffer: sender.send_buffer.and_then(|bytes| u32::try_from(bytes.as_u64()).ok()),
            bytes,
            request,
            opener,
            opener_port,
            listener_port,
            first_payload: self.traffic.names.from.first_payload.clone(),
            first_request: self.traffic.names.to.first_payload.clone(),
            min_rto: sender.timers.min_rto,
            max_rto: sender.timers.max_rto,
            delayed_ack: receiver.acks.delayed_ack,
            quick_acks: receiver.acks.quick_acks || receiver.acks.ack_every < 2,
        }
    }
}

/// Settings of QUIC that the library of the lab does not have.
pub(super) fn quic_warnings(name: &str, quic: &lastmile_quic::Config) -> Vec<String> {
    let (own, usual) = (quic.max_ack_delay, lastmile_quic::Config::default().max_ack_delay);
    let warnings = [
        (quic.congestion == CongestionControl::Bbr3)
            .then(|| format!("traffic \"{name}\": bbr3 is BBR of the lab's QUIC, which follows version 1")),
        (own != usual).then(|| format!("traffic \"{name}\": max_ack_delay is {usual} in the lab's QUIC, not {own}")),
    ];
    warnings.into_iter().flatten().collect()
}

/// The addresses of the devices of client and server.
pub(super) fn devices(line: &emulate::Config, ipv6: bool) -> [IpAddr; 2] {
    if ipv6 {
        [line.client_address_v6.into(), line.server_address_v6.into()]
    } else {
        [line.client_address.into(), line.server_address.into()]
    }
}

/// Bytes of the IP and TCP headers without options.
pub(super) fn headers(tcp: &Tcp) -> u16 {
    if tcp.ipv6 { 60 } else { 40 }
}

/// The TCP of the end that receives the data.
pub(super) fn receiver_of(traffic: &Traffic) -> Option<&Tcp> {
    match &traffic.source {
        Source::Bulk { receiver, .. } => Some(receiver),
        _ => traffic.tcp().next(),
    }
}

pub(super) fn most_window(tcp: &Tcp) -> u32 {
    u32::try_from(tcp.receive_window.as_u64()).unwrap_or(1 << 30)
}

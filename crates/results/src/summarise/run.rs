//! Intermediate results that several parts of a summary need.

use std::sync::Arc;

use lastmile_model::outcome::{FlowOutcome, Losses, Outcome};
use lastmile_model::{Directory, Network, Source, Steady, Transport};
use lastmile_tcp::Variant;

use super::class::class;
use crate::bounds::{self, Bound, Limits, Loads, Shape, fair};
use crate::interval::{self, Interval};
use crate::phases;
use crate::schema::FlowKind;

/// Intermediate results that several parts of the summary need.
pub(super) struct Run<'a> {
    pub(super) network: &'a Network,
    pub(super) outcome: &'a Outcome,
    /// By traffic; `None` for pings.
    pub(super) shapes: Vec<Option<Shape>>,
    pub(super) parts: Vec<Interval>,
    /// The bounds of the flows, by traffic.
    pub(super) limits: Vec<Limits>,
    /// Fair shares by phase and traffic.
    pub(super) fair: Vec<Vec<Option<Bound>>>,
    /// Names by traffic, shared by the rows of its flows.
    pub(super) names: Vec<Names>,
    /// By traffic: the index of its first flow.
    pub(super) firsts: Vec<usize>,
    /// Packets dropped over the run; flows are indices into [`Outcome::flows`].
    pub(super) losses: Losses,
}

/// Names that the rows of one traffic share.
#[derive(Clone, Default)]
pub(super) struct Names {
    pub(super) direction: Arc<str>,
    pub(super) kind: FlowKind,
    pub(super) class: Arc<str>,
    pub(super) tcp: Option<Arc<str>>,
    pub(super) data_path: Arc<[Arc<str>]>,
    pub(super) ack_path: Arc<[Arc<str>]>,
}

impl Names {
    fn new(network: &Network, flow: &FlowOutcome) -> Self {
        let traffic = &network.traffic[flow.traffic];
        let path = |path: &[usize]| path.iter().map(|link| network.links[*link].hop.name.as_str().into()).collect();
        Self {
            direction: traffic.direction.as_str().into(),
            kind: kind(&traffic.source),
            class: class(traffic.ip.dscp).into(),
            tcp: match &traffic.source {
                Source::Bulk { sender, .. } => Some(variant_name(sender.variant).into()),
                Source::Quic { quic, .. } => Some(quic_name(quic)),
                Source::Writes { tcp, .. } => Some(variant_name(tcp.variant).into()),
                Source::Swarm(swarm) => Some(variant_name(swarm.tcp.variant).into()),
                other => other.transport().map(transport_name),
            },
            data_path: path(&flow.data_path),
            ack_path: path(&flow.ack_path),
        }
    }
}

impl<'a> Run<'a> {
    pub(super) fn new(network: &'a Network, outcome: &'a Outcome) -> Self {
        let mut shapes = vec![None; network.traffic.len()];
        let mut names = vec![Names::default(); network.traffic.len()];
        let mut latest = None;
        let mut firsts = vec![0; network.traffic.len()];
        let directory = outcome.events.is_some().then(|| Directory::new(network));
        for (index, flow) in outcome.flows.iter().enumerate() {
            // The flows of one traffic are adjacent.
            if latest.replace(flow.traffic) == Some(flow.traffic) {
                continue;
            }
            names[flow.traffic] = Names::new(network, flow);
            firsts[flow.traffic] = index;
            let shape = &mut shapes[flow.traffic];
            if shape.is_none() {
                *shape = Shape::new((network, directory.as_ref()), flow.traffic, &flow.data_path, &flow.ack_path);
            }
        }
        let parts = phases::intervals(network, outcome);
        let share = |part: &Interval| fair::in_phase(network, outcome, &shapes, part);
        let fair = parts.iter().map(share).collect();
        let limits = |shape: &Option<Shape>| {
            shape.as_ref().map(|shape| Limits::new(network, outcome, shape)).unwrap_or_default()
        };
        let limits = shapes.iter().map(limits).collect();
        let losses = interval::of_flows(&outcome.losses, &phases::places(network));
        Self { network, outcome, shapes, parts, limits, fair, names, firsts, losses }
    }

    /// The data of all traffic in a part of the run.
    pub(super) fn loads(&self, part: &Interval) -> Loads<'_> {
        let active = |index| bounds::active(self.network, self.outcome, index, (part.from, part.to));
        Loads::new(self.outcome, &self.shapes, part, active)
    }
}

fn kind(source: &Source) -> FlowKind {
    match source {
        Source::Bulk { .. } | Source::Quic { .. } => FlowKind::Bulk,
        Source::Writes { .. } => FlowKind::Writes,
        Source::Poisson { .. } => FlowKind::Poisson,
        Source::OnOff { .. } => FlowKind::OnOff,
        Source::Constant { kind: Steady::Voice, .. } => FlowKind::Voice,
        Source::Constant { kind: Steady::Blast, .. } => FlowKind::Blast,
        Source::Web(_) => FlowKind::Web,
        Source::Video(_) => FlowKind::Video,
        Source::Backup(_) => FlowKind::Backup,
        Source::Conference(_) => FlowKind::Conference,
        Source::Game(_) => FlowKind::Game,
        Source::Swarm(_) => FlowKind::Swarm,
        Source::Replay(_) => FlowKind::Replay,
        Source::Ping { .. } => FlowKind::Ping,
    }
}

fn transport_name(transport: &Transport) -> Arc<str> {
    match transport {
        Transport::Tcp(tcp) => variant_name(tcp.variant).into(),
        Transport::Quic(quic) => quic_name(quic),
    }
}

fn quic_name(quic: &lastmile_quic::Config) -> Arc<str> {
    format!("quic-{}", quic.congestion.name()).into()
}

fn variant_name(variant: Variant) -> &'static str {
    match variant {
        Variant::Tahoe => "tahoe",
        Variant::Reno => "reno",
        Variant::NewReno => "newreno",
        Variant::Sack => "sack",
        Variant::Cubic => "cubic",
        Variant::Bbr => "bbr",
        Variant::Bbr3 => "bbr3",
        Variant::Ledbat => "ledbat++",
        Variant::Dctcp => "dctcp",
        Variant::Prague => "prague",
    }
}

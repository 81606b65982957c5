//! Data that a flow sent before a phase and delivers in it.
//!
//! A link carries its rate, but what crossed it before the phase arrives in addition: the octets
//! that the receiver held at the beginning, out of order or not read yet, and those that were
//! behind the link. These are no more than the link sends in the longest time from it to the
//! receiver, and no more than the sender had sent and the application had not received.
//!
//! ACKs of a phase stand for the data that arrived in it, except for the data whose ACKs were still
//! on their way at its end.

use lastmile_model::Network;
use lastmile_model::outcome::{FlowOutcome, Outcome};
use lastmile_queueing::line::trace::Trace;
use lastmile_units::{Duration, Instant};

use super::constraint::Constraint;
use super::shape::Shape;
use crate::format;
use crate::interval::UnderWay;

/// The data that a flow had sent before a span.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Before {
    /// Nothing: the span begins with the flow.
    Nothing,
    /// The measured octets.
    Measured(UnderWay),
    /// An unknown number of octets.
    Unknown,
}

/// The data that a flow delivers in a span and that no link and no ACK of the span stands for.
pub(super) struct Carried<'a> {
    network: &'a Network,
    outcome: &'a Outcome,
    shape: &'a Shape,
    /// Payload bytes that the receiver held at the beginning.
    held: f64,
    /// Payload bytes on the path at the beginning, in addition.
    on_path: f64,
    /// Payload bytes whose ACKs were on their way at the end.
    unacknowledged: f64,
}

impl<'a> Carried<'a> {
    pub(super) fn new(
        (network, outcome): (&'a Network, &'a Outcome),
        shape: &'a Shape,
        flow: &FlowOutcome,
        before: Before,
    ) -> Self {
        let flight = flow.tcp.as_ref().map_or(0.0, |tcp| format::to_f64(tcp.max_in_flight));
        let (held, on_path, unacknowledged) = match (before, shape.tcp) {
            (Before::Nothing, _) => (0.0, 0.0, flight),
            (Before::Measured(data), _) => {
                let on_path = data.undelivered.saturating_sub(data.held);
                (format::to_f64(data.held), format::to_f64(on_path), format::to_f64(data.unacknowledged))
            }
            // Data held out of order are no part of the flight: at most a window of both.
            (Before::Unknown, Some(tcp)) => (format::to_f64(tcp.window), 0.0, flight),
            (Before::Unknown, None) => (0.0, on_wires_and_in_queues(network, outcome, flow), 0.0),
        };
        Self { network, outcome, shape, held, on_path, unacknowledged }
    }

    /// The payload bytes that a source of at most `bps` had sent before the span begins at `from`.
    pub(super) fn of_source(&self, bps: f64, from: Instant) -> f64 {
        let first = self.shape.data_path.first().copied();
        let path = first.and_then(|first| {
            let line = &self.network.links[first].hop.line;
            let sending =
                line.rate.map_or(Duration::ZERO, |rate| rate.time_for(line.link_layer.on_wire(self.shape.data)));
            let queued = Duration::from_ns(self.outcome.links[first].queue_delay_ns.max() + 1);
            let is_plain = line.trace.is_none() && line.grants.is_none();
            Some(self.time_behind(first, false).filter(|_| is_plain)? + queued + sending)
        });
        let time = path.map(|path| path.min(from.since(Instant::ZERO)));
        self.held + time.map_or(self.on_path, |time| (bps * time.as_secs_f64() / 8.0).min(self.on_path))
    }

    /// The payload bytes that had passed a constraint of a link, at most `bps`, before the span begins at `from`.
    pub(super) fn over(&self, (index, constraint, bps): (usize, &Constraint, f64), from: Instant) -> f64 {
        let link = &self.network.links[index];
        let behind = self.time_behind(index, constraint.is_policer()).map(|time| {
            let begin = Instant::ZERO + from.since(Instant::ZERO).saturating_sub(time);
            let bps = bps * constraint.part(link, (begin, from));
            bps * from.since(begin).as_secs_f64() / 8.0
        });
        self.held + behind.map_or(self.on_path, |bytes| bytes.min(self.on_path))
    }

    /// The payload bytes that are delivered in the span without an ACK that arrives in it.
    pub(super) fn without_acks(&self) -> f64 {
        self.held + self.unacknowledged
    }

    /// The longest time from the end of a transmission on link number `from` to the receiver, or from its queue's
    /// entrance; `None` where it has no limit that is known.
    fn time_behind(&self, from: usize, with_queue: bool) -> Option<Duration> {
        let at = self.shape.data_path.iter().position(|index| *index == from)?;
        let (mut sum, mut rest) = (Duration::ZERO, &self.shape.data_path[at..]);
        while let Some((index, after)) = rest.split_first() {
            let link = &self.network.links[*index];
            let line = &link.hop.line;
            if self.network.atm.as_ref().is_some_and(|atm| atm.links.contains(index)) {
                let (time, links) = self.across_cells(*index)?;
                (sum, rest) = (sum + time, rest.get(links..)?);
                continue;
            }
            rest = after;
            let varies = line.impairments.may_hasten() || line.trace.as_ref().and_then(Trace::least_delay).is_some();
            let is_queued = *index != from || with_queue;
            if varies || line.grants.is_some() || (is_queued && line.trace.is_some()) {
                return None;
            }
            sum += line.delay + line.far_end + self.network.nodes[link.to].processing;
            if is_queued {
                sum += Duration::from_ns(self.outcome.links[*index].queue_delay_ns.max() + 1);
                let wire = line.link_layer.on_wire(self.shape.data);
                sum += line.rate.map_or(Duration::ZERO, |rate| rate.time_for(wire));
            }
        }
        Some(sum)
    }

    /// The longest time of a packet from the source of the virtual channel that carries the data on link number `from`
    /// to its far end, and the number of its links from there on.
    fn across_cells(&self, from: usize) -> Option<(Duration, usize)> {
        let (atm, outcome) = (self.network.atm.as_ref()?, self.outcome.atm.as_ref()?);
        let own = atm.circuits.iter().filter(|circuit| circuit.traffic == self.shape.traffic && !circuit.back);
        let vcs = own.flat_map(|circuit| &circuit.vcs).filter_map(|vc| {
            let route = &atm.network.vcs[vc.index()].route;
            let place = route.iter().position(|link| atm.links[link.index()] == from)?;
            Some((Duration::from_ns(outcome.vcs[vc.index()].transit.max_ns + 1), route.len() - place))
        });
        vcs.reduce(|a, b| (a.0.max(b.0), a.1.min(b.1)))
    }
}

/// The most bytes of datagrams that can be on the way: the largest backlogs of the path's queues, and the contents of
/// its wires. The contents of links of cells are not known.
fn on_wires_and_in_queues(network: &Network, outcome: &Outcome, flow: &FlowOutcome) -> f64 {
    if network.atm.as_ref().is_some_and(|atm| flow.data_path.iter().any(|index| atm.links.contains(index))) {
        return f64::INFINITY;
    }
    let held = |index: &usize| {
        let line = &network.links[*index].hop.line;
        let wire = line.rate.map_or(0.0, |rate| format::to_f64(rate.as_bps()) / 8.0 * line.delay.as_secs_f64());
        format::to_f64(outcome.links[*index].max_backlog_bytes) + wire
    };
    flow.data_path.iter().map(held).sum()
}

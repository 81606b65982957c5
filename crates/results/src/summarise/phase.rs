//! The parts of a run: results and limits of each flow in each part.

use lastmile_model::outcome::{FlowOutcome, Loss, Waits};
use lastmile_units::{Duration, Instant};

use super::class::class;
use super::experience::Part;
use super::run::Run;
use super::statistics::round_trip;
use crate::bounds::{self, Before, Bound, Loads, Span};
use crate::format::{self, to_f64};
use crate::interval::Interval;
use crate::limits::Case;
use crate::phases;
use crate::policing;
use crate::schema::{Phase, PhaseFlow, PhaseLink, PhaseProbe, Shares};

/// The share of the other bound below which a two-way bound is reported.
const CLOSER: f64 = 0.9;

/// A source without TCP is limited only by itself.
pub(super) const BY_ITS_SOURCE: Shares = Shares {
    application: Some(1.0),
    awaiting_ack: None,
    congestion_window: None,
    pacing: None,
    receive_window: None,
    send_buffer: None,
};

/// Bytes over a span in bits per second; zero over no time.
pub(super) fn rate(bytes: u64, span: Duration) -> f64 {
    if span.is_zero() { 0.0 } else { to_f64(bytes) * 8.0 / span.as_secs_f64() }
}

/// A fair share, at most the bound: where a line changes, the share takes a capacity that no data can reach in time.
pub(super) fn within<'a>(share: &'a Bound, bound: Option<&'a Bound>) -> &'a Bound {
    bound.filter(|bound| bound.bps < share.bps).unwrap_or(share)
}

impl Run<'_> {
    pub(super) fn phases(&self) -> Vec<Phase> {
        let offered = phases::offered(self.network, self.outcome, &self.parts);
        let names = phases::names(self.network, &offered);
        let parts = self.parts.iter().zip(&self.fair).zip(names.into_iter().zip(offered));
        parts.map(|((part, shares), named)| self.phase(part, shares, named)).collect()
    }

    /// The results of a part with this name, which offers this traffic.
    fn phase(&self, part: &Interval, shares: &[Option<Bound>], (name, offered): (String, Vec<usize>)) -> Phase {
        let links = self.phase_links(part);
        let data = self.loads(part);
        let few = self.outcome.flows.len() <= self.network.record.flow_limit;
        let flows = self.outcome.flows.iter().enumerate().filter(|_| few);
        let flows =
            flows.filter_map(|(index, flow)| self.phase_flow(index, flow, part, shares, &links, &data)).collect();
        let times = self.as_part(part);
        let probes = self.outcome.probes.iter().map(|probe| {
            let replies: Vec<Duration> =
                probe.replies.iter().filter(|(left, _)| times.has(*left)).map(|(_, took)| *took).collect();
            PhaseProbe {
                name: probe.name.clone(),
                class: class(self.network.traffic[probe.traffic].ip.dscp),
                received: replies.len() as u64,
                rtt_s: round_trip(replies.into_iter()),
            }
        });
        Phase {
            name,
            from_s: part.from.as_secs_f64(),
            to_s: part.to.as_secs_f64(),
            traffic: offered.into_iter().map(|index| self.network.traffic[index].name.clone()).collect(),
            flows,
            probes: probes.collect(),
            links,
        }
    }

    /// The last part contains its end.
    fn as_part(&self, part: &Interval) -> Part {
        Part { from: part.from, to: part.to, last: part.to == Instant::ZERO + self.outcome.duration }
    }

    /// `None` for a flow of which nothing was offered, delivered or retransmitted in this part.
    fn phase_flow(
        &self,
        index: usize,
        flow: &FlowOutcome,
        part: &Interval,
        fair: &[Option<Bound>],
        links: &[PhaseLink],
        data: &Loads<'_>,
    ) -> Option<PhaseFlow> {
        let fair = fair[flow.traffic].as_ref().filter(|share| share.bps < f64::MAX);
        let offered = self.is_active(flow, part);
        let retransmissions = part.retransmissions[index];
        if part.bytes[index] == 0 && retransmissions == 0 && !offered {
            return None;
        }
        let shares = match &part.limited[index] {
            Some(limited) => phases::shares(limited),
            None if flow.tcp.is_none() => BY_ITS_SOURCE,
            None => Shares::default(),
        };
        let before = match part.under_way[index] {
            Some(data) => Before::Measured(data),
            None if flow.start >= part.from => Before::Nothing,
            None => Before::Unknown,
        };
        let span = (part.from.max(flow.start), part.to);
        let bound = self.bound(flow, span, before).filter(|bound| self.holds_packets(flow, span, bound));
        let fair = fair.map(|share| within(share, bound.as_ref()));
        let shape = self.shapes[flow.traffic].as_ref().filter(|shape| !shape.many);
        let two_way =
            shape.and_then(|shape| bounds::two_way((self.network, self.outcome), shape, flow, (part, before)));
        let closer = |two_way: &Bound| bound.as_ref().is_some_and(|bound| two_way.bps < CLOSER * bound.bps);
        let two_way = two_way.filter(closer);
        let goodput_bps = rate(part.bytes[index], part.to.since(part.from));
        let acks = flow.tcp.as_ref().map_or(0, |tcp| tcp.acks_sent).max(1);
        let reached = (to_f64(flow.data_packets_received) / to_f64(acks), goodput_bps);
        let explain = |shape| {
            let words = Case {
                network: self.network,
                shape,
                traffic: flow.traffic,
                interval: part,
                opens: shape.many || flow.start >= part.from,
                links,
                shares,
                receive_window: part.receive_window[index],
                round_trips: part.round_trips[index],
                retransmissions,
                mark_reductions: part.mark_reductions[index],
                reached,
                data,
            };
            let words = words.words();
            let member = index - self.first_of(flow.traffic);
            let policing = policing::words(self.network, (flow.traffic, member), of_flow(&part.losses, index));
            let words = policing.into_iter().chain(Some(words)).filter(|words| !words.is_empty());
            let words = words.collect::<Vec<_>>().join("; ");
            match &two_way {
                Some(bound) if !words.is_empty() => {
                    format!("{words}; at most {} by {}", format::rate(bound.bps), bound.by)
                }
                _ => words,
            }
        };
        let noticed = self.noticed(flow, self.as_part(part));
        Some(PhaseFlow {
            name: flow.name.clone(),
            offered,
            goodput_bps,
            limited_by: shares,
            explanation: noticed.unwrap_or_else(|| shape.map_or_else(String::new, explain)),
            bound_bps: bound.as_ref().map(|bound| bound.bps),
            bound_by: bound.as_ref().map(|bound| bound.by.to_string()).or_else(|| self.without_a_line(flow, span)),
            fair_share_bps: fair.map(|share| share.bps),
            fair_share_by: fair.map(|share| share.by.to_string()),
            two_way_bound_bps: two_way.as_ref().map(|bound| bound.bps),
            two_way_bound_by: two_way.as_ref().map(|bound| bound.by.to_string()),
            retransmissions: part.limited[index].map(|_| retransmissions),
        })
    }

    /// True if a span is long enough for some packets at this bound: in a shorter one the packets at its ends decide.
    fn holds_packets(&self, flow: &FlowOutcome, (from, to): Span, bound: &Bound) -> bool {
        const SOME: u64 = 10;
        let payload = self.shapes[flow.traffic].as_ref().map_or(0, |shape| shape.payload);
        bound.bps * to.since(from).as_secs_f64() / 8.0 >= to_f64(SOME * payload)
    }

    /// True if the flow offered data in this part.
    fn is_active(&self, flow: &FlowOutcome, part: &Interval) -> bool {
        let stop = self.network.traffic[flow.traffic].stop;
        flow.start < part.to && flow.end.is_none_or(|end| end > part.from) && stop.is_none_or(|stop| stop > part.from)
    }

    fn phase_links(&self, part: &Interval) -> Vec<PhaseLink> {
        let links = self.network.links.iter().enumerate();
        let max_s = |waits: &Waits| (waits.packets > 0).then(|| to_f64(waits.max_ns) / 1e9);
        links
            .map(|(index, spec)| PhaseLink {
                name: spec.hop.name.clone(),
                payload_capacity_bps: self.payload_capacity_bps(index, spec, (part.from, part.to)),
                utilisation: part.utilisation(index, spec),
                queue_delay_mean_s: part.waits[index].mean_s(),
                queue_delay_max_s: max_s(&part.waits[index]),
                ack_queue_delay_mean_s: part.ack_waits[index].mean_s(),
                ack_queue_delay_max_s: max_s(&part.ack_waits[index]),
            })
            .collect()
    }
}

/// The losses of one flow; `losses` are sorted by flow.
pub(super) fn of_flow(losses: &[(Loss, u64)], flow: usize) -> impl Iterator<Item = &(Loss, u64)> {
    let first = losses.partition_point(|(loss, _)| loss.flow < flow);
    losses[first..].iter().take_while(move |(loss, _)| loss.flow == flow)
}

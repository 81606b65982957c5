//! The bound of each flow's goodput: no run exceeds it.
//!
//! The bound of a flow as the only one on its path, over a span T, is the least of:
//!
//! - *the rate of each link* that its data crosses, as payload without headers, encapsulation, cell
//!   headers and OAM cells; of a line whose rate changes, its mean rate over T. Segments are full
//!   where the source sends no others: datagrams, and simulated transfers without an end. Elsewhere
//!   they have the best size for the wire;
//! - *the rate of each shaper* before such a link, and its burst;
//! - *the ceiling of each class and the rate of each policer* before such a link that all its packets with data pass
//!   whatever happens, as addresses, ports, protocol, code point and size tell, and their bursts;
//! - *the limits of a virtual channel* that carries its data, and of its path: the shaper of its source, the peak rate
//!   of available bit rate, and the rates of policers, each with what it lets pass at once ([`cells`]);
//! - *the grants of each link* whose station has one request on the way: what one request brings, for
//!   each of the shortest cycles;
//! - *its receive window*: one window per round trip of the empty path, serialisation and
//!   processing included, and one more for the window that the span cuts;
//! - *the rate of each link* that its ACKs cross, one ACK for every d segments (min(1, d/k) of
//!   [`lastmile_theory::asymmetry`]), plus the data in flight. It applies only where each ACK
//!   arrives: on a link that drops packets or merges ACKs, the remaining ACKs acknowledge more than
//!   d segments;
//! - *its source*, if that has a maximum rate; for a capture, the packets in it.
//!
//! Data that entered the path before a phase may be delivered in the phase. The bound of a phase
//! therefore adds what had already crossed the link when the phase began ([`carried`]).
//! Poisson sources and applications that write at random have no bound of their own. Web users have
//! none: each requests a page only after reading the last one.
//!
//! In a span in which a link of the data carries nothing a flow has no bound: what it delivers was sent before.
//!
//! A bound is not a forecast. Flows that share a link each have the bound of a single flow;
//! [`fair`] has their equal shares.

mod carryover;
mod cells;
mod constraint;
pub(crate) mod fair;
mod full;
mod shape;

use std::sync::Arc;

use lastmile_model::outcome::{FlowOutcome, Outcome};
use lastmile_model::{Link, Network, Replay, Source, Traffic};
use lastmile_queueing::classify::Packets;
use lastmile_queueing::line::grants::{Cycle, PerRequest};
use lastmile_queueing::spec::Spec;
use lastmile_units::{Duration, Instant};

use crate::format;
use crate::interval::Interval;

pub(crate) use carryover::Before;
use carryover::Carried;
use constraint::Constraint;
pub(crate) use constraint::Span;
pub(crate) use full::{Full, Loads};
use shape::TcpShape;
pub(crate) use shape::{Shape, bytes_of};

/// Data below this share of a link's rate do not delay ACKs noticeably.
const DATA_IN_THE_WAY: f64 = 0.01;
/// A bound and its cause.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Bound {
    /// Payload, bit/s.
    pub(crate) bps: f64,
    /// The cause, in words.
    pub(crate) by: Arc<str>,
    /// The link that causes it; `None` for a window or the source.
    pub(crate) link: Option<usize>,
}

impl Bound {
    /// A bound by a window or the source.
    fn of_ends(bps: f64, by: impl Into<Arc<str>>) -> Self {
        Self { bps, by: by.into(), link: None }
    }

    fn of_link(link: usize, bps: f64, by: impl Into<Arc<str>>) -> Self {
        Self { bps, by: by.into(), link: Some(link) }
    }
}

/// The bounds of one traffic's flows, without the allowance for data in flight. Those of links that change are for the
/// nominal rate.
#[derive(Clone, Debug, Default)]
pub(crate) struct Limits {
    /// The bound by a source with a maximum rate.
    source: Option<Bound>,
    /// The bound by each constraint of each link of the data's path.
    data: Vec<LinkBound>,
    /// The receive window, in bytes, and its rate.
    window: Option<(u64, Bound)>,
    /// The bound by each constraint of each link of the ACKs' path, if each ACK arrives.
    acks: Vec<LinkBound>,
}

/// The bound by a constraint of a link.
#[derive(Clone, Debug)]
struct LinkBound {
    bound: Bound,
    link: usize,
    constraint: Constraint,
    /// The most payload bytes in a span beyond the rate.
    beyond: f64,
}

impl Limits {
    /// The limits of the flows of this shape; none for web users.
    pub(crate) fn new(network: &Network, outcome: &Outcome, shape: &Shape) -> Self {
        let traffic = &network.traffic[shape.traffic];
        if matches!(traffic.source, Source::Web(_)) {
            return Self::default();
        }
        let all = if shape.many { ", all its connections together" } else { "" };
        let simulated = outcome.events.is_some();
        let data = shape.constraints.iter().cloned().filter_map(|(link, constraint)| {
            let beyond = constraint.beyond(shape.payload)?;
            let by = format!("{}{all}", constraint.words(&network.links[link]));
            let bound = Bound::of_link(link, shape.best_bps(&network.links[link], &constraint, simulated), by);
            Some(LinkBound { bound, link, constraint, beyond })
        });
        let tcp = shape.tcp.filter(|_| !shape.many);
        let window = tcp.map(|tcp| (tcp.most_held().0, by_window(network, shape, &tcp)));
        let acks = tcp.map_or_else(Vec::new, |tcp| by_acks(network, outcome, shape, tcp));
        Self { source: offered_at_most(traffic, shape), data: data.collect(), window, acks }
    }
}

/// The bound of a flow over a span, before which it had sent `before`. `None` for a flow without
/// bound, for an empty span, and for connections opened during the run within a phase, which may
/// deliver at once all data received out of order.
pub(crate) fn of_flow(
    (network, outcome): (&Network, &Outcome),
    (shape, limits): (Option<&Shape>, &Limits),
    flow: &FlowOutcome,
    (from, to): Span,
    before: Before,
) -> Option<Bound> {
    let span_s = to.since(from).as_secs_f64();
    let whole = matches!(before, Before::Nothing);
    if span_s <= 0.0 || (!whole && shape.is_some_and(|shape| shape.many)) {
        return None;
    }
    let traffic = &network.traffic[flow.traffic];
    if let Source::Replay(capture) = &traffic.source {
        let begin = if whole { traffic.start } else { from };
        return captured(capture, traffic, (begin, to), span_s);
    }
    let shape = shape?;
    if without_a_line(network, shape, (from, to)).is_some() {
        return None;
    }
    let carried = Carried::new((network, outcome), shape, flow, before);
    let packet = format::to_f64(shape.payload);
    let sized = bytes_of(&traffic.source).is_some();
    let add = |bound: &Bound, bps: f64, bytes: f64| Bound { bps: bps + bytes * 8.0 / span_s, ..bound.clone() };
    let source = limits.source.iter().map(|bound| add(bound, bound.bps, carried.of_source(bound.bps, from) + packet));
    let data = limits.data.iter().map(|of| {
        let part = of.constraint.part(&network.links[of.link], (from, to));
        let saved = if of.constraint.saves() { of.bound.bps * from.as_secs_f64() / 8.0 } else { 0.0 };
        let before = carried.over((of.link, &of.constraint, of.bound.bps), from) + saved;
        // A whole transfer has no packet on its way at the beginning.
        let link = &network.links[of.link];
        let packet = if whole && sized && of.constraint.is_exact(link) { 0.0 } else { packet };
        add(&of.bound, of.bound.bps * part, before + of.beyond + packet)
    });
    let window = limits.window.iter().map(|(bytes, bound)| add(bound, bound.bps, format::to_f64(*bytes)));
    let acks = limits.acks.iter().map(|of| {
        let part = of.constraint.part(&network.links[of.link], (from, to));
        add(&of.bound, of.bound.bps * part, carried.without_acks() + of.beyond + packet)
    });
    let bounds = source.chain(data).chain(window).chain(acks).filter(|bound| bound.bps < f64::MAX);
    bounds.min_by(|a, b| a.bps.total_cmp(&b.bps))
}

/// The reason for which flows of this shape have no bound in a span: a link of their data that carries nothing.
pub(crate) fn without_a_line(network: &Network, shape: &Shape, (from, to): Span) -> Option<String> {
    let carries = |link: &Link| link.hop.line.trace.as_ref().and_then(|trace| trace.rate_between(from, to));
    let mut links = shape.data_path.iter().map(|index| &network.links[*index]);
    let idle = links.find(|link| carries(link) == Some(0.0))?;
    Some(format!("none: link {} carries nothing", idle.hop.name))
}

/// The bound by each constraint of each link of the ACKs' path, if each ACK arrives: no drops, and no merged ACKs.
fn by_acks(network: &Network, outcome: &Outcome, shape: &Shape, tcp: TcpShape) -> Vec<LinkBound> {
    let Some(most) = tcp.most_per_ack else { return Vec::new() };
    let covers = shape.payload * most;
    if !shape.ack_path.iter().all(|link| keeps_acks(network, outcome, *link, tcp)) {
        return Vec::new();
    }
    let all = Constraint::along(network, &shape.ack_path, &Packets::default()).into_iter();
    // ACKs that passed a policer before a span may wait in the queue behind it.
    let bounds = all.filter(|(_, constraint)| !constraint.is_policer()).filter_map(|(index, constraint)| {
        let beyond = constraint.beyond(covers)?;
        let link = &network.links[index];
        let ack = shape.ack_over(link, tcp.with_equal_timestamps());
        let constraint = constraint.of_packets(link, ack);
        // Bytes of ACKs pass beyond the rate, and each is for this much data.
        let beyond = match constraint {
            Constraint::Grants(Cycle { brings: PerRequest::Packet, .. }) => beyond,
            _ => beyond / format::to_f64(ack.as_u64()) * format::to_f64(covers),
        };
        let bps = constraint.packets_per_s(link, ack) * format::to_f64(covers) * 8.0;
        let bound = Bound::of_link(index, bps, constraint.words_for_acks(link));
        Some(LinkBound { bound, link: index, constraint, beyond })
    });
    bounds.collect()
}

/// True for a link that neither lost nor merged ACKs.
fn keeps_acks(network: &Network, outcome: &Outcome, link: usize, tcp: TcpShape) -> bool {
    let dropped = outcome.links[link].stats.dropped.iter().any(|count| count.packets > 0);
    let of_cells = network.atm.as_ref().is_some_and(|atm| atm.links.contains(&link));
    !dropped && !of_cells && !tcp.is_thinned(&network.links[link].hop.queue)
}

/// The bound of a datagram source with a maximum rate.
fn offered_at_most(traffic: &Traffic, shape: &Shape) -> Option<Bound> {
    let payload_share = format::to_f64(shape.payload) / format::to_f64(shape.data.as_u64());
    let ip_bps = match &traffic.source {
        Source::OnOff { peak, .. } => format::to_f64(peak.as_bps()),
        Source::Constant { interval, size, .. } => format::to_f64(size.as_u64()) * 8.0 / interval.as_secs_f64(),
        _ => return None,
    };
    let bps = ip_bps * payload_share;
    Some(Bound::of_ends(bps, format!("its source, which offers {}", format::rate(bps))))
}

/// The bound of a replay: the payload of its packets sent between `from` and `to`, over `span_s`.
/// `None` without packets.
fn captured(capture: &Replay, traffic: &Traffic, (from, to): Span, span_s: f64) -> Option<Bound> {
    let until = traffic.stop.map_or(to, |stop| stop.min(to));
    let leaves = |after: Duration| traffic.start + after;
    let first = capture.packets.partition_point(|(after, _)| leaves(*after) < from);
    let within = capture.packets[first..].iter().take_while(|(after, _)| leaves(*after) < until);
    let bytes = within.map(|(_, packet)| u64::from(packet.ip_len.saturating_sub(packet.header_len.into()))).sum();
    let bps = format::to_f64(bytes) * 8.0 / span_s;
    (bytes > 0).then(|| Bound::of_ends(bps, format!("its capture, which offers {}", format::rate(bps))))
}

/// The bound of a window, or of the send buffer, per round trip.
fn by_window(network: &Network, shape: &Shape, tcp: &TcpShape) -> Bound {
    let rtt = shape.least_rtt_s(network);
    let (bytes, name) = tcp.most_held();
    let bps = format::to_f64(bytes) * 8.0 / rtt;
    let by = format!("{name} {} / empty round trip {}", format::window(bytes), format::seconds(rtt));
    Bound::of_ends(if bps.is_finite() { bps } else { f64::MAX }, by)
}

/// The packets that a flow's ACKs release next to the data on their path: the two-way form of the
/// AMP bound ([`lastmile_theory::amp`]), `M (1-g) Cr / Pack` packets, where data had the share g of
/// the link in `part`.
///
/// It applies only if data and ACKs share one FIFO and no ACK is lost on the path: a discipline
/// that separates them can give ACKs more, and after losses the remaining ACKs acknowledge more.
/// `None` without data on their path. The ACKs of other flows are not subtracted, because their
/// shares of the rest have no bound.
pub(crate) fn two_way(
    (network, outcome): (&Network, &Outcome),
    shape: &Shape,
    flow: &FlowOutcome,
    (part, before): (&Interval, Before),
) -> Option<Bound> {
    // ACKs of QUIC are not counted among the other packets of a link.
    let tcp = shape.tcp.filter(|tcp| !tcp.hidden)?;
    if !shape.ack_path.iter().all(|link| keeps_acks(network, outcome, *link, tcp)) {
        return None;
    }
    let covers = format::to_f64(shape.payload * tcp.most_per_ack?) * 8.0;
    let carried = Carried::new((network, outcome), shape, flow, before);
    let besides = (carried.without_acks() + format::to_f64(shape.payload)) * 8.0 / part.length_s();
    let over = |index: &usize| {
        let link = &network.links[*index];
        let wire = Constraint::wire(link).filter(|_| matches!(link.hop.queue, Spec::Fifo(_)))?;
        let acks = wire.packets_per_s(link, shape.ack_over(link, tcp)) * wire.part(link, (part.from, part.to));
        let seen = format::to_f64(part.ack_waits[*index].packets) / part.length_s();
        let busy = part.utilisation(*index, link)?;
        let (data, left) = next_to_data(acks, seen, busy);
        let bps = left * covers + besides;
        let by = format!("ACKs on link {}, next to data that takes {} of it", link.hop.name, format::percent(data));
        (data >= DATA_IN_THE_WAY).then(|| Bound::of_link(*index, bps, by))
    };
    shape.ack_path.iter().filter_map(over).min_by(|a, b| a.bps.total_cmp(&b.bps))
}

/// The share of data on a link with utilisation `busy` and `seen` ACKs a second, and the ACKs a
/// second that fit next to it, of `acks` on an idle link.
fn next_to_data(acks: f64, seen: f64, busy: f64) -> (f64, f64) {
    let data = (busy - seen / acks).clamp(0.0, 1.0);
    (data, acks * (1.0 - data))
}

/// The number of flows of traffic `index` that offered data between `from` and `to`.
pub(crate) fn active(network: &Network, outcome: &Outcome, index: usize, (from, to): (Instant, Instant)) -> usize {
    let traffic = &network.traffic[index];
    if traffic.start >= to || traffic.stop.is_some_and(|stop| stop <= from) {
        return 0;
    }
    let offers = |flow: &&FlowOutcome| flow.start < to && flow.end.is_none_or(|end| end > from);
    outcome.flows.iter().filter(|flow| flow.traffic == index).filter(offers).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lastmile_linklayer::preset;
    use lastmile_theory::Fraction;
    use lastmile_theory::amp::Line;
    use lastmile_units::{BitRate, ByteCount};

    /// Table 5 of Kalyanaraman et al. 1999: of 64 kbit/s, packets have 0.1, 0.5 and 0.9, and ACKs
    /// of 40 bytes the rest.
    #[test]
    fn acks_next_to_data_are_those_of_the_closed_form() {
        let line = Line {
            forward: BitRate::from_mbit_per_s(8),
            reverse: BitRate::from_kbit_per_s(64),
            forward_link: preset::IP.link,
            reverse_link: preset::IP.link,
            data: ByteCount::new(1_000),
            ack: ByteCount::new(40),
            packets_per_ack: Fraction::ONE,
        };
        for tenths in [1_u32, 5, 9] {
            let share = Fraction::new(tenths.into(), 10).expect("a share");
            let expected = line.two_way(Fraction::ONE, share).expect("a line").reverse_acks.as_f64();
            // A full link: 200 ACKs a second without data, and their part that data leaves.
            let seen = 200.0 * (1.0 - f64::from(tenths) / 10.0);
            let (data, left) = next_to_data(200.0, seen, 1.0);
            assert!((data - f64::from(tenths) / 10.0).abs() < 1e-12 && (left - expected).abs() < 1e-9, "{data} {left}");
        }
        // Idle time counts as capacity for ACKs.
        assert_eq!(next_to_data(200.0, 50.0, 0.5), (0.25, 150.0));
    }
}

//! A, M, P and F of a finished run: the terms of the AMP bound ([`lastmile_theory::amp`]) as
//! measured, flow by flow.
//!
//! A is the ACKs a second that reached the sender, M the data packets that it sent per ACK, P the
//! payload bits of a full packet, F the payload rate of the narrowest link forward. `A * M * P`
//! equals the sender's rate by construction, so the terms matter and not the product: an A that
//! fills its link with M near the segments per ACK shows a download limited by its ACKs, a large M
//! one whose ACKs were thinned on the path.

use std::sync::Arc;

use serde::Serialize;

use crate::format::to_f64;
use crate::schema::{Flow, Summary};

/// The utilisation from which a link counts as full during the flow's life.
const FULL: f64 = 0.95;

/// The limit of a flow, in the terms of the bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Limited {
    /// F: a link that its data crosses was full.
    Forward,
    /// A: a link that its ACKs cross was full.
    Acks,
    /// Another limit than ACKs and the link: a window, a round trip, losses or the source.
    Neither,
}

/// The terms of one TCP flow.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Measured {
    /// Name of the flow.
    pub name: String,
    /// The direction of the measured flow.
    pub direction: String,
    /// A: ACKs that reached the sender, a second of the flow's life.
    pub acks_per_s: f64,
    /// M: data packets sent per ACK received, retransmissions included.
    pub packets_per_ack: f64,
    /// P: payload bits of a full packet.
    pub packet_bits: u64,
    /// F: payload, bit/s, of the narrowest link forward; `null` without a transmission time.
    pub forward_bps: Option<f64>,
    /// `A * M * P`, bit/s.
    pub amp_bps: f64,
    /// The least of F, `A * M * P` and the run's own bound, bit/s. F is left out for a flow that exceeds it: then the
    /// largest packets on the link are of another flow, and use the wire worse.
    pub bound_bps: f64,
    /// The flow's goodput, payload, bit/s.
    pub goodput_bps: f64,
    /// The limit of the flow.
    pub limited_by: Limited,
    /// The full link, if any.
    pub link: Option<String>,
    /// The limit in the words of the run's own analysis.
    pub explanation: String,
}

/// The terms of every TCP flow of `summary` that received ACKs; other flows have no A. Flows over QUIC have no P: the
/// payload of their full packets shrinks as offsets and packet numbers grow.
#[must_use]
pub fn measure(summary: &Summary) -> Vec<Measured> {
    summary.flows.iter().filter_map(|flow| one(summary, flow)).collect()
}

fn one(summary: &Summary, flow: &Flow) -> Option<Measured> {
    if flow.is_over_quic() {
        return None;
    }
    let acks = flow.transport.acks_received.filter(|&acks| acks > 0)?;
    let end = end_of(flow, summary.run.duration_s);
    let life = Some(end - flow.start_s).filter(|&life| life > 0.0)?;
    let acks_per_s = to_f64(acks) / life;
    let packets_per_ack = to_f64(flow.transport.data_packets) / to_f64(acks);
    let packet_bits = flow.setup.payload_bytes * 8;
    let forward = flow.setup.data_path.iter().filter_map(|name| capacity(summary, name)).reduce(f64::min);
    let amp_bps = acks_per_s * packets_per_ack * to_f64(packet_bits);
    let full = |path: &[Arc<str>]| {
        let busy = |name: &Arc<str>| busy(summary, name, (flow.start_s, end));
        let busiest = path.iter().reduce(|a, b| if busy(b) > busy(a) { b } else { a })?;
        (busy(busiest) >= FULL).then(|| busiest.to_string())
    };
    let (limited_by, link) = match (full(&flow.setup.data_path), full(&flow.setup.ack_path)) {
        (Some(link), _) => (Limited::Forward, Some(link)),
        (None, Some(link)) => (Limited::Acks, Some(link)),
        (None, None) => (Limited::Neither, None),
    };
    let own_forward = forward.filter(|forward| *forward >= flow.goodput_bps);
    Some(Measured {
        name: flow.name.clone(),
        direction: flow.direction.to_string(),
        acks_per_s,
        packets_per_ack,
        packet_bits,
        forward_bps: forward,
        amp_bps,
        bound_bps: own_forward.into_iter().chain(flow.limits.bound_bps).fold(amp_bps, f64::min),
        goodput_bps: flow.goodput_bps,
        limited_by,
        link,
        explanation: flow.limits.explanation.clone(),
    })
}

/// The end of the flow's life. The goodput is the delivery over that life, which ends with the
/// flow's data, its `stop`, or the run.
fn end_of(flow: &Flow, duration_s: f64) -> f64 {
    flow.end_s.unwrap_or_else(|| flow.lived_s().map_or(duration_s, |lived_s| flow.start_s + lived_s))
}

/// Payload, bit/s, that the link called `name` carries in the largest of the packet sizes that
/// cross it. For flows of smaller packets this is an upper limit.
fn capacity(summary: &Summary, name: &str) -> Option<f64> {
    summary.links.iter().find(|link| link.name == name)?.payload_capacity_bps
}

/// The utilisation of the link called `name` from `from` to `to`: the mean over the phases between,
/// or over the run without any.
fn busy(summary: &Summary, name: &str, (from, to): (f64, f64)) -> f64 {
    let (mut time, mut sum) = (0.0, 0.0);
    for phase in summary.phases.iter().filter(|phase| phase.from_s < to && phase.to_s > from) {
        let length = phase.to_s.min(to) - phase.from_s.max(from);
        let link = phase.links.iter().find(|link| link.name == name);
        if let Some(share) = link.and_then(|link| link.utilisation) {
            time += length;
            sum += share * length;
        }
    }
    if time > 0.0 {
        return sum / time;
    }
    let whole = summary.links.iter().find(|link| link.name == name);
    whole.and_then(|link| link.utilisation).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{FlowSetup, Link, Phase, PhaseLink, RunFacts, Transport};

    /// Table 1 of Kalyanaraman et al. as a run: 200 ACKs of 40 bytes a second fill 64 kbit/s, with
    /// one packet of 1000 bytes per ACK.
    fn summary(up_busy: f64, down_busy: f64) -> Summary {
        let flow = Flow {
            name: "download".into(),
            direction: "down".into(),
            setup: FlowSetup {
                payload_bytes: 960,
                data_path: ["down".into()].into(),
                ack_path: ["up".into()].into(),
                ..FlowSetup::default()
            },
            start_s: 10.0,
            end_s: Some(20.0),
            transport: Transport { acks_received: Some(2_000), data_packets: 2_000, ..Transport::default() },
            goodput_bps: 1_536_000.0,
            ..Flow::default()
        };
        let link = |name: &str, capacity| Link {
            name: name.into(),
            payload_capacity_bps: Some(capacity),
            utilisation: Some(0.1),
            ..Link::default()
        };
        let phase_link =
            |name: &str, busy| PhaseLink { name: name.into(), utilisation: Some(busy), ..PhaseLink::default() };
        let phase = |from_s, to_s, up, down| Phase {
            from_s,
            to_s,
            links: vec![phase_link("down", down), phase_link("up", up)],
            ..Phase::default()
        };
        Summary {
            run: RunFacts { duration_s: 30.0, ..RunFacts::default() },
            flows: vec![flow, Flow { name: "voice".into(), ..Flow::default() }],
            links: vec![link("down", 7_680_000.0), link("up", 61_440.0)],
            phases: vec![phase(0.0, 10.0, 0.0, 0.0), phase(10.0, 30.0, up_busy, down_busy)],
            ..Summary::default()
        }
    }

    #[test]
    fn the_terms_are_those_of_the_flows_life() {
        let found = measure(&summary(1.0, 0.2));
        assert_eq!(found.len(), 1, "voice has no ACKs");
        let found = &found[0];
        assert_eq!((found.acks_per_s, found.packets_per_ack, found.packet_bits), (200.0, 1.0, 7_680));
        assert_eq!(found.forward_bps, Some(7_680_000.0));
        assert_eq!((found.amp_bps, found.bound_bps), (1_536_000.0, 1_536_000.0));
        assert_eq!((found.limited_by, found.link.as_deref()), (Limited::Acks, Some("up")));
    }

    /// An upload that stops after 60 of 180 s has its A and its goodput over these 60 s.
    #[test]
    fn the_life_of_a_flow_that_was_stopped_ends_there() {
        let mut summary = summary(1.0, 0.2);
        let flow = &mut summary.flows[0];
        (flow.end_s, flow.bytes_delivered, flow.goodput_bps) = (None, 1_920_000, 1_536_000.0);
        let found = &measure(&summary)[0];
        assert_eq!((found.acks_per_s, found.amp_bps), (200.0, 1_536_000.0));
    }

    /// More packets a second than the link carries were sent: F limits. A flow above F has packets of another size.
    #[test]
    fn the_bound_is_the_least_of_its_terms() {
        let mut summary = summary(1.0, 1.0);
        summary.flows[0].transport.data_packets = 20_000;
        summary.flows[0].limits.bound_bps = Some(7_700_000.0);
        let bound = |summary: &Summary| measure(summary)[0].bound_bps;
        assert!((bound(&summary) - 7_680_000.0).abs() < 1e-6, "{}", bound(&summary));
        summary.flows[0].goodput_bps = 7_690_000.0;
        assert!((bound(&summary) - 7_700_000.0).abs() < 1e-6, "{}", bound(&summary));
    }

    #[test]
    fn what_limits_is_the_full_link_or_neither() {
        assert_eq!(measure(&summary(0.5, 0.96))[0].limited_by, Limited::Forward);
        assert_eq!(measure(&summary(0.5, 0.5))[0].limited_by, Limited::Neither);
        // Both links are full: the data's link takes precedence.
        assert_eq!(measure(&summary(1.0, 1.0))[0].limited_by, Limited::Forward);
    }

    #[test]
    fn without_phases_the_whole_run_counts() {
        let mut summary = summary(1.0, 1.0);
        summary.phases.clear();
        assert_eq!(measure(&summary)[0].limited_by, Limited::Neither, "10 % busy");
        summary.links[1].utilisation = Some(0.99);
        assert_eq!(measure(&summary)[0].limited_by, Limited::Acks);
    }
}

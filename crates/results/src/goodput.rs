//! Goodput of several flows together.

use crate::schema::{Flow, FlowKind, Phase, Summary};

/// A share of the common time that differs from all of it by this is rounded.
const ROUNDED: f64 = 1e-9;

/// The bytes of all `flows` over the time in which at least one of them lived. For flows that live at the same time,
/// this is the sum of their goodputs; for flows one after another, their mean rate. Flows without a delivered byte
/// count for neither.
pub(crate) fn together<'a>(flows: impl Iterator<Item = &'a Flow>) -> f64 {
    let mut lives: Vec<Life> = flows.filter_map(Life::of).collect();
    lives.sort_by(|a, b| a.from_s.total_cmp(&b.from_s));
    let (mut lived_s, mut until_s) = (0.0, f64::NEG_INFINITY);
    for life in &lives {
        let to_s = life.from_s + life.lived_s;
        lived_s += (to_s - life.from_s.max(until_s)).max(0.0);
        until_s = until_s.max(to_s);
    }
    // The sum of no floats is -0.
    lives.iter().fold(0.0, |sum, life| sum + life.goodput_bps * life.share_of(lived_s))
}

/// The time over which the goodput of a flow is taken.
struct Life {
    from_s: f64,
    lived_s: f64,
    goodput_bps: f64,
}

impl Life {
    /// `None` without a delivered byte.
    fn of(flow: &Flow) -> Option<Self> {
        Some(Self { from_s: flow.start_s, lived_s: flow.lived_s()?, goodput_bps: flow.goodput_bps })
    }

    fn share_of(&self, all_s: f64) -> f64 {
        let share = self.lived_s / all_s;
        if (share - 1.0).abs() < ROUNDED { 1.0 } else { share }
    }
}

/// Whether the goodput of a direction counts the flow: over TCP or QUIC, and no video, which takes what it needs.
pub(crate) fn is_counted(flow: &Flow, direction: &str) -> bool {
    *flow.direction == *direction && flow.setup.tcp.is_some() && flow.setup.kind != FlowKind::Video
}

/// Goodput of the counted flows of a direction together, in a phase or the whole run.
pub(crate) fn of_direction(summary: &Summary, phase: Option<&Phase>, direction: &str) -> f64 {
    of(summary, phase, |flow| is_counted(flow, direction))
}

/// Goodput of these flows together, in a phase or the whole run.
pub(crate) fn of(summary: &Summary, phase: Option<&Phase>, is_meant: impl Fn(&Flow) -> bool) -> f64 {
    let flows = summary.flows.iter().filter(|flow| is_meant(flow));
    let Some(phase) = phase else { return together(flows) };
    let in_phase = |flow: &Flow| phase.flows.iter().find(|other| other.name == flow.name);
    // The sum of no floats is -0.
    flows.filter_map(in_phase).fold(0.0, |sum, flow| sum + flow.goodput_bps)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::to_f64;

    fn flow((start_s, end_s): (f64, f64), bytes_delivered: u64) -> Flow {
        let goodput_bps = to_f64(bytes_delivered) * 8.0 / (end_s - start_s);
        Flow { start_s, bytes_delivered, goodput_bps, ..Flow::default() }
    }

    /// 1 MB in 0 to 8 s is 1 Mbit/s: twice at the same time 2 Mbit/s, one after the other 1 Mbit/s, half overlapping
    /// 2 MB in 12 s, and with a gap of 92 s between no less.
    #[test]
    fn rates_of_flows_add_up_only_while_they_live_together() {
        let of = |lives: &[(f64, f64)]| {
            let flows: Vec<Flow> = lives.iter().map(|life| flow(*life, 1_000_000)).collect();
            Some(together(flows.iter()).round())
        };
        assert_eq!(of(&[(0.0, 8.0), (0.0, 8.0)]), Some(2e6));
        assert_eq!(of(&[(8.0, 16.0), (0.0, 8.0)]), Some(1e6));
        assert_eq!(of(&[(0.0, 8.0), (4.0, 12.0)]), Some(1_333_333.0));
        assert_eq!(of(&[(0.0, 8.0), (100.0, 108.0)]), Some(1e6));
        // One within the other.
        assert_eq!(of(&[(0.0, 16.0), (4.0, 8.0)]), Some(1e6));
        assert_eq!(of(&[(3.0, 11.0)]), Some(1e6));
    }

    #[test]
    fn a_flow_that_delivers_nothing_does_not_count() {
        let starved = Flow { start_s: 1.0, ..Flow::default() };
        assert_eq!(Some(together([flow((0.0, 8.0), 1_000_000), starved.clone()].iter())), Some(1e6));
        assert_eq!(Some(together([starved].iter())), Some(0.0));
        assert!(together(std::iter::empty()).is_sign_positive());
    }
}

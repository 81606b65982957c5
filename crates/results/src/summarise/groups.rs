//! Flows by kind and direction.

use std::collections::BTreeMap;

use lastmile_analysis::quantiles::nearest_rank;

use crate::format::to_f64;
use crate::goodput;
use crate::schema::{Flow, FlowKind, Group, Spread};

/// The most names that a group lists.
const WORST: usize = 5;

/// The groups of `flows`, by direction and kind.
pub(super) fn groups(flows: &[Flow]) -> Vec<Group> {
    let mut by_kind: BTreeMap<(&str, FlowKind), Vec<&Flow>> = BTreeMap::new();
    for flow in flows {
        by_kind.entry((&flow.direction, flow.setup.kind)).or_default().push(flow);
    }
    by_kind.into_iter().map(|(of, flows)| group(of, flows)).collect()
}

fn group((direction, kind): (&str, FlowKind), mut flows: Vec<&Flow>) -> Group {
    flows.sort_by(|a, b| a.goodput_bps.total_cmp(&b.goodput_bps));
    let goodputs: Vec<f64> = flows.iter().map(|flow| flow.goodput_bps).collect();
    Group {
        direction: direction.to_owned(),
        kind,
        flows: flows.len() as u64,
        goodput_bps: goodput::together(flows.iter().copied()),
        of_a_flow_bps: spread(&goodputs),
        retransmissions: flows.iter().map(|flow| flow.transport.retransmissions).sum(),
        worst: flows.iter().take(WORST).map(|flow| flow.name.clone()).collect(),
    }
}

/// The distribution of values in ascending order, at least one.
fn spread(ascending: &[f64]) -> Spread {
    let rank = |percent: usize| nearest_rank(ascending, percent, 100).unwrap_or_default();
    Spread {
        min: rank(0),
        p5: rank(5),
        p50: rank(50),
        p95: rank(95),
        max: rank(100),
        mean: ascending.iter().sum::<f64>() / to_f64(ascending.len() as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{FlowSetup, Transport};

    /// Nearest ranks of 20 values.
    #[test]
    fn a_spread_is_of_all_values() {
        let values: Vec<f64> = (1..=20).map(f64::from).collect();
        let expected = Spread { min: 1.0, p5: 1.0, p50: 10.0, p95: 19.0, max: 20.0, mean: 10.5 };
        assert_eq!(spread(&values), expected);
        assert_eq!(spread(&[7.0]), Spread { min: 7.0, p5: 7.0, p50: 7.0, p95: 7.0, max: 7.0, mean: 7.0 });
    }

    #[test]
    fn each_kind_and_direction_is_a_group_with_its_worst() {
        let flow = |name: &str, direction: &str, goodput_bps: f64, retransmissions| Flow {
            name: name.into(),
            direction: direction.into(),
            setup: FlowSetup::default(),
            bytes_delivered: goodput_bps as u64,
            goodput_bps,
            transport: Transport { retransmissions, ..Transport::default() },
            ..Flow::default()
        };
        let mut flows: Vec<Flow> = (0..9).map(|n| flow(&format!("d{n}"), "down", f64::from(9 - n), Some(2))).collect();
        flows.push(flow("u", "up", 3.0, None));
        let groups = groups(&flows);
        let [down, up] = &groups[..] else { panic!("{groups:?}") };
        assert_eq!((down.flows, down.goodput_bps, down.retransmissions), (9, 45.0, Some(18)));
        assert_eq!(down.worst, ["d8", "d7", "d6", "d5", "d4"]);
        assert_eq!((up.flows, up.retransmissions, up.worst.len()), (1, None, 1));
    }
}

//! The run's own counters, compared with those of a capture.

use lastmile_results::Summary;
use lastmile_results::schema::Flow;
use serde::Serialize;

use super::connection::Row;

/// Counters of a run and of the capture, summed over all TCP flows.
#[derive(Serialize)]
pub(super) struct RunCounters {
    pub(super) scenario: String,
    pub(super) counters: Vec<Counter>,
}

/// A counter of the run and of the capture.
#[derive(Serialize)]
pub(super) struct Counter {
    pub(super) direction: String,
    pub(super) name: &'static str,
    /// `null` if the run does not count it, for example a kernel without a counter of fast
    /// retransmits.
    pub(super) run: Option<u64>,
    /// `null` without a capture.
    pub(super) capture: Option<u64>,
}

impl RunCounters {
    pub(super) fn new(summary: &Summary, rows: &[Row]) -> Self {
        let mut counters = Vec::new();
        let mut directions: Vec<&str> = Vec::new();
        let over_tcp = || summary.flows.iter().filter(|flow| flow.transport.timeouts.is_some() && !flow.is_over_quic());
        for flow in over_tcp() {
            if !directions.contains(&&*flow.direction) {
                directions.push(&flow.direction);
            }
        }
        for direction in directions {
            let flows = || over_tcp().filter(|flow| *flow.direction == *direction);
            let own = |of: fn(&Row) -> u64| {
                let rows = || rows.iter().filter(|row| row.direction == direction);
                (rows().count() > 0).then(|| rows().map(of).sum())
            };
            let mut counter = |name, run, capture| {
                counters.push(Counter { direction: direction.to_owned(), name, run, capture });
            };
            let total = |of: fn(&Flow) -> Option<u64>| flows().filter_map(of).reduce(|sum, count| sum + count);
            counter("timeouts", total(|flow| flow.transport.timeouts), own(|row| row.repeats.timeouts));
            counter(
                "fast retransmits",
                total(|flow| flow.transport.fast_retransmits),
                own(|row| row.repeats.fast_retransmits),
            );
            counter(
                "retransmissions",
                total(|flow| flow.transport.retransmissions),
                own(|row| row.repeats.retransmissions),
            );
        }
        Self { scenario: summary.run.scenario.clone(), counters }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lastmile_results::schema::{FlowSetup, Transport};

    /// A capture shows no retransmissions of QUIC.
    #[test]
    fn packets_of_quic_are_not_compared() {
        let flow = |over: &str, retransmissions| {
            let transport =
                Transport { timeouts: Some(0), retransmissions: Some(retransmissions), ..Transport::default() };
            let setup = FlowSetup { tcp: Some(over.into()), ..FlowSetup::default() };
            Flow { direction: "down".into(), setup, transport, ..Flow::default() }
        };
        let summary = Summary { flows: vec![flow("quic-cubic", 12), flow("cubic", 28)], ..Summary::default() };
        let counters = RunCounters::new(&summary, &[]).counters;
        let retransmissions = counters.iter().find(|counter| counter.name == "retransmissions").expect("a counter");
        assert_eq!(retransmissions.run, Some(28));
    }
}

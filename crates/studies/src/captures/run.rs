//! The run's own counters, compared with those of a capture.

use lastmile_results::Summary;
use lastmile_results::schema::{Flow, FlowKind};
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

/// Both directions together, where those of the run and of the capture are not the same.
const BOTH: &str = "both";

impl RunCounters {
    /// The directions of a run are those of the scenario, and the directions of a capture those of the side that
    /// opened. They are the same unless the far side opens connections, as in a swarm: then both are summed.
    pub(super) fn new(summary: &Summary, rows: &[Row]) -> Self {
        let mut counters = Vec::new();
        let flows: Vec<&Flow> =
            summary.flows.iter().filter(|flow| flow.transport.timeouts.is_some() && !flow.is_over_quic()).collect();
        let rows = of_data(rows);
        let mut directions: Vec<&str> = Vec::new();
        for flow in &flows {
            if !directions.contains(&&*flow.direction) {
                directions.push(&flow.direction);
            }
        }
        let is_opened_by_both = flows.iter().any(|flow| flow.setup.kind == FlowKind::Swarm)
            || rows.iter().any(|row| !directions.contains(&row.direction));
        if is_opened_by_both && !directions.is_empty() && !rows.is_empty() {
            directions = vec![BOTH];
        }
        for direction in directions {
            let is_in = |own: &str| direction == BOTH || own == direction;
            let flows = || flows.iter().filter(|flow| is_in(&flow.direction));
            let own = |of: fn(&Row) -> Option<u64>| {
                let rows = || rows.iter().filter(|row| is_in(row.direction));
                if rows().count() > 0 { rows().map(|row| of(row)).sum() } else { None }
            };
            let mut counter = |name, run, capture| {
                counters.push(Counter { direction: direction.to_owned(), name, run, capture });
            };
            let total =
                |of: fn(&Flow) -> Option<u64>| flows().filter_map(|flow| of(flow)).reduce(|sum, count| sum + count);
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

/// Of each connection the direction with more payload: the run counts its transfers, without the requests for them.
fn of_data(rows: &[Row]) -> Vec<&Row> {
    let is_more = |row: &&Row| {
        let other = rows.iter().find(|other| other.connection == row.connection && other.direction != row.direction);
        other.is_none_or(|other| row.volume.bytes_new >= other.volume.bytes_new)
    };
    rows.iter().filter(is_more).collect()
}

#[cfg(test)]
mod tests {
    use lastmile_analysis::{Connection, Direction, Handshake, Opener, Repeats, Volume};
    use lastmile_packet::{FlowAddresses, FlowId};
    use lastmile_results::schema::{FlowSetup, Transport};
    use lastmile_units::Instant;

    use super::*;

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

    /// Two rows of a connection, with payload and retransmissions of each direction.
    fn rows(number: usize, [up, down]: [(u64, u64); 2]) -> [Row; 2] {
        let direction = |(bytes_new, fast)| Direction {
            volume: Volume { packets: 1, bytes_new, ..Volume::default() },
            repeats: Repeats { fast, ..Repeats::default() },
            ..Direction::default()
        };
        let connection = Connection {
            addresses: FlowAddresses::of_simulated(FlowId::new(0)),
            opener: Opener::Seen,
            from: Instant::ZERO,
            to: Instant::ZERO,
            reset: false,
            closed: false,
            handshake: Handshake::default(),
            up: direction(up),
            down: direction(down),
        };
        [Row::new(number, &connection, "up", &connection.up), Row::new(number, &connection, "down", &connection.down)]
    }

    fn flow(kind: FlowKind, direction: &str, retransmissions: u64) -> Flow {
        let transport = Transport { timeouts: Some(0), retransmissions: Some(retransmissions), ..Transport::default() };
        let setup = FlowSetup { kind, tcp: Some("cubic".into()), ..FlowSetup::default() };
        Flow { direction: direction.into(), setup, transport, ..Flow::default() }
    }

    fn retransmissions(flows: Vec<Flow>, rows: &[Row]) -> Vec<(String, Option<u64>, Option<u64>)> {
        let counters = RunCounters::new(&Summary { flows, ..Summary::default() }, rows).counters;
        let own = counters.into_iter().filter(|counter| counter.name == "retransmissions");
        own.map(|counter| (counter.direction, counter.run, counter.capture)).collect()
    }

    /// The requests of a film have 5 retransmissions in the capture, which the run does not count.
    #[test]
    fn requests_are_not_compared() {
        let rows: Vec<Row> =
            [rows(1, [(3_500, 5), (1_000_000, 16)]), rows(2, [(500_000, 70), (0, 0)])].into_iter().flatten().collect();
        let compared = retransmissions(vec![flow(FlowKind::Video, "down", 16), flow(FlowKind::Bulk, "up", 70)], &rows);
        assert_eq!(compared, [("down".into(), Some(16), Some(16)), ("up".into(), Some(70), Some(70))]);
    }

    /// Both ends of a swarm open connections, and each sends on its own: the capture has one direction.
    #[test]
    fn directions_that_differ_are_compared_together() {
        for kind in [FlowKind::Swarm, FlowKind::Bulk] {
            let rows: Vec<Row> = [rows(1, [(800_000, 1_130), (60, 0)]), rows(2, [(300_000, 393), (60, 0)])]
                .into_iter()
                .flatten()
                .collect();
            let flows = match kind {
                FlowKind::Swarm => vec![flow(kind, "down", 1_134), flow(kind, "up", 398)],
                _ => vec![flow(kind, "down", 1_532)],
            };
            assert_eq!(retransmissions(flows, &rows), [("both".into(), Some(1_532), Some(1_523))], "{kind:?}");
        }
    }
}

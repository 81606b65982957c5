//! `--with`: a second capture of the same packets, at another position of their path.

use lastmile_analysis::Connection;
use lastmile_analysis::joined::{Joined, OneWay};
use lastmile_packet::FlowAddresses;
use lastmile_results::format::{grouped, or_dash, seconds};
use lastmile_text::shown;
use lastmile_text::table::{Kind, Table};
use lastmile_units::Duration;
use serde::Serialize;

/// Two captures of the same packets.
#[derive(Serialize)]
pub(super) struct BothEnds {
    /// The second capture.
    pub(super) with: String,
    /// Seconds by which the clock of the second capture is ahead at the first packet; `null` if only
    /// one direction is in both captures, so that delays are relative to the fastest.
    pub(super) clock_ahead_s: Option<f64>,
    /// Half the round trip of the fastest packets: the largest error of that offset and of all delays.
    pub(super) clock_error_s: Option<f64>,
    /// Parts in a million by which the clock of the second capture gains; zero where the packets do not tell.
    pub(super) clock_drift_ppm: Option<f64>,
    pub(super) directions: Vec<Way>,
}

/// One direction between the captures.
#[derive(Serialize)]
pub(super) struct Way {
    /// `there`: from the first capture to the second; `back`.
    pub(super) direction: &'static str,
    pub(super) packets_at_both: u64,
    pub(super) data_packets_at_both: u64,
    pub(super) lost_between: u64,
    pub(super) data_lost_between: u64,
    /// Retransmissions that passed both captures less those that repair a loss before the farther one or
    /// were spurious: lost after the farther capture, or their ACKs.
    pub(super) data_lost_after: u64,
    pub(super) missed_by_the_first: u64,
    pub(super) delay_min_s: Option<f64>,
    pub(super) delay_median_s: Option<f64>,
    pub(super) delay_p95_s: Option<f64>,
    pub(super) delay_p99_s: Option<f64>,
    pub(super) delay_max_s: Option<f64>,
}

impl BothEnds {
    /// `first` and `second` are the connections of the captures.
    pub(super) fn new(with: &str, joined: &Joined, first: &[Connection], second: &[Connection]) -> Self {
        let is_there = |addresses: FlowAddresses| joined.is_there(addresses);
        Self {
            with: with.to_owned(),
            clock_ahead_s: joined.clock.map(|clock| clock.ahead_s),
            clock_error_s: joined.clock.map(|clock| clock.error_s),
            clock_drift_ppm: joined.clock.map(|clock| clock.drift * 1e6),
            directions: vec![
                Way::new("there", &joined.there, lost_after(second, |addresses| is_there(addresses) == Some(true))),
                Way::new("back", &joined.back, lost_after(first, |addresses| is_there(addresses) == Some(false))),
            ],
        }
    }
}

/// Retransmissions after losses beyond a capture, in the directions that `counts` names.
fn lost_after(connections: &[Connection], counts: impl Fn(FlowAddresses) -> bool) -> u64 {
    let both = connections.iter().flat_map(|one| [(one.addresses, &one.up), (one.addresses.reversed(), &one.down)]);
    both.filter(|(addresses, _)| counts(*addresses))
        .map(|(_, way)| way.repeats.packets().saturating_sub(way.repeats.lost_before_capture + way.repeats.spurious))
        .sum()
}

impl Way {
    fn new(direction: &'static str, way: &OneWay, data_lost_after: u64) -> Self {
        let delay = |index: usize| way.delays.map(|delays| Duration::as_secs_f64(delays[index]));
        Self {
            direction,
            packets_at_both: way.both,
            data_packets_at_both: way.both_data,
            lost_between: way.lost_between,
            data_lost_between: way.lost_data,
            data_lost_after,
            missed_by_the_first: way.missed,
            delay_min_s: delay(0),
            delay_median_s: delay(1),
            delay_p95_s: delay(2),
            delay_p99_s: delay(3),
            delay_max_s: delay(4),
        }
    }
}

/// The output for people.
pub(super) fn text(both: &BothEnds, first: &str) -> String {
    use Kind::{Name, Number};
    let names = (shown::line(first), shown::line(&both.with));
    let clock = match (both.clock_ahead_s, both.clock_error_s, both.clock_drift_ppm) {
        (Some(ahead), Some(error), Some(drift)) => format!(
            "The clock of {} is {} {}{}. The fastest packets are taken to need as long in both directions: delays \
             are wrong by at most {}.",
            names.1,
            seconds(ahead.abs()),
            if ahead < 0.0 { "behind" } else { "ahead" },
            if drift == 0.0 { String::new() } else { format!(", and gains {drift:+.1} ppm") },
            seconds(error)
        ),
        _ => "Only one direction is in both captures: delays are relative to the fastest.".to_owned(),
    };
    let mut table = Table::new([
        ("direction", Name),
        ("at both", Number),
        ("lost between", Number),
        ("data lost", Number),
        ("lost after", Number),
        ("delay min", Number),
        ("median", Number),
        ("p95", Number),
        ("p99", Number),
        ("max", Number),
    ]);
    for way in &both.directions {
        table.row([
            way.direction.to_owned(),
            grouped(way.packets_at_both),
            grouped(way.lost_between),
            grouped(way.data_lost_between),
            grouped(way.data_lost_after),
            or_dash(way.delay_min_s, seconds),
            or_dash(way.delay_median_s, seconds),
            or_dash(way.delay_p95_s, seconds),
            or_dash(way.delay_p99_s, seconds),
            or_dash(way.delay_max_s, seconds),
        ]);
    }
    format!("\nFrom {} (first) to {} (second), and back\n{clock}\n{}", names.0, names.1, table.render())
}

//! `--with`: a second capture of the same packets, at another position of their path.

use std::fmt::Write as _;

use lastmile_analysis::Connection;
use lastmile_analysis::joined::{ClockStep, Joined, MOST_DRIFT, NoClock, OneWay};
use lastmile_packet::FlowAddresses;
use lastmile_results::format::{bytes, grouped, or_dash, seconds};
use lastmile_text::escape;
use lastmile_text::table::{Kind, Table, wrap};
use lastmile_units::Duration;
use serde::Serialize;

/// Two captures of the same packets.
#[derive(Serialize)]
pub(super) struct BothEnds {
    /// The second capture.
    pub(super) with: String,
    /// False if the second capture could not be read to its end, and why.
    pub(super) with_complete: bool,
    pub(super) with_broken: Option<String>,
    /// Why the clocks are not compared: then delays are relative to the fastest where one direction is in both
    /// captures, and else `null`.
    pub(super) clocks_not_compared: Option<String>,
    /// Seconds by which the clock of the second capture is ahead at the first packet; `null` if they are not compared.
    pub(super) clock_ahead_s: Option<f64>,
    /// Half the round trip of the fastest packets: the largest error of that offset, and of all delays as far as the
    /// drift is right.
    pub(super) clock_error_s: Option<f64>,
    /// Parts in a million by which the clock of the second capture gains; zero where the packets do not show it.
    pub(super) clock_drift_ppm: Option<f64>,
    /// Parts in a million by which that drift may be wrong; `null` where the packets do not show it.
    pub(super) clock_drift_error_ppm: Option<f64>,
    /// The times at which a clock was set by less than a second.
    pub(super) clock_steps: Vec<Step>,
    /// How often the clocks of both captures were set back by more.
    pub(super) clock_steps_back: u64,
    /// The length of the longer capture.
    #[serde(skip)]
    pub(super) span_s: f64,
    pub(super) directions: Vec<Way>,
    /// Warnings about the second capture.
    #[serde(skip)]
    pub(super) warnings: Vec<String>,
}

/// A time at which a clock was set.
#[derive(Serialize)]
pub(super) struct Step {
    /// Seconds since the first packet of both captures.
    pub(super) at_s: f64,
    /// Seconds by which the clock of the second capture gained.
    pub(super) by_s: f64,
}

impl Step {
    fn new(step: &ClockStep) -> Self {
        Self { at_s: step.at_s, by_s: step.by_s }
    }
}

/// The reason, in words.
fn not_compared(why: NoClock) -> String {
    match why {
        NoClock::OneDirection => "only one direction is in both captures".to_owned(),
        NoClock::Drift(drift) => {
            format!(
                "they seem to drift by {:+.0} ppm, and clocks drift by {:.0} at most",
                drift * 1e6,
                MOST_DRIFT * 1e6
            )
        }
        NoClock::Steps => "they were set many times, or are not of the same packets".to_owned(),
    }
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
    /// Payload of the packets that were lost between.
    pub(super) data_bytes_lost_between: u64,
    /// Retransmissions that passed both captures less those that repair a loss before the farther one or
    /// were spurious: lost after the farther capture, or their ACKs.
    pub(super) data_lost_after: u64,
    pub(super) missed_by_the_first: u64,
    /// Packets of the capture that this direction passes first which are several at the other, and the reverse.
    pub(super) segments_split: u64,
    pub(super) segments_merged: u64,
    pub(super) delay_min_s: Option<f64>,
    pub(super) delay_median_s: Option<f64>,
    pub(super) delay_p95_s: Option<f64>,
    pub(super) delay_p99_s: Option<f64>,
    pub(super) delay_max_s: Option<f64>,
}

/// A capture of the two.
pub(super) struct Side<'a> {
    pub(super) file: &'a str,
    pub(super) connections: &'a [Connection],
    /// Why it could not be read to its end.
    pub(super) broken: Option<&'a str>,
    pub(super) warnings: Vec<String>,
    pub(super) clock_steps_back: u64,
    pub(super) duration_s: f64,
}

impl BothEnds {
    pub(super) fn new(joined: &Joined, first: &Side<'_>, second: Side<'_>) -> Self {
        let is_there = |addresses: FlowAddresses| joined.is_there(addresses);
        let after_second = lost_after(second.connections, |addresses| is_there(addresses) == Some(true));
        let after_first = lost_after(first.connections, |addresses| is_there(addresses) == Some(false));
        let clock = joined.clock.ok();
        Self {
            with: second.file.to_owned(),
            with_complete: second.broken.is_none(),
            with_broken: second.broken.map(str::to_owned),
            clocks_not_compared: joined.clock.err().map(not_compared),
            clock_ahead_s: clock.map(|clock| clock.ahead_s),
            clock_error_s: clock.map(|clock| clock.error_s),
            clock_drift_ppm: clock.map(|clock| clock.drift * 1e6),
            clock_drift_error_ppm: clock.and_then(|clock| clock.drift_error).map(|error| error * 1e6),
            clock_steps: joined.steps.iter().map(Step::new).collect(),
            clock_steps_back: first.clock_steps_back + second.clock_steps_back,
            span_s: first.duration_s.max(second.duration_s),
            directions: vec![
                Way::new("there", &joined.there, after_second),
                Way::new("back", &joined.back, after_first),
            ],
            warnings: second.warnings,
        }
    }
}

/// For a second capture that was not read to its end: its name, and the cause.
pub(super) fn broken(both: &BothEnds) -> Option<String> {
    let why = both.with_broken.as_ref()?;
    Some(format!(
        "{} was NOT READ TO ITS END: only its packets up to there are compared; {why}",
        escape::line(&both.with)
    ))
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
            data_bytes_lost_between: way.lost_octets,
            data_lost_after,
            missed_by_the_first: way.missed,
            segments_split: way.split,
            segments_merged: way.merged,
            delay_min_s: delay(0),
            delay_median_s: delay(1),
            delay_p95_s: delay(2),
            delay_p99_s: delay(3),
            delay_max_s: delay(4),
        }
    }

    /// Segments that the captures show in packets of different lengths, in words.
    fn offload(&self) -> Option<String> {
        let counted = |count: u64| {
            if count == 1 { "1 segment was".to_owned() } else { format!("{} segments were", grouped(count)) }
        };
        let split = format!("{} split on the way: segmentation offload (TSO, GSO)", counted(self.segments_split));
        let merged =
            format!("{} made of several on the way: receive offload (GRO, LRO)", counted(self.segments_merged));
        let told = [(self.segments_split, split), (self.segments_merged, merged)];
        let told: Vec<String> = told.into_iter().filter(|(count, _)| *count > 0).map(|(_, words)| words).collect();
        (!told.is_empty()).then(|| format!("{}: {}.", self.direction, told.join("; ")))
    }
}

/// The output for people, in lines of `width`.
pub(super) fn text(both: &BothEnds, first: &str, width: u16) -> String {
    use Kind::{Name, Number};
    let mut text = String::new();
    let names = (escape::line(first), escape::line(&both.with));
    wrap(&mut text, &format!("From {} (first) to {} (second), and back", names.0, names.1), 0, width);
    wrap(&mut text, &clocks(both), 0, width);
    let mut table = Table::new([
        ("direction", Name),
        ("at both", Number),
        ("lost between", Number),
        ("data lost", Number),
        ("bytes lost", Number),
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
            bytes(way.data_bytes_lost_between),
            grouped(way.data_lost_after),
            or_dash(way.delay_min_s, seconds),
            or_dash(way.delay_median_s, seconds),
            or_dash(way.delay_p95_s, seconds),
            or_dash(way.delay_p99_s, seconds),
            or_dash(way.delay_max_s, seconds),
        ]);
    }
    text.push_str(&table.render_within(width));
    for words in both.directions.iter().filter_map(Way::offload) {
        wrap(&mut text, &words, 0, width);
    }
    format!("\n{text}")
}

/// A sentence on the clocks of the captures, and the accuracy of delays that follows from them.
fn clocks(both: &BothEnds) -> String {
    let mut text = "Clocks: ".to_owned();
    match (both.clock_ahead_s, both.clock_error_s, both.clock_drift_ppm) {
        (Some(ahead), Some(error), Some(drift)) => {
            let side = if ahead < 0.0 { "behind" } else { "ahead" };
            let _ = write!(text, "that of {} is {} {side}", escape::line(&both.with), seconds(ahead.abs()));
            if drift != 0.0 {
                let _ = write!(text, ", and gains {drift:+.1} ppm");
            }
            let _ = write!(
                text,
                ". The fastest packets are taken to need as long in both directions: delays are wrong by at most {}",
                seconds(error)
            );
        }
        _ => {
            let why = both.clocks_not_compared.as_deref().unwrap_or_default();
            if both.directions.iter().all(|way| way.delay_min_s.is_none()) {
                let _ = write!(text, "{why}, so no delays are reported.");
                return text;
            }
            let _ = write!(text, "{why}, so that delays are relative to the fastest");
        }
    }
    match both.clock_drift_error_ppm {
        Some(ppm) => {
            let late = seconds(ppm / 1e6 * both.span_s);
            let _ = write!(text, ", and by up to {late} more, since a drift is known within {ppm:.1} ppm.");
        }
        None if both.clock_drift_ppm.is_some_and(|drift| drift != 0.0) => text.push_str(
            ", if the clocks drift so: at one pace packets would arrive before they are sent. The error of the drift \
             is not known.",
        ),
        None => text.push_str(", if the clocks run at one pace: the packets do not show their drift."),
    }
    for step in &both.clock_steps {
        let at = seconds(step.at_s);
        let change = if step.by_s < 0.0 { "lost" } else { "gained" };
        let by = seconds(step.by_s.abs());
        let _ = write!(text, " At {at} a clock was set: that of the second {change} {by}. Delays follow the step.");
    }
    if both.clock_steps_back > 0 {
        let times = if both.clock_steps_back == 1 { "once" } else { "more than once" };
        let _ = write!(text, " A clock was set back {times}: delays are wrong by that step.");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(clock: Option<(f64, f64, f64)>, error_ppm: Option<f64>) -> BothEnds {
        let way = |direction| Way::new(direction, &OneWay::default(), 0);
        BothEnds {
            with: "b.pcap".to_owned(),
            with_complete: true,
            with_broken: None,
            clocks_not_compared: clock.is_none().then(|| not_compared(NoClock::OneDirection)),
            clock_ahead_s: clock.map(|clock| clock.0),
            clock_error_s: clock.map(|clock| clock.1),
            clock_drift_ppm: clock.map(|clock| clock.2),
            clock_drift_error_ppm: error_ppm,
            clock_steps: Vec::new(),
            clock_steps_back: 0,
            span_s: 20.0,
            directions: vec![way("there"), way("back")],
            warnings: Vec::new(),
        }
    }

    /// 2 ppm of 20 s are 40 microseconds.
    #[test]
    fn what_is_said_of_delays_holds_with_the_drift_that_is_not_known() {
        let same = "Clocks: that of b.pcap is 4.5 µs behind. The fastest packets are taken to need as long in both \
                    directions: delays are wrong by at most 18.5 µs";
        assert_eq!(
            clocks(&both(Some((-4.5e-6, 18.5e-6, 0.0)), None)),
            format!("{same}, if the clocks run at one pace: the packets do not show their drift.")
        );
        let certain = clocks(&both(Some((-4.5e-6, 18.5e-6, 3.0)), None));
        assert!(
            certain.contains("gains +3.0 ppm.") && certain.contains(", if the clocks drift so: at one"),
            "{certain}"
        );
        let more = ", and by up to 40 µs more, since a drift is known within 2.0 ppm.";
        assert_eq!(clocks(&both(Some((-4.5e-6, 18.5e-6, 0.0)), Some(2.0))), format!("{same}{more}"));
        let drifting = clocks(&BothEnds { clock_steps_back: 1, ..both(Some((3.0, 0.01, 50.0)), Some(2.0)) });
        assert!(drifting.starts_with("Clocks: that of b.pcap is 3 s ahead, and gains +50.0 ppm. The"), "{drifting}");
        assert!(drifting.ends_with("A clock was set back once: delays are wrong by that step."), "{drifting}");
        let set = clocks(&BothEnds {
            clock_steps: vec![Step { at_s: 5.25, by_s: -0.3 }],
            ..both(Some((0.0, 0.01, 0.0)), Some(2.0))
        });
        assert!(
            set.ends_with(" At 5.25 s a clock was set: that of the second lost 300 ms. Delays follow the step."),
            "{set}"
        );
        let apart = BothEnds { clocks_not_compared: Some(not_compared(NoClock::Drift(0.065))), ..both(None, None) };
        assert_eq!(
            clocks(&apart),
            "Clocks: they seem to drift by +65000 ppm, and clocks drift by 1000 at most, so no delays are reported."
        );
        let mut one = both(None, None);
        one.directions[0].delay_min_s = Some(0.0);
        let one = clocks(&one);
        assert!(one.contains("relative to the fastest, if the clocks run at one pace"), "{one}");
    }

    #[test]
    fn segments_that_were_divided_are_told_and_lines_fit_the_terminal() {
        let mut both = both(Some((0.0, 18.5e-6, 0.0)), None);
        both.directions[0].segments_split = 21;
        both.directions[1].segments_merged = 1;
        let text = text(&both, "a.pcap", 80);
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("there: 21 segments were split on the way: segmentation offload (TSO, GSO)."), "{text}");
        assert!(
            words.contains("back: 1 segment was made of several on the way: receive offload (GRO, LRO)."),
            "{text}"
        );
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert_eq!(text.lines().filter(|line| line.starts_with(" direction")).count(), 2, "{text}");
    }
}

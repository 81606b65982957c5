//! The queues of an access line: those of the line itself and of a middlebox at its near end.

use lastmile_queueing::DropReason;
use serde::Serialize;

use super::cell::{Cell, Quantity};
use super::{Comparison, Seeded, distinct, network};
use crate::format;
use crate::schema::{Link, Phase, Summary};

/// The queues of both directions of a line. All `None` without an access line.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Queues {
    /// Rate of the slowest shaper that packets of the downstream pass, in the queue of the line or in a middlebox;
    /// `None` without one.
    pub down_shaper_rate_bps: Option<f64>,
    /// The same of the upstream.
    pub up_shaper_rate_bps: Option<f64>,
    /// Mean delay in the queues of the downstream: at its far end, and in a middlebox behind it.
    pub down_queue_delay_mean_s: Option<f64>,
    /// Mean delay in the queues of the upstream: in a middlebox before it, and in the modem.
    pub up_queue_delay_mean_s: Option<f64>,
    /// Sum of the longest delays in the queues of the upstream.
    pub up_queue_delay_max_s: Option<f64>,
    /// Packets that the queues of both directions of the line dropped in the whole run, without
    /// regulated ACKs; `None` without an access line.
    pub drops: Option<u64>,
    /// Pure ACKs that those queues dropped because a newer one replaces them; `None` as well.
    pub acks_merged: Option<u64>,
}

impl Queues {
    /// The queues in `phase`, or over the whole run.
    pub(super) fn of(summary: &Summary, phase: Option<&Phase>, has_line: bool) -> Self {
        let (up, down) = (waits(summary, phase, UP), waits(summary, phase, DOWN));
        let ends = ends(summary);
        let at_the_line = |name: &str| ends.iter().any(|end| is_of(name, UP, end) || is_of(name, DOWN, end));
        let dropped = |of_acks: bool| {
            let drops = summary.links.iter().filter(|link| at_the_line(&link.name)).flat_map(|link| &link.queue.drops);
            let regulated: Vec<&str> =
                DropReason::ALL.into_iter().filter(|reason| reason.is_ack_regulation()).map(DropReason::name).collect();
            let meant = drops.filter(|(reason, _)| regulated.contains(&reason.as_str()) == of_acks);
            has_line.then(|| meant.map(|(_, count)| count).sum())
        };
        let shaper = |links| {
            let on_the_way = summary.links.iter().filter(|link| ends.iter().any(|end| is_of(&link.name, links, end)));
            on_the_way.filter_map(|link| link.queue.shaper_rate_bps).reduce(f64::min)
        };
        Self {
            down_shaper_rate_bps: shaper(DOWN),
            up_shaper_rate_bps: shaper(UP),
            down_queue_delay_mean_s: down.map(|waits| waits.0),
            up_queue_delay_mean_s: up.map(|waits| waits.0),
            up_queue_delay_max_s: up.map(|waits| waits.1),
            drops: dropped(false),
            acks_merged: dropped(true),
        }
    }

    pub(super) fn cells(&self) -> [Cell; 7] {
        let rate = |column, bps| Cell::new(column, Quantity::Rate, bps).of_the_run();
        let time = |column, seconds| Cell::new(column, Quantity::Time, seconds);
        [
            rate("down shaper", self.down_shaper_rate_bps),
            rate("up shaper", self.up_shaper_rate_bps),
            time("down queue", self.down_queue_delay_mean_s),
            time("up queue", self.up_queue_delay_mean_s),
            time("up queue max", self.up_queue_delay_max_s),
            Cell::count("drops", self.drops).of_the_run(),
            Cell::count("ACKs merged", self.acks_merged).told_from(1.0).of_the_run(),
        ]
    }
}

/// The most limits that a sentence names: of more, as where a list of limits is compared, the rows say which.
const NAMED_LIMITS: usize = 3;

/// The limits of the line's own queues in a sentence, for the rows without a middlebox, which has queues of its own.
/// `None` without a limit, or with more than a sentence names.
#[must_use]
pub fn about_the_limits(comparison: &Comparison) -> Option<String> {
    let own: Vec<(&str, String)> =
        comparison.rows.iter().filter_map(|row| Some((&*row.label, limits_of(row)?))).collect();
    let limits = distinct(own.iter().map(|(_, limits)| limits));
    let of_all = limits.len() == 1 && own.len() == comparison.rows.len();
    let with_rows = |limits: &&String| {
        let rows: Vec<&str> = own.iter().filter(|(_, of_row)| of_row == *limits).map(|(label, _)| *label).collect();
        if of_all { (*limits).clone() } else { format!("{limits} ({})", rows.join(", ")) }
    };
    let told: Vec<String> = limits.iter().map(with_rows).collect();
    (1..=NAMED_LIMITS).contains(&told.len()).then(|| format!("Limits of the line's own queues: {}.", told.join("; ")))
}

/// The limits of both directions of a line without a middlebox, if each has one.
fn limits_of(row: &Seeded) -> Option<String> {
    let summary = &row.runs.first()?.summary;
    if network::is_network(summary) || summary.links.iter().any(|link| link.name.starts_with("middlebox")) {
        return None;
    }
    let limit = |way: &str| {
        let is_of_line = |link: &&Link| ends(summary).iter().any(|end| is_of(&link.name, [way; 2], end));
        let of_way = summary.links.iter().filter(is_of_line);
        let limits = distinct(of_way.map(|link| link.limit.in_words()));
        if let [Some(limit)] = &limits[..] { Some(format!("{limit} {way}")) } else { None }
    };
    Some(format!("{}, {}", limit("down")?, limit("up")?))
}

/// The links of a line whose queues a packet of each direction crosses.
const UP: [&str; 2] = ["up", "middlebox-up"];
const DOWN: [&str; 2] = ["down", "middlebox-down"];

/// True if the run has pings alone, over links none of which is of an access line.
pub(super) fn are_of_pings_alone(summary: &Summary) -> bool {
    let is_of_line = |link: &Link| ends(summary).iter().any(|end| is_of(&link.name, UP, end));
    summary.flows.is_empty() && !summary.links.is_empty() && !summary.links.iter().any(is_of_line)
}

/// For each line of the run, the end of the names of its links: one without an end, or `-1`, `-2` and so on.
fn ends(summary: &Summary) -> Vec<&str> {
    let several = summary.lines.iter().map(|line| line.name.strip_prefix("line").unwrap_or_default());
    if summary.lines.is_empty() { vec![""] } else { several.collect() }
}

/// True for the link called `name`, if it is one of `links` of the line whose names have this end.
fn is_of(name: &str, links: [&str; 2], end: &str) -> bool {
    name.strip_suffix(end).is_some_and(|name| links.contains(&name))
}

/// Sum of the mean and of the longest delays in the queues of these links of a line: of several lines the mean of the
/// means, and the longest. `None` if no packet waited.
fn waits(summary: &Summary, phase: Option<&Phase>, links: [&str; 2]) -> Option<(f64, f64)> {
    let of_lines: Vec<(f64, f64)> =
        ends(summary).into_iter().filter_map(|end| waits_of(summary, phase, links, end)).collect();
    let (sum, most) = of_lines.iter().fold((0.0, 0.0_f64), |(sum, most), (mean, max)| (sum + mean, most.max(*max)));
    (!of_lines.is_empty()).then(|| (sum / format::to_f64(of_lines.len() as u64), most))
}

fn waits_of(summary: &Summary, phase: Option<&Phase>, links: [&str; 2], end: &str) -> Option<(f64, f64)> {
    let add = |sum: Option<(f64, f64)>, waits: (Option<f64>, Option<f64>)| match (sum, waits) {
        (Some((before, most)), (Some(mean), Some(max))) => Some((before + mean, most + max)),
        (sum, (mean, max)) => sum.or(mean.zip(max)),
    };
    match phase {
        Some(phase) => {
            let found = phase.links.iter().filter(|link| is_of(&link.name, links, end));
            found.map(|link| (link.queue_delay_mean_s, link.queue_delay_max_s)).fold(None, add)
        }
        None => {
            let found = summary.links.iter().filter(|link| is_of(&link.name, links, end));
            found.map(|link| (link.queue.queue_delay_s.mean, link.queue.queue_delay_s.max)).fold(None, add)
        }
    }
}

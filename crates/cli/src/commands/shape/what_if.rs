//! "What would change if": the traffic of the last minute through the queues of another policy,
//! compared with what happened.
//!
//! The answer has three columns: what happened, a replay of the policy in force, and a replay of the
//! other policy. The second column is the check of the method: where it agrees with the first, the
//! replay knows what the shaper knew. The third column is an open loop ([`Handle::replay`]): senders
//! would react to other delays and losses, and the replay does not know how.
//!
//! [`Handle::replay`]: lastmile_live::shape::Handle::replay

use std::collections::BTreeMap;

use lastmile_dashboard::hub::Question;
use lastmile_live::bump::{HopState, Record};
use lastmile_scenario::Policy;
use lastmile_scenario::policy::Class;
use lastmile_units::{Duration, Instant};
use serde::Serialize;

use super::super::live_view::hops::{Interval, States, is_ack_regulation};
use super::super::web::charts;
use super::recent::{MINUTE, Second, Shared, dropped, lost};
use super::replacement;
use super::start::directions;
use crate::commands::control;

/// A shorter time answers no question.
const SHORTEST: Duration = Duration::from_s(5);

/// The limits of an answer, as the page shows them.
const LIMITS: [&str; 5] = [
    "Open loop: packets arrive at the times at which they did arrive. Real senders would react to other delays and \
     losses: a faster sender is not seen here, and a dropped packet is not retransmitted.",
    "Compare queueing delay and drops of traffic that does not adapt (calls, games, DNS) with confidence; take \
     bulk transfers as a sign of the direction.",
    "Downstream, packets have passed the provider's queue before they arrive here.",
    "Only headers are recorded: rules on contents and FTP's data connections match nothing.",
    "Connections that opened before the record have no known window scale, so a window clamp leaves them alone.",
];

/// The answer for the page.
#[derive(Serialize)]
struct Answer {
    /// The policy that was asked about.
    policy: String,
    in_force: String,
    /// The time that it covers.
    seconds: f64,
    limits: [&'static str; 5],
    /// Words on this answer alone.
    notes: Vec<String>,
    columns: Vec<Column>,
}

/// One column: a run as it was, or a replay.
#[derive(Serialize)]
struct Column {
    label: String,
    directions: [Direction; 2],
}

#[derive(Serialize)]
struct Direction {
    name: &'static str,
    packets: u64,
    rate_bps: f64,
    delay_s: Delay,
    ack_delay_s: Delay,
    dropped: BTreeMap<&'static str, u64>,
    acks_dropped: u64,
    classes: Vec<ClassColumn>,
    /// Ends of the seconds, from the beginning of the time.
    at_s: Vec<f32>,
    by_second: Vec<Second>,
}

#[derive(Serialize)]
struct ClassColumn {
    name: String,
    rate_bps: Option<f64>,
    p50_s: Option<f64>,
    p99_s: Option<f64>,
    dropped: u64,
}

/// Percentiles and the maximum of delays; `None` without packets.
#[derive(Serialize)]
struct Delay {
    p50: Option<f64>,
    p99: Option<f64>,
    max: Option<f64>,
}

impl Direction {
    fn of(name: &'static str, hop: &Interval<'_>, classes: &[Class], seconds: Vec<(f32, Second)>) -> Self {
        let waits = |now: &lastmile_live::bump::WaitCounts, before| {
            let waits = now.since(Some(before));
            #[expect(clippy::cast_precision_loss, reason = "for the eye only")]
            let at = |q: f64| (!waits.is_empty()).then(|| waits.value_at_quantile(q) as f64 / 1e9);
            Delay { p50: at(0.5), p99: at(0.99), max: at(1.0) }
        };
        let class = |one: charts::ClassInterval<'_>| ClassColumn {
            name: one.class.name.clone(),
            rate_bps: one.sent_bps,
            p50_s: one.waited.p50,
            p99_s: one.waited.p99,
            dropped: one.dropped_lately,
        };
        let (at_s, by_second) = seconds.into_iter().unzip();
        Self {
            name,
            packets: hop.now.line.transmitted.packets - hop.before.line.transmitted.packets,
            rate_bps: hop.rate_bps(),
            delay_s: waits(&hop.now.waited, &hop.before.waited),
            ack_delay_s: waits(&hop.now.acks_waited, &hop.before.acks_waited),
            dropped: lost(hop),
            acks_dropped: dropped(hop, is_ack_regulation).values().sum(),
            classes: charts::classes(classes, hop).into_iter().map(class).collect(),
            at_s,
            by_second,
        }
    }
}

/// The classes of both directions.
type Classes = [Vec<Class>; 2];

fn classes_of(policy: &Policy) -> Classes {
    [policy.classes.clone(), policy.down.as_ref().map_or_else(Vec::new, |down| down.classes.clone())]
}

/// States at both ends of the time, and the seconds between.
struct Seen {
    before: States,
    now: States,
    seconds: Vec<(Instant, [Second; 2])>,
}

impl Seen {
    fn column(&self, label: String, classes: &Classes) -> Column {
        let (begun, span) = (self.before.0, self.now.0.since(self.before.0).as_secs_f64());
        let direction = |index: usize, name| {
            let hop = Interval { seconds: span, before: &self.before.1[index], now: &self.now.1[index] };
            #[expect(clippy::cast_possible_truncation, reason = "for the eye only")]
            let seconds = self.seconds.iter().map(|(at, both)| (at.since(begun).as_secs_f64() as f32, both[index]));
            Direction::of(name, &hop, &classes[index], seconds.collect())
        };
        Column { label, directions: [direction(0, "up"), direction(1, "down")] }
    }

    /// This time with the queues of another policy.
    fn replayed(&self, shared: &Shared, records: &[Record; 2], policy: &Policy) -> Result<Self, String> {
        let (up, down) = directions(policy);
        let between = self.seconds.iter().map(|(at, _)| *at).filter(|at| *at < self.now.0);
        let times: Vec<Instant> = [self.before.0].into_iter().chain(between).chain([self.now.0]).collect();
        let (mut first, mut last, mut seconds): (Option<States>, Option<States>, _) = (None, None, Vec::new());
        let look = &mut |at: Instant, states: Vec<HopState>| {
            if let Some((then, before)) = &last {
                let span = at.since(*then).as_secs_f64();
                let second =
                    |index: usize| Second::of(&Interval { seconds: span, before: &before[index], now: &states[index] });
                seconds.push((at, [second(0), second(1)]));
            }
            if first.is_none() {
                first = Some((at, states.clone()));
            }
            last = Some((at, states));
        };
        shared.handle.replay(records, [&up, &down], &times, look).map_err(|error| error.to_string())?;
        match (first, last) {
            (Some(before), Some(now)) => Ok(Self { before, now, seconds }),
            _ => Err("nothing was recorded".to_owned()),
        }
    }
}

/// The last minute with another policy, as JSON.
pub(super) fn answer(shared: &Shared, question: &Question) -> Result<String, String> {
    let in_force = shared.in_force().policy();
    let other = replacement::on_line(&replacement::asked(question), in_force.line);
    let other = other.map_err(|failure| control::words(&failure))?;
    let ended = "the shaper ends";
    let records = shared.handle.records().ok_or(ended)?;
    let now = shared.handle.states().ok_or(ended)?;
    let mut notes = Vec::new();
    let seen = seen(shared, &records, now, &mut notes)?;
    let classes = classes_of(&in_force);
    let again = seen.replayed(shared, &records, &in_force)?;
    let replayed = seen.replayed(shared, &records, &other)?;
    let answer = Answer {
        policy: other.name.clone(),
        in_force: in_force.name.clone(),
        seconds: seen.now.0.since(seen.before.0).as_secs_f64(),
        limits: LIMITS,
        notes,
        columns: vec![
            seen.column(format!("{}: what happened", in_force.name), &classes),
            again.column(format!("{}: replayed", in_force.name), &classes),
            replayed.column(format!("{}: replayed", other.name), &classes_of(&other)),
        ],
    };
    serde_json::to_string(&answer).map_err(|error| error.to_string())
}

/// The last minute as it was, from the first state that the records reach back to.
fn seen(shared: &Shared, records: &[Record; 2], now: States, notes: &mut Vec<String>) -> Result<Seen, String> {
    let recent = shared.recent();
    let cut = records.iter().filter(|record| record.is_cut(now.0)).filter_map(Record::begins).max();
    let mut checkpoints = recent.checkpoints.iter();
    let reached = checkpoints.find(|(at, _)| cut.is_none_or(|cut| cut + Duration::from_s(1) <= *at));
    let Some(before) = reached.filter(|(at, _)| now.0.since(*at) >= SHORTEST).cloned() else {
        let why = if cut.is_some() {
            "more packets come than the record holds"
        } else {
            "the policy in force has been there for less"
        };
        return Err(format!("the last {SHORTEST} are needed, and {why}: ask again in {SHORTEST}"));
    };
    let span = now.0.since(before.0);
    if span < MINUTE {
        let why = if cut.is_some() { "the record holds no more packets" } else { "the policy is in force since then" };
        notes.push(format!("The last {:.0} s: {why}.", span.as_secs_f64()));
    }
    let within = recent.seconds.iter().filter(|(at, _)| *at > before.0 && *at <= now.0);
    let seconds = within.copied().collect();
    Ok(Seen { before, now, seconds })
}

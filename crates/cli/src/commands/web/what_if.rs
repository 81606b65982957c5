//! "What would change if": the traffic of the last minute through the hops of another policy,
//! compared with what happened.
//!
//! The answer has three columns: what happened, a replay of the policy in force, and a replay of the
//! other policy. The second column is the check of the method: where it agrees with the first, the
//! replay knows what the run knew. The third column is an open loop ([`Handle::replay`]): senders
//! would react to other delays and losses, and the replay does not know how.

use std::collections::BTreeMap;
use std::ops::Deref;

use lastmile_live::bump::{Record, States, WaitCounts};
use lastmile_live::handle::Handle;
use lastmile_model::Hop;
use lastmile_queueing::DropReason;
use lastmile_scenario::policy::Class;
use lastmile_units::{BitRate, Duration, Instant};
use serde::Serialize;

use super::super::live_view::hops::{Interval, NOTABLE, intervals};
use super::charts::{self, CROSSED};
use super::recent::{MINUTE, Recent, Second, Seconds, dropped, lost};

/// A shorter time answers no question.
const SHORTEST: Duration = Duration::from_s(5);

/// What a policy that is pasted into the page is called.
pub(in crate::commands) const TEXT: &str = "text of the dashboard";

/// A limit of every answer.
pub(in crate::commands) const OPEN_LOOP: &str = "Open loop: packets arrive at the times at which they did arrive. \
     Real senders would react to other delays and losses: a faster sender is not seen here, and a dropped packet is \
     not retransmitted.";

/// What an open loop tells.
pub(in crate::commands) const TRUST: &str = "Compare queueing delay and drops of traffic that does not adapt (calls, \
     games, DNS) with confidence; take bulk transfers as a sign of the direction.";

/// A limit of every answer.
pub(in crate::commands) const HEADERS: &str =
    "Only headers are recorded: rules on contents and FTP's data connections match nothing.";

/// A limit of every answer.
pub(in crate::commands) const WINDOWS: &str =
    "Connections that opened before the record have no known window scale, so a window clamp leaves them alone.";

/// The hops of a policy, up and then down.
#[derive(Clone)]
pub(in crate::commands) struct Setup {
    pub(in crate::commands) policy: String,
    pub(in crate::commands) up: Vec<Hop>,
    pub(in crate::commands) down: Vec<Hop>,
    /// The name of each hop in answers, and the classes of its scheduler. Hops of two policies with one
    /// name are compared.
    pub(in crate::commands) names: Vec<(String, Vec<Class>)>,
}

impl Setup {
    /// The name of the slowest hop of each direction.
    fn slowest(&self) -> impl Iterator<Item = &str> {
        let slowest = |(first, hops): (usize, &[Hop])| {
            let rate = |at: &usize| hops[*at].line.rate.map_or(u64::MAX, BitRate::as_bps);
            self.names.get(first + (0..hops.len()).min_by_key(rate)?).map(|(name, _)| name.as_str())
        };
        [(0, self.up.as_slice()), (self.up.len(), &self.down)].into_iter().filter_map(slowest)
    }
}

/// A question about a line.
pub(in crate::commands) struct Asked<'a> {
    pub(in crate::commands) handle: &'a Handle,
    pub(in crate::commands) in_force: &'a Setup,
    pub(in crate::commands) other: &'a Setup,
    /// What the answer does not know, in words.
    pub(in crate::commands) limits: &'a [&'a str],
}

/// The answer for the page.
#[derive(Serialize)]
struct Answer<'a> {
    /// The policy that was asked about.
    policy: &'a str,
    in_force: &'a str,
    /// The time that it covers.
    seconds: f64,
    limits: &'a [&'a str],
    /// Words on this answer alone.
    notes: Vec<String>,
    columns: Vec<Column>,
}

/// One column: a run as it was, or a replay.
#[derive(Serialize)]
struct Column {
    label: String,
    /// The delays over all hops, up and down; none where each direction is one hop.
    ways: Vec<Way>,
    /// The same hops in each column; `None` where the policy does not have it.
    directions: Vec<Option<Direction>>,
}

/// The delays over all hops of a direction.
#[derive(Serialize)]
struct Way {
    name: &'static str,
    /// Packets that crossed all hops.
    packets: u64,
    delay_s: Delay,
    ack_delay_s: Delay,
    /// Ends of the seconds, from the beginning of the time.
    at_s: Vec<f32>,
    p99_s: Vec<Option<f32>>,
}

/// One hop.
#[derive(Serialize)]
struct Direction {
    name: String,
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

impl Delay {
    fn of(now: &WaitCounts, before: &WaitCounts) -> Self {
        let waits = now.since(before);
        #[expect(clippy::cast_precision_loss, reason = "for the eye only")]
        let at = |q: f64| (!waits.is_empty()).then(|| waits.value_at_quantile(q) as f64 / 1e9);
        Self { p50: at(0.5), p99: at(0.99), max: at(1.0) }
    }
}

impl Direction {
    fn of(name: &str, hop: &Interval<'_>, classes: &[Class], (at_s, by_second): (Vec<f32>, Vec<Second>)) -> Self {
        let class = |one: charts::ClassInterval<'_>| ClassColumn {
            name: one.class.name.clone(),
            rate_bps: one.sent_bps,
            p50_s: one.waited.p50,
            p99_s: one.waited.p99,
            dropped: one.dropped_lately,
        };
        Self {
            name: name.to_owned(),
            packets: hop.now.line.transmitted.packets - hop.before.line.transmitted.packets,
            rate_bps: hop.rate_bps(),
            delay_s: Delay::of(&hop.now.waited, &hop.before.waited),
            ack_delay_s: Delay::of(&hop.now.acks_waited, &hop.before.acks_waited),
            dropped: lost(hop),
            acks_dropped: dropped(hop, DropReason::is_ack_regulation).values().sum(),
            classes: charts::classes(classes, hop).into_iter().map(class).collect(),
            at_s,
            by_second,
        }
    }

    /// Whether a hop is worth a column. Another one has none, unless it is the slowest or only one policy has it.
    fn is_notable(&self) -> bool {
        self.acks_dropped > 0
            || !self.dropped.is_empty()
            || self.delay_s.max.is_some_and(|max| max >= NOTABLE.as_secs_f64())
    }
}

/// States at both ends of the time, and the seconds between.
struct Seen {
    before: States,
    now: States,
    seconds: Vec<Seconds>,
}

impl Seen {
    /// The last minute as it was, from the first state that the records reach back to.
    fn new(recent: &Recent, records: &[Record; 2], now: States, notes: &mut Vec<String>) -> Result<Self, String> {
        let cut = records.iter().filter(|record| record.is_cut(now.at)).filter_map(Record::begins).max();
        let mut checkpoints = recent.checkpoints.iter();
        let reached = checkpoints.find(|state| cut.is_none_or(|cut| cut + Duration::from_s(1) <= state.at));
        let Some(before) = reached.filter(|state| now.at.since(state.at) >= SHORTEST).cloned() else {
            let why = if cut.is_some() {
                "more packets come than the record holds"
            } else {
                "the policy in force has been there for less"
            };
            return Err(format!("the last {SHORTEST} are needed, and {why}: ask again in {SHORTEST}"));
        };
        let span = now.at.since(before.at);
        if span < MINUTE {
            let why =
                if cut.is_some() { "the record holds no more packets" } else { "the policy is in force since then" };
            notes.push(format!("The last {:.0} s: {why}.", span.as_secs_f64()));
        }
        let within = recent.seconds.iter().filter(|second| second.at > before.at && second.at <= now.at);
        let seconds = within.cloned().collect();
        Ok(Self { before, now, seconds })
    }

    /// This time with the hops of a policy.
    fn replayed(&self, handle: &Handle, records: &[Record; 2], setup: &Setup) -> Result<Self, String> {
        let between = self.seconds.iter().map(|second| second.at).filter(|at| *at < self.now.at);
        let times: Vec<Instant> = [self.before.at].into_iter().chain(between).chain([self.now.at]).collect();
        let (mut first, mut last, mut seconds): (Option<States>, Option<States>, _) = (None, None, Vec::new());
        let look = &mut |now: States| {
            if last.is_some() {
                seconds.push(Seconds::of(last.as_ref(), &now));
            }
            if first.is_none() {
                first = Some(now.clone());
            }
            last = Some(now);
        };
        handle.replay(records, [&setup.up, &setup.down], &times, look).map_err(|error| error.to_string())?;
        match (first, last) {
            (Some(before), Some(now)) => Ok(Self { before, now, seconds }),
            _ => Err("nothing was recorded".to_owned()),
        }
    }

    /// The end of a second, from the beginning of the time.
    #[expect(clippy::cast_possible_truncation, reason = "for the eye only")]
    fn end_s(&self, second: &Seconds) -> f32 {
        second.at.since(self.before.at).as_secs_f64() as f32
    }

    /// The delays over all hops.
    fn ways(&self) -> Vec<Way> {
        let way = |(way, name): (usize, &'static str)| {
            let (before, now) = (&self.before.crossed[way], &self.now.crossed[way]);
            let (at_s, p99_s) =
                self.seconds.iter().map(|second| (self.end_s(second), second.crossed_p99_s[way])).unzip();
            Way {
                name,
                packets: now.all.since(&before.all).len(),
                delay_s: Delay::of(&now.all, &before.all),
                ack_delay_s: Delay::of(&now.acks, &before.acks),
                at_s,
                p99_s,
            }
        };
        CROSSED.into_iter().enumerate().map(way).collect()
    }

    fn told(&self, label: String, setup: &Setup) -> Told {
        Told { label, ways: self.ways(), hops: self.hops(setup) }
    }

    /// The hops, with the names and classes of their policy.
    fn hops(&self, setup: &Setup) -> Vec<Direction> {
        let hops = intervals(Some(&self.before), &self.now);
        let named = hops.iter().zip(&setup.names).enumerate();
        let direction = named.map(|(index, (hop, (name, classes)))| {
            let seconds = self.seconds.iter().filter_map(|second| Some((self.end_s(second), *second.hops.get(index)?)));
            Direction::of(name, hop, classes, seconds.unzip())
        });
        direction.collect()
    }
}

/// All names of two lists, in the order of both.
fn merged<'a>(one: impl Iterator<Item = &'a str>, other: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut all: Vec<&str> = one.collect();
    let mut next = 0;
    for name in other {
        match all.iter().position(|known| *known == name) {
            Some(at) => next = at + 1,
            None => {
                all.insert(next, name);
                next += 1;
            }
        }
    }
    all
}

/// What a column is made of.
struct Told {
    label: String,
    ways: Vec<Way>,
    hops: Vec<Direction>,
}

/// The columns with the hops that are worth a look, and the number of the others.
fn columns(asked: &Asked<'_>, told: [Told; 3]) -> (Vec<Column>, usize) {
    let [in_force, other] =
        [asked.in_force, asked.other].map(|setup| setup.names.iter().map(|(name, _)| name.as_str()));
    let names = merged(in_force, other);
    let is_shown = |name: &str| {
        let mut of_each = told.iter().map(|told| told.hops.iter().find(|hop| hop.name == name));
        let is_slowest = asked.in_force.slowest().any(|slowest| slowest == name);
        is_slowest || of_each.any(|hop| hop.is_none_or(Direction::is_notable))
    };
    let shown: Vec<&str> = names.iter().copied().filter(|name| is_shown(name)).collect();
    let left_out = names.len() - shown.len();
    let has_ways = [asked.in_force, asked.other].iter().any(|setup| setup.up.len() > 1 || setup.down.len() > 1);
    let column = |Told { label, ways, hops }: Told| {
        let mut hops: BTreeMap<String, Direction> = hops.into_iter().map(|hop| (hop.name.clone(), hop)).collect();
        let ways = if has_ways { ways } else { Vec::new() };
        Column { label, ways, directions: shown.iter().map(|name| hops.remove(*name)).collect() }
    };
    (told.into_iter().map(column).collect(), left_out)
}

/// The last minute with another policy, as JSON. `recent` is that of the policy in force.
pub(in crate::commands) fn answer(asked: &Asked<'_>, recent: impl Deref<Target = Recent>) -> Result<String, String> {
    let Asked { handle, in_force, other, limits } = *asked;
    let ended = "the program ends";
    let records = handle.records().ok_or(ended)?;
    let now = handle.states().ok_or(ended)?;
    let mut notes = Vec::new();
    let seen = Seen::new(&recent, &records, now, &mut notes)?;
    drop(recent);
    let replay = |setup: &Setup| {
        let replayed = seen.replayed(handle, &records, setup)?;
        Ok::<_, String>(replayed.told(format!("{}: replayed", setup.policy), setup))
    };
    let happened = seen.told(format!("{}: what happened", in_force.policy), in_force);
    let (columns, left_out) = columns(asked, [happened, replay(in_force)?, replay(other)?]);
    if left_out > 0 {
        notes.push(format!("Left out: links on which no packet was dropped or waited for a millisecond ({left_out})."));
    }
    let seconds = seen.now.at.since(seen.before.at).as_secs_f64();
    let answer = Answer { policy: &other.policy, in_force: &in_force.policy, seconds, limits, notes, columns };
    serde_json::to_string(&answer).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A middlebox stands on one side of the line or on both, or nowhere.
    #[test]
    fn hops_of_two_policies_have_one_order() {
        let all =
            |one: &[&'static str], other: &[&'static str]| merged(one.iter().copied(), other.iter().copied()).join(" ");
        assert_eq!(all(&["lan", "up", "down"], &["lan", "box", "up", "down"]), "lan box up down");
        assert_eq!(all(&["lan", "box", "up", "down"], &["lan", "up", "down", "box-down"]), "lan box up down box-down");
        assert_eq!(all(&["up"], &["first", "up", "last"]), "first up last");
    }
}

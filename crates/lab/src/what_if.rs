//! "What would change if": the traffic of the last minute through the hops of another policy,
//! compared with what happened.
//!
//! The answer has three columns: what happened, a replay of the policy in force, and a replay of the
//! other policy. The second column is the check of the method: where it agrees with the first, the
//! replay knows what the run knew. The third column is an open loop ([`Handle::replay`]): senders
//! would react to other delays and losses, and the replay does not know how.

mod alternatives;
mod recent;

use std::collections::BTreeMap;
use std::ops::Deref;

use lastmile_live::bump::{self, Interval, NOTABLE, Record, States, Waited};
use lastmile_live::handle::Handle;
use lastmile_model::Hop;
use lastmile_queueing::DropReason;
use lastmile_scenario::Policy;
use lastmile_scenario::policy::Class;
use lastmile_units::{BitRate, Duration, Instant};
use serde::Serialize;

pub use self::alternatives::{Alternatives, Script};
pub use self::recent::Recent;
use self::recent::{MINUTE, Second, Seconds};
use crate::classes::{self, ClassInterval};

/// The names of the delays over all links, up and down.
pub const CROSSED: [&str; 2] = ["up: all links", "down: all links"];

/// A shorter time answers no question.
const SHORTEST: Duration = Duration::from_s(5);

/// The hops of a policy, up and then down.
#[derive(Clone)]
pub struct Setup {
    policy: String,
    up: Vec<Hop>,
    down: Vec<Hop>,
    /// The name of each hop in answers, and the classes of its scheduler. Hops of two policies with one
    /// name are compared.
    names: Vec<(String, Vec<Class>)>,
    /// A controller moves its rates by pings, which a record does not have.
    moves_rates: bool,
}

impl Setup {
    /// The queues of a policy in a middlebox, up and down.
    pub fn of_middlebox(policy: &Policy, [up, down]: [Hop; 2]) -> Self {
        let behind = policy.down.as_ref().map_or_else(Vec::new, |down| down.classes.clone());
        let names = vec![(up.name.clone(), policy.classes.clone()), (down.name.clone(), behind)];
        let moves_rates = policy.autorate().is_some();
        Self { policy: policy.name.clone(), up: vec![up], down: vec![down], names, moves_rates }
    }

    /// The name of the slowest hop of each direction.
    fn slowest(&self) -> impl Iterator<Item = &str> {
        let slowest = |(first, hops): (usize, &[Hop])| {
            let rate = |at: &usize| hops[*at].line.rate.map_or(u64::MAX, BitRate::as_bps);
            self.names.get(first + (0..hops.len()).min_by_key(rate)?).map(|(name, _)| name.as_str())
        };
        [(0, self.up.as_slice()), (self.up.len(), &self.down)].into_iter().filter_map(slowest)
    }
}

/// The answer for a page.
#[derive(Serialize)]
pub struct Answer<'a> {
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
    /// The hops, equal in each column; `None` where the policy does not have the hop.
    directions: Vec<Option<Direction>>,
}

/// The delays over all hops of a direction.
#[derive(Serialize)]
struct Way {
    name: &'static str,
    /// Packets that crossed all hops.
    packets: u64,
    delay_s: Waited,
    ack_delay_s: Waited,
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
    delay_s: Waited,
    ack_delay_s: Waited,
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

impl Direction {
    fn of(name: &str, hop: &Interval<'_>, classes: &[Class], (at_s, by_second): (Vec<f32>, Vec<Second>)) -> Self {
        let class = |one: ClassInterval<'_>| ClassColumn {
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
            delay_s: Waited::of(Some(&hop.before.waited), &hop.now.waited),
            ack_delay_s: Waited::of(Some(&hop.before.acks_waited), &hop.now.acks_waited),
            dropped: hop.lost(),
            acks_dropped: hop.dropped(DropReason::is_ack_regulation).values().sum(),
            classes: classes::classes(classes, None, hop).into_iter().map(class).collect(),
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
                delay_s: Waited::of(Some(&before.all), &now.all),
                ack_delay_s: Waited::of(Some(&before.acks), &now.acks),
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
        let hops = bump::intervals(Some(&self.before), &self.now);
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

/// The parts of a column.
struct Told {
    label: String,
    ways: Vec<Way>,
    hops: Vec<Direction>,
}

/// The columns with the hops that are worth a look, and the number of the others.
fn columns(setups: [&Setup; 2], told: [Told; 3]) -> (Vec<Column>, usize) {
    let [in_force, other] = setups.map(|setup| setup.names.iter().map(|(name, _)| name.as_str()));
    let names = merged(in_force, other);
    let is_shown = |name: &str| {
        let mut of_each = told.iter().map(|told| told.hops.iter().find(|hop| hop.name == name));
        let is_slowest = setups[0].slowest().any(|slowest| slowest == name);
        is_slowest || of_each.any(|hop| hop.is_none_or(Direction::is_notable))
    };
    let shown: Vec<&str> = names.iter().copied().filter(|name| is_shown(name)).collect();
    let left_out = names.len() - shown.len();
    let has_ways = setups.iter().any(|setup| setup.up.len() > 1 || setup.down.len() > 1);
    let column = |Told { label, ways, hops }: Told| {
        let mut hops: BTreeMap<String, Direction> = hops.into_iter().map(|hop| (hop.name.clone(), hop)).collect();
        let ways = if has_ways { ways } else { Vec::new() };
        Column { label, ways, directions: shown.iter().map(|name| hops.remove(*name)).collect() }
    };
    (told.into_iter().map(column).collect(), left_out)
}

/// The last minute with another policy. `recent` is that of the policy in force; `limits` are those of the answer,
/// in words.
pub fn answer<'a>(
    handle: &Handle,
    [in_force, other]: [&'a Setup; 2],
    limits: &'a [&'a str],
    recent: impl Deref<Target = Recent>,
) -> Result<Answer<'a>, String> {
    can_be_replayed([in_force, other])?;
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
    let (columns, left_out) = columns([in_force, other], [happened, replay(in_force)?, replay(other)?]);
    if left_out > 0 {
        notes.push(format!("Left out: links on which no packet was dropped or waited for a millisecond ({left_out})."));
    }
    let seconds = seen.now.at.since(seen.before.at).as_secs_f64();
    Ok(Answer { policy: &other.policy, in_force: &in_force.policy, seconds, limits, notes, columns })
}

fn can_be_replayed(setups: [&Setup; 2]) -> Result<(), String> {
    match setups.into_iter().find(|setup| setup.moves_rates) {
        Some(Setup { policy, .. }) => {
            Err(format!("the policy \"{policy}\" has [autorate]: its rates follow pings, and a replay has none"))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record has no pings, neither for the policy in force nor for the other one.
    #[test]
    fn a_policy_that_moves_its_rates_is_not_replayed() {
        let [cake, moving] = [("cake", false), ("cake-autorate", true)].map(|(policy, moves_rates)| Setup {
            policy: policy.to_owned(),
            up: Vec::new(),
            down: Vec::new(),
            names: Vec::new(),
            moves_rates,
        });
        assert_eq!(can_be_replayed([&cake, &cake]), Ok(()));
        for setups in [[&cake, &moving], [&moving, &cake]] {
            let refused = can_be_replayed(setups).unwrap_err();
            assert!(refused.starts_with("the policy \"cake-autorate\" has [autorate]"), "{refused}");
        }
    }

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

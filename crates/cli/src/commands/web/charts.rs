//! Charts and tables of the dashboard for hops: rates, queues, delays and drops, by class and reason.

use std::collections::BTreeMap;

use lastmile_dashboard::report::{Cell, Chart, Group, Table, Unit};
use lastmile_live::bump::{CounterValue, HopState, States};
use lastmile_queueing::DropReason;
use lastmile_scenario::policy::Class;

use super::super::live_view::classes::{Numbers, at};
use super::super::live_view::hops::{Interval, Waited, per_second};

/// The series of everything in a chart that also has classes.
const ALL: &str = "all";

/// One class of a hop in an interval.
pub(in crate::commands) struct ClassInterval<'a> {
    pub(in crate::commands) class: &'a Class,
    pub(in crate::commands) sent_bps: Option<f64>,
    pub(in crate::commands) backlog_bytes: Option<f64>,
    pub(in crate::commands) waited: Waited,
    /// Packets that its queue has dropped so far.
    pub(in crate::commands) dropped: u64,
    /// Packets that its queue has dropped in the interval.
    pub(in crate::commands) dropped_lately: u64,
}

/// The counters of one class of a scheduler.
#[derive(Clone, Copy, Default)]
struct Counted {
    sent_wire_bytes: Option<u64>,
    sent_bytes: Option<u64>,
    dropped: u64,
}

/// The classes in these counters by their numbers there, in one pass: a policy may have a hundred.
fn counted(counters: &[CounterValue]) -> BTreeMap<usize, Counted> {
    let mut classes: BTreeMap<usize, Counted> = BTreeMap::new();
    for CounterValue { path, name, value, .. } in counters {
        let Some((number, rest)) = at(path) else { continue };
        let class = classes.entry(number).or_default();
        match *name {
            "sent_wire_bytes" if rest.is_empty() => class.sent_wire_bytes = Some(*value),
            "sent_bytes" if rest.is_empty() => class.sent_bytes = Some(*value),
            name if name.starts_with("dropped_") && rest.starts_with(".queue") => class.dropped += value,
            _ => {}
        }
    }
    classes
}

/// The classes with a queue in an interval.
pub(in crate::commands) fn classes<'a>(classes: &'a [Class], hop: &Interval<'_>) -> Vec<ClassInterval<'a>> {
    let counters = &hop.now.queue_counters;
    let places = Numbers::of(classes, counters.iter().map(|c| (c.path.as_str(), c.kind)));
    let [before, now] = [&hop.before.queue_counters, counters].map(|counters| counted(counters));
    let with_queue = classes.iter().enumerate().filter(|(_, class)| class.queue.is_some());
    let interval = with_queue.map(|(index, class)| {
        let number = places.get(index);
        let of = |counts: &BTreeMap<usize, Counted>| number.and_then(|number| counts.get(&number).copied());
        let (before, now) = (of(&before).unwrap_or_default(), of(&now).unwrap_or_default());
        // Of IP where the scheduler does not count the wire.
        let bytes = match now.sent_wire_bytes {
            Some(bytes) => Some((before.sent_wire_bytes, bytes)),
            None => now.sent_bytes.map(|bytes| (before.sent_bytes, bytes)),
        };
        // A class of a new queue has no earlier count.
        let sent = bytes.map(|(then, now)| (then.filter(|then| *then <= now).unwrap_or(now), now));
        let backlog = hop.now.class_queued.iter().find(|(place, _)| Some(*place) == number);
        let waited = hop.now.class_waited.get(index);
        #[expect(clippy::cast_precision_loss, reason = "for the eye only")]
        ClassInterval {
            class,
            sent_bps: sent.map(|(then, now)| 8.0 * per_second(then, now, hop.seconds)),
            backlog_bytes: backlog.map(|(_, backlog)| backlog.bytes.as_u64() as f64),
            waited: waited.map(|now| Waited::of(hop.before.class_waited.get(index), now)).unwrap_or_default(),
            dropped: now.dropped,
            // The counts of another queue begin anew.
            dropped_lately: now.dropped.checked_sub(before.dropped).unwrap_or(now.dropped),
        }
    });
    interval.collect()
}

/// The names of the delays over all links, up and down.
pub(in crate::commands) const CROSSED: [&str; 2] = ["up: all links", "down: all links"];

/// The charts of the delays over all links.
pub(in crate::commands) fn crossed(before: Option<&States>, now: &States) -> Group {
    let mut longest = Chart::new("one-way delay, 99th percentile", Unit::Seconds);
    let mut median = Chart::new("one-way delay, median", Unit::Seconds);
    let before = before.unwrap_or(now);
    for ((name, before), now) in CROSSED.into_iter().zip(&before.crossed).zip(&now.crossed) {
        let waited = [(name.to_owned(), &before.all, &now.all), (format!("{name}, ACKs"), &before.acks, &now.acks)];
        for (name, before, now) in waited {
            let Waited { p50, p99 } = Waited::of(Some(before), now);
            longest.push(name.clone(), p99);
            median.push(name, p50);
        }
    }
    let title = "all links: from arrival at the first to arrival behind the last".to_owned();
    Group { id: "all links".to_owned(), title, charts: vec![longest, median] }
}

/// The charts of a hop, whose line has this rate.
pub(in crate::commands) fn group(
    id: &str,
    title: String,
    rate_bps: Option<u64>,
    hop: &Interval<'_>,
    classes: &[ClassInterval<'_>],
) -> Group {
    let (bytes, time) = hop.backlog(rate_bps);
    #[expect(clippy::cast_precision_loss, reason = "for the eye only")]
    let full = rate_bps.map(|rate| rate as f64);
    let waited = Waited::of(Some(&hop.before.waited), &hop.now.waited);
    let acks = Waited::of(Some(&hop.before.acks_waited), &hop.now.acks_waited);
    let mut rate = Chart::new("rate on the wire", Unit::BitsPerSecond).up_to(full).with(ALL, Some(hop.rate_bps()));
    let mut queue = Chart::new("queue", Unit::Bytes).with(ALL, Some(bytes));
    let mut longest = Chart::new("delay, 99th percentile", Unit::Seconds).with(ALL, waited.p99).with("ACKs", acks.p99);
    let mut median = Chart::new("delay, median", Unit::Seconds).with(ALL, waited.p50).with("ACKs", acks.p50);
    for one in classes {
        let name = || one.class.name.clone();
        rate.push(name(), one.sent_bps);
        queue.push(name(), one.backlog_bytes);
        longest.push(name(), one.waited.p99);
        median.push(name(), one.waited.p50);
    }
    let mut charts = vec![rate];
    if time.is_some() {
        charts.push(Chart::new("queue as time on the line", Unit::Seconds).with(ALL, time));
    }
    charts.extend([queue, longest, median, drops(hop, "drops by reason", |reason| !reason.is_ack_regulation())]);
    charts.push(drops(hop, "ACKs merged or dropped by ACK regulation", DropReason::is_ack_regulation));
    Group { id: id.to_owned(), title, charts }
}

/// Drops in a second by reason; of each reason that has occurred.
fn drops(hop: &Interval<'_>, title: &'static str, wanted: impl Fn(DropReason) -> bool) -> Chart {
    let mut chart = Chart::new(title, Unit::PerSecond);
    let packets = |state: &HopState, reason: DropReason| state.line.dropped[reason.index()].packets;
    let mut all = 0.0;
    let mut by_reason = Vec::new();
    for reason in DropReason::ALL.into_iter().filter(|reason| wanted(*reason)) {
        let now = packets(hop.now, reason);
        if now > 0 {
            let rate = per_second(packets(hop.before, reason), now, hop.seconds);
            all += rate;
            by_reason.push((reason.name(), rate));
        }
    }
    chart.push(ALL, Some(all));
    by_reason.into_iter().for_each(|(name, rate)| chart.push(name, Some(rate)));
    chart
}

/// The table of the classes of a hop.
#[expect(clippy::cast_precision_loss, reason = "for the eye only")]
pub(in crate::commands) fn table(title: String, classes: &[ClassInterval<'_>], wire_per_byte: f64) -> Table {
    let row = |one: &ClassInterval<'_>| {
        let time = one.backlog_bytes.map(|bytes| bytes * wire_per_byte * 8.0 / one.class.ceil.as_bps() as f64);
        vec![
            Cell::Text(one.class.name.clone()),
            one.sent_bps.into(),
            one.backlog_bytes.into(),
            time.into(),
            one.waited.p50.into(),
            one.waited.p99.into(),
            Some(one.dropped as f64).into(),
        ]
    };
    Table {
        title,
        columns: vec![
            ("class", Unit::Count),
            ("rate", Unit::BitsPerSecond),
            ("queue", Unit::Bytes),
            ("at its ceiling", Unit::Seconds),
            ("delay p50", Unit::Seconds),
            ("delay p99", Unit::Seconds),
            ("drops", Unit::Count),
        ],
        rows: classes.iter().map(row).collect(),
    }
}

//! Charts and tables of the dashboard for hops: rates, queues, delays and drops, by class and reason.

use lastmile_dashboard::report::{Cell, Chart, Group, Table, Unit};
use lastmile_lab::classes::ClassInterval;
use lastmile_lab::what_if::CROSSED;
use lastmile_live::bump::{HopState, Interval, States, Waited, per_second};
use lastmile_queueing::DropReason;

/// The series of everything in a chart that also has classes.
const ALL: &str = "all";

/// The charts of the delays over all links.
pub(in crate::commands) fn crossed(before: Option<&States>, now: &States) -> Group {
    let mut longest = Chart::new("one-way delay, 99th percentile", Unit::Seconds);
    let mut median = Chart::new("one-way delay, median", Unit::Seconds);
    let before = before.unwrap_or(now);
    for ((name, before), now) in CROSSED.into_iter().zip(&before.crossed).zip(&now.crossed) {
        let waited = [(name.to_owned(), &before.all, &now.all), (format!("{name}, ACKs"), &before.acks, &now.acks)];
        for (name, before, now) in waited {
            let Waited { p50, p99, .. } = Waited::of(Some(before), now);
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
    #[expect(clippy::cast_precision_loss, reason = "for the eye only")]
    if let Some(shaper) = hop.now.shaper_rate {
        rate.push("shaper".to_owned(), Some(shaper.as_bps() as f64));
    }
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
    charts.extend([queue, longest, median, drops("drops by reason", lost(hop), hop.seconds)]);
    let thinned = of_queue(hop, DropReason::is_ack_regulation);
    charts.push(drops("ACKs merged or dropped by ACK regulation", thinned, hop.seconds));
    if let Some(rates) = hop.grants() {
        let counts = Chart::new("requests and grants", Unit::PerSecond)
            .with("requests", Some(rates.requests))
            .with("collisions", Some(rates.collisions))
            .with("grants", Some(rates.grants));
        let unused = Chart::new("unused part of grants", Unit::BitsPerSecond);
        charts.extend([counts, unused.with(ALL, Some(rates.unused_bps))]);
    }
    Group { id: id.to_owned(), title, charts }
}

/// Packets that were dropped for a reason: its name, and the counts before an interval and by its end.
type Dropped = (&'static str, u64, u64);

/// Drops of the hop's queue and wire for reasons that are `wanted`.
fn of_queue(hop: &Interval<'_>, wanted: impl Fn(DropReason) -> bool) -> impl Iterator<Item = Dropped> {
    let packets = |state: &HopState, reason: DropReason| state.line.dropped[reason.index()].packets;
    let reasons = DropReason::ALL.into_iter().filter(move |reason| wanted(*reason));
    reasons.map(move |reason| (reason.name(), packets(hop.before, reason), packets(hop.now, reason)))
}

/// Drops without those of ACK regulation, and with those of the ports beside the hop.
fn lost(hop: &Interval<'_>) -> impl Iterator<Item = Dropped> {
    of_queue(hop, |reason| !reason.is_ack_regulation()).chain(hop.port_drops())
}

/// Drops in a second by reason; of each reason that has occurred.
fn drops(title: &'static str, dropped: impl Iterator<Item = Dropped>, seconds: f64) -> Chart {
    let occurred: Vec<Dropped> = dropped.filter(|(_, _, now)| *now > 0).collect();
    let rates = occurred.iter().map(|(name, before, now)| (*name, per_second(*before, *now, seconds)));
    let mut chart = Chart::new(title, Unit::PerSecond).with(ALL, Some(rates.clone().map(|(_, rate)| rate).sum()));
    rates.for_each(|(name, rate)| chart.push(name, Some(rate)));
    chart
}

/// The table of the classes of a hop.
#[expect(clippy::cast_precision_loss, reason = "for the eye only")]
pub(in crate::commands) fn table(title: String, classes: &[ClassInterval<'_>], wire_per_byte: f64) -> Table {
    let row = |one: &ClassInterval<'_>| {
        let time = one.backlog_bytes.map(|bytes| bytes * wire_per_byte * 8.0 / one.ceil.as_bps() as f64);
        vec![
            Cell::Text(one.class.name.clone()),
            one.sent_bps.into(),
            one.backlog_bytes.into(),
            time.into(),
            one.waited.p50.into(),
            one.waited.p99.into(),
            Some(one.dropped_packets() as f64).into(),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Half a second in which the interface refused 4 packets and a queue dropped 2.
    #[test]
    fn drops_by_reason_have_those_of_the_interfaces() {
        let mut before = HopState { port_drops: vec![("oversize", 0), ("receiver_down", 6)], ..HopState::default() };
        before.line.dropped[DropReason::AckFiltered.index()].packets = 1;
        let mut now = HopState { port_drops: vec![("oversize", 0), ("receiver_down", 10)], ..before.clone() };
        now.line.dropped[DropReason::Tail.index()].packets = 2;
        let hop = Interval { seconds: 0.5, before: &before, now: &now };
        let charts = group("up", String::new(), None, &hop, &[]).charts;
        let series = |title| {
            let chart = charts.iter().find(|chart| chart.title == title).unwrap();
            chart.series.iter().map(|one| (one.label.as_str(), one.value.unwrap())).collect::<Vec<_>>()
        };
        assert_eq!(series("drops by reason"), [("all", 12.0), ("tail", 4.0), ("receiver_down", 8.0)]);
        assert_eq!(series("ACKs merged or dropped by ACK regulation"), [("all", 0.0), ("ack_filtered", 0.0)]);
    }
}

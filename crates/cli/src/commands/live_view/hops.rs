//! The series of a hop and the table of hops: rates, backlog, delays, drops with their reasons.

use std::collections::BTreeMap;

use lastmile_live::bump::{Interval, Waited, per_second};
use lastmile_queueing::DropReason;
use lastmile_terminal::{Panel, Series, Unit};
use lastmile_text::table::{Kind, Table};
use lastmile_units::BitRate;

/// Median and 99th percentile for a table, in milliseconds.
pub(super) fn cells(waited: Waited) -> [String; 2] {
    [waited.p50, waited.p99].map(|s| s.map_or_else(|| "-".to_owned(), |s| format!("{:.1}", s * 1e3)))
}

/// The series of the hop, with a line of this rate, and the rate of the shaper that a controller steers. Series of ACK
/// regulation are there once it has dropped an ACK, and those of grants on a line that has them.
#[expect(clippy::cast_precision_loss, reason = "for the eye only")]
pub(in crate::commands) fn panel(
    hop: &Interval<'_>,
    title: String,
    rate_bps: Option<u64>,
    shaper: Option<BitRate>,
) -> Panel {
    let Interval { before, now, .. } = *hop;
    let rate = Series::new("rate", Unit::BitsPerSecond, Some(hop.rate_bps()));
    let rate = match rate_bps {
        Some(full) => rate.out_of(full as f64),
        None => rate,
    };
    let waited = Waited::of(Some(&before.waited), &now.waited);
    let acks = Waited::of(Some(&before.acks_waited), &now.acks_waited);
    let per_s = |dropped: &BTreeMap<_, u64>| Some(per_second(0, dropped.values().sum(), hop.seconds));
    let of_ports = hop.port_drops().map(|(_, before, now)| now.saturating_sub(before));
    let lost = per_second(0, hop.lost().into_values().chain(of_ports).sum(), hop.seconds);
    let (backlog, time) = hop.backlog(rate_bps);
    let backlog = match time {
        Some(time) => Series::new("backlog", Unit::Seconds, Some(time)),
        None => Series::new("backlog", Unit::Bytes, Some(backlog)),
    };
    let mut series = vec![
        rate,
        backlog,
        Series::new("delay p50", Unit::Seconds, waited.p50),
        Series::new("delay p99", Unit::Seconds, waited.p99),
        Series::new("drops", Unit::PerSecond, Some(lost)),
        Series::new("ACKs p99", Unit::Seconds, acks.p99),
    ];
    series.extend(shaper.map(|rate| Series::new("shaper", Unit::BitsPerSecond, Some(rate.as_bps() as f64))));
    let is_thinned = |reason: &DropReason| reason.is_ack_regulation() && now.line.dropped[reason.index()].packets > 0;
    if DropReason::ALL.iter().any(is_thinned) {
        let thinned = Series::new("ACKs dropped", Unit::PerSecond, per_s(&hop.dropped(DropReason::is_ack_regulation)));
        series.push(thinned);
    }
    if let Some(rates) = hop.grants() {
        series.extend([
            Series::new("requests", Unit::PerSecond, Some(rates.requests)),
            Series::new("collisions", Unit::PerSecond, Some(rates.collisions)),
            Series::new("grants", Unit::PerSecond, Some(rates.grants)),
            Series::new("unused", Unit::BitsPerSecond, Some(rates.unused_bps)),
        ]);
    }
    Panel::new(title, series)
}

/// Counts by reason: `17 tail, 3 aqm`; without zeros.
pub(super) fn reasons<'a>(counts: impl Iterator<Item = (&'a str, u64)>) -> String {
    let counts: Vec<String> =
        counts.filter(|(_, count)| *count > 0).map(|(reason, count)| format!("{count} {reason}")).collect();
    if counts.is_empty() { "0".to_owned() } else { counts.join(", ") }
}

/// The table of hops, each with its name and rate.
pub(in crate::commands) fn table<'a>(hops: impl IntoIterator<Item = (&'a str, Option<u64>, Interval<'a>)>) -> Table {
    let numbers = ["rate", "backlog B", "ms", "p50 ms", "p99 ms"].map(|name| (name, Kind::Number));
    let drops = ("drops", Kind::Text);
    let mut table = Table::new([("link", Kind::Name)].into_iter().chain(numbers).chain([drops]));
    for (name, rate_bps, hop) in hops {
        let (bytes, time) = hop.backlog(rate_bps);
        let [p50, p99] = cells(Waited::of(Some(&hop.before.waited), &hop.now.waited));
        let dropped = &hop.now.line.dropped;
        let of_queue = DropReason::ALL.into_iter().map(|reason| (reason.name(), dropped[reason.index()].packets));
        let drops = reasons(of_queue.chain(hop.now.port_drops.iter().copied()));
        let rate = Unit::BitsPerSecond.show(hop.rate_bps());
        let ms = time.map_or_else(|| "-".to_owned(), |time| format!("{:.1}", time * 1e3));
        table.row([name.to_owned(), rate, format!("{bytes:.0}"), ms, p50, p99, drops]);
    }
    table
}

#[cfg(test)]
mod tests {
    use lastmile_live::bump::HopState;
    use lastmile_queueing::line::grants::Counts;

    use super::*;

    fn state(grants: Option<Counts>) -> HopState {
        HopState { grants, ..HopState::default() }
    }

    /// Half a second in which the interface refused 4 packets and a queue dropped 2.
    #[test]
    fn drops_have_those_of_the_interfaces() {
        let before = HopState { port_drops: vec![("receiver_down", 6)], ..state(None) };
        let mut now = HopState { port_drops: vec![("receiver_down", 10)], ..before.clone() };
        now.line.dropped[DropReason::Tail.index()].packets = 2;
        let hop = Interval { seconds: 0.5, before: &before, now: &now };
        let series = panel(&hop, "up".to_owned(), None, None).series;
        assert_eq!(series.iter().find(|one| one.label == "drops").unwrap().value, Some(12.0));
        assert!(hop.is_notable() && hop.has_mattered());
        let text = table([("line", None, hop)]).render();
        assert!(text.contains("2 tail, 10 receiver_down"), "{text}");
    }

    /// Half a second in which 10 requests, 3 of them in vain, had 6 grants, of which 500 bytes passed unused.
    #[test]
    fn requests_and_grants_are_series_of_a_line_that_has_them() {
        let before = Counts { requests: 4, grants: 4, unused: 100, ..Counts::default() };
        let now = Counts { requests: 14, collisions: 3, grants: 10, unused: 600, ..before };
        let last = |[before, now]: [Option<Counts>; 2]| {
            let (before, now) = (state(before), state(now));
            let hop = Interval { seconds: 0.5, before: &before, now: &now };
            let series = panel(&hop, "up".to_owned(), None, None).series;
            let words = series[6..].iter().map(|one| format!("{} {}", one.label, one.unit.show(one.value.unwrap())));
            words.collect::<Vec<_>>()
        };
        assert_eq!(last([None; 2]), [""; 0]);
        let expected = ["requests 20 /s", "collisions 6 /s", "grants 12 /s", "unused 8.00 kbit/s"];
        assert_eq!(last([Some(before), Some(now)]), expected);
    }
}

//! The series of a hop and the table of hops: rates, backlog, delays, drops with their reasons.

use lastmile_live::bump::{HopState, States, WaitCounts};
use lastmile_queueing::DropReason;
use lastmile_queueing::line::Count;
use lastmile_terminal::{Panel, Series, Unit};
use lastmile_text::table::{Kind, Table};
use lastmile_units::Duration;

/// A wait in a queue that is worth a look.
pub(in crate::commands) const NOTABLE: Duration = Duration::from_ms(1);

/// A hop in the interval between two moments.
#[derive(Clone, Copy)]
pub(in crate::commands) struct Interval<'a> {
    pub(in crate::commands) seconds: f64,
    pub(in crate::commands) before: &'a HopState,
    pub(in crate::commands) now: &'a HopState,
}

/// The hops in the interval between `before` and `now`, those up and then those down. Without
/// `before` the interval is empty.
pub(in crate::commands) fn intervals<'a>(before: Option<&'a States>, now: &'a States) -> Vec<Interval<'a>> {
    let before = before.unwrap_or(now);
    let seconds = now.at.since(before.at).as_secs_f64();
    before.hops.iter().zip(&now.hops).map(|(before, now)| Interval { seconds, before, now }).collect()
}

/// The median and the 99th percentile of waits in an interval, in seconds; `None` without any.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub(in crate::commands) struct Waited {
    pub(in crate::commands) p50: Option<f64>,
    pub(in crate::commands) p99: Option<f64>,
}

impl Waited {
    pub(in crate::commands) fn of(before: Option<&WaitCounts>, now: &WaitCounts) -> Self {
        let waits = before.map_or_else(|| now.clone(), |before| now.since(before));
        #[expect(clippy::cast_precision_loss, reason = "for the eye only")]
        let quantile = |q: f64| (!waits.is_empty()).then(|| waits.value_at_quantile(q) as f64 / 1e9);
        Self { p50: quantile(0.5), p99: quantile(0.99) }
    }

    /// Both for a table, in milliseconds.
    pub(super) fn cells(self) -> [String; 2] {
        [self.p50, self.p99].map(|s| s.map_or_else(|| "-".to_owned(), |s| format!("{:.1}", s * 1e3)))
    }
}

/// Events in a second.
#[expect(clippy::cast_precision_loss, reason = "for the eye only")]
pub(in crate::commands) fn per_second(before: u64, now: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { now.saturating_sub(before) as f64 / seconds } else { 0.0 }
}

fn packets(dropped: &[Count], wanted: impl Fn(DropReason) -> bool) -> u64 {
    DropReason::ALL.into_iter().filter(|reason| wanted(*reason)).map(|reason| dropped[reason.index()].packets).sum()
}

impl Interval<'_> {
    /// Bits on the wire in a second.
    pub(in crate::commands) fn rate_bps(&self) -> f64 {
        per_second(self.before.wire_bits, self.now.wire_bits, self.seconds)
    }

    /// The backlog in bytes, and its time at this rate on the wire, in seconds.
    #[expect(clippy::cast_precision_loss, reason = "for the eye only")]
    pub(in crate::commands) fn backlog(&self, rate_bps: Option<u64>) -> (f64, Option<f64>) {
        let bytes = self.now.queued.bytes.as_u64() as f64;
        (bytes, rate_bps.map(|rate| bytes * self.wire_per_byte() * 8.0 / rate as f64))
    }

    /// Bytes on the wire for one byte of IP, so far.
    #[expect(clippy::cast_precision_loss, reason = "for the eye only")]
    pub(in crate::commands) fn wire_per_byte(&self) -> f64 {
        let line = &self.now.line;
        match line.transmitted.bytes {
            0 => 1.0,
            bytes => line.wire_bytes.as_u64() as f64 / bytes as f64,
        }
    }

    /// The series of the hop, with a line of this rate. Series of ACK regulation are there once it
    /// has dropped an ACK.
    #[expect(clippy::cast_precision_loss, reason = "for the eye only")]
    pub(in crate::commands) fn panel(&self, title: String, rate_bps: Option<u64>) -> Panel {
        let Self { seconds, before, now } = *self;
        let rate = Series::new("rate", Unit::BitsPerSecond, Some(self.rate_bps()));
        let rate = match rate_bps {
            Some(full) => rate.out_of(full as f64),
            None => rate,
        };
        let waited = Waited::of(Some(&before.waited), &now.waited);
        let acks = Waited::of(Some(&before.acks_waited), &now.acks_waited);
        let dropped = |wanted: fn(DropReason) -> bool| {
            per_second(packets(&before.line.dropped, wanted), packets(&now.line.dropped, wanted), seconds)
        };
        let (backlog, time) = self.backlog(rate_bps);
        let backlog = match time {
            Some(time) => Series::new("backlog", Unit::Seconds, Some(time)),
            None => Series::new("backlog", Unit::Bytes, Some(backlog)),
        };
        let mut series = vec![
            rate,
            backlog,
            Series::new("delay p50", Unit::Seconds, waited.p50),
            Series::new("delay p99", Unit::Seconds, waited.p99),
            Series::new("drops", Unit::PerSecond, Some(dropped(|reason| !reason.is_ack_regulation()))),
            Series::new("ACKs p99", Unit::Seconds, acks.p99),
        ];
        if packets(&now.line.dropped, DropReason::is_ack_regulation) > 0 {
            let thinned = Series::new("ACKs dropped", Unit::PerSecond, Some(dropped(DropReason::is_ack_regulation)));
            series.push(thinned);
        }
        Panel::new(title, series)
    }

    /// True for a hop that holds packets or has dropped some.
    pub(in crate::commands) fn is_notable(&self) -> bool {
        self.now.queued.bytes.as_u64() > 0 || packets(&self.now.line.dropped, |_| true) > 0
    }

    /// True for a hop that has dropped packets, or let one wait for [`NOTABLE`], so far.
    pub(in crate::commands) fn has_mattered(&self) -> bool {
        Duration::from_ns(self.now.waited.max()) >= NOTABLE || packets(&self.now.line.dropped, |_| true) > 0
    }

    /// Drops so far by reason: `17 tail, 3 aqm`.
    fn drops(&self) -> String {
        let dropped = &self.now.line.dropped;
        reasons(DropReason::ALL.into_iter().map(|reason| (reason.name(), dropped[reason.index()].packets)))
    }
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
        let [p50, p99] = Waited::of(Some(&hop.before.waited), &hop.now.waited).cells();
        let rate = Unit::BitsPerSecond.show(hop.rate_bps());
        let ms = time.map_or_else(|| "-".to_owned(), |time| format!("{:.1}", time * 1e3));
        table.row([name.to_owned(), rate, format!("{bytes:.0}"), ms, p50, p99, hop.drops()]);
    }
    table
}

//! The status of a running emulated line: each link in the style of `tc -s`, and the bytes on its
//! wire.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use lastmile_dashboard::report::Report;
use lastmile_live::bump::{DirectionReport, HopGlance, HopReport, States, intervals};
use lastmile_live::emulate::{Handle, Snapshot};
use lastmile_model::Hop;
use lastmile_queueing::line::trace::Trace;
use lastmile_units::{BitRate, Duration, Instant};
use serde::{Deserialize, Serialize};

use super::super::control::Seen;
use super::super::counters::{Amount, Counters, Spread, faults};
use super::super::live_view::hops;
use super::super::ticker::{in_brief, mega};
use super::super::web::{charts, flows};

/// The status of a line.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Status {
    pub(crate) scenario: String,
    /// Number of the line's process.
    pub(crate) pid: u32,
    pub(crate) uptime_s: f64,
    /// From the client to the server.
    pub(crate) up: Direction,
    /// From the server to the client.
    pub(crate) down: Direction,
}

/// One direction.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Direction {
    /// Packets read from the device at the sending end.
    pub(crate) received: Amount,
    /// Packets accepted by the device at the receiving end.
    pub(crate) sent: Amount,
    /// Time from when a packet was due at the receiving end to when it was sent there.
    pub(crate) lateness_s: Spread,
    /// Packets that took another path than planned, by reason.
    pub(crate) faults: BTreeMap<String, u64>,
    /// Links, in the order in which packets cross them.
    pub(crate) links: Vec<Link>,
    /// The index of the link that is the slowest at the start.
    #[serde(default)]
    pub(crate) slowest: Option<usize>,
}

/// One link of the scenario.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Link {
    pub(crate) name: String,
    /// `None` for transmission in no time. Of a line with a trace the mean of the last second, `None` in an outage.
    pub(crate) rate_bps: Option<u64>,
    pub(crate) encapsulation: String,
    #[serde(flatten)]
    pub(crate) line: Counters,
}

/// The constant properties of a link.
#[derive(Clone)]
struct Fixed {
    name: String,
    rate: Option<BitRate>,
    trace: Option<Trace>,
    encapsulation: String,
}

impl Fixed {
    fn of(hop: &Hop) -> Self {
        Self {
            name: hop.name.clone(),
            rate: hop.line.rate,
            trace: hop.line.trace.clone(),
            encapsulation: hop.line.link_layer.to_string(),
        }
    }

    /// The rate between two times, bit/s: the mean of a trace. `None` without a rate, and in an outage.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate of a trace fits")]
    fn rate_bps(&self, from: Instant, to: Instant) -> Option<u64> {
        let rate = match &self.trace {
            Some(trace) => trace.rate_between(from, to).map(|bps| bps.round() as u64),
            None => self.rate.map(BitRate::as_bps),
        };
        rate.filter(|bps| *bps > 0)
    }
}

/// The second that ends at `now`, over which a status has the mean of a rate that changes.
fn last_second(now: Instant) -> (Instant, Instant) {
    (Instant::ZERO + now.since(Instant::ZERO).saturating_sub(Duration::from_s(1)), now)
}

/// The time between two moments, or the last second before the first one.
fn span(before: Option<&States>, now: &States) -> (Instant, Instant) {
    before.map_or_else(|| last_second(now.at), |before| (before.at, now.at))
}

/// Builds a status from a snapshot.
pub(in crate::commands) struct Teller {
    scenario: String,
    up: Vec<Fixed>,
    down: Vec<Fixed>,
}

impl Teller {
    pub(in crate::commands) fn new(scenario: &str, up: &[Hop], down: &[Hop]) -> Self {
        let fixed = |hops: &[Hop]| hops.iter().map(Fixed::of).collect();
        Self { scenario: scenario.to_owned(), up: fixed(up), down: fixed(down) }
    }

    /// The report for the dashboard: charts of the delay over all links, of the slowest link of each direction, and of
    /// the links that have dropped packets or let one wait for a millisecond; tables of the largest flows.
    pub(in crate::commands) fn report(&self, before: Option<&States>, now: &States, handle: &Handle) -> Report {
        let hops = intervals(before, now);
        let links =
            [("up", self.up.as_slice()), ("down", self.down.as_slice())].into_iter().flat_map(|(name, fixed)| {
                let slowest = slowest(fixed);
                fixed.iter().enumerate().map(move |(index, link)| (name, link, Some(index) == slowest))
            });
        let shown = links.zip(&hops).filter(|((_, _, slowest), hop)| *slowest || hop.has_mattered());
        let (from, to) = span(before, now);
        let groups = shown.map(|((direction, fixed, _), hop)| {
            let rate_bps = fixed.rate_bps(from, to);
            let rate =
                rate_bps.and_then(BitRate::from_bps).map_or_else(|| "no rate".to_owned(), |rate| rate.to_string());
            let title = format!("{direction}, {}: {rate}, {}", fixed.name, fixed.encapsulation);
            charts::group(&format!("{direction} {}", fixed.name), title, rate_bps, hop, &[])
        });
        Report {
            status: format!("scenario {}", self.scenario),
            groups: std::iter::once(charts::crossed(before, now)).chain(groups).collect(),
            tables: flows::tables(handle, now.at),
            ..Report::default()
        }
    }

    pub(super) fn status(&self, snapshot: &Snapshot) -> Status {
        let now = Instant::ZERO + snapshot.uptime;
        Status {
            scenario: self.scenario.clone(),
            pid: std::process::id(),
            uptime_s: snapshot.uptime.as_secs_f64(),
            up: Direction::new(&snapshot.up, &self.up, now),
            down: Direction::new(&snapshot.down, &self.down, now),
        }
    }

    /// One line of at most 80 columns: for each direction the current rate of the slowest wire, the
    /// backlog and the drops.
    pub(super) fn brief(&self, before: &(Instant, Vec<HopGlance>), now: &(Instant, Vec<HopGlance>)) -> String {
        let seconds = now.0.since(before.0).as_secs_f64();
        let part = |name: &str, fixed: &[Fixed], first: usize| {
            let slowest = slowest(fixed)?;
            let (was, is) = (before.1.get(first + slowest)?, now.1.get(first + slowest)?);
            let hops = now.1.get(first..first + fixed.len())?;
            let waiting: u64 = hops.iter().map(|hop| hop.queued.packets.as_u64()).sum();
            let dropped: u64 = hops.iter().map(|hop| hop.dropped_packets).sum();
            let bits = is.wire_bits.saturating_sub(was.wire_bits);
            let busy =
                fixed[slowest].rate_bps(before.0, now.0).map(|rate| format!("{:3.0} % ", share(bits, rate, seconds)));
            Some(in_brief(name, &busy.unwrap_or_default(), mega(bits, seconds), waiting, dropped))
        };
        let parts = [part("up", &self.up, 0), part("down", &self.down, self.up.len())];
        parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
    }
}

impl Teller {
    /// The links in the interval between two moments: for each direction the series of its slowest
    /// link, and a table of these and of the links that hold packets or have dropped some.
    pub(in crate::commands) fn view(&self, before: Option<&States>, now: &States) -> lastmile_terminal::Snapshot {
        let hops = intervals(before, now);
        let directions = [("up", self.up.as_slice(), 0), ("down", self.down.as_slice(), self.up.len())];
        let (from, to) = span(before, now);
        let panels = directions.iter().filter_map(|&(name, fixed, first)| {
            let slowest = slowest(fixed)?;
            let Fixed { name: link, encapsulation, .. } = &fixed[slowest];
            let rate_bps = fixed[slowest].rate_bps(from, to);
            let title = match rate_bps.and_then(BitRate::from_bps) {
                Some(rate) => format!("{name}, link {link}: {rate}, {encapsulation}"),
                None => format!("{name}, link {link}"),
            };
            let shaper = hops.iter().skip(first).take(fixed.len()).find_map(|hop| hop.now.shaper_rate);
            Some(hops::panel(hops.get(first + slowest)?, title, rate_bps, shaper))
        });
        let rows = directions.into_iter().flat_map(|(_, fixed, first)| {
            let slowest = slowest(fixed);
            let hops = fixed.iter().zip(&hops[first.min(hops.len())..]).enumerate();
            let shown = hops.filter(move |(index, (_, hop))| Some(*index) == slowest || hop.is_notable());
            shown.map(move |(_, (fixed, hop))| (fixed.name.as_str(), fixed.rate_bps(from, to), *hop))
        });
        let (status, panels) = (String::new(), panels.collect());
        lastmile_terminal::Snapshot { status, panels, tables: vec![hops::table(rows)] }
    }
}

/// The index of the link that is the slowest at the start.
fn slowest(fixed: &[Fixed]) -> Option<usize> {
    (0..fixed.len()).min_by_key(|&at| fixed[at].rate.map_or(u64::MAX, BitRate::as_bps))
}

#[expect(clippy::cast_precision_loss, reason = "for the eye only")]
fn share(bits: u64, rate: u64, seconds: f64) -> f64 {
    (bits as f64 / seconds.max(1e-3) / rate as f64 * 100.0).min(100.0)
}

impl Direction {
    fn new(report: &DirectionReport, fixed: &[Fixed], now: Instant) -> Self {
        let (from, to) = last_second(now);
        let link = |(hop, fixed): (&HopReport, &Fixed)| Link {
            name: hop.name.clone(),
            rate_bps: fixed.rate_bps(from, to),
            encapsulation: fixed.encapsulation.clone(),
            line: Counters::of(hop),
        };
        Self {
            received: report.received.into(),
            sent: report.sent.into(),
            lateness_s: Spread::of(&report.lateness),
            faults: faults(report),
            links: report.hops.iter().zip(fixed).map(link).collect(),
            slowest: slowest(fixed),
        }
    }

    /// The slowest link, those with drops and those with a shaper that a controller steers, with their counters; the
    /// names of the others.
    fn text(&self, name: &str, since: Option<(&Self, f64)>) -> String {
        let mut text = String::new();
        let mut say = |line: std::fmt::Arguments<'_>| writeln!(text, "{line}").expect("a string takes all");
        let Self { received, sent, .. } = self;
        let mut quiet = Vec::new();
        for (index, link) in self.links.iter().enumerate() {
            if Some(index) != self.slowest && link.line.dropped.is_empty() && link.line.shaper_rate_bps.is_none() {
                quiet.push(link.name.as_str());
                continue;
            }
            let rate = link.rate_bps.and_then(BitRate::from_bps);
            let rate = rate.map_or_else(|| "no rate".to_owned(), |rate| rate.to_string());
            say(format_args!("{name}, link {}: {rate}, {}", link.name, link.encapsulation));
            let before = since.and_then(|(before, seconds)| Some((&before.links.get(index)?.line, seconds)));
            say(format_args!("{}", link.line.lines(before).trim_end()));
        }
        if !quiet.is_empty() {
            say(format_args!("  nothing dropped on {}", quiet.join(", ")));
        }
        say(format_args!(
            "  in {} bytes {} pkt, out {} bytes {} pkt",
            received.bytes, received.packets, sent.bytes, sent.packets
        ));
        if let Some(words) = self.lateness_s.words() {
            say(format_args!("  late {words}"));
        }
        for (fault, count) in &self.faults {
            say(format_args!("  {fault}: {count}"));
        }
        text
    }
}

impl Status {
    /// The status for a terminal.
    pub(super) fn text(seen: &Seen<'_, Self>) -> String {
        let (now, before) = (seen.now, seen.before);
        let since = before.map(|before| now.uptime_s - before.uptime_s);
        let texts = [("up", &now.up, before.map(|b| &b.up)), ("down", &now.down, before.map(|b| &b.down))]
            .map(|(name, direction, before)| direction.text(name, before.zip(since)));
        let head = format!("{} for {:.1} s, process {}", now.scenario, now.uptime_s, now.pid);
        format!("{head}\n{}{}", texts[0], texts[1])
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use lastmile_queueing::line::trace::{Step, Steps};
    use lastmile_units::Ratio;

    use super::*;

    /// 4 Mbit/s for three seconds, an outage of one, then 10 Mbit/s.
    #[test]
    fn the_rate_of_a_line_that_changes_is_that_of_the_time_asked_for() {
        let step = |at, rate| Step { at: Duration::from_s(at), rate, delay: Duration::ZERO, loss: Ratio::ZERO };
        let mbit = |mbit| Some(BitRate::from_mbit_per_s(mbit));
        let steps = Steps::new(vec![step(0, mbit(4)), step(3, None), step(4, mbit(10))], None).unwrap();
        let trace = Some(Trace::Steps(Arc::new(steps)));
        let line = Fixed { name: "down".to_owned(), rate: mbit(4), trace, encapsulation: String::new() };
        let at = |second| Instant::ZERO + Duration::from_s(second);
        let last = |second| {
            let (from, to) = last_second(at(second));
            line.rate_bps(from, to)
        };
        assert_eq!([last(2), last(4), last(6)], [Some(4_000_000), None, Some(10_000_000)]);
        assert_eq!(line.rate_bps(at(2), at(5)), Some(4_666_667), "a second of each");
        assert_eq!(Fixed { trace: None, ..line }.rate_bps(at(2), at(5)), Some(4_000_000));
    }

    /// A status has no rate of a link in an outage, which is when its backlog matters.
    #[test]
    fn the_slowest_link_is_shown_in_an_outage_too() {
        let gigabit = Some(1_000_000_000);
        let link = |name: &str, rate_bps, packets| Link {
            name: name.to_owned(),
            rate_bps,
            encapsulation: "raw".to_owned(),
            line: Counters { queued: Amount { packets, bytes: 1500 * packets }, ..Counters::default() },
        };
        let direction = Direction {
            received: Amount::default(),
            sent: Amount::default(),
            lateness_s: Spread::default(),
            faults: BTreeMap::new(),
            links: vec![link("lan", gigabit, 0), link("up", None, 40), link("backbone", gigabit, 0)],
            slowest: Some(1),
        };
        let text = direction.text("up", None);
        assert!(text.contains("up, link up: no rate, raw\n") && text.contains("backlog 60000b 40p"), "{text}");
        assert!(text.contains("nothing dropped on lan, backbone"), "{text}");
    }

    /// One column stays free, so that the line does not wrap.
    #[test]
    fn a_busy_line_fits_in_80_columns() {
        let one = |name, rate| in_brief(name, "100 % ", rate, 1234, 9999);
        assert_eq!(one("up", 0.5124), "up 100 % 0.512Mbit 1234p 9999 dropped");
        assert!(format!("{}; {}", one("up", 9.9), one("down", 149.76)).len() < 80);
        assert_eq!(in_brief("up", "", 24.04, 0, 0), "up 24.0Mbit 0p 0 dropped");
    }
}

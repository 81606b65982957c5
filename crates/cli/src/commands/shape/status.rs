//! The status of a shaper, in the style of `tc -s`, and the bytes on the wire.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use lastmile_linklayer::LinkLayer;
use lastmile_live::autorate::Counts;
use lastmile_live::bump::{DirectionReport, HopReport};
use lastmile_live::shape::sandbox::GivenUp;
use lastmile_live::shape::{Snapshot, World};
use lastmile_results::schema::Delay;
use lastmile_scenario::policy::{Class, Numbers, Policy, class_at};
use lastmile_text::table::{Kind, Table};
use lastmile_units::{BitRate, ByteCount};
use serde::{Deserialize, Serialize};

use super::super::control::Seen;
use super::super::counters::{Amount, Counters, Spread, faults};
use super::start::Start;

/// Sizes of IP packets whose bytes on the wire are shown.
const EXAMPLES: [u64; 4] = [40, 52, 576, 1500];

/// The status of a shaper.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Status {
    /// The policy in force.
    pub(crate) policy: String,
    #[serde(flatten)]
    pub(crate) place: Place,
    pub(crate) rights: Rights,
    /// Messages about interfaces that are down or left the bridge.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) faults: Vec<String>,
    /// Number of the shaper's process.
    pub(crate) pid: u32,
    pub(crate) uptime_s: f64,
    pub(crate) reloads: Reloads,
    /// Pings of `[autorate]`, if the policy in force has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reflectors: Option<Reflectors>,
    /// From the LAN to the line.
    pub(crate) up: Direction,
    /// From the line to the LAN.
    pub(crate) down: Direction,
}

/// The position of the shaper.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Place {
    pub(crate) lan: String,
    pub(crate) wan: String,
    pub(crate) bridge: String,
    /// Packet paths on the side of the LAN and on that of the line.
    pub(crate) packet_paths: [String; 2],
    /// The interfaces that are no ports of the bridge any more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) left_bridge: Vec<String>,
}

impl Place {
    pub(super) fn of(start: &Start, world: &World) -> Self {
        let (lan, wan, bridge) = (start.lan.clone(), start.wan.clone(), world.bridge().to_owned());
        Self { lan, wan, bridge, packet_paths: world.paths().map(str::to_owned), left_bridge: Vec::new() }
    }

    pub(super) fn words(&self) -> String {
        let Self { lan, wan, bridge, packet_paths: [lan_path, wan_path], left_bridge } = self;
        let ports = match left_bridge.as_slice() {
            [] => format!("ports of {bridge}"),
            left => format!("without {} in {bridge}", left.join(" and ")),
        };
        format!("{lan} (LAN) and {wan} (line), {ports}\n{lan}: {lan_path}\n{wan}: {wan_path}")
    }
}

/// The remaining rights of the process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Rights {
    /// Names of the remaining capabilities.
    pub(crate) capabilities: Vec<String>,
    /// Whether file access is limited to what is needed, or why not.
    pub(crate) files: String,
    /// Whether system calls are limited to what is needed, or why not.
    pub(crate) system_calls: String,
}

impl Rights {
    pub(super) fn words(&self) -> String {
        let Self { capabilities, files, system_calls } = self;
        let capabilities = if capabilities.is_empty() { "none".to_owned() } else { capabilities.join(" ") };
        format!("capabilities: {capabilities}; files: {files}; system calls: {system_calls}")
    }
}

impl From<&GivenUp> for Rights {
    fn from(given_up: &GivenUp) -> Self {
        let GivenUp { capabilities, files, system_calls } = given_up;
        let (files, system_calls) = (files.to_string(), system_calls.to_string());
        Self { capabilities: capabilities.clone(), files, system_calls }
    }
}

/// Counts of the policy's reloads.
#[derive(Clone, Default, Debug, Serialize, Deserialize)]
pub(crate) struct Reloads {
    pub(crate) done: u64,
    pub(crate) failed: u64,
    /// The error of the last reload, if it failed.
    pub(crate) last_error: Option<String>,
}

/// Counts of pings to reflectors, since the policy is in force.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Reflectors {
    pub(crate) pings: u64,
    pub(crate) replies: u64,
    #[serde(default)]
    pub(crate) replaced: u64,
}

impl From<Counts> for Reflectors {
    fn from(Counts { pings, replies, replaced }: Counts) -> Self {
        Self { pings, replies, replaced }
    }
}

/// Counters of one direction.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Direction {
    pub(crate) wire: Wire,
    pub(crate) received: Amount,
    pub(crate) sent: Amount,
    #[serde(flatten)]
    pub(crate) line: Counters,
    /// The policy's classes, with counts from when the policy came into force.
    pub(crate) classes: Vec<ClassStatus>,
    /// Time from when a packet was due to when it was sent.
    pub(crate) lateness_s: Spread,
    /// Frames that took another path than planned, by reason, and overlong sleeps of the program,
    /// without zeros.
    pub(crate) faults: BTreeMap<String, u64>,
    /// Every counter of every queue, without zeros.
    pub(crate) counters: Vec<Counter>,
}

/// The line, and bytes of packets on it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Wire {
    /// `None`: nothing shapes this direction.
    pub(crate) rate_bps: Option<u64>,
    pub(crate) encapsulation: String,
    /// IP bytes, and bytes on the wire.
    pub(crate) examples: Vec<(u64, u64)>,
}

/// Counters of a class.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ClassStatus {
    pub(crate) name: String,
    pub(crate) priority: u8,
    /// Rate and ceiling at the present rate of the shaper.
    pub(crate) rate_bps: Option<u64>,
    pub(crate) ceil_bps: u64,
    pub(crate) sent: Amount,
    /// Packets dropped in its queue, or in a queue below that.
    pub(crate) dropped_packets: u64,
    /// These packets by reason, without zeros.
    pub(crate) dropped: BTreeMap<String, u64>,
    /// Its backlog.
    pub(crate) queued: Amount,
    /// Times that it was held back at its rate, if its scheduler has rates.
    pub(crate) overlimits: u64,
    /// Delay from arrival to the start of transmission, since the policy came into force.
    pub(crate) waited_s: Spread,
    /// Each of these delays in nanoseconds, to two digits, and its number of packets; only in a whole status.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) waits_ns: Vec<(u64, u64)>,
}

/// One counter of one queue.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Counter {
    pub(crate) path: String,
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) value: u64,
}

impl Status {
    pub(super) fn new(
        policy: &Policy,
        (place, rights): (&Place, &Rights),
        reloads: &Reloads,
        snapshot: &Snapshot,
    ) -> Self {
        let (line, [up, down], shapers) = (&policy.line, policy.shaped_line(), policy.shapers());
        let behind: &[Class] = policy.down.as_ref().map_or(&[], |down| &down.classes);
        Self {
            policy: policy.name.clone(),
            place: place.clone(),
            rights: rights.clone(),
            faults: Vec::new(),
            pid: std::process::id(),
            uptime_s: snapshot.uptime.as_secs_f64(),
            reloads: reloads.clone(),
            reflectors: None,
            up: Direction::new(&snapshot.up, up, &line.up_layer, (&policy.classes, shapers[0])),
            down: Direction::new(&snapshot.down, down, &line.down_layer, (behind, shapers[1])),
        }
    }

    /// This status without what only a request for a whole one is answered with.
    pub(super) fn brief(mut self) -> Self {
        for class in self.up.classes.iter_mut().chain(&mut self.down.classes) {
            class.waits_ns = Vec::new();
        }
        self
    }

    /// The status for a terminal.
    pub(super) fn table(seen: &Seen<'_, Self>) -> String {
        let (now, before) = (seen.now, seen.before);
        let since = before.map(|before| now.uptime_s - before.uptime_s);
        let head = now.head();
        let directions = [("up", &now.up, before.map(|b| &b.up)), ("down", &now.down, before.map(|b| &b.down))];
        let tables = directions.map(|(name, direction, before)| direction.table(name, before.zip(since)));
        format!("{head}\n{}\n{}", tables[0], tables[1])
    }

    /// Position, time and policy.
    fn head(&self) -> String {
        let mut text =
            format!("{} for {:.1} s, process {}, on {}\n", self.policy, self.uptime_s, self.pid, self.place.words());
        // Writing to a string cannot fail, here and below.
        for fault in &self.faults {
            let _ = writeln!(text, "{fault}");
        }
        let _ = writeln!(text, "{}", self.rights.words());
        let Reloads { done, failed, last_error } = &self.reloads;
        if done + failed > 0 {
            let _ = writeln!(text, "policy reloads: {done}, refused: {failed}");
        }
        if let Some(Reflectors { pings, replies, replaced }) = self.reflectors {
            let _ = writeln!(text, "reflectors: {pings} pings, {replies} replies, {replaced} replaced");
        }
        if let Some(error) = last_error {
            let _ = writeln!(text, "last refused: {error}");
        }
        text
    }
}

impl Direction {
    /// `classes` are below a shaper that was built with a rate.
    fn new(
        report: &DirectionReport,
        rate: Option<BitRate>,
        link_layer: &LinkLayer,
        classes: (&[Class], Option<BitRate>),
    ) -> Self {
        let hop = &report.hops[0];
        let on_wire = |&bytes: &u64| (bytes, link_layer.on_wire(ByteCount::new(bytes)).as_u64());
        let counters = hop.queue_counters.iter().filter(|counter| counter.value > 0).map(|counter| Counter {
            path: counter.path.clone(),
            kind: counter.kind.to_owned(),
            name: counter.name.to_owned(),
            value: counter.value,
        });
        let counters: Vec<Counter> = counters.collect();
        Self {
            wire: Wire {
                rate_bps: rate.map(BitRate::as_bps),
                encapsulation: link_layer.to_string(),
                examples: EXAMPLES.iter().map(on_wire).collect(),
            },
            received: report.received.into(),
            sent: report.sent.into(),
            line: Counters::of(hop),
            classes: ClassStatus::all(classes, &counters, hop),
            lateness_s: Spread::of(&report.lateness),
            faults: faults(report),
            counters,
        }
    }

    fn table(&self, name: &str, since: Option<(&Self, f64)>) -> String {
        let Wire { rate_bps, encapsulation, examples } = &self.wire;
        let rate =
            rate_bps.and_then(BitRate::from_bps).map_or_else(|| "not shaped".to_owned(), |rate| rate.to_string());
        let examples: Vec<String> = examples.iter().map(|(ip, wire)| format!("{ip} -> {wire}")).collect();
        let mut text = format!("{name}: {rate}, {encapsulation}\n");
        text.push_str(&self.line.lines(since.map(|(before, seconds)| (&before.line, seconds))));
        let mut say = |line: std::fmt::Arguments<'_>| writeln!(text, "  {line}").expect("a string takes all");
        say(format_args!("IP bytes -> bytes on the wire: {}", examples.join(", ")));
        let Self { received, sent, .. } = self;
        say(format_args!(
            "in {} bytes {} pkt, out {} bytes {} pkt",
            received.bytes, received.packets, sent.bytes, sent.packets
        ));
        if let Some(words) = self.lateness_s.words() {
            say(format_args!("late {words}"));
        }
        let urgent: u64 =
            self.counters.iter().filter(|c| c.kind == "drain" && c.name == "urgent").map(|c| c.value).sum();
        if urgent > 0 {
            // The drain passes them ahead, so no class below counts them.
            say(format_args!("urgent {urgent} packets, let by before the classes"));
        }
        for (fault, count) in &self.faults {
            say(format_args!("{fault}: {count}"));
        }
        if !self.classes.is_empty() {
            text.push_str(&classes(&self.classes));
        }
        text
    }
}

/// The table of classes, within 80 columns unless names or counts are long.
fn classes(classes: &[ClassStatus]) -> String {
    let names = ["prio", "rate", "ceil", "pkt", "drop", "overlimits", "p50 ms", "p99", "max"];
    let mut table = Table::new([("class", Kind::Name)].into_iter().chain(names.map(|name| (name, Kind::Number))));
    let rate = |bps: u64| BitRate::from_bps(bps).map_or_else(|| "-".to_owned(), short);
    for class in classes {
        let Delay { p50, p99, max, .. } = class.waited_s.delay;
        let waited = [p50, p99, max].map(|waited| waited.map_or_else(|| "-".to_owned(), |s| format!("{:.1}", s * 1e3)));
        let cells = [
            class.name.clone(),
            class.priority.to_string(),
            class.rate_bps.map_or_else(|| "-".to_owned(), rate),
            rate(class.ceil_bps),
            class.sent.packets.to_string(),
            class.dropped_packets.to_string(),
            class.overlimits.to_string(),
        ];
        table.row(cells.into_iter().chain(waited));
    }
    table.render()
}

/// A rate in the form of tc(8): `768Kbit`.
fn short(rate: BitRate) -> String {
    match rate.as_bps() {
        bps if bps >= 1_000_000 && bps % 1_000_000 == 0 => format!("{}Mbit", bps / 1_000_000),
        bps if bps >= 1000 => format!("{}Kbit", bps / 1000),
        bps => format!("{bps}bit"),
    }
}

impl ClassStatus {
    /// The classes, with the counters of the scheduler and of the queues below it.
    fn all((classes, shaper): (&[Class], Option<BitRate>), counters: &[Counter], hop: &HopReport) -> Vec<Self> {
        let numbers = Numbers::of(classes, counters.iter().map(|c| (c.path.as_str(), c.kind.as_str())));
        let status = |(index, class): (usize, &Class)| {
            let own = numbers.get(index);
            let of = |wanted: &dyn Fn(&str, &str) -> bool| -> u64 {
                let belongs = |c: &&Counter| {
                    class_at(&c.path).is_some_and(|(number, rest)| Some(number) == own && wanted(rest, &c.name))
                };
                counters.iter().filter(belongs).map(|c| c.value).sum()
            };
            let mut dropped: BTreeMap<String, u64> = BTreeMap::new();
            for c in counters {
                if let Some((number, rest)) = class_at(&c.path)
                    && let Some(reason) = c.name.strip_prefix("dropped_")
                    && Some(number) == own
                    && rest.starts_with(".queue")
                {
                    *dropped.entry(reason.to_owned()).or_default() += c.value;
                }
            }
            let queued = hop.class_backlogs.iter().find(|(number, _)| Some(*number) == own);
            let waited = hop.class_waited.get(index);
            let (rate, ceil) = class.rates(shaper, hop.shaper_rate);
            Self {
                name: class.name.clone(),
                priority: class.priority,
                rate_bps: rate.map(BitRate::as_bps),
                ceil_bps: ceil.as_bps(),
                sent: Amount {
                    packets: of(&|rest, name| rest.is_empty() && name == "sent_packets"),
                    bytes: of(&|rest, name| rest.is_empty() && name == "sent_bytes"),
                },
                dropped_packets: dropped.values().sum(),
                dropped,
                queued: queued.map(|(_, backlog)| (*backlog).into()).unwrap_or_default(),
                overlimits: of(&|rest, name| rest.is_empty() && name == "overlimits"),
                waited_s: waited.map(Spread::of).unwrap_or_default(),
                // Two digits: a watcher asks each second.
                waits_ns: waited.map(|waits| waits.to::<7>().ends().collect()).unwrap_or_default(),
            }
        };
        classes.iter().enumerate().map(status).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_rate_is_in_mbit_where_it_is_whole_mbit() {
        let rates = [999, 409_600, 1_000_000, 9_500_000, 19_800_000, 20_000_000, 1_000_000_000];
        let words = rates.map(|bps| short(BitRate::from_bps(bps).unwrap()));
        assert_eq!(words, ["999bit", "409Kbit", "1Mbit", "9500Kbit", "19800Kbit", "20Mbit", "1000Mbit"]);
    }
}

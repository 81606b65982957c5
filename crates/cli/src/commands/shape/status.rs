//! What a shaper has done: as `tc -s` would show it, and what the bytes were on the wire.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use lastmile_linklayer::LinkLayer;
use lastmile_live::bump::DirectionReport;
use lastmile_live::io::Refusal;
use lastmile_live::shape::{Snapshot, World};
use lastmile_queueing::DropReason;
use lastmile_queueing::line::Count;
use lastmile_results::schema::Delay;
use lastmile_scenario::policy::{Class, Policy};
use lastmile_units::{BitRate, ByteCount};
use serde::{Deserialize, Serialize};

use crate::table::{Align, Table};

use super::super::emulate::summary::seconds;
use super::Start;

/// Sizes of IP packets whose cost on the wire is shown.
const EXAMPLES: [u64; 4] = [40, 52, 576, 1500];

/// All of it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Status {
    /// The policy in force.
    pub(crate) policy: String,
    #[serde(flatten)]
    pub(crate) place: Place,
    pub(crate) uptime_s: f64,
    pub(crate) reloads: Reloads,
    /// From the LAN to the line.
    pub(crate) up: Direction,
    /// From the line to the LAN.
    pub(crate) down: Direction,
}

/// Where it stands.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Place {
    pub(crate) lan: String,
    pub(crate) wan: String,
    pub(crate) bridge: String,
    /// By what packets come and go, on the side of the LAN and on that of the line.
    pub(crate) packet_paths: [String; 2],
}

impl Place {
    pub(super) fn of(start: &Start, world: &World) -> Self {
        let (lan, wan, bridge) = (start.lan.clone(), start.wan.clone(), world.bridge().to_owned());
        Self { lan, wan, bridge, packet_paths: world.paths().map(str::to_owned) }
    }

    pub(super) fn words(&self) -> String {
        let Self { lan, wan, bridge, packet_paths: [lan_path, wan_path] } = self;
        format!("{lan} (LAN) and {wan} (line), ports of {bridge}\n{lan}: {lan_path}\n{wan}: {wan_path}")
    }
}

/// How often the policy was read again.
#[derive(Clone, Default, Debug, Serialize, Deserialize)]
pub(crate) struct Reloads {
    pub(crate) done: u64,
    pub(crate) failed: u64,
    /// Why the last one failed, if it did.
    pub(crate) last_error: Option<String>,
}

/// What was done in one direction.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Direction {
    pub(crate) wire: Wire,
    pub(crate) received: Amount,
    pub(crate) sent: Amount,
    /// Bytes that they took on the wire of the line.
    pub(crate) wire_bytes: u64,
    /// What the queues dropped, by reason.
    pub(crate) dropped: BTreeMap<String, Amount>,
    pub(crate) queued: Amount,
    pub(crate) most_queued: Amount,
    /// The policy's classes. They count from when the policy came into force.
    pub(crate) classes: Vec<ClassStatus>,
    /// From arrival to the start of transmission.
    pub(crate) waited_s: Delay,
    /// The same for pure ACKs alone.
    pub(crate) acks_waited_s: Delay,
    /// From when a packet was due to when it was sent.
    pub(crate) lateness_s: Delay,
    /// Frames that went another way than planned, by reason; those that count nothing are left out.
    pub(crate) faults: BTreeMap<String, u64>,
    /// Every counter of every queue that counts something.
    pub(crate) counters: Vec<Counter>,
}

/// The line, and what packets take on it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Wire {
    pub(crate) rate_bps: u64,
    pub(crate) encapsulation: String,
    /// IP bytes, and bytes on the wire.
    pub(crate) examples: Vec<(u64, u64)>,
}

/// Packets and their IP bytes.
#[derive(Clone, Copy, Default, Debug, Serialize, Deserialize)]
pub(crate) struct Amount {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
}

/// What a class has done.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ClassStatus {
    pub(crate) name: String,
    pub(crate) priority: u8,
    pub(crate) rate_bps: Option<u64>,
    pub(crate) ceil_bps: u64,
    pub(crate) sent: Amount,
    /// Dropped in its queue.
    pub(crate) dropped_packets: u64,
}

/// One counter of one queue.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Counter {
    pub(crate) path: String,
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) value: u64,
}

impl From<Count> for Amount {
    fn from(count: Count) -> Self {
        Self { packets: count.packets, bytes: count.bytes }
    }
}

impl Status {
    pub(super) fn new(policy: &Policy, place: &Place, reloads: &Reloads, snapshot: &Snapshot) -> Self {
        let line = &policy.line;
        let behind: &[Class] = policy.down.as_ref().map_or(&[], |down| &down.classes);
        Self {
            policy: policy.name.clone(),
            place: place.clone(),
            uptime_s: snapshot.uptime.as_secs_f64(),
            reloads: reloads.clone(),
            up: Direction::new(&snapshot.up, line.up, &line.up_layer, &policy.classes),
            down: Direction::new(&snapshot.down, line.down, &line.down_layer, behind),
        }
    }

    /// For a terminal.
    pub(super) fn table(&self) -> String {
        let mut text = format!("{} for {:.1} s on {}\n", self.policy, self.uptime_s, self.place.words());
        let Reloads { done, failed, last_error } = &self.reloads;
        if done + failed > 0 {
            // A string takes all.
            let _ = writeln!(text, "policy read again {done} times, refused {failed} times");
        }
        if let Some(error) = last_error {
            let _ = writeln!(text, "last refused: {error}");
        }
        for (name, direction) in [("up", &self.up), ("down", &self.down)] {
            text.push('\n');
            text.push_str(&direction.table(name));
        }
        text
    }
}

impl Direction {
    fn new(report: &DirectionReport, rate: BitRate, link_layer: &LinkLayer, classes: &[Class]) -> Self {
        let hop = &report.hops[0];
        let on_wire = |&bytes: &u64| (bytes, link_layer.on_wire(ByteCount::new(bytes)).as_u64());
        let dropped = DropReason::ALL.iter().map(|reason| (reason.name(), hop.line.dropped[reason.index()]));
        let counters = hop.queue_counters.iter().filter(|counter| counter.value > 0).map(|counter| Counter {
            path: counter.path.clone(),
            kind: counter.kind.to_owned(),
            name: counter.name.to_owned(),
            value: counter.value,
        });
        let counters: Vec<Counter> = counters.collect();
        let amount = |backlog: lastmile_queueing::Backlog| Amount {
            packets: backlog.packets.as_u64(),
            bytes: backlog.bytes.as_u64(),
        };
        Self {
            wire: Wire {
                rate_bps: rate.as_bps(),
                encapsulation: link_layer.to_string(),
                examples: EXAMPLES.iter().map(on_wire).collect(),
            },
            received: report.received.into(),
            sent: report.sent.into(),
            wire_bytes: hop.line.wire_bytes.as_u64(),
            dropped: dropped
                .filter(|(_, count)| count.packets > 0)
                .map(|(name, count)| (name.to_owned(), count.into()))
                .collect(),
            queued: amount(hop.queued),
            most_queued: amount(hop.most_queued),
            classes: ClassStatus::all(classes, &counters),
            waited_s: seconds(&hop.waited),
            acks_waited_s: seconds(&hop.acks_waited),
            lateness_s: seconds(&report.lateness),
            faults: faults(report),
            counters,
        }
    }

    fn table(&self, name: &str) -> String {
        let Wire { rate_bps, encapsulation, examples } = &self.wire;
        let rate = BitRate::from_bps(*rate_bps).map_or_else(|| "-".to_owned(), |rate| rate.to_string());
        let examples: Vec<String> = examples.iter().map(|(ip, wire)| format!("{ip} -> {wire}")).collect();
        let mut text = format!("{name}: {rate}, {encapsulation}; bytes on the wire: {}\n", examples.join(", "));
        let mut say = |line: std::fmt::Arguments<'_>| writeln!(text, "  {line}").expect("a string takes all");
        let Self { received, sent, queued, most_queued, .. } = self;
        say(format_args!("received {} packets, {} bytes", received.packets, received.bytes));
        say(format_args!("sent {} packets, {} bytes, {} on the wire", sent.packets, sent.bytes, self.wire_bytes));
        for (reason, amount) in &self.dropped {
            say(format_args!("dropped {} packets, {} bytes: {reason}", amount.packets, amount.bytes));
        }
        say(format_args!(
            "queued {} packets, {} bytes; at most {} and {}",
            queued.packets, queued.bytes, most_queued.packets, most_queued.bytes
        ));
        for (what, delay) in
            [("waited", &self.waited_s), ("ACKs waited", &self.acks_waited_s), ("late", &self.lateness_s)]
        {
            if let (Some(p50), Some(p99), Some(max)) = (delay.p50, delay.p99, delay.max) {
                let [p50, p99, max] = [p50, p99, max].map(|s| s * 1e3);
                say(format_args!("{what}: p50 {p50:.3} ms, p99 {p99:.3} ms, max {max:.3} ms"));
            }
        }
        let urgent: u64 =
            self.counters.iter().filter(|c| c.kind == "drain" && c.name == "urgent").map(|c| c.value).sum();
        if urgent > 0 {
            // The drain lets them by, so no class below counts them.
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

fn classes(classes: &[ClassStatus]) -> String {
    let names = ["priority", "rate", "ceil", "sent packets", "bytes", "dropped"];
    let mut table = Table::new([("  class", Align::Left)].into_iter().chain(names.map(|name| (name, Align::Right))));
    let rate = |bps: u64| BitRate::from_bps(bps).map_or_else(|| "-".to_owned(), |rate| rate.to_string());
    for class in classes {
        table.row([
            format!("  {}", class.name),
            class.priority.to_string(),
            class.rate_bps.map_or_else(|| "-".to_owned(), rate),
            rate(class.ceil_bps),
            class.sent.packets.to_string(),
            class.sent.bytes.to_string(),
            class.dropped_packets.to_string(),
        ]);
    }
    table.render()
}

impl ClassStatus {
    /// The classes, with what the scheduler and the queues below it count.
    fn all(classes: &[Class], counters: &[Counter]) -> Vec<Self> {
        // In rate-based trees the line itself is class 0; a scheduler by priority has its own order.
        let place = |index: usize, class: &Class| {
            let scheduler = counters.iter().find(|c| at(&c.path).is_some_and(|(_, rest)| rest.is_empty()))?;
            match scheduler.kind.as_str() {
                "htb" | "cbq" => Some(index + 1),
                "priority" => {
                    let before = |(other, c): (usize, &Class)| {
                        c.queue.is_some() && (c.priority, other) < (class.priority, index)
                    };
                    Some(classes.iter().enumerate().filter(|&pair| before(pair)).count())
                }
                _ => Some(index),
            }
        };
        let status = |(index, class): (usize, &Class)| {
            let own = place(index, class);
            let of = |wanted: &dyn Fn(&str, &str) -> bool| -> u64 {
                let belongs = |c: &&Counter| {
                    at(&c.path).is_some_and(|(number, rest)| Some(number) == own && wanted(rest, &c.name))
                };
                counters.iter().filter(belongs).map(|c| c.value).sum()
            };
            Self {
                name: class.name.clone(),
                priority: class.priority,
                rate_bps: class.rate.map(BitRate::as_bps),
                ceil_bps: class.ceil.as_bps(),
                sent: Amount {
                    packets: of(&|rest, name| rest.is_empty() && name == "sent_packets"),
                    bytes: of(&|rest, name| rest.is_empty() && name == "sent_bytes"),
                },
                dropped_packets: of(&|rest, name| rest == ".queue" && name.starts_with("dropped_")),
            }
        };
        classes.iter().enumerate().map(status).collect()
    }
}

/// The number of the class in a path such as `queue.classes.3.queue`, and what follows it.
fn at(path: &str) -> Option<(usize, &str)> {
    let (_, class) = path.split_once("classes.")?;
    let end = class.find('.').unwrap_or(class.len());
    Some((class[..end].parse().ok()?, &class[end..]))
}

fn faults(report: &DirectionReport) -> BTreeMap<String, u64> {
    let port = &report.port;
    let refused = Refusal::ALL.iter().map(|refusal| (refusal.name(), report.refused[refusal.index()].packets));
    let faults = [
        ("unreadable", report.unreadable),
        ("not_ip", report.not_ip),
        ("unnumbered", report.unnumbered),
        ("oversize", report.oversize.packets),
        ("dropped_unread", port.dropped_unread),
        ("cut_short", port.cut_short),
        ("offload_refused", port.offloads.refused),
    ];
    faults.into_iter().chain(refused).filter(|(_, count)| *count > 0).map(|(name, n)| (name.to_owned(), n)).collect()
}

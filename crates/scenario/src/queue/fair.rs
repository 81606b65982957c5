//! Queues that are fair to flows.

use std::num::NonZeroU32;

use lastmile_queueing::Overflow;
use lastmile_queueing::aqm::codel::{CeThreshold, Selector};
use lastmile_queueing::fair::{Among, Class, FlowKeys, Per, drr, fq_codel, fq_pie, sfq, wf2q_plus, wfq};
use lastmile_units::{ByteCount, Duration, PacketCount, Ratio, WireBytes};

use super::aqm::{CE_THRESHOLD, ECN, INTERVAL, LARGEST, TARGET, codel_waits, pie_control, pie_keys, pie_waits};
use super::sched::{class_spec, classes};
use super::words::MaskedByte;
use super::{BELOW, CLASS_LIMIT, DROP, Readable, Waits, Wire, capacity};
use crate::reader::Table;
use crate::schema::{Key, Kind, Section};

const EXACT: Key = Key::with_default(
    "exact",
    Kind::Flag,
    "false",
    "Each flow has a queue of its own, in place of the buckets of a hash.",
);
const PER: Key = Key::with_default(
    "per",
    Kind::Choice(&["flow", "source", "destination", "hosts"]),
    "flow",
    "Each of these has a queue: flow, source address, destination address, or pair of addresses. A host with many \
     flows then gets no more than one with a few.",
);
const SEED: Key =
    Key::with_default("seed", Kind::Count, "1", "Which flows share a bucket, with the scenario's seed and the link.");

impl Readable for sfq::Config {
    const SECTION: &'static Section = &Section {
        heading: "`kind = \"sfq\"`",
        about: "SFQ (McKenney 1990): the buckets of a hash of flows take turns, and the longest queue pays when \
                there is no room.",
        keys: &[
            Key::with_default("divisor", Kind::Count, "1024", "Buckets of the hash that distinguishes flows.")
                .at_least("1")
                .at_most("65536"),
            EXACT,
            PER,
            SEED,
            Key::optional(
                "quantum",
                Kind::WireBytes,
                "a packet of `largest`",
                "Bytes that a queue may send in a turn.",
            ),
            Key::with_default("largest", Kind::Bytes, "1500 B", "The largest IP packet to expect.")
                .at_least("1 B")
                .at_most("65535 B"),
            Key::optional(
                "perturb",
                Kind::Time,
                "never",
                "After how long the hash changes, so that other flows share a bucket. No flow is reordered by it.",
            ),
            Key::with_default("limit", PACKETS_OR_TIME, "127 packets", MOST),
            Key::with_default(
                "depth",
                PACKETS_OR_TIME,
                "127 packets",
                "Largest number of packets in one queue, likewise.",
            ),
            Key::with_default(
                "drop",
                Kind::Choice(&["tail", "head"]),
                "tail",
                "Packet of the longest queue that is dropped when the limit is exceeded: its newest, or its oldest.",
            ),
        ],
    };

    fn read(table: &Table<'_>, wire: &Wire, _depth: usize) -> Option<Self> {
        let flows = keys(table, "divisor");
        let per = per(table);
        let quantum: Option<WireBytes> = table.optional("quantum");
        let largest: Option<ByteCount> = table.get("largest");
        let perturb: Option<Duration> = table.optional("perturb");
        let drop = table.choice("drop", &[("tail", Overflow::Tail), ("head", Overflow::Head)]);
        let largest = largest?;
        let [limit, depth] = ["limit", "depth"].map(|key| capacity::packets(table, key, wire, largest));
        Some(Self {
            flows: flows?,
            per: per?,
            quantum: quantum.unwrap_or_else(|| wire.layer.on_wire(largest)),
            perturb: perturb.unwrap_or_default(),
            limit: limit?,
            depth: depth?,
            drop: drop?,
        })
    }
}

fn per(table: &Table<'_>) -> Option<Per> {
    let words =
        [("flow", Per::Flow), ("source", Per::Source), ("destination", Per::Destination), ("hosts", Per::Hosts)];
    table.choice("per", &words)
}

/// The packets that share a queue; `buckets` is the key of the number of queues.
fn keys(table: &Table<'_>, buckets: &'static str) -> Option<FlowKeys> {
    let count: Option<u64> = table.get(buckets);
    let exact: Option<bool> = table.get("exact");
    let seed: Option<u64> = table.get("seed");
    let count = NonZeroU32::new(u32::try_from(count?).ok()?)?;
    Some(if exact? { FlowKeys::Exact } else { FlowKeys::Buckets { count, seed: seed? } })
}

const FLOWS: Key = Key::with_default("flows", Kind::Count, "1024", "Buckets of the hash that distinguishes flows.")
    .at_least("1")
    .at_most("65536");
const ROUND: Key =
    Key::optional("quantum", Kind::WireBytes, "a packet of `largest`", "Bytes that a flow may send in a round.");
const PACKETS_OR_TIME: Kind = Kind::Other("packets, or time", &[Kind::Packets, Kind::Time]);
const MOST: &str = "Largest number of packets; a time is the number of packets of `largest` that depart in it at the \
                     rate that empties the queue.";
const PACKETS: Key = Key::with_default("limit", PACKETS_OR_TIME, "10240 packets", MOST);
const MEMORY: Key = Key::with_default("memory", Kind::Bytes, "32 MB", "Largest number of IP bytes.").at_least("1 B");

impl Readable for fq_codel::Config {
    const SECTION: &'static Section = &Section {
        heading: "`kind = \"fq-codel\"`",
        about: "FQ-CoDel (RFC 8290): deficit round robin over flows, new flows first, each under CoDel.",
        keys: &[
            FLOWS,
            EXACT,
            PER,
            SEED,
            ROUND,
            PACKETS,
            MEMORY,
            TARGET,
            INTERVAL,
            ECN,
            CE_THRESHOLD,
            Key::optional(
                "ce_threshold_selector",
                Kind::Other(
                    "value/mask",
                    &[Kind::Matching("^\\s*(0x[0-9a-fA-F]+|[0-9]+)\\s*(/\\s*(0x[0-9a-fA-F]+|[0-9]+)\\s*)?$")],
                ),
                "every packet",
                "The packets that `ce_threshold` applies to, by bits of their traffic class: \"0x01/0x03\" is ECT(1).",
            ),
            LARGEST,
        ],
    };

    fn read(table: &Table<'_>, wire: &Wire, _depth: usize) -> Option<Self> {
        let flows = keys(table, "flows");
        let per = per(table);
        let quantum: Option<WireBytes> = table.optional("quantum");
        let target: Option<Duration> = table.get("target");
        let interval: Option<Duration> = table.get("interval");
        let ecn: Option<bool> = table.get("ecn");
        let largest: Option<ByteCount> = table.get("largest");
        let ce_threshold = ce_threshold(table);
        let largest = largest?;
        let limit = capacity::packets(table, "limit", wire, largest);
        let memory = capacity::memory(table, "memory", largest);
        Some(Self {
            flows: flows?,
            per: per?,
            quantum: quantum.unwrap_or_else(|| wire.layer.on_wire(largest)),
            limit: limit?,
            memory: memory?,
            target: target?,
            interval: interval?,
            ecn: ecn?,
            largest,
            ce_threshold: ce_threshold?,
        })
    }

    fn waits(&self) -> Waits {
        codel_waits(self.target, self.interval, self.ce_threshold)
    }
}

/// The CE threshold, if there is one. `None` if it is wrong, which is then in the report.
fn ce_threshold(table: &Table<'_>) -> Option<Option<CeThreshold>> {
    let delay: Option<Duration> = table.optional("ce_threshold");
    let selector: Option<MaskedByte> = table.optional("ce_threshold_selector");
    match (delay, selector) {
        (None, Some(_)) if !table.has("ce_threshold") => {
            table.error("ce_threshold_selector", "a selector without a ce_threshold, so nothing is marked", None);
            None
        }
        (delay, selector) => {
            let selector = selector.map_or(Selector::ALL, |MaskedByte { value, mask }| Selector { value, mask });
            Some(delay.map(|delay| CeThreshold { delay, selector }))
        }
    }
}

impl Readable for fq_pie::Config {
    const SECTION: &'static Section = &Section {
        heading: "`kind = \"fq-pie\"`",
        about: "FQ-PIE (tc-fq_pie): deficit round robin over flows, new flows first, each under PIE.",
        keys: &[
            FLOWS,
            EXACT,
            PER,
            Key::with_default(
                "seed",
                Kind::Count,
                "1",
                "Which flows share a bucket, and which random numbers decide, with the scenario's seed and the link.",
            ),
            ROUND,
            PACKETS,
            MEMORY,
            pie_keys::TARGET,
            pie_keys::PERIOD,
            pie_keys::ALPHA,
            pie_keys::BETA,
            pie_keys::MAX_BURST,
            Key::with_default(
                "ecn",
                Kind::Flag,
                "false",
                "Marks packets of senders that understand it (RFC 3168), in place of dropping them, while the \
                 probability of their flow is below `ecn_prob`.",
            ),
            Key::with_default("ecn_prob", Kind::Share, "10 %", "From this probability on `ecn` drops."),
            pie_keys::LARGEST,
        ],
    };

    fn read(table: &Table<'_>, wire: &Wire, _depth: usize) -> Option<Self> {
        let (flows, per) = (keys(table, "flows"), per(table));
        let quantum: Option<WireBytes> = table.optional("quantum");
        let control = pie_control(table, "seed");
        let ecn_prob: Option<Ratio> = table.get("ecn_prob");
        let control = control?;
        let limit = capacity::packets(table, "limit", wire, control.largest);
        let memory = capacity::memory(table, "memory", control.largest);
        Some(Self {
            flows: flows?,
            per: per?,
            quantum: quantum.unwrap_or_else(|| wire.layer.on_wire(control.largest)),
            limit: limit?,
            memory: memory?,
            control,
            ecn_prob: ecn_prob?,
        })
    }

    fn waits(&self) -> Waits {
        pie_waits(self.control.target)
    }
}

const CLASSES: Key =
    Key::optional("classes", Kind::Tables("the classes below"), "a queue for each flow", "The classes; at most 16.");
const ALL: Key = Key::optional(
    "limit",
    Kind::Other("packets", &[Kind::Packets]),
    "1000 packets",
    "Without `classes`: how many packets there are in all; one too many costs the flow with most bytes its oldest.",
);
const MEMBER: Key = Key::with_default(
    "per",
    Kind::Choice(&["flow", "source", "destination", "hosts"]),
    "flow",
    "Without `classes` each of these has a queue: flow, source address, destination address, or pair of addresses.",
);
const MATCH: Key =
    Key::optional("match", Kind::Table("[matches](#matches)"), "every packet", "Which packets belong to it.");
const QUANTUM: Key =
    Key::optional("quantum", Kind::WireBytes, "a packet of 1500 B", "Bytes that it may send in a turn.");
const WEIGHT: Key =
    Key::with_default("weight", Kind::Count, "1", "Its share of the line, against those of the others.")
        .at_least("1")
        .at_most("4294967295");

static DRR_CLASS: Section = Section {
    heading: "`classes` of `kind = \"drr\"`",
    about: "A class of deficit round robin. A packet goes to the first class that matches it, or else to the last.",
    keys: &[MATCH, QUANTUM, BELOW, CLASS_LIMIT, DROP],
};

static WFQ_CLASS: Section = Section {
    heading: "`classes` of `kind = \"wfq\"`",
    about: "A class of weighted fair queueing. A packet goes to the first class that matches it, or else to the last.",
    keys: &[MATCH, WEIGHT, BELOW, CLASS_LIMIT, DROP],
};

static WF2Q_PLUS_CLASS: Section = Section {
    heading: "`classes` of `kind = \"wf2q-plus\"`",
    about: "A class of WF2Q+. A packet goes to the first class that matches it, or else to the last.",
    keys: &[MATCH, WEIGHT, BELOW, CLASS_LIMIT, DROP],
};

/// The packet that a quantum is made for where none is given.
const MTU: ByteCount = ByteCount::new(1500);
const ALL_PACKETS: PacketCount = PacketCount::new(1000);

/// The members of `table`: classes that `section` describes, each with its share, or flows with the share `each`.
fn among<S>(
    table: &Table<'_>,
    section: &'static Section,
    (wire, depth): (&Wire, usize),
    each: Option<S>,
    share: impl Fn(&Table<'_>) -> Option<S>,
) -> Option<Among<S>> {
    let limit: Option<PacketCount> = table.optional("limit");
    let per = per(table);
    if !table.has("classes") {
        return Some(Among::Flows { share: each?, limit: limit.unwrap_or(ALL_PACKETS), per: per? });
    }
    if table.has("per") {
        table.error("per", "both per and classes, which packets belong to by their match", None);
    }
    if table.has("limit") {
        table.error("limit", "both limit and classes, which have their own", None);
    }
    let read = |class: &Table<'_>| {
        let share = share(class);
        let spec = class_spec(class, wire, depth);
        Some(Class { class: spec?, share: share? })
    };
    classes(table, section, read).map(Among::Classes)
}

impl Readable for drr::Config {
    const SECTION: &'static Section = &Section {
        heading: "`kind = \"drr\"`",
        about: "Deficit round robin: classes, or flows, take turns of a quantum each, and keep what a turn leaves \
                unused.",
        keys: &[
            CLASSES,
            Key::optional(
                "quantum",
                Kind::WireBytes,
                "a packet of 1500 B",
                "Without `classes`: what a flow may send in a turn.",
            ),
            ALL,
            MEMBER,
        ],
    };
    const PARTS: &'static [&'static Section] = &[&DRR_CLASS];

    fn read(table: &Table<'_>, wire: &Wire, depth: usize) -> Option<Self> {
        let quantum = |table: &Table<'_>| -> Option<WireBytes> {
            let quantum = table.optional("quantum");
            if quantum == Some(WireBytes::ZERO) {
                let message = format!("{}: a quantum of zero: nothing would ever be sent", table.path("quantum"));
                table.error("quantum", message, None);
                return None;
            }
            Some(quantum.unwrap_or_else(|| wire.layer.on_wire(MTU)))
        };
        let each = quantum(table);
        if table.has("classes") && table.has("quantum") {
            table.error("quantum", "both quantum and classes, which have their own", None);
        }
        among(table, &DRR_CLASS, (wire, depth), each, quantum)
    }
}

fn weight(class: &Table<'_>) -> Option<NonZeroU32> {
    let weight: Option<u64> = class.get("weight");
    NonZeroU32::new(u32::try_from(weight?).ok()?)
}

impl Readable for wfq::Config {
    const SECTION: &'static Section = &Section {
        heading: "`kind = \"wfq\"`",
        about: "Weighted fair queueing, self-clocked: classes by their weights, or flows with equal ones.",
        keys: &[CLASSES, ALL, MEMBER],
    };
    const PARTS: &'static [&'static Section] = &[&WFQ_CLASS];

    fn read(table: &Table<'_>, wire: &Wire, depth: usize) -> Option<Self> {
        weighted(table, &WFQ_CLASS, (wire, depth)).map(Self)
    }
}

impl Readable for wf2q_plus::Config {
    const SECTION: &'static Section = &Section {
        heading: "`kind = \"wf2q-plus\"`",
        about: "WF2Q+: as `wfq`, and no class, or flow, is ahead of its share by more than a packet.",
        keys: &[CLASSES, ALL, MEMBER],
    };
    const PARTS: &'static [&'static Section] = &[&WF2Q_PLUS_CLASS];

    fn read(table: &Table<'_>, wire: &Wire, depth: usize) -> Option<Self> {
        weighted(table, &WF2Q_PLUS_CLASS, (wire, depth)).map(Self)
    }
}

/// Members that have weights; flows have equal ones.
fn weighted(table: &Table<'_>, section: &'static Section, position: (&Wire, usize)) -> Option<Among<NonZeroU32>> {
    among(table, section, position, Some(NonZeroU32::MIN), weight)
}

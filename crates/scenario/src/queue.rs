//! Queue tables: a tree of disciplines as a file describes it.

use lastmile_linklayer::LinkLayer;
use lastmile_packet::{Meta, Protocol, TcpFlags};
use lastmile_queueing::ack::{Fraction, filter, sad};
use lastmile_queueing::meter::tbf::Peak;
use lastmile_queueing::spec::{ClassSpec, Spec};
use lastmile_queueing::{Match, Overflow};
use lastmile_units::{BitRate, ByteCount, Duration, Limit, Ratio, WireBytes};

use crate::reader::{Table, Unopened, Variant};
use crate::schema::{Key, Kind, Section};

pub(crate) static QUEUE: Section = Section {
    heading: "Queues",
    about: "A queue is a table with a `kind`. Those that regulate, shape or schedule stand over another queue, given as `queue = { ... }` \
            (or, for a FIFO, by its `limit` and `drop` alone), so that they nest: `queue = { kind = \"sad\", queue = { kind = \"tbf\", ... } }`.",
    keys: &[Key::with_default(
        "kind",
        Kind::Choice(&["fifo", "sad", "ack-filter", "priority", "tbf"]),
        "fifo",
        "What it is.",
    )],
};

const LIMIT: Key = Key::with_default(
    "limit",
    Kind::Limit,
    "100 packets",
    "How much it holds: packets, IP bytes, or cells on a line that has cells.",
);
const DROP: Key = Key::with_default(
    "drop",
    Kind::Choice(&["tail", "head"]),
    "tail",
    "Which packet goes when it is full: the one that arrives, or the oldest.",
);
const EXEMPT: Key =
    Key::optional("exempt", Kind::Table("[matches](#matches)"), "nothing", "Packets that are never touched.");
const BELOW: Key =
    Key::optional("queue", Kind::Table("[queues](#queues)"), "a FIFO of `limit` and `drop`", "The queue below.");

pub(crate) static FIFO: Section =
    Section { heading: "`kind = \"fifo\"`", about: "First in, first out.", keys: &[LIMIT, DROP] };

pub(crate) static SAD: Section = Section {
    heading: "`kind = \"sad\"`",
    about: "Smart ACK Dropper: at most one pure ACK of each flow waits, and it leaves with the newest values.",
    keys: &[
        Key::with_default(
            "duplicates",
            Kind::Choice(&["keep", "count"]),
            "keep",
            "Duplicate ACKs are queued untouched, or dropped and counted for a regenerator.",
        ),
        EXEMPT,
        BELOW,
        LIMIT,
        DROP,
    ],
};

pub(crate) static ACK_FILTER: Section = Section {
    heading: "`kind = \"ack-filter\"`",
    about: "A FIFO in which a new ACK takes the place of older ones of its flow.",
    keys: &[
        LIMIT,
        DROP,
        Key::with_default("fraction", Kind::Share, "100 %", "Share of the older ACKs that a new one removes.")
            .at_least("0.0001 %"),
        Key::with_default(
            "duplicates",
            Kind::Choice(&["keep", "remove"]),
            "keep",
            "Duplicate ACKs stay, or are filtered like any older one.",
        ),
        EXEMPT,
    ],
};

pub(crate) static PRIORITY: Section = Section {
    heading: "`kind = \"priority\"`",
    about: "Strict priority: the first class that has a packet sends it. Without `classes` there are two: pure ACKs, then the rest, \
            each in a FIFO of `limit` and `drop`.",
    keys: &[
        Key::optional(
            "classes",
            Kind::Tables("[classes](#classes)"),
            "pure ACKs, then the rest",
            "The classes, the most urgent first; at most 16.",
        ),
        LIMIT,
        DROP,
    ],
};

pub(crate) static CLASS: Section = Section {
    heading: "Classes",
    about: "A class of a scheduler. A packet goes to the first class that matches it, or else to the last.",
    keys: &[
        Key::optional("match", Kind::Table("[matches](#matches)"), "every packet", "Which packets belong to it."),
        BELOW,
        LIMIT,
        DROP,
    ],
};

pub(crate) static MATCH: Section = Section {
    heading: "Matches",
    about: "A condition on a packet. Of several keys all must hold; an empty table matches every packet.",
    keys: &[
        Key::optional("pure_ack", Kind::Flag, "either way", "A TCP segment that acknowledges and does nothing else."),
        Key::optional(
            "protocol",
            Kind::Choice(&["tcp", "udp", "echo-request", "echo-reply", "other"]),
            "any",
            "The protocol.",
        ),
        Key::optional("dscp", Kind::Count, "any", "Differentiated services code point (RFC 2474).").at_most("63"),
        Key::optional(
            "tcp_flags",
            Kind::Choice(&["fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr"]),
            "any",
            "A TCP flag that is set.",
        ),
        Key::optional("at_most", Kind::Bytes, "any size", "Largest IP packet.").at_most("65535 B"),
        Key::optional("not", Kind::Table("[matches](#matches)"), "nothing", "What must not hold."),
        Key::optional(
            "one_of",
            Kind::Tables("[matches](#matches)"),
            "no choice",
            "Conditions of which at least one must hold.",
        ),
    ],
};

pub(crate) static TBF: Section = Section {
    heading: "`kind = \"tbf\"`",
    about: "Token bucket filter: the queue below leaves at a rate, with a burst above it. Sizes are those on the wire.",
    keys: &[
        Key::required("rate", Kind::Rate, "Rate on the wire, headers and cells included."),
        Key::required(
            "burst",
            Kind::WireBytes,
            "What may leave at once after a pause, such as \"3392 wire bytes\"; at least the largest packet.",
        ),
        Key::optional("peak", Kind::Rate, "as fast as the line", "The rate within a burst; above `rate`."),
        Key::optional("peak_burst", Kind::WireBytes, "one packet of `largest`", "What may leave at once even so."),
        Key::with_default("largest", Kind::Bytes, "1500 B", "The largest IP packet to expect.")
            .at_least("1 B")
            .at_most("65535 B"),
        BELOW,
        LIMIT,
        DROP,
    ],
};

#[derive(Clone, Copy)]
enum Form {
    Fifo,
    Sad,
    AckFilter,
    Priority,
    Tbf,
}

const KINDS: [Variant<Form>; 5] = [
    Variant { name: "fifo", section: &FIFO, value: Form::Fifo },
    Variant { name: "sad", section: &SAD, value: Form::Sad },
    Variant { name: "ack-filter", section: &ACK_FILTER, value: Form::AckFilter },
    Variant { name: "priority", section: &PRIORITY, value: Form::Priority },
    Variant { name: "tbf", section: &TBF, value: Form::Tbf },
];

/// What is done about ACKs that wait upstream: `remedy` in `[access]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Remedy {
    /// Nothing: the queue is as the file says.
    None,
    /// A Smart ACK Dropper over the queue.
    Sad,
    /// The queue filters ACKs.
    AckFilter,
    /// Pure ACKs go first.
    AckPriority,
    /// Pure ACKs go first, and a Smart ACK Dropper keeps one of each flow waiting among them.
    SadPriority,
}

impl Remedy {
    pub(crate) const NAMES: &'static [(&'static str, Self)] = &[
        ("none", Self::None),
        ("sad", Self::Sad),
        ("ack-filter", Self::AckFilter),
        ("ack-priority", Self::AckPriority),
        ("sad-priority", Self::SadPriority),
    ];

    /// The name in files.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, remedy)| *remedy == self).map_or("none", |(name, _)| name)
    }
}

/// `spec` with the remedy over it, or an error at `remedy`.
pub(crate) fn with_remedy(table: &Table<'_>, spec: Spec, remedy: Remedy) -> Option<Spec> {
    let (limit, drop) = match (&spec, remedy) {
        (_, Remedy::None) => return Some(spec),
        (Spec::Fifo { limit, drop }, _) => (*limit, *drop),
        _ => {
            let message =
                format!("a remedy for a queue that is no FIFO: {} has a kind of its own", table.path("up.queue"));
            let hint = "leave out the remedy, or the queue's kind: see the reference for what each remedy is short for";
            table.error("remedy", message, Some(hint.into()));
            return None;
        }
    };
    Some(match remedy {
        Remedy::None => spec,
        Remedy::Sad => sad_over(spec),
        Remedy::AckFilter => Spec::AckFilter { limit, drop, rules: filter::Rules::default() },
        Remedy::AckPriority => acks_first(spec.clone(), spec),
        Remedy::SadPriority => acks_first(sad_over(spec.clone()), spec),
    })
}

fn sad_over(queue: Spec) -> Spec {
    Spec::Sad { duplicates: sad::Duplicates::Keep, exempt: Match::Never, queue: Box::new(queue) }
}

/// Two classes: pure ACKs, then the rest.
fn acks_first(acks: Spec, rest: Spec) -> Spec {
    let acks = ClassSpec { matches: Match::PureAck, queue: acks };
    Spec::Priority { classes: vec![acks, ClassSpec { matches: Match::Any, queue: rest }] }
}

/// Reads a queue for a line whose packets take what `link_layer` says.
pub(crate) fn read(queue: Unopened<'_>, link_layer: &LinkLayer) -> Option<Spec> {
    read_at(queue, link_layer, 0)
}

/// `spec`, which was read for another line, if it can stand here too.
pub(crate) fn checked(table: &Table<'_>, spec: &Spec, link_layer: &LinkLayer) -> Option<Spec> {
    if let Err(error) = spec.build::<Meta>(link_layer) {
        table.error("queue", format!("{}: {error}", table.path("queue")), None);
        return None;
    }
    Some(spec.clone())
}

fn read_at(queue: Unopened<'_>, link_layer: &LinkLayer, depth: usize) -> Option<Spec> {
    let (form, table) = queue.open_kind(&QUEUE, &KINDS)?;
    if depth >= Spec::MAX_DEPTH {
        table.error("kind", format!("more than {} queues above one another", Spec::MAX_DEPTH), None);
        return None;
    }
    match form {
        Form::Fifo => fifo_of(&table, link_layer),
        Form::Sad => {
            let options = &[("keep", sad::Duplicates::Keep), ("count", sad::Duplicates::Count)];
            let duplicates = table.choice("duplicates", options);
            let exempt = exempt(&table);
            let queue = below(&table, link_layer, depth);
            Some(Spec::Sad { duplicates: duplicates?, exempt: exempt?, queue: Box::new(queue?) })
        }
        Form::AckFilter => {
            let held = limit_and_drop(&table, link_layer);
            let rules = rules(&table);
            let (limit, drop) = held?;
            Some(Spec::AckFilter { limit, drop, rules: rules? })
        }
        Form::Priority => priority(&table, link_layer, depth),
        Form::Tbf => tbf(&table, link_layer, depth),
    }
}

fn limit_and_drop(table: &Table<'_>, link_layer: &LinkLayer) -> Option<(Limit, Overflow)> {
    let limit: Option<Limit> = table.get("limit");
    let drop = table.choice("drop", &[("tail", Overflow::Tail), ("head", Overflow::Head)]);
    let limit = limit?;
    let spec = Spec::Fifo { limit, drop: drop? };
    if let Err(error) = spec.build::<Meta>(link_layer) {
        table.error("limit", format!("{}: {}", table.path("limit"), error.problem), None);
        return None;
    }
    Some((limit, drop?))
}

fn fifo_of(table: &Table<'_>, link_layer: &LinkLayer) -> Option<Spec> {
    limit_and_drop(table, link_layer).map(|(limit, drop)| Spec::Fifo { limit, drop })
}

/// The queue below: a table of its own, or a FIFO.
fn below(table: &Table<'_>, link_layer: &LinkLayer, depth: usize) -> Option<Spec> {
    let Some(queue) = table.table("queue") else {
        return if table.has("queue") { None } else { fifo_of(table, link_layer) };
    };
    for key in ["limit", "drop"] {
        if table.has(key) {
            let hint = format!("put {key} into {}", table.path("queue"));
            table.error(key, format!("both {key} and a queue below, which has its own"), Some(hint));
        }
    }
    read_at(queue, link_layer, depth + 1)
}

fn rules(table: &Table<'_>) -> Option<filter::Rules> {
    let fraction: Option<Ratio> = table.get("fraction");
    let options = &[("keep", filter::Duplicates::Keep), ("remove", filter::Duplicates::Remove)];
    let duplicates = table.choice("duplicates", options);
    let exempt = exempt(table);
    let fraction = Fraction::new(fraction?.as_parts_per_billion(), Ratio::ONE.as_parts_per_billion())?;
    Some(filter::Rules { fraction, duplicates: duplicates?, exempt: exempt? })
}

fn priority(table: &Table<'_>, link_layer: &LinkLayer, depth: usize) -> Option<Spec> {
    if !table.has("classes") {
        return fifo_of(table, link_layer).map(|queue| acks_first(queue.clone(), queue));
    }
    for key in ["limit", "drop"] {
        if table.has(key) {
            table.error(key, format!("both {key} and classes, which have their own"), None);
        }
    }
    let items = table.tables("classes");
    if items.is_empty() || items.len() > Spec::MAX_CLASSES {
        let message =
            format!("{}: {} classes; there are 1 to {}", table.path("classes"), items.len(), Spec::MAX_CLASSES);
        table.error("classes", message, None);
        return None;
    }
    let mut classes = Vec::new();
    let mut complete = true;
    for item in items {
        let class = item.open(&CLASS);
        let matches = match class.table("match") {
            Some(condition) => matching(condition),
            None => Some(Match::Any),
        };
        match matches.zip(below(&class, link_layer, depth)) {
            Some((matches, queue)) => classes.push(ClassSpec { matches, queue }),
            None => complete = false,
        }
    }
    complete.then_some(Spec::Priority { classes })
}

fn tbf(table: &Table<'_>, link_layer: &LinkLayer, depth: usize) -> Option<Spec> {
    let rate: Option<BitRate> = table.get("rate");
    let burst: Option<WireBytes> = table.get("burst");
    let largest: Option<ByteCount> = table.get("largest");
    let peak: Option<BitRate> = table.optional("peak");
    let peak_burst: Option<WireBytes> = table.optional("peak_burst");
    if table.has("peak_burst") && !table.has("peak") {
        table.error("peak_burst", "peak_burst without peak", None);
    }
    let queue = below(table, link_layer, depth);
    let (rate, burst, largest) = (rate?, burst?, largest?);
    let peak = peak.map(|rate| Peak { rate, burst: peak_burst.unwrap_or_else(|| link_layer.on_wire(largest)) });
    let shaper = |queue| Spec::Tbf { rate, burst, peak, largest, catch_up: Duration::ZERO, queue: Box::new(queue) };
    if let Err(error) = shaper(Spec::fifo(1)).build::<Meta>(link_layer) {
        let key = match error.problem.to_string() {
            problem if problem.starts_with("a peak rate") => "peak",
            problem if problem.starts_with("a peak burst") => "peak_burst",
            _ => "burst",
        };
        let hint =
            (key == "burst").then(|| format!("at least {} for packets of {largest}", link_layer.on_wire(largest)));
        table.error(key, format!("{}: {}", table.path(key), error.problem), hint);
        return None;
    }
    queue.map(shaper)
}

fn exempt(table: &Table<'_>) -> Option<Match> {
    match table.table("exempt") {
        Some(condition) => matching(condition),
        None => Some(Match::Never),
    }
}

fn matching(condition: Unopened<'_>) -> Option<Match> {
    let table = condition.open(&MATCH);
    let mut all = Vec::new();
    match table.optional::<bool>("pure_ack") {
        Some(true) => all.push(Match::PureAck),
        Some(false) => all.push(Match::Not(Box::new(Match::PureAck))),
        None => {}
    }
    let protocols = &[
        ("tcp", Protocol::Tcp),
        ("udp", Protocol::Udp),
        ("echo-request", Protocol::EchoRequest),
        ("echo-reply", Protocol::EchoReply),
        ("other", Protocol::Other),
    ];
    all.extend(table.optional_choice("protocol", protocols).map(Match::Protocol));
    all.extend(table.optional::<u64>("dscp").and_then(|dscp| u8::try_from(dscp).ok()).map(Match::Dscp));
    let flags = &[
        ("fin", TcpFlags::FIN),
        ("syn", TcpFlags::SYN),
        ("rst", TcpFlags::RST),
        ("psh", TcpFlags::PSH),
        ("ack", TcpFlags::ACK),
        ("urg", TcpFlags::URG),
        ("ece", TcpFlags::ECE),
        ("cwr", TcpFlags::CWR),
    ];
    all.extend(table.optional_choice("tcp_flags", flags).map(Match::TcpFlags));
    let at_most = table.optional::<ByteCount>("at_most");
    all.extend(at_most.and_then(|bytes| u16::try_from(bytes.as_u64()).ok()).map(Match::AtMostBytes));
    if let Some(inner) = table.table("not") {
        all.push(Match::Not(Box::new(matching(inner)?)));
    }
    if table.has("one_of") {
        let choices: Option<Vec<Match>> = table.tables("one_of").into_iter().map(matching).collect();
        all.push(Match::OneOf(choices?));
    }
    Some(match all.len() {
        0 => Match::Any,
        1 => all.remove(0),
        _ => Match::All(all),
    })
}

//! Queue tables: a tree of disciplines as a file describes it.

pub(crate) mod ack;
pub(crate) mod aqm;
pub(crate) mod cake;
mod capacity;
pub(crate) mod fair;
mod hfsc;
pub(crate) mod matching;
pub(crate) mod meter;
pub(crate) mod sched;
pub(crate) mod shaper;
pub(crate) mod tree;
pub(crate) mod wait;
mod words;

use lastmile_linklayer::LinkLayer;
use lastmile_packet::Meta;
use lastmile_queueing::spec::{Problem, Spec};
use lastmile_queueing::{Overflow, fifo};
use lastmile_units::{Duration, Limit};

use crate::reader::{Table, Tagged, Unopened, Variant};
use crate::schema::{Key, Kind, Section};

pub(crate) use capacity::{Wire, limit as limit_of};
pub use words::code_point_named;
pub(crate) use words::{CODE_POINT_NAMES, CodePoint, ColorName, Several};

/// A discipline as a file describes it: what a named row of the [table](lastmile_queueing::catalogue) needs here.
trait Readable: Sized {
    /// The keys of its table.
    const SECTION: &'static Section;
    /// The tables within its own, in the order of the reference.
    const PARTS: &'static [&'static Section] = &[];

    /// Reads its table, for a queue before `wire`, with `depth` queues above it.
    fn read(table: &Table<'_>, wire: &Wire, depth: usize) -> Option<Self>;

    /// The key that is at fault for a problem.
    fn key(problem: &Problem) -> &'static str {
        match problem {
            Problem::ZeroLimit | Problem::NoCells => "limit",
            Problem::ZeroQuantum => "quantum",
            Problem::Buckets(_) => "flows",
            Problem::Times(_) => "target",
            Problem::RegeneratorBelow => "queue",
            Problem::Selector(_) => "ce_threshold_selector",
            _ => "kind",
        }
    }

    /// The waits at which it drops or marks.
    fn waits(&self) -> Waits {
        Waits::default()
    }
}

/// The waits at which a queue drops or marks.
#[derive(Default)]
struct Waits {
    /// The target of its AQM.
    target: Option<Wait>,
    /// From here on it marks every packet.
    threshold: Option<Wait>,
}

/// A wait at which a queue drops or marks: its key, and the wait that the value in the file means.
struct Wait {
    key: &'static str,
    wait: Duration,
    /// CoDel's: it must be well above the target.
    interval: Option<Duration>,
}

/// A named row of the table of disciplines.
#[derive(Clone, Copy)]
struct Row {
    parts: &'static [&'static Section],
    read: fn(&Table<'_>, &Wire, usize) -> Option<Spec>,
    key: fn(&Problem) -> &'static str,
}

/// Makes names and rows from the table of disciplines.
macro_rules! rows {
    (
        kinds { $($(#[$doc:meta])* $name:literal => $kind:ident($config:ty),)* }
        parts { $($parts:tt)* }
    ) => {
        const NAMES: &[&str] = &[$($name),*];

        static KINDS: &[Variant<Row>] = &[$(Variant {
            name: $name,
            section: <$config as Readable>::SECTION,
            value: Row {
                parts: <$config as Readable>::PARTS,
                read: |table, wire, depth| <$config as Readable>::read(table, wire, depth).map(Spec::$kind),
                key: <$config as Readable>::key,
            },
        }),*];

        /// The kind of a named discipline, and its waits.
        fn waits(spec: &Spec) -> Option<(&'static str, Waits)> {
            match spec {
                $(Spec::$kind(config) => Some(($name, Readable::waits(config))),)*
                _ => None,
            }
        }
    };
}

lastmile_queueing::catalogue!(rows);

static QUEUE: Section = Section {
    heading: "Queues",
    about: "A queue is a table with a `kind`. Those that regulate, shape or schedule stand over another queue, \
            given as `queue = { ... }` \
            (or, for a FIFO, by its `limit` and `drop` alone), so that they nest: `queue = { kind = \"sad\", queue \
            = { kind = \"tbf\", ... } }`.",
    keys: &[Key::with_default("kind", Kind::Choice(NAMES), "fifo", "Kind of queue.")],
};

/// Every section about queues, in the order of the table of disciplines.
pub(crate) fn sections() -> Vec<&'static Section> {
    let mut sections = vec![&QUEUE];
    for kind in KINDS {
        sections.push(kind.section);
        sections.extend(kind.value.parts);
    }
    sections.push(&matching::MATCH);
    sections
}

/// The kinds of queues.
pub(crate) fn kinds() -> Tagged {
    Tagged::new(&QUEUE, "kind", KINDS)
}

const LIMIT: Key = Key::optional(
    "limit",
    Kind::Limit,
    "that of a line without `queue`; `\"100 packets\"` within another queue and in policies",
    capacity::ABOUT,
);
const CLASS_LIMIT: Key = Key::with_default("limit", Kind::Limit, "100 packets", capacity::ABOUT);
const DROP: Key = Key::with_default(
    "drop",
    Kind::Choice(&["tail", "head"]),
    "tail",
    "Packet that is dropped when the queue is full: the one that arrives, or the oldest.",
);
const BELOW: Key =
    Key::optional("queue", Kind::Table("[queues](#queues)"), "a FIFO of `limit` and `drop`", "The queue below.");

impl Readable for fifo::Config {
    const SECTION: &'static Section =
        &Section { heading: "`kind = \"fifo\"`", about: "First in, first out.", keys: &[LIMIT, DROP] };

    fn read(table: &Table<'_>, wire: &Wire, _depth: usize) -> Option<Self> {
        let (limit, drop) = limit_and_drop(table, wire)?;
        Some(Self { limit, drop })
    }
}

/// Reads a queue that stands before `wire`.
pub(crate) fn read(queue: Unopened<'_>, wire: &Wire) -> Option<Spec> {
    read_at(queue, wire, 0)
}

/// `spec`, which was read for another line, if it can stand here too.
pub(crate) fn checked(table: &Table<'_>, spec: &Spec, link_layer: &LinkLayer) -> Option<Spec> {
    checked_at(table, "queue", spec, link_layer)
}

/// `spec`, or an error at `key`.
pub(crate) fn checked_at(table: &Table<'_>, key: &'static str, spec: &Spec, link_layer: &LinkLayer) -> Option<Spec> {
    if let Err(error) = spec.build::<Meta>(link_layer) {
        table.error(key, format!("{}: {error}", table.path(key)), None);
        return None;
    }
    Some(spec.clone())
}

fn read_at(queue: Unopened<'_>, wire: &Wire, depth: usize) -> Option<Spec> {
    let (row, table) = queue.open_kind(&QUEUE, KINDS)?;
    if depth >= Spec::MAX_DEPTH {
        table.error("kind", format!("more than {} queues above one another", Spec::MAX_DEPTH), None);
        return None;
    }
    accepted(&table, (row.read)(&table, wire, depth)?, wire, row.key)
}

/// `spec` if this queue can be built, apart from those below; else an error at the key that is at fault.
fn accepted(table: &Table<'_>, spec: Spec, wire: &Wire, key: fn(&Problem) -> &'static str) -> Option<Spec> {
    let Err(problem) = spec.check(&wire.layer) else { return Some(spec) };
    let key = key(&problem);
    table.error(key, format!("{}: {problem}", table.path(key)), None);
    None
}

/// The capacity at [`LIMIT`], or that of the place.
fn own_limit(table: &Table<'_>, wire: &Wire) -> Option<Limit> {
    if table.has("limit") { capacity::limit(table, "limit", wire) } else { Some(wire.unsaid_limit()) }
}

fn limit_and_drop(table: &Table<'_>, wire: &Wire) -> Option<(Limit, Overflow)> {
    let limit = own_limit(table, wire);
    let drop = table.choice("drop", &[("tail", Overflow::Tail), ("head", Overflow::Head)]);
    Some((limit?, drop?))
}

/// The FIFO of a table that has its keys and others.
fn fifo_of(table: &Table<'_>, wire: &Wire) -> Option<Spec> {
    let fifo = fifo::Config::read(table, wire, 0)?;
    accepted(table, Spec::Fifo(fifo), wire, fifo::Config::key)
}

/// The queue below: a table of its own, or a FIFO.
fn below(table: &Table<'_>, wire: &Wire, depth: usize) -> Option<Spec> {
    let Some(queue) = table.table("queue") else {
        return if table.has("queue") { None } else { fifo_of(table, wire) };
    };
    for key in ["limit", "drop"] {
        if table.has(key) {
            let hint = format!("put {key} into {}", table.path("queue"));
            table.error(key, format!("both {key} and a queue below, which has its own"), Some(hint));
        }
    }
    read_at(queue, &wire.within(), depth + 1)
}

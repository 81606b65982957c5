//! Queue tables: a tree of disciplines as a file describes it.

pub(crate) mod ack;
pub(crate) mod aqm;
pub(crate) mod cake;
mod capacity;
pub(crate) mod fair;
pub(crate) mod matching;
pub(crate) mod meter;
pub(crate) mod sched;
pub(crate) mod shaper;
pub(crate) mod tree;
mod words;

use lastmile_linklayer::LinkLayer;
use lastmile_packet::Meta;
use lastmile_queueing::Overflow;
use lastmile_queueing::spec::Spec;
use lastmile_units::Limit;

use crate::reader::{Table, Unopened, Variant};
use crate::schema::{Key, Kind, Section};

pub(crate) use capacity::{Wire, limit as limit_of};
pub(crate) use words::{CodePoint, ColorName, Several};

pub(crate) static QUEUE: Section = Section {
    heading: "Queues",
    about: "A queue is a table with a `kind`. Those that regulate, shape or schedule stand over another queue, given as `queue = { ... }` \
            (or, for a FIFO, by its `limit` and `drop` alone), so that they nest: `queue = { kind = \"sad\", queue = { kind = \"tbf\", ... } }`.",
    keys: &[Key::with_default(
        "kind",
        Kind::Choice(&[
            "fifo",
            "red",
            "codel",
            "sfq",
            "fq-codel",
            "sad",
            "ack-filter",
            "ack-collapsing",
            "cake-ack-filter",
            "ack-regenerator",
            "ack-pacing",
            "window-clamp",
            "drr",
            "wfq",
            "wf2q-plus",
            "priority",
            "custom",
            "cbq",
            "htb",
            "tbf",
            "policer",
            "cake",
        ]),
        "fifo",
        "What it is.",
    )],
};

const LIMIT: Key = Key::with_default("limit", Kind::Limit, "100 packets", capacity::ABOUT);
const DROP: Key = Key::with_default(
    "drop",
    Kind::Choice(&["tail", "head"]),
    "tail",
    "Which packet goes when it is full: the one that arrives, or the oldest.",
);
const BELOW: Key =
    Key::optional("queue", Kind::Table("[queues](#queues)"), "a FIFO of `limit` and `drop`", "The queue below.");

pub(crate) static FIFO: Section =
    Section { heading: "`kind = \"fifo\"`", about: "First in, first out.", keys: &[LIMIT, DROP] };

#[derive(Clone, Copy)]
enum Form {
    Fifo,
    Red,
    Codel,
    Sfq,
    FqCodel,
    Sad,
    AckFilter,
    AckCollapsing,
    CakeAckFilter,
    AckRegenerator,
    AckPacing,
    WindowClamp,
    Drr,
    Wfq,
    Wf2qPlus,
    Priority,
    Custom,
    Cbq,
    Htb,
    Tbf,
    Policer,
    Cake,
}

const KINDS: &[Variant<Form>] = &[
    Variant { name: "fifo", section: &FIFO, value: Form::Fifo },
    Variant { name: "red", section: &aqm::RED, value: Form::Red },
    Variant { name: "codel", section: &aqm::CODEL, value: Form::Codel },
    Variant { name: "sfq", section: &fair::SFQ, value: Form::Sfq },
    Variant { name: "fq-codel", section: &fair::FQ_CODEL, value: Form::FqCodel },
    Variant { name: "sad", section: &ack::SAD, value: Form::Sad },
    Variant { name: "ack-filter", section: &ack::ACK_FILTER, value: Form::AckFilter },
    Variant { name: "ack-collapsing", section: &ack::ACK_COLLAPSING, value: Form::AckCollapsing },
    Variant { name: "cake-ack-filter", section: &ack::CAKE_ACK_FILTER, value: Form::CakeAckFilter },
    Variant { name: "ack-regenerator", section: &ack::ACK_REGENERATOR, value: Form::AckRegenerator },
    Variant { name: "ack-pacing", section: &ack::ACK_PACING, value: Form::AckPacing },
    Variant { name: "window-clamp", section: &ack::WINDOW_CLAMP, value: Form::WindowClamp },
    Variant { name: "drr", section: &fair::DRR, value: Form::Drr },
    Variant { name: "wfq", section: &fair::WFQ, value: Form::Wfq },
    Variant { name: "wf2q-plus", section: &fair::WF2Q_PLUS, value: Form::Wf2qPlus },
    Variant { name: "priority", section: &sched::PRIORITY, value: Form::Priority },
    Variant { name: "custom", section: &sched::CUSTOM, value: Form::Custom },
    Variant { name: "cbq", section: &tree::CBQ, value: Form::Cbq },
    Variant { name: "htb", section: &tree::HTB, value: Form::Htb },
    Variant { name: "tbf", section: &shaper::TBF, value: Form::Tbf },
    Variant { name: "policer", section: &meter::POLICER, value: Form::Policer },
    Variant { name: "cake", section: &cake::CAKE, value: Form::Cake },
];

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
    let (form, table) = queue.open_kind(&QUEUE, KINDS)?;
    if depth >= Spec::MAX_DEPTH {
        table.error("kind", format!("more than {} queues above one another", Spec::MAX_DEPTH), None);
        return None;
    }
    match form {
        Form::Fifo => fifo_of(&table, wire),
        Form::Red => aqm::red(&table, wire),
        Form::Codel => aqm::codel(&table, wire),
        Form::Sfq => fair::sfq(&table, wire),
        Form::FqCodel => fair::fq_codel(&table, wire),
        Form::Sad => ack::sad(&table, wire, depth),
        Form::AckFilter => ack::filter(&table, wire),
        Form::AckCollapsing => ack::collapsing(&table, wire),
        Form::CakeAckFilter => ack::cake_filter(&table, wire),
        Form::AckRegenerator => ack::regenerator(&table, wire, depth),
        Form::AckPacing => ack::pacing(&table, wire, depth),
        Form::WindowClamp => ack::window_clamp(&table, wire, depth),
        Form::Drr => fair::drr(&table, wire, depth),
        Form::Wfq => fair::wfq(&table, wire, depth),
        Form::Wf2qPlus => fair::wf2q_plus(&table, wire, depth),
        Form::Priority => sched::priority(&table, wire, depth),
        Form::Custom => sched::custom(&table, wire, depth),
        Form::Cbq => tree::cbq(&table, wire, depth),
        Form::Htb => tree::htb(&table, wire, depth),
        Form::Tbf => shaper::tbf(&table, wire, depth),
        Form::Policer => meter::policer(&table, wire, depth),
        Form::Cake => cake::cake(&table),
    }
}

fn limit_and_drop(table: &Table<'_>, wire: &Wire) -> Option<(Limit, Overflow)> {
    let limit = capacity::limit(table, "limit", wire);
    let drop = table.choice("drop", &[("tail", Overflow::Tail), ("head", Overflow::Head)]);
    let limit = limit?;
    let spec = Spec::Fifo { limit, drop: drop? };
    if let Err(error) = spec.build::<Meta>(&wire.layer) {
        table.error("limit", format!("{}: {}", table.path("limit"), error.problem), None);
        return None;
    }
    Some((limit, drop?))
}

fn fifo_of(table: &Table<'_>, wire: &Wire) -> Option<Spec> {
    limit_and_drop(table, wire).map(|(limit, drop)| Spec::Fifo { limit, drop })
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
    read_at(queue, wire, depth + 1)
}

//! Queues of cells at a port: one, or several with a scheduler.

use lastmile_atm::discard::{Discard, DiscardError, LastCell, Measure, Scheme};
use lastmile_atm::network::ClassSpec;
use lastmile_atm::{QueueSpec, Queues};
use lastmile_units::CellCount;

use crate::reader::{Table, Tagged, Unopened, Variant};
use crate::schema::{Key, Kind, Section};

pub(crate) static CELL_QUEUE: Section = Section {
    heading: "Queues of cells",
    about: "A queue of cells is a table with a `kind`: what it drops, or how several are served.",
    keys: &[Key::with_default(
        "kind",
        Kind::Choice(&["tail-drop", "ppd", "epd", "epd-per-vc", "spd", "classes", "per-vc"]),
        "tail-drop",
        "Kind of queue.",
    )],
};

const LIMIT: Key = Key::optional(
    "limit",
    Kind::Cells,
    "the `memory` of the switch, which it must then have",
    "Largest number of cells in the queue, without the one in transmission.",
)
.at_least("1 cells");
const LAST_CELL: Key = Key::with_default(
    "last_cell",
    Kind::Choice(&["pass", "drop"]),
    "pass",
    "Treatment of the last cell of a frame that is being discarded. It passes if the buffer has space, since it \
     delimits the next frame (Sun 1998), or is dropped with a frame of which no cell was admitted (Romanow and Floyd \
     1995).",
);
const MEASURE: Key = Key::with_default(
    "measure",
    Kind::Choice(&["queue", "memory"]),
    "queue",
    "Cells that the threshold counts: those of this queue, or all in the memory of the switch.",
);
const LOW_PRIORITY: Key = Key::optional(
    "low_priority_limit",
    Kind::Cells,
    "both priorities alike",
    "Selective cell discard: with at least this number of cells in the memory, cells of CLP = 1 are dropped.",
)
.at_least("1 cells");
const THRESHOLD: Key = Key::required(
    "threshold",
    Kind::Cells,
    "EPD: a frame whose first cell finds at least this number of cells is dropped whole. At most the buffer.",
)
.at_least("1 cells");

pub(crate) static TAIL_DROP: Section = Section {
    heading: "`kind = \"tail-drop\"`",
    about: "A cell that finds the buffer full is lost.",
    keys: &[LIMIT, LOW_PRIORITY],
};
pub(crate) static PPD: Section = Section {
    heading: "`kind = \"ppd\"`",
    about: "Partial packet discard: with a cell that finds the buffer full, the rest of its frame is dropped.",
    keys: &[LIMIT, LAST_CELL, LOW_PRIORITY],
};
pub(crate) static EPD: Section = Section {
    heading: "`kind = \"epd\"`",
    about: "Early packet discard: whole frames from a threshold on.",
    keys: &[LIMIT, THRESHOLD, LAST_CELL, MEASURE, LOW_PRIORITY],
};
pub(crate) static EPD_PER_VC: Section = Section {
    heading: "`kind = \"epd-per-vc\"`",
    about: "EPD with per-VC accounting: only frames of VCs that have their share of the threshold waiting.",
    keys: &[
        LIMIT,
        THRESHOLD,
        Key::optional(
            "vcs",
            Kind::Count,
            "those of which cells wait",
            "Number of VCs among which the threshold is shared.",
        )
        .at_least("1")
        .at_most("65535"),
        LAST_CELL,
        MEASURE,
        LOW_PRIORITY,
    ],
};
pub(crate) static SPD: Section = Section {
    heading: "`kind = \"spd\"`",
    about: "Single packet discard (SPD, Sun 1998) on top of EPD: below its threshold a VC loses one frame, and no \
            other until its queue has \
            been empty.",
    keys: &[
        LIMIT,
        THRESHOLD,
        Key::required("vc_threshold", Kind::Cells, "SPD acts on a VC with at least this backlog. At most the buffer.")
            .at_least("1 cells"),
        Key::required(
            "activation",
            Kind::Cells,
            "SPD acts while the total backlog exceeds this number of cells. At most the buffer.",
        ),
        LAST_CELL,
        MEASURE,
        LOW_PRIORITY,
    ],
};
pub(crate) static CLASSES: Section = Section {
    heading: "`kind = \"classes\"`",
    about: "A queue for each class, which contracts name. Priorities are strict; within one, cells are served by \
            weight (self-clocked \
            fair queueing).",
    keys: &[Key::required(
        "classes",
        Kind::Tables("[classes of cells](#classes-of-cells)"),
        "The classes; traffic without a contract belongs to the first. All ports with classes have the same ones in \
         the same \
         order.",
    )],
};
pub(crate) static PER_VC: Section = Section {
    heading: "`kind = \"per-vc\"`",
    about: "A queue for each VC, with the priority and weight of its contract.",
    keys: &[Key::required("queue", Kind::Table("[queues of cells](#queues-of-cells)"), "The queue of each VC.")],
};
pub(crate) static CELL_CLASS: Section = Section {
    heading: "Classes of cells",
    about: "",
    keys: &[
        Key::required("name", Kind::Text, "Name, as contracts give it."),
        Key::with_default("priority", Kind::Count, "0", "A lower number goes first.").at_most("255"),
        Key::with_default("weight", Kind::Count, "1", "Share against the others of its priority.")
            .at_least("1")
            .at_most("65535"),
        Key::required("queue", Kind::Table("[queues of cells](#queues-of-cells)"), "Its queue."),
    ],
};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Tail,
    Ppd,
    Epd,
    EpdPerVc,
    Spd,
    Classes,
    PerVc,
}

const KINDS: &[Variant<Form>] = &[
    Variant { name: "tail-drop", section: &TAIL_DROP, value: Form::Tail },
    Variant { name: "ppd", section: &PPD, value: Form::Ppd },
    Variant { name: "epd", section: &EPD, value: Form::Epd },
    Variant { name: "epd-per-vc", section: &EPD_PER_VC, value: Form::EpdPerVc },
    Variant { name: "spd", section: &SPD, value: Form::Spd },
    Variant { name: "classes", section: &CLASSES, value: Form::Classes },
    Variant { name: "per-vc", section: &PER_VC, value: Form::PerVc },
];

/// The kinds of queues of cells.
pub(crate) fn kinds() -> Tagged {
    Tagged::new(&CELL_QUEUE, "kind", KINDS)
}

/// The queues of a port, and the names of their classes if they have any.
#[derive(Clone, Debug)]
pub(crate) struct Port {
    pub(crate) queues: Queues,
    pub(crate) classes: Vec<String>,
}

/// Reads the queues of a port whose switch has this memory.
pub(crate) fn read(queue: Unopened<'_>, memory: Option<CellCount>) -> Option<Port> {
    let (form, table) = queue.open_kind(&CELL_QUEUE, KINDS)?;
    match form {
        Form::Classes => classes(&table, memory),
        Form::PerVc => {
            let queue = single(table.required_table("queue")?, memory)?;
            Some(Port { queues: Queues::PerVc(queue), classes: Vec::new() })
        }
        _ => {
            let queue = one(&table, form, memory)?;
            // Without a memory of the switch, this queue is all that the port has.
            fits(&table, &queue, memory.or(queue.limit))?;
            Some(Port { queues: Queues::Fifo(queue), classes: Vec::new() })
        }
    }
}

/// A queue that stands below a scheduler.
fn single(queue: Unopened<'_>, memory: Option<CellCount>) -> Option<QueueSpec> {
    let (form, table) = queue.open_kind(&CELL_QUEUE, KINDS)?;
    if matches!(form, Form::Classes | Form::PerVc) {
        let hint = "tail-drop, ppd, epd, epd-per-vc or spd";
        table.error("kind", "a scheduler of cells below a scheduler", Some(hint.into()));
        return None;
    }
    one(&table, form, memory)
}

fn classes(table: &Table<'_>, memory: Option<CellCount>) -> Option<Port> {
    if !table.has("classes") {
        table.missing("classes");
    }
    let mut names: Vec<String> = Vec::new();
    let mut classes = Vec::new();
    for class in table.tables("classes") {
        let class = class.open(&CELL_CLASS);
        let name = class.name("name");
        let (priority, weight) = (class.get::<u64>("priority"), class.get::<u64>("weight"));
        let queue = class.required_table("queue").and_then(|queue| single(queue, memory));
        let name = name?;
        if names.contains(&name) {
            class.error("name", format!("a second class is called {name:?}"), None);
        }
        names.push(name);
        let (priority, weight) = (u8::try_from(priority?).ok()?, u16::try_from(weight?).ok()?);
        classes.push(ClassSpec { queue: queue?, priority, weight });
    }
    if classes.is_empty() {
        table.error("classes", format!("{} has no class", table.path("classes")), None);
        return None;
    }
    let queues = Queues::Classes(classes);
    // Without a memory of the switch, the queues of all classes are all that the port has.
    for class in queues.each() {
        if let Err(error) = class.discard.rules(class.limit, memory.or_else(|| queues.hold())) {
            table.error("classes", format!("{}: {error}", table.path("classes")), None);
            return None;
        }
    }
    Some(Port { queues, classes: names })
}

fn one(table: &Table<'_>, form: Form, memory: Option<CellCount>) -> Option<QueueSpec> {
    let limit: Option<CellCount> = table.optional("limit");
    if limit.is_none() && memory.is_none() {
        if !table.has("limit") {
            table.missing("limit");
        }
        return None;
    }
    let queue = QueueSpec { limit, discard: discard(table, form)? };
    fits(table, &queue, memory).map(|()| queue)
}

/// Whether what the queue asks for can be in a memory of this size.
fn fits(table: &Table<'_>, queue: &QueueSpec, memory: Option<CellCount>) -> Option<()> {
    let Err(error) = queue.discard.rules(queue.limit, memory) else { return Some(()) };
    table.error(key_of(&error), format!("{}: {error}", table.path(key_of(&error))), None);
    None
}

fn discard(table: &Table<'_>, form: Form) -> Option<Discard> {
    let measured = matches!(form, Form::Epd | Form::EpdPerVc | Form::Spd);
    let measures = [("queue", Measure::Queue), ("memory", Measure::Memory)];
    let measure = if measured { table.choice("measure", &measures) } else { Some(Measure::Queue) };
    let last_cells = [("pass", LastCell::Pass), ("drop", LastCell::Drop)];
    let last_cell = if form == Form::Tail { Some(LastCell::Pass) } else { table.choice("last_cell", &last_cells) };
    let low_priority_limit = table.optional("low_priority_limit");
    let scheme = match form {
        Form::Ppd => Scheme::Ppd,
        Form::Epd => Scheme::Epd { threshold: table.get("threshold")? },
        Form::EpdPerVc => {
            let vcs = table.optional::<u64>("vcs").and_then(|vcs| u32::try_from(vcs).ok());
            Scheme::EpdPerVc { threshold: table.get("threshold")?, vcs }
        }
        Form::Spd => {
            let (epd, vc) = (table.get("threshold"), table.get("vc_threshold"));
            let activation = table.get("activation");
            Scheme::Spd { epd_threshold: epd?, vc_threshold: vc?, activation: activation? }
        }
        Form::Tail | Form::Classes | Form::PerVc => Scheme::Tail,
    };
    Some(Discard { scheme, last_cell: last_cell?, measure: measure?, low_priority_limit })
}

/// The key that an error is about.
fn key_of(error: &DiscardError) -> &'static str {
    match error {
        DiscardError::NoBuffer | DiscardError::TooLarge { .. } => "limit",
        DiscardError::NoThreshold { threshold } | DiscardError::AboveBuffer { threshold, .. } => match *threshold {
            "SPD threshold" => "vc_threshold",
            "SPD activation threshold" => "activation",
            "limit of CLP = 1" => "low_priority_limit",
            _ => "threshold",
        },
    }
}

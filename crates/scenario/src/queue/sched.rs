//! Schedulers, and their classes.

use lastmile_queueing::Match;
use lastmile_queueing::sched::custom::{self, Count, Excess};
use lastmile_queueing::sched::priority;
use lastmile_queueing::spec::{ClassSpec, Spec};
use lastmile_units::{PacketCount, WireBytes};

use super::matching::matching;
use super::{BELOW, CLASS_LIMIT, DROP, LIMIT, Readable, Wire, below, fifo_of};
use crate::reader::Table;
use crate::schema::{Key, Kind, Section};

static CLASS: Section = Section {
    heading: "Classes",
    about: "A class of a scheduler. A packet goes to the first class that matches it, or else to the last.",
    keys: &[
        Key::optional("match", Kind::Table("[matches](#matches)"), "every packet", "Which packets belong to it."),
        BELOW,
        CLASS_LIMIT,
        DROP,
    ],
};

static CUSTOM_CLASS: Section = Section {
    heading: "`classes` of `kind = \"custom\"`",
    about: "A class of custom queueing. A packet goes to the first class that matches it, or else to the last. One \
            of `bytes` and `packets` \
            must be there.",
    keys: &[
        Key::optional("match", Kind::Table("[matches](#matches)"), "every packet", "Which packets belong to it."),
        Key::optional(
            "bytes",
            Kind::WireBytes,
            "by `packets`",
            "Its turn ends when it has sent this number of bytes, or more.",
        ),
        Key::optional("packets", Kind::Count, "by `bytes`", "Its turn ends when it has sent this number of packets.")
            .at_least("1"),
        BELOW,
        CLASS_LIMIT,
        DROP,
    ],
};

impl Readable for custom::Config {
    const SECTION: &'static Section = &Section {
        heading: "`kind = \"custom\"`",
        about: "Custom queueing: the classes take turns, and each sends until its count is reached.",
        keys: &[
            Key::required(
                "classes",
                Kind::Tables("the classes below"),
                "The classes, in the order of their turns; at most 16.",
            ),
            Key::with_default(
                "excess",
                Kind::Choice(&["forgotten", "carried"]),
                "forgotten",
                "Bytes of a packet beyond the count are forgotten, or come off the next turn.",
            ),
        ],
    };
    const PARTS: &'static [&'static Section] = &[&CUSTOM_CLASS];

    fn read(table: &Table<'_>, wire: &Wire, depth: usize) -> Option<Self> {
        let excess = table.choice("excess", &[("forgotten", Excess::Forgotten), ("carried", Excess::Carried)]);
        if !table.has("classes") {
            table.missing("classes");
            return None;
        }
        let read = |class: &Table<'_>| {
            let bytes: Option<WireBytes> = class.optional("bytes");
            let packets: Option<u64> = class.optional("packets");
            let count = match (bytes, packets) {
                (Some(WireBytes::ZERO), None) => {
                    class.error(
                        "bytes",
                        format!("{}: a count of zero: the class would never send", class.path("bytes")),
                        None,
                    );
                    None
                }
                (Some(bytes), None) => Some(Count::Bytes(bytes)),
                (None, Some(packets)) => Some(Count::Packets(PacketCount::new(packets))),
                (Some(_), Some(_)) => {
                    class.error("packets", "both bytes and packets; a turn has one count", None);
                    None
                }
                (None, None) => {
                    if !class.has("bytes") && !class.has("packets") {
                        class.missing("bytes");
                    }
                    None
                }
            };
            let spec = class_spec(class, wire, depth);
            Some(custom::Class { count: count?, class: spec? })
        };
        let classes = classes(table, &CUSTOM_CLASS, read);
        Some(Self { classes: classes?, excess: excess? })
    }
}

/// Two classes: pure ACKs, then the rest.
fn acks_first(queue: &Spec) -> priority::Config {
    let class = |matches| ClassSpec { matches, queue: queue.clone() };
    priority::Config { classes: vec![class(Match::PureAck), class(Match::Any)] }
}

impl Readable for priority::Config {
    const SECTION: &'static Section = &Section {
        heading: "`kind = \"priority\"`",
        about: "Strict priority: the first class that has a packet sends it. Without `classes` there are two: pure \
                ACKs, then the rest, \
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
    const PARTS: &'static [&'static Section] = &[&CLASS];

    fn read(table: &Table<'_>, wire: &Wire, depth: usize) -> Option<Self> {
        if !table.has("classes") {
            return fifo_of(table, wire).map(|queue| acks_first(&queue));
        }
        for key in ["limit", "drop"] {
            if table.has(key) {
                table.error(key, format!("both {key} and classes, which have their own"), None);
            }
        }
        let classes = classes(table, &CLASS, |class| class_spec(class, wire, depth));
        Some(Self { classes: classes? })
    }
}

/// The classes of a scheduler that knows them by their number alone.
pub(super) fn classes<T>(
    table: &Table<'_>,
    section: &'static Section,
    read: impl Fn(&Table<'_>) -> Option<T>,
) -> Option<Vec<T>> {
    let items = table.tables("classes");
    if items.is_empty() && table.has("classes") && !table.is_empty_list("classes") {
        // What is wrong with its entries has been said.
        return None;
    }
    if items.is_empty() || items.len() > Spec::MAX_CLASSES {
        let message =
            format!("{}: {} classes; there are 1 to {}", table.path("classes"), items.len(), Spec::MAX_CLASSES);
        table.error("classes", message, None);
        return None;
    }
    // Every class is read before a wrong one fails the table, so that every error is reported.
    let classes: Vec<Option<T>> = items.into_iter().map(|item| read(&item.open(section))).collect();
    classes.into_iter().collect()
}

pub(super) fn class_spec(class: &Table<'_>, wire: &Wire, depth: usize) -> Option<ClassSpec> {
    let matches = match class.table("match") {
        Some(condition) => matching(condition),
        None => Some(Match::Any),
    };
    let queue = below(class, &wire.within(), depth);
    Some(ClassSpec { matches: matches?, queue: queue? })
}

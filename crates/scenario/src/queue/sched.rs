//! Schedulers, and their classes.

use lastmile_linklayer::LinkLayer;
use lastmile_queueing::Match;
use lastmile_queueing::spec::{ClassSpec, Spec};

use super::matching::matching;
use super::remedy::acks_first;
use super::{BELOW, DROP, LIMIT, below, fifo_of};
use crate::reader::Table;
use crate::schema::{Key, Kind, Section};

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

pub(super) fn priority(table: &Table<'_>, link_layer: &LinkLayer, depth: usize) -> Option<Spec> {
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

//! Queues that regulate acknowledgements.

use lastmile_linklayer::LinkLayer;
use lastmile_queueing::ack::{Fraction, cake, filter, sad};
use lastmile_queueing::spec::Spec;
use lastmile_units::Ratio;

use super::matching::{EXEMPT, exempt};
use super::{BELOW, DROP, LIMIT, below, limit_and_drop};
use crate::reader::Table;
use crate::schema::{Key, Kind, Section};

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

pub(crate) static ACK_COLLAPSING: Section = Section {
    heading: "`kind = \"ack-collapsing\"`",
    about: "A FIFO in which every ACK waits; when the oldest of a flow is to leave, the newest goes in its place and the rest is dropped.",
    keys: &[LIMIT, DROP, EXEMPT],
};

pub(crate) static CAKE_ACK_FILTER: Section = Section {
    heading: "`kind = \"cake-ack-filter\"`",
    about: "A FIFO with the ACK filter of CAKE: when a segment is queued, at most one older ACK of its flow goes.",
    keys: &[
        LIMIT,
        DROP,
        Key::with_default(
            "mode",
            Kind::Choice(&["normal", "aggressive"]),
            "normal",
            "`ack-filter` of tc-cake(8), which leaves two ACKs of a flow, or `ack-filter-aggressive`, which may leave one.",
        ),
        EXEMPT,
    ],
};

pub(super) fn sad(table: &Table<'_>, link_layer: &LinkLayer, depth: usize) -> Option<Spec> {
    let options = &[("keep", sad::Duplicates::Keep), ("count", sad::Duplicates::Count)];
    let duplicates = table.choice("duplicates", options);
    let exempt = exempt(table);
    let queue = below(table, link_layer, depth);
    Some(Spec::Sad { duplicates: duplicates?, exempt: exempt?, queue: Box::new(queue?) })
}

pub(super) fn filter(table: &Table<'_>, link_layer: &LinkLayer) -> Option<Spec> {
    let held = limit_and_drop(table, link_layer);
    let rules = rules(table);
    let (limit, drop) = held?;
    Some(Spec::AckFilter { limit, drop, rules: rules? })
}

fn rules(table: &Table<'_>) -> Option<filter::Rules> {
    let fraction: Option<Ratio> = table.get("fraction");
    let options = &[("keep", filter::Duplicates::Keep), ("remove", filter::Duplicates::Remove)];
    let duplicates = table.choice("duplicates", options);
    let exempt = exempt(table);
    let fraction = Fraction::new(fraction?.as_parts_per_billion(), Ratio::ONE.as_parts_per_billion())?;
    Some(filter::Rules { fraction, duplicates: duplicates?, exempt: exempt? })
}

pub(super) fn collapsing(table: &Table<'_>, link_layer: &LinkLayer) -> Option<Spec> {
    let held = limit_and_drop(table, link_layer);
    let exempt = exempt(table);
    let (limit, drop) = held?;
    Some(Spec::AckCollapsing { limit, drop, exempt: exempt? })
}

pub(super) fn cake_filter(table: &Table<'_>, link_layer: &LinkLayer) -> Option<Spec> {
    let held = limit_and_drop(table, link_layer);
    let mode = table.choice("mode", &[("normal", cake::Mode::Normal), ("aggressive", cake::Mode::Aggressive)]);
    let exempt = exempt(table);
    let (limit, drop) = held?;
    Some(Spec::CakeAckFilter { limit, drop, rules: cake::Rules { mode: mode?, exempt: exempt? } })
}

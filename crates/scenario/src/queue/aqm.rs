//! Queues that manage themselves actively.

use lastmile_linklayer::LinkLayer;
use lastmile_packet::Meta;
use lastmile_queueing::aqm::codel;
use lastmile_queueing::spec::{Problem, Spec};
use lastmile_units::{ByteCount, Duration};

use crate::reader::Table;
use crate::schema::{Key, Kind, Section};

pub(super) const TARGET: Key = Key::with_default("target", Kind::Time, "5 ms", "The wait that is good enough.");
pub(super) const INTERVAL: Key = Key::with_default(
    "interval",
    Kind::Time,
    "100 ms",
    "For how long every packet must wait longer than `target` before one is dropped: about the longest round-trip time.",
);
pub(super) const ECN: Key = Key::with_default(
    "ecn",
    Kind::Flag,
    "false",
    "Marks packets of senders that understand it (RFC 3168), in place of dropping them.",
);
pub(super) const LARGEST: Key = Key::with_default(
    "largest",
    Kind::Bytes,
    "1500 B",
    "The largest IP packet to expect: as long as no more waits, nothing is dropped early.",
)
.at_least("1 B")
.at_most("65535 B");

pub(crate) static CODEL: Section = Section {
    heading: "`kind = \"codel\"`",
    about: "CoDel (RFC 8289): a FIFO that drops its oldest packet when all have waited longer than `target` for an `interval`.",
    keys: &[
        TARGET,
        INTERVAL,
        ECN,
        LARGEST,
        Key::with_default(
            "limit",
            Kind::Limit,
            "1000 packets",
            "How much it holds: packets, IP bytes, or cells on a line that has cells.",
        ),
    ],
};

pub(super) fn codel(table: &Table<'_>, link_layer: &LinkLayer) -> Option<Spec> {
    let target: Option<Duration> = table.get("target");
    let interval: Option<Duration> = table.get("interval");
    let ecn: Option<bool> = table.get("ecn");
    let largest: Option<ByteCount> = table.get("largest");
    let limit = table.get("limit");
    let config = codel::Config { target: target?, interval: interval?, limit: limit?, ecn: ecn?, largest: largest? };
    buildable(table, Spec::Codel(config), link_layer)
}

/// `spec` if it can be built, or an error at the key that its problem is about.
pub(super) fn buildable(table: &Table<'_>, spec: Spec, link_layer: &LinkLayer) -> Option<Spec> {
    let Err(error) = spec.build::<Meta>(link_layer) else { return Some(spec) };
    let key = match error.problem {
        Problem::ZeroLimit | Problem::NoCells => "limit",
        Problem::ZeroQuantum => "quantum",
        Problem::Buckets(_) => "flows",
        Problem::Times(_) => "target",
        _ => "kind",
    };
    table.error(key, format!("{}: {}", table.path(key), error.problem), None);
    None
}

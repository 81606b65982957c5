//! Queues that are fair to flows.

use std::num::NonZeroU32;

use lastmile_linklayer::LinkLayer;
use lastmile_queueing::Overflow;
use lastmile_queueing::fair::{FlowKeys, fq_codel, sfq};
use lastmile_queueing::spec::Spec;
use lastmile_units::{ByteCount, Duration, PacketCount, WireBytes};

use super::aqm::{ECN, INTERVAL, LARGEST, TARGET, buildable};
use crate::reader::Table;
use crate::schema::{Key, Kind, Section};

const EXACT: Key = Key::with_default(
    "exact",
    Kind::Flag,
    "false",
    "Each flow has a queue of its own, in place of the buckets of a hash.",
);
const SEED: Key = Key::with_default("seed", Kind::Count, "1", "Which flows share a bucket.");

pub(crate) static FQ_CODEL: Section = Section {
    heading: "`kind = \"fq-codel\"`",
    about: "FQ-CoDel (RFC 8290): deficit round robin over flows, new flows first, each under CoDel.",
    keys: &[
        Key::with_default("flows", Kind::Count, "1024", "Buckets of the hash that tells flows apart.")
            .at_least("1")
            .at_most("65536"),
        EXACT,
        SEED,
        Key::optional("quantum", Kind::WireBytes, "a packet of `largest`", "What a flow may send in a round."),
        Key::with_default("limit", Kind::Other("packets"), "10240 packets", "How many packets it holds."),
        Key::with_default("memory", Kind::Bytes, "32 MB", "How many IP bytes it holds.").at_least("1 B"),
        TARGET,
        INTERVAL,
        ECN,
        LARGEST,
    ],
};

pub(crate) static SFQ: Section = Section {
    heading: "`kind = \"sfq\"`",
    about: "SFQ (McKenney 1990): the buckets of a hash of flows take turns, and the longest queue pays when there is no room.",
    keys: &[
        Key::with_default("divisor", Kind::Count, "1024", "Buckets of the hash that tells flows apart.")
            .at_least("1")
            .at_most("65536"),
        EXACT,
        SEED,
        Key::optional("quantum", Kind::WireBytes, "a packet of `largest`", "What a queue may send in a turn."),
        Key::with_default("largest", Kind::Bytes, "1500 B", "The largest IP packet to expect.")
            .at_least("1 B")
            .at_most("65535 B"),
        Key::optional(
            "perturb",
            Kind::Time,
            "never",
            "After how long the hash changes, so that other flows share a bucket. No flow is reordered by it.",
        ),
        Key::with_default("limit", Kind::Other("packets"), "127 packets", "How many packets it holds."),
        Key::with_default("depth", Kind::Other("packets"), "127 packets", "How many packets a queue holds."),
        Key::with_default(
            "drop",
            Kind::Choice(&["tail", "head"]),
            "tail",
            "Which packet of the longest queue goes when there are too many: its newest, or its oldest.",
        ),
    ],
};

pub(super) fn sfq(table: &Table<'_>, link_layer: &LinkLayer) -> Option<Spec> {
    let flows = keys(table, "divisor");
    let quantum: Option<WireBytes> = table.optional("quantum");
    let largest: Option<ByteCount> = table.get("largest");
    let perturb: Option<Duration> = table.optional("perturb");
    let limit: Option<PacketCount> = table.get("limit");
    let depth: Option<PacketCount> = table.get("depth");
    let drop = table.choice("drop", &[("tail", Overflow::Tail), ("head", Overflow::Head)]);
    let largest = largest?;
    let config = sfq::Config {
        flows: flows?,
        quantum: quantum.unwrap_or_else(|| link_layer.on_wire(largest)),
        perturb: perturb.unwrap_or_default(),
        limit: limit?,
        depth: depth?,
        drop: drop?,
    };
    buildable(table, Spec::Sfq(config), link_layer)
}

/// Which packets share a queue; `buckets` is the key of their number.
fn keys(table: &Table<'_>, buckets: &'static str) -> Option<FlowKeys> {
    let count: Option<u64> = table.get(buckets);
    let exact: Option<bool> = table.get("exact");
    let seed: Option<u64> = table.get("seed");
    let count = NonZeroU32::new(u32::try_from(count?).ok()?)?;
    Some(if exact? { FlowKeys::Exact } else { FlowKeys::Buckets { count, seed: seed? } })
}

pub(super) fn fq_codel(table: &Table<'_>, link_layer: &LinkLayer) -> Option<Spec> {
    let flows = keys(table, "flows");
    let quantum: Option<WireBytes> = table.optional("quantum");
    let limit: Option<PacketCount> = table.get("limit");
    let memory: Option<ByteCount> = table.get("memory");
    let target: Option<Duration> = table.get("target");
    let interval: Option<Duration> = table.get("interval");
    let ecn: Option<bool> = table.get("ecn");
    let largest: Option<ByteCount> = table.get("largest");
    let largest = largest?;
    let config = fq_codel::Config {
        flows: flows?,
        quantum: quantum.unwrap_or_else(|| link_layer.on_wire(largest)),
        limit: limit?,
        memory: memory?,
        target: target?,
        interval: interval?,
        ecn: ecn?,
        largest,
    };
    buildable(table, Spec::FqCodel(config), link_layer)
}

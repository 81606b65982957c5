//! Queues that regulate acknowledgements.

use lastmile_queueing::ack::{Fraction, cake, clamp, collapsing, filter, pacing, regenerator, sad};
use lastmile_queueing::spec::Over;
use lastmile_units::{BitRate, ByteCount, Duration, Ratio};

use super::matching::{EXEMPT, exempt};
use super::{BELOW, DROP, LIMIT, Readable, Wire, below, limit_and_drop};
use crate::reader::Table;
use crate::schema::{Key, Kind, Section};

impl Readable for Over<sad::Config> {
    const SECTION: &'static Section = &Section {
        heading: "`kind = \"sad\"`",
        about: "Smart ACK Dropper: at most one pure ACK of each flow waits, and it departs with the newest values.",
        keys: &[
            Key::with_default(
                "duplicates",
                Kind::Choice(&["keep", "count"]),
                "keep",
                "Duplicate ACKs are queued untouched, or dropped and counted for a regenerator.",
            ),
            Key::with_default(
                "report",
                Kind::Choice(&["none", "list", "signal"]),
                "none",
                "Report of suppressed ACKs to an `ack-regenerator` behind the line: none, in the ACK that departs, \
                 or in a packet ahead of it.",
            ),
            EXEMPT,
            BELOW,
            LIMIT,
            DROP,
        ],
    };

    fn read(table: &Table<'_>, wire: &Wire, depth: usize) -> Option<Self> {
        let options = &[("keep", sad::Duplicates::Keep), ("count", sad::Duplicates::Count)];
        let duplicates = table.choice("duplicates", options);
        let report = table.choice(
            "report",
            &[("none", sad::Report::None), ("list", sad::Report::List), ("signal", sad::Report::Signal)],
        );
        let exempt = exempt(table);
        let queue = below(table, wire, depth);
        let config = sad::Config { duplicates: duplicates?, report: report?, exempt: exempt? };
        Some(Self::new(config, queue?))
    }
}

impl Readable for Over<regenerator::Config> {
    const SECTION: &'static Section = &Section {
        heading: "`kind = \"ack-regenerator\"`",
        about: "Puts back, behind the line, the ACKs that were suppressed before it.",
        keys: &[
            Key::with_default(
                "know",
                Kind::Choice(&["list", "signal", "interpolate"]),
                "list",
                "How it learns what was suppressed: as the `report` of the `sad` before the line says, or from the \
                 distance between ACKs.",
            ),
            Key::with_default(
                "factor",
                Kind::Count,
                "1",
                "ACKs to make of `per` suppressed ones; `factor` / `per` is at most 16.",
            )
            .at_least("1")
            .at_most("16000"),
            Key::with_default("per", Kind::Count, "1", "Suppressed ACKs of which `factor` are made.")
                .at_least("1")
                .at_most("16000"),
            Key::with_default(
                "release",
                Kind::Choice(&["burst", "paced"]),
                "burst",
                "At once, or spread over the time since the flow's previous ACK came.",
            ),
            Key::with_default("max_hold", Kind::Time, "100 ms", "With `paced`: the longest that a packet is held.")
                .at_least("1 us")
                .at_most("500 ms"),
            Key::with_default(
                "segments",
                Kind::Count,
                "2",
                "With `interpolate`: segments for each ACK of the receiver.",
            )
            .at_least("1")
            .at_most("1000"),
            Key::with_default("segment_size", Kind::Bytes, "1460 B", "With `interpolate`: payload of a segment.")
                .at_least("1 B")
                .at_most("65535 B"),
            Key::with_default("idle", Kind::Time, "60 s", "A flow is forgotten after so long a silence.")
                .at_least("1 s")
                .at_most("1 h"),
            EXEMPT,
            BELOW,
            LIMIT,
            DROP,
        ],
    };

    fn read(table: &Table<'_>, wire: &Wire, depth: usize) -> Option<Self> {
        let know = know(table);
        let factor = factor(table);
        let max_hold: Option<Duration> = table.get("max_hold");
        let release = table.choice("release", &[("burst", false), ("paced", true)]);
        if release == Some(false) && table.has("max_hold") {
            table.error("max_hold", "max_hold, but restored ACKs depart at once", Some("release = \"paced\"".into()));
        }
        let idle: Option<Duration> = table.get("idle");
        let exempt = exempt(table);
        let queue = below(table, wire, depth);
        let release =
            if release? { regenerator::Release::Paced { hold: max_hold? } } else { regenerator::Release::Burst };
        let config = regenerator::Config { know: know?, factor: factor?, release, idle: idle?, exempt: exempt? };
        Some(Self::new(config, queue?))
    }
}

fn know(table: &Table<'_>) -> Option<regenerator::Know> {
    let segments: Option<u64> = table.get("segments");
    let size: Option<ByteCount> = table.get("segment_size");
    // At most 1000 times 65 535.
    let stride = u32::try_from(segments? * size?.as_u64()).ok()?;
    let interpolate = regenerator::Know::Interpolate { stride };
    let options =
        &[("list", regenerator::Know::List), ("signal", regenerator::Know::Signal), ("interpolate", interpolate)];
    let know = table.choice("know", options)?;
    for key in ["segments", "segment_size"] {
        if know != interpolate && table.has(key) {
            table.error(key, format!("{key}, but nothing is interpolated"), Some("know = \"interpolate\"".into()));
        }
    }
    Some(know)
}

fn factor(table: &Table<'_>) -> Option<regenerator::Factor> {
    let factor: Option<u64> = table.get("factor");
    let per: Option<u64> = table.get("per");
    let (factor, per) = (u32::try_from(factor?).ok()?, u32::try_from(per?).ok()?);
    let exact = regenerator::Factor::new(factor, per);
    if exact.is_none() {
        let most = regenerator::Factor::MOST;
        table.error("factor", format!("{factor} ACKs for {per} suppressed; at most {most} for one"), None);
    }
    exact
}

impl Readable for filter::Config {
    const SECTION: &'static Section = &Section {
        heading: "`kind = \"ack-filter\"`",
        about: "A FIFO in which a new ACK replaces older ones of its flow.",
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

    fn read(table: &Table<'_>, wire: &Wire, _depth: usize) -> Option<Self> {
        let held = limit_and_drop(table, wire);
        let rules = rules(table);
        let (limit, drop) = held?;
        Some(Self { limit, drop, rules: rules? })
    }
}

fn rules(table: &Table<'_>) -> Option<filter::Rules> {
    let fraction: Option<Ratio> = table.get("fraction");
    let options = &[("keep", filter::Duplicates::Keep), ("remove", filter::Duplicates::Remove)];
    let duplicates = table.choice("duplicates", options);
    let exempt = exempt(table);
    let fraction = Fraction::new(fraction?.as_parts_per_billion(), Ratio::ONE.as_parts_per_billion())?;
    Some(filter::Rules { fraction, duplicates: duplicates?, exempt: exempt? })
}

impl Readable for collapsing::Config {
    const SECTION: &'static Section = &Section {
        heading: "`kind = \"ack-collapsing\"`",
        about: "A FIFO in which every ACK waits; when the oldest of a flow is to leave, the newest goes in its \
                place and the rest is dropped.",
        keys: &[LIMIT, DROP, EXEMPT],
    };

    fn read(table: &Table<'_>, wire: &Wire, _depth: usize) -> Option<Self> {
        let held = limit_and_drop(table, wire);
        let exempt = exempt(table);
        let (limit, drop) = held?;
        Some(Self { limit, drop, exempt: exempt? })
    }
}

impl Readable for cake::Config {
    const SECTION: &'static Section = &Section {
        heading: "`kind = \"cake-ack-filter\"`",
        about: "A FIFO with the ACK filter of CAKE: when a segment is queued, at most one older ACK of its flow is \
                dropped.",
        keys: &[
            LIMIT,
            DROP,
            Key::with_default(
                "mode",
                Kind::Choice(&["normal", "aggressive"]),
                "normal",
                "`ack-filter` of tc-cake(8), which leaves two ACKs of a flow, or `ack-filter-aggressive`, which may \
                 leave one.",
            ),
            EXEMPT,
        ],
    };

    fn read(table: &Table<'_>, wire: &Wire, _depth: usize) -> Option<Self> {
        let held = limit_and_drop(table, wire);
        let mode = table.choice("mode", &[("normal", cake::Mode::Normal), ("aggressive", cake::Mode::Aggressive)]);
        let exempt = exempt(table);
        let (limit, drop) = held?;
        Some(Self { limit, drop, rules: cake::Rules { mode: mode?, exempt: exempt? } })
    }
}

impl Readable for Over<pacing::Config> {
    const SECTION: &'static Section = &Section {
        heading: "`kind = \"ack-pacing\"`",
        about: "ACKs go on no faster than the data that they let go can follow. Only pure ACKs are held.",
        keys: &[
            Key::required(
                "rate",
                Kind::Rate,
                "Bytes that are acknowledged in a time, all flows together: payload of the other direction.",
            ),
            Key::with_default("max_hold", Kind::Time, "100 ms", "The longest that an ACK is held.")
                .at_least("1 us")
                .at_most("500 ms"),
            EXEMPT,
            BELOW,
            LIMIT,
            DROP,
        ],
    };

    fn read(table: &Table<'_>, wire: &Wire, depth: usize) -> Option<Self> {
        let rate: Option<BitRate> = table.get("rate");
        let max_hold: Option<Duration> = table.get("max_hold");
        let exempt = exempt(table);
        let queue = below(table, wire, depth);
        let config = pacing::Config { rate: rate?, max_hold: max_hold?, exempt: exempt? };
        Some(Self::new(config, queue?))
    }
}

impl Readable for Over<clamp::Config> {
    const SECTION: &'static Section = &Section {
        heading: "`kind = \"window-clamp\"`",
        about: "Lowers the window that receivers advertise, to `window` for each flow, or to what `rate` delivers \
                in `rtt` for all \
            active flows together.",
        keys: &[
            Key::optional("window", Kind::Bytes, "`rate` and `rtt`", "Largest amount that a flow may have in flight."),
            Key::optional("rate", Kind::Rate, "`window`", "Payload of the other direction."),
            Key::optional("rtt", Kind::Time, "`window`", "The round-trip time, with as much waiting as is wanted."),
            Key::with_default("mss", Kind::Bytes, "1460 B", "Payload of a full segment: no window is lowered below.")
                .at_least("1 B")
                .at_most("65535 B"),
            EXEMPT,
            BELOW,
            LIMIT,
            DROP,
        ],
    };

    fn read(table: &Table<'_>, wire: &Wire, depth: usize) -> Option<Self> {
        let target = target(table);
        let mss: Option<ByteCount> = table.get("mss");
        let exempt = exempt(table);
        let queue = below(table, wire, depth);
        let config = clamp::Config { target: target?, mss: mss?, exempt: exempt? };
        Some(Self::new(config, queue?))
    }
}

/// A window for each flow, or a rate and a round-trip time for all.
fn target(table: &Table<'_>) -> Option<clamp::Target> {
    let window: Option<ByteCount> = table.optional("window");
    let rate: Option<BitRate> = table.optional("rate");
    let rtt: Option<Duration> = table.optional("rtt");
    let has = |key| table.has(key);
    match (has("window"), has("rate"), has("rtt")) {
        (true, false, false) => Some(clamp::Target::Window(window?)),
        (false, true, true) => Some(clamp::Target::Shared { rate: rate?, rtt: rtt?, growth: None }),
        (true, ..) => {
            let key = if has("rate") { "rate" } else { "rtt" };
            let hint = "window is for each flow, rate and rtt are for all together".to_owned();
            table.error(key, format!("both window and {key}"), Some(hint));
            None
        }
        (false, true, false) => {
            table.error("rate", "rate without rtt", Some("add rtt, or give window instead".into()));
            None
        }
        (false, false, true) => {
            table.error("rtt", "rtt without rate", Some("add rate, or give window instead".into()));
            None
        }
        (false, false, false) => {
            table.missing("window");
            None
        }
    }
}

//! HFSC: a tree of classes with service curves.

use lastmile_queueing::sched::hfsc::{Config, ServiceCurve, Share};
use lastmile_units::{BitRate, Duration, WireBytes};

use super::tree::{CLASSES, MATCH, NAME, PARENT, ceilings, checked, classes, items};
use super::{BELOW, CLASS_LIMIT, DROP, Readable, Wire};
use crate::document::{self, Value};
use crate::reader::Table;
use crate::schema::{Key, Kind, Section};
use crate::value::FromNode;

const CURVE_KEYS: &[Key] = &[
    Key::optional("m1", Kind::Rate, "one slope", "Rate of the first piece."),
    Key::optional("d", Kind::Time, "one slope", "Length of the first piece."),
    Key::optional("m2", Kind::Rate, "given by `rate`", "Rate after the first piece."),
    Key::optional("umax", Kind::WireBytes, "given by `m1`", "Bytes that depart within `dmax`."),
    Key::optional("dmax", Kind::Time, "given by `d`", "Time within which `umax` departs."),
    Key::optional("rate", Kind::Rate, "given by `m2`", "Rate after `dmax`."),
];
const CURVE: Kind = Kind::Other("rate, or curve", &[Kind::Rate, Kind::Fields(CURVE_KEYS)]);

static HFSC_CLASS: Section = Section {
    heading: "`classes` of `kind = \"hfsc\"`",
    about: "A class of HFSC. One that is the parent of another has neither a queue, a match, nor `rt`. A curve is a \
            rate, or `{ m1, d, m2 }`: the rate `m1` for the time `d`, then `m2`; without `m1` nothing for `d`. \
            `{ umax, dmax, rate }` is the curve that sends `umax` within `dmax`, and then `rate`.",
    keys: &[
        NAME,
        PARENT,
        Key::optional(
            "rt",
            CURVE,
            "no guarantee",
            "What it has whatever others do, for a class without classes below. Without `ls` and `sc` it has no more.",
        ),
        Key::optional("ls", CURVE, "no share", "Its share of what its parent has, against those of its siblings."),
        Key::optional("sc", CURVE, "neither", "Both `rt` and `ls`."),
        Key::optional("ul", CURVE, "no limit", "What `ls` gives it at most; `rt` has no limit."),
        MATCH,
        BELOW,
        CLASS_LIMIT,
        DROP,
    ],
};

impl Readable for Config {
    const SECTION: &'static Section = &Section {
        heading: "`kind = \"hfsc\"`",
        about: "Hierarchical fair service curves: guarantees whose delay does not depend on their rate, and a tree \
                that shares the rest. Sizes are those on the wire.",
        keys: &[
            CLASSES,
            Key::optional(
                "default",
                Kind::Text,
                "the last class that takes packets",
                "The class of what no class matches.",
            ),
        ],
    };
    const PARTS: &'static [&'static Section] = &[&HFSC_CLASS];

    fn read(table: &Table<'_>, wire: &Wire, depth: usize) -> Option<Self> {
        let items = items(table, &HFSC_CLASS);
        let rate = |class: &Table<'_>, key| class.optional::<Curve>(key).map(|curve| curve.0.rate);
        let mut ceilings = ceilings(&items, |class| rate(class, "ul"));
        for (class, ceiling) in items.iter().zip(&mut ceilings) {
            let guarantee = rate(class, "rt");
            *ceiling = match guarantee {
                // Nothing else serves it.
                Some(_) if !class.has("ls") && !class.has("sc") => guarantee,
                // A guarantee passes the upper limits.
                _ => ceiling.map(|limit| guarantee.or_else(|| rate(class, "sc")).unwrap_or(limit).max(limit)),
            };
        }
        let tree = classes(table, &items, (share, &ceilings), wire, depth);
        let config = Self { tree: tree? };
        checked(table, &items, &config.tree, config.check(), "rt")?;
        Some(config)
    }
}

fn share(class: &Table<'_>) -> Option<Share> {
    let curve = |key| class.optional::<Curve>(key).map(|curve| curve.0);
    let (real_time, link_share, both, upper_limit) = (curve("rt"), curve("ls"), curve("sc"), curve("ul"));
    let is_whole = ["rt", "ls", "sc", "ul"].into_iter().zip([real_time, link_share, both, upper_limit]).all(
        // A key that is there and has no value is wrong, and in the report.
        |(key, curve)| curve.is_some() || !class.has(key),
    );
    if class.has("sc") && (class.has("rt") || class.has("ls")) {
        class.error("sc", "both sc and one of rt and ls, which sc sets", None);
        return None;
    }
    let share = Share { real_time: real_time.or(both), link_share: link_share.or(both), upper_limit };
    is_whole.then_some(share)
}

/// A service curve as a file gives it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Curve(ServiceCurve);

const FORM: &str = "a rate, or { m1 = \"2 Mbit/s\", d = \"10 ms\", m2 = \"1 Mbit/s\" }, \
                    or { umax = \"1500 wire bytes\", dmax = \"10 ms\", rate = \"1 Mbit/s\" }";

impl FromNode for Curve {
    fn from_value(value: &Value) -> Result<Self, String> {
        let table = match value {
            Value::Table(table) => table,
            Value::String(_) => return Ok(Self(ServiceCurve::linear(BitRate::from_value(value)?))),
            other => return Err(format!("{}, where a curve is expected: {FORM}", other.name())),
        };
        let keys = ["m1", "d", "m2", "umax", "dmax", "rate"];
        if let Some((key, _)) = table.entries.iter().find(|(key, _)| !keys.contains(&key.name.as_str())) {
            return Err(format!("unknown key {:?}; a curve is {FORM}", key.name));
        }
        let (m1, d, m2): (Option<BitRate>, Option<Duration>, Option<BitRate>) =
            (part(table, "m1")?, part(table, "d")?, part(table, "m2")?);
        let (umax, dmax, rate): (Option<WireBytes>, Option<Duration>, Option<BitRate>) =
            (part(table, "umax")?, part(table, "dmax")?, part(table, "rate")?);
        match ((m1, d, m2), (umax, dmax, rate)) {
            ((None, None, Some(m2)), (None, None, None)) => Ok(Self(ServiceCurve::linear(m2))),
            ((_, Some(Duration::ZERO), Some(_)), (None, None, None)) => {
                Err("d: a first piece of no time; leave m1 and d out for a straight line".into())
            }
            ((m1, Some(d), Some(m2)), (None, None, None)) => Ok(Self(ServiceCurve::two_pieces(m1, d, m2))),
            ((None, None, None), (Some(umax), Some(dmax), Some(rate))) => {
                let curve = ServiceCurve::within(umax, dmax, rate).map(Self);
                curve.ok_or_else(|| format!("{umax} within {dmax}: faster than any line"))
            }
            _ => Err(format!("a curve is {FORM}")),
        }
    }

    fn from_default(_text: &'static str) -> Self {
        unreachable!("the schema has no default of this kind")
    }
}

/// A value of a curve's table.
fn part<T: FromNode>(table: &document::Table, key: &str) -> Result<Option<T>, String> {
    let node = table.get(key);
    node.map(|node| T::from_value(&node.value).map_err(|why| format!("{key}: {why}"))).transpose()
}

//! Impairments of a wire: `loss` in bursts, `jitter`, `reorder`, `duplicate`, `bit_error_rate`.

use std::sync::Arc;

use lastmile_queueing::compress::Compression;
use lastmile_queueing::line::Config;
use lastmile_queueing::line::impairments::{
    BitErrorRate, Chance, Distribution, GilbertElliott, Jitter, LossModel, Reorder, States,
};
use lastmile_units::{Duration, Ratio};

use crate::delay::MAX_DELAY;
use crate::reader::Table;
use crate::schema::{Key, Kind, NUMBER, Section};
use crate::value::{Probability, Scalar};

pub(crate) const LOSS: Key = Key::optional(
    "loss",
    Kind::Other("share, or a table, see `loss = { ... }`", &[Kind::Share, Kind::Table("`loss = { ... }`")]),
    "0 %",
    "Packets lost on the wire: a share, each at random, or a model.",
);
pub(crate) const JITTER: Key = Key::optional(
    "jitter",
    Kind::Other("time, or a table, see `jitter = { ... }`", &[Kind::Time, Kind::Table("`jitter = { ... }`")]),
    "constant delay",
    "Variation of the delay from packet to packet. Packets stay in order unless `reorder` says otherwise.",
);
pub(crate) const REORDER: Key = Key::optional(
    "reorder",
    Kind::Other(
        "`true`, a share, or a table, see `reorder = { ... }`",
        &[Kind::Flag, Kind::Share, Kind::Table("`reorder = { ... }`")],
    ),
    "packets arrive in order",
    "Packets that overtake others: with `true` each whose delay is so much shorter; with a share these arrive at once, \
     without delay and jitter, and the others in order.",
);
pub(crate) const DUPLICATE: Key = Key::optional(
    "duplicate",
    Kind::Other("share, or a table, see `duplicate = { ... }`", &[Kind::Share, Kind::Table("`duplicate = { ... }`")]),
    "0 %",
    "Packets that arrive twice. The copy is made on the wire and uses no capacity.",
);
pub(crate) const BIT_ERROR_RATE: Key = Key::optional(
    "bit_error_rate",
    Kind::Other("number above 0, at most 0.5, such as `1e-6`", &[Kind::Number, Kind::Matching(NUMBER)]),
    "no bit errors",
    "Probability that a bit on the wire is wrong, which spoils its packet. On cells, a bit of a payload spoils the \
     AAL5 frame.",
);

const CORRELATION: Key = Key::with_default("correlation", Kind::Share, "0 %", "Correlation of consecutive packets.");
const SHARE: Key = Key::required("share", Kind::Share, "The share of all packets.");

pub(crate) static LOSS_MODEL: Section = Section {
    heading: "`loss = { ... }`",
    about: "Losses with a memory. A correlation keeps the share: after a loss the next one has the probability \
            `c + (1 - c) share`.",
    keys: &[
        Key::with_default("random", Kind::Share, "0 %", "Share of packets lost."),
        CORRELATION,
        Key::optional(
            "gemodel",
            Kind::Table("`gemodel = { ... }`"),
            "none",
            "The model of Gilbert and Elliott: two states.",
        ),
        Key::optional("state", Kind::Table("`state = { ... }`"), "none", "Four states."),
    ],
};

pub(crate) static GEMODEL: Section = Section {
    heading: "`gemodel = { ... }`",
    about: "Losses in bursts: a good and a bad state, each with a share of losses; the names are those of netem. \
            In the mean the share `(p (1-h) + r (1-k)) / (p + r)` is lost, and the bad state lasts `1 / r` packets.",
    keys: &[
        Key::required(
            "p",
            Kind::Share,
            "Probability of a transition from the good to the bad state, with each packet.",
        ),
        Key::optional("r", Kind::Share, "100 % - `p`", "Probability of a transition from the bad to the good state."),
        Key::with_default("1-h", Kind::Share, "100 %", "Share of losses in the bad state."),
        Key::with_default("1-k", Kind::Share, "0 %", "Share of losses in the good state."),
    ],
};

pub(crate) static STATE: Section = Section {
    heading: "`state = { ... }`",
    about: "Losses by four states, as netem numbers them: 1 received, 2 received within a burst, 3 lost in a burst, 4 \
            lost alone (a packet is received next).",
    keys: &[
        Key::required("p13", Kind::Share, "A burst begins."),
        Key::optional("p31", Kind::Share, "100 % - `p13`", "A burst ends."),
        Key::with_default("p32", Kind::Share, "0 %", "A burst pauses."),
        Key::with_default("p23", Kind::Share, "100 %", "A paused burst goes on."),
        Key::with_default("p14", Kind::Share, "0 %", "A packet is lost alone."),
    ],
};

pub(crate) static JITTER_TABLE: Section = Section {
    heading: "`jitter = { ... }`",
    about: "The delay of a packet is `delay` plus `time` times a deviate, at least 0. The deviates are those of \
            netem's \
            tables: at most 4 either way.",
    keys: &[
        Key::required("time", Kind::Time, "The time of a deviate of 1.").at_most(MAX_DELAY),
        CORRELATION,
        Key::with_default(
            "distribution",
            Kind::Text,
            "uniform",
            "`\"uniform\"` from -1 to 1, `\"normal\"`, `\"pareto\"`, `\"paretonormal\"`, or the name of a file with a \
             table in the format of netem: numbers in units of 1/8192.",
        ),
    ],
};

pub(crate) static REORDER_TABLE: Section = Section {
    heading: "`reorder = { ... }`",
    about: "Packets that arrive at once and overtake those on the wire.",
    keys: &[
        SHARE,
        CORRELATION,
        Key::with_default(
            "gap",
            Kind::Count,
            "1",
            "One packet in `gap` may overtake, counted from the last that did. With a `share` of p, 1 / (gap - 1 + 1 / \
             p) of all packets overtake.",
        )
        .at_least("1")
        .at_most("1000000"),
    ],
};

pub(crate) static DUPLICATE_TABLE: Section =
    Section { heading: "`duplicate = { ... }`", about: "Packets that arrive twice.", keys: &[SHARE, CORRELATION] };

/// All sections, for the reference.
pub(crate) fn sections() -> Vec<&'static Section> {
    vec![&LOSS_MODEL, &GEMODEL, &STATE, &JITTER_TABLE, &REORDER_TABLE, &DUPLICATE_TABLE]
}

/// Reads the impairments of a direction over those that `line` has. `None` if one is wrong.
pub(crate) fn read(table: &Table<'_>, line: &mut Config) -> Option<()> {
    if table.has("loss") {
        (line.loss, line.impairments.loss) = loss(table)?;
    }
    if table.has("jitter") {
        line.impairments.jitter = Some(jitter(table)?).filter(|jitter| jitter.spread > Duration::ZERO);
    }
    if table.has("reorder") {
        line.impairments.reorder = reorder(table)?;
    }
    let reorders = line.impairments.reorder == Some(Reorder::ByDelay);
    // A trace may change the delay.
    if reorders && line.impairments.jitter.is_none() && !table.has("trace") {
        let message = format!("{}: without jitter no packet overtakes another", table.path("reorder"));
        table.warning("reorder", message, Some("jitter = \"5 ms\" with it, or a share: reorder = \"1 %\"".into()));
    }
    if table.has("duplicate") {
        line.impairments.duplicate = Some(duplicate(table)?).filter(|chance| chance.share > Ratio::ZERO);
    }
    if table.has("bit_error_rate") {
        line.impairments.bit_errors = BitErrorRate::new(table.optional::<Probability>("bit_error_rate")?.0);
    }
    if matches!(line.compression, Compression::Rfc1144 { .. }) && line.impairments.disorders() {
        let key = if line.impairments.reorder.is_some() { "reorder" } else { "duplicate" };
        let message = format!(
            "{}: {key} with header_compression = \"vj\", whose packets must arrive once and in order",
            table.path(key)
        );
        table.error(key, message, Some("header_compression = \"none\" on this direction".into()));
        return None;
    }
    Some(())
}

/// The share of independent losses, and the model of the others.
fn loss(table: &Table<'_>) -> Option<(Ratio, Option<LossModel>)> {
    if !table.has_table("loss") {
        return Some((table.optional("loss")?, None));
    }
    let own = table.table("loss")?.open(&LOSS_MODEL);
    let chance = Chance { share: own.get("random")?, correlation: own.get("correlation")? };
    let gemodel = own.table("gemodel").map(|model| model.open(&GEMODEL));
    let state = own.table("state").map(|model| model.open(&STATE));
    let correlated = chance.correlation > Ratio::ZERO && chance.share > Ratio::ZERO;
    match (gemodel, state) {
        (Some(_), Some(_)) => refuse(&own, "state", "gemodel and state: give one of them"),
        (Some(_), _) | (_, Some(_)) if correlated => {
            refuse(&own, "correlation", "a correlation and a model: give one of them")
        }
        (Some(model), None) => Some((chance.share, Some(LossModel::GilbertElliott(gilbert_elliott(&model)?)))),
        (None, Some(model)) => Some((chance.share, Some(LossModel::States(states(&model)?)))),
        (None, None) if chance.share == Ratio::ZERO && chance.correlation > Ratio::ZERO => {
            let message = format!("{}: a correlation of no losses", own.path("correlation"));
            own.warning("correlation", message, Some("random = \"1 %\" with it".into()));
            Some((Ratio::ZERO, None))
        }
        (None, None) if correlated => Some((Ratio::ZERO, Some(LossModel::Correlated(chance)))),
        (None, None) => Some((chance.share, None)),
    }
}

fn gilbert_elliott(table: &Table<'_>) -> Option<GilbertElliott> {
    let to_bad = table.get("p")?;
    let to_good = optional_share(table, "r", complement(to_bad))?;
    if to_good == Ratio::ZERO && to_bad > Ratio::ZERO {
        return refuse(table, "r", "0 %: the bad state never ends");
    }
    Some(GilbertElliott { to_bad, to_good, bad: table.get("1-h")?, good: table.get("1-k")? })
}

fn states(table: &Table<'_>) -> Option<States> {
    let p13 = table.get("p13")?;
    let p31 = optional_share(table, "p31", complement(p13))?;
    let states = States { p13, p31, p32: table.get("p32")?, p23: table.get("p23")?, p14: table.get("p14")? };
    let above = |one: Ratio, two: Ratio| {
        u64::from(one.as_parts_per_billion()) + u64::from(two.as_parts_per_billion()) > 1_000_000_000
    };
    if above(states.p13, states.p14) {
        return refuse(table, "p14", "p13 and p14 are more than 100 %");
    }
    if above(states.p31, states.p32) {
        return refuse(table, "p32", "p31 and p32 are more than 100 %");
    }
    Some(states)
}

fn complement(share: Ratio) -> Ratio {
    Ratio::from_parts_per_billion(1_000_000_000 - share.as_parts_per_billion()).unwrap_or_default()
}

fn optional_share(table: &Table<'_>, key: &'static str, otherwise: Ratio) -> Option<Ratio> {
    if table.has(key) { table.optional(key) } else { Some(otherwise) }
}

fn jitter(table: &Table<'_>) -> Option<Jitter> {
    if !table.has_table("jitter") {
        let spread = table.optional("jitter")?;
        return Some(Jitter { spread, correlation: Ratio::ZERO, distribution: Distribution::Uniform });
    }
    let own = table.table("jitter")?.open(&JITTER_TABLE);
    let name: String = own.get("distribution")?;
    let distribution = match name.as_str() {
        "uniform" => Distribution::Uniform,
        "normal" => Distribution::Normal,
        "pareto" => Distribution::Pareto,
        "paretonormal" => Distribution::ParetoNormal,
        file => match deviates(&own, file) {
            Ok(values) => Distribution::Table(values),
            Err(message) => return refuse(&own, "distribution", &message),
        },
    };
    Some(Jitter { spread: own.get("time")?, correlation: own.get("correlation")?, distribution })
}

/// The values of a table in the format of netem.
fn deviates(table: &Table<'_>, name: &str) -> Result<Arc<[i16]>, String> {
    let path = crate::trace::beside(table, name);
    let text = crate::files::text(table.files(), &path).map_err(|error| {
        format!("{}: {error}; a distribution is uniform, normal, pareto, paretonormal or a file", path.display())
    })?;
    let mut values = Vec::new();
    for (number, line) in text.lines().enumerate().map(|(index, line)| (index + 1, line)) {
        for word in line.split('#').next().unwrap_or_default().split_whitespace() {
            let value = word.parse::<i16>();
            values.push(value.map_err(|_| {
                format!("{}: line {number}: {word:?} is no whole number from -32768 to 32767", path.display())
            })?);
        }
    }
    if values.is_empty() {
        return Err(format!("{}: no values", path.display()));
    }
    values.sort_unstable();
    Ok(values.into())
}

fn reorder(table: &Table<'_>) -> Option<Option<Reorder>> {
    if table.has_table("reorder") {
        let own = table.table("reorder")?.open(&REORDER_TABLE);
        let gap = u32::try_from(own.get::<u64>("gap")?).ok()?;
        return Some(overtaking(chance(&own)?, gap));
    }
    match table.optional("reorder")? {
        Scalar::Flag(flag) => Some(flag.then_some(Reorder::ByDelay)),
        _ => Some(overtaking(Chance::independent(table.optional("reorder")?), 1)),
    }
}

fn overtaking(chance: Chance, gap: u32) -> Option<Reorder> {
    (chance.share > Ratio::ZERO).then_some(Reorder::Overtaking { chance, gap })
}

fn duplicate(table: &Table<'_>) -> Option<Chance> {
    if !table.has_table("duplicate") {
        return table.optional("duplicate").map(Chance::independent);
    }
    chance(&table.table("duplicate")?.open(&DUPLICATE_TABLE))
}

fn chance(own: &Table<'_>) -> Option<Chance> {
    Some(Chance { share: own.get("share")?, correlation: own.get("correlation")? })
}

fn refuse<T>(table: &Table<'_>, key: &'static str, message: &str) -> Option<T> {
    table.error(key, format!("{}: {message}", table.path(key)), None);
    None
}

//! The study file: a scenario, the points at which it runs, the seeds of each, and the measures to print.

use std::path::{Path, PathBuf};

use lastmile_units::{Duration, Ratio};

use crate::cases::{self, Case, SETTING};
use crate::diagnostics::{Place, Report, Source};
use crate::document::Document;
use crate::kinds::FileKind;
use crate::overrides::Override;
use crate::reader::free::FreeKey;
use crate::reader::{Reader, Table, Unopened};
use crate::reference::render_section;
use crate::schema::{Key, Kind, Section};

const AXES: &str = "keys of the scenario";

static STUDY: Section = Section {
    heading: "Top level",
    about: "",
    keys: &[
        Key::optional("name", Kind::Text, "the file's name", "Name of the study."),
        Key::required("scenario", Kind::Text, "The scenario; a relative path counts from the study file's folder."),
        Key::optional(
            "set",
            Kind::Other("`\"key=value\"`, or a list of these", &[Kind::Text, Kind::Several(&[Kind::Text])]),
            "the scenario as it is",
            "Keys that all runs set, in the form of `--set`.",
        ),
        Key::optional("duration", Kind::Time, "the scenario's", "Simulated time of each run."),
        Key::with_default(
            "seeds",
            Kind::Count,
            "1",
            "Runs of each point, with seeds from the scenario's on. All points have the same seeds: \
             differences between points are then paired comparisons.",
        )
        .at_least("1")
        .at_most("1000000"),
        Key::optional(
            "until",
            Kind::Table("`[until]`"),
            "`seeds` of each point",
            "In place of `seeds`: seeds until the interval of a mean is narrow.",
        ),
        Key::optional(
            "measures",
            Kind::Other("list of texts", &[Kind::Several(&[Kind::Text])]),
            "goodputs and round trips, as far as runs have them",
            "Measures of the printed table: names of columns of `table.parquet`, which has all.",
        ),
        Key::optional("grid", Kind::Table("`[grid]`"), "none", "Every combination of the values of each key."),
        Key::optional("paired", Kind::Table("`[paired]`"), "none", "The n-th value of every key together."),
        Key::optional("latin", Kind::Table("`[latin]`"), "none", "A Latin hypercube over ranges."),
        Key::optional("case", Kind::Tables("`[[case]]`"), "none", "Settings under names, which are values of `case`."),
    ],
};

static UNTIL: Section = Section {
    heading: "`[until]`",
    about: "Each point begins with `at_least` seeds, and gets half as many more until its interval is narrow or it \
            has `at_most`. The seeds depend on results alone: an interrupted study ends with the same runs.",
    keys: &[
        Key::optional(
            "measure",
            Kind::Text,
            "`download_bps` over an access line, else `goodput_bps`",
            "The measure whose mean is estimated. A point where no run has it keeps its first seeds.",
        ),
        Key::required("ci", Kind::Share, "Half of the 95 % confidence interval, as a share of the mean.")
            .at_least("0.001 %"),
        Key::optional(
            "at_least",
            Kind::Count,
            "`10`, or `at_most` if that is less",
            "The first seeds of a point: more, where few runs differ from the others. At most `at_most`.",
        )
        .at_least("2")
        .at_most("1000000"),
        Key::with_default("at_most", Kind::Count, "64", "The most seeds of a point.").at_least("2").at_most("1000000"),
    ],
};

/// The usual first seeds of a point: the runs after which the sequential procedure for a relative precision begins to
/// check (Law and Kelton, Simulation Modeling and Analysis, chapter 9).
const USUAL_LEAST: u64 = 10;

static LATIN: Section = Section {
    heading: "`[latin]`",
    about: "Each key takes one value in each of `points` equal parts of its range.",
    keys: &[
        Key::required("points", Kind::Count, "Number of points.").at_least("1").at_most("1000000"),
        Key::with_default("seed", Kind::Count, "1", "Seed of the points."),
        Key::required("keys", Kind::Other(AXES, &[]), "The range of each key; no `count`."),
    ],
};

static CASE: Section = Section {
    heading: "`[[case]]`",
    about: "A value of the key `case`: a name for settings of several keys, such as those of a sender. Tables, figures \
            and the page have the names.",
    keys: &[
        Key::required("name", Kind::Text, "Name of the case, unique."),
        Key::optional(
            "set",
            Kind::Other("`\"key=value\"`, or a list of these", &[SETTING, Kind::Several(&[SETTING])]),
            "the scenario as it is",
            "Keys that it sets, in the form of `--set`, such as `\"traffic.download.transport=quic\"`: none that the \
             study varies.",
        ),
    ],
};

static RANGE: Section = Section {
    heading: "Ranges",
    about: "In `[grid]` and `[paired]` a key has a list of values, or a range of `count` values. Values are \
            rounded to four digits, or as many as keep them apart, except the ends.",
    keys: &[
        Key::required(
            "from",
            Kind::Other("number, time, rate or size", &[Kind::Number, Kind::Text]),
            "The smallest value.",
        ),
        Key::required(
            "to",
            Kind::Other("number, time, rate or size", &[Kind::Number, Kind::Text]),
            "The largest value.",
        ),
        Key::optional("count", Kind::Count, "required outside of `[latin]`", "Number of values, both ends included.")
            .at_least("2")
            .at_most("1000000"),
        Key::with_default(
            "scale",
            Kind::Choice(&["linear", "log"]),
            "linear",
            "`linear`: even differences; `log`: even ratios.",
        ),
    ],
};

/// A study as its file says, read and checked as far as the file alone allows.
#[derive(Clone, PartialEq, Debug)]
pub struct StudyFile {
    /// The name of the study.
    pub name: String,
    /// The path of the scenario.
    pub scenario: PathBuf,
    /// Where the file names it.
    pub scenario_place: Place,
    /// Overrides of all runs.
    pub common: Vec<Override>,
    /// The seeds of each point.
    pub seeds: Seeding,
    /// The measures to print.
    pub measures: Vec<(Place, String)>,
    /// Every combination of their values.
    pub grid: Vec<Axis>,
    /// The n-th value of each together.
    pub paired: Vec<Axis>,
    /// A Latin hypercube.
    pub latin: Option<Latin>,
    /// The values of the key `case`.
    pub cases: Vec<Case>,
}

/// The seeds of each point.
#[derive(Clone, PartialEq, Debug)]
pub enum Seeding {
    /// A number of seeds.
    Count(u64),
    /// Until half the interval of a measure's mean is at most a share of it.
    Until {
        /// The measure and its place; `None` for the usual one.
        measure: Option<(Place, String)>,
        /// The share.
        share: f64,
        /// The first seeds of a point, not more than `at_most`.
        at_least: u64,
        /// The most seeds.
        at_most: u64,
    },
}

/// A key of the scenario and its values.
#[derive(Clone, PartialEq, Debug)]
pub struct Axis {
    /// The key, as `--set` has it.
    pub key: String,
    /// Where the key is.
    pub place: Place,
    /// The values of the axis.
    pub values: Values,
}

/// The values of a key.
#[derive(Clone, PartialEq, Debug)]
pub enum Values {
    /// Each, as `--set` has it.
    List(Vec<(Place, String)>),
    /// Between two ends, with this number of values; `None` in a Latin hypercube.
    Range(Ends, Option<u64>),
}

/// Two ends, each as `--set` has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ends {
    /// Where the range is.
    pub place: Place,
    /// The smallest value.
    pub from: String,
    /// The largest value.
    pub to: String,
    /// Even ratios in place of even differences.
    pub is_log: bool,
}

/// A Latin hypercube.
#[derive(Clone, PartialEq, Debug)]
pub struct Latin {
    /// Number of points.
    pub points: u64,
    /// Seed of the points.
    pub seed: u64,
    /// The range of each key.
    pub axes: Vec<Axis>,
}

impl StudyFile {
    /// Reads `text`, which messages call `name`: the path of the file, from whose folder the scenario is named.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn parse(name: &str, text: &str) -> Result<Self, Report> {
        let document = Document::parse(Source::new(name, text), &[])?;
        FileKind::Study.check(&document, name)?;
        let reader = Reader::new(document);
        let read = study(&reader.root().open(&STUDY), name);
        let (report, _) = reader.finish();
        if report.has_errors() {
            return Err(report);
        }
        Ok(read.expect("what could not be read is in the report"))
    }
}

fn study(root: &Table<'_>, file: &str) -> Option<StudyFile> {
    let name = root.optional_name("name").unwrap_or_else(|| {
        let stem = Path::new(file).file_stem();
        stem.map_or_else(|| file.to_owned(), |stem| stem.to_string_lossy().into_owned())
    });
    let scenario: Option<String> = root.get("scenario");
    let seeds = seeds(root);
    let measures = root.each("measures");
    let axes = |key: &'static str| root.table(key).map_or_else(Vec::new, |table| axes(&table, true));
    let (grid, paired) = (axes("grid"), axes("paired"));
    let latin = root.table("latin").map(latin);
    let common = common(root);
    let mut known: Vec<&str> = Vec::new();
    for axis in grid.iter().chain(&paired).chain(latin.iter().flatten().flat_map(|latin| &latin.axes)) {
        if known.contains(&axis.key.as_str()) {
            root.error_at(axis.place.clone(), &axis.key, "a second list of values of this key");
        }
        known.push(&axis.key);
    }
    Some(StudyFile {
        name,
        scenario: root.directory().unwrap_or_default().join(scenario?),
        scenario_place: root.place("scenario"),
        common,
        seeds: seeds?,
        measures,
        grid,
        paired,
        latin: match latin {
            Some(latin) => Some(latin?),
            None => None,
        },
        cases: cases::read(root, &CASE),
    })
}

/// `set` and `duration`.
fn common(root: &Table<'_>) -> Vec<Override> {
    let set = root.each::<String>("set");
    for (place, wrong) in set.iter().filter(|(_, pair)| !pair.contains('=')) {
        let message = format!("{wrong:?} is not of the form key=value, such as \"access.up.rate=1 Mbit/s\"");
        root.error_at(place.clone(), "set", message);
    }
    let duration: Option<Duration> = root.optional("duration");
    let duration = duration.map(|time| Override::at(root.place("duration"), format!("duration={time}")));
    set.into_iter().map(|(place, pair)| Override::at(place, pair)).chain(duration).collect()
}

fn seeds(root: &Table<'_>) -> Option<Seeding> {
    let Some(until) = root.table("until") else { return Some(Seeding::Count(root.get("seeds")?)) };
    if root.has("seeds") {
        root.error("seeds", "seeds and [until]: give one of them", None);
    }
    let until = until.open(&UNTIL);
    let measure = until.optional("measure").map(|measure| (until.place("measure"), measure));
    let (share, at_most) = (until.get::<Ratio>("ci"), until.get::<u64>("at_most"));
    let (at_least, at_most) = (until.optional::<u64>("at_least"), at_most?);
    if let Some(at_least) = at_least.filter(|at_least| *at_least > at_most) {
        until.error("at_least", format!("until.at_least: {at_least} seeds, where at_most has {at_most}"), None);
    }
    let at_least = at_least.unwrap_or(USUAL_LEAST).min(at_most);
    Some(Seeding::Until { measure, share: share?.as_f64(), at_least, at_most })
}

fn latin(table: Unopened<'_>) -> Option<Latin> {
    let table = table.open(&LATIN);
    let (points, seed) = (table.get("points"), table.get("seed"));
    let axes = axes(&table.required_table("keys")?, false);
    Some(Latin { points: points?, seed: seed?, axes })
}

/// The keys of a table with their values: lists are allowed where `is_counted`, and ranges then have a number of
/// values.
fn axes(table: &Unopened<'_>, is_counted: bool) -> Vec<Axis> {
    let keys = table.free(&|name| RANGE.key(name).is_some());
    let axis = |key: &FreeKey<'_>| {
        let values = match (key.list(), key.table()) {
            (Some(_), _) if !is_counted => {
                key.error(key.value_place(), "a list, where a range is expected", Some(EXAMPLE.to_owned()));
                return None;
            }
            (Some(list), _) if list.is_empty() => {
                key.error(key.value_place(), "no values", None);
                return None;
            }
            (Some(list), _) => Values::List(list),
            (None, Some(range)) => self::range(key, range, is_counted)?,
            (None, None) => {
                let expected = if is_counted { "a list or a range" } else { "a range" };
                let message = format!("{}, where {expected} is expected", key.kind());
                key.error(key.value_place(), &message, Some(EXAMPLE.to_owned()));
                return None;
            }
        };
        if key.name == "seed" {
            let hint = "seeds = N runs every point with N seeds".to_owned();
            key.error(key.place.clone(), "the seed is no key of a study", Some(hint));
            return None;
        }
        Some(Axis { key: key.name.clone(), place: key.place.clone(), values })
    };
    keys.iter().filter_map(axis).collect()
}

const EXAMPLE: &str = "such as { from = \"128 kbit/s\", to = \"2 Mbit/s\", count = 5, scale = \"log\" }";

fn range(key: &FreeKey<'_>, table: Unopened<'_>, is_counted: bool) -> Option<Values> {
    let place = key.value_place();
    let table = table.open(&RANGE);
    let end = |key: &'static str| {
        let value = table.each::<End>(key).into_iter().next();
        if !table.has(key) {
            table.missing(key);
        }
        value.map(|(_, End(text))| text)
    };
    let (from, to) = (end("from"), end("to"));
    let is_log = table.choice("scale", &[("linear", false), ("log", true)]);
    let count: Option<u64> = table.optional("count");
    if is_counted && !table.has("count") {
        table.missing("count");
    }
    if !is_counted && table.has("count") {
        let message = "count: the points of a Latin hypercube are `points` of [latin]";
        table.error("count", message, None);
    }
    Some(Values::Range(Ends { place, from: from?, to: to?, is_log: is_log? }, count))
}

/// An end of a range: a number, or a text with a unit.
struct End(String);

impl crate::value::FromNode for End {
    fn from_value(value: &crate::document::Value) -> Result<Self, String> {
        use crate::document::Value;
        match value {
            Value::String(text) | Value::Integer(text) | Value::Float(text) => Ok(Self(text.clone())),
            other => Err(format!("{}, where a number or a text with a unit is expected", other.name())),
        }
    }

    fn from_default(text: &'static str) -> Self {
        Self(text.to_owned())
    }
}

const INTRODUCTION: &str = "\
# The study file

<!-- Printed from the code by `cargo run -p lastmile-scenario --example study-reference`; a test holds the two \
                            together. -->

A study runs a scenario at many points of a space of parameters, each with several seeds. Its file is
[TOML](https://toml.io). `lastmile study FILE --out DIR` takes it, and in Python `lastmile.study(\"FILE\")`
([studies](../guides/studies.md)).

```toml
scenario = \"../upload-starves-download.toml\"
duration = \"20 s\"
seeds = 4
measures = [\"download_bps\", \"upload_bps\"]

[grid]
access.up.rate = { from = \"256 kbit/s\", to = \"1 Mbit/s\", count = 3, scale = \"log\" }
access.policy = [\"none\", \"cake\"]
```

Keys of the scenario stand as in `--set`, and have values as in [the scenario file](scenario.md). Points of `[grid]`,
`[paired]`, `[latin]` and `[[case]]` are combined: each point of one with each of the others.
";

/// The reference of the study file, as Markdown.
#[must_use]
pub fn render_reference() -> String {
    let mut text = INTRODUCTION.to_owned();
    text.push('\n');
    for section in [&STUDY, &UNTIL, &RANGE, &LATIN, &CASE] {
        render_section(&mut text, section, "");
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text.replace("\n### ", "\n## ")
}

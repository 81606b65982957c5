//! How tables are reproduced, as data: the file `experiments/KEY.toml` of a publication.
//!
//! | part | says |
//! | --- | --- |
//! | `open`, `[[question]]` | what the publication leaves open: the base case, its reasons, and other answers |
//! | `[[rule]]` | which keys of the scenario a setting sets, and which traffic it adds |
//! | `[[experiment]]` | for its tables: scenario, runs, figures, further rows, and the conditions of the claim |
//!
//! Settings are, each over those before: `open`, another answer, the table's scenario, the row's
//! parameters, `let` of experiment and run. Rules apply in their order. Formulas and texts are
//! those of [`formula`](crate::formula) and [`template`](crate::template).

mod check;
pub(crate) mod judge;
mod parse;
pub(crate) mod point;
pub(crate) mod rows;
mod runs;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use toml::Spanned;

use crate::data::DataError;
use crate::formula::{Condition, Formula};
use crate::pairs::Pairs;
use crate::template::Template;
use crate::value::{Value, Values};

/// The files, by the key of their publication.
const FILES: [(&str, &str); 12] = [
    ("ano2002", include_str!("../experiments/ano2002.toml")),
    ("brouer2005", include_str!("../experiments/brouer2005.toml")),
    ("kalyanaraman1999", include_str!("../experiments/kalyanaraman1999.toml")),
    ("phanse2000", include_str!("../experiments/phanse2000.toml")),
    ("sun1998", include_str!("../experiments/sun1998.toml")),
    ("ced2006", include_str!("../experiments/ced2006.toml")),
    ("custura2020", include_str!("../experiments/custura2020.toml")),
    ("deschepper2016", include_str!("../experiments/deschepper2016.toml")),
    ("hock2017", include_str!("../experiments/hock2017.toml")),
    ("starlink2025", include_str!("../experiments/starlink2025.toml")),
    ("ware2019", include_str!("../experiments/ware2019.toml")),
    ("white2019", include_str!("../experiments/white2019.toml")),
];

static PLANS: LazyLock<Result<Vec<Plan>, DataError>> =
    LazyLock::new(|| FILES.iter().map(|(key, text)| Plan::parse(key, text)).collect());

/// How the tables of a publication are reproduced.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Plan {
    /// Key of the publication.
    #[serde(skip)]
    pub(crate) publication: String,
    /// With how many seeds the base case runs.
    seeds: usize,
    /// Settings of the cases that are tried in addition to the base case.
    #[serde(default)]
    brief: Values,
    /// By how much a run becomes shorter by `brief`: its usual length over this one.
    #[serde(default = "one")]
    shorter: f64,
    /// Settings that the publication leaves open, in the base case.
    #[serde(default)]
    open: Values,
    /// Texts of assumptions, by the name under which experiments refer to them. Values in them are those of the
    /// first row with the first seed.
    #[serde(default)]
    notes: BTreeMap<String, Vec<Template>>,
    /// Parameters that were inferred from the figures of a table: a claim about these depends on them.
    #[serde(default)]
    inferred: BTreeMap<String, Vec<String>>,
    /// The effect of single keys on a table, for the note called `sensitivity`.
    #[serde(default)]
    sensitivity: BTreeMap<String, Sensitivity>,
    #[serde(default, rename = "question")]
    questions: Vec<Question>,
    #[serde(default, rename = "rule")]
    rules: Vec<Rule>,
    #[serde(rename = "experiment")]
    experiments: Vec<Experiment>,
}

const fn one() -> f64 {
    1.0
}

/// Something that a publication does not say.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Question {
    asks: String,
    /// The answer of the base case.
    taken: String,
    /// The reason, which does not depend on the results.
    because: String,
    /// The tables to which it matters; empty for all.
    #[serde(default)]
    tables: Vec<String>,
    #[serde(rename = "answer")]
    answers: Vec<Answer>,
}

/// Another possible answer.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    is: String,
    set: Values,
}

/// Keys and text of the scenario that follow from settings.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    /// The settings for which it applies; of a list any one.
    #[serde(default, rename = "where")]
    applies: Values,
    /// Further settings.
    #[serde(default, rename = "let")]
    settings: Pairs<Setting>,
    /// Keys of the scenario. A text of nothing sets nothing.
    #[serde(default)]
    set: Pairs<Template>,
    #[serde(default)]
    add: Vec<Add>,
}

/// Text that is added to a scenario.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Add {
    #[serde(default, rename = "where")]
    applies: Values,
    /// How often, counted from 1 by `n`, or by the setting that `by` names.
    count: Option<Formula>,
    by: Option<String>,
    #[serde(default, rename = "let")]
    settings: Pairs<Setting>,
    text: Option<Template>,
    #[serde(default)]
    add: Vec<Add>,
}

/// A setting: a value, or a text with values in it.
#[derive(Debug, Deserialize)]
#[serde(try_from = "Value")]
enum Setting {
    Template(Template),
    Value(Value),
}

impl TryFrom<Value> for Setting {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        match value {
            Value::Text(text) => text.parse().map(Self::Template),
            other => Ok(Self::Value(other)),
        }
    }
}

/// How tables are reproduced.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Experiment {
    /// Ids of the tables.
    tables: Vec<Spanned<String>>,
    /// The shipped scenario that it runs.
    scenario: Spanned<String>,
    /// Names of its notes.
    #[serde(default)]
    notes: Vec<Spanned<String>>,
    /// Its number of seeds, where it is less than the plan's.
    seeds: Option<usize>,
    /// Its value of `shorter`.
    shorter: Option<f64>,
    #[serde(default, rename = "let")]
    settings: Pairs<Setting>,
    #[serde(default)]
    runs: Pairs<Run>,
    /// The figures of a row, by name. Those that begin with `_` are for others alone.
    #[serde(default)]
    figures: Pairs<Formula>,
    /// Figures for the claim that are not reported.
    #[serde(default)]
    hidden: Pairs<Formula>,
    /// Figures of all seeds together. Those that begin with `_` are for the claim alone.
    #[serde(default)]
    pooled: Pairs<Formula>,
    /// Figures that follow from the means.
    #[serde(default)]
    then: Pairs<Then>,
    /// Rows that the publication does not have.
    #[serde(default, rename = "row")]
    rows: Vec<ExtraRow>,
    /// Conditions of the claim, and the evidence.
    #[serde(default, rename = "claim")]
    steps: Vec<Step>,
    /// A judge that is no formula.
    judge: Option<Special>,
    /// The series that the table is about.
    draw: Option<Draw>,
}

/// The effect of single keys, in the first row with the first seed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sensitivity {
    of: String,
    /// The figures of each variant.
    tell: Template,
    variants: Vec<Variant>,
}

/// Keys of a scenario that are set otherwise, in every run.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Variant {
    is: String,
    set: Pairs<Template>,
}

/// A run of a row; `main` is the one without a name.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Run {
    /// The shipped scenario, where it is another than the experiment's.
    scenario: Option<Spanned<String>>,
    #[serde(default, rename = "let")]
    settings: Pairs<Setting>,
    #[serde(default)]
    set: Pairs<Template>,
    /// It ends when its download is complete.
    #[serde(default)]
    until_complete: bool,
}

/// A figure that follows from the means of others.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Then {
    is: Formula,
    /// Further values of a list.
    #[serde(default)]
    and: Vec<Formula>,
    /// Its deviation, where that is not from a published figure of the same name.
    deviation: Option<Formula>,
    /// Only in rows that have this value.
    needs: Option<Formula>,
}

/// A row that the publication does not have.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExtraRow {
    params: Values,
    #[serde(default)]
    theory: Pairs<Formula>,
    /// True where the claim is extended to it.
    #[serde(default)]
    predicted: bool,
}

/// Conditions of a claim, for all rows at once or for each of them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    /// The part of the claim that it is about, where parts are judged alone. The last step is judged with the figures
    /// of the table.
    text: Option<String>,
    /// The rows that it is about: those with these parameters.
    #[serde(default, rename = "where")]
    applies: Values,
    /// Only rows that publish something.
    #[serde(default)]
    published: bool,
    /// In what order; ascending.
    by: Option<Formula>,
    /// For what it is judged.
    #[serde(default)]
    each: Each,
    /// Rows that have a name.
    #[serde(default)]
    rows: Pairs<Pick>,
    /// Formulas that have a name.
    #[serde(default, rename = "let")]
    formulas: Pairs<Formula>,
    #[serde(default)]
    holds: Vec<Condition>,
    /// The text of each row in `${list}`.
    list: Option<Template>,
    #[serde(default)]
    tell: Vec<Template>,
}

/// A judge that is no formula.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Special {
    /// A ratio is highest near one threshold, and falls from there.
    Peak,
    /// Throughput is the same whatever is varied.
    Unchanged,
}

/// For what a step is judged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Each {
    /// Once.
    #[default]
    Table,
    /// For each row.
    Row,
    /// For each row but the first: `before` is the row before it.
    Pair,
    /// For neighbours of the same value of `by`.
    Group,
}

/// Which row has a name.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum Pick {
    /// The first with these parameters.
    With(Values),
    Largest(Formula),
    Smallest(Formula),
}

/// The series of a table's runs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Draw {
    series: String,
    /// Settings of the runs.
    #[serde(default)]
    open: Values,
    /// The drawings of each row.
    each: Vec<Drawn>,
}

/// A link or flow whose series is drawn; those whose names begin so.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Drawn {
    label: Template,
    of: String,
}

impl Plan {
    /// The plans of all publications.
    pub(crate) fn all() -> Result<&'static [Self], &'static DataError> {
        Ok(PLANS.as_ref()?)
    }

    /// The plan of a publication, if there is such a publication.
    pub(crate) fn of(publication: &str) -> Result<Option<&'static Self>, &'static DataError> {
        Ok(Self::all()?.iter().find(|plan| plan.publication == publication))
    }

    fn experiment(&self, table: &str) -> Option<&Experiment> {
        self.experiments.iter().find(|known| known.tables.iter().any(|id| id.get_ref() == table))
    }
}

//! One scenario under several policies, with several values of keys, or in several cases.
//!
//! Over an access line each run gets a best-effort probe, and the downloads run once more alone for
//! each set of values that rows have next to their policies, as the baseline.

pub mod rows;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use lastmile_model::{Source, Traffic};
use lastmile_results::Run;
use lastmile_results::comparison::{self, Comparison, Unloaded};
use lastmile_results::schema::{Document, Summary, Timing};
use lastmile_results::seeds::{Means, Seeded};
use lastmile_scenario::{Override, Report, Scenario};
use lastmile_text::table::{Kind, Table};
use serde::Serialize;

use self::rows::{Choice, Row, Rows};
use crate::error::Error;
use crate::run::Finished;
use crate::variant::{Variant, pairs};

/// Label of the run with only the downloads.
const ALONE: &str = "download alone";

/// Reads the file of a comparison with overrides.
pub type Load<'a> = dyn Fn(&[Override]) -> Result<Scenario, Report> + 'a;

/// All runs of a comparison, each with its scenario: the seeds of each row, row by row, then the runs with only the
/// downloads, the seeds of each set of values that rows have next to their policies.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The rows.
    pub rows: Rows,
    /// Label and changes of each run.
    pub variants: Vec<Variant>,
    /// The scenario of each run.
    pub scenarios: Vec<Scenario>,
    /// Runs of the rows; those with only the downloads follow.
    compared: usize,
    /// For each row, the number of its set among those with only the downloads; `None` without a baseline.
    baselines: Vec<Option<usize>>,
    /// True with means over seeds.
    has_seeds: bool,
}

/// A finished comparison.
#[derive(Clone, Debug)]
pub struct Compared {
    /// Names of what differs between rows: `policy`, keys, or `case`.
    pub what: Vec<String>,
    /// For each row, a value for each of `what`.
    pub values: Vec<Vec<String>>,
    /// The runs, and the contents of the table.
    pub comparison: Comparison,
    /// The speed of each run, row by row.
    pub timings: Vec<Timing>,
    /// True with means over seeds.
    pub has_seeds: bool,
}

/// The document that `--json` prints.
#[derive(Serialize)]
pub struct ComparedDocument<'a> {
    scenario: &'a str,
    /// Goodput of the downloads without other traffic, a mean over several seeds; only if all rows have the same, for
    /// files with bulk downloads over an access line.
    reference_bps: Option<f64>,
    /// Means over seeds.
    #[serde(skip_serializing_if = "Option::is_none")]
    means: Option<Vec<Means<'a>>>,
    runs: Vec<ComparedRun<'a>>,
}

#[derive(Serialize)]
struct ComparedRun<'a> {
    label: &'a str,
    #[serde(flatten)]
    measured: comparison::Row,
    summary: Document<'a>,
}

/// The runs that `choice` requests, of `file`, which `load` has read with the common overrides and which messages
/// call `name`. `warn` receives warnings of single rows.
///
/// # Errors
/// An invalid request, or a row whose changes the file does not allow.
pub fn plan(
    choice: &Choice,
    (file, name): (&Scenario, &str),
    load: &Load<'_>,
    warn: &mut dyn FnMut(&Report),
) -> Result<Plan, Error> {
    if choice.seeds == Some(0) {
        return Err(Error::new("seeds: none").hint("at least one seed"));
    }
    let rows = rows::of(choice, file)?;
    let (mut variants, mut scenarios) = (Vec::new(), Vec::new());
    for row in &rows.rows {
        let why = rows.words(row);
        for (number, variant) in over_seeds(choice, file, &row.variant)?.into_iter().enumerate() {
            // The file without the row's changes is valid, so the error is in this row.
            let scenario = load(&variant.overrides).map_err(|report| {
                let report = report.within(&why);
                match rows.whole_table(row, file, |overrides| load(overrides).is_ok()) {
                    Some(hint) => report.hinted(&hint),
                    None => report,
                }
            })?;
            scenario.needs_traffic(name)?;
            if number == 0 {
                warn(&scenario.warnings().beyond(file.warnings()).within(&why));
            }
            variants.push(variant);
            scenarios.push(scenario.with_probe());
        }
    }
    let compared = variants.len();
    let mut known: BTreeMap<Vec<String>, Option<usize>> = BTreeMap::new();
    let mut baselines = Vec::new();
    for row in &rows.rows {
        let sets = known.values().flatten().count();
        let set = match known.entry(pairs(&row.baseline)) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                let alone = Variant::new(ALONE, &choice.common, row.baseline.clone()).unwritten();
                let seeds = over_seeds(choice, file, &alone)?;
                let read =
                    |variant: &Variant| load(&variant.overrides).map_err(|report| report.within(&rows.words(row)));
                let read = seeds.iter().map(read).collect::<Result<Vec<Scenario>, _>>()?;
                let has_baseline = read.first().is_some_and(|it| it.access().is_some() && has_download(it));
                if has_baseline {
                    variants.extend(seeds);
                    scenarios.extend(read.into_iter().map(|scenario| scenario.with_traffic(is_download)));
                }
                *new.insert(has_baseline.then_some(sets))
            }
        };
        baselines.push(set);
    }
    Ok(Plan { rows, variants, scenarios, compared, baselines, has_seeds: choice.seeds.is_some() })
}

impl Plan {
    /// The comparison of the finished runs, which are in the order of the plan.
    #[must_use]
    pub fn compared(self, mut done: Vec<Finished>) -> Compared {
        let alone = done.split_off(self.compared);
        let each = self.compared / self.rows.rows.len();
        let alone: Vec<Unloaded> = alone.iter().map(|alone| Unloaded::of(&alone.run.summary)).collect();
        let baseline = |set: &Option<usize>| set.map_or_else(Vec::new, |set| alone[set * each..][..each].to_vec());
        let timings = done.iter().map(|done| done.timing).collect();
        let mut done = done.into_iter().map(|done| done.run);
        let row = |row: &Row| Seeded { label: row.variant.label.clone(), runs: done.by_ref().take(each).collect() };
        let comparison = Comparison {
            rows: self.rows.rows.iter().map(row).collect(),
            alone: self.baselines.iter().map(baseline).collect(),
        };
        let values = self.rows.rows.into_iter().map(|row| row.values).collect();
        Compared { what: self.rows.what, values, comparison, timings, has_seeds: self.has_seeds }
    }
}

impl Compared {
    /// Every run, row by row.
    pub fn runs(&self) -> impl Iterator<Item = &Run> {
        self.comparison.rows.iter().flat_map(|row| &row.runs)
    }

    /// The table that the command prints.
    #[must_use]
    pub fn table(&self) -> Table {
        let (columns, texts) = comparison::table(&self.comparison.measured());
        let columns = columns.into_iter().map(|name| (name, Kind::Number));
        let mut table = Table::new(self.what.iter().map(|what| (what.as_str(), Kind::Name)).chain(columns));
        for (values, cells) in self.values.iter().zip(texts) {
            table.row(values.iter().cloned().chain(cells));
        }
        table
    }

    /// A sentence for each key whose values change no result of a flow, with the values that the others have then: a
    /// policy replaces the queues of a line, whatever the file says of them.
    #[must_use]
    pub fn without_effect(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        for (place, key) in self.what.iter().enumerate() {
            let mut groups: BTreeMap<Vec<&str>, Vec<&Seeded>> = BTreeMap::new();
            for (values, row) in self.values.iter().zip(&self.comparison.rows) {
                let others = values.iter().enumerate().filter(|(other, _)| *other != place);
                groups.entry(others.map(|(_, value)| value.as_str()).collect()).or_default().push(row);
            }
            for (values, rows) in groups {
                if rows.len() > 1 && rows.windows(2).all(|pair| are_equal(pair[0], pair[1])) {
                    let others = self.what.iter().enumerate().filter(|(other, _)| *other != place);
                    let with: Vec<_> = others.zip(values).map(|((_, what), value)| format!("{what} {value}")).collect();
                    let with = if with.is_empty() { String::new() } else { format!(" with {}", with.join(", ")) };
                    sentences.push(format!("{key} changes no result of a flow{with}"));
                }
            }
        }
        sentences
    }

    /// The document of `--json`; with `is_timed`, it has each run's machine-dependent values.
    #[must_use]
    pub fn document(&self, is_timed: bool) -> ComparedDocument<'_> {
        let measured = self.comparison.measured();
        let means = self.comparison.rows.iter().zip(comparison::means(&measured));
        let means = means.map(|(row, measures)| Means { label: &row.label, measures });
        let means = self.has_seeds.then(|| means.collect());
        let runs = self.runs().zip(&self.timings).zip(measured.iter().flatten().cloned());
        let runs = runs.map(|((run, timing), measured)| {
            let summary = Document { summary: &run.summary, timing: is_timed.then_some(*timing) };
            ComparedRun { label: &run.label, measured, summary }
        });
        ComparedDocument {
            scenario: self.runs().next().map_or("", |run| &run.summary.run.scenario),
            reference_bps: comparison::baseline(&measured),
            means,
            runs: runs.collect(),
        }
    }
}

/// True if the flows of two rows have equal results.
fn are_equal(one: &Seeded, other: &Seeded) -> bool {
    let results = |run: &Run| {
        let Summary { flows, probes, pages, applications, .. } = run.summary.clone();
        (flows, probes, pages, applications)
    };
    one.runs.iter().map(results).eq(other.runs.iter().map(results))
}

/// `variant` itself, or a variant for each seed that `choice` requests.
fn over_seeds(choice: &Choice, file: &Scenario, variant: &Variant) -> Result<Vec<Variant>, Error> {
    let first = file.network_ref().seed;
    choice.seeds.map_or_else(|| Ok(vec![variant.clone()]), |seeds| variant.over_seeds(first, seeds))
}

/// True for a transfer down the line.
fn is_download(traffic: &Traffic) -> bool {
    matches!(traffic.source, Source::Bulk { .. } | Source::Quic { .. }) && traffic.direction == "down"
}

fn has_download(file: &Scenario) -> bool {
    file.network_ref().traffic.iter().any(is_download)
}

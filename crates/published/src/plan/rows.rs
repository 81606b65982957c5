//! The rows of a table with several seeds, and what is drawn of them.

use super::judge::{self, Figures};
use super::runs::{Pooled, RowRuns, Trials, failed, value};
use super::{Answer, Experiment, ExtraRow, Plan, Question, Sensitivity, Special};
use crate::data::{Row, Table};
use crate::error::ExperimentError;
use crate::experiments::open_questions::Reproducible;
use crate::experiments::seeds::{SEEDS, means};
use crate::experiments::{Drawing, equal_throughput};
use crate::formula::{Formula, Missing, Quantity};
use crate::reproduction::RowResult;
use crate::rounding::significant;
use crate::sample::Sample;
use crate::value::{Value, Values};
use crate::verdict::{Claim, Finding};

impl Plan {
    pub(super) fn known(&self, table: &Table) -> Result<&Experiment, ExperimentError> {
        self.experiment(&table.id).ok_or(ExperimentError::MissingSetting("experiment of this table"))
    }

    /// Every row of a table with each of these seeds, where `open` answers what the publication leaves open.
    pub(crate) fn rows(&self, table: &Table, open: &Values, seeds: &[u64]) -> Result<Vec<RowResult>, ExperimentError> {
        let experiment = self.known(table)?;
        let params = table.rows.iter().map(|row| &row.params).chain(experiment.rows.iter().map(|row| &row.params));
        let params: Vec<&Values> = params.collect();
        let mut figures: Vec<Vec<Values>> = vec![Vec::new(); params.len()];
        let mut hidden = figures.clone();
        let trials: Vec<Trials> = seeds.iter().map(|_| Trials::default()).collect();
        let row_runs = |params, seed, trials| RowRuns::new((self, experiment), (table, params), open, seed, trials);
        for (&seed, trials) in seeds.iter().zip(&trials) {
            for (row, params) in params.iter().enumerate() {
                let runs = row_runs(params, seed, trials).map_err(failed)?;
                figures[row].push(runs.figures().map_err(failed)?);
                hidden[row].push(runs.hidden().map_err(failed)?);
            }
            if experiment.pooled.iter().next().is_none() {
                trials.borrow_mut().clear();
            }
        }
        let mut figures = figures.iter();
        let mut rows = Vec::new();
        for row in &table.rows {
            rows.push(RowResult::of_means(row, means(figures.next().map_or(&[], Vec::as_slice))));
        }
        for row in &experiment.rows {
            rows.push(extra(table, row, figures.next().map_or(&[], Vec::as_slice))?);
        }
        for ((row, hidden), params) in rows.iter_mut().zip(&hidden).zip(&params) {
            row.samples.extend(means(hidden).samples);
            let seeds = seeds.iter().zip(&trials).map(|(&seed, trials)| row_runs(params, seed, trials));
            let pooled = Pooled(seeds.collect::<Result<_, _>>().map_err(failed)?);
            pool(row, &pooled.figures().map_err(failed)?);
            follow(experiment, table, row)?;
        }
        if experiment.judge == Some(Special::Unchanged) {
            equal_throughput::summarise(&mut rows);
        }
        Ok(rows)
    }

    /// The run of a row, briefly: with further settings and one seed.
    pub(crate) fn run_once(&self, table: &Table, row: &Row, settings: &Values) -> Result<(), ExperimentError> {
        let (experiment, trials) = (self.known(table)?, Trials::default());
        let open = self.open.overlaid(settings);
        RowRuns::new((self, experiment), (table, &row.params), &open, SEEDS[0], &trials)
            .and_then(|runs| runs.run())
            .map_err(failed)
    }

    /// The keys of a scenario that the rules for these settings set, with a table's settings.
    pub(crate) fn keys(&self, table: &Table, settings: &Values) -> Result<Vec<(String, String)>, ExperimentError> {
        super::runs::keys(&self.rules, table.scenario.overlaid(settings)).map_err(failed)
    }

    /// The texts of a note that has no figures.
    pub(crate) fn note(&self, name: &str) -> Result<Vec<String>, ExperimentError> {
        super::runs::texts(self.notes.get(name).map_or(&[], Vec::as_slice)).map_err(failed)
    }

    /// The runs whose series a table is about.
    pub(crate) fn drawings(&self, table: &Table) -> Result<Vec<Drawing>, ExperimentError> {
        let Some(experiment) = self.experiment(&table.id) else { return Ok(Vec::new()) };
        let Some(draw) = &experiment.draw else { return Ok(Vec::new()) };
        let open = self.open.overlaid(&draw.open);
        let mut drawings = Vec::new();
        for row in &table.rows {
            let trials = Trials::default();
            let runs =
                RowRuns::new((self, experiment), (table, &row.params), &open, SEEDS[0], &trials).map_err(failed)?;
            for drawn in &draw.each {
                let scenario = runs.scenario("main").map_err(failed)?;
                let label = drawn.label.text(&runs).map_err(failed)?;
                drawings.push(Drawing { label, scenario, series: draw.series.clone(), of: drawn.of.clone() });
            }
        }
        Ok(drawings)
    }

    /// The answers that are tried besides the base case.
    fn others<'a>(&'a self, table: &'a Table) -> impl Iterator<Item = (&'a Question, &'a Answer)> {
        self.concerning(table).flat_map(|question| question.answers.iter().map(move |answer| (question, answer)))
    }

    fn concerning<'a>(&'a self, table: &'a Table) -> impl Iterator<Item = &'a Question> {
        self.questions.iter().filter(|question| question.tables.is_empty() || question.tables.contains(&table.id))
    }

    /// The settings of an attempt: the base case, the base case as short as the others, or another answer.
    pub(crate) fn open(&self, table: &Table, attempt: Option<usize>) -> Result<Values, ExperimentError> {
        let brief = || self.open.overlaid(&self.brief);
        match attempt {
            None => Ok(self.open.clone()),
            Some(0) => Ok(brief()),
            Some(number) => {
                let (_, answer) =
                    self.others(table).nth(number - 1).ok_or(ExperimentError::MissingSetting("attempt"))?;
                Ok(brief().overlaid(&answer.set))
            }
        }
    }
}

fn extra(table: &Table, row: &ExtraRow, figures: &[Values]) -> Result<RowResult, ExperimentError> {
    let made = if row.predicted { RowResult::predicted } else { RowResult::unpublished };
    let mut result = made(row.params.clone(), means(figures));
    for (name, formula) in row.theory.iter() {
        let theory = formula.number(&Figures::of_row(table, &result)).map_err(failed)?;
        result.theory.set(name, theory);
    }
    Ok(result)
}

/// Sets the figures of all seeds together.
fn pool(row: &mut RowResult, figures: &Values) {
    for (name, figure) in figures.iter() {
        let Some(figure) = figure.as_f64() else { continue };
        if name.starts_with('_') {
            row.samples.push((name.to_owned(), Sample::single(figure)));
            continue;
        }
        row.simulated.set(name, significant(figure));
        if let Some(reference) = row.published.number(name).or_else(|| row.theory.number(name)) {
            row.deviation.set(name, significant(figure - reference));
        }
    }
}

/// Sets the figures that follow from the means, or seed by seed from the figures of each.
fn follow(experiment: &Experiment, table: &Table, row: &mut RowResult) -> Result<(), ExperimentError> {
    for (name, then) in experiment.then.iter() {
        let figures = Figures::of_row(table, row);
        if then.needs.as_ref().is_some_and(|needed| matches!(needed.of(&figures), Err(Missing::Name(_)))) {
            continue;
        }
        if let Quantity::Sample(sample) = then.is.of(&figures).map_err(failed)? {
            row.measure(name, sample);
            continue;
        }
        let one = |of: &Formula| value(of.of(&figures)?, name);
        let mut ours = one(&then.is).map_err(failed)?;
        if !then.and.is_empty() {
            let rest = then.and.iter().map(one).collect::<Result<Vec<_>, _>>().map_err(failed)?;
            ours = Value::List(std::iter::once(ours).chain(rest).collect());
        }
        row.simulated.set(name, ours.clone());
        let figures = Figures::of_row(table, row);
        let deviation = match &then.deviation {
            Some(deviation) => Some(deviation.number(&figures).map_err(failed)?),
            None => ours.as_f64().and_then(|ours| Some(ours - row.published.number(name)?)),
        };
        if let Some(deviation) = deviation {
            row.deviation.set(name, deviation);
        }
    }
    Ok(())
}

impl Sensitivity {
    /// The effect of its variants, in words.
    fn text<'a>(&'a self, runs: impl Fn() -> Result<RowRuns<'a>, Missing>) -> Result<String, Missing> {
        let told = self.variants.iter().map(|variant| {
            let figures = self.tell.text(&runs()?.with(variant))?;
            Ok(format!("{}: {figures}", variant.is))
        });
        let told = told.collect::<Result<Vec<_>, Missing>>()?;
        Ok(format!("How sensitive this is ({}, one seed): {}.", self.of, told.join("; ")))
    }
}

impl Reproducible for Plan {
    fn publication(&self) -> &str {
        &self.publication
    }

    fn tables(&self) -> Vec<&str> {
        self.experiments.iter().flat_map(|known| &known.tables).map(|id| id.get_ref().as_str()).collect()
    }

    fn attempts<'a>(&'a self, table: &'a Table) -> Vec<(&'a str, &'a str)> {
        self.others(table).map(|(question, answer)| (question.asks.as_str(), answer.is.as_str())).collect()
    }

    fn seeds(&self, table: &str) -> usize {
        self.experiment(table).and_then(|known| known.seeds).map_or(self.seeds, |own| own.min(self.seeds))
    }

    fn shorter(&self, table: &str) -> f64 {
        self.experiment(table).and_then(|known| known.shorter).unwrap_or(self.shorter)
    }

    fn rows_of(&self, table: &Table, attempt: Option<usize>, seeds: &[u64]) -> Result<Vec<RowResult>, ExperimentError> {
        self.rows(table, &self.open(table, attempt)?, seeds)
    }

    fn judge(&self, table: &Table, rows: &[RowResult]) -> Finding {
        self.experiment(&table.id).map_or_else(Finding::default, |known| judge::judge(known, table, rows))
    }

    fn claims<'a>(&'a self, table: &'a Table, rows: &[RowResult]) -> (&'a str, Vec<Claim>) {
        let Some(known) = self.experiment(&table.id) else { return (&table.claim, Vec::new()) };
        (judge::last_part(known).unwrap_or(&table.claim), judge::other_parts(known, table, rows))
    }

    fn assumptions(&self, table: &Table) -> Result<Vec<String>, ExperimentError> {
        let said = |question: &Question| format!("{}: {}. {}", question.asks, question.taken, question.because);
        let today = "TCP is that of a current Linux; what other assumptions say about TCP does not apply.";
        let mut all: Vec<String> = table.has_todays_tcp().then(|| today.to_owned()).into_iter().collect();
        all.extend(self.concerning(table).map(said));
        let experiment = self.known(table)?;
        let Some(row) = table.rows.first() else { return Ok(all) };
        let trials = Trials::default();
        let runs = || {
            let row = (table, &row.params);
            RowRuns::new((self, experiment), row, &self.open, SEEDS[0], &trials)
        };
        for name in experiment.notes.iter().map(toml::Spanned::get_ref) {
            match (self.notes.get(name), self.sensitivity.get(&table.id)) {
                (Some(texts), _) => {
                    for text in texts {
                        all.push(runs().and_then(|runs| text.text(&runs)).map_err(failed)?);
                    }
                }
                (None, Some(known)) => all.push(known.text(runs).map_err(failed)?),
                (None, None) => {}
            }
        }
        Ok(all)
    }

    fn inferred(&self, table: &Table) -> &[String] {
        self.inferred.get(&table.id).map_or(&[], Vec::as_slice)
    }

    fn parts(&self, table: &Table) -> usize {
        if self.questions.is_empty() { 1 } else { 2 + self.attempts(table).len() }
    }
}

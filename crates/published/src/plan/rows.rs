//! The rows of a table with several seeds, and what is drawn of them.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::judge::{Figures, Special};
use super::runs::{RowRuns, failed};
use super::{Answer, Experiment, ExtraRow, Plan, Question};
use crate::data::{Row, Table};
use crate::experiments::open::Reproducible;
use crate::experiments::seeds::{SEEDS, means};
use crate::experiments::{Drawing, ExperimentError, unchanged};
use crate::formula::{Missing, Quantity};
use crate::reproduction::RowResult;
use crate::value::{Value, Values};
use crate::verdict::Finding;

impl Plan {
    fn known(&self, table: &Table) -> Result<&Experiment, ExperimentError> {
        self.experiment(&table.id).ok_or(ExperimentError::MissingSetting("experiment of this table"))
    }

    /// Every row of a table with each of these seeds, where `open` answers what the publication leaves open.
    pub(crate) fn rows(&self, table: &Table, open: &Values, seeds: &[u64]) -> Result<Vec<RowResult>, ExperimentError> {
        let experiment = self.known(table)?;
        let params = table.rows.iter().map(|row| &row.params).chain(experiment.rows.iter().map(|row| &row.params));
        let params: Vec<&Values> = params.collect();
        let mut figures: Vec<Vec<Values>> = vec![Vec::new(); params.len()];
        for &seed in seeds {
            let trials = RefCell::default();
            for (figures, params) in figures.iter_mut().zip(&params) {
                let runs = RowRuns::new((self, experiment), (table, params), open, seed, &trials).map_err(failed)?;
                figures.push(runs.figures().map_err(failed)?);
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
        for row in &mut rows {
            follow(experiment, table, row)?;
        }
        if experiment.judge == Some(Special::Unchanged) {
            unchanged::summarise(&mut rows);
        }
        Ok(rows)
    }

    /// The run of a row, briefly: with further settings and one seed.
    pub(crate) fn run_once(&self, table: &Table, row: &Row, settings: &Values) -> Result<(), ExperimentError> {
        let (experiment, trials) = (self.known(table)?, RefCell::default());
        let open = self.open.overlaid(settings);
        RowRuns::new((self, experiment), (table, &row.params), &open, SEEDS[0], &trials)
            .and_then(|runs| runs.run())
            .map_err(failed)
    }

    /// The runs whose series a table is about.
    pub(crate) fn drawings(&self, table: &Table) -> Result<Vec<Drawing>, ExperimentError> {
        let Some(experiment) = self.experiment(&table.id) else { return Ok(Vec::new()) };
        let Some(draw) = &experiment.draw else { return Ok(Vec::new()) };
        let open = self.open.overlaid(&draw.open);
        let mut drawings = Vec::new();
        for row in &table.rows {
            let trials: RefCell<BTreeMap<_, _>> = RefCell::default();
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

/// Sets the figures that follow from the means.
fn follow(experiment: &Experiment, table: &Table, row: &mut RowResult) -> Result<(), ExperimentError> {
    for (name, then) in experiment.then.iter() {
        let figures = Figures::of_row(table, row);
        if then.needs.as_ref().is_some_and(|needed| matches!(needed.of(&figures), Err(Missing::Name(_)))) {
            continue;
        }
        let ours = match then.is.of(&figures).map_err(failed)? {
            Quantity::Number(number) => Value::Float(number),
            Quantity::Truth(truth) => Value::Bool(truth),
            Quantity::Text(text) => Value::Text(text),
            Quantity::Sample(_) => return Err(failed(Missing::Kind(name.to_owned()))),
        };
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
        self.experiment(&table.id).map_or_else(Finding::default, |known| super::judge::judge(known, table, rows))
    }

    fn assumptions(&self, table: &Table) -> Vec<String> {
        let said = |question: &Question| format!("{}: {}. {}", question.asks, question.taken, question.because);
        let notes = self.experiment(&table.id).into_iter().flat_map(|known| &known.notes);
        let notes = notes.filter_map(|name| self.notes.get(name.get_ref())).flatten().cloned();
        self.concerning(table).map(said).chain(notes).collect()
    }
}

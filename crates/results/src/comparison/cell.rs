//! Cells of a comparison: a value of one run, or a mean over seeds with its 95 % interval.

use lastmile_theory::interval::Mean;

use crate::format;
use crate::seeds::{self, Measure};
use crate::tabular::NOTHING;

/// The part of the run, if it is no phase.
pub(crate) const WHOLE_RUN: &str = "over the whole run";

/// The quantity of a column, and its format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Quantity {
    /// A rate in bit/s.
    Rate,
    /// A time in seconds, shown in milliseconds, so that a column is easy to compare.
    Time,
    /// A share of one, shown in percent.
    Share,
    /// A count, with its reasons if any.
    Count,
    /// A size in bytes.
    Bytes,
    /// A number without unit, with this number of decimals.
    Index(usize),
}

impl Quantity {
    /// The unit of the value.
    const fn unit(self) -> &'static str {
        match self {
            Self::Rate => "bps",
            Self::Time => "s",
            Self::Share => "share",
            Self::Count => "count",
            Self::Bytes => "bytes",
            Self::Index(_) => "index",
        }
    }

    fn text(self, value: f64) -> String {
        match self {
            Self::Rate => format::rate(value),
            Self::Time => format!("{:.1} ms", value * 1e3),
            Self::Share => format!("{:.1} %", value * 100.0),
            Self::Count => grouped(value),
            Self::Bytes => format::with_unit(value, format::BYTES),
            Self::Index(decimals) => format!("{value:.decimals$}"),
        }
    }
}

/// A count, or a rounded mean of counts.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "counts of packets")]
fn grouped(value: f64) -> String {
    format::grouped(value.round() as u64)
}

/// One value of one run.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    /// The head of its column.
    pub(super) column: &'static str,
    quantity: Quantity,
    value: Option<f64>,
    /// True if the value is of the whole run, whatever part the other columns measure.
    is_of_the_run: bool,
    /// The least value of any run for which a table has the column.
    told_from: f64,
    /// Reasons of a count.
    reasons: Option<String>,
}

impl Cell {
    /// A value in the column of this name; `None` if the run has none.
    pub(super) fn new(column: &'static str, quantity: Quantity, value: Option<f64>) -> Self {
        Self { column, quantity, value, is_of_the_run: false, told_from: f64::NEG_INFINITY, reasons: None }
    }

    /// A count that is omitted if it is `None`.
    pub(super) fn count(column: &'static str, count: Option<u64>) -> Self {
        Self::new(column, Quantity::Count, count.map(format::to_f64))
    }

    /// A copy with words in place of the number, for one run.
    pub(super) fn with_reasons(mut self, reasons: String) -> Self {
        self.reasons = Some(reasons);
        self
    }

    /// A copy whose value is of the whole run.
    pub(super) fn of_the_run(mut self) -> Self {
        self.is_of_the_run = true;
        self
    }

    /// True if the cell has a value.
    pub(super) fn is_known(&self) -> bool {
        self.value.is_some()
    }

    /// A copy whose column a table omits if no run has at least this value.
    pub(super) fn told_from(mut self, least: f64) -> Self {
        self.told_from = least;
        self
    }

    /// True if the value deserves a column.
    pub(super) fn is_told(&self) -> bool {
        self.value.is_some_and(|value| value >= self.told_from)
    }

    /// The text for a table.
    pub(super) fn text(&self) -> String {
        self.reasons.clone().unwrap_or_else(|| format::or_dash(self.value, |value| self.quantity.text(value)))
    }
}

/// The cells of several runs in one column, as [`seeds::text`]; the text of a single run's cell.
pub(super) fn over_runs(cells: &[&Cell]) -> String {
    match cells {
        [only] => only.text(),
        several => mean(several).map_or_else(
            || NOTHING.to_owned(),
            |(quantity, mean, runs)| seeds::text((mean, runs), several.len(), |value| quantity.text(value)),
        ),
    }
}

/// The mean of the cells of one column, which has at least one, in `phase`; a mean of none if no run has a value.
pub(super) fn measure(phase: &str, cells: &[&Cell]) -> Measure {
    let first = cells[0];
    let phase = if first.is_of_the_run { WHOLE_RUN } else { phase };
    let (mean, ci95, runs) = match mean(cells) {
        Some((_, Mean { mean, ci95 }, runs)) => (Some(mean), ci95, runs),
        None => (None, None, 0),
    };
    Measure { phase: phase.to_owned(), name: first.column.to_owned(), unit: first.quantity.unit(), mean, ci95, runs }
}

/// The quantity of the cells, their mean, and the number of cells with a value.
fn mean(cells: &[&Cell]) -> Option<(Quantity, Mean, u64)> {
    let values: Vec<f64> = cells.iter().filter_map(|cell| cell.value).collect();
    Some((cells.first()?.quantity, Mean::of(&values)?, values.len() as u64))
}

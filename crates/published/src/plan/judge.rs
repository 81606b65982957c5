//! Claims judged by the figures of rows.

use super::{Each, Experiment, Pick, Special, Step};
use crate::data::Table;
use crate::experiments::{equal_throughput, peak};
use crate::formula::{Condition, Formula, Missing, Names, Operator, Quantity};
use crate::pairs::Pairs;
use crate::reproduction::RowResult;
use crate::sample::Sample;
use crate::value::Value;
use crate::verdict::{Claim, Finding};

/// The values of names in a formula about rows: figures of the row, `theory.`, `params.`,
/// `published.` and `simulated.` of it, `inferred.` of the table, formulas with a name, and all of
/// these of a row with a name.
pub(super) struct Figures<'a> {
    table: &'a Table,
    rows: &'a [&'a RowResult],
    row: Option<&'a RowResult>,
    named: &'a [(&'a str, &'a RowResult)],
    formulas: Option<&'a Pairs<Formula>>,
    list: Option<&'a str>,
    /// Figures are those published, not ours.
    published: bool,
}

impl<'a> Figures<'a> {
    /// Of one row alone.
    pub(super) fn of_row(table: &'a Table, row: &'a RowResult) -> Self {
        Self { table, rows: &[], row: Some(row), named: &[], formulas: None, list: None, published: false }
    }

    fn with_row(&self, row: &'a RowResult) -> Self {
        Self { row: Some(row), ..*self }
    }

    /// The formula in each row that has it.
    fn each(&self, of: &Formula) -> Result<Vec<Quantity>, Missing> {
        let values = self.rows.iter().map(|row| of.of(&self.with_row(row)));
        values.filter(|value| !matches!(value, Err(Missing::Name(_)))).collect()
    }

    fn part(&self, section: &str, name: &str) -> Option<Option<&'a Value>> {
        let row = self.row;
        Some(match section {
            "params" => row?.params.get(name),
            "theory" => row?.theory.get(name),
            "published" => row?.published.get(name),
            "simulated" => row?.simulated.get(name),
            "inferred" => self.table.inferred.get(name),
            _ => return None,
        })
    }
}

impl Names for Figures<'_> {
    fn value(&self, name: &str) -> Result<Quantity, Missing> {
        let missing = || Missing::Name(name.to_owned());
        if let Some(formula) = self.formulas.and_then(|formulas| formulas.get(name)) {
            return formula.of(self);
        }
        if let Some((first, rest)) = name.split_once('.') {
            if let Some((_, row)) = self.named.iter().find(|(known, _)| *known == first) {
                return self.with_row(row).value(rest);
            }
            return self.part(first, rest).flatten().map(Quantity::from).ok_or_else(missing);
        }
        if let ("list", Some(list)) = (name, self.list) {
            return Ok(Quantity::Text(list.to_owned()));
        }
        let row = self.row.ok_or_else(missing)?;
        if self.published {
            return row.published.number(name).map(Quantity::Number).ok_or_else(missing);
        }
        let sample = row.sample(name);
        if sample.is_empty() { Err(missing()) } else { Ok(Quantity::Sample(sample)) }
    }

    fn call(&self, function: &str, _: Option<&str>, arguments: &[Formula]) -> Result<Quantity, Missing> {
        let [of] = arguments else { return Err(Missing::Kind(function.to_owned())) };
        if function == "published" {
            return of.of(&Self { published: true, ..*self });
        }
        let all = self.each(of)?;
        let size = |quantity: &Quantity| quantity.sample(function).map_or(f64::NAN, |sample| sample.mean());
        let found = match function {
            "lowest" => all.into_iter().min_by(|one, other| size(one).total_cmp(&size(other))),
            "highest" => all.into_iter().max_by(|one, other| size(one).total_cmp(&size(other))),
            "average" => average(&all)?,
            _ => return Err(Missing::Kind(function.to_owned())),
        };
        found.ok_or_else(|| Missing::Name(function.to_owned()))
    }
}

/// The mean of several figures, seed by seed.
fn average(all: &[Quantity]) -> Result<Option<Quantity>, Missing> {
    let samples = all.iter().map(|quantity| quantity.sample("average")).collect::<Result<Vec<Sample>, _>>()?;
    let sum = samples.into_iter().reduce(|sum, sample| sum.with(&sample, |sum, value| sum + value));
    Ok(sum.map(|sum| Quantity::Sample(sum.map(|sum| sum / all.len() as f64))))
}

/// The finding about a table's claim.
pub(super) fn judge(experiment: &Experiment, table: &Table, rows: &[RowResult]) -> Finding {
    let mut finding = match experiment.judge {
        Some(Special::Peak) => peak::judge(rows),
        Some(Special::Unchanged) => equal_throughput::judge(rows),
        None => Finding::default(),
    };
    for step in experiment.steps.iter().filter(|step| step.text.as_deref() == last_part(experiment)) {
        step.decide(table, rows, &mut finding);
    }
    finding
}

/// The part of the claim that the last step is about; `None` where the claim has no parts.
pub(super) fn last_part(experiment: &Experiment) -> Option<&str> {
    experiment.steps.last()?.text.as_deref()
}

/// The other parts of the claim, a step each.
pub(super) fn other_parts(experiment: &Experiment, table: &Table, rows: &[RowResult]) -> Vec<Claim> {
    let claim = |step: &Step| {
        let text = step.text.as_deref().filter(|text| Some(*text) != last_part(experiment))?;
        let mut finding = Finding::default();
        step.decide(table, rows, &mut finding);
        Some(finding.claim(text))
    };
    experiment.steps.iter().filter_map(claim).collect()
}

impl Step {
    fn decide(&self, table: &Table, rows: &[RowResult], finding: &mut Finding) {
        if self.judge(table, rows, finding).is_err() {
            finding.need(false);
        }
    }

    fn judge(&self, table: &Table, rows: &[RowResult], finding: &mut Finding) -> Result<(), Missing> {
        let all: Vec<&RowResult> = rows.iter().collect();
        let chosen =
            |row: &&&RowResult| row.params.have(&self.applies) && !(self.published && row.published.is_empty());
        let mut rows: Vec<&RowResult> = all.iter().filter(chosen).copied().collect();
        let plain = Figures {
            rows: &all,
            row: None,
            table,
            named: &[],
            formulas: Some(&self.formulas),
            list: None,
            published: false,
        };
        let key = |row| self.by.as_ref().map_or(Ok(0.0), |by| by.number(&plain.with_row(row)));
        let keys = rows.iter().map(|row| key(row)).collect::<Result<Vec<f64>, _>>()?;
        let mut places: Vec<usize> = (0..rows.len()).collect();
        places.sort_by(|one, other| keys[*one].total_cmp(&keys[*other]));
        if self.each != Each::Group {
            rows = places.iter().map(|place| rows[*place]).collect();
        }
        let named =
            self.rows.iter().map(|(name, pick)| Ok((name, pick.of(&plain)?))).collect::<Result<Vec<_>, Missing>>()?;
        let of = |rows: &[&RowResult], named: &[(&str, &RowResult)], finding: &mut Finding| {
            let row = rows.first().copied();
            self.conclude(&Figures { rows, row, named, ..plain }, finding)
        };
        match self.each {
            Each::Table => of(&rows, &named, finding),
            Each::Row => rows.iter().try_for_each(|row| of(&[row], &named, finding)),
            Each::Pair => rows.windows(2).try_for_each(|pair| {
                let named: Vec<_> = named.iter().copied().chain([("before", pair[0])]).collect();
                of(&[pair[1]], &named, finding)
            }),
            Each::Group => {
                let mut rows = rows.as_slice();
                let mut keys = keys.as_slice();
                while let Some(first) = keys.first() {
                    let length = keys.iter().take_while(|key| key.total_cmp(first).is_eq()).count();
                    of(&rows[..length], &named, finding)?;
                    (rows, keys) = (&rows[length..], &keys[length..]);
                }
                Ok(())
            }
        }
    }

    fn conclude(&self, figures: &Figures<'_>, finding: &mut Finding) -> Result<(), Missing> {
        for condition in &self.holds {
            condition.decide(figures, finding)?;
        }
        let list = match &self.list {
            None => None,
            Some(list) => {
                let each = figures.rows.iter().map(|row| list.text(&figures.with_row(row)));
                Some(each.collect::<Result<Vec<_>, _>>()?.join(", "))
            }
        };
        let figures = Figures { list: list.as_deref(), ..*figures };
        for tell in &self.tell {
            finding.tell(tell.text(&figures)?);
        }
        Ok(())
    }
}

impl Pick {
    fn of<'a>(&self, figures: &Figures<'a>) -> Result<&'a RowResult, Missing> {
        let size = |row: &&&RowResult, of: &Formula| of.number(&figures.with_row(row)).unwrap_or(f64::NAN);
        let row = match self {
            Self::With(params) => figures.rows.iter().find(|row| row.params.have(params)),
            Self::Largest(of) => figures.rows.iter().max_by(|one, other| size(one, of).total_cmp(&size(other, of))),
            Self::Smallest(of) => figures.rows.iter().min_by(|one, other| size(one, of).total_cmp(&size(other, of))),
        };
        row.copied().ok_or_else(|| Missing::Name("row".to_owned()))
    }
}

impl Condition {
    fn decide(&self, figures: &Figures<'_>, finding: &mut Finding) -> Result<(), Missing> {
        match self {
            Self::Compared(all) => {
                for (one, operator, other) in all {
                    compare(&one.of(figures)?, *operator, &other.of(figures)?, finding)?;
                }
            }
            Self::As(ours, theirs) => {
                let ours = ours.of(figures)?.sample("as")?;
                let theirs = match (theirs, self) {
                    (Some(theirs), _) => theirs.number(figures),
                    (None, Self::As(formula, _)) => formula.number(&Figures { published: true, ..*figures }),
                    _ => Err(Missing::Excluded),
                };
                match theirs {
                    Ok(theirs) => finding.difference(&ours, theirs),
                    // A difference that is not published has to be positive.
                    Err(Missing::Name(_)) => finding.above(&ours, 0.0),
                    Err(error) => return Err(error),
                }
            }
            Self::NotBelow(ours, least) => {
                let (ours, least) = (ours.of(figures)?.sample("not <")?, least.number(figures)?);
                finding.need(!ours.estimate().is_below(least));
            }
        }
        Ok(())
    }
}

/// A figure that has an interval is compared by it.
fn compare(one: &Quantity, operator: Operator, other: &Quantity, finding: &mut Finding) -> Result<(), Missing> {
    let asked = operator.as_str();
    let certain = |quantity: &Quantity| !matches!(quantity, Quantity::Sample(_));
    if certain(one) && certain(other) {
        match one.with(operator, other)? {
            Quantity::Truth(truth) => finding.need(truth),
            _ => return Err(Missing::Kind(asked.to_owned())),
        }
        return Ok(());
    }
    let (one, other) = match operator {
        Operator::Greater | Operator::AtLeast => (one, other),
        Operator::Less | Operator::AtMost => (other, one),
        _ => return Err(Missing::Kind(asked.to_owned())),
    };
    match (one, other) {
        (Quantity::Sample(larger), Quantity::Number(least)) => finding.above(larger, *least),
        (Quantity::Number(most), Quantity::Sample(smaller)) => finding.below(smaller, *most),
        _ => finding.above(&one.sample(asked)?.minus(&other.sample(asked)?), 0.0),
    }
    Ok(())
}

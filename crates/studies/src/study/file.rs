//! A study from its file: the points that the file describes, and the scenario that it names.

use std::path::Path;

use lastmile_scenario::diagnostics::{Diagnostic, Place};
use lastmile_scenario::file::{self, Reading};
use lastmile_scenario::study::{Axis, Ends, Latin, Seeding, Values};
use lastmile_scenario::{Override, Report, Scenario, StudyFile};

use super::cases::{CASE, Cases};
use super::measured::may_be;
use super::plan::{Places, Seeds, Study, Until};
use super::space::{Range, Space, twice};
use crate::error::Error;
use crate::run::Input;

/// A study with everything that it needs.
#[derive(Clone, PartialEq, Debug)]
pub struct Described {
    /// Its name.
    pub name: String,
    /// The name of the scenario in messages: its path.
    pub path: String,
    /// The scenario's file, as results record it.
    pub input: Input,
    /// The text of the scenario.
    pub text: String,
    /// Overrides of all runs.
    pub common: Vec<Override>,
    /// The points.
    pub space: Space,
    /// Where the file has their values.
    pub places: Places,
    /// The seeds of each point.
    pub seeds: Seeds,
    /// The measures to print; empty for the usual ones.
    pub measures: Vec<String>,
}

impl Described {
    /// The study of the file at `path`.
    ///
    /// # Errors
    /// All that is wrong with the file, or with the scenario that it names.
    pub fn load(path: &Path) -> Result<Self, Report> {
        let name = path.display().to_string();
        let text = file::read(path, Reading::Once)
            .map_err(|problem| Report::of(Diagnostic::error(Place::WholeFile { name: name.clone() }, problem)))?;
        Self::parse(&name, &text)
    }

    /// The study of `text`, which messages call `name`: the path of its file, from whose folder the scenario is named.
    ///
    /// # Errors
    /// As [`Described::load`].
    pub fn parse(name: &str, text: &str) -> Result<Self, Report> {
        let read = StudyFile::parse(name, text)?;
        let path = read.scenario.display().to_string();
        let text = file::read(&read.scenario, Reading::Once).map_err(|problem| {
            let finding = Diagnostic::error(read.scenario_place.clone(), format!("scenario: {path}: {problem}"));
            Report::of(finding.about("scenario"))
        })?;
        let (space, places) = space(&read)?;
        let input = Input {
            file: read.scenario.file_name().map(|name| name.to_string_lossy().into_owned()),
            text: Some(text.clone()),
        };
        measures_may_be(&read)?;
        let measures = read.measures.into_iter().map(|(_, measure)| measure).collect();
        let common = read.common;
        let seeds = match read.seeds {
            Seeding::Count(count) => Seeds::Count(count),
            Seeding::Until { measure, share, at_least, at_most } => {
                // What is wrong with the scenario is said when its points are read.
                let over_line =
                    || Scenario::parse_with(&path, &text, &common).is_ok_and(|file| file.access().is_some());
                let usual = || Until::usual_measure(over_line()).to_owned();
                let measure = measure.map_or_else(usual, |(_, measure)| measure);
                Seeds::Until(Until { measure, share, at_least, at_most })
            }
        };
        Ok(Self { name: read.name, path, input, text, common, space, places, seeds, measures })
    }

    /// The scenario with overrides.
    ///
    /// # Errors
    /// It is invalid.
    pub fn scenario(&self, overrides: &[Override]) -> Result<Scenario, Report> {
        Scenario::parse_with(&self.path, &self.text, overrides)
    }

    /// The study.
    #[must_use]
    pub fn study(&self) -> Study<'_> {
        let Self { input, common, space, places, seeds, .. } = self;
        Study { input, common, space, places, seeds }
    }
}

/// An error for each name of a measure that no run can have.
fn measures_may_be(file: &StudyFile) -> Result<(), Report> {
    let until = match &file.seeds {
        Seeding::Until { measure, .. } => measure.as_ref().map(|measure| ("until.measure", measure)),
        Seeding::Count(_) => None,
    };
    let mut report = Report::default();
    for (key, (place, name)) in file.measures.iter().map(|measure| ("measures", measure)).chain(until) {
        if let Err(wrong) = may_be(name) {
            at(place, key, &wrong).findings().iter().for_each(|finding| report.push(finding.clone()));
        }
    }
    if report.has_errors() { Err(report) } else { Ok(()) }
}

/// The points, and where the file has their values.
fn space(file: &StudyFile) -> Result<(Space, Places), Report> {
    let mut places = Places::new();
    let mut all = Space::grid(Vec::new()).expect("no axes are one point");
    let mut spaces = Vec::new();
    let mut report = Report::default();
    if let Some(first) = file.cases.first() {
        let cases = Cases::new(file.cases.iter().map(|case| (case.name.clone(), case.set.clone())).collect());
        spaces.push(cases.and_then(Space::of_cases).map_err(|wrong| at(&first.place, CASE, &wrong)));
    }
    for (axes, is_grid) in [(&file.grid, true), (&file.paired, false)] {
        let Some(first) = axes.first() else { continue };
        let values = |axis: &Axis| {
            let values = counted(axis, &mut places)?;
            if let Some((number, wrong)) = twice(&axis.key, &values).filter(|_| is_grid) {
                let place = match &axis.values {
                    Values::List(list) => &list[number].0,
                    Values::Range(ends, _) => &ends.place,
                };
                return Err(at(place, &axis.key, &wrong));
            }
            Ok((axis.key.clone(), values))
        };
        let read = each(axes.iter().map(values), &mut report);
        let space = if is_grid { Space::grid(read) } else { Space::paired(read) };
        spaces.push(space.map_err(|wrong| at(&first.place, &first.key, &wrong)));
    }
    if let Some(latin) = &file.latin {
        spaces.push(hypercube(latin, &mut places, &mut report));
    }
    if report.has_errors() {
        return Err(report);
    }
    for space in spaces {
        all = all.times(&space?).map_err(|wrong| at(&file.scenario_place, "", &wrong))?;
    }
    Ok((all, places))
}

/// The values of a key, and their places.
fn counted(axis: &Axis, places: &mut Places) -> Result<Vec<String>, Report> {
    match &axis.values {
        Values::List(list) => {
            for (place, value) in list {
                places.insert((axis.key.clone(), value.clone()), place.clone());
            }
            Ok(list.iter().map(|(_, value)| value.clone()).collect())
        }
        Values::Range(ends, count) => {
            let count = usize::try_from(count.unwrap_or(1)).unwrap_or(usize::MAX);
            let values = range(&axis.key, ends)?.steps(count);
            note(&axis.key, ends, &values, places);
            Ok(values)
        }
    }
}

fn hypercube(latin: &Latin, places: &mut Places, report: &mut Report) -> Result<Space, Report> {
    let range = |axis: &Axis| match &axis.values {
        Values::Range(ends, _) => range(&axis.key, ends).map(|range| (axis.key.clone(), range)),
        Values::List(_) => unreachable!("the reader takes ranges alone"),
    };
    let ranges = each(latin.axes.iter().map(range), report);
    let count = usize::try_from(latin.points).unwrap_or(usize::MAX);
    let place = |place: &Place, wrong: &Error| at(place, "latin", wrong);
    let Some(first) = latin.axes.first() else { return Ok(Space::grid(Vec::new()).expect("one point")) };
    let space = Space::latin(ranges, count, latin.seed).map_err(|wrong| place(&first.place, &wrong))?;
    for (column, axis) in latin.axes.iter().enumerate() {
        let Values::Range(ends, _) = &axis.values else { continue };
        let values: Vec<String> = space.points.iter().filter_map(|point| point.get(column).cloned()).collect();
        note(&axis.key, ends, &values, places);
    }
    Ok(space)
}

/// The values of those that can be read; the errors of the others go into the report.
fn each<T>(all: impl Iterator<Item = Result<T, Report>>, report: &mut Report) -> Vec<T> {
    let mut values = Vec::new();
    for one in all {
        match one {
            Ok(value) => values.push(value),
            Err(wrong) => wrong.findings().iter().for_each(|finding| report.push(finding.clone())),
        }
    }
    values
}

fn range(key: &str, ends: &Ends) -> Result<Range, Report> {
    Range::new(&ends.from, &ends.to, ends.is_log).map_err(|wrong| at(&ends.place, key, &wrong))
}

fn note(key: &str, ends: &Ends, values: &[String], places: &mut Places) {
    for value in values {
        places.insert((key.to_owned(), value.clone()), ends.place.clone());
    }
}

/// An error about `key` at `place`.
fn at(place: &Place, key: &str, wrong: &Error) -> Report {
    let (message, hint) = match wrong {
        Error::Wrong { message, hint } => (message.clone(), hint.clone()),
        Error::Report(report) => (report.to_string(), None),
    };
    let message = if message.starts_with(key) || key.is_empty() { message } else { format!("{key}: {message}") };
    Report::of(Diagnostic::error(place.clone(), message).about(key).maybe_hint(hint))
}

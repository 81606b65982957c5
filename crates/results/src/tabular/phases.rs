//! Phases side by side, of one run or of several.

use lastmile_text::escape;
use lastmile_theory::interval::Mean;

use super::columns::{NOTHING, columns};
use super::{Column, Kind, Table};
use crate::Run;
use crate::format;
use crate::measures::{Value, busy_links, distinct, measured, measures, order, phases_of};
use crate::schema::Summary;
use crate::seeds::{Seeded, text};

/// One column per phase: goodput of each flow with its bound, round trip of each probe, load and
/// delay of the busy links.
pub(crate) fn phases(summary: &Summary) -> Table {
    let mut table = Table { title: "Phases".to_owned(), columns: columns(&[("", Kind::Name)]), rows: Vec::new() };
    for phase in &summary.phases {
        let span =
            format!("{}\n{}–{} s", escape::line(&phase.name), format::number(phase.from_s), format::number(phase.to_s));
        table.columns.push(Column { name: span, kind: Kind::Number });
    }
    let mut rows: Vec<(String, Vec<Option<String>>)> = Vec::new();
    let count = summary.phases.len();
    for (number, phase) in summary.phases.iter().enumerate() {
        for (name, value) in measures(phase, &busy_links(summary)) {
            let row = match rows.iter().position(|(known, _)| *known == name) {
                Some(row) => row,
                None => {
                    rows.push((name, vec![None; count]));
                    rows.len() - 1
                }
            };
            rows[row].1[number] = Some(value.to_string());
        }
    }
    // Flows before probes before links, independent of the phase of their first occurrence.
    rows.sort_by_key(|(name, _)| order(name));
    let cells = |cell: Option<String>| cell.unwrap_or_else(|| NOTHING.to_owned());
    table.rows = rows
        .into_iter()
        .map(|(name, values)| std::iter::once(name).chain(values.into_iter().map(cells)).collect())
        .collect();
    table
}

/// Several runs of one scenario, one column each: goodput, round trips, load and delay in each
/// phase, and their differences.
///
/// Phases are matched by name and traffic. With two runs, a last column has the factor between them.
pub(crate) fn comparison(runs: &[Run]) -> Table {
    let mut table = Table {
        title: "Comparison".to_owned(),
        rows: Vec::new(),
        columns: columns(&[("Phase", Kind::Name), ("", Kind::Text)]),
    };
    table
        .columns
        .extend(runs.iter().map(|run| Column { name: escape::line(&run.label).into_owned(), kind: Kind::Number }));
    if runs.len() == 2 {
        table.columns.push(Column { name: "Factor".to_owned(), kind: Kind::Number });
    }
    let mut links: Vec<String> = runs.iter().flat_map(|run| busy_links(&run.summary)).collect();
    links.sort();
    links.dedup();
    for (label, phase) in phases_of(runs) {
        let values_of = |run: &Run| {
            let same = run.summary.same_phase(phase);
            same.map_or_else(Vec::new, |same| measures(same, &links))
        };
        let values: Vec<Vec<(String, Value)>> = runs.iter().map(values_of).collect();
        let mut names = distinct(values.iter().flatten().map(|(name, _)| name.clone()));
        names.sort_by_key(|name| order(name));
        for (number, name) in names.into_iter().enumerate() {
            let find = |values: &Vec<(String, Value)>| {
                values.iter().find(|(other, _)| *other == name).map(|(_, value)| *value)
            };
            let values: Vec<Option<Value>> = values.iter().map(find).collect();
            let phase = if number == 0 { label.clone() } else { String::new() };
            let cells = values.iter().map(|value| format::or_dash(*value, |value| value.to_string()));
            let mut row: Vec<String> = [phase, name].into_iter().chain(cells).collect();
            if let [first, second] = values.as_slice() {
                row.push(format::or_dash(first.zip(*second), |(first, second)| factor(first, second)));
            }
            table.rows.push(row);
        }
    }
    table
}

/// Means over seeds, one column for each set of runs that differs by more than the seed.
pub(crate) fn over_seeds(seeded: &[Seeded]) -> Table {
    let columns = columns(&[("Phase", Kind::Name), ("", Kind::Text)]);
    let seeds = seeded.first().map_or(0, |first| first.runs.len());
    let title = format!("Means of {seeds} seeds, with 95 % intervals");
    let mut table = Table { title, rows: Vec::new(), columns };
    let name = |label: &str| if label.is_empty() { "Mean".to_owned() } else { escape::line(label).into_owned() };
    table.columns.extend(seeded.iter().map(|of| Column { name: name(&of.label), kind: Kind::Number }));
    let all: Vec<Vec<(String, String, Vec<Value>)>> = seeded.iter().map(|of| measured(&of.runs)).collect();
    let mut last = String::new();
    for (phase, name) in distinct(all.iter().flatten().map(|(phase, name, _)| (phase.clone(), name.clone()))) {
        let cell = |of: &Vec<(String, String, Vec<Value>)>| {
            let found = of.iter().find(|(other, measure, _)| *other == phase && *measure == name);
            found.and_then(|(.., values)| mean(values, seeds)).unwrap_or_else(|| NOTHING.to_owned())
        };
        let heading = if phase == last { String::new() } else { phase.clone() };
        let cells = [heading, name.clone()].into_iter().chain(all.iter().map(cell)).collect();
        last = phase;
        table.rows.push(cells);
    }
    table
}

/// A mean with its interval, as [`text`].
fn mean(values: &[Value], seeds: usize) -> Option<String> {
    let samples: Vec<f64> = values.iter().map(|value| value.bare()).collect();
    let (first, mean) = (values.first()?, Mean::of(&samples)?);
    Some(text((mean, samples.len() as u64), seeds, |value| first.with(value).to_string()))
}

/// A factor, such as `× 9.8` or `÷ 40`; `=` for a difference below half a percent.
fn factor(first: Value, second: Value) -> String {
    let ratio = second.bare() / first.bare();
    match ratio {
        r if !r.is_finite() || r <= 0.0 => NOTHING.to_owned(),
        r if (r - 1.0).abs() < 0.005 => "=".to_owned(),
        r if r > 1.0 => format!("× {}", format::number(r)),
        r => format!("÷ {}", format::number(1.0 / r)),
    }
}

//! `report.html` in the folder of a study: its runs in the form that the page of the crate `results` has.

use std::collections::BTreeMap;

use lastmile_results::format::{self, Unit};
use lastmile_results::studied::{self, Key, Run, Value};

use super::means::{notes, shown};
use super::plan::{Runs, Study};
use super::space::{Kind, measure};
use super::table::{Column, Table};
use crate::variant::pairs;

/// The name of the page.
pub const PAGE: &str = "report.html";

/// The name, the text and the measures of a page.
#[derive(Clone, Copy, Debug)]
pub struct About<'a> {
    /// The name of the study.
    pub name: &'a str,
    /// The text of its file.
    pub text: Option<&'a str>,
    /// The measures to show; empty for the usual ones.
    pub measures: &'a [String],
}

/// The page of a study that has ended. Equal tables give equal pages.
#[must_use]
pub fn page(study: &Study<'_>, about: About<'_>, runs: &Runs, table: &Table) -> String {
    let measures: Vec<String> = shown(table, about.measures).into_iter().filter(|name| table.has(name)).collect();
    let (keys, places): (Vec<Key>, Vec<Vec<usize>>) = words(table).map(|(name, values)| key(name, values)).unzip();
    let warning =
        |failed: &super::plan::Failure| format!("failed: {}, seed {}: {}", failed.point, failed.seed, failed.reason);
    studied::page(&studied::Study {
        name: about.name.to_owned(),
        lines: lines(study, table),
        warnings: runs.failures.iter().map(warning).collect(),
        runs: rows(table, &places, &measures),
        keys,
        measures,
        known: table.measures().len(),
        text: about.text.map(str::to_owned),
        version: env!("CARGO_PKG_VERSION"),
    })
}

/// Points, runs and seeds; the scenario, and what all runs set; the sentences below the means.
fn lines(study: &Study<'_>, table: &Table) -> Vec<String> {
    let (points, runs) = (study.space.points.len(), table.rows());
    let mut lines = vec![format!("{points} points, {runs} runs. {}", study.seeds.in_words())];
    let set = pairs(study.common);
    let set = if set.is_empty() { String::new() } else { format!(", with {}", set.join(", ")) };
    if let Some(file) = &study.input.file {
        lines.push(format!("Scenario {file}{set}."));
    }
    lines.extend(notes(study, table));
    lines
}

/// The columns of keys.
fn words(table: &Table) -> impl Iterator<Item = (&String, &Vec<String>)> {
    table.columns.iter().filter_map(|(name, column)| match column {
        Column::Words(values) => Some((name, values)),
        _ => None,
    })
}

/// A key, and the index of its value in each run.
fn key(name: &str, column: &[String]) -> (Key, Vec<usize>) {
    let mut texts: Vec<&str> = Vec::new();
    let mut known: BTreeMap<&str, usize> = BTreeMap::new();
    let mut places = Vec::with_capacity(column.len());
    for text in column {
        places.push(*known.entry(text).or_insert_with(|| {
            texts.push(text);
            texts.len() - 1
        }));
    }
    let numbers: Option<Vec<(Units, f64)>> = texts.iter().map(|text| number(text)).collect();
    let units = numbers.as_ref().and_then(|numbers| numbers.first()).map_or(format::NUMBERS, |(units, _)| units);
    let numbers = numbers.filter(|numbers| numbers.iter().all(|(other, _)| *other == units));
    let value = |(place, text): (usize, &&str)| Value {
        text: (*text).to_owned(),
        number: numbers.as_ref().map(|numbers| numbers[place].1),
    };
    (Key { name: name.to_owned(), values: texts.iter().enumerate().map(value).collect(), units }, places)
}

type Units = &'static [Unit];

/// The number of a value in its base unit.
fn number(text: &str) -> Option<(Units, f64)> {
    if let Some(percent) = text.trim().strip_suffix('%') {
        return percent.trim().parse::<f64>().ok().map(|percent| (format::SHARES, percent / 100.0));
    }
    let (kind, value) = measure(text)?;
    Some(match kind {
        Kind::Rate => (format::RATES, value),
        Kind::Time => (format::SECONDS, value / 1e9),
        Kind::Size => (format::BYTES, value),
        Kind::Number => (format::NUMBERS, value),
    })
}

fn rows(table: &Table, places: &[Vec<usize>], measures: &[String]) -> Vec<Run> {
    let seeds = table.columns.iter().find_map(|(_, column)| match column {
        Column::Seeds(seeds) => Some(seeds.as_slice()),
        _ => None,
    });
    let numbers = |measure: &String| {
        table.columns.iter().find_map(|(name, column)| match column {
            Column::Numbers(numbers) if name == measure => Some(numbers.as_slice()),
            _ => None,
        })
    };
    let numbers: Vec<&[Option<f64>]> = measures.iter().filter_map(numbers).collect();
    let run = |(row, seed): (usize, &u64)| Run {
        point: places.iter().map(|column| column[row]).collect(),
        seed: *seed,
        values: numbers.iter().map(|values| values[row]).collect(),
    };
    seeds.unwrap_or_default().iter().enumerate().map(run).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_numbers_if_all_have_one_kind_of_unit() {
        let key = |values: &[&str]| {
            let (key, places) = key("k", &values.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
            let texts = places.iter().map(|place| key.values[*place].text.as_str());
            assert_eq!(texts.collect::<Vec<_>>(), values);
            key.values.iter().map(|value| value.number).collect::<Vec<_>>()
        };
        assert_eq!(key(&["5 ms", "1 s", "5 ms"]), [Some(0.005), Some(1.0)]);
        assert_eq!(key(&["256 kbit/s", "1 Mbit/s"]), [Some(256e3), Some(1e6)]);
        assert_eq!(key(&["0 %", "2 %"]), [Some(0.0), Some(0.02)]);
        assert_eq!(key(&["5 ms", "1 Mbit/s"]), [None, None]);
        assert_eq!(key(&["none", "3"]), [None, None]);
    }
}

//! Differences between values of a key over equal seeds. All points of a study have the same seeds, so two runs that
//! differ in one key have the same random numbers, and the interval of their difference is that of the paired t test.

use std::collections::BTreeMap;

use lastmile_theory::interval::Mean;
use maud::{Markup, html};

use super::axis::numbers;
use super::design::Design;
use super::model::{Point, Study};
use super::words::{estimate, title, units};
use crate::format::grouped;

/// The most rows of the table.
const MOST_ROWS: usize = 300;

/// A comparison of two points that differ in one key.
struct Row {
    /// The values of the other keys.
    others: Vec<usize>,
    /// The value that is compared with the first.
    value: usize,
    /// Difference and seeds of each measure.
    differences: Vec<Option<(Mean, usize)>>,
}

impl Row {
    /// The most seeds of a difference.
    fn seeds(&self) -> usize {
        self.differences.iter().flatten().map(|(_, seeds)| *seeds).max().unwrap_or(0)
    }
}

pub(super) fn section(study: &Study, points: &[Point<'_>], design: &Design) -> Markup {
    let compared = design.lines.into_iter().chain(design.figures.iter().copied()).chain([design.across]);
    // Words, such as policies, before numbers.
    let mut keys: Vec<usize> = compared.collect();
    keys.sort_by_key(|key| numbers(&study.keys[*key]).is_some());
    let Some((key, rows)) =
        keys.into_iter().map(|key| (key, rows(study, points, key))).find(|(_, rows)| !rows.is_empty())
    else {
        return html! {};
    };
    let others: Vec<usize> = (0..study.keys.len()).filter(|other| *other != key).collect();
    let base = &study.keys[key].values[0].text;
    html! {
        h2 { "Differences from " (study.keys[key].name) " " (base) }
        p.caption {
            "Both runs of a difference have one seed, and so the same random numbers: its 95 % interval is that of the "
            "paired t test. Bold: the interval excludes zero."
        }
        div.scroll { table {
            thead { tr {
                @for other in &others { th.left scope="col" { (study.keys[*other].name) } }
                th.left scope="col" { (study.keys[key].name) } th scope="col" { "seeds" }
                @for measure in &study.measures { th scope="col" { (title(measure)) } }
            } }
            tbody { @for row in rows.iter().take(MOST_ROWS) { @let seeds = row.seeds(); tr {
                @for (other, value) in others.iter().zip(&row.others) { td.left { (study.text(*other, *value)) } }
                td.left { (study.text(key, row.value)) " − " (base) }
                td { (seeds) }
                @for (difference, measure) in row.differences.iter().zip(&study.measures) {
                    @match difference {
                        Some((mean, of)) if mean.ci95.is_some_and(|ci95| mean.mean.abs() > ci95) => td.sure {
                            (estimate(*mean, units(measure), (*of, seeds))) },
                        Some((mean, of)) => td { (estimate(*mean, units(measure), (*of, seeds))) },
                        None => td { "–" },
                    }
                }
            } } }
        } }
        @if rows.len() > MOST_ROWS {
            p.caption { (grouped((rows.len() - MOST_ROWS) as u64)) " further rows are left out." }
        }
    }
}

/// The differences of all values of `key` from its first one; none if no two points have two seeds in common.
fn rows(study: &Study, points: &[Point<'_>], key: usize) -> Vec<Row> {
    let others = |point: &Point<'_>| {
        let all = point.values.iter().enumerate().filter(|(other, _)| *other != key);
        all.map(|(_, value)| *value).collect::<Vec<usize>>()
    };
    let bases: BTreeMap<Vec<usize>, &Point<'_>> =
        points.iter().filter(|point| point.values[key] == 0).map(|point| (others(point), point)).collect();
    let row = |point: &Point<'_>| {
        let base = bases.get(&others(point))?;
        let differences = (0..study.measures.len()).map(|measure| difference(base, point, measure)).collect();
        Some(Row { others: others(point), value: point.values[key], differences })
    };
    let all: Vec<Row> = points.iter().filter(|point| point.values[key] != 0).filter_map(row).collect();
    let has_interval = |row: &Row| row.differences.iter().flatten().any(|(_, seeds)| *seeds > 1);
    if all.iter().any(has_interval) { all } else { Vec::new() }
}

/// The difference of a measure over the seeds that both points have.
fn difference(base: &Point<'_>, point: &Point<'_>, measure: usize) -> Option<(Mean, usize)> {
    let before: BTreeMap<u64, f64> =
        base.runs.iter().filter_map(|run| Some((run.seed, run.values[measure]?))).collect();
    let with = point.runs.iter().filter_map(|run| Some(run.values[measure]? - before.get(&run.seed)?));
    let differences: Vec<f64> = with.collect();
    Some((Mean::of(&differences)?, differences.len()))
}

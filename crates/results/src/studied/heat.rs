//! A measure over two keys with numbers: a map of cells, darker for larger means. Each cell has its values as a title,
//! which needs no script; a script adds keys, the values in words, and files.

use maud::{Markup, html};

use super::axis::numbers;
use super::design::{at, combinations, is_factor, varied};
use super::model::{Point, Study};
use super::words::{estimate, title, units};
use crate::format::{self, Unit, grouped, to_f64};
use crate::report::panel::coordinate;
use crate::report::style::CHARACTER;

/// The most cells of a page, and the most maps.
const MOST_CELLS: usize = 4_000;
const MOST_MAPS: usize = 12;
const WIDTH: f64 = 580.0;
const LEFT: f64 = 104.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 44.0;
const FOOT: f64 = 44.0;
const HEIGHT: f64 = 230.0;
/// Opacity of the least and the largest mean.
const PALE: f64 = 0.06;
const FULL: f64 = 0.85;

/// The two keys, and those that have a map for each combination of their values.
struct Axes {
    across: usize,
    up: usize,
    maps: Vec<usize>,
}

/// The means of a map by the order of both values, and those of all maps of the measure.
struct Scale {
    low: f64,
    high: f64,
    unit: Unit,
    units: &'static [Unit],
}

impl Scale {
    fn opacity(&self, mean: f64) -> f64 {
        let share = if self.high > self.low { (mean - self.low) / (self.high - self.low) } else { 0.5 };
        PALE + (FULL - PALE) * share
    }
}

/// The first two keys with numbers whose values are combined.
fn axes(study: &Study, points: &[Point<'_>]) -> Option<Axes> {
    let keys = varied(study);
    let numeric = |key: &usize| numbers(&study.keys[*key]).is_some();
    let mut pairs = keys.iter().filter(|key| numeric(key)).flat_map(|across| {
        let later = keys.iter().filter(move |up| *up > across).filter(|up| numeric(up));
        later.map(move |up| (*across, *up))
    });
    let (across, up) = pairs.find(|(across, up)| is_factor(*across, *up, points) && is_factor(*up, *across, points))?;
    let maps: Vec<usize> = keys.into_iter().filter(|key| *key != across && *key != up).collect();
    // A further key that is no factor has one value for each cell, and the cell would hide it.
    maps.iter().all(|key| is_factor(*key, across, points) && is_factor(*key, up, points)).then_some(Axes {
        across,
        up,
        maps,
    })
}

pub(super) fn section(study: &Study, points: &[Point<'_>]) -> Markup {
    let Some(axes) = axes(study, points) else { return html! {} };
    let combinations = combinations(&axes.maps, points);
    let cells = study.keys[axes.across].values.len() * study.keys[axes.up].values.len();
    let most = (MOST_CELLS / cells.max(1)).min(MOST_MAPS);
    let scales = (0..study.measures.len()).filter_map(|measure| Some((measure, scale(study, points, measure)?)));
    let scales: Vec<(usize, Scale)> = scales.collect();
    let wanted = combinations.len() * scales.len();
    let maps = scales.iter().flat_map(|scale| combinations.iter().map(move |values| (scale, values)));
    html! {
        h2 { "Measures over " (study.keys[axes.across].name) " and " (study.keys[axes.up].name) }
        @if most < wanted {
            p.caption {
                "The page has " (most) " of " (grouped(wanted as u64)) " maps; table.parquet has all."
            }
        }
        div.panels {
            @for ((measure, scale), values) in maps.take(most) {
                (map(study, &axes, (*measure, values), &at(&axes.maps, values, points), scale))
            }
        }
    }
}

/// The scale of all maps of a measure; `None` if no run has it.
fn scale(study: &Study, points: &[Point<'_>], measure: usize) -> Option<Scale> {
    let means: Vec<f64> = points.iter().filter_map(|point| Some(point.mean(measure)?.mean)).collect();
    let (low, high) = means.iter().copied().min_by(f64::total_cmp).zip(means.iter().copied().max_by(f64::total_cmp))?;
    let units = units(&study.measures[measure]);
    Some(Scale { low, high, unit: format::unit_for(high.abs().max(low.abs()), units), units })
}

/// The values of a key in the order of their numbers: for each value its rank, and the texts by rank.
fn ranked(study: &Study, key: usize) -> (Vec<usize>, Vec<&str>) {
    let numbers = numbers(&study.keys[key]).unwrap_or_default();
    let mut order: Vec<usize> = (0..numbers.len()).collect();
    order.sort_by(|a, b| numbers[*a].total_cmp(&numbers[*b]));
    let mut ranks = vec![0; order.len()];
    for (rank, value) in order.iter().enumerate() {
        ranks[*value] = rank;
    }
    (ranks, order.iter().map(|value| study.text(key, *value)).collect())
}

fn map(study: &Study, axes: &Axes, (measure, values): (usize, &[usize]), here: &[&Point<'_>], scale: &Scale) -> Markup {
    let ((columns, across), (rows, up)) = (ranked(study, axes.across), ranked(study, axes.up));
    let (width, height) = ((WIDTH - LEFT - RIGHT) / to_f64(across.len() as u64), HEIGHT / to_f64(up.len() as u64));
    let corner = |point: &Point<'_>| {
        let (column, row) = (columns[point.values[axes.across]], rows[point.values[axes.up]]);
        (LEFT + to_f64(column as u64) * width, TOP + to_f64((up.len() - 1 - row) as u64) * height, column, row)
    };
    let (name, named) = (title(&study.measures[measure]), study.named(&axes.maps, values));
    let name = if named.is_empty() { name } else { format!("{name}: {named}") };
    let name = if scale.unit.1.is_empty() { name } else { format!("{name}, {}", scale.unit.1) };
    let has_text = width >= 46.0 && height >= 15.0;
    let size = [coordinate(WIDTH), coordinate(TOP + HEIGHT + FOOT)];
    html! {
        figure.heat data-title=(name) data-across=(study.keys[axes.across].name) data-up=(study.keys[axes.up].name) {
            svg.plot viewBox={ "0 0 " (size[0]) " " (size[1]) } role="img" aria-label={
                (name) " over " (study.keys[axes.across].name) " and " (study.keys[axes.up].name) } {
                text.title x="0" y="14" { (name) }
                (legend(scale))
                @for point in here {
                    @if let Some(mean) = point.mean(measure) {
                        @let (x, y, column, row) = corner(point);
                        rect.cell x=(coordinate(x)) y=(coordinate(y)) width=(coordinate(width))
                            height=(coordinate(height)) fill-opacity=(format!("{:.2}", scale.opacity(mean.mean)))
                            data-x=(across[column]) data-y=(up[row]) data-mean=(short(mean.mean))
                            data-ci95=[mean.ci95.map(short)] {
                            title {
                                (study.keys[axes.across].name) " " (across[column]) ", " (study.keys[axes.up].name) " "
                                (up[row]) ": " (estimate(mean, scale.units, point.seeds(measure)))
                            }
                        }
                        @if has_text {
                            text.in-cell x=(coordinate(x + width / 2.0)) y=(coordinate(y + height / 2.0 + 4.0))
                                text-anchor="middle" { (format::number(mean.mean / scale.unit.0)) }
                        }
                    }
                }
                (names(&across, &up, (width, height)))
                text x=(coordinate(f64::midpoint(LEFT, WIDTH - RIGHT))) y=(coordinate(TOP + HEIGHT + 36.0))
                    text-anchor="middle" { (study.keys[axes.across].name) }
                text x="0" y=(coordinate(TOP - 8.0)) { (study.keys[axes.up].name) }
            }
        }
    }
}

/// A number in seven digits, for files.
fn short(value: f64) -> String {
    format!("{value:.6e}").parse::<f64>().map_or_else(|_| String::new(), |value| value.to_string())
}

/// Least and largest mean with the shades between them.
fn legend(scale: &Scale) -> Markup {
    const STEPS: u32 = 6;
    let text = |value: f64| format::number(value / scale.unit.0);
    let from = WIDTH - RIGHT - 60.0 - 12.0 * f64::from(STEPS);
    html! {
        text.note x=(coordinate(from - 5.0)) y=(coordinate(TOP - 8.0)) text-anchor="end" { (text(scale.low)) }
        @for step in 0..STEPS {
            @let value = scale.low + (scale.high - scale.low) * f64::from(step) / f64::from(STEPS - 1);
            rect.cell x=(coordinate(from + 12.0 * f64::from(step))) y=(coordinate(TOP - 17.0)) width="12" height="10"
                fill-opacity=(format!("{:.2}", scale.opacity(value))) {}
        }
        text.note x=(coordinate(from + 12.0 * f64::from(STEPS) + 5.0)) y=(coordinate(TOP - 8.0)) { (text(scale.high)) }
    }
}

/// The values of both keys, as far as they fit.
fn names(across: &[&str], up: &[&str], (width, height): (f64, f64)) -> Markup {
    let long = across.iter().map(|text| text.chars().count()).max().unwrap_or(0);
    let (every, each) = (step(CHARACTER * to_f64(long as u64) + 8.0, width), step(14.0, height));
    html! {
        @for (column, text) in across.iter().enumerate().step_by(every) {
            text x=(coordinate(LEFT + (to_f64(column as u64) + 0.5) * width)) y=(coordinate(TOP + HEIGHT + 17.0))
                text-anchor="middle" { (text) }
        }
        @for (row, text) in up.iter().enumerate().step_by(each) {
            text x=(coordinate(LEFT - 7.0)) text-anchor="end"
                y=(coordinate(TOP + HEIGHT - (to_f64(row as u64) + 0.5) * height + 4.0)) { (text) }
        }
    }
}

/// The distance between names of this size, in cells.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few hundred at most")]
fn step(size: f64, space: f64) -> usize {
    (size / space).ceil().max(1.0) as usize
}

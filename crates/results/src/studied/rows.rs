//! The table: a row for each run, or for each point of a study with many runs.

use maud::{Markup, html};

use super::model::{Point, Study};
use super::words::{estimate, title, units, words};
use crate::format::{grouped, or_dash};

/// The most cells of the table.
const MOST_CELLS: usize = 16_000;

pub(super) fn section(study: &Study, points: &[Point<'_>]) -> Markup {
    let columns = study.keys.len() + 1 + study.measures.len();
    let most = MOST_CELLS / columns;
    let by_run = study.runs.len() <= most;
    let rows = if by_run { study.runs.len() } else { points.len() };
    let others = study.known.saturating_sub(study.measures.len());
    html! {
        h2 { @if by_run { "Runs" } @else { "Points" } }
        p.caption {
            @if !by_run {
                (grouped(study.runs.len() as u64)) " runs are too many for a page: a row is a point, with means and "
                "95 % intervals. "
            }
            @if rows > most { (grouped((rows - most) as u64)) " further rows are left out. " }
            @if others > 0 || !by_run || rows > most { "table.parquet has every run" }
            @if others > 0 { " and " (grouped(others as u64)) " more measures" }
            @if others > 0 || !by_run || rows > most { "." }
        }
        div.scroll { table {
            thead { tr {
                @for key in &study.keys { th.left scope="col" { (key.name) } }
                th scope="col" { @if by_run { "seed" } @else { "seeds" } }
                @for measure in &study.measures { th scope="col" { (title(measure)) } }
            } }
            tbody {
                @if by_run {
                    @for run in study.runs.iter().take(most) { tr {
                        @for (key, value) in run.point.iter().enumerate() { td.left { (study.text(key, *value)) } }
                        td { (run.seed) }
                        @for (value, measure) in run.values.iter().zip(&study.measures) {
                            td { (or_dash(*value, |value| words(value, units(measure)))) }
                        }
                    } }
                } @else {
                    @for point in points.iter().take(most) { tr {
                        @for (key, value) in point.values.iter().enumerate() { td.left { (study.text(key, *value)) } }
                        td { (point.runs.len()) }
                        @for (number, measure) in study.measures.iter().enumerate() {
                            @let of = point.seeds(number);
                            td { (or_dash(point.mean(number), |mean| estimate(mean, units(measure), of))) }
                        }
                    } }
                }
            }
        } }
    }
}

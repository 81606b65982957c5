//! Several runs of one scenario: a row for each, their series in common panels, and all results of
//! each.

use maud::{Markup, html};

use super::caption::{caption, shared_caption};
use super::frame::{frame, frame_of};
use super::gallery::Gallery;
use super::panel::Frame;
use super::style::COLOURS;
use super::{distribution, overlay, panels, tables};
use crate::Run;
use crate::comparison::{self, Comparison, Row};
use crate::format;
use crate::live_comparison::LiveComparison;
use crate::tabular::{self, Table};

/// Half the width of a page, which a phone shows whole.
const WIDTH: f64 = 500.0;
/// Height for a name next to a panel, which may take two lines.
const NAME: f64 = 28.0;

/// The body of a page that compares at least one run. Rows with several seeds show the first seed;
/// a single such row shows every seed.
pub(crate) fn body(comparison: &Comparison, gallery: &Gallery) -> Markup {
    let runs = &drawn(comparison)[..];
    let first = &runs[0].summary;
    let narrow = Frame { width: WIDTH, margin: 112.0, height: 150.0, ..frame(first) };
    let high = Frame { height: (NAME * format::to_f64(runs.len() as u64)).max(150.0), ..narrow.clone() };
    let overlays = overlay::overlays(runs);
    html! {
        header {
            h1 { (first.run.scenario) }
            p.caption { (shared_caption(runs)) }
        }
        (summary(comparison))
        (live_runs(runs))
        @if !overlays.is_empty() {
            h2 { "Over time" }
            div.panels { @for panel in &overlays { (gallery.figure(panel, &high, true)) } }
            div.panels { (distribution::figures(runs, Some(&high), gallery)) }
        }
        (each_quantity(runs, &narrow, gallery))
        h2 { "What limited each flow" }
        div.columns {
            @for (number, run) in runs.iter().enumerate() { div {
                h3 { (named(number, &run.label)) } (tables::why(&run.summary)) } }
        }
        @if comparison.seeds() > 1 {
            (tables::markup(&tabular::over_seeds(&comparison.rows)))
        } @else {
            (tables::markup(&Table { title: "By phase".to_owned(), ..tabular::comparison(runs) }))
        }
        h2 { "All results" }
        @for (number, run) in runs.iter().enumerate() {
            details {
                summary { (named(number, &run.label)) }
                (caption(&run.summary))
                (tables::all(&run.summary))
            }
        }
        footer { p { (shared_caption(runs)) } }
    }
}

/// The name of a run with the colour of its lines.
fn named(number: usize, label: &str) -> Markup {
    html! { span.swatch style={ "background:var(--c" (number % COLOURS) ")" } {} b { (label) } }
}

/// The runs whose series are drawn.
pub(super) fn drawn(comparison: &Comparison) -> Vec<Run> {
    match &comparison.rows[..] {
        [only] => only.runs.clone(),
        rows => rows.iter().map(|row| Run { label: row.label.clone(), ..row.runs[0].clone() }).collect(),
    }
}

/// One row per run, of the phase that the comparison is about.
pub(crate) fn summary(comparison: &Comparison) -> Markup {
    let measured = comparison.measured();
    let (columns, texts) = comparison::table(&measured);
    let place = measured.first().map(|runs| comparison::measured_where(runs)).unwrap_or_default();
    html! {
        h2 { "Comparison" }
        p.caption {
            @if matches!(measured.first().and_then(|runs| runs.first()), Some(Row::Network(_))) {
                "Goodputs are of all TCP connections, of the one that has least and of the one that has most, \
                 measured " (place) ". Means are of samples, "
                "losses of all queues; what waits at the edge is that of each connection of available bit rate on \
                 its own."
            } @else {
                "Goodputs are of all flows together, measured " (place) ". \
                 Queues are those of the line and of a middlebox at its near end; drops and merged ACKs "
                "are theirs over the whole run, as are the values of calls and datagrams, which are those of the worst."
                @if let Some(about) = comparison::about_the_probe(&measured) { " " (about) }
                @if let Some(about) = comparison::about_the_limits(comparison) { " " (about) }
            }
            @if let Some(about) = comparison::about_the_baseline(&measured) { " " (about) }
            @if comparison.seeds() > 1 {
                " Means of " (comparison.seeds()) " seeds with 95 % intervals; the first seed is drawn."
            }
        }
        div.scroll {
            table {
                thead { tr {
                    th.left scope="col" { "run" }
                    @for column in columns { th scope="col" { (column) } }
                } }
                tbody { @for (number, (row, cells)) in comparison.rows.iter().zip(&texts).enumerate() { tr {
                    td.name { (named(number, &row.label)) }
                    @for cell in cells { td { (cell) } }
                } } }
            }
        }
    }
}

/// Live runs compared with the simulation: deviations, and the spread over runs.
fn live_runs(runs: &[Run]) -> Markup {
    let comparison = LiveComparison::new(runs);
    html! {
        @if let Some(comparison) = &comparison {
            h2 { @if comparison.rows.iter().any(|row| row.simulated.is_some()) { "Live and simulated" } @else {
                "Live runs" } }
            @if comparison.runs > 1 { p.caption { "Median, least and most of " (comparison.runs) " live runs." } }
            @for table in comparison.tables() {
                h3 { (table.title) }
                (tables::markup(&Table { title: String::new(), ..table }))
            }
        }
    }
}

/// Small multiples: every quantity, one panel per run, on equal scales.
fn each_quantity(runs: &[Run], frame: &Frame, gallery: &Gallery) -> Markup {
    let columns = panels::panels(runs, |_| true);
    let rows = columns.first().map_or(0, Vec::len);
    html! {
        @if rows > 0 {
            details {
                summary { "Every quantity, run by run, on equal scales" }
                @for row in 0..rows {
                    h3 { (columns[0][row].title) }
                    div.panels {
                        @for (number, (run, panels)) in runs.iter().zip(&columns).enumerate() {
                            (gallery.figure_with(&panels[row], &frame_of(run, frame), true, &html! {
                                figcaption { (named(number, &run.label)) }
                            }))
                        }
                    }
                }
            }
        }
    }
}

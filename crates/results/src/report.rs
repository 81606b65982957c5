//! `report.html`: one file that needs no network, and the pictures in it. Its script is an addition.
//!
//! A report of one run stacks its panels over one axis of time. A report of several runs of a
//! scenario has one line per run in each panel. Every name from a file is escaped: maud escapes the
//! markup, `finished` the hidden characters.

mod caption;
mod compare;
mod coordinate;
mod distribution;
pub(crate) mod document;
pub(crate) mod footer;
mod frame;
pub(crate) mod gallery;
pub mod graphs;
mod label;
mod overlay;
pub(crate) mod panel;
mod panels;
pub(crate) mod scale;
pub(crate) mod shape;
pub(crate) mod style;
mod tables;
mod thinning;
mod timeline;
mod trade_off;

use std::borrow::Cow;

use lastmile_text::escape;
use maud::{Markup, PreEscaped, html};

use crate::Run;
use crate::comparison::Comparison;
use crate::schema::Summary;
use caption::{caption, caption_text, shared_caption};
use footer::Footer;
use frame::{frame, frame_of};
pub use gallery::Data;
use gallery::Gallery;
use panel::{Frame, Panel, coordinate};
pub use timeline::{Chart, Line as ChartLine, Quantity, Timeline, timeline};
pub use trade_off::{Curve, TradeOff, trade_off};

/// The report of one run, or the comparison of several runs of one scenario, as a page of HTML.
///
/// [`Run::label`] identifies the runs; the others are compared with the first. Empty for no runs.
#[must_use]
pub fn page(runs: &[Run]) -> String {
    match runs {
        [] => String::new(),
        [run] => Parts::of_run(run).page(),
        _ => comparison(&Comparison::of(runs.to_vec())),
    }
}

/// A comparison of several runs of one scenario as a page of HTML. Empty for no runs.
#[must_use]
pub fn comparison(comparison: &Comparison) -> String {
    Parts::of_comparison(comparison).map_or_else(String::new, |parts| parts.page())
}

/// A report for a page of somebody else's: its text, and the data of its figures.
#[derive(Clone, Debug)]
pub struct Embedded {
    /// HTML of the body, with escaped names. Each `figure` has the number of its panel as `data-panel`.
    pub body: String,
    /// The panels.
    pub data: Data,
}

/// The report of one run, for a page that has the script of reports.
#[must_use]
pub fn embedded(run: &Run) -> Embedded {
    Parts::of_run(run).embedded()
}

/// The report of a comparison, for a page that has the script of reports; `None` for no runs.
#[must_use]
pub fn embedded_comparison(comparison: &Comparison) -> Option<Embedded> {
    Parts::of_comparison(comparison).map(Parts::embedded)
}

/// A report: its first run, its body, and the panels in it.
struct Parts<'a> {
    first: &'a Summary,
    body: Markup,
    gallery: Gallery,
}

impl<'a> Parts<'a> {
    fn of_run(run: &'a Run) -> Self {
        let gallery = Gallery::of(std::slice::from_ref(run));
        Self { first: &run.summary, body: single(run, &gallery), gallery }
    }

    fn of_comparison(comparison: &'a Comparison) -> Option<Self> {
        let first = comparison.rows.first().and_then(|row| row.runs.first())?;
        let gallery = Gallery::of(&compare::drawn(comparison));
        Some(Self { first: &first.summary, body: compare::body(comparison, &gallery), gallery })
    }

    fn page(&self) -> String {
        let Summary { run, .. } = self.first;
        let title = if run.scenario.is_empty() { "lastmile" } else { &run.scenario };
        document::document(title, &run.version, &self.body, &self.gallery)
    }

    fn embedded(self) -> Embedded {
        Embedded { body: finished(self.body), data: self.gallery.data() }
    }
}

/// The table of a comparison as a part of another page, such as a notebook. Empty for no runs.
#[must_use]
pub fn fragment(comparison: &Comparison) -> String {
    if comparison.rows.iter().all(|row| row.runs.is_empty()) {
        String::new()
    } else {
        finished(compare::summary(comparison))
    }
}

/// One picture of several runs side by side, or of one: the panels of `series`, by name, as a
/// self-contained drawing.
///
/// Meant for README files and slides: it follows the reader's light or dark setting.
#[must_use]
pub fn figure(runs: &[Run], series: &[&str]) -> String {
    const GAP: f64 = 24.0;
    const HEADING: f64 = 30.0;
    let Some(first) = runs.first() else { return String::new() };
    let frame = Frame { width: 560.0, margin: 134.0, height: 130.0, ..frame(&first.summary) };
    let columns = panels::panels(runs, |name| series.contains(&name));
    let rows = columns.first().map_or(0, Vec::len);
    let top = if runs.len() > 1 { HEADING } else { 0.0 };
    let height: f64 = (0..rows).map(|row| frame.panel_height(row + 1 == rows)).sum();
    let width = (frame.width + GAP) * runs.len() as f64 - GAP;
    let footer = Footer::new(&shared_caption(runs), width);
    let footer_top = GAP + top + height + 26.0;
    let (outer_width, outer_height) = (width + 2.0 * GAP, footer_top + footer.height());
    let drawing = html! {
        svg.plot xmlns="http://www.w3.org/2000/svg" viewBox={
            "0 0 " (coordinate(outer_width)) " " (coordinate(outer_height)) }
            width=(coordinate(outer_width)) height=(coordinate(outer_height)) role="img" {
            title { (first.summary.run.scenario) }
            style { (PreEscaped(style::standalone())) }
            rect.ground width="100%" height="100%" {}
            @for (number, (run, panels)) in runs.iter().zip(&columns).enumerate() {
                g transform={ "translate(" (coordinate(GAP + number as f64 * (frame.width + GAP))) " "
                    (coordinate(GAP)) ")" } {
                    @if runs.len() > 1 { text.heading x="0" y="14" { (run.label) } }
                    (stack(panels, &frame_of(run, &frame), top))
                }
            }
            (footer.draw(GAP, footer_top))
        }
    };
    finished(drawing)
}

/// The panels that [`figure`] can draw of these runs: series and title.
#[must_use]
pub fn panels_of(runs: &[Run]) -> Vec<(&'static str, &'static str)> {
    panels::available(runs)
}

/// The titles of the panels that [`figure_of_lines`] can draw of runs with curves in common panels.
#[must_use]
pub fn titles_of(runs: &[Run]) -> Vec<String> {
    if runs.is_empty() { Vec::new() } else { overlay::overlays(runs).into_iter().map(|panel| panel.title).collect() }
}

/// A column of [`figure_of_lines`]: a line, and its runs.
#[derive(Clone, Debug)]
pub struct Column {
    /// The heading of the column.
    pub heading: String,
    /// The runs, one curve each.
    pub runs: Vec<Run>,
}

/// One picture of the same runs on several lines: one column per line, with the panels of these
/// titles, such as `Goodput of download`, and one curve per run. It is self-contained and follows
/// the reader's light or dark setting: for README files and slides.
#[must_use]
pub fn figure_of_lines(lines: &[Column], titles: &[&str]) -> String {
    const GAP: f64 = 24.0;
    const HEADING: f64 = 30.0;
    const WIDTH: f64 = 560.0;
    let columns = lines.iter().filter_map(|column| Some((column, column.runs.first()?)));
    let column = |(column, first): (&Column, &Run)| {
        let frame = Frame { width: WIDTH, margin: 120.0, height: 150.0, ..frame(&first.summary) };
        let all = overlay::overlays(&column.runs);
        let wanted = titles.iter().filter_map(|title| all.iter().find(|panel| panel.title == *title).cloned());
        let panels: Vec<Panel> = wanted.collect();
        let height: f64 = (0..panels.len()).map(|row| frame.panel_height(row + 1 == panels.len())).sum();
        let footer = Footer::new(&shared_caption(&column.runs), WIDTH);
        let drawn = html! {
            text.heading x="0" y="14" { (column.heading) }
            (stack(&panels, &frame, HEADING))
            (footer.draw(0.0, HEADING + height + 18.0))
        };
        (drawn, HEADING + height + 4.0 + footer.height())
    };
    let drawn: Vec<(Markup, f64)> = columns.map(column).collect();
    let height = drawn.iter().map(|(_, height)| *height).fold(0.0, f64::max) + 2.0 * GAP;
    let width = (WIDTH + GAP) * crate::format::to_f64(drawn.len() as u64) + GAP;
    let x = |number: usize| coordinate(GAP + crate::format::to_f64(number as u64) * (WIDTH + GAP));
    finished(html! {
        svg.plot xmlns="http://www.w3.org/2000/svg" viewBox={ "0 0 " (coordinate(width)) " " (coordinate(height)) }
            width=(coordinate(width)) height=(coordinate(height)) role="img" {
            title { (titles.join(", ")) }
            style { (PreEscaped(style::standalone())) }
            rect.ground width="100%" height="100%" {}
            @for (number, (column, _)) in drawn.iter().enumerate() {
                g transform={ "translate(" (x(number)) " " (coordinate(GAP)) ")" } { (column) }
            }
        }
    })
}

/// The text of a page or drawing. XML allows no control characters, and bidirectional controls
/// reorder the text around a name.
pub(crate) fn finished(markup: Markup) -> String {
    match escape::file(&markup.0) {
        Cow::Borrowed(_) => markup.into_string(),
        Cow::Owned(text) => text,
    }
}

/// Panels one above the other, the first at `top`.
fn stack(panels: &[Panel], frame: &Frame, top: f64) -> Markup {
    html! {
        @for (row, panel) in panels.iter().enumerate() {
            @let y = top + row as f64 * frame.panel_height(false);
            g transform={ "translate(0 " (coordinate(y)) ")" } { (panel.draw(frame, row + 1 == panels.len())) }
        }
    }
}

fn single(run: &Run, gallery: &Gallery) -> Markup {
    let summary = &run.summary;
    let panels = panels::panels(std::slice::from_ref(run), |_| true).pop().unwrap_or_default();
    html! {
        header {
            h1 { (summary.run.scenario) }
            (caption(summary))
        }
        h2 { "What limited each flow" }
        (tables::why(summary))
        @if !panels.is_empty() {
            h2 { "Over time" }
            (gallery.column(&panels, &frame(summary)))
        }
        (distribution::figures(std::slice::from_ref(run), None, gallery))
        (tables::all(summary))
        (inputs(summary))
        footer { p { (caption_text(summary)) } }
    }
}

fn inputs(summary: &Summary) -> Markup {
    html! {
        @if let Some(text) = &summary.run.inputs.text {
            h2 { "Scenario" }
            details {
                summary { (summary.run.inputs.file.as_deref().unwrap_or("the file")) }
                pre { (text.replace("\r\n", "\n")) }
            }
        }
    }
}

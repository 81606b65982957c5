//! `report.html`: one file that needs no network and no script, and the pictures in it.
//!
//! A report of one run stacks its panels over one axis of time. A report of several runs of a
//! scenario has one line per run in each panel. Every name from a file is escaped: maud escapes the
//! markup, `finished` the hidden characters.

mod compare;
mod distribution;
pub mod graphs;
mod label;
mod overlay;
pub(crate) mod panel;
mod panels;
pub(crate) mod scale;
pub(crate) mod style;
mod tables;
mod timeline;
mod trade_off;

use std::borrow::Cow;

use lastmile_text::shown;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::Run;
use crate::comparison::Comparison;
use crate::schema::{Clock, Summary};
use crate::tabular;
use panel::{Frame, Panel, coordinate};
use scale::Axis;
pub use timeline::{Chart, Line as ChartLine, Quantity, Timeline, timeline};
pub use trade_off::{Curve, TradeOff, trade_off};

/// The report of one run, or the comparison of several runs of one scenario, as a page of HTML.
///
/// [`Run::label`] identifies the runs; the others are compared with the first. Empty for no runs.
#[must_use]
pub fn page(runs: &[Run]) -> String {
    match runs {
        [] => String::new(),
        [run] => document(&run.summary, &single(run)),
        _ => comparison(&Comparison::of(runs.to_vec())),
    }
}

/// A comparison of several runs of one scenario as a page of HTML. Empty for no runs.
#[must_use]
pub fn comparison(comparison: &Comparison) -> String {
    let first = comparison.rows.first().and_then(|row| row.runs.first());
    first.map_or_else(String::new, |first| document(&first.summary, &compare::body(comparison)))
}

fn document(first: &Summary, body: &Markup) -> String {
    let title = if first.run.scenario.is_empty() { "lastmile" } else { &first.run.scenario };
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="generator" content={ "lastmile " (first.run.version) };
                title { (title) }
                style { (PreEscaped(style::page())) }
            }
            body { (body) }
        }
    };
    finished(page)
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
    let (outer_width, outer_height) = (width + 2.0 * GAP, height + top + GAP * 2.0 + 16.0);
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
            text.note x=(coordinate(GAP)) y=(coordinate(outer_height - 14.0)) { (shared_caption(runs)) }
        }
    };
    finished(drawing)
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
        let caption = shared_caption(&column.runs);
        let drawn = html! {
            text.heading x="0" y="14" { (column.heading) }
            (stack(&panels, &frame, HEADING))
            text.note x="0" y=(coordinate(HEADING + height + 18.0)) { (caption) }
        };
        (drawn, HEADING + height + 18.0)
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
    match shown::file(&markup.0) {
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

/// Panels as separate drawings, so that a page may break between them.
fn drawings(panels: &[Panel], frame: &Frame) -> Markup {
    html! {
        @for (row, panel) in panels.iter().enumerate() {
            @let last = row + 1 == panels.len();
            figure { (drawing(panel, frame, last)) }
        }
    }
}

fn drawing(panel: &Panel, frame: &Frame, last: bool) -> Markup {
    let size = [coordinate(frame.width), coordinate(frame.panel_height(last))];
    html! {
        svg.plot viewBox={ "0 0 " (size[0]) " " (size[1]) } role="img" aria-label={ (panel.title) " over time" } {
            (panel.draw(frame, last))
        }
    }
}

/// The frame of a full-width column of panels over a whole run.
fn frame(summary: &Summary) -> Frame {
    let phases = summary.phases.iter();
    Frame {
        time: Axis::time(0.0, summary.run.duration_s, 10),
        across: "Time",
        phases: phases.map(|phase| (phase.from_s, phase.to_s, phase.name.clone())).collect(),
        width: 1140.0,
        margin: 170.0,
        height: 140.0,
    }
}

/// `frame` with the time and the phases of `run`.
fn frame_of(run: &Run, frame: &Frame) -> Frame {
    let Frame { width, margin, height, .. } = *frame;
    Frame { width, margin, height, ..self::frame(&run.summary) }
}

fn single(run: &Run) -> Markup {
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
            (drawings(&panels, &frame(summary)))
        }
        (distribution::figures(std::slice::from_ref(run), None))
        (tables::all(summary))
        (inputs(summary))
        footer { p { (caption_text(summary)) } }
    }
}

fn caption(summary: &Summary) -> Markup {
    html! { p.caption { (caption_text(summary)) } }
}

/// The inputs that reproduce a picture: scenario, seed, version.
fn caption_text(summary: &Summary) -> String {
    caption_with(std::slice::from_ref(&summary), summary.run.inputs.set.iter())
}

/// The caption of several runs: the overrides that all share, and the differing ones as
/// `key = one, another` if runs are named after their values.
fn shared_caption(runs: &[Run]) -> String {
    let Some((first, others)) = runs.split_first() else { return String::new() };
    let shared =
        |set: &&String| !first.own.contains(*set) && others.iter().all(|run| run.summary.run.inputs.set.contains(*set));
    let keys = varied(runs);
    let labels = || vec![runs.iter().map(|run| run.label.as_str()).collect::<Vec<_>>().join(", ")];
    let varied = if keys.is_empty() { Vec::new() } else { named_values(runs, &keys).unwrap_or_else(labels) };
    let summaries: Vec<&Summary> = runs.iter().map(|run| &run.summary).collect();
    caption_with(&summaries, first.summary.run.inputs.set.iter().filter(shared).chain(&varied))
}

/// The keys in which runs differ, such as `access.policy`; empty if unknown.
fn varied(runs: &[Run]) -> Vec<&str> {
    let mut keys: Vec<&str> = Vec::new();
    for set in runs.iter().flat_map(|run| &run.own) {
        let key = set.split_once('=').map_or(set.as_str(), |(key, _)| key);
        // An override common to all runs is no difference.
        if !keys.contains(&key) && !runs.iter().all(|run| run.own.contains(set)) {
            keys.push(key);
        }
    }
    keys
}

/// `key = value, value` for each of `keys`, if runs are named by the values that they set; `None`
/// if a run has another name, as a case has.
fn named_values(runs: &[Run], keys: &[&str]) -> Option<Vec<String>> {
    let values = |run| -> Option<Vec<&str>> {
        let Run { label, own, .. }: &Run = run;
        let names: Vec<&str> = if keys.len() == 1 { vec![label] } else { label.split(", ").collect() };
        let sets = |key: &str, name: &str| {
            own.iter().any(|set| set.split_once('=').is_some_and(|(set, value)| set == key && value.ends_with(name)))
        };
        let named = names.len() == keys.len() && keys.iter().zip(&names).all(|(key, name)| sets(key, name));
        named.then_some(names)
    };
    let values: Vec<Vec<&str>> = runs.iter().map(values).collect::<Option<_>>()?;
    let of = |(number, key): (usize, &&str)| {
        let values = tabular::distinct(values.iter().map(|of_run| of_run[number]));
        format!("{key} = {}", values.join(", "))
    };
    Some(keys.iter().enumerate().map(of).collect())
}

/// The caption of at least one of `summaries`; a seed or length that differs between them is
/// omitted.
fn caption_with<'a>(summaries: &[&Summary], set: impl Iterator<Item = &'a String>) -> String {
    let summary = summaries[0];
    let seed = format!(" · seed {}", summary.run.seed);
    let seed = if summaries.iter().all(|other| other.run.seed == summary.run.seed) { &*seed } else { "" };
    let length = format!(" · {}", crate::format::seconds(summary.run.duration_s));
    let same_length = |other: &&Summary| other.run.duration_s.total_cmp(&summary.run.duration_s).is_eq();
    let length = if summaries.iter().all(same_length) { &*length } else { "" };
    let set: String = set.map(|set| format!(" · {set}")).collect();
    let file = summary.run.inputs.file.as_deref().unwrap_or(&summary.run.scenario);
    let clock = match summary.run.clock {
        Clock::Simulated => "",
        Clock::Monotonic => " · real packets",
    };
    format!("{file}{set}{seed}{length}{clock} · lastmile {}", summary.run.version)
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

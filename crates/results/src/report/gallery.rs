//! The panels of a page as data, from which its script draws them anew: with values under the pointer, zoomed,
//! line by line.
//!
//! A page shows every panel as a static drawing in a `figure` with the panel's number. The script replaces it.
//! Without a script the drawing stays.

mod columns;
mod path;
mod sketch;

use std::cell::RefCell;

use lastmile_text::shown;
use maud::{Markup, html};
use serde::Serialize;

use self::columns::Columns;
pub(crate) use self::path::Path;
pub(crate) use self::sketch::{Curve, Exact, Shape, Sketch, Strip};
use super::frame::drawing;
use super::panel::{Frame, Line, Panel};
use crate::Run;

/// The most samples of a page; each line has an equal part of them.
const MOST_SAMPLES: usize = 200_000;
/// The most samples of a line.
const MOST_OF_A_LINE: usize = 6_000;
/// The fewest samples to which a line is reduced.
const FEWEST_OF_A_LINE: usize = 400;

/// The panels of a page.
#[derive(Default)]
pub(crate) struct Gallery {
    figures: RefCell<Vec<Figure>>,
    paths: Vec<Path>,
}

enum Figure {
    Panel(Panel, Across),
    Sketch(Sketch),
}

/// The horizontal axis of a panel.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Across {
    pub(crate) title: String,
    /// The value of the unit in the base unit, and its symbol.
    pub(crate) unit: (f64, &'static str),
    pub(crate) from: f64,
    pub(crate) to: f64,
    /// Begin, end and name of each phase.
    pub(crate) phases: Vec<(f64, f64, String)>,
    /// Places with names, if the axis has no others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) ticks: Vec<(f64, String)>,
    /// True if places are logarithms to base 10.
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) log: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_false(value: &bool) -> bool {
    !value
}

/// The data of a page, as its script reads them.
#[derive(Clone, Debug, Serialize)]
pub struct Data {
    panels: Vec<PanelData>,
    paths: Vec<path::PathData>,
    /// Number of values and step of each column.
    columns: Vec<(usize, f64)>,
    /// The columns ([`Data::columns`]).
    #[serde(skip)]
    bytes: Vec<u8>,
}

#[derive(Clone, Debug, Default, Serialize)]
struct PanelData {
    title: String,
    unit: (f64, &'static str),
    top: f64,
    /// The bottom of the scale, unless it is zero.
    #[serde(skip_serializing_if = "Option::is_none")]
    bottom: Option<f64>,
    /// True if the scale of a part of the axis begins at the least value there.
    #[serde(skip_serializing_if = "is_false")]
    fits: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    strip: Option<sketch::StripData>,
    across: Across,
    lines: Vec<LineData>,
    references: Vec<(String, f64)>,
    notes: Vec<String>,
}

#[derive(Clone, Debug, Default, Serialize)]
struct LineData {
    label: String,
    member: String,
    colour: usize,
    dash: usize,
    faint: bool,
    bound: bool,
    /// True if the script draws means of the samples.
    means: bool,
    /// Indices of the columns of times and values.
    columns: (usize, usize),
    /// How points are drawn, unless a line joins them.
    #[serde(skip_serializing_if = "Option::is_none")]
    shape: Option<&'static str>,
    /// The columns of least values, and of half the width of intervals.
    #[serde(skip_serializing_if = "Option::is_none")]
    low: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    spread: Option<usize>,
}

impl Data {
    /// True without a panel.
    pub(super) fn is_empty(&self) -> bool {
        self.panels.is_empty()
    }

    /// The columns in their order. Each value is a multiple of the column's step; each is stored as its difference to
    /// the one before it, zigzag-encoded, seven bits a byte with the least significant first, as in Protocol Buffers.
    #[must_use]
    pub fn columns(&self) -> &[u8] {
        &self.bytes
    }
}

impl Gallery {
    /// A gallery with the paths of these runs.
    pub(crate) fn of(runs: &[Run]) -> Self {
        Self { figures: RefCell::default(), paths: runs.iter().filter_map(Path::of).collect() }
    }

    /// A figure with `panel`, which the script replaces.
    pub(crate) fn figure(&self, panel: &Panel, frame: &Frame, last: bool) -> Markup {
        self.figure_with(panel, frame, last, &html! {})
    }

    /// [`Gallery::figure`] under a caption.
    pub(crate) fn figure_with(&self, panel: &Panel, frame: &Frame, last: bool, caption: &Markup) -> Markup {
        let (from, to) = frame.time.span();
        let title = frame.across.to_owned();
        let across =
            Across { title, unit: frame.time.unit, from, to, phases: frame.phases.clone(), ..Across::default() };
        let number = self.add(Figure::Panel(panel.clone(), across));
        html! { figure data-panel=(number) { (caption) (drawing(panel, frame, last)) } }
    }

    /// A figure with `drawing`, which the script replaces by what `sketch` holds.
    pub(crate) fn sketch(&self, sketch: Sketch, drawing: &Markup) -> Markup {
        let number = self.add(Figure::Sketch(sketch));
        html! { figure data-panel=(number) { (drawing) } }
    }

    fn add(&self, figure: Figure) -> usize {
        let mut figures = self.figures.borrow_mut();
        figures.push(figure);
        figures.len() - 1
    }

    /// Figures one below the other, so that a page may break between them.
    pub(crate) fn column(&self, panels: &[Panel], frame: &Frame) -> Markup {
        html! {
            @for (row, panel) in panels.iter().enumerate() {
                (self.figure(panel, frame, row + 1 == panels.len()))
            }
        }
    }

    /// The data of all panels.
    pub(crate) fn data(&self) -> Data {
        let figures = self.figures.borrow();
        let lines = |figure: &Figure| if let Figure::Panel(panel, _) = figure { panel.lines.len() } else { 0 };
        let lines: usize = figures.iter().map(lines).sum();
        let most = (MOST_SAMPLES / lines.max(1)).clamp(FEWEST_OF_A_LINE, MOST_OF_A_LINE);
        let mut columns = Columns::default();
        let figure = |figure: &Figure| match figure {
            Figure::Panel(panel, across) => panel_data(panel, across, most, &mut columns),
            Figure::Sketch(sketch) => sketch.data(&mut columns),
        };
        let data = figures.iter().map(figure).collect();
        let paths = self.paths.iter().map(|path| path.data(&mut columns)).collect();
        let (index, bytes) = columns.finish();
        Data { panels: data, paths, columns: index, bytes }
    }
}

impl Across {
    /// The axis with names for readers.
    fn shown(&self) -> Self {
        Self {
            title: text(&self.title),
            phases: self.phases.iter().map(|(from, to, name)| (*from, *to, text(name))).collect(),
            ticks: self.ticks.iter().map(|(at, name)| (*at, text(name))).collect(),
            ..self.clone()
        }
    }
}

/// A name as text of one line.
fn text(text: &String) -> String {
    shown::line(text).into_owned()
}

fn panel_data(panel: &Panel, across: &Across, most: usize, columns: &mut Columns) -> PanelData {
    let span = across.to - across.from;
    let line = |line: &Line| {
        let samples = if line.samples.is_empty() { &line.points } else { &line.samples };
        LineData {
            label: text(&line.label),
            member: text(&line.member),
            colour: line.colour,
            dash: line.dash,
            faint: line.faint,
            bound: line.bound,
            means: !line.samples.is_empty(),
            columns: columns.add(samples, span, most),
            ..LineData::default()
        }
    };
    PanelData {
        title: text(&panel.title),
        unit: panel.axis.unit,
        top: panel.axis.span().1,
        lines: panel.lines.iter().map(line).collect(),
        references: panel.references.iter().map(|reference| (text(&reference.label), reference.value)).collect(),
        notes: panel.notes.iter().map(text).collect(),
        across: across.shown(),
        ..PanelData::default()
    }
}

//! The panels of a page as data, from which its script draws them anew: with values under the pointer, zoomed,
//! line by line.
//!
//! A page shows every panel as a static drawing in a `figure` with the panel's number. The script replaces it.
//! Without a script the drawing stays.

mod columns;
mod path;

use std::cell::RefCell;

use lastmile_text::shown;
use maud::{Markup, html};
use serde::Serialize;

use self::columns::Columns;
pub(crate) use self::path::Path;
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
    panels: RefCell<Vec<(Panel, Across)>>,
    paths: Vec<Path>,
}

/// The horizontal axis of a panel.
#[derive(Clone, Debug, Serialize)]
struct Across {
    title: &'static str,
    /// The value of the unit in seconds, and its symbol.
    unit: (f64, &'static str),
    from: f64,
    to: f64,
    /// Begin, end and name of each phase.
    phases: Vec<(f64, f64, String)>,
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

#[derive(Clone, Debug, Serialize)]
struct PanelData {
    title: String,
    unit: (f64, &'static str),
    top: f64,
    across: Across,
    lines: Vec<LineData>,
    references: Vec<(String, f64)>,
    notes: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
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
        Self { panels: RefCell::default(), paths: runs.iter().filter_map(Path::of).collect() }
    }

    /// A figure with `panel`, which the script replaces.
    pub(crate) fn figure(&self, panel: &Panel, frame: &Frame, last: bool) -> Markup {
        self.figure_with(panel, frame, last, &html! {})
    }

    /// [`Gallery::figure`] under a caption.
    pub(crate) fn figure_with(&self, panel: &Panel, frame: &Frame, last: bool, caption: &Markup) -> Markup {
        let (from, to) = frame.time.span();
        let across = Across { title: frame.across, unit: frame.time.unit, from, to, phases: frame.phases.clone() };
        self.panels.borrow_mut().push((panel.clone(), across));
        let number = self.panels.borrow().len() - 1;
        html! { figure data-panel=(number) { (caption) (drawing(panel, frame, last)) } }
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
        let panels = self.panels.borrow();
        let lines: usize = panels.iter().map(|(panel, _)| panel.lines.len()).sum();
        let most = (MOST_SAMPLES / lines.max(1)).clamp(FEWEST_OF_A_LINE, MOST_OF_A_LINE);
        let mut columns = Columns::default();
        let data = panels.iter().map(|(panel, across)| panel_data(panel, across, most, &mut columns)).collect();
        let paths = self.paths.iter().map(|path| path.data(&mut columns)).collect();
        let (index, bytes) = columns.finish();
        Data { panels: data, paths, columns: index, bytes }
    }
}

fn panel_data(panel: &Panel, across: &Across, most: usize, columns: &mut Columns) -> PanelData {
    let text = |text: &String| shown::line(text).into_owned();
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
        }
    };
    PanelData {
        title: text(&panel.title),
        unit: panel.axis.unit,
        top: panel.axis.span().1,
        lines: panel.lines.iter().map(line).collect(),
        references: panel.references.iter().map(|reference| (text(&reference.label), reference.value)).collect(),
        notes: panel.notes.iter().map(text).collect(),
        across: Across {
            phases: across.phases.iter().map(|(from, to, name)| (*from, *to, text(name))).collect(),
            ..across.clone()
        },
    }
}

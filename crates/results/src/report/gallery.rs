//! The panels of a page as data, from which its script draws them anew: with values under the pointer, zoomed,
//! line by line.
//!
//! A page shows every panel as a static drawing in a `figure` with the panel's number. The script replaces it.
//! Without a script the drawing stays.

mod columns;
mod data;
mod exact;
mod path;
mod sketch;

use std::cell::RefCell;

use maud::{Markup, html};
use serde::Serialize;

use self::columns::{Columns, averaged, thinned};
pub(crate) use self::data::Across;
use self::data::{LineData, PanelData, bottom, text};
pub(crate) use self::exact::Exact;
pub(crate) use self::path::Path;
pub(crate) use self::sketch::{Curve, Sketch, Strip};
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

impl Data {
    /// True without a panel.
    pub(super) fn is_empty(&self) -> bool {
        self.panels.is_empty()
    }

    /// The columns in their order. Each value is a multiple of the column's step; each is stored as its difference to
    /// the previous one, zigzag-encoded, seven bits a byte with the least significant first, as in Protocol Buffers.
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
        let across = Across {
            title: frame.across.clone().into_owned(),
            unit: frame.time.unit,
            from,
            to,
            phases: frame.phases.clone(),
            ticks: frame.time.names.clone(),
            log: frame.time.is_log,
            clock: frame.time.clock.clone(),
        };
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

fn panel_data(panel: &Panel, across: &Across, most: usize, columns: &mut Columns) -> PanelData {
    let span = across.to - across.from;
    let mut line = |line: &Line| {
        let means = !line.samples.is_empty();
        let samples = if means { averaged(&line.samples, most) } else { thinned(&line.points, most) };
        LineData {
            label: text(&line.label),
            member: text(&line.member),
            colour: line.colour,
            dash: line.dash,
            faint: line.faint,
            bound: line.bound,
            means,
            // Points with intervals are few, and each is one.
            columns: if line.spread.is_empty() { columns.add(&samples, span) } else { columns.points(&line.points) },
            shape: line.shape.name(),
            low: None,
            spread: (!line.spread.is_empty()).then(|| columns.exact(&Exact::rounded(line.spread.iter().copied()))),
        }
    };
    PanelData {
        title: text(&panel.title),
        unit: panel.axis.unit,
        top: panel.axis.span().1,
        bottom: bottom(panel.axis.span().0),
        lines: panel.lines.iter().map(&mut line).collect(),
        references: panel.references.iter().map(|reference| (text(&reference.label), reference.value)).collect(),
        notes: panel.notes.iter().map(|note| text(note)).collect(),
        across: across.shown(),
        ..PanelData::default()
    }
}

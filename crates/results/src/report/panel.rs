//! One panel: one quantity over time or another, on one axis, with named lines.
//!
//! Samples are reduced to at most four points per pixel column (first, least, largest, last), so
//! that a drawing stays small and shows every peak. Coordinates have one decimal.

use std::borrow::Cow;
use std::collections::BTreeSet;

use maud::{Markup, html};

pub(crate) use super::coordinate::{coordinate, write_coordinate};
use super::label::{self, Area, Columns};
use super::scale::Axis;
use super::shape::Shape;
use super::style::{CHARACTER, COLOURS, DASHES, FONT};
use super::thinning::{columns, path};

/// The contents of a panel.
#[derive(Clone, Debug)]
pub(crate) struct Panel {
    /// The quantity, without its unit.
    pub(crate) title: String,
    /// The axis of values.
    pub(crate) axis: Axis,
    /// Lines, in the order in which they are drawn.
    pub(crate) lines: Vec<Line>,
    /// Capacities, bounds and limits.
    pub(crate) references: Vec<Reference>,
    /// Remarks on the drawing, the most important first; shown as far as they fit.
    pub(crate) notes: Vec<String>,
    /// The span whose mean orders the names in the margin, for all lines; `None` if names are at
    /// the lines' ends.
    pub(crate) named_by: Option<(f64, f64)>,
    /// True to mark each point, for drawings with few points, each of them a run.
    pub(crate) marks: bool,
}

/// One line of a panel.
#[derive(Clone, Debug, Default)]
pub(crate) struct Line {
    /// The name, by which a reader switches the line; drawn once for lines that share it, at the first of them.
    pub(crate) label: String,
    /// Index of the colour; on a page of several runs that of the run.
    pub(crate) colour: usize,
    /// Index of the dashes, which distinguish lines of one colour; 0 for none.
    pub(crate) dash: usize,
    /// True for one of many lines: thin and pale.
    pub(crate) faint: bool,
    /// True for a bound: dotted, and in steps.
    pub(crate) bound: bool,
    /// Time and value.
    pub(crate) points: Vec<(f64, f64)>,
    /// The samples whose means the points are; empty if the points are samples themselves. Scripts draw them.
    pub(crate) samples: Vec<(f64, f64)>,
    /// The subject of one of several lines that share a name; else empty.
    pub(crate) member: String,
    /// Half the width of the interval of each point; empty without intervals.
    pub(crate) spread: Vec<f64>,
    /// How points are drawn: joined, or as marks with intervals.
    pub(crate) shape: Shape,
}

/// A constant for comparison.
#[derive(Clone, Debug)]
pub(crate) struct Reference {
    /// The name with the value; empty if a note has them.
    pub(crate) label: String,
    /// The value.
    pub(crate) value: f64,
}

/// The layout that all panels of a column share.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    /// The axis of time, or of another horizontal quantity.
    pub(crate) time: Axis,
    /// The quantity of that axis.
    pub(crate) across: Cow<'static, str>,
    /// Begin, end and name of each phase.
    pub(crate) phases: Vec<(f64, f64, String)>,
    /// Width of the whole drawing.
    pub(crate) width: f64,
    /// Width for names at the right.
    pub(crate) margin: f64,
    /// Height of the plot area.
    pub(crate) height: f64,
}

const LEFT: f64 = 52.0;
const TITLE: f64 = 22.0;
const PHASES: f64 = 15.0;
const TICKS: f64 = 20.0;
const AXIS_TITLE: f64 = 18.0;
/// Height of one line of text in the margin.
const ROW: f64 = FONT + 2.0;
/// Size of titles and notes relative to plot text.
const TITLE_SIZE: f64 = 13.0 / FONT;
const NOTE_SIZE: f64 = 11.0 / FONT * 0.9;
/// Width of a column of one of many lines, in pixels: their drawings are many, and each is pale.
const FAINT_COLUMN: usize = 12;
/// The share of the time axis that a line must reach to be named in the margin.
const REACHES_THE_END: f64 = 0.93;

impl Frame {
    /// Height of a drawing of one panel. The last of a column includes the title of the time axis.
    pub(crate) fn panel_height(&self, last: bool) -> f64 {
        TITLE + PHASES + self.height + TICKS + if last { AXIS_TITLE } else { 6.0 }
    }

    fn plot(&self) -> Area {
        Area { x: LEFT, y: TITLE + PHASES, width: self.width - LEFT - self.margin, height: self.height }
    }

    /// The ticks of the horizontal axis. Names that would overlap are empty.
    fn ticks(&self) -> Vec<(f64, String)> {
        let mut free = f64::NEG_INFINITY;
        let fits = |(tick, label): (f64, String)| {
            let half = CHARACTER * label.chars().count() as f64 / 2.0;
            let is_free = self.time.names.is_empty() || self.x(tick) - half >= free;
            if is_free {
                free = self.x(tick) + half + CHARACTER;
            }
            (tick, if is_free { label } else { String::new() })
        };
        self.time.ticks().map(fits).collect()
    }

    fn x(&self, time: f64) -> f64 {
        let plot = self.plot();
        plot.x + plot.width * self.time.place(time).clamp(0.0, 1.0)
    }
}

impl Panel {
    /// The panel as the inside of a drawing, its top at 0.
    pub(crate) fn draw(&self, frame: &Frame, last: bool) -> Markup {
        let plot = frame.plot();
        let columns: Vec<Columns> = self.lines.iter().map(|line| columns(&self.place(line, frame), plot)).collect();
        html! {
            (self.ground(frame, plot, last))
            @for reference in &self.references {
                @let y = coordinate(self.y(reference.value, plot));
                path.reference d={ "M" (coordinate(plot.x)) " " (y) "H" (coordinate(plot.right())) } {}
            }
            @for line in &self.lines {
                @let class = if line.bound { "bound" } else if line.faint { "line faint" } else { "line" };
                @if line.shape != Shape::Dot {
                    path class={ (class) " c" (line.colour % COLOURS) " d" (line.dash % DASHES) }
                        d=(path(&self.place(line, frame), plot, if line.faint { FAINT_COLUMN } else { 1 })) {}
                }
                @if !line.spread.is_empty() { (self.intervals(line, frame)) }
                @let is_marked = self.marks || line.shape == Shape::Dot && line.spread.is_empty();
                @for (x, y) in self.place(line, frame).into_iter().filter(|_| is_marked) {
                    circle class={ (class) " c" (line.colour % COLOURS) } cx=(coordinate(x)) cy=(coordinate(y))
                        r="2.5" {}
                }
            }
            (self.labels(frame, plot, &columns))
        }
    }

    /// The points of a line as marks, with their intervals.
    fn intervals(&self, line: &Line, frame: &Frame) -> Markup {
        let plot = frame.plot();
        let (mut bars, mut dots) = (String::new(), String::new());
        for ((at, value), spread) in line.points.iter().zip(&line.spread) {
            let (x, y) = (frame.x(*at), self.y(*value, plot));
            dots.push_str(&format!("M{} {}h0", coordinate(x), coordinate(y)));
            if *spread > 0.0 {
                let (low, high) = (self.y(value - spread, plot), self.y(value + spread, plot));
                let ends = format!("M{0} {1}h6M{0} {2}h6", coordinate(x - 3.0), coordinate(low), coordinate(high));
                bars.push_str(&format!("M{} {}V{}{ends}", coordinate(x), coordinate(low), coordinate(high)));
            }
        }
        html! {
            path class={ "stroke c" (line.colour % COLOURS) } d=(bars) {}
            path class={ "dots c" (line.colour % COLOURS) } d=(dots) {}
        }
    }

    /// Bands of phases, grid, ticks and titles.
    fn ground(&self, frame: &Frame, plot: Area, last: bool) -> Markup {
        let (top, bottom) = (coordinate(plot.y), coordinate(plot.bottom()));
        html! {
            text.title x="0" y="14" { (self.title) @if !self.axis.unit.1.is_empty() { ", " (self.axis.unit.1) } }
            text.note x=(coordinate(frame.width)) y="14" text-anchor="end" { (self.note(frame.width)) }
            @for (number, (from, to, name)) in frame.phases.iter().enumerate() {
                @let (left, right) = (frame.x(*from), frame.x(*to));
                @if number % 2 == 1 {
                    rect.band x=(coordinate(left)) y=(top) width=(coordinate(right - left))
                        height=(coordinate(plot.height)) {}
                }
                @if number > 0 { path.edge d={ "M" (coordinate(left)) " " (top) "V" (bottom) } {} }
                @if CHARACTER * name.chars().count() as f64 <= right - left {
                    text.phase x=(coordinate(f64::midpoint(left, right))) y=(coordinate(plot.y - 4.0))
                        text-anchor="middle" { (name) }
                }
            }
            @for (tick, label) in self.axis.ticks() {
                @let y = self.y(tick, plot);
                path.grid d={ "M" (coordinate(plot.x)) " " (coordinate(y)) "H" (coordinate(plot.right())) } {}
                text x=(coordinate(plot.x - 7.0)) y=(coordinate(y + 4.0)) text-anchor="end" { (label) }
            }
            @for (tick, label) in frame.ticks() {
                @let x = coordinate(frame.x(tick));
                path.frame d={ "M" (x) " " (bottom) "v4" } {}
                text x=(x) y=(coordinate(plot.bottom() + 16.0)) text-anchor="middle" { (label) }
            }
            path.frame d={ "M" (coordinate(plot.x)) " " (bottom) "H" (coordinate(plot.right())) } {}
            @if last {
                text x=(coordinate(f64::midpoint(plot.x, plot.right()))) y=(coordinate(plot.bottom() + 33.0))
                    text-anchor="middle" {
                    (frame.across) @if !frame.time.unit.1.is_empty() { ", " (frame.time.unit.1) }
                }
            }
        }
    }

    /// The notes that fit next to the title.
    fn note(&self, width: f64) -> String {
        let title = (self.title.chars().count() + self.axis.unit.1.chars().count() + 4) as f64 * CHARACTER * TITLE_SIZE;
        let mut text = String::new();
        for note in &self.notes {
            let longer = if text.is_empty() { note.clone() } else { format!("{text}; {note}") };
            if title + longer.chars().count() as f64 * CHARACTER * NOTE_SIZE <= width {
                text = longer;
            }
        }
        text
    }

    /// Names of lines and references.
    fn labels(&self, frame: &Frame, plot: Area, columns: &[Columns]) -> Markup {
        let (margin, within) = self.split(frame);
        let texts: Vec<MarginLabel> = margin.iter().map(|entry| self.margin_label(*entry, frame, plot)).collect();
        let wishes: Vec<(f64, f64)> = texts.iter().map(|text| (text.y, text.rows.len() as f64 * ROW)).collect();
        let places = label::spread(&wishes, plot.y - 6.0, plot.bottom() + 8.0);
        // Reference lines are obstacles to a name too.
        let across = |reference: &Reference| {
            let y = self.y(reference.value, plot);
            vec![Some((y, y)); columns.first().map_or(0, Vec::len)]
        };
        let in_the_way: Vec<Columns> = columns.iter().cloned().chain(self.references.iter().map(across)).collect();
        let mut taken = Vec::new();
        let mut inside = Vec::new();
        for index in within {
            let text = &self.lines[index].label;
            let (from, to) = active(&self.lines[index].points);
            let span = (frame.time.place(from).clamp(0.0, 1.0), frame.time.place(to).clamp(0.0, 1.0));
            if let Some(area) = label::near_line(text, index, span, &in_the_way, plot, &taken) {
                taken.push(area);
                inside.push((index, area));
            }
        }
        html! {
            @for (text, middle) in texts.iter().zip(places) {
                @let from = plot.right() + 2.0;
                @if text.leader {
                    path class={ "leader " (text.class) } d={
                        "M" (coordinate(from)) " " (coordinate(text.y)) "L" (coordinate(from + 8.0)) " "
                            (coordinate(middle))
                    } {}
                }
                @let first = middle - text.rows.len() as f64 * ROW / 2.0 + FONT - 1.0;
                @for (row, line) in text.rows.iter().enumerate() {
                    text class={ "label " (text.class) } x=(coordinate(from + 12.0))
                        y=(coordinate(first + row as f64 * ROW)) { (line) }
                }
            }
            @for (index, area) in inside {
                text class={ "label c" (self.lines[index].colour % COLOURS) } x=(coordinate(area.x))
                    y=(coordinate(area.y + FONT - 1.0)) {
                    (self.lines[index].label)
                }
            }
        }
    }

    /// The names in the margin, and the lines named within the plot.
    fn split(&self, frame: &Frame) -> (Vec<Entry>, Vec<usize>) {
        let mut margin: Vec<Entry> = (0..self.references.len())
            .filter(|index| !self.references[*index].label.is_empty())
            .map(Entry::Reference)
            .collect();
        let mut within = Vec::new();
        let mut named = BTreeSet::from([""]);
        for (index, line) in self.lines.iter().enumerate().filter(|(_, line)| named.insert(&line.label)) {
            if self.named_by.is_some() || frame.time.place(active(&line.points).1) >= REACHES_THE_END {
                margin.push(Entry::Line(index));
            } else {
                within.push(index);
            }
        }
        (margin, within)
    }

    fn margin_label(&self, entry: Entry, frame: &Frame, plot: Area) -> MarginLabel {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a width: small and positive")]
        let characters = ((frame.margin - 14.0) / CHARACTER) as usize;
        let (text, value, class, most) = match entry {
            Entry::Line(index) => {
                let line = &self.lines[index];
                let value = self.named_by.map_or_else(|| last(&line.points), |span| mean(&line.points, span));
                (&line.label, value, format!("c{}", line.colour % COLOURS), 2)
            }
            Entry::Reference(index) => {
                // The value is last and must not be truncated.
                (&self.references[index].label, self.references[index].value, "fixed edge".to_owned(), 3)
            }
        };
        let leader = self.named_by.is_none();
        MarginLabel { rows: label::wrap(text, characters, most), y: self.y(value, plot), class, leader }
    }

    fn y(&self, value: f64, plot: Area) -> f64 {
        plot.bottom() - plot.height * self.axis.place(value).clamp(0.0, 1.0)
    }

    /// The points of a line in the drawing; a bound becomes steps.
    fn place(&self, line: &Line, frame: &Frame) -> Vec<(f64, f64)> {
        let plot = frame.plot();
        let (from, to) = frame.time.span();
        let points = line.points.iter().filter(|(time, value)| *time >= from && *time <= to && value.is_finite());
        points.map(|(time, value)| (frame.x(*time), self.y(*value, plot))).collect()
    }
}

#[derive(Clone, Copy)]
enum Entry {
    Line(usize),
    Reference(usize),
}

struct MarginLabel {
    rows: Vec<String>,
    y: f64,
    class: String,
    /// True if a stroke connects the end of the line with its name.
    leader: bool,
}

/// The last value; zero for none.
fn last(points: &[(f64, f64)]) -> f64 {
    points.last().map_or(0.0, |(_, value)| *value)
}

/// The mean of the values between two times; zero for none.
pub(crate) fn mean(points: &[(f64, f64)], (from, to): (f64, f64)) -> f64 {
    let values = points.iter().filter(|(time, _)| (from..=to).contains(time)).map(|(_, value)| *value);
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    if count > 0.0 { sum / count } else { 0.0 }
}

/// The span in which the line is clearly above zero.
fn active(points: &[(f64, f64)]) -> (f64, f64) {
    let largest = points.iter().map(|(_, value)| *value).fold(0.0, f64::max);
    let clear = |(_, value): &&(f64, f64)| *value > largest * 0.01;
    let first = points.iter().find(clear).or(points.first());
    let last = points.iter().rev().find(clear).or(points.last());
    (first.map_or(0.0, |(time, _)| *time), last.map_or(0.0, |(time, _)| *time))
}

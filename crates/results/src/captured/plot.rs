//! A drawing of curves over time, and its data for the page's script.
//!
//! Curves of the drawing are thinned by pixel columns: the first, least, largest and last value of each remain. The
//! script has every point.

use lastmile_analysis::Phase;
use maud::{Markup, PreEscaped, html};

use crate::format::{self, Unit, to_f64};
use crate::report::gallery::{Across, Curve as Drawn, Exact, Sketch, Strip};
use crate::report::panel::{coordinate, write_coordinate};
use crate::report::scale::Axis;
use crate::report::shape::Shape;
use crate::report::style::CHARACTER;

pub(super) const WIDTH: f64 = 1100.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 8.0;
const TICKS: f64 = 22.0;
const HIGH: f64 = 380.0;
const LOW: f64 = 150.0;
/// Height of the strip of phases.
const STRIP: f64 = 10.0;

/// The unit of the values of a plot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Quantity {
    Bytes,
    Microseconds,
    BitsPerSecond,
}

impl Quantity {
    /// One value in the base unit, and the units of the axis.
    fn units(self) -> (f64, &'static [Unit]) {
        match self {
            Self::Bytes => (1.0, format::BYTES),
            Self::Microseconds => (1e-6, format::SECONDS),
            Self::BitsPerSecond => (1.0, format::RATES),
        }
    }
}

impl Shape {
    /// The mark around its point; empty for other curves.
    fn mark(self) -> &'static str {
        match self {
            Self::Triangle => "m0 -4l3.5 6h-7z",
            Self::Cross => "m-3 -3l6 6m0 -6l-6 6",
            Self::Diamond => "m0 -3l3 3l-3 3l-3 -3z",
            Self::Square => "m-2.5 -2.5h5v5h-5z",
            _ => "",
        }
    }

    /// The sign in the legend.
    fn sign(self) -> &'static str {
        match self {
            Self::Bars => "|",
            Self::Triangle => "△",
            Self::Cross => "×",
            Self::Diamond => "◇",
            Self::Square => "□",
            _ => "—",
        }
    }
}

/// A curve: time in microseconds, least and largest value.
#[derive(Clone, Debug)]
pub(super) struct Curve {
    pub(super) name: &'static str,
    pub(super) shape: Shape,
    pub(super) colour: usize,
    /// True for a bound, which does not set the scale of a part of the time.
    pub(super) bound: bool,
    pub(super) points: Vec<(u64, i64, i64)>,
}

/// A plot of one quantity.
#[derive(Clone, Debug)]
pub(super) struct Plot {
    pub(super) title: &'static str,
    pub(super) quantity: Quantity,
    pub(super) curves: Vec<Curve>,
    /// The start of each phase of the congestion window.
    pub(super) phases: Vec<(u64, Phase)>,
    pub(super) high: bool,
}

/// Positions in a plot.
struct Place<'a> {
    time: &'a Axis,
    values: Axis,
    scale: f64,
    height: f64,
    /// Width of a column, in pixels: of the values in it, four remain.
    column: f64,
}

impl Place<'_> {
    fn x(&self, us: u64) -> f64 {
        LEFT + (WIDTH - LEFT - RIGHT) * self.time.place(us as f64 / 1e6).clamp(0.0, 1.0)
    }

    fn y(&self, value: i64) -> f64 {
        TOP + self.height * (1.0 - self.values.place(value as f64 * self.scale).clamp(0.0, 1.0))
    }
}

/// The colour of a phase.
pub(super) fn colour_of(phase: Phase) -> usize {
    match phase {
        Phase::Handshake => 7,
        Phase::SlowStart => 4,
        Phase::Avoidance => 0,
        Phase::Recovery => 1,
        Phase::Timeout => 3,
        Phase::ReceiveWindow => 5,
        Phase::Application => 2,
    }
}

impl Plot {
    /// Positions over the time axis that all plots of a direction share.
    fn place<'a>(&self, time: &'a Axis, column: f64) -> Place<'a> {
        let (scale, units) = self.quantity.units();
        let largest = self.curves.iter().flat_map(|curve| &curve.points).map(|point| point.2).max().unwrap_or(0);
        let values = Axis::from_zero(largest as f64 * scale, units, if self.high { 7 } else { 4 });
        Place { time, values, scale, height: if self.high { HIGH } else { LOW }, column }
    }

    /// Height of the drawing.
    pub(super) fn height(&self) -> f64 {
        TOP + if self.high { HIGH } else { LOW } + TICKS
    }

    /// Axes, phases and curves.
    fn inside(&self, place: &Place<'_>) -> Markup {
        let bottom = TOP + place.height;
        html! {
            g.axes { (axes(place, bottom)) }
            g.phases { (self.strip(place, bottom)) }
            @for curve in &self.curves {
                @let class = match curve.shape { Shape::Line | Shape::Steps => "line", _ => "stroke" };
                path class={ (class) " c" (curve.colour) } d=(path(curve, place)) {}
            }
        }
    }

    /// The plot with its title and legend as a part of a drawing.
    pub(super) fn within(&self, time: &Axis) -> Markup {
        let place = self.place(time, 1.0);
        html! {
            text.title x="0" y="0" { (self.title) ", " (place.values.unit.1) }
            text x=(coordinate(WIDTH - RIGHT)) y="0" text-anchor="end" {
                @for curve in &self.curves {
                    tspan class={ "c" (curve.colour) } { "\u{a0}\u{a0}" (curve.shape.sign()) "\u{a0}" } (curve.name)
                }
            }
            (self.inside(&place))
            g transform={ "translate(0 " (coordinate(self.height() + 10.0)) ")" } { (self.phase_names()) }
        }
    }

    /// Height of the names of phases below the plot, as a part of a drawing.
    pub(super) fn legend_height(&self) -> f64 {
        if self.phases.is_empty() { 0.0 } else { 18.0 }
    }

    /// The colours of the strip: a name for each phase that occurs.
    fn phase_names(&self) -> Markup {
        let occurs = |phase: &&Phase| self.phases.iter().any(|(_, one)| one == *phase);
        let mut x = LEFT;
        let mut place = |name: &str| {
            let at = x;
            x += STRIP + 5.0 + CHARACTER * to_f64(name.chars().count() as u64) + 8.0;
            at
        };
        html! {
            @for phase in Phase::ALL.iter().filter(occurs) {
                @let name = phase.name().replace('_', " ");
                @let at = place(&name);
                rect class={ "phase" (colour_of(*phase)) } x=(coordinate(at)) y=(coordinate(1.0 - STRIP))
                    width=(coordinate(STRIP)) height=(coordinate(STRIP)) {}
                text x=(coordinate(at + STRIP + 5.0)) y="0" { (name) }
            }
        }
    }

    /// The drawing under its legend, thinned to columns of this width.
    pub(super) fn draw(&self, time: &Axis, column: f64) -> Markup {
        let place = self.place(time, column);
        html! {
            figcaption.keys {
                b { (self.title) ", " (place.values.unit.1) }
                @for curve in &self.curves {
                    " "
                    span.key {
                        b style={ "color:var(--c" (curve.colour) ")" } { (curve.shape.sign()) }
                        " " (curve.name)
                    }
                }
            }
            svg.plot viewBox={ "0 0 " (coordinate(WIDTH)) " " (coordinate(self.height())) } role="img"
                aria-label={ (self.title) " over time" } {
                (self.inside(&place))
            }
        }
    }

    fn strip(&self, place: &Place<'_>, bottom: f64) -> Markup {
        let end = LEFT + (WIDTH - LEFT - RIGHT);
        let mut spans: Vec<(f64, f64, Phase)> = Vec::new();
        for (number, (at, phase)) in self.phases.iter().enumerate() {
            let to = self.phases.get(number + 1).map_or(end, |(at, _)| place.x(*at));
            match spans.last_mut() {
                // A phase within a pixel of the next is not drawn.
                Some(last) if last.1 - last.0 < 0.5 => *last = (last.0, to, *phase),
                _ => spans.push((place.x(*at), to, *phase)),
            }
        }
        html! {
            @for (from, to, phase) in spans {
                rect class={ "phase" (colour_of(phase)) } x=(coordinate(from)) y=(coordinate(bottom - STRIP))
                    width=(coordinate((to - from).max(0.5))) height=(coordinate(STRIP)) {
                    title { (phase.name().replace('_', " ")) }
                }
            }
        }
    }

    /// The data for the script.
    pub(super) fn sketch(&self, time: &Axis) -> Sketch {
        let values = self.place(time, 1.0).values;
        let (from, to) = time.span();
        Sketch {
            title: self.title.to_owned(),
            unit: values.unit,
            span: values.span(),
            fits: self.high,
            across: Across { title: "Time".to_owned(), unit: time.unit, from, to, ..Across::default() },
            curves: self.curves.iter().map(|curve| curve.drawn(self.quantity.units().0)).collect(),
            strip: (!self.phases.is_empty()).then(|| strip_of(&self.phases)),
            ..Sketch::default()
        }
    }
}

impl Curve {
    /// The curve for the script; a value is `step` in the base unit.
    fn drawn(&self, step: f64) -> Drawn {
        let of = |value: fn(&(u64, i64, i64)) -> i64| self.points.iter().map(value).collect::<Vec<i64>>();
        let (low, high) = (of(|point| point.1), of(|point| point.2));
        Drawn {
            label: self.name.to_owned(),
            colour: self.colour,
            bound: self.bound,
            shape: self.shape,
            at: Exact { step: 1e-6, multiples: of(|point| microseconds(point.0)) },
            low: (low != high).then_some(Exact { step, multiples: low }),
            values: Exact { step, multiples: high },
            ..Drawn::default()
        }
    }
}

fn microseconds(at: u64) -> i64 {
    i64::try_from(at).unwrap_or(i64::MAX)
}

fn strip_of(phases: &[(u64, Phase)]) -> Strip {
    let number = |phase: Phase| Phase::ALL.iter().position(|one| *one == phase).unwrap_or(0);
    Strip {
        kinds: Phase::ALL.iter().map(|phase| (phase.name().replace('_', " "), colour_of(*phase))).collect(),
        begins: Exact { step: 1e-6, multiples: phases.iter().map(|(at, _)| microseconds(*at)).collect() },
        numbers: phases.iter().map(|(_, phase)| number(*phase)).collect(),
    }
}

fn axes(place: &Place<'_>, bottom: f64) -> Markup {
    let right = coordinate(WIDTH - RIGHT);
    html! {
        @for (tick, label) in place.values.ticks() {
            @let y = TOP + place.height * (1.0 - place.values.place(tick));
            path.grid d={ "M" (coordinate(LEFT)) " " (coordinate(y)) "H" (right) } {}
            text x=(coordinate(LEFT - 7.0)) y=(coordinate(y + 4.0)) text-anchor="end" { (label) }
        }
        @for (tick, label) in place.time.ticks() {
            @let x = coordinate(LEFT + (WIDTH - LEFT - RIGHT) * place.time.place(tick));
            path.frame d={ "M" (x) " " (coordinate(bottom)) "v4" } {}
            text x=(x) y=(coordinate(bottom + 17.0)) text-anchor="middle" { (label) " " (place.time.unit.1) }
        }
        path.frame d={ "M" (coordinate(LEFT)) " " (coordinate(bottom)) "H" (right) } {}
    }
}

/// The path of a curve, thinned by columns of a pixel.
fn path(curve: &Curve, place: &Place<'_>) -> PreEscaped<String> {
    let mut path = String::new();
    let mut last_mark = None;
    for column in columns(curve, place) {
        let (x, first, low, high, last) = column;
        match curve.shape {
            Shape::Bars => {
                point(&mut path, 'M', x, low);
                step(&mut path, 'V', high.min(low - 1.0));
            }
            Shape::Line | Shape::Steps if path.is_empty() => point(&mut path, 'M', x, first),
            Shape::Line => point(&mut path, 'L', x, first),
            Shape::Steps => {
                step(&mut path, 'H', x);
                step(&mut path, 'V', first);
            }
            shape => {
                let mark = (coordinate(x), coordinate(first));
                if last_mark.as_ref() != Some(&mark) {
                    point(&mut path, 'M', x, first);
                    path.push_str(shape.mark());
                    last_mark = Some(mark);
                }
            }
        }
        if matches!(curve.shape, Shape::Line | Shape::Steps) && low > high {
            for y in [low, high, last] {
                step(&mut path, 'V', y);
            }
        }
    }
    PreEscaped(path)
}

/// A command of a path with its point.
fn point(path: &mut String, command: char, x: f64, y: f64) {
    step(path, command, x);
    path.push(' ');
    write_coordinate(path, y);
}

/// A command of a path along one axis.
fn step(path: &mut String, command: char, to: f64) {
    path.push(command);
    write_coordinate(path, to);
}

/// By pixel column: position, first, lowest, highest and last value in the drawing, whose axis points
/// down. Marks are not merged.
fn columns(curve: &Curve, place: &Place<'_>) -> Vec<(f64, f64, f64, f64, f64)> {
    let mut columns: Vec<(f64, f64, f64, f64, f64)> = Vec::with_capacity(curve.points.len());
    let number = |x: f64| (x / place.column) as u64;
    let merges = curve.shape.mark().is_empty();
    for (at, low, high) in &curve.points {
        let (x, low, high) = (place.x(*at), place.y(*low), place.y(*high));
        match columns.last_mut() {
            Some(column) if merges && number(x) <= number(column.0) => {
                *column = (column.0, column.1, column.2.max(low), column.3.min(high), high);
            }
            _ => columns.push((x, low, low, high, high)),
        }
    }
    columns
}

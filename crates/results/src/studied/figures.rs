//! A measure against the first key: means with 95 % intervals, a line for each value of a second key, and a figure for
//! each combination of the others.

use maud::{Markup, html};

use super::axis::Places;
use super::design::{Design, at, combinations};
use super::model::{Point, Study};
use super::words::{title, units};
use crate::format::{self, grouped};
use crate::report::gallery::Gallery;
use crate::report::panel::{Frame, Line, Panel};
use crate::report::scale::Axis;
use crate::report::shape::Shape;

/// The most figures of a page.
const MOST_FIGURES: usize = 30;
/// The most points of all figures together.
const MOST_POINTS: usize = 6_000;

pub(super) fn section(study: &Study, points: &[Point<'_>], design: &Design, gallery: &Gallery) -> Markup {
    let places = Places::of(&study.keys[design.across]);
    let combinations = combinations(&design.figures, points);
    let wanted = combinations.len() * study.measures.len();
    let most = MOST_POINTS / wanted.clamp(1, MOST_FIGURES);
    // Figures of one measure stand side by side, and have one scale.
    let of_measure = |measure: usize| {
        let one = |values: &Vec<usize>| panel((study, points), (design, &places), (values, measure), most);
        let panels: Vec<Panel> = combinations.iter().take(MOST_FIGURES).filter_map(one).collect();
        let lines: Vec<&Line> = panels.iter().flat_map(|panel| &panel.lines).collect();
        let axis = axis(&lines, units(&study.measures[measure]));
        panels.into_iter().map(|panel| Panel { axis: axis.clone(), ..panel }).collect::<Vec<Panel>>()
    };
    let panels: Vec<Panel> = (0..study.measures.len()).flat_map(of_measure).take(MOST_FIGURES).collect();
    let frame = Frame {
        time: places.axis.clone(),
        across: study.keys[design.across].name.clone().into(),
        phases: Vec::new(),
        width: 580.0,
        margin: 130.0,
        height: 190.0,
    };
    html! {
        @if !panels.is_empty() {
            h2 { "Measures against " (study.keys[design.across].name) }
            p.caption {
                "Means over the seeds of a point; bars are 95 % intervals."
                @if let Some(key) = design.lines { " Colours: values of " (study.keys[key].name) "." }
                @if design.is_scattered { " Further keys vary from point to point, so no line joins the points." }
                @if wanted > MOST_FIGURES {
                    " The page has " (MOST_FIGURES) " of " (grouped(wanted as u64)) " figures; table.parquet has all."
                }
            }
            div.panels { @for panel in &panels { (gallery.figure(panel, &frame, true)) } }
        }
    }
}

/// The figure of a measure at these values of the keys with figures; `None` if no run has it.
fn panel(
    (study, points): (&Study, &[Point<'_>]),
    (design, places): (&Design, &Places),
    (values, measure): (&[usize], usize),
    most: usize,
) -> Option<Panel> {
    let here = at(&design.figures, values, points);
    let step = here.len().div_ceil(most).max(1);
    let kept: Vec<&Point<'_>> = here.iter().step_by(step).copied().collect();
    let names = design.lines.map_or_else(|| vec![None], |key| (0..study.keys[key].values.len()).map(Some).collect());
    let middle = format::to_f64(names.len() as u64 - 1) / 2.0;
    let line = |(colour, value): (usize, &Option<usize>)| {
        let is_of =
            |point: &&&Point<'_>| design.lines.zip(*value).is_none_or(|(key, value)| point.values[key] == value);
        let shift = (format::to_f64(colour as u64) - middle) * places.apart;
        let place = |point: &&Point<'_>| {
            let mean = point.mean(measure)?;
            Some((places.of[point.values[design.across]] + shift, mean.mean, mean.ci95.unwrap_or(0.0)))
        };
        let mut found: Vec<(f64, f64, f64)> = kept.iter().filter(is_of).filter_map(place).collect();
        found.sort_by(|a, b| a.0.total_cmp(&b.0));
        Line {
            label: design.lines.zip(*value).map_or("mean", |(key, value)| study.text(key, value)).to_owned(),
            colour,
            dash: colour / 8,
            points: found.iter().map(|(at, mean, _)| (*at, *mean)).collect(),
            spread: found.iter().map(|(.., ci95)| *ci95).collect(),
            shape: if design.is_scattered || !places.has_order { Shape::Dot } else { Shape::Interval },
            ..Line::default()
        }
    };
    let lines: Vec<Line> = names.iter().enumerate().map(line).filter(|line| !line.points.is_empty()).collect();
    let name = title(&study.measures[measure]);
    let named = study.named(&design.figures, values);
    let left_out = here.len() - kept.len();
    let left_out =
        (left_out > 0).then(|| format!("{} of {} points", grouped(kept.len() as u64), grouped(here.len() as u64)));
    let is_partial = |point: &&&Point<'_>| matches!(point.seeds(measure), (of, runs) if 0 < of && of < runs);
    let partial = kept.iter().filter(is_partial).count();
    let partial = (partial > 0).then(|| format!("means of fewer seeds: {}", grouped(partial as u64)));
    (!lines.is_empty()).then(|| Panel {
        title: if named.is_empty() { name } else { format!("{name}: {named}") },
        axis: Axis::default(),
        lines,
        references: Vec::new(),
        notes: left_out.into_iter().chain(partial).collect(),
        named_by: (design.is_scattered || !places.has_order).then(|| places.axis.span()),
        marks: false,
    })
}

/// An axis with zero, around all intervals.
fn axis(lines: &[&Line], units: &'static [format::Unit]) -> Axis {
    let each = || lines.iter().flat_map(|line| line.points.iter().zip(&line.spread));
    let high = each().map(|((_, mean), spread)| mean + spread).fold(0.0, f64::max);
    let low = each().map(|((_, mean), spread)| mean - spread).fold(0.0, f64::min);
    // An interval may reach below zero where no value does.
    let low = if each().all(|((_, mean), _)| *mean >= 0.0) { 0.0 } else { low };
    if low < 0.0 {
        let unit = format::unit_for(high.max(-low), units);
        Axis::between(low * 1.06, high * 1.06, unit, 5)
    } else {
        Axis::from_zero(high, units, 5)
    }
}
